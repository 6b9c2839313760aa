"""The exact output distributions of means whose number of values is itself noisy.

Everything is measured in units of the noise on the count: with y = ñ·epsilon/2 and N = n·epsilon/2 the noisy count has
density exp(-|y - N|)/2, and it counts only above 0; the mechanisms raise the rest, of weight exp(-N)/2, to just above
0, which makes the noise on the mean astronomically large: a separate outcome.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.zoo.laws.exact import CellLaw, Density, PairLaw, panel_law, quadrature_cells, quadrature_law
from epsilometer.zoo.laws.numerics import REACH_IN_SCALES, Panels, laplace_density

Ends = tuple[float, float]

# Closer to its kinks than this no density changes; farther away lies less than 1e-12 of the mass.
_NEAREST, _FARTHEST = 1e-9, 1e13


def count_law(left: Density, right: Density, centres: Sequence[float], counts: Ends, shift: float = 0.0) -> CellLaw:
    """The distributions of a mean on two datasets.

    Args:
        left: the part of the density that comes from positive counts, elementwise.
        right: the same for the other dataset.
        centres: where a density has a kink or is concentrated.
        counts: N of both datasets.
        shift: how many scales of the noise lie between the sums, which a raised count divides as well.
    """
    panels = Panels.around(centres, _NEAREST, _FARTHEST)
    cells = [quadrature_cells(panels, density(panels.nodes), density(panels.edges)) for density in (left, right)]
    law, drowned = quadrature_law(*cells), [math.exp(-count) / 2 for count in counts]
    return CellLaw(np.append(law.left, drowned[0]), np.append(law.right, drowned[1]), np.append(law.shifts, shift))


def laplace_mean_density(t: Floats, count: float, total: float = 0.0) -> Floats:
    """Density of (total + Laplace noise)/y at t, over the noisy count y > 0.

    That is the integral of y/4·exp(-|y - count| - |y·t - total|) over y: it has kinks at y = count and y = total/t, and
    between them an elementary primitive.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(total * t > 0, total / np.where(t == 0, 1.0, t), np.inf)
    kinks = [np.zeros_like(t), np.minimum(crossing, count), np.maximum(crossing, count), np.full_like(t, np.inf)]
    return sum((_piece(t, low, high, count, total) for low, high in itertools.pairwise(kinks)), np.zeros_like(t)) / 4


def _piece(t: Floats, low: Floats, high: Floats, count: float, total: float) -> Floats:
    """The integral of y·exp(-|y - count| - |y·t - total|) from low to high; no kink lies between, high may be inf."""
    empty, endless = np.isinf(low), np.isinf(high)
    start = np.where(empty, 0.0, low)
    width = np.where(endless, 1.0, high - start)
    inside = start + width / 2
    slope = -np.sign(inside - count) - t * np.sign(inside * t - total)
    # Starting at the end with the greater exponent, so that nothing overflows.
    corner = np.where(slope <= 0, start, start + width)
    zeroth, first = _falling_moments(np.abs(slope) * width)
    finite = width * (corner * zeroth - np.where(slope <= 0, -1.0, 1.0) * width * first)
    with np.errstate(divide="ignore"):
        tail = (start - 1 / slope) / -slope
    size = np.exp(-np.abs(corner - count) - np.abs(corner * t - total))
    return np.where(empty, 0.0, size * np.where(endless & (slope < 0), tail, finite))


def _falling_moments(fall: Floats) -> tuple[Floats, Floats]:
    """The integrals of exp(-fall·s) and of s·exp(-fall·s) over s from 0 to 1, for fall >= 0."""
    safe = np.where(fall < 0.1, 1.0, fall)
    zeroth = -np.expm1(-safe) / safe
    first = (zeroth - np.exp(-safe)) / safe
    # The quotients lose their digits near 0, where eight terms of the series give all of them.
    terms = [(-fall) ** order / math.factorial(order) for order in range(8)]
    near = [sum((term / (order + more) for order, term in enumerate(terms)), np.zeros_like(fall)) for more in (1, 2)]
    return np.where(fall < 0.1, near[0], zeroth), np.where(fall < 0.1, near[1], first)


def gaussian_mean_density(distance: Floats, count: float) -> Floats:
    """Density of a mean plus Gaussian noise of deviation 1/y at a distance from the mean, over the noisy count y > 0.

    That is the integral of y·phi(y·distance)·exp(-|y - count|)/2 over y.
    """
    # Places y > 0 that resolve exp(-|y - count|), and a Gaussian in y of any width.
    last = count + REACH_IN_SCALES
    doubling = last / 2.0 ** np.arange(math.ceil(math.log2(last * _FARTHEST)))
    places = Panels.on(np.unique([0.0, count, *doubling, *np.arange(count, last)]))
    y = places.nodes.ravel()
    weights = places.weights.ravel() * y * np.exp(-np.abs(y - count)) / math.sqrt(8 * math.pi)
    result = []
    for part in np.array_split(distance.ravel(), min(64, distance.size)):
        # Beyond 40 deviations nothing is left to add.
        least = float(np.abs(part).min())
        stop = int(np.searchsorted(y, 40 / least)) if least > 0 else y.size
        result.append(np.exp(-((part[:, None] * y[:stop]) ** 2) / 2) @ weights[:stop])
    return np.concatenate(result).reshape(distance.shape)


