"""Tools for testing mechanisms, and for authors of claims, methods and mechanisms.

The conformance suites need no import of pytest: subclass one in a test module and add the fixtures
that its docstring names.
"""

from typing import TYPE_CHECKING

from epsilometer.namespaces import namespace
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
from epsilometer.testing.plugins import (
    ClaimConformance,
    DomainConformance,
    FinderConformance,
    MechanismConformance,
)
from epsilometer.testing.rarity import assert_rare
from epsilometer.testing.rates import RateTest

if TYPE_CHECKING:
    from _epsilometer_pytest import Auditor, audited

__all__ = [
    "HOSTILE_NUMBERS",
    "Auditor",
    "ClaimConformance",
    "Coin",
    "DomainConformance",
    "FinderConformance",
    "MechanismConformance",
    "MethodConformance",
    "RateTest",
    "assert_rare",
    "audited",
    "constant",
    "drifting",
    "frozen_seed",
    "hostile",
    "miscounting",
    "raising",
    "serially_correlated",
]

# What imports pytest, which the rest does not need.
_OF_THE_PLUGIN = dict.fromkeys(("Auditor", "audited"), "_epsilometer_pytest")

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__, homes=_OF_THE_PLUGIN)
