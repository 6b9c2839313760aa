"""A score made of small trees, for leaks that only some combination of columns shows.

Half of the training draws grow one forest, the other half another one; each scores the draws that
did not grow it, and the final score is the mean of both.
"""

from collections.abc import Sequence

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.methods.scores.interactions import InteractingPair
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore, one_group
from epsilometer.methods.scores.trees import fit_trees
from epsilometer.outputs import Block, Group
from epsilometer.outputs.columns import Column
from epsilometer.outputs.scores import TreeScore

# Draws per side below which trees find nothing that simpler scores do not.
_FEWEST_ROWS = 500
# Interacting pairs of columns that trees may begin with.
_MOST_PAIRS = 4
# Draws per side that are scored to choose a tail: more would hardly move it, and trees are slow.
_MOST_ROWS = 40_000


def forest_score(
    left: Block, right: Block, pairs: Sequence[InteractingPair]
) -> ContinuousScore | None:
    """The score of a shape by trees of all of its columns.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
        pairs: of its columns that interact, the clearest first.

    Returns:
        None if there are too few draws, or if no columns interact: then trees could only
        approximate the additive score.
    """
    n_columns = len(left.columns)
    if not pairs or min(left.size, right.size) < _FEWEST_ROWS:
        return None
    clearest = [(pair.first, pair.second) for pair in pairs[:_MOST_PAIRS]]
    left_halves = _halves(left)
    right_halves = _halves(right)
    forests = [
        fit_trees(one, other, range(n_columns), pairs=clearest)
        for one, other in zip(left_halves, right_halves, strict=True)
    ]
    # Each half is scored by the forest of the other one.
    left_scores = [forests[1 - half].evaluate(_first(left_halves[half])) for half in (0, 1)]
    right_scores = [forests[1 - half].evaluate(_first(right_halves[half])) for half in (0, 1)]
    score = _mean(forests)
    final: list[Floats] = []
    for half in (0, 1):
        own_left = forests[half].evaluate(_first(left_halves[half]))
        own_right = forests[half].evaluate(_first(right_halves[half]))
        final.append(0.5 * (own_left + left_scores[half]))
        final.append(0.5 * (own_right + right_scores[half]))
    group = Group((-1,) * n_columns, score=score)
    partition = one_group(left.shape, n_columns, group)
    return ContinuousScore(
        name="trees",
        left=_interleaved(*left_scores),
        right=_interleaved(*right_scores),
        ordered=np.sort(np.concatenate(final)),
        shapes=[ShapeScore(partition=partition, offsets=np.zeros(1))],
    )


def _halves(block: Block) -> list[Block]:
    """The even and the odd rows of a block."""
    halves = []
    for start in (0, 1):
        rows = slice(start, None, 2)
        columns = tuple(column.take(rows) for column in block.columns)
        halves.append(Block(block.shape, None, columns, len(range(start, block.size, 2))))
    return halves


def _interleaved(even: Floats, odd: Floats) -> Floats:
    """The scores of even and odd rows in the order of the rows."""
    scores = np.empty(len(even) + len(odd))
    scores[0::2] = even
    scores[1::2] = odd
    return scores


def _first(block: Block) -> Sequence[Column]:
    """The columns of the first rows."""
    return [column.take(slice(0, _MOST_ROWS // 2)) for column in block.columns]


def _mean(forests: Sequence[TreeScore]) -> TreeScore:
    """The mean of two forests."""
    one, other = forests
    return TreeScore(
        codings=(*one.codings, *other.codings),
        features=np.concatenate([one.features, other.features + len(one.codings)]),
        thresholds=np.concatenate([one.thresholds, other.thresholds]),
        leaves=0.5 * np.concatenate([one.leaves, other.leaves]),
    )
