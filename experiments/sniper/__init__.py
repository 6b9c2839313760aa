"""DP-Sniper's evaluation, and the oracle that our bounds are compared with."""

from epsilometer_experiments.sniper import peers, table

EXPERIMENTS = (table.EXPERIMENT, peers.EXPERIMENT)
