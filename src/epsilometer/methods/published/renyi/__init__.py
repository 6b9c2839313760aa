"""Rényi lower bounds by floored densities, as published (asymptotic). The public namespace `epsilometer.renyi`.

Example:
    >>> rng = np.random.default_rng(0)
    >>> bound = em.renyi.lower_bound(rng.laplace(size=5000), 1.0 + rng.laplace(size=5000), 2.0, floor=0.01)
    >>> 0.0 < bound.lower_bound < 1.0
    True
"""

from epsilometer.methods.published.renyi.bound import (
    FlooredBound,
    floored_divergence,
    lower_bound,
    lower_bound_of_pairs,
    lower_bounds,
)
from epsilometer.methods.published.renyi.method import Options, RenyiFlooredMethod

__all__ = [
    "FlooredBound",
    "Options",
    "RenyiFlooredMethod",
    "floored_divergence",
    "lower_bound",
    "lower_bound_of_pairs",
]
__all__ += ["lower_bounds"]
