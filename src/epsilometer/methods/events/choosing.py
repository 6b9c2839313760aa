"""Chooses one event and one direction on training draws, by two-fold cross-validation."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.methods.base import Task
from epsilometer.methods.events.ordering import Layout, orderings
from epsilometer.methods.events.prediction import expected_bounds, few_doubt, predictor

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# With fewer training draws per side than this, bounds are predicted from the counts to expect: normal spreads are wrong
# there. With more they err to the safe side, which keeps lucky rare atoms out (geometric noise, ε = 2, n = 500: 1.76 ±
# 0.14 against 1.68 ± 0.41).
_HANDFUL = 60
# Candidate sizes of the event: its share of the training draws of the larger law.
_MASSES: Floats = np.concatenate(
    [
        [0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.22, 0.16, 0.11, 0.08, 0.055, 0.04],
        [0.027, 0.018, 0.012, 8e-3, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5],
    ]
)
# How many spreads of the training draws a prediction gives away. Bins of one line have many neighbours with nearly
# the same ratio, of which the luckiest would win (Laplace 0.7, 1e5 draws, 40 seeds: 0.670 ± 0.041 at 2, 0.680 ± 0.026
# at 3); atoms have fewer, and their rare ones are often the real leak (SVT3 1.5: 3.64 at 0.5, 3.39 at 2).
_DOUBT_LINE, _DOUBT_ATOMS = 3.0, 0.7
# A line counts when its bins hold at least this share of the training draws, or when it has more single values than
# this (two-sided geometric noise, ε = 1: 0.890 ± 0.178 as atoms, 0.988 ± 0.007 as a line).
_ENOUGH_BINS = 0.1
_MANY_ATOMS = 16
# Among bins, the largest event whose prediction is within this many spreads of the best is the safest choice
# (0.686 ± 0.013 in the case above).
_NEAR_BEST = 0.25
# A monotone order may be that much worse: it has few cells to be lucky with, and gives one interval.
_NEAR_MONOTONE = 1.0
# But never more than this: an event that was never seen on the other side has a huge spread.
_MOST_SLACK = 0.1


@dataclass(frozen=True, slots=True)
class Folds:
    """Training counts of the cells, in two halves.

    Attributes:
        left: two arrays of shape (cells,).
        right: two arrays of shape (cells,).
    """

    left: tuple[Integers, Integers]
    right: tuple[Integers, Integers]

    def swapped(self) -> Folds:
        """The two sides exchanged."""
        return Folds(self.right, self.left)

    def sizes(self) -> tuple[int, int]:
        """Draws of each side."""
        return int(self.left[0].sum() + self.left[1].sum()), int(self.right[0].sum() + self.right[1].sum())


@dataclass(frozen=True, slots=True)
class Choice:
    """An event made of cells.

    Attributes:
        chosen: shape (cells,), which cells.
        flipped: False when the left law is the larger one on the event.
        predicted: the bound to expect.
        p: cross-validated frequency under the larger law.
        q: under the other.
    """

    chosen: NDArray[np.bool_]
    flipped: bool
    predicted: float
    p: float
    q: float


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
    on_line = layout.is_one_line and _is_long(folds, layout)
    doubt = _DOUBT_LINE if on_line else _DOUBT_ATOMS
    directions = [
        _candidates(folds, layout, task, doubt, False),
        _candidates(folds.swapped(), layout, task, doubt, True),
    ]
    best, place = _best(directions)
    if on_line:
        best, place = _safest_near_best(directions, best, place)
    counts = folds.swapped() if best.flipped else folds
    above = counts.left[0] + counts.left[1]
    order = orderings(above, counts.right[0] + counts.right[1], layout)[best.rules[place]]
    chosen = np.zeros(len(above), dtype=np.bool_)
    chosen[_prefix(order, above, float(best.masses[place]))] = True
    seen = above + counts.right[0] + counts.right[1]
    if chosen[seen > 0].all():  # everything always happens: it proves nothing, and hides correlation and drift
        chosen[order[seen[order] > 0][-1]] = False
    return Choice(
        _fill_gaps(chosen, seen, layout),
        best.flipped,
        float(best.predicted[place]),
        float(best.p[place]),
        float(best.q[place]),
    )


def _candidates(folds: Folds, layout: Layout, task: Task, doubt: float, flipped: bool) -> _Candidates:
    first = orderings(folds.left[0], folds.right[0], layout)
    second = orderings(folds.left[1], folds.right[1], layout)
    n_left, n_right = folds.sizes()
    hits, misses = [], []
    for rule in first:
        # Ordered on one half, counted on the other.
        above, below = _out_of_fold(first[rule], folds.left[0], folds.left[1], folds.right[1])
        more_above, more_below = _out_of_fold(second[rule], folds.left[1], folds.left[0], folds.right[0])
        hits.append(above + more_above)
        misses.append(below + more_below)
    p = np.concatenate(hits) / max(n_left, 1)
    # One more on the right: an event never seen there is rare, not impossible.
    q = (np.concatenate(misses) + 1.0) / (n_right + 1.0)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    n_train = max(n_left, 1), max(n_right, 1)
    if min(n_train) < _HANDFUL and doubt < _DOUBT_LINE:
        predicted = expected_bounds(task, p * n_left / (n_left + 1.0), q, n_train, n_fresh, few_doubt(n_train))
        spread = np.zeros(len(p))  # only long lines ask for it
    else:
        predicted, spread = predictor(task, n_train, n_fresh, doubt)(p, q)
    rules = [rule for rule in first for _ in _MASSES]
    return _Candidates(flipped, rules, np.tile(_MASSES, len(first)), p, q, predicted, spread)


def _out_of_fold(order: Integers, learned: Integers, above: Integers, below: Integers) -> tuple[Floats, Floats]:
    """Counts of the events of each mass on the other half."""
    reach = np.searchsorted(np.cumsum(learned[order]), _MASSES * learned.sum())
    reach = np.minimum(reach, max(len(order) - 2, 0))
    return np.cumsum(above[order])[reach].astype(float), np.cumsum(below[order])[reach].astype(float)


def _prefix(order: Integers, above: Integers, mass: float) -> Integers:
    reach = int(np.searchsorted(np.cumsum(above[order]), mass * above.sum()))
    return order[: min(reach, len(order) - 1) + 1]


def _is_long(folds: Folds, layout: Layout) -> bool:
    """Whether the one line has so many bins or single values that the luckiest of them would win."""
    total = folds.left[0] + folds.left[1] + folds.right[0] + folds.right[1]
    in_bins = int(total[layout.bins[0]].sum())
    n_atoms = int(np.count_nonzero(total[layout.atoms[0]]))
    return in_bins >= _ENOUGH_BINS * int(total.sum()) or n_atoms > _MANY_ATOMS


def _best(directions: list[_Candidates]) -> tuple[_Candidates, int]:
    best = max(directions, key=lambda each: float(each.predicted.max()))
    return best, int(np.argmax(best.predicted))


def _safest_near_best(directions: list[_Candidates], best: _Candidates, place: int) -> tuple[_Candidates, int]:
    """A monotone event that is about as good as the best if there is one, else the largest that is nearly as good."""
    top, spread = float(best.predicted[place]), float(best.spread[place])
    every = [(each, int(near)) for each in directions for near in np.flatnonzero(each.predicted >= top - _MOST_SLACK)]
    monotone = [found for found in every if _is_monotone(found) and _predicted(found) >= top - _NEAR_MONOTONE * spread]
    if monotone:
        return max(monotone, key=_predicted)
    near = [found for found in every if _predicted(found) >= top - _NEAR_BEST * spread]
    return max(near, key=lambda found: (round(float(found[0].p[found[1]]), 3), _predicted(found)))


def _predicted(candidate: tuple[_Candidates, int]) -> float:
    return float(candidate[0].predicted[candidate[1]])


def _is_monotone(candidate: tuple[_Candidates, int]) -> bool:
    """Whether the cells were taken from one end of the line to the other: one interval."""
    return isinstance(candidate[0].rules[candidate[1]], str)


def _fill_gaps(chosen: NDArray[np.bool_], seen: Integers, layout: Layout) -> NDArray[np.bool_]:
    """Cells without any training draw join the event when both neighbours on their line do, and leave it otherwise.

    It makes events readable ("output ≤ 3" instead of four single values) and changes nothing that was measured.
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
