"""Method `mmd`: a lower bound on the maximum mean discrepancy of the two distributions.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Theorems 4.13 to 4.15, Algorithms 7 and 8.

Example:
    >>> em.audit(em.zoo.laplace(), None, em.PureDP(0.5), samples=2000, seed=0, method="mmd").verdict
    <Verdict.NOT_REFUTED: 'not refuted'>
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import block_diag

from epsilometer.arrays import Floats, Integers
from epsilometer.bisection import rejected_end
from epsilometer.bounds import Counts, nested_p_value
from epsilometer.bounds.bernstein import bernstein_lower
from epsilometer.bounds.bets_on_means import MeanBet, bet_lower
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.claims.base import check_choice
from epsilometer.environment import one_thread
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.partitions import half_of
from epsilometer.methods.published.adapters import options_or_default
from epsilometer.methods.published.auditorium import kernel_space
from epsilometer.methods.published.auditorium.hockey_stick import CERTIFICATES, check_claim
from epsilometer.methods.published.auditorium.kernel_space import LandmarkMoments, ShapeKernel
from epsilometer.one_line import fields_on_one_line
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.scores import KernelOfPoints, kernel_of_points
from epsilometer.result import Finding, Witness

NAME = "mmd"
THRESHOLDS = ("published", "total-variation")
# The greatest discrepancy that a kernel between 0 and 1 can show.
MOST = math.sqrt(2.0)

_GUARANTEE_OF_OWN_KERNEL = "conditional: the kernel is positive definite and at most 1"
# e^700 is near the largest float.
_LARGEST_EXPONENT = 700.0
# 2^-60 of the bracket is below the spacing of floats near 1.
_HALVINGS = 60
# The search for the refuted ε ends here; no discrepancy refutes more.
_LARGEST_EPSILON = 50.0
# A bound on δ stays below 1 by one unit in the last place.
_LARGEST_DELTA = 1.0 - 2.0**-52
# Ridges that are tried, in units of the kernel: small ones fit the noise of the training draws.
_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
# Standard errors that are subtracted when ridges are compared; the value was set by hand, and its
# reason is not recorded.
_RIDGE_PENALTY = 2.5
# A stake must stay below 1/2; how far below was set by hand, and the reason is not recorded.
_LARGEST_STAKE = 0.3
# h = k(x, x') − 2k(x, y) + k(y, y') lies between these.
_SMALLEST_TERM = -2.0
_LARGEST_TERM = 2.0
# From -1 to 1: the range of a function's values, and of a cell that may have any of them.
_WHOLE_RANGE = 2.0


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
        bandwidth: of the points, whose coordinates are in units of their scale: "median" (the
            median distance of training points, the default), a number, or a function from points of
            shape (n, coordinates) to one.
    """

    threshold: str | None = None
    certificate: str = "exact"
    kernel: KernelOfPoints = "gaussian"
    bandwidth: kernel_space.BandwidthOfPoints = None

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        kernel_space.check_kernel(self.kernel, self.bandwidth)
        if self.threshold is not None:
            check_choice("threshold", self.threshold, THRESHOLDS)
        check_choice("certificate", self.certificate, CERTIFICATES)

    def threshold_for(self, claim: PureDP | ApproxDP) -> str:
        """Returns the threshold for a claim: the chosen one, or one that can refute the claim."""
        if self.threshold is not None:
            return self.threshold
        allowed = greatest_discrepancy(claim.epsilon, claim.delta, "published")
        return "published" if allowed < MOST else "total-variation"


