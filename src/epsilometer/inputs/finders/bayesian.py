"""Pairs where a model of the scores so far expects the most."""

import math
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Unpack

import numpy as np
import scipy  # scipy.linalg is loaded when it is first used: that takes as long as a small audit
from scipy.special import ndtr

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_choice
from epsilometer.environment import one_thread
from epsilometer.errors import MissingExtraError
from epsilometer.inputs.coordinates import Coordinate, level_of
from epsilometer.inputs.domains.numbers import Domain
from epsilometer.inputs.finders.base import DomainFinder, Told, Trials

_ROOT5 = math.sqrt(5.0)
# Priors of the logarithms: a length scale of a seventh of the cube's diagonal, so that narrow hills do not pass for
# noise; noise of a seventh of the signal (a fiftieth of its variance).
_LENGTH, _LENGTH_SPREAD = 0.15, 1.0
_NOISE, _NOISE_SPREAD = 0.02, 1.5
# Beyond these a length is practically zero or infinite, and the scores pure noise or noiseless.
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
        weights: shape (n,), the weights of the mean.
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
        reduced = scipy.linalg.solve_triangular(self.factor, across.T, lower=True)
        left = np.maximum(1.0 - np.einsum("ij,ij->j", reduced, reduced), 1e-12)
        return across @ self.weights, np.sqrt(self.scale * left)


def fit(points: Floats, scores: Floats, coordinates: tuple[Coordinate, ...]) -> GaussianProcess:
    """The process whose length scales and noise are the most probable given standardised scores of shape (n,)."""
    from scipy.optimize import minimize  # slow to import, and only needed for a search

    squares = _squared_distances(points, points, coordinates)
    start = np.log([_LENGTH * math.sqrt(len(coordinates))] * len(coordinates) + [_NOISE])
    spread = np.array([_LENGTH_SPREAD] * len(coordinates) + [_NOISE_SPREAD])
    limits = np.log([_LENGTHS] * len(coordinates) + [_NOISES])
    arguments = (squares, scores, start, spread)
    found = minimize(_loss, start, arguments, "L-BFGS-B", jac=True, bounds=limits, options={"maxiter": _STEPS})
    lengths, noise = np.exp(found.x[:-1]), math.exp(found.x[-1])
    factor = scipy.linalg.cholesky(_with_noise(_correlation(np.tensordot(lengths**-2, squares, 1)), noise), lower=True)
    weights = scipy.linalg.cho_solve((factor, True), scores)
    return GaussianProcess(coordinates, points, lengths, noise, float(scores @ weights) / len(scores), factor, weights)


def _loss(logs: Floats, squares: Floats, scores: Floats, expected: Floats, spread: Floats) -> tuple[float, Floats]:
    """Minus the logarithm of the probability of lengths and noise, with its gradient; at the best scale."""
    lengths, noise = np.exp(logs[:-1]), math.exp(logs[-1])
    scaled = squares / lengths[:, None, None] ** 2
    distance = _ROOT5 * np.sqrt(scaled.sum(axis=0))
    decay = np.exp(-distance)
    factor = scipy.linalg.cholesky(_with_noise((1.0 + distance + distance**2 / 3.0) * decay, noise), lower=True)
    inverse = scipy.linalg.cho_solve((factor, True), np.eye(len(scores)))
    weights = inverse @ scores
    n, fit_error = len(scores), max(float(scores @ weights), 1e-12)
    away = (logs - expected) / spread
    loss = 0.5 * n * math.log(fit_error / n) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(away @ away)
    # The derivative of the loss by the matrix, then by each logarithm.
    by_matrix = 0.5 * (inverse - (n / fit_error) * np.outer(weights, weights))
    by_lengths = np.tensordot(scaled, by_matrix * (5.0 / 3.0) * (1.0 + distance) * decay, 2)
    return loss, np.append(by_lengths, noise * np.trace(by_matrix)) + away / spread


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
    """How much the signal at each point is expected to exceed `best`, where falling short counts as 0."""
    mean, spread = process.predict(points)
    z = (mean - best) / spread
    return np.asarray(spread * (z * ndtr(z) + np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)), dtype=np.float64)


# Points that are tried on the model: anywhere, and around the best known ones, in rounds of shrinking width.
_ANYWHERE, _AROUND = 400, 60
_BEST = 4
_WIDTHS = (0.2, 0.08, 0.03)
# Improvements count from this many spreads of the scores above the best one: a model that goes for every small
# improvement lingers on the first hill (rare leak, longest of 40 searches: 187 trials without it, 75 with it).
_MARGIN = 0.3
# Of a search longer than this, the model sees the best trials and the latest ones: its cost grows with the cube.
_MOST_TRIALS = 120


