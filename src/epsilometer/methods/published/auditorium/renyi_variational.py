"""Method `renyi-variational`: a Rényi divergence bounded from below by a learned bounded function.

Example:
    >>> claim = em.RenyiDP(order=2.0, epsilon=0.1)
    >>> em.audit(em.zoo.laplace(), None, claim, samples=5000, seed=0, method="renyi-variational").verdict
    <Verdict.REFUTED: 'refuted'>
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds.bets_on_means import greatest_divergence, least_epsilon
from epsilometer.claims import Claim, PureDP, RenyiDP
from epsilometer.environment import one_thread
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.published import own_options
from epsilometer.methods.published.auditorium.families import (
    Options,
    learn_functions,
    variational_value,
)
from epsilometer.methods.renyi_bet import BetProposal, choose_score, restored_bet
from epsilometer.outputs import Outputs
from epsilometer.outputs.events import LogRatio
from epsilometer.result import Finding

GUARANTEE = "none: the published Chernoff bound, whose proof has gaps (α/(α − 1) is lost, E_Q e^(αh) ≥ 1 is assumed)"


def published_error(order: float, bound: float, n: int, failure_probability: float) -> float:
    """ln((1 + η)/(1 − η)) with η = √(max{3e^(2(α−1)C), 2e^(αC)}·ln(2/β)/n); infinite when η is 1 or more.

    Args:
        order: α.
        bound: C, the largest |h|.
        n: draws of each side.
        failure_probability: β.

    Guarantee: none, see above.
    """
    powers = max(math.log(3.0) + 2.0 * (order - 1.0) * bound, math.log(2.0) + order * bound)
    eta = math.exp(
        min(
            0.5 * (powers + math.log(math.log(2.0 / failure_probability)) - math.log(max(n, 1))),
            300.0,
        )
    )
    return math.log((1.0 + eta) / (1.0 - eta)) if eta < 1.0 else math.inf


def published_divergence(
    h: Floats, left: Integers, right: Integers, order: float, failure_probability: float
) -> float:
    """The estimate on counts of cells less the published error; −inf where the error is infinite.

    A constant added to h changes nothing, so C is half its range.
    """
    n = int(min(left.sum(), right.sum()))
    error = published_error(order, half_range(h), n, failure_probability)
    if not n or not math.isfinite(error):
        return -math.inf
    return variational_value(h, left / left.sum(), right / right.sum(), order) - error


def half_range(scores: Floats) -> float:
    """The smallest C after the best shift."""
    return 0.5 * float(scores.max() - scores.min())


NAME = "renyi-variational"

# Orders tried for pure privacy: small ones are cheap to prove, large ones come close to ε. Beyond 8
# a cell of few draws may decide (Laplace 1 and 2, 2e4 draws, 8 seeds each: one bound of 8 at half
# the others with order 12).
_PURE_ORDERS = (2.0, 4.0, 8.0)
# Ranges of h that are tried for the published bound, as shares of the range of the exact one.
_SHARES = np.linspace(0.1, 1.0, 19)


@dataclass(frozen=True, slots=True)
class VariationalProposal(BetProposal):
    """A function to be bet on with fresh draws; the task is about its divergence.

    Attributes:
        claim: what is to be proved, in whose own parameter the bound and `predicted` are.
        threshold: for pure privacy.
    """

    claim: Claim
    threshold: str

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """The exact bound from the cell counts of the fresh draws."""
        finding = BetProposal.certify(self, left, right, pair, failure_probability)
        details = {
            **finding.details,
            "range": half_range(self.score.scores),
            "threshold": self.threshold,
        }
        bound = _value_of(self.claim, finding.lower_bound, self.score.order, self.threshold)
        return replace(finding, method=NAME, lower_bound=bound, claim=self.claim, details=details)

    @property
    def claimed_divergence(self) -> float:
        """The greatest divergence of the function's order that the claim allows."""
        order = self.score.order
        if isinstance(self.claim, PureDP):
            return greatest_divergence(self.claim.epsilon, order, self.threshold)
        return self.claim.value


