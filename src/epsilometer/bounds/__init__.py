"""The trusted kernel: exact bounds from counts. Whatever proposes an event, what is proved rests on this alone."""

from epsilometer.bounds.binomial import Counts, lower, upper
from epsilometer.bounds.budget import ErrorBudget
from epsilometer.bounds.certificate import certified_value, two_bounds_value
from epsilometer.bounds.ratio import delta_lower, epsilon_lower

__all__ = [
    "Counts",
    "ErrorBudget",
    "certified_value",
    "delta_lower",
    "epsilon_lower",
    "lower",
    "two_bounds_value",
    "upper",
]
