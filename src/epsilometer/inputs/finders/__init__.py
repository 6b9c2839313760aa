"""Finders: where to look for the pair of inputs that leaks most."""

from epsilometer.inputs.finders.base import DomainFinder, Finder
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.patterns import Patterns
from epsilometer.inputs.finders.plain import Grid, Random

__all__ = ["Bayesian", "DomainFinder", "Finder", "Grid", "Patterns", "Random"]
