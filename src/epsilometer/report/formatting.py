"""Foreign values and numbers as short, harmless text for people."""

import decimal
import reprlib

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
# Items of a list, and entries of a dict, that are written out.
_MAX_ITEMS = 24
_MAX_DICT_ENTRIES = 12
# Characters of a text, or of the repr of any other object, inside of a value.
_MAX_NESTED_CHARACTERS = 200
# Columns of a data frame that are named.
_MAX_COLUMNS = 8
# Characters that the digest of a stored input takes.
_DIGEST_CHARACTERS = 40


def _short_repr() -> reprlib.Repr:
    """Python's repr with few items and characters."""
    short = reprlib.Repr()
    short.maxlist = _MAX_ITEMS
    short.maxtuple = _MAX_ITEMS
    short.maxset = _MAX_ITEMS
    short.maxfrozenset = _MAX_ITEMS
    short.maxdeque = _MAX_ITEMS
    short.maxarray = _MAX_ITEMS
    short.maxdict = _MAX_DICT_ENTRIES
    short.maxstring = _MAX_NESTED_CHARACTERS
    short.maxother = _MAX_NESTED_CHARACTERS
    return short


_SHORT_REPR = _short_repr()


def clean(text: str) -> str:
    """Returns the text with unprintable characters spelled out.

    So it can control neither a terminal nor a page.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def cut(text: str, most: int) -> str:
    """Returns the text, or its beginning and an ellipsis, in at most that many characters."""
    if len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "…"


def plain(value: object, most: int = MAX_NAME_CHARACTERS) -> str:
    """Returns any text or number for one line: clean and cut, without quotation marks."""
    # Cleaning makes text longer, so it may have to be cut again afterwards.
    return cut(clean(str(value)[: most + 1]), most)


def shown(value: object, most: int = MAX_VALUE_CHARACTERS) -> str:
    """Returns a dataset as Python would write it, clean and cut.

    A data frame is shown by its shape and columns. Safe against a hostile `__repr__`.
    """
    # Imports NumPy, which an error message does not need.
    from epsilometer.inputs.pairs import StoredDigest

    if isinstance(value, StoredDigest):
        beginning = f"{plain(value.kind)} {clean(value.text)}"
        return (
            cut(beginning, most - _DIGEST_CHARACTERS) + f" (stored as digest {value.digest[:12]}…)"
        )
    try:
        text = frame_summary(value) or _SHORT_REPR.repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    if "..." in text and isinstance(value, list | tuple | set | frozenset | dict):
        return f"{cut(clean(text), most)} ({len(value):,} items)"
    return cut(clean(text), most)


def frame_summary(value: object) -> str | None:
    """Returns the shape and the columns of a data frame or series; None for anything else.

    The type is recognised by its name: nothing is imported.
    """
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library not in ("pandas", "polars"):
        return None
    if kind.__name__ == "DataFrame":
        rows, columns = value.shape  # type: ignore[attr-defined]
        names = [str(name) for name in value.columns[:_MAX_COLUMNS]]  # type: ignore[attr-defined]
        if columns > _MAX_COLUMNS:
            names.append("…")
        listed = f": {', '.join(names)}" if names else ""
        return f"{library}.DataFrame, {counted(rows, 'row')} × {counted(columns, 'column')}{listed}"
    if kind.__name__ == "Series":
        name = value.name  # type: ignore[attr-defined]
        called = "" if name in (None, "") else f" {name}"
        length = len(value)  # type: ignore[arg-type]
        return f"{library}.Series{called}, {counted(length, 'value')}"
    return None


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where there is not one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


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
        text = f"{100.0 * fraction:.{digits}g}%"
        if fraction >= 1.0 or float(text[:-1]) < 100.0:
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
