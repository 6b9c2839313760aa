"""Tools for testing mechanisms, and for authors of claims, methods and mechanisms.

The conformance suites need no import of pytest: subclass one in a test module and add the fixtures
that its docstring names.
"""

from typing import TYPE_CHECKING, Any

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


# Hidden from type checkers, for which any misspelt name would otherwise exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in ("Auditor", "audited"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import _epsilometer_pytest  # imports pytest, which the rest does not need

        return getattr(_epsilometer_pytest, name)
