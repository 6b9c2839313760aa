"""Orders cells by how much more likely the one law makes them: several candidates, of which training draws choose."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs import Line, Partition
from epsilometer.outputs.lines import next_float

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Widths (in bins) of the smoothing along a line; 0 trusts every bin by itself.
_BIN_WIDTHS = (0, 1, 2, 4, 8)
_ATOM_WIDTHS = (1, 3)
# Pseudo-counts: many for rare atoms, whose ratio is mostly chance.
_BIN_PRIORS = (1.0,)
_ATOM_PRIORS = (0.5, 3.0, 12.0)
# (width, pseudo-counts) of the orderings that pull each cell towards the ratio of its group.
_GROUP_SETTINGS = ((0, 4.0), (0, 16.0), (0, 64.0), (0, 1e7), (3, 4.0), (12, 4.0))


@dataclass(frozen=True, slots=True)
class Layout:
    """Which cells of a partition are neighbours.

    Attributes:
        group: shape (cells,), cells of one signature share a number.
        bins: for each line its bins, in order.
        atoms: for each line its single values, in order.
        n_scores: how many of the lines are lines of scores.
    """

    group: Integers
    bins: tuple[Integers, ...]
    atoms: tuple[Integers, ...]
    n_scores: int

    @property
    def is_one_line(self) -> bool:
        """Whether all bins lie on one line of values."""
        return len(self.bins) == 1 and not self.n_scores


def lay_out(partition: Partition) -> Layout:
    """The layout of a partition's cells."""
    group, bins, atoms = [], [], []
    number, first, n_scores = 0, 0, 0
    for block in partition.blocks:
        for part in block.groups:
            if part.line:
                single = _single_values(part.line)
                bins.append(first + np.flatnonzero(~single))
                atoms.append(first + np.flatnonzero(single))
            n_scores += part.score is not None
            group += [number] * part.n_cells
            first += part.n_cells
            number += 1
        group.append(number)
        first, number = first + 1, number + 1
    return Layout(np.array([*group, number]), tuple(bins), tuple(atoms), n_scores)


def _single_values(line: Line) -> NDArray[np.bool_]:
    """Which cells of a line are single values (or NaN)."""
    single = np.zeros(line.n_cells, dtype=np.bool_)
    if len(line.edges) > 1:
        single[1:-2] = next_float(line.edges[:-1]) == line.edges[1:]
    single[-1] = True
    return single


def orderings(above: Integers, below: Integers, layout: Layout) -> dict[Hashable, Integers]:
    """Candidate orderings, best cell first.

    Args:
        above: shape (cells,), training counts under the law that should be the larger one.
        below: under the other.
        layout: which cells are neighbours.

    Returns:
        Permutations of the cells by the name of their rule; the same rules for any counts of one layout.
    """
    found: dict[Hashable, Integers] = {}
    priors = _BIN_PRIORS if len(layout.bins) == 1 and not len(layout.atoms[0]) - 1 else _ATOM_PRIORS
    widths = _BIN_WIDTHS if layout.bins else (0,)
    for width in widths:
        smooth_above, smooth_below = (_smooth_lines(count, layout.bins, width) for count in (above, below))
        for prior in priors:
            found["bins", width, prior] = _by_ratio(smooth_above + prior, smooth_below + prior)
    if any(len(line) > 4 for line in layout.atoms):
        for width in _ATOM_WIDTHS:
            smooth_above, smooth_below = (_smooth_lines(count, layout.atoms, width) for count in (above, below))
            found["atoms", width] = _by_ratio(smooth_above + 1.0, smooth_below + 1.0)
    if layout.group[-1] > 3:
        found |= _group_orderings(above, below, layout)
    if len(layout.bins) == 1:
        found |= _monotone(layout)
    return found


def _by_ratio(above: Floats, below: Floats) -> Integers:
    return np.argsort(-np.log(above / below), kind="stable")


def _group_orderings(above: Integers, below: Integers, layout: Layout) -> dict[Hashable, Integers]:
    totals = [np.bincount(layout.group, count) + 0.5 for count in (above, below)]
    share_above = (2.0 * totals[0] / (totals[0] + totals[1]))[layout.group]
    share_below = (2.0 * totals[1] / (totals[0] + totals[1]))[layout.group]
    found: dict[Hashable, Integers] = {}
    for width, prior in _GROUP_SETTINGS:
        smooth_above, smooth_below = (_smooth_lines(count, layout.bins, width) for count in (above, below))
        found["group", width, prior] = _by_ratio(smooth_above + prior * share_above, smooth_below + prior * share_below)
    return found


def _monotone(layout: Layout) -> dict[Hashable, Integers]:
    """From one end of the line to the other: the right order whenever the ratio is monotone."""
    cells = np.arange(len(layout.group))
    line = np.sort(np.concatenate([layout.bins[0], layout.atoms[0][:-1]]))
    rest = np.setdiff1d(cells, line)
    return {"rising": np.concatenate([line[::-1], rest]), "falling": np.concatenate([line, rest])}


def _smooth_lines(count: Integers, lines: tuple[Integers, ...], width: int) -> Floats:
    """Counts averaged over neighbours with a bell of the given width, line by line."""
    smooth = count.astype(np.float64)
    if width == 0:
        return smooth
    for line in lines:
        reach = min(len(line) - 1, 4 * width)
        if reach > 0:
            bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
            total = np.convolve(count[line], bell)[reach:-reach]
            smooth[line] = total / np.convolve(np.ones(len(line)), bell)[reach:-reach]
    return smooth
