"""Events {cells that P makes more than e^ε times as likely as Q}, chosen on training draws by cross-validation.

For the mixture of Q with weight e^ε/(1 + e^ε) and P with weight 1/(1 + e^ε), that event is what a classifier takes for
P, and its excess P(E) − e^ε·Q(E) is the classifier's gain over always answering "Q".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.claims.base import as_number
from epsilometer.errors import InputError
from epsilometer.methods.base import Task
from epsilometer.methods.events.prediction import predictor
from epsilometer.methods.renyi_bet.fitting import Way
from epsilometer.outputs import Event

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]

# ε of the mixture that are tried when nothing is claimed.
_MIXTURES: Floats = np.concatenate([[0.0], np.geomspace(0.02, 12.0, 36)])
# Spreads of the training draws that a prediction gives away; with one ε there are few candidates to be lucky with.
_DOUBT_FIXED, _DOUBT_FREE = 1.0, 3.0


@dataclass(frozen=True, slots=True)
class ExcessEvent:
    """An event with its direction.

    Attributes:
        event: the outputs that the classifier takes for the larger law's.
        epsilon: of the mixture.
        flipped: False when the left law is the larger one.
        predicted: the bound to expect.
        p: cross-validated frequency under the larger law.
        q: under the other.
    """

    event: Event
    epsilon: float
    flipped: bool
    predicted: float
    p: float
    q: float


def check_claim(name: str, claim: Claim) -> PureDP | ApproxDP:
    """Pure and approximate privacy only."""
    if not isinstance(claim, PureDP | ApproxDP):
        raise InputError(
            f"method={name!r} bounds PureDP and ApproxDP, not {type(claim).__name__}: its divergence is the greatest "
            "P(E) − e^ε·Q(E), which says nothing about that notion; use method='auto'"
        )
    return claim


def check_epsilon(epsilon: float | None) -> None:
    """The ε of a mixture: a finite number of at least 0, or None."""
    if epsilon is not None and not 0.0 <= as_number("epsilon", epsilon) < np.inf:
        raise InputError(f"epsilon={epsilon!r} makes no sense: it must be a finite number of at least 0")


def mixtures_of(claim: Claim, wished: float | None) -> Floats:
    """The ε to try: the wished one, the claimed one, or all when nothing is claimed."""
    bounds_delta = isinstance(claim, ApproxDeltaDP)
    claimed = claim.epsilon if isinstance(claim, PureDP | ApproxDP) else 0.0
    if bounds_delta or wished is None:
        return np.array([claimed]) if bounds_delta or claimed > 0.0 else _MIXTURES
    return np.array([float(wished)])


def choose_excess(ways: Sequence[Way], task: Task, mixtures: Floats) -> ExcessEvent:
    """The event with the best predicted bound over all ways, fits, directions and ε."""
    found = [
        _best_of(way, number, flipped, task, mixtures)
        for way in ways
        for number in range(len(way.fits))
        for flipped in (False, True)
    ]
    best = max(found, key=lambda each: each.predicted)
    above, below = best.sides()
    totals = above[0] + above[1], below[0] + below[1]
    chosen = _mask(best.way.fits[best.fit](*totals), np.array([best.epsilon]), totals[0] + totals[1])[0]
    event = Event(best.way.partition, chosen).simplified()
    return ExcessEvent(event, best.epsilon, best.flipped, best.predicted, best.p, best.q)


@dataclass(frozen=True, slots=True)
class _Candidate:
    way: Way
    fit: int
    flipped: bool
    epsilon: float
    predicted: float
    p: float
    q: float

    def sides(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Counts of the larger law and of the other, in halves."""
        return (self.way.right, self.way.left) if self.flipped else (self.way.left, self.way.right)


def _best_of(way: Way, number: int, flipped: bool, task: Task, mixtures: Floats) -> _Candidate:
    """Learned on one half, counted on the other."""
    above, below = (way.right, way.left) if flipped else (way.left, way.right)
    hits, misses = np.zeros(len(mixtures)), np.zeros(len(mixtures))
    for half in (0, 1):
        masks = _mask(way.fits[number](above[half], below[half]), mixtures, above[half] + below[half])
        hits += masks @ above[1 - half]
        misses += masks @ below[1 - half]
    sizes = [max(int(side[0].sum() + side[1].sum()), 1) for side in (above, below)]
    # One more on the other side: an event never seen there is rare, not impossible.
    p, q = hits / sizes[0], (misses + 1.0) / (sizes[1] + 1.0)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    doubt = _DOUBT_FIXED if len(mixtures) == 1 else _DOUBT_FREE
    predicted = predictor(task, (sizes[0], sizes[1]), n_fresh, doubt)(p, q)[0]
    place = int(np.argmax(predicted))
    value = float(predicted[place])
    return _Candidate(way, number, flipped, float(mixtures[place]), value, float(p[place]), float(q[place]))


def _mask(scores: Floats, mixtures: Floats, seen: NDArray[np.int64]) -> Masks:
    """Which cells each classifier takes for P's, shape (mixtures, cells): at least one seen cell, never all of them."""
    known = np.flatnonzero(seen > 0)
    ranked = known[np.argsort(scores[known], kind="stable")]
    masks = scores > mixtures[:, None]
    if len(ranked):
        masks[:, ranked[-1]] = True
    if len(ranked) > 1:
        masks[:, ranked[0]] = False
    return masks
