"""The exact output distributions of a mechanism on a pair of datasets, and the privacy they have.

A black-box audit bounds these values from below; the zoo knows them. Values are for the *pair*, the
larger of both directions: a mechanism's own level is the largest over all pairs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.zoo.distributions.numerics import REACH_IN_SCALES, Panels, maximise

Density = Callable[[Floats], Floats]

# The weight of a cell at every edge: there the ratio may be greatest, and no node of the rule lies
# on an edge.
_EDGE_WEIGHT = 1e-30
# Smaller cells are tail; beyond them one side of a ratio underflows to 0, which would look like an
# impossible event.
_LEAST_CELL = 1e-200
# Cells are merged when their log ratios agree to this; the error is of second order in this.
_MERGED_RATIO = 1e-6
# Halvings of a bracket that is at most twice as long as the answer: 2^-60 of it is below the
# spacing of floats.
HALVINGS = 60
# Losses of independent outputs are merged to this many steps between none and the greatest one.
_STEPS_OF_LOSS = 2000
# Laplace noise is cut into this many cells between its two centres.
_SLICES = 32
# The largest mu that `mu_through` looks for: no sample could tell it from infinity.
_MAX_MU = 1e3
# The orders at which `rho` looks for the greatest D_order / order: from just above 1 to 10^4.
_MIN_LOG_ORDER = 1e-3
_MAX_LOG_ORDER = math.log(1e4)
# Gaussian tails beyond this many standard deviations weigh less than any float.
_REACH_IN_SIGMAS = 40.0


class PairDistributions(ABC):
    """What is known about the output distributions P (left) and Q (right).

    Unknown values are None.
    """

    def pure_epsilon(self) -> float | None:
        """Returns the greatest |log P(E)/Q(E)| over all events; may be inf."""
        return self.renyi(math.inf)

    def delta(self, epsilon: float) -> float | None:
        """Returns the greatest P(E) - e^epsilon Q(E) over all events, larger of both directions.

        Args:
            epsilon: may be inf.
        """
        return None

    @abstractmethod
    def renyi(self, order: float) -> float | None:
        """Returns the Rényi divergence of an order, larger of both directions.

        Args:
            order: at least 1; 1 is the Kullback-Leibler divergence, inf gives the pure level.
        """

    def epsilon(self, delta: float) -> float | None:
        """Returns the least epsilon >= 0 for which the pair is (epsilon, delta)-indistinguishable.

        It may be inf.
        """
        if delta == 0:
            return self.pure_epsilon()
        at_zero = self.delta(0.0)
        at_infinity = self.delta(math.inf)
        if at_zero is None or at_infinity is None:
            return None
        if at_infinity > delta:
            return math.inf
        if at_zero <= delta:
            return 0.0
        high = 1.0
        while _known(self.delta(high)) > delta:
            high *= 2

        def is_too_small(epsilon: float) -> bool:
            return _known(self.delta(epsilon)) > delta

        return rejected_end(is_too_small, 0.0, high, HALVINGS)

    def mu(self) -> float | None:
        """Returns the least mu for which the pair is mu-Gaussian indistinguishable.

        Then delta(epsilon) <= delta_mu(epsilon) for every epsilon >= 0 in both directions.

        Reference: Dong, Roth, Su, "Gaussian differential privacy", Corollary 2.13.
        """
        at_infinity = self.delta(math.inf)
        greatest_loss = self.pure_epsilon()
        if at_infinity is None or greatest_loss is None:
            return None
        if at_infinity > 0:
            return math.inf

        def mu_at(epsilon: float) -> float:
            return mu_through(epsilon, _known(self.delta(epsilon)))

        return maximise(mu_at, 0.0, greatest_loss)

    def rho(self) -> float | None:
        """Returns the least rho of zero-concentrated DP.

        It is the greatest D_order / order over the orders above 1.
        """
        at_one = self.renyi(1.0)
        if at_one is None or math.isinf(at_one):
            return at_one

        def rho_at(log_order: float) -> float:
            order = math.exp(log_order)
            return _known(self.renyi(order)) / order

        return max(at_one, maximise(rho_at, _MIN_LOG_ORDER, _MAX_LOG_ORDER))


@dataclass(frozen=True, eq=False)
class CellDistributions(PairDistributions):
    """Finitely many cells, each of which may also carry a number with Laplace noise.

    Cell j has probability `left[j]` and `right[j]`. Given the cell, the rest of the output is a
    number with Laplace noise about centres that lie `shifts[j]` noise scales apart; 0 means that
    the rest reveals nothing. Discrete distributions have shifts 0, the Laplace mechanism is one
    cell, and mixed outputs have both.

    Attributes:
        left: shape (k,).
        right: shape (k,).
        shifts: shape (k,), >= 0.
    """

    left: Floats
    right: Floats
    shifts: Floats

    def delta(self, epsilon: float) -> float:
        """See `PairDistributions`."""
        return max(
            _hockey_stick(self.left, self.right, self.shifts, epsilon),
            _hockey_stick(self.right, self.left, self.shifts, epsilon),
        )

    def renyi(self, order: float) -> float:
        """See `PairDistributions`."""
        return max(
            _renyi(self.left, self.right, self.shifts, order),
            _renyi(self.right, self.left, self.shifts, order),
        )


def discrete_distributions(left: Floats, right: Floats) -> CellDistributions:
    """The distributions of an output with finitely many values, probabilities of shape (k,)."""
    possible = (left > 0) | (right > 0)
    shifts = np.zeros(int(possible.sum()))
    return CellDistributions(left=left[possible], right=right[possible], shifts=shifts)


def laplace_distributions(shift: float) -> CellDistributions:
    """Laplace noise about two centres that lie `shift` noise scales apart: pure epsilon = shift."""
    return CellDistributions(left=np.ones(1), right=np.ones(1), shifts=np.array([shift]))


def density_distributions(
    left: Density, right: Density, breakpoints: Iterable[float], scale: float
) -> CellDistributions:
    """Two densities on the line as the cells of a fine Gauss-Legendre rule.

    See `quadrature_distributions` for its accuracy.

    Args:
        left: density of P, elementwise.
        right: density of Q.
        breakpoints: where a density has a kink or a jump.
        scale: the shortest length on which a density changes by a factor e.
    """
    panels = Panels.between(
        breakpoints, scale=scale, reach=REACH_IN_SCALES * scale, panels_per_scale=50
    )
    return panel_distributions(panels, left, right)


def panel_distributions(panels: Panels, left: Density, right: Density) -> CellDistributions:
    """Two densities on the line as the cells of the given panels."""
    return quadrature_distributions(
        quadrature_cells(panels, left(panels.nodes), left(panels.edges)),
        quadrature_cells(panels, right(panels.nodes), right(panels.edges)),
    )


def quadrature_cells(panels: Panels, at_nodes: Floats, at_edges: Floats) -> Floats:
    """Returns the weights of the cells of a quadrature rule: first its nodes, then its edges.

    Args:
        panels: the rule.
        at_nodes: shape (k, m), the density at the nodes.
        at_edges: shape (k + 1,), the density at the edges.
    """
    return np.concatenate([(at_nodes * panels.weights).ravel(), at_edges * _EDGE_WEIGHT])


def quadrature_distributions(
    left: Floats, right: Floats, *, merged_ratio: float = _MERGED_RATIO
) -> CellDistributions:
    """The distributions whose cells are the nodes of a quadrature rule.

    Rényi divergences are exact to rounding if the densities are analytic between the panels' edges.
    The hockey-stick delta has a kink where the ratio of the densities is e^epsilon, which costs
    less than 1e-6 with 20 panels per noise scale. Pure epsilon is exact if the greatest ratio is
    attained at an edge or on an interval.

    Args:
        left: shape (k,), weighted densities.
        right: shape (k,).
        merged_ratio: cells are merged when their log ratios agree to this.
    """
    possible = np.maximum(left, right) > _LEAST_CELL
    left = left[possible]
    right = right[possible]
    with np.errstate(divide="ignore"):
        log_ratio = np.log(left) - np.log(right)
    # Most nodes lie in the tails, where the ratio is constant: one cell is enough for them. The
    # extremes are kept.
    keys = np.round(log_ratio / merged_ratio)
    keys[np.argmax(log_ratio)] = np.inf
    keys[np.argmin(log_ratio)] = -np.inf
    _, cells = np.unique(keys, return_inverse=True)
    return discrete_distributions(
        np.bincount(cells, left).astype(np.float64),
        np.bincount(cells, right).astype(np.float64),
    )


def independent_distributions(components: Sequence[CellDistributions]) -> CellDistributions:
    """The distributions of several independent outputs together, numerically.

    Cells are merged to 1/2000 of the greatest log ratio. Merging and slicing coarsen the output, so
    that every value is at most the exact one. The greatest loss, which must be finite, is kept.
    """
    parts = [without_shifts(component) for component in components]
    greatest_loss = sum(part.renyi(math.inf) for part in parts)
    step = max(_MERGED_RATIO, greatest_loss / _STEPS_OF_LOSS)
    combined = discrete_distributions(np.ones(1), np.ones(1))
    for part in parts:
        combined = quadrature_distributions(
            np.outer(combined.left, part.left).ravel(),
            np.outer(combined.right, part.right).ravel(),
            merged_ratio=step,
        )
    return combined


def without_shifts(distributions: CellDistributions, slices: int = _SLICES) -> CellDistributions:
    """The same distributions with Laplace noise as cells.

    There is one cell on either side of both centres, where the ratio is constant, and slices
    between the centres.
    """
    cuts = distributions.shifts[:, None] * np.linspace(0.0, 1.0, slices + 1)
    left_between = -np.diff(np.exp(-cuts)) / 2
    right_between = np.diff(np.exp(cuts - distributions.shifts[:, None])) / 2
    far_side = np.exp(-distributions.shifts)[:, None] / 2
    near_side = np.full_like(far_side, 0.5)
    left_cells = np.hstack([near_side, left_between, far_side])
    right_cells = np.hstack([far_side, right_between, near_side])
    return quadrature_distributions(
        (distributions.left[:, None] * left_cells).ravel(),
        (distributions.right[:, None] * right_cells).ravel(),
    )


@dataclass(frozen=True)
class GaussianDistributions(PairDistributions):
    """Gaussian noise about two centres that lie `shift` standard deviations apart."""

    shift: float

    def delta(self, epsilon: float) -> float:
        """See `PairDistributions`.

        Reference: Balle and Wang, "Improving the Gaussian mechanism", Theorem 8.
        """
        return gaussian_delta(self.shift, epsilon)

    def renyi(self, order: float) -> float:
        """See `PairDistributions`."""
        return (
            order * self.shift**2 / 2
        )  # the pure loss is infinite: the ratio of the densities is unbounded

    def mu(self) -> float:
        """See `PairDistributions`."""
        return self.shift

    def rho(self) -> float:
        """See `PairDistributions`."""
        return self.shift**2 / 2


@dataclass(frozen=True)
class ProductDistributions(PairDistributions):
    """A vector of `copies` independent outputs with the same two distributions.

    Delta has no known closed form.
    """

    factor: PairDistributions
    copies: int

    def renyi(self, order: float) -> float | None:
        """See `PairDistributions`: divergences of independent parts add up."""
        one = self.factor.renyi(order)
        return None if one is None else self.copies * one


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Returns delta(epsilon) of two unit Gaussians whose means lie `shift` apart."""
    if shift == 0 or math.isinf(epsilon):
        return 0.0
    p = _normal_tail(epsilon / shift - shift / 2)
    q = _normal_tail(epsilon / shift + shift / 2)
    # The product e^epsilon·q is at most 1; in logarithms it cannot overflow.
    allowed = math.exp(epsilon + math.log(q)) if q > 0 else 0.0
    return max(0.0, p - allowed)


