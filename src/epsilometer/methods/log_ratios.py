"""Learns the log-ratio of two distributions from training draws: one value for each cell.

The cells are those of a score, cut at many places, or those of a partition by value.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.partitions import (
    CellAdjacency,
    Halves,
    LearnedPartition,
    cell_adjacency,
    learn_partitions,
    smooth_lines,
)
from epsilometer.methods.scores import LearnedScore
from epsilometer.methods.scores.cells import blocks_of_both
from epsilometer.methods.scores.learned import OUTSIDE, OutcomeScore
from epsilometer.outputs import Block, BlockPartition, Group, Line, Numbers, Outputs, Partition

# Estimates ln(P/Q) for each cell from the training counts under P and under Q; shape (cells,) each.
Fit = Callable[[Integers, Integers], Floats]

# Cells of equal width over the range of the training draws: the kernel is far wider than a cell.
_N_EVEN_CELLS = 512
# Kernel widths, in units of the rule of thumb for one density; the ratio of two densities is
# smoother than either.
_KERNEL_WIDTHS = (0.7, 1.2, 2.4)
# Least width of a kernel, in cells.
_LEAST_KERNEL_WIDTH = 0.75
# Pseudo-draws per kernel window: where there are no draws the ratio is 1.
_PSEUDO_DRAWS_PER_WINDOW = 3.0
# Width of a kernel's window, in standard deviations: √(2π).
_WINDOW_WIDTH = 2.5
# Widths of the smoothing along lines whose cells have unequal widths, in cells; 0 does not smooth.
_BIN_WIDTHS = (0, 1, 2, 4, 8)
# Pseudo-counts that are added to each of these cells.
_PRIORS = (0.5, 3.0)
# Pseudo-counts with which a cell is pulled towards the ratio of its group.
_GROUP_PRIOR = 16.0
# With more groups than this, cells are also pulled towards them.
_FEW_GROUPS = 3
# Draws per side that place the cells of equal width and the kernel.
_MOST_ROWS = 250_000
# Values in which repetitions are looked for.
_SCREENING_VALUES = 4096
# A range whose square, or that of its inverse, overflows is not cut into cells of equal width.
_EXTREME_RANGE = 1e150


@dataclass(frozen=True, slots=True)
class LogRatioCandidates:
    """A partition with the training counts of its levels, and the estimators that may suit it.

    Attributes:
        partition: the cells.
        left: counts of the left draws in two halves, shape (levels,) each.
        right: counts of the right draws in two halves.
        fits: the estimators of the log-ratio, by level.
        level: shape (cells,), the level of each cell; None if each cell is a level.
    """

    partition: Partition
    left: Halves
    right: Halves
    fits: tuple[Fit, ...]
    level: Integers | None = None

    @classmethod
    def of(cls, learned: LearnedPartition, fits: tuple[Fit, ...]) -> "LogRatioCandidates":
        """Counts the cells of a learned partition."""
        counts = learned.halves()
        return cls(
            partition=learned.partition,
            left=counts.left,
            right=counts.right,
            fits=fits,
        )

    def oriented(self, flipped: bool) -> tuple[Halves, Halves]:
        """Counts of the larger distribution, which is the right one if flipped, and the other."""
        return (self.right, self.left) if flipped else (self.left, self.right)

    def of_cells(self, by_level: Floats) -> Floats:
        """A value per cell, shape (cells,), from one per level."""
        return by_level if self.level is None else by_level[self.level]

    def spread_over_cells(self, by_level: Floats) -> Floats:
        """Divides what each level has evenly among its cells, shape (cells,)."""
        if self.level is None:
            return by_level
        n_cells = np.bincount(self.level, minlength=len(by_level))
        return np.asarray(by_level[self.level] / n_cells[self.level])


# Levels of equal mass into which a score is cut.
_N_EVEN_LEVELS = 48
# Levels in each tail, whose mass grows geometrically from this many draws.
_N_TAIL_LEVELS = 16
_FEWEST_IN_TAIL = 5.0
# Most outcomes that are levels of their own; of more, the levels are those of a score.
_MOST_OUTCOMES = 512


def score_log_ratios(scores: Sequence[LearnedScore]) -> list[LogRatioCandidates]:
    """The levels of each score, with the estimators that suit them.

    Args:
        scores: learned on training draws.
    """
    return [_levels_of(score) for score in scores if len(score.ordered) > 1]


def _levels_of(score: LearnedScore) -> LogRatioCandidates:
    """Cuts a score into levels; the last level holds what has no score."""
    ordered = score.ordered
    n = len(ordered)
    distinct = np.unique(ordered) if isinstance(score, OutcomeScore) else ordered[:0]
    if 0 < len(distinct) <= _MOST_OUTCOMES:
        cuts = 0.5 * (distinct[:-1] + distinct[1:])
    else:
        even = np.linspace(0.0, 1.0, _N_EVEN_LEVELS + 1)[1:-1] * n
        tail = np.geomspace(_FEWEST_IN_TAIL, max(0.05 * n, _FEWEST_IN_TAIL), _N_TAIL_LEVELS)
        ranks = np.concatenate([even, tail, n - tail]).astype(np.int64).clip(0, n - 1)
        cuts = np.unique(ordered[np.unique(ranks)])
    cells = score.cells(cuts)
    n_levels = len(cuts) + 2
    left = _halves_by_level(score.left, cuts, score.outside[0], n_levels)
    right = _halves_by_level(score.right, cuts, score.outside[1], n_levels)
    line = (np.arange(len(cuts) + 1),)
    fits: list[Fit] = [
        partial(_smoothed_counts, lines=line, width=width, prior=prior)
        for width in ((0,) if isinstance(score, OutcomeScore) else _BIN_WIDTHS)
        for prior in _PRIORS
    ]
    if not score.is_line and len(cuts):
        # The score is an estimate of the log-ratio itself.
        middles = np.concatenate([cuts[:1], 0.5 * (cuts[:-1] + cuts[1:]), cuts[-1:], [0.0]])
        fits.append(partial(_scores_themselves, scores=middles))
    # What is outside has the last level.
    level = np.where(cells.level == OUTSIDE, n_levels - 1, cells.level)
    return LogRatioCandidates(
        partition=cells.partition, left=left, right=right, fits=tuple(fits), level=level
    )


def _halves_by_level(scores: Floats, cuts: Floats, outside: int, n_levels: int) -> Halves:
    """Counts the levels in the even and in the odd draws; what is outside is divided evenly."""
    halves = []
    for half in (0, 1):
        level = np.searchsorted(cuts, scores[half::2], side="right")
        counts = np.bincount(level, minlength=n_levels)
        counts[-1] += (outside + half) // 2
        halves.append(counts)
    return halves[0], halves[1]


def value_log_ratios(left: Outputs, right: Outputs) -> list[LogRatioCandidates]:
    """All candidate partitions with their estimators; single numbers also get a kernel estimate.

    Args:
        left: training outputs.
        right: training outputs.
    """
    return [
        *(with_fits(learned) for learned in learn_partitions(left, right)),
        *kernel_log_ratios(left, right),
    ]


def kernel_log_ratios(left: Outputs, right: Outputs) -> list[LogRatioCandidates]:
    """Kernel estimates for single numbers that hardly repeat; none for all other outputs.

    Args:
        left: training outputs.
        right: training outputs.
    """
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1:
        left_block, right_block = pairs[0]
        values = finite_numbers(left_block, right_block)
        if values is not None:
            return [_with_kernels(left, right, left_block.shape, values)]
    return []


def with_fits(learned: LearnedPartition) -> LogRatioCandidates:
    """Adds the estimators that suit a partition of any kind."""
    layout = cell_adjacency(learned.partition)
    widths = _BIN_WIDTHS if layout.bins else (0,)
    fits: list[Fit] = [
        partial(_smoothed_counts, lines=layout.bins, width=width, prior=prior)
        for width in widths
        for prior in _PRIORS
    ]
    if layout.group[-1] > _FEW_GROUPS:
        fits.append(partial(_pulled_to_groups, group=layout.group, prior=_GROUP_PRIOR))
    cell_scores = _cell_scores(learned.partition, layout)
    if cell_scores is not None:
        fits.append(partial(_scores_themselves, scores=cell_scores))
    return LogRatioCandidates.of(learned, tuple(fits))


def finite_numbers(left: Block, right: Block) -> Floats | None:
    """The finite values of single numbers that hardly repeat; None for all other outputs."""
    if len(left.columns) != 1 or len(right.columns) != 1:
        return None
    left_column = left.columns[0]
    right_column = right.columns[0]
    if not (isinstance(left_column, Numbers) and isinstance(right_column, Numbers)):
        return None
    pooled = np.concatenate(
        [
            np.asarray(left_column.values[:_MOST_ROWS], np.float64),
            np.asarray(right_column.values[:_MOST_ROWS], np.float64),
        ]
    )
    values = pooled[np.isfinite(pooled)]
    if not len(values):
        return None
    half_range = values.max() / 2 - values.min() / 2
    if not 1.0 / _EXTREME_RANGE < half_range < _EXTREME_RANGE:
        return None
    screened = values[:: max(1, len(values) // _SCREENING_VALUES)]
    hardly_repeats = len(np.unique(screened)) > 0.5 * len(screened)
    return values if hardly_repeats else None


def on_line(shape: str, line: Line) -> Partition:
    """The partition of single numbers into the cells of a line."""
    return Partition((BlockPartition(shape, (None,), (Group((-1,), line),)),))


def _with_kernels(left: Outputs, right: Outputs, shape: str, values: Floats) -> LogRatioCandidates:
    """Kernel estimates for single numbers, on cells of equal width.

    Args:
        left: training outputs.
        right: training outputs.
        shape: of the outputs.
        values: shape (n,), the finite values of both sides.
    """
    low = float(values.min())
    high = float(values.max())
    line = Line(np.unique(np.linspace(low, high, _N_EVEN_CELLS - 1)))
    spacing = (high - low) / (_N_EVEN_CELLS - 2)
    # Silverman's rule of thumb for the width, in cells.
    lower_quartile, upper_quartile = np.quantile(values, [0.25, 0.75])
    scale = min(float(values.std()), float(upper_quartile - lower_quartile) / 1.34)
    rule_of_thumb = 0.9 * scale * (len(values) / 2) ** -0.2 / spacing
    # Cells that are not on the line stay neutral.
    lines = (np.arange(line.n_cells - 1),)
    fits: list[Fit] = []
    for relative_width in _KERNEL_WIDTHS:
        width = max(relative_width * rule_of_thumb, _LEAST_KERNEL_WIDTH)
        prior = _PSEUDO_DRAWS_PER_WINDOW / (_WINDOW_WIDTH * width)
        fits.append(partial(_smoothed_counts, lines=lines, width=width, prior=prior))
    learned = LearnedPartition(on_line(shape, line), left, right)
    return LogRatioCandidates.of(learned, tuple(fits))


# --- Estimators ---


def _smoothed_counts(
    left: Integers, right: Integers, lines: tuple[Integers, ...], width: float, prior: float
) -> Floats:
    """Estimates by counts that are smoothed along lines, plus pseudo-counts."""
    smooth_left = smooth_lines(left, lines, width, full=False)
    smooth_right = smooth_lines(right, lines, width, full=False)
    return _log_ratio(smooth_left, smooth_right, int(left.sum()), int(right.sum()), prior)


def _pulled_to_groups(left: Integers, right: Integers, group: Integers, prior: float) -> Floats:
    """Estimates by counts, with pseudo-counts in the ratio of the cell's group."""
    group_left = np.bincount(group, left) + 0.5
    group_right = np.bincount(group, right) + 0.5
    left_fraction = (group_left / (group_left + group_right))[group]
    pulled_left = left + 2.0 * prior * left_fraction
    pulled_right = right + 2.0 * prior * (1.0 - left_fraction)
    return _log_ratio(pulled_left, pulled_right, int(left.sum()), int(right.sum()), 0.0)


