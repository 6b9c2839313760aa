"""Finders: where to look for the pair of inputs that leaks most."""

from epsilometer.inputs.finders.base import DomainFinder, Finder
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.patterns import Patterns
from epsilometer.inputs.finders.plain import Grid, Random
from epsilometer.inputs.finders.search import Search

__all__ = ["Bayesian", "DomainFinder", "Finder", "Grid", "Patterns", "Random", "Search"]
