"""The published bound on the hockey-stick divergence: (1 + e^ε)·(accuracy − γ) − e^ε on a sample of the mixture.

Reference: DP-Auditorium, Algorithm 5 and Propositions 4.11, 4.12 (γ = √(ln(1/β)/2m), Hoeffding).
"""

from __future__ import annotations

import math

import numpy as np

from epsilometer.bounds import Counts

# The sizes of the mixture's two parts are random; with so many spreads to spare they hardly ever exceed the draws.
_SPARE = 6.5
# Which draws make up the mixture must not depend on them, so its generator has a seed of its own.
_SEED = 20_230_715


def mixture_size(n_above: int, n_below: int, epsilon: float) -> int:
    """The largest sample of the mixture for which these draws practically always suffice."""
    share = 1.0 / (1.0 + math.exp(min(epsilon, 700.0)))
    rooms = [max(n - _SPARE * math.sqrt(n), 0.0) / part for n, part in ((n_above, share), (n_below, 1.0 - share))]
    return int(min(rooms))


def published_excess(above: Counts, below: Counts, epsilon: float, failure_probability: float) -> float:
    """The published lower bound on P(E) − e^ε·Q(E); may be negative.

    Args:
        above: counts of the event under P.
        below: under Q.
        epsilon: of the mixture.
        failure_probability: β.

    Guarantee: exact, if the event was fixed before the draws: independent draws are exchangeable, so a random part of
        them is a sample of the mixture, and Hoeffding's inequality holds for every size. Looser than the exact test.
    """
    grow = math.exp(min(epsilon, 700.0))
    m = mixture_size(above.trials, below.trials, epsilon)
    rng = np.random.default_rng(_SEED)
    from_above = int(rng.binomial(m, 1.0 / (1.0 + grow)))
    if m < 1 or from_above > above.trials or m - from_above > below.trials:
        return -grow
    hits = int(rng.hypergeometric(above.hits, above.trials - above.hits, from_above)) if from_above else 0
    rest = m - from_above
    alarms = int(rng.hypergeometric(below.hits, below.trials - below.hits, rest)) if rest else 0
    accuracy = (hits + rest - alarms) / m
    margin = math.sqrt(-math.log(failure_probability) / (2.0 * m))
    return (1.0 + grow) * (accuracy - margin) - grow
