"""Layouts: a row of named fields as one output, and back.

Outputs are arrays, single values, tuples, lists, dicts, nested dicts, or texts: JSON, `key=value`, CSV lines, codes of fixed
width, sentences. Each layout is a bijection, so nothing of the log-likelihood ratio is lost.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from benchmarks.generated.factors import Table
from benchmarks.generated.leaves import Leaf, Node, Real, Sequenced
from epsilometer.arrays import Array, Booleans

# An absent field that leaves no trace, as opposed to None.
OMITTED = object()


@dataclass(frozen=True)
class Field:
    """A named part of an output.

    Attributes:
        name: as shown.
        node: what is shown.
        shown: the column that says whether it is there; None if it always is.
        absent: what stands in its place; `OMITTED` for nothing at all, where a layout can do that, else None.
    """

    name: str
    node: Node
    shown: str | None = None
    absent: Any = OMITTED

    def presence(self, table: Table) -> Booleans | None:
        """Returns where it is there, of shape (n,)."""
        return None if self.shown is None else np.asarray(table[self.shown]).astype(bool)

    def values(self, table: Table) -> list[Any]:
        """Returns values, or what stands in their place."""
        values = self.node.values(table)
        presence = self.presence(table)
        if presence is None:
            return values
        return [
            value if there else self.absent
            for value, there in zip(values, presence.tolist(), strict=True)
        ]

    def texts(self, table: Table, absent: str) -> list[str]:
        """Returns texts, or what stands in their place."""
        texts = self.node.texts(table)
        presence = self.presence(table)
        if presence is None:
            return texts
        return [
            text if there else absent for text, there in zip(texts, presence.tolist(), strict=True)
        ]

    def read(self, values: Sequence[Any]) -> Table:
        """Returns the columns from `values`."""
        if self.shown is None:
            return self.node.read(values)
        there = [
            value is not OMITTED and not (type(value) is type(self.absent) and value == self.absent)
            for value in values
        ]
        return self._spread(self.node.read(list(compress(values, there))), there)

    def read_texts(self, texts: Sequence[str], absent: str) -> Table:
        """Returns the columns from `texts`."""
        if self.shown is None:
            return self.node.read_texts(texts)
        there = [text != absent for text in texts]
        return self._spread(self.node.read_texts(list(compress(texts, there))), there)

    def _spread(self, present: Table, there: list[bool]) -> Table:
        mask = np.array(there, dtype=bool)
        table: Table = {self.shown or "": mask.astype(np.int64)}
        for column, values in present.items():
            table[column] = np.zeros((len(mask), *values.shape[1:]), dtype=values.dtype)
            table[column][mask] = values
        return table


class Layout(ABC):
    """How fields become outputs."""

    name: str

    @abstractmethod
    def render(self, table: Table) -> Any:
        """Returns n outputs."""

    @abstractmethod
    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns of outputs: the inverse of `render`."""


def _all_columns(fields: Sequence[Field], columns: Sequence[Sequence[Any]]) -> Table:
    table: Table = {}
    for field, values in zip(fields, columns, strict=True):
        table.update(field.read(values))
    return table


@dataclass(frozen=True)
class Bare(Layout):
    """The value of a single field."""

    field: Field
    name = "bare value"

    def render(self, table: Table) -> Any:
        """Returns values; numbers as an array."""
        if self.field.shown is None and isinstance(self.field.node, Real):
            return np.asarray(table[self.field.node.column], dtype=float)
        absent = None if self.field.absent is OMITTED else self.field.absent
        return [absent if value is OMITTED else value for value in self.field.values(table)]

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        values = _listed(outputs)
        if self.field.absent is OMITTED:
            values = [OMITTED if value is None else value for value in values]
        return self.field.read(values)


@dataclass(frozen=True)
class Matrix(Layout):
    """Numbers as one array of shape (n, d)."""

    leaves: tuple[Leaf, ...]
    name = "array"

    def render(self, table: Table) -> Any:
        """Returns an array."""
        return np.column_stack(
            [np.asarray(table[leaf.column], dtype=float) for leaf in self.leaves]
        )

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        array = np.asarray(outputs, dtype=float)
        return {leaf.column: array[:, place] for place, leaf in enumerate(self.leaves)}


@dataclass(frozen=True)
class Row(Layout):
    """A tuple or a list of the fields, None for those that are absent."""

    fields: tuple[Field, ...]
    container: type
    name = "row"

    def render(self, table: Table) -> Any:
        """Returns tuples or lists."""
        columns = [field.values(table) for field in self.fields]
        rows = zip(*columns, strict=True)
        return [
            self.container(None if value is OMITTED else value for value in row) for row in rows
        ]

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        columns = []
        for place, field in enumerate(self.fields):
            column = [output[place] for output in outputs]
            if field.absent is OMITTED:
                column = [OMITTED if value is None else value for value in column]
            columns.append(column)
        return _all_columns(self.fields, columns)


@dataclass(frozen=True)
class Record(Layout):
    """A dict of the fields; some of them may be in dicts inside it.

    Attributes:
        fields: in order.
        groups: for each field the name of the inner dict that has it; "" for the outer one.
    """

    fields: tuple[Field, ...]
    groups: tuple[str, ...]
    name = "dict"

    def render(self, table: Table) -> Any:
        """Returns dicts."""
        columns = [field.values(table) for field in self.fields]
        names = [field.name for field in self.fields]
        inner = sorted({group for group in self.groups if group})
        if not inner and all(field.shown is None for field in self.fields):
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        outputs = []
        for row in zip(*columns, strict=True):
            output: dict[str, Any] = {group: {} for group in inner}
            for name, group, value in zip(names, self.groups, row, strict=True):
                if value is not OMITTED:
                    (output[group] if group else output)[name] = value
            outputs.append(output)
        return outputs

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        columns = []
        for field, group in zip(self.fields, self.groups, strict=True):
            inside = [output[group] for output in outputs] if group else outputs
            columns.append([values.get(field.name, OMITTED) for values in inside])
        return _all_columns(self.fields, columns)


