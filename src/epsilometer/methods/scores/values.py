"""Outcomes as a score: labels, repeated numbers, rare shapes, and groups far from everything else.

Each outcome has a log-ratio of its own. All of them are estimated together: a normal approximation
of each, shrunk by a prior that the outcomes choose (empirical Bayes). The prior is a mixture of
normal distributions around 0, from narrow ones (hardly any outcome leaks) to wide ones (some are
released on one side only), so that a single leak among thousands of outcomes is not shrunk away.

Reference: Stephens (2017), "False discovery rates: a new deal", adaptive shrinkage.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

import numpy as np
from scipy.special import xlogy

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.methods.scores.cells import (
    FEWEST_REPEATS,
    MOST_ROWS,
    blocks_of_both,
    learn_groups,
    repeated_values,
)
from epsilometer.methods.scores.folds import FOLDS, fold_of_rows
from epsilometer.methods.scores.learned import OutcomeScore, one_group
from epsilometer.outputs import Block, BlockPartition, Group, Line, Numbers, Outputs, Partition
from epsilometer.outputs.atoms import Atoms
from epsilometer.outputs.columns import Column
from epsilometer.outputs.placing import next_float

# Standard deviations of the prior's components, in units of the log-ratio: from what a million
# draws cannot tell from 0 to what they cannot tell from a release on one side only.
_PRIOR_SCALES: Floats = np.append(0.0, np.geomspace(0.01, 10.24, 11))
# Steps of the EM algorithm for the weights of the components, after which they move little.
_EM_STEPS = 40
# A gap between two numbers splits them if it is wider than this fraction of the 10–90 % range. It
# is a candidate only, so that a split too many costs little.
_GAP_FRACTION = 0.125
# Most gaps that split numbers.
_MOST_GAPS = 64
# Values of both sides that are sorted to find gaps: more would not move them.
_SORTED_ROWS = 1 << 17


def learn_outcomes(left: Outputs, right: Outputs) -> OutcomeScore | None:
    """The score of whole outputs: shapes, and values that repeat in them.

    Args:
        left: training outputs.
        right: training outputs.

    Returns:
        None if all outputs are one outcome.
    """
    left = left.take(slice(0, MOST_ROWS))
    right = right.take(slice(0, MOST_ROWS))
    blocks = [_outcomes_of_shape(*pair) for pair in blocks_of_both(left, right)]
    partition = Partition(tuple(blocks))
    left_cells = partition.index(left)
    right_cells = partition.index(right)
    return score_outcomes(
        "values",
        partition,
        left_cells=left_cells,
        right_cells=right_cells,
        left_folds=fold_of_rows(np.arange(len(left))),
        right_folds=fold_of_rows(np.arange(len(right))),
    )


def learn_column_outcomes(
    left: Block, right: Block, columns: Sequence[int], outside: tuple[int, int]
) -> OutcomeScore | None:
    """The score of the repeated values and far groups of a column, or of values of several columns.

    Args:
        left: training outputs of one shape.
        right: training outputs of the same shape.
        columns: which of their columns.
        outside: left and right training draws of other shapes.
    """
    left_columns = tuple(left.columns[column] for column in columns)
    right_columns = tuple(right.columns[column] for column in columns)
    n_columns = len(left.columns)
    signature = (-1,) * n_columns
    if len(columns) == 1 and _are_numbers(left_columns) and _are_numbers(right_columns):
        line = line_of_outcomes(left_columns[0].values, right_columns[0].values)
        group = Group(signature, line, column=columns[0])
        block = one_group(left.shape, n_columns, group)
    else:
        only_left = Block(left.shape, left.rows, left_columns, left.size)
        only_right = Block(right.shape, right.rows, right_columns, right.size)
        narrow, _ = learn_groups(only_left, only_right)
        atoms: list[Atoms | None] = [None] * n_columns
        for column, atoms_of_column in zip(columns, narrow.atoms, strict=True):
            atoms[column] = atoms_of_column
        groups = []
        for narrow_group in narrow.groups:
            codes = list(signature)
            for column, code in zip(columns, narrow_group.signature, strict=True):
                codes[column] = code
            groups.append(Group(tuple(codes)))
        block = BlockPartition(left.shape, tuple(atoms), tuple(groups))
    return score_outcomes(
        "values of a column" if len(columns) == 1 else "values of columns",
        Partition((block,)),
        left_cells=block.index(left),
        right_cells=block.index(right),
        left_folds=fold_of_rows(left.places()),
        right_folds=fold_of_rows(right.places()),
        outside=outside,
    )


def _are_numbers(columns: Sequence[Column]) -> TypeGuard[Sequence[Numbers]]:
    return all(isinstance(column, Numbers) for column in columns)


def _outcomes_of_shape(left: Block, right: Block) -> BlockPartition:
    """The outcomes of one shape: for a number on a line, otherwise by signature."""
    if len(left.columns) == 1:
        left_column = left.columns[0]
        right_column = right.columns[0]
        if isinstance(left_column, Numbers) and isinstance(right_column, Numbers):
            line = line_of_outcomes(left_column.values, right_column.values)
            return one_group(left.shape, 1, Group((-1,), line))
    partition, _ = learn_groups(left, right)
    return partition


def line_of_outcomes(left: Array, right: Array) -> Line:
    """A line with a cell for each repeated value, cut also where no draws are over a wide gap."""
    atoms, pooled = repeated_values(left, right)
    rest = pooled[:: max(1, len(pooled) // _SORTED_ROWS)]
    rest = np.sort(rest[np.isfinite(rest)])
    if len(atoms):
        rest = rest[~np.isin(rest, atoms)]
    edges = np.concatenate([atoms, next_float(atoms), _gap_edges(rest)])
    return Line(np.unique(edges))


def _gap_edges(ordered: Floats) -> Floats:
    """The middles of wide gaps: the widest one first, then those within either part.

    Args:
        ordered: shape (n,), sorted finite values that do not repeat.
    """
    edges: list[float] = []
    parts = [ordered]
    while parts and len(edges) < _MOST_GAPS:
        part = parts.pop()
        n = len(part)
        if n < 2 * FEWEST_REPEATS:
            continue
        with np.errstate(over="ignore"):
            # Gaps with enough draws on both sides.
            gaps = np.diff(part)[FEWEST_REPEATS - 1 : n - FEWEST_REPEATS]
            widest = int(np.argmax(gaps)) + FEWEST_REPEATS
            range_of_most = part[9 * n // 10] - part[n // 10]
            # The widest of n gaps between even draws exceeds 3·ln(n)/n with probability 1/n².
            fraction = max(_GAP_FRACTION, 3.0 * np.log(n) / n)
            is_wide = part[widest] - part[widest - 1] > fraction * range_of_most
        if is_wide:
            edges.append(0.5 * part[widest - 1] + 0.5 * part[widest])
            parts += [part[:widest], part[widest:]]
    return np.sort(edges)


def score_outcomes(
    name: str,
    partition: Partition,
    *,
    left_cells: Integers,
    right_cells: Integers,
    left_folds: Integers,
    right_folds: Integers,
    outside: tuple[int, int] = (0, 0),
) -> OutcomeScore | None:
    """Scores the cells of a partition by their posterior log-ratios.

    Args:
        name: of the score.
        partition: its cells are the outcomes.
        left_cells: shape (n,), the outcome of each left training draw.
        right_cells: shape (m,), of each right one.
        left_folds: shape (n,), the fold of each left draw.
        right_folds: shape (m,), of each right one.
        outside: left and right training draws in none of the cells.

    Returns:
        None if all draws have one outcome.
    """
    n_cells = partition.n_cells
    left = _counts_by_fold(left_cells, left_folds, n_cells)
    right = _counts_by_fold(right_cells, right_folds, n_cells)
    left_total = left.sum(axis=0)
    right_total = right.sum(axis=0)
    is_filled = left_total + right_total > 0
    if np.count_nonzero(is_filled) < 2:
        return None
    # Row 0 has all draws, the others leave out one fold each.
    left_kept = np.concatenate([left_total[None], left_total - left])
    right_kept = np.concatenate([right_total[None], right_total - right])
    scores = np.zeros((1 + FOLDS, n_cells))
    scores[:, is_filled] = posterior_means(left_kept[:, is_filled], right_kept[:, is_filled])
    return OutcomeScore(
        name=name,
        left=np.repeat(scores[1:].ravel(), left.ravel()),
        right=np.repeat(scores[1:].ravel(), right.ravel()),
        ordered=np.sort(np.repeat(scores[0], left_total + right_total)),
        outside=outside,
        partition=partition,
        scores=scores[0],
        is_filled=is_filled,
    )


def _counts_by_fold(cells: Integers, folds: Integers, n_cells: int) -> Integers:
    """Draws by fold and cell, shape (folds, cells)."""
    counts = np.bincount(cells + folds * n_cells, minlength=FOLDS * n_cells)
    return counts.reshape(FOLDS, n_cells)


class _Prior(NamedTuple):
    """A mixture of normal distributions around 0.

    Attributes:
        variances: shape (components,).
        weights: shape (components,), of sum 1.
    """

    variances: Floats
    weights: Floats


def posterior_means(left: Integers, right: Integers) -> Floats:
    """Posterior means of the log-ratios; the prior is learned from the first row.

    Args:
        left: shape (rows, outcomes), counts of the left draws.
        right: shape (rows, outcomes), of the right ones.

    Returns:
        Shape (rows, outcomes).
    """
    n_left = np.maximum(left.sum(axis=1, keepdims=True), 1)
    n_right = np.maximum(right.sum(axis=1, keepdims=True), 1)
    observed = np.log((left + 0.5) / n_left) - np.log((right + 0.5) / n_right)
    noise = _noise(left, right, n_left, n_right, observed)
    prior = _learn_prior(observed[0], noise[0])
    likelihood = _likelihood(observed, noise, prior.variances) * prior.weights
    responsibility = likelihood / np.maximum(likelihood.sum(axis=-1, keepdims=True), 1e-300)
    shrinkage = prior.variances / (prior.variances + noise[..., None])
    return np.asarray(observed * (responsibility * shrinkage).sum(axis=-1))


def _noise(
    left: Integers, right: Integers, n_left: Integers, n_right: Integers, observed: Floats
) -> Floats:
    """The variance of each observed log-ratio, shape (rows, outcomes).

    It is the usual one, 1/left + 1/right, or less where the likelihood falls faster towards equal
    probabilities: 90 draws against none leave no doubt, although a zero has a large variance. Then
    the variance is the one with which a normal likelihood falls as much.
    """
    usual = 1.0 / (left + 0.5) + 1.0 / (right + 0.5)
    total = left + right
    share = n_left / (n_left + n_right)
    deviance = 2.0 * (
        xlogy(left, left / np.maximum(total * share, 1e-300))
        + xlogy(right, right / np.maximum(total * (1.0 - share), 1e-300))
    )
    return np.asarray(np.minimum(usual, observed**2 / np.maximum(deviance, 1e-9) + 1e-12))


def _learn_prior(observed: Floats, noise: Floats) -> _Prior:
    """The weights of the components by the EM algorithm.

    Every component has one outcome to begin with, so that few outcomes leave the prior wide.
    """
    variances = _PRIOR_SCALES**2
    likelihood = _likelihood(observed, noise, variances)
    weights = np.full(len(variances), 1.0 / len(variances))
    for _ in range(_EM_STEPS):
        joint = likelihood * weights
        responsibility = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        weights = (responsibility.sum(axis=0) + 1.0) / (len(observed) + len(variances))
    return _Prior(variances=variances, weights=weights)


def _likelihood(observed: Floats, noise: Floats, variances: Floats) -> Floats:
    """Likelihood of each component, up to a factor per outcome; shape (..., components)."""
    total = noise[..., None] + variances
    log_likelihood = -0.5 * (np.log(total) + observed[..., None] ** 2 / total)
    return np.asarray(np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True)))
