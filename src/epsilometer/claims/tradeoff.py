"""f-differential privacy claims a curve: the least type-II error for every type-I error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.accountants import accountant_curve
from epsilometer.claims.base import Claim, Real, check_at_least, check_whole
from epsilometer.errors import InputError

# Where a curve given as a function is checked and stored: dense near 0, where claims differ most.
_GRID: Floats = np.unique(
    np.concatenate([[0.0], np.geomspace(1e-9, 1e-2, 400), np.linspace(1e-2, 1, 1601)])
)
# Curves are computed in floats: a violation up to this is put down to rounding.
_ROUNDING = 1e-9


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
        >>> type_one = [0.0, 0.3, 1.0]
        >>> least_type_two = [1.0, 0.3, 0.0]
        >>> claim = em.TradeOffDP((type_one, least_type_two))
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
            object.__setattr__(self, "curve", _checked_points(self.curve))
        type_two = self._type_two(_GRID)
        if not np.all(np.isfinite(type_two)):
            raise InputError("curve returns values that are not finite numbers on [0, 1]")
        if type_two.min() < -_ROUNDING or np.any(type_two > 1.0 - _GRID + _ROUNDING):
            raise InputError(
                "curve must lie between 0 and 1 − t: "
                "a type-II error above 1 − t is beaten by guessing"
            )
        if np.any(np.diff(type_two) > _ROUNDING):
            raise InputError("curve must not increase: more type-I error never costs type-II error")

    @classmethod
    def from_accountant(cls, accountant: Any) -> Self:
        """The claim that a privacy accountant makes: all its (ε, δ) at once.

        Args:
            accountant: a privacy-loss distribution or `PLDAccountant` of dp-accounting, a
                `PRVAccountant` or `RDPAccountant` of Opacus, a function from ε to δ, or pairs
                [(ε, δ), …]. Opacus' `GaussianAccountant` is refused: it approximates, and its
                figures may be too small.

        Guarantee: never tighter than the accountant. The curve is the least of the lines that its
            pairs (ε, δ) imply, and is kept exactly by `to_dict`.

        Example:
            >>> pairs = [(0.5, 0.1), (1.0, 0.01), (2.0, 1e-5)]
            >>> claim = em.TradeOffDP.from_accountant(pairs)
            >>> round(claim.max_power(0.05), 3)
            0.146
        """
        points = accountant_curve(accountant)
        return cls(curve=(points.type_one, points.type_two))

    def __repr__(self) -> str:
        if callable(self.curve):
            curve = getattr(self.curve, "__name__", type(self.curve).__name__)
        else:
            curve = f"<{len(self.curve[0])} points>"
        return f"TradeOffDP(curve={curve}, excess={self.excess})"

    def _type_two(self, type_one: Floats) -> Floats:
        """The claimed curve at type-I errors of shape (n,)."""
        if callable(self.curve):
            return np.array([float(self.curve(float(error))) for error in type_one])
        known_type_one, known_type_two = self.curve
        return np.interp(type_one, known_type_one, known_type_two)

    def _type_two_at(self, type_one: float) -> float:
        """The claimed curve at one type-I error."""
        return float(self._type_two(np.array([type_one]))[0])

    def max_power(self, q: Real) -> Real:
        """Returns 1 − f(q) plus the tolerated excess, at most 1."""
        type_one = np.atleast_1d(np.asarray(q, dtype=float))
        power = np.minimum(1.0 - self._type_two(type_one) + self.excess, 1.0)
        return power if isinstance(q, np.ndarray) else float(power[0])

    def least_value(self, p: float, q: float) -> float:
        """Returns p − (1 − f(q)), at least 0."""
        return float(self.least_values(np.array([p]), np.array([q]))[0])

    def least_values(self, p: Floats, q: Floats) -> Floats:
        """`least_value` for arrays of shape (n,)."""
        return np.maximum(p - 1.0 + self._type_two(q), 0.0)

    def point_at(self, q: float) -> list[float]:
        """The point of the curve at the type-I error q, as plain data."""
        return [q, self._type_two_at(q)]

    def points_at(self, q: Floats) -> list[list[float]]:
        """The points of the curve at type-I errors of shape (n,), as plain data.

        Returns:
            The type-I errors in ascending order, and the values of the curve there.
        """
        type_one = np.sort(q)
        return [type_one.tolist(), self._type_two(type_one).tolist()]

    def scaled(self, distance: int) -> Self:
        """Returns the claim whose greatest power is that of this one, applied once per step.

        Reference: Dong, Roth, Su (2022), Theorem 2.14.
        """
        n_steps = check_whole("distance", distance)
        if n_steps == 1:
            return self
        power = _GRID
        for _ in range(n_steps):
            power = np.asarray(self.max_power(power), dtype=np.float64)
        type_two = _shifted_to_safe_side(1.0 - power)
        return type(self)(curve=(_GRID.tolist(), type_two.tolist()), excess=self.excess)

    def describe(self) -> str:
        """The claim in one line: its curve at one point, for orientation."""
        return f"TradeOffDP(curve with f(0.05)={self._type_two_at(0.05):.3g})"

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain data; a function is stored as points on the safe side."""
        if callable(self.curve):
            type_one = _GRID.tolist()
            type_two = _shifted_to_safe_side(self._type_two(_GRID)).tolist()
        else:
            type_one = list(self.curve[0])
            type_two = list(self.curve[1])
        return {"notion": self.notion, "excess": self.excess, "curve": [type_one, type_two]}

    @classmethod
    def restored(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        curve = data.get("curve")
        if not isinstance(curve, list | tuple):
            raise InputError("a stored trade-off claim needs its curve as two lists of numbers")
        return cls(**{**data, "curve": tuple(curve)})


def _checked_points(
    points: tuple[Sequence[float], Sequence[float]],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns the points of a curve, type-I and type-II errors, or raises an InputError."""
    try:
        type_one, type_two = [np.asarray(errors, dtype=float) for errors in points]
    except (TypeError, ValueError) as error:
        raise InputError(
            "curve must be a function, or two sequences of numbers (type I, type II)"
        ) from error
    fit_together = type_one.ndim == 1 and type_one.shape == type_two.shape
    if not fit_together or len(type_one) < 2 or not np.all(np.diff(type_one) > 0):
        raise InputError(
            "curve points must be two sequences of one length ≥ 2 with increasing type-I errors"
        )
    return tuple(type_one.tolist()), tuple(type_two.tolist())


def _shifted_to_safe_side(type_two: Floats) -> Floats:
    """Gives every point of the grid the type-II error of the next point on the right.

    Lines between such points lie nowhere above a curve that decreases.
    """
    return np.minimum.accumulate(np.append(type_two[1:], 0.0))
