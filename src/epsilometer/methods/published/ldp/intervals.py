"""Two-sided intervals that hold for every number of draws, under the Lipschitz assumption alone.

The domain is cut into m cells. Exact binomial limits hold the probability of each cell, on both
sides at once. A C-Lipschitz density differs from its mean over a cell by at most C times the mean
distance to that cell, so limits of cells are limits of the density everywhere: an *envelope*. The
whole domain is one more cell, whose probability is known to be 1.

- ε* = sup ln(p/q) is at most the largest log-ratio of the envelopes, and at least that of the
  limits of a single cell, which needs no assumption.
- A Rényi divergence is ln(1 + ∫ g(p, q))/(α − 1) with g(p, q) = p^α·q^(1−α) − α·p + (α − 1)·q,
  because p and q integrate to 1. g is 0 where p = q and grows with their distance, so that its
  least and greatest values over limits of p and of q are at corners, and noise counts squared.

The number of cells is fixed by n, C, the domain and the confidence before anything is drawn, so
nothing is chosen by looking.

Reference: the open question of Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the
    (im)possibility of estimating various notions of differential privacy", whose plan needs some
    400 times the draws that suffice.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds.binomial import Counts, lower, upper
from epsilometer.methods.published.ldp.formulas import (
    CellCounts,
    LipschitzDensities,
    divergence_of_gaps,
    log_gaps,
)

GUARANTEE = "conditional: C-Lipschitz densities"
CONTRADICTED = (
    "none: the draws contradict C-Lipschitz densities on this domain; the lower end needs no such "
    "assumption"
)

# An end of the domain is a point mass from so many outputs on: numbers of half the precision hardly
# have as many there in 10⁷ draws.
_FEWEST_OF_ATOM = 5
# The probability with which rounding is taken for a point mass; it widens the interval only.
_ATOM_FAILURE = 1e-6
# Places per cell at which an envelope is evaluated; between them it is widened by C times half of
# their distance, a 32nd of what a cell costs.
_PLACES_PER_CELL = 32
# The numbers of cells that are compared grow by this factor: the best one is flat.
_GROWTH = 1.15


class DensityLimits(NamedTuple):
    """Limits of probabilities or of densities, which hold together.

    Attributes:
        low: shape (k,), at least 0.
        high: shape (k,).
    """

    low: Floats
    high: Floats

    @property
    def is_empty(self) -> bool:
        """Whether nothing can lie within all limits."""
        return bool((self.low > self.high).any())


class DivergenceInterval(NamedTuple):
    """Both ends of an interval for a divergence.

    Attributes:
        low: at least 0.
        high: inf where the draws cannot tell a density from 0.
        is_contradicted: whether no C-Lipschitz density agrees with the limits of all cells, or
            draws are an end of the domain itself; then there is no upper end.
    """

    low: float
    high: float
    is_contradicted: bool = False


def cell_limits(side: CellCounts, failure_probability: float) -> DensityLimits:
    """Returns exact limits of the probability of each cell, shape (m,).

    Args:
        side: counts of one input.
        failure_probability: with which any of the 2m limits may be wrong.

    Guarantee: exact, for independent draws: all limits hold together.
    """
    failure_per_limit = failure_probability / (2 * len(side.counts))
    counts = [Counts(int(hits), side.total) for hits in side.counts]
    return DensityLimits(
        low=np.array([lower(count, failure_per_limit) for count in counts]),
        high=np.array([upper(count, failure_per_limit) for count in counts]),
    )


@dataclass(frozen=True, slots=True)
class DomainPlaces:
    """Small parts of the domain, in each of which an envelope is constant.

    Attributes:
        assumption: the domain and C.
        cells: m.
    """

    assumption: LipschitzDensities
    cells: int

    @property
    def width(self) -> float:
        """The length of one part."""
        return self.assumption.length / (self.cells * _PLACES_PER_CELL)

    def envelope(self, limits: DensityLimits) -> DensityLimits:
        """Returns limits of a density in each part, shape (parts,), from those of cells.

        Args:
            limits: of the probabilities of the cells, shape (m,).
        """
        start, end = self.assumption.domain
        slope = self.assumption.lipschitz
        edges = np.linspace(start, end, self.cells + 1)
        numbers = np.arange(self.cells * _PLACES_PER_CELL, dtype=np.float64)
        middles: Floats = start + (numbers + 0.5) * self.width
        to_cells = slope * mean_distance(middles[:, None], edges[:-1], edges[1:])
        to_all = slope * mean_distance(middles, start, end)
        cell_width = self.assumption.length / self.cells
        # The density over the whole domain has mean 1/(b − a), without any draw.
        mean = 1.0 / self.assumption.length
        high = np.minimum((limits.high / cell_width + to_cells).min(axis=1), mean + to_all)
        low = np.maximum((limits.low / cell_width - to_cells).max(axis=1), mean - to_all)
        within_part = slope * self.width / 2.0
        return DensityLimits(low=np.maximum(low - within_part, 0.0), high=high + within_part)


def mean_distance(places: Floats, low: Floats | float, high: Floats | float) -> Floats:
    """Returns the mean of |place − u| over u in [low, high]; shapes are broadcast."""
    inside = ((places - low) ** 2 + (high - places) ** 2) / (2.0 * (np.asarray(high) - low))
    outside = np.abs(places - (np.asarray(low) + high) / 2.0)
    return np.where((places > low) & (places < high), inside, outside)


def cells_for(assumption: LipschitzDensities, n: int, confidence: float) -> int:
    """Returns the number of cells that promises the shortest interval, before anything is drawn.

    It is the best for two uniform densities, whose counts are about n/m. Where no number promises
    an upper end, the lower end decides.

    Args:
        assumption: the domain and C.
        n: draws per input.
        confidence: of the interval.
    """
    numbers = _numbers_of_cells(n)
    lengths = [_promised_length(assumption, n, confidence, cells) for cells in numbers]
    if math.isinf(min(lengths)):
        lengths = [_promised_loss(assumption, n, confidence, cells) for cells in numbers]
    return numbers[lengths.index(min(lengths))]


def _numbers_of_cells(n: int) -> list[int]:
    """Returns the numbers of cells that are compared, from 1 to n."""
    numbers = [1]
    while (following := max(numbers[-1] + 1, round(_GROWTH * numbers[-1]))) <= n:
        numbers.append(following)
    return numbers


def _limits_of_even_cells(n: int, confidence: float, cells: int) -> tuple[float, float]:
    """Returns the limits of the probability of a cell that has n/m of the draws."""
    failure_per_limit = (1.0 - confidence) / (4 * cells)
    count = Counts(n // cells, n)
    return lower(count, failure_per_limit), upper(count, failure_per_limit)


def _promised_length(
    assumption: LipschitzDensities, n: int, confidence: float, cells: int
) -> float:
    """Returns the length of the interval of ε* if each cell of both inputs has n/m draws."""
    width = assumption.length / cells
    low, high = _limits_of_even_cells(n, confidence, cells)
    slack = assumption.lipschitz * width / 2.0
    density_low = max(low / width - slack, assumption.least_density)
    density_high = min(high / width + slack, assumption.greatest_density)
    if density_low <= 0.0 or low <= 0.0:
        return math.inf
    return math.log(density_high / density_low) + math.log(high / low)


def _promised_loss(assumption: LipschitzDensities, n: int, confidence: float, cells: int) -> float:
    """Returns how far below ε* the lower end may lie if each cell of both inputs has n/m draws.

    Few cells blur what a density can rise by within one of them; many hold few draws.
    """
    low, high = _limits_of_even_cells(n, confidence, cells)
    if low <= 0.0:
        return math.inf
    width = assumption.length / cells
    # A density of 1/(b − a) in the mean of a cell may rise to this multiple of it.
    rise = 1.0 + assumption.lipschitz * width / 2.0 * assumption.length
    return math.log(rise) + math.log(high / low)


def exact_interval(
    above: CellCounts,
    below: CellCounts,
    assumption: LipschitzDensities,
    confidence: float,
    order: float | None = None,
) -> DivergenceInterval:
    """Returns an interval for the divergence of `above` from `below`.

    Args:
        above: counts under P, of m cells of equal width; m was fixed before they were drawn.
        below: counts under Q.
        assumption: the domain and C.
        confidence: the probability with which the interval holds the divergence.
        order: of the Rényi divergence; None for ε* = sup ln(p/q).

    Guarantee: conditional: for independent draws from C-Lipschitz densities on the domain, at every
        number of draws, the interval holds the divergence with probability at least `confidence`.
        Its lower end needs no assumption on the densities. Draws that contradict the assumption
        have no upper end.
    """
    # Either side may fail with half of the failure probability.
    failure_probability = (1.0 - confidence) / 2.0
    p = cell_limits(above, failure_probability)
    q = cell_limits(below, failure_probability)
    places = DomainPlaces(assumption, len(above.counts))
    p_density = places.envelope(p)
    q_density = places.envelope(q)
    if order is None:
        low = max(_log_ratio(p.low, q.high), 0.0)
        # A supremum over one domain of two densities is never below 0.
        high = max(_log_ratio(p_density.high, q_density.low), 0.0)
    else:
        low = float(divergence_of_gaps(_least_log_gaps(p, q, order), order))
        # Beyond the range of floats nothing is certified.
        low = low if math.isfinite(low) else 0.0
        greatest = _greatest_log_gaps(p_density, q_density, order)
        high = float(divergence_of_gaps(greatest, order, weight=places.width))
    has_atom = any(_has_atom_at_an_end(side, assumption) for side in (above, below))
    if has_atom or low > high or p_density.is_empty or q_density.is_empty:
        # The interval only grows, so that being wrong about it costs no confidence.
        return DivergenceInterval(low, math.inf, is_contradicted=True)
    return DivergenceInterval(low, high)


def _has_atom_at_an_end(side: CellCounts, assumption: LipschitzDensities) -> bool:
    """Whether more outputs are an end of the domain itself than the rounding of floats explains.

    No density has a draw there; noise that is clamped to the domain has. One cell sees none of it.
    """
    spacing = float(np.spacing(max(map(abs, assumption.domain))))
    explained = min(assumption.greatest_density * spacing, 1.0)
    return any(
        hits >= _FEWEST_OF_ATOM and lower(Counts(hits, side.total), _ATOM_FAILURE) > explained
        for hits in (side.at_low, side.at_high)
    )


def _log_ratio(above: Floats, below: Floats) -> float:
    """Returns the largest ln(above/below); −inf if `above` is 0 everywhere."""
    with np.errstate(divide="ignore"):
        return float((np.log(above) - np.log(below)).max())


def _least_log_gaps(p: DensityLimits, q: DensityLimits, order: float) -> Floats:
    """Returns the least `log_gaps` over limits of p and q, shape (k,).

    It is −inf where p and q may be equal.
    """
    p_is_larger = p.low > q.high
    q_is_larger = q.low > p.high
    nearest = np.where(p_is_larger, log_gaps(p.low, q.high, order), -np.inf)
    return np.where(q_is_larger, log_gaps(p.high, q.low, order), nearest)


def _greatest_log_gaps(p: DensityLimits, q: DensityLimits, order: float) -> Floats:
    """Returns the greatest `log_gaps` over limits of p and q, shape (k,)."""
    return np.maximum(log_gaps(p.high, q.low, order), log_gaps(p.low, q.high, order))
