"""An event: a set of outputs, as data that anyone can store, read and replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.errors import InputError
from epsilometer.outputs.columns import Outputs
from epsilometer.outputs.lines import describe_intervals
from epsilometer.outputs.long_numbers import has_digit, is_long_number
from epsilometer.outputs.partition import (
    BlockPartition,
    Group,
    Mask,
    Partition,
    partition_from_dict,
    partition_to_dict,
)
from epsilometer.outputs.reading import read_outputs

# So many signatures are spelled out in words; the rest are counted.
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
    chosen: Mask

    def __init_subclass__(cls, kind: str = "") -> None:
        """Events that see outputs in another way tell how they are called in files."""
        # A dataclass with slots is made twice, the second time without our keyword.
        known = (name for name, other in _KINDS.items() if other.__qualname__ == cls.__qualname__)
        _KINDS[kind or next(known)] = cls

    def contains(self, outputs: object) -> Mask:
        """Whether each output lies in the event, shape (n,). Takes `Outputs` or anything a mechanism may return."""
        read = outputs if isinstance(outputs, Outputs) else read_outputs(outputs)
        return self.chosen[self.partition.index(read)]

    def count(self, outputs: Outputs) -> int:
        """How many outputs lie in the event; numbers on one line are only compared, never indexed."""
        if len(self.partition.blocks) == 1 and len(outputs.blocks) == 1:
            partition, block = self.partition.blocks[0], outputs.blocks[0]
            if partition.is_single_line and partition.shape == block.shape:
                group = partition.groups[0]
                assert group.line is not None
                return group.line.count_chosen(group.numbers(block, slice(None)), self.chosen[: group.n_cells])
        return int(np.count_nonzero(self.contains(outputs)))

    def simplified(self) -> Event:
        """The same event on the coarsest partition that still tells it from the rest."""
        blocks, chosen, first = [], [], 0
        for block in self.partition.blocks:
            part, mask = _simplify_block(block, self.chosen[first : first + block.n_cells])
            first += block.n_cells
            if mask.any() or self.chosen[-1]:
                blocks.append(part)
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


def _simplify_block(block: BlockPartition, chosen: Mask) -> tuple[BlockPartition, Mask]:
    groups: list[Group] = []
    masks: list[Mask] = []
    first = 0
    for group in block.groups:
        mask = chosen[first : first + group.n_cells]
        first += group.n_cells
        # A group outside the event needs no cells of its own, unless "everything else" is inside the event.
        if not mask.any() and not chosen[-1]:
            continue
        if group.line:
            line, mask = group.line.merged(mask)
            group = Group(group.signature, line, group.column, group.score)
        groups.append(group)
        masks.append(mask)
    return BlockPartition(block.shape, block.atoms, tuple(groups)), np.concatenate([*masks, chosen[-1:]])


def _describe_block(block: BlockPartition, chosen: Mask) -> list[str]:
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


def _describe_group(block: BlockPartition, group: Group, mask: Mask) -> str:
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
