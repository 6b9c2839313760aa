"""The trusted kernel: exact bounds from counts. Whatever proposes an event, its proof rests on this code alone."""

from epsilometer.bounds.binomial import Counts, ErrorBudget, lower, upper
from epsilometer.bounds.p_values import certificate_p_value, nested_p_value
from epsilometer.bounds.ratio import (
    certified_value,
    delta_lower,
    epsilon_lower,
    refuted_line,
    two_bounds_value,
)

__all__ = [
    "Counts",
    "ErrorBudget",
    "certified_value",
    "delta_lower",
    "epsilon_lower",
    "lower",
    "refuted_line",
]
__all__ += ["certificate_p_value", "nested_p_value", "two_bounds_value", "upper"]
