"""Synthetic leaks of a known size in outputs like those of an audit.

What an audit could have found is measured by running it on mechanisms whose leak is known. These
mechanisms return the observed outputs, pooled over both sides, so shapes, columns, categories and
repeated values are those of the mechanism at hand; only how often each side returns which of them
is made up. There are three kinds of leaks:

* `EventLeak`: an event becomes as much likelier on one side as a true value of v allows, everything
  else stays equal;
* `ShiftedNoiseLeak`: a column of numbers is drawn as if noise had been added to two inputs, Laplace
  noise for pure privacy, normal noise for every other notion;
* `TemperedCategoriesLeak`: categories are drawn as by the same mechanism with less noise.

All are pairs of distributions whose true value is v; where numbers of a column repeat, it is at
most v.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import ndtr, softmax

from epsilometer.arrays import Array, Booleans, Floats, Integers
from epsilometer.bisection import rejected_end
from epsilometer.claims import ZCDP, Claim, PureDP, RenyiDP
from epsilometer.outputs.columns import Block, Column, Numbers, Outputs

Rng = np.random.Generator
# Draws n stored rows for side 0 or 1.
DrawRows = Callable[[int, int, Rng], Integers]

# A column with at most this many distinct values is one of categories, even if they are numbers.
_FEW_VALUES = 8
# Leaks are made in the columns of a shape that more than this fraction of all outputs has.
_MAIN_SHAPE_FRACTION = 0.5
# If there is a choice, leaks are not made in values that fewer than this fraction of the outputs,
# or all but this fraction, have.
_RARE = 0.02
# 2^-50 of a bracket is below the rounding of what is solved for.
_HALVINGS = 50
# Normal distributions further apart than this cannot be distinguished from disjoint ones.
_MOST_SHIFT = 12.0
# Where the best threshold is looked for between two normal distributions, in standard deviations
# from the middle.
_THRESHOLDS = np.linspace(-8.0, 8.0, 161)
# Likelier events count as certain: 1 − p would lose its digits to rounding.
_CERTAIN = 1e-10
# Probabilities are raised to at most this power: a mechanism with a quarter of the noise is hardly
# the same any more.
_MAX_POWER = 4.0
# With more categories than this, the stored rows do not determine their probabilities.
_MAX_CATEGORIES = 64
# Pseudo-draws per category that both sides get in common: chance alone makes the sides differ when
# draws are few.
_PSEUDO_DRAWS = 5
# Rényi orders at which zero-concentrated privacy of categories is computed.
_ORDERS = [float(order) for order in np.geomspace(1.01, 100.0, 60)]


class SyntheticLeak(Protocol):
    """Pairs of distributions over the stored rows, one for each true value."""

    def pair(self, claim: Claim) -> DrawRows | None:
        """The pair whose true value is the claim's own; None when there is none."""


@dataclass(frozen=True, slots=True)
class EventLeak:
    """A leak through one event, which is likelier on the left by as much as the claim allows.

    Attributes:
        inside: shape (rows,), which of the stored rows belong to the event; some do and some do
            not.
    """

    inside: Booleans

    @property
    def frequency(self) -> float:
        """The fraction of all stored rows that belong to the event."""
        return float(self.inside.mean())

    def pair(self, claim: Claim) -> DrawRows | None:
        """The pair whose true value is the claim's own; None when there is none.

        The event's mean probability on both sides stays its frequency in the stored rows.
        """
        probabilities = _event_probabilities(claim, self.frequency)
        if probabilities is None:
            return None
        rows_inside = np.flatnonzero(self.inside)
        rows_outside = np.flatnonzero(~self.inside)

        def draw(side: int, n: int, rng: Rng) -> Integers:
            hits = rng.random(n) < probabilities[side]
            drawn_inside = rows_inside[rng.integers(len(rows_inside), size=n)]
            drawn_outside = rows_outside[rng.integers(len(rows_outside), size=n)]
            return np.where(hits, drawn_inside, drawn_outside)

        return draw


