"""Rényi lower bounds by floored densities, as published (asymptotic). The public namespace `epsilometer.renyi`."""

from epsilometer.methods.renyi.bound import FlooredBound, lower_bound, lower_bound_of_pairs, lower_bounds
from epsilometer.methods.renyi.flooring import floored_divergence
from epsilometer.methods.renyi.method import Options, RenyiFlooredMethod

__all__ = [
    "FlooredBound",
    "Options",
    "RenyiFlooredMethod",
    "floored_divergence",
    "lower_bound",
    "lower_bound_of_pairs",
    "lower_bounds",
]
