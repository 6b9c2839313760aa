"""An event: a set of outputs, or a stored score of them, as data that anyone can store, read and replay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.outputs.columns import Leaf, Outputs, has_digit, is_long_number, leaves_of
from epsilometer.outputs.lines import LabelAtoms, Line, describe_intervals, number_text
from epsilometer.outputs.partition import (
    BlockPartition,
    Group,
    Partition,
    partition_from_dict,
    partition_to_dict,
    split,
)
from epsilometer.outputs.reading import read_outputs
from epsilometer.outputs.scores import AdditiveScore, Score, Term


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
        return self.scores[self.partition.index(read_outputs(outputs))]

    def contains(self, outputs: object) -> Booleans:
        """Whether the larger distribution makes each output likelier, shape (n,)."""
        return self.evaluate(outputs) > self.middle

    @property
    def middle(self) -> float:
        """The mean score over both distributions: outputs above it are evidence for the larger one."""
        return float(0.5 * (self.p @ self.scores + self.q @ self.scores))

    @property
    def favourable(self) -> "Event":
        """The outputs whose score is above the middle, as an event."""
        return Event(self.partition, self.scores > self.middle)

    def simplified(self) -> "LogRatio":
        """The same score on the coarsest lines: neighbours with one score become one cell."""
        blocks, parts = [], []
        *inside, last = split(np.arange(self.partition.n_cells), self.partition.blocks)
        for block, mine in zip(self.partition.blocks, inside, strict=True):
            groups = []
            *several, rest = split(mine, block.groups)
            for group, cells in zip(block.groups, several, strict=True):
                merged, owner = _merge(group, self.scores[cells])
                groups.append(merged)
                parts += [cells[owner == number] for number in range(merged.n_cells)]
            parts.append(rest)
            blocks.append(replace(block, groups=tuple(groups)))
        parts.append(last)
        p, q = (np.array([float(each[part].sum()) for part in parts]) for each in (self.p, self.q))
        return LogRatio(Partition(tuple(blocks)), np.array([self.scores[part[0]] for part in parts]), self.order, p, q)

    def describe(self) -> str:
        """The score in words: where it lies, and which outputs it favours."""
        levels = np.unique(self.scores)
        span = f"from {levels[0]:.3g} to {levels[-1]:.3g} ({len(levels)} levels)"
        above = f"above its middle {self.middle:.3g}: {self.favourable.describe()}"
        return f"a score {span} for order {self.order:g}; {above}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        numbers = {"order": self.order, **{name: getattr(self, name).tolist() for name in ("scores", "p", "q")}}
        return {"kind": "log-ratio", "partition": partition_to_dict(self.partition), **numbers, "text": self.describe()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "LogRatio":
        """The inverse of `to_dict`."""
        try:
            partition = partition_from_dict(data["partition"])
            scores, p, q = (np.array(data[key], dtype=np.float64) for key in ("scores", "p", "q"))
            order = float(data["order"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"the stored score cannot be read: {error!r}") from error
        if not len(scores) == len(p) == len(q) == partition.n_cells or not np.isfinite([*scores, *p, *q]).all():
            size = f"{len(scores)} values for {partition.n_cells} cells"
            raise InputError(f"the stored score has {size}, or infinite ones")
        return cls(partition, scores, order, p, q)


def _merge(group: Group, scores: Floats) -> tuple[Group, Integers]:
    """The group with neighbouring cells of one score merged, and the new cell of each old one."""
    if group.line is None:
        return group, np.zeros(1, dtype=np.int64)
    keep = scores[:-2] != scores[1:-1]
    owner, line = np.concatenate([[0], np.cumsum(keep)]), Line(group.line.edges[keep])
    return replace(group, line=line), np.append(owner, line.n_cells - 1)


def _by_name(block: BlockPartition, chosen: Booleans) -> tuple[BlockPartition, Booleans]:
    """The same cells by the names of one column, if a score reads nothing else."""
    group = block.groups[0] if len(block.groups) == 1 and not any(block.atoms) else Group(())
    terms = group.score.terms if isinstance(group.score, AdditiveScore) else ()
    if group.line is None or len(terms) != 1 or not isinstance(terms[0].cells, LabelAtoms):
        return block, chosen
    term, names = terms[0], terms[0].cells
    atoms = tuple(names if column == term.column else None for column in range(len(block.atoms)))
    codes = np.full((len(names.labels), len(block.atoms)), -1)
    codes[:, term.column] = np.arange(len(codes))
    groups = tuple(Group(tuple(signature)) for signature in codes.tolist())
    return replace(block, atoms=atoms, groups=groups), chosen[group.line.index(term.weights)]


def _without_score(group: Group, mask: Booleans) -> tuple[Group, Booleans]:
    """The same cells without a score, if it reads one column of numbers only."""
    terms = group.score.terms if isinstance(group.score, AdditiveScore) else ()
    if group.line is None or len(terms) != 1 or not isinstance(terms[0].cells, Line):
        return group, mask
    inside = mask[group.line.index(terms[0].weights)]
    return replace(group, line=terms[0].cells, column=terms[0].column, score=None), inside


def witness_from_dict(data: dict[str, Any]) -> "Event | LogRatio":
    """What a witness shows: a set of outputs or a score of them."""
    return LogRatio.from_dict(data) if data.get("kind") == "log-ratio" else Event.from_dict(data)


# Signatures that are spelled out in words; the rest are counted.
_SPELLED_OUT = 6
# Columns that are named in the words for a score, unless they matter less than this share of the first.
_MOST_TERMS, _IMPORTANT = 3, 0.1
# Intervals of a score that are closer than this are told as one: its words are approximate anyway.
_SMALL_GAP = 0.05
# Kinds of events besides the one of this file, by their name in files.
_KINDS: dict[str, "type[Event]"] = {}


@dataclass(frozen=True, slots=True)
class Event:
    """The outputs that fall into chosen cells of a partition.

    Attributes:
        partition: cuts all outputs into cells.
        chosen: shape (cells,), which cells belong to the event.
        among: whether outputs come in further shapes, so that words must name the shape.
    """

    partition: Partition
    chosen: Booleans
    among: bool = False
    kind: ClassVar[str] = "cells"

    def __init_subclass__(cls) -> None:
        """Subclasses, which see outputs in another way, have a name of their own in files."""
        _KINDS[cls.kind] = cls

    def contains(self, outputs: object) -> Booleans:
        """Whether each output lies in the event, shape (n,). Takes `Outputs` or anything a mechanism may return."""
        read = outputs if isinstance(outputs, Outputs) else read_outputs(outputs)
        inside = None
        for first, part, block in self.partition.matches(read):
            if part.is_single_line:  # comparing numbers on one line is faster than finding their cells
                group = part.groups[0]
                assert group.line is not None
                found = group.line.contains(group.numbers(block), self.chosen[first : first + group.n_cells])
            else:
                found = self.chosen[first + part.index(block)]
            if block.rows is None:
                return found
            inside = np.full(read.size, self.chosen[-1]) if inside is None else inside
            inside[block.rows] = found
        return np.full(read.size, self.chosen[-1]) if inside is None else inside

    @property
    def n_parts(self) -> int:
        """How many intervals and single values it takes to describe the event; a score counts as ten."""
        total = 0
        for block, mine in zip(self.partition.blocks, split(self.chosen, self.partition.blocks), strict=False):
            *masks, rest = split(mine, block.groups)
            total += int(rest[0])
            for group, mask in zip(block.groups, masks, strict=True):
                if mask.any():
                    # An interval begins where a chosen cell follows one that is not; the last cell is NaN.
                    begins = np.count_nonzero(np.diff(mask[:-1].astype(np.int8), prepend=0) > 0)
                    total += 10 if group.score else int(begins) if group.line else 1
        return total

    def simplified(self) -> "Event":
        """The same event on the coarsest partition that still separates it from the rest."""
        blocks, chosen = [], []
        *masks, last = split(self.chosen, self.partition.blocks)
        for block, mask in zip(self.partition.blocks, masks, strict=True):
            if block.groups and block.groups[0].score:
                block, mask = _by_name(block, mask)
            *inside, other = split(mask, block.groups)  # other: all signatures that are not among the groups
            kept: list[tuple[Group, Booleans]] = []
            for group, cells in zip(block.groups, inside, strict=True):
                # A group outside the event needs no cells of its own, unless "everything else" is inside the event.
                if cells.any() or other[0]:
                    group, cells = _without_score(group, cells) if group.score else (group, cells)
                    line, cells = group.line.merged(cells) if group.line else (None, cells)
                    kept.append((replace(group, line=line), cells))
            mask = np.concatenate([*(cells for _, cells in kept), other])
            if mask.any() or last[0]:
                blocks.append(replace(block, groups=tuple(group for group, _ in kept)))
                chosen.append(mask)
        among = self.among or len(self.partition.blocks) > 1
        return Event(Partition(tuple(blocks)), np.concatenate([*chosen, last]), among)

    def describe(self) -> str:
        """The event in words."""
        parts: list[str] = []
        is_one_of_many = self.among or len(self.partition.blocks) > 1
        for block, chosen in zip(self.partition.blocks, split(self.chosen, self.partition.blocks), strict=False):
            *masks, rest = split(chosen, block.groups)
            groups = [(group, mask) for group, mask in zip(block.groups, masks, strict=True) if mask.any()]
            parts += [_describe_group(block, *each, is_one_of_many) for each in groups[:_SPELLED_OUT]]
            if len(groups) > _SPELLED_OUT:
                parts.append(f"one of {len(groups) - _SPELLED_OUT} more such outputs")
            parts += [f"any other {block.shape}"] if rest[0] else []
        return "; or ".join([*parts, *(["an output of any other shape"] if self.chosen[-1] else [])]) or "nothing"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        cells = {"partition": partition_to_dict(self.partition), "chosen": np.flatnonzero(self.chosen).tolist()}
        return {"kind": self.kind, **cells, "text": self.describe(), **({"among": True} if self.among else {})}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Event":
        """The inverse of `to_dict`."""
        try:
            partition = partition_from_dict(data["partition"])
            chosen = np.zeros(partition.n_cells, dtype=np.bool_)
            chosen[np.array(data["chosen"], dtype=np.int64)] = True
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"the stored event cannot be read: {error!r}") from error
        return _KINDS.get(str(data.get("kind")), cls)(partition, chosen, bool(data.get("among")))


def _describe_group(block: BlockPartition, group: Group, mask: Booleans, is_one_of_many: bool) -> str:
    leaves = leaves_of(block.shape)
    columns = [(leaf, part) for leaf in leaves for part in range(leaf.n_columns)]
    if len(columns) != len(block.atoms):  # a stored shape that nobody could have made
        columns = [(Leaf(f"column {number}", "float"), 0) for number in range(len(block.atoms))]
    told = [f"{leaf.path} is missing" for leaf in leaves if leaf.is_missing and len(leaves) > 1][:_MOST_TERMS]
    is_missing = bool(told)
    told += _describe_atoms(block, group, columns)
    if group.line:
        leaf, part = columns[group.column]
        name, kind, ranges = name_of_part(leaf, part), "float" if part else leaf.kind, group.line.intervals(mask)
        if group.score:
            name, shift, turn = score_words(group.score, [name_of_part(*column) for column in columns])
            kind, ranges = "float", _about(ranges, shift, turn)
        if mask[:-1].all() and not group.score:
            told.append(f"any {name}" if len(leaves) > 1 else f"any {block.shape} output")
        elif mask[:-1].any():
            told.append(describe_intervals(ranges, name, kind) + (" (approximately)" if "·" in name else ""))
        if mask[-1]:
            told = [*told[:-1], f"{told[-1]} or NaN"] if mask[:-1].any() else [*told, f"{name} is NaN"]
    if not told:
        return f"output is {block.shape}" if block.shape == "None" else f"any output of shape {block.shape}"
    text = " and ".join(told)
    return f"{block.shape} with {text}" if is_one_of_many and len(leaves) > 1 and not is_missing else text


def _describe_atoms(block: BlockPartition, group: Group, columns: Sequence[tuple[Leaf, int]]) -> list[str]:
    """The values that repeat; those of two columns of one number are said once."""
    told: dict[str, str] = {}
    several = sum(code >= 0 for code in group.signature) > 1 or group.line is not None
    for column, ((leaf, part), code, atoms) in enumerate(zip(columns, group.signature, block.atoms, strict=False)):
        is_constant = several and len(atoms or ()) == 1 and all(each.signature[column] == 0 for each in block.groups)
        if code < 0 or not atoms or is_constant:  # what never varies tells nothing
            continue
        name, text = name_of_part(leaf, part), atoms.name(code, leaf.kind)
        if isinstance(atoms, LabelAtoms) and is_long_number(leaf.kind):  # the exact text of a rounded number
            name, text = leaf.path, text[1:-1]
        told[name] = f"= {text}"
    parts: list[str] = []
    for text, same in groupby(told, key=told.__getitem__):
        names = list(same)
        parts += [f"{names[0]} to {names[-1]} {text}"] if len(names) > 2 else [f"{name} {text}" for name in names]
    return parts


def name_of_part(leaf: Leaf, part: int) -> str:
    """What one of the columns of a leaf holds."""
    if leaf.kind == "complex":
        return f"{('real', 'imaginary')[part]} part of {leaf.path}"
    if not part:
        return leaf.path
    return f"({leaf.path} mod 2^53)" if has_digit(leaf.kind) else f"what rounding leaves of {leaf.path}"


def _about(ranges: list[tuple[float, float]], shift: float, turn: float) -> list[tuple[float, float]]:
    """Intervals of a score as they are told: without what its words leave out, and without the smallest gaps."""
    moved = sorted((low - shift, high - shift) if turn > 0 else (shift - high, shift - low) for low, high in ranges)
    told: list[tuple[float, float]] = []
    for low, high in moved:
        if told and low - told[-1][1] <= _SMALL_GAP:
            told[-1] = told[-1][0], high
        else:
            told.append((low, high))
    return told


def score_words(score: Score, names: Sequence[str]) -> tuple[str, float, float]:
    """A score by its largest terms, how much of it the words leave out, and −1.0 if they turn it around."""
    terms = sorted(getattr(score, "terms", ()), key=lambda term: -term.reach)
    if not terms:
        read = ", ".join(names[column] for column in score.columns[:_MOST_TERMS])
        return f"score = h({read}{', …' if len(score.columns) > _MOST_TERMS else ''})", 0.0, 1.0
    terms = list({term.column: term for term in reversed(terms)}.values())[::-1]  # one per column
    lines = [term.straight() for term in terms]
    turn = -1.0 if lines[0] and lines[0][0] < 0.0 else 1.0  # the first is written without a minus
    shift = sum(line[1] for line in lines if line)
    told = ""
    important = [term for term in terms if term.reach > _IMPORTANT * terms[0].reach][:_MOST_TERMS]
    for term, line in zip(important, lines, strict=False):
        sign = "−" if turn * (line[0] if line else 1.0) < 0.0 else "+"
        told += f" {sign} " if told else "" if sign == "+" else "−"
        name, unit = _combined(term, names)
        told += f"{abs(line[0]) * unit:.2g}·{name}" if line else _stepped(term, name)
    return told + (" + …" if len(terms) > len(important) else ""), shift, turn


def _combined(term: Term, names: Sequence[str]) -> tuple[str, float]:
    """The number that a term cuts, and its unit: a column, or one with some of the others subtracted."""
    if term.mix is None:
        return names[term.column], 1.0
    unit = abs(float(term.mix[term.column])) or 1.0
    shares = term.mix / unit
    others = [column for column in np.argsort(-np.abs(shares)) if column != term.column and abs(shares[column]) > 0.1]
    told = [f" {'+' if shares[each] > 0.0 else '−'} {abs(shares[each]):.2g}·{names[each]}" for each in others[:2]]
    told += [" + …"] if len(others) > 2 else []
    return f"({names[term.column]}{''.join(told)})" if told else names[term.column], unit


def _stepped(term: Term, name: str) -> str:
    """A column whose weights follow no straight line: its weight at the names, or the values, that count most."""
    if isinstance(term.cells, LabelAtoms):
        code = int(np.argmax(np.abs(term.weights[:-1])))
        return f"{term.weights[code]:.2g}·[{name} = {term.cells.name(code)}]"
    if len(term.cells.edges) == 1:
        return f"{term.weights[1] - term.weights[0]:.2g}·[{name} ≥ {number_text(float(term.cells.edges[0]))}]"
    return f"h({name})"
