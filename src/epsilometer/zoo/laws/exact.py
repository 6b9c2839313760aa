"""The two exact output distributions of a mechanism on a pair of datasets, and the privacy that follows from them.

A black-box audit bounds these values from below; the zoo knows them. Values are for the *pair*, the larger of both
directions: a mechanism's own level is the largest over all pairs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.zoo.laws.numerics import REACH_IN_SCALES, Panels, maximise

Density = Callable[[Floats], Floats]

# A cell of tiny weight at every edge: there the ratio may be greatest, and no node of the rule lies on an edge.
_EDGE_WEIGHT = 1e-30
# Smaller cells are tail; beyond them one side of a ratio underflows to 0, which would look like an impossible event.
_LEAST_CELL = 1e-200
# Cells are merged when their log ratios agree to this; the loss is of second order in this.
_MERGED_RATIO = 1e-6
# Of a bracket that is at most twice as long as the answer: 2^-60 of it is below the spacing of floats.
HALVINGS = 60
# Of independent outputs: steps between no loss and the greatest one, and slices of Laplace noise between its centres.
_STEPS_OF_LOSS, _SLICES = 2000, 32


class PairLaw(ABC):
    """What is known about the output distributions P (left) and Q (right). Unknown values are None."""

    def pure_epsilon(self) -> float | None:
        """The greatest |log P(E)/Q(E)| over all events; may be inf."""
        return self.renyi(math.inf)

    def delta(self, epsilon: float) -> float | None:
        """The greatest P(E) - e^epsilon Q(E) over all events, larger of both directions; epsilon may be inf."""
        return None

    @abstractmethod
    def renyi(self, order: float) -> float | None:
        """The Rényi divergence of an order >= 1 (1: Kullback-Leibler, inf: pure), larger of both directions."""

    def epsilon(self, delta: float) -> float | None:
        """The least epsilon >= 0 for which the pair is (epsilon, delta)-indistinguishable; may be inf."""
        if delta == 0:
            return self.pure_epsilon()
        at_zero, at_infinity = self.delta(0.0), self.delta(math.inf)
        if at_zero is None or at_infinity is None:
            return None
        if at_infinity > delta:
            return math.inf
        if at_zero <= delta:
            return 0.0
        high = 1.0
        while _known(self.delta(high)) > delta:
            high *= 2
        return rejected_end(lambda value: _known(self.delta(value)) > delta, 0.0, high, HALVINGS)

    def mu(self) -> float | None:
        """The least mu for which the pair is mu-Gaussian indistinguishable.

        That is delta(epsilon) <= delta_mu(epsilon) for every epsilon >= 0 in both directions.

        Reference: Dong, Roth, Su, "Gaussian differential privacy", Corollary 2.13.
        """
        at_infinity, top = self.delta(math.inf), self.pure_epsilon()
        if at_infinity is None or top is None:
            return None
        if at_infinity > 0:
            return math.inf
        return maximise(lambda value: mu_through(value, _known(self.delta(value))), 0.0, top)

    def rho(self) -> float | None:
        """The least rho of zero-concentrated DP: the greatest D_order / order over the orders above 1."""
        at_one = self.renyi(1.0)
        if at_one is None or math.isinf(at_one):
            return at_one
        orders = (1e-3, math.log(1e4))
        return max(at_one, maximise(lambda log: _known(self.renyi(math.exp(log))) / math.exp(log), *orders))


@dataclass(frozen=True, eq=False)
class CellLaw(PairLaw):
    """Finitely many cells, each of which may also carry a number with Laplace noise.

    Cell j has probability `left[j]` and `right[j]`. Given the cell, the rest of the output is a number with Laplace
    noise about centres that lie `shifts[j]` noise scales apart; 0 means that the rest reveals nothing. Discrete laws
    have shifts 0, the Laplace mechanism is one cell, and mixed outputs have both.

    Attributes:
        left: shape (k,).
        right: shape (k,).
        shifts: shape (k,), >= 0.
    """

    left: Floats
    right: Floats
    shifts: Floats

    def delta(self, epsilon: float) -> float:
        """See `PairLaw`."""
        sides = (self.left, self.right), (self.right, self.left)
        return max(_hockey_stick(p, q, self.shifts, epsilon) for p, q in sides)

    def renyi(self, order: float) -> float:
        """See `PairLaw`."""
        return max(_renyi(p, q, self.shifts, order) for p, q in ((self.left, self.right), (self.right, self.left)))


def discrete_law(left: Floats, right: Floats) -> CellLaw:
    """The distributions of an output with finitely many values, probabilities of shape (k,)."""
    possible = (left > 0) | (right > 0)
    return CellLaw(left[possible], right[possible], np.zeros(int(possible.sum())))


def laplace_law(shift: float) -> CellLaw:
    """Laplace noise about two centres that lie `shift` noise scales apart: pure epsilon = shift."""
    return CellLaw(np.ones(1), np.ones(1), np.array([shift]))


def density_law(left: Density, right: Density, breakpoints: Iterable[float], scale: float) -> CellLaw:
    """Two densities on the line as the cells of a fine Gauss-Legendre rule; see `quadrature_law` for its accuracy.

    Args:
        left: density of P, elementwise.
        right: density of Q.
        breakpoints: where a density has a kink or a jump.
        scale: the shortest length on which a density changes by a factor e.
    """
    return panel_law(Panels.between(breakpoints, scale, REACH_IN_SCALES * scale, panels_per_scale=50), left, right)


def panel_law(panels: Panels, left: Density, right: Density) -> CellLaw:
    """Two densities on the line as the cells of the given panels."""
    return quadrature_law(*(quadrature_cells(panels, side(panels.nodes), side(panels.edges)) for side in (left, right)))


def quadrature_cells(panels: Panels, at_nodes: Floats, at_edges: Floats) -> Floats:
    """Weighted densities at the nodes, shape (k, m), and at the edges, shape (k + 1,), in one line."""
    return np.concatenate([(at_nodes * panels.weights).ravel(), at_edges * _EDGE_WEIGHT])


def quadrature_law(left: Floats, right: Floats, *, merged_ratio: float = _MERGED_RATIO) -> CellLaw:
    """The law whose cells are the nodes of a quadrature rule, weighted densities of shape (k,).

    Rényi divergences are exact to rounding if the densities are analytic between the panels' edges. The hockey-stick
    delta has a kink where the ratio of the densities is e^epsilon, which costs less than 1e-6 with 20 panels per noise
    scale. Pure epsilon is exact if the greatest ratio is attained at an edge or on an interval.
    """
    possible = np.maximum(left, right) > _LEAST_CELL
    left, right = left[possible], right[possible]
    with np.errstate(divide="ignore"):
        ratio = np.log(left) - np.log(right)
    # Most nodes lie in the tails, where the ratio is constant: one cell is enough for them. The extremes are kept.
    keys = np.round(ratio / merged_ratio)
    keys[np.argmax(ratio)], keys[np.argmin(ratio)] = np.inf, -np.inf
    _, cells = np.unique(keys, return_inverse=True)
    return discrete_law(*(np.bincount(cells, side).astype(np.float64) for side in (left, right)))


def independent_law(laws: Sequence[CellLaw]) -> CellLaw:
    """Several independent outputs together, numerically: cells merged to 1/2000 of the greatest log ratio.

    Merging and slicing coarsen the output, so that every value is at most the exact one. The greatest loss, which
    must be finite, is kept.
    """
    parts = [without_shifts(law) for law in laws]
    step = max(_MERGED_RATIO, sum(part.renyi(math.inf) for part in parts) / _STEPS_OF_LOSS)
    left = right = np.ones(1)
    for part in parts:
        both = quadrature_law(np.outer(left, part.left).ravel(), np.outer(right, part.right).ravel(), merged_ratio=step)
        left, right = both.left, both.right
    return discrete_law(left, right)


def without_shifts(law: CellLaw, slices: int = _SLICES) -> CellLaw:
    """Laplace noise as cells: one on either side of both centres, where the ratio is constant, and slices between."""
    places = law.shifts[:, None] * np.linspace(0.0, 1.0, slices + 1)
    between = [-np.diff(np.exp(-places)) / 2, np.diff(np.exp(places - law.shifts[:, None])) / 2]
    far = np.exp(-law.shifts)[:, None] / 2
    near = np.full_like(far, 0.5)
    cells = np.hstack([near, between[0], far]), np.hstack([far, between[1], near])
    return quadrature_law((law.left[:, None] * cells[0]).ravel(), (law.right[:, None] * cells[1]).ravel())


@dataclass(frozen=True)
class GaussianLaw(PairLaw):
    """Gaussian noise about two centres that lie `shift` standard deviations apart."""

    shift: float

    def delta(self, epsilon: float) -> float:
        """See `PairLaw`. Reference: Balle and Wang, "Improving the Gaussian mechanism", Theorem 8."""
        return gaussian_delta(self.shift, epsilon)

    def renyi(self, order: float) -> float:
        """See `PairLaw`."""
        return order * self.shift**2 / 2  # the pure loss is infinite: the ratio of the densities is unbounded

    def mu(self) -> float:
        """See `PairLaw`."""
        return self.shift

    def rho(self) -> float:
        """See `PairLaw`."""
        return self.shift**2 / 2


@dataclass(frozen=True)
class ProductLaw(PairLaw):
    """A vector of `copies` independent outputs with the same two distributions. Delta has no known closed form."""

    law: PairLaw
    copies: int

    def renyi(self, order: float) -> float | None:
        """See `PairLaw`: divergences of independent parts add up."""
        one = self.law.renyi(order)
        return None if one is None else self.copies * one


def gaussian_delta(shift: float, epsilon: float) -> float:
    """delta(epsilon) of two unit Gaussians whose means lie `shift` apart."""
    if shift == 0 or math.isinf(epsilon):
        return 0.0
    upper, lower = (_normal_tail(epsilon / shift + side * shift / 2) for side in (-1, 1))
    # The product e^epsilon * lower is at most 1; in logarithms it cannot overflow.
    return max(0.0, upper - (math.exp(epsilon + math.log(lower)) if lower > 0 else 0.0))


def _normal_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def mu_through(epsilon: float, delta: float) -> float:
    """The mu with delta_mu(epsilon) = delta."""
    if delta <= 0:
        return 0.0
    high = 1.0
    while gaussian_delta(high, epsilon) < delta and high < 1e3:
        high *= 2
    return rejected_end(lambda mu: gaussian_delta(mu, epsilon) < delta, 0.0, high, HALVINGS)


def _known(value: float | None) -> float:
    if value is None:
        raise AssertionError("a law that knows one value of a curve knows all of them")
    return value


def _hockey_stick(p: Floats, q: Floats, shifts: Floats, epsilon: float) -> float:
    """Greatest P(E) - e^epsilon Q(E). In a cell it is p times that of shifted Laplace noise at epsilon - log(p/q)."""
    inside = p > 0
    p, q, shifts = p[inside], q[inside], shifts[inside]
    if math.isinf(epsilon):
        return float(p[q == 0].sum())
    with np.errstate(divide="ignore"):
        level = epsilon + np.log(q) - np.log(p)
    between, below = -np.expm1((np.minimum(level, shifts) - shifts) / 2), -np.expm1(np.minimum(level, 0.0))
    return float((p * np.where(level > -shifts, between, below)).sum())


def _renyi(p: Floats, q: Floats, shifts: Floats, order: float) -> float:
    inside = p > 0
    p, q, shifts = p[inside], q[inside], shifts[inside]
    if bool((q == 0).any()):
        return math.inf
    ratio = np.log(p) - np.log(q)
    if math.isinf(order):
        return float((ratio + shifts).max())
    if order == 1:
        return float((p * (ratio + shifts + np.expm1(-shifts))).sum())
    outside = math.log(order / (2 * order - 1)) + (order - 1) * shifts
    noise = np.logaddexp(outside, math.log((order - 1) / (2 * order - 1)) - order * shifts)
    # Rounding may give slightly less than 0 for distributions that are almost equal.
    return max(0.0, float(np.logaddexp.reduce(np.log(p) + (order - 1) * ratio + noise)) / (order - 1))


# Beyond 40 standard deviations a Gaussian weighs less than any float.
_REACH = 40.0


@dataclass(frozen=True)
class SubsampledGaussianLaw(PairLaw):
    """(1 − rate)·N(0, sigma²) + rate·N(1, sigma²) on the left, N(0, sigma²) on the right.

    Reference: Mironov, Talwar, Zhang, "Rényi differential privacy of the sampled Gaussian mechanism".
    """

    sigma: float
    rate: float

    def delta(self, epsilon: float) -> float:
        """See `PairLaw`: the ratio is monotone, so the best events are half-lines."""
        return 0.0 if math.isinf(epsilon) else max(self._above(epsilon), self._below(epsilon), 0.0)

    def renyi(self, order: float) -> float:
        """See `PairLaw`; by quadrature, exact to rounding."""
        if math.isinf(order):
            return math.inf
        panels = Panels.between((0.0, max(1.0, order)), self.sigma, _REACH * self.sigma)
        x, weights = panels.nodes.ravel(), panels.weights.ravel()
        log_right = -0.5 * (x / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
        ratio = self._log_ratio(x)
        if order == 1.0:
            right = np.exp(log_right) * weights
            return float(max((right * np.exp(ratio)) @ ratio, right @ -ratio))
        moments = [order * ratio, (1.0 - order) * ratio]
        logs = [float(np.logaddexp.reduce(log_right + np.log(weights) + moment)) for moment in moments]
        return max(*logs, 0.0) / (order - 1.0)

    def mu(self) -> float:
        """As without subsampling: far out in the tail only the included person counts."""
        return 1.0 / self.sigma

    def rho(self) -> float:
        """As without subsampling: D_order/order tends to it as the order grows, and never exceeds it."""
        return 0.5 / self.sigma**2

    def _log_ratio(self, x: Floats) -> Floats:
        shifted = math.log(self.rate) + (x - 0.5) / self.sigma**2
        return shifted if self.rate == 1.0 else np.logaddexp(math.log1p(-self.rate), shifted)

    def _above(self, epsilon: float) -> float:
        """P(x > t) − e^ε·Q(x > t) where the ratio passes e^ε."""
        excess = math.expm1(epsilon) + self.rate
        end = 0.5 + self.sigma**2 * math.log(excess / self.rate)
        return self.rate * _normal_tail((end - 1.0) / self.sigma) - excess * _normal_tail(end / self.sigma)

    def _below(self, epsilon: float) -> float:
        """Q(x < t) − e^ε·P(x < t) where the inverse ratio passes e^ε."""
        excess = math.expm1(-epsilon) + self.rate
        if excess <= 0.0:
            return 0.0
        end, grow = 0.5 + self.sigma**2 * math.log(excess / self.rate), math.exp(epsilon)
        inside = _normal_tail(-end / self.sigma)
        return inside - grow * ((1 - self.rate) * inside + self.rate * _normal_tail((1.0 - end) / self.sigma))
