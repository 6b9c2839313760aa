"""A second opinion on a stored result: does its bound follow from its counts?

    python checker.py result.json [--recording draws.jsonl]

The exit status is 0 if the result holds, 1 if it does not, and 2 if it cannot be checked.

This is one file that needs nothing but Python's standard library and shares no code with what it
checks. Copy it, read it, run it. It is written as an argument: every `check_…` function states in
its docstring what it proves, and `verify`, near the end, calls them in the order in which a sceptic
would ask.

What is taken for granted: the operations + − × ÷ √ round correctly, and exp, log, lgamma and erfc
are right to 12 digits. Binomial tails are sums of positive terms with bounded rounding or, where
those would be too many, the inequalities of Zubkov and Serov. Suprema are bounded over intervals,
never over points.

What is proved: the stored counts imply the stored bound at the stored confidence, if the draws were
independent and what was counted was fixed before they were drawn. No file can show those two
conditions. With `--recording` the event is counted again on the draws themselves.

Contents: reading; binomial tails; the exact test; claims; findings; events; bands; batches of bets;
Rényi bets; the document's agreement with itself; the budget; the p-value; recorded draws; what
weakens the reading; the recount on a recording; the whole argument; the command line.
"""

from __future__ import annotations

import json
import math
import os
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, NoReturn

# Every tail is multiplied by 1 + this. A sum of a million positive terms, each right to 12 digits,
# errs by less than 1e-6 of itself; rounding 1 − p, by at most 2^-53, moves a tail of 10^10 trials
# by about 1e-6 of itself.
_ROUNDING_OF_SUMS = 3e-6
# Binomial weights below this fraction of the largest one are left out of sums.
_NEGLIGIBLE_WEIGHT = 1e-35
# All weights that were left out, together, have less probability than this.
_LEFT_OUT = 1e-25
# Binomials with a larger standard deviation are bounded by an inequality where sums would take too
# long.
_WIDEST_SUM = 400.0
# Blocks into which the counts of one side are gathered in sums over both sides.
_BLOCKS = 1500
# Intervals of the nuisance parameter with which a supremum begins.
_FIRST_INTERVALS = 20
# Halvings of intervals after which a supremum is content with a slightly coarser bound; after twice
# as many it gives up.
_MOST_HALVINGS = 800
# The largest number of trials for which the rounding of 1 − p stays within _ROUNDING_OF_SUMS.
_MOST_TRIALS = 10**10
# Fraction of a failure probability that buys a range for the nuisance parameter Q(E) (Berger and
# Boos).
_NUISANCE_FRACTION = 1.0 / 50.0
# The bounds on suprema below are coarser than those of the auditor. A proof is accepted if the
# failure probability that they find is above the stated one by no more than this fraction.
_COARSENESS = 0.005
# Relative difference below which two figures that should be equal are taken for equal.
_SAME = 1e-5
# Absolute difference below which two probabilities that should be equal are taken for equal.
_SAME_PROBABILITY = 1e-15
# Larger numbers are no figures of an audit; the largest one that is stored is a wealth of e^700.
_LARGEST_NUMBER = 1e305
# Bets on more than this many (value, bet) pairs would take minutes.
_MOST_BETS = 10**5
# Shares of one batch of bets must sum to 1 up to this; the wealth is reduced by as much.
_SAME_SHARES = 1e-9
# Guesses and projections of bets stay this far from 0 and 1.
_MARGIN_OF_GUESSES = 1e-9
# Keeps p on a line away from 0 and 1 when rounding puts it beyond the margin of guesses.
_LEAST_P_ON_LINE = 0.5 * _MARGIN_OF_GUESSES
# A wealth is stored up to e to this power.
_LARGEST_LOG_WEALTH = 700.0
# A stored wealth below this has lost its digits: it stands for any smaller one.
_NO_WEALTH = 1e-300
# Relative error that bounds the rounding of one term of a bet.
_ROUNDING_OF_TERMS = 1e-12
# Two divergences that are together below this are both taken for 0.
_NO_DIVERGENCE = 1e-9

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Check:
    """The checker's answer.

    Attributes:
        holds: True, False, or None if the result cannot be checked.
        reason: why, in one sentence.
        confidence: the confidence that the checker itself vouches for; None unless the result
            holds.
        steps: what was proved on the way.
    """

    holds: bool | None
    reason: str
    confidence: float | None = None
    steps: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """What `holds` means, in words."""
        if self.holds is None:
            return "cannot be checked"
        return "holds" if self.holds else "does not hold"

    def __repr__(self) -> str:
        reason = " ".join(self.reason.split())
        return f"<Check {self.answer}: {reason[:200]}>"

    def __str__(self) -> str:
        lines = [f"{self.answer}: {self.reason}"]
        lines += [f"  checked: {step}" for step in self.steps]
        return "\n".join(lines)


class Stop(Exception):
    """Ends a check before everything is proved."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DoesNotHold(Stop):
    """The file contradicts itself, or states more than its counts prove."""


class CannotBeChecked(Stop):
    """The file does not say enough, or says it in a way that is not known here."""


class TakesTooLong(CannotBeChecked):
    """A supremum is so close to its level that too many intervals would have to be looked at."""


def _require(condition: bool, otherwise: str) -> None:
    """Ends the check with "does not hold" unless the condition is met."""
    if not condition:
        raise DoesNotHold(otherwise)


def _cannot_check(reason: str) -> NoReturn:
    raise CannotBeChecked(reason)


def _are_same(one: float, other: float, precision: float = _SAME) -> bool:
    """Whether two figures differ by no more than a fraction of the larger one."""
    return abs(one - other) <= precision * max(abs(one), abs(other))


# --------------------------------------------------------------------------------------------------
# Reading: whatever is not there, or is not what it should be, "cannot be checked"


def _get(data: Any, name: str) -> Any:
    if not isinstance(data, Mapping) or name not in data:
        _cannot_check(f"it lacks {name!r}")
    return data[name]


def _as_number(value: Any, name: str) -> float:
    """A finite number; neither a boolean nor a text that looks like a number."""
    if type(value) not in (int, float) or not abs(value) < _LARGEST_NUMBER:
        _cannot_check(f"{name} = {value!r:.80} should be a finite number")
    return float(value)


def _number(data: Any, name: str) -> float:
    return _as_number(_get(data, name), name)


def _numbers(values: Any, name: str) -> list[float]:
    if not isinstance(values, list):
        _cannot_check(f"{name} = {values!r:.80} should be a list of numbers")
    return [_as_number(value, name) for value in values]


def _two_numbers(values: Any, name: str) -> tuple[float, float]:
    numbers = _numbers(values, name)
    if len(numbers) != 2:
        _cannot_check(f"{name} = {values!r:.80} should be two numbers")
    return numbers[0], numbers[1]


def _as_whole(value: Any, name: str) -> int:
    """A whole number that can count draws."""
    if type(value) is not int or not 0 <= value <= _MOST_TRIALS:
        _cannot_check(f"{name} = {value!r:.40} should be a count of at most {_MOST_TRIALS}")
    return value


def _whole(data: Any, name: str) -> int:
    return _as_whole(_get(data, name), name)


def _wholes(values: Any, name: str) -> list[int]:
    if not isinstance(values, list):
        _cannot_check(f"{name} = {values!r:.80} should be a list of counts")
    return [_as_whole(value, name) for value in values]


def _truth(data: Any, name: str) -> bool:
    value = _get(data, name)
    if type(value) is not bool:
        _cannot_check(f"{name} = {value!r:.40} should be true or false")
    return value


def _text(data: Any, name: str) -> str:
    value = _get(data, name)
    if not isinstance(value, str):
        _cannot_check(f"{name} = {value!r:.40} should be a text")
    return value


def _list(data: Any, name: str) -> list[Any]:
    value = _get(data, name)
    if not isinstance(value, list):
        _cannot_check(f"{name} = {value!r:.40} should be a list")
    return value


@dataclass(frozen=True)
class HitCounts:
    """How often an event happened in how many draws."""

    hits: int
    trials: int

    @property
    def frequency(self) -> float:
        """The fraction of the draws in which the event happened."""
        return self.hits / self.trials

    def of_complement(self) -> HitCounts:
        """The counts of the draws in which the event did not happen."""
        return HitCounts(hits=self.trials - self.hits, trials=self.trials)

    def plus(self, other: HitCounts) -> HitCounts:
        """The counts of both sets of draws together."""
        return HitCounts(hits=self.hits + other.hits, trials=self.trials + other.trials)


_NOTHING_COUNTED = HitCounts(hits=0, trials=0)


def _counts(data: Any, name: str) -> HitCounts:
    values = _wholes(_get(data, name), name)
    if len(values) != 2:
        _cannot_check(f"{name} = {values!r:.40} should be hits and draws")
    counts = HitCounts(hits=values[0], trials=values[1])
    _require(counts.hits <= counts.trials, f"{name}: {counts.hits} hits in {counts.trials} draws")
    return counts


# --------------------------------------------------------------------------------------------------
# Binomial tails, bounded from above


class BinomialTail:
    """Upper bounds on P(X ≥ k) for X ~ Binomial(n, p).

    The lower tail of X is the upper tail of n − X ~ Binomial(n, 1 − p).
    """

    def __init__(self, n: int, p: float, widest_sum: float = math.inf) -> None:
        """Prepares the sums of all upper tails.

        Args:
            n: trials.
            p: probability of a hit.
            widest_sum: with a larger standard deviation, an inequality replaces the sums.
        """
        self.n = n
        self.p = p
        self._is_constant = not 0.0 < p < 1.0
        self._is_wide = not self._is_constant and n * p * (1.0 - p) > widest_sum**2
        if not self._is_constant and not self._is_wide:
            self._sum_tails()

    def _sum_tails(self) -> None:
        """Sums weights relative to that of the mode, smallest first.

        Neighbouring weights have a simple ratio, and all weights together are 1/P(X = mode): so no
        factorial is needed.
        """
        n = self.n
        odds = self.p / (1.0 - self.p)
        mode = min(n, int((n + 1) * self.p))
        above_mode = []
        weight = 1.0
        for k in range(mode, n):
            weight *= (n - k) / (k + 1) * odds
            if weight <= _NEGLIGIBLE_WEIGHT:
                break
            above_mode.append(weight)
        from_mode_down = [1.0]
        weight = 1.0
        for k in range(mode, 0, -1):
            weight *= k / ((n - k + 1) * odds)
            if weight <= _NEGLIGIBLE_WEIGHT:
                break
            from_mode_down.append(weight)
        tails = []
        total = 0.0
        for weight in reversed(above_mode):
            total += weight
            tails.append(total)
        for weight in from_mode_down:
            total += weight
            tails.append(total)
        tails.reverse()
        self._lowest = mode - len(from_mode_down) + 1
        self._tails = tails

    def at_least(self, k: int) -> float:
        """A bound on P(X ≥ k) from above."""
        if k <= 0:
            return 1.0
        if k > self.n:
            return 0.0
        if self._is_constant:
            # X is n or 0; a p that rounding made 0 may have been a little larger.
            return 1.0 if self.p >= 1.0 else _LEFT_OUT
        if self._is_wide:
            return self._by_inequality(k)
        place = max(k - self._lowest, 0)
        if place >= len(self._tails):
            return _LEFT_OUT
        probability = self._tails[place] / self._tails[0]
        return min(probability * (1.0 + _ROUNDING_OF_SUMS) + _LEFT_OUT, 1.0)

    def _by_inequality(self, k: int) -> float:
        """P(X < k) ≥ Φ(±√deviance) with the deviance of k − 1 hits (Zubkov and Serov 2012).

        The root is negative below the mean. Φ(√(2·h)) is 1 − erfc(√h)/2, with half the deviance h.
        """
        n = self.n
        p = self.p
        gap = k - 1 - n * p
        of_hits = (k - 1) * math.log1p(gap / (n * p)) if k > 1 else 0.0
        of_misses = (n - k + 1) * math.log1p(-gap / (n * (1.0 - p)))
        rounding = 1e-12 * (abs(of_hits) + abs(of_misses) + 1.0)
        half_deviance = of_hits + of_misses - math.copysign(rounding, gap)
        root = math.copysign(math.sqrt(max(half_deviance, 0.0)), gap)
        return min(0.5 * math.erfc(root) * (1.0 + _ROUNDING_OF_SUMS) + _LEFT_OUT, 1.0)


def lower_limit(counts: HitCounts, failure: float) -> float:
    """The lower Clopper–Pearson limit: above the event's probability with at most `failure`."""
    if counts.hits == 0:
        return 0.0

    def is_refuted(p: float) -> bool:
        return BinomialTail(counts.trials, p, _WIDEST_SUM).at_least(counts.hits) <= failure

    # A normal approximation brackets the limit; the bracket is checked before it is believed.
    frequency = counts.frequency
    z = -_NORMAL.inv_cdf(failure) + 2.0
    standard_error = math.sqrt(frequency * (1.0 - frequency) / counts.trials)
    guess = frequency - z * standard_error - z * z / counts.trials
    low = guess if guess > 0.0 and is_refuted(guess) else 0.0
    high = frequency
    for _ in range(40):
        middle = 0.5 * (low + high)
        if is_refuted(middle):
            low = middle
        else:
            high = middle
    return low


def upper_limit(counts: HitCounts, failure: float) -> float:
    """The upper Clopper–Pearson limit: one minus the lower limit of the complement."""
    return 1.0 - lower_limit(counts.of_complement(), failure)


def check_limits_of_counts(
    p_lower: float,
    q_upper: float,
    *,
    above: HitCounts,
    below: HitCounts,
    p_failure: float,
    q_failure: float,
) -> None:
    """Proves that stored Clopper–Pearson limits are exactly those of their counts."""
    _check_limit(p_lower, above, p_failure)
    _check_limit(1.0 - q_upper, below.of_complement(), q_failure)


