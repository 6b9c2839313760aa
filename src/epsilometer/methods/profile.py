"""Method `profile`: nested events that are counted together, so that every claim can be read off one band."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds import nested_p_value
from epsilometer.bounds.bands import Band, band_from_counts
from epsilometer.bounds.binomial import Counts
from epsilometer.claims import TradeOffDP
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.events.choosing import Layout, lay_out, orderings
from epsilometer.methods.events.learning import Learned, learn_partitions
from epsilometer.outputs import Block, BlockPartition, Event, Line, Outputs, Partition
from epsilometer.result import Finding, Witness

# Edges in a tail stand at ranks that grow by this factor: two bins of a tail differ by a third.
_TAIL_STEP = 1.3
# The outermost edge cuts off at least this many training draws of both sides together.
_TAIL_FIRST = 3
# A tail ends where bins of equal mass are fine enough.
_TAIL_SHARE = 0.02
# Few draws also get bins of equal mass: one bin per `_PER_BIN` draws, at most `_FEW_BINS`.
_PER_BIN = 4
_FEW_BINS = 24
# Orders that follow a line from one end to the other.
SIMPLE_RULES = ("rising", "falling")
# Sorting more draws than this moves no edge.
_MOST_ROWS = 250_000


# Counts of the cells in two halves of the training draws; two arrays of shape (cells,).
Halves = tuple[Integers, Integers]


@dataclass(frozen=True, slots=True)
class Ranking:
    """One order of the cells, with what each half of the draws says about it.

    Attributes:
        partition: the cells.
        layout: which of them are neighbours.
        rule: the name of the order.
        flipped: False when the left distribution should be the larger one on the first cells.
        above: counts of the distribution that should be the larger one.
        below: counts of the other.
        order: shape (cells,), learned from all training draws.
        halves: the same, learned from one half alone, to be counted on the other.
    """

    partition: Partition
    layout: Layout
    rule: Hashable
    flipped: bool
    above: Halves
    below: Halves
    order: Integers
    halves: Halves

    @property
    def pooled(self) -> Integers:
        """Counts of all draws of both sides, shape (cells,)."""
        return np.asarray(sum((*self.above, *self.below)))

    @property
    def sizes(self) -> tuple[int, int]:
        """Draws of the distribution that should be the larger one, and of the other."""
        return int(sum(half.sum() for half in self.above)), int(
            sum(half.sum() for half in self.below)
        )

    def out_of_fold(self, masses: Floats) -> tuple[Floats, Floats]:
        """Shares (p, q) of the first cells up to each share of all draws: ordered on one half, counted on the other."""
        hits = np.zeros(len(masses))
        misses = np.zeros(len(masses))
        for half, order in enumerate(self.halves):
            reach = reach_of(order, self.above[half] + self.below[half], masses)
            hits += np.cumsum(self.above[1 - half][order])[reach]
            misses += np.cumsum(self.below[1 - half][order])[reach]
        n, m = self.sizes
        return hits / max(n, 1), misses / max(m, 1)

    def in_sample(self, masses: Floats) -> tuple[Floats, Floats]:
        """The same, ordered and counted on all training draws: flattering, but less noisy for few draws."""
        reach = reach_of(self.order, self.pooled, masses)
        hits, misses = (
            np.cumsum((side[0] + side[1])[self.order])[reach] for side in (self.above, self.below)
        )
        n, m = self.sizes
        return hits / max(n, 1), misses / max(m, 1)


def reach_of(order: Integers, pooled: Integers, masses: Floats) -> Integers:
    """How far along the order each share of all draws reaches: the last cell of each, shape (masses,)."""
    reach = np.searchsorted(np.cumsum(pooled[order]), masses * pooled.sum())
    return np.asarray(np.minimum(reach, len(order) - 1), dtype=np.int64)


def rankings(ways: list[Learned]) -> list[Ranking]:
    """All candidate orders of the given ways to cut the training draws, in both directions."""
    found = []
    for learned in ways:
        # The same way to cut with more edges where a shape lies on one line.
        draws = [{block.shape: block for block in side} for side in (learned.left, learned.right)]
        parts = [
            _finer_block(part, *(side.get(part.shape) for side in draws))
            for part in learned.partition.blocks
        ]
        finer = replace(learned, partition=Partition(tuple(parts)))
        layout = lay_out(finer.partition)
        counts = finer.halves()
        for flipped in (False, True):
            above, below = counts[::-1] if flipped else counts
            whole = orderings(above[0] + above[1], below[0] + below[1], layout)
            halves = [orderings(above[half], below[half], layout) for half in (0, 1)]
            for rule, order in whole.items():
                learned_by = order, (halves[0][rule], halves[1][rule])
                found.append(
                    Ranking(finer.partition, layout, rule, flipped, above, below, *learned_by)
                )
    return found


def _finer_block(part: BlockPartition, left: Block | None, right: Block | None) -> BlockPartition:
    if not part.is_single_line:
        return part
    group = part.groups[0]
    assert group.line is not None
    first = slice(0, _MOST_ROWS)
    values = [
        np.asarray(group.numbers(block, first), dtype=np.float64)
        for block in (left, right)
        if block
    ]
    pooled = np.concatenate(values) if values else np.empty(0)
    ordered = np.sort(pooled[np.isfinite(pooled)])
    n = len(ordered)
    if n < 2 * _PER_BIN:
        return part
    # Ranks that are dense in both tails, and bins of equal mass when there are few draws.
    last = max(_TAIL_SHARE * n, _TAIL_FIRST)
    steps = int(np.log(last / _TAIL_FIRST) / np.log(_TAIL_STEP)) + 1
    tail = np.unique(np.round(_TAIL_FIRST * _TAIL_STEP ** np.arange(steps)).astype(np.int64))
    even = np.linspace(0, n, min(n // _PER_BIN, _FEW_BINS) + 1).astype(np.int64)[1:-1]
    ranks = np.unique(np.concatenate([tail, n - tail, even]))
    edges = np.union1d(group.line.edges, ordered[ranks[(ranks > 0) & (ranks < n)]])
    return replace(part, groups=(replace(group, line=Line(edges)),))


# Thresholds from the strong end of the order, and from the weak end, which is the strong one of the
# other direction (Gaussian μ = 1, 1e6 draws: ε(1e-5) 3.19 with 32 and 0, 3.16 with 16 and 16; 26
# and 6 keeps most of both).
_TOP = 26
_BOTTOM = 6
# The part of an event's price that bounds its rarer side, which limits the sharpness.
_RARE_SIDE = 0.75
# Few draws order the outputs well enough; the far tails need the others (ε(1e-5): 3.20 at 12 %
# training, 3.22 here).
_TRAIN_FIXED = 20_000
_TRAIN_SHARE = 0.02
# They are kept in memory, and more find nothing better (1e9 draws: ε(1e-5) 4.27 here, 4.21 with ten
# times as many).
_MOST_TRAINING = 2_000_000
# The outermost event should be seen this often on fresh draws, and has at least this many training
# draws.
_LEAST_HITS = 12.0
_LEAST_TRAINED = 5.0
# Orders are compared by the ε that they promise at these δ, and μ.
_DELTAS = (1e-5, 1e-3, 1e-2, 1e-1)
# Orders of many bins fit the chance in a tail: another order than the natural one must promise this
# much more (Gaussian μ = 1, 1e6 draws, 30 seeds: ε(1e-5) 3.11 when all orders count alike, 3.19
# here).
_SIMPLER = 0.1


@dataclass(frozen=True, slots=True)
class ProfileProposal(Proposal):
    """Nested events to be counted on fresh draws.

    Attributes:
        partition: the cells.
        level: shape (cells,), the number of the first event that holds the cell; event k is all
            cells of level ≤ k.
        n_events: how many events there are.
        flipped: False when the left distribution should be the larger one on the first events.
        task: what is to be proved.
        predicted: the bound to expect.
    """

    partition: Partition
    level: Integers
    n_events: int
    flipped: bool
    task: Task
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How many outputs have each level, shape (n_events + 1,)."""
        return np.bincount(
            self.level, self.partition.count(outputs), minlength=self.n_events + 1
        ).astype(np.int64)

    def band(self, left: Integers, right: Integers, failure_probability: float) -> Band:
        """The band under the trade-off curve; P is the right distribution if flipped."""
        above, below = (right, left) if self.flipped else (left, right)
        hits = [np.cumsum(side)[:-1].tolist() for side in (above, below)]
        sizes = int(above.sum()), int(below.sum())
        return band_from_counts(
            hits[0], sizes[0], hits[1], sizes[1], failure_probability, self.left_shares
        )

    @property
    def left_shares(self) -> list[float]:
        """The part of each event's price that bounds P: most goes to the rarer side, which limits sharpness."""
        return [
            _RARE_SIDE if number >= _TOP else 1.0 - _RARE_SIDE for number in range(self.n_events)
        ]

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """The bound for the claim, with the whole band in the details."""
        band = self.band(left, right, failure_probability)
        claim = self.task.claim
        values = [
            claim.least_value(p, q) if p > q else 0.0
            for p, q in zip(band.p_lower, band.q_upper, strict=True)
        ]
        best = int(np.argmax(values))
        hits = [Counts(int(np.cumsum(side)[best]), int(side.sum())) for side in (left, right)]
        limits = band.p_lower[best], band.q_upper[best]
        witness = Witness(pair, self.event_at(best), self.flipped, hits[0], hits[1], *limits)
        details: dict[str, Any] = {"p_lower": list(band.p_lower), "q_upper": list(band.q_upper)}
        details |= {"left_shares": self.left_shares, "flipped": self.flipped}
        details |= {
            "left_hits": np.cumsum(left)[:-1].tolist(),
            "right_hits": np.cumsum(right)[:-1].tolist(),
        }
        # a file holds the curve only at some points; this is one that was used
        if isinstance(claim, TradeOffDP):
            details["curve_at"] = claim.point_at(band.q_upper[best])
        return Finding(
            "profile",
            float(values[best]),
            "exact",
            1.0 - failure_probability,
            witness,
            claim,
            details,
        )

    def p_value(self, left: Integers, right: Integers, failure_probability: float) -> float | None:
        """By search: the shares are fixed, so that the whole band only rises with the failure probability."""
        claim = self.task.claim

        def bound_at(failure: float) -> float:
            return self.band(left, right, failure).value(claim)

        return nested_p_value(bound_at, claim.value, failure_probability)

    def event_at(self, number: int) -> Event:
        """The event of that number."""
        return Event(self.partition, self.level <= number).simplified()


