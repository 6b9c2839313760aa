"""One score over all outputs, whatever their shapes, and the tail of it that is worth proving."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.methods.base import Task, one_thread
from epsilometer.methods.events.additive import GRAM_ROWS, Folds, Side, as_score, fit, folds_of, starts_of
from epsilometer.methods.events.cells import blocks_of_both, cut_columns
from epsilometer.methods.events.choosing import Choice
from epsilometer.methods.events.prediction import predict
from epsilometer.outputs import Block, BlockPartition, Group, Line, Numbers, Outputs, Partition
from epsilometer.outputs.columns import is_long_number
from epsilometer.outputs.scores import AdditiveScore


@dataclass(frozen=True, slots=True)
class Scored:
    """One score over all outputs, and the scores of training draws by weights that were fitted without them.

    Attributes:
        shapes: for each shape the number of its columns, the score of what is in it, and what the shape itself adds.
        left: shape (n,), scores of the left draws.
        right: shape (m,).
        whole: the scores of all draws by the final weights, sorted.
        is_line: whether the score is the output itself, a number.
    """

    shapes: dict[str, tuple[int, AdditiveScore | None, float]]
    left: Floats
    right: Floats
    whole: Floats
    is_line: bool = False

    @property
    def partition(self) -> Partition:
        """Cells of about equal mass."""
        return self.cut(np.unique(np.quantile(self.whole, np.linspace(0.0, 1.0, _CELLS + 1)[1:-1])))

    def cut(self, at: Floats) -> Partition:
        """Cells between the given scores, in every shape."""
        blocks = []
        for shape, (n_columns, score, base) in self.shapes.items():
            signature = (-1,) * n_columns or (0,)
            group = Group(signature)
            if self.is_line or score is not None:
                group = Group(signature, Line(np.unique(at - base)), score=score)
            blocks.append(BlockPartition(shape, (None,) * n_columns, (group,)))
        return Partition(tuple(blocks))


def learn_scores(left: Outputs, right: Outputs) -> list[Scored]:
    """The scores that may be best: of the columns, and of what each column adds to those before it."""
    if min(len(left), len(right)) < _FEWEST:
        return []
    pairs = blocks_of_both(left, right)
    if not any(len(a.columns) > 1 and not is_long_number(a.shape) for a, _ in pairs):
        columns = [side.columns[0] for side in pairs[0] if len(side.columns) == 1] if len(pairs) == 1 else []
        numbers = [np.asarray(each.values[:_MOST_DRAWS], np.float64) for each in columns if isinstance(each, Numbers)]
        if len(numbers) < 2:
            return []
        # Single numbers are their own score.
        whole = np.sort(np.concatenate(numbers))
        usual = np.abs(whole[[0, -1]]).max() < 1.0 / _TINY and whole[-1] - whole[0] > _TINY * len(whole)
        return [Scored({pairs[0][0].shape: (1, None, 0.0)}, numbers[0], numbers[1], whole, True)] if usual else []
    with one_thread():
        found = [_learn(pairs, mixed=False)]
        if len(pairs) == 1 and _goes_together(*pairs[0]):
            found.append(_learn(pairs, mixed=True))
    return found


# With fewer training draws per side, the orders of `few` see as much.
_FEWEST = 400
# Single numbers: so many of each side tell where a tail begins, and millions would only take memory.
_MOST_DRAWS = 1 << 18
# Cells in which a score is compared with others.
_CELLS = 32
# Shapes that get a score of their own, the most frequent first, and draws that one must have.
_MOST_SHAPES, _ENOUGH = 16, 60


def _learn(pairs: Sequence[tuple[Block, Block]], mixed: bool) -> Scored:
    by_size = sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size)
    folds = [(folds_of(a), folds_of(b)) for a, b in by_size]
    bases = _log_odds(np.array([[[len(rows) for rows in side] for side in pair] for pair in folds]))
    shapes: dict[str, tuple[int, AdditiveScore | None, float]] = {}
    left_out: tuple[list[Floats], list[Floats]] = ([], [])
    wholes = []
    for number, (pair, fold, base) in enumerate(zip(by_size, folds, bases, strict=True)):
        score, own, whole = _score_shape(pair, fold, mixed) if number < _MOST_SHAPES else _no_score(pair)
        for found, values, parts in zip(left_out, own, fold, strict=True):
            for rows, without in zip(parts, base[1:], strict=True):
                values[rows] += without
            found.append(values)
        wholes.append(whole + base[0])
        shapes[pair[0].shape] = len(pair[0].columns), score, float(base[0])
    left, right = map(np.concatenate, left_out)
    return Scored(shapes, left, right, np.sort(np.concatenate(wholes)))


ShapeScore = tuple[AdditiveScore | None, tuple[Floats, Floats], Floats]


def _score_shape(pair: tuple[Block, Block], folds: tuple[Folds, Folds], mixed: bool) -> ShapeScore:
    """The score of one shape, each draw's score without its fold, and the scores of all draws."""
    views = _innovations(*pair) if mixed else [(column, None) for column in range(len(pair[0].columns))]
    if not views or min(pair[0].size, pair[1].size) < _ENOUGH or not (cuts := cut_columns(*pair, views)):
        return _no_score(pair)
    left, right = (Side.of(cuts, block, fold) for block, fold in zip(pair, folds, strict=True))
    fitted, starts = fit(cuts, left, right), starts_of(cuts)
    own = left.left_out(starts, fitted.without), right.left_out(starts, fitted.without)
    whole = np.concatenate([side.score(starts, fitted.whole) for side in (left, right)])
    return as_score(cuts, fitted.whole), own, whole


