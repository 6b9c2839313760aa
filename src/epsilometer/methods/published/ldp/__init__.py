"""Local privacy by histograms: two-sided estimates under a stated assumption (`epsilometer.ldp`).

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the (im)possibility of
    estimating various notions of differential privacy".

Example:
    >>> options = em.ldp.Options(domain=(0.0, 1.0), lipschitz=0.5)
    >>> options.lipschitz
    0.5
"""

from typing import TYPE_CHECKING

from epsilometer.methods.published.ldp import formulas
from epsilometer.methods.published.ldp.estimating import (
    LipschitzHint,
    LocalEstimate,
    estimate,
    lipschitz_hint,
    overall,
)
from epsilometer.methods.published.ldp.method import HistogramMethod, Options
from epsilometer.methods.published.ldp.planning import plan
from epsilometer.methods.published.ldp.plans import HistogramPlan, plan_overall, plan_pair
from epsilometer.namespaces import namespace

__all__ = [
    "HistogramMethod",
    "HistogramPlan",
    "LipschitzHint",
    "LocalEstimate",
    "Options",
    "estimate",
    "formulas",
    "lipschitz_hint",
    "overall",
    "plan",
    "plan_overall",
    "plan_pair",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)
