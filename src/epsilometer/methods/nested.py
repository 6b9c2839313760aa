"""Nested events from training draws: all cells in one order, the likeliest sign of the one law first.

What the methods `profile` and `sequential` share. The cells are those of the method `events`, cut finer where all
outputs lie on one line: a profile needs the far tails, and a sequential audit must begin with a handful of draws.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epsilometer.methods.events.learning import Learned, learn_partitions
from epsilometer.methods.events.ordering import Layout, lay_out, orderings
from epsilometer.outputs import Block, BlockPartition, Line, Outputs, Partition

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Edges in a tail stand at ranks that grow by this factor: two bins of a tail differ by a third.
_TAIL_STEP = 1.3
# The outermost edge cuts off at least so many training draws of both sides together.
_TAIL_FIRST = 3
# A tail ends where bins of equal mass are fine enough.
_TAIL_SHARE = 0.02
# Bins of equal mass are drawn even from few draws: one per so many, as long as there are no more than `_FEW_BINS`.
_PER_BIN, _FEW_BINS = 4, 24
# Orders that follow a line from one end to the other.
SIMPLE_RULES = ("rising", "falling")
# Sorting more draws than this moves no edge.
_MOST_ROWS = 250_000


@dataclass(frozen=True, slots=True)
class Cut:
    """A way to cut the outputs, with the training counts of its cells in two halves.

    Attributes:
        partition: the cells.
        layout: which of them are neighbours.
        left: two arrays of shape (cells,).
        right: two arrays of shape (cells,).
    """

    partition: Partition
    layout: Layout
    left: tuple[Integers, Integers]
    right: tuple[Integers, Integers]

    def sizes(self) -> tuple[int, int]:
        """Draws of each side."""
        return int(sum(half.sum() for half in self.left)), int(sum(half.sum() for half in self.right))


@dataclass(frozen=True, slots=True)
class Ranking:
    """One order of the cells, with what each half of the draws says about it.

    Attributes:
        cut: whose cells.
        rule: the name of the order.
        flipped: False when the left law should be the larger one on the first cells.
        order: shape (cells,), learned from all training draws.
        halves: the same learned from either half alone, to be counted on the other.
    """

    cut: Cut
    rule: Hashable
    flipped: bool
    order: Integers
    halves: tuple[Integers, Integers]

    def counts(self, half: int) -> tuple[Integers, Integers]:
        """Counts of one half under the larger law and the other, shape (cells,) each."""
        left, right = self.cut.left[half], self.cut.right[half]
        return (right, left) if self.flipped else (left, right)

    def out_of_fold(self, masses: Floats) -> tuple[Floats, Floats]:
        """Shares (p, q) of the first cells up to each share of all draws: ordered on one half, counted on the other."""
        hits, misses = np.zeros(len(masses)), np.zeros(len(masses))
        for half, order in enumerate(self.halves):
            learned, fresh = self.counts(half), self.counts(1 - half)
            reach = reach_of(order, learned[0] + learned[1], masses)
            hits += np.cumsum(fresh[0][order])[reach]
            misses += np.cumsum(fresh[1][order])[reach]
        sizes = self.cut.sizes()[::-1] if self.flipped else self.cut.sizes()
        return hits / max(sizes[0], 1), misses / max(sizes[1], 1)

    def in_sample(self, masses: Floats) -> tuple[Floats, Floats]:
        """The same, ordered and counted on all training draws: flattering, but less noisy for few draws."""
        above, below = (self.counts(0)[side] + self.counts(1)[side] for side in (0, 1))
        reach = reach_of(self.order, above + below, masses)
        shares = [np.cumsum(side[self.order])[reach] / max(int(side.sum()), 1) for side in (above, below)]
        return shares[0], shares[1]


def reach_of(order: Integers, pooled: Integers, masses: Floats) -> Integers:
    """How far along the order each share of all draws reaches: the last cell of each, shape (masses,)."""
    reach = np.searchsorted(np.cumsum(pooled[order]), masses * pooled.sum())
    return np.asarray(np.minimum(reach, len(order) - 1), dtype=np.int64)


def rankings(left: Outputs, right: Outputs) -> list[Ranking]:
    """All candidate orders of all ways to cut the training draws, in both directions."""
    found = []
    for learned in learn_partitions(left, right):
        cut = _as_cut(_finer(learned))
        for flipped in (False, True):
            found += _rankings_of(cut, flipped)
    return found


def _rankings_of(cut: Cut, flipped: bool) -> list[Ranking]:
    sides = (cut.right, cut.left) if flipped else (cut.left, cut.right)
    whole = orderings(sides[0][0] + sides[0][1], sides[1][0] + sides[1][1], cut.layout)
    halves = [orderings(sides[0][half], sides[1][half], cut.layout) for half in (0, 1)]
    return [Ranking(cut, rule, flipped, whole[rule], (halves[0][rule], halves[1][rule])) for rule in whole]


def _as_cut(learned: Learned) -> Cut:
    left, right = (_halves(learned.partition, side) for side in (learned.left, learned.right))
    return Cut(learned.partition, lay_out(learned.partition), left, right)


def _halves(partition: Partition, outputs: Outputs) -> tuple[Integers, Integers]:
    middle = len(outputs) // 2
    first, second = slice(0, middle), slice(middle, len(outputs))
    return partition.count(outputs.take(first)), partition.count(outputs.take(second))


def _finer(learned: Learned) -> Learned:
    """The same way to cut with more edges where a shape lies on one line."""
    sides = [{block.shape: block for block in side} for side in (learned.left, learned.right)]
    blocks = [_finer_block(part, *(side.get(part.shape) for side in sides)) for part in learned.partition.blocks]
    return replace(learned, partition=Partition(tuple(blocks)))


def _finer_block(part: BlockPartition, left: Block | None, right: Block | None) -> BlockPartition:
    if not part.is_single_line:
        return part
    group = part.groups[0]
    assert group.line is not None
    first = slice(0, _MOST_ROWS)
    values = [np.asarray(group.numbers(block, first), dtype=np.float64) for block in (left, right) if block]
    pooled = np.concatenate(values) if values else np.empty(0)
    edges = np.union1d(group.line.edges, _more_edges(np.sort(pooled[np.isfinite(pooled)])))
    return replace(part, groups=(replace(group, line=Line(edges)),))


def _more_edges(ordered: Floats) -> Floats:
    """Ranks that are dense in both tails, and bins of equal mass when there are few draws."""
    n = len(ordered)
    if n < 2 * _PER_BIN:
        return np.empty(0)
    last = max(_TAIL_SHARE * n, _TAIL_FIRST)
    steps = int(np.log(last / _TAIL_FIRST) / np.log(_TAIL_STEP)) + 1
    tail = np.unique(np.round(_TAIL_FIRST * _TAIL_STEP ** np.arange(steps)).astype(np.int64))
    n_bins = min(n // _PER_BIN, _FEW_BINS)
    even = np.linspace(0, n, n_bins + 1).astype(np.int64)[1:-1]
    ranks = np.unique(np.concatenate([tail, n - tail, even]))
    return np.asarray(ordered[ranks[(ranks > 0) & (ranks < n)]], dtype=np.float64)
