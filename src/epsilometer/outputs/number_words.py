"""Numbers and intervals in words, as people write them: dates as dates, few digits."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import groupby

import numpy as np

from epsilometer.outputs.placing import next_float

# Intervals that a description spells out; the rest are only counted.
_MAX_INTERVALS_IN_WORDS = 6
# Kinds of leaves whose values are integers, so that the least and the greatest value of an interval
# can be named.
_INTEGER_KINDS = frozenset({"int", "bool", "date"})
# Kinds of leaves whose values are the integers from 0 on, each written like this.
FEW_VALUES: dict[str, Sequence[str]] = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "parity": ("even", "odd"),
    "hour": [str(hour) for hour in range(24)],
    **{f"modulo {modulus}": [str(value) for value in range(modulus)] for modulus in range(2, 11)},
}
# From so many neighbouring values on, only the first and the last one are named.
_MANY_NEIGHBOURS = 3
# Numbers of significant digits that are tried until the two ends of an interval look different.
_DIGITS_TO_TRY = (4, 6, 9)
# Digits that distinguish any two doubles.
_ALL_DIGITS = 17
# An end whose predecessor is shorter by more than this many characters came from that predecessor.
_SHORTER_BY = 4
# Integers below this are written out; larger floats would show digits that mean nothing.
_LARGEST_WRITTEN_OUT = 1e15

Interval = tuple[float, float]


def describe_intervals(intervals: Sequence[Interval], name: str, kind: str = "float") -> str:
    """Describes where a number lies, e.g. "output < 2 or between 3 and 4".

    Args:
        intervals: [low, high), disjoint, in order.
        name: of the number.
        kind: the kind of the leaf, which decides how numbers are written.
    """
    if kind in FEW_VALUES:
        return _describe_few_values(intervals, name, FEW_VALUES[kind])
    parts = []
    for low, high in intervals:
        if kind not in _INTEGER_KINDS:
            parts.append(_describe_interval(low, high, kind))
            continue
        least = np.ceil(low)
        greatest = np.ceil(high) - 1.0
        if least <= greatest:
            parts.append(_describe_integers(least, greatest, kind))
    missing_value = _only_missing_value(intervals, kind)
    if missing_value is not None:
        return f"{name} is not {number_text(missing_value, kind)}"
    if not parts:
        return f"no {name}"
    if "" in parts:
        return f"any {name}"
    return _joined(parts, name)


def _describe_few_values(intervals: Sequence[Interval], name: str, texts: Sequence[str]) -> str:
    """Describes which of a few values a number takes."""
    inside = [
        value for value in range(len(texts)) if any(low <= value < high for low, high in intervals)
    ]
    if len(inside) == len(texts):
        return f"any {name}"
    if not inside:
        return f"no {name}"
    if len(inside) == len(texts) - 1 > 1:
        (missing,) = set(range(len(texts))).difference(inside)
        return f"{name} is not {texts[missing]}"
    parts = []
    for _, run in groupby(enumerate(inside), key=lambda item: item[1] - item[0]):
        values = [texts[value] for _, value in run]
        if len(values) >= _MANY_NEIGHBOURS:
            parts.append(f"between {values[0]} and {values[-1]}")
        else:
            parts += [f"= {value}" for value in values]
    return _joined(parts, name)


def _joined(parts: Sequence[str], name: str) -> str:
    """Joins descriptions of intervals, such as "= 3" and "≥ 7"."""
    shown = parts[:_MAX_INTERVALS_IN_WORDS]
    are_values = len(parts) > 1 and all(part.startswith("= ") for part in parts)
    if are_values:
        values = [part.removeprefix("= ") for part in shown]
        text = f"{name} is one of {', '.join(values)}"
    else:
        text = f"{name} {' or '.join(shown)}"
    n_more = len(parts) - _MAX_INTERVALS_IN_WORDS
    if n_more > 0:
        noun = "value" if are_values else "interval"
        plural = "s" if n_more > 1 else ""
        text += f" or {n_more} more {noun}{plural}"
    return text


def _only_missing_value(intervals: Sequence[Interval], kind: str) -> float | None:
    """Returns the only value outside of the intervals; None if there are none or several."""
    if len(intervals) != 2:
        return None
    (first_low, low), (high, last_high) = intervals
    if not (np.isneginf(first_low) and np.isposinf(last_high)):
        return None
    if kind in _INTEGER_KINDS:
        integer = float(np.ceil(low))
        is_single = next_float(np.array(low)) == high or np.ceil(high) - integer == 1.0
        return integer if is_single else None
    return low if next_float(np.array(low)) == high else None


def _describe_integers(least: float, greatest: float, kind: str) -> str:
    """Describes integers from the least to the greatest, inclusive; "" if they are all."""
    if kind == "bool" and (least > 0.0) == (greatest >= 1.0):
        return f"= {number_text(1.0 if least > 0.0 else 0.0, kind)}"
    if least == greatest:
        return f"= {number_text(least, kind)}"
    if np.isfinite(least) and np.isfinite(greatest):
        return f"between {number_text(least, kind)} and {number_text(greatest, kind)}"
    if np.isfinite(least):
        return f"≥ {number_text(least, kind)}"
    if np.isfinite(greatest):
        return f"≤ {number_text(greatest, kind)}"
    return ""


def _describe_interval(low: float, high: float, kind: str) -> str:
    """Describes the floats from `low` to below `high`; "" if they are all."""
    if np.isneginf(low) and np.isposinf(high):
        return ""
    if next_float(np.array(low)) == high:
        return f"= {number_text(low, kind)}"
    above, first = _as_written(low, after=">", at="≥")
    below, last = _as_written(high, after="≤", at="<")
    if np.isneginf(low):
        return f"{below} {number_text(last, kind)}"
    if np.isposinf(high):
        return f"{above} {number_text(first, kind)}"
    digits = _ALL_DIGITS
    for candidate in _DIGITS_TO_TRY:
        if number_text(first, kind, candidate) != number_text(last, kind, candidate):
            digits = candidate
            break
    first_text = number_text(first, kind, digits)
    last_text = number_text(last, kind, digits)
    if above == ">":
        return f"> {first_text} and {below} {last_text}"
    return f"between {first_text} and {last_text}"


def _as_written(end: float, after: str, at: str) -> tuple[str, float]:
    """Returns the sign and the number by which an end of an interval is written.

    An end that is one float above a short number v comes from cutting out the value v: it is
    written as `after` v, anything else as `at` the end itself.
    """
    if not np.isfinite(end):
        return at, end
    before = -float(next_float(np.array(-end)))
    if before == 0.0 or len(repr(before)) + _SHORTER_BY < len(repr(end)):
        return after, before
    return at, end


def number_text(value: float, kind: str = "float", digits: int = 4) -> str:
    """Returns a number of a leaf as people write it: a date as a date.

    Args:
        value: the number in its column.
        kind: of the leaf.
        digits: significant digits, for a number that is no integer.
    """
    try:
        text = _text_of_kind(value, kind)
    except (ValueError, OverflowError, TypeError):  # an edge beyond all dates
        text = None
    if text is not None:
        return text
    if np.isfinite(value) and abs(value) < _LARGEST_WRITTEN_OUT and value == int(value):
        return f"{int(value)}"
    if abs(value) >= 1000:
        digits = max(digits, 6)
    return f"{value:.{digits}g}"


def _text_of_kind(value: float, kind: str) -> str | None:
    """Returns the text of a truth value, a date, a time or a duration; None for other kinds."""
    if kind in FEW_VALUES:
        texts = FEW_VALUES[kind]
        return texts[int(value)] if 0 <= value < len(texts) else None
    if kind == "bool":
        return str(bool(value))
    if kind == "date":
        return str(date.fromordinal(int(value)))
    if kind.startswith(("timedelta64", "datetime64")):
        return str(np.array(int(value)).astype(np.int64).view(kind))
    if kind.startswith(("datetime", "long datetime", "Timestamp", "time ")) or kind == "time":
        moment = datetime(1970, 1, 1) + timedelta(microseconds=value)
        return str(moment.time() if kind.startswith("time") else moment)
    if kind.startswith(("timedelta", "long timedelta", "Timedelta")):
        return str(timedelta(microseconds=value))
    return None
