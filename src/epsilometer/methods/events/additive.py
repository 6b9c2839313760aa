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

import numpy as np
from scipy.special import expit

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.environment import one_thread
from epsilometer.methods.events.cells import Cells, ColumnCells, ProductCells, cut_columns
from epsilometer.outputs import Block, Line
from epsilometer.outputs.scores import AdditiveScore, Term

Folds = Sequence[Integers]
# Columns, then products of them.
Cuts = Sequence[ColumnCells | ProductCells]

FOLDS = 5
_ALL = slice(None)
# Draws per side that estimate how cells go together: more would not move it.
GRAM_ROWS = 30_000
# With fewer cells per column than this, products of matrices count faster how cells go together;
# rows at a time.
_FEW_CELLS = 5
_AT_ONCE = 4096
# Weights that are estimated together; with more, columns are taken as independent.
MOST_WEIGHTS = 512
# Steps of the iteration for the prior's variances, and the change at which it ends, in directions
# that are explained: SVT3 and LaplaceParallel are there after 8 steps, and lack .1 of their final
# log-likelihood.
_STEPS = 15
_STEADY = 0.5
# Weights whose ranges add up to more than this are not small: the laws are not close, and Newton's
# steps must help.
_CLOSE = 1.2


# --- the prior
# -------------------------------------------------------------------------------------------------------


def _ranks(n: int) -> Floats:
    return (np.arange(n) + 0.5) / max(n, 1)


def _alike(n: int, pull: float) -> Floats:
    """How alike a function's values are at the ranks of n cells."""
    return np.exp(-pull * np.abs(_ranks(n)[:, None] - _ranks(n)))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the prior's covariance: zero but for a square block of it."""

    place: slice
    kernel: Floats


def _own_parts(cuts: Cuts, starts: Integers) -> list[_Part]:
    """Each column has a function of its own; in a product, so has the other column for each known value of the key.

    For most values it may be 0, and for one the opposite of all others, as at the last position of
    a sparse vector. Or it grows along them, as each answer "below" multiplies the odds (svt3 at 1e4
    draws: .82 of the oracle, .69 without).
    """
    found = []
    for cut, start in zip(cuts, starts.tolist(), strict=False):
        if isinstance(cut, ColumnCells):
            found += [_Part(slice(start, start + cut.size), kernel) for kernel in _kernels(cut)]
        else:
            size = cut.other.size
            kernel = _kernels(cut.other)[0]
            ends = start + size * np.arange(len(cut.key.known) + 1)
            found += [_Part(slice(*each), kernel) for each in pairwise(ends.tolist())]
            growing = np.outer(_ranks(len(ends) - 1), _ranks(len(ends) - 1))
            found.append(_Part(slice(start, int(ends[-1])), np.asarray(np.kron(growing, kernel))))
    return found


def _kernels(cut: ColumnCells) -> list[Floats]:
    """Single values unrelated (or by rank, if many), intervals smooth."""
    found = []
    m = len(cut.atoms)
    for atoms, pull in ((np.eye(m), 2.0), *([(_alike(m, 3.0), 0.3)] if m > 4 else [])):
        kernel = np.zeros((cut.size, cut.size))
        kernel[:m, :m], kernel[m:, m:] = atoms, _alike(cut.size - m, pull)
        found.append(kernel)
    return found


def _common_parts(every: Cuts, starts: Integers) -> list[_Part]:
    """All columns share a function, or one that drifts along them: smooth, level, a step in the middle, by value."""
    cuts = [cut for cut in every if isinstance(cut, ColumnCells)]
    starts = starts[: len(cuts) + 1]
    if len(cuts) < 3:
        return []
    n_atoms = [len(cut.atoms) for cut in cuts]
    near = np.exp(
        -2.0 * np.abs(np.subtract.outer(np.arange(len(cuts)), np.arange(len(cuts)))) / len(cuts)
    )
    near = np.repeat(np.repeat(near, np.diff(starts), axis=0), np.diff(starts), axis=1)
    is_atom = np.concatenate(
        [np.arange(cut.size) < m for cut, m in zip(cuts, n_atoms, strict=True)]
    )
    rank = np.concatenate(
        [[*np.zeros(m), *_ranks(cut.size - m)] for cut, m in zip(cuts, n_atoms, strict=True)]
    )
    names = {
        name: code
        for code, name in enumerate(dict.fromkeys(name for cut in cuts for name in cut.atoms))
    }
    name = np.concatenate(
        [[*map(names.get, cut.atoms), *np.full(cut.size - len(cut.atoms), -1)] for cut in cuts]
    )
    distance = np.abs(np.subtract.outer(rank, rank))
    intervals = np.logical_and.outer(~is_atom, ~is_atom)
    values = np.logical_and.outer(is_atom, is_atom)
    halves = np.equal.outer(rank > 0.5, rank > 0.5)
    smooth = [intervals * np.exp(-pull * distance) for pull in (2.0, 0.1)]
    kernels = [*smooth, intervals * halves, values * np.equal.outer(name, name)]
    return [_Part(slice(0, len(rank)), kernel * near) for kernel in kernels if kernel.any()]


