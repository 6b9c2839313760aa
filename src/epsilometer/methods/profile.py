"""Method `profile`: nested events that are counted together; one band answers every claim."""

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
from epsilometer.methods.events.choosing import (
    CellAdjacency,
    Halves,
    cell_adjacency,
    orderings,
)
from epsilometer.methods.events.learning import LearnedPartition, learn_partitions
from epsilometer.outputs import Block, BlockPartition, Event, Line, Outputs, Partition
from epsilometer.result import Finding, Witness

# --- Orders of the cells ---

# Edges in a tail stand at ranks that grow by this factor: two bins of a tail differ by a third.
_TAIL_GROWTH = 1.3
# The outermost edge cuts off at least this many training draws of both sides together.
_TAIL_FIRST_RANK = 3
# A tail ends at this fraction of the draws, where bins of equal mass are fine enough.
_TAIL_FRACTION = 0.02
# Draws of both sides per bin of equal mass, which few draws get as well.
_DRAWS_PER_BIN = 4
# Most bins of equal mass.
_MOST_EVEN_BINS = 24
# Draws per side that are sorted to place edges: more would not move them.
_MOST_ROWS = 250_000
# Orders that follow a line from one end to the other.
SIMPLE_RULES = ("rising", "falling")


@dataclass(frozen=True, slots=True)
class Ranking:
    """One order of the cells, with the counts of both halves of the training draws.

    P is the distribution that should be the larger one on the first cells, Q is the other one.

    Attributes:
        partition: the cells.
        layout: which of them are neighbours.
        rule: the name of the order.
        flipped: False when P is the left distribution.
        above: counts under P.
        below: counts under Q.
        order: shape (cells,), learned from all training draws.
        halves: the same, learned from either half of them alone.
    """

    partition: Partition
    layout: CellAdjacency
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
        """Training draws from P and from Q."""
        n_above = int(sum(half.sum() for half in self.above))
        n_below = int(sum(half.sum() for half in self.below))
        return n_above, n_below

    def out_of_fold(self, masses: Floats) -> tuple[Floats, Floats]:
        """Frequencies of the first cells, ordered on one half of the draws, counted on the other.

        Args:
            masses: shape (k,), the fractions of all draws that the first cells should hold.

        Returns:
            Under P and under Q, shape (k,) each.
        """
        hits_above = np.zeros(len(masses))
        hits_below = np.zeros(len(masses))
        for half, order in enumerate(self.halves):
            last = reach_of(order, self.above[half] + self.below[half], masses)
            hits_above += np.cumsum(self.above[1 - half][order])[last]
            hits_below += np.cumsum(self.below[1 - half][order])[last]
        n_above, n_below = self.sizes
        return hits_above / max(n_above, 1), hits_below / max(n_below, 1)

    def in_sample(self, masses: Floats) -> tuple[Floats, Floats]:
        """Frequencies of the first cells, ordered and counted on all training draws.

        They are biased upwards, but less noisy for few draws.

        Args:
            masses: shape (k,), the fractions of all draws that the first cells should hold.

        Returns:
            Under P and under Q, shape (k,) each.
        """
        last = reach_of(self.order, self.pooled, masses)
        hits_above = np.cumsum((self.above[0] + self.above[1])[self.order])[last]
        hits_below = np.cumsum((self.below[0] + self.below[1])[self.order])[last]
        n_above, n_below = self.sizes
        return hits_above / max(n_above, 1), hits_below / max(n_below, 1)


def reach_of(order: Integers, pooled: Integers, masses: Floats) -> Integers:
    """The place in the order at which the first cells hold each fraction of all draws.

    Args:
        order: shape (cells,).
        pooled: shape (cells,), counts of both sides.
        masses: shape (k,), the fractions.

    Returns:
        Shape (k,).
    """
    last = np.searchsorted(np.cumsum(pooled[order]), masses * pooled.sum())
    return np.asarray(np.minimum(last, len(order) - 1), dtype=np.int64)


