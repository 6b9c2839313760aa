"""The best event {log ratio above a level}, known in advance, and what it certifies on all draws."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from benchmarks.families.family import Family
from epsilometer.arrays import Floats
from epsilometer_experiments.sniper.oracle import expected_bound, promise

# Draws per side from which chances are found. Half choose the level, half give its chances.
POPULATION = 200_000
# Log ratios that differ by less are equal but for rounding.
_DECIMALS = 6
# Levels that are tried per direction, in equal steps of ln P(E).
_LEVELS = 4000
# A stream of its own: audits take their seeds from elsewhere.
_STREAM = 31


@dataclass(frozen=True, slots=True)
class BestEvent:
    """The event that promises most.

    Attributes:
        p: its probability on the side that gives it more often.
        q: its probability on the other side.
        bound: the mean bound that it certifies with all draws.
    """

    p: float
    q: float
    bound: float


def best_event(
    family: Family, n: int, failure_probability: float, population: int = POPULATION
) -> BestEvent:
    """The best event of n draws per side, of both directions.

    Outputs of both sides are pooled, so each has the density (P + Q)/2, and an output with log
    ratio r counts 2·expit(r) for P and 2·expit(−r) for Q. Unlike counts of one side, these have a
    small standard error for events that one side hardly ever gives, and none in their ratio.
    """
    rng = np.random.default_rng([_STREAM, zlib.crc32(family.name.encode())])
    choosing, judging = (_pooled_log_ratios(family, population // 2, rng) for _ in range(2))
    candidates = []
    for sign in (1.0, -1.0):
        level, promised = _best_level(sign * choosing, n, failure_probability)
        candidates.append((promised, sign, level))
    _, sign, level = max(candidates)
    is_inside = sign * judging >= level
    p = float(2.0 * np.mean(np.where(is_inside, expit(sign * judging), 0.0)))
    q = float(2.0 * np.mean(np.where(is_inside, expit(-sign * judging), 0.0)))
    # Rounding may leave a sum of chances a little above 1.
    p, q = min(p, 1.0), min(q, 1.0)
    return BestEvent(p, q, expected_bound(p, q, n, failure_probability))


def _pooled_log_ratios(family: Family, n: int, rng: np.random.Generator) -> Floats:
    ratios = [
        family.log_ratio(family.draw(dataset, n, rng))
        for dataset in (family.pair.left, family.pair.right)
    ]
    return np.round(np.concatenate(ratios), _DECIMALS)


def _best_level(log_ratios: Floats, n: int, failure_probability: float) -> tuple[float, float]:
    """The level of the event {log ratio ≥ level} that promises most, and its promise."""
    values, counts = np.unique(log_ratios, return_counts=True)
    values, counts = values[::-1], counts[::-1]
    p = np.cumsum(2.0 * expit(values) * counts) / log_ratios.size
    q = np.cumsum(2.0 * expit(-values) * counts) / log_ratios.size
    steps = np.searchsorted(p, np.geomspace(p[0], p[-1], _LEVELS)).clip(max=p.size - 1)
    kept = np.unique(steps)
    promised = promise(p[kept], q[kept], n, failure_probability)
    best = int(np.argmax(promised))
    return float(values[kept[best]]), float(promised[best])
