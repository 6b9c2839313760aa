"""Chooses one event and its direction from the training counts of a partition's cells.

`choose_event` cross-validates: cells are ordered by their estimated log-ratio on one half of the
draws, and the events made of the first cells are counted on the other half. If the outputs take few
distinct values, `choose_from_small_support` estimates all log-ratios together instead.

In both, P is the distribution that should be larger on the event and Q is the other one.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.methods.base import Task
from epsilometer.methods.events.prediction import (
    expected_bounds,
    expected_positive_bound,
    predict,
    predict_ratios,
    small_sample_penalty,
)
from epsilometer.outputs import Partition
from epsilometer.outputs.lines import next_float

# --- Cells and their neighbours ---


@dataclass(frozen=True, slots=True)
class CellAdjacency:
    """Which cells of a partition are neighbours.

    Attributes:
        group: shape (cells,), cells of one signature have the same number.
        bins: for each line the numbers of its bins, in order.
        atoms: for each line the numbers of its single values, in order; the last one is NaN.
        n_scores: how many of the lines are lines of scores.
    """

    group: Integers
    bins: tuple[Integers, ...]
    atoms: tuple[Integers, ...]
    n_scores: int


def cell_adjacency(partition: Partition) -> CellAdjacency:
    """Finds out which cells of a partition are neighbours."""
    group_of_cell: list[int] = []
    bins = []
    atoms = []
    n_groups = 0
    n_scores = 0
    for block in partition.blocks:
        for group in block.groups:
            first = len(group_of_cell)
            if group.line:
                edges = group.line.edges
                is_single = np.zeros(group.n_cells, dtype=np.bool_)
                if len(edges) > 1:
                    is_single[1:-2] = next_float(edges[:-1]) == edges[1:]
                # The last cell of a line is NaN.
                is_single[-1] = True
                bins.append(first + np.flatnonzero(~is_single))
                atoms.append(first + np.flatnonzero(is_single))
            n_scores += group.score is not None
            group_of_cell += [n_groups] * group.n_cells
            n_groups += 1
        # The cell of all other outputs of this shape.
        group_of_cell.append(n_groups)
        n_groups += 1
    # The cell of outputs of any other shape.
    group_of_cell.append(n_groups)
    return CellAdjacency(
        group=np.array(group_of_cell),
        bins=tuple(bins),
        atoms=tuple(atoms),
        n_scores=n_scores,
    )


# --- Orders of cells ---

# Widths of the smoothing along a line, in bins; 0 takes every bin by itself.
_BIN_WIDTHS = (0, 1, 2, 4, 8)
# Pseudo-counts that are added to each cell of a line without repeated values.
_BIN_PRIORS = (1.0,)
# Pseudo-counts where values repeat: many suit rare values, whose ratio is mostly chance.
_ATOM_PRIORS = (0.5, 3.0, 12.0)


def orderings(above: Integers, below: Integers, layout: CellAdjacency) -> dict[Hashable, Integers]:
    """Candidate orders of the cells, by several estimates of the log-ratio, the largest first.

    Args:
        above: shape (cells,), training counts under P.
        below: shape (cells,), under Q.
        layout: which cells are neighbours.

    Returns:
        Permutations of the cells by the name of their rule. The rules depend on the layout only,
        not on the counts.
    """
    orders: dict[Hashable, Integers] = {}
    is_one_line = len(layout.bins) == 1
    has_only_bins = is_one_line and len(layout.atoms[0]) == 1
    for width in _BIN_WIDTHS if layout.bins else (0,):
        smooth_above = smooth_lines(above, layout.bins, width)
        smooth_below = smooth_lines(below, layout.bins, width)
        for prior in _BIN_PRIORS if has_only_bins else _ATOM_PRIORS:
            ratio = np.log((smooth_above + prior) / (smooth_below + prior))
            orders[width, prior] = np.argsort(-ratio, kind="stable")
    if is_one_line:
        # Along the line from one end to the other; the cells outside it come last.
        line = np.sort(np.concatenate([layout.bins[0], layout.atoms[0][:-1]]))
        outside = np.setdiff1d(np.arange(len(layout.group)), line)
        orders["rising"] = np.concatenate([line[::-1], outside])
        orders["falling"] = np.concatenate([line, outside])
    return orders


def smooth_lines(
    count: Integers, lines: tuple[Integers, ...], width: float, full: bool = True
) -> Floats:
    """Averages counts over neighbouring cells with a Gaussian kernel, line by line.

    Args:
        count: shape (cells,).
        lines: the cells of each line, in order.
        width: standard deviation of the kernel, in cells; 0 does not smooth.
        full: whether the kernel is normalised at the ends of a line, too.

    Returns:
        Shape (cells,).
    """
    smooth = count.astype(np.float64)
    if width == 0:
        return smooth
    for line in lines:
        reach = min(len(line) - 1, math.ceil(4 * width))
        if reach <= 0:
            continue
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
        if not full:
            kernel = kernel / kernel.sum()
        smooth[line] = np.convolve(count[line], kernel)[reach:-reach]
        if full:
            smooth[line] /= np.convolve(np.ones(len(line)), kernel)[reach:-reach]
    return smooth


# --- The event, by cross-validation ---

# With fewer training draws per side than this, bounds are forecast from expected counts: normal
# approximations are wrong there. With more they err on the safe side, which keeps rare values with
# favourable counts out (geometric noise, ε = 2, n = 500: 1.76 ± 0.14 against 1.68 ± 0.41).
_NORMAL_APPROXIMATION_MIN_DRAWS = 60
# Candidate sizes of the event: its fraction of the training draws from P.
_MASSES: Floats = np.array(
    [
        0.9,
        0.75,
        0.6,
        0.5,
        0.4,
        0.3,
        0.22,
        0.16,
        0.11,
        0.08,
        0.055,
        0.04,
        0.027,
        0.018,
        0.012,
        8e-3,
        5e-3,
        3e-3,
        2e-3,
        1e-3,
        5e-4,
        2e-4,
        1e-4,
        5e-5,
    ]
)
# Penalty on the cells of a single line of numbers, in standard errors of the training draws: a bin
# has many neighbours with nearly the same ratio, of which the one with the most favourable counts
# would win, and plain tails have a better model in `curves`.
_PENALTY_ON_LINE = 2.0
# Penalty on all other cells, in standard errors: there are fewer of them, and the rare ones are
# often the real leak (SVT3, ε = 1.5: 3.64 at 0.5, 3.39 at 2).
_PENALTY_ON_CELLS = 0.7
# Selection bias of the best of all rules and sizes, in standard errors. It matters when cells
# compete with a score, which is chosen among few candidates (NumericalSVT at ε = 0.1, 1e6 draws:
# cells predict 0.09 and certify 0, the score predicts 0.03 and certifies 0.04; Laplace noise at 1e5
# draws, worst of 8 seeds: 0.91 of the oracle at 3, 0.985 at 4).
_SELECTION_BIAS = 4.0
# The same with few draws, which make fewer cells (bits of a number at 1000 draws: bounds of 1.4 at
# 4 and of 2.4 at 3; nothing else moves).
_SELECTION_BIAS_OF_FEW = 3.0
# Training draws per side below which they are few.
_FEW_DRAWS = 3000

# Training counts of the cells in the first and the second half of the draws; shape (cells,) each.
Halves = tuple[Integers, Integers]


class HalvedCounts(NamedTuple):
    """Training counts of the cells in two halves of the draws of each side."""

    left: Halves
    right: Halves


@dataclass(frozen=True, slots=True)
class Choice:
    """An event made of cells.

    Attributes:
        chosen: shape (cells,), which cells.
        flipped: False when the left distribution is the larger one on the event.
        predicted: the bound to expect.
        p: cross-validated frequency under the larger distribution.
        q: under the other.
        selection_bias: by how much the prediction may be too high because the event was chosen for
            it.
    """

    chosen: Booleans
    flipped: bool
    predicted: float
    p: float
    q: float
    selection_bias: float = 0.0


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Every event of one direction: one for each rule and size; arrays of shape (events,)."""

    flipped: bool
    rules: list[Hashable]
    masses: Floats
    p: Floats
    q: Floats
    predicted: Floats
    standard_error: Floats


