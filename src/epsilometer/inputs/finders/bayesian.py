"""A finder that tries pairs where a model of the scores so far expects the most."""

import math
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Unpack

import numpy as np
import scipy
from scipy.special import ndtr

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_choice
from epsilometer.environment import one_thread
from epsilometer.errors import MissingExtraError
from epsilometer.inputs.coordinates import Coordinate, level_of
from epsilometer.inputs.domains.numbers import Domain
from epsilometer.inputs.finders.base import DomainFinder, ScoredPoint, Trials

_ROOT5 = math.sqrt(5.0)
# Prior median of a length scale, in units of the cube's diagonal: a seventh of it, so that narrow
# hills do not pass for noise.
_LENGTH = 0.15
# Prior standard deviation of the logarithm of a length scale.
_LENGTH_LOG_DEVIATION = 1.0
# Prior median of the noise's variance over that of the signal: a fiftieth, so that the noise is a
# seventh of the signal.
_NOISE = 0.02
# Prior standard deviation of the logarithm of that ratio.
_NOISE_LOG_DEVIATION = 1.5
# Beyond these a length is practically zero or infinite.
_LENGTH_LIMITS = (0.02, 50.0)
# Beyond these the scores are practically noiseless or pure noise.
_NOISE_LIMITS = (1e-5, 10.0)
# Iterations of the optimiser: later ones hardly change the proposal.
_MAX_ITERATIONS = 20
# Added to the diagonal: keeps the matrix invertible when points coincide.
_JITTER = 1e-6
# The least variance and fit error, so that logarithms and quotients exist.
_TINY = 1e-12


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
        """Returns mean and standard deviation of the signal at points, shape (m, coordinates)."""
        squares = _squared_distances(points, self.points, self.coordinates)
        across = _correlation(np.tensordot(1.0 / self.lengths**2, squares, 1))
        reduced = scipy.linalg.solve_triangular(self.factor, across.T, lower=True)
        remaining = np.maximum(1.0 - np.einsum("ij,ij->j", reduced, reduced), _TINY)
        return across @ self.weights, np.sqrt(self.scale * remaining)


def fit(points: Floats, scores: Floats, coordinates: tuple[Coordinate, ...]) -> GaussianProcess:
    """Returns the process whose length scales and noise are the most probable given the scores.

    Args:
        points: shape (n, coordinates).
        scores: shape (n,), standardised.
        coordinates: of the cube.
    """
    from scipy.optimize import minimize  # slow to import, and only needed for a search

    n_coordinates = len(coordinates)
    squares = _squared_distances(points, points, coordinates)
    length = _LENGTH * math.sqrt(n_coordinates)
    prior_mean = np.log([length] * n_coordinates + [_NOISE])
    prior_deviation = np.array([_LENGTH_LOG_DEVIATION] * n_coordinates + [_NOISE_LOG_DEVIATION])
    optimum = minimize(
        _loss,
        prior_mean,
        args=(squares, scores, prior_mean, prior_deviation),
        method="L-BFGS-B",
        jac=True,
        bounds=np.log([_LENGTH_LIMITS] * n_coordinates + [_NOISE_LIMITS]),
        options={"maxiter": _MAX_ITERATIONS},
    )
    lengths = np.exp(optimum.x[:-1])
    noise = math.exp(optimum.x[-1])
    correlation = _correlation(np.tensordot(lengths**-2, squares, 1))
    factor = scipy.linalg.cholesky(_with_noise(correlation, noise), lower=True)
    weights = scipy.linalg.cho_solve((factor, True), scores)
    return GaussianProcess(
        coordinates=coordinates,
        points=points,
        lengths=lengths,
        noise=noise,
        scale=float(scores @ weights) / len(scores),
        factor=factor,
        weights=weights,
    )


def _loss(
    logs: Floats, squares: Floats, scores: Floats, prior_mean: Floats, prior_deviation: Floats
) -> tuple[float, Floats]:
    """Returns minus the log probability of lengths and noise, with its gradient.

    The scale of the signal is the best one for these lengths and this noise.

    Args:
        logs: shape (coordinates + 1,), logarithms of the lengths and of the noise.
        squares: shape (coordinates, n, n), squared distances per coordinate.
        scores: shape (n,).
        prior_mean: of the logarithms.
        prior_deviation: standard deviation of the logarithms.
    """
    n = len(scores)
    lengths = np.exp(logs[:-1])
    noise = math.exp(logs[-1])
    scaled = squares / lengths[:, None, None] ** 2
    distance = _ROOT5 * np.sqrt(scaled.sum(axis=0))
    decay = np.exp(-distance)
    correlation = (1.0 + distance + distance**2 / 3.0) * decay
    factor = scipy.linalg.cholesky(_with_noise(correlation, noise), lower=True)
    inverse = scipy.linalg.cho_solve((factor, True), np.eye(n))
    weights = inverse @ scores
    fit_error = max(float(scores @ weights), _TINY)
    half_log_determinant = float(np.log(np.diag(factor)).sum())
    from_prior = (logs - prior_mean) / prior_deviation
    penalty = 0.5 * float(from_prior @ from_prior)
    loss = 0.5 * n * math.log(fit_error / n) + half_log_determinant + penalty
    # The derivative of the loss by the matrix, then by each logarithm.
    by_matrix = 0.5 * (inverse - (n / fit_error) * np.outer(weights, weights))
    by_lengths = np.tensordot(scaled, by_matrix * (5.0 / 3.0) * (1.0 + distance) * decay, 2)
    by_noise = noise * np.trace(by_matrix)
    return loss, np.append(by_lengths, by_noise) + from_prior / prior_deviation


