"""A measured figure next to its target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, stdev
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table.

    Attributes:
        group: which of the benchmarks.
        name: what was measured; group and name together are the key for comparing runs.
        value: the figure.
        unit: "×" for a ratio within one run, "slope" for a power of growth, "s", "ms", "MB" or "ε".
        relation: "≤" if less is better, "≥" if more is.
        target: the figure to stay below or to reach; None where there is none.
        detail: how the figure came about.
        values: the figure of each repeat, from which its noise is estimated; may be empty.
    """

    group: str
    name: str
    value: float
    unit: str
    relation: str = "≤"
    target: float | None = None
    detail: str = ""
    values: tuple[float, ...] = ()

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.relation == "≤" else self.value >= self.target

    @property
    def key(self) -> str:
        """By which the same measurement is found in another run."""
        return f"{self.group}: {self.name}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the JSON file."""
        return {**asdict(self), "met": self.is_met}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Measurement:
        """The inverse of `to_dict`."""
        fields = {name: value for name, value in data.items() if name != "met"}
        return cls(**{**fields, "values": tuple(fields.get("values", ()))})


def of_repeats(
    group: str,
    name: str,
    values: Sequence[float],
    unit: str,
    relation: str = "≤",
    target: float | None = None,
    detail: str = "",
) -> Measurement:
    """The median of the repeats as a measurement."""
    return Measurement(group, name, median(values), unit, relation, target, detail, tuple(values))


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """The ratios of interleaved timings: both parts of a ratio see the same state of the machine."""
    return [a / b for a, b in zip(above, below, strict=True)]


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of those ratios."""
    return median(ratios(above, below))


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean; None when there are too few values to tell."""
    return stdev(values) / math.sqrt(len(values)) if len(values) >= 3 else None