def choose_event(counts: HalvedCounts, layout: CellAdjacency, task: Task) -> Choice:
    """Chooses the order of the cells, the size and the direction with the best forecast.

    Args:
        counts: of the training draws.
        layout: which cells are neighbours.
        task: what is to be certified.
    """
    left_halves, right_halves = counts
    left = left_halves[0] + left_halves[1]
    right = right_halves[0] + right_halves[1]
    total = left + right
    is_one_line = len(layout.bins) == 1 and not layout.n_scores
    penalty = _PENALTY_ON_LINE if is_one_line else _PENALTY_ON_CELLS
    left_larger = _candidates(left_halves, right_halves, layout, task, penalty, flipped=False)
    right_larger = _candidates(right_halves, left_halves, layout, task, penalty, flipped=True)
    best = max(left_larger, right_larger, key=lambda direction: float(direction.predicted.max()))
    place = int(np.argmax(best.predicted))

    # The chosen event, with cells ordered by all training draws.
    above, below = (right, left) if best.flipped else (left, right)
    order = orderings(above, below, layout)[best.rules[place]]
    chosen = np.zeros(len(above), dtype=np.bool_)
    wanted_hits = float(best.masses[place]) * above.sum()
    last = int(np.searchsorted(np.cumsum(above[order]), wanted_hits))
    chosen[order[: min(last, len(order) - 1) + 1]] = True
    if chosen[total > 0].all():
        # The certain event certifies nothing, and hides correlation and drift.
        last_with_draws = order[total[order] > 0][-1]
        chosen[last_with_draws] = False

    is_few = min(left.sum(), right.sum()) < _FEW_DRAWS
    bias = _SELECTION_BIAS_OF_FEW if is_few else _SELECTION_BIAS
    return Choice(
        chosen=_fill_gaps(chosen, total, layout),
        flipped=best.flipped,
        predicted=float(best.predicted[place]),
        p=float(best.p[place]),
        q=float(best.q[place]),
        # The penalty is part of the prediction already.
        selection_bias=(bias - penalty) * float(best.standard_error[place]),
    )