def _event_probabilities(claim: Claim, mean: float) -> tuple[float, float] | None:
    """P(E) and Q(E) with the given mean for which the claim holds, but no stricter one.

    None if no pair with this mean needs so large a value.
    """
    least_q = max(0.0, 2.0 * mean - 1.0)
    if claim.least_value(2.0 * mean - least_q, least_q) < claim.value:
        return None
    q = rejected_end(
        lambda q: claim.least_value(2.0 * mean - q, q) < claim.value, mean, least_q, _HALVINGS
    )
    return 2.0 * mean - q, q


@dataclass(frozen=True, slots=True)
class ShiftedNoiseLeak:
    """A leak through one column of numbers, as by noise around two different numbers.

    The left draws lower ranks of the column, the right higher ones.

    Attributes:
        order: shape (k,), the stored rows that have the column, in ascending order of its values.
        others: shape (rows − k,), the rows that lack it; both sides draw them equally often.
    """

    order: Integers
    others: Integers

    def pair(self, claim: Claim) -> DrawRows | None:
        """The pair whose true value is the claim's own; None when there is none.

        A row's rank is that of a noisy number among the noisy numbers of both sides, so all rows
        stay in use.
        """
        shift = claim.epsilon if isinstance(claim, PureDP) else _normal_shift(claim)
        if shift is None:
            return None
        if isinstance(claim, PureDP):
            noise = Rng.laplace
            cumulative = _laplace_cdf
        else:
            noise = Rng.normal
            cumulative = ndtr
        half = 0.5 * shift
        n_order = len(self.order)
        fraction_of_others = len(self.others) / (len(self.others) + n_order)

        def draw(side: int, n: int, rng: Rng) -> Integers:
            number = noise(rng, size=n) + (half if side else -half)
            rank = 0.5 * (cumulative(number - half) + cumulative(number + half))
            drawn = self.order[np.minimum((rank * n_order).astype(np.int64), n_order - 1)]
            if not fraction_of_others:
                return drawn
            is_other = rng.random(n) < fraction_of_others
            return np.where(is_other, rng.choice(self.others, size=n), drawn)

        return draw


@dataclass(frozen=True, slots=True)
class TemperedCategoriesLeak:
    """The observed categories of either side, with probabilities raised to a power and normalised.

    Randomized responses, exponential mechanisms and geometric noise change with their ε in this
    way: what was likely becomes likelier, and the categories that distinguish the sides may become
    rare.

    Attributes:
        categories: shape (rows,), the number of each stored row's category.
        probabilities: shape (2, n_categories), of the left and of the right; none is 0.
    """

    categories: Integers
    probabilities: Floats

    def pair(self, claim: Claim) -> DrawRows | None:
        """The pair whose true value is the claim's own; None if that takes too large a power."""

        def is_enough(power: float) -> bool:
            return _true_value(claim, self._tempered(power)) >= claim.value

        if not is_enough(_MAX_POWER):
            return None
        power = rejected_end(is_enough, _MAX_POWER, 0.0, _HALVINGS)
        probabilities = self._tempered(power)
        n_categories = self.probabilities.shape[1]
        rows = [np.flatnonzero(self.categories == number) for number in range(n_categories)]

        def draw(side: int, n: int, rng: Rng) -> Integers:
            counts = rng.multinomial(n, probabilities[side])
            drawn = [
                rng.choice(category_rows, count)
                for category_rows, count in zip(rows, counts, strict=True)
            ]
            return rng.permutation(np.concatenate(drawn))

        return draw

    def _tempered(self, power: float) -> Floats:
        """The probabilities of both sides, raised to a power and normalised."""
        return np.asarray(softmax(power * np.log(self.probabilities), axis=1))


def _true_value(claim: Claim, probabilities: Floats) -> float:
    """The value of the claim's parameter for two distributions of categories.

    The best events hold the categories with the largest likelihood ratios.

    Args:
        probabilities: shape (2, n_categories), of the left and of the right.
    """
    swapped = probabilities[::-1]
    if isinstance(claim, RenyiDP):
        return max(_divergence(probabilities, claim.order), _divergence(swapped, claim.order))
    if isinstance(claim, ZCDP):
        return max(
            _divergence(sides, order) / order
            for order in _ORDERS
            for sides in (probabilities, swapped)
        )
    log_ratios = np.log(probabilities[1]) - np.log(probabilities[0])
    likelier_left_first = np.argsort(log_ratios, kind="stable")[:-1]
    p, q = np.cumsum(probabilities[:, likelier_left_first], axis=1)
    # Both directions: the categories at the end of the order are the likelier ones on the right.
    p_events = np.concatenate([p, 1.0 - q])
    q_events = np.concatenate([q, 1.0 - p])
    return float(claim.least_values(p_events, q_events).max())


