"""Figures and tables of the paper on Rényi lower bounds by floored densities, and what exact bounds reach instead."""

from epsilometer_experiments.renyi import appendix_f, exact, figure1, table1

EXPERIMENTS = (figure1.EXPERIMENT, table1.EXPERIMENT, appendix_f.EXPERIMENT, exact.EXPERIMENT)
