"""Additive scores of outputs with several columns: a weight for each cell of each column.

Where two distributions are close, what counts is how few numbers the log-ratio is estimated with.
So the weights of all cells of all columns are estimated together, as the mean of a Gaussian
posterior whose prior the draws choose (empirical Bayes): each column may have a function of its
own, all may share one, neighbouring cells are alike. Every training draw is scored by weights that
were fitted without it, so that the same draws can place the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.environment import one_thread
from epsilometer.methods.scores.cells import Cells, ColumnCells, ProductCells, cut_columns
from epsilometer.methods.scores.folds import FOLDS, fold_of_rows
from epsilometer.outputs import Block, Line
from epsilometer.outputs.scores import AdditiveScore, Term

# The rows of each fold.
FoldRows = Sequence[Integers]
# The columns of a score, then interactions of them.
Cuts = Sequence[ColumnCells | ProductCells]

_ALL_ROWS = slice(None)
# Draws per side that estimate the covariance of the cells: more would not move it.
GRAM_ROWS = 30_000
# With fewer cells per column than this, products of matrices count pairs of cells faster.
_FEW_CELLS = 5
# Rows per product of matrices, which bounds the memory.
_ROWS_AT_ONCE = 4096
# Weights that are estimated together; with more, columns are taken as independent.
MOST_WEIGHTS = 512
# Most steps of the iteration for the prior's variances: SVT3 and LaplaceParallel converge within 8
# steps, 0.1 short of their final log-likelihood.
_VARIANCE_STEPS = 15
# The iteration ends when the effective number of explained directions changes by less than this.
_VARIANCE_TOLERANCE = 0.5
# A part of the prior that explains less than this fraction of one direction is dropped.
_LEAST_EXPLAINED = 1e-3
# If the ranges of the weights of all columns add up to more than this, the distributions differ too
# much for the linearised posterior; it is refined by Newton's method.
_MOST_LINEAR_RANGE = 1.2


# --- The prior ---

# How fast the correlation between two cells of a column falls with the distance of their ranks,
# which lie between 0 and 1. This one is for intervals if point masses are independent.
_INTERVAL_DECAY = 2.0
# For point masses that are correlated by rank.
_ATOM_DECAY = 3.0
# For intervals beside such point masses.
_INTERVAL_DECAY_BESIDE_ATOMS = 0.3
# With more point masses than this, their order may matter.
_MANY_ATOMS = 4
# For a function that all columns share: smooth, and nearly level.
_SHARED_DECAYS = (2.0, 0.1)
# How fast the shared function changes from the first to the last column.
_DRIFT_DECAY = 2.0
# Ranks run from 0 to 1; cells on the same side of this one are in the same half.
_MIDDLE_RANK = 0.5
# With fewer columns than this there is no shared function.
_FEWEST_TO_SHARE = 3


def _ranks(n: int) -> Floats:
    """The middles of n equal parts of the unit interval."""
    return (np.arange(n) + 0.5) / max(n, 1)


def _correlation(n: int, decay: float) -> Floats:
    """Correlation of a smooth function at the ranks of n cells, shape (n, n)."""
    return np.exp(-decay * np.abs(_ranks(n)[:, None] - _ranks(n)))


@dataclass(frozen=True, slots=True)
class PriorPart:
    """A part of the prior's covariance: zero outside a square block.

    Attributes:
        place: the weights that it concerns.
        kernel: shape (k, k), the block, up to a variance that the draws choose.
    """

    place: slice
    kernel: Floats


def _column_parts(cuts: Cuts, starts: Integers) -> list[PriorPart]:
    """The prior in which each column has a function of its own.

    In an interaction, the other column has a function for each known value of the key. These are
    either independent (at the last position of a sparse vector, one of them is the opposite of all
    others) or grow along the values (each answer "below" multiplies the odds; svt3 at 1e4 draws:
    0.82 of the oracle, 0.69 without).

    Args:
        cuts: the columns and interactions.
        starts: shape (cuts + 1,), where the weights of each begin.
    """
    parts = []
    for cut, start in zip(cuts, starts.tolist(), strict=False):
        if isinstance(cut, ColumnCells):
            place = slice(start, start + cut.size)
            parts += [PriorPart(place, kernel) for kernel in column_kernels(cut)]
            continue
        # Labels have no order; numbers that repeat are alike if they are near each other.
        is_ordered = isinstance(cut.other.term.cells, Line)
        kernel = column_kernels(cut.other)[-1 if is_ordered else 0]
        n_values = len(cut.key.known)
        ends = (start + cut.other.size * np.arange(n_values + 1)).tolist()
        for first, last in pairwise(ends):
            parts.append(PriorPart(slice(first, last), kernel))
        growth = np.outer(_ranks(n_values), _ranks(n_values))
        parts.append(PriorPart(slice(start, ends[-1]), np.asarray(np.kron(growth, kernel))))
    return parts


def column_kernels(cut: ColumnCells) -> list[Floats]:
    """Kernels of one column: smooth for intervals, and for point masses independent.

    A second kernel correlates the point masses by rank if there are more than `_MANY_ATOMS`.
    """
    n_atoms = len(cut.atoms)
    n_intervals = cut.size - n_atoms
    independent = np.zeros((cut.size, cut.size))
    independent[:n_atoms, :n_atoms] = np.eye(n_atoms)
    independent[n_atoms:, n_atoms:] = _correlation(n_intervals, _INTERVAL_DECAY)
    if n_atoms <= _MANY_ATOMS:
        return [independent]
    by_rank = np.zeros((cut.size, cut.size))
    by_rank[:n_atoms, :n_atoms] = _correlation(n_atoms, _ATOM_DECAY)
    by_rank[n_atoms:, n_atoms:] = _correlation(n_intervals, _INTERVAL_DECAY_BESIDE_ATOMS)
    return [independent, by_rank]


def _shared_parts(cuts: Cuts, starts: Integers) -> list[PriorPart]:
    """The prior in which all columns share one function, which may drift from column to column.

    The function is smooth, nearly level, a step in the middle, or has a value per point mass.
    """
    columns = [cut for cut in cuts if isinstance(cut, ColumnCells)]
    if len(columns) < _FEWEST_TO_SHARE:
        return []
    # For each weight: whether it is that of a point mass, which one, and the rank of an interval.
    is_atom_of_columns = []
    rank_of_columns = []
    atom_of_columns = []
    number_of_atom: dict[object, int] = {}
    for column in columns:
        n_atoms = len(column.atoms)
        n_intervals = column.size - n_atoms
        numbers = [number_of_atom.setdefault(atom, len(number_of_atom)) for atom in column.atoms]
        is_atom_of_columns.append(np.arange(column.size) < n_atoms)
        rank_of_columns.append(np.concatenate([np.zeros(n_atoms), _ranks(n_intervals)]))
        atom_of_columns.append(np.array([*numbers, *[-1] * n_intervals]))
    is_atom = np.concatenate(is_atom_of_columns)
    rank = np.concatenate(rank_of_columns)
    atom = np.concatenate(atom_of_columns)

    distance = np.abs(np.subtract.outer(rank, rank))
    both_intervals = np.logical_and.outer(~is_atom, ~is_atom)
    both_atoms = np.logical_and.outer(is_atom, is_atom)
    same_half = np.equal.outer(rank > _MIDDLE_RANK, rank > _MIDDLE_RANK)
    kernels = [both_intervals * np.exp(-decay * distance) for decay in _SHARED_DECAYS]
    kernels.append(both_intervals * same_half)
    kernels.append(both_atoms * np.equal.outer(atom, atom))

    sizes = np.diff(starts[: len(columns) + 1])
    number = np.arange(len(columns))
    drift = np.exp(-_DRIFT_DECAY * np.abs(np.subtract.outer(number, number)) / len(columns))
    drift = np.repeat(np.repeat(drift, sizes, axis=0), sizes, axis=1)
    everywhere = slice(0, len(rank))
    return [PriorPart(everywhere, kernel * drift) for kernel in kernels if kernel.any()]


# --- The posterior ---


@dataclass(frozen=True, slots=True)
class _CellCounts:
    """How often the cells were filled in each fold.

    Attributes:
        left: shape (folds, weights).
        right: shape (folds, weights).
        n_left: shape (folds,), left draws per fold.
        n_right: shape (folds,), right draws per fold.
    """

    left: Floats
    right: Floats
    n_left: Integers
    n_right: Integers

    def difference(self, folds: Booleans) -> Floats:
        """Left minus right frequencies of the cells over the given folds, shape (weights,)."""
        left = self.left[folds].sum(axis=0)
        right = self.right[folds].sum(axis=0)
        n_left = max(self.n_left[folds].sum(), 1)
        n_right = max(self.n_right[folds].sum(), 1)
        return np.asarray(left / n_left - right / n_right)

    def noise(self, folds: Booleans) -> float:
        """The variance of a difference of frequencies, in units of the variance of one draw."""
        n_left = max(int(self.n_left[folds].sum()), 1)
        n_right = max(int(self.n_right[folds].sum()), 1)
        return 1.0 / n_left + 1.0 / n_right


def _co_occurrences(
    cells: Sequence[Cells], starts: Integers, weight: Floats | None = None
) -> Floats:
    """How often, or with which total weight, one draw fills both of two cells.

    Args:
        cells: for each column the cell of every draw, shape (n,).
        starts: shape (columns + 1,), where the weights of each column begin.
        weight: shape (n,), of the draws.

    Returns:
        Shape (weights, weights).
    """
    if starts[-1] < _FEW_CELLS * len(cells):
        return _co_occurrences_by_products(cells, starts, weight)
    tables = np.zeros((starts[-1], starts[-1]))
    sizes = np.diff(starts)
    spans = [slice(start, stop) for start, stop in pairwise(starts.tolist())]
    for i, row_cells in enumerate(cells):
        counts = np.bincount(row_cells, weight, minlength=sizes[i])
        tables[spans[i], spans[i]] = np.diag(counts)
        for j in range(i):
            pair_of_cells = row_cells * np.int32(sizes[j]) + cells[j]
            counts = np.bincount(pair_of_cells, weight, minlength=sizes[i] * sizes[j])
            tables[spans[i], spans[j]] = counts.reshape(sizes[i], sizes[j])
            tables[spans[j], spans[i]] = tables[spans[i], spans[j]].T
    return tables


def _co_occurrences_by_products(
    cells: Sequence[Cells], starts: Integers, weight: Floats | None
) -> Floats:
    """The same by products of matrices: faster for many columns of few cells each.

    Indicators of the first cell of a column are not stored, because they follow from those of its
    other cells (128 bits: 0.1 s instead of 4 s).
    """
    n_weights = starts[-1]
    # Row 0 of the reduced table stands for all draws; first cells point there, too.
    stored = np.setdiff1d(np.arange(n_weights), starts)
    row_of_weight = np.zeros(n_weights, dtype=np.int64)
    row_of_weight[stored] = np.arange(1, len(stored) + 1)
    reduced = np.zeros((len(stored) + 1, len(stored) + 1))
    n_draws = len(cells[0])
    for begin in range(0, n_draws, _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        indicators = np.zeros((len(reduced), len(cells[0][rows])), dtype=np.float32)
        indicators[0] = 1.0
        draw = np.arange(indicators.shape[1])
        for start, index in zip(starts.tolist(), cells, strict=False):
            indicators[row_of_weight[start:][index[rows]], draw] = 1.0
        if weight is None:
            reduced += indicators @ indicators.T
        else:
            reduced += (indicators * weight[rows]) @ indicators.T
    # Each first cell is all draws less those in the other cells of its column.
    expand = np.zeros((n_weights, len(reduced)))
    expand[stored, row_of_weight[stored]] = 1.0
    expand[starts[:-1], 0] = 1.0
    for start, stop in pairwise(starts.tolist()):
        expand[start, row_of_weight[start + 1 : stop]] = -1.0
    return np.asarray(expand @ reduced @ expand.T)


class _FittedPrior(NamedTuple):
    """A prior covariance, shape (weights, weights), and how well it explains the draws."""

    criterion: float
    covariance: Floats


class Posterior:
    """The posterior of the weights, given differences of cell frequencies.

    For close distributions a difference d is distributed as N(G·w, noise·G), where w are the
    weights and G is the covariance of the cell indicators. Whitened by the eigenvectors of G it is
    z = A·w + noise.

    Attributes:
        prior: shape (weights, weights), the prior covariance that the draws chose.
    """

    def __init__(
        self,
        gram: Floats,
        column_parts: list[PriorPart],
        shared_parts: list[PriorPart],
        difference: Floats,
        noise: float,
    ) -> None:
        """Chooses the prior.

        Args:
            gram: shape (weights, weights), G.
            column_parts: of the prior in which columns have functions of their own.
            shared_parts: of the prior in which they share one.
            difference: shape (weights,), d from all draws.
            noise: of that difference.
        """
        values, vectors = np.linalg.eigh(gram)
        is_positive = values > 1e-9 * values[-1] + 1e-12
        root = np.sqrt(values[is_positive])
        self._matrix = root[:, None] * vectors[:, is_positive].T
        self._whiten = vectors[:, is_positive].T / root[:, None]
        z = self._whiten @ difference
        candidates = [column_parts]
        if shared_parts:
            candidates = [shared_parts, column_parts, [*column_parts, *shared_parts]]
        fitted = [self._fit_variances(z, parts, noise) for parts in candidates]
        self.prior = max(fitted, key=lambda prior: prior.criterion).covariance
        self._signal = self._matrix @ self.prior @ self._matrix.T

    def mean(self, difference: Floats, noise: float) -> Floats:
        """The posterior mean of the weights given a difference of frequencies, shape (weights,)."""
        covariance = self._signal + noise * np.eye(len(self._signal))
        z = self._whiten @ difference
        return np.asarray(self.prior @ (self._matrix.T @ np.linalg.solve(covariance, z)))

    def _fit_variances(self, z: Floats, parts: list[PriorPart], noise: float) -> _FittedPrior:
        """The variances of the parts with the highest likelihood.

        MacKay's iteration: a variance is multiplied by what its part explains, divided by what it
        would explain by chance.

        Args:
            z: shape (directions,), the whitened difference.
            parts: of the prior's covariance.
            noise: the variance of each direction without a signal.

        Returns:
            The criterion is the log-likelihood less 1 for each part in use (Akaike).
        """
        matrix = self._matrix
        places = [part.place for part in parts]
        images = [matrix[:, part.place] @ part.kernel for part in parts]

        def traces(other: Floats) -> Floats:
            """Traces of A·kernel·otherᵀ, shape (parts,)."""
            return np.array(
                [
                    np.sum(image * other[:, place])
                    for image, place in zip(images, places, strict=True)
                ]
            )

        signal = max(z @ z - noise * len(z), noise)
        variances = signal / np.maximum(traces(matrix), 1e-300) / len(parts)
        for _ in range(_VARIANCE_STEPS):
            mixture = np.zeros_like(matrix)
            for variance, image, place in zip(variances, images, places, strict=True):
                if variance:
                    mixture[:, place] += variance * image
            inverse = np.linalg.inv(noise * np.eye(len(z)) + mixture @ matrix.T)
            solved = inverse @ matrix
            y = inverse @ z
            explained = np.array(
                [
                    (y @ image) @ (z @ solved[:, place])
                    for image, place in zip(images, places, strict=True)
                ]
            )
            by_chance = traces(solved)
            updated = variances * np.maximum(explained, 0.0) / np.maximum(by_chance, 1e-300)
            updated[updated * by_chance < _LEAST_EXPLAINED] = 0.0
            if np.abs(updated - variances) @ by_chance < _VARIANCE_TOLERANCE:
                break
            variances = updated
        log_likelihood = 0.5 * (np.linalg.slogdet(inverse)[1] - z @ y)
        n_weights = matrix.shape[1]
        covariance = np.zeros((n_weights, n_weights))
        for part, variance in zip(parts, variances, strict=True):
            covariance[part.place, part.place] += variance * part.kernel
        return _FittedPrior(
            criterion=float(log_likelihood - np.count_nonzero(variances)),
            covariance=covariance,
        )


# --- The fit ---


@dataclass(frozen=True, slots=True)
class Side:
    """The training draws of one side and one shape.

    Attributes:
        cells: for each column the cell of every draw, shape (n,).
        folds: the rows of each fold.
    """

    cells: list[Cells]
    folds: FoldRows

    @classmethod
    def of(cls, cuts: Cuts, block: Block, folds: FoldRows) -> "Side":
        """Sorts the draws of a block into cells."""
        return cls(cells=[cut.index(block.columns) for cut in cuts], folds=folds)

    def __len__(self) -> int:
        return len(self.cells[0])

    def sizes(self) -> Integers:
        """Draws per fold, shape (folds,)."""
        return np.array([len(rows) for rows in self.folds])

    def sums(self, starts: Integers, weight: Floats | None = None) -> Floats:
        """Draws, or their total weights, by fold and cell; shape (folds, weights)."""
        sums = np.zeros((FOLDS, starts[-1]))
        fold_of_row = np.empty(len(self), dtype=np.int32)
        for number, rows in enumerate(self.folds):
            fold_of_row[rows] = number
        for index, (start, stop) in zip(self.cells, pairwise(starts.tolist()), strict=True):
            size = stop - start
            counts = np.bincount(
                index + fold_of_row * np.int32(size), weight, minlength=FOLDS * size
            )
            sums[:, start:stop] = counts.reshape(FOLDS, size)
        return sums

    def score(
        self, starts: Integers, weights: Floats, rows: slice | Integers = _ALL_ROWS
    ) -> Floats:
        """The sum of each draw's weights, shape (rows,)."""
        total: Floats = weights[self.cells[0][rows]]
        for start, index in zip(starts[1:-1].tolist(), self.cells[1:], strict=True):
            total += weights[start:][index[rows]]
        return total

    def left_out(self, starts: Integers, weights_without: Sequence[Floats]) -> Floats:
        """The score of each draw by the weights that were fitted without its fold, shape (n,)."""
        total = np.zeros(len(self))
        for rows, weights in zip(self.folds, weights_without, strict=True):
            total[rows] = self.score(starts, weights, rows)
        return total


