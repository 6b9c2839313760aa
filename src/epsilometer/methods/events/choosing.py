"""Chooses one event and one direction on training draws: by cross-validation, or among few kinds of outputs."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.methods.base import Task
from epsilometer.methods.events.prediction import (
    expected_bounds,
    few_doubt,
    mean_if_proved,
    predict,
    predict_ratios,
)
from epsilometer.outputs import Partition
from epsilometer.outputs.lines import next_float

# Widths (in bins) of the smoothing along a line; 0 trusts every bin by itself.
_BIN_WIDTHS = (0, 1, 2, 4, 8)
# Pseudo-counts: many for rare atoms, whose ratio is mostly chance.
_BIN_PRIORS = (1.0,)
_ATOM_PRIORS = (0.5, 3.0, 12.0)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which cells of a partition are neighbours.

    Attributes:
        group: shape (cells,), cells of one signature share a number.
        bins: for each line its bins, in order.
        atoms: for each line its single values, in order.
        n_scores: how many of the lines are lines of scores.
    """

    group: Integers
    bins: tuple[Integers, ...]
    atoms: tuple[Integers, ...]
    n_scores: int


def lay_out(partition: Partition) -> Layout:
    """The layout of a partition's cells."""
    group = []
    bins = []
    atoms = []
    number = 0
    first = 0
    n_scores = 0
    for block in partition.blocks:
        for part in block.groups:
            if part.line:
                # which cells are single values, or NaN
                single = np.zeros(part.n_cells, dtype=np.bool_)
                if len(part.line.edges) > 1:
                    single[1:-2] = next_float(part.line.edges[:-1]) == part.line.edges[1:]
                single[-1] = True
                bins.append(first + np.flatnonzero(~single))
                atoms.append(first + np.flatnonzero(single))
            n_scores += part.score is not None
            group += [number] * part.n_cells
            first += part.n_cells
            number += 1
        group.append(number)
        first = first + 1
        number = number + 1
    return Layout(np.array([*group, number]), tuple(bins), tuple(atoms), n_scores)


def orderings(above: Integers, below: Integers, layout: Layout) -> dict[Hashable, Integers]:
    """Candidate orderings, best cell first.

    Args:
        above: shape (cells,), training counts under the distribution that should be the larger one.
        below: under the other.
        layout: which cells are neighbours.

    Returns:
        Permutations of the cells by the name of their rule; the same rules for any counts of one
        layout.
    """
    found: dict[Hashable, Integers] = {}
    priors = _BIN_PRIORS if len(layout.bins) == 1 and not len(layout.atoms[0]) - 1 else _ATOM_PRIORS
    for width in _BIN_WIDTHS if layout.bins else (0,):
        smooth_above, smooth_below = (
            smooth_lines(count, layout.bins, width) for count in (above, below)
        )
        for prior in priors:
            ratio = np.log((smooth_above + prior) / (smooth_below + prior))
            found[width, prior] = np.argsort(-ratio, kind="stable")
    if len(layout.bins) == 1:  # along the line from one end to the other, the cells outside it last
        line = np.sort(np.concatenate([layout.bins[0], layout.atoms[0][:-1]]))
        rest = np.setdiff1d(np.arange(len(layout.group)), line)
        found |= {
            "rising": np.concatenate([line[::-1], rest]),
            "falling": np.concatenate([line, rest]),
        }
    return found


def smooth_lines(
    count: Integers, lines: tuple[Integers, ...], width: float, full: bool = True
) -> Floats:
    """Counts averaged over neighbours with a bell of the given width, line by line; `full` also at the ends."""
    smooth = count.astype(np.float64)
    if width == 0:
        return smooth
    for line in lines:
        reach = min(len(line) - 1, math.ceil(4 * width))
        if reach > 0:
            bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
            bell = bell if full else bell / bell.sum()
            smooth[line] = np.convolve(count[line], bell)[reach:-reach]
            if full:
                smooth[line] /= np.convolve(np.ones(len(line)), bell)[reach:-reach]
    return smooth