def greatest_improvement(told: list[Told], coordinates: tuple[Coordinate, ...], rng: np.random.Generator) -> Floats:
    """Fits a Gaussian process to all scores and looks for the greatest expected improvement on it."""
    points, scores = remembered(told)
    # Matrices of this size are done before threads synchronise (200 points: 0.15 s with threads, 0.06 s without).
    with one_thread():
        process = fit(points, standardised(scores), coordinates)
        mean, _ = process.predict(points)
        best = float(mean.max()) + _MARGIN  # of the signal, because the best score itself may be luck
        found = np.concatenate([rng.random((_ANYWHERE, len(coordinates))), points[np.argsort(-mean)[:_BEST]]])
        for width in _WIDTHS:  # the best of the points, and points around them
            kept = found[np.argsort(-expected_improvement(process, found, best))[:_BEST]]
            centres = np.repeat(kept, _AROUND, axis=0)
            moved = np.clip(centres + width * rng.standard_normal(centres.shape), 0.0, 1.0)
            # Some coordinates stay: most of a good point is often right already.
            found = np.concatenate([kept, np.where(rng.random(centres.shape) < 0.5, moved, centres)])
        return np.asarray(found[int(np.argmax(expected_improvement(process, found, best)))])


def remembered(told: list[Told], most: int = _MOST_TRIALS) -> tuple[Floats, Floats]:
    """Points and scores that the model sees; a trial without a score counts like the worst one."""
    scored, points = [each.score for each in told if each.score is not None], np.array([each.point for each in told])
    scores = np.array([min(scored) if each.score is None else each.score for each in told])
    if len(told) <= most:
        return points, scores
    latest = np.arange(len(told)) >= len(told) - most // 2
    order = np.argsort(-np.where(latest, -np.inf, scores), kind="stable")[: most // 2]
    kept = np.sort(np.concatenate([order, np.flatnonzero(latest)]))
    return points[kept], scores[kept]


def standardised(scores: Floats) -> Floats:
    """Mean 0 and variance 1, if the scores differ at all."""
    spread = float(scores.std())
    return np.asarray((scores - scores.mean()) / (spread if spread > 0.0 else 1.0))


def parzen_trees(told: list[Told], coordinates: tuple[Coordinate, ...], rng: np.random.Generator) -> Floats:
    """Asks optuna's sampler, which gets all trials anew each time: so it has no state that could be lost."""
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    # Per coordinate, how many unordered levels it has.
    levels = [None if each.ordered else each.levels or 1 for each in coordinates]
    kinds = [FloatDistribution(0.0, 1.0) if most is None else CategoricalDistribution(range(most)) for most in levels]
    space: dict[str, Any] = {str(place): kind for place, kind in enumerate(kinds)}
    trials = []
    for point, score in zip(*remembered(told, most=len(told)), strict=True):
        values = [u if most is None else level_of(u, most) for u, most in zip(point.tolist(), levels, strict=True)]
        params = dict(zip(space, values, strict=True))
        trials.append(optuna.trial.create_trial(params=params, distributions=space, value=float(score)))
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would log every study
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about multivariate sampling being experimental
        try:
            sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)), n_startup_trials=0, multivariate=True)
            study = optuna.create_study(direction="maximize", sampler=sampler)
        finally:
            optuna.logging.set_verbosity(verbosity)
        study.add_trials(trials)
        chosen = study.ask(space).params
    found = zip((chosen[name] for name in space), levels, strict=True)
    return np.array([value if most is None else (value + 0.5) / most for value, most in found])


_DEFAULT = "gaussian-process"
SURROGATES = {_DEFAULT: greatest_improvement, "tree": parzen_trees}
# Trials at random before there is a model: as many as coordinates, but not fewer than this, nor more than a third of
# all, if there are many coordinates. (Rare leak, mean trials of 40 searches: 17 with as many as coordinates, 22 with 4
# more, 24 with 8 more.)
_FIRST_TRIALS = 4
# One trial in this many ignores the model, which may be sure of a hill that is not the highest.
_LOOK_AROUND = 7


class Bayesian(DomainFinder):
    """Tries pairs where a model of the scores so far expects the greatest improvement.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        surrogate: the model: "gaussian-process" (built in), or "tree" (tree-structured Parzen estimators of the package
            optuna, an extra).
        trials: the most pairs to try.
        samples: draws per side to explore a pair.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "bayesian"

    def __init__(
        self, domain: Domain, relation: str | None = None, *, surrogate: str = _DEFAULT, **settings: Unpack[Trials]
    ) -> None:
        super().__init__(domain, relation, **settings)
        self.surrogate = check_choice("surrogate", surrogate, SURROGATES)
        if surrogate == "tree" and find_spec("optuna") is None:
            raise MissingExtraError("optuna", "search", "surrogate='tree'")
        self.first_trials = max(_FIRST_TRIALS, min(len(self.neighbours.coordinates), self.trials // 3))

    def describe(self) -> dict[str, Any]:
        """The settings, with the model."""
        return {**super().describe(), "surrogate": self.surrogate}

    def next_point(self, number: int) -> Floats:
        """The point of trial `number`."""
        coordinates, rng = self.neighbours.coordinates, self._rng(number)
        scored = {each.score for each in self._told if each.score is not None}
        if number < self.first_trials or len(scored) < 2 or number % _LOOK_AROUND == 0:
            return rng.random(len(coordinates))
        return SURROGATES[self.surrogate](self._told, coordinates, rng)