def folds_of(block: Block) -> FoldRows:
    """The rows of each fold: every fifth of all draws, independently of their shapes."""
    fold_of_row = fold_of_rows(block.places())
    return tuple(np.flatnonzero(fold_of_row == fold) for fold in range(FOLDS))


def starts_of(cuts: Cuts) -> Integers:
    """Where the weights of each column begin, and where the last ones end; shape (cuts + 1,)."""
    return np.cumsum([0, *(cut.size for cut in cuts)])


def fit(cuts: Cuts, left: Side, right: Side) -> Floats:
    """Fits the weights of all cells: to all draws, and to all but each fold.

    Returns:
        Shape (1 + folds, weights).
    """
    starts = starts_of(cuts)
    counts = _CellCounts(
        left=left.sums(starts),
        right=right.sums(starts),
        n_left=left.sizes(),
        n_right=right.sizes(),
    )
    all_folds = np.ones(FOLDS, dtype=np.bool_)
    all_but_one = [np.arange(FOLDS) != fold for fold in range(FOLDS)]
    kept_folds = [all_folds, *all_but_one]
    if starts[-1] > MOST_WEIGHTS:
        return _fit_independently(cuts, starts, counts, kept_folds)
    first_rows = _first_rows(left, right)
    frequency = _co_occurrences(first_rows, starts) / len(first_rows[0])
    gram = frequency - np.outer(np.diag(frequency), np.diag(frequency))
    posterior = Posterior(
        gram,
        column_parts=_column_parts(cuts, starts),
        shared_parts=_shared_parts(cuts, starts),
        difference=counts.difference(all_folds),
        noise=counts.noise(all_folds),
    )
    weights = np.array(
        [posterior.mean(counts.difference(kept), counts.noise(kept)) for kept in kept_folds]
    )
    ranges = (np.ptp(weights[0][start:stop]) for start, stop in pairwise(starts))
    if sum(ranges) > _MOST_LINEAR_RANGE:
        return _fit_by_newton(left, right, starts, posterior.prior, weights[0])
    return weights


