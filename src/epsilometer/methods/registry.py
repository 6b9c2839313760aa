"""All methods by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from epsilometer.errors import InputError
from epsilometer.methods.base import Method
from epsilometer.methods.events import EventsMethod

# Each makes its method from an options object of that method's own, or from None for its defaults.
_METHODS: dict[str, Callable[[Any], Method]] = {
    "events": EventsMethod,
}
# What "auto" stands for.
DEFAULT = "events"


def names() -> list[str]:
    """Every name that `method=` takes."""
    return ["auto", *_METHODS]


def find_method(name: str, options: object = None) -> Method:
    """The method of that name; `auto` is the best one for the claim."""
    if name == "auto":
        name = DEFAULT
    if name not in _METHODS:
        close = get_close_matches(str(name), names(), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method={name!r} is unknown; known are {', '.join(names())}{hint}")
    return _METHODS[name](options)