def rankings(partitions: list[LearnedPartition]) -> list[Ranking]:
    """All candidate orders of the given partitions, in both directions."""
    ranked = []
    for learned in partitions:
        finer = replace(learned, partition=_finer_partition(learned))
        layout = cell_adjacency(finer.partition)
        counts = finer.halves()
        for flipped in (False, True):
            above, below = (counts.right, counts.left) if flipped else (counts.left, counts.right)
            orders = orderings(above[0] + above[1], below[0] + below[1], layout)
            orders_of_first_half = orderings(above[0], below[0], layout)
            orders_of_second_half = orderings(above[1], below[1], layout)
            for rule, order in orders.items():
                ranking = Ranking(
                    partition=finer.partition,
                    layout=layout,
                    rule=rule,
                    flipped=flipped,
                    above=above,
                    below=below,
                    order=order,
                    halves=(orders_of_first_half[rule], orders_of_second_half[rule]),
                )
                ranked.append(ranking)
    return ranked


def _finer_partition(learned: LearnedPartition) -> Partition:
    """The same partition with more edges where a shape lies on one line."""
    left_blocks = {block.shape: block for block in learned.left}
    right_blocks = {block.shape: block for block in learned.right}
    blocks = []
    for block in learned.partition.blocks:
        draws = (left_blocks.get(block.shape), right_blocks.get(block.shape))
        blocks.append(_finer_block(block, [side for side in draws if side]))
    return Partition(tuple(blocks))


