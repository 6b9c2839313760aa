"""The table of sizes in the documentation: exact, never above the failure probability, and up to date."""

import json
from pathlib import Path

import pytest
from benchmarks.sizes import CASES, exact_size

STORED = json.loads(
    (Path(__file__).parents[3] / "docs" / "figures.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("failure", ["0.05", "0.5"])
def test_stored_sizes_are_never_above_the_failure_probability(case, failure):
    assert 0.0 < STORED["sizes"]["sizes"][case.name][failure] <= float(failure)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exact_sizes_are_what_is_measured_now(case):
    """If this fails: make figures ARGS="--measure sizes", and look at which bound was loosened or tightened."""
    assert exact_size(case, 0.05) == pytest.approx(
        STORED["sizes"]["sizes"][case.name]["0.05"], rel=1e-3, abs=1e-6
    )
