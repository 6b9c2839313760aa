"""Beyond the papers: the whole privacy curve, early stopping, floating point, testers."""

from epsilometer_experiments.beyond import bits, gaussian_curve, profile, sequential, testers

EXPERIMENTS = (
    *profile.EXPERIMENTS,
    *sequential.EXPERIMENTS,
    *bits.EXPERIMENTS,
    *gaussian_curve.EXPERIMENTS,
    *testers.EXPERIMENTS,
)
