"""Plants a leak of a known size into outputs like those of an audit.

What an audit could have found is measured by running it on mechanisms whose leak is known. These
mechanisms return the outputs that were seen, pooled over both sides, so shapes, columns, names and
repeated values are those of the mechanism at hand; only how often each side returns which of them
is made up. There are two ways:

* an *event* becomes as much likelier on one side as a true value of v allows, everything else stays
  equal;
* a *line* (one column of numbers) is drawn as if noise had been added to two inputs: Laplace noise
  for pure privacy, normal noise for every other notion.

Both are pairs of distributions whose true value is v; where values of a line repeat, it is at most
v.
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

# A column with at most this many different values is one of names, even if they are numbers.
_FEW_VALUES = 8
# Leaks are planted into the columns of a shape that at least the first share of outputs has, and,
# if there is a choice, not into values that almost no or almost all outputs share.
_MOST_OUTPUTS = 0.5
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
# Shares are raised to at most the first power: a mechanism with a quarter of the noise is hardly
# the same any more. With more names than the second number, the stored rows do not determine the
# shares. Before that, both sides get the third number of common pseudo-draws per name: chance alone
# makes the sides differ when draws are few.
_MOST_SHARPENED = 4.0
_MOST_NAMES = 64
_SHARED = 5
_ORDERS = [float(order) for order in np.geomspace(1.01, 100.0, 60)]


class Plant(Protocol):
    """Pairs of distributions over the stored rows, one for each true value."""

    def pair(self, claim: Claim) -> DrawRows | None:
        """The pair whose true value is the claim's own; None when there is none."""


@dataclass(frozen=True, slots=True)
class EventPlant:
    """The event is likelier on the left, by as much as the claim allows.

    Attributes:
        inside: shape (rows,), which of the stored rows belong to the event; some do and some do
            not.
    """

    inside: Booleans

    @property
    def share(self) -> float:
        """Of all stored rows."""
        return float(self.inside.mean())

    def pair(self, claim: Claim) -> DrawRows | None:
        """The event's share on both sides together stays what it was."""
        if (shares := _shares_of(claim, self.share)) is None:
            return None
        within = np.flatnonzero(self.inside)
        without = np.flatnonzero(~self.inside)

        def draw(side: int, n: int, rng: Rng) -> Integers:
            hits = rng.random(n) < shares[side]
            return np.where(
                hits, *(each[rng.integers(len(each), size=n)] for each in (within, without))
            )

        return draw


def _shares_of(claim: Claim, share: float) -> tuple[float, float] | None:
    """P(E) and Q(E) with the given mean for which the claim holds, but no smaller value does."""
    # of Q(E)
    low = max(0.0, 2.0 * share - 1.0)
    high = share
    if claim.least_value(2.0 * share - low, low) < claim.value:
        return None
    q = rejected_end(
        lambda q: claim.least_value(2.0 * share - q, q) < claim.value, high, low, _HALVINGS
    )
    return 2.0 * share - q, q


@dataclass(frozen=True, slots=True)
class LinePlant:
    """The left draws lower ranks of a line, the right higher ones, as noise around two numbers would.

    Attributes:
        order: shape (k,), the stored rows that have the line, in ascending order.
        others: shape (rows − k,), those that lack it; both sides draw them equally.
    """

    order: Integers
    others: Integers

    def pair(self, claim: Claim) -> DrawRows | None:
        """A row's rank is that of a noisy number among the noisy numbers of both sides, so all rows stay in use."""
        shift = claim.epsilon if isinstance(claim, PureDP) else _normal_shift(claim)
        if shift is None:
            return None
        noise, cumulative = (
            (Rng.laplace, _laplace) if isinstance(claim, PureDP) else (Rng.normal, ndtr)
        )
        half = 0.5 * shift
        lacking = len(self.others) / (len(self.others) + len(self.order))

        def draw(side: int, n: int, rng: Rng) -> Integers:
            number = noise(rng, size=n) + (half if side else -half)
            rank = 0.5 * (cumulative(number - half) + cumulative(number + half))
            drawn = self.order[
                np.minimum((rank * len(self.order)).astype(np.int64), len(self.order) - 1)
            ]
            return (
                drawn
                if not lacking
                else np.where(rng.random(n) < lacking, rng.choice(self.others, size=n), drawn)
            )

        return draw


