"""Scores as callers have them, read as floats.

Lists, arrays, series and tensors of other libraries are recognised by their methods, so that none
of these libraries is imported.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from epsilometer.arrays import Array, Floats
from epsilometer.bounds.auroc import observed_auroc, wrong_way_deviate
from epsilometer.claims.base import float_holds, is_missing
from epsilometer.errors import EpsilometerWarning, InputError, short_repr

# Fewer scores per side certify next to nothing: the outermost rank alone needs about that many.
FEWEST = 10
# Up to here a float holds every whole number.
_LARGEST_EXACT = 2**53
# The kinds of NumPy's types that are numbers: whole ones, with and without sign, and floats.
_NUMBER_KINDS = "iuf"
# Types of other libraries that are floats in all but name, such as ml_dtypes.bfloat16.
_FOREIGN_FLOATS = ("bfloat16", "float8", "float6", "float4")


# The area under the ROC curve when both sides have the same distribution.
_AUROC_OF_EQUAL = 0.5
# Standard errors by which it must be below that for a warning. Equal scores reach them once in four
# thousand times, ten scores per side that are all apart the wrong way do.
_WRONG_WAY_DEVIATE = 3.5


class WrongWayWarning(EpsilometerWarning):
    """Members have smaller scores than others, where larger ones should mean member."""


def wrong_way(held_in: Floats, held_out: Floats) -> str | None:
    """Says that members have smaller scores than others, if they clearly do; else None.

    Args:
        held_in: shape (n,), scores of members, ascending.
        held_out: shape (m,), scores of others, ascending.
    """
    auroc = observed_auroc(held_in, held_out)
    is_clear = auroc < _AUROC_OF_EQUAL and (
        wrong_way_deviate(held_in, held_out) > _WRONG_WAY_DEVIATE
    )
    if not is_clear:
        return None
    return (
        f"the scores of members are smaller than the others (AUROC {auroc:.3g}), but larger should "
        "mean member: give -scores"
    )


def read_scores(name: str, values: object, fewest: int = FEWEST) -> Floats:
    """Returns scores as floats of shape (n,).

    Args:
        name: of the argument, for messages.
        values: a list, an array of NumPy or jax, a series of pandas or polars, a tensor of torch
            (with or without gradient, on any device), or a list of their single numbers.
        fewest: how many there must be.

    Raises:
        InputError: if they are not numbers, if some are NaN, or if they are too few.
    """
    array = as_array(name, values)
    if array.ndim == 0:
        raise InputError(
            f"{name} is of type {type(values).__name__}: it must be a one-dimensional list, array, "
            "series or tensor of numbers"
        )
    if array.ndim != 1:
        raise InputError(
            f"{name} has shape {array.shape}: it must be one-dimensional, one score per canary"
        )
    scores = _as_floats(name, array)
    n_missing = int(np.isnan(scores).sum())
    if n_missing:
        raise InputError(
            f"{name} holds {n_missing} NaN: a missing score is no evidence, and leaving out its "
            "canary voids the guarantee; say what it means, e.g. by the smallest score"
        )
    if len(scores) < fewest:
        raise InputError(f"{name} holds {len(scores)} scores: at least {fewest} are needed")
    return scores


def as_array(name: str, values: object) -> Array:
    """The values as an array of whatever type they have."""
    if isinstance(values, str | bytes | dict | set | frozenset):
        raise InputError(
            f"{name} is of type {type(values).__name__}: it must be a list, an array, a series "
            "or a tensor of numbers"
        )
    try:
        if isinstance(values, np.ma.MaskedArray):
            # A masked score is a missing one; NumPy itself would forget the mask.
            return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))
        if _is_tensor(values):
            return _copied(values)
        if isinstance(values, Sequence) and any(map(_is_tensor, values)):
            values = [_copied(value) if _is_tensor(value) else value for value in values]
        elif hasattr(values, "to_pylist"):
            # Arrays of pyarrow, which give no NumPy array where values are missing.
            return np.asarray(values.to_pylist())
        elif hasattr(values, "to_numpy"):
            return np.asarray(values.to_numpy())
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        # A ragged list, a tensor that cannot be copied, ...
        raise InputError(f"{name} cannot be read as an array of numbers: {error}") from error


def _is_tensor(values: object) -> bool:
    """Whether it is a tensor of torch, or something that is used like one."""
    return hasattr(values, "detach") and hasattr(values, "cpu")


def _copied(tensor: Any) -> Array:
    """A tensor without its gradient, from the memory of its device."""
    in_memory = tensor.detach().cpu()
    try:
        return np.asarray(in_memory.numpy())
    except TypeError:
        # NumPy has no bfloat16; a 32-bit float holds all of its values.
        return np.asarray(in_memory.float().numpy())


def _as_floats(name: str, array: Array) -> Floats:
    """An array of numbers as floats; refuses what only looks like numbers."""
    if array.dtype.kind == "O":
        return _from_objects(name, array)
    is_number = array.dtype.kind in _NUMBER_KINDS or array.dtype.name.startswith(_FOREIGN_FLOATS)
    # An empty list has no type to speak of.
    if not is_number and len(array):
        raise InputError(f"{name} holds {_kind_of(array)}: scores must be numbers")
    if array.dtype.kind in "iu":
        # Smaller ones need no look each.
        is_large = (array > _LARGEST_EXACT) | (array < -_LARGEST_EXACT)
        for number in array[is_large].tolist():
            _check_exact(name, number)
    return np.asarray(array, dtype=np.float64)


def _check_exact(name: str, number: int) -> None:
    """Raises if a whole number is no float, because its neighbours would count as equal to it."""
    if not float_holds(number):
        raise InputError(
            f"{name} holds {short_repr(number)}, which no float holds exactly, so that scores that "
            "differ would count as equal: subtract what all have in common, or give their ranks"
        )


def _kind_of(array: Array) -> str:
    """The type of an array's elements in a word."""
    if array.dtype.kind == "b":
        return "booleans"
    if array.dtype.kind in "US":
        return "strings"
    return f"values of type {array.dtype}"


def _from_objects(name: str, array: Array) -> Floats:
    """Single Python objects as floats: numbers of any library, and None for a missing one."""
    scores = np.empty(len(array))
    for place, value in enumerate(array):
        is_text = isinstance(value, str | bytes)
        if is_text or isinstance(value, bool | np.bool_):
            kind = "strings" if is_text else "booleans"
            raise InputError(f"{name} holds {kind}, such as {value!r:.40}: scores must be numbers")
        if isinstance(value, int):
            _check_exact(name, value)
        try:
            scores[place] = np.nan if is_missing(value) else float(value)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{name} holds {value!r:.40} of type {type(value).__name__}: "
                "scores must be single numbers"
            ) from error
        except OverflowError:
            # A fraction or a decimal beyond all floats.
            scores[place] = np.inf if value > 0 else -np.inf
    return scores
