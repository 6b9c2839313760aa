"""Claims that just hold: each with a coin whose true value is exactly the claimed one.

To add one, put a line into `BOUNDARIES`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import epsilometer as em
from epsilometer.claims import ApproxDeltaDP, Claim
from epsilometer.testing import Coin


@dataclass(frozen=True, slots=True)
class Boundary:
    """A coin, and a claim that it keeps with nothing to spare.

    Attributes:
        name: of the claim in the table.
        coin: whose faces the outputs show.
        claim: true for that coin, and false for any coin whose faces differ a little more.
    """

    name: str
    coin: Coin
    claim: Claim

    @property
    def truth(self) -> float:
        """The true value of the claim's own parameter."""
        return self.claim.value

    @property
    def fixed(self) -> dict[str, float]:
        """The keywords that measure this notion."""
        return self.claim.fixed()

    @property
    def notion(self) -> type[Claim]:
        """The class that measures this notion."""
        return em.ApproxDP if isinstance(self.claim, ApproxDeltaDP) else type(self.claim)

    @property
    def is_measurable(self) -> bool:
        """Whether `measure` has a parameter to bound: a trade-off curve is a claim only."""
        return not isinstance(self.claim, em.TradeOffDP)


def tight(name: str, coin: Coin, claim: Claim) -> Boundary:
    """The claim with its own parameter at the truth of the coin."""
    return Boundary(name, coin, claim.with_value(coin.truth(claim)))


# Randomized response with exactly ε = 1, a rare event, and equal coins, where every event is on the boundary.
RESPONSE = Coin(math.e / (1.0 + math.e), 1.0 / (1.0 + math.e))
RARE = Coin(0.08, 0.03)
EQUAL = Coin(0.5, 0.5)
# With a δ of 0.6 only what is far apart leaves anything to bound.
FAR = Coin(0.85, 0.1)

BOUNDARIES: tuple[Boundary, ...] = (
    tight("pure, equal", EQUAL, em.PureDP(0.0)),
    tight("pure", RESPONSE, em.PureDP(0.0)),
    tight("pure, rare", RARE, em.PureDP(0.0)),
    tight("approximate, δ = .01", RESPONSE, em.ApproxDP(0.0, 0.01)),
    tight("approximate, δ = .6", FAR, em.ApproxDP(0.0, 0.6)),
    tight("δ at ε = .3", RESPONSE, ApproxDeltaDP(0.3, 0.0)),
    tight("Rényi, order 2", RESPONSE, em.RenyiDP(2.0, 0.0)),
    tight("Rényi, equal", EQUAL, em.RenyiDP(5.0, 0.0)),
    tight("zero-concentrated", RESPONSE, em.ZCDP(0.0)),
    tight("Gaussian", RESPONSE, em.GaussianDP(0.0)),
    Boundary(
        "trade-off", RESPONSE, em.TradeOffDP(([0.0, RESPONSE.q, 1.0], [1.0, 1.0 - RESPONSE.p, 0.0]))
    ),
)
