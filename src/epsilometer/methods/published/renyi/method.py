"""Method `renyi-floored`: the published bound inside an audit.

Reference: Kutta, Askin, Dunsche (2024), "Lower bounds for Rényi differential privacy in a black-box
    setting", (16).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats
from epsilometer.claims import Claim, RenyiDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.partitions import cell_adjacency, learn_by_values
from epsilometer.methods.published.adapters import direction_label, options_or_default, oriented
from epsilometer.methods.published.local.kernels import BandwidthChoice, KernelChoice
from epsilometer.methods.published.renyi.bound import FlooredBound, bound_from, check_floor
from epsilometer.methods.published.renyi.densities import (
    UNDERSMOOTHING,
    Densities,
    EvenGrid,
    Smoothing,
    grid_over,
)
from epsilometer.methods.published.renyi.mixtures import MixedView, find_mixed_view
from epsilometer.methods.renyi_bet import check_divergence, per_order
from epsilometer.methods.scores.cells import blocks_of_both
from epsilometer.one_line import fields_on_one_line
from epsilometer.outputs import Block, Numbers, Outputs, Partition
from epsilometer.result import Finding

NAME = "renyi-floored"

# Orders that are tried for zero-concentrated privacy.
_ZCDP_ORDERS = (1.5, 2.0, 3.0, 5.0, 7.0)
# The grid is this fraction of its range wider on each side: fresh draws reach a little beyond the
# training draws.
_GRID_MARGIN = 0.1
# The fraction of outputs that may not repeat where the rest does, before the distribution counts as
# mixed.
_CONTINUOUS_PART = 0.02
# Numbers of which fewer than this fraction are distinct are not continuous.
_DISTINCT_FRACTION = 0.99
# Draws per side that are searched for repeated values.
_INSPECTED_DRAWS = 20_000
# Any valid floor, for checking a sharpness that is given without one.
_SOME_FLOOR = 1e-5


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `renyi-floored`.

    Attributes:
        floor: τ; by default 50/n in units of 1/scale.
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

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        if self.floor is not None or self.sharpness is not None:
            check_floor(_SOME_FLOOR if self.floor is None else self.floor, self.sharpness)
        self.smoothing()  # checks itself

    def smoothing(self) -> Smoothing:
        """Returns how densities of continuous outputs are estimated."""
        return Smoothing(self.undersmoothing, self.kernel, self.bandwidth)

    def bound(self, densities: Densities, order: float, failure_probability: float) -> FlooredBound:
        """Returns the bound from estimated densities."""
        return bound_from(densities, order, failure_probability, self.floor, self.sharpness)


# --- from outputs to densities ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CellView:
    """Relative frequencies of the repeated outputs; all others are one cell.

    Attributes:
        partition: a cell for each repeated output.
    """

    partition: Partition

    def count(self, outputs: Outputs) -> Floats:
        """Counts the outputs in each cell, shape (cells,)."""
        return self.partition.count(outputs).astype(np.float64)

    def densities(self, left: Floats, right: Floats, smoothing: Smoothing) -> Densities:
        """Returns relative frequencies."""
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
        """Bins the outputs on the grid.

        Returns:
            Shape (grid points + 1,): the last counts outputs that are not finite numbers of this
            shape.
        """
        total = np.zeros(math.prod(self.grid.shape) + 1)
        total[-1] = len(outputs)
        for block in outputs:
            if block.shape == self.shape:
                values = _finite_rows(block)
                total[:-1] += self.grid.count(values).ravel()
                total[-1] -= len(values)
        return total

    def densities(self, left: Floats, right: Floats, smoothing: Smoothing) -> Densities:
        """Returns kernel estimates; draws off the grid count only in the sizes.

        This makes the bound lower.
        """
        sizes = (round(float(left.sum())), round(float(right.sum())))
        left_grid = left[:-1].reshape(self.grid.shape)
        right_grid = right[:-1].reshape(self.grid.shape)
        return self.grid.densities(left_grid, right_grid, smoothing, sizes)


def choose_view(left: Outputs, right: Outputs) -> CellView | GridView | MixedView:
    """Chooses cells for outputs that repeat, a grid for one or two numbers that do not, or both.

    Raises:
        InputError: the distribution is mixed with several continuous columns, or has more than two
            continuous coordinates.
    """
    blocks = blocks_of_both(left, right)
    if len(blocks) == 1:
        left_block, right_block = blocks[0]
        if _has_density(left_block, right_block):
            grid = grid_over(_finite_rows(left_block), _finite_rows(right_block), _GRID_MARGIN)
            return GridView(left_block.shape, grid)
    partition = learn_by_values(left, right).partition
    counts = partition.count(left) + partition.count(right)
    # Draws that do not repeat: in the cells of lines, and in the last cell of all other outputs.
    n_varying = int(counts[-1])
    for cells in cell_adjacency(partition).bins:
        n_varying += int(counts[cells].sum())
    if n_varying <= _CONTINUOUS_PART * counts.sum():
        return CellView(partition)
    refusal = InputError(
        "the outputs are neither discrete, nor one or two numbers with a density, nor point masses "
        "beside one continuous column: floored densities cannot treat them; use method='auto', "
        "which can"
    )
    try:
        mixed = find_mixed_view(left, right, _GRID_MARGIN)
    except InputError as error:
        raise refusal from error
    if mixed is None:
        raise refusal
    return mixed


def _has_density(left: Block, right: Block) -> bool:
    """Tells whether outputs of one shape are one or two floats that hardly repeat."""
    columns = (*left.columns, *right.columns)
    are_floats = all(
        isinstance(column, Numbers) and column.values.dtype.kind == "f" for column in columns
    )
    if not 1 <= len(left.columns) <= 2 or not are_floats:
        return False
    left_rows = _finite_rows(left)[:_INSPECTED_DRAWS]
    right_rows = _finite_rows(right)[:_INSPECTED_DRAWS]
    rows = np.concatenate([left_rows, right_rows])
    if len(rows) < 2:
        return False
    return all(len(np.unique(values)) >= _DISTINCT_FRACTION * len(values) for values in rows.T)


def _finite_rows(block: Block) -> Floats:
    """Returns the rows without NaN and infinities, shape (k, columns)."""
    columns = [
        np.asarray(column.values, dtype=np.float64)
        for column in block.columns
        if isinstance(column, Numbers)
    ]
    rows = np.stack(columns, axis=1)
    return rows[np.isfinite(rows).all(axis=1)]


# --- the method -------------------------------------------------------------------------------


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

    view: CellView | GridView | MixedView
    order: float
    flipped: bool
    task: Task
    options: Options
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Floats:
        """Counts outputs as the view does; tallies of chunks add up."""
        return self.view.count(outputs)

    def certify(
        self, left: Floats, right: Floats, pair: Pair, failure_probability: float
    ) -> Finding:
        """Returns the asymptotic bound from the counts of fresh draws."""
        above, below = oriented(left, right, self.flipped)
        densities = self.view.densities(above, below, self.options.smoothing())
        bound = self.options.bound(densities, self.order, failure_probability)
        details: dict[str, object] = {
            "direction": direction_label(self.flipped),
            "order": self.order,
            "estimate": bound.estimate,
            "variance": bound.variance,
            "floor": bound.floor,
            "sharpness": bound.sharpness,
            "warnings": list(bound.warnings),
        }
        return Finding(
            method=NAME,
            lower_bound=max(bound.lower_bound, 0.0) * per_order(self.task, self.order),
            guarantee="asymptotic",
            confidence=1.0 - failure_probability,
            witness=None,
            claim=self.task.claim,
            details=details,
        )


class RenyiFlooredMethod(Method):
    """Plug-in estimates of the densities with a floor, and a normal approximation."""

    name = NAME
    summary = (
        "the published Rényi bound by floored densities; discrete outputs, at most two numbers "
        "with a density, or point masses beside one"
    )
    guarantee = "asymptotic"

    def __init__(self, options: Options | None = None) -> None:
        self.options = options_or_default(NAME, "renyi", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Refuses claims that are not about Rényi divergences, before anything is drawn."""
        check_divergence(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> FlooredProposal:
        """Returns the direction (and order) with the best bound on training draws."""
        self.check(task.claim)
        view = choose_view(left, right)
        left_counts = view.count(left)
        right_counts = view.count(right)
        orders = (task.claim.order,) if isinstance(task.claim, RenyiDP) else _ZCDP_ORDERS
        quantile = float(-ndtri(task.failure_probability))
        proposals: list[FlooredProposal] = []
        for flipped in (False, True):
            above, below = oriented(left_counts, right_counts, flipped)
            n_fresh, _ = oriented(*task.n_fresh, flipped)
            densities = view.densities(above, below, self.options.smoothing())
            # Standard errors that the certificate subtracts, and one of the training draws against
            # selection bias.
            penalty = quantile / math.sqrt(n_fresh) + 1.0 / math.sqrt(densities.sizes[0])
            for order in orders:
                bound = self.options.bound(densities, order, task.failure_probability)
                predicted = bound.estimate - math.sqrt(bound.variance) * penalty
                proposals.append(
                    FlooredProposal(
                        view=view,
                        order=order,
                        flipped=flipped,
                        task=task,
                        options=self.options,
                        predicted=predicted * per_order(task, order),
                    )
                )
        return max(proposals, key=lambda proposal: proposal.predicted)
