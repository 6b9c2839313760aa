"""Foreign values and numbers as short, harmless text for people."""

import decimal

from epsilometer.one_line import clean, cut, frame_summary, uncut_line

# Characters of an input that a reader takes in at a glance; the whole input is in the JSON file.
MAX_VALUE_CHARACTERS = 240
# Characters of an event in words.
MAX_EVENT_CHARACTERS = 600
# Characters of a name.
MAX_NAME_CHARACTERS = 80
# Significant digits: enough to distinguish values, few enough to read.
_DIGITS = 4
# Significant digits that a float holds.
_MAX_DIGITS = 15
# Certainty in percent.
_ALL_PERCENT = 100.0
# Characters that the digest of a stored input takes.
_DIGEST_CHARACTERS = 40


def plain(value: object, most: int = MAX_NAME_CHARACTERS) -> str:
    """Returns any text or number for one line: clean and cut, without quotation marks."""
    # Cleaning makes text longer, so it may have to be cut again afterwards.
    return cut(clean(str(value)[: most + 1]), most)


def display_value(value: object, most: int = MAX_VALUE_CHARACTERS) -> str:
    """Returns a dataset as Python would write it, clean and cut.

    A data frame is shown by its shape and columns. Safe against a hostile `__repr__`.
    """
    # Imports NumPy, which an error message does not need.
    from epsilometer.inputs.storing import StoredDigest

    if isinstance(value, StoredDigest):
        beginning = f"{plain(value.kind)} {clean(value.text)}"
        return (
            cut(beginning, most - _DIGEST_CHARACTERS) + f" (stored as digest {value.digest[:12]}…)"
        )
    text = frame_summary(value) or uncut_line(value)
    if "..." in text and isinstance(value, list | tuple | set | frozenset | dict):
        return f"{cut(text, most)} ({len(value):,} items)"
    return cut(clean(text), most)


def figure(value: float, digits: int = _DIGITS) -> str:
    """Returns a number for people."""
    return f"{value:.{digits}g}"


def figure_down(value: float, digits: int = _DIGITS) -> str:
    """Returns a lower bound, rounded down so that the printed figure holds as well."""
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def figure_up(value: float, digits: int = _DIGITS) -> str:
    """Returns an upper bound, rounded up."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def bound_against(bound: float, claimed: float) -> str:
    """Returns a lower bound with enough digits to show that it is above the claim, if it is."""
    for digits in range(_DIGITS, _MAX_DIGITS):
        text = figure_down(bound, digits)
        if bound <= claimed or float(text) > claimed:
            return text
    return repr(bound)


def percent(fraction: float) -> str:
    """Returns a fraction in percent, such as 39.4%.

    Only what is certain is shown as 100%, and only what never happened as 0%.
    """
    for digits in range(3, _MAX_DIGITS + 2):
        text = f"{_ALL_PERCENT * fraction:.{digits}g}%"
        if fraction >= 1.0 or float(text[:-1]) < _ALL_PERCENT:
            return text
    return "more than 99.9999999999999%"


def duration(seconds: float) -> str:
    """Returns a time for people."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _rounded(value: float, digits: int, rounding: str) -> str:
    # From the float's shortest text, or 0.7 would be rounded down to 0.6999.
    number = decimal.Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(number):.{digits}g}"
