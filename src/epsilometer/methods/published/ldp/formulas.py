"""How many cells, mid-points and samples the histogram estimators need, and the estimates that counts give."""

import math
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Integers
from epsilometer.claims.base import as_number, check_at_least
from epsilometer.errors import InputError
from epsilometer.outputs import Numbers, Outputs


@dataclass(frozen=True, slots=True)
class Smoothness:
    """The assumption: output densities live on [a, b] and are C-Lipschitz, with C < 2/(b − a)².

    Attributes:
        domain: (a, b).
        lipschitz: C.
    """

    domain: tuple[float, float]
    lipschitz: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", check_interval("domain", self.domain))
        object.__setattr__(self, "lipschitz", check_at_least("lipschitz", self.lipschitz, 0.0))
        limit = 2.0 / self.length**2
        if not self.lipschitz < limit:
            raise InputError(
                f"lipschitz={self.lipschitz:g} must be below 2/(b − a)² = {limit:g} for domain={self.domain}: only "
                "then is every density known to stay above 0; the method events needs no such assumption"
            )

    @property
    def length(self) -> float:
        """The length b − a."""
        return self.domain[1] - self.domain[0]

    @property
    def least_density(self) -> float:
        """τ (τ₀ for Rényi): no density is below it. Equation (4)."""
        return 1.0 / self.length - self.lipschitz * self.length / 2.0

    @property
    def greatest_density(self) -> float:
        """τ₁: no density is above it."""
        return 1.0 / self.length + self.lipschitz * self.length / 2.0

    def describe(self) -> str:
        """The assumption in words."""
        low, high = self.domain
        return f"densities are {self.lipschitz:.6g}-Lipschitz on [{low:g}, {high:g}]"


def amplification(smoothness: Smoothness, order: float | None) -> float:
    """How much an error of the log densities may grow on its way to the estimate: 6, or (2α − 1)·K/((α − 1)·K′)."""
    if order is None:
        return 6.0
    spread = smoothness.greatest_density / smoothness.least_density
    try:
        # K/K′ as one power: the powers in K and K′ themselves may underflow.
        return 2.0 * math.pow(spread, 2.0 * order - 1.0) * (2.0 * order - 1.0) / (order - 1.0)
    except OverflowError:
        raise InputError(
            f"order={order:g} asks for more than 1e300 cells here; take a smaller order"
        ) from None


def resolution(smoothness: Smoothness, precision: float, order: float | None) -> tuple[int, float]:
    """The number of cells m, and the greatest deviation |ln(N_j/E N_j)| of a cell's count that the precision allows.

    Reference: equations (4) and (5); for Rényi the two inequalities below (7).
    """
    growth = amplification(smoothness, order)
    cells = (
        growth * smoothness.lipschitz * smoothness.length / (smoothness.least_density * precision)
    )
    most = math.inf if order is None else math.log(2.0) / (2.0 * order - 1.0)
    return max(1, math.ceil(cells)), min(precision / (2.0 * growth), most)


def midpoints_for(
    smoothness: Smoothness, precision: float, order: float | None, slope: float, length: float
) -> int:
    """k of Algorithm 2, for inputs of an interval of that length; at least 2, because one mid-point has no pair."""
    growth = 3.0 if order is None else 1.5 * amplification(smoothness, order)
    return max(2, math.ceil(growth * slope * length / (smoothness.least_density * precision)))


def log_deviation_chance(n: float, share: float, deviation: float) -> float:
    """ln f(n, y, z) of equation (6), finite for n far beyond 1e12.

    Args:
        n: samples.
        share: y, the least probability of a cell.
        deviation: z, the allowed deviation of ln(count).
    """
    above = -n * share * math.expm1(deviation) ** 2 / (1.0 + math.exp(deviation))
    below = -n * share * math.expm1(-deviation) ** 2 / 2.0
    return float(np.logaddexp(above, below)) - math.log(-math.expm1(_log_empty_chance(n, share)))


