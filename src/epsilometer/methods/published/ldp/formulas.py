"""The formulas of the histogram estimators: the assumption, the sizes it implies, the estimates.

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the (im)possibility of
    estimating various notions of differential privacy". Equation numbers below are those of this
    paper.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.claims.base import as_number, check_at_least
from epsilometer.errors import InputError
from epsilometer.outputs import Numbers, Outputs

# Larger exponents are kept as logarithms: e^709 overflows.
_LARGEST_EXPONENT = 600.0


@dataclass(frozen=True, slots=True)
class LipschitzDensities:
    """The assumption: output densities live on [a, b] and are C-Lipschitz there.

    Attributes:
        domain: (a, b).
        lipschitz: C.
    """

    domain: tuple[float, float]
    lipschitz: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", check_interval("domain", self.domain))
        object.__setattr__(self, "lipschitz", check_at_least("lipschitz", self.lipschitz, 0.0))

    @property
    def length(self) -> float:
        """The length b − a of the domain."""
        return self.domain[1] - self.domain[0]

    @property
    def least_density(self) -> float:
        """τ (τ₀ for Rényi): no density is below it; equation (4). Not above 0 for a large C."""
        return 1.0 / self.length - self.lipschitz * self.length / 2.0

    @property
    def greatest_density(self) -> float:
        """τ₁: no density is above it."""
        return 1.0 / self.length + self.lipschitz * self.length / 2.0

    def describe(self) -> str:
        """Returns the assumption in words."""
        low, high = self.domain
        return f"densities are {self.lipschitz:.6g}-Lipschitz on [{low:g}, {high:g}]"


@dataclass(frozen=True, slots=True)
class Smoothness(LipschitzDensities):
    """The assumption of the paper, with C < 2/(b − a)²: every density stays above 0."""

    def __post_init__(self) -> None:
        LipschitzDensities.__post_init__(self)
        limit = 2.0 / self.length**2
        if not self.lipschitz < limit:
            raise InputError(
                f"lipschitz={self.lipschitz:g} must be below 2/(b − a)² = {limit:g} for "
                f"domain={self.domain}: only then is every density known to stay above 0; "
                "em.ldp.estimate(interval='exact') takes any C, and the method events needs no "
                "such assumption"
            )


def check_interval(name: str, value: object) -> tuple[float, float]:
    """Returns the ends a < b of an interval; refuses anything but two finite numbers."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"{name}={value!r:.100} must be a pair of numbers (a, b) with a < b")
    low = as_number(name, value[0])
    high = as_number(name, value[1])
    if not (low < high and math.isfinite(high - low)):
        raise InputError(f"{name}=({low:g}, {high:g}) makes no sense: it needs finite ends a < b")
    return low, high


# --- how many cells, mid-points and samples ---------------------------------------------------


class Resolution(NamedTuple):
    """What a precision asks of a histogram.

    Attributes:
        cells: m, the number of cells.
        deviation: the greatest deviation |ln(N_j/E N_j)| of a cell's count that is allowed.
    """

    cells: int
    deviation: float


def amplification(smoothness: Smoothness, order: float | None) -> float:
    """Returns how much an error of the log densities may grow on its way to the estimate.

    It is 6 for pure privacy, and (2α − 1)·K/((α − 1)·K′) for order α.
    """
    if order is None:
        return 6.0
    density_ratio = smoothness.greatest_density / smoothness.least_density
    try:
        # K/K′ as one power: the powers in K and K′ themselves may underflow.
        power = math.pow(density_ratio, 2.0 * order - 1.0)
    except OverflowError:
        raise InputError(
            f"order={order:g} asks for more than 1e300 cells here; take a smaller order"
        ) from None
    return 2.0 * power * (2.0 * order - 1.0) / (order - 1.0)


def resolution(smoothness: Smoothness, precision: float, order: float | None) -> Resolution:
    """Returns the cells and the allowed deviation for a precision.

    Reference: equations (4) and (5); for Rényi the two inequalities below (7).
    """
    growth = amplification(smoothness, order)
    cells = (
        growth * smoothness.lipschitz * smoothness.length / (smoothness.least_density * precision)
    )
    deviation = precision / (2.0 * growth)
    if order is not None:
        deviation = min(deviation, math.log(2.0) / (2.0 * order - 1.0))
    return Resolution(cells=max(1, math.ceil(cells)), deviation=deviation)


