"""Domains of datasets: lists of numbers, arrays, series and tables of records, and examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

import epsilometer.inputs.coordinates as cube
from epsilometer.claims.base import check_choice, check_flag, check_positive, check_whole
from epsilometer.errors import InputError, MissingExtraError
from epsilometer.inputs.coordinates import Container, Coordinate, Neighbours, Point, Record
from epsilometer.inputs.domains.numbers import Category, Integer, Number
from epsilometer.inputs.domains.records import (
    ObservedCategory,
    RecordPairs,
    Row,
    ShiftedAnswers,
    changed,
)
from epsilometer.inputs.pairs import Pair
from epsilometer.one_line import fields_on_one_line

# The fewest and the most records that a dataset has by default: enough for every edge case, few
# enough to read.
_SIZE = (0, 12)
# Datasets that a strategy is asked for: some hundred show every kind of value that Hypothesis likes
# to try.
_N_EXAMPLES = 300
Sizes = int | tuple[int, int]


def check_sizes(name: str, given: object) -> tuple[int, int]:
    """Returns the fewest and the most records, or raises an InputError.

    Args:
        name: of the setting.
        given: both numbers, or one number for both.
    """
    fewest: object = given
    largest: object = given
    if isinstance(given, Sequence) and len(given) == 2:
        fewest, largest = given
    least = check_whole(name, fewest, 0)
    most = check_whole(name, largest, 1, ": a dataset without records has no neighbours")
    if least > most:
        raise InputError(f"{name}={given!r}: the fewest must not be more than the most")
    return least, most


@dataclass(frozen=True, slots=True)
class Datasets:
    """The datasets of a domain: what a search needs to build and to change them.

    Attributes:
        record: what a record may be.
        least: the fewest records.
        most: the most.
        container: turns a list of records into what a mechanism is given.
        relation: which datasets are neighbours.
        user: the column that names the user.
        sensitivity: how far numbers may move, by "l1" and "linf" or from one number to its
            neighbour.
        examples: lists of records to begin with; only their neighbours are tried.
    """

    record: Record
    least: int
    most: int
    container: Container
    relation: str
    user: str | int | None = None
    sensitivity: float | None = None
    examples: tuple[list[Any], ...] = ()

    @property
    def columns(self) -> Mapping[Any, Any]:
        """The domain of each column; that of plain values under the name None."""
        return self.record.columns if isinstance(self.record, Row) else {None: self.record}

    def contains(self, records: list[Any]) -> bool:
        """Returns whether every record is one of the domain, and none too many or too few."""
        # A neighbour of the smallest dataset may lack one record, or all of one user.
        least = self.least
        if self.relation == "add-remove":
            least -= 1
        elif self.relation == "user":
            least = 0
        if len(records) not in range(least, self.most + 1):
            return False
        return all(self.record.contains(record) for record in records)


class RecordDomain:
    """A domain whose datasets are records in a container.

    Its neighbours follow from `datasets`.
    """

    __slots__ = ()

    def datasets(self, relation: str) -> Datasets:
        """Returns its datasets and how they are made."""
        raise NotImplementedError

    def neighbours(self, relation: str) -> Neighbours:
        """Returns all pairs of two neighbouring datasets."""
        datasets = self.datasets(relation)
        if relation in ("l1", "linf"):
            number = datasets.record
            assert isinstance(number, Number | Integer)
            return ShiftedAnswers(
                count=datasets.most,
                low=number.low,
                high=number.high,
                sensitivity=datasets.sensitivity or 1.0,
                whole=isinstance(number, Integer),
                in_all=relation == "l1",
                wrap=datasets.container,
            )
        # The left dataset needs a record that is changed or missing on the right.
        least = datasets.least
        if relation == "add-remove":
            least = min(least + 1, datasets.most)
        return RecordPairs(
            record=datasets.record,
            least=max(least, 1),
            most=datasets.most,
            relation=relation,
            wrap=datasets.container,
            user=datasets.user,
        )


@dataclass(frozen=True, slots=True)
class Records(RecordDomain):
    """Datasets of values, one per record.

    Neighbours: one record replaced ("replace") or left out on the right ("add-remove"); for numbers
    also all of them moved by at most `sensitivity`, each ("linf") or in total ("l1").

    Attributes:
        value: the domain of a record: `Number`, `Integer`, `Boolean`, `Category`, `Text`, `Date`,
            `Sphere` or `Optional`.
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

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        cube.check_value(self.value, "value")
        check_positive("sensitivity", self.sensitivity)
        check_container(self.container, ("list", "numpy", "series"), self.dtype)
        self.datasets("replace")

    @property
    def relations(self) -> tuple[str, ...]:
        """Those of all records, and those of numbers."""
        if isinstance(self.value, Number | Integer):
            return ("replace", "add-remove", "l1", "linf")
        return ("replace", "add-remove")

    def datasets(self, relation: str) -> Datasets:
        """Returns lists of values."""
        cube.check_relation(relation, self.relations, "these records")
        least, most = check_sizes("size", self.size)
        return Datasets(
            record=self.value,
            least=least,
            most=most,
            container=Container(self.container, {None: self.value}, self.dtype),
            relation=relation,
            sensitivity=float(self.sensitivity),
        )