def _candidates(
    above: Halves,
    below: Halves,
    layout: CellAdjacency,
    task: Task,
    penalty: float,
    flipped: bool,
) -> _Candidates:
    """Forecasts for all rules and sizes of one direction.

    Args:
        above: counts under P.
        below: counts under Q.
        layout: which cells are neighbours.
        task: what is to be certified.
        penalty: in standard errors of the training draws.
        flipped: whether P is the right distribution.
    """
    orders_of_halves = [orderings(above[half], below[half], layout) for half in (0, 1)]
    rules = list(orders_of_halves[0])
    hits_above = np.zeros((len(rules), len(_MASSES)))
    hits_below = np.zeros((len(rules), len(_MASSES)))
    for number, rule in enumerate(rules):
        # Ordered on one half, counted on the other.
        for half in (0, 1):
            order = orders_of_halves[half][rule]
            wanted_hits = _MASSES * above[half].sum()
            last = np.searchsorted(np.cumsum(above[half][order]), wanted_hits)
            last = np.minimum(last, max(len(order) - 2, 0))
            hits_above[number] += np.cumsum(above[1 - half][order])[last]
            hits_below[number] += np.cumsum(below[1 - half][order])[last]
    n_above = int(above[0].sum() + above[1].sum())
    n_below = int(below[0].sum() + below[1].sum())
    p = hits_above.ravel() / max(n_above, 1)
    # One more under Q: an event that never occurred there is rare, not impossible.
    q = (hits_below.ravel() + 1.0) / (n_below + 1.0)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    n_train = (max(n_above, 1), max(n_below, 1))
    if min(n_train) < _NORMAL_APPROXIMATION_MIN_DRAWS:
        shrunk_p = p * n_above / (n_above + 1.0)
        predicted = expected_bounds(
            task, shrunk_p, q, n_train, n_fresh, penalty=small_sample_penalty(n_train)
        )
        # The whole penalty is in the prediction.
        standard_error = np.zeros(len(p))
    else:
        predicted, standard_error = predict(task, p, q, n_train, n_fresh, penalty)
    return _Candidates(
        flipped=flipped,
        rules=[rule for rule in rules for _ in _MASSES],
        masses=np.tile(_MASSES, len(rules)),
        p=p,
        q=q,
        predicted=predicted,
        standard_error=standard_error,
    )