def _check_limit(limit: float, counts: HitCounts, failure: float) -> None:
    if counts.hits == 0:
        is_right = limit == 0.0
    else:
        tail = BinomialTail(counts.trials, limit).at_least(counts.hits)
        is_right = _are_same(tail, failure, _SAME + _SAME_PROBABILITY / failure)
    _require(is_right, f"a limit of {limit} from {counts.hits} hits in {counts.trials} draws")


# --------------------------------------------------------------------------------------------------
# The exact test of P(E) ≤ slope·Q(E) + shift


@dataclass(frozen=True)
class SupportLine:
    """All pairs of probabilities with P(E) = slope·Q(E) + shift.

    Attributes:
        slope: e^ε, for a claim of (ε, δ).
        shift: δ, for a claim of (ε, δ).
        slope_is_fixed: whether the slope was fixed before the draws, and the shift was computed
            from the counts. If not, the shift was fixed and the slope computed. Counts are ordered
            by how far they are from the fixed one, so this decides which are more extreme.
    """

    slope: float
    shift: float
    slope_is_fixed: bool


@dataclass(frozen=True)
class ParameterRange:
    """An interval of probabilities."""

    low: float
    high: float


@dataclass(frozen=True)
class Piece:
    """An interval of q with the probability of a region at its ends."""

    low: float
    high: float
    at_low: float
    at_high: float


