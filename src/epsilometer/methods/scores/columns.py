"""Each column of structured outputs alone, as if the others did not exist.

A part that occurs in several shapes (a field beside a list of any length) is one column: its values
in all of these shapes together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.forecast import selection_penalty
from epsilometer.methods.scores.by_shape import additive_score
from epsilometer.methods.scores.cells import ColumnView, cut_columns, first_rows
from epsilometer.methods.scores.learned import (
    ContinuousScore,
    LearnedScore,
    OutcomeScore,
    ShapeScore,
    one_group,
)
from epsilometer.methods.scores.line import line_scores
from epsilometer.methods.scores.values import learn_column_outcomes
from epsilometer.outputs import Block, BlockPartition, Group, Numbers, Outputs, Partition
from epsilometer.outputs.columns import concatenate_columns
from epsilometer.outputs.scores import AdditiveScore
from epsilometer.outputs.shapes import leaves_of

# Columns that become candidates: those in which the sides differ most. More would cost time, and
# one of them is nearly always enough.
_MOST_COLUMNS = 3
# Draws per side of a column that decide which columns these are.
_SCREENING_ROWS = 1 << 13
# Draws per side that learn a function of a column.
_MOST_ROWS = 1 << 15
# Columns that are screened, the first ones.
_MOST_SCREENED = 256


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of outputs: one column of one shape, or of several shapes.

    Attributes:
        places: for each shape that has it, the shape, its number of columns, and which of them.
        left: the values in all left outputs, as outputs of one column.
        right: the values in all right outputs.
    """

    places: tuple[tuple[str, int, int], ...]
    left: Block
    right: Block


