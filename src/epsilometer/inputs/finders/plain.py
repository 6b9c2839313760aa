"""Finders without a model: at random, on a grid, by patterns; finders and domains as plain data."""

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any, Unpack

import numpy as np

import epsilometer.inputs.domains as domains
from epsilometer.arrays import Floats
from epsilometer.claims.base import check_flag, check_number, check_whole
from epsilometer.errors import InputError, meant_or_known
from epsilometer.inputs.coordinates import check_relation
from epsilometer.inputs.finders.base import DomainFinder, PointFinder, Trials
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.search import Search
from epsilometer.inputs.pairs import Finder, Pair


class Random(DomainFinder):
    """Tries pairs at random, each independently of the others.

    By default not uniformly: a tenth of the draws of every number lies at each end of its interval,
    since that is where many mechanisms leak most.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        uniform: whether every number is uniform on its interval, without any side information, as
            in DP-Auditorium's randomized search.
        trials: the most pairs to try.
        samples: draws per side to explore a pair.
        seed: of the choice of pairs; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the
            largest bound.
    """

    name = "random"

    def __init__(
        self,
        domain: domains.Domain,
        relation: str | None = None,
        *,
        uniform: bool = False,
        **settings: Unpack[Trials],
    ) -> None:
        super().__init__(domain, relation, **settings)
        self.uniform = check_flag("uniform", uniform)

    def describe(self) -> dict[str, Any]:
        """Returns the settings, with `uniform` where it is set: states of before have no such."""
        settings = super().describe()
        return {**settings, "uniform": True} if self.uniform else settings

    def next_point(self, number: int) -> Floats:
        """Returns the point of trial `number`."""
        coordinates = self.neighbours.coordinates
        point = self._rng(number).random(len(coordinates))
        if not self.uniform:
            return point
        return np.array(
            [coordinate.uniform(float(u)) for coordinate, u in zip(coordinates, point, strict=True)]
        )


