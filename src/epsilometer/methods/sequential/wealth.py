"""The values of a claim's parameter that are bet against, and the bound that the wealth of all bets gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds.betting import Lines, lines_of
from epsilometer.claims import ZCDP, ApproxDeltaDP, Claim, GaussianDP, RenyiDP, TradeOffDP

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ladder:
    """Values to bet against, increasing, fixed before any draw.

    Attributes:
        values: shape (k,); one of them is just above the claim.
        lines: what each of them allows.
        at_claim: the place of the value just above the claim.
    """

    values: Floats
    lines: Lines
    at_claim: int

    def claim_lines(self) -> Lines:
        """The lines of the value just above the claim, as those of a single claim."""
        here = slice(self.at_claim, self.at_claim + 1)
        return Lines(self.lines.slopes[here], self.lines.shifts[here])

    def bound(self, best_log_wealth: Floats, failure_probability: float) -> float:
        """The largest value up to which all bets won.

        The claims grow with the value. If the truth lies below the bound, then the bet against the first value at or
        above the truth won, although that value's claim holds: an event of probability ≤ failure_probability.

        Args:
            best_log_wealth: shape (k,), the largest log-wealth of each bet so far.
        """
        kept = np.flatnonzero(best_log_wealth < -math.log(failure_probability))
        refuted = len(self.values) if not len(kept) else int(kept[0])
        return float(self.values[refuted - 1]) if refuted else 0.0


@lru_cache(maxsize=64)
def ladder_of(claim: Claim) -> Ladder:
    """The ladder for a claim."""
    just_above = claim.value * (1.0 + 1e-9) + 1e-12
    values = np.unique(np.append(_grid(claim), just_above))
    lines = lines_of(tuple(claim.with_value(float(value)) for value in values))
    return Ladder(values, lines, int(np.searchsorted(values, just_above)))


def _grid(claim: Claim) -> Floats:
    """Fine enough that rounding a bound down to the grid costs less than chance does."""
    if isinstance(claim, ApproxDeltaDP | TradeOffDP):
        return np.concatenate([[0.0], np.geomspace(1e-5, 0.95, 60)])
    if isinstance(claim, GaussianDP):
        return np.concatenate([np.linspace(0.0, 2.0, 41), np.linspace(2.1, 6.0, 40)])
    if isinstance(claim, RenyiDP | ZCDP):  # their curves are slow to compute, so fewer
        return np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 36)])
    return np.concatenate([np.linspace(0.0, 2.0, 81), np.linspace(2.1, 6.0, 40), np.linspace(6.25, 14.0, 32)])
