"""Method `sequential`: bets on an event against the claim, exact at any stopping time.

Example:
    >>> result = em.audit(em.zoo.dp_mean(), samples=20_000, seed=0, stop_early=True)
    >>> result.is_refuted, result.samples_used[0] < 20_000
    (True, True)
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds import Counts
from epsilometer.bounds.betting import Lines, growth_rate, lines_of, nearest, place_bets
from epsilometer.claims import ZCDP, ApproxDeltaDP, Claim, GaussianDP, RenyiDP, TradeOffDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, CandidateProposal, Method, Task
from epsilometer.methods.events.learning import learn_by_values
from epsilometer.methods.events.tails import Scored, learn_scores
from epsilometer.methods.profile import SIMPLE_RULES, Ranking, rankings, reach_of
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding, Witness

# Candidate events: their share of all training draws.
_MASSES: Floats = np.concatenate([np.geomspace(1e-3, 0.034, 12), np.linspace(0.04, 0.92, 23)])
# Below this many draws per side, halving them to be fair to the candidates costs more than it
# helps.
_ENOUGH_TO_HALVE = 80
# Spreads that are subtracted before candidates are compared. From one end of a line to the other
# there are few candidates; any other order of a line's many bins fits chance (Laplace, claim 0.2 of
# a true 0.4, first 100 draws: the chosen event grows at 0.0017 per pair when all orders count
# alike, at 0.0035 with the simple ones, 0.0069 at best).
_DOUBT_SIMPLE = 0.7
_DOUBT_LINE = 3.0
_DOUBT_ATOMS = 1.0
# Other events are bet on, too, when they promise at least this share of the growth of the best one:
# half of the money on each of two equally good bets in opposite directions grows one and a half
# times as fast as all of it on one.
_SECOND = 0.25
# So many at most, each larger or smaller than the others of its direction by this factor: which
# size is best is learned slowly (svt6, median of 15 runs: 597 draws with one event, 470 with four).
_MOST_STAKES = 4
_APART = 1.6
# The weight of a draw that chose the event in the estimate about it.
_WEIGHT = 0.5
# How large a violation may be before anything is seen of it: normal with a spread of one draw, over
# the root of these.
_PRECISIONS: Floats = np.array([4.0, 30.0, 300.0, 3000.0])


_NOTHING_SEEN = Counts(0, 0)


@dataclass(slots=True)
class Stake:
    """An event that is bet on, with its counts since it was chosen.

    Attributes:
        candidate: the event, with guesses of its probabilities; `predicted` is the cautious growth
            per pair of draws.
        weight: how many draws the guesses are worth.
        left: counts of the left draws since then.
        right: of the right ones.
    """

    candidate: Candidate
    weight: float
    left: Counts = _NOTHING_SEEN
    right: Counts = _NOTHING_SEEN

    @property
    def worth(self) -> float:
        """How many draws the guess is worth by now."""
        return self.weight + self.left.trials

    def estimate(self) -> tuple[float, float]:
        """The event's frequencies under the larger and the other distribution, from earlier draws."""
        above, below = self.candidate.oriented(self.left, self.right)
        hits = (
            self.weight * self.candidate.p + above.hits,
            self.weight * self.candidate.q + below.hits,
        )
        return hits[0] / self.worth, hits[1] / self.worth

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        found = self.candidate
        counts = (self.left.hits, self.left.trials, self.right.hits, self.right.trials)
        chosen = [found.flipped, found.p, found.q, self.weight, found.predicted]
        return {"event": found.event.to_dict(), "chosen": chosen, "counts": list(counts)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Stake":
        """The inverse of `to_dict`."""
        flipped, p, q, weight, rate = data["chosen"]
        found = Candidate(
            Event.from_dict(data["event"]), bool(flipped), float(p), float(q), float(rate)
        )
        counts = [int(count) for count in data["counts"]]
        return cls(found, float(weight), Counts(*counts[:2]), Counts(*counts[2:]))


@dataclass(frozen=True, slots=True)
class _Family:
    """Nested events, one for each of `_MASSES`, with their shares of training draws that did not shape them.

    Attributes:
        flipped: False when the left distribution should be the larger one.
        p: shape (masses,), shares under the larger distribution.
        q: under the other.
        doubt: the spreads that are subtracted before families are compared.
        event: makes the event of a place.
    """

    flipped: bool
    p: Floats
    q: Floats
    doubt: float
    event: Callable[[int], Event]

    @classmethod
    def of_ranking(cls, ranking: Ranking, halved: bool) -> "_Family":
        p, q = ranking.out_of_fold(_MASSES) if halved else ranking.in_sample(_MASSES)
        return cls(ranking.flipped, p, q, _doubt(ranking), partial(_first_cells, ranking))

    @classmethod
    def of_score(cls, scored: Scored, upper: bool) -> "_Family":
        """One end of a score that grows with the left's share."""
        turned = [side if upper else -side for side in (scored.left, scored.right)]
        at = np.quantile(np.concatenate(turned), 1.0 - _MASSES)
        shares = [1.0 - np.searchsorted(np.sort(side), at) / len(side) for side in turned]
        p, q = shares if upper else shares[::-1]
        return cls(not upper, p, q, _DOUBT_SIMPLE, partial(_end_of_score, scored, upper))


def choose(left: Outputs, right: Outputs, lines: Lines) -> list[Stake]:
    """The events with the best cautious growth against the claim: one, or a few of different sizes, the best first."""
    fewest = min(len(left), len(right))
    # Scores are learned from all draws: also from fewer than an event of a fixed size asks for,
    # since a bet that grows slowly at first costs little (svt6: the score of 80 draws grows at half
    # of the best rate).
    orders = rankings([learn_by_values(left, right)])
    scores = [scored for scored in learn_scores(left, right, lines=False) if scored.sums]
    found = [_Family.of_ranking(ranking, fewest >= _ENOUGH_TO_HALVE) for ranking in orders]
    found += [_Family.of_score(scored, upper) for scored in scores for upper in (True, False)]
    # Half a hit and half a miss more: an event never seen is rare, not impossible.
    shares = (
        np.concatenate([family.p for family in found]),
        np.concatenate([family.q for family in found]),
    )
    p, q = ((each * fewest + 0.5) / (fewest + 1.0) for each in shares)
    doubt = np.repeat([family.doubt for family in found], len(_MASSES))
    low = np.clip(p - doubt * np.sqrt(p * (1.0 - p) / fewest), 1e-9, 1.0)
    high = np.clip(q + doubt * np.sqrt(q * (1.0 - q) / fewest), 0.0, 1.0 - 1e-9)
    rates = np.where(low > high, growth_rate(lines, low, high), 0.0)
    flipped = np.repeat([family.flipped for family in found], len(_MASSES))
    # Where no bet grows, the widest gap is the best start.
    merit = rates if rates.max() > 0.0 else low - high
    kept: list[int] = []
    while len(kept) < _MOST_STAKES:
        place = int(np.argmax(merit))
        if kept and merit[place] <= max(_SECOND * rates[kept[0]], 0.0):
            break
        kept.append(place)
        alike = (p + q < _APART * (p + q)[place]) & ((p + q)[place] < _APART * (p + q))
        merit = np.where(alike & (flipped == flipped[place]), -np.inf, merit)
    stakes = []
    for place in kept:
        family = found[place // len(_MASSES)]
        guess = (float(p[place]), float(q[place]), float(rates[place]))
        candidate = Candidate(family.event(place % len(_MASSES)), family.flipped, *guess)
        stakes.append(Stake(candidate, _WEIGHT * fewest))
    return stakes


def guesses(stakes: list[Stake], lines: Lines) -> tuple[Floats, Floats]:
    """What to bet on: the probabilities of each event, of its violation only as much as is believed.

    A violation is seen as z spreads of n draws. If it was drawn from a normal distribution of known
    spread around the claim, its mean given z is a known part of it; the spreads of `_PRECISIONS`
    are mixed by how likely each makes z.
    """
    p, q = np.array([stake.estimate() for stake in stakes]).T
    n = np.array([stake.worth for stake in stakes])[:, None]
    p0, q0, rates = nearest(lines, p, q)
    doubted = _PRECISIONS / (n + _PRECISIONS)
    weights = np.sqrt(doubted) * np.exp(-n * rates[:, None] * doubted)
    believed = 1.0 - (weights * doubted).sum(axis=1) / weights.sum(axis=1)
    return p0 + believed * (p - p0), q0 + believed * (q - q0)


def _doubt(ranking: Ranking) -> float:
    if ranking.rule in SIMPLE_RULES:
        return _DOUBT_SIMPLE
    layout = ranking.layout
    if len(layout.bins) != 1 or layout.n_scores:
        return _DOUBT_ATOMS
    # Between repeated values there are bins, too, which stay empty.
    return _DOUBT_LINE if np.count_nonzero(ranking.pooled[layout.bins[0]]) > 4 else _DOUBT_ATOMS


def _first_cells(ranking: Ranking, place: int) -> Event:
    pooled = ranking.pooled
    last = int(reach_of(ranking.order, pooled, _MASSES[place : place + 1])[0])
    chosen = np.zeros(len(ranking.order), dtype=np.bool_)
    chosen[ranking.order[: last + 1]] = True
    # Cells without a training draw stay outside: nothing is known about them.
    return Event(ranking.partition, chosen & (pooled > 0)).simplified()


def _end_of_score(scored: Scored, upper: bool, place: int) -> Event:
    return scored.end(float(_MASSES[place]), upper).simplified()


@dataclass(frozen=True, slots=True)
class Ladder:
    """Values to bet against, ascending, fixed before any draw.

    Attributes:
        values: shape (k,); one of them is just above the claim.
        lines: what each of them allows.
        at_claim: the place of the value just above the claim.
    """

    values: Floats
    lines: Lines
    at_claim: int

    def claim_lines(self) -> Lines:
        """The lines of the value just above the claim, as those of a single claim."""
        here = slice(self.at_claim, self.at_claim + 1)
        return Lines(self.lines.slopes[here], self.lines.shifts[here])

    def bound(self, best_log_wealth: Floats, failure_probability: float) -> float:
        """The largest value up to which all bets won.

        The claims grow with the value. If the truth lies below the bound, then the bet against the
        first value at or above the truth won, although that value's claim holds: an event of
        probability ≤ failure_probability.

        Args:
            best_log_wealth: shape (k,), the largest log-wealth of each bet so far.
        """
        # Not the same as "less than": a wealth that is not a number has won nothing.
        kept = np.flatnonzero(~(best_log_wealth >= -math.log(failure_probability)))
        refuted = len(self.values) if not len(kept) else int(kept[0])
        return float(self.values[refuted - 1]) if refuted else 0.0

    def p_value(self, best_log_wealth: Floats) -> float:
        """One over the least wealth that was reached against the values up to the claim, at most 1.

        The claim's own value, or rather the one just above it, is among them. If the claim holds,
        that wealth reaches 1/t at some time with probability at most t, for every t; so the p-value
        may be looked at any time.
        """
        least = float(np.min(best_log_wealth[: self.at_claim + 1]))
        return math.exp(-min(least, _MOST_LOG_WEALTH)) if least > 0.0 else 1.0


# Its inverse is still a float above 0.
_MOST_LOG_WEALTH = 660.0


@lru_cache(maxsize=64)
def ladder_of(claim: Claim) -> Ladder:
    """The ladder for a claim."""
    just_above = _just_above(claim)
    values = np.unique(np.append(_grid(claim), just_above))
    lines = lines_of(tuple(claim.with_value(float(value)) for value in values))
    return Ladder(values, lines, int(np.searchsorted(values, just_above)))


def _just_above(claim: Claim) -> float:
    """The least value that is bet against to refute the claim itself; a finite one that the notion has."""
    value = claim.value * (1.0 + 1e-9) + 1e-12
    if isinstance(claim, ApproxDeltaDP):
        # There is no δ of 1. A claim that close to it cannot be refuted.
        return min(value, math.nextafter(1.0, 0.0))
    return min(value, sys.float_info.max)


def _grid(claim: Claim) -> Floats:
    """Fine enough that rounding a bound down to the grid costs less than chance does."""
    if isinstance(claim, ApproxDeltaDP | TradeOffDP):
        return np.concatenate([[0.0], np.geomspace(1e-5, 0.95, 60)])
    if isinstance(claim, GaussianDP):
        return np.concatenate([np.linspace(0.0, 2.0, 41), np.linspace(2.1, 6.0, 40)])
    if isinstance(claim, RenyiDP | ZCDP):  # their curves are slow to compute, so there are fewer
        return np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 36)])
    return np.concatenate(
        [np.linspace(0.0, 2.0, 81), np.linspace(2.1, 6.0, 40), np.linspace(6.25, 14.0, 32)]
    )


