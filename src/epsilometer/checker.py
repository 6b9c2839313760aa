"""A second opinion on a stored result: does the bound follow from the counts, and does the file agree with itself?

    python checker.py result.json [--recording draws.jsonl]      0 it holds, 1 it does not, 2 it cannot be checked

One file, the standard library alone, nothing of Epsilometer: copy it, read it, run it. It shares no code or rounding
with what it checks. Binomial tails are sums of positive terms with bounded rounding or, if too many, the inequalities
of Zubkov and Serov; suprema are over intervals, never over points. It takes for granted that + − × ÷ √ round correctly
and that exp, log and erfc are right to 12 digits. It proves that the stored counts imply the bound, if the draws were
independent and what was counted was chosen before them. `--recording` counts the draws again.
"""

from __future__ import annotations

import json
import math
import os
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from statistics import NormalDist
from typing import Any

Counts = tuple[int, int]  # hits, trials
Line = tuple[float, float, bool]  # slope, shift, whether the slope was fixed before the draws
_UP = 1.0 + 3e-6  # bounds the rounding of sums of up to a million terms, and of 1 − p for up to 1e10 trials
_NEGLIGIBLE, _BEYOND = 1e-35, 1e-25  # smaller terms are left out of sums; all of them together are less than the latter
_WIDEST, _BLOCKS = 400.0, 1500  # in sums over two distributions: deviations summed term by term, and terms
_PIECES, _MOST_LOOKS, _MOST_TRIALS = 20, 800, 10**10  # first intervals and halvings of a supremum; most draws
_NUISANCE = 1.0 / 50.0  # part of a failure probability that restricts Q(E) (Berger and Boos)
_COARSE, _SAME = 0.005, 1e-5  # what coarseness here may add to a failure probability; by how much equal figures differ
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Check:
    """Whether a result holds (None: unknown), why, and the confidence that the checker itself vouches for."""

    holds: bool | None
    reason: str
    confidence: float | None = None
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        word = {True: "holds", False: "does not hold", None: "cannot be checked"}[self.holds]
        return "\n".join([f"{word}: {self.reason}", *(f"  checked: {step}" for step in self.steps)])


class Stop(Exception):
    """Ends a check: the file contradicts itself (False), or does not say enough in a way that can be read (None)."""


def _agree(condition: object, otherwise: str) -> None:
    if not condition:
        raise Stop(False, otherwise)


def _alike(one: float, two: float, precision: float = _SAME) -> bool:
    return abs(one - two) <= precision * max(abs(one), abs(two))


def _get(data: Any, name: str) -> Any:
    if not isinstance(data, Mapping) or name not in data:
        raise Stop(None, f"it lacks {name!r}")
    return data[name]


def _numbers(values: Sequence[Any]) -> list[float]:
    if not all(type(value) in (int, float) and abs(value) < 1e300 for value in values):
        raise Stop(None, f"{values!r:.80} should be finite numbers")
    return [float(value) for value in values]


def _number(data: Any, name: str) -> float:
    return _numbers([_get(data, name)])[0]


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_TRIALS:
        raise Stop(None, f"{value!r:.40} should be a count of at most {_MOST_TRIALS}")
    return value


def _counts(data: Any, name: str) -> Counts:
    hits, trials = map(_whole, _get(data, name))
    _agree(hits <= trials, f"{name}: {hits} of {trials}")
    return hits, trials


class Binomial:
    """X ~ Binomial(n, p). Its lower tail is the upper one of n − X ~ Binomial(n, 1 − p)."""

    def __init__(self, n: int, p: float, widest: float = math.inf) -> None:
        """Sums weights relative to the largest one. All together they are 1/P(mode): no factorial is needed."""
        self.n, self.p, self._first, self._tails = n, p, n if p >= 1.0 else 0, [1.0]
        self._is_wide = 0.0 < p < 1.0 and n * p * (1.0 - p) > widest**2
        if self._is_wide or not 0.0 < p < 1.0:
            return
        odds, mode = p / (1.0 - p), min(n, int((n + 1) * p))
        up = accumulate(range(mode, n), lambda weight, k: weight * (n - k) / (k + 1) * odds, initial=1.0)
        down = accumulate(range(mode, 0, -1), lambda weight, k: weight * k / ((n - k + 1) * odds), initial=1.0)
        above, below = (list(takewhile(lambda weight: weight > _NEGLIGIBLE, each)) for each in (up, down))
        self._first, self._tails = mode - len(below) + 1, list(accumulate([*reversed(above), *below[1:]]))[::-1]

    def above(self, k: int) -> float:
        """P(X ≥ k); if it is wide, by P(X < k) ≥ Φ(±√(2·deviance of k − 1)), as Zubkov and Serov (2012) proved."""
        n, p = self.n, self.p
        if k <= 0 or k > n:
            return 1.0 if k <= 0 else 0.0
        if not self._is_wide:
            place = max(k - self._first, 0)
            inside = place < len(self._tails)
            return min(self._tails[place] / self._tails[0] * _UP + _BEYOND, 1.0) if inside else _BEYOND
        gap = k - 1 - n * p
        hits = (k - 1) * math.log1p(gap / (n * p)) if k > 1 else 0.0
        misses = (n - k + 1) * math.log1p(-gap / (n * (1.0 - p)))
        excess = hits + misses - math.copysign(1e-12 * (abs(hits) + abs(misses) + 1.0), gap)
        return min(0.5 * math.erfc(math.copysign(math.sqrt(max(excess, 0.0)), gap)) * _UP + _BEYOND, 1.0)


