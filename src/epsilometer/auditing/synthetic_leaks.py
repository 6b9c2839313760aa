"""Synthetic leaks of a known size in outputs like those of an audit.

What an audit could have found is measured by running it on mechanisms whose leak is known. These
mechanisms return the observed outputs, pooled over both sides, so shapes, columns, categories and
repeated values are those of the mechanism at hand; only how often each side returns which of them
is made up. There are three kinds of leaks:

* `EventLeak`: an event becomes as much likelier on one side as a true value of v allows, everything
  else stays equal;
* `ShiftedNoiseLeak`: a column of numbers is drawn as if noise had been added to two inputs: Laplace
  noise for pure privacy, and for every other notion Laplace or normal noise, whichever the observed
  numbers look like;
* `TemperedCategoriesLeak`: categories are drawn as by the same mechanism with less noise.

All are pairs of distributions whose true value is v; where numbers of a column repeat, it is at
most v.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import ndtr, softmax

from epsilometer.arrays import Array, Booleans, Floats, Integers
from epsilometer.bisection import rejected_end
from epsilometer.claims import ZCDP, Claim, PureDP, RenyiDP
from epsilometer.outputs import Event
from epsilometer.outputs.columns import Block, Column, Numbers, Outputs
from epsilometer.outputs.shapes import leaves_of

Rng = np.random.Generator

# A column with at most this many distinct values is one of categories, even if they are numbers.
_FEW_VALUES = 8
# Leaks are made in the columns of a shape that more than this fraction of all outputs has.
_MAIN_SHAPE_FRACTION = 0.5
# If there is a choice, leaks are not made in values that fewer than this fraction of the outputs,
# or all but this fraction, have.
_RARE = 0.02
# Outputs of which is counted how many an event holds, at least.
_MEMBERS = 4096
# 2^-50 of a bracket is below the rounding of what is solved for.
_HALVINGS = 50
# Distributions further apart than this, in scales of their noise, cannot be distinguished from
# disjoint ones.
_MOST_SHIFT = 12.0
# Where the best threshold is looked for between two distributions, in scales of their noise from
# the middle.
_THRESHOLDS = np.linspace(-8.0, 8.0, 161)
# Noisy numbers between which the probabilities of ranks are interpolated, in scales of the noise.
_NUMBERS = np.linspace(-50.0, 50.0, 20_001)
# Likelier events count as certain: 1 − p would lose its digits to rounding.
_CERTAIN = 1e-10
# Probabilities are raised to at most this power: a mechanism with a quarter of the noise is hardly
# the same any more.
_MAX_POWER = 4.0
# ln(√(2πe)/(2e)): by this, the logarithms of both likelihoods differ beside their scales.
_LAPLACE_CONSTANT = 0.5 * math.log(0.5 * math.pi / math.e)
# With more categories than this, the stored rows do not determine their probabilities.
_MAX_CATEGORIES = 64
# Pseudo-draws per category that both sides get in common: chance alone makes the sides differ when
# draws are few.
_PSEUDO_DRAWS = 5
# Rényi orders at which zero-concentrated privacy of categories is computed.
_ORDERS = [float(order) for order in np.geomspace(1.01, 100.0, 60)]


class SyntheticLeak(Protocol):
    """Pairs of distributions over the stored rows, one for each true value."""

    def row_probabilities(self, claim: Claim) -> Floats | None:
        """The pair whose true value is the claim's own, shape (2, rows); None if there is none."""


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

    def row_probabilities(self, claim: Claim) -> Floats | None:
        """The pair whose true value is the claim's own, shape (2, rows); None if there is none.

        The event's mean probability on both sides stays its frequency in the stored rows.
        """
        probabilities = _event_probabilities(claim, self.frequency)
        if probabilities is None:
            return None
        of_event = np.array(probabilities)[:, None]
        n_inside = np.count_nonzero(self.inside)
        n_outside = len(self.inside) - n_inside
        return np.where(self.inside, of_event / n_inside, (1.0 - of_event) / n_outside)


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
        is_laplace: whether the noise is Laplace noise, and not normal, where the claim leaves a
            choice.
    """

    order: Integers
    others: Integers
    is_laplace: bool

    def row_probabilities(self, claim: Claim) -> Floats | None:
        """The pair whose true value is the claim's own, shape (2, rows); None if there is none.

        A row's rank is that of a noisy number among the noisy numbers of both sides, so all rows
        stay in use.
        """
        is_laplace = self.is_laplace or isinstance(claim, PureDP)
        shift = _laplace_shift(claim) if is_laplace else _normal_shift(claim)
        if shift is None:
            return None
        cumulative = _laplace_cdf if is_laplace else ndtr
        below = np.stack([cumulative(_NUMBERS + 0.5 * shift), cumulative(_NUMBERS - 0.5 * shift)])
        n_order = len(self.order)
        n_others = len(self.others)
        edges = np.linspace(0.0, 1.0, n_order + 1)
        probabilities = np.empty((2, n_order + n_others))
        for side in (0, 1):
            at_edges = np.interp(edges, below.mean(axis=0), below[side])
            of_ranks = np.diff(at_edges) / (at_edges[-1] - at_edges[0])
            probabilities[side, self.order] = of_ranks * n_order / (n_order + n_others)
        probabilities[:, self.others] = 1.0 / (n_order + n_others)
        return probabilities


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

    def row_probabilities(self, claim: Claim) -> Floats | None:
        """The pair whose true value is the claim's own, shape (2, rows).

        None if that takes too large a power.
        """

        def is_enough(power: float) -> bool:
            return _true_value(claim, self._tempered(power)) >= claim.value

        if not is_enough(_MAX_POWER):
            return None
        power = rejected_end(is_enough, _MAX_POWER, 0.0, _HALVINGS)
        n_rows = np.bincount(self.categories, minlength=self.probabilities.shape[1])
        return np.asarray((self._tempered(power) / n_rows)[:, self.categories])

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


def _laplace_shift(claim: Claim) -> float | None:
    """The distance of two Laplace distributions of scale 1 that have the claim's value.

    None if none has.
    """
    if isinstance(claim, PureDP):
        return claim.epsilon
    return _shift_with_value(claim, _laplace_value)


def _laplace_value(claim: Claim, shift: float) -> float:
    """The value of the claim's parameter for two Laplace distributions at a distance."""
    if isinstance(claim, RenyiDP):
        return _laplace_divergence(shift, claim.order)
    if isinstance(claim, ZCDP):
        return max(_laplace_divergence(shift, order) / order for order in _ORDERS)
    return _value_of_thresholds(claim, _laplace_cdf, shift)


