"""Finders: where to look for the pair of inputs that leaks most.

Example:
    >>> domain = em.domains.Vector(3, low=0, high=1)
    >>> finder = em.finders.Random(domain, trials=3, samples=500, seed=0)
    >>> def noisy_sum(numbers, rng):
    ...     return sum(numbers) + rng.laplace(scale=0.1)
    >>> em.audit(noisy_sum, finder, em.PureDP(1.0), samples=1000, seed=0).verdict
    <Verdict.REFUTED: 'refuted'>
"""

from typing import TYPE_CHECKING

from epsilometer.inputs.finders.base import DomainFinder
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.plain import Grid, Patterns, Random
from epsilometer.inputs.finders.rounds import PairCandidate, RoundFinder
from epsilometer.inputs.finders.search import Search
from epsilometer.inputs.pairs import Finder
from epsilometer.namespaces import namespace

__all__ = [
    "Bayesian",
    "DomainFinder",
    "Finder",
    "Grid",
    "PairCandidate",
    "Patterns",
    "Random",
    "RoundFinder",
    "Search",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)
