"""For testing mechanisms, and for writing your own claim, method or mechanism.

The suites need no import of pytest: subclass one in a test module and add the fixtures that its docstring names.
"""

from epsilometer.testing.fakes import (
    HOSTILE_NUMBERS,
    Coin,
    constant,
    drifting,
    frozen_seed,
    hostile,
    miscounting,
    raising,
    serially_correlated,
)
from epsilometer.testing.methods import MethodConformance
from epsilometer.testing.plugins import ClaimConformance, DomainConformance, FinderConformance, MechanismConformance
from epsilometer.testing.rarity import assert_rare

__all__ = [
    "HOSTILE_NUMBERS", "ClaimConformance", "Coin", "DomainConformance", "FinderConformance", "MechanismConformance",
    "MethodConformance", "assert_rare", "constant", "drifting", "frozen_seed", "hostile", "miscounting", "raising",
    "serially_correlated",
]  # fmt: skip
