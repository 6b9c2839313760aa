"""Values without parts, many at a time."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.outputs.columns import Block, Numbers
from epsilometer.outputs.reading_numbers import READERS, about, factorise, read_ints
from epsilometer.outputs.reading_pieces import by_case, leaf
from epsilometer.outputs.shapes import EXACT, name_text

# --- times: whole numbers of microseconds, so that earlier and later are below and above

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_NANOSECONDS_PER_SECOND = 10**9
# Ticks per second of the units that pandas uses.
_TICKS_PER_SECOND = {
    "s": 1,
    "ms": 10**3,
    "us": 10**6,
    "ns": 10**9,
}


def _microseconds(moment: datetime) -> int:
    """Returns the microseconds since 1970 that a clock at the moment's place shows."""
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICROSECOND


def _read_datetimes(values: Sequence[datetime]) -> list[Block]:
    return _read_clock_times("datetime", values, [_microseconds(value) for value in values])


def _read_times(values: Sequence[time]) -> list[Block]:
    ticks = [_microseconds(datetime.combine(_EPOCH, value)) for value in values]
    return _read_clock_times("time", values, ticks)


def _read_clock_times(
    name: str, values: Sequence[datetime] | Sequence[time], ticks: list[int]
) -> list[Block]:
    """Reads times of the standard library; their offset from UTC is part of the shape."""
    zones = [f" UTC+{value.utcoffset()}" if value.tzinfo else "" for value in values]

    def read(zone: str, some: Array) -> list[Block]:
        return read_ints(some.tolist(), name + zone, f"long {name}{zone}")

    return _by_zone(zones, ticks, read)


def _by_zone(
    zones: list[str], ticks: list[int], read: Callable[[str, Array], list[Block]]
) -> list[Block]:
    """Reads times zone by zone: equal instants of two zones are different outputs."""
    cases = []
    for zone in sorted(set(zones)):
        is_in_zone = np.array([other == zone for other in zones])
        cases.append((is_in_zone, partial(read, zone)))
    return by_case(np.array(ticks, dtype=object), cases)


def read_instants(kind: type, values: Sequence[Any]) -> list[Block]:
    """Reads times and durations of pandas.

    Two columns hold the microseconds as the nearest float, and the nanoseconds modulo 2^53.
    """
    nanoseconds = []
    for value in values:
        plain = value.asm8
        unit = np.datetime_data(plain.dtype)[0]
        nanoseconds_per_tick = _NANOSECONDS_PER_SECOND // _TICKS_PER_SECOND[unit]
        nanoseconds.append(int(plain.astype(np.int64)) * nanoseconds_per_tick)
    zones = [str(getattr(value, "tz", None) or "") for value in values]

    def read(zone: str, some: Array) -> list[Block]:
        microseconds = np.array([ticks / 1000 for ticks in some.tolist()])
        digits = (some & (EXACT - 1)).astype(np.int64)
        shape = f"{kind.__name__} {zone}".strip()
        return leaf(shape, Numbers(microseconds), Numbers(digits))

    return _by_zone(zones, nanoseconds, read)


def _read_dates(values: Sequence[date]) -> list[Block]:
    return leaf("date", Numbers(np.fromiter((value.toordinal() for value in values), np.int64)))


def _read_durations(values: Sequence[timedelta]) -> list[Block]:
    ticks = [value // _MICROSECOND for value in values]
    return read_ints(ticks, "timedelta", "long timedelta")


# --- labels


def read_enums(kind: type[Enum], values: Sequence[Enum]) -> list[Block]:
    """Reads members of one class by name; classes of the same name count as the same."""
    # By identity: members are singletons, and a class may redefine equality and hash.
    members = {id(member): member for member in values}
    text_of = {}
    for key, member in members.items():
        # A flag without any bit set has no name.
        has_name = member._name_ is not None
        text_of[key] = str(member._name_ if has_name else member._value_)
    texts = [text_of[id(member)] for member in values]
    return leaf(name_text(kind.__name__), factorise(texts, str))


def _bytes_text(value: bytes) -> str:
    """Returns printable ASCII as it is, a backslash doubled, everything else escaped.

    Different bytes have different texts.
    """
    return value.decode("latin-1").encode("unicode_escape").decode("ascii")


# --- numbers


def _read_bools(values: Sequence[bool]) -> list[Block]:
    # Three times as fast as np.array.
    return leaf("bool", Numbers(np.frombuffer(bytes(values), dtype=np.bool_).copy()))


def _read_floats(values: Sequence[float]) -> list[Block]:
    return leaf("float", Numbers(np.array(values, dtype=np.float64)))


def _read_decimals(values: Sequence[Decimal]) -> list[Block]:
    # The float keeps the order; the label distinguishes 1.0 from 1.00, and what a float cannot.
    rounded = [float("nan") if value.is_nan() else float(value) for value in values]
    labels = factorise([str(value) for value in values], str)
    return leaf("Decimal", Numbers(np.array(rounded)), labels)


def _read_fractions(values: Sequence[Fraction]) -> list[Block]:
    rounded = np.array([about(value) for value in values])
    return leaf("Fraction", Numbers(rounded), factorise(values, str))


# What reads values whose type is exactly this one.
LEAVES: dict[type, Callable[[Sequence[Any]], list[Block]]] = {
    bool: _read_bools,
    int: read_ints,
    float: _read_floats,
    complex: lambda values: READERS["c"](np.array(values, dtype=np.complex128)),
    str: lambda values: leaf("str", factorise(values, str)),
    bytes: lambda values: leaf("bytes", factorise(values, _bytes_text)),
    type(None): lambda values: leaf("None", size=len(values)),
    Decimal: _read_decimals,
    Fraction: _read_fractions,
    date: _read_dates,
    datetime: _read_datetimes,
    time: _read_times,
    timedelta: _read_durations,
}

# What reads an array of one dimension, by the kind of its dtype. Arrays of float64, int64 and bool
# are not copied.
FLAT: dict[str, Callable[[Array], list[Block]]] = {
    **READERS,
    "U": lambda array: LEAVES[str](array.tolist()),
    "S": lambda array: LEAVES[bytes](array.tolist()),
}
