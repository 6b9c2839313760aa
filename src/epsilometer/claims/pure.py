"""Pure and approximate differential privacy: P(E) ≤ e^ε·Q(E) + δ."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from epsilometer.claims.base import Claim, Real, as_number, check_at_least, check_whole
from epsilometer.errors import InputError

# e^700 is near the largest float; a larger ε counts as 700.
_MAX_EXPONENT = 700.0


class HockeyStickClaim(Claim):
    """A claim that P(E) ≤ e^ε·Q(E) + δ for every event E: pure and approximate privacy.

    The inequality holds for the event and for its complement.
    """

    epsilon: float
    delta: float

    def max_power(self, q: Real) -> Real:
        """Returns min(e^ε·q + δ, 1 − e^−ε·(1 − δ − q), 1)."""
        factor = math.exp(min(self.epsilon, _MAX_EXPONENT))
        by_event = factor * q + self.delta
        by_complement = 1.0 - (1.0 - self.delta - q) / factor
        power = np.minimum(np.minimum(by_event, by_complement), 1.0)
        return power if isinstance(q, np.ndarray) else float(power)

    def least_value(self, p: float, q: float) -> float:
        """The least ε at this δ: the larger of ln (p−δ)/q and ln (1−q−δ)/(1−p), at least 0."""
        by_event = _log_ratio(p - self.delta, q)
        by_complement = _log_ratio(1.0 - q - self.delta, 1.0 - p)
        return max(0.0, by_event, by_complement)


@dataclass(frozen=True, slots=True)
class PureDP(HockeyStickClaim):
    """Pure ε-differential privacy.

    Example:
        >>> em.PureDP(1.0).max_power(0.25)  # the greatest P(E) it allows when Q(E) = 0.25
        0.679...
    """

    epsilon: float
    # Part of the notion, not a parameter.
    delta: ClassVar[float] = 0.0  # type: ignore[misc]
    notion = "pure"
    parameter = "epsilon"
    symbol = "ε"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_at_least("epsilon", self.epsilon, 0.0))

    def scaled(self, distance: int) -> Self:
        """Multiplies ε by the distance."""
        return type(self)(self.epsilon * check_whole("distance", distance))

    def composed(self, times: int) -> Self:
        """Multiplies ε by the number of runs."""
        return type(self)(self.epsilon * check_whole("times", times))


@dataclass(frozen=True, slots=True)
class ApproxDP(HockeyStickClaim):
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
        delta = as_number("delta", self.delta)
        if not 0.0 <= delta < 1.0:
            raise InputError(f"delta={self.delta!r} must be at least 0 and less than 1")
        object.__setattr__(self, "delta", delta)

    def fixed(self) -> dict[str, float]:
        """The parameter that stays as it is: δ."""
        return {"delta": self.delta}

    def scaled(self, distance: int) -> Self:
        """Returns (kε, δ·(1 + e^ε + … + e^((k−1)ε))) for a distance of k.

        Every step costs its δ, multiplied by e^ε for each of the steps that follow.
        """
        n_steps = check_whole("distance", distance)
        factors = [math.exp(min(step * self.epsilon, _MAX_EXPONENT)) for step in range(n_steps)]
        delta = self.delta * math.fsum(factors)
        _check_informative(delta, f"distance={distance}")
        return type(self)(epsilon=self.epsilon * n_steps, delta=delta)

    def composed(self, times: int) -> Self:
        """Returns (kε, kδ) for k runs."""
        delta = self.delta * check_whole("times", times)
        _check_informative(delta, f"times={times}")
        return type(self)(epsilon=self.epsilon * times, delta=delta)


@dataclass(frozen=True, slots=True)
class ApproxDeltaDP(ApproxDP):
    """(ε, δ)-differential privacy the other way round: its own parameter is δ at the given ε."""

    notion = "approx-delta"
    parameter = "delta"
    symbol = "δ"

    def least_value(self, p: float, q: float) -> float:
        """The least δ at this ε: p − e^ε·q or the same of the complement, at least 0."""
        factor = math.exp(min(self.epsilon, _MAX_EXPONENT))
        by_event = p - factor * q
        by_complement = (1.0 - q) - factor * (1.0 - p)
        return max(0.0, by_event, by_complement)

    def fixed(self) -> dict[str, float]:
        """The parameter that stays as it is: ε."""
        return {"epsilon": self.epsilon}


def _check_informative(delta: float, cause: str) -> None:
    """Raises an InputError for a δ with which a claim says nothing."""
    if delta >= 1.0:
        raise InputError(f"{cause}: the claim becomes δ = {delta:.3g}, which allows everything")


def _log_ratio(numerator: float, denominator: float) -> float:
    """ln(numerator/denominator); 0 for a numerator of at most 0, infinite where it overflows."""
    if numerator <= 0.0:
        return 0.0
    if denominator > 0.0 and math.isfinite(numerator / denominator):
        return math.log(numerator / denominator)
    return math.inf
