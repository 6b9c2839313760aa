"""The settings that `audit`, `measure`, `profile` and the command line share: one definition."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from epsilometer.engine import Progress
from epsilometer.errors import InputError, meant_or_known
from epsilometer.methods import Method

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


class AuditKeywords(TypedDict, total=False):
    """The keywords of `audit` for type checkers; its docstring says what they mean."""

    samples: int
    confidence: float
    seed: int | None
    method: str | Method
    options: object
    jobs: int
    engine: object
    suppress: Collection[str]
    constant: str
    progress: Progress | bool | None
    stop_early: bool | None
    max_seconds: float | None
    checkpoint: str | Path | None
    representation: str
    distance: int
    record: str | Path | None


class MeasureKeywords(AuditKeywords, total=False):
    """The keywords of `measure`: those of `audit` and the fixed parameters of our notions."""

    epsilon: float
    delta: float
    order: float


class CompareKeywords(TypedDict, total=False):
    """The keywords of `compare`: those of `audit` that do not ask for draws, and `features`."""

    confidence: float
    seed: int | None
    method: str | Method
    options: object
    suppress: Collection[str]
    constant: str
    representation: str
    distance: int
    features: Callable[[Any], Any] | None


class CompareNotionKeywords(CompareKeywords, total=False):
    """The keywords of `compare` with a claim class, and the fixed parameters of our notions."""

    epsilon: float
    delta: float
    order: float


class ProfileKeywords(TypedDict, total=False):
    """The keywords of `profile`: those of `audit` but for method, options and stopping early."""

    samples: int
    confidence: float
    seed: int | None
    jobs: int
    engine: object
    suppress: Collection[str]
    constant: str
    progress: Progress | bool | None
    max_seconds: float | None
    checkpoint: str | Path | None
    representation: str
    distance: int
    record: str | Path | None


_PART_OF_A_CLAIM = "it is part of the claim, as in em.PureDP(1.0) or em.ApproxDP(1.0, 1e-6)"
_PART_OF_A_SEARCH = (
    "it is part of a search, see em.around(data, …) and em.finders.Search(domain, …)"
)
# Keywords that people try here, and where what they mean belongs.
_MEANT_ELSEWHERE = {
    **dict.fromkeys(("epsilon", "eps", "delta", "order", "mu", "rho"), _PART_OF_A_CLAIM),
    **dict.fromkeys(("relation", "user", "beyond", "trials", "trial_samples"), _PART_OF_A_SEARCH),
    "fail_blind": "write result.raise_if_refuted(fail_blind=True)",
    "allow_inconclusive": "it is for tests, see the fixture `epsilometer` of pytest",
    "on_error": "write em.from_callable(f, on_error='outcome'), and audit that",
    "batch": "write em.from_batch(f), and audit that",
    "features": "write em.from_callable(f, features=…), and audit that",
    "params": "write functools.partial(f, name=value), and audit that",
    "param": "write functools.partial(f, name=value), and audit that",
    "finder": "a finder is given in the place of the inputs: em.finders.Random(domain, …)",
    "domain": "a domain is given in the place of the inputs: em.domains.Number(0, 1)",
    "claims": "one audit has one claim; em.profile(…).check(claim) takes any number of them",
    "n": "the number of draws per input is samples=",
    "alpha": "the confidence of the bound is confidence=, 1 minus the error probability",
    "timeout": "the time limit of the audit is max_seconds=",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """How an audit is to be run, as its caller said it; `open_settings` checks and opens it.

    The attributes are the settings of `epsilometer.audit`, which explains them.
    """

    samples: int = 100_000
    confidence: float = 0.95
    seed: int | None = None
    method: str | Method = "auto"
    options: object = None
    jobs: int = 1
    engine: object = "local"
    suppress: Collection[str] = ()
    constant: str = "ask"
    progress: Progress | bool | None = None
    stop_early: bool | None = None
    max_seconds: float | None = None
    checkpoint: str | Path | None = None
    representation: str = "value"
    distance: int = 1
    record: str | Path | None = None

    @classmethod
    def from_keywords(cls, verb: str, keywords: Mapping[str, Any]) -> "AuditConfig":
        """The configuration that the keywords of a call describe.

        Args:
            verb: the function that was called, for messages.
            keywords: what it was given.

        Raises:
            InputError: for a keyword that does not exist, with the one that was probably meant.
        """
        known = [field.name for field in fields(cls)]
        for name in keywords:
            if name not in known:
                hint = _MEANT_ELSEWHERE.get(name)
                hint = f": {hint}" if hint else meant_or_known(name, known)
                raise InputError(f"{verb}() has no setting {name!r}{hint}")
        return cls(**keywords)


def shows_settings(keywords: type) -> Callable[[_Verb], _Verb]:
    """Lets `help` and notebooks show the settings of a verb, with their defaults.

    The verb itself takes `**settings: Unpack[keywords]`, which type checkers understand and
    `inspect.signature` does not.
    """
    defaults = {field.name: field.default for field in fields(AuditConfig)}

    def decorate(verb: _Verb) -> _Verb:
        signature = inspect.signature(verb)
        shown = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        for name, annotation in keywords.__annotations__.items():
            if name in defaults:
                shown.append(
                    inspect.Parameter(
                        name,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=defaults[name],
                        annotation=annotation,
                    )
                )
        if keywords is MeasureKeywords:
            shown.append(
                inspect.Parameter("fixed", inspect.Parameter.VAR_KEYWORD, annotation=float)
            )
        verb.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        return verb

    return decorate
