"""Pure and approximate differential privacy: P(E) ≤ e^ε·Q(E) + δ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from epsilometer.claims.base import Claim, Real, as_number, check_at_least, check_whole
from epsilometer.errors import InputError


@dataclass(frozen=True, slots=True)
class PureDP(Claim):
    """Pure ε-differential privacy.

    Example:
        >>> em.PureDP(1.0).max_power(0.25)  # the greatest P(E) it allows when Q(E) = 0.25
        0.679...
    """

    epsilon: float
    notion = "pure"
    parameter = "epsilon"
    symbol = "ε"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_at_least("epsilon", self.epsilon, 0.0))

    def max_power(self, q: Real) -> Real:
        """min(e^ε·q, 1 − e^−ε·(1 − q)): the event and its complement."""
        return _hockey_power(q, self.epsilon, 0.0)

    def least_value(self, p: float, q: float) -> float:
        """The larger of ln p/q and ln (1−q)/(1−p), at least 0."""
        return _least_epsilon(p, q, 0.0)

    def with_value(self, value: float) -> Self:
        """The same notion with another ε."""
        return type(self)(value)

    def fixed(self) -> dict[str, float]:
        """Nothing besides ε."""
        return {}

    def scaled(self, distance: int) -> PureDP:
        """ε times the distance."""
        return PureDP(self.epsilon * check_whole("distance", distance))

    def composed(self, times: int) -> PureDP:
        """ε times the number of runs."""
        return PureDP(self.epsilon * check_whole("times", times))


@dataclass(frozen=True, slots=True)
class ApproxDP(Claim):
    """(ε, δ)-differential privacy. Its own parameter is ε at the given δ.

    Example:
        >>> em.ApproxDP(epsilon=1.0, delta=0.01).max_power(0.25)
        0.689...
    """

    epsilon: float
    delta: float
    notion = "approx"
    parameter = "epsilon"
    symbol = "ε"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_at_least("epsilon", self.epsilon, 0.0))
        object.__setattr__(self, "delta", _check_delta(self.delta))

    def max_power(self, q: Real) -> Real:
        """min(e^ε·q + δ, 1 − e^−ε·(1 − δ − q), 1)."""
        return _hockey_power(q, self.epsilon, self.delta)

    def least_value(self, p: float, q: float) -> float:
        """The least ε at this δ, by the event or by its complement."""
        return _least_epsilon(p, q, self.delta)

    def with_value(self, value: float) -> Self:
        """Another ε at the same δ."""
        return type(self)(value, self.delta)

    def fixed(self) -> dict[str, float]:
        """δ."""
        return {"delta": self.delta}

    def scaled(self, distance: int) -> ApproxDP:
        """(kε, δ·(1 + e^ε + … + e^((k−1)ε))): every step costs its δ, grown by the steps that follow."""
        steps = range(check_whole("distance", distance))
        delta = self.delta * math.fsum(math.exp(min(step * self.epsilon, 700.0)) for step in steps)
        return type(self)(self.epsilon * len(steps), _check_meaning(delta, f"distance={distance}"))

    def composed(self, times: int) -> ApproxDP:
        """(kε, kδ)."""
        delta = self.delta * check_whole("times", times)
        return type(self)(self.epsilon * times, _check_meaning(delta, f"times={times}"))


@dataclass(frozen=True, slots=True)
class ApproxDeltaDP(ApproxDP):
    """(ε, δ)-differential privacy the other way round: its own parameter is δ at the given ε."""

    notion = "approx-delta"
    parameter = "delta"
    symbol = "δ"

    def least_value(self, p: float, q: float) -> float:
        """The least δ at this ε: max(p − e^ε·q, 0), or the same of the complement."""
        grow = math.exp(min(self.epsilon, 700.0))
        return max(0.0, p - grow * q, (1.0 - q) - grow * (1.0 - p))

    def with_value(self, value: float) -> Self:
        """Another δ at the same ε."""
        return type(self)(self.epsilon, value)

    def fixed(self) -> dict[str, float]:
        """ε."""
        return {"epsilon": self.epsilon}


def _check_delta(delta: float) -> float:
    number = as_number("delta", delta)
    if not 0.0 <= number < 1.0:
        raise InputError(f"delta={delta!r} makes no sense: it must be at least 0 and less than 1")
    return number


def _check_meaning(delta: float, cause: str) -> float:
    if delta >= 1.0:
        raise InputError(f"{cause}: the claim becomes δ = {delta:.3g}, which allows everything")
    return delta


def _hockey_power(q: Real, epsilon: float, delta: float) -> Real:
    # Past ε ≈ 700 the exponential overflows; e^700·q is above 1 for every q above 1e-304.
    grow = math.exp(min(epsilon, 700.0))
    power = np.minimum(np.minimum(grow * q + delta, 1.0 - (1.0 - delta - q) / grow), 1.0)
    return power if isinstance(q, np.ndarray) else float(power)


def _least_epsilon(p: float, q: float, delta: float) -> float:
    return max(0.0, _log_ratio(p - delta, q), _log_ratio(1.0 - q - delta, 1.0 - p))


def _log_ratio(above: float, below: float) -> float:
    if above <= 0.0:
        return 0.0
    return math.log(above / below) if below > 0.0 and math.isfinite(above / below) else math.inf