def _fill_gaps(chosen: Booleans, total: Integers, layout: CellAdjacency) -> Booleans:
    """Adds cells without training draws if both neighbours on their line are chosen.

    All other cells without draws are removed. That makes events readable ("output ≤ 3" instead of
    four single values) and changes no count.

    Args:
        chosen: shape (cells,).
        total: shape (cells,), training draws of both sides.
        layout: which cells are neighbours.
    """
    filled = chosen & (total > 0)
    for bins, atoms in zip(layout.bins, layout.atoms, strict=True):
        line = np.sort(np.concatenate([bins, atoms[:-1]]))
        with_draws = line[total[line] > 0]
        if len(with_draws):
            after = np.minimum(np.searchsorted(with_draws, line), len(with_draws) - 1)
            before = np.maximum(np.searchsorted(with_draws, line, side="right") - 1, 0)
            filled[line] = filled[with_draws[before]] & filled[with_draws[after]]
    return filled


# --- The event among few distinct outputs ---

# Grid of prior variances of the log-ratios: of the independent part of each cell, and of the part
# that neighbours share.
_VARIANCE_GRID = np.append(0.0, np.geomspace(1e-5, 4.0, 9))
# All pairs (independent, shared) of them but (0, 0); shape (pairs, 2).
_VARIANCES = np.array(
    [
        (independent, shared)
        for independent in _VARIANCE_GRID
        for shared in _VARIANCE_GRID
        if independent + shared
    ]
)
# The correlation of the shared part falls by this factor in the exponent from the first to the last
# cell.
_CORRELATION_DECAY = 3.0
# Penalty in standard errors of the log-ratio: the posterior has shrunk it already.
_PENALTY_ON_SMALL_SUPPORT = 0.5


def choose_from_small_support(counts: HalvedCounts, cells: Integers, task: Task) -> Choice:
    """Chooses among few cells in a natural order the event with the best expected positive bound.

    The log-ratios have a Gaussian prior, whose variances are averaged over by their marginal
    likelihoods. The most likely bound on a weak leak is 0; then the chance of a larger one decides
    (SVT4 at 1e5 draws: 0.61 of the oracle by scores and cells, 0.80 by this; SVT1 0.42 and 0.52; at
    1e6 draws 0.88 and 0.91, 0.81 and 0.86).

    Args:
        counts: of the training draws.
        cells: shape (k,), the cells that contain draws, in the order of their values.
        task: what is to be certified.
    """
    left_halves, right_halves = counts
    left = (left_halves[0] + left_halves[1])[cells]
    right = (right_halves[0] + right_halves[1])[cells]
    n_cells = len(left_halves[0])
    posterior = _posterior_log_ratios(left, right)
    left_larger = _best_of_small_support(left, right, posterior, task, flipped=False)
    right_larger = _best_of_small_support(left, right, posterior, task, flipped=True)
    # Rounded, so that ties between an event and its complement go to the event.
    best = max(left_larger, right_larger, key=lambda candidate: round(candidate.worth, 9))
    return Choice(
        chosen=np.isin(np.arange(n_cells), cells[best.members]),
        flipped=best.flipped,
        predicted=best.predicted,
        p=best.p,
        q=best.q,
    )


