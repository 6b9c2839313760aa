"""Method `poisson-histogram`: the cells with x_j > e^ε·y_j, as an event on fresh draws.

Example:
    >>> em.audit(em.zoo.dp_mean(), samples=2000, seed=0, method="poisson-histogram").verdict
    <Verdict.REFUTED: 'refuted'>
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds import Counts
from epsilometer.bounds.ratio import value_of_excess
from epsilometer.claims import Claim
from epsilometer.claims.base import as_number, check_choice, check_positive, check_whole
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.methods.events.cells import blocks_of_both, learn_line
from epsilometer.methods.events.learning import Learned, learn_partitions
from epsilometer.methods.log_ratios import make_way
from epsilometer.methods.published import own_options
from epsilometer.methods.published.auditorium import hockey_stick
from epsilometer.outputs import BlockPartition, Group, Line, Numbers, Outputs, Partition
from epsilometer.result import Finding


@dataclass(frozen=True, slots=True)
class HistogramEstimate:
    """What Algorithm 3 returns, and what it needed.

    Attributes:
        value: Σ max(0, (x_j − e^ε·y_j)/r) − η; an estimate, not a bound.
        wanted: r, the Poisson number of draws per side that it asked for.
        used: how many it got.
        mean: λ, the mean of r.
    """

    value: float
    wanted: int
    used: int
    mean: float

    @property
    def is_complete(self) -> bool:
        """Whether there were as many draws as it asked for."""
        return self.used >= self.wanted > 0


def poisson_mean(n_cells: int, epsilon: float, tolerance: float, margin: float) -> float:
    """λ = max{4m(1 + e^2ε)/β², 12(1 + e^2ε)/η²}, with m cells, tolerance β and margin η."""
    check_whole("n_cells", n_cells)
    check_positive("tolerance", tolerance)
    check_positive("margin", margin)
    grow = 1.0 + math.exp(min(2.0 * epsilon, 700.0))
    return max(4.0 * n_cells * grow / tolerance**2, 12.0 * grow / margin**2)


def estimate(
    left: ArrayLike,
    right: ArrayLike,
    epsilon: float,
    tolerance: float = 1.0 / 3.0,
    margin: float = 0.05,
    *,
    rng: np.random.Generator,
) -> HistogramEstimate:
    """Algorithm 3 on the histograms of two samples.

    Independent draws are exchangeable, so a random part of each histogram is the histogram of fewer
    draws. Where there are fewer draws than r, all are used, and the estimate says so.

    Args:
        left: shape (cells,), counts of the draws of P.
        right: the same for Q.
        epsilon: of the divergence.
        tolerance: β; the bias of the estimate is at most β/4, upwards.
        margin: η, what is subtracted for chance.
        rng: how many of the draws are used, and which; it must not depend on them.

    Guarantee: none as a lower bound, because the bias is not subtracted.
    """
    x, y = (np.asarray(side, dtype=np.int64) for side in (left, right))
    mean = poisson_mean(len(x), epsilon, tolerance, margin)
    # A Poisson number beyond what NumPy can draw is beyond any sample, too.
    wanted = int(rng.poisson(min(mean, 1e18)))
    used = min(wanted, int(x.sum()), int(y.sum()))
    if used < 1:
        return HistogramEstimate(-margin, wanted, 0, mean)
    parts = [rng.multivariate_hypergeometric(side, used, method="marginals") for side in (x, y)]
    excess = (parts[0] - math.exp(min(epsilon, 700.0)) * parts[1]) / used
    return HistogramEstimate(float(np.maximum(excess, 0.0).sum()) - margin, wanted, used, mean)


NAME = "poisson-histogram"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `poisson-histogram`.

    Attributes:
        cells: m, into how many cells of equal mass numbers are cut (repeated values are cells of
            their own).
        epsilon: of the divergence; by default the claimed ε, or chosen on training draws when
            nothing is claimed.
        certificate: "exact" counts the event of the chosen cells in the exact test; "published" is
            Algorithm 3, an estimate for reproduction, which refutes nothing.
        tolerance: β of Algorithm 3.
        margin: η of Algorithm 3.
        bounds: (low, high) between which numbers are cut into cells of equal width instead, for an
            output space that is known beforehand; the first and the last cell take what lies
            outside.
    """

    cells: int = 100
    epsilon: float | None = None
    certificate: str = "exact"
    tolerance: float = 1.0 / 3.0
    margin: float = 0.05
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            low, high = (as_number("bounds", end) for end in self.bounds)
            if not -math.inf < low < high < math.inf:
                raise InputError(f"bounds={self.bounds!r} must be two finite numbers, (low, high)")
        check_whole("cells", self.cells, 2)
        check_choice("certificate", self.certificate, hockey_stick.CERTIFICATES)
        hockey_stick.check_epsilon(self.epsilon)
        poisson_mean(self.cells, 0.0, self.tolerance, self.margin)  # raises if they make no sense


