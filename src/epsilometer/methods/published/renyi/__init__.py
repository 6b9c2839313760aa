"""Rényi lower bounds by floored densities, as published (asymptotic). The public namespace `epsilometer.renyi`."""

from __future__ import annotations

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
    "lower_bounds",
]
