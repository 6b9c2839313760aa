"""Lists of numbers, and real data: lists, arrays, series and tables of records of any type; domains from examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

import epsilometer.inputs.coordinates as cube
from epsilometer.claims.base import check_choice, check_positive, check_whole
from epsilometer.errors import InputError, MissingExtraError
from epsilometer.inputs.coordinates import Container, Coordinate, Neighbours, Point, Record
from epsilometer.inputs.domains.numbers import Category, Integer, Number
from epsilometer.inputs.domains.records import RecordPairs, Row, Seen, ShiftedAnswers, changed
from epsilometer.inputs.pairs import Pair

# How many records a dataset has unless told otherwise: enough for every edge, few enough to read.
_SIZE = (0, 12)
Sizes = int | tuple[int, int]


def check_sizes(name: str, given: object) -> tuple[int, int]:
    """The fewest and the most records; one number for both."""
    ends = tuple(given) if isinstance(given, Sequence) and len(given) == 2 else (given, given)
    least = check_whole(name, ends[0], 0)
    most = check_whole(name, ends[1], 1, ": a dataset without records has no neighbours")
    if least > most:
        raise InputError(f"{name}={given!r}: the fewest must not be more than the most")
    return least, most


@dataclass(frozen=True, slots=True)
class Datasets:
    """The datasets of a domain, taken apart: what a search needs to build and to change them.

    Attributes:
        record: what a record may be.
        least: the fewest records.
        most: the most.
        container: makes of a list of records what a mechanism is given.
        relation: which datasets are neighbours.
        user: the column that names the user.
        sensitivity: how far numbers may move, by "l1" and "linf" or from one number to its neighbour.
        examples: lists of records to begin with; only their neighbours are tried.
    """

    record: Record
    least: int
    most: int
    container: Container
    relation: str
    user: str | None = None
    sensitivity: float | None = None
    examples: tuple[list[Any], ...] = ()

    @property
    def columns(self) -> Mapping[Any, Any]:
        """The domain of each column; that of plain values under the name None."""
        return self.record.columns if isinstance(self.record, Row) else {None: self.record}

    def contains(self, records: list[Any]) -> bool:
        """Whether every record is one of the domain, and none too many or too few."""
        least = self.least - (self.relation in ("add-remove", "user"))  # a neighbour of the smallest may lack some
        sizes = range(0 if self.relation == "user" else least, self.most + 1)
        return len(records) in sizes and all(self.record.contains(each) for each in records)


class RecordDomain:
    """A domain whose datasets are records in a container: its neighbours follow from `datasets`."""

    __slots__ = ()

    def datasets(self, relation: str) -> Datasets:
        """Its datasets and how they are made."""
        raise NotImplementedError

    def neighbours(self, relation: str) -> Neighbours:
        """Two datasets."""
        made = self.datasets(relation)
        if relation in ("l1", "linf"):
            assert isinstance(made.record, Number | Integer)
            moves = made.sensitivity or 1.0, isinstance(made.record, Integer), relation == "l1"
            return ShiftedAnswers(made.most, made.record.low, made.record.high, *moves, made.container)
        least = min(made.least + (relation == "add-remove"), made.most)
        return RecordPairs(made.record, max(least, 1), made.most, relation, made.container, made.user)


@dataclass(frozen=True, slots=True)
class Records(RecordDomain):
    """Datasets of values, one per record.

    Neighbours: one record replaced ("replace") or left out on the right ("add-remove"); for numbers also all of them
    moved by at most `sensitivity`, each ("linf") or in total ("l1").

    Attributes:
        value: the domain of a record: `Number`, `Integer`, `Boolean`, `Category`, `Text`, `Date` or `Optional`.
        size: the fewest and the most records, or how many.
        container: "list", "numpy" or "series" (of pandas).
        dtype: of numpy's arrays and of series; None takes that of the values.
        sensitivity: for "l1" and "linf".
    """

    value: Any
    size: Sizes = _SIZE
    container: str = "list"
    dtype: Any = None
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        cube.check_value(self.value, "value")
        check_positive("sensitivity", self.sensitivity)
        check_container(self.container, ("list", "numpy", "series"), self.dtype)
        self.datasets("replace")

    @property
    def relations(self) -> tuple[str, ...]:
        """Numbers can also move."""
        return ("replace", "add-remove", *(("l1", "linf") if isinstance(self.value, Number | Integer) else ()))

    def datasets(self, relation: str) -> Datasets:
        """Lists of values."""
        cube.check_relation(relation, self.relations, "these records")
        container, sizes = Container(self.container, {None: self.value}, self.dtype), check_sizes("size", self.size)
        return Datasets(self.value, *sizes, container, relation, sensitivity=float(self.sensitivity))


@dataclass(frozen=True, slots=True)
class Vector(RecordDomain):
    """Lists of `size` numbers of an interval, one per record.

    Neighbours: one number replaced by any other ("replace"), one left out on the right ("add-remove"), or all numbers
    moved by at most `sensitivity`, each ("linf") or in total ("l1").

    Attributes:
        size: how many numbers.
        low: the smallest.
        high: the largest.
        sensitivity: for "l1" and "linf".
        whole: whether the numbers are whole.
    """

    size: int
    low: float = 0.0
    high: float = 1.0
    sensitivity: float = 1.0
    whole: bool = False
    relations: ClassVar[tuple[str, ...]] = ("replace", "add-remove", "l1", "linf")

    def __post_init__(self) -> None:
        check_whole("size", self.size, 1, ": a dataset without records has no neighbours")
        self.datasets("replace")

    def datasets(self, relation: str) -> Datasets:
        """Lists of numbers."""
        cube.check_relation(relation, self.relations, "a vector")
        return Records(_number_of(self), self.size, sensitivity=self.sensitivity).datasets(relation)


@dataclass(frozen=True, slots=True)
class Queries(RecordDomain):
    """Lists of the answers to `count` queries, such as counts.

    Neighbours: every answer moves by at most `sensitivity` ("linf", as with counting queries that one person may all
    change), or the total of all moves is at most that ("l1", as with a histogram).

    Attributes:
        count: how many queries.
        low: the smallest answer.
        high: the largest answer.
        sensitivity: how far answers move.
        whole: whether answers are whole numbers.
    """

    count: int
    low: float = 0.0
    high: float = 10.0
    sensitivity: float = 1.0
    whole: bool = False
    relations: ClassVar[tuple[str, ...]] = ("linf", "l1")

    def __post_init__(self) -> None:
        check_whole("count", self.count, 1, ": no queries have no answers")
        cube.check_interval(self.low, self.high)
        check_positive("sensitivity", self.sensitivity)

    def datasets(self, relation: str) -> Datasets:
        """Lists of answers."""
        cube.check_relation(relation, self.relations, "answers of queries")
        return Records(_number_of(self), self.count, sensitivity=self.sensitivity).datasets(relation)


def _number_of(lists: Vector | Queries) -> Number | Integer:
    """What one of the numbers may be."""
    return Integer(*cube.check_whole_interval(lists.low, lists.high)) if lists.whole else Number(lists.low, lists.high)


@dataclass(frozen=True, slots=True)
class Table(RecordDomain):
    """Tables: rows with a value for every column.

    Neighbours: one row replaced by any other ("replace") or left out on the right ("add-remove"), one value of one row
    replaced ("substitute-column"), or all rows of one user left out on the right ("user").

    Attributes:
        columns: the domain of each column: `Number`, `Integer`, `Boolean`, `Category`, `Text`, `Date` or `Optional`.
        rows: the fewest and the most rows, or how many.
        container: "rows" (a list of dicts), "pandas", "polars" or "numpy".
        user: the column that names the user.
        dtype: of numpy's arrays; None takes that of the values.
    """

    columns: Mapping[str, Any]
    rows: Sizes = _SIZE
    container: str = "rows"
    user: str | None = None
    dtype: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise InputError(f"columns={self.columns!r:.100} must name at least one column and its domain")
        for name, domain in self.columns.items():
            cube.check_value(domain, f"column {name!r}")
        if self.user is not None and self.user not in self.columns:
            raise InputError(f"user={self.user!r} must be one of the columns: {', '.join(map(repr, self.columns))}")
        check_container(self.container, ("rows", "pandas", "polars", "numpy"), self.dtype)
        self.datasets("replace")

    @property
    def relations(self) -> tuple[str, ...]:
        """With users if they are named."""
        return ("replace", "add-remove", "substitute-column", *(() if self.user is None else ("user",)))

    def datasets(self, relation: str) -> Datasets:
        """Lists of rows."""
        cube.check_relation(relation, self.relations, "a table" if self.user else "a table without user=")
        container = Container(self.container, self.columns, self.dtype)
        return Datasets(Row(self.columns), *check_sizes("rows", self.rows), container, relation, self.user)


def check_container(container: object, known: Sequence[str], dtype: Any) -> None:
    """One of the containers of a domain, with a dtype only where there are arrays."""
    check_choice("container", container, known)
    if dtype is not None and container in ("list", "rows", "polars"):
        raise InputError(f"dtype={dtype!r}: container={container!r} has none; numpy's arrays have")


@dataclass(frozen=True, slots=True)
class Matrix(RecordDomain):
    """Arrays of numbers, a row per record; with labels, a pair of the array and its labels, as estimators take them.

    Neighbours: one row (with its label) replaced ("replace") or left out on the right ("add-remove"), or one number or
    label replaced ("substitute-column").

    Attributes:
        rows: the fewest and the most rows, or how many.
        columns: how many columns.
        low: the smallest number.
        high: the largest number.
        labels: a list of labels, or the domain of a label; None for data without labels.
        dtype: of the array.
    """

    rows: Sizes
    columns: int
    low: float = 0.0
    high: float = 1.0
    labels: Any = None
    dtype: Any = None
    relations: ClassVar[tuple[str, ...]] = ("replace", "add-remove", "substitute-column")

    def __post_init__(self) -> None:
        check_whole("columns", self.columns, 1)
        cube.check_interval(self.low, self.high)
        self.datasets("replace")

    def datasets(self, relation: str) -> Datasets:
        """Lists of rows, by number, and the label."""
        cube.check_relation(relation, self.relations, "a matrix")
        columns: dict[Any, Any] = {place: Number(self.low, self.high) for place in range(self.columns)}
        if self.labels is not None:
            labels = self.labels if hasattr(self.labels, "coordinates") else Category(tuple(self.labels))
            columns[cube.LABEL] = cube.check_value(labels, "labels")
        container = Container("matrix", columns, self.dtype)
        return Datasets(Row(columns), *check_sizes("rows", self.rows), container, relation)


@dataclass(frozen=True, slots=True)
class Examples(RecordDomain):
    """Datasets that were given or generated, and their neighbours.

    Attributes:
        record: what a record may be.
        examples: lists of records.
        container: makes of them what a mechanism is given.
        user: the column that names the user.
    """

    record: Any
    examples: tuple[list[Any], ...] = field(repr=False)
    container: Container = field(repr=False)
    user: str | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        """One value can only be replaced; of records, one can be missing."""
        if self.container.kind == "one":
            return ("replace",)
        columns = ("substitute-column",) if isinstance(self.record, Row) else ()
        return ("replace", "add-remove", *columns, *(() if self.user is None else ("user",)))

    def datasets(self, relation: str) -> Datasets:
        """The examples."""
        cube.check_relation(relation, self.relations, "these datasets")
        most = max(map(len, self.examples)) + (self.container.kind != "one")
        return Datasets(self.record, 0, most, self.container, relation, self.user, examples=self.examples)

    def neighbours(self, relation: str) -> Neighbours:
        """An example and a neighbour."""
        self.datasets(relation)
        return _ExamplePairs(self, relation)


@dataclass(frozen=True, slots=True)
class _ExamplePairs:
    domain: Examples
    relation: str

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Which example, what replaces a record of it, in which column, and which."""
        which = Coordinate(len(self.domain.examples), ordered=False)
        return (which, *self.domain.record.coordinates, Coordinate(), Coordinate())

    def pair(self, point: Point) -> Pair:
        """An empty example gets a record that its neighbour lacks."""
        record, wrap, examples = self.domain.record, self.domain.container, self.domain.examples
        left = list(examples[cube.level_of(point[0], len(examples))]) or [record.record(point[1:-2])]
        place = cube.level_of(point[-1], len(left))
        right = changed(record, left, self.relation, place, point[1:-2], point[-2], self.domain.user)
        return Pair(wrap(left), wrap(right))