def least_samples(
    deviation: float, share: float, confidence: float, n_empty: float, n_deviations: float
) -> int:
    """The smallest n with n_empty·(1 − y)^n + n_deviations·f(n, y, z) ≤ 1 − confidence.

    Args:
        deviation: z, the allowed deviation of ln(count).
        share: y = wτ, the least probability of a cell.
        n_empty: how many cells must not be empty, over all samples.
        n_deviations: how many counts must not deviate; the published equation (5) has 4 here.
    """
    log_failure = math.log1p(-confidence)

    def is_enough(n: int) -> bool:
        empty = math.log(n_empty) + _log_empty_chance(n, share)
        deviating = math.log(n_deviations) + log_deviation_chance(n, share, deviation)
        return float(np.logaddexp(empty, deviating)) <= log_failure

    high = 1
    while not is_enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:  # `bisect` is limited to 64-bit numbers
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def check_interval(name: str, value: object) -> tuple[float, float]:
    """Two finite numbers a < b, or an InputError."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"{name}={value!r:.100} must be a pair of numbers (a, b) with a < b")
    low = as_number(name, value[0])
    high = as_number(name, value[1])
    if not (low < high and math.isfinite(high - low)):
        raise InputError(f"{name}=({low:g}, {high:g}) makes no sense: it needs finite ends a < b")
    return low, high


def _log_empty_chance(n: float, share: float) -> float:
    """ln (1 − y)^n."""
    return n * math.log1p(-share) if share < 1.0 else -math.inf


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many outputs fell into each cell, and how many into none; counts of chunks are added with +.

    Attributes:
        counts: shape (m,).
        outside: outputs that are not numbers of the domain.
    """

    counts: Integers
    outside: int

    def __add__(self, other: "CellCounts") -> "CellCounts":
        return CellCounts(self.counts + other.counts, self.outside + other.outside)

    @property
    def total(self) -> int:
        """Outputs inside the domain."""
        return int(self.counts.sum())

    @property
    def n_empty(self) -> int:
        """Cells without an output."""
        return int(np.count_nonzero(self.counts == 0))


@dataclass(frozen=True, slots=True)
class Cells:
    """The domain [a, b] in m cells of equal width, each including its left end; the last one includes b, too."""

    domain: tuple[float, float]
    number: int

    def count(self, outputs: Outputs) -> CellCounts:
        """The counts of a batch of outputs."""
        counts, (low, high) = np.zeros(self.number, dtype=np.int64), self.domain
        for block in outputs:
            if len(block.columns) == 1 and isinstance(block.columns[0], Numbers):
                values = np.asarray(block.columns[0].values, dtype=np.float64)
                inside = (values >= low) & (values <= high)  # NaN is neither
                if not inside.all():
                    values = values[inside]
                places = ((values - low) * (self.number / (high - low))).astype(np.int64)
                counts += np.bincount(
                    np.minimum(places, self.number - 1, out=places), minlength=self.number
                )
        return CellCounts(counts, len(outputs) - int(counts.sum()))


def check_filled(cells: Cells, *sides: CellCounts) -> None:
    """An InputError with the remedy if a cell is empty: where the paper's algorithms give up."""
    empty = sum(side.n_empty for side in sides)
    if empty:
        n = f"{cells.number:,} cells on each of {len(sides)} inputs, about {sides[0].total:,} samples each"
        raise InputError(
            f"{empty:,} cells are empty ({n}): no ratio can be estimated there; take more samples (n=), or wider cells "
            "by a larger precision="
        )


def check_inside(cells: Cells, *sides: CellCounts) -> None:
    """An InputError that counts the outputs outside the domain, if there are any."""
    outside = sum(side.outside for side in sides)
    if outside:
        total = outside + sum(side.total for side in sides)
        low, high = cells.domain
        raise InputError(
            f"{outside:,} of {total:,} outputs are not numbers of domain=({low:g}, {high:g}), where all of them must "
            "lie; correct domain=, or use the method events, which takes any output"
        )


def divergence(above: CellCounts, below: CellCounts, order: float | None) -> float:
    """The estimate of ε* (order None: the largest log ratio) or of the Rényi divergence, of `above` from `below`.

    Reference: line 15 of Algorithm 1, and the returned value below (7), for samples of any sizes.
    """
    ratios = np.log(above.counts / above.total) - np.log(below.counts / below.total)
    if order is None:
        return float(ratios.max())
    logs = order * ratios + np.log(below.counts / below.total)
    return float(np.logaddexp.reduce(logs)) / (order - 1.0)
