"""A one-sided interval for the loss at one place.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach", Section IV-B.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_confidence
from epsilometer.errors import InputError
from epsilometer.methods.published.local import densities
from epsilometer.methods.published.local.kernels import (
    SpaceKernel,
    own_bandwidth,
    robust_scales,
    rule_of_thumb,
)
from epsilometer.methods.published.local.loss import as_outputs, with_chosen
from epsilometer.methods.published.local.mixtures import find_mixture
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
        """The estimated loss; infinite where, without a floor, one side was not seen."""
        log_ratio = _log(self.left_density) - _log(self.right_density)
        if math.isnan(log_ratio):
            return 0.0
        if self.direction == 0:
            return abs(log_ratio)
        return log_ratio * self.direction

    @property
    def lower(self) -> float:
        """The lower end of the interval [lower, ∞); may be negative, or −inf without a floor."""
        if math.isinf(self.standard_error):
            return -math.inf
        return self.estimate + float(ndtri(self.failure_probability)) * self.standard_error


def _log(density: float) -> float:
    return math.log(density) if density > 0.0 else -math.inf


def interval(
    left_outputs: object, right_outputs: object, t: Any, confidence: float = 0.95, **chosen: Any
) -> PointwiseLoss:
    """Returns a one-sided interval [lower, ∞) for the loss |ln f(t) − ln f'(t)| at a fixed place.

    Args:
        left_outputs: outputs of one input, axis 0 counts them.
        right_outputs: outputs of the other.
        t: the place: a number, d numbers, or an outcome. It must not have been chosen by looking at
            these outputs.
        confidence: of the interval.
        **chosen: `floor` or `proof_floor` (0 for none), `proof_bandwidth`, `undersmoothing`,
            `kernel`, `kernel_shape`, `support`, `kind`; see `Options`.

    Returns:
        `.lower`, `.estimate` and `.standard_error`.

    Guarantee: asymptotic, for a positive finite loss: lower exceeds it with probability tending to
        1 − confidence.

    Reference: Askin, Kutta, Dette (2022), (25).
    """
    options = with_chosen(None, chosen)
    check_confidence(confidence)
    left = as_outputs(left_outputs)
    right = as_outputs(right_outputs)
    n = (len(left), len(right))
    if min(n) < 2:
        raise InputError(
            f"there are {len(left)} left and {len(right)} right outputs; each side needs at least 2"
        )
    rows = _density_draws(left, right, t, options)
    if rows is None:
        p, q = _frequencies(left, right, t, options)
        standard_error = discrete_error(p, q, n)
    else:
        d = rows.left.shape[1]
        kernel = options.space_kernel(d)
        limits = densities.checked_support(options, rows.left, rows.right)
        sizes = (len(rows.left), len(rows.right))
        h = proof_bandwidth(rows.left, rows.right, sizes, options, kernel)
        floor = step_2_floor(options, densities.kernel_floor(min(n), h, kernel))
        places = densities.as_places(rows.place, d).points
        left_density = densities.kernel_density(rows.left, places, h, kernel, limits)
        right_density = densities.kernel_density(rows.right, places, h, kernel, limits)
        # Where outputs are mixed, a density integrates to the fraction of draws that have one.
        p = max(left_density.item() * len(rows.left) / n[0], floor)
        q = max(right_density.item() * len(rows.right) / n[1], floor)
        standard_error = kernel_error(p, q, n, h, kernel)
    return PointwiseLoss(
        left_density=p,
        right_density=q,
        standard_error=standard_error,
        failure_probability=1.0 - confidence,
    )


class DensityDraws(NamedTuple):
    """Draws that have a density, and a place among them.

    Attributes:
        left: shape (k, d).
        right: shape (l, d).
        place: a number, or d of them.
    """

    left: Floats
    right: Floats
    place: Any


def _density_draws(left: Outputs, right: Outputs, t: Any, options: Options) -> DensityDraws | None:
    """Returns the draws whose density is wanted; None where t is a point mass or an outcome."""
    kind = find_kind(left, right, options.kind)
    if kind == "continuous":
        return DensityDraws(as_matrix(left), as_matrix(right), t)
    if kind == "mixed":
        for where in find_mixture(left, right).slices:
            number = where.number_of(t)
            if number is not None:
                return DensityDraws(where.rows(left), where.rows(right), number)
    return None


def step_2_floor(options: Options, chosen: float) -> float:
    """Returns τ of step 2: its own, else that of step 1, else the one that the draws choose."""
    if options.proof_floor is not None:
        return options.proof_floor
    return options.floor or chosen


def _frequencies(left: Outputs, right: Outputs, t: Any, options: Options) -> tuple[float, float]:
    """Returns the floored relative frequencies of one outcome on the left and on the right."""
    outcomes = count_outcomes(left, right)
    n_left, n_right = outcomes.n
    floor = step_2_floor(options, densities.DRAWS_AT_FLOOR / min(outcomes.n))
    numbers = outcomes.numbers()
    if numbers is not None and np.ndim(t) == 0 and not isinstance(t, str):
        is_wanted = (numbers == float(t)) | (np.isnan(numbers) & np.isnan(float(t)))
    else:
        wanted = list(t) if isinstance(t, tuple | list | np.ndarray) else t
        is_wanted = np.array([outcomes[number] == wanted for number in range(len(outcomes))])
    p = float(outcomes.left[is_wanted].sum() / n_left)
    q = float(outcomes.right[is_wanted].sum() / n_right)
    return max(p, floor), max(q, floor)


# --- standard errors and the bandwidth of step 2 ----------------------------------------------


def discrete_error(left: float, right: float, n: tuple[int, int]) -> float:
    """Returns the standard error of ln f̂ − ln f̂' for relative frequencies; inf if one is 0.

    Args:
        left: relative frequency on the left.
        right: relative frequency on the right.
        n: draws of left and right.
    """
    if min(left, right) <= 0.0:
        return math.inf
    n_left, n_right = n
    variance = (1.0 / left - 1.0) / n_left + (1.0 / right - 1.0) / n_right
    return math.sqrt(max(variance, 0.0))


def kernel_error(
    left: float, right: float, n: tuple[int, int], h: Floats, kernel: SpaceKernel
) -> float:
    """Returns the standard error of ln f̂ − ln f̂' for kernel densities; inf if one is 0.

    Args:
        left: density on the left.
        right: density on the right.
        n: draws of left and right.
        h: shape (d,), the bandwidth of both sides.
        kernel: the kernel.
    """
    if min(left, right) <= 0.0:
        return math.inf
    n_left, n_right = n
    factor = kernel.roughness / float(np.prod(h))
    return math.sqrt(factor * (1.0 / (left * n_left) + 1.0 / (right * n_right)))


def proof_bandwidth(
    left: Floats, right: Floats, n: tuple[int, int], options: Options, kernel: SpaceKernel
) -> Floats:
    """Returns the bandwidth of step 2, common to both sides, shape (d,).

    It is the given one, or the smaller of both sides' by the rule.

    Args:
        left: shape (m, d), draws of the left; step 2 may have others.
        right: shape (m, d), draws of the right.
        n: draws that step 2 has of left and right.
        options: settings.
        kernel: the kernel.
    """
    given = options.proof_bandwidth
    if given is not None and not callable(given) and not isinstance(given, str):
        numbers = np.atleast_1d(np.asarray(given, dtype=np.float64))
        return per_coordinate("proof_bandwidth", numbers, left.shape[1])
    widths = [
        _proof_bandwidth_of_side(rows, n_side, options, kernel)
        for rows, n_side in zip((left, right), n, strict=True)
        # A side without a density, beside point masses, has no bandwidth.
        if len(rows) > 1
    ]
    return np.asarray(np.min(widths, axis=0))


def _proof_bandwidth_of_side(rows: Floats, n: int, options: Options, kernel: SpaceKernel) -> Floats:
    """Returns the bandwidth of one side by the rule or by the caller's function, shape (d,)."""
    given = options.proof_bandwidth
    if not callable(given):
        scales = robust_scales(rows)
        return rule_of_thumb(scales, max(n, 1), kernel, options.undersmoothing, given or "nrd0")
    # The function sees these draws; the rate of the rules adapts it to the number of fresh ones.
    n = max(n, 1)
    change = (n / len(rows)) ** (-1.0 / (rows.shape[1] + 4.0))
    width = own_bandwidth("proof_bandwidth", given, rows)
    return np.asarray(width * change * n**-options.undersmoothing, dtype=np.float64)
