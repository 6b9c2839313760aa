"""Method `sequential`: bets on an event against the claim, exact at any stopping time.

Example:
    >>> result = em.audit(em.zoo.dp_mean(), samples=20_000, seed=0, stop_early=True)
    >>> result.is_refuted, result.samples_used[0] < 20_000
    (True, True)
"""

import math
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds import Counts
from epsilometer.bounds.betting import growth_rate, nearest, place_bets
from epsilometer.bounds.supporting_lines import Lines, lines_of
from epsilometer.claims import ZCDP, ApproxDeltaDP, Claim, GaussianDP, RenyiDP, TradeOffDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, CandidateProposal, Method, Task
from epsilometer.methods.comparison import nothing
from epsilometer.methods.forecast import selection_penalty
from epsilometer.methods.nested import nested_events
from epsilometer.methods.scores import learn_scores
from epsilometer.namespaces import namespace
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.preparing import prepare
from epsilometer.result import Finding

__all__ = ["Options", "SequentialMethod", "SequentialProposal", "Stake"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)

# --- Which events to bet on ---

# Sizes of the candidate events, as fractions of all training draws.
_MASSES: Floats = np.concatenate([np.geomspace(1e-3, 0.034, 12), np.linspace(0.04, 0.92, 23)])
# Further events are bet on when their growth is at least this fraction of the best one's: half of
# the wealth on each of two equally good bets in opposite directions grows one and a half times as
# fast as all of it on one.
_LEAST_RELATIVE_GROWTH = 0.25
# Most events that are bet on: which size is best is learned slowly (svt6, median of 15 runs: 597
# draws with one event, 470 with four).
_MOST_STAKES = 4
# Events of the same direction differ in size by at least this factor.
_SIZE_RATIO = 1.6
# The weight of a draw that chose the event in the estimate of its probabilities.
WEIGHT_OF_TRAINING_DRAW = 0.5

_NO_COUNTS = Counts(0, 0)


