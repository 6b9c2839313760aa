"""All methods by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from epsilometer.errors import InputError
from epsilometer.methods.auto import AutoMethod
from epsilometer.methods.base import Method
from epsilometer.methods.bits import BitsMethod
from epsilometer.methods.events import EventsMethod
from epsilometer.methods.ldp.method import HistogramMethod
from epsilometer.methods.local.method import LocalMethod
from epsilometer.methods.profile import ProfileMethod
from epsilometer.methods.renyi.method import RenyiFlooredMethod
from epsilometer.methods.renyi_bet import RenyiBetMethod
from epsilometer.methods.sequential import SequentialMethod

# Each makes its method from an options object of that method's own, or from None for its defaults.
_METHODS: dict[str, Callable[[Any], Method]] = {
    "auto": AutoMethod,
    "events": EventsMethod,
    "ldp-histogram": HistogramMethod,
    "profile": ProfileMethod,
    "sequential": SequentialMethod,
    "bits": BitsMethod,
    "local": LocalMethod,
    "renyi-bet": RenyiBetMethod,
    "renyi-floored": RenyiFlooredMethod,
}


def names() -> list[str]:
    """Every name that `method=` takes."""
    return list(_METHODS)


def find_method(name: str, options: object = None) -> Method:
    """The method of that name; `auto` is the best one for the claim."""
    if name not in _METHODS:
        close = get_close_matches(str(name), names(), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method={name!r} is unknown; known are {', '.join(names())}{hint}")
    return _METHODS[name](options)
