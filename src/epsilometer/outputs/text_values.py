"""What a text holds: numbers, dates and times, and the tokens between its literal parts.

Nothing here raises for any text, and every text is read in time proportional to its length.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

# Longer texts are no numbers: the nearest float to so many digits is infinite anyway.
MAX_NUMBER_LENGTH = 1024
# More tokens than this are no template.
MAX_TOKENS = 64

_DIGITS = r"\d++"
_GROUPED = r"\d{1,3}(?:[,'’]\d{3})++(?!\d)"
_FRACTION = r"(?:\.\d++)?+"
_EXPONENT = r"(?:[eE][+\-−]?\d++)?+"
_HEXADECIMAL = r"0[xX][0-9a-fA-F]++"
_SIGN = r"[+\-−]?+"
_CURRENCY = r"[$€£¥₹]"
# A letter or digit.
_ALPHANUMERIC = r"[^\W_]"
_LETTER = r"[^\W\d_]"

_WHOLE_NUMBER = re.compile(
    rf"\s*(?P<sign>{_SIGN})\s*{_CURRENCY}?\s*"
    rf"(?P<body>{_HEXADECIMAL}|(?:{_GROUPED}|{_DIGITS}){_FRACTION}{_EXPONENT}|\.\d++{_EXPONENT}"
    rf"|(?i:nan|inf|infinity))"
    rf"\.?\s*(?:%|‰|{_CURRENCY})?\s*"
)
_DATE = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_MOMENT = rf"{_DATE}[T ]{_CLOCK}(?:Z|[+-]\d{{2}}:?\d{{2}})?"
_EPOCH = datetime(1970, 1, 1)
_MICROSECONDS_PER_SECOND = 10**6

_SPACES = re.compile(r"\s+")

# Kinds of tokens, one letter each.
NUMBER = "n"
MOMENT = "m"
DATE = "d"
CLOCK = "t"
WORD = "w"


def _token_pattern(grouped: bool) -> re.Pattern[str]:
    """Matches one token; `grouped` says whether a comma may stand between thousands."""
    digits = rf"(?:{_GROUPED}|{_DIGITS})" if grouped else _DIGITS
    number = (
        rf"(?:(?<!{_ALPHANUMERIC})[+\-−])?+"
        rf"(?:{_HEXADECIMAL}|{digits}{_FRACTION}{_EXPONENT}|(?<!{_ALPHANUMERIC})\.\d++{_EXPONENT})"
    )
    simple_number = rf"(?:(?<!{_ALPHANUMERIC})[+\-−])?+{digits}{_FRACTION}"
    # Letters and digits that change more than once are a code, not a word and a number.
    code = rf"(?:\d++{_LETTER}++\d|{_LETTER}++\d++{_LETTER}){_ALPHANUMERIC}*+"
    # So are groups of hexadecimal digits with hyphens: an identifier, such as a UUID.
    identifier = r"[0-9a-fA-F]{4,}+(?:-[0-9a-fA-F]{4,}+){2,}+"
    # Whatever cannot begin a token is skipped at once: a text may hold nothing but commas.
    return re.compile(
        rf"(?=[\w+\-−.])(?:(?P<m>(?<!\d){_MOMENT}(?!{_ALPHANUMERIC}))"
        rf"|(?P<d>(?<!\d){_DATE}(?!{_ALPHANUMERIC}))"
        rf"|(?P<t>(?<![\w:.]){_CLOCK}(?![\w:]))"
        rf"|(?P<i>(?<!{_ALPHANUMERIC}){identifier}(?!{_ALPHANUMERIC}))"
        rf"|(?P<n>{number}(?!{_ALPHANUMERIC}))"
        rf"|(?P<c>(?<!{_ALPHANUMERIC}){code})"
        rf"|(?P<s>{simple_number})"
        rf"|(?P<w>{_LETTER}++))"
    )


_TOKEN = {grouped: _token_pattern(grouped) for grouped in (False, True)}
_KIND_OF_GROUP = {
    "m": MOMENT,
    "d": DATE,
    "t": CLOCK,
    "n": NUMBER,
    "s": NUMBER,
    "i": WORD,
    "c": WORD,
    "w": WORD,
}


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text cut into tokens and what stands between them.

    Attributes:
        kinds: one letter per token.
        literals: what stands before each token, and after the last one. White space is one space,
            and none at the ends, so that numbers may be aligned.
        values: the tokens.
    """

    kinds: str
    literals: tuple[str, ...]
    values: tuple[str, ...]


