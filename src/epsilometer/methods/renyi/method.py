"""Method `renyi-floored`: the published bound inside an audit.

Training draws tell whether the outputs are discrete or have a density, where the grid lies, and which direction (for
zCDP: which order) to bound; the bound itself is made of fresh draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from epsilometer.claims import ZCDP, Claim, RenyiDP
from epsilometer.claims.base import as_number
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.renyi.bandwidth import UNDERSMOOTHING
from epsilometer.methods.renyi.bound import FlooredBound, bound_from
from epsilometer.methods.renyi.densities import Densities
from epsilometer.methods.renyi.flooring import check_floor
from epsilometer.methods.renyi.views import CellView, GridView, choose_view
from epsilometer.outputs import Outputs
from epsilometer.result import Finding

NAME = "renyi-floored"
# Orders that are tried for zero-concentrated privacy.
_ZCDP_ORDERS = (1.5, 2.0, 3.0, 5.0, 7.0)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `renyi-floored`.

    Attributes:
        floor: τ; by default 50/n in units of 1/spread.
        sharpness: β, 1/τ by default.
        undersmoothing: power to which the plug-in bandwidth is raised.
    """

    floor: float | None = None
    sharpness: float | None = None
    undersmoothing: float = UNDERSMOOTHING

    def __post_init__(self) -> None:
        if self.floor is not None or self.sharpness is not None:
            check_floor(1e-5 if self.floor is None else self.floor, self.sharpness)
        power = as_number("undersmoothing", self.undersmoothing)
        if not 1.0 <= power < math.inf:
            raise InputError(f"undersmoothing={power!r} must be at least 1 (1 keeps the plug-in bandwidth)")


@dataclass(frozen=True, slots=True)
class FlooredProposal:
    """What to count, and which divergence to bound.

    Attributes:
        view: turns outputs into counts and counts into densities.
        order: of the divergence.
        flipped: False for D(left ‖ right).
        task: what is to be bounded.
        options: the floor.
        predicted: the bound to expect.
    """

    view: CellView | GridView
    order: float
    flipped: bool
    task: Task
    options: Options
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> NDArray[np.float64]:
        """Counts of the view; tallies of chunks add up."""
        return self.view.count(outputs)

    def certify(
        self, left: NDArray[np.float64], right: NDArray[np.float64], pair: Pair, failure_probability: float
    ) -> Finding:
        """The asymptotic bound from the counts of fresh draws."""
        above, below = (right, left) if self.flipped else (left, right)
        densities = self.view.densities(above, below, self.options.undersmoothing)
        bound = bound_from(densities, self.order, failure_probability, self.options.floor, self.options.sharpness)
        value = max(bound.lower_bound, 0.0) * _per_order(self.task, self.order)
        confidence = 1.0 - failure_probability
        return Finding(NAME, value, "asymptotic", confidence, None, self.task.claim, self._details(bound))

    def _details(self, bound: FlooredBound) -> dict[str, object]:
        return {
            "direction": "right ‖ left" if self.flipped else "left ‖ right",
            "order": self.order,
            "estimate": bound.estimate,
            "variance": bound.variance,
            "floor": bound.floor,
            "sharpness": bound.sharpness,
            "warnings": list(bound.warnings),
        }


class RenyiFlooredMethod:
    """Plug-in estimates of the densities with a floor, and a normal approximation."""

    name = NAME
    summary = "the published Rényi bound by floored densities; discrete outputs, or at most two numbers with a density"
    guarantee = "asymptotic"

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100}: the method {NAME} takes epsilometer.renyi.Options")
        self.options = options or Options()

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Rényi divergences only; called before anything is drawn."""
        if not isinstance(claim, RenyiDP | ZCDP):
            raise InputError(f"method={NAME!r} bounds RenyiDP and ZCDP, not {type(claim).__name__}; use method='auto'")

    def propose(self, left: Outputs, right: Outputs, task: Task) -> FlooredProposal:
        """The direction (and order) with the best bound on training draws."""
        self.check(task.claim)
        view = choose_view(left, right)
        counts = view.count(left), view.count(right)
        orders = (task.claim.order,) if isinstance(task.claim, RenyiDP) else _ZCDP_ORDERS
        candidates = [
            self._candidate(view, counts, order, flipped, task) for order in orders for flipped in (False, True)
        ]
        return max(candidates, key=lambda each: each.predicted)

    def _candidate(
        self,
        view: CellView | GridView,
        counts: tuple[NDArray[np.float64], NDArray[np.float64]],
        order: float,
        flipped: bool,
        task: Task,
    ) -> FlooredProposal:
        densities = view.densities(*(counts[::-1] if flipped else counts), self.options.undersmoothing)
        found = bound_from(densities, order, task.failure_probability, self.options.floor, self.options.sharpness)
        predicted = _predict(found, densities, task, flipped) * _per_order(task, order)
        return FlooredProposal(view, order, flipped, task, self.options, predicted)


def _predict(found: FlooredBound, densities: Densities, task: Task, flipped: bool) -> float:
    """The estimate less what the proof will cost and the spread of the training draws."""
    n_fresh = task.n_fresh[1 if flipped else 0]
    cost = float(-ndtri(task.failure_probability))
    return found.estimate - math.sqrt(found.variance) * (
        cost / math.sqrt(n_fresh) + 1.0 / math.sqrt(densities.sizes[0])
    )


def _per_order(task: Task, order: float) -> float:
    return 1.0 if isinstance(task.claim, RenyiDP) else 1.0 / order