def _finer_block(partition: BlockPartition, draws: list[Block]) -> BlockPartition:
    """Adds edges to a partition on one line: dense in both tails, and a few at even ranks."""
    if not partition.is_single_line:
        return partition
    group = partition.groups[0]
    assert group.line is not None
    first_rows = slice(0, _MOST_ROWS)
    values = [np.asarray(group.numbers(side, first_rows), dtype=np.float64) for side in draws]
    pooled = np.concatenate(values) if values else np.empty(0)
    ordered = np.sort(pooled[np.isfinite(pooled)])
    n = len(ordered)
    if n < 2 * _DRAWS_PER_BIN:
        return partition
    last_rank = max(_TAIL_FRACTION * n, _TAIL_FIRST_RANK)
    n_steps = int(np.log(last_rank / _TAIL_FIRST_RANK) / np.log(_TAIL_GROWTH)) + 1
    growing = _TAIL_FIRST_RANK * _TAIL_GROWTH ** np.arange(n_steps)
    tail_ranks = np.unique(np.round(growing).astype(np.int64))
    n_even_bins = min(n // _DRAWS_PER_BIN, _MOST_EVEN_BINS)
    even_ranks = np.linspace(0, n, n_even_bins + 1).astype(np.int64)[1:-1]
    ranks = np.unique(np.concatenate([tail_ranks, n - tail_ranks, even_ranks]))
    inner_ranks = ranks[(ranks > 0) & (ranks < n)]
    edges = np.union1d(group.line.edges, ordered[inner_ranks])
    return replace(partition, groups=(replace(group, line=Line(edges)),))


# --- The proposal ---

# Events from the strong end of the order (Gaussian μ = 1, 1e6 draws: ε(1e-5) is 3.19 with 32 events
# from the strong end and none from the weak one, 3.16 with 16 and 16; 26 and 6 keep most of both).
_N_STRONG_EVENTS = 26
# Events from the weak end, which is the strong one of the other direction.
_N_WEAK_EVENTS = 6
# The fraction of an event's error share that bounds its rarer side, which limits the sharpness.
_RARE_SIDE_FRACTION = 0.75


@dataclass(frozen=True, slots=True)
class ProfileProposal(Proposal):
    """Nested events to be counted on fresh draws.

    Attributes:
        partition: the cells.
        level: shape (cells,), the number of the first event that contains the cell; event k
            consists of all cells of level ≤ k.
        n_events: how many events there are.
        flipped: False when the left distribution should be the larger one on the first events.
        task: what is to be certified.
        predicted: the bound to expect.
    """

    partition: Partition
    level: Integers
    n_events: int
    flipped: bool
    task: Task
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """Counts how many outputs have each level, shape (n_events + 1,)."""
        counts = self.partition.count(outputs)
        return np.bincount(self.level, counts, minlength=self.n_events + 1).astype(np.int64)

    def band(self, left: Integers, right: Integers, failure_probability: float) -> Band:
        """The band below the trade-off curve; P is the right distribution if flipped.

        Args:
            left: shape (n_events + 1,), left draws by level.
            right: shape (n_events + 1,), right draws by level.
            failure_probability: of the whole band.
        """
        above, below = (right, left) if self.flipped else (left, right)
        return band_from_counts(
            np.cumsum(above)[:-1].tolist(),
            int(above.sum()),
            np.cumsum(below)[:-1].tolist(),
            int(below.sum()),
            failure_probability,
            self.left_shares,
        )

    @property
    def left_shares(self) -> list[float]:
        """The fraction of each event's error share that bounds P; most bounds the rarer side."""
        return [
            _RARE_SIDE_FRACTION if number >= _N_STRONG_EVENTS else 1.0 - _RARE_SIDE_FRACTION
            for number in range(self.n_events)
        ]

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the bound for the claim, with the whole band in the details."""
        band = self.band(left, right, failure_probability)
        claim = self.task.claim
        values = [
            claim.least_value(p, q) if p > q else 0.0
            for p, q in zip(band.p_lower, band.q_upper, strict=True)
        ]
        best = int(np.argmax(values))
        left_hits = np.cumsum(left)
        right_hits = np.cumsum(right)
        witness = Witness(
            pair=pair,
            event=self.event_at(best),
            flipped=self.flipped,
            left_counts=Counts(int(left_hits[best]), int(left.sum())),
            right_counts=Counts(int(right_hits[best]), int(right.sum())),
            p_lower=band.p_lower[best],
            q_upper=band.q_upper[best],
        )
        details: dict[str, Any] = {
            "p_lower": list(band.p_lower),
            "q_upper": list(band.q_upper),
            "left_shares": self.left_shares,
            "flipped": self.flipped,
            "left_hits": left_hits[:-1].tolist(),
            "right_hits": right_hits[:-1].tolist(),
        }
        if isinstance(claim, TradeOffDP):
            # A file holds the curve only at some points, so the one used here is stored as well.
            details["curve_at"] = claim.point_at(band.q_upper[best])
        return Finding(
            method="profile",
            lower_bound=float(values[best]),
            guarantee="exact",
            confidence=1.0 - failure_probability,
            witness=witness,
            claim=claim,
            details=details,
        )

    def p_value(self, left: Integers, right: Integers, failure_probability: float) -> float | None:
        """Searches for the p-value: with fixed shares the band rises with failure_probability."""
        claim = self.task.claim

        def bound_at(failure: float) -> float:
            return self.band(left, right, failure).value(claim)

        return nested_p_value(bound_at, claim.value, failure_probability)

    def event_at(self, number: int) -> Event:
        """The event of that number."""
        return Event(self.partition, self.level <= number).simplified()


# --- The method ---

# Training draws per side, whatever the number of samples: few draws order the outputs well enough,
# and the far tails need the others (ε(1e-5): 3.20 at 12 % training, 3.22 here).
_TRAIN_FIXED = 20_000
# Further training draws, as a fraction of the samples.
_TRAIN_FRACTION = 0.02
# Most training draws per side: they are kept in memory, and more find nothing better (1e9 draws:
# ε(1e-5) is 4.27 here, 4.21 with ten times as many).
_MOST_TRAINING = 2_000_000
# With this fraction of the samples or more for training, the split is left to the audit.
_MOST_TRAINING_FRACTION = 0.3
# Fresh draws of both sides that the outermost event should contain.
_LEAST_FRESH_HITS = 12.0
# Training draws of both sides that it contains at least.
_LEAST_TRAINING_HITS = 5.0
# Orders are compared by the ε that they promise at these δ, and by μ.
_DELTAS = (1e-5, 1e-3, 1e-2, 1e-1)
# Orders of many bins fit chance in the tails: another order than one along the line must promise
# more by this fraction (Gaussian μ = 1, 1e6 draws, 30 seeds: ε(1e-5) is 3.11 when all orders count
# alike, 3.19 here).
_BONUS_OF_SIMPLE_RULES = 0.1


class ProfileMethod(Method):
    """Learns an order of all outputs and counts many nested events on fresh draws."""

    name = "profile"
    summary = (
        "many nested events in one simultaneous band: ε at every δ, μ and the trade-off curve at "
        "once"
    )
    guarantee = "exact"

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Draws per side for training and for the certificate.

        Returns:
            None for several pairs or few draws, which leaves the split to the audit.
        """
        n_train = min(int(_TRAIN_FIXED + _TRAIN_FRACTION * samples), _MOST_TRAINING)
        if n_pairs != 1 or n_train >= _MOST_TRAINING_FRACTION * samples:
            return None
        return n_train, samples - n_train

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProfileProposal:
        """Proposes the nested events of the order that promises most."""
        n_train = len(left) + len(right)
        masses = _event_masses(n_train, n_train / max(sum(task.n_fresh), 1))
        candidates = rankings(learn_partitions(left, right))
        merits = []
        for ranking in candidates:
            bonus = 1.0 + _BONUS_OF_SIMPLE_RULES if ranking.rule in SIMPLE_RULES else 1.0
            merits.append(sum(_promised_values(ranking, masses, task)) * bonus)
        best = candidates[int(np.argmax(merits))]
        last_cells = reach_of(best.order, best.pooled, masses)
        level = np.empty(len(best.order), dtype=np.int64)
        level[best.order] = np.searchsorted(last_cells, np.arange(len(best.order)), side="left")
        p_lower, q_upper = _expected_band(best, masses, task)
        band = Band(tuple(p_lower.tolist()), tuple(q_upper.tolist()))
        return ProfileProposal(
            partition=best.partition,
            level=level,
            n_events=len(masses),
            flipped=best.flipped,
            task=task,
            predicted=band.value(task.claim),
        )


def _event_masses(n_train: int, train_per_fresh: float) -> Floats:
    """Fractions of all draws in the nested events, ascending; dense at both ends.

    Args:
        n_train: training draws of both sides.
        train_per_fresh: training draws for each fresh draw.
    """
    least_hits = max(_LEAST_TRAINING_HITS, _LEAST_FRESH_HITS * train_per_fresh)
    least = least_hits / max(n_train, 1)
    strong = np.geomspace(min(least, 0.2), 0.5, _N_STRONG_EVENTS)
    weak = 1.0 - np.geomspace(min(4.0 * least, 0.2), 0.4, _N_WEAK_EVENTS)
    return np.sort(np.concatenate([strong, weak]))


def _expected_band(ranking: Ranking, masses: Floats, task: Task) -> tuple[Floats, Floats]:
    """Forecasts the band from training draws that are counted out of fold.

    Returns:
        Lower limits of P and upper limits of Q for each event, shape (masses,) each.
    """
    p, q = ranking.out_of_fold(masses)
    n_train, m_train = ranking.sizes
    # Rare events look best by chance: one standard error of the training draws is subtracted, and
    # nothing is impossible.
    p = p - np.sqrt(p * (1.0 - p) / max(n_train, 1))
    q = (q * m_train + np.sqrt(q * m_train) + 1.0) / (m_train + 1.0)
    p = np.clip(p, 0.0, 1.0)
    q = np.clip(q, 0.0, 1.0)
    n, m = task.n_fresh[::-1] if ranking.flipped else task.n_fresh
    z = float(-ndtri(task.failure_probability / (2 * len(masses))))
    low = p - z * np.sqrt(p * (1.0 - p) / n)
    high = q + z * np.sqrt(np.maximum(q * (1.0 - q), 0.0) / m) + 0.5 * z * z / m
    return np.clip(low, 0.0, 1.0 - 1e-9), np.clip(high, 1e-12, 1.0)


def _promised_values(ranking: Ranking, masses: Floats, task: Task) -> list[float]:
    """The ε at each of `_DELTAS`, and the μ, that an order is expected to certify."""
    p, q = _expected_band(ranking, masses, task)
    promised = []
    for delta in _DELTAS:
        with np.errstate(divide="ignore", invalid="ignore"):
            by_event = np.log(np.maximum(p - delta, 0.0) / q)
            by_complement = np.log(np.maximum(1.0 - q - delta, 0.0) / (1.0 - p))
        promised.append(max(float(by_event.max()), float(by_complement.max()), 0.0))
    mus = ndtri(np.maximum(p, 1e-12)) - ndtri(np.minimum(q, 1.0 - 1e-12))
    promised.append(max(float(np.max(mus)), 0.0))
    return promised