def _normal_tail(x: float) -> float:
    """Returns P(Z > x) of a standard normal number Z."""
    return math.erfc(x / math.sqrt(2)) / 2


def mu_through(epsilon: float, delta: float) -> float:
    """Returns the mu with delta_mu(epsilon) = delta."""
    if delta <= 0:
        return 0.0

    def is_too_small(mu: float) -> bool:
        return gaussian_delta(mu, epsilon) < delta

    high = 1.0
    while is_too_small(high) and high < _MAX_MU:
        high *= 2
    return rejected_end(is_too_small, 0.0, high, HALVINGS)


def _known(value: float | None) -> float:
    if value is None:
        raise AssertionError("distributions that know one value of a curve know all of them")
    return value


def _hockey_stick(p: Floats, q: Floats, shifts: Floats, epsilon: float) -> float:
    """Returns the greatest P(E) - e^epsilon Q(E).

    In a cell it is p times that of shifted Laplace noise at epsilon - log(p/q).
    """
    inside = p > 0
    p = p[inside]
    q = q[inside]
    shifts = shifts[inside]
    if math.isinf(epsilon):
        return float(p[q == 0].sum())
    with np.errstate(divide="ignore"):
        level = epsilon + np.log(q) - np.log(p)
    if_between = -np.expm1((np.minimum(level, shifts) - shifts) / 2)
    if_below = -np.expm1(np.minimum(level, 0.0))
    return float((p * np.where(level > -shifts, if_between, if_below)).sum())