# With fewer training draws per side than this, bounds are predicted from expected counts: normal
# spreads are wrong there. With more they err on the safe side, which keeps lucky rare atoms out
# (geometric noise, ε = 2, n = 500: 1.76 ± 0.14 against 1.68 ± 0.41).
_HANDFUL = 60
# Candidate sizes of the event: its share of the training draws of the larger distribution.
_LARGE = [0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.22, 0.16, 0.11, 0.08, 0.055, 0.04, 0.027, 0.018, 0.012]
_MASSES: Floats = np.array([*_LARGE, 8e-3, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5])
# How many spreads of the training draws are subtracted from a prediction. Bins of one line have
# many neighbours with nearly the same ratio, of which the luckiest would win; atoms have fewer, and
# their rare ones are often the real leak (SVT3 1.5: 3.64 at 0.5, 3.39 at 2).
_DOUBT_LINE = 2.0
_DOUBT_ATOMS = 0.7
# Spreads by which the luckiest of all rules and sizes may look better than it is, when cells
# compete with a score that has few chances to be lucky (NumericalSVT at ε = 0.1, 1e6 draws: 0.09
# predicted, worth 0; score 0.03, worth 0.04; Laplace noise at 1e5 draws, worst of 8 seeds: .91 of
# the oracle at 3, .985 at 4). Fewer than the last number of draws make fewer cells (bits of a
# number at 1000 draws: bounds of 1.4 at 4, 2.4 at 3, and nothing else moves).
_LUCK = 4.0
_LUCK_OF_FEW = 3.0
_FEW = 3000

# Training counts of the cells in two halves, left and right; four arrays of shape (cells,).
Folds = tuple[tuple[Integers, Integers], tuple[Integers, Integers]]


