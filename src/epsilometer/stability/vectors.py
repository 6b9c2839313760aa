"""Gradients and parameters of any library as one vector of numbers.

Libraries are recognised by the methods of their objects, so that none of them is imported.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError, short_repr

# The spacing of numbers above 1, by the name of their type. Whole numbers and truth values have no
# rounding of their own, but sums of them are compared as doubles.
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
        spacing: the relative spacing of the coarsest type of number among them.
    """

    numbers: Floats
    spacing: float


def as_vector(name: str, value: Any) -> NumberVector:
    """Returns the numbers of an array, or of arrays in lists and dicts, in their order.

    Args:
        name: of the value, for error messages.
        value: numbers, arrays of NumPy, tensors of PyTorch (with gradients, on any device, in
            bfloat16), arrays of JAX; or lists, tuples, dicts and iterators of these.

    Raises:
        InputError: something in it is no number.
    """
    parts: list[Floats] = []
    spacings = [_SPACING["float64"]]
    _collect(name, value, parts, spacings)
    numbers = np.concatenate(parts) if parts else np.zeros(0)
    return NumberVector(numbers, max(spacings))


def _collect(name: str, value: Any, parts: list[Floats], spacings: list[float]) -> None:
    """Appends the numbers of a value, and the spacings of their types."""
    if isinstance(value, Mapping):
        for part in value.values():
            _collect(name, part, parts, spacings)
        return
    is_array = hasattr(value, "dtype") or isinstance(value, bool | int | float)
    if not is_array:
        if value is None or isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise InputError(
                f"{name} holds {short_repr(value)}, which is no number; "
                "give numbers, arrays or tensors, or lists and dicts of them"
            )
        for part in value:
            _collect(name, part, parts, spacings)
        return
    type_name = str(getattr(value, "dtype", "float64")).rpartition(".")[2]
    array = opened(value)
    try:
        numbers = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds {short_repr(value)}, which is no number") from error
    parts.append(numbers.reshape(-1))
    spacings.append(_SPACING.get(type_name, _SPACING["float64"]))


def opened(value: Any) -> Any:
    """The value; a tensor as an array: without its gradient, in main memory, as doubles."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return value.detach().cpu().double().numpy()
    return value