def column_scores(
    left: Outputs, right: Outputs, pairs: Sequence[tuple[Block, Block]]
) -> list[LearnedScore]:
    """The scores of the columns in which the sides differ most.

    Args:
        left: training outputs.
        right: training outputs.
        pairs: the same by shape.
    """
    screened = []
    for part in _parts_of(pairs)[:_MOST_SCREENED]:
        difference = _difference(part)
        if difference is not None:
            screened.append((difference, part))
    best = sorted(screened, key=lambda item: -item[0])[:_MOST_COLUMNS]
    scores: list[LearnedScore] = []
    for _, part in best:
        outside = (len(left) - part.left.size, len(right) - part.right.size)
        scores += [_in_shapes(score, part) for score in _scores_of_part(part, outside)]
    return [replace(score, n_rivals=len(screened) // max(len(best), 1)) for score in scores]


def _parts_of(pairs: Sequence[tuple[Block, Block]]) -> list[_Part]:
    """All parts of outputs, in the order of the most frequent shapes."""
    by_name: dict[tuple[str, bool], list[tuple[Block, Block, int]]] = {}
    for left, right in sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size):
        names = [leaf.path for leaf in leaves_of(left.shape) for _ in range(leaf.n_columns)]
        has_names = len(set(names)) == len(names) == len(left.columns)
        for column in range(len(left.columns)):
            # Where names are not known, or two columns share one, a shape has its own parts.
            name = names[column] if has_names else f"{left.shape} {column}"
            is_number = isinstance(left.columns[column], Numbers)
            by_name.setdefault((name, is_number), []).append((left, right, column))
    return [
        _Part(
            places=tuple(
                (left.shape, len(left.columns), column) for left, _, column in occurrences
            ),
            left=_pooled([(left, column) for left, _, column in occurrences]),
            right=_pooled([(right, column) for _, right, column in occurrences]),
        )
        for occurrences in by_name.values()
    ]


def _pooled(occurrences: Sequence[tuple[Block, int]]) -> Block:
    """The values of a part in all shapes as outputs of one column."""
    column = concatenate_columns([block.columns[place] for block, place in occurrences])
    rows = np.concatenate([block.places() for block, _ in occurrences])
    return Block("part", rows, (column,), len(rows))


def _scores_of_part(part: _Part, outside: tuple[int, int]) -> list[LearnedScore]:
    """The scores of single values: a number, its distance, a function of it, its outcomes."""
    scores: list[LearnedScore] = [*line_scores(part.left, part.right, 0, outside)]
    if scores:
        left = first_rows(part.left, _MOST_ROWS)
        right = first_rows(part.right, _MOST_ROWS)
        function = additive_score("function", [(left, right)])
        scaled = (
            outside[0] * left.size // max(part.left.size, 1),
            outside[1] * right.size // max(part.right.size, 1),
        )
        scores.append(replace(function, outside=scaled))
    outcomes = learn_column_outcomes(part.left, part.right, 0, outside)
    return scores if outcomes is None else [*scores, outcomes]


def _in_shapes(score: LearnedScore, part: _Part) -> LearnedScore:
    """A score of a part as one of the shapes that have it."""
    if isinstance(score, ContinuousScore):
        (shape,) = score.shapes
        shapes = [
            ShapeScore(_block_in_shape(shape.partition, *place), shape.offsets)
            for place in part.places
        ]
        return replace(score, shapes=shapes)
    assert isinstance(score, OutcomeScore)
    (block,) = score.partition.blocks
    blocks = tuple(_block_in_shape(block, *place) for place in part.places)
    # The last cell is that of unknown shapes.
    return replace(
        score,
        partition=Partition(blocks),
        scores=np.append(np.tile(score.scores[:-1], len(blocks)), 0.0),
        is_filled=np.append(np.tile(score.is_filled[:-1], len(blocks)), False),
    )


def _block_in_shape(
    block: BlockPartition, shape: str, n_columns: int, column: int
) -> BlockPartition:
    """Cells of a single column as cells of a shape that has more columns."""
    groups = []
    for group in block.groups:
        signature = [-1] * n_columns
        signature[column] = group.signature[0]
        score = group.score
        if isinstance(score, AdditiveScore):
            terms = tuple(replace(term, column=column) for term in score.terms)
            score = AdditiveScore(terms)
        groups.append(Group(tuple(signature), group.line, column=column, score=score))
    atoms = tuple(block.atoms[0] if place == column else None for place in range(n_columns))
    if not block.groups:
        return one_group(shape, n_columns, Group((-1,) * n_columns))
    return BlockPartition(shape, atoms, tuple(groups))


def _difference(part: _Part) -> float | None:
    """How much the sides differ in a part: in all cells together, or in a single one.

    Returns:
        The larger of two statistics in standard deviations; None if the part does not vary.
    """
    left = first_rows(part.left, _SCREENING_ROWS)
    right = first_rows(part.right, _SCREENING_ROWS)
    cuts = cut_columns(left, right, [ColumnView(0, None)], n_columns=2)
    if not cuts:
        return None
    (cut,) = cuts
    left_counts = np.bincount(cut.index(left.columns), minlength=cut.size)
    right_counts = np.bincount(cut.index(right.columns), minlength=cut.size)
    by_cell = _deviances(left_counts, right_counts, max(left.size, 1), max(right.size, 1))
    # A sum of k deviances is about k − 1 by chance, with the variance 2·(k − 1).
    together = (float(by_cell.sum()) - (cut.size - 1)) / np.sqrt(2.0 * (cut.size - 1))
    single = float(np.sqrt(by_cell.max())) - selection_penalty(cut.size)
    return max(float(together), single)


def _deviances(left: Integers, right: Integers, n_left: int, n_right: int) -> Floats:
    """The deviance of equal probabilities in each cell, shape (cells,)."""
    total = left + right
    share = n_left / (n_left + n_right)
    return np.asarray(
        2.0
        * (
            xlogy(left, left / np.maximum(total * share, 1e-300))
            + xlogy(right, right / np.maximum(total * (1.0 - share), 1e-300))
        )
    )
