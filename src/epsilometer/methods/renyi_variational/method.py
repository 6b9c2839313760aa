"""Method `renyi-variational`: a Rényi divergence from below by a learned bounded function.

Reference: DP-Auditorium, Algorithm 2. The default certificate is our own exact bet (`epsilometer.bounds.joint_bet`),
and pure privacy is judged by the tight threshold (`epsilometer.bounds.pure_by_renyi`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds.pure_by_renyi import greatest_divergence, least_epsilon
from epsilometer.claims import Claim, PureDP, RenyiDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.renyi_bet import BetProposal
from epsilometer.methods.renyi_bet.choosing import choose_score
from epsilometer.methods.renyi_bet.method import restored_bet
from epsilometer.methods.renyi_variational.families import learn_functions
from epsilometer.methods.renyi_variational.options import Options
from epsilometer.methods.renyi_variational.published import GUARANTEE, half_range, published_divergence
from epsilometer.methods.threads import one_thread
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.log_ratio import LogRatio
from epsilometer.result import Finding

NAME = "renyi-variational"
Integers = NDArray[np.int64]

# Orders that are tried for pure privacy: small ones are cheap to prove, large ones come near ε. Beyond 8 a cell of few
# draws may decide (Laplace 1 and 2, 2e4 draws, 8 seeds each: one bound of 8 at half the others with order 12).
_PURE_ORDERS = (2.0, 4.0, 8.0)
# Ranges of h that are tried for the published bound, as shares of the range of the exact one.
_SHARES = np.linspace(0.1, 1.0, 19)


@dataclass(frozen=True, slots=True)
class VariationalProposal:
    """A function to be bet on with fresh draws.

    Attributes:
        bet: the function, its order and the stake.
        task: what is to be proved.
        threshold: for pure privacy.
        predicted: the bound to expect, in the claim's own parameter.
    """

    bet: BetProposal
    task: Task
    threshold: str
    predicted: float

    @property
    def event(self) -> Event:
        """The outputs that the function favours: what the health checks watch."""
        return self.bet.event

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How often each cell happened, shape (cells,)."""
        return self.bet.tally(outputs, side)

    def certify(self, left: Integers, right: Integers, pair: Pair, failure_probability: float) -> Finding:
        """The exact bound from the cell counts of the fresh draws."""
        finding = self.bet.certify(left, right, pair, failure_probability)
        details = {**finding.details, "range": half_range(self.bet.score.scores), "threshold": self.threshold}
        bound = self._value(finding.lower_bound)
        return replace(finding, method=NAME, lower_bound=bound, claim=self.task.claim, details=details)

    def _value(self, divergence: float) -> float:
        return _value_of(self.task.claim, divergence, self.bet.score.order, self.threshold)


@dataclass(frozen=True, slots=True)
class PublishedProposal:
    """A function for the published bound.

    Attributes:
        score: the function.
        flipped: False for D(left ‖ right).
        task: what is asked.
        threshold: for pure privacy.
        predicted: the bound to expect.
    """

    score: LogRatio
    flipped: bool
    task: Task
    threshold: str
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How often each cell happened, shape (cells,)."""
        return self.score.partition.count(outputs)

    def certify(self, left: Integers, right: Integers, pair: Pair, failure_probability: float) -> Finding:
        """The published bound; its proof has gaps, and it decides nothing."""
        above, below = (right, left) if self.flipped else (left, right)
        order = self.score.order
        divergence = published_divergence(self.score.scores, above, below, order, failure_probability)
        details: dict[str, Any] = {
            "order": order,
            "range": half_range(self.score.scores),
            "divergence_lower": max(divergence, 0.0),
            "direction": "right ‖ left" if self.flipped else "left ‖ right",
        }
        bound = _value_of(self.task.claim, divergence, order, self.threshold)
        return Finding(NAME, bound, GUARANTEE, 1.0 - failure_probability, None, self.task.claim, details)


class RenyiVariationalMethod:
    """Learns a bounded function that tells the laws apart, and bounds the divergence by it."""

    name = NAME
    summary = "a bounded function (bins, Chebyshev polynomials or a network); RenyiDP and PureDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100}: the method {NAME} takes epsilometer.renyi_variational.Options")
        self.options = options or Options()

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Rényi and pure privacy only; called before anything is drawn."""
        if not isinstance(claim, RenyiDP | PureDP):
            raise InputError(
                f"method={NAME!r} bounds one Rényi divergence, for RenyiDP and PureDP, not {type(claim).__name__}; "
                "use method='auto'"
            )

    def propose(self, left: Outputs, right: Outputs, task: Task) -> VariationalProposal | PublishedProposal:
        """The function (and for pure privacy the order) with the best predicted bound."""
        self.check(task.claim)
        with one_thread():
            found = [self._propose_at(order, left, right, task) for order in self._orders(task.claim)]
        return max(found, key=lambda each: each.predicted)

    def _orders(self, claim: Claim) -> tuple[float, ...]:
        if isinstance(claim, RenyiDP):
            return (claim.order,)
        return _PURE_ORDERS if self.options.order is None else (float(self.options.order),)

    def _propose_at(
        self, order: float, left: Outputs, right: Outputs, task: Task
    ) -> VariationalProposal | PublishedProposal:
        inner = _inner_task(task, order, self.options.threshold)
        choice = choose_score(learn_functions(left, right, order, self.options), inner)
        if self.options.certificate == "published":
            return self._published(choice.score, choice.flipped, task)
        bet = restored_bet(choice.score, choice.flipped, inner, choice.predicted, min(len(left), len(right)))
        return _with_value(bet, task, self.options.threshold)

    def _published(self, score: LogRatio, flipped: bool, task: Task) -> PublishedProposal:
        """The range of h with the best expected bound: the published error grows exponentially with it."""
        n = min(task.n_fresh)
        expected = [np.round(share * n).astype(np.int64) for share in (score.p, score.q)]
        middle, half = 0.5 * float(score.scores.max() + score.scores.min()), half_range(score.scores)
        tried = []
        for share in _SHARES:
            scores = np.clip(score.scores, middle - share * half, middle + share * half)
            bound = published_divergence(scores, expected[0], expected[1], score.order, task.failure_probability)
            tried.append((bound, scores))
        bound, scores = max(tried, key=lambda each: each[0])
        predicted = _value_of(task.claim, bound, score.order, self.options.threshold)
        clipped = replace(score, scores=scores)
        return PublishedProposal(clipped, flipped, task, self.options.threshold, max(predicted, -1.0))


def restored_function(score: LogRatio, flipped: bool, task: Task, n_known: int) -> VariationalProposal:
    """The bet on a stored function, for a claim of pure privacy."""
    inner = _inner_task(task, score.order, "tight")
    return _with_value(restored_bet(score, flipped, inner, 0.0, n_known), task, "tight")


def _with_value(bet: BetProposal, task: Task, threshold: str) -> VariationalProposal:
    predicted = _value_of(task.claim, bet.predicted, bet.score.order, threshold) + min(bet.predicted, 0.0)
    return VariationalProposal(bet, task, threshold, predicted)


def _inner_task(task: Task, order: float, threshold: str) -> Task:
    """The same task as one about the divergence itself."""
    if isinstance(task.claim, RenyiDP):
        return task
    return replace(task, claim=RenyiDP(order, greatest_divergence(task.claim.value, order, threshold)))


def _value_of(claim: Claim, divergence: float, order: float, threshold: str) -> float:
    """A bound on the divergence in the claim's own parameter, at least 0."""
    if isinstance(claim, RenyiDP):
        return max(divergence, 0.0)
    return least_epsilon(divergence, order, threshold)
