"""Rényi lower bounds by floored densities, as published; public as `epsilometer.renyi`.

Reference: Kutta, Askin, Dunsche (2024), "Lower bounds for Rényi differential privacy in a black-box
    setting".

Example:
    >>> rng = np.random.default_rng(0)
    >>> left = rng.laplace(size=5000)
    >>> right = 1.0 + rng.laplace(size=5000)
    >>> bound = em.renyi.lower_bound(left, right, 2.0, floor=0.01)
    >>> 0.0 < bound.lower_bound < 1.0
    True
"""

from typing import TYPE_CHECKING

from epsilometer.methods.published.renyi.bound import (
    FlooredBound,
    floored_divergence,
    lower_bound,
    lower_bound_of_pairs,
    lower_bounds,
)
from epsilometer.methods.published.renyi.method import Options, RenyiFlooredMethod
from epsilometer.namespaces import namespace

__all__ = [
    "FlooredBound",
    "Options",
    "RenyiFlooredMethod",
    "floored_divergence",
    "lower_bound",
    "lower_bound_of_pairs",
    "lower_bounds",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)
