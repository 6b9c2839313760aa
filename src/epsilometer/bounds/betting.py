"""Evidence that may be looked at any time: bets against a claim on the counts of an event.

A claim confines the probabilities (p, q) of any event to a convex set below its curve `max_power`,
hence below each line p = slope·q + shift that lies above the curve. Against one such line, and for
a guess (p1, q1) above it, the bet is the likelihood ratio of the guess to its projection (p0, q0):
the point of the line with the least weighted divergence.

Why the bet is fair: with a = (p1 − p0)/(p0(1 − p0)) and b = (q1 − q0)/(q0(1 − q0)), one left draw
multiplies the expected wealth by 1 + a·(p − p0) ≤ exp(a·(p − p0)), one right draw by at most
exp(b·(q − q0)). For n and m draws the exponents add up to n·a·(p − p0) + m·b·(q − q0), which below
the line is at most (n·a·slope + m·b)·(q − q0); the projection makes that bracket 0. What rounding
leaves of it is subtracted, so the bound holds for the numbers computed.

Guarantee: the product of such bets, each fixed before its draws, exceeds 1/f at any time with
probability at most f (Ville). Exact at any stopping time.

Reference: Turner, Ly, Grünwald, "Generic E-variables for exact sequential k-sample tests that allow
for optional stopping" (2021).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaln, ndtr, rel_entr

from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.bounds.binomial import Counts
from epsilometer.claims import (
    ZCDP,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
    bernoulli_divergence,
)
from epsilometer.errors import InputError

# Guesses and projections stay this far from 0 and 1, where a bet could lose everything.
_MARGIN = 1e-9
# Halvings of an interval below 1. What a projection misses by 2^-44 is subtracted from the wealth,
# and is negligible.
_HALVINGS = 44
# Orders at which a zero-concentrated claim is tested: fewer orders allow more, so the bets stay
# fair.
_ORDERS: Floats = 1.0 + np.geomspace(1e-2, 1e3, 32)
# No divergence of coins that keep `_MARGIN` from 0 and 1 comes near this.
_MOST_DIVERGENCE = 1e6
# Added to every line found from points of a curve: more than rounding can take away.
_SAFE = 1e-11


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines p = slope·q + shift above the curves of some claims.

    Attributes:
        slopes: shape (claims, lines).
        shifts: the same shape.
    """

    slopes: Floats
    shifts: Floats


def lines_of(claims: tuple[Claim, ...]) -> Lines:
    """The supporting lines of claims of one kind."""
    return Lines(*map(np.stack, zip(*map(supporting_lines, claims), strict=True)))


@lru_cache(maxsize=4096)
def supporting_lines(claim: Claim) -> tuple[Floats, Floats]:
    """Slopes and shifts of lines that the claim's curve never exceeds, each of shape (lines,)."""
    if isinstance(claim, PureDP | ApproxDP):
        grow = np.exp(min(claim.epsilon, 700.0))
        return np.array([grow, 1.0 / grow]), np.array(
            [claim.delta, 1.0 - (1.0 - claim.delta) / grow]
        )
    if isinstance(claim, GaussianDP):
        z = np.linspace(-4.2, 4.2, 29)
        slopes = np.exp(-claim.mu * (z + 0.5 * claim.mu))
        return slopes, ndtr(z + claim.mu) - slopes * ndtr(z) + _SAFE
    return _lines_above_steps(claim) if isinstance(claim, TradeOffDP) else _lines_above_curve(claim)


def _lines_above_curve(claim: Claim) -> tuple[Floats, Floats]:
    """For a concave curve: between two points it stays below the extensions of the neighbouring chords."""
    q = ndtr(np.linspace(-3.6, 3.6, 28))
    if isinstance(claim, RenyiDP):  # at all q at once, which is faster; never below `max_power`
        power = _renyi_curve(q, np.array([claim.order]), np.array([claim.epsilon]))
    elif isinstance(claim, ZCDP):
        power = zero_concentrated_curve(claim.rho, q)
    else:
        power = np.array([claim.max_power(float(each)) for each in q])
    slope = np.diff(power) / np.diff(q)
    start = power[:-1] - slope * q[:-1]
    before = slope[:-2]
    here = slope[1:-1]
    after = slope[2:]
    gap = before - after
    flat = gap <= 1e-12
    corner = np.clip((start[2:] - start[:-2]) / np.where(flat, 1.0, gap), q[1:-2], q[2:-1])
    top = np.minimum(start[:-2] + before * corner, start[2:] + after * corner)
    shift = np.where(flat, -np.inf, top - here * corner)
    at_ends = np.maximum(power[1:-2] - here * q[1:-2], power[2:-1] - here * q[2:-1])
    # A steeper line through the same start lies higher; a flat one would have no projection.
    return np.maximum(here, 1e-9), np.maximum(shift, at_ends) + _SAFE


