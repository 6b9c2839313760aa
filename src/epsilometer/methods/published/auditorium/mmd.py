"""Method `mmd`: a lower bound on the maximum mean discrepancy of the two distributions.

Example:
    >>> em.audit(em.zoo.laplace(), None, em.PureDP(0.5), samples=2000, seed=0, method="mmd").verdict
    <Verdict.NOT_REFUTED: 'not refuted'>
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from epsilometer.arrays import Floats, Integers
from epsilometer.bisection import rejected_end
from epsilometer.bounds import Counts, nested_p_value
from epsilometer.bounds.bets_on_means import MeanBet, bet_lower
from epsilometer.bounds.binomial import bernstein_lower
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.claims.base import check_choice
from epsilometer.environment import one_thread
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.events.learning import half_of
from epsilometer.methods.published import own_options
from epsilometer.methods.published.auditorium import kernel_space
from epsilometer.methods.published.auditorium.hockey_stick import CERTIFICATES, check_claim
from epsilometer.methods.published.auditorium.kernel_space import Shape
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.scores import KernelOfPoints, kernel_of_points
from epsilometer.result import Finding, Witness


def points_of(outputs: Outputs, shapes: list[Shape]) -> Floats:
    """Outputs as points in bandwidths; the first coordinate is the number of the shape, 0 for all unknown ones.

    Returns:
        Shape (n, 1 + dimensions).
    """
    size = max((shape.embedding.dimensions for shape in shapes if shape.embedding), default=0)
    points = np.zeros((len(outputs), 1 + size))
    known = {shape.shape: (number + 1, shape) for number, shape in enumerate(shapes)}
    for block in outputs:
        if block.shape not in known:
            continue
        (number, shape), rows = known[block.shape], block.places()
        points[rows, 0] = number
        if shape.embedding is not None:
            inside = shape.embedding.points(block.columns) / shape.bandwidth
            points[rows, 1 : 1 + inside.shape[1]] = inside
    return points


def pair_terms(left: Floats, right: Floats, kernel: KernelOfPoints = "gaussian") -> Floats:
    """h = k(x, x') − 2·k(x, y) + k(y, y') of disjoint pairs: mean MMD², between −2 and 2, shape (pairs,).

    Reference: DP-Auditorium, Theorem 4.14 and Algorithm 7.
    """
    n = min(len(left), len(right)) // 2
    x = left[: 2 * n : 2]
    other_x = left[1 : 2 * n : 2]
    y = right[: 2 * n : 2]
    other_y = right[1 : 2 * n : 2]
    return _kernel(x, other_x, kernel) - 2.0 * _kernel(x, y, kernel) + _kernel(y, other_y, kernel)


def _kernel(one: Floats, other: Floats, kernel: KernelOfPoints) -> Floats:
    """The kernel of points of one shape; 0 where the shapes differ."""
    return np.where(
        one[:, 0] == other[:, 0], kernel_of_points(kernel, one[:, 1:], other[:, 1:]), 0.0
    )


THRESHOLDS = ("published", "total-variation")
# The greatest discrepancy that a kernel between 0 and 1 can show.
MOST = math.sqrt(2.0)
# 2^-60 of the bracket is below the spacing of floats near 1.
_HALVINGS = 60


def greatest_discrepancy(epsilon: float, delta: float, threshold: str = "published") -> float:
    """The greatest discrepancy that (ε, δ)-privacy allows, by the given threshold."""
    if threshold == "published":
        grow = math.exp(min(epsilon, 700.0))
        return grow - 1.0 + (1.0 + 1.0 / grow) * delta
    shrink = math.exp(-min(epsilon, 700.0))
    return MOST * (1.0 - shrink + 2.0 * delta * shrink) / (1.0 + shrink)


def value_of_discrepancy(
    claim: PureDP | ApproxDP, discrepancy: float, threshold: str = "published"
) -> float:
    """A lower bound on the discrepancy in the claim's own parameter; 0 when it proves nothing."""
    if isinstance(claim, ApproxDeltaDP):  # both thresholds are straight lines in δ
        start = greatest_discrepancy(claim.epsilon, 0.0, threshold)
        slope = greatest_discrepancy(claim.epsilon, 1.0, threshold) - start
        return min(max(discrepancy - start, 0.0) / slope, 1.0 - 2.0**-52) if slope > 0.0 else 0.0

    def is_refuted(epsilon: float) -> bool:  # both thresholds grow with ε
        return greatest_discrepancy(epsilon, claim.delta, threshold) < discrepancy

    return rejected_end(is_refuted, 0.0, 50.0, _HALVINGS) if is_refuted(0.0) else 0.0


NAME = "mmd"
_OWN_KERNEL = "conditional: the kernel is positive definite and at most 1"

