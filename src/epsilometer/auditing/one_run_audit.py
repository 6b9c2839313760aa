"""Audits of one training run with many canaries, each included by a fair coin of its own.

The formulas and their proofs are in `bounds.one_run` (for (ε, δ) claims), in `bounds.one_run_walk`
(for several numbers of guesses at once) and in `bounds.one_run_curves` (for all other claims). Here
scores become guesses: the largest scores are guessed "in", the smallest "out", and nobody has to
say where the middle is. How many are guessed depends on the number of canaries only.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.auditing.canaries import Canaries, read_canaries
from epsilometer.auditing.claim_check import ClaimCheck
from epsilometer.bisection import rejected_end
from epsilometer.bounds.inverse_curves import inverse_of_hull
from epsilometer.bounds.one_run import (
    Guesses,
    check_guesses,
    exact_epsilon,
    exact_p_value,
    one_run_epsilon,
    steinke_epsilon,
    steinke_mu,
    steinke_p_value,
)
from epsilometer.bounds.one_run_curves import curve_mu, curve_p_value, one_run_mu
from epsilometer.bounds.one_run_walk import walk_epsilon, walk_needed, walk_p_value
from epsilometer.claims import (
    ApproxDeltaDP,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    as_claim,
)
from epsilometer.claims.base import check_choice, check_confidence
from epsilometer.engine.seeds import check_seed
from epsilometer.errors import InputError
from epsilometer.inputs.copying import equal_fields
from epsilometer.storage.writing import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Integers = NDArray[np.int_]

# The kinds of guesses: about the largest and the smallest scores, or about the largest only.
GUESS_KINDS = ("both", "in")
# Numbers of guesses as shares of the canaries. For several (ε, δ) tests at once: each costs little.
_WALK_NUMBERS = 14
_LEAST_WALK_SHARE = 0.005
_LEAST_WALK_GUESSES = 8
# The walk's price for δ is u·δ/(1 + e^ε) whatever the guesses are. It is used where five times u·δ
# is within the failure probability; else each number of guesses is tested by itself, and pays.
_WALK_PRICE = 5.0
_SEPARATE_SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
# For curves. Fewer than for (ε, δ), because here each one pays: μ is 3 to 4 % larger than with
# seven at 1000 canaries.
_CURVE_SHARES = (0.03, 0.1, 0.3, 0.8)
# Halvings when the bound of a claim without a formula of its own is searched for. Each takes up to
# a tenth of a second.
_HALVINGS = 14
# No claim with a larger parameter is refuted.
_MAX_PARAMETER = 1e6
# The δ at which the text and the stored figures show ε.
SHOWN_DELTAS = (0.0, 1e-6, 1e-5, 1e-4)
_CONDITION = "conditional: if the noise is Gaussian"
_METHODS = ("exact", "steinke")


class EpsilonIfGaussian(float):
    """An ε that follows from the bound on μ only if the mechanism's noise is Gaussian.

    Attributes:
        delta: the δ at which it holds.
        guarantee: its condition.
    """

    delta: float
    guarantee = _CONDITION

    def __repr__(self) -> str:
        return f"{float(self):.4g} ({self.guarantee})"

    __str__ = __repr__


@dataclass(frozen=True, repr=False)
class OneRunAudit:
    """What the scores of m canaries of one training run show.

    Every reading (a p-value, a check, a bound at one δ, μ) holds with the stated confidence by
    itself.

    Attributes:
        canaries: m.
        included: how many canaries were in the training data.
        right: shape (m // 2,), right guesses by number of guesses: entry k − 1 is about the k
            largest and the k smallest scores, or about the k largest only if `guess` is "in".
        guess: "both" or "in".
        confidence: of every reading.
        seed: of the order of equal scores.

    Guarantee: exact for any training algorithm, if every canary was included by its own fair coin
        and its score depends on the coins through the run's output alone.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> included = rng.random(1000) < 0.5
        >>> audit = em.from_one_run(2.0 * included + rng.normal(size=1000), included)
        >>> audit.check("eps=1,delta=1e-5").verdict
        <Verdict.REFUTED: 'refuted'>
    """

    canaries: int
    included: int
    right: Integers
    guess: str
    confidence: float
    seed: int
    guarantee = "exact"

    __eq__ = equal_fields

    @property
    def failure_probability(self) -> float:
        """One minus the confidence."""
        return 1.0 - self.confidence

    @property
    def units(self) -> float:
        """The u of the formulas: m, or m/2 if all guesses are "in"."""
        return float(self.canaries) if self.guess == "both" else self.canaries / 2.0

    @cached_property
    def guesses(self) -> tuple[Guesses, ...]:
        """All numbers of guesses that a reading may use, with the right ones, by growing number."""
        by_number = {
            count.r: count
            for count in (*self._walk_guesses, *self._separate_guesses, *self._curve_guesses)
        }
        return tuple(by_number[r] for r in sorted(by_number))

    @property
    def clearest_guesses(self) -> Guesses:
        """The number of guesses of which most are right beyond one half: an example for reports."""
        return max(self.guesses, key=lambda count: count.v - count.r / 2)

    @cached_property
    def _walk_guesses(self) -> tuple[Guesses, ...]:
        m = self.canaries
        least_share = min(max(_LEAST_WALK_SHARE, _LEAST_WALK_GUESSES / m), 1.0)
        return self._at_shares(np.geomspace(least_share, 1.0, _WALK_NUMBERS).tolist())

    @cached_property
    def _separate_guesses(self) -> tuple[Guesses, ...]:
        return self._at_shares(_SEPARATE_SHARES)

    @cached_property
    def _curve_guesses(self) -> tuple[Guesses, ...]:
        return self._at_shares(_CURVE_SHARES)

    def _at_shares(self, shares: Iterable[float]) -> tuple[Guesses, ...]:
        """The guesses about these shares of the canaries; their numbers depend on m only."""
        most = self.canaries // 2
        ranks = sorted({min(max(round(self.canaries * share / 2), 1), most) for share in shares})
        per_rank = 2 if self.guess == "both" else 1
        return tuple(Guesses(per_rank * rank, int(self.right[rank - 1])) for rank in ranks)

    def _walks(self, delta: float) -> bool:
        """Whether all numbers of guesses are tested at once: by m, δ and the confidence only."""
        price = _WALK_PRICE * self.units * delta
        return price <= self.failure_probability * (1.0 + 1e-9)

    def guesses_for(self, claim: Claim | str) -> tuple[Guesses, ...]:
        """The numbers of guesses that decide about a claim."""
        promised = as_claim(claim)
        if not isinstance(promised, PureDP | ApproxDP):
            return self._curve_guesses
        if isinstance(promised, ApproxDeltaDP) or not self._walks(promised.delta):
            return self._separate_guesses
        return self._walk_guesses

    def p_value(self, claim: Claim | str) -> float:
        """The p-value of a claim of any notion.

        Guarantee: at most t with probability at most t if the claim holds, for every t. Exact.
        """
        promised = as_claim(claim)
        return self._p_value(promised, self.guesses_for(promised))

    def _p_value(self, claim: Claim, guesses: Sequence[Guesses]) -> float:
        if not isinstance(claim, PureDP | ApproxDP):
            return curve_p_value(inverse_of_hull(claim), self.units, guesses)
        if not isinstance(claim, ApproxDeltaDP) and self._walks(claim.delta):
            return walk_p_value(self.units, guesses, claim.epsilon, claim.delta)
        least = min(exact_p_value(self.units, r, v, claim.epsilon, claim.delta) for r, v in guesses)
        return min(len(guesses) * least, 1.0)

    def _refutes(self, claim: Claim) -> bool:
        return self.p_value(claim) < self.failure_probability

    def check(self, claim: Claim | str) -> ClaimCheck:
        """Whether the run refutes a claim of any notion."""
        promised = as_claim(claim)
        check = ClaimCheck.of_test(
            promised, self.lower_bound(promised), is_refuted=self._refutes(promised)
        )
        return check if check.is_refuted else replace(check, blind=self.blind(promised))

    def lower_bound(self, claim: Claim | str) -> float:
        """The bound in the claim's own parameter."""
        promised = as_claim(claim)
        if isinstance(promised, GaussianDP):
            return self.mu
        if isinstance(promised, PureDP | ApproxDP) and not isinstance(promised, ApproxDeltaDP):
            return self.epsilon(promised.delta)
        return _largest_refuted(promised, self._refutes)

    def epsilon(self, delta: float) -> float:
        """A lower bound on ε at this δ, by the exact formula.

        Guarantee: above the true ε(δ) with probability at most 1 − confidence. Exact.
        """
        delta = ApproxDP(0.0, delta).delta
        if self._walks(delta):
            return walk_epsilon(self.units, self._walk_guesses, delta, self.failure_probability)
        level = self.failure_probability / len(self._separate_guesses)
        return max(exact_epsilon(self.units, r, v, delta, level) for r, v in self._separate_guesses)

    @cached_property
    def mu(self) -> float:
        """A lower bound on μ.

        It says nothing about ε at a small δ: not being μ-GDP refutes no (ε, δ).
        """
        return curve_mu(self.units, self._curve_guesses, self.failure_probability)

    def epsilon_if_gaussian(self, delta: float) -> EpsilonIfGaussian:
        """The ε of Gaussian noise with the bound on μ; no bound on ε for other noise.

        Guarantee: conditional: if the noise is Gaussian. `epsilon` needs no such condition.
        """
        value = GaussianDP(self.mu).epsilon(delta) if self.mu > 0.0 else 0.0
        conditional = EpsilonIfGaussian(value)
        conditional.delta = float(delta)
        return conditional

    def needed(self, claim: Claim | str) -> tuple[Guesses, ...]:
        """For every number of guesses that decides about a claim the right ones that refute it.

        Where not even all right guesses would do, v is r + 1. Where right guesses count with
        weights, those of the smaller numbers of guesses are taken as they are.
        """
        promised = as_claim(claim)
        decisive = self.guesses_for(promised)
        if decisive is self._walk_guesses and isinstance(promised, PureDP | ApproxDP):
            return walk_needed(
                self.units, decisive, promised.epsilon, promised.delta, self.failure_probability
            )
        needed = []
        for position, count in enumerate(decisive):
            too_few = 0
            enough = count.r + 1
            while enough - too_few > 1:
                middle = (too_few + enough) // 2
                alone = [Guesses(other.r, 0) for other in decisive]
                alone[position] = Guesses(count.r, middle)
                if self._p_value(promised, alone) < self.failure_probability:
                    enough = middle
                else:
                    too_few = middle
            needed.append(Guesses(count.r, enough))
        return tuple(needed)

    def greatest_bound(self, claim: Claim | str) -> float:
        """The largest value of a claim's parameter that so many canaries can refute at all."""
        per_rank = 2 if self.guess == "both" else 1
        all_right = per_rank * np.arange(1, len(self.right) + 1, dtype=np.int_)
        return replace(self, right=all_right).lower_bound(claim)

    def blind(self, claim: Claim | str) -> str | None:
        """None; or one sentence, if so few canaries could not have refuted the claim at all."""
        from epsilometer.report.wording import too_few_to_refute

        promised = as_claim(claim)
        return too_few_to_refute(
            promised,
            self.greatest_bound(promised),
            what="canaries",
            best_case="if all were guessed right, they",
        )

    def plot(self, path: str | Path | None = None, claim: Claim | str | None = None) -> "Figure":
        """Draws the share of right guesses over their number, and returns the figure.

        Args:
            path: where the figure is written, if given; ends in .svg, .png or .pdf.
            claim: drawn as the shares that would refute it.
        """
        # This import points upwards, and is therefore made late: an audit can draw itself.
        from epsilometer.report.figures import save_figure
        from epsilometer.report.one_run_figure import draw_one_run

        figure = draw_one_run(self, None if claim is None else as_claim(claim))
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def save_html(
        self, path: str | Path, claim: Claim | str | None = None, delta: float | None = None
    ) -> Path:
        """Writes a page with the guesses and what they say about a claim; returns its path.

        Args:
            path: of the page.
            claim: judged on the page, if given.
            delta: the page says the bound on ε at this δ, one more reading, if given.
        """
        from epsilometer.report.one_run_figure import render_one_run

        promised = None if claim is None else as_claim(claim)
        return write_atomically(path, render_one_run(self, promised, delta))

    def __bool__(self) -> bool:
        raise TypeError(
            "an audit of one run is neither true nor false: ask audit.check(claim) or "
            "audit.epsilon(delta)"
        )

    def __repr__(self) -> str:
        sure = len(self.right) // 10 or 1
        n_guesses = 2 * sure if self.guess == "both" else sure
        return (
            f"<OneRunAudit: {self.canaries} canaries, {self.included} included, "
            f"{int(self.right[sure - 1])} of the {n_guesses} surest guesses right>"
        )

    def _repr_html_(self) -> str:
        """The audit as a notebook shows it."""
        from epsilometer.report.notebook import render_one_run_fragment

        return render_one_run_fragment(self)

    def __str__(self) -> str:
        """The audit in a few lines."""
        from epsilometer.report.formatting import figure_down

        lines = [
            f"one training run, {self.canaries:,} canaries, {self.included:,} included; "
            f"each figure with {100 * self.confidence:g} % confidence by itself"
        ]
        lines += [
            f"  ε at δ = {delta:<7g} at least {figure_down(self.epsilon(delta))}"
            for delta in SHOWN_DELTAS
        ]
        clearest = self.clearest_guesses
        lines += [
            f"  μ                at least {figure_down(self.mu)}",
            f"  guesses          e.g. {clearest.v:,} of {clearest.r:,} right",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "kind": "one run",
            "canaries": self.canaries,
            "included": self.included,
            "guess": self.guess,
            "confidence": self.confidence,
            "guarantee": self.guarantee,
            "seed": self.seed,
            "epsilon": {f"{delta:g}": self.epsilon(delta) for delta in SHOWN_DELTAS},
            "mu": self.mu,
            "guesses": [{"r": count.r, "v": count.v} for count in self.guesses],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The figures as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)


def from_one_run(
    scores: Any,
    included: Any,
    *,
    ids: Any = None,
    included_ids: Any = None,
    confidence: float = 0.95,
    guess: str = "both",
    seed: int | None = None,
) -> OneRunAudit:
    """Audits one training run by the scores of its canaries: larger means "was in the data".

    Args:
        scores: shape (m,), one score per canary; or a dict or Series of them by id.
        included: shape (m,), whether each canary was in: booleans or 0/1; or a dict or Series by
            id. What has ids is joined by them, whatever the order.
        ids: of the scores, if these are given without them.
        included_ids: of `included`, likewise.
        confidence: of every reading.
        guess: "both" guesses that the largest scores were in and the smallest out; "in" only the
            former, for scores that say nothing about canaries that were out.
        seed: of the order of equal scores, which is drawn at random; None takes a fresh one. It
            changes nothing if all scores differ.

    Guarantee: exact for any training algorithm, if every canary was included by its own fair coin,
        and the scores depend on the coins through the run's output alone.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> included = rng.random(1000) < 0.5
        >>> audit = em.from_one_run(2.0 * included + rng.normal(size=1000), included)
        >>> 1.0 < audit.epsilon(1e-5) < 10.0
        True
    """
    check_confidence(confidence)
    check_choice("guess", guess, GUESS_KINDS)
    canaries = read_canaries(scores, included, ids, included_ids)
    tie_seed = check_seed(seed)
    return OneRunAudit(
        canaries=len(canaries.coins),
        included=int(canaries.coins.sum()),
        right=_right_guesses(canaries, guess, tie_seed),
        guess=guess,
        confidence=float(confidence),
        seed=tie_seed,
    )


def _right_guesses(canaries: Canaries, guess: str, seed: int) -> Integers:
    """Right guesses about the k largest (and the k smallest) scores, for k = 1 … m // 2.

    Equal scores are put into a random order, because that of the caller may well be by inclusion.
    Before that they are sorted by coin, so that the answer depends on the seed but not on the
    caller's order.
    """
    canonical = np.lexsort((canaries.coins, canaries.scores))
    sorted_scores = canaries.scores[canonical]
    sorted_coins = canaries.coins[canonical]
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(sorted_scores)), sorted_scores))
    ascending = sorted_coins[order]
    most = len(ascending) // 2
    right_in = np.cumsum(ascending[::-1][:most], dtype=np.int_)
    if guess == "in":
        return right_in
    return right_in + np.cumsum(~ascending[:most], dtype=np.int_)


