"""Gradients and parameters of any library as one vector of numbers.

Libraries are recognised by the methods of their objects, so that none of them is imported.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError, short_repr

# The spacing of numbers above 1, by the name of their type. Whole numbers and truth values have no
# rounding of their own, but are compared as doubles.
_SPACING = {
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}


class NumberVector(NamedTuple):
    """All numbers of a value, one after the other.

    Attributes:
        numbers: shape (n,).
        spacing: the relative spacing of the coarsest type of number among them. Doubles that are
            all single-precision numbers count as these, because converting them hides their type.
        by_key: the same numbers by the keys of the dicts that they are in; () if in none.
    """

    numbers: Floats
    spacing: float
    by_key: dict[tuple[Hashable, ...], Floats]


def as_vector(name: str, value: Any) -> NumberVector:
    """Returns the numbers of an array, or of arrays in lists and dicts, in their order.

    Args:
        name: of the value, for error messages.
        value: numbers, arrays of NumPy, tensors of PyTorch (with gradients, on any device, in
            bfloat16), arrays of JAX; or lists, tuples, dicts and iterators of these.

    Raises:
        InputError: something in it is no number.
    """
    arrays = list(_arrays(name, value, ()))
    numbers = _joined(arrays)
    rounded = [array for array in arrays if not array.is_whole]
    spacing = max((array.spacing for array in rounded), default=_SPACING["float64"])
    if rounded and _is_single_precision(_joined(rounded)):
        spacing = max(spacing, _SPACING["float32"])
    arrays_by_key: dict[tuple[Hashable, ...], list[_FlatArray]] = {}
    for array in arrays:
        arrays_by_key.setdefault(array.keys, []).append(array)
    by_key = {keys: _joined(arrays) for keys, arrays in arrays_by_key.items()}
    return NumberVector(numbers, spacing, by_key)


class _FlatArray(NamedTuple):
    """One array inside of a value.

    Attributes:
        keys: those of the dicts that it is in, from the outermost on.
        numbers: shape (n,).
        spacing: the relative spacing of its type.
        is_whole: whether its type holds whole numbers or truth values.
    """

    keys: tuple[Hashable, ...]
    numbers: Floats
    spacing: float
    is_whole: bool


def _joined(arrays: Sequence[_FlatArray]) -> Floats:
    return np.concatenate([array.numbers for array in arrays]) if arrays else np.zeros(0)


def _is_single_precision(numbers: Floats) -> bool:
    """Whether numbers lose nothing in single precision."""
    with np.errstate(over="ignore"):
        is_kept = numbers.astype(np.float32) == numbers
    return bool((is_kept | np.isnan(numbers)).all())


def _arrays(name: str, value: Any, keys: tuple[Hashable, ...]) -> Iterator[_FlatArray]:
    """All arrays of a value, in its order."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _arrays(name, part, (*keys, key))
        return
    is_array = hasattr(value, "dtype") or isinstance(value, bool | int | float)
    if not is_array:
        if value is None or isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise InputError(
                f"{name} holds {short_repr(value)}, which is no number; "
                "give numbers, arrays or tensors, or lists and dicts of them"
            )
        for part in value:
            yield from _arrays(name, part, keys)
        return
    type_name = str(getattr(value, "dtype", type(value).__name__)).rpartition(".")[2]
    refuse_complex(name, type_name)
    array = opened(value)
    try:
        numbers = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds {short_repr(value)}, which is no number") from error
    spacing = _SPACING.get(type_name, _SPACING["float64"])
    is_whole = type_name.startswith(("int", "uint", "bool"))
    yield _FlatArray(keys, numbers.reshape(-1), spacing, is_whole)


def refuse_complex(name: str, type_name: str) -> None:
    """Raises an InputError if a type is complex: as floats its numbers would lose a part."""
    if type_name.startswith("complex"):
        raise InputError(f"{name} holds complex numbers: give their real and imaginary parts")


def opened(value: Any) -> Any:
    """The value; a tensor as an array: without its gradient, in main memory, as doubles."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return value.detach().cpu().double().numpy()
    return value
