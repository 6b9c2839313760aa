"""Noise that the families add, with the logarithms of its densities and probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln, log_ndtr

from epsilometer.arrays import Floats


def laplace_log_density(x: Any, center: Any, scale: float) -> Floats:
    """Of Laplace noise around a centre."""
    return -np.abs(np.asarray(x, dtype=float) - center) / scale - math.log(2.0 * scale)


def normal_log_density(x: Any, center: Any, deviation: float) -> Floats:
    """Of Gaussian noise around a centre."""
    standardised = (np.asarray(x, dtype=float) - center) / deviation
    return -0.5 * standardised**2 - math.log(deviation) - 0.5 * math.log(2.0 * math.pi)


def multivariate_normal_log_density(x: Any, center: Any, covariance: Floats) -> Floats:
    """Of rows x of shape (n, d); shape (n,)."""
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, (np.asarray(x, dtype=float) - center).T)
    log_volume = np.log(np.diag(factor)).sum() + 0.5 * len(factor) * math.log(2.0 * math.pi)
    return -0.5 * (whitened**2).sum(axis=0) - log_volume


def student_log_density(x: Any, center: float, scale: float, freedom: float) -> Floats:
    """Of Student's t noise around a centre."""
    standardised = (np.asarray(x, dtype=float) - center) / scale
    constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2)
    constant -= 0.5 * math.log(freedom * math.pi) + math.log(scale)
    return constant - (freedom + 1) / 2 * np.log1p(standardised**2 / freedom)


def geometric_noise(epsilon: float, shape: Any, rng: Generator) -> Any:
    """Two-sided geometric noise, an integer array: probability ∝ exp(−epsilon·|k|)."""
    chance = -math.expm1(-epsilon)
    return rng.geometric(chance, shape) - rng.geometric(chance, shape)


def geometric_log_mass(k: Any, epsilon: float) -> Floats:
    """Of two-sided geometric noise."""
    return math.log(math.tanh(epsilon / 2.0)) - epsilon * np.abs(np.asarray(k, dtype=float))


def geometric_log_below(k: Any, epsilon: float) -> Floats:
    """ln P(noise < k) of two-sided geometric noise."""
    k = np.asarray(k, dtype=float)
    log_sum = math.log1p(math.exp(-epsilon))
    lower_tail = epsilon * (k - 1) - log_sum
    upper_tail = -epsilon * np.maximum(k, 0) - log_sum
    return np.where(k <= 0, lower_tail, np.log1p(-np.exp(np.minimum(upper_tail, -1e-300))))


def laplace_log_interval(low: Any, high: Any, center: float, scale: float) -> Floats:
    """ln P(low ≤ x < high) of Laplace noise around a centre, exact far out in the tails."""
    low = (np.asarray(low, dtype=float) - center) / scale
    high = (np.asarray(high, dtype=float) - center) / scale
    # The distribution is symmetric: intervals below the centre are mirrored.
    is_mirrored = low + high < 0
    low, high = np.where(is_mirrored, -high, low), np.where(is_mirrored, -low, high)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        beside = math.log(0.5) - low + np.log(-np.expm1(low - high))
        across = np.log1p(-0.5 * np.exp(-high) - 0.5 * np.exp(np.minimum(low, 0.0)))
    return np.where(low >= 0, beside, across)


def normal_log_interval(low: Any, high: Any, center: Any, deviation: float) -> Floats:
    """ln P(low ≤ x < high) of Gaussian noise around a centre, exact far out in the tails."""
    low = (np.asarray(low, dtype=float) - center) / deviation
    high = (np.asarray(high, dtype=float) - center) / deviation
    is_mirrored = low + high > 0
    low, high = np.where(is_mirrored, -high, low), np.where(is_mirrored, -low, high)
    return log_ndtr(high) + np.log(-np.expm1(log_ndtr(low) - log_ndtr(high)))


def uniform_category_log_mass(answer: Any, truth: Any, n_categories: int, epsilon: float) -> Floats:
    """Of randomized response: the truth is exp(epsilon) times likelier than each other category."""
    total = math.exp(epsilon) + n_categories - 1
    return np.where(np.asarray(answer) == truth, epsilon, 0.0) - math.log(total)


def randomized_response(
    truth: int, n_categories: int, epsilon: float, n: int, rng: Generator
) -> Any:
    """Categories 0 … n_categories − 1, an integer array of shape (n,)."""
    total = math.exp(epsilon) + n_categories - 1
    others = rng.integers(0, n_categories - 1, n)
    others += others >= truth
    return np.where(rng.random(n) < math.exp(epsilon) / total, truth, others)