def _largest_refuted(claim: Claim, refutes: Callable[[Claim], bool]) -> float:
    """The largest value of the claim's own parameter that was seen to be refuted, 0 if none."""
    if refutes(claim):
        refuted = claim.value
        trial = max(2.0 * refuted, 1.0 / 64.0)
        while trial < _MAX_PARAMETER and refutes(claim.with_value(trial)):
            refuted = trial
            trial = 2.0 * trial
        not_refuted = trial
    else:
        refuted = 0.0
        not_refuted = claim.value
        if not_refuted == 0.0 or not refutes(claim.with_value(0.0)):
            return 0.0
    return rejected_end(
        lambda value: refutes(claim.with_value(value)),
        rejected=refuted,
        kept=not_refuted,
        halvings=_HALVINGS,
    )


class OneRun(float):
    """The certified lower bound on ε, a number, with everything else that the guesses certify.

    Attributes:
        delta: the δ at which ε is bounded.
        confidence: the confidence of each bound by itself.
        mu: the lower bound on μ.
        guesses: (m, r, v): canaries, guesses, and right guesses.
        greatest: the largest ε that m canaries can show at all: every one guessed right.
        method: "exact" or "steinke".
    """

    delta: float
    confidence: float
    mu: float
    guesses: tuple[int, int, int]
    greatest: float
    method: str
    guarantee = "exact"

    @property
    def epsilon(self) -> float:
        """The lower bound on ε."""
        return float(self)

    def p_value(self, claim: Claim | str) -> float:
        """The greatest probability of at least v right guesses under a claim of any notion.

        Steinke's method is for ε and (ε, δ) claims only.
        """
        promised = as_claim(claim)
        m, r, v = self.guesses
        if isinstance(promised, PureDP | ApproxDP):
            p_value = steinke_p_value if self.method == "steinke" else exact_p_value
            return p_value(m, r, v, promised.epsilon, promised.delta)
        if self.method == "steinke":
            raise InputError(
                f"claim={promised.describe()}: Steinke's one-run test is for ε and (ε, δ) claims; "
                'method="exact" takes every claim'
            )
        return curve_p_value(inverse_of_hull(promised), m, [Guesses(r, v)])

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
            "greatest": self.greatest,
            "method": self.method,
            "guarantee": self.guarantee,
        }


