"""A Gaussian process on a unit cube, and where it expects the greatest improvement.

Small and plain: a Matérn 5/2 kernel with a length scale per coordinate, noise, both fitted to the scores; some hundred
points at most, so everything is a dense matrix.

Reference: Rasmussen and Williams, "Gaussian processes for machine learning", chapters 2, 4 and 5; Jones, Schonlau and
Welch, "Efficient global optimization of expensive black-box functions" (expected improvement).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import ndtr

from epsilometer.inputs.coordinates import Coordinate

Floats = NDArray[np.float64]

_ROOT5 = math.sqrt(5.0)
# Priors of the logarithms: a length scale of a seventh of the cube's diagonal, so that narrow hills are not taken for
# noise; noise of a seventh of the signal (a fiftieth of its variance).
_LENGTH, _LENGTH_SPREAD = 0.15, 1.0
_NOISE, _NOISE_SPREAD = 0.02, 1.5
# Beyond these a length is as good as zero or infinite, and noise all or nothing.
_LENGTHS, _NOISES = (0.02, 50.0), (1e-5, 10.0)
_STEPS = 20
# Keeps the matrix invertible when points coincide.
_JITTER = 1e-6


@dataclass(frozen=True, slots=True)
class GaussianProcess:
    """A fitted process.

    Attributes:
        coordinates: of the cube.
        points: shape (n, coordinates), where scores are known.
        lengths: shape (coordinates,), the length scales.
        noise: variance of a score's noise over that of the signal.
        scale: variance of the signal.
        factor: lower Cholesky factor of the correlation with noise, shape (n, n).
        weights: shape (n,), what the mean is a sum of.
    """

    coordinates: tuple[Coordinate, ...]
    points: Floats
    lengths: Floats
    noise: float
    scale: float
    factor: Floats
    weights: Floats

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the signal at points of shape (m, coordinates)."""
        squares = _squared_distances(points, self.points, self.coordinates)
        across = _correlation(np.tensordot(1.0 / self.lengths**2, squares, 1))
        reduced = solve_triangular(self.factor, across.T, lower=True)
        left = np.maximum(1.0 - np.einsum("ij,ij->j", reduced, reduced), 1e-12)
        return across @ self.weights, np.sqrt(self.scale * left)


def fit(points: Floats, scores: Floats, coordinates: tuple[Coordinate, ...]) -> GaussianProcess:
    """The process whose length scales and noise are the most probable given standardised scores of shape (n,)."""
    from scipy.optimize import minimize  # slow to import, and only a search needs it

    squares = _squared_distances(points, points, coordinates)
    length = _LENGTH * math.sqrt(len(coordinates))
    start = np.log(np.array([length] * len(coordinates) + [_NOISE]))
    spread = np.array([_LENGTH_SPREAD] * len(coordinates) + [_NOISE_SPREAD])
    limits = np.log([_LENGTHS] * len(coordinates) + [_NOISES])
    arguments = (squares, scores, start, spread)
    found = minimize(_loss, start, arguments, "L-BFGS-B", jac=True, bounds=limits, options={"maxiter": _STEPS})
    lengths, noise = np.exp(found.x[:-1]), math.exp(found.x[-1])
    factor = cholesky(_with_noise(_correlation(np.tensordot(lengths**-2, squares, 1)), noise), lower=True)
    weights = cho_solve((factor, True), scores)
    scale = float(scores @ weights) / len(scores)
    return GaussianProcess(coordinates, points, lengths, noise, scale, factor, weights)


def _loss(logs: Floats, squares: Floats, scores: Floats, expected: Floats, spread: Floats) -> tuple[float, Floats]:
    """Minus the logarithm of the probability of lengths and noise, with its gradient; the scale is the best one."""
    lengths, noise = np.exp(logs[:-1]), math.exp(logs[-1])
    scaled = squares / lengths[:, None, None] ** 2
    distance = _ROOT5 * np.sqrt(scaled.sum(axis=0))
    decay = np.exp(-distance)
    matrix = _with_noise((1.0 + distance + distance**2 / 3.0) * decay, noise)
    factor = cholesky(matrix, lower=True)
    inverse = cho_solve((factor, True), np.eye(len(scores)))
    weights = inverse @ scores
    n, fit_error = len(scores), max(float(scores @ weights), 1e-12)
    away = (logs - expected) / spread
    loss = 0.5 * n * math.log(fit_error / n) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(away @ away)
    # The derivative of the loss by the matrix, then by each logarithm.
    by_matrix = 0.5 * (inverse - (n / fit_error) * np.outer(weights, weights))
    by_lengths = np.tensordot(scaled, by_matrix * (5.0 / 3.0) * (1.0 + distance) * decay, 2)
    by_noise = noise * np.trace(by_matrix)
    return loss, np.append(by_lengths, by_noise) + away / spread


def _squared_distances(one: Floats, two: Floats, coordinates: tuple[Coordinate, ...]) -> Floats:
    """Per coordinate, shape (coordinates, len(one), len(two)); unordered levels are equal or one apart."""
    squares = np.empty((len(coordinates), len(one), len(two)))
    for place, coordinate in enumerate(coordinates):
        a, b = (coordinate.places(points[:, place]) for points in (one, two))
        squares[place] = (a[:, None] - b[None, :]) ** 2 if coordinate.ordered else a[:, None] != b[None, :]
    return squares


def _correlation(squared: Floats) -> Floats:
    """Matérn 5/2 of the squared scaled distance."""
    distance = _ROOT5 * np.sqrt(squared)
    return np.asarray((1.0 + distance + distance**2 / 3.0) * np.exp(-distance), dtype=np.float64)


def _with_noise(correlation: Floats, noise: float) -> Floats:
    return correlation + (noise + _JITTER) * np.eye(len(correlation))


def expected_improvement(process: GaussianProcess, points: Floats, best: float) -> Floats:
    """How much the signal at each point is expected to exceed `best`, counting what is below as nothing."""
    mean, spread = process.predict(points)
    z = (mean - best) / spread
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    return np.asarray(spread * (z * ndtr(z) + density), dtype=np.float64)
