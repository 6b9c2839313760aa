"""One score over all outputs, whatever their shapes, and the tail of it that is worth proving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.base import Task, one_thread
from epsilometer.methods.events.additive import GRAM_ROWS, Side, as_score, cut_columns, fit, folds_of, starts_of
from epsilometer.methods.events.cells import blocks_of_both
from epsilometer.methods.events.choosing import Choice
from epsilometer.methods.events.prediction import predictor
from epsilometer.outputs import Block, BlockPartition, Group, Line, Numbers, Outputs, Partition
from epsilometer.outputs.scores import AdditiveScore


@dataclass(frozen=True, slots=True)
class Scored:
    """One score over all outputs, with the scores of training draws by weights that were fitted without them.

    Attributes:
        shapes: for each shape the number of its columns, the score of what is in it, and what the shape itself adds.
        left: shape (n,), scores of the left draws.
        right: shape (m,).
        whole: the scores of all draws by the final weights, sorted.
    """

    shapes: dict[str, tuple[int, AdditiveScore | None, float]]
    left: Floats
    right: Floats
    whole: Floats

    @property
    def partition(self) -> Partition:
        """Cells of about equal mass."""
        return self.cut(np.unique(np.quantile(self.whole, np.linspace(0.0, 1.0, _CELLS + 1)[1:-1])))

    def cut(self, at: Floats) -> Partition:
        """Cells between the given scores, in every shape."""
        blocks = []
        for shape, (n_columns, score, base) in self.shapes.items():
            signature = (-1,) * n_columns or (0,)
            group = Group(signature) if score is None else Group(signature, Line(at - base), score=score)
            blocks.append(BlockPartition(shape, (None,) * n_columns, (group,)))
        return Partition(tuple(blocks))


def learn_scores(left: Outputs, right: Outputs) -> list[Scored]:
    """The scores that may be best: of the columns, and of what each column adds to those before it."""
    pairs = blocks_of_both(left, right)
    with one_thread():
        found = [_learn(pairs, mixed=False)]
        if len(pairs) == 1 and _goes_together(*pairs[0]):
            found.append(_learn(pairs, mixed=True))
    return [each for each in found if each is not None]


# Cells in which a score is compared with others.
_CELLS = 32
# Shapes that get a score of their own, the most frequent first, and draws that one must have.
_MOST_SHAPES, _ENOUGH = 16, 60


def _learn(pairs: Sequence[tuple[Block, Block]], mixed: bool) -> Scored:
    by_size = sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size)
    folds = [[folds_of(block.rows) for block in pair] for pair in by_size]
    sizes = np.array(
        [
            [[_n_rows(block, rows) for rows in fold] for block, fold in zip(*each, strict=True)]
            for each in zip(by_size, folds, strict=True)
        ]
    )  # (shapes, sides, folds)
    bases = _log_odds(sizes)
    shapes, lefts, rights, wholes = {}, [], [], []
    for number, ((a, b), fold, base) in enumerate(zip(by_size, folds, bases, strict=True)):
        score = None
        own = [np.zeros(a.size), np.zeros(b.size)]
        whole = np.zeros(a.size + b.size)
        views = _innovations(a, b) if mixed else [(column, None) for column in range(len(a.columns))]
        if number < _MOST_SHAPES and min(a.size, b.size) >= _ENOUGH and (cuts := cut_columns(a, b, views)):
            sides = Side.of(cuts, a, fold[0]), Side.of(cuts, b, fold[1])
            fitted, starts = fit(cuts, *sides), starts_of(cuts)
            own = [side.left_out(starts, fitted.without) for side in sides]
            whole = np.concatenate([side.score(starts, fitted.whole) for side in sides])
            score = as_score(cuts, fitted.whole)
        for side, values, parts in zip((lefts, rights), own, fold, strict=True):
            for rows, without in zip(parts, base[1:], strict=True):
                values[rows] += without
            side.append(values)
        wholes.append(whole + base[0])
        shapes[a.shape] = len(a.columns), score, float(base[0])
    return Scored(shapes, np.concatenate(lefts), np.concatenate(rights), np.sort(np.concatenate(wholes)))


def _n_rows(block: Block, rows: slice | Integers) -> int:
    return len(range(*rows.indices(block.size))) if isinstance(rows, slice) else len(rows)


def _log_odds(sizes: Integers) -> Floats:
    """How much likelier each shape is on the left: from all draws, and without each fold; shape (shapes, 1 + folds)."""
    seen = np.concatenate([sizes.sum(axis=2, keepdims=True), sizes.sum(axis=2, keepdims=True) - sizes], axis=2)
    # Pulled towards even odds by about one draw.
    share = np.log(seen + 0.5) - np.log(seen.sum(axis=0) + 1.0)
    return np.asarray(share[:, 0] - share[:, 1]) if len(sizes) > 1 else np.zeros((1, seen.shape[2]))


# Columns that may be told by those before them: at most so many, correlated by more than chance.
_MOST_MIXED, _CORRELATED = 64, 0.05


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
    correlation = np.corrcoef(_standard(rows)[0].T)
    return bool(np.abs(correlation - np.eye(len(correlation))).max() > _CORRELATED)


def _matrix(left: Block, right: Block) -> Floats | None:
    columns = []
    for a, b in zip(left.columns, right.columns, strict=True):
        if not (isinstance(a, Numbers) and isinstance(b, Numbers)):
            return None
        columns.append(np.concatenate([np.asarray(each.values[:GRAM_ROWS], np.float64) for each in (a, b)]))
    rows = np.stack(columns, axis=1)
    return rows if np.isfinite(rows).all() and np.ptp(rows, axis=0).min() > 0.0 else None


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
    mixes = np.linalg.inv(factor) / unit
    return [(column, mixes[column]) for column in range(rows.shape[1])]


# --- the tail --------------------------------------------------------------------------------------------------------

# Candidate sizes of the event: its share of all training draws.
_MASSES: Floats = np.concatenate([np.linspace(0.95, 0.3, 27), np.geomspace(0.28, 8e-6, 84)])
# Slices of the scores in which the log-ratio is counted: fine at both ends.
_SLICES: Floats = np.concatenate(
    [np.geomspace(1e-4, 0.02, 16), np.linspace(0.03, 0.97, 48), 1.0 - np.geomspace(0.02, 1e-4, 16)]
)
# How many spreads of the predicted log-ratio are given away; the curvature of the log-ratio along the score, as a
# share of its slope; how wrong the model may be in a tail, as a share of the log-ratio.
_DOUBT, _CURVATURE, _WRONG = 1.0, 0.1, 0.1


@dataclass(frozen=True, slots=True)
class Tail:
    """An end of a score.

    Attributes:
        mass: its share of all training draws.
        flipped: False for the upper end, where the left distribution is the larger one.
        p: the frequency to expect under the larger distribution.
        q: under the other.
        predicted: the bound to expect.
    """

    mass: float
    flipped: bool
    p: float
    q: float
    predicted: float


def best_tail(scored: Scored, task: Task) -> Tail | None:
    """The end of the score with the best predicted bound."""
    counted = _Counted.of(scored)
    model = _Model.of(counted)
    found = [tail for flipped in (False, True) if (tail := _best_of_end(counted, model, task, flipped)) is not None]
    return max(found, key=lambda tail: tail.predicted, default=None)


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

    @classmethod
    def of(cls, scored: Scored) -> _Counted:
        scores = np.concatenate([scored.left, scored.right])
        order = np.argsort(scores, kind="stable")
        lefts = np.concatenate([[0], np.cumsum(order < len(scored.left))])
        return cls(scores[order], lefts, len(scored.left), len(scored.right))

    def between_ties(self, ranks: Integers) -> Integers:
        """The same ranks, moved down to where a score begins."""
        return np.searchsorted(self.scores, self.scores[ranks], side="left")


@dataclass(frozen=True, slots=True)
class _Model:
    """The log-ratio as a function of the score: a line, bent a little on either side of the middle.

    Attributes:
        lefts: shape (n + 1,), left draws to expect among the first k.
        variance: shape (n,), of the log-ratio at each draw.
    """

    lefts: Floats
    variance: Floats

    @classmethod
    def of(cls, counted: _Counted) -> _Model | None:
        total = len(counted.scores)
        ends = counted.between_ties(np.minimum((_SLICES * total).astype(np.int64), total - 1))
        at = np.unique(np.concatenate([[0], ends, [total]]))
        if len(at) < 3:
            return None
        hits = np.diff(counted.lefts[at])
        others = np.diff(at) - hits
        ratio = np.log((hits + 0.5) / counted.n) - np.log((others + 0.5) / counted.m)
        weight = 1.0 / (1.0 / (hits + 0.5) + 1.0 / (others + 0.5))
        sums = np.concatenate([[0.0], np.cumsum(counted.scores)])
        mean = np.diff(sums[at]) / np.diff(at)
        centre = np.average(mean, weights=weight)
        unit = np.sqrt(np.average((mean - centre) ** 2, weights=weight)) + 1e-300
        basis = _basis((mean - centre) / unit)
        normal = (basis * weight[:, None]).T @ basis
        right_side = (basis * weight[:, None]).T @ ratio
        slope = np.linalg.solve(normal[:2, :2] + 1e-9 * np.eye(2), right_side[:2])[1]
        penalty = np.array([0.0, 0.0, 1.0, 1.0]) / (_CURVATURE * abs(slope) + 1e-9) ** 2
        covariance = np.linalg.inv(normal + np.diag(penalty) + 1e-9 * np.eye(4))
        fitted = covariance @ right_side
        misfit = float(weight @ (ratio - basis @ fitted) ** 2) / max(len(ratio) - 4, 1)
        every = _basis((counted.scores - centre) / unit)
        expected = np.clip(every @ fitted, -30.0, 30.0)
        share = 1.0 / (1.0 + np.exp(-expected) * counted.m / counted.n)
        variance = max(misfit, 1.0) * np.einsum("ij,jk,ik->i", every, covariance, every)
        return cls(np.concatenate([[0.0], np.cumsum(share)]), variance)


def _basis(t: Floats) -> Floats:
    return np.stack([np.ones_like(t), t, np.maximum(t, 0.0) ** 2, np.minimum(t, 0.0) ** 2], axis=1)


def _best_of_end(counted: _Counted, model: _Model | None, task: Task, flipped: bool) -> Tail | None:
    total = counted.n + counted.m
    sizes = np.unique((_MASSES * total).astype(np.int64))
    sizes = sizes[(sizes >= 8) & (sizes < total)]
    # Ties are inside or outside together.
    if flipped:
        cut = np.searchsorted(counted.scores, counted.scores[sizes - 1], side="right")
        lefts, size = counted.lefts[cut], cut
    else:
        cut = counted.between_ties(total - sizes)
        lefts, size = counted.n - counted.lefts[cut], total - cut
    inner = (size >= 8) & (size < total)
    if not inner.any():
        return None
    cut, lefts, size = cut[inner], lefts[inner].astype(np.float64), size[inner].astype(np.float64)
    hits, others, n, m = (
        (size - lefts, lefts, counted.m, counted.n) if flipped else (lefts, size - lefts, counted.n, counted.m)
    )
    ratio = np.log((hits + 0.5) / (n + 1.0)) - np.log((others + 1.0) / (m + 1.0))
    variance = 1.0 / np.maximum(hits, 0.5) + 1.0 / np.maximum(others, 1.0) - 1.0 / n - 1.0 / m
    variance = np.maximum(variance, 1e-12)
    if model is not None:
        inside = model.lefts[cut] if flipped else model.lefts[-1] - model.lefts[cut]
        inside = size - inside if flipped else inside
        guess = np.log(np.maximum(inside, 1e-9) / n) - np.log(np.maximum(size - inside, 1e-9) / m)
        doubtful = (_WRONG * guess) ** 2 + model.variance[np.minimum(cut, total - 1)] + 1e-12
        ratio = (guess / doubtful + ratio / variance) / (1.0 / doubtful + 1.0 / variance)
        variance = 1.0 / (1.0 / doubtful + 1.0 / variance)
    p, q = _split(size, ratio, n, m)
    low, high = _split(size, ratio - _DOUBT * np.sqrt(variance), n, m)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    predicted = predictor(task, (n, m), n_fresh, doubt=0.0)(low, np.maximum(high, 0.3 / n_fresh[1]))[0]
    best = int(np.argmax(predicted))
    return Tail(float(size[best]) / total, flipped, float(p[best]), float(q[best]), float(predicted[best]))


def _split(size: Floats, ratio: Floats, n: int, m: int) -> tuple[Floats, Floats]:
    """The two frequencies of an event that was seen so often on both sides together, with the given log-ratio."""
    grow = np.exp(np.clip(ratio, -30.0, 30.0))
    q = size / (n * grow + m)
    return np.minimum(q * grow, 1.0), q


def cut_at(scored: Scored, tail: Tail) -> tuple[Partition, Choice]:
    """The cells inside and outside of the tail, and the choice of those inside."""
    scores = scored.whole
    n = len(scores)
    size = min(max(round(tail.mass * n), 1), n - 1)
    low, high = (scores[size - 1], scores[size]) if tail.flipped else (scores[n - size - 1], scores[n - size])
    threshold = 0.5 * (low + high) if low < high else (np.nextafter(low, np.inf) if tail.flipped else high)
    chosen = []
    for _, score, base in scored.shapes.values():
        inside = [(base >= threshold) != tail.flipped] if score is None else [tail.flipped, not tail.flipped, False]
        chosen += [*inside, False]
    choice = Choice(np.array([*chosen, False]), tail.flipped, tail.predicted, tail.p, tail.q)
    return scored.cut(np.array([threshold])), choice
