"""Our own claims about the auditor: its bounds hold as often as they say, and they are near the truth."""

from epsilometer_experiments.self import coverage, detectable, power, unlucky

EXPERIMENTS = (coverage.EXPERIMENT, power.EXPERIMENT, unlucky.EXPERIMENT, detectable.EXPERIMENT)
