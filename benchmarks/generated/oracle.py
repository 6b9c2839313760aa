"""What no learner can beat on average: the best event {log-likelihood ratio ≥ t}, known in advance, certified on all draws.

Its probabilities come from a large sample of exact log-likelihood ratios of both sides. In the half-and-half mixture of the
sides an output of log-ratio l is from the left with probability 1/(1 + exp(−l)), so every draw, whatever its side, says
something about both probabilities of an event, and events that are rare on one side are known as well as on the other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from scipy.special import expit

from benchmarks.generated.families import Family
from benchmarks.generated.grammar import Generated
from epsilometer.arrays import Floats
from epsilometer.bounds import Counts, certified_value, lower, upper
from epsilometer.claims import Claim, PureDP
from epsilometer_experiments.sniper.oracle import counts_with_weights, expected_bound, promise

CONFIDENCE = 0.95
# Draws of both sides together, all of which tell about both probabilities of an event; and of one side at once.
POPULATION = 1_000_000
_CHUNK = 100_000
# Stream of the population, apart from those of audits.
_ORACLE_STREAM = 32
# A log-ratio beyond this is as good as an infinite one.
CERTAIN = 1000.0
# Log-ratios that differ by rounding only are one.
_DIGITS = 9
# Events per direction whose bounds are forecast.
_EVENTS = 2000
# The other direction is computed if its forecast is above this share of the first one's bound.
_BEHIND = 0.9
# Oracles are kept between runs: they depend on the grammar only.
CACHE = Path("benchmarks/out/generated-oracles.json")


@dataclass(frozen=True)
class Oracle:
    """The best event of a mechanism at a number of draws.

    Attributes:
        bound: its mean certified bound, with all draws for the proof.
        p: its probability on the side where it is more likely.
        q: its probability on the other side.
        threshold: of the log-likelihood ratio, more likely side over the other.
        direction: "left" or "right", the side where it is more likely.
    """

    bound: float
    p: float
    q: float
    threshold: float
    direction: str


@dataclass(frozen=True)
class Events:
    """Threshold events of one direction: their probabilities and thresholds, each of shape (k,)."""

    p: Floats
    q: Floats
    thresholds: Floats
    direction: str


def threshold_events(
    mechanism: Generated | Family, population: int = POPULATION
) -> tuple[Events, Events]:
    """Returns the threshold events of both directions, from a sample of exact log-likelihood ratios."""
    ratios = []
    chunks = max(1, population // (2 * _CHUNK))
    for chunk in range(chunks):
        for side in (0, 1):
            key = (_ORACLE_STREAM, side, chunk)
            rng = np.random.default_rng(np.random.SeedSequence(mechanism.seed, spawn_key=key))
            n = min(_CHUNK, population // 2)
            drawn = mechanism.draw_log_ratios(side, n, rng)
            ratios.append(np.round(np.clip(drawn, -CERTAIN, CERTAIN), _DIGITS))
    pooled = np.concatenate(ratios)
    return _one_direction(pooled, "left"), _one_direction(-pooled, "right")


def _one_direction(ratios: Floats, direction: str) -> Events:
    """The events {ratio ≥ t}, most likely ratios first."""
    thresholds, counts = np.unique(ratios, return_counts=True)
    thresholds, counts = thresholds[::-1], counts[::-1]
    shares = 2.0 * counts / len(ratios)
    p, q = np.cumsum(shares * expit(thresholds)), np.cumsum(shares * expit(-thresholds))
    # Both sums would be 1 but for the luck of the draws.
    p, q = p / p[-1], q / q[-1]
    levels = np.geomspace(max(p[0], 1e-9), 1.0, _EVENTS)
    kept = np.unique(np.searchsorted(p, levels).clip(max=len(p) - 1))
    return Events(p[kept], q[kept], thresholds[kept], direction)


def find_oracle(mechanism: Generated | Family, n: int, population: int = POPULATION) -> Oracle:
    """Returns the best event with n draws per side."""
    failure = round(1.0 - CONFIDENCE, 12)
    best = Oracle(bound=0.0, p=0.0, q=0.0, threshold=0.0, direction="left")
    for events in threshold_events(mechanism, population):
        forecast = _forecast(mechanism.claim, events, n, failure)
        place = int(np.argmax(forecast))
        # The forecast is good to a few per cent: what is further behind need not be computed.
        if forecast[place] <= _BEHIND * best.bound:
            continue
        p, q = float(events.p[place]), float(events.q[place])
        bound = mean_bound(mechanism.claim, p, q, n, failure)
        if bound > best.bound:
            best = Oracle(bound, p, q, float(events.thresholds[place]), events.direction)
    return best


def _forecast(claim: Claim, events: Events, n: int, failure: float) -> Floats:
    """Nearly the bounds that events promise, of shape (k,); −inf for events that promise nothing."""
    # An event that is certain on n draws is no better than one that fails once.
    p = np.minimum(events.p, 1.0 - 1.0 / n)
    q = np.minimum(events.q, p)
    if isinstance(claim, PureDP):
        return promise(p, q, n, failure)
    p_lower = np.array([lower(Counts(round(n * x), n), 0.5 * failure) for x in p])
    q_upper = np.array([upper(Counts(round(n * x), n), 0.5 * failure) for x in q])
    values = claim.least_values(p_lower, np.minimum(q_upper, 1.0))
    return np.where(p_lower > q_upper, values, -np.inf)


def mean_bound(claim: Claim, p: float, q: float, n: int, failure: float) -> float:
    """Returns the mean bound that the project's certificate gives for an event, with n draws per side."""
    if isinstance(claim, PureDP):
        return expected_bound(p, q, n, failure)
    left, right = counts_with_weights(p, n), counts_with_weights(q, n)
    return sum(
        left_weight
        * right_weight
        * certified_value(claim, Counts(x, n), Counts(y, n), failure, expected=(p, q))
        for x, left_weight in left
        for y, right_weight in right
    )


# Files that no oracle depends on.
_OTHERS = ("__init__.py", "__main__.py", "families.py", "measuring.py", "table.py")


@cache
def _digest() -> str:
    """Identifies the code that oracles depend on."""
    here = Path(__file__).parent
    parts = [path.read_bytes() for path in sorted(here.glob("*.py")) if path.name not in _OTHERS]
    return sha256(b"\0".join(parts)).hexdigest()[:16]


def stored_oracles(path: Path = CACHE) -> dict[str, float]:
    """Returns bounds of oracles that were found before with the same code, by `oracle_key`."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(stored["bounds"]) if stored.get("digest") == _digest() else {}


def store_oracles(bounds: dict[str, float], path: Path = CACHE) -> None:
    """Keeps them, beside those that another run has stored meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"digest": _digest(), "bounds": stored_oracles(path) | bounds}
    path.write_text(json.dumps(content), encoding="utf-8")


def oracle_key(seed: int, n: int, population: int) -> str:
    """Returns the name of an oracle in the store."""
    return f"{seed} at {n} by {population}"
