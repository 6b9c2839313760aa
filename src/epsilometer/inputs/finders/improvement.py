"""The point of a unit cube where a Gaussian process expects the greatest improvement."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.inputs.coordinates import Coordinate
from epsilometer.inputs.finders.base import Told
from epsilometer.inputs.finders.gaussian_process import GaussianProcess, expected_improvement, fit

Floats = NDArray[np.float64]

# Points that are tried on the model: anywhere, and around the best ones known, in rounds of shrinking width.
_ANYWHERE, _AROUND = 400, 60
_BEST = 4
_WIDTHS = (0.2, 0.08, 0.03)
# Improvements count from so many spreads of the scores above the best one: a model that takes every little thing
# lingers on the first hill (rare leak, longest of 40 searches: 187 trials without, 75 with it).
_MARGIN = 0.3
# Of a search longer than this, the model sees the best trials and the latest ones: its cost grows with the cube.
_MOST_TRIALS = 120


class GreatestImprovement:
    """Fits a Gaussian process to all scores and looks for the greatest expected improvement on it."""

    def next_point(self, told: list[Told], coordinates: tuple[Coordinate, ...], rng: np.random.Generator) -> Floats:
        """A point of shape (coordinates,)."""
        with _one_thread():
            return self._search(*remembered(told), coordinates, rng)

    def _search(
        self, points: Floats, scores: Floats, coordinates: tuple[Coordinate, ...], rng: np.random.Generator
    ) -> Floats:
        process = fit(points, standardised(scores), coordinates)
        mean, _ = process.predict(points)
        best = float(mean.max()) + _MARGIN  # of the signal: the best score itself may be luck
        found = np.concatenate([rng.random((_ANYWHERE, len(coordinates))), points[np.argsort(-mean)[:_BEST]]])
        for width in _WIDTHS:
            found = _narrowed(process, found, best, width, rng)
        return np.asarray(found[int(np.argmax(expected_improvement(process, found, best)))])


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # looks for libraries once

    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[None]:
    """Matrices of this size are done before threads have met: they only burn time (200 points: 0.15 s for 0.06 s)."""
    limited: AbstractContextManager[None] = _libraries().limit(limits=1, user_api="blas")
    return limited


def _narrowed(process: GaussianProcess, points: Floats, best: float, width: float, rng: np.random.Generator) -> Floats:
    """The best of the points, and points around them."""
    kept = points[np.argsort(-expected_improvement(process, points, best))[:_BEST]]
    centres = np.repeat(kept, _AROUND, axis=0)
    moved = np.clip(centres + width * rng.standard_normal(centres.shape), 0.0, 1.0)
    # Some coordinates stay: most of what is good about a point is often right already.
    return np.concatenate([kept, np.where(rng.random(centres.shape) < 0.5, moved, centres)])


def remembered(told: list[Told]) -> tuple[Floats, Floats]:
    """Points and scores that the model sees; a trial without a score counts like the worst one."""
    scored = [each.score for each in told if each.score is not None]
    points = np.array([each.point for each in told])
    scores = np.array([min(scored) if each.score is None else each.score for each in told])
    if len(told) <= _MOST_TRIALS:
        return points, scores
    latest = np.arange(len(told)) >= len(told) - _MOST_TRIALS // 2
    order = np.argsort(-np.where(latest, -np.inf, scores), kind="stable")[: _MOST_TRIALS // 2]
    kept = np.sort(np.concatenate([order, np.flatnonzero(latest)]))
    return points[kept], scores[kept]


def standardised(scores: Floats) -> Floats:
    """Mean 0 and variance 1, if the scores differ at all."""
    spread = float(scores.std())
    return np.asarray((scores - scores.mean()) / (spread if spread > 0.0 else 1.0))
