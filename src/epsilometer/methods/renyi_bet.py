"""Method `renyi-bet`: an exact bound on a Rényi divergence, from one bet on a learned score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.bounds import Counts
from epsilometer.bounds.bets_on_means import JointBet, bet_lower, bet_p_value
from epsilometer.claims import ZCDP, Claim, RenyiDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.log_ratios import Way, learn_ways
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.events import LogRatio
from epsilometer.result import Finding, Witness

# Where the score may be clipped, as shares of its largest absolute value.
_CLIPS = np.linspace(0.08, 1.0, 24)
# Orders tried for zero-concentrated privacy: below 1.01 the cost of the proof dominates, beyond 64
# the tails do.
_ZCDP_ORDERS = (1.01, 1.03, 1.1, 1.3, 2.0, 3.0, 4.5, 7.0, 11.0, 20.0, 40.0, 64.0)
# Stakes that are tried, in units of the one that is best for a normal sum.
_STAKES = np.array([0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5])
# Pseudo-draws on the right, as bad as possible: without them rare large scores look free (Gaussian,
# order 5, 1e5 draws: 1.75 whether 1, 2 or 4 are added, but predicted 1.91, 1.88, 1.83).
_MISSED = 2.0
# A prediction needs no more than eight digits.
_HALVINGS = 26
# Scores that are tried at all orders.
_SHORTLIST = 4


def check_divergence(name: str, claim: Claim) -> None:
    """Rényi divergences only."""
    if not isinstance(claim, RenyiDP | ZCDP):
        raise InputError(
            f"method={name!r} bounds RenyiDP and ZCDP, not {type(claim).__name__}; use method='auto'"
        )


def per_order(task: Task, order: float) -> float:
    """The value of one unit of divergence of this order in the claim's own parameter."""
    return 1.0 if isinstance(task.claim, RenyiDP) else 1.0 / order