def _lower(hits: int, trials: int, failure: float) -> float:
    """A lower bound on the probability of an event that exceeds it with at most `failure` (Clopper and Pearson)."""
    share, z = hits / trials, _NORMAL.inv_cdf(1.0 - failure) + 2.0
    low, high = share - z * math.sqrt(share * (1.0 - share) / trials) - z * z / trials, share
    low = low if low > 0.0 and Binomial(trials, low, _WIDEST).above(hits) <= failure else 0.0
    for middle in (0.5 * (low + high) for _ in range(40 if hits else 0)):
        low, high = (middle, high) if Binomial(trials, middle, _WIDEST).above(hits) <= failure else (low, middle)
    return low


# ----- the exact test of P(E) ≤ e^ε·Q(E) + δ
class RejectionRegion:
    """{X ≥ threshold(Y)}: all counts at least as extreme as those that were seen, in an order fixed beforehand."""

    def __init__(self, n: int, m: int, threshold: Callable[[float], float], ends: tuple[float, float]) -> None:
        """Blocks of Y with the threshold of their lowest value: a region that contains the intended one."""
        self.n, self.m, self.ends = n, m, ends
        start = max(math.floor(m * ends[0] - 11.0 * math.sqrt(m * ends[0])) - 8, 0)
        stop = min(math.ceil(m * ends[1] + 11.0 * math.sqrt(m * ends[1])) + 40, m)
        self.edges = range(start, stop + 1, max((stop - start) // _BLOCKS, 1))
        # A threshold just above a whole number through rounding must not push that number out of the region.
        needed = [max(math.ceil(threshold(y) * (1.0 - 1e-12) - 1e-9), 0) for y in self.edges]
        self.needed = list(accumulate(reversed(needed), min))[::-1]  # never falling, whatever the threshold does

    def probability(self, p: float, q: float) -> float:
        """From above, for X ~ Binomial(n, p) and Y ~ Binomial(m, q): a sum of terms that are not negative."""
        x, misses = Binomial(self.n, p, _WIDEST), Binomial(self.m, 1.0 - q, _WIDEST)
        total, before = 0.0, 1.0
        for edge, needed in zip(self.edges, self.needed, strict=True):
            tail = x.above(needed)
            if tail < before:
                total += misses.above(self.m - edge + 1) * (before - tail)
                before = tail
        return min((total + before) * _UP, 1.0)

    def greatest(self, slope: float, shift: float, level: float) -> float:
        """A bound on the probability f for p = slope·q + shift with q between the ends, as sharp as the level needs.

        On an interval [a, b] of q two bounds hold: the corner, p at its top with q at its bottom (f grows with p and
        falls with q); and the chord, max(f(a), f(b)) + (b − a)²/8·I with the greatest Fisher information I about q:
        f'' = E[(1_R − ½)(S² + S')] with the score S, S' ≤ 0, E S² = −E S' = I. Beyond p = 1 the probability only falls.
        """

        def power(q: float) -> float:
            return min(slope * q + shift, 1.0)

        low, high = math.sqrt(self.ends[0]), math.sqrt(min(self.ends[1], max((1.0 - shift) / slope, self.ends[0])))
        points = [(low + (high - low) * number / _PIECES) ** 2 for number in range(_PIECES + 1)]
        values = [self.probability(power(q), q) for q in points]
        pieces = list(zip(points, points[1:], values, values[1:], strict=False))
        worst, looks = max(values), 0
        while pieces and worst <= level * (1.0 + 2.0 * _COARSE):
            a, b, at_a, at_b = pieces.pop()
            allowed = level if looks < _MOST_LOOKS else level * (1.0 + 0.9 * _COARSE)
            p, q = (max(min(c * (1.0 - c), d * (1.0 - d)), 1e-300) for c, d in ((power(a), power(b)), (a, b)))
            top = max(at_a, at_b) + (b - a) ** 2 / 8.0 * (slope * slope * self.n / p + self.m / q)
            top = top if top <= allowed else min(top, self.probability(power(b), a))
            if top <= allowed:
                worst = max(worst, top)
                continue
            middle = (0.5 * (math.sqrt(a) + math.sqrt(b))) ** 2
            between = self.probability(power(middle), middle)
            pieces += [(a, middle, at_a, between), (middle, b, between, at_b)]
            worst, looks = max(worst, between), looks + 1
            if looks > 2 * _MOST_LOOKS:
                raise Stop(None, "the test of these counts takes too long")
        return worst


def _restricted(y: int, m: int, side: float) -> tuple[float, float]:
    return _lower(y, m, side), 1.0 - _lower(m - y, m, side)


def _prove_line(line: Line, above: Counts, below: Counts, failure: float) -> float:
    # The p-value of p ≤ slope·q + δ, the restriction of q paid. Counts are ordered by their approximate score bound on
    # the slope, or by the excess P̂ − slope·Q̂ for a bound on δ. What is rejected at a bound is rejected below it.
    (x, n), (y, m), (slope, delta, by_excess), level = above, below, line, failure * (1.0 - _NUISANCE)
    slope, z, start = slope * (1.0 + 1e-12), _NORMAL.inv_cdf(1.0 - level), n * delta
    s = x - start
    constant, middle = s * s - z * z * start, 2.0 * s * y + z * z * (s + y)
    root = math.sqrt(max(middle * middle - 4.0 * y * y * constant, 0.0))
    r = 2.0 * constant / (middle + root) if s > 0.0 else 0.0

    def by_score(right: float) -> float:
        return start + r * right + z * (0.5 * z * r + math.sqrt(r * right * (1.0 + r) + z * z * r * r / 4.0 + start))

    if r <= 0.0 and not by_excess:
        return 1.0
    order = (lambda right: x + slope * n / m * (right - y)) if by_excess else by_score
    region = RejectionRegion(n, m, order, _restricted(y, m, 0.5 * failure * _NUISANCE))
    return region.greatest(slope, delta * (1.0 + 1e-12), level) + failure * _NUISANCE


# ----- claims: of every notion its own parameter and the others; and what two bounds prove
_NOTIONS: dict[str, list[str]] = {"pure": ["epsilon"], "zcdp": ["rho"], "approx": ["epsilon", "delta"]}
_NOTIONS |= {"approx-delta": ["delta", "epsilon"], "renyi": ["epsilon", "order"]}
_NOTIONS |= {"gaussian": ["mu", "at_delta"], "tradeoff": ["excess", "curve"]}
_RATIO = ("pure", "approx", "approx-delta")
_ORDERS: list[float] = [1.0 + 10.0 ** (-3.0 + 7.0 * number / 159.0) for number in range(160)]


@dataclass(frozen=True)
class StoredClaim:
    """A notion, the value of its own parameter, and the other parameters."""

    notion: str
    value: float
    fixed: Mapping[str, Any]

    @classmethod
    def _read(cls, data: Any) -> StoredClaim:
        names = _NOTIONS.get(str(_get(data, "notion")), [])
        if not names or not {*names} - {"at_delta"} <= set(data) - {"notion"} <= {*names}:
            raise Stop(None, f"a claim {data!r:.80} is not known")
        for name in set(data) - {"notion", "curve"}:
            most = 1.0 if name in ("delta", "at_delta") else 1e300
            _agree((name == "order") <= _number(data, name) < most, f"a claim with {name} = {data[name]}")
        if "curve" in data and (sorted(set(data["curve"][0])) != data["curve"][0] or len(data["curve"][0]) < 2):
            raise Stop(None, "the claimed curve is not a list of points")
        return cls(data["notion"], float(data[names[0]]), {name: data[name] for name in names[1:] if name in data})

    def at(self, value: float) -> Line:
        """The line P(E) ≤ e^ε·Q(E) + δ at a value of the own parameter."""
        both = {**self.fixed, _NOTIONS[self.notion][0]: value}
        return math.exp(min(both.get("epsilon", value), 700.0)), both.get("delta", 0.0), "epsilon" in self.fixed

    def least_value(self, p: float, q: float, near: Any = None) -> float:
        """The least value of the own parameter that allows P(E) = p and Q(E) = q; `near` has more of the curve."""
        grow, delta, _ = self.at(0.0)
        if self.notion == "tradeoff":
            f, (xs, ys) = _interpolated(q, *(near or self.fixed["curve"])), self.fixed["curve"]
            return p - 1.0 + (float(min(ys[max(bisect_right(xs, q) - 2, 0)], 1.0 - q, f)) if near else f)
        if self.notion == "approx-delta":
            return max(p - grow * q, (1.0 - q) - grow * (1.0 - p))
        if not 0.0 < q < p < 1.0:
            return math.inf if q < p else 0.0
        if self.notion == "gaussian":
            return _NORMAL.inv_cdf(p) - _NORMAL.inv_cdf(q)
        if self.notion == "renyi":
            return _divergences(p, q, [self.fixed["order"]])[0]
        if self.notion == "zcdp":
            divided = [each / order for each, order in zip(_divergences(p, q, _ORDERS), _ORDERS, strict=True)]
            return max([_entropy(p, q), _entropy(q, p), *divided])
        return math.log(max((p - delta) / q, (1.0 - q - delta) / (1.0 - p), 1.0))


def _divergences(p: float, q: float, orders: Sequence[float]) -> list[float]:
    """The larger Rényi divergence of two coins at each order."""
    found = [0.0] * len(orders)
    for a, b in ((p, q), (q, p)):
        logs = math.log(a), math.log(b), math.log1p(-a), math.log1p(-b)
        for place, order in enumerate(orders):
            one, two = order * logs[0] + (1.0 - order) * logs[1], order * logs[2] + (1.0 - order) * logs[3]
            both = max(one, two) + math.log1p(math.exp(-abs(one - two)))
            found[place] = max(found[place], both / (order - 1.0))
    return found


def _entropy(p: float, q: float) -> float:
    return p * math.log(p / q) + (1.0 - p) * (math.log1p(-p) - math.log1p(-q))


def _interpolated(x: float, xs: list[float], ys: list[float]) -> float:
    place = min(max(bisect_right(xs, x), 1), len(xs) - 1)
    part = min(max((x - xs[place - 1]) / (xs[place] - xs[place - 1]), 0.0), 1.0)
    return ys[place - 1] + part * (ys[place] - ys[place - 1])


def _prove_curve(finding: StoredFinding, above: Counts, below: Counts, share: Any) -> float:
    """The least failure probability at which two Clopper–Pearson bounds prove the bound, split as was fixed before."""
    (x, n), (y, m), claim, bound = above, below, finding.claim, finding.bound
    _agree(0.0 < _numbers([share])[0] < 1.0, f"a share of {share}")

    def price(p: float, q: float) -> tuple[float, float]:
        return Binomial(n, p).above(x) / share, Binomial(m, 1.0 - q).above(m - y) / (1.0 - share)

    if "curve_at" in finding.details:  # a point of the curve between those of the claim
        (q, f), (xs, ys) = finding.details["curve_at"], claim.fixed["curve"]
        highest = min(ys[max(bisect_right(xs, q) - 2, 0)], 1.0 - q)
        _agree(_interpolated(q, xs, ys) - 1e-9 <= f <= highest + 1e-9, f"the claimed curve is not {f} at {q}")
        return max(price(bound + 1.0 - f, q))
    low, best = y / m, 1.0
    high = min(low + 12.0 * math.sqrt(low * (1.0 - low) / m) + 100.0 / m, 1.0)
    for q in (0.5 * (low + high) for _ in range(28)):
        allowed, refused = q, 1.0
        for _ in range(55):
            p = 0.5 * (allowed + refused)
            allowed, refused = (allowed, p) if claim.least_value(p, q) >= bound else (p, refused)
        there, back = price(refused, q)
        best = min(best, max(there, back))
        low, high = (q, high) if there < back else (low, q)
    return best


# ----- bets: a wealth whose mean is at most 1 under a claim reaches 1/f with probability at most f
def _prove_divergence(finding: StoredFinding, divergence: float, order: float) -> float:
    # ∏ (1 + λg(e^((α−1)h(X)) − 1))·∏ (1 − λ(n/m)(e^(r+αh(Y)) − 1)) bets against D ≤ r, h constant on cells. Its mean is
    # at most 1: Hölder's inequality, the tangent of a convex power (g = α/(α − 1)), and 1 + x ≤ e^x.
    scores, stake = _numbers(_get(finding.witness["event"], "scores")), _number(finding.details, "stake")
    cells = [list(map(_whole, _get(_get(finding.details, "cells"), side))) for side in ("left", "right")]
    above, below = cells[::-1] if finding.flipped else cells
    fits = len(above) == len(below) == len(scores) and (sum(above), sum(below)) == (finding.above[1], finding.below[1])
    favoured = _chosen(finding.witness["event"])
    hits = tuple(sum(counts[cell] for cell in favoured) for counts in (above, below))
    _agree(fits and hits == (finding.above[0], finding.below[0]), "the counts of the cells do not fit the score")
    gains = [1.0 + stake * order / (order - 1.0) * math.expm1((order - 1.0) * h) for h in scores]
    losses = [1.0 - stake * sum(above) / sum(below) * math.expm1(divergence + order * h) for h in scores]
    counted = [*zip(above, gains, strict=True), *zip(below, losses, strict=True)]
    if not 0.0 < stake < (order - 1.0) / order or min(losses) < -1e-12 or any(k and f <= 0.0 for k, f in counted):
        return 1.0
    terms = [k * math.log(factor) for k, factor in counted if k]
    return math.exp(-max(math.fsum(terms) - 1e-12 * (1.0 + math.fsum(map(abs, terms))), 0.0))


def _prove_batches(claim: StoredClaim, bound: float, batches: Sequence[Any]) -> float:
    """A sequential audit: the wealth must have reached 1/f against every value up to the bound that was bet against."""
    bets: list[Any] = []
    for each in batches:
        counts, share = (_counts(each, "left"), _counts(each, "right")), _number(each, "share")
        guess = (min(max(_number(each, name), 1e-9), 1.0 - 1e-9) for name in ("p1", "q1"))
        _agree(0.0 < share <= 1.0 + 1e-9 and counts[0][1] * counts[1][1] > 0, f"a bet of {share} on {counts}")
        bets.append((share, *(counts[::-1] if _get(each, "flipped") else counts), *guess))
    rungs = [rung for rung in _ladder(claim) if rung[0] <= bound * (1.0 + 1e-12)]
    _agree(rungs and _alike(rungs[-1][0], bound, 1e-12), f"no sequential audit bets against {bound}")
    if len(rungs) * len(bets) > 10**5:
        raise Stop(None, "there are too many bets")
    worst = 0.0
    for _, lines in rungs:
        wealth = best = paid = won = 0.0
        for share, *bet in bets:  # those whose shares sum to 1 are one batch
            won, paid = won + share * math.exp(_won(lines, *bet)), paid + share
            if paid > 1.0 - 1e-9:
                wealth += math.log(won) - 1e-9
                best, paid, won = max(best, wealth), 0.0, 0.0
        worst = max(worst, math.exp(-best))
    return worst


def _won(lines: list[tuple[float, float]], above: Counts, below: Counts, p1: float, q1: float) -> float:
    # The likelihood ratio of a guess to a point (p0, q0) of the best line. Its mean is at most e^(n·a·(p − p0) + m·b·
    # (q − q0)), below the line e^((n·a·slope + m·b)·(q − q0) + n·a·(slope·q0 + shift − p0)): that is subtracted.
    (x, n), (y, m) = above, below
    growth, p0, q0, slope, shift = max(_projected(*line, n, m, p1, q1) for line in lines)
    if growth <= 0.0:
        return 0.0
    a, b = (p1 - p0) / (p0 * (1.0 - p0)), (q1 - q0) / (q0 * (1.0 - q0))
    terms = [x * math.log(p1 / p0), (n - x) * (math.log1p(-p1) - math.log1p(-p0))]
    terms += [y * math.log(q1 / q0), (m - y) * (math.log1p(-q1) - math.log1p(-q0))]
    given = abs(n * a * slope + m * b) + n * a * max(slope * q0 + shift - p0, 0.0)
    return min(math.fsum(terms) - given - 1e-12 * math.fsum(map(abs, terms)), 700.0)


def _projected(slope: float, shift: float, n: int, m: int, p1: float, q1: float) -> tuple[float, ...]:
    """The least n·KL(p1‖p) + m·KL(q1‖q) on a line (0 if the guess is below), and where."""
    low = max(q1, (1e-9 - shift) / slope)
    high = min((1.0 - 1e-9 - shift) / slope, (p1 - shift) / slope, 1.0 - 1e-9)
    if p1 <= slope * q1 + shift or high <= low:
        return 0.0, p1, q1, slope, shift
    for q in (0.5 * (low + high) for _ in range(44)):
        p = min(max(slope * q + shift, 5e-10), 1.0 - 5e-10)
        rising = n * slope * (p - p1) / (p * (1.0 - p)) + m * (q - q1) / (q * (1.0 - q)) > 0.0
        low, high = (low, q) if rising else (q, high)
    return (n * _entropy(p1, p) + m * _entropy(q1, q) if p < p1 else 0.0), p, q, slope, shift


def _ladder(claim: StoredClaim) -> list[tuple[float, list[tuple[float, float]]]]:
    """The values that a sequential audit bets against, and slope and shift of lines above all that each allows."""
    if claim.notion not in (*_RATIO, "gaussian"):
        raise Stop(None, f"bets against {claim.notion} claims are not checked here")
    grid = [number / 40.0 for number in range(81)] + [2.1 + number / 10.0 for number in range(40)]
    grid = grid[:81:2] + grid[81:] if claim.notion == "gaussian" else grid + [6.25 + each / 4.0 for each in range(32)]
    if claim.notion == "approx-delta":
        grid = [0.0, *(1e-5 * 95000.0 ** (number / 59.0) for number in range(60))]
    found = []
    for value in sorted([*grid, claim.value * (1.0 + 1e-9) + 1e-12]):
        grow, delta, _ = claim.at(value)
        lines = [(grow, delta), (1.0 / grow, 1.0 - (1.0 - delta) / grow)]
        if claim.notion == "gaussian":
            slopes = {z: math.exp(-value * z - 0.5 * value * value) for z in (0.3 * each - 4.2 for each in range(29))}
            lines = [(s, _NORMAL.cdf(z + value) - s * _NORMAL.cdf(z) + 1e-11) for z, s in slopes.items()]
        found.append((value, lines))
    return found


@dataclass(frozen=True)
class StoredFinding:
    """One stored finding; `above` and `below` are the counts of its witness under the likelier side and the other."""

    method: str
    bound: float
    guarantee: str
    failure: float
    claim: StoredClaim
    details: Mapping[str, Any]
    witness: Any
    flipped: bool = False
    above: Counts = (0, 0)
    below: Counts = (0, 0)

    @classmethod
    def _read(cls, data: Any) -> StoredFinding:
        bound, confidence = _number(data, "lower_bound"), _number(data, "confidence")
        method, guarantee, details, witness = map(data.__getitem__, ("method", "guarantee", "details", "witness"))
        known = guarantee in ("exact", "asymptotic") or guarantee.startswith(("conditional: ", "none: "))
        _agree(bound >= 0.0 < confidence < 1.0 and known, f"{guarantee} bound {bound} at confidence {confidence}")
        always = method in ("events", "bits", "profile", "sequential", "renyi-bet") and "Gaussian" not in guarantee
        never = method in ("local", "renyi-floored", "ldp-histogram")
        _agree(not (always if guarantee != "exact" else never), f"the guarantee of {method} is not {guarantee}")
        found = method, bound, guarantee, 1.0 - confidence, StoredClaim._read(_get(data, "claim")), details, witness
        if witness is None:
            return cls(*found)
        side = _get(witness, "likelier_under")
        _agree(side in ("left", "right"), f"likelier under {side!r:.40}")
        counts = _counts(witness, "left_counts"), _counts(witness, "right_counts")
        return cls(*found, side == "right", *(counts[::-1] if side == "right" else counts))

    def needed(self) -> float:
        """The failure probability that the proof of the bound takes; also checks all parts of the proof."""
        proofs = {"profile": self._needed_by_band, "sequential": self._needed_by_batches}
        proofs |= dict.fromkeys(("renyi-bet", "renyi-variational"), self._needed_by_bet)
        proofs |= dict.fromkeys(("events", "bits", "hockey-stick", "poisson-histogram"), self._needed_by_event)
        if self.witness is None or self.method not in proofs or "certificate" in self.details:
            raise Stop(None, f"the counts in the file are not what a bound of {self.method:.40} is made of")
        if self.method not in ("profile", "sequential"):
            bounds = [self.witness.get("p_lower"), self.witness.get("q_upper")]
            self._check_tails(bounds, self.above, self.below, 0.5, self.failure)
        return proofs[self.method]()

    def _needed_by_event(self) -> float:
        if self.bound == 0.0 or self.above[0] * self.below[1] <= self.below[0] * self.above[1]:
            return float(self.bound > 0.0)  # no bound, or the event was not seen more often where it should be
        if self.claim.notion in _RATIO:
            return _prove_line(self.claim.at(self.bound), self.above, self.below, self.failure)
        share = self.details.get("left_share")  # of two bounds, in results of earlier versions
        return self._needed_by_line() if share is None else _prove_curve(self, self.above, self.below, share)

    def _needed_by_line(self) -> float:
        # A refuted line refutes the curves below it; values grow with p and fall with q, so corners prove least.
        slope, shift = _numbers(_get(self.details, "line"))
        turned, sides = (False, True).index(_get(self.details, "complement")), (self.above, self.below)
        above, below = ((n - k, n) for k, n in sides[::-1]) if turned else sides
        low, high = map(math.sqrt, _restricted(*below, 0.5 * self.failure * _NUISANCE))
        q = [(low + (high - low) * number / 1024.0) ** 2 for number in range(1025)]
        corners = [(min(slope * left + shift, 1.0), right) for left, right in pairwise(q)]
        near, by_excess = self.details.get("curve_near"), {"shift": False, "slope": True}[self.details["fixed"]]
        values = (self.claim.least_value(*((1.0 - b, 1.0 - a) if turned else (a, b)), near) for a, b in corners)
        _agree(shift >= 0.0 and all(v >= self.bound * (1.0 - _SAME) for v in values), "the line proves less")
        return _prove_line((slope, shift, by_excess), above, below, self.failure)

    def _check_tails(self, bounds: Sequence[Any], above: Counts, below: Counts, share: float, failure: float) -> None:
        """Whether stored Clopper–Pearson bounds are those of their counts, neither more nor less."""
        p, q = _numbers(bounds)
        below = below[1] - below[0], below[1]
        for bound, counts, price in ((p, above, failure * share), (1.0 - q, below, failure * (1.0 - share))):
            there = Binomial(counts[1], bound).above(counts[0]) if counts[0] else price * (bound == 0.0)
            _agree(_alike(there, price, _SAME + 1e-15 / price), f"a bound of {bound} from {counts[0]} of {counts[1]}")

    def _needed_by_band(self) -> float:
        """Nested events, each bounded at its part of the failure probability; the witness proves the bound."""
        names = ("left_hits", "right_hits", "left_shares", "p_lower", "q_upper")
        rows, shares = list(zip(*(_get(self.details, name) for name in names), strict=True)), []
        for left, right, share, *bounds in rows:
            hits, misses = (right, left) if self.flipped else (left, right)
            above, below = (_whole(hits), self.above[1]), (_whole(misses), self.below[1])
            self._check_tails(bounds, above, below, _numbers([share])[0], self.failure / len(rows))
            if (above, below, bounds) == (self.above, self.below, [self.witness["p_lower"], self.witness["q_upper"]]):
                shares.append(share)
        _agree(shares and self.details.get("flipped") is self.flipped, "the witness is none of the band's events")
        return len(rows) * _prove_curve(self, self.above, self.below, shares[0]) if self.bound > 0.0 else 0.0

    def _needed_by_batches(self) -> float:
        batches = _get(self.details, "batches")
        last = [(*each["left"], *each["right"]) for each in batches[::-1] if each["stake"] == 0]
        sums = zip(*(accumulate(column) for column in zip(*last, strict=True)), strict=True)
        stored = (*self.witness["left_counts"], *self.witness["right_counts"])
        _agree(stored in sums, "the witness was not counted in the last batches")
        return _prove_batches(self.claim, self.bound, batches) if self.bound > 0.0 else 0.0

    def _needed_by_bet(self) -> float:
        order, divergence = _number(self.details, "order"), _number(self.details, "divergence_lower")
        proved = self.bound * (order if self.claim.notion == "zcdp" else 1.0)
        if self.claim.notion == "pure":  # randomized response has the greatest divergence
            logs = [part * self.bound + math.log1p(math.exp(-2.0 * part * self.bound)) for part in (order - 0.5, 0.5)]
            proved = (logs[0] - logs[1]) / (order - 1.0)
        same = order == self.claim.fixed.get("order", order) == _get(self.witness["event"], "order")
        same = same and (_alike(proved, divergence) or proved + divergence < 1e-9)
        _agree(same, f"the divergence {divergence} of order {order} does not give the bound")
        return _prove_divergence(self, divergence, order) if divergence > 0.0 else 0.0


# ----- what the file says twice, or what follows from something else in it
def _check_document(document: Any, findings: list[StoredFinding]) -> None:
    first, settings = findings[0], _get(document, "settings")
    for name in ("lower_bound", "guarantee", "claim", "witness"):
        _agree(_get(document, name) == document["findings"][0][name], f"result and first finding differ in {name}")
    _agree(settings.get("confidence", asked := document["confidence"]) == asked, "another confidence was asked for")
    certain = first.above[0] == first.above[1] > 0 == first.below[0] < first.below[1]
    doubtful = first.guarantee.startswith("none") or any(each["untrusted"] is not False for each in document["health"])
    expected = "refuted" if first.bound > first.claim.value else "not refuted"
    expected = "inconclusive" if doubtful and not (certain and expected == "refuted") else expected
    verdict, detectable = _get(document, "verdict"), _get(document, "detectable")
    if verdict is None:
        _agree(first.claim.value == 0.0 and detectable is None, "a measurement without a verdict has a claim")
    else:
        _agree(verdict == expected, f"the verdict is {verdict!r:.40}, and should be {expected!r}")
        low = isinstance(detectable, float | int) and detectable < first.claim.value * (1.0 - _SAME)
        _agree(not low, f"a claim of {first.claim.value} cannot be refuted at {detectable}")
    used = list(map(_whole, _get(document, "samples_used")))
    most = _whole(settings.get("samples", max(used)))
    _agree("finder" in settings or max(used) <= most, f"{max(used)} draws were used, {most} asked for")
    for each in findings:
        trials = (each.below[1], each.above[1]) if each.flipped else (each.above[1], each.below[1])
        _agree(all(n <= min(m, most) for n, m in zip(trials, used, strict=True)), f"{trials} of {used} draws counted")
    _check_budget(findings, 1.0 - _number(document, "confidence"), settings)


def _check_budget(findings: list[StoredFinding], failure: float, settings: Any) -> None:
    """Which findings there must be, and what all of them together may get wrong."""
    first, at_delta = findings[0], findings[0].claim.fixed.get("at_delta", -1.0)
    implied = [each for each in findings if each.guarantee == "conditional: if the noise is Gaussian"]
    paid = [each for each in findings if each not in implied]
    _agree(len(implied) == (at_delta >= 0.0), "findings along the Gaussian curve: too many or too few")
    for each in implied:
        fits = (each.claim.fixed, each.failure, each.method) == ({"delta": at_delta}, first.failure, first.method)
        for mu, epsilon in ((first.bound, each.bound), (first.claim.value, each.claim.value)):
            z = [(side * 0.5 * mu - epsilon / mu if mu > 0.0 else -math.inf) for side in (1.0, -1.0)]
            there = _NORMAL.cdf(z[0]) - math.exp(epsilon) * _NORMAL.cdf(z[1])
            fits = fits and (_alike(there, at_delta, 1e-4) or (epsilon == 0.0 and there <= at_delta))
        _agree(fits, "a finding is off the Gaussian curve")
    prices = _numbers([price for _, price in first.details.get("paid", [])]) or [each.failure for each in paid]
    same = len(prices) == len(paid) and all(map(_alike, sorted(prices), sorted(each.failure for each in paid)))
    _agree(same and all(each.claim == first.claim for each in paid), "the findings are not those that were paid for")
    spent, spare = math.fsum(each.failure for each in paid), 1e-9 * failure + 1e-15
    if "paid" not in first.details:
        _agree(len(paid) == 1 + (settings.get("representation") == "all"), "findings: too many or too few")
        _agree(spent >= failure - spare, "the findings have more confidence than the result")
    _agree(spent <= failure + spare, f"the findings may err with {spent:.6g}, the result with {failure:.6g}")


# ----- counting the event again on the draws that `record=draws.jsonl` kept
def _recount(finding: StoredFinding, path: Path) -> str:
    """Counts the witness's event on the draws that proved it: the last ones that were drawn of each input."""
    event, wanted = finding.witness["event"], [finding.witness["pair"][side] for side in ("left", "right")]
    stored = [finding.witness[f"{side}_counts"] for side in ("left", "right")]
    with path.open(encoding="utf-8") as lines:
        pairs = _get(json.loads(next(lines)), "pairs")
        keys = list(dict.fromkeys(json.dumps(pair[side]) for pair in pairs for side in ("left", "right")))
        places = [keys.index(json.dumps(each)) if json.dumps(each) in keys else -1 for each in wanted]
        if -1 in places or places[0] == places[1]:
            raise Stop(None, f"{path} does not distinguish the draws of the two inputs")
        last = {place: deque[int](maxlen=trials) for place, (_, trials) in zip(places, stored, strict=True)}
        cell_of = _cells(_get(event, "partition"))
        for chunk in map(json.loads, lines):
            for block in chunk["blocks"] if chunk.get("dataset") in last else ():
                rows = zip(*map(_column, block["columns"]), strict=True) if block["columns"] else [()] * block["size"]
                last[chunk["dataset"]] += [cell_of(block["shape"], row) for row in rows]
    chosen = _chosen(event)
    counted = [[sum(cell in chosen for cell in last[place]), len(last[place])] for place in places]
    _agree(counted == stored, f"in {path} the event was seen {counted} times (left, right), not {stored}")
    return f"the event happened as often in the draws of {path}"


def _chosen(event: Any) -> set[int]:
    """The cells of an event; those of a score are the ones above its mean over both distributions."""
    if _get(event, "kind") == "cells":
        return set(event["chosen"])
    if event["kind"] != "log-ratio":
        raise Stop(None, f"events of the kind {event['kind']!r:.40} are not counted again here")
    middle = 0.5 * math.fsum((p + q) * h for p, q, h in zip(event["p"], event["q"], event["scores"], strict=True))
    return {cell for cell, score in enumerate(event["scores"]) if score > middle}


def _cells(partition: Any) -> Callable[[str, Sequence[Any]], int]:
    """Finds the cell of an output: by its shape, then by its repeated values, then by its place on a line."""
    blocks: dict[str, tuple[Any, dict[tuple[int, ...], tuple[int, Any]], int]] = {}
    first = 0
    for block in partition:
        groups = {}
        for group in block["groups"]:
            groups[tuple(group["signature"])] = first, group
            first += len(group["edges"]) + 2 if "edges" in group else 1
        atoms = [{value: code for code, value in enumerate(_column(each or {}))} for each in block["atoms"]]
        blocks[block["shape"]] = atoms, groups, first
        first += 1

    def cell_of(shape: str, values: Sequence[Any]) -> int:
        if shape not in blocks:
            if any("featured{" in known for known in blocks) and "featured{" not in shape:
                raise Stop(None, "the event looks at features of the outputs, which were not recorded beside them")
            return first
        atoms, groups, rest = blocks[shape]
        signature = tuple(codes.get(value, -1) for codes, value in zip(atoms, values, strict=True)) or (0,)
        start, group = groups.get(signature, (rest, {}))
        if "edges" not in group:
            return start
        value = _score(group["score"], values) if "score" in group else values[group["column"]]
        return start + _on_line(group["edges"], value)

    return cell_of


def _column(data: Any) -> list[Any]:
    """The values of a column: names as tuples, so that none passes for a number, and one NaN, which equals itself."""
    if "labels" in data:
        return [(data["labels"][code],) for code in data.get("codes", range(len(data["labels"])))]
    numbers = (float(value) for values in data.values() for value in values)
    return [math.nan if math.isnan(value) else value for value in numbers]


def _on_line(edges: Sequence[Any], value: float) -> int:
    return len(edges) + 1 if math.isnan(value) else bisect_right(edges, value, key=float)


def _score(score: Any, values: Sequence[Any]) -> float:
    if score.get("kind", "additive") != "additive":
        raise Stop(None, f"scores of the kind {score['kind']!r:.40} are not evaluated here")
    total = 0.0
    for term in score["terms"]:
        mixed = (share * value for share, value in zip(term.get("mix", ()), values, strict=False) if share)
        x = [*accumulate(mixed, initial=0.0)][-1] if "mix" in term else values[term["column"]]  # rounds as the audit
        total += term["weights"][_on_line(term["edges"], x) if "edges" in term else [*term["labels"], *x].index(*x)]
    return total


def verify(result: Any, recording: str | os.PathLike[str] | None = None) -> Check:
    """Checks an `AuditResult`, its plain data, its JSON text or its file; given the draws, counts the event again.

    >>> em.verify(em.audit(em.zoo.dp_mean(), samples=1000, seed=0)).holds
    True
    """
    try:
        return _verified(_read(result), recording)
    except Stop as stop:
        return Check(*stop.args)
    except OSError as error:
        return Check(None, f"{error.filename}: {error.strerror}")
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        return Check(None, f"this is not what an audit stores: {error!r:.200}")


def _read(result: Any) -> Any:
    text = result.to_json() if hasattr(result, "to_json") else result
    if isinstance(text, os.PathLike) or (isinstance(text, str) and not text.lstrip().startswith("{")):
        text = Path(text).read_text(encoding="utf-8")
    return json.loads(json.dumps(text) if isinstance(text, Mapping) else text)


def _verified(document: Any, recording: str | os.PathLike[str] | None) -> Check:
    if _get(document, "schema_version") != 1:
        raise Stop(None, f"schema_version = {document['schema_version']!r:.40} is not known; this checker reads 1")
    findings = [StoredFinding._read(each) for each in _get(document, "findings")]
    _check_document(document, findings)
    steps, total = ["verdict, claim, bound, confidence, findings and draws agree"], 0.0
    for each in findings:
        if each.guarantee == "exact":
            needed = max(each.needed(), each.failure)
            proved = f"that {each.method} proves {each.claim.notion} {each.bound:.6g} at confidence {1.0 - needed:.6g}"
            _agree(needed <= each.failure * (1.0 + _COARSE) + 1e-15, f"the counts show only {proved}")
            total, steps = total + needed, [*steps, f"the counts show {proved}"]
    steps += [_recount(findings[0], Path(recording))] if recording is not None else []
    if findings[0].guarantee != "exact":
        raise Stop(None, f"the guarantee is {findings[0].guarantee!r:.80}: no count proves that")
    level = 1.0 - max(total, 1.0 - document["confidence"])
    whose = " (what its features compute is not checked)" if document["settings"].get("features") else ""
    return Check(True, f"the bound {findings[0].bound:.6g} at confidence {level:.6g}{whose}", level, tuple(steps))


def main(arguments: Sequence[str]) -> int:
    """Prints the answer; the exit status is 0, 1 or 2."""
    fits, usage = [*arguments[1:2]] in ([], ["--recording"]), "usage: checker.py result.json [--recording draws.jsonl]"
    check = verify(Path(arguments[0]), *arguments[2:]) if fits and len(arguments) in (1, 3) else Check(None, usage)
    sys.stdout.write(f"{check}\n")
    return {True: 0, False: 1, None: 2}[check.holds]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