def _cell_scores(partition: Partition, layout: CellAdjacency) -> Floats | None:
    """The score in the middle of each cell, shape (cells,): an additive logit is a log-ratio.

    Returns:
        None unless every line is one of scores.
    """
    if not layout.n_scores or layout.n_scores != len(layout.bins):
        return None
    scores = np.zeros(partition.n_cells)
    first = 0
    for block in partition.blocks:
        for group in block.groups:
            if group.line is not None and len(group.line.edges):
                edges = group.line.edges
                middles = 0.5 * (edges[:-1] + edges[1:])
                # The outer cells, and 0 for NaN.
                scores[first : first + group.n_cells] = [edges[0], *middles, edges[-1], 0.0]
            first += group.n_cells
        # The cell of all other outputs of this shape.
        first += 1
    return scores


def _scores_themselves(left: Integers, right: Integers, scores: Floats) -> Floats:
    """A log-ratio that is known already, up to its sign.

    The sides may be swapped, so the sign that agrees with the counts is taken.
    """
    left_mean = left @ scores / max(left.sum(), 1)
    right_mean = right @ scores / max(right.sum(), 1)
    return math.copysign(1.0, float(left_mean - right_mean)) * scores


def _log_ratio(left: Floats, right: Floats, n_left: int, n_right: int, prior: float) -> Floats:
    """ln of the ratio of two frequencies, with pseudo-counts; shape (cells,)."""
    return np.log((left + prior) / max(n_left, 1)) - np.log((right + prior) / max(n_right, 1))
