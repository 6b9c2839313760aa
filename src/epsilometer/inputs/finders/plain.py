"""Pairs drawn at random or from a regular grid; domains and finders as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import check_whole
from epsilometer.inputs.domains import (
    Boolean,
    Category,
    Date,
    Domain,
    Integer,
    Matrix,
    Number,
    Optional,
    Queries,
    Records,
    Table,
    Text,
    Vector,
)
from epsilometer.inputs.finders.base import DomainFinder, Finder
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.patterns import Patterns
from epsilometer.inputs.finders.search import Search


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
        domain: Domain,
        relation: str | None = None,
        *,
        levels: int | None = None,
        shuffled: bool = True,
        trials: int = 50,
        samples: int = 20_000,
        seed: int = 0,
        stop_at_refutation: bool = True,
    ) -> None:
        super().__init__(
            domain, relation, trials=trials, samples=samples, seed=seed, stop_at_refutation=stop_at_refutation
        )
        self.shuffled = bool(shuffled)
        self.levels = self._most_levels() if levels is None else check_whole("levels", levels, 2, " to have two ends")
        self._axes = [coordinate.grid(self.levels) for coordinate in self.neighbours.coordinates]
        self.size = math.prod(len(axis) for axis in self._axes)
        self.trials = min(self.trials, self.size)

    def describe(self) -> dict[str, Any]:
        """The settings, with those of the grid."""
        return {**super().describe(), "levels": self.levels, "shuffled": self.shuffled}

    def _most_levels(self) -> int:
        """The finest grid that the trials can go through, but not coarser than the two ends."""
        levels = 2
        while self._size_with(levels + 1) <= self.trials and self._size_with(levels + 1) > self._size_with(levels):
            levels += 1
        return levels

    def _size_with(self, levels: int) -> int:
        return math.prod(len(coordinate.grid(levels)) for coordinate in self.neighbours.coordinates)

    def next_point(self, number: int) -> Floats:
        """The point of trial `number`."""
        place = self._mixed(number) if self.shuffled else number
        point = np.empty(len(self._axes))
        for axis in reversed(range(len(self._axes))):
            place, index = divmod(place, len(self._axes[axis]))
            point[axis] = self._axes[axis][index]
        return point

    def _mixed(self, number: int) -> int:
        """A permutation of the whole grid that needs no list of it: steps coprime to its size."""
        rng = np.random.default_rng(self.seed)
        # Near the golden section of the size, so that the first few places are spread evenly.
        step, start = max(1, int(0.618 * self.size)), int(rng.random() * self.size)
        while math.gcd(step, self.size) > 1:
            step += 1
        return (start + number * step) % self.size


_KINDS: dict[str, Any] = {
    "number": Number,
    "integer": Integer,
    "category": Category,
    "vector": Vector,
    "queries": Queries,
    "table": Table,
    "boolean": Boolean,
    "text": Text,
    "date": Date,
    "optional": Optional,
    "records": Records,
    "matrix": Matrix,
}
# What the parts of a text mean, in order.
_PARTS = {
    "number": ("low", "high", "sensitivity"),
    "integer": ("low", "high", "sensitivity"),
    "vector": ("size", "low", "high", "sensitivity"),
    "queries": ("count", "low", "high", "sensitivity"),
    "boolean": (),
    "text": ("most",),
}
# Kinds whose text goes on with that of another domain, which is this part of theirs.
_AROUND = {"records": "value", "optional": "domain"}


def read_domain(given: object) -> Domain:
    """The domain that a text or plain data describes."""
    if isinstance(given, str):
        return _from_data(_parse_json(given) if given.lstrip().startswith("{") else _parse_text(given))
    if isinstance(given, Mapping):
        return _from_data(given)
    raise InputError(f"domain={given!r:.100} must be a text like 'vector:4:0:1' or a table with a kind")


def _parse_json(text: str) -> Mapping[str, Any]:
    try:
        data: Mapping[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"domain={text!r:.100} is not JSON: {error}") from error
    return data


def _parse_text(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(":")
    if kind == "category":
        return {"kind": kind, "values": [_value(part) for part in rest.split(",")]}
    if kind in _AROUND and rest:
        return {"kind": kind, _AROUND[kind]: rest}
    names, parts = _PARTS.get(kind, ()), rest.split(":") if rest else []
    if kind in _PARTS and len(parts) > len(names):
        raise InputError(f"domain={text!r} has too many parts: write {':'.join((kind, *map(str.upper, names)))}")
    return {"kind": kind, **{name: _number(part, text) for name, part in zip(names, parts, strict=False)}}


def _number(part: str, text: str) -> float | int:
    try:
        return int(part)
    except ValueError:
        pass
    try:
        return float(part)
    except ValueError:
        raise InputError(f"domain={text!r}: {part!r} is not a number") from None


def _value(part: str) -> Any:
    """A JSON value, or else the text itself."""
    try:
        return json.loads(part)
    except json.JSONDecodeError:
        return part


def _from_data(data: Mapping[str, Any]) -> Domain:
    settings = dict(data)
    kind = settings.pop("kind", None)
    if kind not in _KINDS:
        close = get_close_matches(str(kind), _KINDS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KINDS)}"
        raise InputError(f"domain: the kind {kind!r} is unknown; {hint}")
    if kind == "table" and isinstance(settings.get("columns"), Mapping):
        settings["columns"] = {name: read_domain(column) for name, column in settings["columns"].items()}
    for part in ("value", "domain", "labels"):  # of records, of an optional value, of a matrix
        if isinstance(settings.get(part), str | Mapping):
            settings[part] = read_domain(settings[part])
    try:
        domain: Domain = _KINDS[kind](**settings)
    except TypeError as error:  # an argument is missing, or unknown
        raise InputError(f"domain of kind {kind!r}: {str(error).partition('() ')[2] or error}") from error
    return domain


FINDERS: dict[str, Any] = {each.name: each for each in (Random, Grid, Bayesian, Patterns, Search)}


def read_finder(data: Mapping[str, Any]) -> Finder:
    """The finder that {"name": …, "domain": …, "trials": …, …} describes."""
    settings = dict(data)
    name, domain = settings.pop("name", None), settings.pop("domain", None)
    if name not in FINDERS:
        close = get_close_matches(str(name), FINDERS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(FINDERS)}"
        raise InputError(f"finder: the name {name!r} is unknown; {hint}")
    if domain is None:
        raise InputError("a finder needs a domain to search, like 'vector:4:0:1'")
    space = read_domain(domain)
    if name == Patterns.name and not isinstance(space, Queries):
        raise InputError(f"domain={domain!r:.100}: patterns are made for answers to queries; write 'queries:5'")
    try:
        finder: Finder = FINDERS[name](space, **settings)
    except TypeError as error:  # an argument that this finder does not have
        raise InputError(f"finder {name!r}: {str(error).partition('() ')[2] or error}") from error
    return finder