# --- the posterior
# ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sums:
    """How often the cells were filled, fold by fold; shape (folds, weights), and the draws per fold."""

    left: Floats
    right: Floats
    n_left: Integers
    n_right: Integers

    def difference(self, keep: Booleans) -> Floats:
        """Left minus right frequencies of the cells over the folds to keep."""
        left = self.left[keep].sum(axis=0)
        right = self.right[keep].sum(axis=0)
        return np.asarray(
            left / max(self.n_left[keep].sum(), 1) - right / max(self.n_right[keep].sum(), 1)
        )

    def noise(self, keep: Booleans) -> float:
        """The variance of a frequency's difference, in units of that of one draw."""
        return 1.0 / max(int(self.n_left[keep].sum()), 1) + 1.0 / max(
            int(self.n_right[keep].sum()), 1
        )


def _tables(cells: Sequence[Cells], starts: Integers, weight: Floats | None = None) -> Floats:
    """How often, or with which weight, two cells are filled by the same draw; shape (weights, weights)."""
    if starts[-1] < _FEW_CELLS * len(cells):
        return _tables_of_many(cells, starts, weight)
    tables = np.zeros((starts[-1], starts[-1]))
    sizes = np.diff(starts)
    spans = [slice(start, stop) for start, stop in pairwise(starts.tolist())]
    for i, a in enumerate(cells):
        tables[spans[i], spans[i]] = np.diag(np.bincount(a, weight, minlength=sizes[i]))
        for j in range(i):
            both = np.bincount(
                a * np.int32(sizes[j]) + cells[j], weight, minlength=sizes[i] * sizes[j]
            )
            tables[spans[i], spans[j]] = both.reshape(sizes[i], sizes[j])
            tables[spans[j], spans[i]] = tables[spans[i], spans[j]].T
    return tables


def _tables_of_many(cells: Sequence[Cells], starts: Integers, weight: Floats | None) -> Floats:
    """The same by products of matrices, faster for many columns of few cells each (128 bits: .1 s instead of 4 s)."""
    # The first cell of each column is what its others leave of all draws, which are in row 0.
    place = np.zeros(starts[-1], dtype=np.int64)
    others = np.setdiff1d(np.arange(starts[-1]), starts)
    place[others] = np.arange(1, len(others) + 1)
    both = np.zeros((len(others) + 1, len(others) + 1))
    for begin in range(0, len(cells[0]), _AT_ONCE):
        rows = slice(begin, begin + _AT_ONCE)
        filled = np.zeros((len(both), len(cells[0][rows])), dtype=np.float32)
        filled[0] = 1.0
        for start, index in zip(starts.tolist(), cells, strict=False):
            filled[place[start:][index[rows]], np.arange(filled.shape[1])] = 1.0
        both += filled @ filled.T if weight is None else (filled * weight[rows]) @ filled.T
    turn = np.zeros((starts[-1], len(both)))
    turn[others, place[others]] = turn[starts[:-1], 0] = 1.0
    for start, stop in pairwise(starts.tolist()):
        turn[start, place[start + 1 : stop]] = -1.0
    return np.asarray(turn @ both @ turn.T)