# Ridges that are tried, in units of the kernel: small ones follow every wiggle of the training
# draws.
_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `mmd`.

    Attributes:
        threshold: "published" (e^ε − 1 + (1 + e^−ε)·δ, which no ε above .88 can exceed) or
            "total-variation" (√2 times the total variation that the claim allows: always sharper,
            and it can refute any ε). None takes the published one for claims that it can refute,
            and the other for those beyond.
        certificate: "exact" bounds the mean difference of one learned function; "published" is the
            empirical Bernstein bound on the squared discrepancy of disjoint pairs, as sound, but it
            sees only large leaks.
        kernel: "gaussian", "laplace" (e^−‖x−y‖), "polynomial" ((1 + x·y)², scaled to at most 1), or
            any function k(x, y) that is positive definite with values in [0, 1]; points broadcast,
            the last axis holds coordinates.
        bandwidth: of the points, whose coordinates are in units of their spread: "median" (the
            median distance of training points, the default), a number, or a function from points of
            shape (n, coordinates) to one.
    """

    threshold: str | None = None
    certificate: str = "exact"
    kernel: KernelOfPoints = "gaussian"
    bandwidth: kernel_space.BandwidthOfPoints = None

    def __post_init__(self) -> None:
        kernel_space.check_kernel(self.kernel, self.bandwidth)
        if self.threshold is not None:
            check_choice("threshold", self.threshold, THRESHOLDS)
        check_choice("certificate", self.certificate, CERTIFICATES)


@dataclass(frozen=True, slots=True)
class FunctionProposal(Proposal):
    """A function of norm at most 1 whose means are compared on fresh draws.

    Attributes:
        event: the outputs on which the function is above its middle; shown, watched and replayed.
            None if the kernel is the caller's own function, which cannot be stored.
        cells: the same event on the cells of the bet.
        bet: the function's values, with centre and stake.
        task: what is to be proved.
        threshold: which one.
        predicted: the bound to expect.
    """

    event: Event | None = field()  # not the default of Proposal
    cells: Event
    bet: MeanBet
    task: Task
    threshold: str
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How often each cell of the function happened, shape (cells,)."""
        with one_thread():
            return self.cells.partition.count(outputs)

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        discrepancy = bet_lower(self.bet, left, right, failure_probability)
        bound = value_of_discrepancy(
            check_claim(NAME, self.task.claim), discrepancy, self.threshold
        )
        witness = None
        guarantee = _OWN_KERNEL
        if self.event is not None:
            counts = [
                Counts(int(side[self.cells.chosen].sum()), int(side.sum()))
                for side in (left, right)
            ]
            witness = Witness.of(pair, self.event, False, counts[0], counts[1], failure_probability)
            guarantee = "exact"
        details: dict[str, Any] = {"discrepancy_lower": discrepancy, "threshold": self.threshold}
        return Finding(
            NAME, bound, guarantee, 1.0 - failure_probability, witness, self.task.claim, details
        )

    def p_value(self, left: Integers, right: Integers, failure_probability: float) -> float | None:
        """By search: function and stake are fixed, so that the bound only grows with the failure probability."""
        claim = check_claim(NAME, self.task.claim)

        def bound_at(failure: float) -> float:
            return value_of_discrepancy(claim, bet_lower(self.bet, left, right, failure), self.threshold)

        return nested_p_value(bound_at, claim.value, failure_probability)


@dataclass(frozen=True, slots=True)
class PairsProposal(Proposal):
    """Embedding and bandwidth for the published estimate.

    Attributes:
        shapes: the kernel.
        task: what is to be proved.
        options: kernel and threshold.
        predicted: the bound to expect.
    """

    shapes: list[Shape]
    task: Task
    options: Options
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> list[Floats]:
        """The draws as points, a list that grows by chunks: the estimate needs both sides at once."""
        return [points_of(outputs, self.shapes)]

    def certify(
        self, left: list[Floats], right: list[Floats], pair: Pair, failure_probability: float
    ) -> Finding:
        """The bound from disjoint pairs of the fresh draws."""
        # Exact: embedding and bandwidth were fixed before these draws.
        terms = pair_terms(np.concatenate(left), np.concatenate(right), self.options.kernel)
        squared = bernstein_lower(terms, -2.0, 2.0, failure_probability)
        discrepancy = math.sqrt(max(squared, 0.0))
        bound = value_of_discrepancy(
            check_claim(NAME, self.task.claim), discrepancy, str(self.options.threshold)
        )
        details: dict[str, Any] = {
            "squared_discrepancy_lower": squared,
            "threshold": self.options.threshold,
        }
        details["certificate"] = (
            "published: empirical Bernstein bound on disjoint pairs, as corrected"
        )
        guarantee = _OWN_KERNEL if callable(self.options.kernel) else "exact"
        return Finding(
            NAME, bound, guarantee, 1.0 - failure_probability, None, self.task.claim, details
        )