def zero_concentrated_curve(rho: float, q: Floats) -> Floats:
    """At least the greatest power that ρ-zero-concentrated privacy allows at each q, from some of its orders."""
    return _renyi_curve(q, _ORDERS, min(rho, _MOST_DIVERGENCE) * _ORDERS)


def _renyi_curve(q: Floats, orders: Floats, limits: Floats) -> Floats:
    """The greatest p whose coin stays within a limit of the coin q at every order, by bisection from above."""
    allowed = q.copy()
    refused = np.ones(len(q))
    for _ in range(_HALVINGS):
        middle = 0.5 * (allowed + refused)
        there = bernoulli_divergence(middle[:, None], q[:, None], orders)
        back = bernoulli_divergence(q[:, None], middle[:, None], orders)
        # What is not a number counts as allowed: a curve that is too high costs power, never
        # soundness.
        inside = ~np.any(np.maximum(there, back) > limits, axis=1)
        allowed = np.where(inside, middle, allowed)
        refused = np.where(inside, refused, middle)
    return refused


def _lines_above_steps(claim: Claim) -> tuple[Floats, Floats]:
    """For any curve that never decreases: between two points it stays below its value at the right one."""
    q = np.unique(
        np.concatenate(
            [[0.0, 1.0], np.geomspace(1e-7, 1.0, 700), ndtr(np.linspace(-4.0, 4.0, 1400))]
        )
    )
    power = claim.max_power(q)
    coarse = ndtr(np.linspace(-3.6, 3.6, 28))
    slopes = np.maximum(np.diff(claim.max_power(coarse)) / np.diff(coarse), 1e-9)
    return slopes, np.max(power[1:] - slopes[:, None] * q[:-1], axis=1) + _SAFE


@dataclass(frozen=True, slots=True)
class Bets:
    """One bet per claim, for n left and m right draws.

    Attributes:
        log_factors: shape (claims, 4): what a left hit, left miss, right hit and right miss add to
            the log-wealth.
        slack: shape (claims,), what rounding may have given away, subtracted once.
        growth: shape (claims,), the expected log-wealth per pair of draws if the guess is right.
    """

    log_factors: Floats
    slack: Floats
    growth: Floats

    def log_wealth(self, left: Counts, right: Counts) -> Floats:
        """What the counts add to the log-wealth, shape (claims,)."""
        seen = np.array(
            [left.hits, left.trials - left.hits, right.hits, right.trials - right.hits],
            dtype=np.float64,
        )
        return np.asarray(self.log_factors @ seen - self.slack, dtype=np.float64)


def place_bets(lines: Lines, p: float, q: float, n_left: int, n_right: int) -> Bets:
    """The bets of a guess (p, q) against each claim, on its best line; 1 where the guess is no violation.

    Args:
        lines: of the claims.
        p: guessed probability of the event under P, from earlier draws only.
        q: under Q.
        n_left: left draws that the bet is for.
        n_right: right draws.
    """
    if n_left < 1 or n_right < 1:
        raise InputError(f"n_left={n_left}, n_right={n_right}: a bet needs a draw of each side")
    p1, q1 = (min(max(each, _MARGIN), 1.0 - _MARGIN) for each in (p, q))
    p0, q0 = project(
        np.full(lines.slopes.shape, p1), np.full(lines.slopes.shape, q1), lines, n_left, n_right
    )
    growth = n_left * _divergence(p1, p0) + n_right * _divergence(q1, q0)
    best = np.argmax(growth, axis=1)[:, None]
    p0, q0, slope = (np.take_along_axis(each, best, 1)[:, 0] for each in (p0, q0, lines.slopes))
    above = p0 < p1
    factors = np.stack(
        [
            np.log(p1 / p0),
            np.log1p(-p1) - np.log1p(-p0),
            np.log(q1 / q0),
            np.log1p(-q1) - np.log1p(-q0),
        ]
    )
    # of lines that are not bet against it may be absurdly large
    slope = np.where(above, slope, 1.0)
    bracket = n_left * slope * (p1 - p0) / (p0 * (1.0 - p0)) + n_right * (q1 - q0) / (
        q0 * (1.0 - q0)
    )
    growth = np.take_along_axis(growth, best, 1)[:, 0] / min(n_left, n_right)
    # The point is on the line up to a few units in the last place.
    rounding = n_left * (p1 - p0) / (p0 * (1.0 - p0)) * 1e-15
    slack = np.where(above, np.abs(bracket) + np.abs(rounding), 0.0)
    return Bets(np.where(above, factors, 0.0).T, slack, np.where(above, growth, 0.0))


