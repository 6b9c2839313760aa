"""Learns all scores that suit some outputs."""

from collections.abc import Sequence

from epsilometer.environment import one_thread
from epsilometer.methods.curves import Sliced, separation_evidence
from epsilometer.methods.scores.by_shape import additive_score
from epsilometer.methods.scores.cells import blocks_of_both, first_rows
from epsilometer.methods.scores.columns import column_scores
from epsilometer.methods.scores.elements import elements_score
from epsilometer.methods.scores.equality import equality_scores
from epsilometer.methods.scores.features import FeatureScore, features_only, has_features
from epsilometer.methods.scores.forest import forest_score
from epsilometer.methods.scores.interactions import interacting_pairs, pair_outcomes
from epsilometer.methods.scores.joint import joint_scores
from epsilometer.methods.scores.learned import LearnedScore
from epsilometer.methods.scores.line import FEWEST_DRAWS, line_scores
from epsilometer.methods.scores.long_numbers import line_of_long_numbers
from epsilometer.methods.scores.pooled import Pool, pools_of
from epsilometer.methods.scores.rotation import has_correlated_columns
from epsilometer.methods.scores.stacked import stacked_score
from epsilometer.methods.scores.summaries import summary_scores
from epsilometer.methods.scores.values import learn_outcomes
from epsilometer.outputs import Block, Outputs
from epsilometer.outputs.shapes import is_long_number

# Draws per side that learn a function of a single value, of at most 48 intervals: more would move
# it by less than a curve along it is wrong.
_MOST_ROWS = 1 << 15


def learn_scores(left: Outputs, right: Outputs) -> list[LearnedScore]:
    """Learns all scores that suit some outputs.

    Args:
        left: training outputs.
        right: training outputs.
    """
    scores = _learn_all(left, right)
    if has_features((left, right)):
        n_columns = {block.shape: len(block.columns) for block in (*left.blocks, *right.blocks)}
        narrow = _learn_all(features_only(left), features_only(right))
        scores += [FeatureScore.of(score, n_columns) for score in narrow]
    # A column that only one input has separates nothing along it: its shape does, as an outcome.
    return [score for score in scores if len(score.left) and len(score.right)]


def _learn_all(left: Outputs, right: Outputs) -> list[LearnedScore]:
    """All scores of all columns."""
    pairs = blocks_of_both(left, right)
    scores: list[LearnedScore] = []
    outcomes = learn_outcomes(left, right)
    if outcomes is not None:
        scores.append(outcomes)
    if min(len(left), len(right)) < FEWEST_DRAWS:
        return scores
    with one_thread():
        if len(pairs) == 1 and _is_single_value(pairs[0][0]):
            return [*scores, *_scores_of_single_values(*pairs[0])]
        if any(left_block.columns for left_block, _ in pairs):
            scores += _scores_of_structures(left, right, pairs)
    return scores


def _is_single_value(block: Block) -> bool:
    """Whether outputs of this shape are one number or label each."""
    return len(block.columns) == 1 or is_long_number(block.shape)


def _scores_of_single_values(left: Block, right: Block) -> list[LearnedScore]:
    """Scores of single numbers or labels beside their outcomes."""
    if is_long_number(left.shape):
        column = line_of_long_numbers(left, right)
        return [] if column is None else [*line_scores(left, right, column, outside=(0, 0))]
    return [
        *line_scores(left, right, 0, outside=(0, 0)),
        additive_score("function", [(first_rows(left, _MOST_ROWS), first_rows(right, _MOST_ROWS))]),
    ]


def _scores_of_structures(
    left: Outputs, right: Outputs, pairs: Sequence[tuple[Block, Block]]
) -> list[LearnedScore]:
    """Scores of outputs with several columns or shapes beside their outcomes."""
    scores: list[LearnedScore] = []
    if len(pairs) > 1:
        additive = additive_score("additive", pairs)
        elements = elements_score(pairs, len(left), len(right))
        # The same model, with weights of each shape's own or shared by all: the draws decide.
        is_shared = elements is not None and _evidence(elements) > _evidence(additive)
        scores.append(elements if elements is not None and is_shared else additive)
    n_draws = (len(left), len(right))
    for pool in pools_of(pairs):
        scores += _fitted_scores(pool, n_draws)
    return [*scores, *column_scores(pairs, n_draws)]


def _evidence(score: LearnedScore) -> float:
    """Log-evidence that the sides differ along the cross-fitted scores."""
    return separation_evidence(Sliced.of(score.left, score.right))


def _fitted_scores(pool: Pool, n_draws: tuple[int, int]) -> list[LearnedScore]:
    """The scores of all columns of a pool.

    Args:
        pool: outputs of one or several shapes.
        n_draws: left and right training draws of all shapes.
    """
    left = pool.left
    right = pool.right
    if min(left.size, right.size) < FEWEST_DRAWS:
        return []
    additive = additive_score("additive", [(left, right)])
    scores = [additive]
    if has_correlated_columns(left, right):
        scores.append(additive_score("decorrelated", [(left, right)], decorrelate=True))
    joint = joint_scores(left, right)
    scores += joint
    scores += equality_scores(left, right)
    pairs = interacting_pairs(left, right, additive.left, additive.right)
    forest = forest_score(left, right, pairs)
    if forest is not None:
        scores.append(forest)
    odds = pool.shape_odds()
    stacked = stacked_score(left, right, scores, odds)
    # Norms of standardised columns say what mean squares and largest values would.
    scores += summary_scores(left, right, has_norms=bool(joint))
    learned = [*scores, *pair_outcomes(left, right, pairs)]
    scattered = [pool.scattered(score, n_draws) for score in learned]
    if stacked is not None:
        offsets = None if odds is None else stacked.weight_of_shape * odds.of_shapes
        scattered.append(pool.scattered(stacked.score, n_draws, offsets))
    return scattered
