"""Our own claims about the auditor: its bounds hold as often as they say, and they are near the truth."""

from epsilometer_experiments.self import coverage, power

EXPERIMENTS = (coverage.EXPERIMENT, power.EXPERIMENT)