class Grid(DomainFinder):
    """Tries every combination of some values per coordinate, once.

    Args:
        domain: the datasets, one of `epsilometer.domains`.
        relation: which of them are neighbours; None takes the domain's first.
        levels: values per number, both ends included; None takes as many as fit into the trials, at
            least 2. All unordered choices are tried.
        shuffled: whether to go through the grid in a mixed order, so that the first trials cover
            all of it; otherwise the last coordinate changes fastest.
        trials: the most pairs to try.
        samples: draws per side to explore a pair.
        seed: of the mixed order; draws have the seed of the audit.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the
            largest bound.
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
        self.shuffled = check_flag("shuffled", shuffled)
        if (
            levels is None
        ):  # the finest grid that the trials can go through, but not coarser than the two ends
            self.levels = 2
            while self._size_with(self.levels) < self._size_with(self.levels + 1) <= self.trials:
                self.levels += 1
        else:
            self.levels = check_whole("levels", levels, 2, " to have two ends")
        self._axes = [coordinate.grid(self.levels) for coordinate in self.neighbours.coordinates]
        self.size = math.prod(len(axis) for axis in self._axes)
        self.trials = min(self.trials, self.size)

    def describe(self) -> dict[str, Any]:
        """Returns the settings, with those of the grid."""
        return {**super().describe(), "levels": self.levels, "shuffled": self.shuffled}

    def _size_with(self, levels: int) -> int:
        return math.prod(len(coordinate.grid(levels)) for coordinate in self.neighbours.coordinates)

    def next_point(self, number: int) -> Floats:
        """Returns the point of trial `number`."""
        position = self._shuffled_position(number) if self.shuffled else number
        point = np.empty(len(self._axes))
        for axis in reversed(range(len(self._axes))):
            position, index = divmod(position, len(self._axes[axis]))
            point[axis] = self._axes[axis][index]
        return point

    def _shuffled_position(self, number: int) -> int:
        """Returns the position in the grid of trial `number`, in a mixed order.

        Steps that are coprime to the size of the grid visit all of it, without a list of it.
        """
        start = int(np.random.default_rng(self.seed).random() * self.size)
        # Near the golden section of the size, so that the first few positions are spread evenly.
        step = max(1, int(0.618 * self.size))
        while math.gcd(step, self.size) > 1:
            step += 1
        return (start + number * step) % self.size


Steps = list[int]
# Per pattern, the answers of the left and of the right dataset to k queries, in steps away from a
# level.
PATTERNS: dict[str, Callable[[int], tuple[Steps, Steps]]] = {
    "one above": lambda k: ([0] * k, [1] + [0] * (k - 1)),
    "one below": lambda k: ([0] * k, [-1] + [0] * (k - 1)),
    "one above, rest below": lambda k: ([0] * k, [1] + [-1] * (k - 1)),
    "one below, rest above": lambda k: ([0] * k, [-1] + [1] * (k - 1)),
    "half below, half above": lambda k: ([0] * k, [-1] * ((k + 1) // 2) + [1] * (k // 2)),
    "all above": lambda k: ([0] * k, [1] * k),
    "all below": lambda k: ([0] * k, [-1] * k),
    "x shape": lambda k: (
        [0] * (k // 2) + [-1] * (k - k // 2),
        [-1] * (k // 2) + [0] * (k - k // 2),
    ),
}


class Patterns(PointFinder):
    """Tries the patterns of StatDP's table: one above, one below, …, x shape.

    Args:
        queries: how many queries there are and how far their answers move, or just how many.
        relation: "linf", or "l1", which keeps only the patterns in which one answer moves.
        levels: answers from which the patterns step away; None takes one sensitivity above the
            smallest answer, so that the answers are 0, 1 and 2 by default.
        trials: the most pairs to try; None tries all.
        samples: draws per side to explore a pair.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the
            largest bound.
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
        if levels is None:
            self.levels = [self.queries.low + self.queries.sensitivity]
        else:
            self.levels = [check_number("levels", level) for level in levels]
        self._named_pairs = self._all_pairs()
        if not self._named_pairs:
            raise InputError(
                f"no pattern fits into {self.queries!r} around levels={levels!r}: no pair to try"
            )
        n_pairs = len(self._named_pairs)
        super().__init__(
            trials=n_pairs if trials is None else min(trials, n_pairs),
            samples=samples,
            seed=0,
            stop_at_refutation=stop_at_refutation,
        )

    def describe(self) -> dict[str, Any]:
        """Returns the settings, with those of the patterns."""
        return {
            **super().describe(),
            "queries": repr(self.queries),
            "relation": self.relation,
            "levels": self.levels,
        }

    @property
    def patterns(self) -> list[str]:
        """The names of the patterns, in the order in which they are tried."""
        return [name for name, _ in self._named_pairs]

    def _all_pairs(self) -> list[tuple[str, Pair]]:
        """Returns all pairs to try, each once, with the name of its pattern."""
        named_pairs: list[tuple[str, Pair]] = []
        for level in self.levels:
            for name, make_steps in PATTERNS.items():
                left, right = make_steps(self.queries.count)
                pair = Pair(self._answers(level, left), self._answers(level, right))
                is_known = pair in [known for _, known in named_pairs]
                if self._are_neighbours(left, right) and self._fits(pair) and not is_known:
                    named_pairs.append((name, pair))
        return named_pairs

    def _are_neighbours(self, left: Steps, right: Steps) -> bool:
        """Returns whether answers differ, by at most one sensitivity each or in all."""
        moves = [abs(one - two) for one, two in zip(left, right, strict=True)]
        distance = sum(moves) if self.relation == "l1" else max(moves)
        return left != right and distance <= 1

    def _fits(self, pair: Pair) -> bool:
        """Returns whether all answers lie in the domain."""
        answers = [*pair.left, *pair.right]
        return all(self.queries.low <= answer <= self.queries.high for answer in answers)

    def _answers(self, level: float, steps: Steps) -> list[float]:
        answers = [level + step * self.queries.sensitivity for step in steps]
        return [int(answer) for answer in answers] if self.queries.whole else answers

    def _knows(self, point: tuple[float, ...]) -> bool:
        return len(point) == 1 and point[0] in range(len(self._named_pairs))

    def _pair(self, point: tuple[float, ...]) -> Pair:
        _, pair = self._named_pairs[int(point[0])]
        return pair


# The classes of domains by their name in texts and files.
_DOMAIN_KINDS: dict[str, Any] = {
    "number": domains.Number,
    "integer": domains.Integer,
    "category": domains.Category,
    "vector": domains.Vector,
    "queries": domains.Queries,
    "table": domains.Table,
    "boolean": domains.Boolean,
    "text": domains.Text,
    "sphere": domains.Sphere,
    "date": domains.Date,
    "optional": domains.Optional,
    "records": domains.Records,
    "matrix": domains.Matrix,
}
# How many of the settings of a kind its text gives, in order.
_N_SETTINGS_IN_TEXT = {
    "number": 3,
    "integer": 3,
    "vector": 4,
    "queries": 4,
    "boolean": 0,
    "text": 1,
    "sphere": 2,
}
# Kinds whose text goes on with that of another domain, and the setting which that domain is.
_WRAPPED_DOMAIN = {
    "records": "value",
    "optional": "domain",
}
# Settings that are domains themselves: of records, of an optional value, of a matrix.
_DOMAIN_SETTINGS = ("value", "domain", "labels")


def read_domain(given: object) -> domains.Domain:
    """Returns the domain that a text or plain data describes."""
    if isinstance(given, Mapping):
        return _domain_from_data(given)
    if not isinstance(given, str):
        raise InputError(
            f"domain={given!r:.100} must be a text like 'vector:4:0:1' or a table with a kind"
        )
    if not given.lstrip().startswith("{"):
        return _domain_from_data(_parse_text(given))
    try:
        data = json.loads(given)
    except json.JSONDecodeError as error:
        raise InputError(f"domain={given!r:.100} is not JSON: {error}") from error
    return _domain_from_data(data)


