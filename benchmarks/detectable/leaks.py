"""Mechanisms with a planted leak of known size, of the six kinds that real bugs have.

Every mechanism adds noise that just keeps its claim. A leak is either *spread*: some usual outputs
are likelier for one input, so that the true value of the claim's parameter is known; or *rare*: one
input gives, with a small probability, an output that the other never gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer.mechanisms import Mechanism

Rng = np.random.Generator
Floats = np.ndarray[Any, np.dtype[np.float64]]
# Gives marked outputs where the second array is True, and usual ones elsewhere.
Mark = Callable[[Floats, Any], list[Any]]

# The mean probability of a mark that both inputs give, where a leak is spread.
USUAL_SHARE = 0.3
# Where both inputs' numbers are centred: far from 0, so that scaling moves them away.
CENTRE = 10.0


def _new_key(noise: Floats, marked: Any) -> list[Any]:
    return [
        {"total": value, "vip": 1} if mark else {"total": value}
        for value, mark in zip(noise[:, 0].tolist(), marked.tolist(), strict=True)
    ]


def _missing_key(noise: Floats, marked: Any) -> list[Any]:
    return [
        {"total": first} if mark else {"total": first, "rows": second}
        for (first, second, _), mark in zip(noise.tolist(), marked.tolist(), strict=True)
    ]


def _exact_value(noise: Floats, marked: Any) -> list[Any]:
    return np.where(marked, CENTRE + 0.25, noise[:, 0]).tolist()


def _shift(noise: Floats, marked: Any) -> list[Any]:
    return np.where(marked, noise[:, 0] + 1000.0, noise[:, 0]).tolist()


def _scale(noise: Floats, marked: Any) -> list[Any]:
    return np.where(marked, noise[:, 0] * 100.0, noise[:, 0]).tolist()


def _length(noise: Floats, marked: Any) -> list[Any]:
    return [
        [*values, values[0]] if mark else values
        for values, mark in zip(noise.tolist(), marked.tolist(), strict=True)
    ]


KINDS: dict[str, Mark] = {
    "new key": _new_key,
    "missing key": _missing_key,
    "exact value": _exact_value,
    "shift": _shift,
    "scale": _scale,
    "length": _length,
}


@dataclass(frozen=True)
class Case:
    """A notion and a size.

    Attributes:
        claim: what is claimed.
        samples: draws per side of every audit.
    """

    claim: Claim
    samples: int

    @property
    def name(self) -> str:
        """The claim and the size, in short."""
        return f"{self.claim.describe()}, {self.samples:,} draws"


CASES = (
    Case(em.PureDP(1.0), 1000),
    Case(em.PureDP(0.3), 4000),
    Case(em.PureDP(3.0), 4000),
    Case(em.ApproxDP(1.0, 1e-3), 2000),
    Case(em.ApproxDP(1.0, 1e-5), 8000),
    Case(em.GaussianDP(1.0), 1000),
    Case(em.RenyiDP(2.0, 1.0), 2000),
    Case(em.ZCDP(0.5), 2000),
)


def noise_of(claim: Claim, side: int, shape: tuple[int, int], rng: Rng) -> Floats:
    """Numbers of which the first column has noise that just keeps the claim between both sides."""
    if isinstance(claim, em.PureDP):
        values = rng.laplace(size=shape) / claim.epsilon
        values[:, 0] += side
    else:
        values = rng.normal(size=shape)
        values[:, 0] += side * normal_shift(claim)
    return CENTRE + values


def normal_shift(claim: Claim) -> float:
    """The distance of two standard normal distributions that just keep the claim."""
    if isinstance(claim, em.GaussianDP):
        return claim.mu
    if isinstance(claim, em.RenyiDP):
        return math.sqrt(2.0 * claim.epsilon / claim.order)
    if isinstance(claim, em.ZCDP):
        return math.sqrt(2.0 * claim.rho)
    assert isinstance(claim, em.ApproxDP)
    epsilon = claim.epsilon
    delta = claim.delta

    def excess(mu: float) -> float:
        above = norm.cdf(mu / 2 - epsilon / mu)
        below = norm.cdf(-mu / 2 - epsilon / mu)
        return float(above - math.exp(epsilon) * below - delta)

    return float(brentq(excess, 1e-3, 40.0))


def rare(kind: str, claim: Claim, probability: float) -> Mechanism:
    """The noise of the claim, and outputs of a kind that only the right input gives."""
    mark = KINDS[kind]

    def draw(side: int, n: int, rng: Rng) -> list[Any]:
        noise = noise_of(claim, side, (n, 3), rng)
        return mark(noise, rng.random(n) < (probability if side else 0.0))

    return em.from_batch(draw, name=f"rare {kind}")


def spread(kind: str, claim: Claim) -> Mechanism:
    """A leak over usual outputs for which the claim holds, and no stricter one.

    Shifted and scaled numbers differ in their noise; of all other kinds, marks are likelier for one
    input.
    """
    if kind == "shift":
        return em.from_batch(
            lambda side, n, rng: noise_of(claim, side, (n, 1), rng)[:, 0], name="spread shift"
        )
    mark = KINDS[kind]
    p, q = shares(claim)

    def draw(side: int, n: int, rng: Rng) -> list[Any]:
        noise = CENTRE + rng.laplace(size=(n, 3))
        return mark(noise, rng.random(n) < (p if side else q))

    return em.from_batch(draw, name=f"spread {kind}")


def shares(claim: Claim) -> tuple[float, float]:
    """Probabilities of a mark with the usual mean, for which the claim just holds."""
    if claim.least_value(2.0 * USUAL_SHARE, 0.0) < claim.value:
        raise ValueError(f"{claim.describe()}: no mark of this share has so large a value")

    def excess(q: float) -> float:
        return claim.least_value(2.0 * USUAL_SHARE - q, q) - claim.value

    q = float(brentq(lambda q: min(excess(q), 1e6), 1e-12, USUAL_SHARE))
    return 2.0 * USUAL_SHARE - q, q