@dataclass(frozen=True, slots=True)
class Options:
    """How a sequential audit runs.

    Attributes:
        pilot: draws per side that only choose the first event; None takes a quarter of the samples,
            40 at most.
        growth: each batch is this share of all draws so far, at least one pair. Larger runs faster
            but stops later.
        max_seconds: a time limit, also in the middle of a call; None for none.
        checkpoint: a file that is kept up to date, from which an interrupted run resumes.
    """

    pilot: int | None = None
    growth: float = 0.05
    max_seconds: float | None = None
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        pilot = 5 if self.pilot is None else self.pilot
        if isinstance(pilot, bool) or not isinstance(pilot, int) or pilot < 5:
            raise InputError(f"pilot={self.pilot!r} must be a whole number of at least 5, or None")
        if not 0.0 < self.growth <= 1.0:
            raise InputError(f"growth={self.growth!r} must be above 0 and at most 1, e.g. 0.05")
        if self.max_seconds is not None and not self.max_seconds > 0.0:
            raise InputError(
                f"max_seconds={self.max_seconds!r} must be above 0, or None for no limit"
            )


@dataclass(frozen=True, slots=True)
class SequentialProposal(CandidateProposal):
    """A bet on an event, of whose probabilities the candidate has guesses."""

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """The values against which the bet won."""
        above, below = self.candidate.oriented(left, right)
        ladder = ladder_of(self.task.claim)
        bets = place_bets(
            ladder.lines, self.candidate.p, self.candidate.q, above.trials, below.trials
        )
        bound = ladder.bound(bets.log_wealth(above, below), failure_probability)
        witness = Witness.of(
            pair, self.event, self.candidate.flipped, left, right, failure_probability
        )
        return Finding(
            "sequential", bound, "exact", 1.0 - failure_probability, witness, self.task.claim
        )

    def p_value(self, left: Counts, right: Counts, failure_probability: float) -> float | None:
        """One over the wealth of the bet."""
        above, below = self.candidate.oriented(left, right)
        ladder = ladder_of(self.task.claim)
        bets = place_bets(
            ladder.lines, self.candidate.p, self.candidate.q, above.trials, below.trials
        )
        return ladder.p_value(bets.log_wealth(above, below))


class SequentialMethod(Method):
    """Bets against the claim on fresh draws and stops as soon as it is refuted."""

    name = "sequential"
    summary = "bets on an event that may stop at any time: for mechanisms that take long, from 20 samples on"
    guarantee = "exact"
    # An audit by this method has its own loop.
    stops_early = True

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100} must be epsilometer.sequential.Options")
        self.options = options or Options()

    def propose(self, left: Outputs, right: Outputs, task: Task) -> SequentialProposal:
        """The event whose bet should grow fastest."""
        found = choose(left, right, ladder_of(task.claim).claim_lines())[0].candidate
        predicted = task.claim.least_value(found.p, found.q) if found.p > found.q else 0.0
        return SequentialProposal(replace(found, predicted=predicted), task)