def project(
    p1: Floats, q1: Floats, lines: Lines, n_left: int = 1, n_right: int = 1
) -> tuple[Floats, Floats]:
    """The points of the lines with the least n·KL(p1‖p) + m·KL(q1‖q); (p1, q1) itself if it is on or below a line."""
    is_violation = p1 > lines.slopes * q1 + lines.shifts
    # Where the guess violates nothing, any line will do, and absurd slopes would overflow.
    slope = np.where(is_violation, lines.slopes, 1.0)
    shift = np.where(is_violation, lines.shifts, 0.0)
    low = np.maximum(q1, (_MARGIN - shift) / slope)
    highest = np.minimum(p1, 1.0 - _MARGIN)
    high = np.minimum((highest - shift) / slope, 1.0 - _MARGIN)
    below = ~(is_violation & (low < high))
    low = np.where(below, 0.25, low)
    high = np.where(below, 0.75, high)
    # The derivative, times p(1 − p)·q(1 − q), is a cubic: Newton's steps, or half the way where one
    # leads astray.
    q = 0.5 * (low + high)
    for _ in range(_HALVINGS):
        p = slope * q + shift
        spread = p * (1.0 - p)
        other = q * (1.0 - q)
        a = n_left * (p - p1)
        b = n_right * (q - q1)
        value = slope * a * other + b * spread
        steep = (
            slope * (slope * n_left * other + a * (1.0 - 2.0 * q) + b * (1.0 - 2.0 * p))
            + n_right * spread
        )
        low = np.where(value > 0.0, low, q)
        high = np.where(value > 0.0, q, high)
        new = q - value / np.maximum(steep, 1e-30)
        last = q
        q = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        if np.all((np.abs(q - last) <= 1e-9 * q) | below):
            break
    return np.where(
        below, p1, np.clip(slope * q + shift, _MARGIN / 2, 1.0 - _MARGIN / 2)
    ), np.where(below, q1, q)


def nearest(lines: Lines, p: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    """The nearest probabilities that one claim allows, and the log-wealth per pair of draws, all of shape (k,)."""
    shape = (len(p), lines.slopes.shape[1])
    p1, q1 = (
        np.clip(np.broadcast_to(each[:, None], shape), _MARGIN, 1.0 - _MARGIN) for each in (p, q)
    )
    p0, q0 = project(
        p1, q1, Lines(*(np.broadcast_to(each[0], shape) for each in (lines.slopes, lines.shifts)))
    )
    rates = np.where(p0 < p1, _divergence(p1, p0) + _divergence(q1, q0), 0.0)
    best = np.argmax(rates, axis=1)[:, None]
    return (
        np.take_along_axis(p0, best, 1)[:, 0],
        np.take_along_axis(q0, best, 1)[:, 0],
        rates.max(axis=1),
    )


def growth_rate(lines: Lines, p: Floats, q: Floats) -> Floats:
    """The log-wealth per pair of draws that guesses p, q (shape (k,)) earn against one claim, if they are right."""
    return nearest(lines, p, q)[2]


def anytime_lower(counts: Counts, failure_probability: float) -> float:
    """A lower bound on one probability that may be looked at after every draw (Jeffreys mixture).

    Guarantee: at no time above the truth, with probability at least 1 − failure_probability. Exact.
    """
    hits = counts.hits
    misses = counts.trials - counts.hits
    mixed = float(betaln(hits + 0.5, misses + 0.5) - betaln(0.5, 0.5)) + float(
        np.log(failure_probability)
    )
    if not hits:
        return 0.0

    def rejects(p: float) -> bool:
        with np.errstate(divide="ignore"):
            return bool(mixed > hits * np.log(p) + misses * np.log1p(-p))

    return rejected_end(rejects, 0.0, hits / counts.trials, _HALVINGS)


def anytime_upper(counts: Counts, failure_probability: float) -> float:
    """The upper bound of the same kind: one minus the lower bound of the complement."""
    return 1.0 - anytime_lower(
        Counts(counts.trials - counts.hits, counts.trials), failure_probability
    )


def _divergence(p1: float | Floats, p0: Floats) -> Floats:
    return np.asarray(rel_entr(p1, p0) + rel_entr(1.0 - np.asarray(p1), 1.0 - p0), dtype=np.float64)
