"""Scores of canaries from many training runs: what they certify about any claim of privacy."""

import json
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.auditing.claim_check import ClaimCheck
from epsilometer.auditing.profile import Profile
from epsilometer.auditing.score_values import WrongWayWarning, read_scores, wrong_way
from epsilometer.bounds.auroc import auroc_interval, observed_auroc
from epsilometer.bounds.bands import hull
from epsilometer.bounds.rank_test import RankTest
from epsilometer.claims import ApproxDP, Claim, GaussianDP, as_claim
from epsilometer.claims.base import as_number, check_confidence
from epsilometer.environment import describe_environment
from epsilometer.errors import InputError
from epsilometer.inputs.copying import equal_fields
from epsilometer.storage.writing import write_atomically

SCHEMA_VERSION = 1
# The part of the failure probability of all simultaneous figures that is spent on the AUROC. So
# small a part costs the band next to nothing, and widens the interval by a third.
_AUROC_SHARE = 1.0 / 40.0
# What `print` shows of the band.
_SHOWN_DELTAS = (0.0, 1e-5, 1e-3)
_SHOWN_FALSE_POSITIVE_RATE = 0.01


@dataclass(frozen=True, slots=True, repr=False)
class ScoreAudit:
    """What the scores of held-in and held-out canaries show.

    There are two kinds of figures. `check`, `p_value`, `epsilon` and `mu` come from an exact rank
    test of one claim: **each of them is one reading at the stated confidence**. `profile`,
    `tpr_lower` and `auroc_interval` come from a band: all of them hold together, however many are
    read, for which they are weaker. `print` shows figures of the band only.

    Attributes:
        profile: certified bounds for all δ at once.
        auroc: the observed area under the ROC curve: the chance that a held-in score is the larger
            one. An estimate.
        auroc_interval: contains the true area; it holds together with all readings of `profile`.
        in_scores: ascending, shape (n,).
        out_scores: ascending, shape (m,).

    Guarantee: exact for independent scores of any two distributions, ties included.

    Example:
        >>> members = np.linspace(0.5, 1.0, 100)
        >>> others = np.linspace(0.0, 0.6, 100)
        >>> em.from_scores(members, others).check("eps=1").verdict
        <Verdict.REFUTED: 'refuted'>
    """

    profile: Profile
    auroc: float
    auroc_interval: tuple[float, float]
    in_scores: Floats
    out_scores: Floats
    _test: RankTest = field(compare=False)

    __eq__ = equal_fields

    @property
    def confidence(self) -> float:
        """The confidence of each single reading, and of the band as a whole."""
        return self.profile.confidence

    @property
    def samples_used(self) -> tuple[int, int]:
        """How many scores are held in and held out."""
        return len(self.in_scores), len(self.out_scores)

    @property
    def n_infinite(self) -> int:
        """How many scores are infinite; they count as larger or smaller than all others."""
        return int(np.isinf(self.in_scores).sum() + np.isinf(self.out_scores).sum())

    def epsilon(self, delta: float) -> float:
        """A lower bound on ε at this δ: one reading; for several use `profile.epsilon`."""
        return self._test.bound(ApproxDP(epsilon=0.0, delta=delta), self._failure)

    @property
    def mu(self) -> float:
        """A lower bound on μ: one reading; for several use `profile.mu`."""
        return self._test.bound(GaussianDP(0.0), self._failure)

    def p_value(self, claim: Claim | str) -> float:
        """The p-value of a claim of any notion.

        If the claim holds, it is at most t with probability at most t, for every t.
        """
        return self._test.p_value(as_claim(claim))

    def check(self, claim: Claim | str) -> ClaimCheck:
        """Whether the scores refute a claim of any notion: one reading.

        To check several claims at once, use `profile.check`, or divide 1 − confidence by their
        number.
        """
        promised = as_claim(claim)
        check = ClaimCheck.of_test(
            promised,
            self._test.bound(promised, self._failure),
            is_refuted=self._test.p_value(promised) <= self._failure,
        )
        return check if check.is_refuted else replace(check, blind=self.blind(promised))

    def tpr(self, fpr: float) -> float:
        """The observed true-positive rate at this false-positive rate.

        It is an estimate; `tpr_lower` is certified.
        """
        rate = _check_rate(fpr)
        n_out = len(self.out_scores)
        # The small number makes up for rounding in the product.
        n_false_positives = int(np.floor(rate * n_out + 1e-9))
        if n_false_positives >= n_out:
            return 1.0
        # Scores above the threshold count as members.
        threshold = self.out_scores[n_out - 1 - n_false_positives]
        return float(np.mean(self.in_scores > threshold))

    def tpr_lower(self, fpr: float) -> float:
        """A lower bound on the true-positive rate of thresholds at this false-positive rate.

        Between two thresholds it is the rate of a guesser who takes one or the other by chance.
        Any number of rates may be read: they hold together with each other and with `profile`.
        """
        rate = _check_rate(fpr)
        # Of the same failure probability as the profile, of whose events these are a part.
        band = self._test.right_way_band(self._failure * (1.0 - _AUROC_SHARE))
        curve = hull(np.array([band.q_upper, band.p_lower]).T)
        return float(np.interp(rate, curve.x, curve.y))

    def greatest_epsilon(self, delta: float) -> float:
        """The largest ε at this δ that so many scores can show at all: all of them apart.

        A larger one is out of reach, whatever the attack.
        """
        return self.greatest_bound(ApproxDP(epsilon=0.0, delta=delta))

    def greatest_bound(self, claim: Claim | str) -> float:
        """The largest value of a claim's parameter that so many scores can refute at all."""
        n_in, n_out = self.samples_used
        apart = RankTest.of_scores(np.ones(n_in), np.zeros(n_out))
        return apart.bound(as_claim(claim), self._failure)

    def blind(self, claim: Claim | str) -> str | None:
        """None; or one sentence, if so few scores could not have refuted the claim at all."""
        from epsilometer.report.wording import too_few_to_refute

        promised = as_claim(claim)
        return too_few_to_refute(
            promised,
            self.greatest_bound(promised),
            what="scores",
            best_case="perfectly separated ones",
        )

    def plot(self, path: str | Path | None = None, claim: Claim | str | None = None) -> Any:
        """Draws the ROC curve and the trade-off curve with the band, and returns the figure.

        Args:
            path: where the figure is written, if given; ends in .svg, .png or .pdf.
            claim: a claim to draw together with the band.
        """
        # This import points upwards, and is therefore made late: an audit can draw itself.
        from epsilometer.report.figures import save_figure
        from epsilometer.report.scores_figure import draw_scores

        figure = draw_scores(self, None if claim is None else as_claim(claim))
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def save_html(
        self, path: str | Path, claim: Claim | str | None = None, delta: float | None = None
    ) -> Path:
        """Writes a page with the curves and what the scores say about a claim; returns its path.

        Args:
            path: of the page.
            claim: judged on the page, if given.
            delta: the page says the bound on ε at this δ, one more reading, if given.
        """
        from epsilometer.report.scores_figure import render_scores

        promised = None if claim is None else as_claim(claim)
        return write_atomically(path, render_scores(self, promised, delta))

    @property
    def _failure(self) -> float:
        return 1.0 - self.profile.confidence

    def __repr__(self) -> str:
        n_in, n_out = self.samples_used
        bounds = f"ε ≥ {self.profile.epsilon(0.0):.4g} at δ = 0, μ ≥ {self.profile.mu:.4g}"
        return (
            f"<ScoreAudit: {bounds}, AUROC {self.auroc:.3f}, "
            f"{n_in} held-in and {n_out} held-out scores>"
        )

    def __str__(self) -> str:
        """The audit in at most ten lines; the figures are those of the band."""
        from epsilometer.report.formatting import figure, figure_down, figure_up, percent

        n_in, n_out = self.samples_used
        lines = [
            f"membership scores, {percent(self.confidence)} confidence for all figures together "
            "(exact)"
        ]
        lines += [
            f"  ε at δ = {delta:<7g} at least {figure_down(self.profile.epsilon(delta))}"
            for delta in _SHOWN_DELTAS
        ]
        rate = _SHOWN_FALSE_POSITIVE_RATE
        lower, upper = self.auroc_interval
        infinite = f", {self.n_infinite:,} of them infinite" if self.n_infinite else ""
        lines += [
            f"  μ                at least {figure_down(self.profile.mu)}",
            f"  TPR at {percent(rate)} FPR    at least {figure_down(self.tpr_lower(rate))}, "
            f"observed {figure(self.tpr(rate))}",
            f"  AUROC            {figure(self.auroc)} observed, "
            f"from {figure_down(lower)} to {figure_up(upper)}",
            f"  scores           {n_in:,} held in, {n_out:,} held out{infinite}",
            "  for one question .epsilon(delta), .mu or .check(claim) is sharper",
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The audit as a notebook shows it."""
        from epsilometer.report.notebook import render_scores_fragment

        return render_scores_fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """The figures of the band as plain data."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "scores",
            "confidence": self.confidence,
            "guarantee": self.profile.guarantee,
            "samples_used": list(self.samples_used),
            "infinite_scores": self.n_infinite,
            "auroc": self.auroc,
            "auroc_interval": list(self.auroc_interval),
            "greatest_epsilon": self.greatest_epsilon(0.0),
            "profile": self.profile.to_dict(),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The figures of the band as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)


