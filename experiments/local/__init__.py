"""Figures 2 to 6 and Table II of the paper by Askin, Kutta and Dette on the local approach."""

from epsilometer_experiments.local import figure2, figure3, figure4, figure5, figure6, side_by_side, table2, vectors

EXPERIMENTS = (
    figure2.EXPERIMENT,
    figure3.EXPERIMENT,
    figure4.EXPERIMENT,
    figure5.EXPERIMENT,
    figure6.EXPERIMENT,
    table2.EXPERIMENT,
    side_by_side.EXPERIMENT,
    vectors.EXPERIMENT,
)