@dataclass(frozen=True, slots=True)
class SharpenedPlant:
    """Names as they were seen on either side, with every share raised to one power and normalised.

    Randomized responses, exponential mechanisms and geometric noise change with their ε in this
    way: what was likely becomes likelier, and the names that distinguish the sides may become rare.

    Attributes:
        names: shape (rows,), the number of each stored row's name.
        shares: shape (2, names), of the left and of the right; none is 0.
    """

    names: Integers
    shares: Floats

    def pair(self, claim: Claim) -> DrawRows | None:
        """Finds the power."""

        def is_enough(power: float) -> bool:
            return _greatest_value(claim, self._sharpened(power)) >= claim.value

        if not is_enough(_MOST_SHARPENED):
            return None
        shares = self._sharpened(rejected_end(is_enough, _MOST_SHARPENED, 0.0, _HALVINGS))
        rows = [np.flatnonzero(self.names == name) for name in range(self.shares.shape[1])]

        def draw(side: int, n: int, rng: Rng) -> Integers:
            counts = rng.multinomial(n, shares[side])
            drawn = [rng.choice(each, count) for each, count in zip(rows, counts, strict=True)]
            return rng.permutation(np.concatenate(drawn))

        return draw

    def _sharpened(self, power: float) -> Floats:
        return np.asarray(softmax(power * np.log(self.shares), axis=1))


def _greatest_value(claim: Claim, shares: Floats) -> float:
    """The value of two distributions of names; the best events hold the names with the largest ratios."""
    if isinstance(claim, RenyiDP):
        return max(_divergence(shares, claim.order), _divergence(shares[::-1], claim.order))
    if isinstance(claim, ZCDP):
        return max(
            _divergence(sides, order) / order
            for order in _ORDERS
            for sides in (shares, shares[::-1])
        )
    p, q = np.cumsum(
        shares[:, np.argsort(np.log(shares[1]) - np.log(shares[0]), kind="stable")[:-1]], axis=1
    )
    # Both directions: the names at the end of the order are the likelier ones on the right.
    return float(
        claim.least_values(np.concatenate([p, 1.0 - q]), np.concatenate([q, 1.0 - p])).max()
    )


def _divergence(shares: Floats, order: float) -> float:
    return math.log(float(np.sum(shares[0] ** order * shares[1] ** (1.0 - order)))) / (order - 1.0)


def _laplace(x: Floats) -> Floats:
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0.0, tail, 1.0 - tail)


def _normal_shift(claim: Claim) -> float | None:
    """The distance of two normal distributions, in standard deviations, for the claim's value; None if none fits."""
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
    """By thresholds, the best events of two normal distributions; those that round to certainty are skipped."""
    p = ndtr(0.5 * shift - _THRESHOLDS)
    q = ndtr(-0.5 * shift - _THRESHOLDS)
    possible = (p < 1.0 - _CERTAIN) & (q > 0.0)
    return float(claim.least_values(p[possible], q[possible]).max())


