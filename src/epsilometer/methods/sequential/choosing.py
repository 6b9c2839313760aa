"""Chooses the event whose bets should grow fastest, from draws that will not be bet on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds.betting import Lines, growth_rate
from epsilometer.methods.nested import SIMPLE_RULES, Ranking, rankings, reach_of
from epsilometer.outputs import Event, Outputs

Floats = NDArray[np.float64]

# Candidate events: their share of all training draws.
_MASSES: Floats = np.concatenate([[1e-3, 2e-3, 5e-3, 0.01, 0.02], np.linspace(0.04, 0.92, 23)])
# Below so many draws per side, halving them to be fair to the candidates costs more than it helps.
_ENOUGH_TO_HALVE = 80
# Spreads that are given away before candidates are compared. From one end of a line to the other there are few
# candidates; any other order of a line's many bins fits chance (Laplace, claim 0.2 of a true 0.4, first 100 draws: the
# chosen event grows at 0.0017 per pair when all orders count alike, at 0.0035 with the simple ones, 0.0069 at best).
_DOUBT_SIMPLE, _DOUBT_LINE, _DOUBT_ATOMS = 0.7, 3.0, 1.0
# The other direction is bet on, too, when it promises at least this share of the growth of the better one: half of the
# money on each of two equally good bets grows half as fast again as all of it on one.
_SECOND = 0.25
# What a draw that chose the event is worth in the guess about it.
_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Chosen:
    """An event with what the draws that chose it say.

    Attributes:
        event: the set of outputs.
        flipped: False when the left law makes it likelier.
        p: its probability under the larger law, a guess.
        q: under the other.
        weight: how many draws the guess is worth.
        rate: the cautious growth per pair of draws.
    """

    event: Event
    flipped: bool
    p: float
    q: float
    weight: float
    rate: float


def choose(left: Outputs, right: Outputs, lines: Lines) -> list[Chosen]:
    """The events with the best cautious growth against the claim: one, or one for each direction, the better first."""
    fewest = min(len(left), len(right))
    halved = fewest >= _ENOUGH_TO_HALVE
    found = rankings(left, right)
    shares = [ranking.out_of_fold(_MASSES) if halved else ranking.in_sample(_MASSES) for ranking in found]
    p, q = (smoothed(np.concatenate([pair[side] for pair in shares]), fewest) for side in (0, 1))
    low, high = moved_together(p, q, fewest, np.repeat([_doubt(ranking) for ranking in found], len(_MASSES)))
    rates = np.where(low > high, growth_rate(lines, low, high), 0.0)
    flipped = np.repeat([ranking.flipped for ranking in found], len(_MASSES))
    # Where no bet grows, the widest gap is the best start.
    merit = rates if rates.max() > 0.0 else low - high
    best = [int(np.argmax(np.where(flipped == direction, merit, -np.inf))) for direction in (False, True)]
    best.sort(key=lambda place: -merit[place])
    kept = [place for place in best if place == best[0] or rates[place] > _SECOND * rates[best[0]]]
    return [_chosen(found, place, p[place], q[place], fewest, float(rates[place])) for place in kept]


def _chosen(found: list[Ranking], place: int, p: float, q: float, fewest: int, rate: float) -> Chosen:
    ranking, mass = found[place // len(_MASSES)], float(_MASSES[place % len(_MASSES)])
    # The best of many looks better than it is: the guess starts in the cautious place, and weighs half.
    low, high = moved_together(np.array([p]), np.array([q]), fewest, np.array([_DOUBT_SIMPLE]))
    guess = max(float(low[0]), float(high[0])), float(high[0])
    return Chosen(_event(ranking, mass), ranking.flipped, *guess, _WEIGHT * fewest, rate)


def moved_together(p: Floats, q: Floats, n: float, doubt: Floats) -> tuple[Floats, Floats]:
    """Both probabilities moved towards each other by so many spreads of n draws."""
    low = p - doubt * np.sqrt(p * (1.0 - p) / n)
    high = q + doubt * np.sqrt(q * (1.0 - q) / n)
    return np.clip(low, 1e-9, 1.0), np.clip(high, 0.0, 1.0 - 1e-9)


def cautious_rate(lines: Lines, p: float, q: float, n: float) -> float:
    """The growth of one event after its probabilities were moved together by what n draws leave open."""
    low, high = moved_together(np.array([p]), np.array([q]), n, np.array([_DOUBT_SIMPLE]))
    return float(growth_rate(lines, low, high)[0]) if low[0] > high[0] else 0.0


def _doubt(ranking: Ranking) -> float:
    if ranking.rule in SIMPLE_RULES:
        return _DOUBT_SIMPLE
    return _DOUBT_LINE if ranking.cut.layout.is_one_line and len(ranking.cut.layout.bins[0]) > 4 else _DOUBT_ATOMS


def smoothed(share: Floats, n: int) -> Floats:
    """The share with half a hit and half a miss more: an event never seen is rare, not impossible."""
    return (share * n + 0.5) / (n + 1.0)


def _event(ranking: Ranking, mass: float) -> Event:
    pooled = np.asarray(sum(ranking.counts(half)[side] for half in (0, 1) for side in (0, 1)))
    last = int(reach_of(ranking.order, pooled, np.array([mass]))[0])
    chosen = np.zeros(len(ranking.order), dtype=np.bool_)
    chosen[ranking.order[: last + 1]] = True
    # Cells without a training draw stay outside: nothing is known about them.
    return Event(ranking.cut.partition, chosen & (pooled > 0)).simplified()
