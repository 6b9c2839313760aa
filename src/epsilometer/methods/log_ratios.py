"""Learns the log-ratio of two distributions from training draws: one value for each cell of a partition."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.events.cells import blocks_of_both
from epsilometer.methods.events.choosing import Layout, lay_out, smooth_lines
from epsilometer.methods.events.learning import Learned, learn_partitions
from epsilometer.outputs import Block, BlockPartition, Group, Line, Numbers, Outputs, Partition

# From the training counts of both sides to ln(P/Q) for each cell; all of shape (cells,).
Fit = Callable[[Integers, Integers], Floats]

# Even cells over the range of the training draws: the kernel is far wider than a cell.
_CELLS = 512
# Kernel widths, in units of the rule of thumb for one density; the ratio of two is smoother than
# either.
_KERNEL_WIDTHS = (0.7, 1.2, 2.4)
# Pseudo-draws per kernel window: where nothing was seen the ratio is 1.
_PER_WINDOW = 3.0
# Widths (in cells) and pseudo-counts for cells that are not even.
_BIN_WIDTHS = (0, 1, 2, 4, 8)
_PRIORS = (0.5, 3.0)
# At most this many draws of each side place the even cells and the kernel.
_MOST_ROWS = 250_000
# A range whose square, or that of its inverse, overflows has no even cells.
_EXTREME = 1e150


@dataclass(frozen=True, slots=True)
class Way:
    """A partition with the training counts of its cells in two halves, and the fits that may suit it.

    Attributes:
        partition: the cells.
        left: two arrays of shape (cells,).
        right: two arrays of shape (cells,).
        fits: by name.
    """

    partition: Partition
    left: tuple[Integers, Integers]
    right: tuple[Integers, Integers]
    fits: tuple[Fit, ...]

    def oriented(
        self, flipped: bool
    ) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
        """Counts of the larger distribution and of the other, in halves."""
        return (self.right, self.left) if flipped else (self.left, self.right)


def learn_ways(left: Outputs, right: Outputs) -> list[Way]:
    """Every way that may be best."""
    ways = [way_of(learned) for learned in learn_partitions(left, right)]
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1 and (values := finite_numbers(*pairs[0])) is not None:
        ways.append(_kernel_way(left, right, pairs[0][0].shape, values))
    return ways


def way_of(learned: Learned) -> Way:
    """The fits that suit cells of any kind, with the counts of the draws that did not shape them."""
    layout = lay_out(learned.partition)
    # Ratios of counts, smoothed along the lines, with pseudo-counts.
    tried = [
        (width, prior) for width in (_BIN_WIDTHS if layout.bins else (0,)) for prior in _PRIORS
    ]
    fits: list[Fit] = [
        partial(_counted, lines=layout.bins, width=width, prior=prior) for width, prior in tried
    ]
    if layout.group[-1] > 3:
        fits.append(partial(_grouped, group=layout.group, prior=16.0))
    return make_way(learned, (*fits, *_score_fits(learned.partition, layout)))


def make_way(learned: Learned, fits: tuple[Fit, ...]) -> Way:
    """Cells with the counts of two halves of the draws, and the given fits."""
    return Way(learned.partition, *learned.halves(), fits)


def finite_numbers(left: Block, right: Block) -> Floats | None:
    """The finite values of single numbers that hardly repeat; None where outputs are anything else."""
    columns = [side.columns[0] for side in (left, right) if len(side.columns) == 1]
    sides = [
        np.asarray(each.values[:_MOST_ROWS], np.float64)
        for each in columns
        if isinstance(each, Numbers)
    ]
    if len(sides) < 2:
        return None
    pooled = np.concatenate(sides)
    values = pooled[np.isfinite(pooled)]
    if not len(values) or not 1.0 / _EXTREME < values.max() / 2 - values.min() / 2 < _EXTREME:
        return None
    look = values[:: max(1, len(values) // 4096)]
    return values if len(np.unique(look)) > 0.5 * len(look) else None


def on_line(shape: str, line: Line) -> Partition:
    """The cells of a line, for single numbers."""
    return Partition((BlockPartition(shape, (None,), (Group((-1,), line),)),))


def _kernel_way(left: Outputs, right: Outputs, shape: str, values: Floats) -> Way:
    """One number: a kernel on even cells."""
    low = float(values.min())
    high = float(values.max())
    line = Line(np.unique(np.linspace(low, high, _CELLS - 1)))
    spacing = (high - low) / (_CELLS - 2)
    middle = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(middle[1] - middle[0]) / 1.34)
    thumb = 0.9 * spread * (len(values) / 2) ** -0.2 / spacing
    # Cells that are not on the line stay neutral.
    lines = (np.arange(line.n_cells - 1),)
    widths = [max(width * thumb, 0.75) for width in _KERNEL_WIDTHS]
    fits = [
        partial(_counted, lines=lines, width=width, prior=_PER_WINDOW / (2.5 * width))
        for width in widths
    ]
    return make_way(Learned(on_line(shape, line), left, right), tuple(fits))


# --- cells of any kind
# -----------------------------------------------------------------------------------------------


def _counted(
    left: Integers, right: Integers, lines: tuple[Integers, ...], width: float, prior: float
) -> Floats:
    """Counts averaged over neighbouring cells of a line with a Gaussian kernel, plus pseudo-counts."""
    smooth = [smooth_lines(count, lines, width, full=False) for count in (left, right)]
    return _log_ratio(smooth[0], smooth[1], int(left.sum()), int(right.sum()), prior)


def _grouped(left: Integers, right: Integers, group: Integers, prior: float) -> Floats:
    """Pulls every cell towards the ratio of its group."""
    totals = [np.bincount(group, count) + 0.5 for count in (left, right)]
    share = (totals[0] / (totals[0] + totals[1]))[group]
    above = left + 2.0 * prior * share
    below = right + 2.0 * prior * (1.0 - share)
    return _log_ratio(above, below, int(left.sum()), int(right.sum()), 0.0)


def _score_fits(partition: Partition, layout: Layout) -> list[Fit]:
    """The score of a cell itself, where every line is one of scores: an additive logit is a log-ratio already."""
    if not layout.n_scores or layout.n_scores != len(layout.bins):
        return []
    scores = np.zeros(partition.n_cells)
    first = 0
    for block in partition.blocks:
        for group in block.groups:
            if group.line is not None and len(group.line.edges):
                edges = group.line.edges
                scores[first : first + group.n_cells] = [
                    edges[0],
                    *0.5 * (edges[:-1] + edges[1:]),
                    edges[-1],
                    0.0,
                ]
            first += group.n_cells
        first += 1
    return [partial(_signed, scores=scores)]


def _signed(left: Integers, right: Integers, scores: Floats) -> Floats:
    """A log-ratio that is known already. The sides may come swapped: the sign that agrees with the counts is right."""
    agreement = float(left @ scores / max(left.sum(), 1) - right @ scores / max(right.sum(), 1))
    return math.copysign(1.0, agreement) * scores


def _log_ratio(left: Floats, right: Floats, n_left: int, n_right: int, prior: float) -> Floats:
    return np.log((left + prior) / max(n_left, 1)) - np.log((right + prior) / max(n_right, 1))
