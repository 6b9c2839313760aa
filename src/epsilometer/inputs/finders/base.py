"""What our finders have in common: points of a space, asked for and told about one by one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_number, check_whole
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import Point
from epsilometer.inputs.domains.numbers import Domain
from epsilometer.inputs.pairs import Pair

# Fewer draws per side than this say nothing about a pair.
FEWEST = 50


class Told(NamedTuple):
    """A trial: its point, and its score if it has one."""

    point: tuple[float, ...]
    score: float | None


class PointFinder(ABC):
    """A finder whose proposals are points; the next one is a function of its seed and of what it was told."""

    name: ClassVar[str]

    def __init__(
        self, *, trials: int = 50, samples: int = 20_000, seed: int = 0, stop_at_refutation: bool = True
    ) -> None:
        self.trials = check_whole("trials", trials, 1, ": a search without trials finds nothing")
        self.samples = check_whole("samples", samples, FEWEST, ": fewer draws per trial say nothing about a pair")
        self.seed = check_whole("seed", seed, 0)
        self.stop_at_refutation = bool(stop_at_refutation)
        self._told: list[Told] = []
        self._asked: tuple[float, ...] | None = None

    def ask(self) -> Pair | None:
        """The next pair, the same until its score is told; None after the last trial."""
        if self._asked is None:
            if len(self._told) >= self.trials:
                return None
            self._asked = tuple(float(u) for u in self.next_point(len(self._told)))
        return self._pair(self._asked)

    def tell(self, score: float | None) -> None:
        """The score of the pair that was asked last; None if it has none."""
        if self._asked is None:
            raise InputError("tell() without ask(): there is no pair that the score could belong to")
        self._told.append(Told(self._asked, check_score(score)))
        self._asked = None

    def state(self) -> dict[str, Any]:
        """Plain data for JSON; `restore` is the inverse."""
        return {"finder": self.describe(), "told": [[list(each.point), each.score] for each in self._told]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of a finder with the same settings; more trials may be allowed than before."""
        try:
            stored = dict(state["finder"])
            told = [Told(tuple(float(u) for u in point), check_score(score)) for point, score in state["told"]]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"this is not the state of a finder: {error!r}") from error
        own = self.describe()
        different = [key for key in own if key != "trials" and stored.get(key) != own[key]]
        if different:
            raise InputError(f"the state is of another search (its {', '.join(different)} differ)")
        strange = next((each.point for each in told if not self._knows(each.point)), None)
        if strange is not None:
            raise InputError(f"this is not the state of a finder: {list(strange)!r:.100} is not a point of its search")
        self._told, self._asked = told, None

    def describe(self) -> dict[str, Any]:
        """Name, trials, samples and seed; subclasses add theirs."""
        own = ("name", "trials", "samples", "seed", "stop_at_refutation")
        return {setting: getattr(self, setting) for setting in own}

    @abstractmethod
    def _knows(self, point: tuple[float, ...]) -> bool:
        """Whether it could have proposed a point."""

    def next_point(self, number: int) -> Point | Floats:
        """The point of trial `number`, which counts from 0; for finders that list their pairs it is the number."""
        return (float(number),)

    @abstractmethod
    def _pair(self, point: tuple[float, ...]) -> Pair:
        """The pair that a point stands for."""


class Trials(TypedDict, total=False):
    """The settings that all finders have in common, by name; their defaults are those of `PointFinder`."""

    trials: int
    samples: int
    seed: int
    stop_at_refutation: bool


class DomainFinder(PointFinder):
    """A finder over the unit cube of a domain's pairs of neighbours; subclasses choose the next point."""

    def __init__(self, domain: Domain, relation: str | None = None, **settings: Unpack[Trials]) -> None:
        super().__init__(**settings)
        if not hasattr(domain, "neighbours") or not getattr(domain, "relations", ()):
            example = "epsilometer.domains, such as Vector(4, low=0, high=1)"
            raise InputError(f"domain={domain!r:.100} must be one of {example}")
        self.domain: Any = domain
        self.relation = domain.relations[0] if relation is None else relation
        self.neighbours = domain.neighbours(self.relation)

    def describe(self) -> dict[str, Any]:
        """The settings, with the domain in words."""
        return {**super().describe(), "domain": repr(self.domain), "relation": self.relation}

    def _pair(self, point: tuple[float, ...]) -> Pair:
        return self.neighbours.pair(point)

    def _knows(self, point: tuple[float, ...]) -> bool:
        return len(point) == len(self.neighbours.coordinates) and all(0.0 <= u <= 1.0 for u in point)

    def _rng(self, number: int) -> np.random.Generator:
        """A stream per trial, so that an interrupted search resumes as if nothing had happened."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))


def check_score(score: object) -> float | None:
    """A finite number, or None."""
    return None if score is None else check_number("score", score, ", or None for a trial that has none")
