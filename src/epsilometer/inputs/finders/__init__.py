"""Finders: where to look for the pair of inputs that leaks most."""

from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.grid import Grid
from epsilometer.inputs.finders.patterns import Patterns
from epsilometer.inputs.finders.random import Random
from epsilometer.inputs.finding import Finder

__all__ = ["Bayesian", "Finder", "Grid", "Patterns", "Random"]
