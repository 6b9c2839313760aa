"""Tree-structured Parzen estimators, by the package optuna."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import MissingExtraError
from epsilometer.inputs.coordinates import Coordinate, level_of
from epsilometer.inputs.finders.base import Told


class ParzenTrees:
    """Asks optuna's sampler, which is told all trials anew each time: so it has no state that could be lost."""

    def __init__(self) -> None:
        if find_spec("optuna") is None:
            raise MissingExtraError("optuna", "search", "surrogate='tree'")

    def next_point(
        self, told: list[Told], coordinates: tuple[Coordinate, ...], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """A point of shape (coordinates,)."""
        space = {str(place): _distribution(each) for place, each in enumerate(coordinates)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that multivariate sampling is experimental
            study = _study(int(rng.integers(2**31)))
            study.add_trials(_trials(told, coordinates, space))
            chosen = study.ask(space).params
        return np.array([_number(each, chosen[str(place)]) for place, each in enumerate(coordinates)])


def _study(seed: int) -> Any:
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would tell about every study
    try:
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=0, multivariate=True)
        return optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(level)


def _trials(told: list[Told], coordinates: tuple[Coordinate, ...], space: dict[str, Any]) -> list[Any]:
    """The earlier trials as optuna knows them; one without a score counts like the worst."""
    from optuna.trial import create_trial

    worst = min(each.score for each in told if each.score is not None)
    points = [{str(place): _value(c, each.point[place]) for place, c in enumerate(coordinates)} for each in told]
    scores = [worst if each.score is None else each.score for each in told]
    return [
        create_trial(params=point, distributions=space, value=score)
        for point, score in zip(points, scores, strict=True)
    ]


def _distribution(coordinate: Coordinate) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    return FloatDistribution(0.0, 1.0) if coordinate.ordered else CategoricalDistribution(range(coordinate.levels or 1))


def _value(coordinate: Coordinate, u: float) -> float | int:
    return u if coordinate.ordered else level_of(u, coordinate.levels or 1)


def _number(coordinate: Coordinate, value: float) -> float:
    return float(value) if coordinate.ordered else (value + 0.5) / (coordinate.levels or 1)
