"""The local approach: the privacy loss as a function of the output, and where it is greatest.

Public as `epsilometer.local`. Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a
local approach".
"""

from epsilometer.methods.local.densities import tdde, tkde
from epsilometer.methods.local.loss import LossFunction, loss_function
from epsilometer.methods.local.method import LocalMethod
from epsilometer.methods.local.mpl import DataSpecificLoss, MaximumLoss, data_centric, dpl, mpl
from epsilometer.methods.local.options import Options
from epsilometer.methods.local.pointwise import PointwiseLoss, interval

__all__ = [
    "DataSpecificLoss",
    "LocalMethod",
    "LossFunction",
    "MaximumLoss",
    "Options",
    "PointwiseLoss",
    "data_centric",
    "dpl",
    "interval",
    "loss_function",
    "mpl",
    "tdde",
    "tkde",
]
