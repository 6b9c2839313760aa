"""Scores of screened pairs: how strongly few draws of two inputs speak against a claim.

Scores only choose which pairs are explored, so they may be rough and quick.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.claims import Claim
from epsilometer.methods.scores.cells import blocks_of_both
from epsilometer.outputs import Labels, Outputs
from epsilometer.outputs.columns import Block

# Score for outputs that differ deterministically.
CERTAIN = 100.0
# Score of a column for which a part of the outputs differs deterministically, per unit of that
# part: far above what any common claim allows.
_PARTLY_CERTAIN = 4.0
# Columns of wide outputs that are compared; the others are left out, for speed.
_MOST_COLUMNS = 64
# Draws of both sides together from which on a value counts as a repeated one.
_REPEATED_FROM = 3
# The least advantage (power minus q) that a claim counts as allowing, so that strict claims do not
# divide by 0.
_LEAST_ADVANTAGE = 0.02


class EventCounts(NamedTuple):
    """Hits of k events on both sides, arrays of shape (k,)."""

    left: Integers
    right: Integers


@dataclass(frozen=True, slots=True)
class Curve:
    """What a claim allows, tabulated.

    Attributes:
        q: probabilities of an event on the one side, increasing, shape (m,).
        power: the largest probability of the event on the other side, shape (m,).
        slope: the derivative of power, shape (m,).
        most: the largest advantage, power - q.
    """

    q: Floats
    power: Floats
    slope: Floats
    most: float

    @classmethod
    def of(cls, claim: Claim) -> "Curve":
        """Returns the curve of a claim; finer near 0 and 1, where it bends."""
        tail = np.geomspace(1e-6, 0.01, 60)
        middle = np.linspace(0.01, 0.99, 200)
        q = np.unique(np.concatenate([[0.0], tail, middle, 1.0 - tail, [1.0]]))
        power = np.clip(np.asarray(claim.max_power(q), dtype=np.float64), q, 1.0)
        return cls(
            q=q,
            power=power,
            slope=np.gradient(power, q),
            most=max(float(np.max(power - q)), _LEAST_ADVANTAGE),
        )

    def excess(self, counts: EventCounts, n: int) -> float:
        """Returns by how many standard errors the most suspicious event exceeds the claim.

        Args:
            counts: hits of each event.
            n: draws per side.
        """
        best = 0.0
        for likelier, other in ((counts.left, counts.right), (counts.right, counts.left)):
            p = likelier / n
            q = (other + 1.0) / (n + 2.0)
            slope = np.interp(q, self.q, self.slope)
            variance = (p * (1.0 - p) + slope**2 * q * (1.0 - q)) / n + 1.0 / n**2
            standard_error = np.sqrt(variance)
            excess = (p - np.interp(q, self.q, self.power)) / standard_error
            best = max(best, float(np.max(excess, initial=0.0)))
        return best


@lru_cache(maxsize=256)
def _cached_curve(claim: Claim) -> Curve:
    return Curve.of(claim)


def _curve_of(claim: Claim) -> Curve:
    """Returns the curve of a claim, computed once: most pairs of a search have the same one."""
    if isinstance(claim, Hashable):
        return _cached_curve(claim)
    return Curve.of(claim)


# --- coupled draws


def coupled_score(left: Outputs, right: Outputs, is_coupled: bool, claim: Claim) -> float:
    """Returns how far the outputs move as a fraction of what the claim allows.

    Args:
        left: draws of the left input.
        right: draws of the right input, as many.
        is_coupled: whether the draws in the same place had the same random numbers.
        claim: what is claimed about the pair.
    """
    curve = _curve_of(claim)
    left_shapes = {block.shape: block.size / len(left) for block in left}
    right_shapes = {block.shape: block.size / len(left) for block in right}
    if left_shapes.keys() != right_shapes.keys():
        overlap = sum(
            min(fraction, right_shapes.get(shape, 0.0)) for shape, fraction in left_shapes.items()
        )
        if overlap == 0.0:
            return CERTAIN
        return (1.0 - overlap) / curve.most
    most = 0.0
    for left_block in left:
        right_block = next(block for block in right if block.shape == left_block.shape)
        if left_block.size != right_block.size:
            continue
        # Losses of independent noises add up.
        loss = sum(
            _column_movement(column, is_coupled)
            for column in _numeric_columns(left_block, right_block)
        )
        if loss >= CERTAIN:
            return CERTAIN
        most = max(most, (1.0 - math.exp(-loss / 2.0)) / curve.most)
    return most


class NumericColumn(NamedTuple):
    """The values of one column on both sides, as numbers, shapes (n_left,) and (n_right,)."""

    left: Floats
    right: Floats


def _numeric_columns(left: Block, right: Block) -> list[NumericColumn]:
    """Returns the first columns of two blocks of the same shape; categories are numbered."""
    columns = list(zip(left.columns, right.columns, strict=True))
    return [_as_numbers(one, other) for one, other in columns[:_MOST_COLUMNS]]


def _as_numbers(left: Any, right: Any) -> NumericColumn:
    if not isinstance(left, Labels):
        return NumericColumn(left.values.astype(np.float64), right.values.astype(np.float64))
    distinct_labels = dict.fromkeys((*left.labels, *right.labels))
    numbers = {label: float(number) for number, label in enumerate(distinct_labels)}
    return NumericColumn(
        np.array([numbers[left.labels[code]] for code in left.codes.tolist()]),
        np.array([numbers[right.labels[code]] for code in right.codes.tolist()]),
    )


def _column_movement(column: NumericColumn, is_coupled: bool) -> float:
    """Returns how far a column moves, in mean deviations of its noise.

    That is the privacy loss if the noise is Laplacian.
    """
    left, right = column
    left_is_odd = ~np.isfinite(left)
    right_is_odd = ~np.isfinite(right)
    if left_is_odd.any() or right_is_odd.any():
        # NaN and infinities have no distance: they are there, or not.
        difference = abs(float(left_is_odd.mean()) - float(right_is_odd.mean()))
        if difference == 1.0:
            return CERTAIN
        all_odd = left_is_odd.all() and right_is_odd.all()
        are_equal = np.array_equal(left[left_is_odd], right[right_is_odd], equal_nan=True)
        if all_odd and not are_equal:
            return CERTAIN
        return _PARTLY_CERTAIN * difference
    with np.errstate(all="ignore"):  # of huge numbers
        left_scale = float(np.mean(np.abs(left - np.median(left))))
        right_scale = float(np.mean(np.abs(right - np.median(right))))
        if left_scale == 0.0 or right_scale == 0.0:
            # At least one side has no noise.
            if left_scale == right_scale and left[0] == right[0]:
                return 0.0
            has_common_values = len(np.intersect1d(left, right)) > 0
            return _PARTLY_CERTAIN if has_common_values else CERTAIN
        if is_coupled:
            shift = float(np.median(np.abs(left - right)))
            change_of_scale = abs(float(np.log(left_scale) - np.log(right_scale)))
        else:
            shift = abs(float(np.median(left) - np.median(right)))
            change_of_scale = 0.0
        movement = shift / (left_scale / 2.0 + right_scale / 2.0)
        return min(max(movement, change_of_scale), CERTAIN - 1.0)


# --- independent draws


def plain_score(left: Outputs, right: Outputs, claim: Claim) -> float:
    """Returns by how many standard errors the most suspicious event exceeds the claim.

    Args:
        left: independent draws of the left input.
        right: independent draws of the right input, as many.
        claim: what is claimed about the pair.
    """
    curve = _curve_of(claim)
    n = len(left)
    score = curve.excess(_event_counts(left, right), n)
    joint_counts = _joint_counts(left, right)
    if joint_counts is None:
        return score
    return max(score, curve.excess(joint_counts, n - n // 2))


def _event_counts(left: Outputs, right: Outputs) -> EventCounts:
    """Returns the hits of simple events.

    An event is a shape, a number at most or above some value, a value that repeats, or a category.
    """
    n = len(left)
    # The event that always happens.
    counts = [EventCounts(np.array([n]), np.array([n]))]
    blocks = blocks_of_both(left, right)
    for left_block, right_block in blocks:
        if len(blocks) > 1:
            has_shape = EventCounts(
                np.array([left_block.size, n - left_block.size]),
                np.array([right_block.size, n - right_block.size]),
            )
            counts.append(has_shape)
        if left_block.size and right_block.size:
            columns = _numeric_columns(left_block, right_block)
            counts += [_threshold_counts(column) for column in columns]
    return EventCounts(
        np.concatenate([events.left for events in counts]),
        np.concatenate([events.right for events in counts]),
    )


def _threshold_counts(column: NumericColumn) -> EventCounts:
    """Returns the hits of "at most v", "above v" and "exactly v, if it repeats", for every v."""
    left, right = column
    values, codes = np.unique(np.concatenate([left, right]), return_inverse=True, equal_nan=True)
    left_counts = np.bincount(codes[: len(left)], minlength=len(values))
    right_counts = np.bincount(codes[len(left) :], minlength=len(values))
    repeats = left_counts + right_counts >= _REPEATED_FROM

    def all_events(counts: Integers) -> Integers:
        at_most = np.cumsum(counts)
        above = counts.sum() - at_most
        return np.concatenate([at_most, above, counts[repeats]])

    return EventCounts(all_events(left_counts), all_events(right_counts))


def _joint_counts(left: Outputs, right: Outputs) -> EventCounts | None:
    """Returns the hits of events of all columns together.

    Half of the draws show how each column moves, and the rest are counted. Each column adds how far
    it is on the way from one median to the other, in mean deviations of its noise, which is the
    log-ratio of Laplacian noise. None unless all outputs have one shape with several columns.
    """
    if len(left.blocks) != 1 or len(right.blocks) != 1:
        return None
    if left.blocks[0].shape != right.blocks[0].shape:
        return None
    columns = _numeric_columns(left.blocks[0], right.blocks[0])
    if len(columns) < 2:
        return None
    half = len(left) // 2
    left_total = np.zeros(len(left) - half)
    right_total = np.zeros(len(right) - half)
    for column in columns:
        if not (np.isfinite(column.left).all() and np.isfinite(column.right).all()):
            continue
        left_median = float(np.median(column.left[:half]))
        right_median = float(np.median(column.right[:half]))
        with np.errstate(all="ignore"):  # outputs may be as large as floats are
            left_scale = np.mean(np.abs(column.left[:half] - left_median))
            right_scale = np.mean(np.abs(column.right[:half] - right_median))
            scale = float(left_scale + right_scale) / 2.0
        if scale <= 0.0 or not math.isfinite(scale) or left_median == right_median:
            continue
        for total, draws in ((left_total, column.left), (right_total, column.right)):
            rest = draws[half:]
            with np.errstate(all="ignore"):
                log_ratio = (np.abs(rest - right_median) - np.abs(rest - left_median)) / scale
            np.add(total, np.nan_to_num(log_ratio), out=total)
    return _threshold_counts(NumericColumn(left_total, right_total))