def _renyi(p: Floats, q: Floats, shifts: Floats, order: float) -> float:
    """Returns the Rényi divergence of P from Q."""
    inside = p > 0
    p = p[inside]
    q = q[inside]
    shifts = shifts[inside]
    if bool((q == 0).any()):
        return math.inf
    log_ratio = np.log(p) - np.log(q)
    if math.isinf(order):
        return float((log_ratio + shifts).max())
    if order == 1:
        return float((p * (log_ratio + shifts + np.expm1(-shifts))).sum())
    # The logarithm of E_P[(P/Q)^(order - 1)] of shifted Laplace noise: two exponential terms.
    growing = math.log(order / (2 * order - 1)) + (order - 1) * shifts
    falling = math.log((order - 1) / (2 * order - 1)) - order * shifts
    of_noise = np.logaddexp(growing, falling)
    log_moment = float(np.logaddexp.reduce(np.log(p) + (order - 1) * log_ratio + of_noise))
    # Rounding may give slightly less than 0 for distributions that are almost equal.
    return max(0.0, log_moment / (order - 1))


@dataclass(frozen=True)
class SubsampledGaussianDistributions(PairDistributions):
    """(1 − rate)·N(0, sigma²) + rate·N(1, sigma²) on the left, N(0, sigma²) on the right.

    Reference: Mironov, Talwar, Zhang, "Rényi differential privacy of the sampled Gaussian
    mechanism".
    """

    sigma: float
    rate: float

    def delta(self, epsilon: float) -> float:
        """See `PairDistributions`: the ratio is monotone, so the best events are half-lines."""
        if math.isinf(epsilon):
            return 0.0
        return max(self._above(epsilon), self._below(epsilon), 0.0)

    def renyi(self, order: float) -> float:
        """See `PairDistributions`; by quadrature, exact to rounding."""
        if math.isinf(order):
            return math.inf
        panels = Panels.between(
            (0.0, max(1.0, order)), scale=self.sigma, reach=_REACH_IN_SIGMAS * self.sigma
        )
        x = panels.nodes.ravel()
        weights = panels.weights.ravel()
        log_right = -0.5 * (x / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
        log_ratio = self._log_ratio(x)
        if order == 1.0:
            right = np.exp(log_right) * weights
            forwards = (right * np.exp(log_ratio)) @ log_ratio
            backwards = right @ -log_ratio
            return float(max(forwards, backwards))

        def log_moment(power: float) -> float:
            """Returns log E_Q[(P/Q)^power]."""
            return float(np.logaddexp.reduce(log_right + np.log(weights) + power * log_ratio))

        return max(log_moment(order), log_moment(1.0 - order), 0.0) / (order - 1.0)

    def mu(self) -> float:
        """See `PairDistributions`: as without subsampling, as the tail is the included person's."""
        return 1.0 / self.sigma

    def rho(self) -> float:
        """See `PairDistributions`: as without subsampling, the limit for large orders."""
        return 0.5 / self.sigma**2

    def _log_ratio(self, x: Floats) -> Floats:
        """Returns log P/Q at x."""
        if_included = math.log(self.rate) + (x - 0.5) / self.sigma**2
        if self.rate == 1.0:
            return if_included
        return np.logaddexp(math.log1p(-self.rate), if_included)

    def _above(self, epsilon: float) -> float:
        """Returns P(x > t) − e^ε·Q(x > t) where the ratio passes e^ε at t."""
        excess = math.expm1(epsilon) + self.rate
        t = 0.5 + self.sigma**2 * math.log(excess / self.rate)
        if_included = self.rate * _normal_tail((t - 1.0) / self.sigma)
        return if_included - excess * _normal_tail(t / self.sigma)

    def _below(self, epsilon: float) -> float:
        """Returns Q(x < t) − e^ε·P(x < t) where the inverse ratio passes e^ε at t."""
        excess = math.expm1(-epsilon) + self.rate
        if excess <= 0.0:
            return 0.0
        t = 0.5 + self.sigma**2 * math.log(excess / self.rate)
        q = _normal_tail(-t / self.sigma)
        p = (1 - self.rate) * q + self.rate * _normal_tail((1.0 - t) / self.sigma)
        return q - math.exp(epsilon) * p