def _squared_distances(one: Floats, two: Floats, coordinates: tuple[Coordinate, ...]) -> Floats:
    """Returns squared distances per coordinate, shape (coordinates, len(one), len(two)).

    Unordered levels are equal or one apart.
    """
    squares = np.empty((len(coordinates), len(one), len(two)))
    for position, coordinate in enumerate(coordinates):
        a = coordinate.places(one[:, position])[:, None]
        b = coordinate.places(two[:, position])[None, :]
        squares[position] = (a - b) ** 2 if coordinate.ordered else a != b
    return squares


def _correlation(squared: Floats) -> Floats:
    """Returns the Matérn 5/2 correlation at squared scaled distances."""
    distance = _ROOT5 * np.sqrt(squared)
    return np.asarray((1.0 + distance + distance**2 / 3.0) * np.exp(-distance), dtype=np.float64)


def _with_noise(correlation: Floats, noise: float) -> Floats:
    return correlation + (noise + _JITTER) * np.eye(len(correlation))


def expected_improvement(process: GaussianProcess, points: Floats, best: float) -> Floats:
    """Returns how much the signal at each point is expected to exceed `best`.

    Falling short counts as 0.
    """
    mean, deviation = process.predict(points)
    z = (mean - best) / deviation
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    return np.asarray(deviation * (z * ndtr(z) + density), dtype=np.float64)


# Random points that are tried on the model.
_N_ANYWHERE = 400
# The best points, around which more are tried,
_N_BEST = 4
# as many as this around each,
_N_AROUND = 60
# in rounds of shrinking width.
_WIDTHS = (0.2, 0.08, 0.03)
# The probability that a coordinate of such a point moves: most of a good point is often right.
_MOVED_FRACTION = 0.5
# Improvements count from this many standard deviations of the scores above the best one: a model
# that goes for every small improvement lingers on the first hill (rare leak, longest of 40
# searches: 187 trials without it, 75 with it).
_MARGIN = 0.3
# Of a search longer than this, the model sees the best trials and the latest ones: its cost grows
# with the cube of their number.
_MAX_TRIALS_IN_MODEL = 120


def greatest_improvement(
    scored: list[ScoredPoint], coordinates: tuple[Coordinate, ...], rng: np.random.Generator
) -> Floats:
    """Returns the point of the greatest expected improvement on a model of all scores.

    The model is a Gaussian process; the point is looked for at random, then around the best ones.

    Args:
        scored: all trials so far.
        coordinates: of the cube.
        rng: the source of randomness.
    """
    points, scores = remembered(scored)
    # Matrices of this size are done before threads synchronise (200 points: 0.15 s with threads,
    # 0.06 s without).
    # Its library is limited only if it is loaded before.
    import scipy.linalg  # noqa: F401

    with one_thread():
        process = fit(points, standardised(scores), coordinates)
        mean, _ = process.predict(points)
        # That of the signal, because the best score itself may be a lucky one.
        best = float(mean.max()) + _MARGIN
        anywhere = rng.random((_N_ANYWHERE, len(coordinates)))
        candidates = np.concatenate([anywhere, points[np.argsort(-mean)[:_N_BEST]]])
        for width in _WIDTHS:
            improvement = expected_improvement(process, candidates, best)
            best_candidates = candidates[np.argsort(-improvement)[:_N_BEST]]
            centres = np.repeat(best_candidates, _N_AROUND, axis=0)
            moved = np.clip(centres + width * rng.standard_normal(centres.shape), 0.0, 1.0)
            is_moved = rng.random(centres.shape) < _MOVED_FRACTION
            around = np.where(is_moved, moved, centres)
            candidates = np.concatenate([best_candidates, around])
        improvement = expected_improvement(process, candidates, best)
        return np.asarray(candidates[int(np.argmax(improvement))])