def one_run(
    m: int,
    r: int,
    v: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    *,
    method: str = "exact",
) -> OneRun:
    """Audits one training run with m canaries, each included by a fair coin of its own.

    Args:
        m: canaries.
        r: guesses that the auditor made (abstaining on m − r).
        v: guesses that were right.
        delta: the δ of the claim.
        confidence: with which each of the bounds (ε, and `.mu`) holds.
        method: "exact" is the smallest p-value that holds for all mechanisms; "steinke" the
            published bound, for comparison.

    Returns:
        The lower bound on ε as a number; `.mu` is the one on μ, and `.greatest` the largest ε that
        m canaries can show at all.

    Guarantee: exact, if the guesses used nothing but the run's output and the coins are independent
        and fair. The number of guesses must not depend on which of them turned out right.

    Reference: Steinke, Nasr, Jagielski (2023), Theorem 5.2, for method="steinke".

    Example:
        >>> round(em.one_run(m=1000, r=100, v=95, delta=1e-5).epsilon, 2)
        2.17
    """
    check_guesses(m, r, v)
    check_choice("method", method, _METHODS)
    failure = 1.0 - check_confidence(confidence)
    delta = ApproxDP(0.0, delta).delta
    epsilon_bound = steinke_epsilon if method == "steinke" else one_run_epsilon
    mu_bound = steinke_mu if method == "steinke" else one_run_mu
    bound = OneRun(epsilon_bound(m, r, v, delta, failure))
    bound.delta = delta
    bound.confidence = float(confidence)
    bound.guesses = (int(m), int(r), int(v))
    bound.mu = mu_bound(m, r, v, failure)
    bound.greatest = epsilon_bound(m, m, m, delta, failure)
    bound.method = method
    return bound