def _first_rows(left: Side, right: Side) -> list[Cells]:
    """The cells of the first draws of both sides, for each column."""
    return [
        np.concatenate([left_cells[:GRAM_ROWS], right_cells[:GRAM_ROWS]])
        for left_cells, right_cells in zip(left.cells, right.cells, strict=True)
    ]


# Variances that are tried for independent columns, in units of the noise.
_INDEPENDENT_VARIANCES = np.append(0.0, np.geomspace(0.1, 1e6, 36))


class _ColumnModel(NamedTuple):
    """One column in the basis in which prior and noise are diagonal.

    Attributes:
        prior_variance: shape (cells, 1), in units of the chosen variance.
        back: shape (cells, cells), turns coordinates into weights.
        z: shape (cells, kept), the whitened difference for each choice of folds.
    """

    prior_variance: Floats
    back: Floats
    z: Floats


def _fit_independently(
    cuts: Cuts, starts: Integers, counts: _CellCounts, kept_folds: list[Booleans]
) -> Floats:
    """Fits many columns one by one.

    By likelihood, either all have functions of the same variance, or each has its own, 0 for most.

    Returns:
        Shape (kept_folds, weights).
    """
    noises = np.array([counts.noise(kept) for kept in kept_folds])
    differences = np.array([counts.difference(kept) for kept in kept_folds])
    n_left = max(counts.n_left.sum(), 1)
    n_right = max(counts.n_right.sum(), 1)
    frequencies = counts.left.sum(axis=0) / n_left + counts.right.sum(axis=0) / n_right
    variances = noises[0] * _INDEPENDENT_VARIANCES
    gains = np.zeros((len(cuts), len(variances)))
    models = []
    spans = pairwise(starts.tolist())
    for number, (cut, (start, stop)) in enumerate(zip(cuts, spans, strict=True)):
        mean = 0.5 * frequencies[start:stop]
        kernel = _column_parts([cut], np.array([0]))[0].kernel
        root = np.sqrt(mean)
        # Cells of one column have the covariance G = diag(m) − m·mᵀ. It is whitened by its square
        # root on the space where the cells add up to one.
        projection = np.eye(cut.size) - np.outer(root, root)
        values, vectors = np.linalg.eigh(projection @ (root[:, None] * kernel * root) @ projection)
        values = np.maximum(values, 0.0)
        turn = vectors.T @ projection
        z = turn @ (differences[:, start:stop] / root).T
        scale = noises[0] + variances[:, None] * values
        log_likelihood = -0.5 * (np.log(scale) + z[:, 0] ** 2 / scale).sum(axis=1)
        gains[number] = log_likelihood - log_likelihood[0]
        models.append(_ColumnModel(values[:, None], kernel * root @ turn.T, z))
    # Of many columns without a leak, the best gains about ln(columns) by chance.
    is_significant = gains.max(axis=1) > 1.0 + np.log(len(cuts))
    own_choice = np.where(is_significant, gains.argmax(axis=1), 0)
    shared_choice = int(gains.sum(axis=0).argmax())
    own_gain = gains[np.arange(len(cuts)), own_choice].sum() - np.count_nonzero(own_choice)
    shared_gain = gains[:, shared_choice].sum()
    if not own_gain > shared_gain:
        own_choice = np.full(len(cuts), shared_choice)
    weights = []
    for variance, model in zip(variances[own_choice], models, strict=True):
        posterior_mean = model.z / (noises + variance * model.prior_variance)
        weights.append(variance * model.back @ posterior_mean)
    return np.concatenate(weights).T


