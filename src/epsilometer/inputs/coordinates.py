"""What a search may choose: coordinates in [0, 1], single values, and containers for them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_number
from epsilometer.errors import InputError, MissingExtraError, did_you_mean
from epsilometer.inputs.pairs import Pair

# --- checks


def check_interval(low: object, high: object) -> tuple[float, float]:
    """Returns two finite numbers, the first below the second, or raises an InputError."""
    checked_low = check_number("low", low)
    checked_high = check_number("high", high)
    if not checked_low < checked_high:
        raise InputError(
            f"low={low!r} must be below high={high!r}: an interval of one value has no neighbours"
        )
    return checked_low, checked_high


def check_whole_interval(low: object, high: object) -> tuple[int, int]:
    """Returns two integers, the first below the second, or raises an InputError; 10.0 is one."""
    checked_low, checked_high = check_interval(low, high)
    if not (checked_low.is_integer() and checked_high.is_integer()):
        raise InputError(f"low={low!r} and high={high!r} must be whole numbers")
    return int(checked_low), int(checked_high)


RELATIONS = {
    "replace": "one record is another one",
    "add-remove": "one record is missing",
    "user": "all records of one user are missing",
    "substitute-column": "one value of one record is another one",
    "l1": "numbers differ by at most the sensitivity in all",
    "linf": "every number differs by at most the sensitivity",
}


def check_relation(relation: object, known: Sequence[str], domain: str) -> str:
    """Returns one of the relations that a domain knows, or raises an InputError.

    Args:
        relation: to be checked.
        known: the relations of the domain.
        domain: in words.
    """
    if relation in known:
        return str(relation)
    if relation not in RELATIONS:
        all_relations = ", ".join(map(repr, RELATIONS))
        meant = did_you_mean(str(relation).lower(), RELATIONS)
        raise InputError(f"relation={relation!r} is unknown; known are {all_relations}{meant}")
    of_domain = ", ".join(map(repr, known))
    raise InputError(
        f"relation={relation!r} makes no sense for {domain}: allowed here is {of_domain}"
    )


def check_user_relation(relation: object, user: object) -> None:
    """Raises an InputError unless a user column and the relation "user" go together.

    Args:
        relation: which datasets are neighbours.
        user: the column that names the user; None if there is none.
    """
    if relation == "user" and user is None:
        raise InputError(
            "relation='user' needs the column that names the user: give user='COLUMN' as well "
            "(on the command line --user COLUMN)"
        )
    if user is not None and relation in RELATIONS and relation != "user":
        raise InputError(
            f"relation={relation!r} contradicts user={user!r}: a user column means that neighbours "
            "differ in all records of one user; leave out one of the two"
        )


# --- coordinates of the unit cube

# The fraction of a coordinate that stands for the lower end of its interval; as much stands for the
# upper one. The worst inputs of sums, means and counts lie at the ends, which random points of a
# continuum never hit.
ENDS = 0.1
# The fraction of a signed coordinate that stands for a full step down; as much for one up.
_FULL_STEP = 0.25
# The fraction of a signed coordinate that stands for no step.
_NO_STEP = 0.2


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One thing that a search chooses.

    Attributes:
        levels: how many different values there are; None for a continuum.
        ordered: whether neighbouring levels are similar.
        signed: whether it stands for a step down, none, or up, instead of a value between two ends.
        has_ends: whether a fraction of [0, 1] stands for each end of its interval.
    """

    levels: int | None = None
    ordered: bool = True
    signed: bool = False
    has_ends: bool = True

    def places(self, u: Floats) -> Floats:
        """Returns where numbers of [0, 1] lie for a model.

        Places differ if and only if the numbers stand for different values.
        """
        if not self.ordered:
            levels = self.levels or 1  # unordered values can be counted
            return np.minimum(np.floor(u * levels), levels - 1.0)
        if self.signed:
            return np.array([0.5 + 0.5 * signed_step(float(number)) for number in u])
        if not self.has_ends:
            return u
        return np.clip((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0, 1.0)

    def uniform(self, u: float) -> float:
        """Returns the point whose value is uniform if u is: ends are as likely as all others.

        Args:
            u: a number of [0, 1].
        """
        if not self.ordered or not self.has_ends:
            return u
        if self.signed:
            step = 2.0 * u - 1.0
            size = 0.5 * _NO_STEP + abs(step) * (0.5 - 0.5 * _NO_STEP - _FULL_STEP)
            return 0.5 + math.copysign(size, step)
        inside = u
        if self.levels is not None and self.levels > 1:
            inside = level_of(u, self.levels) / (self.levels - 1)
        return ENDS + inside * (1.0 - 2.0 * ENDS)

    def grid(self, most: int) -> Floats:
        """Returns points that stand for different values, both ends included.

        Args:
            most: the most points; an unordered coordinate has all of its levels.
        """
        if not self.ordered:
            levels = self.levels or 1
            return (np.arange(levels) + 0.5) / levels
        count = most if self.levels is None else min(most, self.levels)
        return np.linspace(ENDS, 1.0 - ENDS, count) if count > 1 else np.array([0.5])


def level_of(u: float, levels: int) -> int:
    """Returns which of `levels` equal parts of [0, 1] a number lies in."""
    return min(int(u * levels), levels - 1)


def within(u: float, low: float, high: float) -> float:
    """Returns a number between low and high, with a fraction of u for each end."""
    inside = min(max((u - ENDS) / (1.0 - 2.0 * ENDS), 0.0), 1.0)
    return high if inside == 1.0 else low + inside * (high - low)


def whole_within(u: float, low: int, high: int) -> int:
    """Returns an integer between low and high, with a fraction of u for each end."""
    return min(math.floor(within(u, low, high) + 0.5), high)


def signed_step(u: float) -> float:
    """Returns a number between −1 and 1, with fractions of u for −1, for 0 and for 1."""
    from_centre = abs(u - 0.5) - 0.5 * _NO_STEP
    to_full_step = 0.5 - 0.5 * _NO_STEP - _FULL_STEP
    size = min(max(from_centre / to_full_step, 0.0), 1.0)
    return math.copysign(size, u - 0.5)


def near(one: Any, two: Any, reach: float) -> tuple[Any, Any] | None:
    """Returns two numbers at most `reach` apart: the first, moved towards the second, and that.

    Returns:
        None if they are no numbers, or cannot be moved.
    """
    try:
        if abs(one - two) <= reach:
            return one, two
        step = math.floor(reach) if isinstance(two, int) else reach  # a large integer is no float
        moved = two + step if one > two else two - step
    except (TypeError, ValueError, OverflowError):
        return None
    if abs(moved) == math.inf or not abs(moved - two) <= reach:
        return None
    return moved, two


Point = Sequence[float]


class Neighbours(Protocol):
    """All pairs of neighbouring datasets of a domain."""

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What there is to choose."""

    def pair(self, point: Point) -> Pair:
        """Returns the pair that a point of the unit cube stands for.

        Its two datasets are never the same.
        """


# --- single values


class Special(NamedTuple):
    """A value where mistakes are common.

    Attributes:
        value: to be tried.
        note: what it is in words: "NaN", "the upper bound".
    """

    value: Any
    note: str


MISSING = Special(None, "a missing value (None)")
NOT_A_NUMBER = Special(math.nan, "NaN")


def distinct(candidates: Iterable[tuple[Any, str]]) -> list[Special]:
    """Returns each value once, with the first of its notes.

    0.0 and -0.0 are different values, and so are 1 and 1.0 and True.
    """
    specials: dict[tuple[type, str], Special] = {}
    for value, note in candidates:
        specials.setdefault((type(value), repr(value)), Special(value, note))
    return list(specials.values())


class Record(Protocol):
    """What one record of a dataset may be."""

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What there is to choose."""

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one such record, so that it cannot be replaced."""

    def record(self, point: Point) -> Any:
        """Returns the record that a point stands for."""

    def other(self, point: Point, record: Any) -> Any:
        """Returns the record that a point stands for, or another if it equals the given one."""

    @property
    def specials(self) -> list[Special]:
        """Values worth trying, the simplest first: of the domain, and others of its type."""

    def contains(self, record: Any) -> bool:
        """Returns whether it is one of these records, and not merely of their type."""


class Value:
    """The domain of a single value; as datasets, any two of its values are neighbours."""

    __slots__ = ()
    relations: ClassVar[tuple[str, ...]] = ("replace",)

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one value."""
        return False

    def neighbours(self: Any, relation: str) -> Neighbours:
        """Returns all pairs of two values."""
        check_relation(relation, self.relations, f"a {type(self).__name__}")
        return _TwoValues(self)


def check_value(domain: object, name: str) -> Any:
    """Returns the domain of a single value, or raises an InputError.

    Args:
        domain: to be checked.
        name: what the user called it.
    """
    needed = ("coordinates", "record", "other", "specials", "contains")
    if not all(hasattr(domain, attribute) for attribute in needed):
        raise InputError(
            f"{name}: {domain!r:.100} must be the domain of a single value: Number, Integer, "
            "Boolean, Category, Text, Date, Sphere or Optional"
        )
    return domain


@dataclass(frozen=True, slots=True)
class _TwoValues:
    """Pairs of any two values of a domain."""

    domain: Record

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Those of one value and of another one."""
        return self.domain.coordinates * 2

    def pair(self, point: Point) -> Pair:
        """Returns two different values."""
        cut = len(self.domain.coordinates)
        left = self.domain.record(point[:cut])
        right = self.domain.other(point[cut:], left)
        return Pair(left, right)


# --- containers

# The column of a matrix that holds the labels.
LABEL = "label"
# The library of each kind of container that needs one.
_LIBRARY_OF_KIND = {
    "series": "pandas",
    "pandas": "pandas",
    "polars": "polars",
}


@dataclass(frozen=True, slots=True)
class Container:
    """Turns a list of records into what a mechanism is given.

    Attributes:
        kind: "one" (the record itself), "list", "numpy", "series", "rows", "pandas", "polars" or
            "matrix".
        columns: the domain of each column, or of the values under the name None.
        dtype: of arrays and series; None takes that of the values.
    """

    kind: str
    columns: Mapping[Any, Record]
    dtype: Any = None

    def __post_init__(self) -> None:
        library = _LIBRARY_OF_KIND.get(self.kind)
        if library is not None and find_spec(library) is None:
            raise MissingExtraError(library, library, f"container={self.kind!r}")
        if self.dtype is not None:
            try:
                np.dtype(self.dtype)
            except TypeError as error:
                raise InputError(f"dtype={self.dtype!r:.100} is not a dtype of numpy") from error

    def __call__(self, records: list[Any]) -> Any:
        """Returns the dataset, or raises what a library raises if it cannot hold these values."""
        if self.kind == "one":
            return records[0]
        if self.kind in ("list", "rows"):
            return list(records)
        if None in self.columns:  # values, not rows
            array = self._array(records, list(self.columns.values()))
            return array if self.kind == "numpy" else import_module("pandas").Series(array)
        if self.kind in ("numpy", "matrix"):
            return self._matrix(records)
        cells_of = {name: [record[name] for record in records] for name in self.columns}
        if self.kind == "polars":
            schema = {name: _python_type(domain) for name, domain in self.columns.items()}
            return import_module("polars").DataFrame(cells_of, schema=schema)
        arrays = {
            name: self._array(cells, [self.columns[name]]) for name, cells in cells_of.items()
        }
        return import_module("pandas").DataFrame(arrays)

    def _matrix(self, records: list[Any]) -> Any:
        """Returns an array with a row per record and, if there are labels, an array of these."""
        names = [name for name in self.columns if name != LABEL]
        cells = [[record[name] for name in names] for record in records]
        array = self._array(cells, [self.columns[name] for name in names])
        matrix = array.reshape(len(records), len(names))
        if LABEL not in self.columns:
            return matrix
        label_container = Container("numpy", {None: self.columns[LABEL]})
        return matrix, label_container([record[LABEL] for record in records])

    def _array(self, cells: list[Any], domains: Sequence[Record]) -> np.ndarray[Any, Any]:
        """Returns an array of values of the given domains."""
        if self.dtype is not None:
            # 1e300 is infinite in a narrow type: that is what the data would hold.
            with np.errstate(over="ignore"):
                return np.array(cells, dtype=self.dtype)
        value_types = {_python_type(domain) for domain in domains}
        natural: Any = object
        if len(value_types) == 1 and value_types <= {bool, int, float}:
            natural = value_types.pop()
        elif value_types <= {int, float, bool}:
            natural = float
        try:
            return np.array(cells, dtype=natural)
        except (TypeError, ValueError, OverflowError):
            # NaN among integers, say: what numpy makes of it itself.
            return np.array(cells)


def _python_type(domain: Record) -> Any:
    """Returns the type of typical values."""
    return type(domain.record([0.5] * len(domain.coordinates)))
