"""Pairs drawn at random, from a regular grid, or by known patterns of answers; domains and finders as plain data."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Unpack

import numpy as np

import epsilometer.inputs.domains as domains
from epsilometer.arrays import Floats
from epsilometer.claims.base import check_number, check_whole
from epsilometer.errors import InputError, meant_or_known
from epsilometer.inputs.coordinates import check_relation
from epsilometer.inputs.finders.base import DomainFinder, PointFinder, Trials
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.search import Search
from epsilometer.inputs.pairs import Finder, Pair


class Random(DomainFinder):
    """Tries pairs at random, each independently of the others.

    Not uniformly: a tenth of the draws of every number lies at each end of its interval, since that is where many
    mechanisms leak most.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        trials: the most pairs to try.
        samples: draws per side to explore a pair.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "random"

    def next_point(self, number: int) -> Floats:
        """The point of trial `number`."""
        return self._rng(number).random(len(self.neighbours.coordinates))


class Grid(DomainFinder):
    """Tries every combination of some values per coordinate, once.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        levels: values per number, both ends included; None takes as many as fit into the trials, at least 2. All
            unordered choices are tried.
        shuffled: whether to go through the grid in a mixed order, so that any part of it is spread over the whole;
            otherwise the last coordinate changes fastest.
        trials: the most pairs to try.
        samples: draws per side to explore a pair.
        seed: of the mixed order; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "grid"

    def __init__(
        self,
        domain: domains.Domain,
        relation: str | None = None,
        *,
        levels: int | None = None,
        shuffled: bool = True,
        **settings: Unpack[Trials],
    ) -> None:
        super().__init__(domain, relation, **settings)
        self.shuffled = bool(shuffled)
        if levels is None:  # the finest grid that the trials can go through, but not coarser than the two ends
            self.levels = 2
            while self._size_with(self.levels) < self._size_with(self.levels + 1) <= self.trials:
                self.levels += 1
        else:
            self.levels = check_whole("levels", levels, 2, " to have two ends")
        self._axes = [coordinate.grid(self.levels) for coordinate in self.neighbours.coordinates]
        self.size = math.prod(len(axis) for axis in self._axes)
        self.trials = min(self.trials, self.size)

    def describe(self) -> dict[str, Any]:
        """The settings, with those of the grid."""
        return {**super().describe(), "levels": self.levels, "shuffled": self.shuffled}

    def _size_with(self, levels: int) -> int:
        return math.prod(len(coordinate.grid(levels)) for coordinate in self.neighbours.coordinates)

    def next_point(self, number: int) -> Floats:
        """The point of trial `number`."""
        place = number
        if self.shuffled:  # a permutation of the whole grid that needs no list of it: steps coprime to its size
            # Near the golden section of the size, so that the first few places are spread evenly.
            step, start = max(1, int(0.618 * self.size)), int(np.random.default_rng(self.seed).random() * self.size)
            while math.gcd(step, self.size) > 1:
                step += 1
            place = (start + number * step) % self.size
        point = np.empty(len(self._axes))
        for axis in reversed(range(len(self._axes))):
            place, index = divmod(place, len(self._axes[axis]))
            point[axis] = self._axes[axis][index]
        return point


Steps = list[int]
# Per pattern, the answers of the left and of the right dataset to k queries, in steps away from a level.
PATTERNS: dict[str, Callable[[int], tuple[Steps, Steps]]] = {
    "one above": lambda k: ([0] * k, [1] + [0] * (k - 1)),
    "one below": lambda k: ([0] * k, [-1] + [0] * (k - 1)),
    "one above, rest below": lambda k: ([0] * k, [1] + [-1] * (k - 1)),
    "one below, rest above": lambda k: ([0] * k, [-1] + [1] * (k - 1)),
    "half below, half above": lambda k: ([0] * k, [-1] * ((k + 1) // 2) + [1] * (k // 2)),
    "all above": lambda k: ([0] * k, [1] * k),
    "all below": lambda k: ([0] * k, [-1] * k),
    "x shape": lambda k: ([0] * (k // 2) + [-1] * (k - k // 2), [-1] * (k // 2) + [0] * (k - k // 2)),
}


class Patterns(PointFinder):
    """Tries the patterns of StatDP's table: one above, one below, …, x shape.

    Args:
        queries: how many queries there are and how far their answers move, or just how many.
        relation: "linf", or "l1", which keeps only the patterns in which one answer moves.
        levels: answers from which the patterns step away; None takes one sensitivity above the smallest answer, so
            that the answers are 0, 1 and 2 by default.
        trials: the most pairs to try; None tries all.
        samples: draws per side to explore a pair.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "patterns"

    def __init__(
        self,
        queries: domains.Queries | int,
        relation: str = "linf",
        *,
        levels: Sequence[float] | None = None,
        trials: int | None = None,
        samples: int = 20_000,
        stop_at_refutation: bool = True,
    ) -> None:
        self.queries = queries if isinstance(queries, domains.Queries) else domains.Queries(queries)
        self.relation = check_relation(relation, domains.Queries.relations, "answers of queries")
        lowest = self.queries.low + self.queries.sensitivity
        self.levels = [lowest] if levels is None else [check_number("levels", level) for level in levels]
        self._found = self._all()
        if not self._found:
            raise InputError(f"no pattern fits into {self.queries!r} around levels={levels!r}: no pair to try")
        most = len(self._found) if trials is None else min(trials, len(self._found))
        super().__init__(trials=most, samples=samples, seed=0, stop_at_refutation=stop_at_refutation)

    def describe(self) -> dict[str, Any]:
        """The settings."""
        return super().describe() | {"queries": repr(self.queries), "relation": self.relation, "levels": self.levels}

    @property
    def patterns(self) -> list[str]:
        """The names of the patterns, in the order in which they are tried."""
        return [name for name, _ in self._found]

    def _all(self) -> list[tuple[str, Pair]]:
        found: list[tuple[str, Pair]] = []
        for level in self.levels:
            for name, make in PATTERNS.items():
                left, right = make(self.queries.count)
                pair = Pair(*(self._answers(level, steps) for steps in (left, right)))
                moves = [abs(one - two) for one, two in zip(left, right, strict=True)]
                moved = sum(moves) if self.relation == "l1" else max(moves)
                fits = all(self.queries.low <= each <= self.queries.high for each in (*pair.left, *pair.right))
                if moved <= 1 and left != right and fits and pair not in [known for _, known in found]:
                    found.append((name, pair))
        return found

    def _answers(self, level: float, steps: list[int]) -> list[float]:
        answers = [level + step * self.queries.sensitivity for step in steps]
        return [int(each) for each in answers] if self.queries.whole else answers

    def _knows(self, point: tuple[float, ...]) -> bool:
        return len(point) == 1 and point[0] in range(len(self._found))

    def _pair(self, point: tuple[float, ...]) -> Pair:
        return self._found[int(point[0])][1]


