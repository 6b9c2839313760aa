"""What an audit returns: a verdict, findings with their guarantee, and a witness that anyone can replay."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.bounds import Counts, lower, upper
from epsilometer.claims import Claim
from epsilometer.claims import from_dict as claim_from_dict
from epsilometer.errors import InputError, PrivacyViolation
from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import pair_from_dict, pair_to_dict
from epsilometer.outputs import Event
from epsilometer.outputs.events import LogRatio, witness_from_dict
from epsilometer.storage.writing import write_whole

if TYPE_CHECKING:  # slow to import, and only needed to draw
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1


class Verdict(StrEnum):
    """What an audit says about a claim. There is no word for "private": a black-box audit cannot prove that.

    Example:
        >>> em.audit(em.zoo.laplace(), samples=1000, seed=0).verdict
        <Verdict.NOT_REFUTED: 'not refuted'>
    """

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"


def _by_name(record: Any) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


@dataclass(frozen=True, slots=True)
class Witness:
    """A counterexample: a pair of inputs, an event, and how often it happened on fresh draws.

    Attributes:
        pair: the two inputs.
        event: the set of outputs, or a score of them (its counts are then of the outputs that the score favours).
        flipped: False when P, the distribution that makes the event more likely, is that of the left input.
        left_counts: hits and draws of the left input.
        right_counts: hits and draws of the right input.
        p_lower: lower bound on P(event), on its own at half the failure probability.
        q_upper: upper bound on Q(event), likewise.

    Example:
        >>> em.audit(em.zoo.dp_mean(), samples=1000, seed=0).witness.counts[0].trials
        700
    """

    pair: Pair
    event: Event | LogRatio
    flipped: bool
    left_counts: Counts
    right_counts: Counts
    p_lower: float
    q_upper: float

    @classmethod
    def of(
        cls, pair: Pair, event: Event | LogRatio, flipped: bool, left: Counts, right: Counts, failure_probability: float
    ) -> "Witness":
        """An event with its counts, each of which is bounded at half the failure probability."""
        above, below = (right, left) if flipped else (left, right)
        bounds = lower(above, failure_probability / 2), upper(below, failure_probability / 2)
        return cls(pair, event, flipped, left, right, *bounds)

    @property
    def counts(self) -> tuple[Counts, Counts]:
        """Left and right."""
        return self.left_counts, self.right_counts

    @property
    def is_deterministic(self) -> bool:
        """Whether the event always happened on one side and never on the other."""
        above, below = self.counts[::-1] if self.flipped else self.counts
        return above.hits == above.trials > 0 and below.hits == 0 < below.trials

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        what = {"pair": pair_to_dict(self.pair), "event": self.event.to_dict()}
        left, right = ([counts.hits, counts.trials] for counts in self.counts)
        counted = {"left_counts": left, "right_counts": right, "p_lower": self.p_lower, "q_upper": self.q_upper}
        return {**what, "likelier_under": "right" if self.flipped else "left", **counted}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Witness":
        """The inverse of `to_dict`."""
        what = pair_from_dict(data["pair"]), witness_from_dict(data["event"]), data["likelier_under"] == "right"
        left, right = (Counts(*map(int, data[key])) for key in ("left_counts", "right_counts"))
        return cls(*what, left, right, float(data["p_lower"]), float(data["q_upper"]))


@dataclass(frozen=True, slots=True)
class Finding:
    """One certified (or otherwise guaranteed) bound.

    Attributes:
        method: which method found it.
        lower_bound: in the parameter of `claim`; at least 0 and finite.
        guarantee: "exact", "asymptotic", "conditional: …" or "none: …".
        confidence: with which the bound holds.
        witness: the counterexample behind it, when there is one.
        claim: the notion and its fixed parameters.
        details: method-specific figures, plain data.

    Example:
        >>> em.audit(em.zoo.dp_mean(), samples=1000, seed=0).findings[0].guarantee
        'exact'
    """

    method: str
    lower_bound: float
    guarantee: str
    confidence: float
    witness: Witness | None
    claim: Claim
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        parts = {"witness": self.witness.to_dict() if self.witness else None, "claim": self.claim.to_dict()}
        return {**_by_name(self), **parts, "details": dict(self.details)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Finding":
        """The inverse of `to_dict`."""
        said = str(data["method"]), float(data["lower_bound"]), str(data["guarantee"]), float(data["confidence"])
        witness = Witness.from_dict(data["witness"]) if data["witness"] else None
        return cls(*said, witness, claim_from_dict(data["claim"]), dict(data["details"]))


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What a named health check saw.

    Attributes:
        name: which check.
        message: what it saw, in words.
        untrusted: whether the draws cannot be trusted, so that the verdict is inconclusive.
    """

    name: str
    message: str
    untrusted: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the keywords of the constructor."""
        return _by_name(self)


@dataclass(frozen=True, slots=True, eq=False)
class AuditResult:
    """The answer of `audit`, `measure`, `compare` and `replay`.

    Attributes:
        verdict: None when nothing was claimed.
        claim: what was claimed; for a measurement the notion with its parameter at 0.
        confidence: of the whole audit.
        findings: every finding, the deciding one first.
        samples_used: draws of left and right, search and training included.
        detectable: the smallest true value that this audit, if it did not refute, would have refuted with at least 90 %
            power on this pair, for leaks of a kind that such outputs can have. Infinite when the run could hardly have
            refuted anything, None when unknown. Worked out when it is first asked for.
        health: what the health checks saw.
        settings: seed, sample sizes, method, mechanism.
        environment: versions and machine.
        seconds: how long it took.
        date: when it ended, in UTC.
        identity: of the code: `code_digest`, `file`, `commit`, `dirty`, where they are known. That of a function is
            worked out when it is first asked for, or stored.
        p_value: the least failure probability (1 − confidence) at which the deciding certificate would refute the
            claim, 1 if not even 0.5 would; None for a measurement or untrusted draws. Worked out when asked for.

    Example:
        >>> result = em.audit(em.zoo.dp_mean(), samples=1000, seed=0)
        >>> result.is_refuted, result.lower_bound > 1.0, result.p_value < 0.05
        (True, True, True)
    """

    verdict: Verdict | None
    claim: Claim
    confidence: float
    findings: tuple[Finding, ...]
    samples_used: tuple[int, int]
    detectable: float | None
    health: tuple[HealthReport, ...]
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    seconds: float
    p_value: float | None = None
    date: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lower_bound(self) -> float:
        """The certified lower bound in the claim's own parameter."""
        return self.findings[0].lower_bound

    @property
    def guarantee(self) -> str:
        """The kind of guarantee of the deciding finding."""
        return self.findings[0].guarantee

    @property
    def witness(self) -> Witness | None:
        """The counterexample of the deciding finding."""
        return self.findings[0].witness

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict is Verdict.REFUTED

    def __eq__(self, other: object) -> bool:
        # By what would be stored: witnesses hold arrays, which have no single truth value.
        return isinstance(other, AuditResult) and (self is other or self.to_dict() == other.to_dict())

    __hash__ = None  # type: ignore[assignment]  # it holds dicts

    def __bool__(self) -> bool:
        # `assert em.audit(…)` reads like a test and would never fail.
        hint = "ask result.is_refuted or result.verdict, or call result.raise_if_refuted() in a test"
        raise TypeError(f"a result is neither true nor false: {hint}")

    def raise_if_refuted(self) -> "AuditResult":
        """Raises `PrivacyViolation` with the counterexample when the claim is refuted; returns itself otherwise."""
        if self.is_refuted:
            raise PrivacyViolation(str(self), self)
        return self

    def __str__(self) -> str:
        """The result in plain words."""
        from epsilometer.report.text import render_text  # late, because reports import results

        return render_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from epsilometer.report.text import render_fragment

        return render_fragment(self)

    def plot(self, kind: str | None = None) -> "Figure":
        """The pictures of this result as a matplotlib figure.

        Args:
            kind: only one of them: "outputs", "trade-off", "profile", "search" or "wealth"; None draws all that the
                result has data for.
        """
        from epsilometer.report.figures import plot
        from epsilometer.report.text import for_notebooks

        return for_notebooks(plot(self, kind))

    def save_html(self, path: str | Path) -> Path:
        """Writes the report as one self-contained page and returns its path; an old file stays until it is complete."""
        from epsilometer.report.html import render_html

        return write_whole(path, render_html(self))

    def save_json(self, path: str | Path) -> Path:
        """Writes the result as JSON and returns its path; `from_json` reads it, `epsilometer verify` checks it."""
        return write_whole(path, self.to_json() + "\n")

    def to_test(self) -> str:
        """The counterexample as a file for pytest: it fails until the mechanism keeps its claim on this pair."""
        from epsilometer.report.ci import render_test

        return render_test(self)

    def plot_loss(self) -> "Figure":
        """The loss function as a matplotlib figure: both output distributions above, the loss of each output below.

        For audits whose outputs are single numbers or names. An estimate from training draws: it shows where a
        mechanism leaks; how much it leaks at least is `lower_bound`.
        """
        from epsilometer.report.figures import plot_loss
        from epsilometer.report.text import for_notebooks

        return for_notebooks(plot_loss(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        said: dict[str, Any] = {"verdict": str(self.verdict) if self.verdict else None, "claim": self.claim.to_dict()}
        said |= {name: getattr(self, name) for name in ("lower_bound", "confidence", "guarantee", "detectable")}
        said |= {"witness": self.witness.to_dict() if self.witness else None}
        said |= {"findings": [each.to_dict() for each in self.findings], "samples_used": list(self.samples_used)}
        said |= {"health": [report.to_dict() for report in self.health], "settings": dict(self.settings)}
        said |= {"environment": dict(self.environment), "seconds": self.seconds, "p_value": self.p_value}
        return {"schema_version": SCHEMA_VERSION, **said, "date": self.date, "identity": dict(self.identity)}

    def to_json(self, indent: int | None = 2) -> str:
        """Strict JSON in ASCII, so that any text can be encoded, lone surrogates too; no NaN, no infinities."""
        return json.dumps(_finite(self.to_dict()), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "AuditResult":
        """The inverse of `to_dict`."""
        version = data.get("schema_version") if isinstance(data, Mapping) else None
        if version != SCHEMA_VERSION:
            raise InputError(f"schema_version={version!r} cannot be read here; this version reads {SCHEMA_VERSION}")
        try:
            if not data["findings"] or not isinstance(data["findings"], list):
                raise ValueError("it has no findings")
            verdict = Verdict(data["verdict"]) if data["verdict"] else None
            claim, confidence = claim_from_dict(data["claim"]), float(data["confidence"])
            findings = tuple(map(Finding.from_dict, data["findings"]))
            used = int(data["samples_used"][0]), int(data["samples_used"][1])
            detectable = None if data["detectable"] is None else float(data["detectable"])
            health = tuple(HealthReport(**report) for report in data["health"])
            run = dict(data["settings"]), dict(data["environment"]), float(data["seconds"])
            p_value = None if data.get("p_value") is None else float(data["p_value"])
            code = str(data.get("date", "")), dict(data.get("identity", {}))
            return cls(verdict, claim, confidence, findings, used, detectable, health, *run, p_value, *code)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise InputError(f"this is not a stored audit result: {error!r}") from error

    @classmethod
    def from_json(cls, text: str) -> "AuditResult":
        """The inverse of `to_json`."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise InputError(f"this is not JSON: {error}") from error


class _WhenAsked:
    """A field that may hold a function, called when the value, which may take longer than the audit, is needed."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot

    def __get__(self, result: AuditResult | None, owner: type) -> Any:
        if result is None:
            return self
        value = self.slot.__get__(result, owner)
        if callable(value):
            value = value()
            self.slot.__set__(result, value)
        return value

    def __set__(self, result: AuditResult, value: Any) -> None:
        self.slot.__set__(result, value)


def changed(result: AuditResult, **others: Any) -> AuditResult:
    """The result with other fields. Unlike `dataclasses.replace`, it does not compute values not yet asked for."""
    return replace(result, **{name: vars(AuditResult)[name].slot.__get__(result) for name in _LATE} | others)


_LATE = ("detectable", "p_value", "identity")
for _name in _LATE:
    setattr(AuditResult, _name, _WhenAsked(vars(AuditResult)[_name]))


def _finite(value: Any) -> Any:
    """Infinities and NaN, which JSON lacks, as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