@dataclass(frozen=True, slots=True)
class CellsProposal(EventProposal):
    """The event of the chosen cells, to be counted on fresh draws.

    Attributes:
        epsilon: of the divergence.
        n_cells: of the histogram.
    """

    epsilon: float
    n_cells: int

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        finding = EventProposal.certify(self, left, right, pair, failure_probability)
        details = {**finding.details, "epsilon": self.epsilon, "cells": self.n_cells}
        return replace(finding, method=NAME, details=details)


@dataclass(frozen=True, slots=True)
class EstimateProposal(Proposal):
    """A histogram of fresh draws for Algorithm 3.

    Attributes:
        partition: the cells.
        flipped: False for left ‖ right.
        epsilon: of the divergence.
        task: what is asked.
        options: β and η.
        predicted: the estimate to expect.
    """

    partition: Partition
    flipped: bool
    epsilon: float
    task: Task
    options: Options
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How often each cell happened, shape (cells,)."""
        return self.partition.count(outputs)

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """The published estimate; it has no guarantee and decides nothing."""
        above, below = (right, left) if self.flipped else (left, right)
        given = self.options
        rng = self.task.proving_rng()
        found = estimate(above, below, self.epsilon, given.tolerance, given.margin, rng=rng)
        bound = value_of_excess(
            hockey_stick.check_claim(NAME, self.task.claim), self.epsilon, found.value
        )
        details: dict[str, object] = {
            "epsilon": self.epsilon,
            "cells": self.partition.n_cells,
            "estimate": found.value,
        }
        details |= {
            "poisson_mean": found.mean,
            "draws_wanted": found.wanted,
            "draws_used": found.used,
        }
        details["direction"] = "right ‖ left" if self.flipped else "left ‖ right"
        guarantee = "none: Algorithm 3 does not subtract the bias of its estimate"
        if found.is_complete:
            guarantee += f", up to {self.options.tolerance / 4:.2g}"
        else:
            guarantee += (
                f", and asked for {found.wanted:,} draws per side where there were {found.used:,}"
            )
        return Finding(
            NAME, bound, guarantee, 1.0 - failure_probability, None, self.task.claim, details
        )


class PoissonHistogramMethod(Method):
    """Cuts the outputs into cells and takes those that one side makes more than e^ε times as likely."""

    name = NAME
    summary = "the cells of a histogram with x > e^ε·y, proved on fresh draws; PureDP and ApproxDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        self.options = own_options(NAME, "poisson_histogram", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Pure and approximate privacy only; called before anything is drawn."""
        hockey_stick.check_claim(NAME, claim)

    def propose(
        self, left: Outputs, right: Outputs, task: Task
    ) -> CellsProposal | EstimateProposal:
        """The direction (and ε) with the best predicted bound."""
        mixtures = hockey_stick.mixtures_of(
            hockey_stick.check_claim(NAME, task.claim), self.options.epsilon
        )
        learned = self._cut(left, right)
        candidate, epsilon = hockey_stick.choose_excess(
            [make_way(learned, (_log_ratio_of_counts,))], task, mixtures
        )
        if self.options.certificate == "exact":
            return CellsProposal(candidate, task, epsilon, learned.partition.n_cells)
        return EstimateProposal(
            learned.partition, candidate.flipped, epsilon, task, self.options, candidate.predicted
        )

    def _cut(self, left: Outputs, right: Outputs) -> Learned:
        """Single numbers into `cells` cells; other outputs as the method `events` cuts them, vectors by a score."""
        blocks = []
        for a, b in blocks_of_both(left, right):
            numbers = [c.values for side in (a, b) for c in side.columns if isinstance(c, Numbers)]
            if len(a.columns) != 1 or len(numbers) != 2:
                return learn_partitions(left, right)[-1]
            if self.options.bounds is None:
                line = learn_line(numbers[0], numbers[1], most_bins=self.options.cells)
            else:
                line = Line(np.linspace(*self.options.bounds, self.options.cells + 1)[1:-1])
            blocks.append(BlockPartition(a.shape, (None,), (Group((-1,), line),)))
        return Learned(Partition(tuple(blocks)), left, right)


def _log_ratio_of_counts(left: Integers, right: Integers) -> Floats:
    """ln of the ratio of relative frequencies, so that it is above ε where x_j > e^ε·y_j; 0 where nothing was seen."""
    shares = [np.log(np.maximum(side, 1e-9) / max(int(side.sum()), 1)) for side in (left, right)]
    return np.where(left + right > 0, shares[0] - shares[1], 0.0)
