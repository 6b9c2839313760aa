"""Which kind of distribution the draws come from, their outcomes and counts, and the place of a loss as an event."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.methods.published.local.options import MOST_DIMENSIONS
from epsilometer.outputs import (
    Block,
    BlockPartition,
    Event,
    Group,
    Labels,
    Numbers,
    Outputs,
    Partition,
    concatenate,
)
from epsilometer.outputs.lines import Atoms, LabelAtoms, Line, NumberAtoms

# A value seen this often among the training draws is an atom, not an accident (as for the method
# events).
_REPEATS = 5
# A discrete distribution may have rare outcomes; a larger share of draws with them is a continuous
# part …
_RARE = 0.01
# … unless rare values coincide now and then: real numbers do not. (Single precision does in 0.6 %
# of 1e5 draws.)
_COINCIDE = 0.05
# Draws per side that decide the kind.
_LOOK = 100_000
# Integers below this are counted directly, without sorting.
_SMALL = 1 << 18
# An odd 64-bit multiplier for the hash of rows; two outcomes with one hash would be counted
# together.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

MIXED = "the local approach needs purely discrete or purely continuous outputs; use method='events', which takes both"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The distinct outcomes of both sides.

    Attributes:
        left: shape (k,), how often each was seen on the left.
        right: shape (k,), on the right.
        n: draws of left and right.
        where: shape (k, 2), a block of `drawn` and a row of it that shows the outcome.
        drawn: the draws of both sides.
    """

    left: Integers
    right: Integers
    n: tuple[int, int]
    where: Integers
    drawn: Outputs

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, outcome: int) -> Any:
        """An outcome as plain data: a number, a text, or a list of them."""
        number, row = self.where[outcome]
        block = self.drawn.blocks[int(number)]
        leaves = [
            c.labels[c.codes[row]] if isinstance(c, Labels) else c.values[row].item()
            for c in block.columns
        ]
        return leaves[0] if len(leaves) == 1 else leaves or block.shape

    def numbers(self) -> Floats | None:
        """The outcomes as numbers, shape (k,); None when they are not single numbers of one shape."""
        if len(self.drawn.blocks) != 1 or len(self.drawn.blocks[0].columns) != 1:
            return None
        column = self.drawn.blocks[0].columns[0]
        return (
            column.values[self.where[:, 1]].astype(np.float64)
            if isinstance(column, Numbers)
            else None
        )


def find_kind(left: Outputs, right: Outputs, kind: str = "auto") -> str:
    """Whether the outputs are "discrete" or "continuous".

    Raises:
        InputError: a mixed distribution, or more than four continuous coordinates.
    """
    if kind == "discrete":
        return kind
    drawn = concatenate([left.take(slice(0, _LOOK)), right.take(slice(0, _LOOK))])
    n_left = min(len(left), _LOOK)
    varying = [_varies(column, block, n_left) for block in drawn for column in block.columns]
    if kind == "auto" and not any(varying):
        return "discrete"
    _check_continuous(drawn, varying)
    return "continuous"


def as_matrix(outputs: Outputs) -> Floats:
    """Continuous outputs as shape (n, d); outputs of another shape than the first block's are left out as nan."""
    if not outputs.blocks:
        return np.empty((0, 1))
    block = max(outputs.blocks, key=lambda each: each.size)
    values = np.stack(
        [np.asarray(c.values, np.float64) for c in block.columns if isinstance(c, Numbers)], axis=1
    )
    if block.rows is None:
        return values
    whole = np.full((len(outputs), values.shape[1]), np.nan)
    whole[block.rows] = values
    return whole


def count_outcomes(left: Outputs, right: Outputs) -> Outcomes:
    """Every distinct outcome of the draws with its counts."""
    n_left = len(left)
    drawn = concatenate([left, right])
    lefts = []
    rights = []
    where = []
    for number, block in enumerate(drawn):
        is_left = block.places() < n_left
        codes, first = _code_rows(block)
        lefts.append(np.bincount(codes[is_left], minlength=len(first)))
        rights.append(np.bincount(codes[~is_left], minlength=len(first)))
        where.append(np.stack([np.full(len(first), number), first], axis=1))
    return Outcomes(
        np.concatenate(lefts),
        np.concatenate(rights),
        (n_left, len(right)),
        np.concatenate(where),
        drawn,
    )


def _varies(column: Numbers | Labels, block: Block, n_left: int) -> bool:
    """Whether a column has more rare values than a discrete distribution, on either side."""
    if isinstance(column, Labels) or column.values.dtype.kind != "f" or not len(column):
        return False
    values = column.values
    if not np.any(values != np.rint(np.nan_to_num(values))):
        return False  # whole numbers stored as floats
    is_left = block.places() < n_left
    return _has_rare_values(values[is_left]) or _has_rare_values(values[~is_left])


def _has_rare_values(values: Array) -> bool:
    _, counts = np.unique(values, return_counts=True)
    rare = counts[counts < _REPEATS]
    return bool(
        rare.sum() > max(_RARE * len(values), 1.0) and rare[rare > 1].sum() < _COINCIDE * rare.sum()
    )


