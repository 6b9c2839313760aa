"""The whole privacy curve of a mechanism on a pair of inputs.

One set of draws bounds ε at every δ, the trade-off curve, and μ, all at once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from epsilometer.auditing.api import measure_with_config
from epsilometer.auditing.claim_check import ClaimCheck
from epsilometer.auditing.config import AuditConfig, ProfileKeywords, shows_settings
from epsilometer.bounds.bands import Band, band_from_counts
from epsilometer.claims import Claim, GaussianDP, as_claim
from epsilometer.errors import InputError
from epsilometer.inputs import Inputs
from epsilometer.result import AuditResult, Finding, HealthReport, Verdict
from epsilometer.storage.writing import write_atomically

# One claim or several, or none.
Claims = Claim | str | Sequence[Claim | str] | None
SCHEMA_VERSION = 1
# What a stored profile shows to readers of the bare file.
SHOWN_DELTAS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """Certified lower bounds on the whole privacy curve; all readings hold together.

    Attributes:
        band: bounds on the probabilities of many events.
        confidence: with which all of them hold.
        guarantee: its kind.
        samples_used: draws of left and right, training included.
        health: what the health checks saw.
        settings: seed, sample sizes, mechanism.
        environment: versions and machine.
        seconds: how long it took.
        bits: the same for how floats are written, where representation="all" asked for it.
        best_band: what these draws would have shown at best, of an event that always tells the
            inputs apart; None if that is not known.

    Guarantee: with probability at least `confidence` no reading, at any δ, ε, q or for any claim,
        exceeds the truth.

    Example:
        >>> found = em.profile(em.zoo.gaussian(), samples=5000, seed=0)
        >>> found.check("eps=0.5,delta=1e-3").verdict
        <Verdict.REFUTED: 'refuted'>
    """

    band: Band
    confidence: float
    guarantee: str = "exact"
    samples_used: tuple[int, int] = (0, 0)
    health: tuple[HealthReport, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    bits: "Profile | None" = None
    best_band: Band | None = None

    def epsilon(self, delta: float) -> float:
        """A lower bound on ε at this δ."""
        return self.band.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """A lower bound on δ at this ε."""
        return self.band.delta(epsilon)

    def power(self, q: float) -> float:
        """A lower bound on the power of the best attack with type-I error q."""
        return self.band.power(q)

    @property
    def mu(self) -> float:
        """A lower bound on μ.

        It says nothing about ε at a small δ: not being μ-GDP refutes no (ε, δ).
        """
        return self.band.mu

    def lower_bound(self, claim: Claim | str) -> float:
        """The bound in the claim's own parameter."""
        return self.band.value(as_claim(claim))

    def check(self, claim: Claim | str) -> ClaimCheck:
        """Whether the band refutes a claim of any notion.

        Any number of claims may be checked: the band holds for all of them at once.
        """
        promised = as_claim(claim).scaled(self.settings.get("distance", 1))
        bound = self.band.value(promised)
        if self.is_untrusted:
            verdict = Verdict.INCONCLUSIVE
        elif bound > promised.value:
            verdict = Verdict.REFUTED
        else:
            verdict = Verdict.NOT_REFUTED
        blind = self._blind(promised) if verdict is Verdict.NOT_REFUTED else None
        return ClaimCheck(claim=promised, lower_bound=bound, verdict=verdict, blind=blind)

    @property
    def is_untrusted(self) -> bool:
        """Whether the draws cannot be trusted, so that no figure means anything."""
        return any(report.untrusted for report in self.health)

    def _blind(self, claim: Claim) -> str | None:
        """None; or one sentence, if so few draws could not have refuted the claim at all."""
        # This import points upwards, and is therefore made late: all sentences are in one place.
        from epsilometer.report.wording import too_few_to_refute

        if self.best_band is None:
            return None
        return too_few_to_refute(
            claim,
            self.best_band.value(claim),
            what="draws",
            best_case="an event that always tells the inputs apart",
        )

    def plot(self, path: str | Path | None = None, claim: Claims = None, exact: Any = None) -> Any:
        """Draws ε over δ and the trade-off curve, and returns the figure.

        Args:
            path: where the figure is written, if given; ends in .svg, .png or .pdf.
            claim: one claim or several to draw together with the band.
            exact: the true curve, a function from δ to ε, a zoo entry, or a privacy-loss
                distribution of dp-accounting (anything with `get_epsilon_for_delta`).
        """
        # This import points upwards, and is therefore made late: a profile can draw itself.
        from epsilometer.report.figures import save_figure
        from epsilometer.report.profile_figure import draw_profile

        figure = draw_profile(self, _claims(claim), exact)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def save_html(self, path: str | Path, claim: Claims = None) -> Path:
        """Writes a page with the curves and what they say about claims; returns its path."""
        from epsilometer.report.profile_figure import render_profile

        return write_atomically(path, render_profile(self, _claims(claim)))

    def __bool__(self) -> bool:
        raise TypeError(
            "a profile is neither true nor false: ask profile.epsilon(delta) or profile.mu"
        )

    def __repr__(self) -> str:
        bounds = f"ε ≥ {self.epsilon(0.0):.4g} at δ = 0, μ ≥ {self.mu:.4g}"
        return f"<Profile: {bounds}, confidence {self.confidence:g}>"

    def _repr_html_(self) -> str:
        """The profile as a notebook shows it."""
        from epsilometer.report.notebook import render_profile_fragment

        return render_profile_fragment(self)

    def __str__(self) -> str:
        """The profile in a few lines."""
        from epsilometer.report.formatting import percent
        from epsilometer.report.reservations import reservations

        left, right = self.samples_used
        lines = [
            f"privacy profile, {percent(self.confidence)} confidence for all figures together "
            f"({self.guarantee})"
        ]
        if self.is_untrusted:
            lines.insert(0, "The draws cannot be trusted, so these figures say nothing: see below.")
        weakened = reservations(self.settings)
        if weakened:
            lines.append(f"  with             {weakened}")
        lines += [
            f"  ε at δ = {delta:<7g} at least {self.epsilon(delta):.4g}" for delta in SHOWN_DELTAS
        ]
        lines += [
            f"  μ                at least {self.mu:.4g}",
            f"  samples          {left:,} left, {right:,} right",
        ]
        lines += [f"  draws            {report.name}: {report.message}" for report in self.health]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain data; `from_dict` is the inverse."""
        data = {
            "schema_version": SCHEMA_VERSION,
            "kind": "profile",
            "confidence": self.confidence,
            "guarantee": self.guarantee,
            "epsilon": {f"{delta:g}": self.epsilon(delta) for delta in SHOWN_DELTAS},
            "mu": self.mu,
            "p_lower": list(self.band.p_lower),
            "q_upper": list(self.band.q_upper),
            "samples_used": list(self.samples_used),
            "health": [report.to_dict() for report in self.health],
            "settings": dict(self.settings),
            "environment": dict(self.environment),
            "seconds": self.seconds,
        }
        if self.best_band is not None:
            data["best_band"] = {
                "p_lower": list(self.best_band.p_lower),
                "q_upper": list(self.best_band.q_upper),
            }
        if self.bits is not None:
            data["bits"] = self.bits.to_dict()
        return data

    def to_json(self, indent: int | None = 2) -> str:
        """The profile as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Profile":
        """The inverse of `to_dict`."""
        if not isinstance(data, Mapping) or data.get("kind") != "profile":
            raise InputError("this is not a stored profile: it lacks kind = 'profile'")
        version = data.get("schema_version")
        if version != SCHEMA_VERSION:
            raise InputError(
                f"schema_version={version!r} cannot be read; this reads {SCHEMA_VERSION}"
            )
        try:
            best = data.get("best_band")
            n_left = int(data["samples_used"][0])
            n_right = int(data["samples_used"][1])
            return cls(
                band=_stored_band(data),
                confidence=float(data["confidence"]),
                guarantee=str(data["guarantee"]),
                samples_used=(n_left, n_right),
                health=tuple(HealthReport(**report) for report in data["health"]),
                settings=dict(data["settings"]),
                environment=dict(data["environment"]),
                seconds=float(data["seconds"]),
                bits=cls.from_dict(data["bits"]) if "bits" in data else None,
                best_band=None if best is None else _stored_band(best),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"this is not a stored profile: {error!r}") from error

    @classmethod
    def from_json(cls, text: str) -> "Profile":
        """The inverse of `to_json`."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise InputError(f"this is not JSON: {error}") from error


def _stored_band(data: Mapping[str, Any]) -> Band:
    p_lower = tuple(map(float, data["p_lower"]))
    q_upper = tuple(map(float, data["q_upper"]))
    return Band(p_lower, q_upper)


def _claims(given: Claims) -> list[Claim]:
    """One claim, several or none, as a list."""
    if given is None:
        return []
    if isinstance(given, Claim | str):
        return [as_claim(given)]
    return [as_claim(claim) for claim in given]


@shows_settings(ProfileKeywords)
def profile(
    mechanism: object,
    inputs: Inputs | None = None,
    **settings: Unpack[ProfileKeywords],
) -> Profile:
    """The whole privacy curve on a pair of inputs, from one set of draws.

    Args:
        mechanism: as for `audit`.
        inputs: as for `audit`.
        settings: those of `audit`; a profile needs no claim and has its own method, which draws all
            samples. Claims checked later are scaled to the `distance`.

    Guarantee: exact, and simultaneous: with probability at least `confidence` nothing read off the
        profile exceeds the truth of the pair, if the draws are independent.

    Example:
        >>> found = em.profile(em.zoo.gaussian(), samples=5000, seed=0)
        >>> found.epsilon(delta=0.01) > 1.0, found.mu < 1.0
        (True, True)
    """
    config = AuditConfig.from_keywords("profile", settings)
    for name in ("method", "options", "stop_early"):
        if name in settings:
            raise InputError(f"profile() has no setting {name!r}: it has its own method")
    return profile_with_config(mechanism, inputs, config)


def profile_with_config(
    mechanism: object,
    inputs: Inputs | None,
    config: AuditConfig,
    *,
    may_exit_process: bool = False,
) -> Profile:
    """The function `profile` with its settings in one object, see there and `open_settings`."""
    result = measure_with_config(
        mechanism,
        inputs,
        GaussianDP,
        {},
        replace(config, method="profile"),
        may_exit_process=may_exit_process,
    )
    return profile_of(result)


def profile_of(result: AuditResult) -> Profile:
    """The profile behind a result of the method `profile`."""
    profile_of_values = _profile_of(result.findings[0], result)
    if len(result.findings) < 2 or "p_lower" not in result.findings[1].details:
        return profile_of_values
    return replace(profile_of_values, bits=_profile_of(result.findings[1], result))


def _profile_of(finding: Finding, result: AuditResult) -> Profile:
    """The profile behind one finding of a result."""
    if "p_lower" not in finding.details:
        raise InputError(
            f"a result of the method {finding.method!r} holds no band; use method='profile'"
        )
    band = Band(tuple(finding.details["p_lower"]), tuple(finding.details["q_upper"]))
    return Profile(
        band=band,
        confidence=finding.confidence,
        guarantee=finding.guarantee,
        samples_used=result.samples_used,
        health=result.health,
        settings=result.settings,
        environment=result.environment,
        seconds=result.seconds,
        best_band=_best_band(finding),
    )


def _best_band(finding: Finding) -> Band | None:
    """The band of as many draws and events, if each event always told the inputs apart."""
    if finding.witness is None:
        return None
    left, right = finding.witness.counts
    n_events = len(finding.details["p_lower"])
    above, below = (right, left) if finding.details.get("flipped") else (left, right)
    return band_from_counts(
        [above.trials] * n_events,
        above.trials,
        [0] * n_events,
        below.trials,
        1.0 - finding.confidence,
        left_shares=finding.details.get("left_shares"),
    )
