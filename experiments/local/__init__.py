"""Figures 1 to 6, Example 2 and Table II of the paper by Askin, Kutta and Dette on the local approach."""

from epsilometer_experiments.local import (
    example2,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    mixed,
    side_by_side,
    table2,
    vectors,
)

EXPERIMENTS = (
    figure1.EXPERIMENT,
    example2.EXPERIMENT,
    figure2.EXPERIMENT,
    figure3.EXPERIMENT,
    figure4.EXPERIMENT,
    figure5.EXPERIMENT,
    figure6.EXPERIMENT,
    mixed.EXPERIMENT,
    table2.EXPERIMENT,
    side_by_side.EXPERIMENT,
    vectors.EXPERIMENT,
)
