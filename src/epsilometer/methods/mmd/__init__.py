"""Method `mmd`: maximum mean discrepancy. The public namespace `epsilometer.mmd`."""

from epsilometer.methods.mmd.method import MmdMethod, Options
from epsilometer.methods.mmd.thresholds import greatest_discrepancy, value_of_discrepancy

__all__ = ["MmdMethod", "Options", "greatest_discrepancy", "value_of_discrepancy"]
