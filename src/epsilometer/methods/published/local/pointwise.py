"""A one-sided interval for the loss at one place (Section IV-B of the paper)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_confidence
from epsilometer.errors import InputError
from epsilometer.methods.published.local import densities
from epsilometer.methods.published.local.kernels import (
    Kernel,
    find_kernel,
    own_bandwidth,
    rule_of_thumb,
    spreads,
)
from epsilometer.methods.published.local.loss import as_outputs, with_chosen
from epsilometer.methods.published.local.options import Options, per_coordinate
from epsilometer.methods.published.local.samples import as_matrix, count_outcomes, find_kind
from epsilometer.outputs import Outputs


@dataclass(frozen=True, slots=True)
class PointwiseLoss:
    """The loss at one place, with its standard error.

    Attributes:
        left_density: f̂(t), floored.
        right_density: f̂'(t), floored.
        standard_error: of the log ratio.
        failure_probability: of the interval.
        direction: 1 or −1 when it was fixed beforehand which side is the denser; 0 takes the
            absolute value.
    """

    left_density: float
    right_density: float
    standard_error: float
    failure_probability: float
    direction: int = 0

    @property
    def estimate(self) -> float:
        """The estimated loss."""
        ratio = math.log(self.left_density / self.right_density)
        return ratio * self.direction if self.direction else abs(ratio)

    @property
    def lower(self) -> float:
        """The lower end of the interval [lower, ∞); may be negative."""
        return self.estimate + float(ndtri(self.failure_probability)) * self.standard_error


def discrete_error(left: float, right: float, n: tuple[int, int]) -> float:
    """The standard error of ln f̂ − ln f̂' for relative frequencies."""
    variance = (1.0 / left - 1.0) / n[0] + (1.0 / right - 1.0) / n[1]
    return math.sqrt(max(variance, 0.0))


def kernel_error(left: float, right: float, n: tuple[int, int], h: Floats, kernel: Kernel) -> float:
    """The standard error of ln f̂ − ln f̂' for kernel densities of one bandwidth, shape (d,)."""
    factor = kernel.roughness ** len(h) / float(np.prod(h))
    return math.sqrt(factor * (1.0 / (left * n[0]) + 1.0 / (right * n[1])))


def proof_bandwidth(
    sides: tuple[Floats, Floats], n: tuple[int, int], options: Options, kernel: Kernel
) -> Floats:
    """The bandwidth of step 2, common to both sides, shape (d,): the given one, or the smaller one by the rule.

    Args:
        sides: draws of left and right, each of shape (m, d); step 2 may have others.
        n: draws that step 2 has of each.
    """
    given = options.proof_bandwidth
    if given is not None and not callable(given) and not isinstance(given, str):
        return per_coordinate(
            "proof_bandwidth", np.atleast_1d(np.asarray(given, dtype=np.float64)), sides[0].shape[1]
        )
    widths: list[Floats] = []
    for rows, fresh in zip(sides, n, strict=True):
        # what it says about these draws, at the rate of the rules for the number of fresh ones
        if callable(given):
            change = (max(fresh, 1) / len(rows)) ** (-1.0 / (rows.shape[1] + 4.0))
            own = own_bandwidth("proof_bandwidth", given, rows)
            widths.append(own * change * max(fresh, 1) ** -options.undersmoothing)
        else:
            widths.append(
                rule_of_thumb(spreads(rows), fresh, kernel, options.undersmoothing, given or "nrd0")
            )
    return np.asarray(np.minimum(widths[0], widths[1]))


def interval(
    left_outputs: object, right_outputs: object, t: Any, confidence: float = 0.95, **chosen: Any
) -> PointwiseLoss:
    """A one-sided interval [lower, ∞) for the loss |ln f(t) − ln f'(t)| at a place chosen beforehand.

    Args:
        left_outputs: outputs of one input, axis 0 counts them.
        right_outputs: outputs of the other.
        t: the place: a number, d numbers, or an outcome. It must not have been chosen by looking at
            these outputs.
        confidence: of the interval. **chosen: `floor`, `proof_bandwidth`, `undersmoothing`,
        `kernel`, `support`, `kind`; see `Options`.

    Returns:
        `.lower`, `.estimate` and `.standard_error`.

    Guarantee: asymptotic, for a positive finite loss: lower exceeds it with probability tending to
        1 − confidence.
    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local
        approach", (25).
    """
    options = with_chosen(None, chosen)
    check_confidence(confidence)
    left, right = (as_outputs(outputs) for outputs in (left_outputs, right_outputs))
    if min(len(left), len(right)) < 2:
        raise InputError(
            f"there are {len(left)} left and {len(right)} right outputs; each side needs at least 2"
        )
    n = len(left), len(right)
    if find_kind(left, right, options.kind) == "discrete":
        shares = _frequencies(left, right, t, options)
        return PointwiseLoss(*shares, discrete_error(*shares, n), 1.0 - confidence)
    rows = (as_matrix(left), as_matrix(right))
    kernel = find_kernel(options.kernel)
    h = proof_bandwidth(rows, n, options, kernel)
    floor = options.floor or densities.kernel_floor(min(n), h, kernel)
    places = densities.as_places(t, len(h))[0]
    limits = options.limits(len(h))
    p, q = (
        max(densities.kernel_density(side, places, h, kernel, limits).item(), floor)
        for side in rows
    )
    return PointwiseLoss(p, q, kernel_error(p, q, n, h, kernel), 1.0 - confidence)


def _frequencies(left: Outputs, right: Outputs, t: Any, options: Options) -> tuple[float, float]:
    outcomes = count_outcomes(left, right)
    floor = options.floor or densities.DRAWS_AT_FLOOR / min(outcomes.n)
    numbers = outcomes.numbers()
    if numbers is not None and np.ndim(t) == 0 and not isinstance(t, str):
        hits = (numbers == float(t)) | (np.isnan(numbers) & np.isnan(float(t)))
    else:
        wanted = list(t) if isinstance(t, tuple | list | np.ndarray) else t
        hits = np.array([outcomes[number] == wanted for number in range(len(outcomes))])
    p = outcomes.left[hits].sum() / outcomes.n[0]
    q = outcomes.right[hits].sum() / outcomes.n[1]
    return max(float(p), floor), max(float(q), floor)
