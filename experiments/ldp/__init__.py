"""Gorla et al. 2023: local privacy by histograms, what it asks for, what practice needs, and what is impossible."""

from epsilometer_experiments.ldp import (
    bias,
    exact,
    impossibility,
    laplace,
    renyi,
    renyi_impossibility,
    samples,
)

EXPERIMENTS = (
    samples.EXPERIMENT,
    laplace.EXPERIMENT,
    renyi.EXPERIMENT,
    impossibility.EXPERIMENT,
    renyi_impossibility.EXPERIMENT,
    bias.EXPERIMENT,
    exact.EXPERIMENT,
)
