"""Method `renyi-floored`: the published bound inside an audit."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats
from epsilometer.claims import Claim, RenyiDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.events.cells import blocks_of_both
from epsilometer.methods.events.choosing import lay_out
from epsilometer.methods.events.learning import learn_by_values
from epsilometer.methods.published.adapters import options_or_default
from epsilometer.methods.published.local.kernels import BandwidthChoice, KernelChoice
from epsilometer.methods.published.renyi.bound import FlooredBound, bound_from, check_floor
from epsilometer.methods.published.renyi.densities import (
    UNDERSMOOTHING,
    Densities,
    EvenGrid,
    Smoothing,
    grid_over,
)
from epsilometer.methods.renyi_bet import check_divergence, per_order
from epsilometer.outputs import Block, Numbers, Outputs, Partition
from epsilometer.result import Finding

# Fresh draws reach a little beyond the training draws.
_MARGIN = 0.1
# The share of outputs that may not repeat where the rest does, before the distribution counts as
# mixed.
_STRAY = 0.02
# Numbers of which fewer than this share are distinct are not continuous.
_DISTINCT = 0.99
_LOOK = 20_000


@dataclass(frozen=True, slots=True)
class CellView:
    """Relative frequencies of the repeated outputs; all others are one cell.

    Attributes:
        partition: a cell for each repeated output.
    """

    partition: Partition

    def count(self, outputs: Outputs) -> Floats:
        """Shape (cells,)."""
        return self.partition.count(outputs).astype(np.float64)

    def densities(self, left: Floats, right: Floats, smoothing: Smoothing) -> Densities:
        """Relative frequencies."""
        return Densities.of_counts(left, right)


@dataclass(frozen=True, slots=True)
class GridView:
    """Kernel densities of one or two numbers.

    Attributes:
        shape: of the outputs that have a place on the grid.
        grid: over the range of the training draws and a little more.
    """

    shape: str
    grid: EvenGrid

    def count(self, outputs: Outputs) -> Floats:
        """Shape (grid points + 1,): the last counts outputs that are not finite numbers of this shape."""
        total = np.zeros(self.grid.points ** len(self.grid.box) + 1)
        total[-1] = len(outputs)
        for block in outputs:
            if block.shape == self.shape:
                values = _finite_rows(block)
                total[:-1] += self.grid.count(values).ravel()
                total[-1] -= len(values)
        return total

    def densities(self, left: Floats, right: Floats, smoothing: Smoothing) -> Densities:
        """Kernel estimates; draws off the grid count only in the sizes, which makes the bound lower."""
        shape = (self.grid.points,) * len(self.grid.box)
        sizes = (round(float(left.sum())), round(float(right.sum())))
        return self.grid.densities(
            left[:-1].reshape(shape), right[:-1].reshape(shape), smoothing, sizes
        )


def choose_view(left: Outputs, right: Outputs) -> CellView | GridView:
    """Counts for outputs that repeat, a grid for one or two numbers that do not; mixed distributions are refused."""
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1 and _has_density(*pairs[0]):
        a, b = pairs[0]
        return GridView(a.shape, grid_over(_finite_rows(a), _finite_rows(b), _MARGIN))
    partition = learn_by_values(left, right).partition
    counts = partition.count(left) + partition.count(right)
    varying = sum(int(counts[line].sum()) for line in lay_out(partition).bins) + int(counts[-1])
    if varying > _STRAY * counts.sum():
        raise InputError(
            "the outputs are neither discrete nor one or two numbers with a density: floored densities cannot treat "
            "them; use method='auto', which can"
        )
    return CellView(partition)


def _has_density(left: Block, right: Block) -> bool:
    columns = (*left.columns, *right.columns)
    are_floats = all(
        isinstance(column, Numbers) and column.values.dtype.kind == "f" for column in columns
    )
    if not 1 <= len(left.columns) <= 2 or not are_floats:
        return False
    rows = np.concatenate([_finite_rows(left)[:_LOOK], _finite_rows(right)[:_LOOK]])
    return len(rows) > 1 and all(
        len(np.unique(column)) >= _DISTINCT * len(column) for column in rows.T
    )


def _finite_rows(block: Block) -> Floats:
    """Shape (k, columns), the rows without NaN and infinities."""
    columns = [
        np.asarray(column.values, dtype=np.float64)
        for column in block.columns
        if isinstance(column, Numbers)
    ]
    rows = np.stack(columns, axis=1)
    return rows[np.isfinite(rows).all(axis=1)]


NAME = "renyi-floored"
# Orders that are tried for zero-concentrated privacy.
_ZCDP_ORDERS = (1.5, 2.0, 3.0, 5.0, 7.0)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `renyi-floored`.

    Attributes:
        floor: τ; by default 50/n in units of 1/spread.
        sharpness: β, 1/τ by default.
        undersmoothing: power to which the bandwidth of a rule is raised.
        kernel: as for `lower_bound`.
        bandwidth: as for `lower_bound`.
    """

    floor: float | None = None
    sharpness: float | None = None
    undersmoothing: float = UNDERSMOOTHING
    kernel: KernelChoice = "gaussian"
    bandwidth: BandwidthChoice = None

    def __post_init__(self) -> None:
        if self.floor is not None or self.sharpness is not None:
            check_floor(1e-5 if self.floor is None else self.floor, self.sharpness)
        self.smoothing()  # checks itself

    def smoothing(self) -> Smoothing:
        """How densities of continuous outputs are estimated."""
        return Smoothing(self.undersmoothing, self.kernel, self.bandwidth)

    def bound(self, densities: Densities, order: float, failure_probability: float) -> FlooredBound:
        """The bound from estimated densities."""
        return bound_from(densities, order, failure_probability, self.floor, self.sharpness)


