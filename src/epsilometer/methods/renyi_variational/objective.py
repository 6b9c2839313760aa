"""Maximises the variational form of a Rényi divergence over bounded functions of a linear family.

R(h) = α/(α−1)·ln E_P e^((α−1)h) − ln E_Q e^(αh) ≤ D_α(P‖Q), with equality at h = ln dP/dQ. A constant added to h
changes nothing. h = C·tanh(f/C) with f in the family keeps |h| ≤ C and has a gradient everywhere.

Reference: Birrell, Dupuis, Katsoulakis, Rey-Bellet and Wang (2021), Theorem 3.1; DP-Auditorium, Theorem 4.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Steps of L-BFGS after which the fourth digit stands still.
_STEPS = 60
# Pulls coefficients that no draw speaks for to 0.
_RIDGE = 1e-4


def variational_value(h: Floats, p: Floats, q: Floats, order: float) -> float:
    """R(h) for a function that takes the value h_j with probability p_j under P and q_j under Q."""
    return _value_and_slope(h, _logarithm(p), _logarithm(q), order)[0]


def best_function(basis: Floats | None, p: Floats, q: Floats, order: float, bound: float) -> Floats:
    """The bounded function of the family with the largest R.

    Args:
        basis: shape (points, k), values of the family's members; None lets every point have a value of its own.
        p: shape (points,), weights under P.
        q: under Q.
        order: α.
        bound: C.

    Returns:
        Its values, shape (points,).
    """
    return _bent(_combined(basis, best_coefficients(basis, p, q, order, bound)), bound)


def best_coefficients(basis: Floats | None, p: Floats, q: Floats, order: float, bound: float) -> Floats:
    """The coefficients of that function before it is bent, shape (k,)."""
    from scipy.optimize import minimize  # only this method needs it

    log_p, log_q = _logarithm(p), _logarithm(q)
    size = len(p) if basis is None else basis.shape[1]

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        h = _bent(_combined(basis, coefficients), bound)
        value, slope = _value_and_slope(h, log_p, log_q, order)
        slope = slope * (1.0 - (h / bound) ** 2)
        gradient = slope if basis is None else basis.T @ slope
        ridge = 0.5 * _RIDGE * float(coefficients @ coefficients)
        return ridge - value, _RIDGE * coefficients - gradient

    fitted = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return np.asarray(fitted.x, dtype=np.float64)


def _combined(basis: Floats | None, coefficients: Floats) -> Floats:
    return coefficients if basis is None else basis @ coefficients


def _bent(values: Floats, bound: float) -> Floats:
    return np.asarray(bound * np.tanh(values / bound), dtype=np.float64)


def _logarithm(weights: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _value_and_slope(h: Floats, log_p: Floats, log_q: Floats, order: float) -> tuple[float, Floats]:
    """R and its gradient: α times the difference of the two tilted laws."""
    tilts, totals = [], []
    for logs in (log_p + (order - 1.0) * h, log_q + order * h):
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        tilts.append(weights / total)
        totals.append(top + float(np.log(total)))
    return order / (order - 1.0) * totals[0] - totals[1], order * (tilts[0] - tilts[1])