class _Posterior:
    """The mean of the weights given differences of cell frequencies, under the prior that the draws chose.

    For close laws a difference is distributed as N(G·w, noise·G) with G the covariance of the
    cells. Whitened by G's eigenvectors it is z = A·w + noise.
    """

    def __init__(
        self, gram: Floats, own: list[_Part], common: list[_Part], difference: Floats, noise: float
    ) -> None:
        values, vectors = np.linalg.eigh(gram)
        keep = values > 1e-9 * values[-1] + 1e-12
        root = np.sqrt(values[keep])
        self._matrix = root[:, None] * vectors[:, keep].T
        self._whiten = vectors[:, keep].T / root[:, None]
        z = self._whiten @ difference
        tried = [
            self._variances(z, parts, noise)
            for parts in ([common, own, [*own, *common]] if common else [own])
        ]
        _, self.prior = max(tried, key=lambda each: each[0])
        self._signal = self._matrix @ self.prior @ self._matrix.T

    def mean(self, difference: Floats, noise: float) -> Floats:
        """The weights to expect."""
        covariance = self._signal + noise * np.eye(len(self._signal))
        return np.asarray(
            self.prior @ (self._matrix.T @ np.linalg.solve(covariance, self._whiten @ difference))
        )

    def _variances(self, z: Floats, parts: list[_Part], noise: float) -> tuple[float, Floats]:
        """The likeliest mixture of the parts, with its log-likelihood less one for each part in use (Akaike).

        MacKay's iteration: a variance grows by what its part explains, over what it would explain
        by chance.
        """
        matrix = self._matrix
        places = [part.place for part in parts]
        spread = [matrix[:, part.place] @ part.kernel for part in parts]

        def traces(other: Floats) -> Floats:
            return np.array(
                [np.sum(each * other[:, at]) for each, at in zip(spread, places, strict=True)]
            )

        theta = max(z @ z - noise * len(z), noise) / np.maximum(traces(matrix), 1e-300) / len(parts)
        for _ in range(_STEPS):
            mixed = np.zeros_like(matrix)
            for variance, each, at in zip(theta, spread, places, strict=True):
                if variance:
                    mixed[:, at] += variance * each
            inverse = np.linalg.inv(noise * np.eye(len(z)) + mixed @ matrix.T)
            turned = inverse @ matrix
            y = inverse @ z
            up = np.array(
                [(y @ each) @ (z @ turned[:, at]) for each, at in zip(spread, places, strict=True)]
            )
            down = traces(turned)
            new = theta * np.maximum(up, 0.0) / np.maximum(down, 1e-300)
            new[new * down < 1e-3] = 0.0  # explains less than a thousandth of one direction
            if np.abs(new - theta) @ down < _STEADY:
                break
            theta = new
        likelihood = 0.5 * (np.linalg.slogdet(inverse)[1] - z @ y)
        prior = np.zeros((matrix.shape[1], matrix.shape[1]))
        for part, variance in zip(parts, theta, strict=True):
            prior[part.place, part.place] += variance * part.kernel
        return float(likelihood - np.count_nonzero(theta)), prior


# --- the fit
# ---------------------------------------------------------------------------------------------------------


def fit(cuts: Cuts, left: "Side", right: "Side") -> Floats:
    """The weights of all cells: from all draws, and then without each fold; shape (1 + folds, weights)."""
    starts = starts_of(cuts)
    sums = _Sums(left.sums(starts), right.sums(starts), left.sizes(), right.sizes())
    every = np.ones(FOLDS, dtype=np.bool_)
    keeps = [every, *(np.arange(FOLDS) != fold for fold in range(FOLDS))]
    if starts[-1] > MOST_WEIGHTS:
        return _independent(cuts, starts, sums, keeps)
    head = _heads(left, right)
    own = _own_parts(cuts, starts)
    common = _common_parts(cuts, starts)
    frequency = _tables(head, starts) / len(head[0])
    gram = frequency - np.outer(np.diag(frequency), np.diag(frequency))
    found = _Posterior(gram, own, common, sums.difference(every), sums.noise(every))
    weights = np.array([found.mean(sums.difference(keep), sums.noise(keep)) for keep in keeps])
    if sum(np.ptp(weights[0][start:stop]) for start, stop in pairwise(starts)) > _CLOSE:
        return _newton(left, right, starts, found.prior, weights[0])
    return weights


