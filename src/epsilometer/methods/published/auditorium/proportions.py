"""Lower bounds on a proportion: p̂ of the hockey-stick tester, which is an input of it.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Definition 4.10 and Proposition 4.11.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from epsilometer.bisection import rejected_end
from epsilometer.bounds import Counts, lower
from epsilometer.errors import InputError, blamed
from epsilometer.methods.published.adapters import takes_arguments

# A lower bound on p from (hits, trials, failure probability), where hits ~ Binomial(trials, p).
ProportionBound = Callable[[int, int, float], float]

# 2^-60 of the bracket is below the spacing of floats near 1.
_HALVINGS = 60


def hoeffding(hits: int, trials: int, failure_probability: float) -> float:
    """Returns S/m − √(ln(1/β)/2m); it may be negative.

    Guarantee: exact: it exceeds p with probability at most `failure_probability`.

    Reference: Kong et al. (2023), Proposition 4.11.
    """
    return hits / trials - math.sqrt(-math.log(failure_probability) / (2.0 * trials))


def chernoff(hits: int, trials: int, failure_probability: float) -> float:
    """Returns the p below S/m at which m·KL(S/m ‖ p) = ln(1/β): never below Hoeffding's bound.

    Guarantee: exact: it exceeds p with probability at most `failure_probability`.

    Reference: Kong et al. (2023), Definition 4.10, which names it as a choice of p̂.
    """
    share = hits / trials
    allowed = -math.log(failure_probability) / trials

    def is_rejected(p: float) -> bool:
        return _relative_entropy(share, p) >= allowed

    if hits == 0 or not is_rejected(0.0):
        return 0.0
    return rejected_end(is_rejected, 0.0, share, _HALVINGS)


def _relative_entropy(share: float, p: float) -> float:
    """Returns KL(share ‖ p) of two coins, for p below the share."""
    if p <= 0.0:
        return math.inf
    entropy = share * math.log(share / p)
    if share < 1.0:
        entropy += (1.0 - share) * math.log((1.0 - share) / (1.0 - p))
    return entropy


def clopper_pearson(hits: int, trials: int, failure_probability: float) -> float:
    """Returns the exact binomial bound, the largest of the three.

    Guarantee: exact: it exceeds p with probability at most `failure_probability`.

    Reference: Kong et al. (2023), Definition 4.10, which names it as a choice of p̂.
    """
    return lower(Counts(hits, trials), failure_probability)


PROPORTIONS: dict[str, ProportionBound] = {
    "hoeffding": hoeffding,
    "chernoff": chernoff,
    "clopper-pearson": clopper_pearson,
}


def find_proportion(proportion: str | ProportionBound) -> ProportionBound:
    """Returns the bound with this name, or the given function with a check of what it returns.

    Raises:
        InputError: the name is unknown, or the function takes other arguments.
    """
    if callable(proportion):
        return _checked(proportion)
    if not isinstance(proportion, str) or proportion not in PROPORTIONS:
        known = ", ".join(map(repr, PROPORTIONS))
        raise InputError(
            f"proportion={proportion!r:.100} must be one of {known}, or a function of hits, "
            "trials and the failure probability that returns a lower bound on the probability"
        )
    return PROPORTIONS[proportion]


def _checked(function: ProportionBound) -> ProportionBound:
    """Returns the same function, which raises an InputError where it returns no such bound."""
    if not takes_arguments(function, 3):
        raise InputError(
            f"proportion={function!r:.100} must be a function of (hits, trials, failure), that is "
            "of hits, trials and the failure probability"
        )

    def bound(hits: int, trials: int, failure_probability: float) -> float:
        with blamed(f"proportion={function!r:.100} failed on {hits} hits in {trials} trials"):
            lower_bound: Any = function(hits, trials, failure_probability)
        is_number = isinstance(lower_bound, int | float | np.integer | np.floating)
        # NaN is not at most 1 either.
        if not is_number or isinstance(lower_bound, bool) or not lower_bound <= 1.0:
            raise InputError(
                f"proportion={function!r:.100} returned {lower_bound!r:.60}, which is no "
                "lower bound on a probability: a number of at most 1"
            )
        return float(lower_bound)

    return bound