def released_law(half: float, width: float) -> CellLaw:
    """The released mean on one value 0 against 0, 1; a negative count gives Laplace noise of scale `width` only.

    Args:
        half: half of epsilon, so that N is `half` and twice that.
        width: 1e-12; against it everything else is wide.
    """

    def left(t: Floats) -> Floats:
        return laplace_mean_density(t, half, 0.0) + np.exp(-np.abs(t) / width - half) / (4 * width)

    def right(t: Floats) -> Floats:
        # The total 1 over a negative count ñ: t = 1/ñ, spread over the negative numbers.
        negative = np.where(t < 0, t, -1.0)
        spread = np.where(t < 0, half / 2 * np.exp(half / negative - 2 * half) / negative**2, 0.0)
        return laplace_mean_density(t, 2 * half, half) + spread

    return panel_law(Panels.around((0.0, 0.5), width / 100, _FARTHEST), left, right)


class UnequalLaw(PairLaw):
    """What two noises of different widths have in common: in the tails the wider one is infinitely likelier."""

    def mu(self) -> float:
        """Infinite: the likelihood ratio has heavier tails than that of any two shifted Gaussians."""
        return math.inf

    def rho(self) -> float:
        """Infinite, because Rényi divergences of large orders are."""
        return math.inf


@dataclass(frozen=True)
class UnequalLaplaceLaw(UnequalLaw):
    """Laplace noise of scale `scales[0]` about 0 and of scale `scales[1]`, a different one, about `shift`."""

    shift: float
    scales: tuple[float, float]

    def delta(self, epsilon: float) -> float:
        """See `PairLaw`; to 1e-6, see `quadrature_law`."""
        return 0.0 if math.isinf(epsilon) else self._cells.delta(epsilon)

    @cached_property
    def _cells(self) -> CellLaw:
        reach = REACH_IN_SCALES * max(self.scales)
        panels = Panels.between((0.0, self.shift), min(self.scales), reach, panels_per_scale=20)
        first, second = self.scales
        return panel_law(panels, lambda t: laplace_density(t, first), lambda t: laplace_density(t - self.shift, second))

    def renyi(self, order: float) -> float:
        """See `PairLaw`: three elementary integrals, outside and between the two centres."""
        return max(_laplace_renyi(self.shift, *scales, order) for scales in (self.scales, self.scales[::-1]))


def _laplace_renyi(shift: float, scale: float, other: float, order: float) -> float:
    if order == 1:
        return math.log(other / scale) - 1 + (abs(shift) + scale * math.exp(-abs(shift) / scale)) / other
    if math.isinf(order):
        return math.inf
    # The integrand is exp(-grow·|t| + fall·|t - shift|) times a constant.
    grow, fall = order / scale, (order - 1) / other
    if grow <= fall:
        return math.inf
    distance = abs(shift)
    outside = np.logaddexp(fall * distance, -grow * distance) - math.log(grow - fall)
    rest = -math.expm1(-(grow + fall) * distance) / (grow + fall)
    between = fall * distance + math.log(rest) if rest > 0 else -math.inf
    constant = (order - 1) * math.log(2 * other) - order * math.log(2 * scale)
    return float(constant + np.logaddexp(outside, between)) / (order - 1)


@dataclass(frozen=True)
class UnequalGaussianLaw(UnequalLaw):
    """Gaussian noise of deviation `sigmas[0]` about 0 and of deviation `sigmas[1]`, a different one, about `shift`."""

    shift: float
    sigmas: tuple[float, float]

    def delta(self, epsilon: float) -> float:
        """See `PairLaw`."""
        sides = (self.sigmas, self.sigmas[::-1])
        return max(_gaussian_hockey_stick(self.shift, *sigmas, epsilon) for sigmas in sides)

    def renyi(self, order: float) -> float:
        """See `PairLaw`.

        Reference: Gil, Alajaji, Linder, "Rényi divergence measures for commonly used univariate continuous
        distributions".
        """
        return max(_gaussian_renyi(self.shift, *sigmas, order) for sigmas in (self.sigmas, self.sigmas[::-1]))


def _gaussian_hockey_stick(shift: float, sigma: float, other: float, epsilon: float) -> float:
    """Greatest P(E) - e^epsilon Q(E), P with `sigma` about 0, Q with `other` about `shift`.

    The log ratio is a quadratic in t: the best event lies outside its two roots if P is the wider, else between them.
    """
    if math.isinf(epsilon):
        return 0.0
    square, linear = (1 / other**2 - 1 / sigma**2) / 2, -shift / other**2
    constant = shift**2 / (2 * other**2) + math.log(other / sigma) - epsilon
    discriminant = linear**2 - 4 * square * constant
    if discriminant <= 0:
        return 0.0  # the ratio stays below e^epsilon: it cannot be above it everywhere
    roots = sorted((-linear + sign * math.sqrt(discriminant)) / (2 * square) for sign in (-1, 1))

    def chance(centre: float, width: float) -> float:
        low, high = ((root - centre) / (width * math.sqrt(2)) for root in roots)
        return (math.erfc(-low) + math.erfc(high)) / 2 if square > 0 else (math.erf(high) - math.erf(low)) / 2

    p, q = chance(0.0, sigma), chance(shift, other)
    # The product e^epsilon·q is at most 1; in logarithms it cannot overflow.
    return max(0.0, p - (math.exp(epsilon + math.log(q)) if q > 0 else 0.0))


def _gaussian_renyi(shift: float, sigma: float, other: float, order: float) -> float:
    if order == 1:
        return math.log(other / sigma) + (sigma**2 + shift**2) / (2 * other**2) - 0.5
    if math.isinf(order):
        return math.inf
    mixed = order * other**2 + (1 - order) * sigma**2
    if mixed <= 0:
        return math.inf
    spread = math.log(other / sigma) + math.log(other**2 / mixed) / (2 * (order - 1))
    return order * shift**2 / (2 * mixed) + spread
