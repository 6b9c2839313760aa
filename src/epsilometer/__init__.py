"""Epsilometer measures the privacy of anything you can sample.

A black-box auditor for differential privacy: `audit` runs a mechanism on neighbouring inputs and
says whether a claim of privacy is refuted, with a certified lower bound on the true loss and a
counterexample that anyone can replay.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# what type checkers and editors see; at run time each name is imported when it is first used
if TYPE_CHECKING:
    from epsilometer import methods, zoo
    from epsilometer.auditing.planning import plan
    from epsilometer.auditing.profile import Profile, profile
    from epsilometer.auditing.public import audit, compare, measure, replay
    from epsilometer.auditing.scores import from_scores, one_run
    from epsilometer.checker import verify
    from epsilometer.claims import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOffDP
    from epsilometer.errors import (
        EngineError,
        EpsilometerError,
        EpsilometerWarning,
        InputError,
        MechanismError,
        MissingExtraError,
        PrivacyViolation,
    )
    from epsilometer.inputs import Pair, domains, finders
    from epsilometer.inputs.finders.search import around
    from epsilometer.mechanisms import fitted, from_batch, from_callable, from_command, from_opendp
    from epsilometer.mechanisms.functions import repeated
    from epsilometer.mechanisms.http import from_http
    from epsilometer.mechanisms.recordings import from_recording
    from epsilometer.methods import sequential
    from epsilometer.methods.published import ldp, local, renyi
    from epsilometer.methods.published.auditorium import (
        hockey_stick,
        mmd,
        poisson_histogram,
        renyi_variational,
    )
    from epsilometer.report.progress import ProgressBar
    from epsilometer.result import AuditResult, Finding, Verdict, Witness

__all__ = [
    "ZCDP",
    "ApproxDP",
    "AuditResult",
    "EngineError",
    "EpsilometerError",
    "EpsilometerWarning",
    "Finding",
]
__all__ += [
    "GaussianDP",
    "InputError",
    "MechanismError",
    "MissingExtraError",
    "Pair",
    "PrivacyViolation",
    "Profile",
]
__all__ += [
    "ProgressBar",
    "PureDP",
    "RenyiDP",
    "TradeOffDP",
    "Verdict",
    "Witness",
    "around",
    "audit",
    "compare",
]
__all__ += [
    "domains",
    "finders",
    "fitted",
    "from_batch",
    "from_callable",
    "from_command",
    "from_http",
    "from_opendp",
]
__all__ += [
    "from_recording",
    "from_scores",
    "hockey_stick",
    "ldp",
    "local",
    "measure",
    "methods",
    "mmd",
    "one_run",
]
__all__ += [
    "plan",
    "poisson_histogram",
    "profile",
    "renyi",
    "renyi_variational",
    "repeated",
    "replay",
    "sequential",
]
__all__ += ["verify", "zoo"]

# Where each name lives. Nothing is imported before it is used: `epsilometer --version` need not
# load NumPy.
_HOMES: dict[str, tuple[str, ...]] = {
    "epsilometer.auditing.planning": ("plan",),
    "epsilometer.auditing.profile": ("Profile", "profile"),
    "epsilometer.auditing.public": ("audit", "compare", "measure", "replay"),
    "epsilometer.auditing.scores": ("from_scores", "one_run"),
    "epsilometer.checker": ("verify",),
    "epsilometer.claims": ("ZCDP", "ApproxDP", "GaussianDP", "PureDP", "RenyiDP", "TradeOffDP"),
    "epsilometer.errors": (
        *(
            "EngineError",
            "EpsilometerError",
            "EpsilometerWarning",
            "InputError",
            "MechanismError",
            "MissingExtraError",
        ),
        "PrivacyViolation",
    ),
    "epsilometer.inputs": ("Pair",),
    "epsilometer.inputs.finders.search": ("around",),
    "epsilometer.mechanisms": (
        "fitted",
        "from_batch",
        "from_callable",
        "from_command",
        "from_opendp",
    ),
    "epsilometer.mechanisms.http": ("from_http",),
    "epsilometer.mechanisms.recordings": ("from_recording",),
    "epsilometer.mechanisms.functions": ("repeated",),
    "epsilometer.report.progress": ("ProgressBar",),
    "epsilometer.result": ("AuditResult", "Finding", "Verdict", "Witness"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
# Packages that are public under a short name.
_NAMESPACES: dict[str, str] = {
    "domains": "epsilometer.inputs.domains",
    "finders": "epsilometer.inputs.finders",
    "hockey_stick": "epsilometer.methods.published.auditorium.hockey_stick",
    "ldp": "epsilometer.methods.published.ldp",
    "local": "epsilometer.methods.published.local",
    "methods": "epsilometer.methods",
    "mmd": "epsilometer.methods.published.auditorium.mmd",
    "poisson_histogram": "epsilometer.methods.published.auditorium.poisson_histogram",
    "renyi": "epsilometer.methods.published.renyi",
    "renyi_variational": "epsilometer.methods.published.auditorium.renyi_variational",
    "sequential": "epsilometer.methods.sequential",
    "zoo": "epsilometer.zoo",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value: Any = getattr(import_module(_HOME_OF[name]), name)
    elif name in _NAMESPACES:
        value = import_module(_NAMESPACES[name])
    else:
        raise AttributeError(f"module 'epsilometer' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | {*__all__})
