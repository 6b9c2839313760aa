"""A learned score: one number per output, with what is needed to choose and to write down a tail.

A score is fitted on training draws. The scores of these draws come from fits without them
(cross-fitting), so that counting them in a tail of the score is as honest as counting new draws. A
score can be cut into cells anywhere, and the cells are plain data: that is what is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.outputs import BlockPartition, Event, Group, Line, Partition
from epsilometer.outputs.placing import next_float
from epsilometer.outputs.scores import AdditiveScore

# The level of cells that belong to no tail: outputs of another shape, and NaN on a line.
OUTSIDE = -1
# Scores nearer than this fraction of their range are equal, but were summed in another order.
_ROUNDING = 1e-9


class ScoredCells(NamedTuple):
    """A partition along a score.

    Attributes:
        partition: the cells.
        level: shape (cells,), how many of the cuts are at or below the scores in each cell;
            `OUTSIDE` for cells that belong to no tail.
    """

    partition: Partition
    level: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScore:
    """A score of outputs; its subclasses know how to cut outputs along it.

    Attributes:
        name: what kind of score it is.
        left: shape (n,), cross-fitted scores of the left training draws.
        right: shape (m,), of the right ones.
        ordered: scores of training draws by the final fit, sorted.
        is_line: whether the log-ratio may rise or fall along the score; otherwise it rises.
        is_fitted: whether the final scores of training draws differ from the cross-fitted ones.
        is_count: whether scores are whole numbers that repeat, so that no curve runs along them.
        outside: left and right training draws that have no score and belong to no tail.
        n_rivals: how many scores of the same kind this one was chosen from, itself included.
    """

    name: str
    left: Floats
    right: Floats
    ordered: Floats
    is_line: bool = False
    is_fitted: bool = True
    is_count: bool = False
    outside: tuple[int, int] = (0, 0)
    n_rivals: int = 1

    @property
    def sizes(self) -> tuple[int, int]:
        """Left and right training draws, with and without a score."""
        return len(self.left) + self.outside[0], len(self.right) + self.outside[1]

    @property
    def diversity(self) -> float:
        """How many columns matter: 0 for one, near 1 for many."""
        return 0.0

    @property
    def n_tails(self) -> int:
        """Tails that can be told apart, so that the best one is chosen from so many.

        Along a continuous score there are two ends, with a rare and a frequent size of each.
        """
        return 4

    def cells(self, cuts: Floats) -> ScoredCells:
        """Cuts outputs along the score.

        Args:
            cuts: shape (k,), ascending scores.
        """
        raise NotImplementedError

    def tail_event(self, mass: float, upper: bool) -> Event:
        """The outputs at one end of the score.

        Args:
            mass: the fraction of the scored draws that it should hold.
            upper: whether it is the upper end.
        """
        partition, level = self.cells(np.array([self.threshold(mass, upper)]))
        return Event(partition, level == int(upper))

    def threshold(self, mass: float, upper: bool) -> float:
        """The score between a tail and the rest, not on a score that draws have.

        Draws with one score stay together: of the tails with and without them, the one whose size
        is nearer to the intended size is taken.
        """
        ordered = self.ordered
        n = len(ordered)
        size = min(max(round(mass * n), 1), n - 1)
        first_above = n - size if upper else size
        # Sums of weights are equal only up to rounding.
        rounding = 0.0 if self.is_line else _ROUNDING * (ordered[-1] - ordered[0])
        if ordered[first_above] - ordered[first_above - 1] <= rounding:
            score = ordered[first_above]
            start = int(np.searchsorted(ordered, score - rounding, side="left"))
            end = int(np.searchsorted(ordered, score + rounding, side="right"))
            ends = [place for place in (start, end) if 0 < place < n]
            first_above = min(ends, key=lambda end: abs(end - first_above), default=first_above)
        low = ordered[first_above - 1]
        high = ordered[first_above]
        middle = 0.5 * (low + high)
        if high - low > rounding and middle > low:
            return float(middle)
        return float(high - rounding if upper else np.nextafter(low + rounding, np.inf))


class ShapeScore(NamedTuple):
    """How the outputs of one shape are scored.

    Attributes:
        partition: the groups of the shape with the scores of what varies in them, without lines.
        offsets: shape (groups,), what is added to the score of each group.
    """

    partition: BlockPartition
    offsets: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousScore(LearnedScore):
    """A score that varies within the groups of one or several shapes.

    Attributes:
        shapes: how each shape is scored.
        centre: if given, the score is the distance of a number from here.
    """

    shapes: Sequence[ShapeScore]
    centre: float | None = None

    @property
    def diversity(self) -> float:
        """1 − Σs²/(Σs)², for the squared ranges s of the columns' weights; the largest of a shape.

        It is 0 if a single column matters, and near 1 if many do.
        """
        largest = 0.0
        for shape in self.shapes:
            for group in shape.partition.groups:
                if not isinstance(group.score, AdditiveScore):
                    continue
                squared = np.array([term.reach for term in group.score.terms]) ** 2
                concentration = (squared**2).sum() / max(squared.sum() ** 2, 1e-300)
                largest = max(largest, 1.0 - float(concentration))
        return largest

    @property
    def n_tails(self) -> int:
        """Two sizes of two ends, further shapes, and each single value of a score of one column.

        Any of these shapes and values may look best by chance.
        """
        n_tails = 4 + len(self.shapes) - 1
        for shape in self.shapes:
            for group in shape.partition.groups:
                terms = group.score.terms if isinstance(group.score, AdditiveScore) else ()
                if len(terms) == 1:
                    cells = terms[0].cells
                    n_tails += (
                        int(np.count_nonzero(is_single_value(cells.edges)))
                        if isinstance(cells, Line)
                        else len(cells)
                    )
        return n_tails

    def cells(self, cuts: Floats) -> ScoredCells:
        """Cells between the given scores, in every shape."""
        edges = cuts
        # Along a line from low to high numbers; with a centre, far ones are at both ends.
        levels = np.arange(len(cuts) + 1)
        if self.centre is not None:
            edges = np.concatenate([self.centre - cuts[::-1], self.centre + cuts])
            levels = np.concatenate([levels[:0:-1], levels])
        blocks = []
        level: list[int] = []
        for block, offsets in self.shapes:
            groups = []
            for group, offset in zip(block.groups, offsets, strict=True):
                if not (self.is_line or group.score is not None):
                    # All outputs of this group have one score.
                    groups.append(group)
                    level.append(int(np.count_nonzero(cuts <= offset)))
                    continue
                shifted = edges - offset
                # Cuts that rounding makes equal leave an empty cell out.
                is_kept = np.append(np.diff(shifted) > 0.0, True)
                groups.append(replace(group, line=Line(shifted[is_kept])))
                level += levels[np.append(True, is_kept)].tolist()
                # The last cell of a line is NaN.
                level.append(OUTSIDE)
            # The cell of all other outputs of this shape.
            level.append(OUTSIDE)
            blocks.append(replace(block, groups=tuple(groups)))
        # The cell of outputs of any other shape.
        level.append(OUTSIDE)
        return ScoredCells(Partition(tuple(blocks)), np.array(level))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeScore(LearnedScore):
    """A score that is constant on the cells of a fixed partition.

    Attributes:
        partition: the outcomes.
        scores: shape (cells,), their scores.
        is_filled: shape (cells,), which outcomes training draws have.
    """

    partition: Partition
    scores: Floats
    is_filled: Booleans = field(repr=False)

    @property
    def n_tails(self) -> int:
        """As many as outcomes with training draws: any of them may look best by chance."""
        return max(int(np.count_nonzero(self.is_filled)), 4)

    def cells(self, cuts: Floats) -> ScoredCells:
        """The outcomes; those without training draws are in no tail."""
        level = np.searchsorted(cuts, self.scores, side="right")
        return ScoredCells(self.partition, np.where(self.is_filled, level, OUTSIDE))

    def tail_event(self, mass: float, upper: bool) -> Event:
        """The outcomes at one end of the score.

        An interval without training draws joins if both of its neighbours on their line are inside:
        that makes events readable ("output ≤ 3" instead of four single values).
        """
        partition, level = self.cells(np.array([self.threshold(mass, upper)]))
        chosen = level == int(upper)
        for line in _lines_of(partition):
            with_draws = line[self.is_filled[line]]
            if len(with_draws):
                after = np.minimum(np.searchsorted(with_draws, line), len(with_draws) - 1)
                before = np.maximum(np.searchsorted(with_draws, line, side="right") - 1, 0)
                chosen[line] = chosen[with_draws[before]] & chosen[with_draws[after]]
        return Event(partition, chosen)


def _lines_of(partition: Partition) -> list[Integers]:
    """The cells of each line of a partition, in order, without that of NaN."""
    lines = []
    first = 0
    for block in partition.blocks:
        for group in block.groups:
            if group.line:
                lines.append(np.arange(first, first + group.n_cells - 1))
            first += group.n_cells
        # The cell of all other outputs of this shape.
        first += 1
    return lines


def is_single_value(edges: Floats) -> Booleans:
    """For each cell of a line but that of NaN, whether it holds one value; shape (edges + 1,)."""
    is_single = np.zeros(len(edges) + 1, dtype=np.bool_)
    if len(edges) > 1:
        is_single[1:-1] = next_float(edges[:-1]) == edges[1:]
    return is_single


def one_group(block_shape: str, n_columns: int, group: Group) -> BlockPartition:
    """All outputs of a shape as one group."""
    return BlockPartition(block_shape, (None,) * n_columns, (group,))
