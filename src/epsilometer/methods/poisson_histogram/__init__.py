"""Method `poisson-histogram`: the cells that one law favours. The public namespace `epsilometer.poisson_histogram`."""

from epsilometer.methods.poisson_histogram.estimate import HistogramEstimate, estimate, poisson_mean
from epsilometer.methods.poisson_histogram.method import Options, PoissonHistogramMethod

__all__ = ["HistogramEstimate", "Options", "PoissonHistogramMethod", "estimate", "poisson_mean"]