def _divergence(probabilities: Floats, order: float) -> float:
    """The Rényi divergence of the first distribution from the second."""
    left, right = probabilities
    return math.log(float(np.sum(left**order * right ** (1.0 - order)))) / (order - 1.0)


def _laplace_cdf(x: Floats) -> Floats:
    """The cumulative distribution function of the standard Laplace distribution."""
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0.0, tail, 1.0 - tail)


def _normal_shift(claim: Claim) -> float | None:
    """The distance of two normal distributions that have the claim's value; None if none has.

    It is given in standard deviations.
    """
    if isinstance(claim, RenyiDP):
        return math.sqrt(2.0 * claim.epsilon / claim.order)
    if isinstance(claim, ZCDP):
        return math.sqrt(2.0 * claim.rho)
    if _normal_value(claim, _MOST_SHIFT) < claim.value:
        return None
    return rejected_end(
        lambda shift: _normal_value(claim, shift) < claim.value, 0.0, _MOST_SHIFT, _HALVINGS
    )


def _normal_value(claim: Claim, shift: float) -> float:
    """The value of the claim's parameter for two normal distributions at a distance.

    Their best events are thresholds; those that round to certainty are skipped.
    """
    p = ndtr(0.5 * shift - _THRESHOLDS)
    q = ndtr(-0.5 * shift - _THRESHOLDS)
    possible = (p < 1.0 - _CERTAIN) & (q > 0.0)
    return float(claim.least_values(p[possible], q[possible]).max())


@dataclass(frozen=True, slots=True)
class OutputPool:
    """Observed outputs of both sides, from which outputs like them are drawn.

    Attributes:
        outputs: as many of the left as of the right.
    """

    outputs: Outputs

    def output_sampler(self) -> Callable[[Integers, Rng], Outputs]:
        """Returns a function that draws outputs like those in the given rows.

        Numbers that occur only once move by up to half a rank, as new draws would. Otherwise every
        stored number would come again and again, and be taken for a point mass.
        """
        ranked_columns = {
            block.shape: [_Ranked.of(column) for column in block.columns] for block in self.outputs
        }
        # Columns of ranks in place of values, so that rows can be selected from both in the same
        # way.
        rank_blocks = []
        for block in self.outputs:
            columns = tuple(Numbers(ranked.ranks) for ranked in ranked_columns[block.shape])
            rank_blocks.append(replace(block, columns=columns))
        ranks = Outputs(tuple(rank_blocks), self.outputs.size)

        def draw(rows: Integers, rng: Rng) -> Outputs:
            drawn = []
            for block, rank_block in zip(self.outputs.take(rows), ranks.take(rows), strict=True):
                moved = tuple(
                    ranked.smoothed(column, column_ranks, rng)
                    for column, column_ranks, ranked in zip(
                        block.columns, rank_block.columns, ranked_columns[block.shape], strict=True
                    )
                )
                drawn.append(Block(block.shape, block.rows, moved, block.size))
            return Outputs(tuple(drawn), len(rows))

        return draw

    def synthetic_leaks(self) -> list[SyntheticLeak]:
        """Leaks of the kinds that these outputs allow: through shape, category or number."""
        leaks: list[SyntheticLeak] = []
        total = len(self.outputs)
        if len(self.outputs.blocks) > 1:
            shapes = np.zeros(total, dtype=np.int64)
            for number, block in enumerate(self.outputs):
                shapes[block.places()] = number
            leaks += _median_value_leak(shapes, np.arange(total), total)
        for block in self.outputs:
            if block.size > _MAIN_SHAPE_FRACTION * total:
                leaks += self._column_leaks(block)
        common = [
            leak
            for leak in leaks
            if not isinstance(leak, EventLeak) or _RARE < leak.frequency < 1.0 - _RARE
        ]
        return common or leaks

    def _column_leaks(self, block: Block) -> list[SyntheticLeak]:
        """A leak through a column of categories and one through a column of numbers, if any."""
        rows = block.places()
        total = len(self.outputs)
        category_leaks: list[SyntheticLeak] = []
        number_leaks: list[SyntheticLeak] = []
        for column in block.columns:
            values = column.values if isinstance(column, Numbers) else column.codes
            if isinstance(column, Numbers) and len(np.unique(values)) > _FEW_VALUES:
                if not number_leaks:
                    order = rows[np.argsort(values, kind="stable")]
                    others = np.setdiff1d(np.arange(total), rows)
                    number_leaks = [ShiftedNoiseLeak(order=order, others=others)]
            elif not category_leaks:
                category_leaks = _median_value_leak(values, rows, total)
        return category_leaks + number_leaks

    def tempered_leaks(self) -> list[SyntheticLeak]:
        """What the same mechanism with less noise would return.

        There is none unless every output is a single category.
        """
        block = self.outputs.blocks[0]
        if len(self.outputs.blocks) > 1 or len(block.columns) != 1:
            return []
        column = block.columns[0]
        values = column.values if isinstance(column, Numbers) else column.codes
        _, categories = np.unique(values, return_inverse=True)
        n_categories = int(categories.max()) + 1
        # Two categories have only one event, which has a leak already; many are really numbers.
        most = _FEW_VALUES if isinstance(column, Numbers) else _MAX_CATEGORIES
        if not 2 < n_categories <= most:
            return []
        # The left outputs come first.
        half = len(categories) // 2
        left_counts = np.bincount(categories[:half], minlength=n_categories)
        right_counts = np.bincount(categories[half:], minlength=n_categories)
        counts = np.array([left_counts, right_counts])
        smoothed = counts + _PSEUDO_DRAWS * n_categories * counts.mean(axis=0) / half
        probabilities = smoothed / smoothed.sum(axis=1, keepdims=True)
        return [TemperedCategoriesLeak(categories=categories, probabilities=probabilities)]