@dataclass(frozen=True)
class JsonText(Layout):
    """Rows or dicts as JSON text."""

    inner: Row | Record
    indent: int | None = None
    name = "JSON text"

    def render(self, table: Table) -> Any:
        """Returns texts."""
        encode = json.JSONEncoder(indent=self.indent).encode
        return [encode(output) for output in self.inner.render(table)]

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        return self.inner.read([json.loads(output) for output in outputs])


@dataclass(frozen=True)
class KeyValueText(Layout):
    """`key=value` texts; absent fields are left out."""

    fields: tuple[Field, ...]
    separator: str = " "
    equals: str = "="
    name = "key=value text"

    def render(self, table: Table) -> Any:
        """Returns texts."""
        columns = []
        for field in self.fields:
            start = f"{field.name}{self.equals}"
            texts = [start + text for text in field.node.texts(table)]
            presence = field.presence(table)
            if presence is not None:
                texts = [
                    text if there else ""
                    for text, there in zip(texts, presence.tolist(), strict=True)
                ]
            columns.append(texts)
        return [self.separator.join(filter(None, row)) for row in zip(*columns, strict=True)]

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        rows = [
            dict(part.split(self.equals, 1) for part in output.split(self.separator) if part)
            for output in outputs
        ]
        table: Table = {}
        for field in self.fields:
            # No value has this text: an absent key.
            column = [row.get(field.name, "\0") for row in rows]
            table.update(field.read_texts(column, absent="\0"))
        return table


@dataclass(frozen=True)
class SeparatedText(Layout):
    """Texts with a separator between fields, such as CSV lines; absent fields are empty."""

    fields: tuple[Field, ...]
    separator: str = ","
    name = "CSV line"

    def render(self, table: Table) -> Any:
        """Returns texts."""
        columns = [field.texts(table, absent="") for field in self.fields]
        return list(map(self.separator.join, zip(*columns, strict=True)))

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        rows = [output.split(self.separator) for output in outputs]
        table: Table = {}
        for place, field in enumerate(self.fields):
            table.update(field.read_texts([row[place] for row in rows], absent=""))
        return table


@dataclass(frozen=True)
class CodeText(Layout):
    """Codes of fixed width: the texts of the fields, filled up with zeros on the left.

    Attributes:
        fields: whose texts are never longer than their widths, vectors exactly as long; no other text begins with 0, unless
            it is 0.
        widths: characters of each field.
        prefix: what all codes begin with.
    """

    fields: tuple[Field, ...]
    widths: tuple[int, ...]
    prefix: str
    name = "fixed-width code"

    def render(self, table: Table) -> Any:
        """Returns texts."""
        columns = [
            [text.rjust(width, "0") for text in field.node.texts(table)]
            for field, width in zip(self.fields, self.widths, strict=True)
        ]
        return [self.prefix + "".join(row) for row in zip(*columns, strict=True)]

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        table: Table = {}
        start = len(self.prefix)
        for field, width in zip(self.fields, self.widths, strict=True):
            parts = [output[start : start + width] for output in outputs]
            if not isinstance(field.node, Sequenced):
                parts = [part.lstrip("0") or "0" for part in parts]
            table.update(field.node.read_texts(parts))
            start += width
        return table


@dataclass(frozen=True)
class SentenceText(Layout):
    """Free sentences with the values of the fields between fixed words; an absent value is "unknown".

    Attributes:
        fields: in order of the sentence.
        words: fixed texts, one more than fields.
    """

    fields: tuple[Field, ...]
    words: tuple[str, ...]
    name = "sentence"

    def render(self, table: Table) -> Any:
        """Returns texts."""
        columns = [field.texts(table, absent="unknown") for field in self.fields]
        template = "{}".join(self.words)
        return [template.format(*row) for row in zip(*columns, strict=True)]

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        # Values have no spaces, and the words on both sides begin and end with one.
        pattern = re.compile(r"(\S*)".join(map(re.escape, self.words)))
        rows = [_groups(pattern, output) for output in outputs]
        table: Table = {}
        for place, field in enumerate(self.fields):
            table.update(field.read_texts([row[place] for row in rows], absent="unknown"))
        return table


@dataclass(frozen=True)
class AsBytes(Layout):
    """Texts as bytes."""

    inner: Layout
    name = "bytes"

    def render(self, table: Table) -> Any:
        """Returns bytes."""
        return [output.encode() for output in self.inner.render(table)]

    def read(self, outputs: Sequence[Any]) -> Table:
        """Returns the columns."""
        return self.inner.read([output.decode() for output in outputs])


def _groups(pattern: re.Pattern[str], output: str) -> tuple[str, ...]:
    match = pattern.fullmatch(output)
    if match is None:
        raise ValueError(f"output={output!r} is not of the form {pattern.pattern!r}")
    return match.groups()


def _listed(outputs: Sequence[Any] | Array) -> list[Any]:
    return outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)


def numbers_only(fields: Sequence[Field]) -> tuple[Leaf, ...] | None:
    """Returns the leaves if all fields are numbers that are always there, else None."""
    leaves: list[Leaf] = []
    for field in fields:
        nodes = field.node.leaves if isinstance(field.node, Sequenced) else (field.node,)
        if field.shown is not None or not all(isinstance(node, Real) for node in nodes):
            return None
        leaves += [node for node in nodes if isinstance(node, Leaf)]
    return tuple(leaves)
