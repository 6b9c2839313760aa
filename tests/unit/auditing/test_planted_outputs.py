"""Outputs that only one input gives are ones that no observed output is like."""

import numpy as np
import pytest

from epsilometer.auditing.planted_outputs import plantings
from epsilometer.outputs import read_outputs

NOISE = np.linspace(0.0, 1.0, 101)


def planted(values, kind):
    outputs = read_outputs(values)
    return outputs, plantings(outputs)[kind](outputs.take(np.arange(3)))


@pytest.mark.parametrize(
    "values",
    [
        NOISE,
        np.where(np.arange(101) % 2 == 0, 0.5, NOISE),
        np.where(np.arange(101) % 2 == 0, 0.0, NOISE),
        np.where(np.arange(101) % 2 == 0, 1.0, NOISE),
        np.where(np.arange(101) == 3, np.nan, NOISE),
        np.arange(101) - (np.arange(101) > 40),
    ],
    ids=["noise", "median", "least", "largest", "nan", "whole"],
)
def test_an_exact_value_is_one_that_nobody_gave(values):
    """Also where every second output is the median."""
    observed, outputs = planted(values, "exact value")
    value = set(outputs.blocks[0].columns[0].values.tolist())
    assert len(value) == 1
    assert np.isfinite(list(value)).all()
    assert not value & set(observed.blocks[0].columns[0].values.tolist())


def test_a_missing_key_is_not_one_that_is_missing_anyway():
    both = [{"a": x, "b": x} if k % 3 else {"a": x} for k, x in enumerate(NOISE.tolist())]
    assert "missing key" in plantings(read_outputs([{"a": x, "b": x} for x in NOISE.tolist()]))
    assert "missing key" not in plantings(read_outputs(both))
    three = [{"a": x, "b": x, "c": x} if k % 3 else {"a": x, "b": x} for k, x in enumerate(NOISE)]
    assert (
        plantings(read_outputs(three))["missing key"](read_outputs(three[1:3])).blocks[0].shape
        == "{a: float}"
    )


def test_a_length_is_not_one_that_comes_anyway():
    assert "length" in plantings(read_outputs([[x, x] for x in NOISE.tolist()]))
    both = [[x, x] if k % 3 else [x, x, x] for k, x in enumerate(NOISE.tolist())]
    assert "length" not in plantings(read_outputs(both))