def tokens_of(text: str, grouped: bool) -> Tokens | None:
    """Cuts a text into tokens.

    Args:
        text: any text.
        grouped: whether commas between thousands belong to numbers.

    Returns:
        None if there are none, or too many.
    """
    kinds: list[str] = []
    literals: list[str] = []
    values: list[str] = []
    end = 0
    for match in _TOKEN[grouped].finditer(text):
        if len(values) == MAX_TOKENS:
            return None
        start = match.start()
        literals.append(_SPACES.sub(" ", text[end:start]))
        end = match.end()
        group = match.lastgroup
        assert group is not None
        kinds.append(_KIND_OF_GROUP[group])
        values.append(match.group())
    if not values:
        return None
    literals.append(_SPACES.sub(" ", text[end:]))
    literals[0] = literals[0].lstrip()
    literals[-1] = literals[-1].rstrip()
    return Tokens("".join(kinds), tuple(literals), tuple(values))


def number_of(text: str) -> float | None:
    """Returns the number that a text is, with its sign, thousands, percent sign or currency.

    Digits of any script count; a number beyond all floats is infinite. Hexadecimal digits need
    their prefix `0x`, because `1e5` or `12` could be either.
    """
    if len(text) > MAX_NUMBER_LENGTH:
        return None
    if "_" not in text:  # which Python allows between digits
        with suppress(ValueError):
            return float(text)  # the usual case
    match = _WHOLE_NUMBER.fullmatch(text)
    if match is None:
        return None
    body = match["body"]
    if body[:2] in ("0x", "0X"):
        value = _hexadecimal(body)
    else:
        plain = body.replace(",", "").replace("'", "").replace("’", "").replace("−", "-")
        value = float(plain)
    return -value if match["sign"] in ("-", "−") else value


def _hexadecimal(text: str) -> float:
    try:
        return float(int(text, 16))
    except OverflowError:
        return np.inf


def is_whole(text: str) -> bool:
    """Returns whether a number is written without a fraction or an exponent."""
    return not any(sign in text for sign in ".eE") or text[:2] in ("0x", "0X")


def day_of(text: str) -> float | None:
    """Returns the ordinal of a date such as `2024-02-29`; None for any other text."""
    try:
        return float(date.fromisoformat(text.strip()).toordinal()) if "-" in text else None
    except ValueError:
        return None


_COMPACT_DAY = re.compile(r"\s*(?:19|20)[0-9]{6}\s*")


def compact_day_of(text: str) -> float | None:
    """Returns the ordinal of a date such as `20240229`; None for any other text."""
    if not _COMPACT_DAY.fullmatch(text):
        return None
    try:
        return float(date.fromisoformat(text.strip()).toordinal())
    except ValueError:
        return None


def moment_of(text: str) -> float | None:
    """Returns the microseconds since 1970 of a date with a time; None for any other text.

    A time with an offset is read in UTC, one without as it is shown.
    """
    text = text.strip()
    if len(text) < len("2024-02-29T12:00") or "-" not in text:
        return None
    try:
        moment = datetime.fromisoformat(text.replace(",", "."))
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        passed = moment - _EPOCH
    except (ValueError, OverflowError):
        return None
    seconds = passed.days * 86_400 + passed.seconds
    return float(seconds * _MICROSECONDS_PER_SECOND + passed.microseconds)


_WHOLE_CLOCK = re.compile(_CLOCK)


def clock_of(text: str) -> float | None:
    """Returns the microseconds since midnight of a time such as `09:30`; None for other texts."""
    text = text.strip()
    if len(text) > MAX_NUMBER_LENGTH or not _WHOLE_CLOCK.fullmatch(text):
        return None
    parts = [float(part) for part in text.replace(",", ".").split(":")]
    seconds = 3600.0 * parts[0] + 60.0 * parts[1] + (parts[2] if len(parts) > 2 else 0.0)
    return seconds * _MICROSECONDS_PER_SECOND
