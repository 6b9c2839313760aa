"""Epsilometer measures the privacy of anything you can sample.

A black-box auditor for differential privacy: `audit` runs a mechanism on neighbouring inputs and says whether a claim
of privacy is refuted, with a certified lower bound on the true loss and a counterexample that anyone can replay.
"""

from importlib import import_module
from types import ModuleType

from epsilometer import zoo
from epsilometer.audit import audit, compare, measure, replay
from epsilometer.claims import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOffDP
from epsilometer.errors import (
    EpsilometerError,
    EpsilometerWarning,
    InputError,
    MechanismError,
    MissingExtraError,
    PrivacyViolation,
)
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch, from_callable, from_command, from_http, from_opendp, from_recording
from epsilometer.mechanisms.repeated import repeated
from epsilometer.profile import Profile, profile
from epsilometer.planning import plan
from epsilometer.result import AuditResult, Finding, Verdict, Witness
from epsilometer.scores import from_scores, one_run

__all__ = [
    "ZCDP",
    "ApproxDP",
    "AuditResult",
    "EpsilometerError",
    "EpsilometerWarning",
    "Finding",
    "GaussianDP",
    "InputError",
    "MechanismError",
    "MissingExtraError",
    "Pair",
    "PrivacyViolation",
    "Profile",
    "PureDP",
    "RenyiDP",
    "TradeOffDP",
    "Verdict",
    "Witness",
    "audit",
    "compare",
    "from_batch",
    "from_callable",
    "from_command",
    "from_http",
    "from_opendp",
    "from_recording",
    "from_scores",
    "measure",
    "one_run",
    "plan",
    "profile",
    "repeated",
    "replay",
    "zoo",
]

# Namespaces that most audits do not need: imported when they are first used.
_NAMESPACES: dict[str, str] = {
    "ldp": "epsilometer.methods.ldp",
    "sequential": "epsilometer.methods.sequential",
    "local": "epsilometer.methods.local",
    "renyi": "epsilometer.methods.renyi",
}


def __getattr__(name: str) -> ModuleType:
    if name in _NAMESPACES:
        return import_module(_NAMESPACES[name])
    raise AttributeError(f"module 'epsilometer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMESPACES})
