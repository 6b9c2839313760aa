"""Values as outputs show them: numbers, categories, dates, identifiers, vectors and lists, as Python values and as texts.

Every node is a bijection between columns of the table and what is shown, so that the log-likelihood ratio of an output is
that of its columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.generated.factors import Table
from epsilometer.arrays import Array

# How texts show an empty list.
_EMPTY = "-"
# Identifiers have so many binary digits: a million of them hardly ever repeat one.
IDENTIFIER_BITS = 52


class Node(ABC):
    """What is shown of one or several columns."""

    @abstractmethod
    def values(self, table: Table) -> list[Any]:
        """Returns Python values, one per row."""

    @abstractmethod
    def texts(self, table: Table) -> list[str]:
        """Returns the same as texts."""

    @abstractmethod
    def read(self, values: Sequence[Any]) -> Table:
        """Returns the columns from the values: the inverse of `values`."""

    @abstractmethod
    def read_texts(self, texts: Sequence[str]) -> Table:
        """Returns the columns from the texts: the inverse of `texts`."""


@dataclass(frozen=True)
class Leaf(Node):
    """One column."""

    column: str

    def values(self, table: Table) -> list[Any]:
        """Returns Python values, one per row."""
        return self.show(table[self.column])

    def texts(self, table: Table) -> list[str]:
        """Returns the same as texts."""
        return self.write(table[self.column])

    def read(self, values: Sequence[Any]) -> Table:
        """Returns the column from the values."""
        return {self.column: self.recognise(values)}

    def read_texts(self, texts: Sequence[str]) -> Table:
        """Returns the column from the texts."""
        return {self.column: self.parse(texts)}

    @abstractmethod
    def show(self, column: Array) -> list[Any]:
        """Returns Python values of an array of shape (n,)."""

    @abstractmethod
    def recognise(self, values: Sequence[Any]) -> Array:
        """Returns the array from the values."""

    def write(self, column: Array) -> list[str]:
        """Returns texts of an array of shape (n,)."""
        return list(map(str, self.show(column)))

    def parse(self, texts: Sequence[str]) -> Array:
        """Returns the array from the texts."""
        return self.recognise(texts)


@dataclass(frozen=True)
class Real(Leaf):
    """A number, in texts with a fixed number of decimals or with all its digits, and maybe with a unit."""

    decimals: int | None = None
    unit: str = ""

    def show(self, column: Array) -> list[Any]:
        """Returns floats."""
        return np.asarray(column, dtype=float).tolist()

    def recognise(self, values: Sequence[Any]) -> Array:
        """Returns an array of floats."""
        return np.array(values, dtype=float)

    def write(self, column: Array) -> list[str]:
        """Returns the digits."""
        numbers = self.show(column)
        if self.decimals is None:
            return [f"{number!r}{self.unit}" for number in numbers]
        return [f"{number:.{self.decimals}f}{self.unit}" for number in numbers]

    def parse(self, texts: Sequence[str]) -> Array:
        """Returns an array of floats."""
        return np.array([float(text.removesuffix(self.unit)) for text in texts], dtype=float)


@dataclass(frozen=True)
class Whole(Leaf):
    """An integer."""

    def show(self, column: Array) -> list[Any]:
        """Returns integers."""
        return np.asarray(column, dtype=np.int64).tolist()

    def recognise(self, values: Sequence[Any]) -> Array:
        """Returns an array of integers."""
        return np.array(list(map(int, values)), dtype=np.int64)


@dataclass(frozen=True)
class Category(Leaf):
    """One of some labels."""

    labels: tuple[str, ...] = ()

    def show(self, column: Array) -> list[Any]:
        """Returns the labels."""
        return np.array(self.labels, dtype=object)[np.asarray(column, dtype=np.int64)].tolist()

    def recognise(self, values: Sequence[Any]) -> Array:
        """Returns the places of the labels."""
        places = {label: place for place, label in enumerate(self.labels)}
        return np.array([places[value] for value in values], dtype=np.int64)


@dataclass(frozen=True)
class Truth(Leaf):
    """A truth value."""

    words: tuple[str, str] = ("false", "true")

    def show(self, column: Array) -> list[Any]:
        """Returns truth values."""
        return np.asarray(column).astype(bool).tolist()

    def recognise(self, values: Sequence[Any]) -> Array:
        """Returns 0 and 1."""
        return np.array([bool(value) for value in values], dtype=np.int64)

    def write(self, column: Array) -> list[str]:
        """Returns the two words."""
        return [self.words[value] for value in self.show(column)]

    def parse(self, texts: Sequence[str]) -> Array:
        """Returns 0 and 1."""
        return np.array([text == self.words[1] for text in texts], dtype=np.int64)


@dataclass(frozen=True)
class Date(Leaf):
    """A date, from days since 1970; or a moment, from seconds since then.

    Attributes:
        style: "object" for Python's dates, "iso", "compact" (20240131) or "dotted" (31.01.2024).
        unit: "D" or "s".
    """

    style: str = "iso"
    unit: str = "D"

    def _moments(self, column: Array) -> Array:
        return np.asarray(column, dtype=np.int64).astype(f"datetime64[{self.unit}]")

    def show(self, column: Array) -> list[Any]:
        """Returns dates, or texts of them."""
        return self._moments(column).tolist() if self.style == "object" else self.write(column)

    def recognise(self, values: Sequence[Any]) -> Array:
        """Returns days or seconds."""
        if self.style == "object":
            return np.array(values, dtype=f"datetime64[{self.unit}]").astype(np.int64)
        return self.parse(values)

    def write(self, column: Array) -> list[str]:
        """Returns texts."""
        texts: list[str] = self._moments(column).astype(str).tolist()
        if self.style == "compact":
            return [text.replace("-", "").replace(":", "") for text in texts]
        if self.style == "dotted":
            return [f"{text[8:10]}.{text[5:7]}.{text[:4]}{text[10:]}" for text in texts]
        return texts

    def parse(self, texts: Sequence[str]) -> Array:
        """Returns days or seconds."""
        if self.style == "compact":
            texts = [
                f"{t[:4]}-{t[4:6]}-{t[6:8]}{t[8:11]}" + (f":{t[11:13]}:{t[13:]}" if t[8:] else "")
                for t in texts
            ]
        elif self.style == "dotted":
            texts = [f"{t[6:10]}-{t[3:5]}-{t[:2]}{t[10:]}" for t in texts]
        return np.array(texts, dtype=f"datetime64[{self.unit}]").astype(np.int64)


@dataclass(frozen=True)
class Identifier(Leaf):
    """A unique identifier, from an integer below 2**52.

    Attributes:
        style: "hex", "dashed" (groups of hexadecimal digits), "number" or "user" (user-… with decimal digits).
    """

    style: str = "hex"

    def show(self, column: Array) -> list[Any]:
        """Returns identifiers."""
        numbers: list[int] = np.asarray(column, dtype=np.int64).tolist()
        if self.style == "number":
            return numbers
        if self.style == "user":
            return [f"user-{number:016d}" for number in numbers]
        texts = [f"{number:013x}" for number in numbers]
        if self.style == "dashed":
            return [f"{text[:5]}-{text[5:9]}-{text[9:]}" for text in texts]
        return texts

    def recognise(self, values: Sequence[Any]) -> Array:
        """Returns the integers."""
        if self.style == "number":
            return np.array(list(map(int, values)), dtype=np.int64)
        if self.style == "user":
            return np.array([int(value[5:]) for value in values], dtype=np.int64)
        return np.array([int(value.replace("-", ""), 16) for value in values], dtype=np.int64)


@dataclass(frozen=True)
class Sequenced(Node):
    """A vector: a list of leaves."""

    leaves: tuple[Leaf, ...]
    separator: str = "|"

    def values(self, table: Table) -> list[Any]:
        """Returns lists."""
        return list(map(list, zip(*(leaf.values(table) for leaf in self.leaves), strict=True)))

    def texts(self, table: Table) -> list[str]:
        """Returns texts of the elements with a separator between."""
        columns = [leaf.texts(table) for leaf in self.leaves]
        return list(map(self.separator.join, zip(*columns, strict=True)))

    def read(self, values: Sequence[Any]) -> Table:
        """Returns the columns."""
        table: Table = {}
        for place, leaf in enumerate(self.leaves):
            table.update(leaf.read([value[place] for value in values]))
        return table

    def read_texts(self, texts: Sequence[str]) -> Table:
        """Returns the columns."""
        table: Table = {}
        # Without a separator every element is one character.
        rows = [text.split(self.separator) if self.separator else list(text) for text in texts]
        for place, leaf in enumerate(self.leaves):
            table.update(leaf.read_texts([row[place] for row in rows]))
        return table


@dataclass(frozen=True)
class Ragged(Node):
    """A list of random length: the first so many values of a column of shape (n, longest)."""

    leaf: Leaf
    length: str
    longest: int
    separator: str = "|"

    def _elements(self, table: Table) -> Array:
        lengths = np.asarray(table[self.length])
        return table[self.leaf.column][np.arange(self.longest)[None, :] < lengths[:, None]]

    def _cut(self, elements: Sequence[Any], table: Table) -> list[Any]:
        ends = np.cumsum(table[self.length]).tolist()
        return [elements[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def values(self, table: Table) -> list[Any]:
        """Returns lists."""
        return self._cut(self.leaf.show(self._elements(table)), table)

    def texts(self, table: Table) -> list[str]:
        """Returns texts of the elements with a separator between."""
        rows = self._cut(self.leaf.write(self._elements(table)), table)
        return [self.separator.join(row) if row else _EMPTY for row in rows]

    def _split(self, text: str) -> list[str]:
        if text == _EMPTY:
            return []
        return text.split(self.separator) if self.separator else list(text)

    def _filled(self, lengths: list[int], elements: Array) -> Table:
        counts = np.array(lengths, dtype=np.int64)
        columns = np.zeros((len(lengths), self.longest), dtype=elements.dtype)
        columns[np.arange(self.longest)[None, :] < counts[:, None]] = elements
        return {self.leaf.column: columns, self.length: counts}

    def read(self, values: Sequence[Any]) -> Table:
        """Returns values and lengths."""
        elements = self.leaf.recognise(list(chain.from_iterable(values)))
        return self._filled(list(map(len, values)), elements)

    def read_texts(self, texts: Sequence[str]) -> Table:
        """Returns values and lengths."""
        rows = [self._split(text) for text in texts]
        return self._filled(list(map(len, rows)), self.leaf.parse(list(chain.from_iterable(rows))))


@dataclass(frozen=True)
class Letters(Ragged):
    """A text of random length, from a list of letters."""

    separator: str = ""

    def values(self, table: Table) -> list[Any]:
        """Returns texts."""
        return self.texts(table)

    def read(self, values: Sequence[Any]) -> Table:
        """Returns letters and lengths."""
        return self.read_texts(values)


@dataclass(frozen=True)
class RaggedRecords(Node):
    """A list of random length of records.

    Attributes:
        names: of the fields of a record.
        leaves: whose columns have shape (n, longest).
        length: the column of lengths.
        longest: the greatest length.
        container: dict, or tuple for records without names.
    """

    names: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    length: str
    longest: int
    container: type

    def _shown(self, table: Table) -> Array:
        return np.arange(self.longest)[None, :] < np.asarray(table[self.length])[:, None]

    def _cut(self, records: list[Any], table: Table) -> list[Any]:
        ends = np.cumsum(table[self.length]).tolist()
        return [records[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def values(self, table: Table) -> list[Any]:
        """Returns lists of records."""
        shown = self._shown(table)
        columns = [leaf.show(table[leaf.column][shown]) for leaf in self.leaves]
        rows = zip(*columns, strict=True)
        if self.container is dict:
            return self._cut([dict(zip(self.names, row, strict=True)) for row in rows], table)
        return self._cut([list(row) for row in rows], table)

    def texts(self, table: Table) -> list[str]:
        """Returns records as `label:number`, with a separator between."""
        shown = self._shown(table)
        columns = [leaf.write(table[leaf.column][shown]) for leaf in self.leaves]
        records = list(map(":".join, zip(*columns, strict=True)))
        return ["|".join(row) if row else _EMPTY for row in self._cut(records, table)]

    def _filled(self, lengths: list[int], columns: list[Array]) -> Table:
        table: Table = {self.length: np.array(lengths, dtype=np.int64)}
        shown = self._shown(table)
        for leaf, elements in zip(self.leaves, columns, strict=True):
            table[leaf.column] = np.zeros(shown.shape, dtype=elements.dtype)
            table[leaf.column][shown] = elements
        return table

    def read(self, values: Sequence[Any]) -> Table:
        """Returns the columns and the lengths."""
        records = list(chain.from_iterable(values))
        keys = self.names if self.container is dict else range(len(self.leaves))
        columns = [
            leaf.recognise([record[key] for record in records])
            for key, leaf in zip(keys, self.leaves, strict=True)
        ]
        return self._filled(list(map(len, values)), columns)

    def read_texts(self, texts: Sequence[str]) -> Table:
        """Returns the columns and the lengths."""
        rows = [[] if text == _EMPTY else text.split("|") for text in texts]
        records = [record.split(":") for record in chain.from_iterable(rows)]
        columns = [
            leaf.parse([record[place] for record in records])
            for place, leaf in enumerate(self.leaves)
        ]
        return self._filled(list(map(len, rows)), columns)


@dataclass(frozen=True)
class Histogram(Node):
    """Numbers by label; those at the least possible value are left out.

    Attributes:
        labels: of the numbers.
        leaves: of the numbers.
        least: the value of a number that is not shown.
    """

    labels: tuple[str, ...]
    leaves: tuple[Real, ...]
    least: float

    def values(self, table: Table) -> list[Any]:
        """Returns dicts."""
        columns = [leaf.values(table) for leaf in self.leaves]
        return [
            {
                label: number
                for label, number in zip(self.labels, row, strict=True)
                if number > self.least
            }
            for row in zip(*columns, strict=True)
        ]

    def texts(self, table: Table) -> list[str]:
        """Returns texts such as `red:3.2|blue:4.1`."""
        return [
            "|".join(f"{label}:{number!r}" for label, number in shown.items()) or _EMPTY
            for shown in self.values(table)
        ]

    def read(self, values: Sequence[Any]) -> Table:
        """Returns the columns."""
        table: Table = {}
        for label, leaf in zip(self.labels, self.leaves, strict=True):
            table[leaf.column] = np.array([shown.get(label, self.least) for shown in values])
        return table

    def read_texts(self, texts: Sequence[str]) -> Table:
        """Returns the columns."""
        parts = [[] if text == _EMPTY else text.split("|") for text in texts]
        return self.read(
            [
                {label: float(number) for label, number in (part.split(":") for part in row)}
                for row in parts
            ]
        )
