"""Numbers that take two columns (see `reading_numbers`), as the one number that they are."""

from __future__ import annotations

# To the base 2^53 a double holds every digit.
EXACT = 1 << 53
_ROUNDED = frozenset({"hugeint", "longdouble", "longdouble beyond float", "Decimal"})


def is_long_number(shape: str) -> bool:
    """Whether the first column is the number, rounded to a float, and the second tells apart what rounds alike."""
    return shape in _ROUNDED or has_digit(shape)


def has_digit(shape: str) -> bool:
    """Whether the second column is the lowest digit to the base 2^53, of a whole number or a time."""
    return shape == "bigint" or shape.startswith(("long datetime64", "long timedelta64"))


def whole_number(rounded: float, digit: int) -> int:
    """The number of the shape `bigint` that these two columns stand for."""
    near = int(rounded)
    return near + (digit - near + EXACT // 2) % EXACT - EXACT // 2