_USUAL = (domains.Number, domains.Integer, domains.Category, domains.Vector, domains.Queries, domains.Table)
_FURTHER = (domains.Boolean, domains.Text, domains.Date, domains.Optional, domains.Records, domains.Matrix)
_KINDS: dict[str, Any] = {kind.__name__.lower(): kind for kind in (*_USUAL, *_FURTHER)}
# How many of the settings of a kind its text gives, in order.
_PARTS = {"number": 3, "integer": 3, "vector": 4, "queries": 4, "boolean": 0, "text": 1}
# Kinds whose text goes on with that of another domain, which is this part of theirs.
_AROUND = {"records": "value", "optional": "domain"}


def read_domain(given: object) -> domains.Domain:
    """The domain that a text or plain data describes."""
    if isinstance(given, str):
        try:
            return _from_data(json.loads(given) if given.lstrip().startswith("{") else _parse_text(given))
        except json.JSONDecodeError as error:
            raise InputError(f"domain={given!r:.100} is not JSON: {error}") from error
    if isinstance(given, Mapping):
        return _from_data(given)
    raise InputError(f"domain={given!r:.100} must be a text like 'vector:4:0:1' or a table with a kind")


def _parse_text(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(":")
    if kind == "category":
        return {"kind": kind, "values": [_value(part) for part in rest.split(",")]}
    if kind in _AROUND and rest:
        return {"kind": kind, _AROUND[kind]: rest}
    given = [each.name for each in fields(_KINDS[kind])] if kind in _PARTS else []
    names, parts = given[: _PARTS.get(kind, 0)], rest.split(":") if rest else []
    if kind in _PARTS and len(parts) > len(names):
        raise InputError(f"domain={text!r} has too many parts: write {':'.join((kind, *map(str.upper, names)))}")
    return {"kind": kind, **{name: _number(part, text) for name, part in zip(names, parts, strict=False)}}


def _number(part: str, text: str) -> float | int:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(part)
    raise InputError(f"domain={text!r}: {part!r} is not a number")


def _value(part: str) -> Any:
    """A JSON value, or else the text itself."""
    with suppress(json.JSONDecodeError):
        return json.loads(part)
    return part


def _from_data(data: Mapping[str, Any]) -> domains.Domain:
    settings = dict(data)
    kind = settings.pop("kind", None)
    if kind not in _KINDS:
        raise InputError(f"domain: the kind {kind!r} is unknown{meant_or_known(kind, _KINDS)}")
    if kind == "table" and isinstance(settings.get("columns"), Mapping):
        settings["columns"] = {name: read_domain(column) for name, column in settings["columns"].items()}
    for part in ("value", "domain", "labels"):  # of records, of an optional value, of a matrix
        if isinstance(settings.get(part), str | Mapping):
            settings[part] = read_domain(settings[part])
    domain: domains.Domain = _made(f"domain of kind {kind!r}", _KINDS[kind], settings)
    return domain


def _made(what: str, kind: Callable[..., Any], settings: Mapping[str, Any], *parts: Any) -> Any:
    try:
        return kind(*parts, **settings)
    except TypeError as error:  # an argument is missing, or unknown
        raise InputError(f"{what}: {str(error).partition('() ')[2] or error}") from error


FINDERS: dict[str, Any] = {each.name: each for each in (Random, Grid, Bayesian, Patterns, Search)}


def read_finder(data: Mapping[str, Any]) -> Finder:
    """The finder that {"name": …, "domain": …, "trials": …, …} describes."""
    settings = dict(data)
    name, domain = settings.pop("name", None), settings.pop("domain", None)
    if name not in FINDERS:
        raise InputError(f"finder: the name {name!r} is unknown{meant_or_known(name, FINDERS)}")
    if domain is None:
        raise InputError("a finder needs a domain to search, like 'vector:4:0:1'")
    space = read_domain(domain)
    if name == Patterns.name and not isinstance(space, domains.Queries):
        raise InputError(f"domain={domain!r:.100}: patterns are made for answers to queries; write 'queries:5'")
    finder: Finder = _made(f"finder {name!r}", FINDERS[name], settings, space)
    return finder
