"""Chooses score, clip, direction, order and stake on training draws, by two-fold cross-validation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.claims import RenyiDP
from epsilometer.methods.base import Task
from epsilometer.methods.renyi_bet.fitting import Way
from epsilometer.outputs.log_ratio import LogRatio

Floats = NDArray[np.float64]

# Where the score may be clipped, as shares of its largest absolute value.
_CLIPS = np.linspace(0.08, 1.0, 24)
# Orders that are tried for zero-concentrated privacy: below 1.01 the cost of the proof, beyond 64 the tails rule.
_ZCDP_ORDERS = (1.01, 1.03, 1.1, 1.3, 2.0, 3.0, 4.5, 7.0, 11.0, 20.0, 40.0, 64.0)
# Stakes that are tried, in units of the one that is best for a normal sum.
_STAKES = np.array([0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5])
# Right draws as bad as possible that training just missed: without them rare large scores look free (Gaussian, order 5,
# 1e5 draws: 1.75 whether 1, 2 or 4 are added, but predicted 1.91, 1.88, 1.83).
_MISSED = 2.0
_HALVINGS = 26
# Scores that are tried at all orders.
_SHORTLIST = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """What to bet on.

    Attributes:
        score: the score with its order.
        flipped: False when the left law is the larger one.
        predicted: the bound to expect, in the claim's own parameter.
    """

    score: LogRatio
    flipped: bool
    predicted: float


def orders_of(task: Task) -> tuple[float, ...]:
    """The order of the claim, or all that are worth a try."""
    return (task.claim.order,) if isinstance(task.claim, RenyiDP) else _ZCDP_ORDERS


def per_order(task: Task, order: float) -> float:
    """What one unit of divergence of this order is worth in the claim's own parameter."""
    return 1.0 if isinstance(task.claim, RenyiDP) else 1.0 / order


def choose_score(ways: Sequence[Way], task: Task) -> Choice:
    """The score with the best predicted bound."""
    orders = orders_of(task)
    # Which score is good depends little on the order: few orders make the shortlist, all of them the choice.
    first = orders[:: max(1, len(orders) // 3)]
    found = [
        _best_of(way, number, flipped, order, task)
        for way in ways
        for number in range(len(way.fits))
        for flipped in (False, True)
        for order in first
    ]
    if len(first) < len(orders):
        shortlist = sorted(found, key=lambda each: -each.predicted)[:_SHORTLIST]
        found += [_best_of(each.way, each.fit, each.flipped, order, task) for each in shortlist for order in orders]
    return _finish(max(found, key=lambda each: each.predicted))


@dataclass(frozen=True, slots=True)
class _Candidate:
    way: Way
    fit: int
    flipped: bool
    order: float
    clip: float
    predicted: float

    def sides(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Counts of the larger law and of the other, in halves."""
        return (self.way.right, self.way.left) if self.flipped else (self.way.left, self.way.right)


def _best_of(way: Way, number: int, flipped: bool, order: float, task: Task) -> _Candidate:
    above, below = (way.right, way.left) if flipped else (way.left, way.right)
    # Learned on one half, judged on the other: two copies of every cell.
    scores = np.concatenate([way.fits[number](above[half], below[half]) for half in (0, 1)])
    p, q = np.concatenate(above[::-1]), np.concatenate(below[::-1])
    seen = (p > 0) | (q > 0)
    scores, p, q = scores[seen], p[seen], q[seen]
    top = float(np.abs(scores).max(initial=0.0))
    if top == 0.0:
        return _Candidate(way, number, flipped, order, 1.0, 0.0)
    clips = top * _CLIPS
    clipped = np.clip(scores, -clips[:, None], clips[:, None])
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    bounds = predict(clipped, order, p, q, n_fresh, task.failure_probability, np.ones(1))[0]
    place = int(np.argmax(bounds))
    predicted = float(bounds[place]) * per_order(task, order)
    return _Candidate(way, number, flipped, order, float(clips[place]), predicted)


def _finish(best: _Candidate) -> Choice:
    """Learns the chosen score on all training draws."""
    above, below = best.sides()
    p, q = above[0] + above[1], below[0] + below[1]
    scores = np.clip(best.way.fits[best.fit](p, q), -best.clip, best.clip)
    frequencies = p / max(p.sum(), 1), q / max(q.sum(), 1)
    shift = _shift(scores[None, :], best.order, frequencies[0])[0]
    score = LogRatio(best.way.partition, scores - shift, best.order, *frequencies).simplified()
    return Choice(score, best.flipped, best.predicted)


def best_stake(score: LogRatio, n_fresh: tuple[int, int], n_train: int, failure_probability: float) -> float:
    """The stake with the best predicted bound; uses expected frequencies only.

    Args:
        score: what is bet on.
        n_fresh: draws of the larger law and of the other that the proof will have.
        n_train: draws behind the expected frequencies.
        failure_probability: of the proof.
    """
    p, q = score.p * n_train, score.q * n_train
    bounds, stakes = predict(score.scores[None, :], score.order, p, q, n_fresh, failure_probability, _STAKES)
    return float(stakes[int(np.argmax(bounds))])


def predict(
    scores: Floats,
    order: float,
    p: Floats | NDArray[np.int64],
    q: Floats | NDArray[np.int64],
    n_fresh: tuple[int, int],
    failure_probability: float,
    stakes: Floats,
) -> tuple[Floats, Floats]:
    """The bound that fresh draws with the frequencies of these counts would give.

    Args:
        scores: shape (candidates, cells).
        p: shape (cells,), counts under the larger law.
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
    gain = growth * np.expm1((order - 1.0) * shifted)
    pay = np.exp(order * shifted)
    mean = (other * pay).sum(axis=1)
    variance = (gain**2) @ share + n / m * ((other * pay**2).sum(axis=1) / mean**2 - 1.0)
    needed = -math.log(failure_probability)
    normal = np.sqrt(2.0 * needed / (n * np.maximum(variance, 1e-12)))
    stake = np.minimum(normal[:, None] * stakes, 0.95 / growth).ravel()
    repeat = np.repeat(np.arange(len(scores)), len(stakes))
    wealth = n * (np.log1p(stake[:, None] * gain[repeat]) @ share) - needed
    return _solve(wealth, stake * n / m, pay[repeat], other[repeat] * m), stake


def _solve(wealth: Floats, stake: Floats, pay: Floats, counts: Floats) -> Floats:
    """For each row the divergence at which what the right draws cost uses up the wealth; below 0 when there is none."""
    low = np.full(len(stake), -1.0)
    high = np.log1p(1.0 / stake) - np.log(pay.max(axis=1))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        factors = 1.0 + stake[:, None] - (stake * np.exp(middle))[:, None] * pay
        rich = wealth + (counts * np.log(np.maximum(factors, 1e-300))).sum(axis=1) >= 0.0
        low, high = np.where(rich, middle, low), np.where(rich, high, middle)
    return low


def _shift(scores: Floats, order: float, share: Floats) -> Floats:
    """What must be subtracted from each row of scores so that e^((order − 1)·score) has mean 1."""
    powers = (order - 1.0) * scores
    top = powers.max(axis=1)
    return np.asarray((top + np.log(np.exp(powers - top[:, None]) @ share)) / (order - 1.0), dtype=np.float64)