@dataclass(frozen=True, slots=True)
class Side:
    """The training draws of one side and one shape.

    Attributes:
        cells: one array of shape (n,) per column.
        folds: which rows each fold holds.
    """

    cells: list[Cells]
    folds: Folds

    @classmethod
    def of(cls, cuts: Cuts, block: Block, folds: Folds) -> "Side":
        """The draws of a block in cells."""
        return cls([cut.index(block.columns) for cut in cuts], folds)

    def __len__(self) -> int:
        return len(self.cells[0])

    def sizes(self) -> Integers:
        """Draws per fold."""
        return np.array([len(rows) for rows in self.folds])

    def sums(self, starts: Integers, weight: Floats | None = None) -> Floats:
        """Draws, or their weights, by fold and cell; shape (folds, weights)."""
        sums = np.zeros((FOLDS, starts[-1]))
        fold = np.empty(len(self), dtype=np.int32)
        for number, rows in enumerate(self.folds):
            fold[rows] = number
        for index, (start, stop) in zip(self.cells, pairwise(starts.tolist()), strict=True):
            size = stop - start
            found = np.bincount(index + fold * np.int32(size), weight, minlength=FOLDS * size)
            sums[:, start:stop] = found.reshape(FOLDS, size)
        return sums

    def score(self, starts: Integers, weights: Floats, rows: slice | Integers = _ALL) -> Floats:
        """The sum of each draw's weights."""
        total: Floats = weights[self.cells[0][rows]]
        for start, index in zip(starts[1:-1].tolist(), self.cells[1:], strict=True):
            total += weights[start:][index[rows]]
        return total

    def left_out(self, starts: Integers, without: Sequence[Floats]) -> Floats:
        """Each draw's score by the weights that were fitted without its fold."""
        total = np.zeros(len(self))
        for rows, weights in zip(self.folds, without, strict=True):
            total[rows] = self.score(starts, weights, rows)
        return total


def folds_of(block: Block) -> Folds:
    """Every fifth of all draws, which is independent of their shapes."""
    return tuple(np.flatnonzero(block.places() % FOLDS == fold) for fold in range(FOLDS))


def _independent(cuts: Cuts, starts: Integers, sums: _Sums, keeps: list[Booleans]) -> Floats:
    """Many columns, one by one: all with one variance of their functions, or each with its own; by likelihood.

    Returns:
        Shape (keeps, weights).
    """
    noises = np.array([sums.noise(keep) for keep in keeps])
    differences = np.array([sums.difference(keep) for keep in keeps])
    share = sums.left.sum(axis=0) / max(sums.n_left.sum(), 1) + sums.right.sum(axis=0) / max(
        sums.n_right.sum(), 1
    )
    grid = noises[0] * np.append(0.0, np.geomspace(0.1, 1e6, 36))
    gains = np.zeros((len(cuts), len(grid)))
    bases = []
    for number, (cut, (start, stop)) in enumerate(
        zip(cuts, pairwise(starts.tolist()), strict=True)
    ):
        mean = 0.5 * share[start:stop]
        kernel = _own_parts([cut], np.array([0]))[0].kernel
        root = np.sqrt(mean)
        # Cells of one column: G = diag(m) − m·mᵀ, whitened by its square root on the space where
        # the cells add to one.
        middle = np.eye(cut.size) - np.outer(root, root)
        values, vectors = np.linalg.eigh(middle @ (root[:, None] * kernel * root) @ middle)
        turned = vectors.T @ middle
        z = turned @ (differences[:, start:stop] / root).T  # shape (cells, keeps)
        scale = noises[0] + grid[:, None] * np.maximum(values, 0.0)
        log_likelihood = -0.5 * (np.log(scale) + z[:, 0] ** 2 / scale).sum(axis=1)
        gains[number] = log_likelihood - log_likelihood[0]
        bases.append((np.maximum(values, 0.0)[:, None], kernel * root @ turned.T, z))
    best = gains.argmax(axis=1)
    # Of many columns without a leak, the luckiest gains about ln(columns).
    lone = np.where(gains.max(axis=1) > 1.0 + np.log(len(cuts)), best, 0)
    shared = int(gains.sum(axis=0).argmax())
    is_sparse = (
        gains[np.arange(len(cuts)), lone].sum() - np.count_nonzero(lone) > gains[:, shared].sum()
    )
    chosen = grid[lone if is_sparse else np.full(len(cuts), shared)]
    fits = zip(chosen, bases, strict=True)
    return np.concatenate(
        [theta * back @ (z / (noises + theta * values)) for theta, (values, back, z) in fits]
    ).T