# Steps of Newton's method for the logistic posterior.
_NEWTON_STEPS = 6
# A step is halved until the loss falls, down to this fraction of it.
_SHORTEST_STEP = 1e-3
# The iteration ends when a step lowers the loss, a negative log-likelihood, by less than this.
_LEAST_IMPROVEMENT = 0.01
# Logits are clipped to ± this: no number of draws distinguishes larger ones.
_MAX_ABS_LOGIT = 30.0


class _Logits(NamedTuple):
    """Log-odds of being a left draw, for the left draws, shape (n,), and the right ones, (m,)."""

    left: Floats
    right: Floats


class _Derivatives(NamedTuple):
    """Derivatives of the logistic loss by the weights.

    Attributes:
        gradients: shape (folds, weights), the gradient of each fold's part.
        curvature: shape (weights, weights), the second derivative.
    """

    gradients: Floats
    curvature: Floats


def _fit_by_newton(
    left: Side, right: Side, starts: Integers, prior: Floats, weights: Floats
) -> Floats:
    """Fits the mode of the logistic posterior, for distributions that are not close.

    Leaving out a fold is one further step of Newton's method from the mode.

    Args:
        left: training draws.
        right: training draws.
        starts: shape (cuts + 1,), where the weights of each column begin.
        prior: shape (weights, weights), the prior covariance.
        weights: shape (weights,), where to start.

    Returns:
        Shape (1 + folds, weights).
    """
    n_weights = starts[-1]
    ridge = 1e-8 * np.trace(prior) / n_weights
    root = np.linalg.cholesky(prior + ridge * np.eye(n_weights))
    # In the coordinates v, with weights = root·v, the prior is a standard normal distribution.
    v: Floats = np.linalg.lstsq(root, weights, rcond=None)[0].astype(np.float64)
    offset = np.log(len(left) / len(right))

    def logits_at(v: Floats) -> _Logits:
        weights = root @ v
        left_logits = offset + left.score(starts, weights)
        right_logits = offset + right.score(starts, weights)
        return _Logits(
            left=np.clip(left_logits, -_MAX_ABS_LOGIT, _MAX_ABS_LOGIT),
            right=np.clip(right_logits, -_MAX_ABS_LOGIT, _MAX_ABS_LOGIT),
        )

    def loss_at(v: Floats, logits: _Logits) -> float:
        loss_left = np.logaddexp(0.0, -logits.left).sum()
        loss_right = np.logaddexp(0.0, logits.right).sum()
        return float(loss_left + loss_right + 0.5 * v @ v)

    logits = logits_at(v)
    loss = loss_at(v, logits)
    for _ in range(_NEWTON_STEPS):
        gradients, curvature = _derivatives(left, right, starts, logits)
        hessian = root.T @ curvature @ root + np.eye(n_weights)
        step = np.linalg.solve(hessian, root.T @ gradients.sum(axis=0) + v)
        size = 1.0
        is_better = False
        while size > _SHORTEST_STEP:
            new_v = v - size * step
            new_logits = logits_at(new_v)
            new_loss = loss_at(new_v, new_logits)
            is_better = new_loss < loss
            if is_better:
                break
            size /= 2.0
        if not is_better:
            break
        improvement = loss - new_loss
        v = new_v
        logits = new_logits
        loss = new_loss
        if improvement < _LEAST_IMPROVEMENT:
            break
    gradients, curvature = _derivatives(left, right, starts, logits)
    hessian = (1.0 - 1.0 / FOLDS) * (root.T @ curvature @ root) + np.eye(n_weights)
    gradients_without = (gradients.sum(axis=0) - gradients).T
    steps = np.linalg.solve(hessian, root.T @ gradients_without + v[:, None])
    v_without = v[:, None] - steps
    return np.vstack([root @ v, (root @ v_without).T])


