"""DP-Auditorium's tables and figures, and what our finders do."""

from epsilometer_experiments.auditorium import rare_leak

EXPERIMENTS = (*rare_leak.EXPERIMENTS,)