def remembered(
    scored: list[ScoredPoint], most: int = _MAX_TRIALS_IN_MODEL
) -> tuple[Floats, Floats]:
    """Returns points and scores that the model sees; without a score, a trial has the worst one.

    Args:
        scored: all trials so far.
        most: how many the model sees: half of them the latest, half the best of the others.
    """
    worst = min(trial.score for trial in scored if trial.score is not None)
    points = np.array([trial.point for trial in scored])
    scores = np.array([worst if trial.score is None else trial.score for trial in scored])
    if len(scored) <= most:
        return points, scores
    is_latest = np.arange(len(scored)) >= len(scored) - most // 2
    best_first = np.argsort(-np.where(is_latest, -np.inf, scores), kind="stable")
    chosen = np.concatenate([best_first[: most // 2], np.flatnonzero(is_latest)])
    chosen = np.sort(chosen)
    return points[chosen], scores[chosen]


def standardised(scores: Floats) -> Floats:
    """Returns scores with mean 0 and, if they differ at all, variance 1."""
    deviation = float(scores.std())
    return np.asarray((scores - scores.mean()) / (deviation if deviation > 0.0 else 1.0))


def parzen_trees(
    scored: list[ScoredPoint], coordinates: tuple[Coordinate, ...], rng: np.random.Generator
) -> Floats:
    """Returns the point that optuna's sampler proposes.

    It gets all trials anew each time, so it has no state that could be lost.

    Args:
        scored: all trials so far.
        coordinates: of the cube.
        rng: the source of randomness.
    """
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    # Per coordinate, how many unordered levels it has; None if it is ordered.
    n_levels: list[int | None] = []
    space: dict[str, Any] = {}
    for position, coordinate in enumerate(coordinates):
        if coordinate.ordered:
            n_levels.append(None)
            space[str(position)] = FloatDistribution(0.0, 1.0)
        else:
            levels = coordinate.levels or 1
            n_levels.append(levels)
            space[str(position)] = CategoricalDistribution(range(levels))
    trials = []
    points, scores = remembered(scored, most=len(scored))
    for point, score in zip(points, scores, strict=True):
        parameters: dict[str, Any] = {}
        for name, u, n in zip(space, point.tolist(), n_levels, strict=True):
            parameters[name] = u if n is None else level_of(u, n)
        trials.append(
            optuna.trial.create_trial(params=parameters, distributions=space, value=float(score))
        )
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would log every study
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about multivariate sampling being experimental
        try:
            seed = int(rng.integers(2**31))
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=0, multivariate=True)
            study = optuna.create_study(direction="maximize", sampler=sampler)
        finally:
            optuna.logging.set_verbosity(verbosity)
        study.add_trials(trials)
        proposed = study.ask(space).params
    point = np.empty(len(coordinates))
    for position, n in enumerate(n_levels):
        value = proposed[str(position)]
        point[position] = value if n is None else (value + 0.5) / n
    return point


_DEFAULT = "gaussian-process"
SURROGATES = {
    _DEFAULT: greatest_improvement,
    "tree": parzen_trees,
}
# Trials at random before there is a model: as many as coordinates, but not fewer than this, nor
# more than a third of all, if there are many coordinates. (Rare leak, mean trials of 40 searches:
# 17 with as many as coordinates, 22 with 4 more, 24 with 8 more.)
_MIN_FIRST_TRIALS = 4
# One trial in this many ignores the model, which may be sure of a hill that is not the highest.
_RANDOM_TRIAL_EVERY = 7


class Bayesian(DomainFinder):
    """Tries pairs where a model of the scores so far expects the greatest improvement.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        surrogate: the model: "gaussian-process" (built in), or "tree" (tree-structured Parzen
            estimators of the package optuna, an extra).
        trials: the most pairs to try.
        samples: draws per side to explore a pair.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the
            largest bound.
    """

    name = "bayesian"

    def __init__(
        self,
        domain: Domain,
        relation: str | None = None,
        *,
        surrogate: str = _DEFAULT,
        **settings: Unpack[Trials],
    ) -> None:
        super().__init__(domain, relation, **settings)
        self.surrogate = check_choice("surrogate", surrogate, SURROGATES)
        if surrogate == "tree" and find_spec("optuna") is None:
            raise MissingExtraError("optuna", "search", "surrogate='tree'")
        n_coordinates = len(self.neighbours.coordinates)
        self.first_trials = max(_MIN_FIRST_TRIALS, min(n_coordinates, self.trials // 3))

    def describe(self) -> dict[str, Any]:
        """Returns the settings, with the model."""
        return {**super().describe(), "surrogate": self.surrogate}

    def next_point(self, number: int) -> Floats:
        """Returns the point of trial `number`."""
        coordinates = self.neighbours.coordinates
        rng = self._rng(number)
        distinct_scores = {trial.score for trial in self._scored if trial.score is not None}
        has_model = number >= self.first_trials and len(distinct_scores) >= 2
        if not has_model or number % _RANDOM_TRIAL_EVERY == 0:
            return rng.random(len(coordinates))
        return SURROGATES[self.surrogate](self._scored, coordinates, rng)