def midpoints_for(
    smoothness: Smoothness, precision: float, order: float | None, slope: float, length: float
) -> int:
    """Returns k of Algorithm 2, the number of inputs; at least 2, because one has no pair.

    Args:
        smoothness: the assumption on the outputs.
        precision: γ.
        order: of the Rényi divergence; None for pure ε.
        slope: D, the Lipschitz constant in the input.
        length: of the interval of inputs.
    """
    growth = 3.0 if order is None else 1.5 * amplification(smoothness, order)
    return max(2, math.ceil(growth * slope * length / (smoothness.least_density * precision)))


def least_samples(
    deviation: float,
    cell_probability: float,
    confidence: float,
    n_empty: float,
    n_deviations: float,
) -> int:
    """Returns the smallest n with n_empty·(1 − y)^n + n_deviations·f(n, y, z) ≤ 1 − confidence.

    Args:
        deviation: z, the allowed deviation of ln(count).
        cell_probability: y = wτ, the least probability of a cell.
        confidence: the probability with which no cell is empty and no count deviates.
        n_empty: how many cells must not be empty, over all samples.
        n_deviations: how many counts must not deviate; the published equation (5) has 4 here.
    """
    log_failure = math.log1p(-confidence)

    def is_enough(n: int) -> bool:
        empty = math.log(n_empty) + _log_empty_probability(n, cell_probability)
        deviating = math.log(n_deviations) + log_deviation_chance(n, cell_probability, deviation)
        return float(np.logaddexp(empty, deviating)) <= log_failure

    enough = 1
    while not is_enough(enough):
        enough *= 2
    too_few = enough // 2
    # By hand, because `bisect` is limited to 64-bit numbers.
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def log_deviation_chance(n: float, cell_probability: float, deviation: float) -> float:
    """Returns ln f(n, y, z) of equation (6), finite for n far beyond 1e12.

    Args:
        n: samples.
        cell_probability: y, the least probability of a cell.
        deviation: z, the allowed deviation of ln(count).
    """
    above = -n * cell_probability * math.expm1(deviation) ** 2 / (1.0 + math.exp(deviation))
    below = -n * cell_probability * math.expm1(-deviation) ** 2 / 2.0
    log_either = float(np.logaddexp(above, below))
    # The deviation counts only if the cell is not empty.
    return log_either - math.log(-math.expm1(_log_empty_probability(n, cell_probability)))


def _log_empty_probability(n: float, cell_probability: float) -> float:
    """Returns ln (1 − y)^n, the log probability that a cell of probability y stays empty."""
    if cell_probability < 1.0:
        return n * math.log1p(-cell_probability)
    return -math.inf


# --- counting, and the estimates from counts --------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many outputs fell into each cell, and how many into none; counts of chunks add with +.

    Attributes:
        counts: shape (m,).
        outside: outputs that are not numbers of the domain.
        at_low: outputs that are the lower end of the domain itself.
        at_high: outputs that are its upper end.
    """

    counts: Integers
    outside: int
    at_low: int = 0
    at_high: int = 0

    def __add__(self, other: "CellCounts") -> "CellCounts":
        return CellCounts(
            counts=self.counts + other.counts,
            outside=self.outside + other.outside,
            at_low=self.at_low + other.at_low,
            at_high=self.at_high + other.at_high,
        )

    @property
    def total(self) -> int:
        """Number of outputs inside the domain."""
        return int(self.counts.sum())

    @property
    def n_empty(self) -> int:
        """Number of cells without an output."""
        return int(np.count_nonzero(self.counts == 0))


@dataclass(frozen=True, slots=True)
class Cells:
    """The domain [a, b] in cells of equal width, each with its left end; the last one with b, too.

    Attributes:
        domain: (a, b).
        number: m.
    """

    domain: tuple[float, float]
    number: int

    def count(self, outputs: Outputs) -> CellCounts:
        """Counts a batch of outputs."""
        counts = np.zeros(self.number, dtype=np.int64)
        at_low = at_high = 0
        low, high = self.domain
        for block in outputs:
            if len(block.columns) != 1 or not isinstance(block.columns[0], Numbers):
                continue
            values = np.asarray(block.columns[0].values, dtype=np.float64)
            # NaN is neither.
            inside = (values >= low) & (values <= high)
            if not inside.all():
                values = values[inside]
            cells = ((values - low) * (self.number / (high - low))).astype(np.int64)
            # b belongs to the last cell.
            np.minimum(cells, self.number - 1, out=cells)
            counts += np.bincount(cells, minlength=self.number)
            at_low += int(np.count_nonzero(values == low))
            at_high += int(np.count_nonzero(values == high))
        outside = len(outputs) - int(counts.sum())
        return CellCounts(counts, outside, at_low=at_low, at_high=at_high)


def check_filled(cells: Cells, *sides: CellCounts) -> None:
    """Refuses counts with an empty cell, where the paper's algorithms give up."""
    n_empty = sum(side.n_empty for side in sides)
    if n_empty:
        raise InputError(
            f"{n_empty:,} cells are empty ({cells.number:,} cells on each of {len(sides)} inputs, "
            f"about {sides[0].total:,} samples each): no ratio can be estimated there; take more "
            "samples (n=), or wider cells by a larger precision="
        )


