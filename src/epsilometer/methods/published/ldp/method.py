"""Method `ldp-histogram`: a two-sided estimate, and its lower end as the bound of an audit.

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the (im)possibility of
    estimating various notions of differential privacy", Algorithm 1.
"""

from dataclasses import dataclass

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
# Training draws per side at most. Nothing is learned; they only show, before the rest is drawn,
# that outputs lie in the domain.
_PILOT_DRAWS = 1000
# The power with which results call a value detectable.
_DETECTION_POWER = 0.9


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
        self.smoothness()  # checks domain and lipschitz
        if self.precision is not None:
            check_positive("precision", self.precision)

    def smoothness(self) -> formulas.Smoothness:
        """Returns the assumption on the output densities."""
        return formulas.Smoothness(self.domain, self.lipschitz)


@dataclass(frozen=True, slots=True)
class HistogramProposal(Proposal):
    """Cells that are fixed by the assumption and the number of draws.

    Attributes:
        plan: cells and samples for the precision.
        task: what is to be certified.
        predicted: the bound to expect.
        guarantee: of the bound.
    """

    plan: HistogramPlan
    task: Task
    predicted: float
    guarantee: str

    @property
    def cells(self) -> formulas.Cells:
        """The cells that are counted."""
        return formulas.Cells(self.plan.smoothness.domain, self.plan.cells)

    @property
    def detectable(self) -> float | None:
        """The value from which on the interval lies above the claim, with the plan's confidence."""
        if self.guarantee.startswith("none") or self.plan.confidence < _DETECTION_POWER:
            return None
        return self.task.claim.value + 2.0 * self.plan.precision

    def tally(self, outputs: Outputs, side: int) -> CellCounts:
        """Counts the outputs in all cells."""
        return self.cells.count(outputs)

    def certify(
        self, left: CellCounts, right: CellCounts, pair: Pair, failure_probability: float
    ) -> Finding:
        """Returns the lower end of the interval around the larger estimate of both directions."""
        formulas.check_inside(self.cells, left, right)
        plan = self.plan
        sizes: dict[str, object] = {
            "cells": plan.cells,
            "precision": plan.precision,
            "planned_samples": plan.samples,
        }
        n_empty = left.n_empty + right.n_empty
        if n_empty:
            return Finding(
                method=_NAME,
                lower_bound=0.0,
                guarantee=(
                    f"none: {n_empty} of {2 * plan.cells} cells are empty; take more samples or "
                    "wider cells"
                ),
                confidence=1.0 - failure_probability,
                witness=None,
                claim=self.task.claim,
                details=sizes,
            )
        value = both_directions(left, right, plan.order)
        low = max(0.0, value - plan.precision)
        high = value + plan.precision
        details: dict[str, object] = {
            "estimate": value,
            "interval": [low, high],
            "assumption": plan.assumption,
            **sizes,
        }
        return Finding(
            method=_NAME,
            lower_bound=low,
            guarantee=self.guarantee,
            confidence=1.0 - failure_probability,
            witness=None,
            claim=self.task.claim,
            details=details,
        )


class HistogramMethod(Method):
    """Histograms with two-sided guarantees for Lipschitz densities on an interval."""

    name = _NAME
    summary = (
        "two-sided estimate of local privacy from histograms; numbers of an interval with "
        "Lipschitz densities"
    )
    guarantee = "conditional: densities are C-Lipschitz on [a, b]"

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(
                f"options={options!r:.100} must be epsilometer.ldp.Options(domain=(a, b), "
                "lipschitz=C)"
            )
        self.options = options

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Refuses what cannot be estimated, before anything is drawn."""
        self._required_options()
        _order(claim)

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Returns a short pilot for one pair, which needs no training; None for several pairs."""
        pilot = min(_PILOT_DRAWS, samples // 10)
        if n_pairs == 1 and pilot > 0:
            return pilot, samples - pilot
        return None

    def propose(self, left: Outputs, right: Outputs, task: Task) -> HistogramProposal:
        """Fixes the cells; training draws only predict the bound."""
        options = self._required_options()
        smoothness = options.smoothness()
        order = _order(task.claim)
        confidence = 1.0 - task.failure_probability
        samples = min(task.n_fresh)
        precision = options.precision
        if precision is None:
            precision = affordable_precision(smoothness, samples, confidence, order)
        if precision is None:
            raise InputError(
                f"{samples} draws per side are too few for any precision here; "
                "see epsilometer.ldp.plan"
            )
        plan = plan_pair(smoothness, precision, confidence, order)
        cells = formulas.Cells(smoothness.domain, plan.cells)
        left_counts = cells.count(left)
        right_counts = cells.count(right)
        formulas.check_inside(cells, left_counts, right_counts)
        # With one more sample per cell, empty cells still give a prediction.
        padded_left = CellCounts(left_counts.counts + 1, 0)
        padded_right = CellCounts(right_counts.counts + 1, 0)
        return HistogramProposal(
            plan=plan,
            task=task,
            predicted=both_directions(padded_left, padded_right, order) - precision,
            guarantee=guarantee_of(plan, samples),
        )

    def _required_options(self) -> Options:
        if self.options is None:
            raise InputError(
                f"the method {_NAME} needs options=epsilometer.ldp.Options(domain=(a, b), "
                "lipschitz=C)"
            )
        return self.options


def both_directions(left: CellCounts, right: CellCounts, order: float | None) -> float:
    """Returns the larger estimate; both are right if no count deviates, which is one event."""
    return max(formulas.divergence(left, right, order), formulas.divergence(right, left, order))


def _order(claim: Claim) -> float | None:
    """Returns the order of a Rényi claim, and None for pure privacy; refuses other claims."""
    if isinstance(claim, RenyiDP):
        return claim.order
    if isinstance(claim, PureDP):
        return None
    raise InputError(
        f"{claim.describe()}: the method {_NAME} estimates pure and Rényi privacy; use the method "
        "events"
    )
