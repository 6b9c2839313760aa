"""No mechanism loses power unnoticed: `make golden` writes the table anew, and the commit says why."""

import power_cases as cases
import pytest

TABLE = cases.read()


@pytest.mark.parametrize("name", cases.ROWS)
def test_a_share_does_not_fall(name):
    stored = TABLE[name]
    share, _ = cases.mean_share(cases.ROWS[name], stored.reference)
    assert share >= stored.floor, (
        f"{name}: {stored.share:.3f} -> {share:.3f} of the {stored.kind} {stored.reference:g}, "
        f"which may fall to {stored.floor:.3f}"
    )


def test_the_table_is_as_written():
    assert list(TABLE) == list(cases.ROWS)
    assert cases.STORED.read_text(encoding="utf-8") == cases.as_text(TABLE)


def test_a_fall_beyond_the_tolerance_is_told():
    steady, noisy = cases.Share("oracle", 1.0, 0.9, 0.001), cases.Share("oracle", 1.0, 0.9, 0.1)
    assert (steady.floor, noisy.floor) == (pytest.approx(0.85), pytest.approx(0.7))
    fallen = cases.Share("oracle", 1.0, 0.8, 0.001)
    before, after = {"a": steady, "b": noisy, "c": fallen}, {"a": fallen, "b": fallen, "c": steady}
    remarks = [line.split()[-1] for line in cases.comparison(before, after)]
    assert remarks[:3] == ["WORSE", "-0.100", "better"]
