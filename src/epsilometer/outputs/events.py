"""Witnesses of a leak as plain data that anyone can store, read back and replay.

A witness is an `Event`, which is a set of outputs, or a `LogRatio`, which is a score of outputs.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.one_line import MAX_REPR_CHARACTERS, cut
from epsilometer.outputs.atoms import NO_ATOM, LabelAtoms
from epsilometer.outputs.columns import Block, Outputs
from epsilometer.outputs.event_words import describe_group
from epsilometer.outputs.lines import Line
from epsilometer.outputs.partition import (
    BlockPartition,
    Group,
    Partition,
    partition_from_dict,
    partition_to_dict,
    split,
)
from epsilometer.outputs.reading import read_outputs
from epsilometer.outputs.scores import AdditiveScore, SummaryScore, Term
from epsilometer.outputs.shapes import shape_words

__all__ = [
    "Event",
    "LogRatio",
    "witness_from_dict",
]

# Clauses that a description spells out; the rest are only counted.
_MAX_GROUPS_IN_WORDS = 3
# The complexity of a group whose outputs are chosen by a score, in intervals.
_PARTS_OF_A_SCORE = 10
# "Any other output" does not say which ones: one interval or value tells more.
_PARTS_OF_A_REST = 2
# Subclasses of `Event` by their name in files.
_EVENT_KINDS: dict[str, "type[Event]"] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """The outputs that fall into chosen cells of a partition.

    Attributes:
        partition: cuts all outputs into cells.
        chosen: shape (cells,), which cells belong to the event.
        among: whether outputs come in further shapes, so that words must name the shape.
        kind: the name of this class in files.
    """

    partition: Partition
    chosen: Booleans
    among: bool = False
    kind: ClassVar[str] = "cells"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {cut(self.describe(), MAX_REPR_CHARACTERS)}>"

    def __init_subclass__(cls) -> None:
        """Registers a subclass, which looks at outputs in another way, under its name in files."""
        _EVENT_KINDS[cls.kind] = cls

    def contains(self, outputs: object) -> Booleans:
        """Returns whether each output lies in the event, shape (n,).

        Args:
            outputs: `Outputs`, or anything that a mechanism may return.
        """
        read = outputs if isinstance(outputs, Outputs) else read_outputs(outputs)
        matches = self.partition.matches(read)
        if matches and matches[0][2].rows is None:  # all outputs have one shape, the usual case
            return self._contains_rows(*matches[0])
        has_unknown_shapes = self.chosen[-1]
        inside = np.full(read.size, has_unknown_shapes)
        for first_cell, partition, block in matches:
            inside[block.rows] = self._contains_rows(first_cell, partition, block)
        return inside

    def _contains_rows(self, first_cell: int, partition: BlockPartition, block: Block) -> Booleans:
        """Returns whether each output of one shape lies in the event, shape (block.size,)."""
        if not partition.is_single_line:
            return self.chosen[first_cell + partition.index(block)]
        # Comparing numbers on one line is faster than finding their cells.
        group = partition.groups[0]
        assert group.line is not None
        chosen = self.chosen[first_cell : first_cell + group.n_cells]
        return group.line.contains(group.numbers(block), chosen)

    @property
    def n_parts(self) -> int:
        """How many intervals and single values describe the event.

        A score counts as ten, and "any other output" as two.
        """
        total = 0
        chosen_by_block = split(self.chosen, self.partition.blocks)
        for block, block_chosen in zip(self.partition.blocks, chosen_by_block, strict=False):
            *masks, other = split(block_chosen, block.groups)
            total += _PARTS_OF_A_REST * int(other[0])
            for group, mask in zip(block.groups, masks, strict=True):
                total += _n_parts_of_group(block, group, mask)
        return total

    def simplified(self) -> "Event":
        """Returns the same event on the coarsest partition that still separates it."""
        blocks = []
        chosen = []
        *masks, unknown_shapes = split(self.chosen, self.partition.blocks)
        for block, mask in zip(self.partition.blocks, masks, strict=True):
            simple_block, simple_mask = _simplify_block(block, mask)
            # A shape outside of the event needs no cells, unless unknown shapes are inside.
            if simple_mask.any() or unknown_shapes[0]:
                blocks.append(simple_block)
                chosen.append(simple_mask)
        among = self.among or len(self.partition.blocks) > 1
        partition = replace(self.partition, blocks=tuple(blocks))
        return Event(partition, np.concatenate([*chosen, unknown_shapes]), among)

    def describe(self) -> str:
        """Returns the event in words."""
        name_shape = self.among or len(self.partition.blocks) > 1
        texts: list[str] = []
        # What is said about a part in one shape is often said about it in all others as well.
        is_same = self.is_same_in_all_shapes
        chosen_by_block = split(self.chosen, self.partition.blocks)
        for block, block_chosen in zip(self.partition.blocks, chosen_by_block, strict=False):
            *masks, other = split(block_chosen, block.groups)
            for group, mask in zip(block.groups, masks, strict=True):
                if not mask.any():
                    continue
                if not (is_same and texts):
                    named = name_shape and not is_same
                    texts.append(describe_group(block, group, mask, named))
            if other[0]:
                texts.append(f"any other {shape_words(block.shape)}")
        parts = texts[:_MAX_GROUPS_IN_WORDS]
        if len(texts) > len(parts):
            parts.append(f"one of {len(texts) - len(parts)} more kinds of outputs")
        if self.chosen[-1]:
            parts.append("an output of any other shape")
        return "; or ".join(parts) or "nothing"

    @property
    def is_same_in_all_shapes(self) -> bool:
        """Whether several shapes are in the event, and one text describes what it has of each."""
        texts = set()
        n_shapes = 0
        chosen_by_block = split(self.chosen, self.partition.blocks)
        for block, block_chosen in zip(self.partition.blocks, chosen_by_block, strict=False):
            *masks, other = split(block_chosen, block.groups)
            if other[0]:
                return False
            described = {
                describe_group(block, group, mask, name_shape=False)
                for group, mask in zip(block.groups, masks, strict=True)
                if mask.any()
            }
            n_shapes += bool(described)
            texts |= described
        return n_shapes > 1 and len(texts) == 1

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        data: dict[str, Any] = {
            "kind": self.kind,
            "partition": partition_to_dict(self.partition),
            "chosen": np.flatnonzero(self.chosen).tolist(),
            "text": self.describe(),
        }
        if self.among:
            data["among"] = True
        return data | _reading_as_data(self.partition)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Event":
        """Inverse of `to_dict`."""
        try:
            partition = partition_from_dict(data["partition"], data.get("reading"))
            chosen = np.zeros(partition.n_cells, dtype=np.bool_)
            chosen[np.array(data["chosen"], dtype=np.int64)] = True
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"the stored event cannot be read: {error!r}") from error
        event_class = _EVENT_KINDS.get(str(data.get("kind")), cls)
        return event_class(partition, chosen, bool(data.get("among")))


def _reading_as_data(partition: Partition) -> dict[str, Any]:
    """Returns how the outputs are read, as plain data; nothing if they are not."""
    return {} if partition.reading is None else {"reading": partition.reading.to_dict()}


def _n_parts_of_group(block: BlockPartition, group: Group, mask: Booleans) -> int:
    """Returns how many intervals and single values describe the chosen cells of a group."""
    if not mask.any():
        return 0
    if group.score and not isinstance(group.score, SummaryScore):
        return _PARTS_OF_A_SCORE
    if not group.line:
        # Where others have repeated values and these have none, they are the rest, too.
        is_rest = any(block.atoms) and all(code == NO_ATOM for code in group.signature)
        return _PARTS_OF_A_REST if is_rest else 1
    # An interval begins where a chosen cell follows one that is not; the last cell is NaN.
    is_beginning = np.diff(mask[:-1].astype(np.int8), prepend=0) > 0
    return int(np.count_nonzero(is_beginning))


def _simplify_block(block: BlockPartition, mask: Booleans) -> tuple[BlockPartition, Booleans]:
    """Returns the coarsest cells of one shape that separate an event, and which of them it has.

    Args:
        block: the cells of one shape.
        mask: shape (block.n_cells,), which cells belong to the event.
    """
    if block.groups and block.groups[0].score:
        block, mask = _cells_of_labels(block, mask)
    groups = []
    masks = []
    *group_masks, other = split(mask, block.groups)
    for group, group_mask in zip(block.groups, group_masks, strict=True):
        # A group outside of the event needs no cells, unless "everything else" is inside.
        if not group_mask.any() and not other[0]:
            continue
        simple_group = group
        simple_mask = group_mask
        if simple_group.score:
            simple_group, simple_mask = _without_score(simple_group, simple_mask)
        if simple_group.line:
            line, simple_mask = simple_group.line.merged(simple_mask)
            simple_group = replace(simple_group, line=line)
        groups.append(simple_group)
        masks.append(simple_mask)
    return replace(block, groups=tuple(groups)), np.concatenate([*masks, other])


def _only_term(group: Group) -> Term | None:
    """Returns the term of an additive score that reads one column; None for any other group."""
    if group.line is None or not isinstance(group.score, AdditiveScore):
        return None
    if len(group.score.terms) != 1 or group.score.terms[0].mix is not None:
        return None
    return group.score.terms[0]


def _cells_of_labels(block: BlockPartition, mask: Booleans) -> tuple[BlockPartition, Booleans]:
    """Returns the cells by the labels of one column, if a score reads nothing else.

    Any other block is returned as it is.
    """
    if len(block.groups) != 1 or any(block.atoms):
        return block, mask
    group = block.groups[0]
    term = _only_term(group)
    if term is None or not isinstance(term.cells, LabelAtoms):
        return block, mask
    assert group.line is not None
    n_columns = len(block.atoms)
    labels = term.cells
    atoms = tuple(labels if column == term.column else None for column in range(n_columns))
    groups = []
    for code in range(len(labels)):
        signature = [NO_ATOM] * n_columns
        signature[term.column] = code
        groups.append(Group(tuple(signature)))
    # The last weight is that of any other label, and so of the last cell.
    label_mask = mask[group.line.index(term.weights)]
    return replace(block, atoms=atoms, groups=tuple(groups)), label_mask


def _without_score(group: Group, mask: Booleans) -> tuple[Group, Booleans]:
    """Returns the same cells without a score, if it reads one column of numbers only.

    Any other group is returned as it is.
    """
    term = _only_term(group)
    if term is None or not isinstance(term.cells, Line):
        return group, mask
    assert group.line is not None
    cell_mask = mask[group.line.index(term.weights)]
    return replace(group, line=term.cells, column=term.column, score=None), cell_mask


@dataclass(frozen=True, slots=True)
class LogRatio:
    """A score h for each cell of a partition, and the cells' expected frequencies.

    Attributes:
        partition: cuts all outputs into cells.
        scores: shape (cells,), h: the clipped logarithm of the ratio of the cell's probabilities
            under the larger distribution and the other one, shifted so that e^((order − 1)·h) has
            mean 1 under the larger distribution.
        order: the Rényi order for which it was made.
        p: shape (cells,), expected frequencies under the larger distribution (for choosing a
            stake, not for certifying).
        q: shape (cells,), expected frequencies under the other distribution.
    """

    partition: Partition
    scores: Floats
    order: float
    p: Floats
    q: Floats

    def __repr__(self) -> str:
        return f"<LogRatio: a score of {len(self.scores)} cells for the order {self.order:g}>"

    def evaluate(self, outputs: object) -> Floats:
        """Returns the score of each output, shape (n,).

        Args:
            outputs: `Outputs`, or anything that a mechanism may return.
        """
        return self.scores[self.partition.index(read_outputs(outputs))]

    def contains(self, outputs: object) -> Booleans:
        """Returns whether each output is evidence for the larger distribution, shape (n,)."""
        return self.evaluate(outputs) > self.middle

    @property
    def middle(self) -> float:
        """The mean score over both distributions: a larger one is evidence for the larger one."""
        return float(0.5 * (self.p @ self.scores + self.q @ self.scores))

    @property
    def favourable(self) -> "Event":
        """The event that the score lies above its middle."""
        return Event(self.partition, self.scores > self.middle)

    def simplified(self) -> "LogRatio":
        """Returns the same score on the coarsest lines: neighbours of one score become one cell."""
        blocks = []
        # For each new cell, the old cells that it consists of.
        old_cells: list[Integers] = []
        all_cells = np.arange(self.partition.n_cells)
        *cells_by_block, unknown_shapes = split(all_cells, self.partition.blocks)
        for block, block_cells in zip(self.partition.blocks, cells_by_block, strict=True):
            groups = []
            *cells_by_group, other = split(block_cells, block.groups)
            for group, cells in zip(block.groups, cells_by_group, strict=True):
                merged, new_cell = _merge_equal_scores(group, self.scores[cells])
                groups.append(merged)
                old_cells += [cells[new_cell == number] for number in range(merged.n_cells)]
            old_cells.append(other)
            blocks.append(replace(block, groups=tuple(groups)))
        old_cells.append(unknown_shapes)
        return LogRatio(
            partition=replace(self.partition, blocks=tuple(blocks)),
            scores=np.array([self.scores[cells[0]] for cells in old_cells]),
            order=self.order,
            p=np.array([float(self.p[cells].sum()) for cells in old_cells]),
            q=np.array([float(self.q[cells].sum()) for cells in old_cells]),
        )

    def describe(self) -> str:
        """Returns the score in words: its range, and the outputs that it favours."""
        levels = np.unique(self.scores)
        span = f"from {levels[0]:.3g} to {levels[-1]:.3g} ({len(levels)} levels)"
        above = f"above its middle {self.middle:.3g}: {self.favourable.describe()}"
        return f"a score {span} for order {self.order:g}; {above}"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        return {
            "kind": "log-ratio",
            "partition": partition_to_dict(self.partition),
            "order": self.order,
            "scores": self.scores.tolist(),
            "p": self.p.tolist(),
            "q": self.q.tolist(),
            "text": self.describe(),
            **_reading_as_data(self.partition),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "LogRatio":
        """Inverse of `to_dict`."""
        try:
            score = cls(
                partition=partition_from_dict(data["partition"], data.get("reading")),
                scores=np.array(data["scores"], dtype=np.float64),
                order=float(data["order"]),
                p=np.array(data["p"], dtype=np.float64),
                q=np.array(data["q"], dtype=np.float64),
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"the stored score cannot be read: {error!r}") from error
        n_cells = score.partition.n_cells
        has_all = len(score.scores) == len(score.p) == len(score.q) == n_cells
        is_finite = np.isfinite([*score.scores, *score.p, *score.q]).all()
        if not has_all or not is_finite:
            size = f"{len(score.scores)} values for {n_cells} cells"
            raise InputError(f"the stored score has {size}, or infinite ones")
        return score


def _merge_equal_scores(group: Group, scores: Floats) -> tuple[Group, Integers]:
    """Merges neighbouring cells of one score.

    Args:
        group: whose cells are merged.
        scores: shape (group.n_cells,).

    Returns:
        The group with fewer cells, and the new cell of each old one, shape (group.n_cells,).
    """
    if group.line is None:
        return group, np.zeros(1, dtype=np.int64)
    separates = scores[:-2] != scores[1:-1]
    line = Line(group.line.edges[separates])
    new_cell = np.concatenate([[0], np.cumsum(separates)])
    nan_cell = line.n_cells - 1
    return replace(group, line=line), np.append(new_cell, nan_cell)


def witness_from_dict(data: dict[str, Any]) -> "Event | LogRatio":
    """Restores a witness: a set of outputs or a score of them."""
    if data.get("kind") == "log-ratio":
        return LogRatio.from_dict(data)
    return Event.from_dict(data)
