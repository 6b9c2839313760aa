"""Method `mmd`: a lower bound on the maximum mean discrepancy of the two laws.

The discrepancy is the greatest E f(X) − E f(Y) over functions of norm at most 1 in the kernel's space. The default
learns one such function on training draws and bounds its difference of means on fresh ones (`bounds.mean_bet`): a leak
of size t takes about 1/t² draws. The published estimate of the squared discrepancy takes about 1/t⁴.

Reference: DP-Auditorium, Theorem 4.13 and Algorithms 7, 8; Gretton et al. (2012), "A kernel two-sample test".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds import Counts, lower, upper
from epsilometer.bounds.mean_bet import MeanBet, difference_lower
from epsilometer.claims import Claim
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.hockey_stick.choosing import check_claim
from epsilometer.methods.hockey_stick.method import CERTIFICATES, check_choice
from epsilometer.methods.mmd.kernel_space import (
    Shape,
    as_function,
    gram_of,
    landmark_means,
    learn_shapes,
    unit_weights,
)
from epsilometer.methods.mmd.pairs import Points, points_of, predicted_squared, squared_lower
from epsilometer.methods.mmd.thresholds import (
    THRESHOLDS,
    check_refutable,
    value_of_discrepancy,
)
from epsilometer.methods.threads import one_thread
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding, Witness

NAME = "mmd"
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Ridges that are tried, in units of the kernel: small ones follow every wiggle of the training draws.
_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `mmd`.

    Attributes:
        threshold: "published" (e^ε − 1 + (1 + e^−ε)·δ, which no ε above .88 can exceed) or "total-variation" (√2 times
            the total variation that the claim allows: always sharper, and it can refute any ε).
        certificate: "exact" bounds the mean difference of one learned function; "published" is the empirical Bernstein
            bound on the squared discrepancy of disjoint pairs, as sound, but it sees only large leaks.
    """

    threshold: str = "published"
    certificate: str = "exact"

    def __post_init__(self) -> None:
        check_choice("threshold", self.threshold, THRESHOLDS)
        check_choice("certificate", self.certificate, CERTIFICATES)


