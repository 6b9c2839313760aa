"""The data-centric level ε_x over a range of datasets: who is protected least.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach", (5) and the conclusion, which names such a map as an aim.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.claims.base import check_confidence
from epsilometer.engine import check_seed
from epsilometer.errors import InputError, blamed
from epsilometer.inputs import Pair
from epsilometer.methods.published.adapters import takes_arguments
from epsilometer.methods.published.local.mpl import data_centric
from epsilometer.one_line import fields_on_one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class DatasetLevel:
    """The level of one dataset against its neighbours.

    Attributes:
        dataset: x.
        lower_bound: on ε_x; all bounds of a map hold together.
        estimate: of ε_x at the place that was bounded, from fresh draws.
        neighbour: the worst neighbour that was found.
        location: the output at which the two differ most.
    """

    dataset: Any
    lower_bound: float
    estimate: float
    neighbour: Any
    location: Any

    __repr__ = fields_on_one_line


@dataclass(frozen=True, slots=True)
class LevelMap:
    """The levels of several datasets.

    Attributes:
        levels: one for each dataset, in the order in which they were given.
        confidence: with which all lower bounds hold together.
        guarantee: always "asymptotic".
        seed: repeats it.
    """

    levels: tuple[DatasetLevel, ...]
    confidence: float
    seed: int
    guarantee: str = "asymptotic"

    __repr__ = fields_on_one_line

    @property
    def least_protected(self) -> DatasetLevel:
        """The dataset with the greatest lower bound."""
        return max(self.levels, key=lambda level: level.lower_bound)

    def plot(self) -> "Figure":
        """The map as a matplotlib figure: a line over numbers, a grid over pairs, else bars."""
        from epsilometer.report.level_figure import draw_levels, level_picture
        from epsilometer.report.notebook import for_notebooks

        return for_notebooks(draw_levels(level_picture(self)))


def level_map(
    mechanism: object,
    datasets: Iterable[Any],
    neighbours: Callable[[Any], Iterable[Any]],
    *,
    confidence: float = 0.95,
    seed: int | None = None,
    **settings: Any,
) -> LevelMap:
    """Bounds the data-centric level ε_x of every dataset of a range.

    Args:
        mechanism: as for `mpl`.
        datasets: the datasets x.
        neighbours: a function from a dataset to its neighbours x', or to those to look at.
        confidence: with which all lower bounds hold together; k datasets share the failure
            probability equally.
        seed: makes it repeatable; every dataset has draws of its own.
        **settings: those of `mpl`: n and N per dataset, region, floor, jobs, …

    Guarantee: asymptotic, as for `mpl`; the bounds of all datasets hold together.

    Reference: Askin, Kutta, Dette (2022), (5).

    Example:
        >>> def add_or_remove_one(count):
        ...     return [count - 1, count + 1]
        >>> levels = em.local.level_map(
        ...     em.zoo.laplace(1.0), [0.0, 1.0], add_or_remove_one, n=2000, N=4000, seed=0
        ... )
        >>> [level.lower_bound > 0.5 for level in levels.levels]
        [True, True]
    """
    range_of_datasets = _as_datasets(datasets)
    if not callable(neighbours) or not takes_arguments(neighbours, 1):
        raise InputError(
            f"neighbours={neighbours!r:.80} must be a function from a dataset to its neighbours"
        )
    failure_probability = 1.0 - check_confidence(confidence)
    each_confidence = 1.0 - failure_probability / len(range_of_datasets)
    first_seed = check_seed(seed)
    levels: list[DatasetLevel] = []
    for number, dataset in enumerate(range_of_datasets):
        with blamed(f"neighbours={neighbours!r:.80} failed on the dataset {dataset!r:.80}"):
            of_dataset: Any = neighbours(dataset)
            if isinstance(of_dataset, Iterator):
                # What a generator raises is the caller's, too.
                of_dataset = list(of_dataset)
        result = data_centric(
            mechanism,
            dataset,
            of_dataset,
            confidence=each_confidence,
            seed=_seed_of_dataset(first_seed, number),
            **settings,
        )
        levels.append(
            DatasetLevel(
                dataset=dataset,
                lower_bound=result.lower_bound,
                estimate=result.estimate,
                neighbour=result.pair.right,
                location=result.location,
            )
        )
    return LevelMap(levels=tuple(levels), confidence=confidence, seed=first_seed)


def _as_datasets(datasets: object) -> list[Any]:
    """Returns the datasets of a map, at least one, or raises an InputError."""
    if isinstance(datasets, Pair | str | bytes) or not isinstance(datasets, Iterable):
        raise InputError(f"datasets={datasets!r:.80} must be a list of datasets")
    found = list(datasets)
    if not found:
        raise InputError("datasets is empty: give at least one dataset")
    return found


def _seed_of_dataset(seed: int, number: int) -> int:
    """Returns a seed whose draws are independent of those of the other datasets."""
    state = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)
    # Seeds are whole numbers below 2^63.
    return int(state[0] >> np.uint64(1))