@dataclass(frozen=True, slots=True)
class FlooredProposal(Proposal):
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

    def tally(self, outputs: Outputs, side: int) -> Floats:
        """Counts of the view; tallies of chunks add up."""
        return self.view.count(outputs)

    def certify(
        self, left: Floats, right: Floats, pair: Pair, failure_probability: float
    ) -> Finding:
        """The asymptotic bound from the counts of fresh draws."""
        above, below = (right, left) if self.flipped else (left, right)
        densities = self.view.densities(above, below, self.options.smoothing())
        bound = self.options.bound(densities, self.order, failure_probability)
        value = max(bound.lower_bound, 0.0) * per_order(self.task, self.order)
        details: dict[str, object] = {
            "direction": "right ‖ left" if self.flipped else "left ‖ right"
        }
        details |= {"order": self.order, "estimate": bound.estimate, "variance": bound.variance}
        details |= {
            "floor": bound.floor,
            "sharpness": bound.sharpness,
            "warnings": list(bound.warnings),
        }
        return Finding(
            NAME, value, "asymptotic", 1.0 - failure_probability, None, self.task.claim, details
        )


class RenyiFlooredMethod(Method):
    """Plug-in estimates of the densities with a floor, and a normal approximation."""

    name = NAME
    summary = "the published Rényi bound by floored densities; discrete outputs, or at most two numbers with a density"
    guarantee = "asymptotic"

    def __init__(self, options: Options | None = None) -> None:
        self.options = options_or_default(NAME, "renyi", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Rényi divergences only; called before anything is drawn."""
        check_divergence(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> FlooredProposal:
        """The direction (and order) with the best bound on training draws."""
        self.check(task.claim)
        view = choose_view(left, right)
        counts = view.count(left), view.count(right)
        orders = (task.claim.order,) if isinstance(task.claim, RenyiDP) else _ZCDP_ORDERS
        cost = float(-ndtri(task.failure_probability))
        found = []
        for flipped in (False, True):
            densities = view.densities(
                *(counts[::-1] if flipped else counts), self.options.smoothing()
            )
            # The cost of the proof and the spread of the training draws.
            doubt = cost / math.sqrt(task.n_fresh[flipped]) + 1.0 / math.sqrt(densities.sizes[0])
            for order in orders:
                bound = self.options.bound(densities, order, task.failure_probability)
                predicted = (bound.estimate - math.sqrt(bound.variance) * doubt) * per_order(
                    task, order
                )
                found.append(FlooredProposal(view, order, flipped, task, self.options, predicted))
        return max(found, key=lambda each: each.predicted)
