"""DP-Sniper's evaluation, and the oracle that our bounds are compared with."""

from epsilometer_experiments.sniper import table

EXPERIMENTS = (table.EXPERIMENT,)
