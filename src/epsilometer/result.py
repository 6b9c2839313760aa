"""What an audit returns: a verdict, findings with their guarantee, and a witness to replay."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from epsilometer.bounds import Counts, lower, upper
from epsilometer.claims import Claim
from epsilometer.claims import from_dict as claim_from_dict
from epsilometer.claims.base import check_flag
from epsilometer.errors import BlindAudit, InputError, PrivacyViolation
from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import pair_from_dict, pair_to_dict
from epsilometer.outputs import Event
from epsilometer.outputs.events import LogRatio, witness_from_dict
from epsilometer.storage.writing import write_atomically

if TYPE_CHECKING:  # slow to import, and only needed to draw
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1


class Verdict(StrEnum):
    """What an audit says about a claim.

    There is no word for "private": a black-box audit cannot prove that.

    Example:
        >>> em.audit(em.zoo.laplace(), samples=1000, seed=0).verdict
        <Verdict.NOT_REFUTED: 'not refuted'>
    """

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Witness:
    """A counterexample: a pair of inputs, an event, and how often it happened on fresh draws.

    Attributes:
        pair: the two inputs.
        event: the set of outputs, or a score of them (its counts are then of the outputs that the
            score favours).
        flipped: False when P, the distribution that makes the event more likely, is that of the
            left input.
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
        cls,
        pair: Pair,
        event: Event | LogRatio,
        *,
        flipped: bool,
        left: Counts,
        right: Counts,
        failure_probability: float,
    ) -> "Witness":
        """An event with its counts, each bounded at half the failure probability."""
        above, below = (right, left) if flipped else (left, right)
        return cls(
            pair=pair,
            event=event,
            flipped=flipped,
            left_counts=left,
            right_counts=right,
            p_lower=lower(above, failure_probability / 2),
            q_upper=upper(below, failure_probability / 2),
        )

    def __repr__(self) -> str:
        side = "right" if self.flipped else "left"
        left = f"{self.left_counts.hits} of {self.left_counts.trials}"
        right = f"{self.right_counts.hits} of {self.right_counts.trials}"
        return f"<Witness: {left} left and {right} right draws, likelier under {side}>"

    @property
    def counts(self) -> tuple[Counts, Counts]:
        """The counts of left and right."""
        return self.left_counts, self.right_counts

    @property
    def is_deterministic(self) -> bool:
        """Whether the event always happened on one side and never on the other."""
        above, below = self.counts[::-1] if self.flipped else self.counts
        always = above.hits == above.trials > 0
        never = below.hits == 0 < below.trials
        return always and never

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "pair": pair_to_dict(self.pair),
            "event": self.event.to_dict(),
            "likelier_under": "right" if self.flipped else "left",
            "left_counts": [self.left_counts.hits, self.left_counts.trials],
            "right_counts": [self.right_counts.hits, self.right_counts.trials],
            "p_lower": self.p_lower,
            "q_upper": self.q_upper,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Witness":
        """The inverse of `to_dict`."""
        left_hits, left_trials = data["left_counts"]
        right_hits, right_trials = data["right_counts"]
        return cls(
            pair=pair_from_dict(data["pair"]),
            event=witness_from_dict(data["event"]),
            flipped=data["likelier_under"] == "right",
            left_counts=Counts(int(left_hits), int(left_trials)),
            right_counts=Counts(int(right_hits), int(right_trials)),
            p_lower=float(data["p_lower"]),
            q_upper=float(data["q_upper"]),
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One certified (or otherwise guaranteed) bound.

    Attributes:
        method: the method that found it.
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

    def __repr__(self) -> str:
        bound = f"{self.claim.symbol} ≥ {self.lower_bound:.4g}"
        certainty = f"at confidence {self.confidence:g}, {self.guarantee}"
        return f"<Finding by {self.method}: {bound} {certainty}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "method": self.method,
            "lower_bound": self.lower_bound,
            "guarantee": self.guarantee,
            "confidence": self.confidence,
            "witness": None if self.witness is None else self.witness.to_dict(),
            "claim": self.claim.to_dict(),
            "details": dict(self.details),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Finding":
        """The inverse of `to_dict`."""
        return cls(
            method=str(data["method"]),
            lower_bound=float(data["lower_bound"]),
            guarantee=str(data["guarantee"]),
            confidence=float(data["confidence"]),
            witness=Witness.from_dict(data["witness"]) if data["witness"] else None,
            claim=claim_from_dict(data["claim"]),
            details=dict(data["details"]),
        )


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What a named health check saw.

    Attributes:
        name: of the check.
        message: what it saw, in words.
        untrusted: whether the draws cannot be trusted, so that the verdict is inconclusive.
    """

    name: str
    message: str
    untrusted: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the keywords of the constructor."""
        return {"name": self.name, "message": self.message, "untrusted": self.untrusted}


class OnRequest:
    """Values of a result that can take longer than its audit.

    Each is given as the value itself or as a function without arguments, which is called when the
    value is first read. Copies of a result share this object, so nothing is computed twice. A
    pickled one takes the functions along.

    Args:
        detectable: see `AuditResult.detectable`; simulates some dozens of audits.
        detectable_mass: see `AuditResult.detectable_mass`; learns some dozens of times.
        p_value: see `AuditResult.p_value`; recomputes the certificate a few times.
        identity: see `AuditResult.identity`; asks git about the file of the mechanism.

    Attributes:
        seconds: how long the values took that were read so far.
    """

    def __init__(
        self,
        *,
        detectable: float | Callable[[], float | None] | None = None,
        detectable_mass: float | Callable[[], float | None] | None = None,
        p_value: float | Callable[[], float | None] | None = None,
        identity: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self.seconds = 0.0
        self._values: dict[str, Any] = {
            "detectable": detectable,
            "detectable_mass": detectable_mass,
            "p_value": p_value,
            "identity": {} if identity is None else identity,
        }

    def read(self, name: str) -> Any:
        """The value of that name, computed now if it was not before."""
        value = self._values[name]
        if callable(value):
            began = time.perf_counter()
            value = value()
            self._values[name] = value
            self.seconds += time.perf_counter() - began
        return value


if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # in typing from Python 3.13 on

    VerdictT = TypeVarWithDefault(
        "VerdictT", bound=Verdict | None, default=Verdict | None, covariant=True
    )
else:
    VerdictT = TypeVar("VerdictT")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AuditResult(Generic[VerdictT]):
    """The answer of `audit`, `measure`, `compare` and `replay`.

    A result is data: printing its `repr`, comparing, copying and pickling compute nothing.
    `detectable`, `detectable_mass`, `p_value` and `identity` are computed when they are first read;
    `str(result)`, `to_dict`, `to_json` and `save_*` read them.

    For type checkers `audit` returns an `AuditResult[Verdict]` and `measure` an
    `AuditResult[None]`; `AuditResult` alone is either.

    Attributes:
        verdict: None when nothing was claimed.
        claim: what was claimed; for a measurement the notion with its parameter at 0.
        confidence: of the whole audit.
        findings: every finding, the deciding one first.
        samples_used: draws of left and right, search and training included.
        health: what the health checks saw.
        settings: seed, sample sizes, method, mechanism.
        environment: versions and machine.
        seconds: how long it took.
        date: when it ended, in UTC.
        blind: why this audit could not have refuted anything, as one sentence; None if it could,
            for a refuted claim, and for a measurement. Read it before "not refuted".
        on_request: the values that are computed when they are first read.

    Example:
        >>> result = em.audit(em.zoo.dp_mean(), samples=1000, seed=0)
        >>> result.is_refuted, result.lower_bound > 1.0, result.p_value < 0.05
        (True, True, True)
    """

    verdict: VerdictT
    claim: Claim
    confidence: float
    findings: tuple[Finding, ...]
    samples_used: tuple[int, int]
    health: tuple[HealthReport, ...]
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    seconds: float
    date: str = ""
    blind: str | None = None
    on_request: OnRequest = field(default_factory=OnRequest)

    @property
    def waited_seconds(self) -> float:
        """How long it took, with what was computed on request so far."""
        return self.seconds + self.on_request.seconds

    @property
    def lower_bound(self) -> float:
        """The certified lower bound in the claim's own parameter."""
        return self.findings[0].lower_bound

    @property
    def guarantee(self) -> str:
        """The kind of guarantee of the deciding finding."""
        return self.findings[0].guarantee

    @property
    def witness(self) -> Witness | Any:
        """The counterexample of the deciding finding.

        None for methods that bound a divergence without naming an event. `Any` in its type stands
        for that None: who chose the method knows, and `result.witness.event` needs no check.
        """
        return self.findings[0].witness

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict is Verdict.REFUTED

    @property
    def detectable(self) -> float | None:
        """The smallest true value that this audit would have refuted with at least 90 % power.

        Of an audit that did not refute: on its pair, for leaks that are spread over the usual
        outputs; see `detectable_mass` for rare ones. Infinite when the run could hardly have
        refuted anything, None when unknown. Reading it for the first time takes a second or more:
        some dozens of audits are simulated.
        """
        value: float | None = self.on_request.read("detectable")
        return value

    @property
    def detectable_mass(self) -> float | None:
        """The smallest probability of an output that only one input gives, seen with 90 % power.

        Of an audit that did not refute: such an output (a new key, a value that never came before)
        refutes the claim if it comes often enough, and stays unseen if it is rarer than this.
        Infinite when it would not even be seen if it came always, None when unknown. Reading it for
        the first time takes a second or more.
        """
        value: float | None = self.on_request.read("detectable_mass")
        return value

    @property
    def p_value(self) -> float | None:
        """The p-value of the claim, by the deciding certificate.

        If the claim holds, it is at most t with probability at most t, for every t at once, so that
        p-values of several audits can be combined. It is at most 1 − confidence where the claim is
        refuted, and above otherwise. For bets it is one over the largest wealth; for counts see
        `epsilometer.bounds.p_values`. None for a measurement, for untrusted draws, and where the
        guarantee is not exact. Reading it for the first time takes some milliseconds.
        """
        value: float | None = self.on_request.read("p_value")
        return value

    @property
    def identity(self) -> Mapping[str, Any]:
        """What was audited: `code_digest`, `file`, `commit` and `dirty`, where they are known.

        Reading it for the first time may ask git about the file, which takes some milliseconds.
        """
        value: Mapping[str, Any] = self.on_request.read("identity")
        return value

    def __repr__(self) -> str:
        verdict = "measured" if self.verdict is None else str(self.verdict)
        bound = f"{self.claim.symbol} ≥ {self.lower_bound:.4g}"
        against = "" if self.verdict is None else f", claim {self.claim.value:g}"
        return f"<AuditResult {verdict}: {bound}{against}, confidence {self.confidence:g}>"

    def __eq__(self, other: object) -> bool:
        # By what would be stored: witnesses hold arrays, which have no single truth value. What is
        # computed on request follows from the rest.
        if not isinstance(other, AuditResult):
            return NotImplemented
        return self is other or self._stored_fields() == other._stored_fields()

    __hash__ = None  # type: ignore[assignment]  # it holds dicts

    def __bool__(self) -> bool:
        # `assert em.audit(…)` reads like a test and would never fail.
        raise TypeError(
            "a result is neither true nor false: ask result.is_refuted or result.verdict, "
            "or call result.raise_if_refuted() in a test"
        )

    def raise_if_refuted(self, *, fail_blind: bool = False) -> Self:
        """Raises `PrivacyViolation` with the counterexample when the claim is refuted.

        Args:
            fail_blind: also raises `BlindAudit` when the audit could not have refuted anything.

        Returns:
            Itself otherwise.
        """
        __tracebackhide__ = True  # pytest shows the line of the test, and not this one
        # This import points upwards, and is therefore made late.
        from epsilometer.report.headline import headline

        check_flag("fail_blind", fail_blind)
        if self.is_refuted:
            raise PrivacyViolation(f"{headline(self)}\n\n{self}", self)
        if fail_blind and self.blind is not None:
            raise BlindAudit(f"{headline(self)}\n\n{self}", self)
        return self

    def __str__(self) -> str:
        """The result in plain words."""
        from epsilometer.report.text import render_text  # late, because reports import results

        return render_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from epsilometer.report.notebook import render_fragment

        return render_fragment(self)

    def plot(self, kind: str | None = None) -> "Figure":
        """The pictures of this result as a matplotlib figure.

        Args:
            kind: only one of them: "outputs", "trade-off", "profile", "search" or "wealth"; None
                draws all that the result has data for.
        """
        from epsilometer.report.figures import plot
        from epsilometer.report.notebook import for_notebooks

        return for_notebooks(plot(self, kind))

    def plot_loss(self) -> "Figure":
        """The loss function as a matplotlib figure.

        Both output distributions stand above, the loss of each output below. For audits whose
        outputs are single numbers or names. An estimate from training draws: it shows where a
        mechanism leaks; how much it leaks at least is `lower_bound`.
        """
        from epsilometer.report.figures import plot_loss
        from epsilometer.report.notebook import for_notebooks

        return for_notebooks(plot_loss(self))

    def save_html(self, path: str | Path) -> Path:
        """Writes the report as one self-contained page and returns its path.

        An old file stays until the new one is complete.
        """
        from epsilometer.report.html import render_html

        return write_atomically(path, render_html(self))

    def save_json(self, path: str | Path) -> Path:
        """Writes the result as JSON and returns its path.

        `from_json` reads it, `epsilometer verify` checks it.
        """
        return write_atomically(path, self.to_json() + "\n")

    def to_test(self) -> str:
        """The counterexample as a file for pytest.

        It fails until the mechanism keeps its claim on this pair.
        """
        from epsilometer.report.regression_tests import render_test

        return render_test(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        stored = self._stored_fields()
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": stored["verdict"],
            "blind": self.blind,
            "claim": stored["claim"],
            "lower_bound": self.lower_bound,
            "confidence": self.confidence,
            "guarantee": self.guarantee,
            "detectable": self.detectable,
            "detectable_mass": self.detectable_mass,
            "witness": None if self.witness is None else self.witness.to_dict(),
            "findings": stored["findings"],
            "samples_used": stored["samples_used"],
            "health": stored["health"],
            "settings": stored["settings"],
            "environment": stored["environment"],
            "seconds": self.seconds,
            "p_value": self.p_value,
            "date": self.date,
            "identity": dict(self.identity),
        }

    def _stored_fields(self) -> dict[str, Any]:
        """The fields as plain data, without those that are computed on request."""
        return {
            "verdict": None if self.verdict is None else str(self.verdict),
            "claim": self.claim.to_dict(),
            "confidence": self.confidence,
            "findings": [finding.to_dict() for finding in self.findings],
            "samples_used": list(self.samples_used),
            "health": [report.to_dict() for report in self.health],
            "settings": dict(self.settings),
            "environment": dict(self.environment),
            "seconds": self.seconds,
            "date": self.date,
            "blind": self.blind,
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Strict JSON: no NaN, no infinities.

        In ASCII, so that any text can be encoded, lone surrogates too.
        """
        return json.dumps(_finite(self.to_dict()), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "AuditResult":
        """The inverse of `to_dict`."""
        version = data.get("schema_version") if isinstance(data, Mapping) else None
        if version != SCHEMA_VERSION:
            raise InputError(
                f"schema_version={version!r} cannot be read here; "
                f"this version reads {SCHEMA_VERSION}"
            )
        try:
            if not data["findings"] or not isinstance(data["findings"], list):
                raise ValueError("it has no findings")
            left_used, right_used = data["samples_used"]
            return AuditResult(
                verdict=Verdict(data["verdict"]) if data["verdict"] else None,
                claim=claim_from_dict(data["claim"]),
                confidence=float(data["confidence"]),
                findings=tuple(Finding.from_dict(finding) for finding in data["findings"]),
                samples_used=(int(left_used), int(right_used)),
                health=tuple(HealthReport(**report) for report in data["health"]),
                settings=dict(data["settings"]),
                environment=dict(data["environment"]),
                seconds=float(data["seconds"]),
                date=str(data.get("date", "")),
                blind=_optional_text(data.get("blind")),
                on_request=OnRequest(
                    detectable=_optional_float(data["detectable"]),
                    detectable_mass=_optional_float(data.get("detectable_mass")),
                    p_value=_optional_float(data.get("p_value")),
                    identity=dict(data.get("identity", {})),
                ),
            )
        except (
            KeyError,
            TypeError,
            ValueError,
            IndexError,
            AttributeError,
            OverflowError,
        ) as error:
            raise InputError(f"this is not a stored audit result: {error!r}") from error

    @classmethod
    def from_json(cls, text: str) -> "AuditResult":
        """The inverse of `to_json`."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise InputError(f"this is not JSON: {error}") from error


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)


def _optional_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _finite(value: Any) -> Any:
    """The same data with infinities and NaN, which JSON lacks, as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