@dataclass(frozen=True, slots=True)
class Vector(RecordDomain):
    """Lists of `size` numbers of an interval, one per record.

    Neighbours: one number replaced by any other ("replace"), one left out on the right
    ("add-remove"), or all numbers moved by at most `sensitivity`, each ("linf") or in total ("l1").

    Attributes:
        size: how many numbers.
        low: the smallest.
        high: the largest.
        sensitivity: for "l1" and "linf".
        whole: whether the numbers are integers.
    """

    size: int
    low: float = 0.0
    high: float = 1.0
    sensitivity: float = 1.0
    whole: bool = False
    relations: ClassVar[tuple[str, ...]] = ("replace", "add-remove", "l1", "linf")

    def __post_init__(self) -> None:
        check_whole("size", self.size, 1, ": a dataset without records has no neighbours")
        check_flag("whole", self.whole)
        self.datasets("replace")

    def datasets(self, relation: str) -> Datasets:
        """Returns lists of numbers."""
        cube.check_relation(relation, self.relations, "a vector")
        records = Records(_number_of(self), self.size, sensitivity=self.sensitivity)
        return records.datasets(relation)


@dataclass(frozen=True, slots=True)
class Queries(RecordDomain):
    """Lists of the answers to `count` queries, such as counts.

    Neighbours: every answer moves by at most `sensitivity` ("linf", as with counting queries that
    one person may all change), or the total of all moves is at most that ("l1", as with a
    histogram).

    Attributes:
        count: how many queries.
        low: the smallest answer.
        high: the largest answer.
        sensitivity: how far answers move.
        whole: whether answers are integers.
    """

    count: int
    low: float = 0.0
    high: float = 10.0
    sensitivity: float = 1.0
    whole: bool = False
    relations: ClassVar[tuple[str, ...]] = ("linf", "l1")

    def __post_init__(self) -> None:
        check_whole("count", self.count, 1, ": no queries have no answers")
        check_flag("whole", self.whole)
        cube.check_interval(self.low, self.high)
        check_positive("sensitivity", self.sensitivity)

    def datasets(self, relation: str) -> Datasets:
        """Returns lists of answers."""
        cube.check_relation(relation, self.relations, "answers of queries")
        records = Records(_number_of(self), self.count, sensitivity=self.sensitivity)
        return records.datasets(relation)


def _number_of(lists: Vector | Queries) -> Number | Integer:
    """Returns what one of the numbers may be."""
    if not lists.whole:
        return Number(lists.low, lists.high)
    low, high = cube.check_whole_interval(lists.low, lists.high)
    return Integer(low, high)


@dataclass(frozen=True, slots=True)
class Table(RecordDomain):
    """Tables: rows with a value for every column.

    Neighbours: one row replaced by any other ("replace") or left out on the right ("add-remove"),
    or one value of one row replaced ("substitute-column"). With a user column: all rows of one user
    left out on the right ("user"), and nothing else.

    Attributes:
        columns: the domain of each column: `Number`, `Integer`, `Boolean`, `Category`, `Text`,
            `Date` or `Optional`.
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

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise InputError(
                f"columns={self.columns!r:.100} must name at least one column and its domain"
            )
        for name, domain in self.columns.items():
            cube.check_value(domain, f"column {name!r}")
        if self.user is not None and self.user not in self.columns:
            names = ", ".join(map(repr, self.columns))
            raise InputError(f"user={self.user!r} must be one of the columns: {names}")
        check_container(self.container, ("rows", "pandas", "polars", "numpy"), self.dtype)
        self.datasets(self.relations[0])

    @property
    def relations(self) -> tuple[str, ...]:
        """Those of all tables, or "user" alone if a column names users."""
        if self.user is not None:
            return ("user",)
        return ("replace", "add-remove", "substitute-column")

    def datasets(self, relation: str) -> Datasets:
        """Returns lists of rows."""
        cube.check_user_relation(relation, self.user)
        cube.check_relation(relation, self.relations, "a table")
        least, most = check_sizes("rows", self.rows)
        return Datasets(
            record=Row(self.columns),
            least=least,
            most=most,
            container=Container(self.container, self.columns, self.dtype),
            relation=relation,
            user=self.user,
        )


def check_container(container: object, known: Sequence[str], dtype: Any) -> None:
    """Raises unless the container is one of those of a domain, and has a dtype if one is given."""
    check_choice("container", container, known)
    if dtype is not None and container in ("list", "rows", "polars"):
        raise InputError(f"dtype={dtype!r}: container={container!r} has none; numpy's arrays have")


@dataclass(frozen=True, slots=True)
class Matrix(RecordDomain):
    """Arrays of numbers, a row per record.

    With labels, a dataset is a pair of the array and its labels, as estimators take them.

    Neighbours: one row (with its label) replaced ("replace") or left out on the right
    ("add-remove"), or one number or label replaced ("substitute-column").

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

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        check_whole("columns", self.columns, 1)
        cube.check_interval(self.low, self.high)
        self.datasets("replace")

    def datasets(self, relation: str) -> Datasets:
        """Returns lists of rows, whose columns are numbered, with the label if there is one."""
        cube.check_relation(relation, self.relations, "a matrix")
        columns: dict[Any, Any] = {}
        for position in range(self.columns):
            columns[position] = Number(self.low, self.high)
        if self.labels is not None:
            labels = self.labels
            if not hasattr(labels, "coordinates"):
                labels = Category(tuple(labels))
            columns[cube.LABEL] = cube.check_value(labels, "labels")
        least, most = check_sizes("rows", self.rows)
        return Datasets(
            record=Row(columns),
            least=least,
            most=most,
            container=Container("matrix", columns, self.dtype),
            relation=relation,
        )


