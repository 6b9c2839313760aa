"""Seed paper 002: local privacy by histograms, what it asks for, what practice needs, and what is impossible."""

from epsilometer_experiments.ldp import (
    bias,
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
)
