"""Method `ldp-histogram`: a two-sided estimate, and its lower end as the bound of an audit."""

from dataclasses import dataclass
from typing import Any

from epsilometer.claims import Claim, PureDP, RenyiDP
from epsilometer.claims.base import check_positive
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.published.ldp import formulas
from epsilometer.methods.published.ldp.estimating import guarantee_of
from epsilometer.methods.published.ldp.formulas import CellCounts
from epsilometer.methods.published.ldp.plans import HistogramPlan, affordable_precision, plan_pair
from epsilometer.outputs import Outputs
from epsilometer.result import Finding

_NAME = "ldp-histogram"
# Nothing is learned; these draws only show, before the rest is drawn, that outputs lie in the
# domain.
_PILOT = 1000
# The power with which results call a value detectable.
_POWER = 0.9


@dataclass(frozen=True, slots=True)
class Options:
    """What `ldp-histogram` must know.

    Attributes:
        domain: (a, b), where all outputs lie.
        lipschitz: C, a Lipschitz constant of all output densities, below 2/(b − a)².
        precision: γ; None for the finest that the draws of the audit allow. A precision that takes
            more draws than the audit has gives an estimate without guarantee, which refutes
            nothing.
    """

    domain: tuple[float, float]
    lipschitz: float
    precision: float | None = None

    def __post_init__(self) -> None:
        formulas.Smoothness(self.domain, self.lipschitz)  # raises if they make no sense
        if self.precision is not None:
            check_positive("precision", self.precision)


@dataclass(frozen=True, slots=True)
class HistogramProposal(Proposal):
    """Cells that are fixed by the assumption and the number of draws.

    Attributes:
        plan: cells and samples for the precision.
        task: what is to be proved.
        predicted: the bound to expect.
        guarantee: of the bound.
    """

    plan: HistogramPlan
    task: Task
    predicted: float
    guarantee: str

    @property
    def cells(self) -> formulas.Cells:
        """What is counted."""
        return formulas.Cells(self.plan.smoothness.domain, self.plan.cells)

    @property
    def detectable(self) -> float | None:
        """A value this large has its whole interval above the claim, with the probability of the guarantee."""
        is_promised = not self.guarantee.startswith("none") and self.plan.confidence >= _POWER
        return self.task.claim.value + 2.0 * self.plan.precision if is_promised else None

    def tally(self, outputs: Outputs, side: int) -> CellCounts:
        """The counts of all cells."""
        return self.cells.count(outputs)

    def certify(
        self, left: CellCounts, right: CellCounts, pair: Pair, failure_probability: float
    ) -> Finding:
        """The lower end of the interval around the larger estimate of both directions."""
        formulas.check_inside(self.cells, left, right)
        n_empty = left.n_empty + right.n_empty
        plan = self.plan
        details: dict[str, Any] = {
            "cells": plan.cells,
            "precision": plan.precision,
            "planned_samples": plan.samples,
        }
        if n_empty:
            reason = f"none: {n_empty} of {2 * plan.cells} cells are empty; take more samples or wider cells"
            return Finding(
                _NAME, 0.0, reason, 1.0 - failure_probability, None, self.task.claim, details
            )
        value = both_directions(left, right, plan.order)
        low = max(0.0, value - plan.precision)
        high = value + plan.precision
        details = {
            "estimate": value,
            "interval": [low, high],
            "assumption": plan.assumption,
            **details,
        }
        return Finding(
            _NAME, low, self.guarantee, 1.0 - failure_probability, None, self.task.claim, details
        )


class HistogramMethod(Method):
    """Histograms with two-sided guarantees for Lipschitz densities on an interval."""

    name = _NAME
    summary = "two-sided estimate of local privacy from histograms; numbers of an interval with Lipschitz densities"
    guarantee = "conditional: densities are C-Lipschitz on [a, b]"

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(
                f"options={options!r:.100} must be epsilometer.ldp.Options(domain=(a, b), lipschitz=C)"
            )
        self.options = options

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Refuses what cannot be estimated, before anything is drawn."""
        self._smoothness()
        _order(claim)

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """One pair needs no training; several are explored as usual."""
        pilot = min(_PILOT, samples // 10)
        return (pilot, samples - pilot) if n_pairs == 1 and pilot > 0 else None

    def propose(self, left: Outputs, right: Outputs, task: Task) -> HistogramProposal:
        """Fixes the cells; training draws only predict the bound."""
        smoothness = self._smoothness()
        order = _order(task.claim)
        confidence = 1.0 - task.failure_probability
        samples = min(task.n_fresh)
        wished = None if self.options is None else self.options.precision
        precision = wished or affordable_precision(smoothness, samples, confidence, order)
        if precision is None:
            raise InputError(
                f"{samples} draws per side are too few for any precision here; see epsilometer.plan"
            )
        plan = plan_pair(smoothness, precision, confidence, order)
        cells = formulas.Cells(smoothness.domain, plan.cells)
        tallies = cells.count(left), cells.count(right)
        formulas.check_inside(cells, *tallies)
        # With one more sample per cell, empty cells still give a guess.
        padded = [CellCounts(side.counts + 1, 0) for side in tallies]
        predicted = both_directions(padded[0], padded[1], order) - precision
        return HistogramProposal(plan, task, predicted, guarantee_of(plan, samples))

    def _smoothness(self) -> formulas.Smoothness:
        if self.options is None:
            raise InputError(
                f"the method {_NAME} needs options=epsilometer.ldp.Options(domain=(a, b), lipschitz=C)"
            )
        return formulas.Smoothness(self.options.domain, self.options.lipschitz)


def both_directions(left: CellCounts, right: CellCounts, order: float | None) -> float:
    """The larger estimate. Both are right if no count deviates, which is one event."""
    return max(formulas.divergence(left, right, order), formulas.divergence(right, left, order))


def _order(claim: Claim) -> float | None:
    if isinstance(claim, RenyiDP):
        return claim.order
    if isinstance(claim, PureDP):
        return None
    raise InputError(
        f"{claim.describe()}: the method {_NAME} estimates pure and Rényi privacy; use the method events"
    )
