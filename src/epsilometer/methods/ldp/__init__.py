"""Local privacy by histograms: two-sided estimates under a stated assumption (`epsilometer.ldp`).

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida, "On the (im)possibility of estimating various notions of
differential privacy".
"""

from epsilometer.methods.ldp import formulas
from epsilometer.methods.ldp.estimating import Estimate, estimate, overall
from epsilometer.methods.ldp.hinting import LipschitzHint, lipschitz_hint
from epsilometer.methods.ldp.method import HistogramMethod, Options
from epsilometer.methods.ldp.plans import HistogramPlan, plan_overall, plan_pair

__all__ = [
    "Estimate",
    "HistogramMethod",
    "HistogramPlan",
    "LipschitzHint",
    "Options",
    "estimate",
    "formulas",
    "lipschitz_hint",
    "overall",
    "plan_overall",
    "plan_pair",
]
