"""What a notebook shows."""

import pytest

from epsilometer.inputs import Pair
from epsilometer.result import Verdict

ATTACK = "</td><script>alert(1)</script>\"'\x1b"


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_the_fragment_says_what_the_report_says(make_result, verdict):
    fragment = make_result(verdict)._repr_html_()
    assert "1.987" in fragment
    assert "4,000 of 10,000 draws (40%)" in fragment
    assert "<style" not in fragment
    assert fragment.count("<div") == fragment.count("</div")


def test_hostile_values_are_text(make_result):
    fragment = make_result(
        pair=Pair(ATTACK, "x" * 1_000_000), event=ATTACK, settings={"mechanism": ATTACK}
    )._repr_html_()
    assert "<script" not in fragment
    assert "\x1b" not in fragment
    assert len(fragment) < 10_000


def test_without_a_witness(make_result):
    assert "confidence" in make_result(witness=False)._repr_html_()
