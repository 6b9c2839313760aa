"""The methods of the papers, one room each, as published; the default method is not among them."""

import math
from typing import TypeVar

from epsilometer.claims.base import as_number
from epsilometer.errors import InputError

Chosen = TypeVar("Chosen")


def own_options(name: str, room: str, kind: type[Chosen], given: Chosen | None) -> Chosen:
    """The options given to a method, or its defaults; those of another method are refused."""
    if given is not None and not isinstance(given, kind):
        raise InputError(f"options={given!r:.100}: the method {name} takes epsilometer.{room}.Options")
    return kind() if given is None else given


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """One of a few words, or an InputError that lists them."""
    if value not in allowed:
        raise InputError(f"{name}={value!r:.60} must be one of {', '.join(map(repr, allowed))}")


def check_positive(name: str, value: float, example: str) -> float:
    """A finite number above 0."""
    number = as_number(name, value)
    if not 0.0 < number < math.inf:
        raise InputError(f"{name}={value!r} makes no sense: it must be a finite number above 0, e.g. {example}")
    return number