# Datasets that a strategy is asked for: some hundred show every kind of value that Hypothesis likes to try.
_EXAMPLES = 300


def from_strategy(strategy: Any, *, examples: int = _EXAMPLES, seed: int = 0) -> Examples:
    """The datasets that a strategy of Hypothesis generates: lists, arrays with one dimension, or single values.

    Neighbours replace a record by one of any other example, or leave it out.

    Args:
        strategy: e.g. `st.lists(st.floats(0, 1))`.
        examples: how many datasets are generated.
        seed: of their choice.
    """
    if find_spec("hypothesis") is None:
        raise MissingExtraError("hypothesis", "hypothesis", "from_strategy")
    import hypothesis

    if not isinstance(strategy, hypothesis.strategies.SearchStrategy):
        raise InputError(f"strategy={strategy!r:.100} must be a strategy of Hypothesis, like st.lists(st.floats(0, 1))")
    made: list[Any] = []
    most = check_whole("examples", examples, 1)
    quiet: dict[str, Any] = {"database": None, "deadline": None, "suppress_health_check": list(hypothesis.HealthCheck)}

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=most, phases=[hypothesis.Phase.generate], **quiet)
    @hypothesis.given(strategy)
    def collect(dataset: Any) -> None:
        made.append(dataset)

    collect()
    if all(type(each) is list for each in made):
        kind, listed, dtype = "list", made, None
    elif all(type(each) is np.ndarray and each.ndim == 1 for each in made):
        kind, listed, dtype = "numpy", [each.tolist() for each in made], made[0].dtype
    else:
        kind, listed, dtype = "one", [[each] for each in made], None
    values = cube.distinct((each, "") for records in listed for each in records)
    if not values:
        raise InputError("the strategy made nothing but empty datasets, which have no neighbours")
    record = Seen(tuple(each.value for each in values))
    return Examples(record, tuple(listed), Container(kind, {None: record}, dtype))