def starts_of(cuts: Cuts) -> Integers:
    """Where the weights of each column begin, and where the last end."""
    return np.cumsum([0, *(cut.size for cut in cuts)])


def _heads(left: Side, right: Side) -> list[Cells]:
    return [
        np.concatenate([a[:GRAM_ROWS], b[:GRAM_ROWS]])
        for a, b in zip(left.cells, right.cells, strict=True)
    ]


def _newton(left: Side, right: Side, starts: Integers, prior: Floats, weights: Floats) -> Floats:
    """The mode of the logistic posterior, for laws that are not close; one step from there leaves a fold out."""
    total = starts[-1]
    root = np.linalg.cholesky(prior + 1e-8 * np.trace(prior) / total * np.eye(total))
    v: Floats = np.linalg.lstsq(root, weights, rcond=None)[0].astype(np.float64)
    offset = np.log(len(left) / len(right))

    def logits(v: Floats) -> tuple[Floats, Floats]:
        w = root @ v
        a, b = (np.clip(offset + side.score(starts, w), -30.0, 30.0) for side in (left, right))
        return a, b

    def loss(v: Floats, logit: tuple[Floats, Floats]) -> float:
        return float(
            np.logaddexp(0.0, -logit[0]).sum() + np.logaddexp(0.0, logit[1]).sum() + 0.5 * v @ v
        )

    logit = logits(v)
    now = loss(v, logit)
    for _ in range(6):
        slopes, curvature = _slopes(left, right, starts, logit)
        inside = root.T @ curvature @ root
        step = np.linalg.solve(inside + np.eye(total), root.T @ slopes.sum(axis=0) + v)
        size = 1.0
        while (
            size > 1e-3
            and not (new := loss(v - size * step, moved := logits(v - size * step))) < now
        ):
            size /= 2.0
        if size <= 1e-3:
            break
        v = v - size * step
        logit = moved
        gained = now - new
        now = new
        if gained < 0.01:
            break
    slopes, curvature = _slopes(left, right, starts, logit)
    inside = (1.0 - 1.0 / FOLDS) * (root.T @ curvature @ root) + np.eye(total)
    without = v[:, None] - np.linalg.solve(
        inside, root.T @ (slopes.sum(axis=0) - slopes).T + v[:, None]
    )
    return np.vstack([root @ v, (root @ without).T])


def _slopes(
    left: Side, right: Side, starts: Integers, logit: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """The gradient of the logistic loss by fold, shape (folds, weights), and its second derivative."""
    slopes = left.sums(starts, -expit(-logit[0])) + right.sums(starts, expit(logit[1]))
    weight = np.concatenate([expit(each[:GRAM_ROWS]) * expit(-each[:GRAM_ROWS]) for each in logit])
    return slopes, _tables(_heads(left, right), starts, weight) * (
        len(logit[0]) + len(logit[1])
    ) / len(weight)


# --- a score
# ---------------------------------------------------------------------------------------------------------


def fit_score(left: Block, right: Block, columns: Sequence[int]) -> AdditiveScore:
    """An additive model of ln(P/Q) on the given columns.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns vary.
    """
    with one_thread():
        cuts = cut_columns(left, right, [(column, None) for column in columns])
        if not cuts:
            return AdditiveScore((Term(columns[0], Line(np.empty(0)), np.zeros(2)),))
        weights = fit(cuts, *(Side.of(cuts, side, folds_of(side)) for side in (left, right)))[0]
    return as_score(cuts, weights)


def as_score(cuts: Sequence[ColumnCells], weights: Floats) -> AdditiveScore:
    """The weights with their cells; columns without weights are left out."""
    terms = [
        cut.weighted(weights[a:b])
        for cut, (a, b) in zip(cuts, pairwise(starts_of(cuts)), strict=True)
    ]
    return AdditiveScore(tuple(term for term in terms if np.ptp(term.weights) > 0.0) or (terms[0],))
