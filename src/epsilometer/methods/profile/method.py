"""Nested events that are counted together, so that every claim can be read off one simultaneous band.

Reference: METHODS section 7 of our notes; the band is `epsilometer.bounds.bands`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from epsilometer.bounds.bands import Band, band_from_counts
from epsilometer.bounds.binomial import Counts
from epsilometer.claims import TradeOffDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.nested import SIMPLE_RULES, Ranking, rankings, reach_of
from epsilometer.outputs import Event, Outputs, Partition
from epsilometer.result import Finding, Witness

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Thresholds from the strong end of the order, and from the weak end, which is the strong one of the other direction
# (Gaussian μ = 1, 1e6 draws: ε(1e-5) 3.19 with 32 and 0, 3.16 with 16 and 16; 26 and 6 keeps most of both).
_TOP, _BOTTOM = 26, 6
_RARE_SIDE = 0.75
# Few draws order the outputs well enough; the far tails want all the others (ε(1e-5) 3.20 with 12 % training, 3.22 so).
_TRAIN_FIXED, _TRAIN_SHARE = 20_000, 0.02
# They are kept in memory, and more find nothing better (1e9 draws: ε(1e-5) 4.27 so, 4.21 with ten times as many).
_MOST_TRAINING = 2_000_000
# The outermost event should still be seen so often on fresh draws, and has at least so many training draws.
_LEAST_HITS, _LEAST_TRAINED = 12.0, 5.0
# Orders are compared by the ε that they promise at these δ, and μ.
_DELTAS = (1e-5, 1e-3, 1e-2, 1e-1)
# Orders of many bins fit the chance in a tail: another order than the natural one must promise that much more
# (Gaussian μ = 1, 1e6 draws, 30 seeds: ε(1e-5) 3.11 when all orders count alike, 3.19 so).
_SIMPLER = 0.1


@dataclass(frozen=True, slots=True)
class ProfileProposal:
    """Nested events to be counted on fresh draws.

    Attributes:
        partition: the cells.
        level: shape (cells,), the number of the first event that holds the cell; event k is all cells of level ≤ k.
        n_events: how many events there are.
        flipped: False when the left law should be the larger one on the first events.
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
        cells = self.partition.count(outputs)
        return np.bincount(self.level, cells, minlength=self.n_events + 1).astype(np.int64)

    def band(self, left: Integers, right: Integers, failure_probability: float) -> Band:
        """The band under the trade-off curve; P is the right law if flipped."""
        above, below = (right, left) if self.flipped else (left, right)
        hits = [np.cumsum(side)[:-1].tolist() for side in (above, below)]
        sizes = int(above.sum()), int(below.sum())
        return band_from_counts(hits[0], sizes[0], hits[1], sizes[1], failure_probability, self.left_shares)

    @property
    def left_shares(self) -> list[float]:
        """Of each event's price the part that bounds P: most of it goes to the rarer side, which decides how sharp."""
        return [_RARE_SIDE if number >= _TOP else 1.0 - _RARE_SIDE for number in range(self.n_events)]

    def certify(self, left: Integers, right: Integers, pair: Pair, failure_probability: float) -> Finding:
        """The bound for the claim, with the whole band in the details."""
        band = self.band(left, right, failure_probability)
        claim = self.task.claim
        values = [claim.least_value(p, q) if p > q else 0.0 for p, q in zip(band.p_lower, band.q_upper, strict=True)]
        best = int(np.argmax(values))
        witness = self._witness(best, left, right, pair, band)
        details: dict[str, Any] = {
            "p_lower": list(band.p_lower),
            "q_upper": list(band.q_upper),
            "left_shares": self.left_shares,
            "flipped": self.flipped,
            "left_hits": np.cumsum(left)[:-1].tolist(),
            "right_hits": np.cumsum(right)[:-1].tolist(),
        }
        if isinstance(claim, TradeOffDP):  # a file holds the curve at some points only; here it was used
            details["curve_at"] = claim.point_at(band.q_upper[best])
        return Finding(
            ProfileMethod.name, float(values[best]), "exact", 1.0 - failure_probability, witness, claim, details
        )

    def event(self, number: int) -> Event:
        """The event of that number."""
        return Event(self.partition, self.level <= number).simplified()

    def _witness(self, number: int, left: Integers, right: Integers, pair: Pair, band: Band) -> Witness:
        hits = [Counts(int(np.cumsum(side)[number]), int(side.sum())) for side in (left, right)]
        p_lower, q_upper = band.p_lower[number], band.q_upper[number]
        return Witness(pair, self.event(number), self.flipped, hits[0], hits[1], p_lower, q_upper)