@dataclass(frozen=True, slots=True)
class PublishedProposal(Proposal):
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

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """The published bound; its proof has gaps, and it decides nothing."""
        above, below = (right, left) if self.flipped else (left, right)
        order = self.score.order
        divergence = published_divergence(
            self.score.scores, above, below, order, failure_probability
        )
        details: dict[str, object] = {"order": order, "range": half_range(self.score.scores)}
        details["divergence_lower"] = max(divergence, 0.0)
        details["direction"] = "right ‖ left" if self.flipped else "left ‖ right"
        bound = _value_of(self.task.claim, divergence, order, self.threshold)
        return Finding(
            NAME, bound, GUARANTEE, 1.0 - failure_probability, None, self.task.claim, details
        )


class RenyiVariationalMethod(Method):
    """Learns a bounded function that distinguishes the two distributions, and bounds the divergence by it."""

    name = NAME
    summary = "a bounded function (bins, Chebyshev polynomials or a network); RenyiDP and PureDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        self.options = own_options(NAME, "renyi_variational", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Rényi and pure privacy only; called before anything is drawn."""
        if not isinstance(claim, RenyiDP | PureDP):
            raise InputError(
                f"method={NAME!r} bounds one Rényi divergence, for RenyiDP and PureDP, not {type(claim).__name__}; "
                "use method='auto'"
            )

    def propose(
        self, left: Outputs, right: Outputs, task: Task
    ) -> VariationalProposal | PublishedProposal:
        """The function (and for pure privacy the order) with the best predicted bound."""
        self.check(task.claim)
        orders = _PURE_ORDERS if self.options.order is None else (float(self.options.order),)
        if isinstance(task.claim, RenyiDP):
            orders = (task.claim.order,)
        found: list[VariationalProposal | PublishedProposal] = []
        threshold = self.options.threshold
        with one_thread():
            for order in orders:
                inner = _inner_task(task, order, threshold)
                functions = learn_functions(left, right, order, self.options, task.learning_rng())
                score, flipped, predicted = choose_score(functions, inner)
                if self.options.certificate == "published":
                    found.append(_clipped(score, flipped, task, threshold))
                else:
                    bet = restored_bet(score, flipped, inner, predicted, min(len(left), len(right)))
                    found.append(_with_value(bet, task.claim, threshold))
        return max(found, key=lambda each: each.predicted)


def _clipped(score: LogRatio, flipped: bool, task: Task, threshold: str) -> PublishedProposal:
    """The range of h with the best expected bound: the published error grows exponentially with it."""
    p, q = (np.round(share * min(task.n_fresh)).astype(np.int64) for share in (score.p, score.q))
    middle = 0.5 * float(score.scores.max() + score.scores.min())
    half = half_range(score.scores)
    tried = [
        np.clip(score.scores, middle - share * half, middle + share * half) for share in _SHARES
    ]
    bounds = [
        published_divergence(scores, p, q, score.order, task.failure_probability)
        for scores in tried
    ]
    best = int(np.argmax(bounds))
    predicted = _value_of(task.claim, bounds[best], score.order, threshold)
    return PublishedProposal(
        replace(score, scores=tried[best]), flipped, task, threshold, max(predicted, -1.0)
    )


def restored_function(
    score: LogRatio, flipped: bool, task: Task, n_known: int
) -> VariationalProposal:
    """The bet on a stored function, for a claim of pure privacy."""
    inner = _inner_task(task, score.order, "tight")
    return _with_value(restored_bet(score, flipped, inner, 0.0, n_known), task.claim, "tight")


def _with_value(bet: BetProposal, claim: Claim, threshold: str) -> VariationalProposal:
    predicted = _value_of(claim, bet.predicted, bet.score.order, threshold) + min(
        bet.predicted, 0.0
    )
    return VariationalProposal(
        bet.score, bet.stake, bet.flipped, bet.task, predicted, claim, threshold
    )


def _inner_task(task: Task, order: float, threshold: str) -> Task:
    """The same task as one about the divergence itself."""
    if isinstance(task.claim, RenyiDP):
        return task
    return replace(
        task, claim=RenyiDP(order, greatest_divergence(task.claim.value, order, threshold))
    )


def _value_of(claim: Claim, divergence: float, order: float, threshold: str) -> float:
    """A bound on the divergence in the claim's own parameter, at least 0."""
    return (
        max(divergence, 0.0)
        if isinstance(claim, RenyiDP)
        else least_epsilon(divergence, order, threshold)
    )