@dataclass(slots=True)
class Stake:
    """An event that is bet on, with its counts since it was chosen.

    Attributes:
        candidate: the event, with estimates of its probabilities; `predicted` is the penalised
            growth per pair of draws.
        weight: how many draws the estimates count for.
        left: counts of the left draws since then.
        right: counts of the right draws since then.
    """

    candidate: Candidate
    weight: float
    left: Counts = _NO_COUNTS
    right: Counts = _NO_COUNTS

    @property
    def worth(self) -> float:
        """How many draws the estimates count for by now."""
        return self.weight + self.left.trials

    def estimate(self) -> tuple[float, float]:
        """The event's probabilities under the larger and the other distribution, so far."""
        above, below = self.candidate.oriented(self.left, self.right)
        hits_above = self.weight * self.candidate.p + above.hits
        hits_below = self.weight * self.candidate.q + below.hits
        return hits_above / self.worth, hits_below / self.worth

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        candidate = self.candidate
        return {
            "event": candidate.event.to_dict(),
            "chosen": [
                candidate.flipped,
                candidate.p,
                candidate.q,
                self.weight,
                candidate.predicted,
            ],
            "counts": [
                self.left.hits,
                self.left.trials,
                self.right.hits,
                self.right.trials,
            ],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Stake":
        """The inverse of `to_dict`."""
        flipped, p, q, weight, predicted = data["chosen"]
        left_hits, left_trials, right_hits, right_trials = data["counts"]
        candidate = Candidate(
            event=Event.from_dict(data["event"]),
            flipped=bool(flipped),
            p=float(p),
            q=float(q),
            predicted=float(predicted),
        )
        return cls(
            candidate=candidate,
            weight=float(weight),
            left=Counts(int(left_hits), int(left_trials)),
            right=Counts(int(right_hits), int(right_trials)),
        )


def choose(left: Outputs, right: Outputs, lines: Lines) -> list[Stake]:
    """Chooses the events whose bets against the claim should grow fastest.

    Args:
        left: training outputs.
        right: training outputs.
        lines: what the claim allows.

    Returns:
        One event, or a few of different sizes or directions; the best comes first.
    """
    n_draws = min(len(left), len(right))
    prepared = prepare(left, right)
    scores = learn_scores(prepared.left, prepared.right)
    families = nested_events(scores, _MASSES)
    if not families:
        return [Stake(nothing(), weight=WEIGHT_OF_TRAINING_DRAW * n_draws)]
    # Half a hit and half a miss more: an event that never occurred is rare, not impossible.
    p = (np.concatenate([family.p for family in families]) * n_draws + 0.5) / (n_draws + 1.0)
    q = (np.concatenate([family.q for family in families]) * n_draws + 0.5) / (n_draws + 1.0)
    flipped = np.repeat([family.flipped for family in families], len(_MASSES))

    def penalised(n_candidates: int) -> tuple[Floats, Floats]:
        """The probabilities less what the best of some candidates owes to chance."""
        penalty = selection_penalty(n_candidates)
        low = np.clip(p - penalty * np.sqrt(p * (1.0 - p) / n_draws), 1e-9, 1.0)
        high = np.clip(q + penalty * np.sqrt(q * (1.0 - q) / n_draws), 0.0, 1.0 - 1e-9)
        return low, high

    low, high = penalised(sum(score.n_tails * score.n_rivals for score in scores))
    rates = np.where(low > high, growth_rate(lines, low, high), 0.0)
    merit = rates
    if merit.max() <= 0.0:
        # No bet is sure to grow. The next best is one that grows as the best of its own score.
        own_low, own_high = penalised(min(score.n_tails for score in scores))
        merit = np.where(own_low > own_high, growth_rate(lines, own_low, own_high), 0.0)
    if merit.max() <= 0.0:
        # Nothing seems to be violated: the widest gap is nearest to it.
        merit = low - high
    least_merit = max(_LEAST_RELATIVE_GROWTH * merit.max(), 0.0)
    size = p + q
    chosen: list[int] = []
    while len(chosen) < _MOST_STAKES:
        place = int(np.argmax(merit))
        if chosen and merit[place] <= least_merit:
            break
        chosen.append(place)
        # Events of the same direction and a similar size are no longer candidates.
        is_similar = (size < _SIZE_RATIO * size[place]) & (size[place] < _SIZE_RATIO * size)
        merit = np.where(is_similar & (flipped == flipped[place]), -np.inf, merit)
    stakes = []
    for place in chosen:
        family = families[place // len(_MASSES)]
        candidate = Candidate(
            event=prepared.of_raw_outputs(family.event(place % len(_MASSES))),
            flipped=family.flipped,
            p=float(p[place]),
            q=float(q[place]),
            predicted=float(rates[place]),
        )
        stakes.append(Stake(candidate, weight=WEIGHT_OF_TRAINING_DRAW * n_draws))
    return stakes


# --- How much to bet ---

# Prior precisions of a violation, in draws: before any draw it is normal around the claim with the
# standard error of so many draws.
_PRECISIONS: Floats = np.array([4.0, 30.0, 300.0, 3000.0])


def guesses(stakes: list[Stake], lines: Lines) -> tuple[Floats, Floats]:
    """The probabilities to bet on: estimates that are shrunk towards the claim.

    A violation is observed as z standard errors of n draws. If it has a normal prior of known
    variance around the claim, its posterior mean is a known fraction of the observed one; the
    fractions for all `_PRECISIONS` are averaged by how likely each makes z.

    Args:
        stakes: the events with their counts.
        lines: what the claim allows.

    Returns:
        Under the larger distribution and under the other, shape (stakes,) each.
    """
    p, q = np.array([stake.estimate() for stake in stakes]).T
    n = np.array([stake.worth for stake in stakes])[:, None]
    p_allowed, q_allowed, rates = nearest(lines, p, q)
    shrinkage = _PRECISIONS / (n + _PRECISIONS)
    weights = np.sqrt(shrinkage) * np.exp(-n * rates[:, None] * shrinkage)
    believed = 1.0 - (weights * shrinkage).sum(axis=1) / weights.sum(axis=1)
    return p_allowed + believed * (p - p_allowed), q_allowed + believed * (q - q_allowed)


# --- The values to bet against ---

# Largest log-wealth that is turned into a p-value: its inverse is still a float above 0.
_MOST_LOG_WEALTH = 660.0


@dataclass(frozen=True, slots=True)
class Ladder:
    """Values to bet against, ascending, fixed before any draw.

    Attributes:
        values: shape (k,); one of them is just above the claim.
        lines: what each of them allows.
        at_claim: the place in `values` of the value just above the claim.
    """

    values: Floats
    lines: Lines
    at_claim: int

    def claim_lines(self) -> Lines:
        """The lines of the value just above the claim alone."""
        only_claim = slice(self.at_claim, self.at_claim + 1)
        return Lines(self.lines.slopes[only_claim], self.lines.shifts[only_claim])

    def bound(self, best_log_wealth: Floats, failure_probability: float) -> float:
        """The largest value up to which all bets won.

        Guarantee: the claims grow with the value. If the truth lies below the bound, then the bet
            against the first value at or above the truth won, although that value's claim holds:
            an event of probability ≤ failure_probability.

        Args:
            best_log_wealth: shape (k,), the largest log-wealth of each bet so far.
            failure_probability: of the bound.
        """
        # Not the same as "less than": a wealth that is not a number has won nothing.
        has_won = best_log_wealth >= -math.log(failure_probability)
        not_refuted = np.flatnonzero(~has_won)
        n_refuted = int(not_refuted[0]) if len(not_refuted) else len(self.values)
        return float(self.values[n_refuted - 1]) if n_refuted else 0.0

    def p_value(self, best_log_wealth: Floats) -> float:
        """The inverse of the least wealth reached against the values up to the claim, at most 1.

        Guarantee: the value just above the claim is among them. If the claim holds, the wealth
            against it ever reaches 1/t with probability at most t, for every t; so the p-value is
            valid at any time.

        Args:
            best_log_wealth: shape (k,), the largest log-wealth of each bet so far.
        """
        least = float(np.min(best_log_wealth[: self.at_claim + 1]))
        return math.exp(-min(least, _MOST_LOG_WEALTH)) if least > 0.0 else 1.0


@lru_cache(maxsize=64)
def ladder_of(claim: Claim) -> Ladder:
    """Makes the ladder for a claim."""
    just_above = _just_above(claim)
    values = np.unique(np.append(_grid(claim), just_above))
    lines = lines_of(tuple(claim.with_value(float(value)) for value in values))
    return Ladder(
        values=values,
        lines=lines,
        at_claim=int(np.searchsorted(values, just_above)),
    )


def _just_above(claim: Claim) -> float:
    """The value that is bet against to refute the claim: finite, and valid for the notion."""
    value = claim.value * (1.0 + 1e-9) + 1e-12
    if isinstance(claim, ApproxDeltaDP):
        # There is no δ of 1. A claim that close to it cannot be refuted.
        return min(value, math.nextafter(1.0, 0.0))
    return min(value, sys.float_info.max)


def _grid(claim: Claim) -> Floats:
    """Values so dense that rounding a bound down to one of them costs less than chance does."""
    if isinstance(claim, ApproxDeltaDP | TradeOffDP):
        return np.concatenate([[0.0], np.geomspace(1e-5, 0.95, 60)])
    if isinstance(claim, GaussianDP):
        return np.concatenate([np.linspace(0.0, 2.0, 41), np.linspace(2.1, 6.0, 40)])
    if isinstance(claim, RenyiDP | ZCDP):
        # Their curves are slow to compute, so there are fewer values.
        return np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 36)])
    return np.concatenate(
        [np.linspace(0.0, 2.0, 81), np.linspace(2.1, 6.0, 40), np.linspace(6.25, 14.0, 32)]
    )


