"""A part of what `make fuzz` does; the whole takes minutes."""

from benchmarks import fuzz


def test_damaged_files_are_read_or_refused(tmp_path):
    counts, wrong, peak = fuzz.run_all(160, seed=2, folder=tmp_path)
    assert not wrong, "\n".join(wrong[:5])
    assert counts["refused"] > 50
    assert (
        counts["read"] > 10
    )  # not all damage is noticed, or else nothing but refusals would be tried
    assert peak < fuzz.PEAK
