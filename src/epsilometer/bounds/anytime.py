"""Bounds on one probability that may be looked at after every draw.

For k hits in n draws, mix the likelihood p^k·(1 − p)^(n − k) over p with Jeffreys' prior
Beta(½, ½). Divided by the likelihood at the true p, the mixture is a martingale of expectation 1,
so that it ever exceeds 1/f with probability at most f (Ville's inequality). The bound excludes all
p below the observed frequency at which that ratio exceeds 1/f.

Guarantee: exact, at all times at once.

Reference: Robbins, "Statistical methods related to the law of the iterated logarithm" (1970).
"""

import numpy as np
from scipy.special import betaln

from epsilometer.bisection import rejected_end
from epsilometer.bounds.binomial import Counts

# Halvings of an interval within [0, 1]: 2^-44 is 6e-14.
_HALVINGS = 44


def anytime_lower(counts: Counts, failure_probability: float) -> float:
    """Returns a lower bound on one probability that may be looked at after every draw.

    Guarantee: with probability at least 1 − failure_probability it is at no time above the truth.
        Exact.
    """
    hits = counts.hits
    misses = counts.misses
    if not hits:
        return 0.0
    log_mixture = float(betaln(hits + 0.5, misses + 0.5) - betaln(0.5, 0.5))
    # p is excluded if its log-likelihood is below this.
    limit = log_mixture + float(np.log(failure_probability))

    def rejects(p: float) -> bool:
        # p may be 1, where the logarithm of 1 − p is infinite.
        with np.errstate(divide="ignore"):
            return bool(limit > hits * np.log(p) + misses * np.log1p(-p))

    return rejected_end(rejects, rejected=0.0, kept=hits / counts.trials, halvings=_HALVINGS)


def anytime_upper(counts: Counts, failure_probability: float) -> float:
    """Returns the upper bound of the same kind: one minus the lower bound on the complement."""
    return 1.0 - anytime_lower(counts.complement, failure_probability)