def _no_score(pair: tuple[Block, Block]) -> ShapeScore:
    return None, (np.zeros(pair[0].size), np.zeros(pair[1].size)), np.zeros(pair[0].size + pair[1].size)


def _log_odds(sizes: Integers) -> Floats:
    """How much likelier each shape is on the left: from all draws, and without each fold; shape (shapes, 1 + folds)."""
    total = sizes.sum(axis=2, keepdims=True)
    seen = np.concatenate([total, total - sizes], axis=2).astype(np.float64)
    if len(seen) == 1:
        return np.zeros((1, seen.shape[2]))
    # Pulled towards even odds by about one draw.
    odds = np.log((seen[:, 0] + 0.5) / (seen[:, 0].sum(axis=0) + 1.0))
    return np.asarray(odds - np.log((seen[:, 1] + 0.5) / (seen[:, 1].sum(axis=0) + 1.0)))


# Columns that may be told by those before them: at most so many, correlated by more than chance.
_MOST_MIXED, _CORRELATED = 64, 0.05
# Columns whose spread, or the inverse of whose size, is smaller than this are not multiplied.
_TINY = 1e-100


def _goes_together(left: Block, right: Block) -> bool:
    """Whether all columns vary continuously and some of them go together."""
    if not 1 < len(left.columns) <= _MOST_MIXED or min(left.size, right.size) < _ENOUGH:
        return False
    rows = _matrix(left, right)
    if rows is None:
        return False
    look = np.sort(rows[:2048], axis=0)
    if (look[1:] == look[:-1]).mean() > 0.001:
        return False
    correlation = np.abs(np.atleast_2d(np.corrcoef(_standard(rows)[0].T)))
    np.fill_diagonal(correlation, 0.0)
    return bool(correlation.max() > _CORRELATED)


def _matrix(left: Block, right: Block) -> Floats | None:
    columns = []
    for a, b in zip(left.columns, right.columns, strict=True):
        if not (isinstance(a, Numbers) and isinstance(b, Numbers)):
            return None
        columns.append(np.concatenate([np.asarray(each.values[:GRAM_ROWS], np.float64) for each in (a, b)]))
    rows = np.stack(columns, axis=1)
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    usual = (high / 2 - low / 2 > _TINY) & (np.abs(low) < 1.0 / _TINY) & (np.abs(high) < 1.0 / _TINY)
    return rows if np.isfinite(rows).all() and usual.all() else None


