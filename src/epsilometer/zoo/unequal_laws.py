"""Output laws of one shape whose two noises have different widths: their ratio is unbounded, however near they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsilometer.zoo.laws import CellLaw, PairLaw, quadrature_cells, quadrature_law
from epsilometer.zoo.numerics import REACH_IN_SCALES, Panels, laplace_density


class UnequalLaw(PairLaw):
    """What two noises of different widths have in common: in the tails the wider one is infinitely likelier."""

    def pure_epsilon(self) -> float:
        """Infinite."""
        return math.inf

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
        sides = zip((0.0, self.shift), self.scales, strict=True)
        return quadrature_law(
            *(
                quadrature_cells(panels, *(laplace_density(t - centre, scale) for t in (panels.nodes, panels.edges)))
                for centre, scale in sides
            )
        )

    def renyi(self, order: float) -> float:
        """See `PairLaw`: three elementary integrals, outside and between the two centres."""
        first, second = self.scales
        return max(_laplace_renyi(self.shift, first, second, order), _laplace_renyi(self.shift, second, first, order))


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
        first, second = self.sigmas
        forth = _gaussian_hockey_stick(self.shift, first, second, epsilon)
        return max(forth, _gaussian_hockey_stick(self.shift, second, first, epsilon))

    def renyi(self, order: float) -> float:
        """See `PairLaw`. Reference: Gil, Alajaji, Linder, "Rényi divergence measures for commonly used laws"."""
        first, second = self.sigmas
        return max(_gaussian_renyi(self.shift, first, second, order), _gaussian_renyi(self.shift, second, first, order))


def _gaussian_hockey_stick(shift: float, sigma: float, other: float, epsilon: float) -> float:
    """Greatest P(E) - e^epsilon Q(E), P with `sigma` about 0, Q with `other` about `shift`.

    The log ratio is a quadratic in t: the best event lies outside its two roots if P is the wider, else between them.
    """
    if math.isinf(epsilon):
        return 0.0
    square = (1 / other**2 - 1 / sigma**2) / 2
    linear = -shift / other**2
    constant = shift**2 / (2 * other**2) + math.log(other / sigma) - epsilon
    discriminant = linear**2 - 4 * square * constant
    wider = square > 0
    if discriminant <= 0:
        return 0.0  # the ratio stays below e^epsilon, for epsilon >= 0 never above it everywhere
    roots = sorted((-linear + sign * math.sqrt(discriminant)) / (2 * square) for sign in (-1, 1))
    chance = _normal_outside if wider else _normal_between
    p, q = (chance(*((root - centre) / width for root in roots)) for centre, width in ((0.0, sigma), (shift, other)))
    # The product e^epsilon·q is at most 1; in logarithms it cannot overflow.
    return max(0.0, p - (math.exp(epsilon + math.log(q)) if q > 0 else 0.0))


def _normal_between(low: float, high: float) -> float:
    return (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2


def _normal_outside(low: float, high: float) -> float:
    return (math.erfc(-low / math.sqrt(2)) + math.erfc(high / math.sqrt(2))) / 2


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