class ProfileMethod(Method):
    """Learns an order of all outputs and counts many nested events on fresh draws."""

    name = "profile"
    summary = "many nested events in one simultaneous band: ε at every δ, μ and the trade-off curve at once"
    guarantee = "exact"

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Draws per side that train and that prove; None leaves it to the audit, for several pairs and few draws."""
        n_train = min(int(_TRAIN_FIXED + _TRAIN_SHARE * samples), _MOST_TRAINING)
        return (n_train, samples - n_train) if n_pairs == 1 and n_train < 0.3 * samples else None

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProfileProposal:
        """The nested events of the order that promises most."""
        shares = _shares(
            len(left) + len(right), (len(left) + len(right)) / max(sum(task.n_fresh), 1)
        )
        found = rankings(learn_partitions(left, right))
        # One from end to end of a line unless another promises clearly more.
        handicap = [1.0 + _SIMPLER if ranking.rule in SIMPLE_RULES else 1.0 for ranking in found]
        merit = [
            sum(_promise(each, shares, task)) * extra
            for each, extra in zip(found, handicap, strict=True)
        ]
        best = found[int(np.argmax(merit))]
        reach = reach_of(best.order, best.pooled, shares)
        level = np.empty(len(best.order), dtype=np.int64)
        level[best.order] = np.searchsorted(reach, np.arange(len(best.order)), side="left")
        p, q = (side.tolist() for side in _expected_band(best, shares, task))
        predicted = Band(tuple(p), tuple(q)).value(task.claim)
        return ProfileProposal(best.partition, level, len(shares), best.flipped, task, predicted)


def _shares(n_train: int, train_per_fresh: float) -> Floats:
    """Shares of all draws at which the order is cut, ascending; dense at both ends."""
    least = max(_LEAST_TRAINED, _LEAST_HITS * train_per_fresh) / max(n_train, 1)
    top = np.geomspace(min(least, 0.2), 0.5, _TOP)
    bottom = 1.0 - np.geomspace(min(4.0 * least, 0.2), 0.4, _BOTTOM)
    return np.sort(np.concatenate([top, bottom]))


def _expected_band(ranking: Ranking, shares: Floats, task: Task) -> tuple[Floats, Floats]:
    """Roughly what the band will be, from training draws counted out of fold."""
    p, q = ranking.out_of_fold(shares)
    n_train, m_train = ranking.sizes
    # Rare events look best by chance: one spread of the training draws is subtracted, and nothing
    # is impossible.
    p = p - np.sqrt(p * (1.0 - p) / max(n_train, 1))
    q = (q * m_train + np.sqrt(q * m_train) + 1.0) / (m_train + 1.0)
    p = np.clip(p, 0.0, 1.0)
    q = np.clip(q, 0.0, 1.0)
    n, m = task.n_fresh[::-1] if ranking.flipped else task.n_fresh
    z = float(-ndtri(task.failure_probability / (2 * len(shares))))
    low = p - z * np.sqrt(p * (1.0 - p) / n)
    high = q + z * np.sqrt(np.maximum(q * (1.0 - q), 0.0) / m) + 0.5 * z * z / m
    return np.clip(low, 0.0, 1.0 - 1e-9), np.clip(high, 1e-12, 1.0)


def _promise(ranking: Ranking, shares: Floats, task: Task) -> list[float]:
    """The ε at some δ, and μ, that an order promises."""
    p, q = _expected_band(ranking, shares, task)
    found = []
    for delta in _DELTAS:
        with np.errstate(divide="ignore", invalid="ignore"):
            there = np.log(np.maximum(p - delta, 0.0) / q)
            back = np.log(np.maximum(1.0 - q - delta, 0.0) / (1.0 - p))
        found.append(max(float(there.max()), float(back.max()), 0.0))
    return [
        *found,
        max(float(np.max(ndtri(np.maximum(p, 1e-12)) - ndtri(np.minimum(q, 1.0 - 1e-12)))), 0.0),
    ]
