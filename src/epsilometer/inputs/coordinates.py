"""What a search may choose: coordinates in [0, 1], single values and those worth trying; checks of intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_number
from epsilometer.errors import InputError, MissingExtraError
from epsilometer.inputs.pairs import Pair


def check_interval(low: object, high: object) -> tuple[float, float]:
    """Two finite numbers, the first below the second."""
    ends = check_number("low", low), check_number("high", high)
    if not ends[0] < ends[1]:
        raise InputError(
            f"low={low!r} must be below high={high!r}: an interval of one value has no neighbours"
        )
    return ends


def check_whole_interval(low: object, high: object) -> tuple[int, int]:
    """Two whole numbers, the first below the second; 10.0 is one."""
    ends = check_interval(low, high)
    if not all(end.is_integer() for end in ends):
        raise InputError(f"low={low!r} and high={high!r} must be whole numbers")
    return int(ends[0]), int(ends[1])


RELATIONS = {
    "replace": "one record is another one",
    "add-remove": "one record is missing",
    "user": "all records of one user are missing",
    "substitute-column": "one value of one record is another one",
    "l1": "numbers differ by at most the sensitivity in all",
    "linf": "every number differs by at most the sensitivity",
}


def check_relation(relation: object, known: Sequence[str], domain: str) -> str:
    """One of the relations that a domain knows."""
    if relation in known:
        return str(relation)
    if relation not in RELATIONS:
        raise InputError(
            f"relation={relation!r} is unknown; known are {', '.join(map(repr, RELATIONS))}"
        )
    raise InputError(
        f"relation={relation!r} makes no sense for {domain}, which has {', '.join(map(repr, known))}"
    )


# A tenth of each coordinate stands for the lower end of its interval, a tenth for the upper one: the worst inputs of
# sums, means and counts lie at the ends, which random points of a continuum never hit.
ENDS = 0.1
# Shares of a signed coordinate: full steps down and up, no step, and what lies between.
_FULL, _NONE = 0.25, 0.2


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One thing that a search chooses.

    Attributes:
        levels: how many different values there are; None for a continuum.
        ordered: whether neighbouring levels are similar.
        signed: whether it stands for a step down, none, or up, instead of a value between two ends.
    """

    levels: int | None = None
    ordered: bool = True
    signed: bool = False

    def places(self, u: Floats) -> Floats:
        """Where numbers of [0, 1] lie for a model: they differ if and only if they stand for different values."""
        levels = self.levels or 1  # names can be counted
        if not self.ordered:
            return np.minimum(np.floor(u * levels), levels - 1.0)
        if self.signed:
            return np.array([0.5 + 0.5 * signed_step(float(each)) for each in u])
        return np.clip((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0, 1.0)

    def grid(self, most: int) -> Floats:
        """At most `most` points that stand for different values, both ends included; all levels if unordered."""
        if not self.ordered:
            return (np.arange(self.levels or 1) + 0.5) / (self.levels or 1)
        count = most if self.levels is None else min(most, self.levels)
        return np.linspace(ENDS, 1.0 - ENDS, count) if count > 1 else np.array([0.5])


def level_of(u: float, levels: int) -> int:
    """Which of `levels` equal pieces of [0, 1] a number lies in."""
    return min(int(u * levels), levels - 1)


def within(u: float, low: float, high: float) -> float:
    """A number between low and high, with a share of u for each end."""
    inside = min(max((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0), 1.0)
    return high if inside == 1.0 else low + inside * (high - low)


def whole_within(u: float, low: int, high: int) -> int:
    """A whole number between low and high."""
    return min(math.floor(within(u, low, high) + 0.5), high)


def signed_step(u: float) -> float:
    """A number between −1 and 1, with shares of u for −1, for 0 and for 1."""
    return math.copysign(
        min(max((abs(u - 0.5) - 0.5 * _NONE) / (0.5 - 0.5 * _NONE - _FULL), 0.0), 1.0), u - 0.5
    )


def near(one: Any, two: Any, reach: float) -> tuple[Any, Any] | None:
    """Two numbers at most `reach` apart: the second one, and the first moved towards it."""
    try:
        if abs(one - two) <= reach:
            return one, two
        step = (
            math.floor(reach) if isinstance(two, int) else reach
        )  # a large whole number is no float
        moved = two + step if one > two else two - step
    except (TypeError, ValueError, OverflowError):
        return None
    return (moved, two) if abs(moved) != math.inf and abs(moved - two) <= reach else None


Point = Sequence[float]


class Neighbours(Protocol):
    """All pairs of neighbouring datasets of a domain."""

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What there is to choose."""

    def pair(self, point: Point) -> Pair:
        """The pair that a point of the unit cube stands for; its two datasets are never the same."""


class Special(NamedTuple):
    """A value where mistakes are common, and what it is in words: "NaN", "the upper bound"."""

    value: Any
    note: str


class Record(Protocol):
    """What one record of a dataset may be."""

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What there is to choose."""

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one such record, so that it cannot be replaced."""

    def record(self, point: Point) -> Any:
        """The record that a point stands for."""

    def other(self, point: Point, record: Any) -> Any:
        """The record that a point stands for, or another one if that equals the given one."""

    @property
    def specials(self) -> list[Special]:
        """Values worth trying, the simplest first: of the domain, and such as only its type allows."""

    def contains(self, record: Any) -> bool:
        """Whether it is one of these records, and not merely of their type."""


MISSING, NOT_A_NUMBER = (None, "a missing value (None)"), (math.nan, "NaN")


def distinct(found: Iterable[tuple[Any, str]]) -> list[Special]:
    """Each value once, with the first of its notes; 0.0 and -0.0, or 1 and 1.0 and True, are different values."""
    kept: dict[tuple[type, str], Special] = {}
    for value, note in found:
        kept.setdefault((type(value), repr(value)), Special(value, note))
    return list(kept.values())


class Value:
    """The domain of a single value; as datasets, any two of its values are neighbours."""

    __slots__ = ()
    relations: ClassVar[tuple[str, ...]] = ("replace",)

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one value."""
        return False

    def neighbours(self: Any, relation: str) -> Neighbours:
        """Two values."""
        check_relation(relation, self.relations, f"a {type(self).__name__}")
        return _TwoValues(self)


def check_value(domain: object, name: str) -> Any:
    """The domain of a single value."""
    if not all(
        hasattr(domain, part) for part in ("coordinates", "record", "other", "specials", "contains")
    ):
        kinds = "Number, Integer, Boolean, Category, Text, Date or Optional"
        raise InputError(f"{name}: {domain!r:.100} must be the domain of a single value: {kinds}")
    return domain


@dataclass(frozen=True, slots=True)
class _TwoValues:
    domain: Record

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """One value and another one."""
        return self.domain.coordinates * 2

    def pair(self, point: Point) -> Pair:
        """Two different values."""
        cut = len(self.domain.coordinates)
        left = self.domain.record(point[:cut])
        return Pair(left, self.domain.other(point[cut:], left))


# The column of a matrix that holds the labels.
LABEL = "label"


@dataclass(frozen=True, slots=True)
class Container:
    """Makes of a list of records what a mechanism is given.

    Attributes:
        kind: "one" (the record itself), "list", "numpy", "series", "rows", "pandas", "polars" or "matrix".
        columns: the domain of each column, or of the values under the name None.
        dtype: of arrays and series; None takes that of the values.
    """

    kind: str
    columns: Mapping[Any, Record]
    dtype: Any = None

    def __post_init__(self) -> None:
        library = {"series": "pandas"}.get(self.kind, self.kind)
        if library in ("pandas", "polars") and find_spec(library) is None:
            raise MissingExtraError(library, library, f"container={self.kind!r}")
        if self.dtype is not None:
            try:
                np.dtype(self.dtype)
            except TypeError as error:
                raise InputError(f"dtype={self.dtype!r:.100} is not a dtype of numpy") from error

    def __call__(self, records: list[Any]) -> Any:
        """The dataset; whatever a library raises if it cannot hold these values."""
        if self.kind == "one":
            return records[0]
        if self.kind in ("list", "rows"):
            return list(records)
        if None in self.columns:  # values, not rows
            array = self._array(records, *self.columns.values())
            return array if self.kind == "numpy" else import_module("pandas").Series(array)
        if self.kind in ("numpy", "matrix"):
            names = [name for name in self.columns if name != LABEL]
            cells = [[record[name] for name in names] for record in records]
            table = self._array(cells, *(self.columns[name] for name in names)).reshape(
                len(records), len(names)
            )
            if LABEL not in self.columns:
                return table
            return table, Container("numpy", {None: self.columns[LABEL]})(
                [record[LABEL] for record in records]
            )
        named = {name: [record[name] for record in records] for name in self.columns}
        if self.kind == "polars":
            schema = {name: _python_type(domain) for name, domain in self.columns.items()}
            return import_module("polars").DataFrame(named, schema=schema)
        arrays = {name: self._array(cells, self.columns[name]) for name, cells in named.items()}
        return import_module("pandas").DataFrame(arrays)

    def _array(self, cells: list[Any], *domains: Record) -> np.ndarray[Any, Any]:
        if self.dtype is not None:
            with np.errstate(
                over="ignore"
            ):  # 1e300 is infinite in a narrow type: that is what the data would hold
                return np.array(cells, dtype=self.dtype)
        kinds = {_python_type(domain) for domain in domains}
        natural: Any = (
            kinds.pop() if len(kinds) == 1 else float if kinds <= {int, float, bool} else object
        )
        try:
            return np.array(cells, dtype=natural if natural in (bool, int, float) else object)
        except (
            TypeError,
            ValueError,
            OverflowError,
        ):  # NaN among whole numbers, say: what numpy makes of it itself
            return np.array(cells)


def _python_type(domain: Record) -> Any:
    """The type of typical values."""
    return type(domain.record([0.5] * len(domain.coordinates)))