def _laplace_divergence(shift: float, order: float) -> float:
    """The Rényi divergence of two Laplace distributions of scale 1 at a distance.

    Reference: Mironov, "Rényi differential privacy" (2017), Table II.
    """
    far = math.log(order / (2.0 * order - 1.0)) + (order - 1.0) * shift
    near = math.log((order - 1.0) / (2.0 * order - 1.0)) - order * shift
    return float(np.logaddexp(far, near)) / (order - 1.0)


def _normal_shift(claim: Claim) -> float | None:
    """The distance of two normal distributions that have the claim's value; None if none has.

    It is given in standard deviations.
    """
    if isinstance(claim, RenyiDP):
        return math.sqrt(2.0 * claim.epsilon / claim.order)
    if isinstance(claim, ZCDP):
        return math.sqrt(2.0 * claim.rho)
    return _shift_with_value(claim, lambda claim, shift: _value_of_thresholds(claim, ndtr, shift))


def _shift_with_value(claim: Claim, value: Callable[[Claim, float], float]) -> float | None:
    """The distance from which on two distributions have at least the claim's value."""
    if value(claim, _MOST_SHIFT) < claim.value:
        return None
    return rejected_end(
        lambda shift: value(claim, shift) < claim.value, 0.0, _MOST_SHIFT, _HALVINGS
    )