class _LogRatios(NamedTuple):
    """Posterior mean, shape (k,), and covariance, shape (k, k), of the log-ratios of k cells."""

    mean: Floats
    covariance: Floats


def _posterior_log_ratios(left: Integers, right: Integers) -> _LogRatios:
    """Averages the Gaussian posteriors of all prior variances by their marginal likelihoods.

    Args:
        left: shape (k,), counts of the left draws.
        right: shape (k,), of the right draws.
    """
    n_left = int(left.sum())
    n_right = int(right.sum())
    observed = np.log((left + 0.5) / n_left) - np.log((right + 0.5) / n_right)
    noise = np.maximum(
        1.0 / (left + 0.5) + 1.0 / (right + 0.5) - 1.0 / n_left - 1.0 / n_right, 1e-12
    )
    ranks = np.arange(len(left)) / len(left)
    distance = np.abs(np.subtract.outer(ranks, ranks))
    independent, shared = _VARIANCES.T[..., None, None]
    # One matrix per pair of variances: shape (pairs, k, k).
    prior = independent * np.eye(len(left)) + shared * np.exp(-_CORRELATION_DECAY * distance)
    inverse = np.linalg.inv(prior + np.diag(noise))
    evidence = 0.5 * (np.linalg.slogdet(inverse)[1] - (inverse @ observed) @ observed)
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    gain = prior @ inverse
    means: Floats = gain @ observed
    mean = weight @ means
    # The covariance of a mixture: the mean covariance, and the covariance of the means.
    deviations = means - mean
    within_models = np.tensordot(weight, prior - gain @ prior, 1)
    between_models = (weight * deviations.T) @ deviations
    return _LogRatios(mean=mean, covariance=within_models + between_models)


class _SmallSupportCandidate(NamedTuple):
    """The best event of one direction; `members` are positions among the cells."""

    worth: float
    members: Integers
    flipped: bool
    predicted: float
    p: float
    q: float


def _best_of_small_support(
    left: Integers, right: Integers, posterior: _LogRatios, task: Task, flipped: bool
) -> _SmallSupportCandidate:
    """Orders the cells by their log-ratio and chooses how many of the first make the event."""
    total = left + right
    if flipped:
        n_train = (int(right.sum()), int(left.sum()))
        n_fresh = task.n_fresh[::-1]
        log_ratio = -posterior.mean
    else:
        n_train = (int(left.sum()), int(right.sum()))
        n_fresh = task.n_fresh
        log_ratio = posterior.mean
    # The last cell is left out: all cells together would be the certain event.
    order = np.argsort(-log_ratio, kind="stable")[:-1]
    ordered_ratio = log_ratio[order]
    # Row k is the event of the first k + 1 cells.
    mass = np.cumsum(total[order])
    cell_q = total[order] / (n_train[0] * np.exp(ordered_ratio) + n_train[1])
    event_ratio = np.log(np.cumsum(cell_q * np.exp(ordered_ratio)) / np.cumsum(cell_q))
    is_member = np.tril(np.ones((len(order), len(order))))
    fraction = is_member * total[order] / mass[:, None]
    covariance = posterior.covariance[np.ix_(order, order)]
    standard_error = np.sqrt(((fraction @ covariance) * fraction).sum(axis=1))
    forecast = predict_ratios(
        task,
        mass=mass,
        ratio=event_ratio,
        standard_error=standard_error,
        n_train=n_train,
        n_fresh=n_fresh,
        penalty=_PENALTY_ON_SMALL_SUPPORT,
    )
    worth = forecast.bound
    if isinstance(task.claim, PureDP | ApproxDP):
        worth = expected_positive_bound(forecast.bound, forecast.standard_error)
    best = int(np.argmax(worth))
    return _SmallSupportCandidate(
        worth=float(worth[best]),
        members=order[: best + 1],
        flipped=flipped,
        predicted=float(forecast.bound[best]),
        p=float(forecast.p[best]),
        q=float(forecast.q[best]),
    )


# The former name, which `methods.published` still uses.
lay_out = cell_adjacency
