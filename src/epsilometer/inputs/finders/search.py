"""A finder that knows where mistakes live: at the edges of a domain, and in what its type allows beyond its range.

Every pair is a base of records that both datasets have, and the records in which they differ. Families of such pairs
take turns; those that showed most, and changes of the pairs that showed most, come more often.
"""

import datetime
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epsilometer.claims.base import check_positive
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import Container, Value, check_relation, distinct
from epsilometer.inputs.domains.numbers import Boolean, Category, Date, Domain, Integer, Number, Text
from epsilometer.inputs.domains.records import Optional, Row
from epsilometer.inputs.domains.tables import Datasets, Examples, RecordDomain
from epsilometer.inputs.finders.attempts import BEYOND, EDGES, TYPICAL, Attempt, Builder
from epsilometer.inputs.finders.base import DomainFinder, Trials
from epsilometer.inputs.pairs import Pair
from epsilometer.storage.digests import Undigestible

# Pairs that are looked at together. The next ones are chosen when all of them are told, so that any number of workers
# takes the same path.
ROUND = 32
# Shares of the slots: for inputs beyond the domain, where they count and where they are looked at in passing, and for
# changes of what showed most.
_BEYOND_SHARE, _PASSING_SHARE, _AROUND_SHARE = 0.5, 0.2, 0.2
# Attempts to fill a round before the domain counts as exhausted.
_MOST_TRIED = 40 * ROUND
# The pairs that showed most, which are changed in search of more.
_BEST = 6


class Search(DomainFinder):
    """Tries typical data, the edges of a domain, and what its type allows although its range does not.

    Its pairs are looked at with few draws, on both inputs with the same random numbers where the mechanism allows it;
    only those that promise a refutation are explored with `samples` draws, shrunk, and certified.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        beyond: whether inputs outside the domain count like all others. Otherwise they are looked at in passing, and
            a leak there is a remark.
        trials: the most pairs to look at.
        samples: draws per side to explore a pair that looks promising.
        max_seconds: stops looking after this many seconds; what was found until then is certified.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "search"

    def __init__(
        self,
        domain: Domain,
        relation: str | None = None,
        *,
        beyond: bool = False,
        trials: int = 1000,
        samples: int = 4000,
        max_seconds: float | None = None,
        seed: int = 0,
        stop_at_refutation: bool = True,
    ) -> None:
        settings = Trials(trials=trials, samples=samples, seed=seed, stop_at_refutation=stop_at_refutation)
        super().__init__(domain, relation, **settings)
        self.beyond = bool(beyond)
        self.max_seconds = None if max_seconds is None else check_positive("max_seconds", max_seconds)
        space = datasets_of(domain, self.relation)
        self.builder = None if space is None else Builder(space)
        self._attempts: list[Attempt] = []  # of all rounds so far
        self._turn = 0
        self._families: dict[str, Iterator[Attempt]] = {}
        self._seen: set[tuple[str, str]] = set()

    def describe(self) -> dict[str, Any]:
        """The settings, with the domain in words."""
        return {**super().describe(), "beyond": self.beyond, "max_seconds": self.max_seconds}

    def ask(self) -> Pair | None:
        """The next pair, the same until its score is told; None after the last trial, or when all pairs were tried."""
        return super().ask() if self.round() else None

    def round(self) -> list[Attempt]:
        """What is left of the round under way, for callers that look at several pairs at once."""
        number = len(self._told)
        while len(self._attempts) <= number < self.trials:
            found = self._next_round(self._turn)
            if not found:
                return []
            self._attempts += found
            self._turn += 1
        return self._attempts[number : self.trials]

    def made(self, attempt: Attempt) -> Pair | None:
        """The pair of an attempt; None if its sides are equal or no neighbours, or the container cannot hold them."""
        if attempt.point is not None:
            pair = replace(self.neighbours.pair(attempt.point), note=attempt.note, within=True)
        else:
            assert self.builder is not None
            if not self.builder.are_neighbours(attempt):
                return None
            space, (left, right) = self.builder.space, attempt.sides()
            within = space.contains(left) and space.contains(right)
            try:
                pair = Pair(space.container(left), space.container(right), note=attempt.note, within=within)
            except Exception:  # whatever a library raises about values that it cannot hold
                return None
        return None if pair.has_equal_sides else pair

    def _pair(self, point: tuple[float, ...]) -> Pair:
        pair = self.made(self._attempts[int(point[0])])
        assert pair is not None  # a round holds only attempts that could be made
        return pair

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resumes; the rounds follow from what was told."""
        super().restore(state)
        told, self._told = self._told, []
        self._attempts, self._turn, self._families, self._seen = [], 0, {}, set()
        for each in told:
            self.round()
            self._told.append(each)

    def _knows(self, point: tuple[float, ...]) -> bool:
        return len(point) == 1 and point[0] in range(self.trials)

    def _next_round(self, turn: int) -> list[Attempt]:
        """Some around the best so far; of the others half by chance, half by what their family has shown."""
        if not self._families:
            self._families = self._all_families()
        known = sorted(((told.score, number) for number, told in enumerate(self._told) if told.score), reverse=True)
        best = [each for _, number in known[:_BEST] if (each := self._attempts[number]).point is None]
        shown: dict[str, float] = {}
        for score, number in known:
            shown.setdefault(self._attempts[number].family, score)
        groups = [[name for name in self._families if name.startswith(BEYOND) == far] for far in (False, True)]
        share = 0.0 if not groups[1] else _BEYOND_SHARE if self.beyond and turn > 1 else _PASSING_SHARE
        chosen: list[Attempt] = []
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(turn,)))
        for tried in range(_MOST_TRIED):  # a small domain has few pairs
            attempt: Attempt | None
            if self.builder and best and rng.random() < _AROUND_SHARE:
                attempt = self.builder.changed(best[int(rng.integers(len(best)))], rng)
            else:
                names = groups[int(rng.random() < share)]
                some = [names[int(each)] for each in rng.integers(len(names), size=1 + tried % 2)]
                attempt = next(self._families[max(some, key=lambda name: shown.get(name, 0.0))], None)
            pair = None if attempt is None else self.made(attempt)
            if attempt is not None and pair is not None and self._is_new(pair):
                chosen.append(attempt)
            if len(chosen) == ROUND:
                break
        return chosen

    def _is_new(self, pair: Pair) -> bool:
        with suppress(Undigestible):
            key = pair.digest
            if key in self._seen:
                return False
            self._seen.add(key)
        return True

    def _all_families(self) -> dict[str, Iterator[Attempt]]:
        if self.builder is not None and self.builder.space.relation not in ("l1", "linf"):
            made = self.builder.families()
        else:
            pairs = self._points if self.builder is None else self.builder.moved
            made = {TYPICAL: partial(pairs, edges=False), EDGES: partial(pairs, edges=True)}
        seeds = [np.random.SeedSequence(self.seed, spawn_key=(1, number)) for number in range(len(made))]
        streams = map(np.random.default_rng, seeds)
        return {name: family(rng) for (name, family), rng in zip(made.items(), streams, strict=True)}

    def _points(self, rng: np.random.Generator, edges: bool) -> Iterator[Attempt]:
        family, dimensions = EDGES if edges else TYPICAL, len(self.neighbours.coordinates)
        while True:
            point = rng.integers(2, size=dimensions).astype(float) if edges else rng.random(dimensions)
            yield Attempt(family, family, [], 0, [], [], point.tolist())


