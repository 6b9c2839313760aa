"""The exact output distributions of means whose number of values is itself noisy.

Everything is measured in units of the noise on the count: with y = ñ·epsilon/2 and N = n·epsilon/2
the noisy count has density exp(-|y - N|)/2, and it counts only above 0; the mechanisms raise the
rest, of weight exp(-N)/2, to just above 0, which makes the noise on the mean astronomically large:
a separate outcome.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    Density,
    PairDistributions,
    panel_distributions,
    quadrature_cells,
    quadrature_distributions,
)
from epsilometer.zoo.distributions.numerics import REACH_IN_SCALES, Panels, laplace_density

# Closer to its kinks than this no density changes.
_NEAREST = 1e-9
# Farther away than this lies less than 1e-12 of the mass.
_FARTHEST = 1e13
# Below this exponent the moments of an exponential are summed as a series: quotients lose digits.
_SMALL_EXPONENT = 0.1
# Terms of that series; eight give all digits of a double.
_SERIES_TERMS = 8
# Gaussian densities farther than this from their mean, in standard deviations, add nothing.
_REACH_IN_SIGMAS = 40
# Densities of Gaussian noise are computed in this many parts, each with its own limit of
# integration.
_N_PARTS = 64


def count_distributions(
    left: Density,
    right: Density,
    centres: Sequence[float],
    counts: tuple[float, float],
    shift: float = 0.0,
) -> CellDistributions:
    """The distributions of a mean on two datasets.

    Args:
        left: the part of the density that comes from positive counts, elementwise.
        right: the same for the other dataset.
        centres: where a density has a kink or is concentrated.
        counts: N of both datasets.
        shift: how many scales of the noise lie between the sums, which a raised count divides as
            well.
    """
    panels = Panels.around(centres, _NEAREST, _FARTHEST)
    distributions = quadrature_distributions(
        quadrature_cells(panels, left(panels.nodes), left(panels.edges)),
        quadrature_cells(panels, right(panels.nodes), right(panels.edges)),
    )
    left_count, right_count = counts
    # The last cell: the count was raised.
    return CellDistributions(
        left=np.append(distributions.left, math.exp(-left_count) / 2),
        right=np.append(distributions.right, math.exp(-right_count) / 2),
        shifts=np.append(distributions.shifts, shift),
    )


def laplace_mean_density(t: Floats, count: float, total: float = 0.0) -> Floats:
    """Returns the density of (total + Laplace noise)/y at t, over the noisy count y > 0.

    That is the integral of y/4·exp(-|y - count| - |y·t - total|) over y: it has kinks at y = count
    and y = total/t, and between them an elementary primitive.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(total * t > 0, total / np.where(t == 0, 1.0, t), np.inf)
    kinks = [
        np.zeros_like(t),
        np.minimum(crossing, count),
        np.maximum(crossing, count),
        np.full_like(t, np.inf),
    ]
    integral = np.zeros_like(t)
    for low, high in itertools.pairwise(kinks):
        integral = integral + _integral_between_kinks(t, low, high, count=count, total=total)
    return integral / 4


def _integral_between_kinks(
    t: Floats, low: Floats, high: Floats, *, count: float, total: float
) -> Floats:
    """Returns the integral of y·exp(-|y - count| - |y·t - total|) from low to high.

    No kink lies between them; `high` may be inf. With low = inf it is 0.
    """
    is_empty = np.isinf(low)
    is_endless = np.isinf(high)
    start = np.where(is_empty, 0.0, low)
    width = np.where(is_endless, 1.0, high - start)
    inside = start + width / 2
    slope = -np.sign(inside - count) - t * np.sign(inside * t - total)
    # Starting at the end with the greater exponent, so that nothing overflows.
    corner = np.where(slope <= 0, start, start + width)
    direction = np.where(slope <= 0, -1.0, 1.0)
    zeroth, first = _exponential_moments(np.abs(slope) * width)
    if_finite = width * (corner * zeroth - direction * width * first)
    with np.errstate(divide="ignore"):
        if_endless = (start - 1 / slope) / -slope
    at_corner = np.exp(-np.abs(corner - count) - np.abs(corner * t - total))
    integral = at_corner * np.where(is_endless & (slope < 0), if_endless, if_finite)
    return np.where(is_empty, 0.0, integral)


