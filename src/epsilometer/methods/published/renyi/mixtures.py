"""Mixed distributions: relative frequencies of point masses beside kernel densities.

The divergence of a mixed distribution is the sum over its point masses plus the integral over its
densities, each slice of outputs with one of its own; so are its estimate and its variance. Each
density is measured in units of its scale, so that one floor serves all parts.

Reference: Kutta, Askin, Dunsche (2024), "Lower bounds for Rényi differential privacy in a black-box
    setting", which leaves these distributions (propose-test-release) to future work.
"""

from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.methods.published.local.events import outcome_event
from epsilometer.methods.published.local.mixtures import Slice, find_mixture
from epsilometer.methods.published.renyi.densities import (
    Densities,
    EvenGrid,
    Smoothing,
    grid_over,
)
from epsilometer.outputs import Event, Outputs

# Point masses that are counted at most, the most frequent ones: each takes a pass over the draws.
_MOST_POINT_MASSES = 256


@dataclass(frozen=True, slots=True)
class SliceGrid:
    """A slice of the outputs with a density, and the grid for it.

    Attributes:
        where: the slice.
        grid: over the range of the training draws.
    """

    where: Slice
    grid: EvenGrid


@dataclass(frozen=True, slots=True)
class MixedView:
    """Counts of point masses, and of the draws binned on a grid for each slice.

    Attributes:
        point_masses: one event for each.
        slices: where densities are.
    """

    point_masses: tuple[Event, ...]
    slices: tuple[SliceGrid, ...]

    def count(self, outputs: Outputs) -> Floats:
        """Counts outputs; counts of chunks add up.

        Returns:
            Shape (point masses + grid points + 1,): the last counts the outputs in no part.
        """
        counts = [
            np.array([float(np.count_nonzero(event.contains(outputs)))])
            for event in self.point_masses
        ]
        counts += [part.grid.count(part.where.rows(outputs)) for part in self.slices]
        counted = np.concatenate(counts)
        return np.append(counted, len(outputs) - counted.sum())

    def densities(self, left: Floats, right: Floats, smoothing: Smoothing) -> Densities:
        """Returns frequencies and densities; draws in no part count only in the sizes.

        This makes the bound lower.
        """
        sizes = (round(float(left.sum())), round(float(right.sum())))
        n_masses = len(self.point_masses)
        parts: list[Densities] = []
        if n_masses:
            parts.append(
                Densities(
                    p=left[:n_masses] / sizes[0],
                    q=right[:n_masses] / sizes[1],
                    width=1.0,
                    sizes=sizes,
                )
            )
        start = n_masses
        for part in self.slices:
            end = start + part.grid.points
            parts.append(part.grid.densities(left[start:end], right[start:end], smoothing, sizes))
            start = end
        return Densities.joined(parts)


def find_mixed_view(left: Outputs, right: Outputs, margin: float = 0.0) -> MixedView | None:
    """Returns how to count outputs with point masses beside densities; None if there is no density.

    Args:
        left: training draws.
        right: training draws of the other side.
        margin: fraction of the range by which grids are widened on each side.

    Raises:
        InputError: outputs have several continuous columns.
    """
    mixture = find_mixture(left, right)
    if not mixture.slices:
        return None
    events: list[Event] = []
    if mixture.outcomes is not None:
        outcomes = mixture.outcomes
        order = np.argsort(-(outcomes.left + outcomes.right), kind="stable")
        most_frequent = order[:_MOST_POINT_MASSES].tolist()
        events = [outcome_event(outcomes, number) for number in most_frequent]
    slices = [
        SliceGrid(where, grid_over(where.rows(left), where.rows(right), margin))
        for where in mixture.slices
    ]
    return MixedView(tuple(events), tuple(slices))
