"""Method `poisson-histogram`: the cells with x_j > e^ε·y_j, as an event on fresh draws, or the published estimate.

Reference: DP-Auditorium, Algorithms 3 and 4. The published number of draws is out of reach for most audits (6·10⁵ per
side for 100 cells, ε = .5 and β = .05), and its estimate is no bound, so the default proves the event of those cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds import Counts
from epsilometer.bounds.excess import value_of_excess
from epsilometer.claims import Claim
from epsilometer.claims.base import check_whole
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.events import EventProposal
from epsilometer.methods.events.cells import blocks_of_both, learn_line
from epsilometer.methods.events.learning import Learned, learn_partitions
from epsilometer.methods.hockey_stick.choosing import (
    ExcessEvent,
    check_claim,
    check_epsilon,
    choose_excess,
    mixtures_of,
)
from epsilometer.methods.hockey_stick.method import CERTIFICATES, check_choice
from epsilometer.methods.poisson_histogram.estimate import HistogramEstimate, estimate, poisson_mean
from epsilometer.methods.renyi_bet.fitting import make_way
from epsilometer.outputs import BlockPartition, Group, Numbers, Outputs, Partition
from epsilometer.result import Finding

NAME = "poisson-histogram"
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `poisson-histogram`.

    Attributes:
        cells: m, into how many cells of equal mass numbers are cut (repeated values are cells of their own).
        epsilon: of the divergence; by default the claimed ε, or chosen on training draws when nothing is claimed.
        certificate: "exact" counts the event of the chosen cells in the exact test; "published" is Algorithm 3, an
            estimate for reproduction, which refutes nothing.
        tolerance: β of Algorithm 3.
        margin: η of Algorithm 3.
    """

    cells: int = 100
    epsilon: float | None = None
    certificate: str = "exact"
    tolerance: float = 1.0 / 3.0
    margin: float = 0.05

    def __post_init__(self) -> None:
        if check_whole("cells", self.cells) < 2:
            raise InputError(f"cells={self.cells!r} must be at least 2")
        check_choice("certificate", self.certificate, CERTIFICATES)
        check_epsilon(self.epsilon)
        poisson_mean(self.cells, 0.0, self.tolerance, self.margin)  # raises for what makes no sense


@dataclass(frozen=True, slots=True)
class CellsProposal(EventProposal):
    """The event of the chosen cells, to be counted on fresh draws.

    Attributes:
        epsilon: of the divergence.
        n_cells: of the histogram.
    """

    epsilon: float
    n_cells: int

    def certify(self, left: Counts, right: Counts, pair: Pair, failure_probability: float) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        finding = EventProposal.certify(self, left, right, pair, failure_probability)
        return replace(finding, method=NAME, details={"epsilon": self.epsilon, "cells": self.n_cells})


@dataclass(frozen=True, slots=True)
class EstimateProposal:
    """A histogram of fresh draws for Algorithm 3.

    Attributes:
        partition: the cells.
        choice: direction and ε.
        task: what is asked.
        options: β and η.
        predicted: the estimate to expect.
    """

    partition: Partition
    choice: ExcessEvent
    task: Task
    options: Options
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How often each cell happened, shape (cells,)."""
        return self.partition.count(outputs)

    def certify(self, left: Integers, right: Integers, pair: Pair, failure_probability: float) -> Finding:
        """The published estimate; it has no guarantee and decides nothing."""
        above, below = (right, left) if self.choice.flipped else (left, right)
        epsilon = self.choice.epsilon
        found = estimate(above, below, epsilon, self.options.tolerance, self.options.margin)
        bound = value_of_excess(check_claim(NAME, self.task.claim), epsilon, found.value)
        details: dict[str, Any] = {
            "epsilon": epsilon,
            "cells": self.partition.n_cells,
            "estimate": found.value,
            "poisson_mean": found.mean,
            "draws_wanted": found.wanted,
            "draws_used": found.used,
            "direction": "right ‖ left" if self.choice.flipped else "left ‖ right",
        }
        confidence = 1.0 - failure_probability
        return Finding(NAME, bound, self._guarantee(found), confidence, None, self.task.claim, details)

    def _guarantee(self, found: HistogramEstimate) -> str:
        text = "none: Algorithm 3 does not subtract the bias of its estimate"
        if found.is_complete:
            return f"{text}, up to {self.options.tolerance / 4:.2g}"
        return f"{text}, and asked for {found.wanted:,} draws per side where there were {found.used:,}"


class PoissonHistogramMethod:
    """Cuts the outputs into cells and takes those that one law makes more than e^ε times as likely."""

    name = NAME
    summary = "the cells of a histogram with x > e^ε·y, proved on fresh draws; PureDP and ApproxDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100}: the method {NAME} takes epsilometer.poisson_histogram.Options")
        self.options = options or Options()

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Pure and approximate privacy only; called before anything is drawn."""
        check_claim(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> CellsProposal | EstimateProposal:
        """The direction (and ε) with the best predicted bound."""
        self.check(task.claim)
        learned = self._cut(left, right)
        way = make_way(learned, (_log_ratio_of_counts,))
        choice = choose_excess([way], task, mixtures_of(task.claim, self.options.epsilon))
        if self.options.certificate == "published":
            return EstimateProposal(learned.partition, choice, task, self.options, choice.predicted)
        event = choice.event, choice.flipped, task, choice.predicted, 0.5, choice.p, choice.q
        return CellsProposal(*event, choice.epsilon, learned.partition.n_cells)

    def _cut(self, left: Outputs, right: Outputs) -> Learned:
        """Single numbers into so many cells; other outputs as the method `events` cuts them, vectors by a score."""
        pairs = blocks_of_both(left, right)
        blocks = []
        for a, b in pairs:
            columns = [side.columns[0] for side in (a, b) if len(side.columns) == 1]
            numbers = [column.values for column in columns if isinstance(column, Numbers)]
            if len(numbers) != 2:
                return learn_partitions(left, right)[:2][-1]
            line = learn_line(numbers[0], numbers[1], most_bins=self.options.cells)
            blocks.append(BlockPartition(a.shape, (None,), (Group((-1,), line),)))
        return Learned(Partition(tuple(blocks)), left, right)


def _log_ratio_of_counts(left: Integers, right: Integers) -> NDArray[np.float64]:
    """ln of the ratio of relative frequencies, so that it is above ε where x_j > e^ε·y_j; 0 where nothing was seen."""
    shares = [np.log(np.maximum(side, 1e-9) / max(int(side.sum()), 1)) for side in (left, right)]
    return np.where(left + right > 0, shares[0] - shares[1], 0.0)
