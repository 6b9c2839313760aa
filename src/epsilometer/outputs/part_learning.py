"""Learns from training draws which parts of numbers become columns.

A part is worth a column where the sides differ in it *periodically*: two counts of which one is
larger differ in their last digits, too, but then the numbers themselves say more. So every draw is
compared with the draws whose numbers are near: within the nearest periods, or a sixteenth of the
range if that is wider, the share of the left side hardly changes but by the part. Where nothing
differs so, and that is nearly everywhere, nothing is added and nothing is paid.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.outputs.columns import Block, Column, Numbers, Outputs
from epsilometer.outputs.number_parts import (
    MAX_PARTS,
    NumberPart,
    PartKind,
    ShapeParts,
    leaf_of_columns,
    may_have_parts,
    moduli_of,
    possible_kinds,
    units_of,
)

# Training draws per side below which there is nothing to learn.
_FEWEST_DRAWS = 20
# Draws per side that are looked at: more would only find leaks that are too weak to be proved.
_MOST_DRAWS = 1 << 15
# Columns of a shape that are looked at, the first ones: this bounds the time.
_MOST_COLUMNS = 64
# Shapes that are looked at, the most frequent first.
_MOST_SHAPES = 16
# Values that show in most cases that a column holds no integers.
_FIRST_VALUES = 64
# The probability with which any part of outputs that do not leak becomes a column. A column too
# many costs a little power.
_FALSE_ALARM = 0.01
# The numbers must range over so many periods; if not, single values say what a part would.
_FEWEST_PERIODS = 4
# A number that more than this fraction of the draws take is an outcome of its own, which may leak
# by itself: its part is no evidence for that of others.
_FREQUENT_FRACTION = 1.0 / 16.0
# Neighbours of a number are those within a period, or within this fraction of the range.
_NEIGHBOURS_FRACTION = 1.0 / 16.0
# The least variance of the number of left draws with one value of a part, for its distribution to
# be about normal.
_LEAST_VARIANCE = 2.0


class _Evidence(NamedTuple):
    """How much the sides differ in a part.

    Attributes:
        statistic: the sum of squared deviations, in their variance.
        freedom: how many of them are free: the degrees of freedom.
    """

    statistic: float
    freedom: int

    @property
    def p_value(self) -> float:
        """The p-value of sides that do not differ."""
        return float(chdtrc(self.freedom, self.statistic))

    @property
    def information(self) -> float:
        """What it is expected to explain of further draws (Akaike's criterion)."""
        return self.statistic - 2.0 * self.freedom

    def exceeds(self, other: "_Evidence") -> bool:
        """Returns whether it explains more than a coarser part, beyond chance."""
        gain = self.statistic - other.statistic
        return bool(chdtrc(max(self.freedom - other.freedom, 1), max(gain, 0.0)) <= _FALSE_ALARM)


class _Candidate(NamedTuple):
    """A part of the numbers of one shape."""

    evidence: _Evidence
    shape: str
    part: NumberPart


def learn_parts(left: Outputs, right: Outputs) -> tuple[ShapeParts, ...]:
    """Learns which parts of numbers become columns.

    Args:
        left: training outputs with their texts read.
        right: training outputs.
    """
    right_blocks = {block.shape: block for block in right.blocks}
    pairs = [
        (block, right_blocks[block.shape])
        for block in left.blocks
        if block.shape in right_blocks and may_have_parts(block.shape, len(block.columns))
    ]
    pairs.sort(key=lambda pair: -pair[0].size - pair[1].size)
    candidates: list[_Candidate] = []
    n_tests = 0
    for left_block, right_block in pairs[:_MOST_SHAPES]:
        if min(left_block.size, right_block.size) >= _FEWEST_DRAWS:
            tested = list(_candidates_of_shape(left_block, right_block))
            n_tests += len(tested)
            candidates += tested
    chosen = [one for one in candidates if one.evidence.p_value * n_tests <= _FALSE_ALARM]
    shapes = []
    for shape in dict.fromkeys(one.shape for one in chosen):
        parts = _best_of_columns([one for one in chosen if one.shape == shape])
        shapes.append(ShapeParts(shape, parts))
    return tuple(shapes)


def _best_of_columns(candidates: Sequence[_Candidate]) -> tuple[NumberPart, ...]:
    """Returns the best part of each kind of each column, the most informative ones first."""
    rivals: dict[tuple[int, PartKind], list[_Candidate]] = {}
    for one in candidates:
        rivals.setdefault((one.part.column, _family(one.part.kind)), []).append(one)
    best = [_best_modulus(ones) for ones in rivals.values()]
    best.sort(key=lambda one: -one.evidence.information)
    return tuple(one.part for one in best[:MAX_PARTS])


def _best_modulus(rivals: Sequence[_Candidate]) -> _Candidate:
    """Returns the most informative remainder; or the one by a divisor that says as much."""
    best = max(rivals, key=lambda one: one.evidence.information)
    for one in sorted(rivals, key=lambda one: one.part.modulus):
        divides = best.part.modulus % one.part.modulus == 0
        if divides and not best.evidence.exceeds(one.evidence):
            return one
    return best


def _family(kind: PartKind) -> PartKind:
    """The last digit is a remainder that has a name."""
    return PartKind.REMAINDER if kind is PartKind.LAST_DIGIT else kind


def _candidates_of_shape(left: Block, right: Block) -> Iterator[_Candidate]:
    """Yields the parts that were tested."""
    leaves = leaf_of_columns(left.shape)
    n_columns = 0
    for place, leaf in enumerate(leaves):
        kinds = () if leaf is None else possible_kinds(leaf.kind)
        if leaf is None or not kinds:
            continue
        sides = [_first_values(block.columns[place]) for block in (left, right)]
        if any(not _may_be_whole(side) or _are_bits(side, leaf.kind) for side in sides):
            continue
        n_columns += 1
        if n_columns > _MOST_COLUMNS:
            return
        if PartKind.REMAINDER in kinds:
            # The last digit of negative numbers is no remainder: it falls as they grow.
            is_signed = any(bool((side < 0).any()) for side in sides)
            kinds = (PartKind.REMAINDER,)
        for kind in kinds:
            units = [units_of(side, kind, leaf.kind) for side in sides]
            for modulus, evidence in _periodic_evidence(units[0], units[1], moduli_of(kind)):
                named = kind
                if kind is PartKind.REMAINDER and modulus == 10 and not is_signed:
                    named = PartKind.LAST_DIGIT
                yield _Candidate(evidence, left.shape, NumberPart(place, named, modulus))


def _first_values(column: Column) -> Array:
    return column.values[:_MOST_DRAWS] if isinstance(column, Numbers) else np.empty(0)


def _may_be_whole(values: Array) -> bool:
    """Returns whether the first numbers are integers; truth values and missing ones are not."""
    if values.dtype == np.bool_:
        return False
    first = np.asarray(values[:_FIRST_VALUES], dtype=np.float64)
    known = first[np.isfinite(first)]
    return bool(len(known) and (known == np.floor(known)).all())


def _are_bits(values: Array, leaf_kind: str) -> bool:
    """Returns whether these are codes of the floating-point view, whose digits mean nothing."""
    return leaf_kind == "float" and values.dtype == np.int64


def _periodic_evidence(
    left: Floats, right: Floats, moduli: Sequence[int]
) -> Iterator[tuple[int, _Evidence]]:
    """Yields moduli with the evidence that remainders by them tell the sides apart.

    Args:
        left: shape (n,), integers; NaN is left out.
        right: shape (m,).
        moduli: to be tested; those for which the numbers have too small a range are left out.
    """
    left = left[~np.isnan(left)]
    right = right[~np.isnan(right)]
    if min(len(left), len(right)) < _FEWEST_DRAWS:
        return
    values, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    n_left = np.bincount(place[: len(left)], minlength=len(values))
    total = np.bincount(place, minlength=len(values))
    is_rare = total <= _FREQUENT_FRACTION * total.sum()
    if not is_rare.any():
        return
    values, n_left, total = values[is_rare], n_left[is_rare], total[is_rare]
    rank = np.cumsum(total) / total.sum()
    reach = values[np.searchsorted(rank, 0.9)] - values[np.searchsorted(rank, 0.1)]
    for modulus in moduli:
        if reach < _FEWEST_PERIODS * modulus:
            continue
        half_width = max(modulus, np.floor(_NEIGHBOURS_FRACTION * reach))
        share = _share_nearby(values, n_left, total, half_width)
        remainder = np.mod(values, modulus).astype(np.int64)
        surplus = np.bincount(remainder, n_left - share * total, minlength=modulus)
        variance = np.bincount(remainder, share * (1.0 - share) * total, minlength=modulus)
        is_frequent = variance >= _LEAST_VARIANCE
        n_frequent = int(np.count_nonzero(is_frequent))
        if n_frequent > 1:
            statistic = float((surplus[is_frequent] ** 2 / variance[is_frequent]).sum())
            yield modulus, _Evidence(statistic, n_frequent - 1)


def _share_nearby(values: Floats, n_left: Integers, total: Integers, half_width: float) -> Floats:
    """Returns the share of left draws among those near each value, shape (values,)."""
    first = np.searchsorted(values, values - half_width)
    last = np.searchsorted(values, values + half_width, side="right")
    left_before = np.concatenate([[0], np.cumsum(n_left)])
    total_before = np.concatenate([[0], np.cumsum(total)])
    nearby = total_before[last] - total_before[first]
    return np.asarray((left_before[last] - left_before[first]) / nearby)
