"""A finder that knows where mistakes live: at the edges of a domain, and beyond its range.

Every pair is a base of records that both datasets have, and the records in which they differ.
Families of such pairs take turns. Families and pairs with high scores are followed up more often.
The finder only proposes; `auditing/search.py` screens, shrinks and certifies.
"""

import datetime
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.claims.base import check_flag, check_positive
from epsilometer.errors import InputError, meant_or_known
from epsilometer.inputs.coordinates import Container, Value, check_relation, distinct
from epsilometer.inputs.domains.numbers import (
    Boolean,
    Category,
    Date,
    Domain,
    Integer,
    Number,
    Text,
)
from epsilometer.inputs.domains.records import Optional, Row
from epsilometer.inputs.domains.tables import Datasets, Examples, RecordDomain
from epsilometer.inputs.finders.attempts import BEYOND, EDGES, TYPICAL, Attempt, Builder
from epsilometer.inputs.finders.base import check_domain
from epsilometer.inputs.finders.rounds import PairCandidate, RoundFinder
from epsilometer.inputs.pairs import Pair
from epsilometer.one_line import complete_repr
from epsilometer.storage.digests import Undigestible

# Pairs per round. The next round is chosen when all of them have scores, so that any number of
# workers takes the same path.
ROUND = 32
# Fraction of a round beyond the domain, if pairs there count like all others.
_BEYOND_FRACTION = 0.5
# Fraction of a round beyond the domain, if pairs there are only remarked on; also in the first
# rounds otherwise, because inputs of the domain come first.
_PASSING_FRACTION = 0.2
# Rounds in which inputs of the domain come first.
_ROUNDS_WITHIN_FIRST = 2
# Fraction of a round that varies the pairs with the highest scores.
_VARIED_FRACTION = 0.2
# Pairs with the highest scores, which are varied.
_MOST_VARIED = 6
# Attempts to fill a round before the domain counts as exhausted: small domains have few pairs.
_MOST_TRIED = 40 * ROUND
# Simpler variants of a pair that are built in one step of shrinking. An audit screens no more.
_MOST_SIMPLER = 48