@dataclass(frozen=True, slots=True)
class Choice:
    """An event made of cells.

    Attributes:
        chosen: shape (cells,), which cells.
        flipped: False when the left distribution is the larger one on the event.
        predicted: the bound to expect.
        p: cross-validated frequency under the larger distribution.
        q: under the other.
        luck: how much of the prediction may be the luck of having been chosen.
    """

    chosen: Booleans
    flipped: bool
    predicted: float
    p: float
    q: float
    luck: float = 0.0


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Every (rule, mass) of one direction with its prediction; arrays of one length."""

    flipped: bool
    rules: list[Hashable]
    masses: Floats
    p: Floats
    q: Floats
    predicted: Floats
    spread: Floats


def choose_event(folds: Folds, layout: Layout, task: Task) -> Choice:
    """The event, size and direction with the best predicted bound."""
    left, right = (side[0] + side[1] for side in folds)
    total = left + right
    # Single numbers: of many bins or values the luckiest would win, and plain tails have a better
    # model in `curves`.
    on_line = len(layout.bins) == 1 and not layout.n_scores
    doubt = _DOUBT_LINE if on_line else _DOUBT_ATOMS
    both: tuple[Folds, Folds] = folds, (folds[1], folds[0])
    directions = [
        _candidates(both[flipped], layout, task, doubt, bool(flipped)) for flipped in (0, 1)
    ]
    best = max(directions, key=lambda each: float(each.predicted.max()))
    place = int(np.argmax(best.predicted))
    above, below = (right, left) if best.flipped else (left, right)
    order = orderings(above, below, layout)[best.rules[place]]
    chosen = np.zeros(len(above), dtype=np.bool_)
    reach = int(np.searchsorted(np.cumsum(above[order]), float(best.masses[place]) * above.sum()))
    chosen[order[: min(reach, len(order) - 1) + 1]] = True
    if chosen[total > 0].all():  # the certain event proves nothing, and hides correlation and drift
        chosen[order[total[order] > 0][-1]] = False
    predicted, p, q = (float(each[place]) for each in (best.predicted, best.p, best.q))
    most = _LUCK if min(left.sum(), right.sum()) >= _FEW else _LUCK_OF_FEW
    luck = (most - doubt) * float(best.spread[place])
    return Choice(_fill_gaps(chosen, total, layout), best.flipped, predicted, p, q, luck)


def _candidates(
    folds: Folds, layout: Layout, task: Task, doubt: float, flipped: bool
) -> _Candidates:
    left, right = folds
    first, second = (orderings(left[half], right[half], layout) for half in (0, 1))
    n_left, n_right = (int(side[0].sum() + side[1].sum()) for side in folds)
    hits = np.zeros((2, len(first), len(_MASSES)))
    for number, rule in enumerate(first):
        # The events of each mass: ordered on one half, counted on the other.
        for half, order in enumerate((first[rule], second[rule])):
            reach = np.searchsorted(np.cumsum(left[half][order]), _MASSES * left[half].sum())
            reach = np.minimum(reach, max(len(order) - 2, 0))
            for side in (0, 1):
                hits[side, number] += np.cumsum(folds[side][1 - half][order])[reach]
    p = hits[0].ravel() / max(n_left, 1)
    # One more on the right: an event never seen there is rare, not impossible.
    q = (hits[1].ravel() + 1.0) / (n_right + 1.0)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    n_train = max(n_left, 1), max(n_right, 1)
    if min(n_train) < _HANDFUL:
        predicted = expected_bounds(
            task, p * n_left / (n_left + 1.0), q, n_train, n_fresh, few_doubt(n_train)
        )
        spread = np.zeros(len(p))  # all doubt is in the prediction
    else:
        predicted, spread = predict(task, p, q, n_train, n_fresh, doubt)
    rules = [rule for rule in first for _ in _MASSES]
    return _Candidates(flipped, rules, np.tile(_MASSES, len(first)), p, q, predicted, spread)


def _fill_gaps(chosen: Booleans, seen: Integers, layout: Layout) -> Booleans:
    """Cells without any training draw join the event when both neighbours on their line do, and leave it otherwise.

    That makes events readable ("output ≤ 3" instead of four single values) and changes no count.
    """
    filled = chosen & (seen > 0)
    for bins, atoms in zip(layout.bins, layout.atoms, strict=True):
        line = np.sort(np.concatenate([bins, atoms[:-1]]))
        known = line[seen[line] > 0]
        if len(known):
            after = np.searchsorted(known, line)
            before = np.maximum(np.searchsorted(known, line, side="right") - 1, 0)
            filled[line] = filled[known[before]] & filled[known[np.minimum(after, len(known) - 1)]]
    return filled


# --- few kinds of outputs
# --------------------------------------------------------------------------------------------

# Variances of log-ratios that may be usual: of what each kind has for itself, and of what
# neighbours share.
_USUAL = np.append(0.0, np.geomspace(1e-5, 4.0, 9))
_VARIANCES = np.array([(own, shared) for own in _USUAL for shared in _USUAL if own + shared])
# How fast neighbours become different, per rank, and how many spreads of a log-ratio are given
# away.
_PULL = 3.0
_DOUBT_KINDS = 0.5


def choose_kinds(folds: Folds, kinds: Integers, task: Task) -> Choice:
    """The event that proves most on average if an unlucky proof counts as 0, among few cells in a natural order.

    The log-ratios have a Gaussian prior; its variances are averaged over by how well they explain
    the draws. For a weak leak what may be proved with luck decides (SVT4 at 1e5 draws: .61 of the
    oracle by scores and cells, .80 by this; SVT1 .42 and .52; at 1e6 draws .88 and .91, .81 and
    .86).
    """
    left, right = ((side[0] + side[1])[kinds] for side in folds)
    n = int(left.sum())
    m = int(right.sum())
    total = left + right
    ranks = np.arange(len(kinds)) / len(kinds)
    counted = np.log((left + 0.5) / n) - np.log((right + 0.5) / m)
    noise = np.maximum(1.0 / (left + 0.5) + 1.0 / (right + 0.5) - 1.0 / n - 1.0 / m, 1e-12)
    own, shared = _VARIANCES.T[..., None, None]
    prior = own * np.eye(len(kinds)) + shared * np.exp(
        -_PULL * np.abs(np.subtract.outer(ranks, ranks))
    )
    inverse = np.linalg.inv(prior + np.diag(noise))
    evidence = 0.5 * (np.linalg.slogdet(inverse)[1] - (inverse @ counted) @ counted)
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    gain = prior @ inverse
    means: Floats = gain @ counted
    mean = weight @ means
    away = means - mean
    covariance = np.tensordot(weight, prior - gain @ prior, 1) + (weight * away.T) @ away
    found = []
    for flipped in (False, True):
        (a, b), n_fresh = ((m, n), task.n_fresh[::-1]) if flipped else ((n, m), task.n_fresh)
        ratio = -mean if flipped else mean
        order = np.argsort(-ratio, kind="stable")[:-1]
        mass = np.cumsum(total[order])
        q = total[order] / (a * np.exp(ratio[order]) + b)
        share = np.tril(np.ones((len(order), len(order)))) * total[order] / mass[:, None]
        spread = np.sqrt(((share @ covariance[np.ix_(order, order)]) * share).sum(axis=1))
        ratios = np.log(np.cumsum(q * np.exp(ratio[order])) / np.cumsum(q))
        bound, varies, p, q = predict_ratios(
            task, mass, ratios, spread, (a, b), n_fresh, _DOUBT_KINDS
        )
        worth = (
            mean_if_proved(bound, varies) if isinstance(task.claim, PureDP | ApproxDP) else bound
        )
        best = int(np.argmax(worth))
        chosen = np.isin(np.arange(len(folds[0][0])), kinds[order[: best + 1]])
        found.append(
            (
                worth[best],
                Choice(chosen, flipped, float(bound[best]), float(p[best]), float(q[best])),
            )
        )
    # of an event and its opposite, the first
    return max(found, key=lambda each: round(float(each[0]), 9))[1]
