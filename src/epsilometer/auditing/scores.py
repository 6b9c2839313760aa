"""Audits of machine learning: canary scores from many runs, and guesses from one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsilometer.arrays import Floats
from epsilometer.auditing.profile import ClaimCheck, Profile
from epsilometer.bounds.bands import band_from_scores
from epsilometer.bounds.binomial import check_guesses, one_run_epsilon, one_run_mu, one_run_p_value
from epsilometer.claims import ApproxDP, Claim, PureDP, as_claim
from epsilometer.claims.base import check_confidence
from epsilometer.environment import describe_environment
from epsilometer.errors import InputError

# Fewer scores per side certify next to nothing: the outermost rank alone needs about that many.
FEWEST = 10


@dataclass(frozen=True, slots=True, repr=False)
class ScoreAudit:
    """What the scores of held-in and held-out canaries show.

    Attributes:
        profile: certified bounds for all δ at once.
        auroc: the observed area under the ROC curve: the chance that a held-in score is the larger
            one. An estimate.
        in_scores: sorted, shape (n,).
        out_scores: sorted, shape (m,).
    """

    profile: Profile
    auroc: float
    in_scores: Floats
    out_scores: Floats

    def epsilon(self, delta: float) -> float:
        """A lower bound on ε at this δ."""
        return self.profile.epsilon(delta)

    @property
    def mu(self) -> float:
        """A lower bound on μ."""
        return self.profile.mu

    def tpr(self, fpr: float) -> float:
        """The observed true-positive rate at this false-positive rate.

        It is an estimate; `tpr_lower` is certified.
        """
        if not 0.0 <= fpr <= 1.0:
            raise InputError(f"fpr={fpr!r} must lie between 0 and 1")
        n_out = len(self.out_scores)
        # The small number makes up for rounding in the product.
        n_false_positives = int(np.floor(fpr * n_out + 1e-9))
        if n_false_positives >= n_out:
            return 1.0
        # Scores above the threshold count as members.
        threshold = self.out_scores[n_out - 1 - n_false_positives]
        return float(np.mean(self.in_scores > threshold))

    def tpr_lower(self, fpr: float) -> float:
        """A lower bound on the power of the best attack at this false-positive rate."""
        return self.profile.power(fpr)

    def check(self, claim: Claim | str) -> ClaimCheck:
        """Whether the scores refute a claim."""
        return self.profile.check(claim)

    def __repr__(self) -> str:
        sizes = f"{len(self.in_scores)} held-in and {len(self.out_scores)} held-out scores"
        return f"<ScoreAudit: μ ≥ {self.mu:.4g}, AUROC {self.auroc:.3f}, {sizes}>"

    def _repr_html_(self) -> str:
        """The audit as a notebook shows it."""
        from epsilometer.report.notebook import render_scores_fragment

        return render_scores_fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {"auroc": self.auroc, "profile": self.profile.to_dict()}


def from_scores(
    in_scores: ArrayLike, out_scores: ArrayLike, *, confidence: float = 0.95
) -> ScoreAudit:
    """Audits canary scores: larger scores should mean "was in the training set".

    Args:
        in_scores: shape (n,), scores of canaries that were trained on.
        out_scores: shape (m,), scores of canaries that were not.
        confidence: the confidence with which all bounds hold together.

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
    inside = _as_scores("in_scores", in_scores)
    outside = _as_scores("out_scores", out_scores)
    band = band_from_scores(inside, outside, 1.0 - check_confidence(confidence))
    profile = Profile(
        band=band,
        confidence=confidence,
        guarantee="exact",
        samples_used=(len(inside), len(outside)),
        settings={"mechanism": "membership scores", "confidence": confidence},
        environment=describe_environment(),
    )
    held_in = np.sort(inside)
    held_out = np.sort(outside)
    # The fraction of pairs in which the held-in score is larger; ties count half.
    n_smaller = np.searchsorted(held_out, inside, side="left")
    n_at_most = np.searchsorted(held_out, inside, side="right")
    auroc = float(np.mean(n_smaller + n_at_most) / (2 * len(outside)))
    return ScoreAudit(profile=profile, auroc=auroc, in_scores=held_in, out_scores=held_out)


class OneRun(float):
    """The certified lower bound on ε, a number, with everything else that the guesses certify.

    Attributes:
        delta: the δ at which ε is bounded.
        confidence: the confidence of each bound by itself.
        mu: the lower bound on μ.
        guesses: (m, r, v): canaries, guesses, and right guesses.
    """

    delta: float
    confidence: float
    mu: float
    guesses: tuple[int, int, int]
    guarantee = "exact"

    @property
    def epsilon(self) -> float:
        """The lower bound on ε."""
        return float(self)

    def p_value(self, claim: Claim | str) -> float:
        """The greatest probability of at least v right guesses under an (ε, δ) claim."""
        promised = as_claim(claim)
        if not isinstance(promised, PureDP | ApproxDP):
            raise InputError(
                f"claim={promised.describe()}: the one-run test is for ε and (ε, δ) claims; "
                "see `.mu` for μ"
            )
        m, r, v = self.guesses
        return one_run_p_value(m, r, v, promised.epsilon, promised.delta)

    def to_dict(self) -> dict[str, Any]:
        """The bounds and the guesses as plain data."""
        m, r, v = self.guesses
        return {
            "epsilon": float(self),
            "delta": self.delta,
            "mu": self.mu,
            "confidence": self.confidence,
            "m": m,
            "r": r,
            "v": v,
            "guarantee": self.guarantee,
        }


def one_run(m: int, r: int, v: int, delta: float = 0.0, confidence: float = 0.95) -> OneRun:
    """Audits one training run with m canaries, each included by a fair coin of its own.

    Args:
        m: canaries.
        r: guesses that the auditor made (abstaining on m − r).
        v: guesses that were right.
        delta: the δ of the claim.
        confidence: with which each of the bounds (ε, and `.mu`) holds.

    Returns:
        The lower bound on ε as a number; `.mu` is the one on μ.

    Guarantee: exact, if the guesses used nothing but the run's output and the coins are independent
        and fair. The number of guesses must not depend on which of them turned out right.

    Reference: Steinke, Nasr, Jagielski (2023), Theorem 5.2.

    Example:
        >>> round(em.one_run(m=1000, r=100, v=95, delta=1e-5).epsilon, 1)
        2.2
    """
    check_guesses(m, r, v)
    failure = 1.0 - check_confidence(confidence)
    bound = OneRun(one_run_epsilon(m, r, v, ApproxDP(0.0, delta).delta, failure))
    bound.delta = float(delta)
    bound.confidence = confidence
    bound.guesses = (int(m), int(r), int(v))
    bound.mu = one_run_mu(m, r, v, failure)
    return bound


def _as_scores(name: str, values: ArrayLike | Sequence[float]) -> Floats:
    """Returns the scores as floats of shape (n,), or raises an InputError."""
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
    if scores.ndim != 1 or len(scores) < FEWEST:
        raise InputError(
            f"{name} has shape {scores.shape}: "
            f"it must be one-dimensional with at least {FEWEST} scores"
        )
    if np.isnan(scores).any():
        n_nan = int(np.isnan(scores).sum())
        raise InputError(
            f"{name} holds {n_nan} NaN: a missing score is no evidence; say what it means"
        )
    return scores
