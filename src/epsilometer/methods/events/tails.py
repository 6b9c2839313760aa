"""One score over all outputs, whatever their shapes, and the tail of it that is worth proving."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.environment import one_thread
from epsilometer.methods.base import Task
from epsilometer.methods.events.additive import (
    GRAM_ROWS,
    MOST_WEIGHTS,
    Folds,
    Side,
    as_score,
    fit,
    folds_of,
    starts_of,
)
from epsilometer.methods.events.cells import (
    MOST_ROWS,
    ColumnCells,
    ProductCells,
    blocks_of_both,
    cut_columns,
)
from epsilometer.methods.events.choosing import Choice
from epsilometer.methods.events.curves import Curves, Sliced, fit_curves, tells_sides
from epsilometer.methods.events.learning import line_of_long_numbers
from epsilometer.methods.events.prediction import mean_if_proved, predict_ratios
from epsilometer.outputs import (
    Block,
    BlockPartition,
    Event,
    Group,
    Line,
    Numbers,
    Outputs,
    Partition,
)
from epsilometer.outputs.columns import is_long_number
from epsilometer.outputs.scores import AdditiveScore

# The groups of one shape with the scores of what varies in them, without lines; and what is added
# to each score.
ShapeScore = tuple[BlockPartition, Floats]


@dataclass(frozen=True, slots=True)
class Scored:
    """One score over all outputs, and the scores of training draws by weights that were fitted without them.

    Attributes:
        shapes: how each shape is scored.
        left: shape (n,), scores of the left draws.
        right: shape (m,).
        whole: the scores of all draws by the final weights, sorted; along a line, of the first ones
            of either side.
        is_line: whether the score is the output itself, a number.
        centre: where the score is the distance of a number from here.
    """

    shapes: Sequence[ShapeScore]
    left: Floats
    right: Floats
    whole: Floats
    is_line: bool = False
    centre: float | None = None

    @property
    def sums(self) -> list[AdditiveScore]:
        """Its scores of several columns; none where it is a number or the shape itself."""
        wide = [block.groups for block, _ in self.shapes if len(block.atoms) > 1]
        return [
            group.score
            for groups in wide
            for group in groups
            if isinstance(group.score, AdditiveScore)
        ]

    @property
    def partition(self) -> Partition:
        """Cells of about equal mass."""
        return self.cut(np.unique(np.quantile(self.whole, np.linspace(0.0, 1.0, _CELLS + 1)[1:-1])))

    def cut(self, at: Floats) -> Partition:
        """Cells between the given scores, in every shape."""
        if self.centre is not None:
            at = np.concatenate([self.centre - at[::-1], self.centre + at])
        blocks = []
        for block, bases in self.shapes:
            groups = []
            for group, base in zip(block.groups, bases, strict=True):
                is_cut = self.is_line or group.score is not None
                groups.append(replace(group, line=Line(np.unique(at - base))) if is_cut else group)
            blocks.append(replace(block, groups=tuple(groups)))
        return Partition(tuple(blocks))

    def end(self, mass: float, upper: bool) -> Event:
        """The upper or the lower end of the score with this share of all draws."""
        n = len(self.whole)
        whole = self.whole
        size = min(max(round(mass * n), 1), n - 1)
        low, high = (
            (whole[n - size - 1], whole[n - size]) if upper else (whole[size - 1], whole[size])
        )
        # Sums of weights are equal up to rounding: a threshold beside them, not on one.
        same = 0.0 if self.is_line else _ROUNDING * (whole[-1] - whole[0])
        beside = high - same if upper else np.nextafter(low + same, np.inf)
        middle = 0.5 * (low + high)
        threshold = middle if high - low > same and middle > low else beside
        cells = [not upper, upper] if self.centre is None else [upper, not upper, upper]
        chosen: list[bool] = []
        for block, bases in self.shapes:
            for group, base in zip(block.groups, bases, strict=True):
                is_cut = self.is_line or group.score is not None
                chosen += [*cells, False] if is_cut else [bool((base >= threshold) == upper)]
            chosen.append(False)
        return Event(self.cut(np.array([threshold])), np.array([*chosen, False]))


# With fewer training draws per side, or of one shape, there is nothing to learn.
_FEWEST = 5


def learn_scores(left: Outputs, right: Outputs, lines: bool = True) -> list[Scored]:
    """The scores that may be best: of the columns, and of what each column adds to those before it.

    Without `lines` there are none of single numbers, which are their own score.
    """
    pairs = blocks_of_both(left, right)
    if min(len(left), len(right)) < _FEWEST:
        return []
    if not any(len(a.columns) > 1 and not is_long_number(a.shape) for a, _ in pairs):
        return _learn_single(pairs) if lines else []
    with one_thread():
        found = [_learn(pairs, mixed=False)]
        if len(pairs) == 1 and _goes_together(*pairs[0]):
            found.append(_learn(pairs, mixed=True))
    return found


def _learn_single(pairs: Sequence[tuple[Block, Block]]) -> list[Scored]:
    """Single numbers are their own score; so is their distance from where they are densest, if that tells more.

    A few values, of any kind, also have an order to be learned, where each is judged by itself and
    its neighbours.
    """
    n_columns = len(pairs[0][0].columns)
    place = line_of_long_numbers(*pairs[0]) if n_columns > 1 else 0
    if len(pairs) > 1 or not n_columns or place is None:
        return []
    columns = [side.columns[place] for side in pairs[0]]
    look = np.concatenate(
        [(each.values if isinstance(each, Numbers) else each.codes)[:_LOOK] for each in columns]
    )
    values: list[Scored] = []
    if len(np.unique(look)) in _FEW_VALUES and n_columns == 1:
        with one_thread():
            values.append(_learn(pairs, mixed=False))
    numbers = [
        np.asarray(each.values[:MOST_ROWS], np.float64)
        for each in columns
        if isinstance(each, Numbers)
    ]
    # Infinity is farther than anything; what is no number is left to the cells.
    numbers = [np.clip(each[~np.isnan(each)], -1.0 / _TINY, 1.0 / _TINY) for each in numbers]
    if len(numbers) < 2 or min(map(len, numbers)) < _FEWEST:
        return values
    whole = np.sort(np.concatenate([each[:_PLACED] for each in numbers]))
    if not whole[-1] - whole[0] > _TINY * len(whole):
        return values
    left, right = numbers
    reach = max(int(_DENSEST * len(whole)), 1)
    centre = float(whole[np.argmin(whole[reach:] - whole[:-reach]) + reach // 2])
    group = Group((-1,) * n_columns, column=place)
    shapes = [(BlockPartition(pairs[0][0].shape, (None,) * n_columns, (group,)), np.zeros(1))]
    lines = [Scored(shapes, left, right, whole, is_line=True)]
    few = [each[:_LOOK] for each in numbers]
    is_inside = abs(centre) < 1.0 / _TINY
    if is_inside and tells_sides(*few) + _UNUSUAL < tells_sides(
        *(np.abs(each - centre) for each in few)
    ):
        left, right, whole = (np.abs(each - centre) for each in (left, right, whole))
        lines.append(Scored(shapes, left, right, np.sort(whole), is_line=True, centre=centre))
    return [*lines, *values]


# Outputs that take this many different values are also put into a learned order; more are too many
# for that.
_FEW_VALUES = range(4, 25)
# Single numbers are densest in the shortest interval with this share of them: a spike holds it
# whole, and that of plain noise wanders little.
_DENSEST = 0.1
# Draws per side that are sorted to place cuts: more would hardly move them, and all are counted
# between them.
_PLACED = 1 << 15
# Draws per side that decide between numbers and distances, and the logarithm of the odds, before
# any draw, that it is not the distance (noisy_gradient_descent at 1e4 draws: one seed in 16 took it
# by chance, and proved nothing).
_LOOK = 1 << 12
_UNUSUAL = 2.0
# Cells in which a score is compared with others.
_CELLS = 32
# Of the range of all scores: what is nearer than this is the same, summed in another order.
_ROUNDING = 1e-9
# Of at most this many columns, some are also scored together.
_MOST_TOGETHER = 4
# Shapes that get a score of their own, the most frequent first.
_MOST_SHAPES = 16


def _learn(pairs: Sequence[tuple[Block, Block]], mixed: bool) -> Scored:
    by_size = sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size)
    folds = [(folds_of(a), folds_of(b)) for a, b in by_size]
    bases = _log_odds(np.array([[[len(rows) for rows in side] for side in pair] for pair in folds]))
    shapes: list[ShapeScore] = []
    left_out: tuple[list[Floats], list[Floats]] = ([], [])
    wholes = []
    for number, (pair, fold, base) in enumerate(zip(by_size, folds, bases, strict=True)):
        score, own, whole = (
            _score_shape(pair, fold, mixed) if number < _MOST_SHAPES else _no_score(pair)
        )
        for found, values, parts in zip(left_out, own, fold, strict=True):
            for rows, without in zip(parts, base[1:], strict=True):
                values[rows] += without
            found.append(values)
        wholes.append(whole + base[0])
        shapes.append((score[0], score[1] + base[0]))
    left, right = map(np.concatenate, left_out)
    return Scored(shapes, left, right, np.sort(np.concatenate(wholes)))


# The weights of each column or product.
Parts = Sequence[Floats]
# The score of a shape, each draw's score without its fold, left and right, and the scores of all
# draws.
Fitted = tuple[ShapeScore, tuple[Floats, Floats], Floats]


def _score_shape(pair: tuple[Block, Block], folds: tuple[Folds, Folds], mixed: bool) -> Fitted:
    views = (
        _innovations(*pair) if mixed else [(column, None) for column in range(len(pair[0].columns))]
    )
    if (
        not views
        or min(pair[0].size, pair[1].size) < _FEWEST
        or not (cuts := cut_columns(*pair, views))
    ):
        return _no_score(pair)
    products = _products(cuts)
    every: list[ColumnCells | ProductCells] = [*cuts, *products]
    left, right = (Side.of(every, block, fold) for block, fold in zip(pair, folds, strict=True))
    (fitted, *without), starts = fit(every, left, right), starts_of(every)
    own = left.left_out(starts, without), right.left_out(starts, without)
    whole = np.concatenate([side.score(starts, fitted) for side in (left, right)])
    weights = np.split(fitted, starts[1:-1])
    by_key = (
        _by_key(pair[0], cuts, products, weights)
        if products
        else _whole(pair[0], as_score(cuts, fitted))
    )
    return by_key, own, whole


def _products(cuts: Sequence[ColumnCells]) -> list[ProductCells]:
    """Of few columns, the others within each value of the one with the most values, if some of them vary."""
    if not 1 < len(cuts) <= _MOST_TOGETHER:
        return []
    key = max(cuts, key=lambda cut: len(cut.atoms))
    others = [cut for cut in cuts if cut is not key]
    size = sum(cut.size for cut in cuts) + key.size * sum(other.size for other in others)
    varies = any(other.size > len(other.atoms) for other in others)
    # Single values may lie among a continuum, which then is no key.
    is_key = 2 * len(key.known) > key.size
    return (
        [ProductCells(key, other) for other in others]
        if is_key and varies and size <= MOST_WEIGHTS
        else []
    )


def _by_key(
    block: Block, cuts: Sequence[ColumnCells], products: list[ProductCells], weights: Parts
) -> ShapeScore:
    """A group for each known value of the key, with a score of the other columns; one for all other values of it."""
    key = products[0].key
    of_column = {cut.term.column: each for cut, each in zip(cuts, weights, strict=False)}
    column = key.term.column
    others = [(each.other, of_column[each.other.term.column]) for each in products]
    within = [each.reshape(key.size, -1) for each in weights[len(cuts) :]]
    n_columns = len(block.columns)
    groups = []
    for code in range(len(key.known)):
        terms = (
            cut.weighted(each + more[code])
            for (cut, each), more in zip(others, within, strict=True)
        )
        signature = tuple(code if number == column else -1 for number in range(n_columns))
        groups.append(Group(signature, score=AdditiveScore(tuple(terms))))
    rest = Group((-1,) * n_columns, score=as_score(cuts, np.concatenate(weights[: len(cuts)])))
    atoms = tuple(key.known if number == column else None for number in range(n_columns))
    return BlockPartition(block.shape, atoms, (*groups, rest)), np.append(
        of_column[column][: len(groups)], 0.0
    )


def _whole(block: Block, score: AdditiveScore | None = None) -> ShapeScore:
    """All outputs of a shape as one group."""
    n_columns = len(block.columns)
    group = Group((-1,) * n_columns or (0,), score=score)
    return BlockPartition(block.shape, (None,) * n_columns, (group,)), np.zeros(1)


def _no_score(pair: tuple[Block, Block]) -> Fitted:
    return (
        _whole(pair[0]),
        (np.zeros(pair[0].size), np.zeros(pair[1].size)),
        np.zeros(pair[0].size + pair[1].size),
    )


def _log_odds(sizes: Integers) -> Floats:
    """How much likelier each shape is on the left: from all draws, and without each fold; shape (shapes, 1 + folds)."""
    total = sizes.sum(axis=2, keepdims=True)
    seen = np.concatenate([total, total - sizes], axis=2).astype(np.float64)
    if len(seen) == 1:
        return np.zeros((1, seen.shape[2]))
    # Pulled towards even odds by about one draw.
    odds = np.log((seen[:, 0] + 0.5) / (seen[:, 0].sum(axis=0) + 1.0))
    return np.asarray(odds - np.log((seen[:, 1] + 0.5) / (seen[:, 1].sum(axis=0) + 1.0)))


# Columns that those before them may forecast: at most the first number of them, correlated by more
# than the second.
_MOST_MIXED = 64
_CORRELATED = 0.05
# Columns whose spread, or the inverse of whose size, is smaller than this are not multiplied.
_TINY = 1e-100


def _goes_together(left: Block, right: Block) -> bool:
    """Whether all columns vary continuously and some of them go together."""
    if not 1 < len(left.columns) <= _MOST_MIXED or min(left.size, right.size) < _FEWEST:
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
        columns.append(
            np.concatenate([np.asarray(each.values[:GRAM_ROWS], np.float64) for each in (a, b)])
        )
    rows = np.stack(columns, axis=1)
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    usual = (
        (high / 2 - low / 2 > _TINY) & (np.abs(low) < 1.0 / _TINY) & (np.abs(high) < 1.0 / _TINY)
    )
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


# --- the tail
# --------------------------------------------------------------------------------------------------------

# How many spreads of the log-ratio are given away, and how wrong a curve may be in a tail, as a
# share of the log-ratio (1e4 draws, 20 seeds: normal noise .95 of the oracle at 0.5 and .93 at 1,
# truncated Laplace noise .90 and .94). Of few draws of both sides more is given away: a plateau
# that is as likely as a straight line must not be missed by one audit in ten (300 draws per side:
# Laplace noise .88 at 1 and .91 at 1.5, normal noise .86 and .84).
_DOUBT = 1.0
_DOUBT_OF_FEW = 1.5
_FEW = 800
_WRONG = 0.04
# Further spreads that are given away when a few values in an order of their own compete with the
# order of numbers (1e4 draws, 40 seeds, share of the oracle at 0, .75 and 1.5: geometric .94, .96,
# .98; svt1 .57, .56, .54). The log-odds that the log-ratio is straight along a sum of weights,
# which estimate it: the first figure times the logarithm of all draws over the second, less where
# few columns count. True bends show ever more clearly, and the luckiest of many never does (chosen
# events at 1e6 draws, without it and with it: NumericalSVT .69, .80; SVT1 .92, .99; LaplaceParallel
# .83, .89). With fewer draws svt6 and shuffled responses, whose log-ratios do bend, would pay for
# it.
_LUCKY_ORDER = 0.75
_STRAIGHT = 2.3
_PLENTY = 6000.0
# An event that holds fewer training draws than this is none.
_FEWEST_INSIDE = 4
# Sizes for which notions other than (ε, δ) are predicted, in both directions of either end.
_FEW_SIZES = 24


def choose_tail(scored: Scored, task: Task) -> tuple[Event, Choice] | None:
    """The end of the score with the best predicted bound."""
    # A score grows with the left's share; along a line it may do so in either direction.
    ends = (
        (True, False),
        (False, True),
        *([(True, True), (False, False)] if scored.is_line else []),
    )
    sliced = Sliced.of(scored.left, scored.right, scored.whole if scored.is_line else None)
    reach = [np.array([term.reach for term in each.terms]) ** 2 for each in scored.sums]
    several = max(
        (1.0 - (each**2).sum() / max(each.sum() ** 2, 1e-300) for each in reach), default=0.0
    )
    curves = fit_curves(
        sliced, _STRAIGHT * float(several * np.log(max(sliced.at[-1] / _PLENTY, 1.0)))
    )
    found = [
        (tail, *end)
        for end in ends
        if (tail := _best_of_end(sliced, curves, task, *end)) is not None
    ]
    if not found:
        return None
    # Rounded: of an event and its opposite, which are equally good, the first.
    (predicted, mass, p, q, spread), upper, flipped = max(
        found, key=lambda each: round(each[0][0], 9)
    )
    event = scored.end(mass, upper)
    luck = 0.0 if scored.is_line or scored.sums else _LUCKY_ORDER * spread
    return event, Choice(event.chosen, flipped, predicted, p, q, luck)


# Prediction, share of `Scored.whole`, p and q to expect, spread of their log-ratio.
Tail = tuple[float, float, float, float, float]


def _best_of_end(
    sliced: Sliced, curves: Curves, task: Task, upper: bool, flipped: bool
) -> Tail | None:
    """The best size of one end of a score, `flipped` where the right distribution should be the larger one."""
    total = int(sliced.at[-1])
    n_left = int(sliced.lefts[-1])
    below = sliced.at[1:-1]
    lefts = sliced.lefts[1:-1]
    guesses = curves.lefts[:, 1:-1]
    shares = sliced.shares
    if upper:
        below = total - below
        lefts = n_left - lefts
        guesses = curves.lefts[:, -1:] - guesses
        shares = 1.0 - shares
    mass = below.astype(np.float64)
    inside = np.flatnonzero(mass >= _FEWEST_INSIDE)
    if not isinstance(task.claim, PureDP | ApproxDP):  # predictions for other notions are slow
        inside = inside[:: max(1, len(inside) // _FEW_SIZES)]
    if not len(inside):
        return None
    mass = mass[inside]
    hits = lefts[inside].astype(np.float64)
    expected = guesses[:, inside]
    n = n_left
    m = total - n_left
    if flipped:
        n, m, hits, expected = m, n, mass - hits, mass - expected
    # The log-ratio of each size by its draws, and by the curves.
    counted = np.log((hits + 0.5) / n) - np.log((mass - hits + 0.5) / m)
    noise = np.maximum(1.0 / (hits + 0.5) + 1.0 / (mass - hits + 0.5) - 1.0 / n - 1.0 / m, 1e-12)
    each = np.log((expected + 1e-9) / n) - np.log((mass - expected + 1e-9) / m)
    guess = curves.weights @ each
    doubtful = curves.weights @ (each - guess) ** 2 + (_WRONG * guess) ** 2 + 1e-12
    precision = 1.0 / doubtful + 1.0 / noise
    ratio = (guess / doubtful + counted / noise) / precision
    spread = 1.0 / np.sqrt(precision)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    doubt = _DOUBT if total >= _FEW else _DOUBT_OF_FEW
    predicted, varies, p, q = predict_ratios(task, mass, ratio, spread, (n, m), n_fresh, doubt)
    # what proves nothing is ranked far below, by its luck
    if isinstance(task.claim, PureDP | ApproxDP):
        predicted = np.where(predicted > 0.0, predicted, 1e-3 * mean_if_proved(predicted, varies))
    best = int(np.argmax(predicted))
    return (
        float(predicted[best]),
        float(shares[inside[best]]),
        float(p[best]),
        float(q[best]),
        float(spread[best]),
    )
