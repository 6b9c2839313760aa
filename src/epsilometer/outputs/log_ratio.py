"""A stored score of outputs: how much likelier one law makes each of them than the other, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.outputs.columns import Outputs
from epsilometer.outputs.events import Event
from epsilometer.outputs.lines import Line
from epsilometer.outputs.partition import Group, Mask, Partition, partition_from_dict, partition_to_dict
from epsilometer.outputs.reading import read_outputs

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LogRatio:
    """A score h for each cell of a partition, and what was expected of it.

    Attributes:
        partition: cuts all outputs into cells.
        scores: shape (cells,), h: the clipped logarithm of how much likelier the larger law makes the cell, shifted so
            that e^((order − 1)·h) has mean 1 under that law.
        order: the Rényi order for which it was made.
        p: shape (cells,), expected frequencies under the larger law (for choosing a stake, not for proving).
        q: under the other law.
    """

    partition: Partition
    scores: Floats
    order: float
    p: Floats
    q: Floats

    def evaluate(self, outputs: object) -> Floats:
        """The score of each output, shape (n,). Takes `Outputs` or anything a mechanism may return."""
        read = outputs if isinstance(outputs, Outputs) else read_outputs(outputs)
        return self.scores[self.partition.index(read)]

    def contains(self, outputs: object) -> Mask:
        """Whether the larger law makes each output likelier, shape (n,)."""
        return self.evaluate(outputs) > self.middle

    @property
    def middle(self) -> float:
        """The score that is the mean over both laws: above it outputs speak for the larger law."""
        return float(0.5 * (self.p @ self.scores + self.q @ self.scores))

    @property
    def favourable(self) -> Event:
        """The outputs whose score is above the middle, as an event."""
        return Event(self.partition, self.scores > self.middle)

    def simplified(self) -> LogRatio:
        """The same score on the coarsest lines: neighbours with one score become one cell."""
        blocks, parts, first = [], [], 0
        for block in self.partition.blocks:
            groups = []
            for group in block.groups:
                cells = np.arange(first, first + group.n_cells)
                merged, owner = _merge(group, self.scores[cells])
                groups.append(merged)
                parts += [cells[owner == number] for number in range(merged.n_cells)]
                first += group.n_cells
            parts.append(np.array([first]))
            first += 1
            blocks.append(replace(block, groups=tuple(groups)))
        parts.append(np.array([first]))
        p, q = (np.array([float(each[part].sum()) for part in parts]) for each in (self.p, self.q))
        scores = np.array([self.scores[part[0]] for part in parts])
        return LogRatio(Partition(tuple(blocks)), scores, self.order, p, q)

    def describe(self) -> str:
        """The score in words: where it lies, and which outputs it favours."""
        low, high = float(self.scores.min()), float(self.scores.max())
        levels = len(np.unique(self.scores))
        return (
            f"a score from {low:.3g} to {high:.3g} ({levels} levels) for order {self.order:g}; "
            f"above its middle {self.middle:.3g}: {self.favourable.describe()}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "kind": "log-ratio",
            "partition": partition_to_dict(self.partition),
            "scores": [float(score) for score in self.scores],
            "order": self.order,
            "p": [float(share) for share in self.p],
            "q": [float(share) for share in self.q],
            "text": self.describe(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LogRatio:
        """The inverse of `to_dict`."""
        try:
            partition = partition_from_dict(data["partition"])
            scores, p, q = (np.array(data[key], dtype=np.float64) for key in ("scores", "p", "q"))
            order = float(data["order"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"the stored score cannot be read: {error!r}") from error
        if not len(scores) == len(p) == len(q) == partition.n_cells or not np.isfinite([*scores, *p, *q]).all():
            raise InputError(
                f"the stored score has {len(scores)} values for {partition.n_cells} cells, or infinite ones"
            )
        return cls(partition, scores, order, p, q)


def _merge(group: Group, scores: Floats) -> tuple[Group, NDArray[np.int64]]:
    """The group with neighbouring cells of one score merged, and the new cell of each old one."""
    if group.line is None:
        return group, np.zeros(1, dtype=np.int64)
    keep = scores[:-2] != scores[1:-1]
    owner = np.concatenate([[0], np.cumsum(keep)])
    line = Line(group.line.edges[keep])
    return replace(group, line=line), np.append(owner, line.n_cells - 1)


def witness_from_dict(data: dict[str, Any]) -> Event | LogRatio:
    """What a witness shows: a set of outputs or a score of them."""
    return LogRatio.from_dict(data) if data.get("kind") == "log-ratio" else Event.from_dict(data)
