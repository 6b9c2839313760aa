"""A measured figure next to its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table.

    Attributes:
        group: power, speed, memory or import.
        name: what was measured.
        value: the figure.
        unit: "×" for a ratio within one run, "s", or "ε".
        relation: "≤" or "≥".
        target: the figure to stay below or to reach; None where there is none.
        detail: how the figure came about.
    """

    group: str
    name: str
    value: float
    unit: str
    relation: str = "≤"
    target: float | None = None
    detail: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.relation == "≤" else self.value >= self.target

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the JSON file."""
        return {**asdict(self), "met": self.is_met}


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios of interleaved timings: both parts of a ratio see the same state of the machine."""
    return median(a / b for a, b in zip(above, below, strict=True))