# --- The method ---

# Fewest draws per side that can choose the first event.
_LEAST_PILOT = 5
# A pilot of this many draws per side finds an event that is good enough to start with. Half of it
# would be enough, but batches of single draws would follow, in which a generator with a frozen seed
# looks like a leak without noise.
_PILOT = 40
# Of small audits the pilot takes one draw of so many.
_SAMPLES_PER_PILOT_DRAW = 4


@dataclass(frozen=True, slots=True)
class Options:
    """How a sequential audit runs.

    Attributes:
        pilot: draws per side that only choose the first event; None takes a quarter of the samples,
            40 at most.
        growth: each batch is this fraction of all draws so far, at least one pair. A larger one
            runs faster but stops later.
        max_seconds: a time limit, also in the middle of a call; None for none.
        checkpoint: a file that is kept up to date, from which an interrupted run resumes.
    """

    pilot: int | None = None
    growth: float = 0.05
    max_seconds: float | None = None
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        pilot = _LEAST_PILOT if self.pilot is None else self.pilot
        if isinstance(pilot, bool) or not isinstance(pilot, int) or pilot < _LEAST_PILOT:
            raise InputError(f"pilot={self.pilot!r} must be a whole number of at least 5, or None")
        if not 0.0 < self.growth <= 1.0:
            raise InputError(f"growth={self.growth!r} must be above 0 and at most 1, e.g. 0.05")
        if self.max_seconds is not None and not self.max_seconds > 0.0:
            raise InputError(
                f"max_seconds={self.max_seconds!r} must be above 0, or None for no limit"
            )

    def pilot_size(self, samples: int) -> int:
        """Draws per side that only choose the first event, in an audit of so many."""
        if self.pilot is not None:
            return self.pilot
        return max(_LEAST_PILOT, min(_PILOT, samples // _SAMPLES_PER_PILOT_DRAW))


@dataclass(frozen=True, slots=True)
class SequentialProposal(CandidateProposal):
    """A bet on an event; the candidate holds the estimates of its probabilities."""

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the values against which the bet won."""
        ladder = ladder_of(self.task.claim)
        bound = ladder.bound(self._log_wealth(left, right), failure_probability)
        return self.finding(
            left, right, pair, failure_probability, method="sequential", lower_bound=bound
        )

    def p_value(self, left: Counts, right: Counts, failure_probability: float) -> float | None:
        """The inverse of the wealth of the bet."""
        return ladder_of(self.task.claim).p_value(self._log_wealth(left, right))

    def _log_wealth(self, left: Counts, right: Counts) -> Floats:
        """The log-wealth of the bet against each value of the ladder, shape (k,)."""
        above, below = self.candidate.oriented(left, right)
        lines = ladder_of(self.task.claim).lines
        bets = place_bets(lines, self.candidate.p, self.candidate.q, above.trials, below.trials)
        return bets.log_wealth(above, below)


class SequentialMethod(Method):
    """Bets against the claim on fresh draws and stops as soon as it is refuted."""

    name = "sequential"
    summary = (
        "bets on an event that may stop at any time: for mechanisms that take long, from 20 "
        "samples on"
    )
    guarantee = "exact"
    # The audit has a loop of its own for this method.
    stops_early = True

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100} must be epsilometer.sequential.Options")
        self.options = options or Options()

    def propose(self, left: Outputs, right: Outputs, task: Task) -> SequentialProposal:
        """Proposes the event whose bet should grow fastest."""
        stakes = choose(left, right, ladder_of(task.claim).claim_lines())
        candidate = stakes[0].candidate
        predicted = 0.0
        if candidate.p > candidate.q:
            predicted = task.claim.least_value(candidate.p, candidate.q)
        return SequentialProposal(replace(candidate, predicted=predicted), task)
