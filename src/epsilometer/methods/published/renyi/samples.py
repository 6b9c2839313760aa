"""From two samples, as a user has them, to densities."""

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError
from epsilometer.methods.published.local.samples import count_outcomes
from epsilometer.methods.published.renyi.densities import (
    GRID_POINTS,
    Densities,
    Smoothing,
    grid_over,
)
from epsilometer.outputs import read_outputs

# The fewest draws of a side that have a standard deviation.
_FEWEST_DRAWS = 2
# Draws per side that are searched for repeated values before numbers count as continuous.
_INSPECTED_DRAWS = 20_000
# Single-precision floats that collide by chance stay below this fraction of them.
_CHANCE_COLLISIONS = 1e-3
# Where values repeat, more distinct ones than this fraction are a continuous part.
_CONTINUOUS_PART = 0.05


def read_densities(left_outputs: object, right_outputs: object, smoothing: Smoothing) -> Densities:
    """Returns relative frequencies of discrete outputs, or kernel estimates of continuous ones.

    Args:
        left_outputs: shape (n,) or (n, d).
        right_outputs: shape (m,) or (m, d).
        smoothing: kernel and bandwidth.
    """
    left = _read("left_outputs", left_outputs)
    right = _read("right_outputs", right_outputs)
    if left.shape[1:] != right.shape[1:]:
        raise InputError(
            f"left_outputs have shape {left.shape[1:]} and right_outputs {right.shape[1:]} each"
        )
    if _is_discrete(left, right):
        outcomes = count_outcomes(read_outputs(left), read_outputs(right))
        return Densities.of_counts(outcomes.left, outcomes.right)
    left_values = np.asarray(left, dtype=np.float64)
    right_values = np.asarray(right, dtype=np.float64)
    dimensions = left_values.shape[1]
    if dimensions not in GRID_POINTS:
        raise InputError(
            f"the outputs have {dimensions} continuous components; kernel densities are offered "
            "for at most 2. The method auto has no such limit"
        )
    grid = grid_over(left_values, right_values)
    return grid.densities(grid.count(left_values), grid.count(right_values), smoothing)


def _read(name: str, outputs: object) -> Array:
    """Returns outputs as an array of shape (n, d)."""
    values = np.asarray(outputs)
    if values.ndim not in (1, 2) or values.dtype == object:
        raise InputError(
            f"{name} must be an array of shape (n,) or (n, d) of numbers, truth values or strings"
        )
    if len(values) < _FEWEST_DRAWS:
        raise InputError(
            f"{name} has {len(values)} outputs; at least {_FEWEST_DRAWS} are needed, and thousands "
            "to be useful"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(
            f"{name} has NaN or infinite outputs, which have no density; the method auto counts "
            "them"
        )
    if values.dtype.kind not in "fiubUS":
        raise InputError(
            f"{name} has outputs of type {values.dtype}; numbers, truth values or strings are "
            "allowed"
        )
    return values.reshape(len(values), -1)


def _is_discrete(left: Array, right: Array) -> bool:
    """Tells whether outputs of shape (n, d) repeat; refuses samples in which only some do."""
    if left.dtype.kind != "f" or right.dtype.kind != "f":
        return True
    inspected = np.concatenate([left[:_INSPECTED_DRAWS], right[:_INSPECTED_DRAWS]])
    # Sorting numbers is far quicker than sorting rows of one number.
    axis = 0 if inspected.shape[1] > 1 else None
    _, counts = np.unique(inspected, axis=axis, return_counts=True)
    if 1.0 - len(counts) / len(inspected) < _CHANCE_COLLISIONS:
        return False
    if np.count_nonzero(counts == 1) > _CONTINUOUS_PART * len(inspected):
        raise InputError(
            "some outputs repeat and others do not: floored densities cannot treat mixed "
            "distributions; use auto"
        )
    return True