class ProfileMethod:
    """Learns an order of all outputs and counts many nested events on fresh draws."""

    name = "profile"
    summary = "many nested events in one simultaneous band: ε at every δ, μ and the trade-off curve at once"
    guarantee = "exact"

    def __init__(self, options: None = None) -> None:
        if options is not None:
            raise InputError(f"options={options!r:.100}: the method profile has none")

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Draws per side that train and that prove; None leaves it to the audit, for several pairs and few draws."""
        n_train = min(int(_TRAIN_FIXED + _TRAIN_SHARE * samples), _MOST_TRAINING)
        return (n_train, samples - n_train) if n_pairs == 1 and n_train < 0.3 * samples else None

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProfileProposal:
        """The nested events of the order that promises most."""
        shares = _shares(len(left) + len(right), (len(left) + len(right)) / max(sum(task.n_fresh), 1))
        found = rankings(left, right)
        best = _best_ranking(found, [sum(_promise(ranking, shares, task)) for ranking in found])
        level = _levels(best, shares)
        predicted = _predict(best, shares, task)
        return ProfileProposal(best.cut.partition, level, len(shares), best.flipped, task, predicted)


def _best_ranking(found: list[Ranking], promises: list[float]) -> Ranking:
    """The order that promises most; one from end to end of a line unless another promises clearly more."""
    merit = [
        promise * (1.0 + _SIMPLER if ranking.rule in SIMPLE_RULES else 1.0)
        for ranking, promise in zip(found, promises, strict=True)
    ]
    return found[int(np.argmax(merit))]


def _shares(n_train: int, train_per_fresh: float) -> Floats:
    """Shares of all draws at which the order is cut, increasing; dense at both ends."""
    least = max(_LEAST_TRAINED, _LEAST_HITS * train_per_fresh) / max(n_train, 1)
    top = np.geomspace(min(least, 0.2), 0.5, _TOP)
    bottom = 1.0 - np.geomspace(min(4.0 * least, 0.2), 0.4, _BOTTOM)
    return np.sort(np.concatenate([top, bottom]))


def _levels(ranking: Ranking, shares: Floats) -> Integers:
    pooled = sum(ranking.counts(half)[side] for half in (0, 1) for side in (0, 1))
    reach = reach_of(ranking.order, np.asarray(pooled), shares)
    level = np.empty(len(ranking.order), dtype=np.int64)
    level[ranking.order] = np.searchsorted(reach, np.arange(len(ranking.order)), side="left")
    return level


def _expected_band(ranking: Ranking, shares: Floats, task: Task) -> tuple[Floats, Floats]:
    """About what the band will be, from training draws counted out of fold."""
    p, q = ranking.out_of_fold(shares)
    n_train, m_train = ranking.cut.sizes()[::-1] if ranking.flipped else ranking.cut.sizes()
    # Rare events look best by chance: a spread of the training draws is given away, and nothing is impossible.
    p = p - np.sqrt(p * (1.0 - p) / max(n_train, 1))
    q = (q * m_train + np.sqrt(q * m_train) + 1.0) / (m_train + 1.0)
    p, q = np.clip(p, 0.0, 1.0), np.clip(q, 0.0, 1.0)
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
    inside = np.maximum(p, 1e-12)
    return [*found, max(float(np.max(ndtri(inside) - ndtri(np.minimum(q, 1.0 - 1e-12)))), 0.0)]


def _predict(ranking: Ranking, shares: Floats, task: Task) -> float:
    p, q = (side.tolist() for side in _expected_band(ranking, shares, task))
    return Band(tuple(p), tuple(q)).value(task.claim)
