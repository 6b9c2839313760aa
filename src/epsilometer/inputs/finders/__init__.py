"""Finders: where to look for the pair of inputs that leaks most.

Example:
    >>> finder = em.finders.Random(em.domains.Vector(3, low=0, high=1), trials=3, samples=500, seed=0)
    >>> em.audit(lambda x, rng: sum(x) + rng.laplace(scale=0.1), finder, em.PureDP(1.0), samples=1000, seed=0).verdict
    <Verdict.REFUTED: 'refuted'>
"""

from epsilometer.inputs.finders.base import DomainFinder
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.plain import Grid, Patterns, Random
from epsilometer.inputs.finders.search import Search
from epsilometer.inputs.pairs import Finder

__all__ = [
    "Bayesian",
    "DomainFinder",
    "Finder",
    "Grid",
    "Patterns",
    "Random",
    "Search",
]
