"""What our finders have in common: they propose points of a space and receive their scores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_flag, check_number, check_whole
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import Point
from epsilometer.inputs.domains.numbers import Domain
from epsilometer.inputs.pairs import Pair
from epsilometer.one_line import complete_repr, cut

# Characters of one setting in the repr of a finder.
_MAX_SETTING = 80
# The fewest draws per side that say anything about a pair.
FEWEST = 50


class ScoredPoint(NamedTuple):
    """A finished trial.

    Attributes:
        point: that was tried.
        score: of its pair; None if it has none.
    """

    point: tuple[float, ...]
    score: float | None


class PointFinder(ABC):
    """A finder whose proposals are points.

    The next one is a function of its seed and of the scores that it received.
    """

    name: ClassVar[str]
    # Pairs are explored one by one; those of a `RoundFinder` are screened in rounds.
    screens: ClassVar[bool] = False

    def __init__(
        self,
        *,
        trials: int = 50,
        samples: int = 20_000,
        seed: int = 0,
        stop_at_refutation: bool = True,
    ) -> None:
        self.trials = check_whole("trials", trials, 1, ": a search without trials finds nothing")
        self.samples = check_whole(
            "samples", samples, FEWEST, ": fewer draws per trial say nothing about a pair"
        )
        self.seed = check_whole("seed", seed, 0)
        self.stop_at_refutation = check_flag("stop_at_refutation", stop_at_refutation)
        self._scored: list[ScoredPoint] = []
        self._asked: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        settings = self.describe()
        del settings["name"]
        listed = [f"{name}={cut(str(value), _MAX_SETTING)}" for name, value in settings.items()]
        return f"<{type(self).__name__}: {', '.join(listed)}>"

    def ask(self) -> Pair | None:
        """Returns the next pair, the same until `tell` is called; None after the last trial."""
        if self._asked is None:
            if len(self._scored) >= self.trials:
                return None
            self._asked = tuple(float(u) for u in self.next_point(len(self._scored)))
        return self._pair(self._asked)

    def tell(self, score: float | None) -> None:
        """Receives the score of the pair that was asked for last; None if it has none."""
        if self._asked is None:
            raise InputError(
                "tell() without ask(): there is no pair that the score could belong to"
            )
        self._scored.append(ScoredPoint(self._asked, check_score(score)))
        self._asked = None

    def state(self) -> dict[str, Any]:
        """Returns plain data for JSON; `restore` is the inverse."""
        trials = [[list(trial.point), trial.score] for trial in self._scored]
        return {"finder": self.describe(), "told": trials}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of a finder with the same settings.

        More trials may be allowed than before.
        """
        try:
            stored_settings = dict(state["finder"])
            trials = []
            for coordinates, score in state["told"]:
                point = tuple(float(u) for u in coordinates)
                trials.append(ScoredPoint(point, check_score(score)))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"this is not the state of a finder: {error!r}") from error
        settings = self.describe()
        different = []
        for name, value in settings.items():
            if name != "trials" and stored_settings.get(name) != value:
                different.append(name)
        if different:
            raise InputError(f"the state is of another search (its {', '.join(different)} differ)")
        for trial in trials:
            if not self._knows(trial.point):
                raise InputError(
                    f"this is not the state of a finder: {list(trial.point)!r:.100} is not a point "
                    "of its search"
                )
        self._scored = trials
        self._asked = None

    def describe(self) -> dict[str, Any]:
        """Returns name, trials, samples and seed; subclasses add theirs."""
        return {
            "name": self.name,
            "trials": self.trials,
            "samples": self.samples,
            "seed": self.seed,
            "stop_at_refutation": self.stop_at_refutation,
        }

    @abstractmethod
    def _knows(self, point: tuple[float, ...]) -> bool:
        """Returns whether it could have proposed a point."""

    def next_point(self, number: int) -> Point | Floats:
        """Returns the point of a trial; for finders that list their pairs it is the number.

        Args:
            number: of the trial, from 0.
        """
        return (float(number),)

    @abstractmethod
    def _pair(self, point: tuple[float, ...]) -> Pair:
        """Returns the pair that a point stands for."""


class Trials(TypedDict, total=False):
    """The settings that all finders have in common; their defaults are those of `PointFinder`."""

    trials: int
    samples: int
    seed: int
    stop_at_refutation: bool


class DomainFinder(PointFinder):
    """A finder over the unit cube of a domain's pairs of neighbours.

    Subclasses choose the next point.
    """

    def __init__(
        self, domain: Domain, relation: str | None = None, **settings: Unpack[Trials]
    ) -> None:
        super().__init__(**settings)
        self.domain: Any = check_domain(domain)
        self.relation = self.domain.relations[0] if relation is None else relation
        self.neighbours = self.domain.neighbours(self.relation)

    def describe(self) -> dict[str, Any]:
        """Returns the settings, with the domain in words."""
        return {
            **super().describe(),
            "domain": complete_repr(self.domain),
            "relation": self.relation,
        }

    def _pair(self, point: tuple[float, ...]) -> Pair:
        pair: Pair = self.neighbours.pair(point)
        return pair

    def _knows(self, point: tuple[float, ...]) -> bool:
        if len(point) != len(self.neighbours.coordinates):
            return False
        return all(0.0 <= u <= 1.0 for u in point)

    def _rng(self, number: int) -> np.random.Generator:
        """Returns a stream per trial, so that an interrupted search resumes as if it never was."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))


def check_domain(domain: Any) -> Any:
    """Returns the domain, or raises an InputError if it is none."""
    is_class = isinstance(domain, type)
    if is_class or not hasattr(domain, "neighbours") or not getattr(domain, "relations", ()):
        raise InputError(
            f"domain={domain!r:.100} must be one of epsilometer.domains, such as "
            "Vector(4, low=0, high=1)"
        )
    return domain


def check_score(score: object) -> float | None:
    """Returns a finite number or None, or raises an InputError."""
    if score is None:
        return None
    return check_number("score", score, ", or None for a trial that has none")