@dataclass(frozen=True, slots=True)
class Examples(RecordDomain):
    """Datasets that were given or generated, and their neighbours.

    Attributes:
        record: what a record may be.
        examples: lists of records.
        container: turns them into what a mechanism is given.
        user: the column that names the user.
    """

    record: Any
    examples: tuple[list[Any], ...] = field(repr=False)
    container: Container = field(repr=False)
    user: str | int | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        """One value can only be replaced; of records, one can be missing, or all of a user."""
        if self.container.kind == "one":
            return ("replace",)
        if self.user is not None:
            return ("user",)
        relations = ["replace", "add-remove"]
        if isinstance(self.record, Row):
            relations.append("substitute-column")
        return tuple(relations)

    def datasets(self, relation: str) -> Datasets:
        """Returns the examples."""
        cube.check_user_relation(relation, self.user)
        cube.check_relation(relation, self.relations, "these datasets")
        most = max(len(records) for records in self.examples)
        if self.container.kind != "one":
            most += 1  # room for one record that an example lacks
        return Datasets(
            record=self.record,
            least=0,
            most=most,
            container=self.container,
            relation=relation,
            user=self.user,
            examples=self.examples,
        )

    def neighbours(self, relation: str) -> Neighbours:
        """Returns all pairs of an example and a neighbour."""
        self.datasets(relation)
        return _ExamplePairs(self, relation)


@dataclass(frozen=True, slots=True)
class _ExamplePairs:
    """Pairs of an example and a neighbour of it."""

    domain: Examples
    relation: str

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Which example, what replaces a record of it, in which column, and which."""
        which = Coordinate(len(self.domain.examples), ordered=False)
        return (which, *self.domain.record.coordinates, Coordinate(), Coordinate())

    def pair(self, point: Point) -> Pair:
        """Returns an example and a neighbour; an empty one gets a record that the latter lacks."""
        record = self.domain.record
        examples = self.domain.examples
        record_point = point[1:-2]
        left = list(examples[cube.level_of(point[0], len(examples))])
        if not left:
            left = [record.record(record_point)]
        right = changed(
            record,
            left,
            relation=self.relation,
            place=cube.level_of(point[-1], len(left)),
            point=record_point,
            u=point[-2],
            user=self.domain.user,
        )
        container = self.domain.container
        return Pair(container(left), container(right))


def from_strategy(strategy: Any, *, examples: int = _N_EXAMPLES, seed: int = 0) -> Examples:
    """The datasets that a strategy of Hypothesis generates: lists, 1-D arrays, or single values.

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
        raise InputError(
            f"strategy={strategy!r:.100} must be a strategy of Hypothesis, like "
            "st.lists(st.floats(0, 1))"
        )
    datasets: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=check_whole("examples", examples, 1),
        phases=[hypothesis.Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(dataset: Any) -> None:
        datasets.append(dataset)

    collect()
    return _examples_of(datasets)


def _examples_of(datasets: list[Any]) -> Examples:
    """Returns the domain of generated datasets."""
    dtype = None
    if all(type(dataset) is list for dataset in datasets):
        kind = "list"
        lists = datasets
    elif all(type(dataset) is np.ndarray and dataset.ndim == 1 for dataset in datasets):
        kind = "numpy"
        lists = [dataset.tolist() for dataset in datasets]
        dtype = datasets[0].dtype
    else:
        kind = "one"
        lists = [[dataset] for dataset in datasets]
    specials = cube.distinct((value, "") for records in lists for value in records)
    if not specials:
        raise InputError("the strategy made nothing but empty datasets, which have no neighbours")
    record = ObservedCategory(tuple(special.value for special in specials))
    container = Container(kind, {None: record}, dtype)
    return Examples(record=record, examples=tuple(lists), container=container)