class MmdMethod(Method):
    """Compares the means of a smooth function of the outputs."""

    name = NAME
    summary = "maximum mean discrepancy of a kernel; PureDP and ApproxDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        self.options = own_options(NAME, "mmd", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Pure and approximate privacy that a discrepancy can refute; called before anything is drawn."""
        promised = check_claim(NAME, claim)
        allowed = greatest_discrepancy(promised.epsilon, promised.delta, self._threshold(promised))
        if allowed >= MOST:
            raise InputError(
                f"method='mmd' cannot refute {claim.describe()} by construction: the claim allows a discrepancy of "
                f"{allowed:.3g}, and with a kernel of at most 1 none exceeds √2 (without δ that is ε above ln(1 + √2) "
                "≈ 0.88); use method='auto', or epsilometer.mmd.Options(threshold='total-variation')"
            )

    def _threshold(self, claim: PureDP | ApproxDP) -> str:
        allowed = greatest_discrepancy(claim.epsilon, claim.delta, "published")
        return self.options.threshold or ("published" if allowed < MOST else "total-variation")

    def propose(
        self, left: Outputs, right: Outputs, task: Task
    ) -> FunctionProposal | PairsProposal:
        """Kernel, bandwidth and function from training draws."""
        self.check(task.claim)
        claim = check_claim(NAME, task.claim)
        options = replace(self.options, threshold=self._threshold(claim))
        with one_thread():
            rng = task.learning_rng()
            shapes = kernel_space.learn_shapes(
                left, right, options.kernel, options.bandwidth, rng=rng
            )
            if options.certificate == "exact":
                return _fit_function(shapes, left, right, task, options)
            terms = pair_terms(points_of(left, shapes), points_of(right, shapes), options.kernel)
        squared = -2.0
        if len(terms) > 1:
            pairs = max(min(task.n_fresh) // 2, 2)
            needed = math.log(2.0 / task.failure_probability)
            doubt = math.sqrt(2.0 * needed / pairs) + 1.0 / math.sqrt(len(terms))
            squared = float(terms.mean() - terms.std() * doubt - 10.0 * needed / pairs)
        value = value_of_discrepancy(claim, math.sqrt(max(squared, 0.0)), str(options.threshold))
        return PairsProposal(shapes, task, options, value + min(squared, 0.0))


def _fit_function(
    shapes: list[Shape], left: Outputs, right: Outputs, task: Task, options: Options
) -> FunctionProposal:
    means = [
        [kernel_space.landmark_means(shapes, half_of(side, half)) for side in (left, right)]
        for half in (0, 1)
    ]
    gram = block_diag(*(shape.gram() for shape in shapes))
    tried = [(ridge, *_judge(gram, ridge, means, task)) for ridge in _RIDGES]
    ridge, difference, spread = max(tried, key=lambda each: each[1] - 2.5 * each[2])
    weights = kernel_space.unit_weights(
        gram, np.mean([half[0][0] - half[1][0] for half in means], axis=0), ridge
    )
    partition, lowest, highest = kernel_space.as_function(shapes, weights, left, right)
    middles = [float(weights @ (means[0][side][0] + means[1][side][0])) / 2.0 for side in (0, 1)]
    # The stake that is best for a normal sum; the spread is that of the mean over n_fresh draws.
    best, (n_left, n_right) = math.sqrt(-2.0 * math.log(task.failure_probability)), task.n_fresh
    stake = min(best / max(spread * n_left, 1e-12), 0.3, 0.3 * n_right / n_left)
    bet = MeanBet(lowest, highest, float(np.clip(middles[1], -1.0, 1.0)), stake)
    values = 0.5 * (lowest + highest)
    # Cells that may have any value (NaN, signatures that do not happen) stay outside the event.
    chosen = (values > 0.5 * (middles[0] + middles[1])) & (highest - lowest < 2.0)
    cells = Event(partition, chosen)
    expected = difference - best * spread
    threshold = str(options.threshold)
    predicted = (
        value_of_discrepancy(check_claim(NAME, task.claim), expected, threshold)
        if expected > 0.0
        else expected
    )
    event = None if callable(options.kernel) else cells.simplified()
    return FunctionProposal(event, cells, bet, task, threshold, predicted)


def _judge(
    gram: Floats, ridge: float, means: list[list[tuple[Floats, Floats]]], task: Task
) -> tuple[float, float]:
    """The difference of means and its spread that a ridge gives, on draws that did not fit the function."""
    differences = []
    variances = []
    for half in (0, 1):
        weights = kernel_space.unit_weights(gram, means[half][0][0] - means[half][1][0], ridge)
        fresh = means[1 - half]
        differences.append(float(weights @ (fresh[0][0] - fresh[1][0])))
        parts = [
            float(weights @ square @ weights) - float(weights @ mean) ** 2 for mean, square in fresh
        ]
        variances.append(
            sum(max(part, 0.0) / n for part, n in zip(parts, task.n_fresh, strict=True))
        )
    return float(np.mean(differences)), math.sqrt(float(np.mean(variances)))