class Search(RoundFinder):
    """Tries typical data, the edges of a domain, and what its type but not its range allows.

    Its pairs are screened with few draws, on both inputs with the same random numbers where the
    mechanism allows it. Only those that promise a refutation are explored with `samples` draws,
    shrunk, and certified.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        beyond: whether inputs outside the domain count like all others. Otherwise they are screened
            in passing, and a leak there is a remark.
        trials: the most pairs to screen.
        samples: draws per side to explore a pair that looks promising.
        max_seconds: stops screening after this many seconds; what was found until then is
            certified.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the
            largest bound.
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
        super().__init__(
            trials=trials, samples=samples, seed=seed, stop_at_refutation=stop_at_refutation
        )
        self.domain: Any = check_domain(domain)
        self.relation = self.domain.relations[0] if relation is None else relation
        self.neighbours = self.domain.neighbours(self.relation)
        self.beyond = check_flag("beyond", beyond)
        if max_seconds is not None:
            self.max_seconds = check_positive("max_seconds", max_seconds)
        space = datasets_of(domain, self.relation)
        # None for domains that only make pairs of points.
        self._builder = None if space is None else Builder(space)
        # Of all rounds so far, in the order of their scores.
        self._attempts: list[Attempt] = []
        self._families: dict[str, Iterator[Attempt]] = {}
        self._digests: set[tuple[str, str]] = set()

    def describe(self) -> dict[str, Any]:
        """Returns the settings, with the domain in words."""
        return {
            **super().describe(),
            "domain": complete_repr(self.domain),
            "relation": self.relation,
            "beyond": self.beyond,
            "max_seconds": self.max_seconds,
        }

    def next_round(self, number: int) -> list[PairCandidate]:
        """Returns variations of the best pairs so far, and new pairs of all families.

        Half of the new ones are of a random family, the other half of the better of two.
        """
        if number == 0:
            self._attempts = []
            self._digests = set()
            self._families = self._all_families()
        ranked = sorted(
            ((score, place) for place, score in enumerate(self.scores) if score), reverse=True
        )
        best_attempts = [self._attempts[place] for _, place in ranked[:_MOST_VARIED]]
        best_attempts = [attempt for attempt in best_attempts if attempt.point is None]
        family_scores: dict[str, float] = {}
        for score, place in ranked:
            family_scores.setdefault(self._attempts[place].family, score)
        families_within = [name for name in self._families if not name.startswith(BEYOND)]
        families_beyond = [name for name in self._families if name.startswith(BEYOND)]
        if not families_beyond:
            fraction_beyond = 0.0
        elif self.beyond and number >= _ROUNDS_WITHIN_FIRST:
            fraction_beyond = _BEYOND_FRACTION
        else:
            fraction_beyond = _PASSING_FRACTION

        candidates: list[PairCandidate] = []
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        for tried in range(_MOST_TRIED):
            attempt: Attempt | None
            if self._builder and best_attempts and rng.random() < _VARIED_FRACTION:
                varied = best_attempts[int(rng.integers(len(best_attempts)))]
                attempt = self._builder.changed(varied, rng)
            else:
                is_beyond = rng.random() < fraction_beyond
                names = families_beyond if is_beyond else families_within
                drawn = rng.integers(len(names), size=1 + tried % 2)
                compared = [names[int(place)] for place in drawn]
                family = max(compared, key=lambda name: family_scores.get(name, 0.0))
                attempt = next(self._families[family], None)
            candidate = None if attempt is None else self._candidate(attempt)
            if candidate is not None and self._is_new(candidate.pair):
                candidates.append(candidate)
            if len(candidates) == ROUND:
                break
        self._attempts += [candidate.recipe for candidate in candidates]
        return candidates

    def simpler(self, candidate: PairCandidate) -> Iterable[PairCandidate]:
        """Returns pairs with fewer records, fewer differing values, or simpler ones."""
        if self._builder is None:
            return ()
        attempt: Attempt = candidate.recipe
        return self._simplest_first(attempt, self._builder.simpler(attempt))

    def simpler_fallback(self, candidate: PairCandidate) -> Iterable[PairCandidate]:
        """Returns pairs without two of their records: some leaks depend on an even number."""
        if self._builder is None:
            return ()
        attempt: Attempt = candidate.recipe
        return self._simplest_first(attempt, self._builder.without_two(attempt))

    def describe_candidate(self, candidate: PairCandidate) -> str:
        """Returns what is special about a pair: a value, an empty dataset, or its family."""
        if self._builder is None:
            return candidate.pair.note
        return self._builder.describe(candidate.recipe)

    def _simplest_first(
        self, attempt: Attempt, variants: Iterable[Attempt]
    ) -> Iterator[PairCandidate]:
        assert self._builder is not None
        complexity = self._builder.complexity
        limit = complexity(attempt)
        simpler = [variant for variant in variants if complexity(variant) < limit]
        simpler.sort(key=complexity)
        for variant in simpler[:_MOST_SIMPLER]:
            candidate = self._candidate(variant)
            if candidate is not None:
                yield candidate

    def _candidate(self, attempt: Attempt) -> PairCandidate | None:
        """Returns the candidate of an attempt.

        It is None if the two sides are equal or no neighbours, or if the container cannot hold
        them.
        """
        if attempt.point is not None:
            pair = replace(self.neighbours.pair(attempt.point), note=attempt.note, within=True)
        else:
            assert self._builder is not None
            if not self._builder.are_neighbours(attempt):
                return None
            space = self._builder.space
            left, right = attempt.sides()
            within = space.contains(left) and space.contains(right)
            try:
                left_dataset = space.container(left)
                right_dataset = space.container(right)
            except Exception:  # whatever a library raises about values that it cannot hold
                return None
            pair = Pair(left_dataset, right_dataset, note=attempt.note, within=within)
        if pair.has_equal_sides:
            return None
        return PairCandidate(pair, attempt.family, attempt)

    def _is_new(self, pair: Pair) -> bool:
        # Pairs that cannot be recognised always count as new.
        with suppress(Undigestible):
            digest = pair.digest
            if digest in self._digests:
                return False
            self._digests.add(digest)
        return True

    def _all_families(self) -> dict[str, Iterator[Attempt]]:
        """Returns an endless stream of attempts for each family, each with its own generator."""
        if self._builder is not None and self._builder.space.relation not in ("l1", "linf"):
            families = self._builder.families()
        else:
            attempts = self._points if self._builder is None else self._builder.moved
            families = {
                TYPICAL: partial(attempts, edges=False),
                EDGES: partial(attempts, edges=True),
            }
        streams: dict[str, Iterator[Attempt]] = {}
        for number, (name, family) in enumerate(families.items()):
            seed = np.random.SeedSequence(self.seed, spawn_key=(1, number))
            streams[name] = family(np.random.default_rng(seed))
        return streams

    def _points(self, rng: np.random.Generator, edges: bool) -> Iterator[Attempt]:
        """Yields random points of the unit cube, or random corners of it."""
        family = EDGES if edges else TYPICAL
        dimensions = len(self.neighbours.coordinates)
        while True:
            if edges:
                point = rng.integers(2, size=dimensions).astype(float)
            else:
                point = rng.random(dimensions)
            yield Attempt(
                family=family,
                note=family,
                base=[],
                place=0,
                left=[],
                right=[],
                point=point.tolist(),
            )


def datasets_of(domain: Any, relation: str) -> Datasets | None:
    """Returns the datasets of any domain of ours, as records.

    It is None for a domain that only makes pairs of points.
    """
    check_relation(relation, domain.relations, f"a {type(domain).__name__}")
    if isinstance(domain, RecordDomain):
        return domain.datasets(relation)
    if isinstance(domain, Value):
        sensitivity = getattr(domain, "sensitivity", None)
        single: Any = domain
        return Datasets(
            record=single,
            least=1,
            most=1,
            container=Container("one", {None: single}),
            relation="replace",
            sensitivity=None if sensitivity is None else float(sensitivity),
        )
    return None


# Settings of `Search` that `around` takes.
_SETTINGS_AROUND = ("beyond", "trials", "samples", "max_seconds", "seed", "stop_at_refutation")


def around(
    data: Any, relation: str | None = None, *, user: str | int | None = None, **settings: Any
) -> Search:
    """Returns a search among the neighbours of your own data.

    One record of it is replaced, left out or added, or all records of one user are left out. What
    values a record may have is inferred from the data: the range of numbers, the categories, the
    longest text.

    Args:
        data: a list of values or of dicts, an array, a series, or a data frame of pandas or polars.
        relation: which datasets are neighbours; None takes "replace", or "user" if there is a user
            column.
        user: the column that names the user, of an array its number. Neighbours then differ in all
            records of one user: the relation "user", and no other.
        settings: of `Search`: beyond, trials, samples, max_seconds, seed, stop_at_refutation.

    Example:
        >>> def total(numbers, rng):
        ...     return sum(numbers) + rng.laplace()  # enough for numbers between 0 and 1 only
        >>> finder = em.around([1.0, 2.0, 9.0], trials=64)
        >>> em.audit(total, finder, em.PureDP(1.0), samples=2000, seed=0).is_refuted
        True
    """
    unknown = settings.keys() - _SETTINGS_AROUND
    if unknown:
        name = sorted(unknown)[0]
        known = ("relation", "user", *_SETTINGS_AROUND)
        raise InputError(f"around() has no setting {name!r}{meant_or_known(name, known)}")
    kind, records = _read_records(data)
    if not records:
        raise InputError("data is empty: what its records may be is unknown; give a domain instead")
    _check_alike(records)
    columns: dict[Any, Any] = {}
    record: Any
    if isinstance(records[0], dict):
        for name in records[0]:
            columns[name] = _infer_domain([row[name] for row in records])
        record = Row(columns)
        container_columns = columns
    else:
        record = _infer_domain(records)
        container_columns = {None: record}
    if kind == "numpy" and isinstance(user, str) and user.isdigit():
        user = int(
            user
        )  # the columns of an array are numbers, which a command line writes as texts
    if user is not None and (not isinstance(user, str | int) or user not in columns):
        names = ", ".join(map(repr, columns)) or "none: its records are single values"
        raise InputError(f"user={user!r} must be a column of the data; its columns are {names}")
    if user is not None:
        _check_users(records, user, kind)
    container = Container(kind, container_columns, getattr(data, "dtype", None))
    return Search(Examples(record, (records,), container, user), relation, **settings)


def _check_alike(records: list[Any]) -> None:
    """Raises unless all records have the same keys, or none has any.

    What one record lacks would be missing from all that the search makes of it.
    """
    for number, record in enumerate(records):
        if isinstance(record, np.ndarray):
            raise InputError(
                f"record {number} of data is an array: give all of them as one array, "
                "em.around(numpy.stack(data)), or as lists"
            )
        if isinstance(record, dict) != isinstance(records[0], dict):
            raise InputError(
                f"record {number} of data is {record!r:.60} and record 0 is {records[0]!r:.60}: "
                "give all records as dicts, or none"
            )
        if isinstance(record, dict) and record.keys() != records[0].keys():
            name = next(iter(record.keys() ^ records[0].keys()))
            lacking = 0 if name in record else number
            raise InputError(
                f"record {lacking} of data has no {name!r}, which others have: give every record "
                "the same keys, with None for what is missing"
            )


def _check_users(records: list[Any], user: str | int, kind: str) -> None:
    """Raises if some record names no user: nobody knows whose it is."""
    missing = [row[user] is None or row[user] != row[user] for row in records]
    if any(missing):
        remedy = f"data.dropna(subset=[{user!r}])" if kind == "pandas" else "leave them out"
        raise InputError(
            f"user={user!r}: {sum(missing)} of {len(records)} records name no user, so that nobody "
            f"knows whose they are: give each of them a user, or take the others: {remedy}"
        )


def _read_records(data: Any) -> tuple[str, list[Any]]:
    """Returns the kind of container, and the records in it."""
    if isinstance(data, np.ndarray) and data.ndim == 1:
        return "numpy", data.tolist()
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return "numpy", [dict(enumerate(row)) for row in data.tolist()]
    if isinstance(data, list):
        has_rows = bool(data) and all(
            isinstance(row, dict) and row.keys() == data[0].keys() for row in data
        )
        return "rows" if has_rows else "list", list(data)
    library = type(data).__module__.partition(".")[0]
    name = type(data).__name__
    if (library, name) == ("polars", "DataFrame"):
        return "polars", list(data.to_dicts())
    if (library, name) == ("pandas", "DataFrame"):
        return "pandas", list(data.to_dict("records"))
    if (library, name) == ("pandas", "Series"):
        return "series", list(data.tolist())
    remedy = ""
    if isinstance(data, str | Path):
        remedy = ": read the file first, em.around(pandas.read_csv(…))"
    elif isinstance(data, dict):
        remedy = ": make it a data frame first, em.around(pandas.DataFrame(…))"
    raise InputError(
        f"data={data!r:.100} must be a list, an array, a series, or a data frame of pandas or "
        f"polars{remedy}"
    )


# Texts with at most this many distinct values are categories, however few rows there are.
_MOST_TEXT_CATEGORIES = 8


def _infer_domain(values: list[Any]) -> Any:
    """Returns the narrowest domain that contains all values."""
    # Neither None nor NaN.
    present = [value for value in values if value is not None and value == value]
    types = {type(value) for value in present}
    domain: Any
    if types == {bool}:
        domain = Boolean()
    elif types == {int} and _varies(present):
        domain = Integer(min(present), max(present))
    elif types and types <= {int, float} and _varies(present) and _are_finite(present):
        domain = Number(float(min(present)), float(max(present)))
    elif types == {str} and len(set(present)) > max(_MOST_TEXT_CATEGORIES, len(present) // 2):
        domain = Text(max(1, *map(len, present)))
    elif types == {datetime.date} and _varies(present):
        domain = Date(min(present), max(present))
    else:
        categories = tuple(special.value for special in distinct((value, "") for value in present))
        domain = Category(categories or (None,))
    if present and len(present) < len(values):
        return Optional(domain)
    return domain


def _varies(values: list[Any]) -> bool:
    return bool(min(values) < max(values))


def _are_finite(numbers: list[Any]) -> bool:
    return bool(max(map(abs, numbers)) < math.inf)
