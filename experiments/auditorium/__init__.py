"""DP-Auditorium's tables and figures, and what our finders do."""

from epsilometer_experiments.auditorium import (
    anecdotes,
    canaries,
    figure1,
    figure2,
    figure3,
    hockey_stick_coverage,
    rare_leak,
    table1,
    table2,
)

EXPERIMENTS = (
    table1.EXPERIMENT,
    table2.EXPERIMENT,
    figure1.EXPERIMENT,
    figure2.EXPERIMENT,
    figure3.EXPERIMENT,
    anecdotes.EXPERIMENT,
    canaries.EXPERIMENT,
    hockey_stick_coverage.EXPERIMENT,
    *rare_leak.EXPERIMENTS,
)