def _check_continuous(drawn: Outputs, varying: list[bool]) -> None:
    if len(drawn.blocks) > 1:
        shapes = ", ".join(block.shape for block in drawn.blocks[:3])
        raise InputError(
            f"some outputs are continuous numbers, but their shapes differ ({shapes}, …): {MIXED}"
        )
    columns = drawn.blocks[0].columns
    if not all(varying):
        raise InputError(
            f"some of the outputs' {len(columns)} columns are continuous, others are not: {MIXED}"
        )
    if len(columns) > MOST_DIMENSIONS:
        raise InputError(
            f"the outputs have {len(columns)} continuous coordinates; the local approach takes at most "
            f"{MOST_DIMENSIONS}: use method='events'"
        )
    for column in columns:
        atom = (
            _atom(np.asarray(column.values, dtype=np.float64))
            if isinstance(column, Numbers)
            else None
        )
        if atom is not None:
            raise InputError(
                f"the outputs are continuous except for the value {atom:g}, which repeats: {MIXED}"
            )


def _atom(values: Floats) -> float | None:
    """A value that repeats, or is not finite; None when there is none."""
    strange = values[~np.isfinite(values)]
    distinct, counts = np.unique(values, return_counts=True)
    repeated = distinct[np.argmax(counts)] if counts.max() >= _REPEATS else None
    return float(strange[0]) if len(strange) else repeated


def _code_rows(block: Block) -> tuple[Integers, Integers]:
    """The number of each row's outcome, and a row for each outcome."""
    keys = _small_keys(block)
    if keys is None:
        _, first, codes = np.unique(_hashes(block), return_index=True, return_inverse=True)
        return codes.astype(np.int64), first.astype(np.int64)
    some_row = np.full(int(keys.max(initial=0)) + 1, -1, dtype=np.int64)
    some_row[keys] = np.arange(len(keys))
    seen = some_row >= 0
    return (np.cumsum(seen) - 1)[keys], some_row[seen]


def _small_keys(block: Block) -> Integers | None:
    """Exact small keys where all columns are truth values, names or narrow ranges of whole numbers."""
    total = np.zeros(block.size, dtype=np.int64)
    size = 1
    for column in block.columns:
        if isinstance(column, Labels):
            digits = column.codes.astype(np.int64)
            base = len(column.labels)
        elif column.values.dtype.kind == "f" or not len(column):
            return None
        else:
            low = int(column.values.min())
            high = int(column.values.max())
            digits = column.values.astype(np.int64) - low
            base = high - low + 1
        size *= max(base, 1)
        if size > _SMALL:
            return None
        total = total * base + digits if base > 1 else total
    return total


def _hashes(block: Block) -> NDArray[np.uint64]:
    total = np.zeros(block.size, dtype=np.uint64)
    for column in block.columns:
        if isinstance(column, Labels):
            bits = column.codes.astype(np.uint64)
        elif column.values.dtype.kind == "f":
            # Adding 0 makes −0 the same outcome as 0; all NaN are one outcome.
            bits = (
                np.where(np.isnan(column.values), np.nan, column.values + 0.0)
                .astype(np.float64)
                .view(np.uint64)
            )
        else:
            bits = column.values.astype(np.int64).view(np.uint64)
        total = total * _MULTIPLIER + (bits ^ (bits >> np.uint64(29)))
    return total


def outcome_event(outcomes: Outcomes, outcome: int) -> Event:
    """The event that exactly this outcome happens."""
    block = outcomes.drawn.blocks[int(outcomes.where[outcome, 0])]
    row = int(outcomes.where[outcome, 1])
    if len(block.columns) == 1 and isinstance(block.columns[0], Numbers):
        return _number_event(block.shape, float(block.columns[0].values[row]))
    found: list[tuple[Atoms, int]] = []
    for column in block.columns:
        if isinstance(column, Labels):
            found.append((LabelAtoms((column.labels[column.codes[row]],)), 0))
        elif column.values.dtype == np.bool_:
            # both become atoms, for which counting has a short cut
            found.append((NumberAtoms(np.array([0.0, 1.0])), int(column.values[row])))
        else:
            found.append((NumberAtoms(np.array([float(column.values[row])])), 0))
    signature = tuple(code for _, code in found) or (0,)
    partition = BlockPartition(block.shape, tuple(atoms for atoms, _ in found), (Group(signature),))
    return Event(Partition((partition,)), np.array([True, False, False]))


def _number_event(shape: str, value: float) -> Event:
    if np.isnan(value):
        return _line_event(shape, [], [False, True])
    if np.isposinf(value):
        return _line_event(shape, [value], [False, True, False])
    return window_event(shape, value, float(np.nextafter(value, np.inf)))


def window_event(shape: str, low: float, high: float) -> Event:
    """The event that a single number lies in [low, high)."""
    return _line_event(shape, [low, high], [False, True, False, False])


def _line_event(shape: str, edges: list[float], chosen: list[bool]) -> Event:
    partition = BlockPartition(shape, (None,), (Group((-1,), Line(np.array(edges)), 0),))
    return Event(Partition((partition,)), np.array([*chosen, False, False]))