def datasets_of(domain: Any, relation: str) -> Datasets | None:
    """The datasets of any domain of ours, taken apart; None for one that only makes pairs of points."""
    check_relation(relation, domain.relations, f"a {type(domain).__name__}")
    if isinstance(domain, RecordDomain):
        return domain.datasets(relation)
    if isinstance(domain, Value):
        reach = getattr(domain, "sensitivity", None)
        single: Any = domain
        container = Container("one", {None: single})
        return Datasets(single, 1, 1, container, "replace", sensitivity=None if reach is None else float(reach))
    return None


def around(data: Any, relation: str | None = None, *, user: str | None = None, **settings: Any) -> Search:
    """A search among the neighbours of one's own data: one record of it replaced, left out or added.

    What values a record may have is taken from the data: the range of numbers, the categories, the longest text.

    Args:
        data: a list of values or of dicts, an array, a series, or a data frame of pandas or polars.
        relation: which datasets are neighbours; None takes "replace".
        user: the column that names the user, for the relation "user".
        settings: of `Search`: beyond, trials, samples, max_seconds, seed.

    Example:
        >>> def total(numbers, rng):
        ...     return sum(numbers) + rng.laplace()  # enough for numbers between 0 and 1 only
        >>> em.audit(total, em.around([1.0, 2.0, 9.0], trials=64), em.PureDP(1.0), samples=2000, seed=0).is_refuted
        True
    """
    kind, records = _taken_apart(data)
    if not records:
        raise InputError("data is empty: what its records may be is unknown; give a domain instead")
    rows = isinstance(records[0], dict)
    columns = {name: _inferred([row[name] for row in records]) for name in records[0]} if rows else {}
    record: Any = Row(columns) if rows else _inferred(records)
    if user is not None and user not in columns:
        raise InputError(f"user={user!r} must be a column of the data")
    container = Container(kind, columns if rows else {None: record}, getattr(data, "dtype", None))
    return Search(Examples(record, (records,), container, user), relation, **settings)


def _taken_apart(data: Any) -> tuple[str, list[Any]]:
    """The kind of container, and the records in it."""
    if isinstance(data, np.ndarray) and data.ndim in (1, 2):
        return "numpy", data.tolist() if data.ndim == 1 else [dict(enumerate(row)) for row in data.tolist()]
    if isinstance(data, list):
        rows = bool(data) and all(isinstance(row, dict) and row.keys() == data[0].keys() for row in data)
        return "rows" if rows else "list", list(data)
    library, name = type(data).__module__.partition(".")[0], type(data).__name__
    if (library, name) == ("polars", "DataFrame"):
        return "polars", list(data.to_dicts())
    if (library, name) == ("pandas", "DataFrame"):
        return "pandas", list(data.to_dict("records"))
    if (library, name) == ("pandas", "Series"):
        return "series", list(data.tolist())
    raise InputError(f"data={data!r:.100} must be a list, an array, a series, or a data frame of pandas or polars")


def _inferred(values: list[Any]) -> Any:
    """The domain of some values: the narrowest that has them all."""
    there = [each for each in values if each is not None and each == each]
    kinds = {type(each) for each in there}
    domain: Any
    if kinds == {bool}:
        domain = Boolean()
    elif kinds == {int} and min(there) < max(there):
        domain = Integer(min(there), max(there))
    elif kinds and kinds <= {int, float} and min(there) < max(there) and max(map(abs, there)) < math.inf:
        domain = Number(float(min(there)), float(max(there)))
    elif kinds == {str} and len(set(there)) > max(8, len(there) // 2):
        domain = Text(max(1, *map(len, there)))
    elif kinds == {datetime.date} and min(there) < max(there):
        domain = Date(min(there), max(there))
    else:
        domain = Category(tuple(each.value for each in distinct((each, "") for each in there)) or (None,))
    return domain if len(there) == len(values) or not there else Optional(domain)