def choose_score(ways: Sequence[Way], task: Task) -> tuple[LogRatio, bool, float]:
    """The score with the best predicted bound, whether the right distribution is the larger one, and the bound."""
    orders = (task.claim.order,) if isinstance(task.claim, RenyiDP) else _ZCDP_ORDERS
    # Which score is good depends little on the order: few orders make the shortlist, all of them
    # the choice.
    first = orders[:: max(1, len(orders) // 3)]
    fits = [(way, number) for way in ways for number in range(len(way.fits))]
    found = [
        _best_of(*fit, flipped, order, task)
        for fit in fits
        for flipped in (False, True)
        for order in first
    ]
    if len(first) < len(orders):
        shortlist = sorted(found, key=lambda each: -each.predicted)[:_SHORTLIST]
        found += [
            _best_of(each.way, each.fit, each.flipped, order, task)
            for each in shortlist
            for order in orders
        ]
    best = max(found, key=lambda each: each.predicted)
    # The chosen score is learned on all training draws.
    above, below = best.way.oriented(best.flipped)
    p = above[0] + above[1]
    q = below[0] + below[1]
    scores = np.clip(best.way.fits[best.fit](p, q), -best.clip, best.clip)
    frequencies = p / max(p.sum(), 1), q / max(q.sum(), 1)
    shift = _shift(scores[None, :], best.order, frequencies[0])[0]
    score = LogRatio(best.way.partition, scores - shift, best.order, *frequencies).simplified()
    return score, best.flipped, best.predicted


@dataclass(frozen=True, slots=True)
class _Candidate:
    way: Way
    fit: int
    flipped: bool
    order: float
    clip: float
    predicted: float


def _best_of(way: Way, number: int, flipped: bool, order: float, task: Task) -> _Candidate:
    above, below = way.oriented(flipped)
    # Learned on one half, judged on the other: two copies of every cell.
    scores = np.concatenate([way.fits[number](above[half], below[half]) for half in (0, 1)])
    p = np.concatenate(above[::-1])
    q = np.concatenate(below[::-1])
    seen = (p > 0) | (q > 0)
    scores = scores[seen]
    p = p[seen]
    q = q[seen]
    top = float(np.abs(scores).max(initial=0.0))
    if top == 0.0:
        return _Candidate(way, number, flipped, order, 1.0, 0.0)
    clips = top * _CLIPS
    clipped = np.clip(scores, -clips[:, None], clips[:, None])
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    bounds = predict(clipped, order, p, q, n_fresh, task.failure_probability, np.ones(1))[0]
    place = int(np.argmax(bounds))
    return _Candidate(
        way,
        number,
        flipped,
        order,
        float(clips[place]),
        float(bounds[place]) * per_order(task, order),
    )


# e^300 can be squared and summed over any number of draws.
_LARGEST_POWER = 300.0


def predict(
    scores: Floats,
    order: float,
    p: Array,
    q: Array,
    n_fresh: tuple[int, int],
    failure: float,
    stakes: Floats,
) -> tuple[Floats, Floats]:
    """The bound that fresh draws with the frequencies of these counts would give.

    Args:
        scores: shape (candidates, cells).
        p: shape (cells,), counts under the larger distribution.
        q: under the other.
        n_fresh: draws of the proof.
        stakes: shape (k,), tried in units of the best for a normal sum.

    Returns:
        Bounds and stakes, shape (candidates·k,), candidates first.
    """
    n, m = n_fresh
    share = p / max(p.sum(), 1)
    counted = q + np.zeros(scores.shape)
    counted[np.arange(len(scores)), np.argmax(scores, axis=1)] += _MISSED
    other = counted / counted.sum(axis=1, keepdims=True)
    shifted = scores - _shift(scores, order, share)[:, None]
    growth = order / (order - 1.0)
    # Only a forecast: cells that the larger distribution never showed may have powers whose squares
    # would overflow.
    gain = growth * np.expm1(np.minimum((order - 1.0) * shifted, _LARGEST_POWER))
    pay = np.exp(np.minimum(order * shifted, _LARGEST_POWER))
    mean = (other * pay).sum(axis=1)
    variance = (gain**2) @ share + n / m * ((other * pay**2).sum(axis=1) / mean**2 - 1.0)
    needed = -math.log(failure)
    normal = np.sqrt(2.0 * needed / (n * np.maximum(variance, 1e-12)))
    stake = np.minimum(normal[:, None] * stakes, 0.95 / growth).ravel()
    repeat = np.repeat(np.arange(len(scores)), len(stakes))
    wealth = n * (np.log1p(stake[:, None] * gain[repeat]) @ share) - needed
    # For each row, the divergence at which the right draws use up the wealth; below 0 when there is
    # none.
    pay = pay[repeat]
    counts = other[repeat] * m
    paid = stake * n / m
    low = np.full(len(stake), -1.0)
    high = np.log1p(1.0 / paid) - np.log(pay.max(axis=1))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        factors = 1.0 + paid[:, None] - (paid * np.exp(middle))[:, None] * pay
        rich = wealth + (counts * np.log(np.maximum(factors, 1e-300))).sum(axis=1) >= 0.0
        low = np.where(rich, middle, low)
        high = np.where(rich, high, middle)
    return low, stake


def _shift(scores: Floats, order: float, share: Floats) -> Floats:
    """What must be subtracted from each row of scores so that e^((order − 1)·score) has mean 1."""
    # Relative to the greatest power that counts: relative to one of share 0, all others may vanish.
    counts = share > 0.0 if share.any() else share == 0.0
    powers = np.where(counts, (order - 1.0) * scores, -np.inf)
    top = powers.max(axis=1)
    weights = share if share.any() else np.full(len(share), 1.0 / len(share))
    # The mean less 1, and not the mean: next to order 1 its logarithm would be rounding, divided by
    # order − 1.
    mean_less_one = np.expm1(powers - top[:, None]) @ weights
    return np.asarray((top + np.log1p(mean_less_one)) / (order - 1.0), dtype=np.float64)


NAME = "renyi-bet"


@dataclass(frozen=True, slots=True)
class BetProposal(Proposal):
    """A score to be bet on with fresh draws.

    Attributes:
        score: the score; constant on cells, so that counts of cells are all the proof needs.
        stake: of the bet.
        flipped: False when the left distribution is the larger one.
        task: what is to be proved.
        predicted: the bound to expect.
    """

    score: LogRatio
    stake: float
    flipped: bool
    task: Task
    predicted: float

    @property
    def event(self) -> Event:
        """The outputs that the score favours: what the health checks watch."""
        return self.score.favourable

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How often each cell happened, shape (cells,)."""
        return self.score.partition.count(outputs)

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """The exact bound from the cell counts of the fresh draws."""
        above, below = (right, left) if self.flipped else (left, right)
        bet = JointBet(self.score.order, self.score.scores, self.stake)
        divergence = bet_lower(bet, above, below, failure_probability)
        # The score, with the counts of the outputs that it favours.
        favoured = self.score.favourable.chosen
        counts = [Counts(int(side[favoured].sum()), int(side.sum())) for side in (left, right)]
        witness = Witness.of(
            pair, self.score, self.flipped, counts[0], counts[1], failure_probability
        )
        # the proof needs these (`epsilometer.checker`)
        cells = {"left": left.tolist(), "right": right.tolist()}
        details = {
            "order": self.score.order,
            "stake": self.stake,
            "divergence_lower": divergence,
            "cells": cells,
        }
        bound = divergence * per_order(self.task, self.score.order)
        return Finding(
            NAME, bound, "exact", 1.0 - failure_probability, witness, self.task.claim, details
        )

    @property
    def claimed_divergence(self) -> float:
        """The greatest divergence of the score's order that the claim allows."""
        return self.task.claim.value / per_order(self.task, self.score.order)

    def p_value(self, left: Integers, right: Integers, failure_probability: float) -> float | None:
        """One over the wealth of the bet against the claimed divergence."""
        above, below = (right, left) if self.flipped else (left, right)
        bet = JointBet(self.score.order, self.score.scores, self.stake)
        return bet_p_value(bet, above, below, self.claimed_divergence)


class RenyiBetMethod(Method):
    """Learns how much likelier each output is on one side, and bets on it."""

    name = NAME
    summary = "one bet on a learned log-ratio: sharper than an event for RenyiDP and ZCDP"
    guarantee = "exact"
    is_quick = True

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Rényi divergences only; called before anything is drawn."""
        check_divergence(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BetProposal:
        """The score with the best predicted bound."""
        self.check(task.claim)
        return self.propose_from(learn_ways(left, right), task, min(len(left), len(right)))

    def propose_from(self, ways: Sequence[Way], task: Task, n_train: int) -> BetProposal:
        """The same over given ways to score the outputs."""
        score, flipped, predicted = choose_score(ways, task)
        return restored_bet(score, flipped, task, predicted, n_train)


def restored_bet(
    score: LogRatio, flipped: bool, task: Task, predicted: float, n_train: int
) -> BetProposal:
    """The bet on a score, with the stake that suits the fresh draws of the task; uses expected frequencies only."""
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    counts = score.p * n_train, score.q * n_train
    bounds, stakes = predict(
        score.scores[None, :], score.order, *counts, n_fresh, task.failure_probability, _STAKES
    )
    return BetProposal(score, float(stakes[int(np.argmax(bounds))]), flipped, task, predicted)
