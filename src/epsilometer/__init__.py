"""Epsilometer measures the privacy of anything you can sample.

A black-box auditor for differential privacy: `audit` runs a mechanism on neighbouring inputs and
says whether a claim of privacy is refuted, with a certified lower bound on the true loss and a
counterexample that anyone can replay.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# What type checkers and editors see; at run time each name is imported when it is first used.
if TYPE_CHECKING:
    __version__: str
    from epsilometer import methods, models, zoo
    from epsilometer.auditing.api import audit, compare, measure, replay
    from epsilometer.auditing.one_run_audit import OneRunAudit, from_one_run, one_run
    from epsilometer.auditing.planning import plan
    from epsilometer.auditing.profile import Profile, profile
    from epsilometer.auditing.score_audit import ScoreAudit, from_scores
    from epsilometer.auditing.score_stream import ScoreStream
    from epsilometer.checker import verify
    from epsilometer.claims import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOffDP
    from epsilometer.errors import (
        BlindAudit,
        BlindAuditWarning,
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
    from epsilometer.methods.published import auditorium, ldp, local, renyi
    from epsilometer.report.progress import ProgressBar
    from epsilometer.result import AuditResult, Finding, Verdict, Witness

__all__ = [
    "ZCDP",
    "ApproxDP",
    "AuditResult",
    "BlindAudit",
    "BlindAuditWarning",
    "EngineError",
    "EpsilometerError",
    "EpsilometerWarning",
    "Finding",
    "GaussianDP",
    "InputError",
    "MechanismError",
    "MissingExtraError",
    "OneRunAudit",
    "Pair",
    "PrivacyViolation",
    "Profile",
    "ProgressBar",
    "PureDP",
    "RenyiDP",
    "ScoreAudit",
    "ScoreStream",
    "TradeOffDP",
    "Verdict",
    "Witness",
    "around",
    "audit",
    "auditorium",
    "compare",
    "domains",
    "finders",
    "fitted",
    "from_batch",
    "from_callable",
    "from_command",
    "from_http",
    "from_one_run",
    "from_opendp",
    "from_recording",
    "from_scores",
    "ldp",
    "local",
    "measure",
    "methods",
    "models",
    "one_run",
    "plan",
    "profile",
    "renyi",
    "repeated",
    "replay",
    "sequential",
    "verify",
    "zoo",
]

# Where each name lives. Nothing is imported before it is used: `epsilometer --version` need not
# load NumPy.
_HOMES: dict[str, tuple[str, ...]] = {
    "epsilometer.auditing.planning": ("plan",),
    "epsilometer.auditing.profile": ("Profile", "profile"),
    "epsilometer.auditing.api": ("audit", "compare", "measure", "replay"),
    "epsilometer.auditing.one_run_audit": ("OneRunAudit", "from_one_run", "one_run"),
    "epsilometer.auditing.score_audit": ("ScoreAudit", "from_scores"),
    "epsilometer.auditing.score_stream": ("ScoreStream",),
    "epsilometer.checker": ("verify",),
    "epsilometer.claims": ("ZCDP", "ApproxDP", "GaussianDP", "PureDP", "RenyiDP", "TradeOffDP"),
    "epsilometer.errors": (
        "BlindAudit",
        "BlindAuditWarning",
        "EngineError",
        "EpsilometerError",
        "EpsilometerWarning",
        "InputError",
        "MechanismError",
        "MissingExtraError",
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
    "auditorium": "epsilometer.methods.published.auditorium",
    "domains": "epsilometer.inputs.domains",
    "finders": "epsilometer.inputs.finders",
    "ldp": "epsilometer.methods.published.ldp",
    "local": "epsilometer.methods.published.local",
    "methods": "epsilometer.methods",
    "models": "epsilometer.models",
    "renyi": "epsilometer.methods.published.renyi",
    "sequential": "epsilometer.methods.sequential",
    "zoo": "epsilometer.zoo",
}


# Hidden from type checkers, for which any misspelt name would otherwise exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOME_OF:
            value: Any = getattr(import_module(_HOME_OF[name]), name)
        elif name in _NAMESPACES:
            value = import_module(_NAMESPACES[name])
        elif name == "__version__":
            from epsilometer.environment import package_version

            value = package_version()
        else:
            raise AttributeError(
                f"module 'epsilometer' has no attribute {name!r}{_suggestion(name)}"
            )
        globals()[name] = value
        return value


def _suggestion(name: str) -> str:
    """The public name that was probably meant, as the end of a message."""
    from difflib import get_close_matches  # only needed for a mistake

    moved = {"hockey_stick", "mmd", "poisson_histogram", "renyi_variational"}
    if name in moved:
        return f"; it is epsilometer.auditorium.{name}"
    similar = get_close_matches(name, __all__, n=1)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | {*__all__})
