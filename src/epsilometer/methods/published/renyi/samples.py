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

# The fewest draws of a side that have a spread.
_FEWEST = 2
# This many draws are searched for repeated values before numbers count as continuous.
_LOOK = 20_000
# Single-precision floats that collide by chance stay below this share of them.
_ACCIDENT = 1e-3


def read_densities(left_outputs: object, right_outputs: object, smoothing: Smoothing) -> Densities:
    """Relative frequencies for discrete outputs, kernel estimates for numbers that do not repeat.

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
    values = [np.asarray(side, dtype=np.float64) for side in (left, right)]
    if values[0].shape[1] not in GRID_POINTS:
        raise InputError(
            f"the outputs have {values[0].shape[1]} continuous components; kernel densities are offered for at most 2. "
            "The method auto has no such limit"
        )
    grid = grid_over(values[0], values[1])
    return grid.densities(grid.count(values[0]), grid.count(values[1]), smoothing)


def _read(name: str, outputs: object) -> Array:
    values = np.asarray(outputs)
    if values.ndim not in (1, 2) or values.dtype == object:
        raise InputError(
            f"{name} must be an array of shape (n,) or (n, d) of numbers, truth values or strings"
        )
    if len(values) < _FEWEST:
        raise InputError(
            f"{name} has {len(values)} outputs; at least {_FEWEST} are needed, and thousands to be useful"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(
            f"{name} has NaN or infinite outputs, which have no density; the method auto counts them"
        )
    if values.dtype.kind not in "fiubUS":
        raise InputError(
            f"{name} has outputs of type {values.dtype}; numbers, truth values or strings are allowed"
        )
    return values.reshape(len(values), -1)


def _is_discrete(left: Array, right: Array) -> bool:
    if left.dtype.kind != "f" or right.dtype.kind != "f":
        return True
    look = np.concatenate([left[:_LOOK], right[:_LOOK]])
    # Sorting numbers is far quicker than sorting rows of one number.
    _, counts = np.unique(look, axis=0 if look.shape[1] > 1 else None, return_counts=True)
    if 1.0 - len(counts) / len(look) < _ACCIDENT:
        return False
    if np.count_nonzero(counts == 1) > 0.05 * len(look):
        text = "some outputs repeat and others do not: floored densities cannot treat mixed distributions; use auto"
        raise InputError(text)
    return True
