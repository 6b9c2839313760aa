"""From two samples, as a user has them, to densities."""

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError, MechanismError
from epsilometer.methods.published.local.samples import count_outcomes
from epsilometer.methods.published.renyi.densities import (
    GRID_POINTS,
    Densities,
    Smoothing,
    grid_over,
)
from epsilometer.methods.published.renyi.mixtures import MixedView, find_mixed_view
from epsilometer.outputs import Outputs, read_outputs

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
        left_outputs: shape (n,) or (n, d), or a list of outputs of several kinds.
        right_outputs: shape (m,) or (m, d), or likewise.
        smoothing: kernel and bandwidth.
    """
    if _has_several_kinds(left_outputs) or _has_several_kinds(right_outputs):
        left_read = _read_kinds("left_outputs", left_outputs)
        right_read = _read_kinds("right_outputs", right_outputs)
        return _densities_of_kinds(left_read, right_read, smoothing)
    left = _read("left_outputs", left_outputs)
    right = _read("right_outputs", right_outputs)
    if left.shape[1:] != right.shape[1:]:
        raise InputError(
            f"left_outputs have shape {left.shape[1:]} and right_outputs {right.shape[1:]} each"
        )
    kind = _kind(left, right)
    if kind == "discrete":
        outcomes = count_outcomes(read_outputs(left), read_outputs(right))
        return Densities.of_counts(outcomes.left, outcomes.right)
    if kind == "mixed":
        return _mixed_densities(left, right, smoothing)
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


def _has_several_kinds(outputs: object) -> bool:
    """Tells whether outputs make no plain array: numbers or nothing, names beside numbers."""
    if isinstance(outputs, np.ndarray) and outputs.dtype != object:
        return False
    try:
        values = np.asarray(outputs)
    except ValueError:  # of different lengths
        return True
    if values.dtype == object:
        return values.ndim > 0
    # NumPy turns numbers beside names into texts.
    is_text = values.dtype.kind in "US" and values.ndim == 2
    return is_text and not all(isinstance(value, str | bytes) for value in outputs[0])  # type: ignore[index]


def _read_kinds(name: str, outputs: object) -> Outputs:
    try:
        read = read_outputs(outputs)
    except MechanismError as error:
        raise InputError(f"{name} cannot be read: {error}") from error
    _check_number(name, len(read))
    return read


def _densities_of_kinds(left: Outputs, right: Outputs, smoothing: Smoothing) -> Densities:
    """Returns frequencies, beside densities where one column of a shape is continuous."""
    view = _mixed_view(left, right)
    if view is None:
        outcomes = count_outcomes(left, right)
        return Densities.of_counts(outcomes.left, outcomes.right)
    return view.densities(view.count(left), view.count(right), smoothing)


def _read(name: str, outputs: object) -> Array:
    """Returns outputs as an array of shape (n, d)."""
    values = np.asarray(outputs)
    if values.ndim not in (1, 2) or values.dtype == object:
        raise InputError(
            f"{name} must be an array of shape (n,) or (n, d) of numbers, truth values or strings"
        )
    _check_number(name, len(values))
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


def _check_number(name: str, n_outputs: int) -> None:
    if n_outputs < _FEWEST_DRAWS:
        raise InputError(
            f"{name} has {n_outputs} outputs; at least {_FEWEST_DRAWS} are needed, and thousands "
            "to be useful"
        )


def _kind(left: Array, right: Array) -> str:
    """Returns whether outputs of shape (n, d) repeat: "discrete", "continuous" or "mixed"."""
    if left.dtype.kind != "f" or right.dtype.kind != "f":
        return "discrete"
    inspected = np.concatenate([left[:_INSPECTED_DRAWS], right[:_INSPECTED_DRAWS]])
    if inspected.shape[1] > 1 and _is_mixed_by_columns(inspected):
        return "mixed"
    # Sorting numbers is far quicker than sorting rows of one number.
    axis = 0 if inspected.shape[1] > 1 else None
    _, counts = np.unique(inspected, axis=axis, return_counts=True)
    if 1.0 - len(counts) / len(inspected) < _CHANCE_COLLISIONS:
        return "continuous"
    if np.count_nonzero(counts == 1) > _CONTINUOUS_PART * len(inspected):
        return "mixed"
    return "discrete"


def _is_mixed_by_columns(rows: Array) -> bool:
    """Tells whether some columns hardly repeat and others do: a number beside a category."""
    repeating = [
        1.0 - len(np.unique(column)) / len(column) >= _CHANCE_COLLISIONS for column in rows.T
    ]
    return any(repeating) and not all(repeating)


def _mixed_densities(left: Array, right: Array, smoothing: Smoothing) -> Densities:
    """Returns frequencies of point masses beside the densities of what does not repeat."""
    left_outputs = read_outputs(left)
    right_outputs = read_outputs(right)
    view = _mixed_view(left_outputs, right_outputs)
    if view is None:
        raise InputError(
            "some outputs repeat and others do not, but too few for a density: floored densities "
            "cannot treat this mixed distribution; draw more, or use auto"
        )
    return view.densities(view.count(left_outputs), view.count(right_outputs), smoothing)


def _mixed_view(left: Outputs, right: Outputs) -> MixedView | None:
    try:
        return find_mixed_view(left, right)
    except InputError as error:
        raise InputError(
            "some outputs repeat and others do not, in several columns: floored densities take "
            "mixed distributions with one continuous column; use auto"
        ) from error
