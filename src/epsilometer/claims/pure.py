"""Pure and approximate differential privacy: P(E) ≤ e^ε·Q(E) + δ."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from epsilometer.claims.base import Claim, Real, as_number, check_at_least, check_whole
from epsilometer.errors import InputError


class HockeyStick(Claim):
    """What pure and approximate privacy share: P(E) ≤ e^ε·Q(E) + δ for the event and for its complement."""

    epsilon: float
    delta: float

    def max_power(self, q: Real) -> Real:
        """min(e^ε·q + δ, 1 − e^−ε·(1 − δ − q), 1)."""
        grow = math.exp(min(self.epsilon, 700.0))
        power = np.minimum(
            np.minimum(grow * q + self.delta, 1.0 - (1.0 - self.delta - q) / grow), 1.0
        )
        return power if isinstance(q, np.ndarray) else float(power)

    def least_value(self, p: float, q: float) -> float:
        """The least ε at this δ: the larger of ln (p−δ)/q and ln (1−q−δ)/(1−p), at least 0."""
        return max(0.0, _log_ratio(p - self.delta, q), _log_ratio(1.0 - q - self.delta, 1.0 - p))


@dataclass(frozen=True, slots=True)
class PureDP(HockeyStick):
    """Pure ε-differential privacy.

    Example:
        >>> em.PureDP(1.0).max_power(0.25)  # the greatest P(E) it allows when Q(E) = 0.25
        0.679...
    """

    epsilon: float
    delta: ClassVar[float] = 0.0  # type: ignore[misc]  # a claim of its own notion, not a parameter
    notion = "pure"
    parameter = "epsilon"
    symbol = "ε"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_at_least("epsilon", self.epsilon, 0.0))

    def scaled(self, distance: int) -> Self:
        """ε times the distance."""
        return type(self)(self.epsilon * check_whole("distance", distance))

    def composed(self, times: int) -> Self:
        """ε times the number of runs."""
        return type(self)(self.epsilon * check_whole("times", times))


@dataclass(frozen=True, slots=True)
class ApproxDP(HockeyStick):
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
        number = as_number("delta", self.delta)
        if not 0.0 <= number < 1.0:
            raise InputError(
                f"delta={self.delta!r} makes no sense: it must be at least 0 and less than 1"
            )
        object.__setattr__(self, "delta", number)

    def fixed(self) -> dict[str, float]:
        """δ."""
        return {"delta": self.delta}

    def scaled(self, distance: int) -> Self:
        """(kε, δ·(1 + e^ε + … + e^((k−1)ε))): every step costs its δ, grown by the steps that follow."""
        steps = range(check_whole("distance", distance))
        delta = self.delta * math.fsum(math.exp(min(step * self.epsilon, 700.0)) for step in steps)
        return type(self)(self.epsilon * len(steps), _check_meaning(delta, f"distance={distance}"))

    def composed(self, times: int) -> Self:
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

    def fixed(self) -> dict[str, float]:
        """ε."""
        return {"epsilon": self.epsilon}


def _check_meaning(delta: float, cause: str) -> float:
    if delta >= 1.0:
        raise InputError(f"{cause}: the claim becomes δ = {delta:.3g}, which allows everything")
    return delta


def _log_ratio(above: float, below: float) -> float:
    if above <= 0.0:
        return 0.0
    return math.log(above / below) if below > 0.0 and math.isfinite(above / below) else math.inf