def check_inside(cells: Cells, *sides: CellCounts) -> None:
    """Refuses counts with outputs outside the domain, and reports how many there are."""
    outside = sum(side.outside for side in sides)
    if outside:
        total = outside + sum(side.total for side in sides)
        low, high = cells.domain
        raise InputError(
            f"{outside:,} of {total:,} outputs are not numbers of domain=({low:g}, {high:g}), "
            "where all of them must lie; correct domain=, or use the method events, which takes "
            "any output"
        )


def divergence(above: CellCounts, below: CellCounts, order: float | None) -> float:
    """Returns the estimated divergence of `above` from `below`.

    Args:
        above: counts under P.
        below: counts under Q, of a sample of any size.
        order: of the Rényi divergence; None estimates ε*, the largest log-ratio.

    Reference: line 15 of Algorithm 1, and the returned value below (7).
    """
    return _divergence(above.counts / above.total, below.counts / below.total, order)


def divergence_where_counted(above: CellCounts, below: CellCounts, order: float | None) -> float:
    """Returns `divergence` over the cells that both samples hit; 0 if there is none.

    Args:
        above: counts under P.
        below: counts under Q.
        order: of the Rényi divergence; None estimates ε*.
    """
    is_hit = (above.counts > 0) & (below.counts > 0)
    if not is_hit.any():
        return 0.0
    p = above.counts[is_hit] / above.total
    q = below.counts[is_hit] / below.total
    return _divergence(p, q, order)


def _divergence(p: Floats, q: Floats, order: float | None) -> float:
    """Returns the divergence of relative frequencies, all above 0, shape (k,)."""
    if order is None:
        return float((np.log(p) - np.log(q)).max())
    return float(divergence_of_gaps(log_gaps(p, q, order), order))


def log_gaps(p: Floats, q: Floats, order: float) -> Floats:
    """Returns ln(g(p, q)/(α − 1)) for g(p, q) = p^α·q^(1−α) − α·p + (α − 1)·q; shapes broadcast.

    g is at least 0, and 0 where p = q. Where p and q both sum to 1, the sum of g is that of
    p^α·q^(1−α), less 1. With s = α − 1 and r = ln(p/q), g/s = p·(e^(s·r) − 1)/s − p + q: next to
    order 1 no rounding error is divided by s. Where e^(s·r) would overflow, it alone counts.

    Returns:
        −inf where g is 0; inf where only q is 0.
    """
    excess = order - 1.0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_p = np.log(p)
        log_q = np.log(q)
        exponent = excess * (log_p - log_q)
        gap = p * np.expm1(exponent) / excess - p + q
        logs = np.where(
            exponent > _LARGEST_EXPONENT,
            log_p + exponent - math.log(excess),
            np.log(np.maximum(gap, 0.0)),
        )
    # Where p is 0, all that is left of g is (α − 1)·q.
    return np.where(np.asarray(p) > 0.0, logs, log_q)


def divergence_of_gaps(logs: Floats, order: float, weight: float = 1.0) -> Floats:
    """Returns ln(1 + weight·Σ g)/(α − 1), summed over the last axis of what `log_gaps` returns."""
    excess = order - 1.0
    log_sum = np.logaddexp.reduce(logs, axis=-1) + math.log(weight * excess)
    return np.asarray(np.logaddexp(0.0, log_sum) / excess, dtype=np.float64)