@dataclass(frozen=True, slots=True)
class Soil:
    """Outputs of both sides, from which outputs like them are drawn.

    Attributes:
        outputs: as many of the left as of the right.
    """

    outputs: Outputs

    def ready(self) -> Callable[[Integers, Rng], Outputs]:
        """A function that draws outputs like those in the given rows.

        Numbers that were seen only once move by up to half a rank, as new draws would. Otherwise
        every stored number would come again and again, and be taken for an atom.
        """
        ladders = {
            block.shape: [_Ranked.of(column) for column in block.columns] for block in self.outputs
        }
        # Columns of ranks in place of values, so that rows can be selected from both in the same
        # way.
        columns = {
            shape: tuple(Numbers(each.ranks) for each in some) for shape, some in ladders.items()
        }
        blocks = tuple(replace(block, columns=columns[block.shape]) for block in self.outputs)
        ranks = Outputs(blocks, self.outputs.size)

        def draw(rows: Integers, rng: Rng) -> Outputs:
            drawn = []
            for block, ranked in zip(self.outputs.take(rows), ranks.take(rows), strict=True):
                known = zip(block.columns, ranked.columns, ladders[block.shape], strict=True)
                moved = tuple(ladder.smoothed(column, rank, rng) for column, rank, ladder in known)
                drawn.append(Block(block.shape, block.rows, moved, block.size))
            return Outputs(tuple(drawn), len(rows))

        return draw

    def plants(self) -> list[Plant]:
        """Leaks of the kinds that these outputs allow: through their shape, a name, a number."""
        found: list[Plant] = []
        if len(self.outputs.blocks) > 1:
            shapes = np.zeros(len(self.outputs), dtype=np.int64)
            for number, block in enumerate(self.outputs):
                shapes[block.places()] = number
            found += _middling(shapes, np.arange(len(self.outputs)), len(self.outputs))
        for block in self.outputs:
            if block.size > _MOST_OUTPUTS * len(self.outputs):
                found += self._column_plants(block)
        common = [
            plant
            for plant in found
            if not isinstance(plant, EventPlant) or _RARE < plant.share < 1.0 - _RARE
        ]
        return common or found

    def _column_plants(self, block: Block) -> list[Plant]:
        """One of a column of names and one of a column of numbers, if there are any."""
        rows = block.places()
        total = len(self.outputs)
        names: list[Plant] = []
        lines: list[Plant] = []
        for column in block.columns:
            values = column.values if isinstance(column, Numbers) else column.codes
            if isinstance(column, Numbers) and len(np.unique(values)) > _FEW_VALUES:
                others = np.setdiff1d(np.arange(total), rows)
                lines = lines or [LinePlant(rows[np.argsort(values, kind="stable")], others)]
            else:
                names = names or _middling(values, rows, total)
        return names + lines

    def sharpened(self) -> list[Plant]:
        """What a mechanism of the same kind with less noise would return, where all outputs are single names."""
        block = self.outputs.blocks[0]
        if len(self.outputs.blocks) > 1 or len(block.columns) != 1:
            return []
        column = block.columns[0]
        _, names = np.unique(
            column.values if isinstance(column, Numbers) else column.codes, return_inverse=True
        )
        # the left come first
        n_names = int(names.max()) + 1
        half = len(names) // 2
        # Two names have only one event, which is planted already; many names are really numbers.
        if not 2 < n_names <= (_FEW_VALUES if isinstance(column, Numbers) else _MOST_NAMES):
            return []
        counts = np.array(
            [np.bincount(side, minlength=n_names) for side in (names[:half], names[half:])]
        )
        shared = counts + _SHARED * n_names * counts.mean(axis=0) / half
        return [SharpenedPlant(names, shared / shared.sum(axis=1, keepdims=True))]


def _middling(values: Array, rows: Integers, total: int) -> list[Plant]:
    """The event of one value of median frequency: half of all draws have a more frequent one."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    by_count = np.argsort(-count, kind="stable")
    middle = by_count[np.searchsorted(np.cumsum(count[by_count]), 0.5 * len(values))]
    inside = np.zeros(total, dtype=np.bool_)
    inside[rows[number == middle]] = True
    return [EventPlant(inside)] if 0 < inside.sum() < total else []


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The order of the numbers of a column.

    Attributes:
        ordered: shape (k,), the finite ones, ascending.
        ranks: shape (rows,), the place of each among them; −1 for what must not be moved.
    """

    ordered: Floats
    ranks: Integers

    @classmethod
    def of(cls, column: Column) -> "_Ranked":
        if not isinstance(column, Numbers) or column.values.dtype == np.bool_:
            return cls(np.empty(0), np.full(len(column), -1))
        values = np.asarray(column.values, dtype=np.float64)
        ordered = np.sort(values[np.isfinite(values)])
        first, last = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
        return cls(ordered, np.where(last - first == 1, first, -1))

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