def from_scores(in_scores: object, out_scores: object, *, confidence: float = 0.95) -> ScoreAudit:
    """Audits canary scores: larger scores should mean "was in the training set".

    Args:
        in_scores: shape (n,), scores of canaries that were trained on: a list, an array of NumPy
            or jax, a series of pandas or polars, a tensor of torch. At least 10; infinite ones are
            allowed.
        out_scores: shape (m,), scores of canaries that were not.
        confidence: of each single reading, and of all readings of the band together.

    Guarantee: exact if the scores of each side are independent and identically distributed, e.g.
        one canary per run. Scores of many canaries of one run are not independent; use `one_run`
        for them.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> in_scores = 1.0 + rng.normal(size=1000)
        >>> out_scores = rng.normal(size=1000)
        >>> em.from_scores(in_scores, out_scores).epsilon(delta=0.01) > 0.5
        True
    """
    failure = 1.0 - check_confidence(confidence)
    held_in = np.sort(read_scores("in_scores", in_scores))
    held_out = np.sort(read_scores("out_scores", out_scores))
    n_in = len(held_in)
    n_out = len(held_out)
    test = RankTest.of_scores(held_in, held_out)
    auroc = observed_auroc(held_in, held_out)
    points_the_wrong_way = wrong_way(held_in, held_out)
    if points_the_wrong_way is not None:
        warnings.warn(
            f"{points_the_wrong_way}. The bounds hold all the same, but they would be better",
            WrongWayWarning,
            stacklevel=2,
        )
    profile = Profile(
        band=test.band(failure * (1.0 - _AUROC_SHARE)),
        confidence=float(confidence),
        guarantee="exact",
        samples_used=(n_in, n_out),
        settings={"mechanism": "membership scores", "confidence": float(confidence)},
        environment=describe_environment(),
    )
    return ScoreAudit(
        profile=profile,
        auroc=auroc,
        auroc_interval=auroc_interval(auroc, n_in, n_out, failure * _AUROC_SHARE),
        in_scores=held_in,
        out_scores=held_out,
        _test=test,
    )


def _check_rate(fpr: float) -> float:
    rate = as_number("fpr", fpr)
    if not 0.0 <= rate <= 1.0:
        raise InputError(f"fpr={fpr!r} must lie between 0 and 1")
    return rate