def _value_of_thresholds(
    claim: Claim, cumulative: Callable[[Floats], Floats], shift: float
) -> float:
    """The value of the claim's parameter for two symmetric distributions at a distance.

    Their best events are thresholds; those that round to certainty are skipped.
    """
    p = cumulative(0.5 * shift - _THRESHOLDS)
    q = cumulative(-0.5 * shift - _THRESHOLDS)
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

    def drawn_rows(self, probabilities: Floats, n: int, rng: Rng) -> Integers:
        """Draws n rows, each with its probability; shape (n,)."""
        cumulative = np.cumsum(probabilities)
        rows = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        return np.asarray(np.minimum(rows, len(probabilities) - 1))

    def membership(self, event: Event, rng: Rng) -> Floats:
        """How likely outputs like that of each row are in an event, shape (rows,)."""
        n_rows = len(self.outputs)
        repeats = -(-_MEMBERS // n_rows)
        outputs = self.output_sampler()(np.tile(np.arange(n_rows), repeats), rng)
        return np.asarray(event.contains(outputs).reshape(repeats, n_rows).mean(axis=0))

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
                leaks += self._category_leaks(block)
                leaks += self._number_leaks(block)
        common = [
            leak
            for leak in without_repetitions(leaks)
            if not isinstance(leak, EventLeak) or _RARE < leak.frequency < 1.0 - _RARE
        ]
        return common or leaks

    def _category_leaks(self, block: Block) -> list[SyntheticLeak]:
        """A leak through the first column of categories, if there is one."""
        for column in block.columns:
            if not _holds_numbers(column):
                return _median_value_leak(_plain_values(column), block.places(), len(self.outputs))
        return []

    def _number_leaks(self, main: Block) -> list[SyntheticLeak]:
        """A leak through the first column of numbers, if there is one.

        Outputs of other shapes have that number, too, if they have the same key or the same place
        for it: what is wrong with the noise of a total is so in every output.
        """
        number = next(
            (place for place, column in enumerate(main.columns) if _holds_numbers(column)), None
        )
        if number is None:
            return []
        wanted = _paths_of(main)[number]
        rows: list[Integers] = []
        values: list[Floats] = []
        for block in self.outputs:
            for path, column in zip(_paths_of(block), block.columns, strict=True):
                is_wanted = block is main if wanted is None else path == wanted
                if is_wanted and isinstance(column, Numbers) and column.values.dtype != np.bool_:
                    rows.append(block.places())
                    values.append(np.asarray(column.values, dtype=np.float64))
                    break
        in_rows = np.concatenate(rows)
        of_rows = np.concatenate(values)
        order = in_rows[np.argsort(of_rows, kind="stable")]
        others = np.setdiff1d(np.arange(len(self.outputs)), in_rows)
        is_left = in_rows < len(self.outputs) // 2
        is_laplace = looks_like_laplace([of_rows[is_left], of_rows[~is_left]])
        return [ShiftedNoiseLeak(order=order, others=others, is_laplace=is_laplace)]

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


def without_repetitions(leaks: Sequence[SyntheticLeak]) -> list[SyntheticLeak]:
    """The leaks without those through the same event as an earlier one, or through its complement.

    A key that only some outputs have is a shape of theirs, and its value may be always the same.
    """
    kept: list[SyntheticLeak] = []
    for leak in leaks:
        if isinstance(leak, EventLeak):
            inside = [other.inside for other in kept if isinstance(other, EventLeak)]
            if any(
                np.array_equal(leak.inside, other) or np.array_equal(leak.inside, ~other)
                for other in inside
            ):
                continue
        kept.append(leak)
    return kept


def _plain_values(column: Column) -> Array:
    return column.values if isinstance(column, Numbers) else column.codes


def _holds_numbers(column: Column) -> bool:
    """Whether it has more numbers than a column of categories would."""
    return isinstance(column, Numbers) and len(np.unique(column.values)) > _FEW_VALUES


def _paths_of(block: Block) -> list[str | None]:
    """Where in an output each column comes from; None for columns that have no place of theirs."""
    leaves = leaves_of(block.shape)
    paths = [leaf.path if leaf.n_columns == 1 else None for leaf in leaves]
    if len(paths) != len(block.columns):
        return [None] * len(block.columns)
    return paths


def looks_like_laplace(sides: Sequence[Floats]) -> bool:
    """Whether numbers are likelier under Laplace than under normal noise, each side on its own."""
    log_ratio = 0.0
    for side in sides:
        values = side[np.isfinite(side)]
        if len(values) < 2:
            continue
        distance = float(np.abs(values - np.median(values)).mean())
        deviation = float(values.std())
        if distance <= 0.0 or deviation <= 0.0:
            continue
        # The greatest log-likelihoods of n numbers are −n·ln(2·e·distance) and
        # −n·ln(√(2·π·e)·deviation).
        log_ratio += len(values) * (math.log(deviation / distance) + _LAPLACE_CONSTANT)
    return log_ratio > 0.0


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