@dataclass(frozen=True, slots=True)
class FunctionProposal:
    """A function of norm at most 1 whose means are compared on fresh draws.

    Attributes:
        event: the outputs on which the function is above its middle; shown, watched and replayed.
        cells: the same event on the cells of the bet.
        bet: the function's values, with centre and stake.
        task: what is to be proved.
        threshold: which one.
        predicted: the bound to expect.
    """

    event: Event
    cells: Event
    bet: MeanBet
    task: Task
    threshold: str
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How often each cell of the function happened, shape (cells,)."""
        with one_thread():
            return self.cells.partition.count(outputs)

    def certify(self, left: Integers, right: Integers, pair: Pair, failure_probability: float) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        discrepancy = difference_lower(self.bet, left, right, failure_probability)
        bound = value_of_discrepancy(check_claim(NAME, self.task.claim), discrepancy, self.threshold)
        counts = [Counts(int(side[self.cells.chosen].sum()), int(side.sum())) for side in (left, right)]
        witness = Witness(
            pair=pair,
            event=self.event,
            flipped=False,
            left_counts=counts[0],
            right_counts=counts[1],
            p_lower=lower(counts[0], failure_probability / 2),
            q_upper=upper(counts[1], failure_probability / 2),
        )
        details: dict[str, Any] = {"discrepancy_lower": discrepancy, "threshold": self.threshold}
        return Finding(NAME, bound, "exact", 1.0 - failure_probability, witness, self.task.claim, details)


@dataclass(frozen=True, slots=True)
class PairsProposal:
    """Embedding and bandwidth for the published estimate.

    Attributes:
        shapes: the kernel.
        task: what is to be proved.
        threshold: which one.
        predicted: the bound to expect.
    """

    shapes: list[Shape]
    task: Task
    threshold: str
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Points:
        """The draws as points: the estimate needs both sides at once."""
        return points_of(outputs, self.shapes)

    def certify(self, left: Points, right: Points, pair: Pair, failure_probability: float) -> Finding:
        """The bound from disjoint pairs of the fresh draws."""
        squared = squared_lower(left.rows, right.rows, failure_probability)
        discrepancy = math.sqrt(max(squared, 0.0))
        bound = value_of_discrepancy(check_claim(NAME, self.task.claim), discrepancy, self.threshold)
        details: dict[str, Any] = {
            "squared_discrepancy_lower": squared,
            "threshold": self.threshold,
            "certificate": "published: empirical Bernstein bound on disjoint pairs, as corrected",
        }
        return Finding(NAME, bound, "exact", 1.0 - failure_probability, None, self.task.claim, details)


class MmdMethod:
    """Compares the means of a smooth function of the outputs."""

    name = NAME
    summary = "maximum mean discrepancy with a Gaussian kernel; PureDP and ApproxDP up to ε = .88 (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100}: the method {NAME} takes epsilometer.mmd.Options")
        self.options = options or Options()

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Pure and approximate privacy that a discrepancy can refute; called before anything is drawn."""
        check_refutable(check_claim(NAME, claim), self.options.threshold)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> FunctionProposal | PairsProposal:
        """Kernel, bandwidth and function from training draws."""
        self.check(task.claim)
        with one_thread():
            return self._propose(learn_shapes(left, right), left, right, task)

    def _propose(
        self, shapes: list[Shape], left: Outputs, right: Outputs, task: Task
    ) -> FunctionProposal | PairsProposal:
        if self.options.certificate == "exact":
            return self._propose_function(shapes, left, right, task)
        points = [points_of(side, shapes).rows for side in (left, right)]
        squared = predicted_squared(points[0], points[1], min(task.n_fresh), task.failure_probability)
        predicted = self._value(task, math.sqrt(max(squared, 0.0))) + min(squared, 0.0)
        return PairsProposal(shapes, task, self.options.threshold, predicted)

    def _value(self, task: Task, discrepancy: float) -> float:
        return value_of_discrepancy(check_claim(NAME, task.claim), discrepancy, self.options.threshold)

    def _propose_function(self, shapes: list[Shape], left: Outputs, right: Outputs, task: Task) -> FunctionProposal:
        halves = [[_half(side, half) for side in (left, right)] for half in (0, 1)]
        means = [[landmark_means(shapes, side) for side in half] for half in halves]
        gram = gram_of(shapes)
        tried = [_judge(gram, ridge, means, task) for ridge in _RIDGES]
        ridge, difference, spread = max(tried, key=lambda each: each[1] - 2.5 * each[2])
        shift = np.mean([half[0][0] - half[1][0] for half in means], axis=0)
        weights = unit_weights(gram, shift, ridge)
        function = as_function(shapes, weights, left, right)
        middles = [float(weights @ (means[0][side][0] + means[1][side][0])) / 2.0 for side in (0, 1)]
        needed = -math.log(task.failure_probability)
        # The stake that is best for a normal sum; the spread is that of the mean over n_fresh draws.
        stake = min(
            math.sqrt(2.0 * needed) / max(spread * task.n_fresh[0], 1e-12), 0.3, 0.3 * task.n_fresh[1] / task.n_fresh[0]
        )
        bet = MeanBet(function.lowest, function.highest, float(np.clip(middles[1], -1.0, 1.0)), stake)
        values = 0.5 * (function.lowest + function.highest)
        # Cells that may have any value (NaN, signatures that do not happen) stay outside the event.
        chosen = (values > 0.5 * (middles[0] + middles[1])) & (function.highest - function.lowest < 2.0)
        cells = Event(function.partition, chosen)
        expected = difference - math.sqrt(2.0 * needed) * spread
        predicted = self._value(task, expected) if expected > 0.0 else expected
        return FunctionProposal(cells.simplified(), cells, bet, task, self.options.threshold, predicted)


def _half(outputs: Outputs, number: int) -> Outputs:
    middle = len(outputs) // 2
    return outputs.take(slice(middle, len(outputs)) if number else slice(0, middle))


def _judge(
    gram: Floats, ridge: float, means: list[list[tuple[Floats, Floats]]], task: Task
) -> tuple[float, float, float]:
    """The ridge, and the difference of means and its spread that it gives on draws that did not fit the function."""
    differences, variances = [], []
    for half in (0, 1):
        weights = unit_weights(gram, means[half][0][0] - means[half][1][0], ridge)
        fresh = means[1 - half]
        differences.append(float(weights @ (fresh[0][0] - fresh[1][0])))
        parts = [float(weights @ square @ weights) - float(weights @ mean) ** 2 for mean, square in fresh]
        variances.append(sum(max(part, 0.0) / n for part, n in zip(parts, task.n_fresh, strict=True)))
    return ridge, float(np.mean(differences)), math.sqrt(float(np.mean(variances)))