@dataclass(frozen=True, slots=True)
class FunctionProposal(Proposal):
    """A function of norm at most 1 whose means are compared on fresh draws.

    Attributes:
        event: the outputs on which the function is above its middle; shown, watched and replayed.
            None if the kernel is the caller's own function, which cannot be stored.
        cells: the same event on the cells of the bet.
        bet: the function's values, with centre and stake.
        task: what is to be certified.
        threshold: "published" or "total-variation".
        predicted: the bound to expect.
    """

    event: Event | None = field()  # not the default of Proposal
    cells: Event
    bet: MeanBet
    task: Task
    threshold: str
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """Counts the draws in each cell of the function, shape (cells,)."""
        with one_thread():
            return self.cells.partition.count(outputs)

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """Returns the exact bound from the counts of the fresh draws."""
        discrepancy = bet_lower(self.bet, left, right, failure_probability)
        claim = check_claim(NAME, self.task.claim)
        witness = None
        guarantee = _GUARANTEE_OF_OWN_KERNEL
        if self.event is not None:
            guarantee = "exact"
            witness = Witness.of(
                pair=pair,
                event=self.event,
                flipped=False,
                left=self._event_counts(left),
                right=self._event_counts(right),
                failure_probability=failure_probability,
            )
        return Finding(
            method=NAME,
            lower_bound=value_of_discrepancy(claim, discrepancy, self.threshold),
            guarantee=guarantee,
            confidence=1.0 - failure_probability,
            witness=witness,
            claim=self.task.claim,
            details={"discrepancy_lower": discrepancy, "threshold": self.threshold},
        )

    def p_value(self, left: Integers, right: Integers, failure_probability: float) -> float | None:
        """The smallest failure probability at which the bound refutes the claim, found by search.

        Function and stake are fixed, so that the bound only grows with the failure probability.
        """
        claim = check_claim(NAME, self.task.claim)

        def bound_at(failure: float) -> float:
            return value_of_discrepancy(
                claim, bet_lower(self.bet, left, right, failure), self.threshold
            )

        return nested_p_value(bound_at, claim.value, failure_probability)

    def _event_counts(self, cell_counts: Integers) -> Counts:
        return Counts(int(cell_counts[self.cells.chosen].sum()), int(cell_counts.sum()))


@dataclass(frozen=True, slots=True)
class PairsProposal(Proposal):
    """Embedding and bandwidth for the published estimate.

    Attributes:
        shapes: the kernel.
        task: what is to be certified.
        options: kernel and threshold.
        predicted: the bound to expect.
    """

    shapes: list[ShapeKernel]
    task: Task
    options: Options
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> list[Floats]:
        """Returns the draws as points, in a list that grows by chunks."""
        return [points_of(outputs, self.shapes)]

    def certify(
        self, left: list[Floats], right: list[Floats], pair: Pair, failure_probability: float
    ) -> Finding:
        """Returns the bound from disjoint pairs of the fresh draws.

        Guarantee: exact, because embedding and bandwidth were fixed before these draws.
        """
        terms = pair_terms(np.concatenate(left), np.concatenate(right), self.options.kernel)
        squared = bernstein_lower(terms, _SMALLEST_TERM, _LARGEST_TERM, failure_probability)
        discrepancy = math.sqrt(max(squared, 0.0))
        claim = check_claim(NAME, self.task.claim)
        threshold = self.options.threshold_for(claim)
        details: dict[str, object] = {
            "squared_discrepancy_lower": squared,
            "threshold": threshold,
            "certificate": "published: empirical Bernstein bound on disjoint pairs, as corrected",
        }
        return Finding(
            method=NAME,
            lower_bound=value_of_discrepancy(claim, discrepancy, threshold),
            guarantee=_GUARANTEE_OF_OWN_KERNEL if callable(self.options.kernel) else "exact",
            confidence=1.0 - failure_probability,
            witness=None,
            claim=self.task.claim,
            details=details,
        )


class MmdMethod(Method):
    """Compares the means of a smooth function of the outputs."""

    name = NAME
    summary = "maximum mean discrepancy of a kernel; PureDP and ApproxDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        self.options = options_or_default(NAME, "mmd", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Refuses claims that no discrepancy can refute, before anything is drawn."""
        hockey_stick_claim = check_claim(NAME, claim)
        allowed = greatest_discrepancy(
            hockey_stick_claim.epsilon,
            hockey_stick_claim.delta,
            self.options.threshold_for(hockey_stick_claim),
        )
        if allowed >= MOST:
            raise InputError(
                f"method='mmd' cannot refute {claim.describe()} by construction: the claim allows "
                f"a discrepancy of {allowed:.3g}, and with a kernel of at most 1 none exceeds √2 "
                "(without δ that is ε above ln(1 + √2) ≈ 0.88); use method='auto', or "
                "epsilometer.auditorium.mmd.Options(threshold='total-variation')"
            )

    def propose(
        self, left: Outputs, right: Outputs, task: Task
    ) -> FunctionProposal | PairsProposal:
        """Learns kernel, bandwidth and function from training draws."""
        self.check(task.claim)
        claim = check_claim(NAME, task.claim)
        options = replace(self.options, threshold=self.options.threshold_for(claim))
        with one_thread():
            shapes = kernel_space.learn_shapes(
                left, right, options.kernel, options.bandwidth, rng=task.learning_rng()
            )
            if options.certificate == "exact":
                return _learn_function(shapes, left, right, task, options)
            terms = pair_terms(points_of(left, shapes), points_of(right, shapes), options.kernel)
        squared = _predicted_square(terms, task)
        value = value_of_discrepancy(
            claim, math.sqrt(max(squared, 0.0)), options.threshold_for(claim)
        )
        return PairsProposal(
            shapes=shapes, task=task, options=options, predicted=value + min(squared, 0.0)
        )


