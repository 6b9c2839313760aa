"""Beyond the papers: the whole privacy curve, early stopping, floating point."""

from epsilometer_experiments.beyond import bits, gaussian_curve, profile, sequential

EXPERIMENTS = (*profile.EXPERIMENTS, *sequential.EXPERIMENTS, *bits.EXPERIMENTS, *gaussian_curve.EXPERIMENTS)
