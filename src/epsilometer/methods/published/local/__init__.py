"""The local approach: the privacy loss as a function of the output, and where it is greatest.

Public as `epsilometer.local`.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach".

Example:
    >>> rng = np.random.default_rng(0)
    >>> left = rng.laplace(size=2000)
    >>> right = 1.0 + rng.laplace(size=2000)
    >>> loss = em.local.loss_function(left, right, region=(-2.0, 3.0))
    >>> -2.0 <= loss.location <= 3.0
    True
"""

from typing import TYPE_CHECKING

from epsilometer.methods.published.local.densities import tdde, tkde
from epsilometer.methods.published.local.levels import DatasetLevel, LevelMap, level_map
from epsilometer.methods.published.local.loss import LossFunction, MixedLoss, loss_function
from epsilometer.methods.published.local.method import LocalMethod
from epsilometer.methods.published.local.mpl import (
    DataSpecificLoss,
    MaximumLoss,
    data_centric,
    dpl,
    mpl,
)
from epsilometer.methods.published.local.options import Options
from epsilometer.methods.published.local.pointwise import PointwiseLoss, interval
from epsilometer.namespaces import namespace

__all__ = [
    "DataSpecificLoss",
    "DatasetLevel",
    "LevelMap",
    "LocalMethod",
    "LossFunction",
    "MaximumLoss",
    "MixedLoss",
    "Options",
    "PointwiseLoss",
    "data_centric",
    "dpl",
    "interval",
    "level_map",
    "loss_function",
    "mpl",
    "tdde",
    "tkde",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)
