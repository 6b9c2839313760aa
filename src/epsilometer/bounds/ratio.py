"""The old import place of what now lives in `two_counts`, `certificate` and `excess`."""

from epsilometer.bounds.certificate import (
    RefutedLine,
    TestedLine,
    certified_value,
    curve_through,
    refuted_line,
    tested_line,
    towards_curve,
    two_bounds_value,
    within,
)
from epsilometer.bounds.excess import value_of_excess
from epsilometer.bounds.two_counts import (
    RatioTest,
    delta_lower,
    delta_test,
    epsilon_lower,
    epsilon_test,
)

__all__ = [
    "RatioTest",
    "RefutedLine",
    "TestedLine",
    "certified_value",
    "curve_through",
    "delta_lower",
    "delta_test",
    "epsilon_lower",
    "epsilon_test",
    "refuted_line",
    "tested_line",
    "towards_curve",
    "two_bounds_value",
    "value_of_excess",
    "within",
]