def _parse_text(text: str) -> dict[str, Any]:
    """Returns the settings that a text like "vector:4:0:1" gives."""
    kind, _, rest = text.partition(":")
    if kind == "category":
        return {"kind": kind, "values": [_parse_value(part) for part in rest.split(",")]}
    if kind in _WRAPPED_DOMAIN and rest:
        return {"kind": kind, _WRAPPED_DOMAIN[kind]: rest}
    if kind not in _N_SETTINGS_IN_TEXT:
        return {"kind": kind}
    all_names = [field.name for field in fields(_DOMAIN_KINDS[kind])]
    names = all_names[: _N_SETTINGS_IN_TEXT[kind]]
    parts = rest.split(":") if rest else []
    if len(parts) > len(names):
        pattern = ":".join([kind, *(name.upper() for name in names)])
        raise InputError(f"domain={text!r} has too many parts: write {pattern}")
    settings: dict[str, Any] = {"kind": kind}
    for name, part in zip(names, parts, strict=False):
        settings[name] = _parse_number(part, text)
    required = [field.name for field in fields(_DOMAIN_KINDS[kind]) if field.default is MISSING]
    if any(name not in settings for name in required):
        pattern = ":".join([kind, *(name.upper() for name in required)])
        raise InputError(f"domain={text!r} is not complete: write {pattern}")
    return settings


def _parse_number(part: str, text: str) -> float | int:
    """Returns a part of a text as an integer, or else as a float."""
    with suppress(ValueError):
        return int(part)
    with suppress(ValueError):
        return float(part)
    raise InputError(f"domain={text!r}: {part!r} is not a number")


def _parse_value(part: str) -> Any:
    """Returns a JSON value, or else the text itself."""
    with suppress(json.JSONDecodeError):
        return json.loads(part)
    return part


def _domain_from_data(data: Mapping[str, Any]) -> domains.Domain:
    settings = dict(data)
    kind = settings.pop("kind", None)
    if kind is None:
        example = "{kind = 'number', low = 0, high = 1}"
        kinds = ", ".join(_DOMAIN_KINDS)
        raise InputError(f"domain: a table needs a kind, as in {example}; kinds are {kinds}")
    if kind not in _DOMAIN_KINDS:
        hint = meant_or_known(kind, _DOMAIN_KINDS)
        raise InputError(f"domain: the kind {kind!r} is unknown{hint}")
    if kind == "table" and isinstance(settings.get("columns"), Mapping):
        columns = settings["columns"]
        settings["columns"] = {name: read_domain(column) for name, column in columns.items()}
    for name in _DOMAIN_SETTINGS:
        if isinstance(settings.get(name), str | Mapping):
            settings[name] = read_domain(settings[name])
    domain: domains.Domain = _construct(f"domain of kind {kind!r}", _DOMAIN_KINDS[kind], settings)
    return domain


def _construct(
    what: str, make: Callable[..., Any], settings: Mapping[str, Any], *arguments: Any
) -> Any:
    """Calls a class with settings of a user, and raises an InputError if they do not fit.

    Args:
        what: is made, for the error message.
        make: the class.
        settings: by name.
        arguments: by position.
    """
    try:
        return make(*arguments, **settings)
    except TypeError as error:  # an argument is missing, or unknown
        message = str(error)
        unknown = re.search(r"unexpected keyword argument '(\w+)'", message)
        if unknown is not None:
            known = set(inspect.signature(make).parameters)
            if "settings" in known:  # those that all finders have
                known = (known | set(Trials.__annotations__)) - {"settings"}
            hint = meant_or_known(unknown[1], sorted(known))
            raise InputError(f"{what} has no setting {unknown[1]!r}{hint}") from error
        missing = re.search(r"missing \d+ required .*?: (.*)", message)
        if missing is not None:
            raise InputError(f"{what} needs {missing[1]} as well") from error
        raise InputError(f"{what}: {message.partition('() ')[2] or message}") from error


FINDERS: dict[str, Any] = {
    finder.name: finder for finder in (Random, Grid, Bayesian, Patterns, Search)
}


def read_finder(data: Mapping[str, Any]) -> Finder:
    """Returns the finder that {"name": …, "domain": …, "trials": …, …} describes."""
    settings = dict(data)
    name = settings.pop("name", None)
    given_domain = settings.pop("domain", None)
    if name not in FINDERS:
        raise InputError(f"finder: the name {name!r} is unknown{meant_or_known(name, FINDERS)}")
    if given_domain is None:
        misspelt = get_close_matches("domain", [str(key) for key in settings], n=1)
        hint = f"; is {misspelt[0]!r} the domain?" if misspelt else ""
        raise InputError(f"a finder needs a domain to search, like 'vector:4:0:1'{hint}")
    domain = read_domain(given_domain)
    if name == Patterns.name and not isinstance(domain, domains.Queries):
        raise InputError(
            f"domain={given_domain!r:.100}: patterns are made for answers to queries; "
            "write 'queries:5'"
        )
    finder: Finder = _construct(f"finder {name!r}", FINDERS[name], settings, domain)
    return finder
