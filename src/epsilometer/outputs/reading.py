"""Reads what a mechanism returned: any batch of outputs becomes columns, once.

A batch is a numpy array (axis 0 indexes outputs), a sequence or iterator of Python values, or a
dict or data frame of columns. Masked entries, and nulls of an Arrow column, are missing values,
which are read as None.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice, repeat
from operator import is_
from typing import Any, cast

import numpy as np

from epsilometer.arrays import Array, Floats
from epsilometer.errors import EpsilometerError, MechanismError
from epsilometer.outputs.columns import Block, Numbers, Outputs
from epsilometer.outputs.foreign import collected
from epsilometer.outputs.reading_leaves import FLAT
from epsilometer.outputs.reading_numbers import arrow_values, is_arrow
from epsilometer.outputs.reading_pieces import Place, product
from epsilometer.outputs.reading_trees import read_array, read_values
from epsilometer.outputs.shapes import key_text, record_text
from epsilometer.outputs.unreadable import BATCH, Unreadable, cut_repr, safe_repr, type_name

# Iterable, but never a batch: one value each, or (sets) without order and repetition.
_NOT_BATCHES = (str, bytes, bytearray, memoryview, set, frozenset, type, np.generic)

# Outputs as an array, as a sequence, or as a dict of such columns.
Batch = Array | Sequence[Any] | dict[str, Any]


def read_outputs(values: object, expected: int | None = None) -> Outputs:
    """Turns a batch of outputs into columns.

    A leaf's kind comes from its own type, not from its neighbours: in `[1, 2.5]` the outputs have
    the shapes `int` and `float`. Arrays of float64, int64 and bool with one dimension are not
    copied, so the caller must not write into them later. NaN, ±inf and -0.0 stay as they are.

    Args:
        values: n outputs: an array of shape (n, ...), an iterable, a dict of columns, or anything
            with `columns` and `[name]`.
        expected: how many outputs were asked for.

    Returns:
        One block per shape, in the order of first appearance.

    Raises:
        MechanismError: an output is of a kind that cannot be read, is too deep or too large, or
            there are not as many as expected.
    """
    # `isinstance` would ask the object, whose code may raise.
    if issubclass(type(values), Outputs):
        return cast(Outputs, values)
    floats = _plain_floats(values)
    if floats is not None and len(floats) and expected in (None, len(floats)):
        return Outputs((Block("float", None, (Numbers(floats),), len(floats)),), len(floats))
    try:
        batch = materialise(values, expected)
        size = len(next(iter(batch.values()))) if isinstance(batch, dict) else len(batch)
        if expected not in (None, size):
            raise MechanismError(
                f"the mechanism returned {size} outputs where {expected} were asked for"
            )
        blocks = _read_batch(batch, Place(np.arange(size))) if size else []
    except Unreadable as error:
        raise MechanismError(error.text(batch)) from error.__cause__
    except EpsilometerError:
        raise
    except Exception as error:  # raised by the outputs' own code: an iterator, a hash, a property
        raise MechanismError(
            f"reading the outputs (a batch of type {type_name(values)}) raised "
            f"{type_name(error)}: {safe_repr(error)[:200]}; {BATCH}"
        ) from error
    return Outputs(tuple(blocks), size)


def _plain_floats(values: object) -> Floats | None:
    """Returns a list or array of plain floats as an array; None for anything else.

    Most mechanisms return these, and they already are a column.
    """
    # Types are compared as objects: some have no hash.
    if type(values) is list and all(map(is_, map(type, values), repeat(float))):
        return np.fromiter(values, np.float64, len(values))
    if type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == 1:
        return values
    return None


def materialise(values: Any, expected: int | None) -> Batch:
    """Returns the batch as an array, a sequence, or a dict of those.

    Args:
        values: as in `read_outputs`.
        expected: how many outputs were asked for; an iterator is not read much further.
    """
    values = collected(values)
    names = _column_names(values)
    if names is None:
        return _sequence(values, expected)
    columns = {str.__str__(name): _sequence(values[name], expected) for name in names}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise MechanismError(
            f"the mechanism returned columns of the lengths {cut_repr(lengths)}; {BATCH} "
            "(if this is one output, put it into a list)"
        )
    return columns


def _column_names(values: Any) -> list[str] | None:
    """Returns the names of the columns of a dict or data frame; None for other batches."""
    if isinstance(values, dict):
        names = list(values)
    elif isinstance(values, (np.ndarray, list, tuple, type)):
        return None
    elif hasattr(values, "columns") and hasattr(values, "__getitem__"):
        # An Arrow table calls its names `column_names`; its `columns` are the data.
        names = list(values.column_names if hasattr(values, "column_names") else values.columns)
    else:
        return None
    for name in names:
        if not isinstance(name, str):
            raise MechanismError(
                f"the mechanism returned a column named {cut_repr(name)}; names must be strings"
            )
    if len(set(names)) < len(names):
        raise MechanismError(
            f"the mechanism returned two columns of one name: {cut_repr(names)}; rename one"
        )
    return names


def _sequence(values: Any, expected: int | None) -> Array | Sequence[Any]:
    """Returns outputs that are no columns as an array or a sequence."""
    if isinstance(values, (list, tuple)):
        return values
    if is_arrow(values):
        return arrow_values(values)
    if _has_mask(values) and values.ndim:
        return np.ma.asarray(values)
    if hasattr(values, "__array__") and not isinstance(values, _NOT_BATCHES):
        array: Array = np.asarray(values)  # also tensors and the columns of data frames
        if array.ndim:
            return array
    is_single = isinstance(values, (np.ndarray, dict, *_NOT_BATCHES))
    if is_single or not isinstance(values, Iterable):
        raise MechanismError(
            f"the mechanism returned a batch of type {type_name(values)}: {cut_repr(values)}; "
            f"{BATCH}"
        )
    # An endless iterator is noticed at its first superfluous output.
    return list(values if expected is None else islice(values, expected + 1))


def _has_mask(values: Any) -> bool:
    if not isinstance(values, np.ma.MaskedArray):
        return False
    return np.ma.getmask(values) is not np.ma.nomask


def _read_batch(batch: Batch, place: Place) -> list[Block]:
    if isinstance(batch, dict):
        names = sorted(batch)
        parts = (_read_batch(batch[name], place.inside()) for name in names)
        keys = [key_text(name) for name in names]
        return product(parts, partial(record_text, "", keys), place)
    if type(batch) is np.ndarray and batch.ndim == 1 and batch.dtype.kind in FLAT:
        return FLAT[batch.dtype.kind](batch)  # the usual case
    if isinstance(batch, np.ndarray):
        return read_array(batch, place)
    return read_values(batch, place)
