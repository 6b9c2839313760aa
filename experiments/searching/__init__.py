"""Searching for inputs: a zoo of library bugs, who finds them, and what is found in released libraries."""

from epsilometer_experiments.searching import bugs, libraries

EXPERIMENTS = (*bugs.EXPERIMENTS, *libraries.EXPERIMENTS)