def _exponential_moments(exponent: Floats) -> tuple[Floats, Floats]:
    """Returns the integrals of exp(-exponent·s) and of s·exp(-exponent·s) over s from 0 to 1.

    Args:
        exponent: at least 0.
    """
    is_small = exponent < _SMALL_EXPONENT
    safe = np.where(is_small, 1.0, exponent)
    zeroth = -np.expm1(-safe) / safe
    first = (zeroth - np.exp(-safe)) / safe
    small_zeroth = np.zeros_like(exponent)
    small_first = np.zeros_like(exponent)
    for order in range(_SERIES_TERMS):
        term = (-exponent) ** order / math.factorial(order)
        small_zeroth = small_zeroth + term / (order + 1)
        small_first = small_first + term / (order + 2)
    return np.where(is_small, small_zeroth, zeroth), np.where(is_small, small_first, first)


def gaussian_mean_density(distance: Floats, count: float) -> Floats:
    """Returns the density of a mean plus Gaussian noise at a distance from the mean.

    The noise has standard deviation 1/y for the noisy count y > 0, so the density is the integral
    of y·phi(y·distance)·exp(-|y - count|)/2 over y.
    """
    # Nodes y > 0 that resolve exp(-|y - count|), and a Gaussian in y of any width.
    last = count + REACH_IN_SCALES
    halvings = last / 2.0 ** np.arange(math.ceil(math.log2(last * _FARTHEST)))
    panels = Panels.on(np.unique([0.0, count, *halvings, *np.arange(count, last)]))
    y = panels.nodes.ravel()
    weights = panels.weights.ravel() * y * np.exp(-np.abs(y - count)) / math.sqrt(8 * math.pi)
    densities = []
    for part in np.array_split(distance.ravel(), min(_N_PARTS, distance.size)):
        nearest = float(np.abs(part).min())
        stop = int(np.searchsorted(y, _REACH_IN_SIGMAS / nearest)) if nearest > 0 else y.size
        gaussians = np.exp(-((part[:, None] * y[:stop]) ** 2) / 2)
        densities.append(gaussians @ weights[:stop])
    return np.concatenate(densities).reshape(distance.shape)


def released_distributions(half: float, width: float) -> CellDistributions:
    """The distributions of the released mean on one value 0 against 0, 1.

    A negative count gives Laplace noise of scale `width` only.

    Args:
        half: half of epsilon, so that N is `half` and twice that.
        width: 1e-12; against it everything else is wide.
    """

    def left(t: Floats) -> Floats:
        if_negative = np.exp(-np.abs(t) / width - half) / (4 * width)
        return laplace_mean_density(t, half, 0.0) + if_negative

    def right(t: Floats) -> Floats:
        # The total 1 over a negative count ñ: t = 1/ñ, distributed over the negative numbers.
        negative = np.where(t < 0, t, -1.0)
        density = half / 2 * np.exp(half / negative - 2 * half) / negative**2
        if_negative = np.where(t < 0, density, 0.0)
        return laplace_mean_density(t, 2 * half, half) + if_negative

    return panel_distributions(Panels.around((0.0, 0.5), width / 100, _FARTHEST), left, right)


class UnequalDistributions(PairDistributions):
    """Two noises of different widths: in the tails the wider one is infinitely likelier."""

    def mu(self) -> float:
        """See `PairDistributions`: infinite, as its tails are heavier than those of Gaussians."""
        return math.inf

    def rho(self) -> float:
        """See `PairDistributions`: infinite, because Rényi divergences of large orders are."""
        return math.inf


@dataclass(frozen=True)
class UnequalLaplaceDistributions(UnequalDistributions):
    """Laplace noise of two different scales.

    Attributes:
        shift: the left noise lies about 0, the right one about this.
        scales: of the left and of the right noise.
    """

    shift: float
    scales: tuple[float, float]

    def delta(self, epsilon: float) -> float:
        """See `PairDistributions`; to 1e-6, see `quadrature_distributions`."""
        return 0.0 if math.isinf(epsilon) else self._cells.delta(epsilon)

    @cached_property
    def _cells(self) -> CellDistributions:
        left_scale, right_scale = self.scales
        panels = Panels.between(
            (0.0, self.shift),
            scale=min(self.scales),
            reach=REACH_IN_SCALES * max(self.scales),
            panels_per_scale=20,
        )
        return panel_distributions(
            panels,
            left=lambda t: laplace_density(t, left_scale),
            right=lambda t: laplace_density(t - self.shift, right_scale),
        )

    def renyi(self, order: float) -> float:
        """See `PairDistributions`: three elementary integrals, divided at the two centres."""
        left_scale, right_scale = self.scales
        return max(
            _laplace_renyi(self.shift, left_scale, right_scale, order),
            _laplace_renyi(self.shift, right_scale, left_scale, order),
        )


