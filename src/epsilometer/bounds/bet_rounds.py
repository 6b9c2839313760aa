"""A round of bets: the wealth is split over several events, bet on one batch, and added up again.

Every bet of a round is fair by itself (`betting`). A mixture of fair bets with shares that are
fixed beforehand is fair as well: its expected wealth is the same mixture of theirs. So the product
of the rounds is evidence at any time, however events, guesses and shares are chosen from earlier
batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds.betting import Bets, place_bets
from epsilometer.bounds.binomial import Counts
from epsilometer.bounds.supporting_lines import Lines


class Guess(NamedTuple):
    """The probabilities of an event that a bet assumes.

    Attributes:
        p: on the side where the event should be likelier.
        q: on the other side.
    """

    p: float
    q: float


class BetOutcome(NamedTuple):
    """How often the event of a bet occurred in a batch.

    Attributes:
        above: on the side where the event should be likelier.
        below: on the other side.
    """

    above: Counts
    below: Counts


@dataclass(frozen=True, slots=True)
class BetRound:
    """Bets that are placed before a batch is seen.

    Attributes:
        bets: one per event.
        shares: of the wealth, one per event; they sum to 1.
    """

    bets: tuple[Bets, ...]
    shares: tuple[float, ...]

    def log_wealth(self, outcomes: Sequence[BetOutcome]) -> Floats:
        """Returns what the batch adds to the log-wealth against each claim, shape (claims,).

        Args:
            outcomes: one per event, in the order of the bets.

        Guarantee: under a claim, the expected factor of the wealth is at most 1. Exact.
        """
        log_wealths = [
            np.log(share) + bet.log_wealth(outcome.above, outcome.below)
            for share, bet, outcome in zip(self.shares, self.bets, outcomes, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(log_wealths), dtype=np.float64)


def place_round(
    lines: Lines,
    guesses: Sequence[Guess],
    sizes: Sequence[tuple[int, int]],
    weights: Sequence[float] | None = None,
    at_claim: int = 0,
) -> BetRound:
    """Places bets on several events.

    Args:
        lines: supporting lines of the claims.
        guesses: one per event, from earlier draws only.
        sizes: of the coming batch: for each event, the draws on the side where it should be
            likelier, and on the other side.
        weights: to which the shares are proportional; by default the growth that each bet promises.
        at_claim: the claim whose growth that is, by its place among the lines.
    """
    bets = tuple(
        place_bets(lines, guess.p, guess.q, n_above, n_below)
        for guess, (n_above, n_below) in zip(guesses, sizes, strict=True)
    )
    if weights is None:
        weights = [max(float(bet.growth[at_claim]), 1e-12) for bet in bets]
    total = sum(weights)
    return BetRound(bets=bets, shares=tuple(weight / total for weight in weights))
