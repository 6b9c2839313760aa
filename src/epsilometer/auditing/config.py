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
    """The keywords of `audit` for type checkers; `AuditConfig` says what they mean."""

    samples: int
    confidence: float
    seed: int | None
    method: str | Method
    options: object
    jobs: int
    engine: object
    suppress: Collection[str]
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


class ProfileKeywords(TypedDict, total=False):
    """The keywords of `profile`: those of `audit` but for method, options and stopping early."""

    samples: int
    confidence: float
    seed: int | None
    jobs: int
    engine: object
    suppress: Collection[str]
    progress: Progress | bool | None
    max_seconds: float | None
    checkpoint: str | Path | None
    representation: str
    distance: int
    record: str | Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """How an audit is to be run, as its caller said it; `open_settings` checks and opens it.

    Attributes:
        samples: draws per side for the whole audit: search, training and certification included.
            With a finder, draws per side for each pair that is certified; a trial takes the
            finder's own samples.
        confidence: the probability with which the bound must hold.
        seed: makes the audit repeatable; None takes fresh entropy and records it.
        method: a name of `epsilometer methods`, or an object that does what
            `epsilometer.methods.Method` says.
        options: settings of that method, an object of its own kind or a mapping of their names.
        jobs: worker processes on this machine; they do not change the result.
        engine: where the workers run: "local", the address of a Dask scheduler
            ("dask://host:port") or of a Ray cluster ("ray://host:port"), or a Client of Dask.
        suppress: names of health checks to switch off; the result records them.
        progress: True shows how far it is, False nothing, None does so in a notebook; or a
            `ProgressBar`, or its like.
        stop_early: draws in growing batches and stops as soon as the claim is refuted; `samples`
            is then the most that may be drawn. For mechanisms that take long. The same as
            method="sequential".
        max_seconds: ends the audit after this many seconds, even in the middle of a call that
            hangs. With stop_early the result says what was certified until then, and a search what
            it certified; otherwise an audit that has not drawn all its samples has no bound and
            raises `MechanismError`, and `checkpoint` keeps what was drawn.
        checkpoint: a file from which an interrupted audit resumes, to the result of an audit
            without interruption.
        representation: "value" judges outputs by their values, "bits" by sign, exponent and
            trailing zero bits of floating-point numbers, "all" by their values, with a separate
            finding about the bits.
        distance: how many neighbouring steps the inputs are apart; the claim is scaled to the
            group.
        record: a .jsonl or .npz file that keeps all draws; audited with `from_recording`, it gives
            the same result.
    """

    samples: int = 100_000
    confidence: float = 0.95
    seed: int | None = None
    method: str | Method = "auto"
    options: object = None
    jobs: int = 1
    engine: object = "local"
    suppress: Collection[str] = ()
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
                raise InputError(f"{verb}() has no setting {name!r}{meant_or_known(name, known)}")
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