def _predicted_square(terms: Floats, task: Task) -> float:
    """Predicts the published bound on the squared discrepancy from the training draws' terms."""
    if len(terms) < 2:
        return _SMALLEST_TERM
    n_pairs = max(min(task.n_fresh) // 2, 2)
    log_failure = math.log(2.0 / task.failure_probability)
    penalty = math.sqrt(2.0 * log_failure / n_pairs) + 1.0 / math.sqrt(len(terms))
    return float(terms.mean() - terms.std() * penalty - 10.0 * log_failure / n_pairs)


# --- the learned function ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _HalfMoments:
    """Moments of the landmarks' kernels over one half of the training draws.

    Attributes:
        left: of the left draws.
        right: of the right draws.
    """

    left: LandmarkMoments
    right: LandmarkMoments

    @property
    def difference(self) -> Floats:
        """Difference of the mean kernels, shape (landmarks,)."""
        return self.left.mean - self.right.mean


@dataclass(frozen=True, slots=True)
class _RidgeScore:
    """How well the function with one ridge separates draws that did not fit it.

    Attributes:
        ridge: smooths the function.
        difference: of the function's means.
        standard_error: of the difference, over the fresh draws of the certificate.
    """

    ridge: float
    difference: float
    standard_error: float


def _learn_function(
    shapes: list[ShapeKernel], left: Outputs, right: Outputs, task: Task, options: Options
) -> FunctionProposal:
    """Learns the function of norm 1 that separates both sides best, and how to bet on it."""
    halves = [
        _HalfMoments(
            left=kernel_space.landmark_moments(shapes, half_of(left, number)),
            right=kernel_space.landmark_moments(shapes, half_of(right, number)),
        )
        for number in (0, 1)
    ]
    gram = block_diag(*(shape.gram() for shape in shapes))
    scores = [_score_ridge(gram, ridge, halves, task) for ridge in _RIDGES]
    best = max(scores, key=lambda score: score.difference - _RIDGE_PENALTY * score.standard_error)

    difference = np.mean([half.difference for half in halves], axis=0)
    weights = kernel_space.unit_weights(gram, difference, best.ridge)
    function = kernel_space.as_function(shapes, weights, left, right)
    left_mean = float(weights @ (halves[0].left.mean + halves[1].left.mean)) / 2.0
    right_mean = float(weights @ (halves[0].right.mean + halves[1].right.mean)) / 2.0

    # The stake that is best for a normal sum of n_left terms.
    n_left, n_right = task.n_fresh
    deviations = math.sqrt(-2.0 * math.log(task.failure_probability))
    stake = min(
        deviations / max(best.standard_error * n_left, 1e-12),
        _LARGEST_STAKE,
        _LARGEST_STAKE * n_right / n_left,
    )
    bet = MeanBet(
        lowest=function.lowest,
        highest=function.highest,
        centre=float(np.clip(right_mean, -1.0, 1.0)),
        stake=stake,
    )

    values = 0.5 * (function.lowest + function.highest)
    # Cells that may have any value (NaN, signatures that do not happen) stay outside the event.
    is_known = function.highest - function.lowest < _WHOLE_RANGE
    cells = Event(function.partition, (values > 0.5 * (left_mean + right_mean)) & is_known)

    claim = check_claim(NAME, task.claim)
    threshold = options.threshold_for(claim)
    predicted = best.difference - deviations * best.standard_error
    if predicted > 0.0:
        predicted = value_of_discrepancy(claim, predicted, threshold)
    return FunctionProposal(
        event=None if callable(options.kernel) else cells.simplified(),
        cells=cells,
        bet=bet,
        task=task,
        threshold=threshold,
        predicted=predicted,
    )


def _score_ridge(gram: Floats, ridge: float, halves: list[_HalfMoments], task: Task) -> _RidgeScore:
    """Fits the function on each half of the training draws and judges it on the other."""
    n_left, n_right = task.n_fresh
    differences: list[float] = []
    variances: list[float] = []
    for fitted, held_out in ((halves[0], halves[1]), (halves[1], halves[0])):
        weights = kernel_space.unit_weights(gram, fitted.difference, ridge)
        differences.append(float(weights @ held_out.difference))
        left_variance = _variance(weights, held_out.left)
        right_variance = _variance(weights, held_out.right)
        variances.append(left_variance / n_left + right_variance / n_right)
    return _RidgeScore(
        ridge=ridge,
        difference=float(np.mean(differences)),
        standard_error=math.sqrt(float(np.mean(variances))),
    )


def _variance(weights: Floats, moments: LandmarkMoments) -> float:
    """Returns the variance of the function with these weights, at least 0."""
    second_moment = float(weights @ moments.second @ weights)
    return max(second_moment - float(weights @ moments.mean) ** 2, 0.0)


# --- the published estimate -------------------------------------------------------------------


def points_of(outputs: Outputs, shapes: list[ShapeKernel]) -> Floats:
    """Returns outputs as points, in units of the bandwidth.

    Returns:
        Shape (n, 1 + dimensions); the first coordinate is the number of the shape, from 1, and 0
        for all unknown shapes.
    """
    dimensions = max((shape.embedding.dimensions for shape in shapes if shape.embedding), default=0)
    points = np.zeros((len(outputs), 1 + dimensions))
    number_of_shape = {shape.shape: number for number, shape in enumerate(shapes)}
    for block in outputs:
        if block.shape not in number_of_shape:
            continue
        number = number_of_shape[block.shape]
        shape = shapes[number]
        rows = block.places()
        points[rows, 0] = number + 1
        if shape.embedding is not None:
            coordinates = shape.embedding.points(block.columns) / shape.bandwidth
            points[rows, 1 : 1 + coordinates.shape[1]] = coordinates
    return points


def pair_terms(left: Floats, right: Floats, kernel: KernelOfPoints = "gaussian") -> Floats:
    """Returns h = k(x, x') − 2·k(x, y) + k(y, y') of disjoint pairs; its mean is MMD².

    Args:
        left: shape (n, 1 + dimensions), points of the left draws.
        right: shape (m, 1 + dimensions), points of the right draws.
        kernel: a name or a function.

    Returns:
        Shape (pairs,), between −2 and 2.

    Reference: Kong et al. (2023), Theorem 4.14 and Algorithm 7.
    """
    n = min(len(left), len(right)) // 2
    x = left[: 2 * n : 2]
    other_x = left[1 : 2 * n : 2]
    y = right[: 2 * n : 2]
    other_y = right[1 : 2 * n : 2]
    return _kernel(x, other_x, kernel) - 2.0 * _kernel(x, y, kernel) + _kernel(y, other_y, kernel)


def _kernel(points: Floats, others: Floats, kernel: KernelOfPoints) -> Floats:
    """Returns the kernel of each point with its counterpart; 0 where the shapes differ."""
    values = kernel_of_points(kernel, points[:, 1:], others[:, 1:])
    return np.where(points[:, 0] == others[:, 0], values, 0.0)


# --- thresholds -------------------------------------------------------------------------------


def greatest_discrepancy(epsilon: float, delta: float, threshold: str = "published") -> float:
    """Returns the greatest discrepancy that (ε, δ)-privacy allows, by the given threshold.

    Reference: Kong et al. (2023), Theorem 4.13, for the published threshold.
    """
    if threshold == "published":
        growth = math.exp(min(epsilon, _LARGEST_EXPONENT))
        return growth - 1.0 + (1.0 + 1.0 / growth) * delta
    decay = math.exp(-min(epsilon, _LARGEST_EXPONENT))
    return MOST * (1.0 - decay + 2.0 * delta * decay) / (1.0 + decay)


def value_of_discrepancy(
    claim: PureDP | ApproxDP, discrepancy: float, threshold: str = "published"
) -> float:
    """Returns what a lower bound on the discrepancy certifies, in the claim's own parameter.

    It is 0 when the discrepancy certifies nothing.
    """
    if isinstance(claim, ApproxDeltaDP):
        # Both thresholds are straight lines in δ.
        at_zero = greatest_discrepancy(claim.epsilon, 0.0, threshold)
        slope = greatest_discrepancy(claim.epsilon, 1.0, threshold) - at_zero
        if slope <= 0.0:
            return 0.0
        return min(max(discrepancy - at_zero, 0.0) / slope, _LARGEST_DELTA)

    # Both thresholds grow with ε.
    def is_refuted(epsilon: float) -> bool:
        return greatest_discrepancy(epsilon, claim.delta, threshold) < discrepancy

    if not is_refuted(0.0):
        return 0.0
    return rejected_end(is_refuted, 0.0, _LARGEST_EPSILON, _HALVINGS)
