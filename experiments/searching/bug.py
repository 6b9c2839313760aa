"""What an entry of the zoo of library bugs is, and what its right twins share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer.claims import Claim

Rng = np.random.Generator
Function = Callable[[Any, Rng], Any]


@dataclass(frozen=True, slots=True)
class Bug:
    """A function of a data library that breaks its claim on some inputs, and its right twin.

    Attributes:
        broken: the function with the bug.
        right: the same without it; it keeps the claim on the whole domain, and beyond it if `beyond`.
        family: what kind of input shows the bug.
        domain: the datasets that the function declares to take.
        relation: which of them are neighbours.
        pair: the smallest counterexample that is known.
        claim: what both functions promise.
        beyond: whether only inputs that the domain does not declare show the bug.
        raises: whether the bug shows in whether the function raises, so that raising must count as an output.
    """

    broken: Function
    right: Function
    family: str
    domain: Any
    relation: str
    pair: tuple[Any, Any]
    claim: Claim = field(default_factory=lambda: em.PureDP(1.0))
    beyond: bool = False
    raises: bool = False

    @property
    def name(self) -> str:
        """That of the broken function."""
        return self.broken.__name__

    @property
    def smallest(self) -> int:
        """Records of the smallest counterexample that is known."""
        return size_of(*self.pair)

    def mechanism(self, *, right: bool = False) -> Any:
        """The broken function, or the right one, as an audit takes it."""
        return em.from_callable(
            self.right if right else self.broken, on_error="outcome" if self.raises else "raise"
        )


def size_of(left: Any, right: Any) -> int:
    """Records of the larger dataset; one for a dataset that is a single value."""
    return max(
        len(side) if hasattr(side, "__len__") and not isinstance(side, str) else 1
        for side in (left, right)
    )


def number(value: Any, low: float, high: float) -> float:
    """A number of [low, high] for whatever a record may hold, so that one record moves a sum by at most high − low."""
    try:
        value = float(value)
    except (TypeError, ValueError, OverflowError):
        return low
    return min(max(value, low), high) if value == value else low


def numbers(values: Iterable[Any], low: float, high: float) -> list[float]:
    """The same for every record: as many numbers as there are records."""
    return [number(value, low, high) for value in values]


def counts(values: Iterable[Any], names: Sequence[Any]) -> list[int]:
    """How often each name occurs; whatever is no name is not counted."""
    seen = list(values)
    return [sum(type(value) is type(name) and value == name for value in seen) for name in names]
