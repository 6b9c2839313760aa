"""An event: a set of outputs, or a stored score of them, as data that anyone can store, read and replay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.outputs.columns import Outputs, has_digit, is_long_number
from epsilometer.outputs.lines import Line, describe_intervals
from epsilometer.outputs.partition import BlockPartition, Group, Partition, partition_from_dict, partition_to_dict
from epsilometer.outputs.reading import read_outputs


@dataclass(frozen=True, slots=True)
class LogRatio:
    """A score h for each cell of a partition, and its expected frequencies.

    Attributes:
        partition: cuts all outputs into cells.
        scores: shape (cells,), h: the clipped logarithm of how much likelier the larger distribution makes the cell,
            shifted so that e^((order − 1)·h) has mean 1 under that distribution.
        order: the Rényi order for which it was made.
        p: shape (cells,), expected frequencies under the larger distribution (for choosing a stake, not for proving).
        q: under the other distribution.
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

    def contains(self, outputs: object) -> Booleans:
        """Whether the larger distribution makes each output likelier, shape (n,)."""
        return self.evaluate(outputs) > self.middle

    @property
    def middle(self) -> float:
        """The mean score over both distributions: outputs above it are evidence for the larger one."""
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


def _merge(group: Group, scores: Floats) -> tuple[Group, Integers]:
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


# Signatures that are spelled out in words; the rest are counted.
_SPELLED_OUT = 6
# Kinds of events besides the one of this file, by their name in files.
_KINDS: dict[str, type[Event]] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """The outputs that fall into chosen cells of a partition.

    Attributes:
        partition: cuts all outputs into cells.
        chosen: shape (cells,), which cells belong to the event.
    """

    partition: Partition
    chosen: Booleans

    def __init_subclass__(cls, kind: str = "") -> None:
        """Subclasses, which see outputs in another way, give their name in files."""
        # A dataclass with slots is made twice, the second time without our keyword.
        known = (name for name, other in _KINDS.items() if other.__qualname__ == cls.__qualname__)
        _KINDS[kind or next(known)] = cls

    def contains(self, outputs: object) -> Booleans:
        """Whether each output lies in the event, shape (n,). Takes `Outputs` or anything a mechanism may return."""
        read = outputs if isinstance(outputs, Outputs) else read_outputs(outputs)
        inside = np.full(read.size, self.chosen[-1])
        for first, part, block in self.partition.matches(read):
            if part.is_single_line:  # comparing numbers on one line is faster than finding their cells
                group = part.groups[0]
                assert group.line is not None
                found = group.line.contains(group.numbers(block), self.chosen[first : first + group.n_cells])
            else:
                found = self.chosen[first + part.index(block)]
            if block.rows is None:
                return found
            inside[block.rows] = found
        return inside

    def count(self, outputs: Outputs) -> int:
        """How many outputs lie in the event."""
        return int(np.count_nonzero(self.contains(outputs)))

    def simplified(self) -> Event:
        """The same event on the coarsest partition that still separates it from the rest."""
        blocks, chosen, first = [], [], 0
        for block in self.partition.blocks:
            other = first + block.n_cells - 1  # the cell of all signatures that are not among the groups
            groups: list[Group] = []
            masks: list[Booleans] = []
            for group in block.groups:
                mask = self.chosen[first : first + group.n_cells]
                first += group.n_cells
                # A group outside the event needs no cells of its own, unless "everything else" is inside the event.
                if mask.any() or self.chosen[other]:
                    line, mask = group.line.merged(mask) if group.line else (None, mask)
                    groups.append(replace(group, line=line))
                    masks.append(mask)
            first = other + 1
            mask = np.concatenate([*masks, self.chosen[other:first]])
            if mask.any() or self.chosen[-1]:
                blocks.append(replace(block, groups=tuple(groups)))
                chosen.append(mask)
        return Event(Partition(tuple(blocks)), np.concatenate([*chosen, self.chosen[-1:]]))

    def describe(self) -> str:
        """The event in words."""
        parts, first = [], 0
        for block in self.partition.blocks:
            parts += _describe_block(block, self.chosen[first : first + block.n_cells])
            first += block.n_cells
        if self.chosen[-1]:
            parts.append("an output of any other shape")
        return "; or ".join(parts) or "nothing"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "kind": "cells",
            "partition": partition_to_dict(self.partition),
            "chosen": [int(cell) for cell in np.flatnonzero(self.chosen)],
            "text": self.describe(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Event:
        """The inverse of `to_dict`."""
        try:
            partition = partition_from_dict(data["partition"])
            chosen = np.zeros(partition.n_cells, dtype=np.bool_)
            chosen[np.array(data["chosen"], dtype=np.int64)] = True
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"the stored event cannot be read: {error!r}") from error
        return _KINDS.get(str(data.get("kind")), cls)(partition, chosen)


def _describe_block(block: BlockPartition, chosen: Booleans) -> list[str]:
    texts, first = [], 0
    for group in block.groups:
        mask = chosen[first : first + group.n_cells]
        first += group.n_cells
        if mask.any():
            texts.append(_describe_group(block, group, mask))
    if len(texts) > _SPELLED_OUT:
        texts = [*texts[:_SPELLED_OUT], f"one of {len(texts) - _SPELLED_OUT} more such outputs"]
    if chosen[-1]:
        texts.append(f"any other {block.shape}")
    return texts


def _describe_group(block: BlockPartition, group: Group, mask: Booleans) -> str:
    several = len(group.signature) > 1
    fixed = []
    for column, (code, atoms) in enumerate(zip(group.signature, block.atoms, strict=False)):
        if code >= 0 and atoms:
            name = _part_name(block.shape, column) if several else "output"
            fixed.append(f"{name} = {atoms.name(code)}")
    if group.line:
        name = "score" if group.score else _part_name(block.shape, group.column) if several else "output"
        if name == "output" and mask[:-1].all():
            ranges = [f"any {block.shape} output"]
        else:
            ranges = [describe_intervals(group.line.intervals(mask), name)] if mask[:-1].any() else []
        ranges += [f"{name} is NaN"] if mask[-1] else []
        fixed.append(" or ".join(ranges))
    if not fixed:
        return f"output is {block.shape}" if block.shape == "None" else f"any output of shape {block.shape}"
    text = " and ".join(fixed)
    return f"{block.shape} with {text}" if several else text


def _part_name(shape: str, column: int) -> str:
    if not is_long_number(shape):
        return f"item {column}"
    return ("output", "(output mod 2^53)" if has_digit(shape) else "what rounding leaves of it")[column]
