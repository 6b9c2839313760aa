"""f-differential privacy: a whole curve is claimed, from type-I error to the least type-II error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import Claim, Real, check_at_least, check_whole
from epsilometer.errors import InputError

# Where a curve given as a function is checked and stored: dense near 0, where claims differ most.
_GRID: Floats = np.unique(
    np.concatenate([[0.0], np.geomspace(1e-9, 1e-2, 400), np.linspace(1e-2, 1, 1601)])
)
# Curves are computed in floats: up to this, a violation is rounding.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class TradeOffDP(Claim):
    """f-differential privacy with f = `curve`.

    Attributes:
        curve: maps a type-I error in [0, 1] to the least type-II error; or two sequences (type I,
            type II) of points that are joined by straight lines.
        excess: how far above the curve power is tolerated; 0 is the claim itself. Its own
            parameter: a lower bound in `excess` is the certified excess of power over the claimed
            curve.

    Example:
        >>> claim = em.TradeOffDP(([0.0, 0.3, 1.0], [1.0, 0.3, 0.0]))  # type-I errors, least type-II errors
        >>> round(claim.max_power(0.3), 3)
        0.7
    """

    curve: Callable[[float], float] | tuple[Sequence[float], Sequence[float]]
    excess: float = 0.0
    notion = "tradeoff"
    parameter = "excess"
    symbol = "excess power"

    def __post_init__(self) -> None:
        object.__setattr__(self, "excess", check_at_least("excess", self.excess, 0.0))
        if not callable(self.curve):
            try:
                one, two = (np.asarray(part, dtype=float) for part in self.curve)
            except (TypeError, ValueError) as error:
                raise InputError(
                    "curve must be a function, or two sequences of numbers (type I, type II)"
                ) from error
            if (
                one.ndim != 1
                or one.shape != two.shape
                or len(one) < 2
                or not np.all(np.diff(one) > 0)
            ):
                raise InputError(
                    "curve points must be two sequences of one length ≥ 2 with increasing type-I errors"
                )
            object.__setattr__(self, "curve", (tuple(one.tolist()), tuple(two.tolist())))
        type_two = self._type_two(_GRID)
        if not np.all(np.isfinite(type_two)):
            raise InputError("curve returns values that are not finite numbers on [0, 1]")
        if type_two.min() < -_SLACK or np.any(type_two > 1.0 - _GRID + _SLACK):
            raise InputError(
                "curve must lie between 0 and 1 − t: a type-II error above 1 − t is beaten by guessing"
            )
        if np.any(np.diff(type_two) > _SLACK):
            raise InputError("curve must not increase: more type-I error never costs type-II error")

    def _type_two(self, errors: Floats) -> Floats:
        if callable(self.curve):
            return np.array([float(self.curve(float(error))) for error in errors])
        return np.interp(errors, *self.curve)

    def max_power(self, q: Real) -> Real:
        """1 − f(q), plus the tolerated excess."""
        power = np.minimum(
            1.0 - self._type_two(np.atleast_1d(np.asarray(q, dtype=float))) + self.excess, 1.0
        )
        return power if isinstance(q, np.ndarray) else float(power[0])

    def least_value(self, p: float, q: float) -> float:
        """p − (1 − f(q)), at least 0."""
        return float(self.least_values(np.array([p]), np.array([q]))[0])

    def least_values(self, p: Floats, q: Floats) -> Floats:
        """The same for arrays of shape (n,)."""
        return np.maximum(p - 1.0 + self._type_two(q), 0.0)

    def point_at(self, q: float) -> list[float]:
        """The curve's own point at a type-I error, as plain data."""
        return [q, float(self._type_two(np.array([q]))[0])]

    def points_at(self, q: Floats) -> list[list[float]]:
        """The same at type-I errors of shape (n,), in ascending order: the errors, and the values of the curve."""
        return [np.sort(q).tolist(), self._type_two(np.sort(q)).tolist()]

    def scaled(self, distance: int) -> Self:
        """The curve whose greatest power is that of this one, applied once per step.

        Reference: Dong, Roth, Su (2022), Theorem 2.14.
        """
        steps = check_whole("distance", distance)
        power = _GRID
        for _ in range(steps):
            power = np.asarray(self.max_power(power), dtype=np.float64)
        # On the safe side between two points: each gets the type-II error of the next one.
        below = np.minimum.accumulate(np.append(1.0 - power[1:], 0.0))
        return self if steps == 1 else type(self)((_GRID.tolist(), below.tolist()), self.excess)

    def describe(self) -> str:
        """The curve at one point, for orientation."""
        return f"TradeOffDP(curve with f(0.05)={float(self._type_two(np.array([0.05]))[0]):.3g})"

    def to_dict(self) -> dict[str, Any]:
        """A function is stored as points on the safe side: each gets the type-II error of the next one on the right."""
        curve: Any = self.curve
        if callable(curve):
            curve = _GRID, np.minimum.accumulate(np.append(self._type_two(_GRID)[1:], 0.0))
        return {
            "notion": self.notion,
            "excess": self.excess,
            "curve": [np.asarray(part).tolist() for part in curve],
        }

    @classmethod
    def restored(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        curve = data.get("curve")
        if not isinstance(curve, list | tuple):
            raise InputError("a stored trade-off claim needs its curve as two lists of numbers")
        return cls(**{**data, "curve": tuple(curve)})