def _standard(rows: Floats) -> tuple[Floats, Floats]:
    """Columns around their medians in units of their spread, far outliers pulled in; and the units."""
    centre = np.median(rows, axis=0)
    unit = np.maximum(np.median(np.abs(rows - centre), axis=0), 1e-300)
    return np.clip((rows - centre) / unit, -50.0, 50.0), unit


def _innovations(left: Block, right: Block) -> list[tuple[int, Floats | None]]:
    """Each column less its best linear forecast from those before it: by the Cholesky factor of the covariance."""
    rows = _matrix(left, right)
    assert rows is not None
    standard, unit = _standard(rows)
    factor = np.linalg.cholesky(np.cov(standard.T) + 1e-9 * np.eye(rows.shape[1]))
    return list(enumerate(np.linalg.inv(factor) / unit))


# --- the tail --------------------------------------------------------------------------------------------------------

# Candidate sizes of the event: its share of all training draws.
_MASSES: Floats = np.concatenate([np.linspace(0.95, 0.3, 27), np.geomspace(0.28, 8e-6, 84)])
# Slices of the scores in which the log-ratio is counted: fine at both ends.
_LOW, _HIGH = np.geomspace(1e-4, 0.02, 16), 1.0 - np.geomspace(0.02, 1e-4, 16)
_SLICES: Floats = np.concatenate([_LOW, np.linspace(0.03, 0.97, 48), _HIGH])
# Steps of the fitted curve of the log-ratio, at most: a matrix with a row for each of millions of draws takes memory.
_STEPS = 1 << 15
# How many spreads of the predicted log-ratio are given away; the curvature of the log-ratio along the score, as a
# share of its slope; how wrong the model may be in a tail, as a share of the log-ratio.
_DOUBT, _CURVATURE, _WRONG = 1.0, 0.1, 0.15

# The log-ratio of single numbers may have any form (that of Laplace noise is flat on both sides). A curve that fits
# worse than the first number is believed less by the second share, per unit of its misfit.
_MISFIT, _UNFIT = 1.5, 0.1


def choose_tail(scored: Scored, task: Task) -> tuple[Partition, Choice] | None:
    """The end of the score with the best predicted bound: cells inside and outside, and the choice of the former."""
    scores = np.concatenate([scored.left, scored.right])
    order = np.argsort(scores, kind="stable")
    lefts = np.concatenate([[0], np.cumsum(order < len(scored.left))])
    counted = _Counted(scores[order], lefts, len(scored.left), len(scored.right))
    models = [_Model.of(counted, by_depth) for by_depth in ((True, False) if scored.is_line else (False,))]
    model = min(models, key=lambda each: each.misfit)
    # A score grows with the left's share; along a line it may do so in either direction.
    ends = ((True, False), (False, True), *([(True, True), (False, False)] if scored.is_line else []))
    found = [(tail, *end) for end in ends if (tail := _best_of_end(counted, model, task, *end)) is not None]
    if not found:
        return None
    (predicted, mass, p, q, luck), upper, flipped = max(found, key=lambda each: each[0][0])
    luck += _UNFIT * max(model.misfit - _MISFIT, 0.0) * abs(predicted)
    n, whole = len(scored.whole), scored.whole
    size = min(max(round(mass * n), 1), n - 1)
    low, high = (whole[n - size - 1], whole[n - size]) if upper else (whole[size - 1], whole[size])
    threshold = 0.5 * (low + high) if low < high else (high if upper else np.nextafter(low, np.inf))
    chosen = []
    for _, score, base in scored.shapes.values():
        is_cut = scored.is_line or score is not None
        chosen += [*([not upper, upper, False] if is_cut else [(base >= threshold) == upper]), False]
    choice = Choice(np.array([*chosen, False]), flipped, predicted, p, q, luck if scored.is_line else 0.0)
    return scored.cut(np.array([threshold])), choice