def _median_value_leak(values: Array, rows: Integers, total: int) -> list[SyntheticLeak]:
    """The leak through one value of median frequency: half of all draws have a more frequent one.

    Args:
        values: shape (k,), the values of some of the stored rows.
        rows: shape (k,), the numbers of these rows.
        total: how many rows are stored.

    Returns:
        The leak; nothing if all rows have the value.
    """
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    by_count = np.argsort(-count, kind="stable")
    middle = by_count[np.searchsorted(np.cumsum(count[by_count]), 0.5 * len(values))]
    inside = np.zeros(total, dtype=np.bool_)
    inside[rows[number == middle]] = True
    return [EventLeak(inside)] if 0 < inside.sum() < total else []


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The order of the numbers of a column.

    Attributes:
        ordered: shape (k,), the finite numbers, ascending.
        ranks: shape (rows,), the place of each number among them; −1 for what must not be moved.
    """

    ordered: Floats
    ranks: Integers

    @classmethod
    def of(cls, column: Column) -> "_Ranked":
        if not isinstance(column, Numbers) or column.values.dtype == np.bool_:
            return cls(np.empty(0), np.full(len(column), -1))
        values = np.asarray(column.values, dtype=np.float64)
        ordered = np.sort(values[np.isfinite(values)])
        first = np.searchsorted(ordered, values, side="left")
        after_last = np.searchsorted(ordered, values, side="right")
        return cls(ordered=ordered, ranks=np.where(after_last - first == 1, first, -1))

    def smoothed(self, column: Column, ranks: Column, rng: Rng) -> Column:
        """The column with its single numbers moved; whole numbers stay whole."""
        if (
            not isinstance(column, Numbers)
            or not isinstance(ranks, Numbers)
            or len(self.ordered) < 2
        ):
            return column
        single = ranks.values >= 0
        last = len(self.ordered) - 1
        # Ranks that would leave the range are reflected, so that they do not pile up at its ends.
        place = np.abs(ranks.values[single] + rng.random(np.count_nonzero(single)) - 0.5)
        place = last - np.abs(last - place)
        below = np.minimum(place.astype(np.int64), last - 1)
        low = self.ordered[below]
        high = self.ordered[below + 1]
        moved = low + (place - below) * (high - low)
        values = column.values.copy()
        values[single] = moved if values.dtype.kind == "f" else np.rint(moved).astype(values.dtype)
        return Numbers(values)
