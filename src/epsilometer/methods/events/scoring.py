"""Fits an additive score to outputs of several columns: a logistic model with a weight per cell of each column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from epsilometer.methods.events.cells import learn_line
from epsilometer.methods.threads import one_thread
from epsilometer.outputs import Block, Numbers
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.columns import Labels
from epsilometer.outputs.scores import AdditiveScore, Term

Floats = NDArray[np.float64]

# Cells per column: enough to follow a log-ratio, few enough to estimate (measured on 5-dimensional Laplace).
MOST_BINS = 32
# Names per column that get a weight of their own.
_MOST_NAMES = 1024
# Ridge penalty per weight: about what one doubtful draw per cell would say.
_RIDGE = 2.0
# The fit sees at most so many draws of each side; more changes little and costs time.
_MOST_ROWS = 200_000
# Enough steps for the likelihood to stop changing in the fourth digit.
_STEPS = 60


def fit_score(left: Block, right: Block, columns: Sequence[int]) -> AdditiveScore:
    """An additive model of ln(P/Q) on the given columns.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns vary.
    """
    left, right = _head(left), _head(right)
    blank = [_blank_term(left, right, column) for column in columns]
    cells = [np.concatenate([term.index(left.columns), term.index(right.columns)]) for term in blank]
    sizes = [len(term.weights) for term in blank]
    weights = _logistic(cells, sizes, left.size, right.size)
    return AdditiveScore(tuple(Term(term.column, term.cells, part) for term, part in zip(blank, weights, strict=True)))


def _head(block: Block) -> Block:
    if block.size <= _MOST_ROWS:
        return block
    first = slice(0, _MOST_ROWS)
    return Block(block.shape, None, tuple(column.take(first) for column in block.columns), _MOST_ROWS)


def _blank_term(left: Block, right: Block, number: int) -> Term:
    a, b = left.columns[number], right.columns[number]
    if isinstance(a, Numbers) and isinstance(b, Numbers):
        line = learn_line(a.values, b.values, most_bins=MOST_BINS)
        return Term(number, line, np.zeros(line.n_cells))
    labels = [label for side in (a, b) if isinstance(side, Labels) for label in side.labels]
    names = LabelAtoms(tuple(dict.fromkeys(labels))[:_MOST_NAMES])
    return Term(number, names, np.zeros(len(names.labels) + 1))


def _logistic(cells: Sequence[NDArray[np.int64]], sizes: Sequence[int], n_left: int, n_right: int) -> list[Floats]:
    """Ridge logistic regression on one-hot cells, by L-BFGS on look-ups and weighted counts."""
    from scipy.optimize import minimize  # only vector outputs need it

    is_left = np.concatenate([np.ones(n_left), np.zeros(n_right)])
    # Both sides weigh the same whatever their sizes, so the score is a log-ratio of the laws.
    weight = np.concatenate([np.full(n_left, 0.5 / max(n_left, 1)), np.full(n_right, 0.5 / max(n_right, 1))])
    scale = n_left + n_right
    starts = np.cumsum([0, *sizes])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logit = np.zeros(scale)
        for start, index in zip(starts, cells, strict=False):
            logit += parameters[start + index]
        error = weight * (1.0 / (1.0 + np.exp(-np.clip(logit, -700, 700))) - is_left)
        gradient = np.concatenate(
            [np.bincount(index, error, minlength=size) for index, size in zip(cells, sizes, strict=True)]
        )
        value = float(weight @ (np.logaddexp(0.0, logit) - is_left * logit))
        ridge = _RIDGE / scale
        return value + 0.5 * ridge * float(parameters @ parameters), gradient + ridge * parameters

    with one_thread():
        fitted = minimize(loss, np.zeros(starts[-1]), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return [fitted.x[start:stop] for start, stop in pairwise(starts)]
