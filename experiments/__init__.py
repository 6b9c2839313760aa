"""The experiments behind `epsilometer reproduce`: figures and tables of the papers, and of our own claims.

This folder is the package `epsilometer_experiments` (`src/epsilometer_experiments` points here). README.md tells how to
add an experiment.
"""

from epsilometer_experiments.experiment import Case, Experiment, Rate, Target
from epsilometer_experiments.registry import find, listing, names, run, run_all, summaries

__all__ = [
    "Case",
    "Experiment",
    "Rate",
    "Target",
    "find",
    "listing",
    "names",
    "run",
    "run_all",
    "summaries",
]
