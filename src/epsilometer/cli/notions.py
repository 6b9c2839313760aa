"""Notions of privacy by name, for measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from epsilometer.errors import InputError

if TYPE_CHECKING:
    from epsilometer.claims import Claim

NAMES = ("pure", "approx", "renyi", "zcdp", "gaussian")


def fixed_parameters(epsilon: float | None, delta: float | None, order: float | None) -> dict[str, Any]:
    """The fixed parameters that were given."""
    given = {"epsilon": epsilon, "delta": delta, "order": order}
    return {name: value for name, value in given.items() if value is not None}


def find_notion(name: str | None, fixed: Mapping[str, float]) -> type[Claim]:
    """The notion of that name; None is what the fixed parameters belong to."""
    from epsilometer.claims import NOTIONS

    if name is None:
        name = "renyi" if "order" in fixed else "approx" if fixed else "pure"
    if name not in NAMES:
        from difflib import get_close_matches

        close = get_close_matches(name, NAMES, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"--notion {name!r} is unknown; known are {', '.join(NAMES)}{hint}")
    return NOTIONS[name]
