"""Values without parts, many at a time: numbers, texts, None and enum members; the errors for what cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import MechanismError
from epsilometer.outputs.columns import EXACT, Numbers, name_text
from epsilometer.outputs.reading_numbers import READERS, factorise, read_long_wholes, read_wholes
from epsilometer.outputs.reading_pieces import Piece, by_case, whole

MAX_REPR = 80
ALLOWED = (
    "an output may be a bool, int, float, complex, Decimal, str, bytes, None, date, an enum member, a numpy scalar "
    "or array, or a tuple, list, set, dict with string keys or dataclass of such values"
)
BATCH = (
    "a batch of outputs must be a sequence with one entry per output (a list, tuple, iterator or array), "
    "or a dict or data frame of columns of equal length"
)


def safe_repr(value: object) -> str:
    """The value's repr on one line, or a stand-in if it has none."""
    try:
        text = str.__str__(repr(value))
    except Exception:
        return f"<unprintable {type_name(value)}>"
    return text if text.isprintable() else ascii(text)[1:-1]


def cut_repr(value: object) -> str:
    """At most `MAX_REPR` characters of the value's repr."""
    text = safe_repr(value)
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 1] + "…"


def type_name(value: object) -> str:
    """The name of the value's class, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


def unreadable(value: object, output: int, why: str = "") -> MechanismError:
    """An output is, or contains, something that is not allowed."""
    reason = f" ({why})" if why else ""
    return MechanismError(
        f"output {output} is or holds a value of type {type_name(value)}, which cannot be read{reason}: "
        f"{cut_repr(value)}; {ALLOWED}"
    )


def not_a_batch(values: object) -> MechanismError:
    """The whole batch is something that has no entries."""
    return MechanismError(f"the mechanism returned a batch of type {type_name(values)}: {cut_repr(values)}; {BATCH}")


# Kinds of numpy dtypes that `read_flat` reads.
FLAT_KINDS = frozenset("biufcMmUS")


def read_leaves(kind: type, values: Sequence[Any]) -> list[Piece]:
    """Values whose type is exactly `kind`, one of the keys of `LEAVES`."""
    return LEAVES[kind](values)


def _read_bools(values: Sequence[bool]) -> list[Piece]:
    truths = np.frombuffer(bytes(values), dtype=np.bool_).copy()  # three times as fast as np.array
    return [whole("bool", (Numbers(truths),), len(values))]


def _read_floats(values: Sequence[float]) -> list[Piece]:
    return [whole("float", (Numbers(np.array(values, dtype=np.float64)),), len(values))]


def _read_complex(values: Sequence[complex]) -> list[Piece]:
    return READERS["c"](np.array(values, dtype=np.complex128))


def _read_nones(values: Sequence[None]) -> list[Piece]:
    return [whole("None", (), len(values))]


def _read_ints(values: Sequence[int]) -> list[Piece]:
    try:
        return read_wholes(np.array(values, dtype=np.int64))
    except OverflowError:
        array = np.array(values, dtype=object)
    fits = np.fromiter((-EXACT <= value <= EXACT for value in values), np.bool_, len(values))
    return by_case(
        array,
        [
            (fits, lambda some: read_wholes(some.astype(np.int64))),
            (~fits, lambda some: read_long_wholes(some.tolist())),
        ],
    )


def _read_decimals(values: Sequence[Decimal]) -> list[Piece]:
    # The label distinguishes 1.0 from 1.00, and what a float cannot hold; the float keeps the order.
    sizes = np.array([float("nan") if value.is_nan() else float(value) for value in values])
    return [whole("Decimal", (Numbers(sizes), factorise(list(map(str, values)), str)), len(values))]


def _read_dates(values: Sequence[date]) -> list[Piece]:
    return [whole("date", (_ints(value.toordinal() for value in values),), len(values))]


def _read_moments(values: Sequence[datetime]) -> list[Piece]:
    days = _ints(value.toordinal() for value in values)
    return _with_zone("datetime", (days, _ints(map(_microseconds, values))), values)


def _read_times(values: Sequence[time]) -> list[Piece]:
    return _with_zone("time", (_ints(map(_microseconds, values)),), values)


def _with_zone(name: str, columns: tuple[Numbers, ...], values: Sequence[datetime] | Sequence[time]) -> list[Piece]:
    zones = [str(value.utcoffset()) for value in values]
    return [whole(name, (*columns, factorise(zones, str)), len(values))]


def _read_durations(values: Sequence[timedelta]) -> list[Piece]:
    days = _ints(value.days for value in values)
    rest = _ints(value.seconds * 1_000_000 + value.microseconds for value in values)
    return [whole("timedelta", (days, rest), len(values))]


def _microseconds(value: datetime | time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _ints(values: Iterable[int]) -> Numbers:
    return Numbers(np.fromiter(values, np.int64))


def _read_texts(values: Sequence[str]) -> list[Piece]:
    return [whole("str", (factorise(values, str),), len(values))]


def _read_bytes(values: Sequence[bytes]) -> list[Piece]:
    return [whole("bytes", (factorise(values, bytes_text),), len(values))]


def read_enums(kind: type[Enum], values: Sequence[Enum]) -> list[Piece]:
    """Members of one class, by name; classes of the same name count as the same."""
    # By identity: members are singletons, and a class may redefine equality and hash.
    identities = list(map(id, values))
    texts = {identity: _member_text(member) for identity, member in dict(zip(identities, values, strict=True)).items()}
    column = factorise(list(map(texts.__getitem__, identities)), str)
    return [whole(name_text(kind.__name__), (column,), len(values))]


def _member_text(member: Enum) -> str:
    # A flag without any bit set has no name.
    return str(member._name_ if member._name_ is not None else member._value_)


def bytes_text(value: bytes) -> str:
    """Printable ASCII as it is, a backslash doubled, everything else escaped: different bytes have different texts."""
    return value.decode("latin-1").encode("unicode_escape").decode("ascii")


LEAVES: dict[type, Callable[[Sequence[Any]], list[Piece]]] = {
    bool: _read_bools,
    int: _read_ints,
    float: _read_floats,
    complex: _read_complex,
    str: _read_texts,
    bytes: _read_bytes,
    type(None): _read_nones,
    Decimal: _read_decimals,
    date: _read_dates,
    datetime: _read_moments,
    time: _read_times,
    timedelta: _read_durations,
}

# How a value of a subclass becomes one of the class itself without running code of the subclass.
PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: b"".join((value,)),
}


def read_flat(array: NDArray[Any]) -> list[Piece]:
    """A one-dimensional array, shape (n,), whose dtype's kind is one of `FLAT_KINDS`.

    Arrays of float64, int64 and bool are not copied.
    """
    return _FLAT[array.dtype.kind](array)


_FLAT: dict[str, Callable[[NDArray[Any]], list[Piece]]] = {
    **READERS,
    "U": lambda array: _read_texts(array.tolist()),
    "S": lambda array: _read_bytes(array.tolist()),
}
