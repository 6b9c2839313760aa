"""Foreign values and numbers as short, harmless text."""

from __future__ import annotations

import decimal
import reprlib

# What a reader takes in at a glance; the whole input is in the JSON file.
MOST_VALUE = 240
MOST_EVENT = 600
MOST_NAME = 80
# Enough to tell two values apart, few enough to read.
_DIGITS = 4
_MOST_DIGITS = 15

_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = _short.maxset = _short.maxfrozenset = _short.maxdeque = _short.maxarray = 24
_short.maxdict = 12
_short.maxstring = _short.maxother = 200


def clean(text: str) -> str:
    """The text with everything that does not print spelled out, so that it cannot steer a terminal or a page."""
    return "".join(each if each.isprintable() else _spelled_out(each) for each in text)


def cut(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def plain(value: object, most: int = MOST_NAME) -> str:
    """Any text or number for one line: clean and cut, without quotation marks."""
    # Cleaning comes last and makes text longer, so what is cut first may still have to be cut again.
    return cut(clean(str(value)[: most + 1]), most)


def shown(value: object, most: int = MOST_VALUE) -> str:
    """A dataset as Python would write it, clean and cut; safe against a hostile `__repr__`."""
    from epsilometer.inputs.pairs import StoredDigest  # brings NumPy, which an error message does not need

    if isinstance(value, StoredDigest):
        return cut(f"{plain(value.kind)} {clean(value.text)}", most - 40) + f" (stored as digest {value.digest[:12]}…)"
    try:
        text = _short.repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    size = _size_of(value)
    return cut(clean(text), most) + (f" ({size:,} items)" if "..." in text and size is not None else "")


def figure(value: float, digits: int = _DIGITS) -> str:
    """A number for people."""
    return f"{value:.{digits}g}"


def figure_down(value: float, digits: int = _DIGITS) -> str:
    """A lower bound: rounded down, so that what is printed holds as well."""
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def figure_up(value: float, digits: int = _DIGITS) -> str:
    """An upper bound: rounded up."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def bound_against(bound: float, claimed: float) -> str:
    """A lower bound with as many digits as it takes to see that it is above the claimed value, if it is."""
    for digits in range(_DIGITS, _MOST_DIGITS):
        text = figure_down(bound, digits)
        if bound <= claimed or float(text) > claimed:
            return text
    return repr(bound)


def percent(share: float) -> str:
    """A share for people: 39.4%. Only what is certain is shown as 100%, and only what never happened as 0%."""
    for digits in range(3, _MOST_DIGITS + 2):
        text = f"{100.0 * share:.{digits}g}%"
        if share >= 1.0 or float(text[:-1]) < 100.0:
            return text
    return "more than 99.9999999999999%"


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _rounded(value: float, digits: int, rounding: str) -> str:
    # From the shortest text of the float, or 0.7 would be rounded down to 0.6999.
    number = decimal.Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(number):.{digits}g}"


def _spelled_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _size_of(value: object) -> int | None:
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return None
    return len(value)