@dataclass(frozen=True, slots=True)
class _Counted:
    """Training draws in the order of their scores.

    Attributes:
        scores: shape (n,), ascending.
        lefts: shape (n + 1,), left draws among the first k.
        n: left draws.
        m: right draws.
    """

    scores: Floats
    lefts: Integers
    n: int
    m: int


@dataclass(frozen=True, slots=True)
class _Model:
    """The log-ratio as a function of the score: a line, bent a little on either side of the middle.

    Attributes:
        edges: shape (k + 1,), ranks between which the curve is taken to be flat: single draws, unless there are many.
        lefts: shape (k + 1,), left draws to expect below each edge.
        variance: shape (k,), of the log-ratio between two edges.
        misfit: how far the counts are from the curve, about 1 if by chance only.
    """

    edges: Integers
    lefts: Floats
    variance: Floats
    misfit: float

    @classmethod
    def of(cls, counted: _Counted, by_depth: bool) -> "_Model":
        total = len(counted.scores)
        ranks = np.minimum((_SLICES * total).astype(np.int64), total - 1)
        ends = np.searchsorted(counted.scores, counted.scores[ranks])  # between ties
        at = np.unique(np.concatenate([[0], ends, [total]]))
        hits = np.diff(counted.lefts[at])
        others = np.diff(at) - hits
        ratio = np.log((hits + 0.5) / counted.n) - np.log((others + 0.5) / counted.m)
        weight = 1.0 / (1.0 / (hits + 0.5) + 1.0 / (others + 0.5))
        edges = np.union1d(at, np.linspace(0, total, min(total, _STEPS) + 1).astype(np.int64))
        width = np.diff(edges)
        every = _curves(counted.scores, at, weight, (edges[1:] + edges[:-1]) // 2, by_depth)
        sums = np.concatenate([np.zeros((1, every.shape[1])), np.cumsum(every * width[:, None], axis=0)])
        basis = np.diff(sums[np.searchsorted(edges, at)], axis=0) / np.diff(at)[:, None]
        normal = (basis * weight[:, None]).T @ basis
        moments = (basis * weight[:, None]).T @ ratio
        # What kinds of curve to expect: how steep, and how much steeper or flatter on either side.
        if by_depth:
            size = np.sqrt(max(np.mean(ratio**2 - 1.0 / weight), 0.1 * np.mean(1.0 / weight)))
            usual = size * np.array([1e6, 0.3, 0.3, 0.03, 0.03])
        else:
            slope = np.linalg.solve(normal[:2, :2] + 1e-9 * np.eye(2), moments[:2])[1]
            usual = np.array([1e6, 1e6, *2 * [_CURVATURE * abs(slope) + 1e-9]])
        covariance = np.linalg.inv(normal + np.diag(usual**-2.0) + 1e-9 * np.eye(len(normal)))
        fitted = covariance @ moments
        misfit = float(weight @ (ratio - basis @ fitted) ** 2) / max(len(ratio) - len(fitted), 1)
        expected = np.clip(every @ fitted, -30.0, 30.0)
        share = 1.0 / (1.0 + np.exp(-expected) * counted.m / counted.n)
        variance = max(misfit, 1.0) * np.einsum("ij,jk,ik->i", every, covariance, every)
        return cls(edges, np.concatenate([[0.0], np.cumsum(share * width)]), variance, misfit)


def _curves(scores: Floats, at: Integers, weight: Floats, ranks: Integers, by_depth: bool) -> Floats:
    """The functions that make up a log-ratio along the score, at the given ranks; shape (ranks, functions)."""
    if by_depth:  # how deep in a tail each rank is: minus the logarithm of the tail's mass, negative in the lower tail
        share = (ranks + 0.5) / len(scores)
        t = np.where(share < 0.5, np.log(2.0 * share), -np.log(2.0 * (1.0 - share)))
        up, down = np.maximum(t, 0.0), np.minimum(t, 0.0)
        return np.stack([np.ones_like(t), up, down, up**2, down**2], axis=1)
    # Scores around their mean over slices, in units of their spread.
    scores = scores - scores[len(scores) // 2]  # sums of large numbers would round away what distinguishes them
    mean = np.diff(np.concatenate([[0.0], np.cumsum(scores)])[at]) / np.diff(at)
    centre = np.average(mean, weights=weight)
    unit = float(np.sqrt(np.average((mean - centre) ** 2, weights=weight))) or 1.0
    t = np.clip((scores[ranks] - centre) / unit, -1e6, 1e6)
    return np.stack([np.ones_like(t), t, np.maximum(t, 0.0) ** 2, np.minimum(t, 0.0) ** 2], axis=1)


# Prediction, share of all training draws, p and q to expect, and how much of the prediction may be chance.
Tail = tuple[float, float, float, float, float]


def _best_of_end(counted: _Counted, model: _Model, task: Task, upper: bool, flipped: bool) -> Tail | None:
    """The best size of one end of the score, `flipped` where the right distribution should be the larger one."""
    total = counted.n + counted.m
    # Predictions for other notions are slow.
    masses = _MASSES if isinstance(task.claim, PureDP | ApproxDP) else _MASSES[::4]
    sizes = np.unique((masses * total).astype(np.int64))
    sizes = sizes[(sizes >= 8) & (sizes < total)]
    # Ties are inside or outside together.
    if upper:
        cut = np.searchsorted(counted.scores, counted.scores[total - sizes], side="left")
        lefts, size = counted.n - counted.lefts[cut], total - cut
    else:
        cut = np.searchsorted(counted.scores, counted.scores[sizes - 1], side="right")
        lefts, size = counted.lefts[cut], cut
    inner = (size >= 8) & (size < total)
    if not inner.any():
        return None
    cut, lefts = cut[inner], lefts[inner].astype(np.float64)
    mass: Floats = size[inner].astype(np.float64)
    sides = (lefts, counted.n), (mass - lefts, counted.m)
    (hits, n), (others, m) = sides[::-1] if flipped else sides
    ratio = np.log((hits + 0.5) / (n + 1.0)) - np.log((others + 1.0) / (m + 1.0))
    variance = 1.0 / np.maximum(hits, 0.5) + 1.0 / np.maximum(others, 1.0) - 1.0 / n - 1.0 / m
    variance = np.maximum(variance, 1e-12)
    below = np.interp(cut, model.edges, model.lefts)
    inside = model.lefts[-1] - below if upper else below
    inside = mass - inside if flipped else inside
    guess = np.log(np.maximum(inside, 1e-9) / n) - np.log(np.maximum(mass - inside, 1e-9) / m)
    step = np.minimum(np.searchsorted(model.edges, cut, side="right"), len(model.variance)) - 1
    doubtful = (_WRONG * guess) ** 2 + model.variance[step] + 1e-12
    ratio = (guess / doubtful + ratio / variance) / (1.0 / doubtful + 1.0 / variance)
    variance = 1.0 / (1.0 / doubtful + 1.0 / variance)
    p, q = _split(mass, ratio, n, m)
    low, high = _split(mass, ratio - _DOUBT * np.sqrt(variance), n, m)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    predicted = predict(task, low, np.maximum(high, 0.3 / n_fresh[1]), (n, m), n_fresh, doubt=0.0)[0]
    best = int(np.argmax(predicted))
    luck = float(np.sqrt(1.0 / max(hits[best], 0.5) + 1.0 / max(others[best], 1.0)))
    return float(predicted[best]), float(mass[best]) / total, float(p[best]), float(q[best]), luck


def _split(size: Floats, ratio: Floats, n: int, m: int) -> tuple[Floats, Floats]:
    """The two frequencies of an event that was seen so often on both sides together, with the given log-ratio."""
    grow = np.exp(np.clip(ratio, -30.0, 30.0))
    q = size / (n * grow + m)
    return np.minimum(q * grow, 1.0), np.minimum(q, 1.0)