def _laplace_renyi(shift: float, p_scale: float, q_scale: float, order: float) -> float:
    """Returns the Rényi divergence of P, Laplace noise about 0, from Q, about `shift`."""
    distance = abs(shift)
    if order == 1:
        mean_distance = distance + p_scale * math.exp(-distance / p_scale)
        return math.log(q_scale / p_scale) - 1 + mean_distance / q_scale
    if math.isinf(order):
        return math.inf
    # The integrand is exp(-p_rate·|t| + q_rate·|t - shift|) times a constant.
    p_rate = order / p_scale
    q_rate = (order - 1) / q_scale
    if p_rate <= q_rate:
        return math.inf
    outside = np.logaddexp(q_rate * distance, -p_rate * distance) - math.log(p_rate - q_rate)
    length = -math.expm1(-(p_rate + q_rate) * distance) / (p_rate + q_rate)
    between = q_rate * distance + math.log(length) if length > 0 else -math.inf
    constant = (order - 1) * math.log(2 * q_scale) - order * math.log(2 * p_scale)
    return float(constant + np.logaddexp(outside, between)) / (order - 1)


@dataclass(frozen=True)
class UnequalGaussianDistributions(UnequalDistributions):
    """Gaussian noise of two different standard deviations.

    Attributes:
        shift: the left noise lies about 0, the right one about this.
        sigmas: standard deviations of the left and of the right noise.
    """

    shift: float
    sigmas: tuple[float, float]

    def delta(self, epsilon: float) -> float:
        """See `PairDistributions`."""
        left_sigma, right_sigma = self.sigmas
        return max(
            _gaussian_hockey_stick(self.shift, left_sigma, right_sigma, epsilon),
            _gaussian_hockey_stick(self.shift, right_sigma, left_sigma, epsilon),
        )

    def renyi(self, order: float) -> float:
        """See `PairDistributions`.

        Reference: Gil, Alajaji, Linder, "Rényi divergence measures for commonly used univariate
        continuous distributions".
        """
        left_sigma, right_sigma = self.sigmas
        return max(
            _gaussian_renyi(self.shift, left_sigma, right_sigma, order),
            _gaussian_renyi(self.shift, right_sigma, left_sigma, order),
        )


def _gaussian_hockey_stick(shift: float, p_sigma: float, q_sigma: float, epsilon: float) -> float:
    """Returns the greatest P(E) - e^epsilon Q(E), with P about 0 and Q about `shift`.

    The log ratio is a quadratic in t: the best event lies outside its two roots if P is the wider,
    else between them.
    """
    if math.isinf(epsilon):
        return 0.0
    # log p(t)/q(t) - epsilon = quadratic·t² + linear·t + constant
    quadratic = (1 / q_sigma**2 - 1 / p_sigma**2) / 2
    linear = -shift / q_sigma**2
    constant = shift**2 / (2 * q_sigma**2) + math.log(q_sigma / p_sigma) - epsilon
    discriminant = linear**2 - 4 * quadratic * constant
    if discriminant <= 0:
        return 0.0  # the ratio stays below e^epsilon: it cannot be above it everywhere
    root = math.sqrt(discriminant)
    low, high = sorted([(-linear - root) / (2 * quadratic), (-linear + root) / (2 * quadratic)])

    def probability(centre: float, sigma: float) -> float:
        """Returns the probability of the best event under a Gaussian."""
        scaled_low = (low - centre) / (sigma * math.sqrt(2))
        scaled_high = (high - centre) / (sigma * math.sqrt(2))
        if quadratic > 0:
            return (math.erfc(-scaled_low) + math.erfc(scaled_high)) / 2
        return (math.erf(scaled_high) - math.erf(scaled_low)) / 2

    p = probability(0.0, p_sigma)
    q = probability(shift, q_sigma)
    # The product e^epsilon·q is at most 1; in logarithms it cannot overflow.
    allowed = math.exp(epsilon + math.log(q)) if q > 0 else 0.0
    return max(0.0, p - allowed)


def _gaussian_renyi(shift: float, p_sigma: float, q_sigma: float, order: float) -> float:
    """Returns the Rényi divergence of P, a Gaussian about 0, from Q, about `shift`."""
    if order == 1:
        log_ratio = math.log(q_sigma / p_sigma)
        return log_ratio + (p_sigma**2 + shift**2) / (2 * q_sigma**2) - 0.5
    if math.isinf(order):
        return math.inf
    mixed_variance = order * q_sigma**2 + (1 - order) * p_sigma**2
    if mixed_variance <= 0:
        return math.inf
    from_shift = order * shift**2 / (2 * mixed_variance)
    log_variances = math.log(q_sigma**2 / mixed_variance)
    from_widths = math.log(q_sigma / p_sigma) + log_variances / (2 * (order - 1))
    return from_shift + from_widths