class RejectionRegion:
    """The counts (X, Y) with X ≥ threshold(Y): those at least as extreme as the observed ones."""

    def __init__(
        self, n: int, m: int, threshold: Callable[[float], float], q_range: ParameterRange
    ) -> None:
        """Gathers the values of Y into blocks, each with the threshold of its lowest value.

        That makes the region larger, never smaller.

        Args:
            n: trials of X.
            m: trials of Y.
            threshold: the least X of the region, as a function of Y.
            q_range: the probabilities of a hit of Y for which the region will be evaluated.
        """
        self.n = n
        self.m = m
        self.q_range = q_range
        least_expected = m * q_range.low
        most_expected = m * q_range.high
        # Beyond eleven standard deviations, and some counts more for means near 0, the counts have
        # less probability than any sum can notice. The blocks only have to begin and end somewhere:
        # lower counts are all taken into the region, higher ones have the last block's threshold.
        first = max(math.floor(least_expected - 11.0 * math.sqrt(least_expected)) - 8, 0)
        last = min(math.ceil(most_expected + 11.0 * math.sqrt(most_expected)) + 40, m)
        self.block_starts = range(first, last + 1, max((last - first) // _BLOCKS, 1))
        self.needed: list[int] = []
        for y in self.block_starts:
            # A threshold that rounding put just above a whole number must not exclude that number.
            exact = threshold(y) * (1.0 - 1e-12) - 1e-9
            self.needed.append(max(math.ceil(exact), 0))
        # Whatever the threshold does, it must not fall: from the right, each is at most the next.
        for place in range(len(self.needed) - 2, -1, -1):
            self.needed[place] = min(self.needed[place], self.needed[place + 1])

    def probability(self, p: float, q: float) -> float:
        """An upper bound on the region's probability for X ~ Binomial(n, p), Y ~ Binomial(m, q).

        By Abel's summation it is a sum of terms that are not negative: P(Y < start of block) times
        the probability by which P(X ≥ needed) falls at that block.
        """
        x = BinomialTail(self.n, p, _WIDEST_SUM)
        misses_of_y = BinomialTail(self.m, 1.0 - q, _WIDEST_SUM)
        total = 0.0
        tail_before = 1.0
        for block_start, needed in zip(self.block_starts, self.needed, strict=True):
            tail = x.at_least(needed)
            if tail < tail_before:
                y_is_below_block = misses_of_y.at_least(self.m - block_start + 1)
                total += y_is_below_block * (tail_before - tail)
                tail_before = tail
        return min((total + tail_before) * (1.0 + _ROUNDING_OF_SUMS), 1.0)

    def greatest_probability(self, slope: float, shift: float, level: float) -> float:
        """A bound on the probability f(q) for p = slope·q + shift, over all q of the range.

        It is as sharp as a comparison with the level needs. On an interval [a, b] of q two bounds
        hold:

        - the corner: p at the top with q at the bottom, because f grows with p and falls with q;
        - the chord: max(f(a), f(b)) + (b − a)²/8·I with the greatest Fisher information I about q,
          because f'' = E[(1_R − ½)(S² + S')], where 1_R is 1 in the region and 0 outside, and S is
          the derivative of the log-likelihood in q, with S' ≤ 0 and E S² = −E S' = I. So |f''| ≤ I.

        From the q on where p reaches 1 the probability only falls, so the range may end there.
        """

        def p_at(q: float) -> float:
            return min(slope * q + shift, 1.0)

        pieces = self._first_pieces(p_at, end=(1.0 - shift) / slope)
        worst = max(max(piece.at_low, piece.at_high) for piece in pieces)
        halvings = 0
        # Past the limit of this loop the proof has failed, whatever the other pieces hold.
        while pieces and worst <= level * (1.0 + 2.0 * _COARSENESS):
            piece = pieces.pop()
            # A supremum that touches the level would be halved for ever: after many halvings, most
            # of the coarseness is given to it. The rest is for the range of Q(E).
            allowed = level if halvings < _MOST_HALVINGS else level * (1.0 + 0.9 * _COARSENESS)
            bound = self._chord_bound(piece, slope, p_at)
            if bound > allowed:
                corner = self.probability(p_at(piece.high), piece.low)
                bound = min(bound, corner)
            if bound <= allowed:
                worst = max(worst, bound)
                continue
            middle = (0.5 * (math.sqrt(piece.low) + math.sqrt(piece.high))) ** 2
            at_middle = self.probability(p_at(middle), middle)
            worst = max(worst, at_middle)
            pieces.append(Piece(piece.low, middle, piece.at_low, at_middle))
            pieces.append(Piece(middle, piece.high, at_middle, piece.at_high))
            halvings += 1
            if halvings > 2 * _MOST_HALVINGS:
                raise TakesTooLong("the test of these counts takes too long")
        return worst

    def _first_pieces(self, p_at: Callable[[float], float], end: float) -> list[Piece]:
        """The range of q, cut evenly in √q.

        On that scale the variance of a binomial is nearly the same everywhere.
        """
        high = min(self.q_range.high, max(end, self.q_range.low))
        low_root = math.sqrt(self.q_range.low)
        high_root = math.sqrt(high)
        points = []
        for number in range(_FIRST_INTERVALS + 1):
            root = low_root + (high_root - low_root) * number / _FIRST_INTERVALS
            points.append(root**2)
        values = [self.probability(p_at(q), q) for q in points]
        pieces = []
        for number in range(_FIRST_INTERVALS):
            piece = Piece(
                low=points[number],
                high=points[number + 1],
                at_low=values[number],
                at_high=values[number + 1],
            )
            pieces.append(piece)
        return pieces

    def _chord_bound(self, piece: Piece, slope: float, p_at: Callable[[float], float]) -> float:
        p_variance = _least_variance(p_at(piece.low), p_at(piece.high))
        q_variance = _least_variance(piece.low, piece.high)
        information = slope * slope * self.n / p_variance + self.m / q_variance
        width = piece.high - piece.low
        return max(piece.at_low, piece.at_high) + width**2 / 8.0 * information


def _least_variance(low: float, high: float) -> float:
    """The least variance of a coin whose probability lies between two values; at least 1e-300."""
    return max(min(low * (1.0 - low), high * (1.0 - high)), 1e-300)


def nuisance_range(below: HitCounts, failure: float) -> ParameterRange:
    """The range of Q(E) that its fraction of the failure probability buys."""
    per_side = 0.5 * failure * _NUISANCE_FRACTION
    return ParameterRange(low=lower_limit(below, per_side), high=upper_limit(below, per_side))


def failure_to_refute_line(
    line: SupportLine,
    above: HitCounts,
    below: HitCounts,
    failure: float,
    order_failure: float | None = None,
) -> float:
    """The failure probability at which the counts refute P(E) ≤ slope·Q(E) + shift.

    It is the p-value of the exact unconditional test whose rejection region holds all counts at
    least as extreme as these, plus what the range of Q(E) costs. If these counts refute a line,
    they refute every line below it, with a smaller slope or a smaller shift. Which counts are more
    extreme depends only on what was fixed before the draws.

    Args:
        line: the hypothesis.
        above: counts of the event where it is likelier.
        below: counts where it is less likely.
        failure: the failure probability of the test. It buys the range of Q(E), and the answer is
            sharp where it is near.
        order_failure: the failure probability at which the counts were ordered, where that is not
            `failure`: a p-value keeps the order of its audit.
    """
    level = failure * (1.0 - _NUISANCE_FRACTION)
    order_level = level
    if order_failure is not None:
        order_level = order_failure * (1.0 - _NUISANCE_FRACTION)
    # Rounding must not make the hypothesis smaller than what is stated.
    slope = line.slope * (1.0 + 1e-12)
    shift = line.shift * (1.0 + 1e-12)
    threshold: Callable[[float], float] | None
    if line.slope_is_fixed:
        threshold = _threshold_by_excess(slope, above, below)
    else:
        threshold = _threshold_by_score(line, above, below, order_level)
    if threshold is None:
        return 1.0
    region = RejectionRegion(above.trials, below.trials, threshold, nuisance_range(below, failure))
    return region.greatest_probability(slope, shift, level) + failure * _NUISANCE_FRACTION


def _threshold_by_excess(
    slope: float, above: HitCounts, below: HitCounts
) -> Callable[[float], float]:
    """Counts ordered by the excess of frequencies, x/n − slope·y/m."""
    grow = slope * above.trials / below.trials

    def threshold(y: float) -> float:
        return above.hits + grow * (y - below.hits)

    return threshold


def _threshold_by_score(
    line: SupportLine, above: HitCounts, below: HitCounts, level: float
) -> Callable[[float], float] | None:
    """Orders counts by their approximate score bound on the slope; None if they have none.

    With s = x − n·shift, the score bound r = slope·n/m solves s − r·y = z·√(r·(s + y) + n·shift).
    Any z that depends on nothing but shift and level gives regions that are nested in r, hence a
    sound order. This one takes n·shift·(1 − shift) for the variance of X at q = 0.
    """
    z = -_NORMAL.inv_cdf(level) * math.sqrt(1.0 - line.shift)
    start = above.trials * line.shift
    s = above.hits - start
    if s <= 0.0:
        return None
    y_seen = below.hits
    constant = s * s - z * z * start
    middle = 2.0 * s * y_seen + z * z * (s + y_seen)
    root = math.sqrt(max(middle * middle - 4.0 * y_seen * y_seen * constant, 0.0))
    r = 2.0 * constant / (middle + root)
    if r <= 0.0:
        return None

    def threshold(y: float) -> float:
        inside = r * y * (1.0 + r) + z * z * r * r / 4.0 + start
        return start + r * y + z * (0.5 * z * r + math.sqrt(inside))

    return threshold


# --------------------------------------------------------------------------------------------------
# Claims: one curve for each value of a parameter

# Of every notion its own parameter, which a bound is about, and then its other parameters.
_PARAMETERS = {
    "pure": ["epsilon"],
    "approx": ["epsilon", "delta"],
    "approx-delta": ["delta", "epsilon"],
    "renyi": ["epsilon", "order"],
    "zcdp": ["rho"],
    "gaussian": ["mu", "at_delta"],
    "tradeoff": ["excess", "curve"],
}
# Parameters that a claim may lack.
_OPTIONAL_PARAMETERS = {"at_delta"}
# Parameters that are probabilities, and below 1.
_PROBABILITIES = {"delta", "at_delta"}
# Notions whose claims are two straight lines, P(E) ≤ e^ε·Q(E) + δ and its mirror image.
_NOTIONS_OF_LINES = ("pure", "approx", "approx-delta")
# e^ε is not computed beyond this ε: no event that can be drawn makes a difference there.
_LARGEST_EXPONENT = 700.0
# Orders at which a zero-concentrated claim is evaluated: its value is a supremum over all orders,
# so fewer orders can only make a bound look less proved than it is.
_ORDERS_OF_ZCDP = [1.0 + 10.0 ** (-3.0 + 7.0 * number / 159.0) for number in range(160)]


@dataclass(frozen=True)
class ClaimCurve:
    """A trade-off curve by its points: type-I errors, and the least type-II error at each."""

    type_one: list[float]
    type_two: list[float]

    def at(self, error: float) -> float:
        """The type-II error on the chord between the neighbouring points."""
        place = min(max(bisect_right(self.type_one, error), 1), len(self.type_one) - 1)
        left = self.type_one[place - 1]
        right = self.type_one[place]
        part = min(max((error - left) / (right - left), 0.0), 1.0)
        step = self.type_two[place] - self.type_two[place - 1]
        return self.type_two[place - 1] + part * step

    def most_at(self, error: float) -> float:
        """The largest type-II error that the function behind these points can have.

        A function is stored on its safe side, each point with the type-II error of the next one. So
        at any error it is at most what is stored two places before, and at most 1 − error.
        """
        place = max(bisect_right(self.type_one, error) - 2, 0)
        return min(self.type_two[place], 1.0 - error)


def _read_curve(data: Any) -> ClaimCurve:
    if not isinstance(data, list) or len(data) != 2:
        _cannot_check("a trade-off curve is not two lists of numbers")
    curve = ClaimCurve(_numbers(data[0], "type-I errors"), _numbers(data[1], "type-II errors"))
    is_ascending = sorted(set(curve.type_one)) == curve.type_one
    if not is_ascending or len(curve.type_one) < 2 or len(curve.type_one) != len(curve.type_two):
        _cannot_check("a trade-off curve is not a list of points")
    return curve


@dataclass(frozen=True)
class StatedClaim:
    """A notion of privacy, the value of its own parameter, and its other parameters."""

    notion: str
    value: float
    epsilon: float | None = None
    delta: float = 0.0
    order: float | None = None
    at_delta: float | None = None
    curve: ClaimCurve | None = None

    def line_at(self, value: float) -> SupportLine:
        """The line P(E) ≤ e^ε·Q(E) + δ of a claim of lines, at a value of its own parameter."""
        if self.notion == "approx-delta":
            assert self.epsilon is not None
            slope = math.exp(min(self.epsilon, _LARGEST_EXPONENT))
            return SupportLine(slope=slope, shift=value, slope_is_fixed=True)
        slope = math.exp(min(value, _LARGEST_EXPONENT))
        return SupportLine(slope=slope, shift=self.delta, slope_is_fixed=False)

    def least_value(self, p: float, q: float, near: ClaimCurve | None = None) -> float:
        """The least value of the own parameter that allows P(E) = p and Q(E) = q.

        Args:
            p: probability of the event where it is likelier.
            q: probability where it is less likely.
            near: for a trade-off function, more of its points than the claim holds.
        """
        if self.notion == "tradeoff":
            return self._excess_of_power(p, q, near)
        if self.notion == "approx-delta":
            slope = self.line_at(0.0).slope
            return max(p - slope * q, (1.0 - q) - slope * (1.0 - p))
        if p <= q:
            return 0.0
        if q <= 0.0 or p >= 1.0:
            return math.inf
        if self.notion == "gaussian":
            return _NORMAL.inv_cdf(p) - _NORMAL.inv_cdf(q)
        if self.notion == "renyi":
            assert self.order is not None
            return greater_divergence(p, q, self.order)
        if self.notion == "zcdp":
            return _least_rho(p, q)
        there = (p - self.delta) / q
        back = (1.0 - q - self.delta) / (1.0 - p)
        return math.log(max(there, back, 1.0))

    def _excess_of_power(self, p: float, q: float, near: ClaimCurve | None) -> float:
        assert self.curve is not None
        if near is None:
            return p - 1.0 + self.curve.at(q)
        return p - 1.0 + min(near.at(q), self.curve.most_at(q))


def _read_claim(data: Any) -> StatedClaim:
    notion = _text(data, "notion")
    parameters = _PARAMETERS.get(notion, [])
    given = set(data) - {"notion"}
    required = set(parameters) - _OPTIONAL_PARAMETERS
    if not parameters or not required <= given <= set(parameters):
        _cannot_check(f"a claim {data!r:.80} is not known")
    values = {name: _number(data, name) for name in given if name != "curve"}
    for name, value in values.items():
        if name == "order":
            is_possible = value > 1.0
        elif name in _PROBABILITIES:
            is_possible = 0.0 <= value < 1.0
        else:
            is_possible = value >= 0.0
        _require(is_possible, f"a claim with {name} = {value}")
    return StatedClaim(
        notion=notion,
        value=values[parameters[0]],
        epsilon=values.get("epsilon") if notion == "approx-delta" else None,
        delta=values.get("delta", 0.0) if notion == "approx" else 0.0,
        order=values.get("order"),
        at_delta=values.get("at_delta"),
        curve=_read_curve(data["curve"]) if notion == "tradeoff" else None,
    )


class CoinDivergence:
    """The Rényi divergences D(p‖q) = ln(p·e^(s·u) + (1 − p)·e^(s·v))/s of two coins, s = order − 1.

    Here u = ln(p/q) and v = ln((1 − p)/(1 − q)).
    """

    def __init__(self, p: float, q: float) -> None:
        self.p = p
        self.u = _log_ratio(p, q)
        self.v = _log_ratio_of_complements(p, q)
        self.log_p = math.log(p)
        self.log_not_p = math.log1p(-p)
        self.largest_log_ratio = max(abs(self.u), abs(self.v))

    def at(self, order: float) -> float:
        """The divergence of this order.

        For small s the logarithm is that of a number near 1, from which p + (1 − p) = 1 is taken
        away before rounding can hide the rest.
        """
        s = order - 1.0
        if s * self.largest_log_ratio <= 1.0:
            of_hit = self.p * math.expm1(s * self.u)
            of_miss = (1.0 - self.p) * math.expm1(s * self.v)
            return max(math.log1p(of_hit + of_miss) / s, 0.0)
        of_hit = self.u + self.log_p / s
        of_miss = self.v + self.log_not_p / s
        rest = math.log1p(math.exp(-s * abs(of_hit - of_miss))) / s
        return max(max(of_hit, of_miss) + rest, 0.0)


def greater_divergence(p: float, q: float, order: float) -> float:
    """The larger of the Rényi divergences D(p‖q) and D(q‖p) of two coins."""
    return max(CoinDivergence(p, q).at(order), CoinDivergence(q, p).at(order))


def _log_ratio(p: float, q: float) -> float:
    """ln(p/q), without cancellation where both are close."""
    if abs(p - q) <= 0.5 * q:
        return math.log1p((p - q) / q)
    return math.log(p) - math.log(q)


def _log_ratio_of_complements(p: float, q: float) -> float:
    """ln((1 − p)/(1 − q)), without cancellation where both are close."""
    if abs(p - q) <= 0.5 * (1.0 - q):
        return math.log1p((q - p) / (1.0 - q))
    return math.log1p(-p) - math.log1p(-q)


def _least_rho(p: float, q: float) -> float:
    """The least ρ with D_order ≤ ρ·order at all orders; order 1 is the relative entropy."""
    rho = max(relative_entropy(p, q), relative_entropy(q, p))
    there = CoinDivergence(p, q)
    back = CoinDivergence(q, p)
    for order in _ORDERS_OF_ZCDP:
        rho = max(rho, there.at(order) / order, back.at(order) / order)
    return rho


def relative_entropy(p: float, q: float) -> float:
    """The relative entropy KL(p‖q) of two coins."""
    return p * math.log(p / q) + (1.0 - p) * (math.log1p(-p) - math.log1p(-q))


# --------------------------------------------------------------------------------------------------
# Findings: what the file states and what it was made of

# Methods whose bounds are always exact, whoever runs them.
_ALWAYS_EXACT = ("events", "bits", "profile", "sequential", "renyi-bet")
# Methods whose bounds never are.
_NEVER_EXACT = ("local", "renyi-floored", "ldp-histogram")
_EXACT = "exact"
_IF_GAUSSIAN = "conditional: if the noise is Gaussian"


@dataclass(frozen=True)
class StoredFinding:
    """One stored finding.

    Attributes:
        method: which method certified it.
        bound: the lower bound on the claim's own parameter.
        guarantee: "exact", "asymptotic", "conditional: …" or "none: …".
        failure: the probability with which the bound may be wrong.
        claim: the notion with its parameters.
        details: what the proof needs besides the counts.
        witness: the pair, the event and its counts as they are stored; None if there are none.
        flipped: whether the event is likelier under the right input.
        above: counts of the event where it is likelier.
        below: counts where it is less likely.
    """

    method: str
    bound: float
    guarantee: str
    failure: float
    claim: StatedClaim
    details: Mapping[str, Any]
    witness: Mapping[str, Any] | None = None
    flipped: bool = False
    above: HitCounts = _NOTHING_COUNTED
    below: HitCounts = _NOTHING_COUNTED

    @property
    def left(self) -> HitCounts:
        """The counts of the left input."""
        return self.below if self.flipped else self.above

    @property
    def right(self) -> HitCounts:
        """The counts of the right input."""
        return self.above if self.flipped else self.below

    @property
    def is_above_claim(self) -> bool:
        """Whether the bound refutes the claim."""
        return self.bound > self.claim.value


def _read_finding(data: Any) -> StoredFinding:
    details = _get(data, "details")
    if not isinstance(details, Mapping):
        _cannot_check("the details of a finding are not named")
    bound = _number(data, "lower_bound")
    confidence = _number(data, "confidence")
    _require(bound >= 0.0, f"a bound of {bound}")
    _require(0.0 < confidence < 1.0, f"a confidence of {confidence}")
    witness = _get(data, "witness")
    flipped = False
    above = below = _NOTHING_COUNTED
    if witness is not None:
        side = _get(witness, "likelier_under")
        _require(side in ("left", "right"), f"an event likelier under {side!r:.40}")
        flipped = side == "right"
        left = _counts(witness, "left_counts")
        right = _counts(witness, "right_counts")
        above = right if flipped else left
        below = left if flipped else right
    return StoredFinding(
        method=_text(data, "method"),
        bound=bound,
        guarantee=_text(data, "guarantee"),
        failure=1.0 - confidence,
        claim=_read_claim(_get(data, "claim")),
        details=details,
        witness=witness,
        flipped=flipped,
        above=above,
        below=below,
    )


def check_guarantee(finding: StoredFinding) -> None:
    """Proves that the guarantee is one that exists, and one that this method can give."""
    guarantee = finding.guarantee
    is_known = guarantee in (_EXACT, "asymptotic") or guarantee.startswith(
        ("conditional: ", "none: ")
    )
    _require(is_known, f"a guarantee {guarantee!r:.80} does not exist")
    if guarantee == _EXACT:
        is_possible = finding.method not in _NEVER_EXACT
    else:
        is_possible = finding.method not in _ALWAYS_EXACT or guarantee == _IF_GAUSSIAN
    _require(is_possible, f"the guarantee of {finding.method:.40} is not {guarantee:.80}")


@dataclass(frozen=True)
class Proof:
    """What the counts of a finding prove.

    Attributes:
        failure: the failure probability at which they prove the bound.
        refutes_claim: whether they refute the claim at the finding's own failure probability, if
            that is clear; None where it is too close to call or was not looked at.
        refutes_claim_at: whether they refute the claim at another failure probability; None where
            that is not recomputed here.
    """

    failure: float
    refutes_claim: bool | None = None
    refutes_claim_at: Callable[[float], bool] | None = None


def prove(finding: StoredFinding, document: Any) -> Proof:
    """Recomputes the proof of an exact finding from its counts."""
    if finding.witness is None or "certificate" in finding.details:
        _cannot_check(f"a bound of {finding.method:.40} is not made of counts that the file holds")
    if finding.method == "sequential":
        return prove_by_bets(finding, document)
    _require(
        finding.above.trials > 0 and finding.below.trials > 0,
        "a bound without draws of both inputs",
    )
    if finding.method == "profile":
        return prove_by_band(finding)
    if finding.method in ("renyi-bet", "renyi-variational"):
        check_witness_limits(finding)
        return prove_by_score(finding)
    if finding.method in ("events", "bits", "hockey-stick", "poisson-histogram"):
        check_witness_limits(finding)
        return prove_by_event(finding)
    _cannot_check(f"the proofs of the method {finding.method:.40} are not known here")


def check_witness_limits(finding: StoredFinding) -> None:
    """Proves that `p_lower` and `q_upper` are the limits of the counts, each at half the price."""
    assert finding.witness is not None
    check_limits_of_counts(
        p_lower=_number(finding.witness, "p_lower"),
        q_upper=_number(finding.witness, "q_upper"),
        above=finding.above,
        below=finding.below,
        p_failure=0.5 * finding.failure,
        q_failure=0.5 * finding.failure,
    )


# --------------------------------------------------------------------------------------------------
# Events: one event, counted on fresh draws


def prove_by_event(finding: StoredFinding) -> Proof:
    """Proves that the counts of one event refute every parameter of the claim up to the bound."""
    if finding.claim.notion in _NOTIONS_OF_LINES:
        return _prove_by_claimed_line(finding)
    if finding.bound == 0.0:
        return Proof(failure=0.0)
    if not _is_seen_more_often_above(finding):
        return Proof(failure=1.0)
    return Proof(_failure_of_stored_line(finding))


def _is_seen_more_often_above(finding: StoredFinding) -> bool:
    above = finding.above
    below = finding.below
    return above.hits * below.trials > below.hits * above.trials


def _prove_by_claimed_line(finding: StoredFinding) -> Proof:
    """Proves that the counts refute the line of the bound and the notion's fixed parameter."""
    needed = 0.0
    if finding.bound > 0.0 and not _is_seen_more_often_above(finding):
        needed = 1.0
    elif finding.bound > 0.0:
        line = finding.claim.line_at(finding.bound)
        needed = failure_to_refute_line(line, finding.above, finding.below, finding.failure)

    claimed = finding.claim.line_at(finding.claim.value)
    check_order_of_counts(finding, claimed)

    def refutes_claim_at(failure: float) -> bool:
        # The order of the counts is the one of the audit, whatever the failure probability. A
        # p-value is by its nature at the edge of what is refuted; a little more makes the
        # comparison easy.
        slightly_more = failure * (1.0 + _COARSENESS)
        needed = failure_to_refute_line(
            claimed,
            finding.above,
            finding.below,
            failure=slightly_more,
            order_failure=finding.failure,
        )
        return needed <= slightly_more * (1.0 + _COARSENESS)

    return Proof(
        failure=needed,
        refutes_claim=_clearly_refutes_more(finding),
        refutes_claim_at=refutes_claim_at,
    )


def _clearly_refutes_more(finding: StoredFinding) -> bool | None:
    """Whether a bound that does not refute the claim hides that the counts clearly do.

    An audit looks for the largest bound with some patience only. So what counts as clear is a value
    well above the claim: a quarter of the way to the value that the frequencies themselves suggest,
    and at least 0.02.
    """
    claimed = finding.claim.value
    if finding.is_above_claim:
        return True
    suggested = _suggested_value(finding)
    clear = claimed + max(0.25 * (suggested - claimed), 0.02)
    if clear >= suggested:
        return None
    line = finding.claim.line_at(clear)
    needed = failure_to_refute_line(line, finding.above, finding.below, finding.failure)
    return True if needed <= finding.failure * (1.0 - 4.0 * _COARSENESS) else None


def _suggested_value(finding: StoredFinding) -> float:
    """The value at which the line runs through the observed frequencies; of no hits, half a hit."""
    p = finding.above.frequency
    q = max(finding.below.hits, 0.5) / finding.below.trials
    if finding.claim.notion == "approx-delta":
        return p - finding.claim.line_at(0.0).slope * q
    if p <= finding.claim.delta:
        return 0.0
    return math.log((p - finding.claim.delta) / q)


# Intervals of q on which a curve is compared with a line.
_PIECES_OF_LINE = 1024


def _failure_of_stored_line(finding: StoredFinding) -> float:
    """The failure probability of a bound on a curve, by the line that was stored with it.

    A refuted line refutes all curves below it. On each interval of q the corner with the least p
    and the greatest q is checked: values grow with p and fall with q, so no point of the line
    proves less.
    """
    line = _read_line(finding)
    check_order_of_counts(finding, line)
    above = finding.above
    below = finding.below
    is_of_complement = _truth(finding.details, "complement")
    if is_of_complement:  # the line is about 1 − Q(E) and 1 − P(E)
        above = finding.below.of_complement()
        below = finding.above.of_complement()
    near = finding.details.get("curve_near")
    near_curve = None if near is None else _read_curve(near)
    q_range = nuisance_range(below, finding.failure)
    low_root = math.sqrt(q_range.low)
    high_root = math.sqrt(q_range.high)
    q_left = q_range.low
    for number in range(1, _PIECES_OF_LINE + 1):
        root = low_root + (high_root - low_root) * number / _PIECES_OF_LINE
        q_right = root**2
        p_left = min(line.slope * q_left + line.shift, 1.0)
        if is_of_complement:
            value = finding.claim.least_value(1.0 - q_right, 1.0 - p_left, near_curve)
        else:
            value = finding.claim.least_value(p_left, q_right, near_curve)
        _require(
            value >= finding.bound * (1.0 - _SAME), "the stored line proves less than the bound"
        )
        q_left = q_right
    return failure_to_refute_line(line, above, below, finding.failure)


def _read_line(finding: StoredFinding) -> SupportLine:
    slope, shift = _two_numbers(_get(finding.details, "line"), "line")
    fixed = _get(finding.details, "fixed")
    if fixed not in ("slope", "shift"):
        _cannot_check(f"a line with a fixed {fixed!r:.40} is not known")
    _require(slope > 0.0 and shift >= 0.0, f"a line of slope {slope} from {shift}")
    return SupportLine(slope=slope, shift=shift, slope_is_fixed=fixed == "slope")


def check_order_of_counts(finding: StoredFinding, line: SupportLine) -> None:
    """Proves that a finding orders counts as this checker does.

    There must be no choice: whoever could take the better of two orders in hindsight would err
    more often than stated.
    """
    if line.slope_is_fixed or line.shift == 0.0:
        return
    variance = finding.details.get("variance")
    if variance != "binomial":
        _cannot_check(f"an order of counts by the variance {variance!r:.40} is not known")


def _failure_of_two_limits(
    finding: StoredFinding, above: HitCounts, below: HitCounts, share: float
) -> float:
    """The least failure probability at which two Clopper–Pearson limits prove the bound.

    Args:
        share: the fraction of the failure probability that bounds P(E), fixed before the draws.
    """
    _require(0.0 < share < 1.0, f"a share of {share}")
    claim = finding.claim
    bound = finding.bound

    def failure_above(p: float) -> float:
        return BinomialTail(above.trials, p).at_least(above.hits) / share

    def failure_below(q: float) -> float:
        misses = below.of_complement()
        return BinomialTail(below.trials, 1.0 - q).at_least(misses.hits) / (1.0 - share)

    if "curve_at" in finding.details:  # a point of the claimed function between those of the file
        q, type_two = _two_numbers(_get(finding.details, "curve_at"), "curve_at")
        check_point_of_curve(claim, q, type_two)
        p = bound + 1.0 - type_two
        return max(failure_above(p), failure_below(q))

    # Bisection over q for the place where both failures are equal; at each q the least p that the
    # bound does not allow.
    low = below.frequency
    high = min(low + 12.0 * math.sqrt(low * (1.0 - low) / below.trials) + 100.0 / below.trials, 1.0)
    best = 1.0
    for _ in range(28):
        q = 0.5 * (low + high)
        allowed = q
        refused = 1.0
        for _ in range(55):
            p = 0.5 * (allowed + refused)
            if claim.least_value(p, q) >= bound:
                refused = p
            else:
                allowed = p
        of_p = failure_above(refused)
        of_q = failure_below(q)
        best = min(best, max(of_p, of_q))
        if of_p < of_q:
            low = q
        else:
            high = q
    return best


def check_point_of_curve(claim: StatedClaim, type_one: float, type_two: float) -> None:
    """Proves that a further point of a claimed trade-off function fits the points in the file."""
    assert claim.curve is not None
    least = claim.curve.at(type_one)
    most = claim.curve.most_at(type_one)
    _require(
        least - 1e-9 <= type_two <= most + 1e-9,
        f"the claimed curve is not {type_two} at {type_one}",
    )


# --------------------------------------------------------------------------------------------------
# Bands: many nested events, bounded together


@dataclass(frozen=True)
class BandEvent:
    """One of the nested events of a band, with its limits."""

    above: HitCounts
    below: HitCounts
    share: float
    p_lower: float
    q_upper: float


def prove_by_band(finding: StoredFinding) -> Proof:
    """Proves that a band's limits hold, its events are nested and its witness gives the bound."""
    _require(
        _truth(finding.details, "flipped") == finding.flipped,
        "band and witness have different sides",
    )
    events = _read_band(finding)
    check_events_are_nested(events)
    check_band_limits(events, finding.failure)
    witness = _event_of_witness(finding, events)
    needed = 0.0
    if finding.bound > 0.0:
        # Every event of the band may spend one part of the failure probability.
        of_event = _failure_of_two_limits(finding, witness.above, witness.below, witness.share)
        needed = len(events) * of_event
    check_band_is_not_understated(finding, events)
    if finding.claim.notion in ("zcdp", "tradeoff"):  # too slow, and too few points of a function
        return Proof(failure=needed)

    def refutes_claim_at(failure: float) -> bool:
        # Most promising events first: usually the first one answers.
        by_promise = sorted(events, key=_standardized_difference, reverse=True)
        return any(
            _event_refutes(event, finding.claim, failure / len(events)) for event in by_promise
        )

    return Proof(failure=needed, refutes_claim_at=refutes_claim_at)


def _standardized_difference(event: BandEvent) -> float:
    """The difference of the frequencies in units of its approximate standard error."""
    p = event.above.frequency
    q = event.below.frequency
    p_variance = (p * (1.0 - p) + 1.0 / event.above.trials) / event.above.trials
    q_variance = (q * (1.0 - q) + 1.0 / event.below.trials) / event.below.trials
    return (p - q) / math.sqrt(p_variance + q_variance)


def _event_refutes(event: BandEvent, claim: StatedClaim, failure: float) -> bool:
    """Whether one event's limits, at this failure probability, exceed what the claim allows."""
    spent = failure * (1.0 + _COARSENESS)
    p = lower_limit(event.above, spent * event.share)
    q = upper_limit(event.below, spent * (1.0 - event.share))
    return p > q and claim.least_value(p, q) > claim.value * (1.0 - 1e-9)


def _read_band(finding: StoredFinding) -> list[BandEvent]:
    left_hits = _wholes(_get(finding.details, "left_hits"), "left_hits")
    right_hits = _wholes(_get(finding.details, "right_hits"), "right_hits")
    shares = _numbers(_get(finding.details, "left_shares"), "left_shares")
    p_lower = _numbers(_get(finding.details, "p_lower"), "p_lower")
    q_upper = _numbers(_get(finding.details, "q_upper"), "q_upper")
    sizes = {len(left_hits), len(right_hits), len(shares), len(p_lower), len(q_upper)}
    _require(len(sizes) == 1 and len(left_hits) > 0, "the columns of the band differ in length")
    events = []
    for number in range(len(left_hits)):
        left = HitCounts(left_hits[number], finding.left.trials)
        right = HitCounts(right_hits[number], finding.right.trials)
        event = BandEvent(
            above=right if finding.flipped else left,
            below=left if finding.flipped else right,
            share=shares[number],
            p_lower=p_lower[number],
            q_upper=q_upper[number],
        )
        events.append(event)
    return events


def check_events_are_nested(events: Sequence[BandEvent]) -> None:
    """Proves that an event has no fewer hits than the events inside it, and no more than draws."""
    above = 0
    below = 0
    for event in events:
        _require(above <= event.above.hits <= event.above.trials, "the events are not nested")
        _require(below <= event.below.hits <= event.below.trials, "the events are not nested")
        above = event.above.hits
        below = event.below.hits


def check_band_limits(events: Sequence[BandEvent], failure: float) -> None:
    """Proves that all limits are those of their counts, at equal error shares."""
    per_event = failure / len(events)
    for event in events:
        _require(0.0 < event.share < 1.0, f"a share of {event.share}")
        check_limits_of_counts(
            p_lower=event.p_lower,
            q_upper=event.q_upper,
            above=event.above,
            below=event.below,
            p_failure=per_event * event.share,
            q_failure=per_event * (1.0 - event.share),
        )


def _event_of_witness(finding: StoredFinding, events: Sequence[BandEvent]) -> BandEvent:
    assert finding.witness is not None
    p_lower = _number(finding.witness, "p_lower")
    q_upper = _number(finding.witness, "q_upper")
    for event in events:
        has_same_counts = event.above == finding.above and event.below == finding.below
        if has_same_counts and event.p_lower == p_lower and event.q_upper == q_upper:
            return event
    raise DoesNotHold("the witness is none of the band's events")


def check_band_is_not_understated(finding: StoredFinding, events: Sequence[BandEvent]) -> None:
    """Proves that no event of the band gives a larger bound than the one that is stated."""
    if finding.claim.notion == "tradeoff":
        return  # of a function the file holds too few points to say
    best = 0.0
    for event in events:
        if event.p_lower > event.q_upper:
            best = max(best, finding.claim.least_value(event.p_lower, event.q_upper))
    _require(
        finding.bound >= best * (1.0 - _SAME) - 1e-12,
        f"the band proves {best:.6g}, and the stated bound is only {finding.bound:.6g}",
    )


# --------------------------------------------------------------------------------------------------
# Batches of bets: audits that may stop at any time
#
# A wealth that starts at 1, is staked anew on every batch of draws, and has a mean of at most 1
# whenever the claim is true, ever reaches 1/f with a probability of at most f (Ville's inequality).


@dataclass(frozen=True)
class Bet:
    """A part of the wealth, staked on one event in one batch of draws.

    Attributes:
        batch: the number of the batch, from 1.
        stake: the number of the event within its batch, from 0.
        share: the part of the wealth that is staked on it.
        flipped: whether the event is likelier under the right input.
        p: the guessed probability of the event where it is likelier.
        q: the guessed probability where it is less likely.
        left: its counts of the left input.
        right: its counts of the right input.
    """

    batch: int
    stake: int
    share: float
    flipped: bool
    p: float
    q: float
    left: HitCounts
    right: HitCounts

    @property
    def above(self) -> HitCounts:
        """The counts where the event should be likelier."""
        return self.right if self.flipped else self.left

    @property
    def below(self) -> HitCounts:
        """The counts where it should be less likely."""
        return self.left if self.flipped else self.right


Batch = list[Bet]


def _read_bet(data: Any) -> Bet:
    return Bet(
        batch=_whole(data, "batch"),
        stake=_whole(data, "stake"),
        share=_number(data, "share"),
        flipped=_truth(data, "flipped"),
        p=min(max(_number(data, "p1"), _MARGIN_OF_GUESSES), 1.0 - _MARGIN_OF_GUESSES),
        q=min(max(_number(data, "q1"), _MARGIN_OF_GUESSES), 1.0 - _MARGIN_OF_GUESSES),
        left=_counts(data, "left"),
        right=_counts(data, "right"),
    )


def prove_by_bets(finding: StoredFinding, document: Any) -> Proof:
    """Proves that the bets were fair, and that they won against every value up to the bound."""
    if "batches" not in finding.details:
        _cannot_check("there were too many bets to be stored")
    bets = [_read_bet(data) for data in _list(finding.details, "batches")]
    batches = check_bets_are_fair(bets)
    check_every_draw_counts_once(finding, batches, document)
    n_of_witness = check_witness_was_bet_on(finding, batches)
    check_choices_of_events(finding, n_batches=len(batches), n_of_witness=n_of_witness)
    check_anytime_limits(finding)
    check_why_it_stopped(finding, document)
    ladder = _ladder_of(finding.claim)
    if len(ladder) * len(bets) > _MOST_BETS:
        _cannot_check("there are too many bets")
    check_curve_over_time(finding, batches, ladder)
    return _prove_on_ladder(finding, batches, ladder)


def check_bets_are_fair(bets: Sequence[Bet]) -> list[Batch]:
    """Proves that each batch was drawn once, and that at most the whole wealth was staked on it.

    Batches are numbered one after the other. The bets of a batch are about the same draws, so they
    have the same numbers of trials, and their shares of the wealth sum to 1.
    """
    batches: list[Batch] = []
    for bet in bets:
        if batches and bet.batch == batches[-1][0].batch:
            batches[-1].append(bet)
        else:
            batches.append([bet])
    for number, batch in enumerate(batches, start=1):
        first = batch[0]
        _require(first.batch == number, f"batch {first.batch} stands where batch {number} should")
        _require(first.left.trials == first.right.trials, f"batch {number} has unequal sides")
        _require(first.left.trials > 0, f"batch {number} has no draws")
        for place, bet in enumerate(batch):
            _require(bet.stake == place, f"the bets of batch {number} are out of order")
            _require(bet.share > 0.0, f"a bet of {bet.share} of the wealth")
            has_same_draws = (
                bet.left.trials == first.left.trials and bet.right.trials == first.right.trials
            )
            _require(has_same_draws, f"the bets of batch {number} are about different draws")
        staked = math.fsum(bet.share for bet in batch)
        _require(
            abs(staked - 1.0) <= _SAME_SHARES,
            f"{staked} times the wealth is staked on batch {number}",
        )
    return batches


def check_every_draw_counts_once(
    finding: StoredFinding, batches: Sequence[Batch], document: Any
) -> None:
    """Proves that pilot and batches together are all draws: none was bet on several times."""
    pilot = _whole(finding.details, "pilot")
    counted = pilot + sum(batch[0].left.trials for batch in batches)
    _require(
        counted == _whole(finding.details, "pairs_of_draws"),
        f"the pilot and all batches have {counted} draws, not {finding.details['pairs_of_draws']}",
    )
    used = _samples_used(document)
    lost = _lost_draws(document)
    for side, n_used, n_lost in (("left", used.left, lost.left), ("right", used.right, lost.right)):
        _require(
            n_used in (counted, counted + n_lost),
            f"the pilot and all batches have {counted} draws, "
            f"but {n_used} were drawn on the {side}",
        )


def check_witness_was_bet_on(finding: StoredFinding, batches: Sequence[Batch]) -> int:
    """Proves that the witness has the counts of the first event in the last batches, on its side.

    Returns:
        In how many batches the event was bet on; 0 if events were chosen anew and time ran out
        before their first batch was complete.
    """
    left = _NOTHING_COUNTED
    right = _NOTHING_COUNTED
    n_batches = 0
    for batch in reversed(batches):
        if left.trials >= finding.left.trials:
            break
        bet = batch[0]
        _require(
            bet.flipped == finding.flipped, "the witness and the bets on it have different sides"
        )
        left = left.plus(bet.left)
        right = right.plus(bet.right)
        n_batches += 1
    _require(
        left == finding.left and right == finding.right,
        "the witness was not counted in the last batches",
    )
    return n_batches


def check_choices_of_events(finding: StoredFinding, n_batches: int, n_of_witness: int) -> None:
    """Proves that the number of times that events were chosen fits the batches.

    It is the price of the witness's limits. Every choice but the last was bet on in some batch.
    """
    choices = _whole(finding.details, "choices_of_events")
    earlier = n_batches - n_of_witness
    least = 1 if earlier == 0 else 2
    most = 1 + earlier
    _require(least <= choices <= most, f"{choices} choices of events in {n_batches} batches")


def check_anytime_limits(finding: StoredFinding) -> None:
    """Proves that the limits of a sequential witness are those of its counts.

    The events of the k-th choice may spend 6/(π·k)² of the failure probability, which sums to 1
    over all k, half of it on each limit.
    """
    assert finding.witness is not None
    choices = _whole(finding.details, "choices_of_events")
    failure = finding.failure * 3.0 / (math.pi * choices) ** 2
    p_lower = _number(finding.witness, "p_lower")
    q_upper = _number(finding.witness, "q_upper")
    _check_anytime_limit(p_lower, finding.above, failure)
    _check_anytime_limit(1.0 - q_upper, finding.below.of_complement(), failure)


def _check_anytime_limit(limit: float, counts: HitCounts, failure: float) -> None:
    """The limit is where the Jeffreys mixture is 1/failure times as likely as the limit itself."""
    if counts.hits == 0:
        is_right = limit == 0.0
    elif not 0.0 < limit < 1.0:
        is_right = False
    else:
        misses = counts.trials - counts.hits
        of_hits = math.lgamma(counts.hits + 0.5)
        of_misses = math.lgamma(misses + 0.5)
        of_trials = math.lgamma(counts.trials + 1.0)
        log_mixture = of_hits + of_misses - of_trials - math.log(math.pi)
        log_likelihood = counts.hits * math.log(limit) + misses * math.log1p(-limit)
        difference = log_mixture + math.log(failure) - log_likelihood
        rounding = 1e-13 * (abs(of_hits) + abs(of_misses) + abs(of_trials) + abs(log_likelihood))
        is_right = abs(difference) <= _SAME + rounding
    _require(is_right, f"a limit of {limit} from {counts.hits} hits in {counts.trials} draws")


def check_why_it_stopped(finding: StoredFinding, document: Any) -> None:
    """Proves that the audit stopped at a refutation exactly if its bound refutes the claim."""
    stopped = _get(finding.details, "stopped")
    _require(stopped in ("refuted", "samples", "seconds"), f"an audit stopped by {stopped!r:.40}")
    is_judged = _get(document, "verdict") is not None
    is_refuted = is_judged and finding.is_above_claim
    _require(
        (stopped == "refuted") == is_refuted,
        f"an audit stopped by {stopped!r} with a bound of {finding.bound} "
        f"on a claim of {finding.claim.value}",
    )


@dataclass(frozen=True)
class BoundingLine:
    """A line p = slope·q + shift that the curve of a claim never exceeds."""

    slope: float
    shift: float


@dataclass(frozen=True)
class Rung:
    """A value that is bet against, with lines above all that a claim of this value allows."""

    value: float
    lines: list[BoundingLine]


def _ladder_of(claim: StatedClaim) -> list[Rung]:
    """The values that a sequential audit bets against: a fixed grid, one just above the claim."""
    if claim.notion not in (*_NOTIONS_OF_LINES, "gaussian"):
        _cannot_check(f"bets against {claim.notion} claims are not recomputed here")
    if claim.notion == "approx-delta":
        grid = [0.0]
        grid += [1e-5 * 95000.0 ** (number / 59.0) for number in range(60)]
    elif claim.notion == "gaussian":
        grid = [number / 20.0 for number in range(41)]
        grid += [2.1 + number / 10.0 for number in range(40)]
    else:
        grid = [number / 40.0 for number in range(81)]
        grid += [2.1 + number / 10.0 for number in range(40)]
        grid += [6.25 + number / 4.0 for number in range(32)]
    values = sorted([*grid, _just_above(claim)])
    return [Rung(value, _bounding_lines(claim, value)) for value in values]


def _just_above(claim: StatedClaim) -> float:
    """The value that an audit bets against in order to refute the claim itself."""
    return claim.value * (1.0 + 1e-9) + 1e-12


def _bounding_lines(claim: StatedClaim, value: float) -> list[BoundingLine]:
    if claim.notion != "gaussian":
        line = claim.line_at(value)
        mirrored = BoundingLine(slope=1.0 / line.slope, shift=1.0 - (1.0 - line.shift) / line.slope)
        return [BoundingLine(line.slope, line.shift), mirrored]
    # Tangents of a Gaussian curve; a concave curve lies below each of them.
    lines = []
    for number in range(29):
        z = 0.3 * number - 4.2
        slope = math.exp(-value * z - 0.5 * value * value)
        shift = _NORMAL.cdf(z + value) - slope * _NORMAL.cdf(z) + 1e-11
        lines.append(BoundingLine(slope, shift))
    return lines


class BestWealth:
    """The largest log-wealth that was ever reached against each value, computed on request."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches
        self._known: dict[float, float] = {}

    def against(self, rung: Rung) -> float:
        """The largest log-wealth against this value; at least 0, with which every bet begins."""
        if rung.value not in self._known:
            over_time = _log_wealth_over_time(rung, self.batches)
            self._known[rung.value] = max([0.0, *over_time])
        return self._known[rung.value]


def _prove_on_ladder(
    finding: StoredFinding, batches: Sequence[Batch], ladder: Sequence[Rung]
) -> Proof:
    """The bound must be the last value up to which the bets against every value won."""
    best = BestWealth(batches)
    up_to_bound = [rung for rung in ladder if rung.value <= finding.bound * (1.0 + 1e-12)]
    last = up_to_bound[-1].value
    _require(
        finding.bound == 0.0 or _are_same(last, finding.bound, 1e-12),
        f"no sequential audit bets against {finding.bound}",
    )
    worst = 0.0
    if finding.bound > 0.0:
        worst = max(math.exp(-best.against(rung)) for rung in up_to_bound)
    check_next_bets_lost(finding, best, ladder, n_won=len(up_to_bound))

    def refutes_claim_at(failure: float) -> bool:
        up_to_claim = [rung for rung in ladder if rung.value <= _just_above(finding.claim)]
        log_needed = -math.log(failure * (1.0 + _COARSENESS))
        return all(best.against(rung) >= log_needed for rung in up_to_claim)

    return Proof(failure=worst, refutes_claim_at=refutes_claim_at)


def check_next_bets_lost(
    finding: StoredFinding, best: BestWealth, ladder: Sequence[Rung], n_won: int
) -> None:
    """Proves that the bound is not understated: the bets did not win against the next value."""
    log_won = -math.log(finding.failure) + _SAME
    if n_won == len(ladder):
        return
    # Of a bound of 0 it is not known whether the bets against 0 itself won.
    if finding.bound == 0.0 and best.against(ladder[0]) <= log_won:
        return
    next_rung = ladder[n_won]
    _require(
        best.against(next_rung) <= log_won,
        f"the bets won against {next_rung.value:.6g}, "
        f"and the stated bound is only {finding.bound:.6g}",
    )


def _log_wealth_over_time(rung: Rung, batches: Sequence[Batch]) -> list[float]:
    """The logarithm of the wealth after each batch."""
    log_wealth = 0.0
    over_time = []
    for batch in batches:
        factor = math.fsum(bet.share * math.exp(_log_payoff(rung, bet)) for bet in batch)
        log_wealth += math.log(factor) - _SAME_SHARES
        over_time.append(log_wealth)
    return over_time


def _log_payoff(rung: Rung, bet: Bet) -> float:
    """What a bet pays: the likelihood ratio of the guess to the nearest point (p0, q0) of a line.

    With a = (p − p0)/(p0(1 − p0)) and b = (q − q0)/(q0(1 − q0)) of the guess, the mean of that
    ratio is at most e^(n·a·(P − p0) + m·b·(Q − q0)). Below the line that is at most e^((n·a·slope +
    m·b)·(Q − q0) + n·a·(slope·q0 + shift − p0)). At the nearest point the first bracket is 0;
    whatever rounding leaves of both is subtracted.
    """
    n = bet.above.trials
    m = bet.below.trials
    point = _nearest_point(rung, bet)
    if point.growth <= 0.0:
        return 0.0
    p0 = point.p
    q0 = point.q
    a = (bet.p - p0) / (p0 * (1.0 - p0))
    b = (bet.q - q0) / (q0 * (1.0 - q0))
    terms = [
        bet.above.hits * math.log(bet.p / p0),
        (n - bet.above.hits) * (math.log1p(-bet.p) - math.log1p(-p0)),
        bet.below.hits * math.log(bet.q / q0),
        (m - bet.below.hits) * (math.log1p(-bet.q) - math.log1p(-q0)),
    ]
    unfair = abs(n * a * point.line.slope + m * b)
    unfair += n * a * max(point.line.slope * q0 + point.line.shift - p0, 0.0)
    rounding = _ROUNDING_OF_TERMS * math.fsum(abs(term) for term in terms)
    return min(math.fsum(terms) - unfair - rounding, _LARGEST_LOG_WEALTH)


@dataclass(frozen=True)
class NearestPoint:
    """The point of a line with the least n·KL(guess‖p) + m·KL(guess‖q), and that divergence."""

    line: BoundingLine
    p: float
    q: float
    growth: float


def _nearest_point(rung: Rung, bet: Bet) -> NearestPoint:
    """The nearest points of all lines, and of these the farthest from the guess.

    Many lines are compared roughly first, and only those near the best one exactly.
    """
    lines = rung.lines
    if len(lines) > 2:
        rough = [_project(line, bet, halvings=12).growth for line in lines]
        enough = 0.9 * max(rough)
        lines = [line for line, growth in zip(lines, rough, strict=True) if growth >= enough]
    points = [_project(line, bet, halvings=44) for line in lines]
    return max(points, key=lambda point: point.growth)


def _project(line: BoundingLine, bet: Bet, halvings: int) -> NearestPoint:
    """Bisects for the zero of the derivative along the line; a guess below the line grows by 0."""
    n = bet.above.trials
    m = bet.below.trials
    slope = line.slope
    shift = line.shift
    low = max(bet.q, (_MARGIN_OF_GUESSES - shift) / slope)
    high = min(
        (1.0 - _MARGIN_OF_GUESSES - shift) / slope,
        (bet.p - shift) / slope,
        1.0 - _MARGIN_OF_GUESSES,
    )
    if bet.p <= slope * bet.q + shift or high <= low:
        return NearestPoint(line, p=bet.p, q=bet.q, growth=0.0)
    p = q = 0.0
    for _ in range(halvings):
        q = 0.5 * (low + high)
        p = min(max(slope * q + shift, _LEAST_P_ON_LINE), 1.0 - _LEAST_P_ON_LINE)
        derivative = n * slope * (p - bet.p) / (p * (1.0 - p)) + m * (q - bet.q) / (q * (1.0 - q))
        if derivative > 0.0:
            high = q
        else:
            low = q
    growth = 0.0
    if p < bet.p:
        growth = n * relative_entropy(bet.p, p) + m * relative_entropy(bet.q, q)
    return NearestPoint(line, p=p, q=q, growth=growth)


def check_curve_over_time(
    finding: StoredFinding, batches: Sequence[Batch], ladder: Sequence[Rung]
) -> None:
    """Proves that the stored wealth against the claim and the bounds over time match the bets."""
    drawn = _whole(finding.details, "pilot")
    claimed = _just_above(finding.claim)
    rung = next(rung for rung in ladder if rung.value == claimed)
    log_wealth_at = {}
    for batch, log_wealth in zip(batches, _log_wealth_over_time(rung, batches), strict=True):
        drawn += batch[0].left.trials
        log_wealth_at[drawn] = log_wealth
    for point in _list(finding.details, "wealth"):
        n, wealth = _two_numbers(point, "wealth")
        _require(n in log_wealth_at, f"no batch ended after {n} draws")
        recomputed = min(log_wealth_at[int(n)], _LARGEST_LOG_WEALTH)
        stored = math.log(wealth) if wealth > 0.0 else -math.inf
        is_right = abs(stored - recomputed) <= 1e-4 * (1.0 + abs(recomputed))
        is_right = is_right or (recomputed < -_LARGEST_LOG_WEALTH and wealth < _NO_WEALTH)
        _require(is_right, f"a wealth of {wealth} after {n} draws")
    previous = 0.0
    for point in _list(finding.details, "bound_over_time"):
        n, bound = _two_numbers(point, "bound_over_time")
        _require(n in log_wealth_at, f"no batch ended after {n} draws")
        _require(bound >= previous, "a bound that holds at any time fell")
        previous = bound
    _require(previous == finding.bound, "the last bound over time is not the bound")


# --------------------------------------------------------------------------------------------------
# Rényi bets: one bet on a score that is constant on cells


@dataclass(frozen=True)
class ScoreBet:
    """A bet against a Rényi divergence of at most some value.

    Attributes:
        order: of the divergence.
        stake: the part of the wealth that is staked.
        scores: of the cells.
        above: draws in each cell where the score should be larger.
        below: draws in each cell under the other input.
    """

    order: float
    stake: float
    scores: list[float]
    above: list[int]
    below: list[int]

    def failure(self, divergence: float) -> float:
        """The failure probability at which the bet refutes a divergence: one over its wealth.

        The wealth is ∏ (1 + λg(e^((α−1)h(X)) − 1))·∏ (1 − λ(n/m)(e^(r+αh(Y)) − 1)) for the order α,
        the stake λ, the score h, the divergence r and g = α/(α − 1). Its mean is at most 1 if the
        divergence is at most r: by Hölder's inequality, the tangent of a convex power, and
        1 + x ≤ e^x.
        """
        s = self.order - 1.0
        if not 0.0 < self.stake < s / self.order:
            return 1.0
        ratio = sum(self.above) / sum(self.below)
        terms = []
        for score, count in zip(self.scores, self.above, strict=True):
            gain = 1.0 + self.stake * self.order / s * math.expm1(s * score)
            if count and gain <= 0.0:
                return 1.0
            if count:
                terms.append(count * math.log(gain))
        for score, count in zip(self.scores, self.below, strict=True):
            loss = 1.0 - self.stake * ratio * math.expm1(divergence + self.order * score)
            # No output may lose more than everything, whether it was drawn or not.
            if loss < -_ROUNDING_OF_TERMS or (count and loss <= 0.0):
                return 1.0
            if count:
                terms.append(count * math.log(loss))
        rounding = _ROUNDING_OF_TERMS * (1.0 + math.fsum(abs(term) for term in terms))
        return math.exp(-max(math.fsum(terms) - rounding, 0.0))


def prove_by_score(finding: StoredFinding) -> Proof:
    """Proves that the bet on a score won against the divergence that the bound stands for."""
    bet = _read_score_bet(finding)
    check_cells_fit_witness(finding, bet)
    divergence = _number(finding.details, "divergence_lower")
    check_divergence_gives_bound(finding, bet.order, divergence)
    _require(divergence >= 0.0, f"a divergence of {divergence}")
    slightly_more = divergence * 1.001 + 1e-6
    _require(
        bet.failure(slightly_more) > finding.failure * (1.0 - _COARSENESS),
        f"the bet won against a divergence of {slightly_more}, and only {divergence} is stated",
    )

    def refutes_claim_at(failure: float) -> bool:
        claimed = _divergence_of(finding, finding.claim.value, bet.order)
        return bet.failure(claimed) <= failure * (1.0 + _COARSENESS)

    needed = bet.failure(divergence) if divergence > 0.0 else 0.0
    return Proof(failure=needed, refutes_claim_at=refutes_claim_at)


def _read_score_bet(finding: StoredFinding) -> ScoreBet:
    assert finding.witness is not None
    cells = _get(finding.details, "cells")
    left = _wholes(_get(cells, "left"), "cells")
    right = _wholes(_get(cells, "right"), "cells")
    return ScoreBet(
        order=_number(finding.details, "order"),
        stake=_number(finding.details, "stake"),
        scores=_numbers(_get(_get(finding.witness, "event"), "scores"), "scores"),
        above=right if finding.flipped else left,
        below=left if finding.flipped else right,
    )


def check_cells_fit_witness(finding: StoredFinding, bet: ScoreBet) -> None:
    """Proves that each cell has a score, and that the counts add up to those of the witness."""
    assert finding.witness is not None
    event = _get(finding.witness, "event")
    _require(bet.order == _get(event, "order"), "score and bet have different orders")
    fits = len(bet.above) == len(bet.below) == len(bet.scores)
    _require(fits, "the counts of the cells do not fit the score")
    favoured = _chosen_cells(event)
    _require(favoured <= set(range(len(bet.scores))), "the score favours cells that do not exist")
    above = HitCounts(hits=sum(bet.above[cell] for cell in favoured), trials=sum(bet.above))
    below = HitCounts(hits=sum(bet.below[cell] for cell in favoured), trials=sum(bet.below))
    fits = above == finding.above and below == finding.below
    _require(fits, "the counts of the cells do not fit the witness")


def check_divergence_gives_bound(finding: StoredFinding, order: float, divergence: float) -> None:
    """Proves that a divergence of this order gives the bound, in the claim's own parameter."""
    claim = finding.claim
    _require(order > 1.0, f"a divergence of order {order}")
    _require(
        claim.order is None or claim.order == order, f"a claim about another order than {order}"
    )
    implied = _divergence_of(finding, finding.bound, order)
    is_same = _are_same(implied, divergence) or implied + divergence < _NO_DIVERGENCE
    _require(is_same, f"the divergence {divergence} of order {order} does not give the bound")


def _divergence_of(finding: StoredFinding, value: float, order: float) -> float:
    """The greatest divergence of this order that a claim of this value allows."""
    notion = finding.claim.notion
    if notion == "renyi":
        return value
    if notion == "zcdp":
        return value * order
    if notion == "pure" and finding.details.get("threshold") == "published":
        return min(value, 2.0 * order * value**2)
    if notion == "pure":
        return _greatest_divergence(value, order)
    _cannot_check(f"bets on scores do not bound {notion} claims")


def _greatest_divergence(epsilon: float, order: float) -> float:
    """The greatest Rényi divergence under ε-privacy: that of randomized response.

    It is (ln cosh((α − ½)ε) − ln cosh(ε/2))/(α − 1), for a small (α − 1)ε in a form that does not
    cancel.
    """
    s = order - 1.0
    half = 0.5 * epsilon
    step = s * epsilon
    if step <= 1.0:
        return math.log1p(2.0 * math.sinh(0.5 * step) ** 2 + math.tanh(half) * math.sinh(step)) / s
    larger = half + step + math.log1p(math.exp(-2.0 * (half + step)))
    smaller = half + math.log1p(math.exp(-2.0 * half))
    return (larger - smaller) / s


# --------------------------------------------------------------------------------------------------
# The document's agreement with itself


@dataclass(frozen=True)
class BothSides:
    """A number for each input."""

    left: int
    right: int


def _samples_used(document: Any) -> BothSides:
    values = _wholes(_get(document, "samples_used"), "samples_used")
    if len(values) != 2:
        _cannot_check("samples_used should be two counts")
    return BothSides(left=values[0], right=values[1])


def _lost_draws(document: Any) -> BothSides:
    """Draws that were begun, lost in an interruption and drawn again."""
    return _read_sides(_get(document, "settings"), "redrawn") or BothSides(left=0, right=0)


def _read_sides(settings: Any, name: str) -> BothSides | None:
    """A fact about both inputs; None if the settings do not hold it."""
    if name not in settings:
        return None
    values = _wholes(settings[name], name)
    if len(values) != 2:
        _cannot_check(f"{name} should be two counts")
    return BothSides(left=values[0], right=values[1])


def check_version(document: Any) -> None:
    """Proves that the file is a result in a form that this checker reads."""
    version = _get(document, "schema_version")
    if type(version) is not int or version != 1:
        _cannot_check(f"schema_version = {version!r:.40} is not known; this checker reads 1")
    if "findings" not in document and document.get("kind") == "profile":
        _cannot_check(
            "a profile holds a band without its counts; audit with method='profile' stores them"
        )
    if not _list(document, "findings"):
        _cannot_check("it has no findings")


def check_result_repeats_first_finding(document: Any) -> None:
    """Proves that a result's bound, guarantee, claim and witness are its first finding's."""
    first = document["findings"][0]
    for name in ("lower_bound", "guarantee", "claim", "witness"):
        _require(
            _get(document, name) == _get(first, name), f"result and first finding differ in {name}"
        )


def check_confidence(document: Any) -> None:
    """Proves that the result has the confidence that was asked for."""
    confidence = _number(document, "confidence")
    _require(0.0 < confidence < 1.0, f"a confidence of {confidence}")
    asked = _get(document, "settings").get("confidence", confidence)
    _require(
        asked == confidence,
        f"a confidence of {asked!r:.40} was asked for, and {confidence} is stated",
    )


def check_verdict(document: Any, first: StoredFinding) -> None:
    """Proves that the verdict follows from claim, bound, guarantee and the health of the draws.

    Untrusted draws and bounds without a guarantee decide nothing, not even about an event that
    always happened for one input and never for the other. A measurement has no claim, and no
    verdict.
    """
    is_trusted = not first.guarantee.startswith("none")
    for report in _list(document, "health"):
        if _truth(report, "untrusted"):
            is_trusted = False
    if not is_trusted:
        expected = "inconclusive"
    elif first.is_above_claim:
        expected = "refuted"
    else:
        expected = "not refuted"
    verdict = _get(document, "verdict")
    if verdict is None:
        _require(first.claim.value == 0.0, "a measurement without a verdict has a claim")
    else:
        _require(verdict == expected, f"the verdict is {verdict!r:.40}, and should be {expected!r}")


# How constant answers may have been tested: what leaves a verdict, and what leaves none.
_TESTED_BY = ("fresh generators", "a new process per run", "a fresh process")
_NOT_TOLD_APART = ("changed in a fresh process", "untested")


def check_constant_answers(document: Any) -> None:
    """Proves that constant answers decide only what they can.

    An answer that never changes is a leak without noise, or noise that is drawn once and kept. It
    refutes if a test has told them apart, or if the caller said that there is no noise.
    """
    settings = document["settings"]
    test = settings.get("constant_test")
    reports = [report for report in _list(document, "health") if _get(report, "name") == "constant"]
    is_told_apart = test in _TESTED_BY
    _require(
        test is None or is_told_apart or test in _NOT_TOLD_APART,
        f"constant answers were tested by {test!r:.40}, which is no test",
    )
    if test == "fresh generators":
        _require(
            settings.get("seeded_mechanism") is True,
            "constant answers were tested with generators that the mechanism does not take",
        )
    is_untrusted = any(_truth(report, "untrusted") for report in reports)
    _require(
        is_untrusted == (test in _NOT_TOLD_APART),
        f"constant answers were tested ({test!r:.40}), and the remark on them says otherwise",
    )
    if reports and document["verdict"] == "refuted":
        _require(
            is_told_apart or settings.get("constant") == "leak",
            "it is refuted by constant answers, which nothing has told from noise that is kept",
        )


def check_detectable(document: Any, first: StoredFinding) -> None:
    """Proves that the least detectable value is one that an audit with this verdict can state.

    It is estimated by rehearsals, which are not repeated here. But no leak is refuted that the
    claim allows, and what was refuted or only measured has no such value.
    """
    detectable = _get(document, "detectable")
    if detectable is None:
        return
    is_infinite = detectable in ("inf", math.inf)
    least = math.inf if is_infinite else _as_number(detectable, "detectable")
    verdict = document["verdict"]
    _require(verdict is not None, "a measurement cannot have detected anything")
    if first.method in _ALWAYS_EXACT:
        _require(
            verdict == "not refuted",
            f"an audit with the verdict {verdict!r:.40} detects nothing more",
        )
    claimed = first.claim.value
    _require(least >= claimed * (1.0 - _SAME), f"a claim of {claimed} cannot be refuted at {least}")


def check_blind(document: Any) -> None:
    """Proves that only an audit that refuted nothing says that it could not have."""
    blind = document.get("blind")
    if blind is None:
        return
    _require(isinstance(blind, str) and bool(blind), f"blind = {blind!r:.40} is no reason")
    verdict = document["verdict"]
    _require(verdict == "not refuted", f"an audit with the verdict {verdict!r:.40} was not blind")


def check_detectable_mass(document: Any) -> None:
    """Proves that the rarest output that would have refuted has a probability, if one is stated."""
    mass = document.get("detectable_mass")
    if mass is None or mass in ("inf", math.inf):
        return
    probability = _as_number(mass, "detectable_mass")
    _require(0.0 < probability <= 1.0, f"an output with the probability {probability}")
    verdict = document["verdict"]
    _require(
        verdict in ("not refuted", "inconclusive"),
        f"an audit with the verdict {verdict!r:.40} would have refuted no rare output",
    )


def check_draws(document: Any, findings: Sequence[StoredFinding]) -> None:
    """Proves that no more was counted than drawn, and no more drawn than asked for.

    A search may draw more: its trials have draws of their own.
    """
    used = _samples_used(document)
    lost = _lost_draws(document)
    settings = document["settings"]
    asked = _as_whole(settings.get("samples", max(used.left, used.right)), "samples")
    if "finder" not in settings:
        _require(
            used.left <= asked + lost.left, f"{used.left} draws on the left, {asked} asked for"
        )
        _require(
            used.right <= asked + lost.right, f"{used.right} draws on the right, {asked} asked for"
        )
    for finding in findings:
        for counts, n_used in ((finding.left, used.left), (finding.right, used.right)):
            most = min(n_used, asked)
            _require(counts.trials <= most, f"{counts.trials} draws were counted, of {most}")


# --------------------------------------------------------------------------------------------------
# The budget: what all findings together may get wrong


def check_known_methods(findings: Iterable[StoredFinding]) -> None:
    """Leaves the findings of methods that are not known here unchecked."""
    for finding in findings:
        if finding.method not in _KNOWN_METHODS:
            _cannot_check(f"the method {finding.method:.40} is not known here")


_KNOWN_METHODS = (
    *_ALWAYS_EXACT,
    *_NEVER_EXACT,
    "hockey-stick",
    "poisson-histogram",
    "renyi-variational",
    "mmd",
)


def check_budget(document: Any, findings: Sequence[StoredFinding]) -> None:
    """Proves that all findings together err with at most the failure probability of the result.

    What follows from the first finding along the Gaussian curve costs nothing.
    """
    failure = 1.0 - _number(document, "confidence")
    first = findings[0]
    implied = [finding for finding in findings if finding.guarantee == _IF_GAUSSIAN]
    certified = [finding for finding in findings if finding.guarantee != _IF_GAUSSIAN]
    check_gaussian_findings(first, implied)
    has_bits = document["settings"].get("representation") == "all"
    _require(
        ("paid" in first.details) == ("finder" in document["settings"]),
        "a search has a ledger of its certificates, and nothing else has one",
    )
    if "paid" in first.details:
        check_ledger(first, certified, failure, has_bits)
        check_search_decided(document, certified, has_bits)
    else:
        check_one_certificate(certified, failure, has_bits)


def check_one_certificate(
    certified: Sequence[StoredFinding], failure: float, has_bits: bool
) -> None:
    """Proves that a result without a search has one finding, and one about bits if requested."""
    expected = 2 if has_bits else 1
    _require(
        len(certified) == expected, f"{len(certified)} findings where there should be {expected}"
    )
    _require(
        all(finding.claim == certified[0].claim for finding in certified),
        "the findings are about different claims",
    )
    spent = math.fsum(finding.failure for finding in certified)
    spare = 1e-9 * failure + _SAME_PROBABILITY
    _require(
        spent <= failure + spare,
        f"the findings may err with {spent:.6g}, the result with {failure:.6g}",
    )
    _require(spent >= failure - spare, "the findings have more confidence than the result")


def check_ledger(
    first: StoredFinding, certified: Sequence[StoredFinding], failure: float, has_bits: bool
) -> None:
    """Proves that every certificate of a search was paid for, and all of them from one budget.

    The ledger may name certificates without a finding: one beyond the domain is only remarked on,
    and one that time cut off is paid for and never happened.
    """
    prices = []
    for entry in _list(first.details, "paid"):
        if not isinstance(entry, list) or len(entry) != 2:
            _cannot_check("the ledger of a search should hold purposes and prices")
        price = _as_number(entry[1], "paid")
        _require(price > 0.0, f"a certificate at the price of {price}")
        prices.append(price)
    spent = math.fsum(prices)
    _require(
        spent <= failure * (1.0 + 1e-9) + _SAME_PROBABILITY,
        f"the certificates may err with {spent:.6g}, the result with {failure:.6g}",
    )
    for cost in sorted(_costs_of_certificates(certified, has_bits), reverse=True):
        fitting = [price for price in prices if _is_price_of(cost, price, has_bits)]
        _require(bool(fitting), "a finding was not paid for, or not at its price")
        prices.remove(min(fitting))


def _costs_of_certificates(certified: Sequence[StoredFinding], has_bits: bool) -> list[float]:
    """Error probabilities of the certificates; the first includes the one about its bits."""
    costs = [finding.failure for finding in certified]
    if has_bits:
        _require(len(costs) >= 2, "the finding about bits is missing")
        return [costs[0] + costs[1], *costs[2:]]
    return costs


def _is_price_of(cost: float, price: float, has_bits: bool) -> bool:
    """Whether a certificate at this price may err with this cost.

    If bits are looked at, too, only the first finding still has its part about bits with it.
    """
    if has_bits:
        return cost <= price * (1.0 + 1e-9) + _SAME_PROBABILITY
    return _are_same(cost, price, _SAME)


def check_search_decided(document: Any, certified: Sequence[StoredFinding], has_bits: bool) -> None:
    """Proves that the finding that decides is the one that should.

    A search ends with the first certificate that refutes its claim. So no other finding does, and
    if none refutes, the first one has the largest bound of those about the same claim. Each finding
    is compared with its own claim; all are of one notion.
    """
    first = certified[0]
    others = certified[2:] if has_bits else certified[1:]
    for other in others:
        _require(
            other.claim.notion == first.claim.notion, "the findings are about different notions"
        )
        if document["verdict"] is not None:
            _require(
                not other.is_above_claim, "a finding that refutes its claim is not the first one"
            )
        if document["verdict"] == "not refuted" and other.claim == first.claim:
            _require(
                other.bound <= first.bound,
                "the finding with the largest bound is not the first one",
            )


def check_gaussian_findings(first: StoredFinding, implied: Sequence[StoredFinding]) -> None:
    """Proves that an ε stated along the Gaussian curve is the one that belongs to the bound on μ.

    There is one exactly if the claim was made as an ε at some δ.
    """
    delta = first.claim.at_delta
    expected = 0 if delta is None else 1
    _require(len(implied) == expected, "findings along the Gaussian curve: too many or too few")
    for finding in implied:
        assert delta is not None
        _require(
            finding.claim.notion == "approx", "a finding along the Gaussian curve is not about ε"
        )
        _require(finding.claim.delta == delta, "a finding along the Gaussian curve has another δ")
        _require(
            finding.failure == first.failure and finding.method == first.method,
            "a finding along the Gaussian curve does not follow from the first one",
        )
        _check_on_gaussian_curve(mu=first.bound, epsilon=finding.bound, delta=delta)
        _check_on_gaussian_curve(mu=first.claim.value, epsilon=finding.claim.value, delta=delta)


def _check_on_gaussian_curve(mu: float, epsilon: float, delta: float) -> None:
    """δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ); for a small μ, ε is 0 and δ more than is needed."""
    if mu > 0.0:
        there = _NORMAL.cdf(0.5 * mu - epsilon / mu)
        back = _NORMAL.cdf(-0.5 * mu - epsilon / mu)
        on_curve = there - math.exp(epsilon) * back
    else:
        on_curve = 0.0
    is_right = _are_same(on_curve, delta, 1e-4) or (epsilon == 0.0 and on_curve <= delta)
    _require(is_right, "a finding is off the Gaussian curve")


# --------------------------------------------------------------------------------------------------
# The p-value


def check_p_value(document: Any, first: StoredFinding) -> None:
    """Proves that the p-value agrees with the verdict.

    The claim is refuted exactly when it is at most 1 − confidence. Measurements and results that
    cannot be trusted have none.
    """
    value = document.get("p_value")
    if value is None:
        return
    p_value = _as_number(value, "p_value")
    verdict = document["verdict"]
    _require(verdict in ("refuted", "not refuted"), f"a p-value with the verdict {verdict!r:.40}")
    _require(0.0 < p_value <= 1.0, f"a p-value of {p_value}")
    failure = 1.0 - _number(document, "confidence")
    text = f"the claim is {verdict} with a p-value of {p_value:.6g}"
    if verdict == "refuted":
        _require(p_value <= failure * (1.0 + 1e-9), text)
    else:
        _require(p_value >= failure * (1.0 - 1e-9), text)


# Below this, rounding and left-out tails hide by how much a p-value is smaller.
_LEAST_P_VALUE = 1e-20
# An honest p-value may be larger than the least possible one, but not by this factor.
_CAREFUL_P_VALUE = 2.0


def check_p_value_of_counts(document: Any, first: StoredFinding, proof: Proof) -> None:
    """Proves that the counts refute the claim at the p-value, and not far below it.

    A search pays several certificates from one failure probability: the p-value of the result is
    that of its certificate, divided by the certificate's share. Not far below is asked of claims
    that are said not to be refuted, unless the p-value is just on its side of 1 − confidence.
    """
    if document.get("p_value") is None or proof.refutes_claim_at is None:
        return
    p_value = _number(document, "p_value")
    failure = 1.0 - _number(document, "confidence")
    share = first.failure / failure
    if p_value < 1.0:
        stated = max(p_value, _LEAST_P_VALUE) * share
        _require(
            proof.refutes_claim_at(stated),
            f"the counts do not refute the claim with a p-value as small as {p_value:.6g}",
        )
    smaller = p_value / _CAREFUL_P_VALUE
    if document["verdict"] == "not refuted" and smaller > failure:
        _require(
            not proof.refutes_claim_at(smaller * share),
            f"the counts refute the claim with a p-value below half of {p_value:.6g}",
        )


def check_not_understated(document: Any, first: StoredFinding, proof: Proof) -> None:
    """Proves that a claim that is said not to be refuted is not clearly refuted by the counts."""
    if document["verdict"] == "not refuted":
        _require(
            proof.refutes_claim is not True,
            f"the counts refute the claim of {first.claim.value:.6g}, "
            "and the verdict does not say so",
        )


# --------------------------------------------------------------------------------------------------
# Recorded draws: which rows chose what to certify, and which certified it


@dataclass(frozen=True)
class Rows:
    """Some rows of a recording: from `first` up to, but without, `behind`."""

    first: int
    behind: int


@dataclass(frozen=True)
class UsedRows:
    """The rows of one input that an audit has used, counted from 0."""

    chose: list[Rows]
    proved: list[Rows]
    is_shuffled: bool


def _used_rows(document: Any, side: str) -> UsedRows | None:
    """The rows of the left or of the right input; None if the result does not say."""
    recording = document["settings"].get("recording")
    if recording is None:
        return None
    for entry in recording.get("draws", []):
        if _get(entry, "input") == side:
            return UsedRows(
                chose=_read_rows(entry, "chose"),
                proved=_read_rows(entry, "proved"),
                is_shuffled=entry.get("shuffled", False) is True,
            )
    return None


def _read_rows(entry: Any, name: str) -> list[Rows]:
    ranges: list[Rows] = []
    for values in _list(entry, name):
        numbers = _wholes(values, name)
        if len(numbers) != 2:
            _cannot_check(
                f"{name} should hold the first row of each range and the one behind its last"
            )
        rows = Rows(first=numbers[0], behind=numbers[1])
        _require(rows.first < rows.behind, f"{name}: rows {rows.first} to {rows.behind}")
        _require(not ranges or ranges[-1].behind <= rows.first, f"{name}: rows out of order")
        ranges.append(rows)
    return ranges


def check_recorded_rows(document: Any, first: StoredFinding) -> None:
    """Proves that as many recorded rows certified as were counted, and that none chose the event.

    Early stops and searches choose again on what has proved something before; of them only the
    number is checked.
    """
    may_choose_again = first.method == "sequential" or "finder" in document["settings"]
    for side, counts in (("left", first.left), ("right", first.right)):
        used = _used_rows(document, side)
        if used is None or first.witness is None:
            continue
        n_proved = sum(rows.behind - rows.first for rows in used.proved)
        if may_choose_again:
            _require(
                n_proved >= counts.trials,
                f"{n_proved} rows proved on the {side}, fewer than counted",
            )
            continue
        _require(
            n_proved == counts.trials,
            f"{n_proved} rows proved on the {side}, and {counts.trials} were counted",
        )
        for chose in used.chose:
            for proved in used.proved:
                is_apart = chose.behind <= proved.first or proved.behind <= chose.first
                _require(is_apart, f"some rows on the {side} chose the event and proved it")


# --------------------------------------------------------------------------------------------------
# What weakens the reading, as the settings state it


def weakening_facts(document: Any) -> list[str]:  # noqa: C901  # one question after the other
    """What the reader of a result should know before believing it, one phrase each."""
    settings = document["settings"]
    facts = []
    if document.get("blind") is not None:
        facts.append(f"which means little: {document['blind']:.200}")
    suppressed = _names(settings, "suppress")
    if suppressed:
        word = "check" if len(suppressed) == 1 else "checks"
        facts.append(f"with the {_listed(suppressed)} {word} switched off")
    if settings.get("constant") == "leak":
        facts.append("constant answers were taken for a leak without noise")
    failed = _read_sides(settings, "failed")
    if failed is not None:
        facts.append(f"{_on_both_sides(failed, 'run', 'runs')} failed and counted as outcomes")
    elif settings.get("on_error") == "outcome":
        facts.append("failed runs count as outcomes")
    retried = _read_sides(settings, "retried")
    if retried is not None:
        facts.append(f"{_on_both_sides(retried, 'request', 'requests')} were sent again")
    redrawn = _read_sides(settings, "redrawn")
    if redrawn is not None:
        facts.append(f"{_on_both_sides(redrawn, 'draw', 'draws')} were lost and drawn again")
    statuses = _names(settings, "statuses")
    if statuses:
        facts.append(f"the exit statuses {_listed(statuses)} were taken for success")
    columns = _names(settings, "columns")
    if columns:
        facts.append(f"only the columns {_listed(columns)} were looked at")
    if settings.get("answer"):
        facts.append(f"only {settings['answer']!r:.60} of the service's answers was looked at")
    if settings.get("representation") == "bits":
        facts.append("only the bits of floating-point numbers were looked at")
    if settings.get("features"):
        facts.append("what its features compute is not checked")
    distance = settings.get("distance", 1)
    if distance != 1:
        facts.append(f"the inputs are {distance!r:.20} neighbouring steps apart")
    if settings.get("recording"):
        facts.append(_fact_about_recorded_rows(document))
    return facts


def _fact_about_recorded_rows(document: Any) -> str:
    """Which recorded rows proved the bound; people count rows from 1."""
    left = _used_rows(document, "left")
    right = _used_rows(document, "right")
    if left is None or right is None or left.is_shuffled or right.is_shuffled:
        return "it is about recorded draws"
    if left.proved == right.proved:
        return f"proved by {_ranges(left.proved)} of the recorded draws of each input"
    return f"proved by recorded draws: {_ranges(left.proved)} left, {_ranges(right.proved)} right"


def _ranges(ranges: Sequence[Rows]) -> str:
    """Rows 1 to 20 and 41 to 60."""
    if not ranges:
        return "no rows"
    return "rows " + _listed([f"{rows.first + 1} to {rows.behind}" for rows in ranges])


def _names(settings: Mapping[str, Any], name: str) -> list[str]:
    """A fact that is a list of names; empty if the settings do not hold it."""
    values = settings.get(name) or []
    if not isinstance(values, list):
        _cannot_check(f"{name} = {values!r:.40} should be a list of names")
    return [f"{value!s:.40}" for value in values]


def _listed(names: Sequence[str]) -> str:
    """A, B and C."""
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + " and " + names[-1]


def _on_both_sides(counts: BothSides, one: str, many: str) -> str:
    word = one if counts.left == 1 else many
    return f"{counts.left} {word} on the left and {counts.right} on the right"


# --------------------------------------------------------------------------------------------------
# The recount: the event on the draws that `record="draws.jsonl"` kept


class LastCells:
    """The cells of the last draws of one input, among those that proved something."""

    def __init__(self, n: int, used: UsedRows | None) -> None:
        """Keeps the last n draws.

        Args:
            n: how many were counted.
            used: which rows proved; None if the result does not say, and all may have.
        """
        self.cells: deque[int] = deque(maxlen=n)
        self._row = 0
        self._proved = None if used is None or used.is_shuffled else used.proved

    def add(self, cell: int) -> None:
        """Takes the cell of the next row."""
        row = self._row
        self._row += 1
        if self._proved is None or any(rows.first <= row < rows.behind for rows in self._proved):
            self.cells.append(cell)

    def counts(self, chosen: set[int]) -> HitCounts:
        """How often the event happened."""
        return HitCounts(hits=sum(cell in chosen for cell in self.cells), trials=len(self.cells))


def recount(document: Any, finding: StoredFinding, path: Path) -> str:
    """Proves that the witness's event happened as often as stated in the draws that proved it.

    Those are the rows which the result says proved, or all rows if it does not say; of them the
    last ones of each input, as many as were counted.
    """
    if finding.witness is None:
        _cannot_check("there is no event to count again")
    event = _get(finding.witness, "event")
    pair = _get(finding.witness, "pair")
    cell_of = _after_reading(event, _cell_finder(_get(event, "partition")))
    chosen = _chosen_cells(event)
    last_left = LastCells(finding.left.trials, _used_rows(document, "left"))
    last_right = LastCells(finding.right.trials, _used_rows(document, "right"))
    with path.open(encoding="utf-8") as lines:
        header = json.loads(next(lines))
        left_place, right_place = _places_of_inputs(header, pair, path)
        cells_of = {left_place: last_left, right_place: last_right}
        for line in lines:
            chunk = json.loads(line)
            cells = cells_of.get(chunk.get("dataset"))
            if cells is None:
                continue
            for cell in _cells_of_chunk(chunk, cell_of):
                cells.add(cell)
    left = last_left.counts(chosen)
    right = last_right.counts(chosen)
    _require(
        left == finding.left and right == finding.right,
        f"in {path} the event happened in {left.hits} of {left.trials} draws on the left and in "
        f"{right.hits} of {right.trials} on the right, not as stated",
    )
    return f"the event happened as often in the draws of {path}"


def _places_of_inputs(header: Any, pair: Any, path: Path) -> tuple[int, int]:
    """The numbers by which a recording refers to the two inputs."""
    datasets: list[str] = []
    for recorded in _get(header, "pairs"):
        for side in ("left", "right"):
            text = json.dumps(recorded[side])
            if text not in datasets:
                datasets.append(text)
    left = json.dumps(_get(pair, "left"))
    right = json.dumps(_get(pair, "right"))
    if left == right or left not in datasets or right not in datasets:
        _cannot_check(f"{path} does not distinguish the draws of the two inputs")
    return datasets.index(left), datasets.index(right)


def _cells_of_chunk(chunk: Any, cell_of: Callable[[str, Sequence[Any]], int]) -> list[int]:
    """The cells of some outputs of one input, in the order in which they were drawn.

    Outputs of different shapes are stored in different blocks, each with the places of its outputs.
    """
    cells: dict[int, int] = {}
    for block in chunk["blocks"]:
        outputs = list(_rows(block))
        places = block.get("rows")
        if places is None:
            places = range(len(outputs))
        for place, output in zip(places, outputs, strict=True):
            cells[place] = cell_of(block["shape"], output)
    return [cells[place] for place in sorted(cells)]


def _rows(block: Any) -> Iterable[Sequence[Any]]:
    """The outputs of one shape, each as the values of its columns."""
    if not block["columns"]:
        return [()] * block["size"]
    columns = [_column(column) for column in block["columns"]]
    return zip(*columns, strict=True)


def _column(data: Any) -> list[Any]:
    """The values of a column.

    A name becomes a tuple, so that none passes for a number; all NaN become one, which equals
    itself.
    """
    if "labels" in data:
        labels = data["labels"]
        codes = data.get("codes", range(len(labels)))
        return [(labels[code],) for code in codes]
    values = []
    for part in data.values():
        for item in part:
            value = float(item)
            values.append(math.nan if math.isnan(value) else value)
    return values


def _chosen_cells(event: Any) -> set[int]:
    """The cells of an event; for a score, those above its mean over both distributions."""
    kind = _get(event, "kind")
    if kind == "cells":
        return set(event["chosen"])
    if kind != "log-ratio":
        _cannot_check(f"events of the kind {kind!r:.40} are not counted again here")
    weighted = []
    for p, q, score in zip(event["p"], event["q"], event["scores"], strict=True):
        weighted.append((p + q) * score)
    middle = 0.5 * math.fsum(weighted)
    return {cell for cell, score in enumerate(event["scores"]) if score > middle}


@dataclass(frozen=True)
class BetGroup:
    """The cells of outputs with the same repeated values: one cell, or the intervals of a line."""

    first_cell: int
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """The cells of outputs of one shape.

    Attributes:
        codes: of each column its repeated values, with their codes.
        groups: by the codes of all columns, −1 for a value that is not repeated.
        rest: the cell of outputs of no group.
    """

    codes: list[dict[Any, int]]
    groups: dict[tuple[int, ...], BetGroup]
    rest: int


def _after_reading(
    event: Any, cell_of: Callable[[str, Sequence[Any]], int]
) -> Callable[[str, Sequence[Any]], int]:
    """Finds the cell of an output as it was recorded, if the event leaves out some columns."""
    readings = {}
    for reading in event.get("reading") or ():
        if reading["columns"]:
            _cannot_check("the event looks inside of texts, which are not read again here")
        readings[reading["shape"]] = frozenset(reading["left_out"])
    # The name of a shape without these columns begins with its name before, as JSON.
    name_after = {}
    for block in event["partition"]:
        name = block["shape"]
        if name.startswith("read["):
            name_after[json.loads(name.removeprefix("read"))[0]] = name

    def cell_of_recorded(name: str, values: Sequence[Any]) -> int:
        left_out = readings.get(name)
        if left_out is None:
            return cell_of(name, values)
        kept = [value for place, value in enumerate(values) if place not in left_out]
        return cell_of(name_after.get(name, "read[]"), kept)

    return cell_of_recorded


def _read_shapes(partition: Any) -> tuple[dict[str, Shape], int]:
    """The shapes of a partition by their names, and the cell of outputs of any other shape."""
    shapes: dict[str, Shape] = {}
    n_cells = 0
    for block in partition:
        groups = {}
        for data in block["groups"]:
            groups[tuple(data["signature"])] = BetGroup(first_cell=n_cells, data=data)
            # On a line: one interval more than there are edges, and a cell for NaN.
            n_cells += len(data["edges"]) + 2 if "edges" in data else 1
        codes = []
        for atoms in block["atoms"]:
            values = _column(atoms or {})
            codes.append({value: code for code, value in enumerate(values)})
        shapes[block["shape"]] = Shape(codes=codes, groups=groups, rest=n_cells)
        n_cells += 1
    return shapes, n_cells


def _cell_finder(partition: Any) -> Callable[[str, Sequence[Any]], int]:
    """Finds the cell of an output: by shape, then by repeated values, then by place on a line."""
    shapes, outside = _read_shapes(partition)
    looks_at_features = any("featured{" in name for name in shapes)

    def cell_of(name: str, values: Sequence[Any]) -> int:
        if name not in shapes:
            if looks_at_features and "featured{" not in name:
                _cannot_check(
                    "the event looks at features of the outputs, "
                    "which were not recorded beside them"
                )
            return outside
        shape = shapes[name]
        signature = []
        for codes, value in zip(shape.codes, values, strict=True):
            signature.append(codes.get(value, -1))
        group = shape.groups.get(tuple(signature) or (0,))
        if group is None:
            return shape.rest
        if "edges" not in group.data:
            return group.first_cell
        edges = group.data["edges"]
        if "score" in group.data:
            return group.first_cell + _interval(edges, _score(group.data["score"], values))
        return group.first_cell + _interval(edges, values[group.data["column"]])

    return cell_of


def _interval(edges: Sequence[Any], value: float) -> int:
    """The number of the interval between edges; NaN has one of its own, the last."""
    if math.isnan(value):
        return len(edges) + 1
    return bisect_right(edges, value, key=float)


def _score(score: Any, values: Sequence[Any]) -> float:
    """The additive score of an output, summed in the order in which the audit sums it."""
    kind = score.get("kind", "additive")
    if kind == "sum":
        parts = zip(score["weights"], score["parts"], strict=True)
        return math.fsum(weight * _score(part, values) for weight, part in parts)
    if kind != "additive":
        _cannot_check(f"scores of the kind {kind!r:.40} are not evaluated here")
    total = 0.0
    for term in score["terms"]:
        if "mix" in term:
            x: Any = 0.0
            for weight, value in zip(term["mix"], values, strict=False):
                if weight:
                    x += weight * value
        else:
            x = values[term["column"]]
        if "edges" in term:
            place = _interval(term["edges"], x)
        else:
            # A name is a tuple of one; an unknown one comes after all known ones.
            name = x[0]
            place = term["labels"].index(name) if name in term["labels"] else len(term["labels"])
        total += term["weights"][place]
    return total


# --------------------------------------------------------------------------------------------------
# The whole argument


def verify(result: Any, recording: str | os.PathLike[str] | None = None) -> Check:
    """Checks an `AuditResult`, its plain data, its JSON text or its file.

    Args:
        result: what to check.
        recording: the draws of the audit, on which the event is counted again.

    >>> em.verify(em.audit(em.zoo.dp_mean(), samples=1000, seed=0)).holds
    True
    """
    try:
        return _verify(_read(result), recording)
    except DoesNotHold as stop:
        return Check(False, stop.reason)
    except CannotBeChecked as stop:
        return Check(None, stop.reason)
    except OSError as error:
        return Check(None, f"{error.filename}: {error.strerror}")
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RuntimeError,
        MemoryError,
    ) as error:
        return Check(None, f"this is not what an audit stores: {error!r:.200}")


def _read(result: Any) -> Any:
    if hasattr(result, "to_json"):
        return json.loads(result.to_json())
    if isinstance(result, Mapping):
        return json.loads(json.dumps(result))
    is_text = isinstance(result, bytes) or (
        isinstance(result, str) and result.lstrip().startswith("{")
    )
    if is_text:
        return json.loads(result)
    if isinstance(result, str | os.PathLike):
        return json.loads(Path(result).read_text(encoding="utf-8"))
    _cannot_check(
        f"this is no result of an audit but a {type(result).__name__}; only what audit, measure, "
        "compare and replay return has the counts that prove it"
    )


def _verify(document: Any, recording: str | os.PathLike[str] | None) -> Check:
    """The argument, in the order in which a sceptic would ask."""
    # Is it a result, and does it say the same thing everywhere?
    check_version(document)
    if not isinstance(_get(document, "settings"), Mapping):
        _cannot_check("the settings are not named")
    check_result_repeats_first_finding(document)
    check_confidence(document)
    findings = [_read_finding(data) for data in document["findings"]]
    first = findings[0]
    for finding in findings:
        check_guarantee(finding)

    # Does the verdict follow from the bound?
    check_verdict(document, first)
    check_constant_answers(document)
    check_detectable(document, first)
    check_detectable_mass(document)
    check_blind(document)
    check_p_value(document, first)

    # Was more counted than drawn, or more risked than allowed?
    check_draws(document, findings)
    check_recorded_rows(document, first)
    check_known_methods(findings)
    check_budget(document, findings)
    steps = ["verdict, claim, bound, confidence, findings and draws agree"]

    # Do the counts prove the bounds?
    total_failure = 0.0
    for finding in findings:
        if finding.guarantee != _EXACT:
            continue
        proof = prove(finding, document)
        needed = max(proof.failure, finding.failure)
        proved = (
            f"{finding.method} proves {finding.claim.notion} {finding.bound:.6g} "
            f"at confidence {1.0 - needed:.6g}"
        )
        is_proved = needed <= finding.failure * (1.0 + _COARSENESS) + _SAME_PROBABILITY
        _require(is_proved, f"the counts show only that {proved}")
        if finding is first:
            check_not_understated(document, first, proof)
            with suppress(TakesTooLong):  # then only its agreement with the verdict is known
                check_p_value_of_counts(document, first, proof)
        total_failure += needed
        steps.append(f"the counts show that {proved}")

    # Are the counts those of the draws?
    if recording is not None:
        steps.append(recount(document, first, Path(recording)))

    facts = weakening_facts(document)
    if first.guarantee != _EXACT:
        _cannot_check(
            "; ".join([f"the guarantee is {first.guarantee!r:.80}: no count proves that", *facts])
        )
    confidence = 1.0 - max(total_failure, 1.0 - document["confidence"])
    reason = f"the bound {first.bound:.6g} at confidence {confidence:.6g}"
    if facts:
        reason += ", " + "; ".join(facts)
    return Check(True, reason, confidence, tuple(steps))


# --------------------------------------------------------------------------------------------------
# The command line


def main(arguments: Sequence[str]) -> int:
    """Prints the answer and returns the exit status: 0, 1 or 2."""
    recording = None
    if len(arguments) == 3 and arguments[1] == "--recording":
        recording = arguments[2]
    if len(arguments) == 1 or recording is not None:
        check = verify(Path(arguments[0]), recording)
    else:
        check = Check(None, "usage: checker.py result.json [--recording draws.jsonl]")
    sys.stdout.write(f"{check}\n")
    return {True: 0, False: 1, None: 2}[check.holds]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
