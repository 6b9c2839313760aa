"""Evidence that may be looked at any time: bets against a claim on the counts of an event.

A claim confines the probabilities (p, q) of any event to a convex set below its curve `max_power`,
hence below each line p = slope·q + shift that lies above the curve (`supporting_lines`). Against
one such line, and for a guess (p1, q1) above it, the bet is the likelihood ratio of the guess to
its projection (p0, q0): the point of the line with the least weighted divergence from the guess.

Why the bet is fair: with a = (p1 − p0)/(p0(1 − p0)) and b = (q1 − q0)/(q0(1 − q0)), one left draw
multiplies the expected wealth by 1 + a·(p − p0) ≤ exp(a·(p − p0)), one right draw by at most
exp(b·(q − q0)). For n and m draws the exponents add up to n·a·(p − p0) + m·b·(q − q0). Below the
line p − p0 ≤ slope·(q − q0), so that this is at most (n·a·slope + m·b)·(q − q0). The projection
makes the bracket 0. What rounding leaves of it is subtracted (|q − q0| ≤ 1), so that the bound
holds for the numbers that were computed.

Guarantee: the product of such bets, each fixed before its draws, exceeds 1/f at any time with
probability at most f (Ville's inequality). Exact at any stopping time.

Reference: Turner, Ly, Grünwald, "Generic E-variables for exact sequential k-sample tests that allow
for optional stopping" (2021).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds.binomial import Counts
from epsilometer.bounds.supporting_lines import (
    Lines,
)
from epsilometer.errors import InputError

__all__ = [
    "Bets",
    "Nearest",
    "Projection",
    "growth_rate",
    "nearest",
    "place_bets",
    "project",
]

# Guesses and projections keep this distance from 0 and 1, where a bet could lose everything.
_MARGIN = 1e-9
# Steps of the search for a projection at the most. By halving alone, 44 steps leave 2^-44 of an
# interval below 1; what a projection misses is subtracted from the wealth.
_MAX_STEPS = 44
# Relative change of q below which a projection has converged.
_CONVERGED = 1e-9
# Least derivative in a Newton step, which would divide by 0.
_LEAST_DERIVATIVE = 1e-30
# Relative. A projection is on its line up to a few units in the last place.
_ROUNDING = 1e-15


@dataclass(frozen=True, slots=True)
class Bets:
    """One bet per claim, for n left and m right draws.

    Attributes:
        log_factors: shape (claims, 4): what a left hit, left miss, right hit and right miss add to
            the log-wealth.
        slack: shape (claims,), the most that rounding may have added to the log-wealth, subtracted
            once.
        growth: shape (claims,), the expected log-wealth per pair of draws if the guess is right.
    """

    log_factors: Floats
    slack: Floats
    growth: Floats

    def log_wealth(self, left: Counts, right: Counts) -> Floats:
        """Returns what the counts add to the log-wealth, shape (claims,)."""
        counts = np.array([left.hits, left.misses, right.hits, right.misses], dtype=np.float64)
        return np.asarray(self.log_factors @ counts - self.slack, dtype=np.float64)


def place_bets(lines: Lines, p: float, q: float, n_left: int, n_right: int) -> Bets:
    """Returns the bets of a guess (p, q) against each claim, each on the claim's best line.

    Where the guess does not violate a claim, the bet leaves the wealth as it is.

    Args:
        lines: supporting lines of the claims.
        p: guessed probability of the event under P, from earlier draws only.
        q: guessed probability under Q, from earlier draws only.
        n_left: left draws that the bet is for.
        n_right: right draws that the bet is for.

    Guarantee: under a claim, the expected wealth after these draws is at most 1. Exact. Choosing
        the line costs nothing: it depends on the guess, not on the draws.
    """
    if n_left < 1 or n_right < 1:
        raise InputError(f"n_left={n_left}, n_right={n_right}: a bet needs a draw of each side")
    p1 = min(max(p, _MARGIN), 1.0 - _MARGIN)
    q1 = min(max(q, _MARGIN), 1.0 - _MARGIN)
    shape = lines.slopes.shape
    projection = project(np.full(shape, p1), np.full(shape, q1), lines, n_left, n_right)
    # Shape (claims, lines): the expected log-wealth of each line, if the guess is right.
    growth = n_left * _divergence(p1, projection.p) + n_right * _divergence(q1, projection.q)
    best_line = np.argmax(growth, axis=1)[:, None]
    # From here on, one line per claim: shape (claims,).
    p0 = _select(projection.p, best_line)
    q0 = _select(projection.q, best_line)
    slope = _select(lines.slopes, best_line)
    growth = _select(growth, best_line) / min(n_left, n_right)

    is_violation = p0 < p1
    log_factors = np.stack(
        [
            np.log(p1 / p0),
            np.log1p(-p1) - np.log1p(-p0),
            np.log(q1 / q0),
            np.log1p(-q1) - np.log1p(-q0),
        ]
    )
    # Lines without a bet may be so steep that the bracket would overflow.
    slope = np.where(is_violation, slope, 1.0)
    # The bracket n·a·slope + m·b of the module's docstring, which is 0 but for rounding.
    left_part = n_left * slope * (p1 - p0) / (p0 * (1.0 - p0))
    right_part = n_right * (q1 - q0) / (q0 * (1.0 - q0))
    bracket = left_part + right_part
    # The point (p0, q0) may be off the line by rounding.
    off_line = n_left * (p1 - p0) / (p0 * (1.0 - p0)) * _ROUNDING
    slack = np.abs(bracket) + np.abs(off_line)
    return Bets(
        log_factors=np.where(is_violation, log_factors, 0.0).T,
        slack=np.where(is_violation, slack, 0.0),
        growth=np.where(is_violation, growth, 0.0),
    )


class Projection(NamedTuple):
    """Points of lines, or the guesses themselves where these are on or below the line.

    Attributes:
        p: left probabilities.
        q: right probabilities, of the same shape.
    """

    p: Floats
    q: Floats


def project(p1: Floats, q1: Floats, lines: Lines, n_left: int = 1, n_right: int = 1) -> Projection:
    """Returns the points of the lines with the least n·KL(p1‖p) + m·KL(q1‖q).

    Args:
        p1: guessed left probabilities, of the shape of the lines.
        q1: guessed right probabilities, of the same shape.
        lines: one line per guess.
        n_left: n.
        n_right: m.

    Returns:
        The guess itself where it is on or below its line.
    """
    is_above = p1 > lines.slopes * q1 + lines.shifts
    # Where the guess violates nothing, any line will do, and absurd slopes would overflow.
    slope = np.where(is_above, lines.slopes, 1.0)
    shift = np.where(is_above, lines.shifts, 0.0)
    # The projection has a larger q and a smaller p than the guess; both keep their margins.
    low = np.maximum(q1, (_MARGIN - shift) / slope)
    highest_p = np.minimum(p1, 1.0 - _MARGIN)
    high = np.minimum((highest_p - shift) / slope, 1.0 - _MARGIN)
    has_bet = is_above & (low < high)
    # A harmless bracket where there is nothing to search.
    low = np.where(has_bet, low, 0.25)
    high = np.where(has_bet, high, 0.75)
    # The derivative of the divergence along the line, times p(1 − p)·q(1 − q), is a cubic in q. Its
    # zero is found by Newton's steps, or by halving the bracket where a step leads out of it.
    q = 0.5 * (low + high)
    for _ in range(_MAX_STEPS):
        p = slope * q + shift
        p_variance = p * (1.0 - p)
        q_variance = q * (1.0 - q)
        p_residual = n_left * (p - p1)
        q_residual = n_right * (q - q1)
        cubic = slope * p_residual * q_variance + q_residual * p_variance
        derivative = (
            slope
            * (
                slope * n_left * q_variance
                + p_residual * (1.0 - 2.0 * q)
                + q_residual * (1.0 - 2.0 * p)
            )
            + n_right * p_variance
        )
        low = np.where(cubic > 0.0, low, q)
        high = np.where(cubic > 0.0, q, high)
        newton = q - cubic / np.maximum(derivative, _LEAST_DERIVATIVE)
        is_inside = (newton >= low) & (newton <= high)
        previous = q
        q = np.where(is_inside, newton, 0.5 * (low + high))
        has_converged = np.abs(q - previous) <= _CONVERGED * q
        if np.all(has_converged | ~has_bet):
            break
    p = np.clip(slope * q + shift, _MARGIN / 2, 1.0 - _MARGIN / 2)
    return Projection(p=np.where(has_bet, p, p1), q=np.where(has_bet, q, q1))


class Nearest(NamedTuple):
    """The nearest probabilities that a claim allows, each of shape (k,).

    Attributes:
        p: left probabilities.
        q: right probabilities.
        rate: the expected log-wealth per pair of draws if the guess is right.
    """

    p: Floats
    q: Floats
    rate: Floats


def nearest(lines: Lines, p: Floats, q: Floats) -> Nearest:
    """Returns the probabilities nearest to some guesses that one claim allows.

    Args:
        lines: of one claim, of shape (1, lines).
        p: shape (k,), guessed left probabilities.
        q: shape (k,), guessed right probabilities.
    """
    shape = (len(p), lines.slopes.shape[1])
    p1 = np.clip(np.broadcast_to(p[:, None], shape), _MARGIN, 1.0 - _MARGIN)
    q1 = np.clip(np.broadcast_to(q[:, None], shape), _MARGIN, 1.0 - _MARGIN)
    repeated_lines = Lines(
        slopes=np.broadcast_to(lines.slopes[0], shape),
        shifts=np.broadcast_to(lines.shifts[0], shape),
    )
    projection = project(p1, q1, repeated_lines)
    is_violation = projection.p < p1
    divergence = _divergence(p1, projection.p) + _divergence(q1, projection.q)
    rates = np.where(is_violation, divergence, 0.0)
    best_line = np.argmax(rates, axis=1)[:, None]
    return Nearest(
        p=_select(projection.p, best_line),
        q=_select(projection.q, best_line),
        rate=rates.max(axis=1),
    )


def growth_rate(lines: Lines, p: Floats, q: Floats) -> Floats:
    """Returns the log-wealth per pair of draws that guesses earn against one claim, if right.

    Args:
        lines: of one claim, of shape (1, lines).
        p: shape (k,), guessed left probabilities.
        q: shape (k,), guessed right probabilities.

    Returns:
        Shape (k,).
    """
    return nearest(lines, p, q).rate


def _select(values: Floats, column: Integers) -> Floats:
    """One column of each row: from shape (k, lines) and (k, 1) to (k,)."""
    return np.take_along_axis(values, column, 1)[:, 0]


def _divergence(p1: float | Floats, p0: Floats) -> Floats:
    """The Kullback–Leibler divergence of the coin p1 from the coin p0, elementwise."""
    heads = rel_entr(p1, p0)
    tails = rel_entr(1.0 - np.asarray(p1), 1.0 - p0)
    return np.asarray(heads + tails, dtype=np.float64)