def _derivatives(left: Side, right: Side, starts: Integers, logits: _Logits) -> _Derivatives:
    """Derivatives of the logistic loss; the second one is estimated from the first draws."""
    gradients = left.sums(starts, -expit(-logits.left)) + right.sums(starts, expit(logits.right))
    first_left = logits.left[:GRAM_ROWS]
    first_right = logits.right[:GRAM_ROWS]
    weight = np.concatenate(
        [expit(first_left) * expit(-first_left), expit(first_right) * expit(-first_right)]
    )
    n_draws = len(logits.left) + len(logits.right)
    table = _co_occurrences(_first_rows(left, right), starts, weight)
    return _Derivatives(gradients=gradients, curvature=table * n_draws / len(weight))


# --- Scores ---


def fit_score(left: Block, right: Block, columns: Sequence[int]) -> AdditiveScore:
    """Fits an additive model of ln(P/Q) on the given columns.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns vary.
    """
    with one_thread():
        cuts = cut_columns(left, right, [(column, None) for column in columns])
        if not cuts:
            constant = Term(columns[0], Line(np.empty(0)), np.zeros(2))
            return AdditiveScore((constant,))
        left_side = Side.of(cuts, left, folds_of(left))
        right_side = Side.of(cuts, right, folds_of(right))
        weights = fit(cuts, left_side, right_side)[0]
    return as_score(cuts, weights)


def as_score(cuts: Sequence[ColumnCells], weights: Floats) -> AdditiveScore:
    """The score with these weights; columns whose weights are all equal are left out.

    Args:
        cuts: the columns.
        weights: shape (weights,).
    """
    terms = []
    for cut, (start, stop) in zip(cuts, pairwise(starts_of(cuts)), strict=True):
        terms.append(cut.weighted(weights[start:stop]))
    effective = tuple(term for term in terms if np.ptp(term.weights) > 0.0)
    return AdditiveScore(effective or (terms[0],))
