"""Texts become columns: what a fixed reading, learned from training draws, finds inside of them.

A reading knows for each column of texts some *templates*: a format (JSON, `key=value`, a line of
entries, tokens between fixed words) and the views of its fields. Every text belongs to the first
template whose format it has, and what has none stays a text. The outputs of one shape with one
template become a shape of their own, whose columns are the text itself, where texts repeat, and the
views.

A reading is plain data. It is learned before an event and stored with it, so both sides, fresh
draws and replays are read alike.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from epsilometer.arrays import Integers
from epsilometer.outputs.columns import Block, Column, Labels, Numbers, Outputs, first_row
from epsilometer.outputs.number_parts import ShapeParts, shape_parts_from_dict
from epsilometer.outputs.number_words import FEW_VALUES
from epsilometer.outputs.reading_numbers import factorise
from epsilometer.outputs.shapes import FEATURED, READ, Leaf, leaves_of
from epsilometer.outputs.text_formats import Fields, Format, ParsedText, format_from_dict
from epsilometer.outputs.text_views import TextView, view_from_dict

# Most views of one template.
MAX_VIEWS = 64
# Most templates of one column, without that of all other texts.
MAX_TEMPLATES = 8
# Kinds of leaves that are read.
TEXT_KINDS = ("str", "bytes")
# Kinds of leaves in a column of numbers that a view or a part of a number makes.
NUMBER_KINDS = ("int", "float", "bool", "date", "datetime", "time", *FEW_VALUES)


@dataclass(frozen=True, slots=True)
class Template:
    """Texts of one format, and the columns that they become.

    Attributes:
        format: takes a text apart.
        views: of its fields.
        keeps_text: whether the text itself stays a column.
    """

    format: Format
    views: tuple[TextView, ...]
    keeps_text: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `_template_from_dict` is the inverse."""
        return {
            "format": self.format.to_dict(),
            "views": [view.to_dict() for view in self.views],
            "text": self.keeps_text,
        }


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How one column of texts is read.

    Attributes:
        column: its place in the block.
        is_bytes: whether its labels are bytes, escaped.
        templates: the last one takes every text.
    """

    column: int
    is_bytes: bool
    templates: tuple[Template, ...]

    def read(self, column: Labels) -> "_ReadLabels":
        """Reads the distinct texts of a column, each once."""
        used = np.unique(column.codes)
        place_of_code = np.zeros(len(column.labels), dtype=np.int64)
        place_of_code[used] = np.arange(len(used))
        template_of_text = np.empty(len(used), dtype=np.int64)
        values: list[list[list[Any]]] = [
            [[] for _ in template.views] for template in self.templates
        ]
        place_in_template = np.empty(len(used), dtype=np.int64)
        sizes = [0] * len(self.templates)
        for place, code in enumerate(used.tolist()):
            parsed = ParsedText(text_of_label(column.labels[code], self.is_bytes))
            number, fields = self._template_of(parsed)
            template_of_text[place] = number
            place_in_template[place] = sizes[number]
            sizes[number] += 1
            views = self.templates[number].views
            for view, column_values in zip(views, values[number], strict=True):
                value = fields.get(view.key) if view.key else parsed.text
                column_values.append(view.number(value) if view.is_number else view.label(value))
        text_of_row = place_of_code[column.codes]
        return _ReadLabels(
            template=template_of_text[text_of_row],
            place=place_in_template[text_of_row],
            columns=[
                [
                    _column_of(view, column_values)
                    for view, column_values in zip(template.views, template_values, strict=True)
                ]
                for template, template_values in zip(self.templates, values, strict=True)
            ],
        )

    def _template_of(self, parsed: ParsedText) -> tuple[int, Fields]:
        """Returns the number of the first template whose format a text has, and its fields."""
        for number, template in enumerate(self.templates):
            fields = template.format.fields(parsed)
            if fields is not None:
                return number, fields
        raise AssertionError("the last template takes every text")

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `_column_from_dict` is the inverse."""
        return {
            "column": self.column,
            "bytes": self.is_bytes,
            "templates": [template.to_dict() for template in self.templates],
        }


@dataclass(frozen=True, slots=True)
class _ReadLabels:
    """What the texts of a column became.

    Attributes:
        template: shape (rows,), the number of each row's template.
        place: shape (rows,), the place of each row's text among the texts of its template.
        columns: per template, the views of its distinct texts.
    """

    template: Integers
    place: Integers
    columns: list[list[Column]]

    def column(self, template: int, view: int) -> Column:
        """Returns a view of the texts of one template."""
        return _taken(self.columns[template][view], self.place[self.template == template])


def _taken(column: Column, rows: Integers) -> Column:
    """Returns the given rows of a column, and only the labels that they have."""
    taken = column.take(rows)
    if isinstance(taken, Numbers):
        return taken
    n_used = int(taken.codes.max()) + 1 if len(taken) else 0
    return Labels(taken.codes, taken.labels[:n_used])


def _column_of(view: TextView, values: list[Any]) -> Column:
    if view.is_number:
        return Numbers(np.array(values, dtype=np.float64))
    return factorise(values, str)


def text_of_label(label: str, is_bytes: bool) -> str:
    """Returns the text that a label stands for; bytes as characters 0 to 255."""
    if not is_bytes:
        return label
    try:
        return label.encode("ascii").decode("unicode_escape")
    except UnicodeError:  # no label of bytes: the outputs were tampered with
        return label


@dataclass(frozen=True, slots=True)
class ShapeReading:
    """How the outputs of one shape are read.

    Attributes:
        shape: of the outputs before they are read.
        n_columns: how many columns they have.
        columns: the columns of texts that are read, in order.
        left_out: the columns that are left out.
    """

    shape: str
    n_columns: int
    columns: tuple[ColumnReading, ...]
    left_out: tuple[int, ...] = ()
    _shapes: dict[tuple[int, ...], str] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def read(self, block: Block) -> list[Block]:
        """Returns the blocks of the templates that occur."""
        if len(block.columns) != self.n_columns:
            return [block]
        texts = []
        for reading in self.columns:
            column = block.columns[reading.column]
            if not isinstance(column, Labels):
                return [block]
            texts.append(reading.read(column))
        combination = np.zeros(block.size, dtype=np.int64)
        for reading, labels in zip(self.columns, texts, strict=True):
            combination = combination * len(reading.templates) + labels.template
        blocks = []
        sizes = tuple(len(reading.templates) for reading in self.columns)
        for number in np.unique(combination).tolist():
            rows = np.flatnonzero(combination == number)
            templates = (
                tuple(int(part) for part in np.unravel_index(number, sizes)) if sizes else ()
            )
            blocks.append(self._block(block, texts, templates, rows))
        return blocks

    def _block(
        self,
        block: Block,
        texts: Sequence[_ReadLabels],
        templates: tuple[int, ...],
        rows: Integers,
    ) -> Block:
        """Returns the outputs of one combination of templates, one for each column of texts."""
        is_whole = len(rows) == block.size
        taken: Integers | slice = slice(None) if is_whole else rows
        read_at = {reading.column: number for number, reading in enumerate(self.columns)}
        columns: list[Column] = []
        for place, column in enumerate(block.columns):
            number = read_at.get(place)
            keeps = place not in self.left_out
            if number is not None:
                keeps &= self.columns[number].templates[templates[number]].keeps_text
            if keeps:
                columns.append(column if is_whole else _taken(column, rows))
            if number is not None:
                labels = texts[number]
                place_of_row = labels.place[taken]
                views = labels.columns[templates[number]]
                columns += [_taken(view, place_of_row) for view in views]
        places = rows if block.rows is None else block.rows[rows]
        new_rows = block.rows if is_whole else places
        return Block(self.shape_of(templates), new_rows, tuple(columns), len(rows))

    def shape_of(self, templates: tuple[int, ...]) -> str:
        """Returns the shape of outputs with these templates, one for each column of texts."""
        if templates not in self._shapes:
            self._shapes[templates] = self._shape_text(templates)
        return self._shapes[templates]

    def _shape_text(self, templates: tuple[int, ...]) -> str:
        leaves = [[leaf.path, leaf.kind] for leaf, _ in self.sources(templates)]
        examples = [
            reading.templates[number].format.example
            for reading, number in zip(self.columns, templates, strict=True)
        ]
        words = ", ".join(shown(example) for example in examples if example)
        data = [self.shape, list(templates), words, leaves]
        return READ + json.dumps(data, ensure_ascii=False)

    def sources(self, templates: tuple[int, ...]) -> list[tuple[Leaf, "TextSource"]]:
        """Returns the leaves of outputs with these templates, and where each comes from."""
        number_of_column = {reading.column: number for number, reading in enumerate(self.columns)}
        leaves: list[tuple[Leaf, TextSource]] = []
        column = 0
        for leaf in leaves_of(self.shape):
            number = number_of_column.get(column) if leaf.n_columns == 1 else None
            keeps = column not in self.left_out or not leaf.n_columns
            template = None
            if number is not None:
                template = self.columns[number].templates[templates[number]]
                keeps &= template.keeps_text
            if keeps:
                leaves.append((leaf, TextSource(column)))
            if template is not None:
                for place, view in enumerate(template.views):
                    view_leaf = Leaf(view.name, view.leaf_kind)
                    source = TextSource(column, templates[number or 0], place)
                    leaves.append((view_leaf, source))
            column += leaf.n_columns
        return leaves

    def shapes(self) -> list[str]:
        """Returns all shapes that reading makes of this one."""
        ranges = [range(len(reading.templates)) for reading in self.columns]
        return [self.shape_of(templates) for templates in product(*ranges)]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `_shape_from_dict` is the inverse."""
        return {
            "shape": self.shape,
            "n_columns": self.n_columns,
            "columns": [reading.to_dict() for reading in self.columns],
            "left_out": list(self.left_out),
        }


@dataclass(frozen=True, slots=True)
class TextSource:
    """Where a column of a read shape comes from.

    Attributes:
        column: of the shape before it was read.
        template: of the column's text, if it is a view.
        view: the number of the view; None for the column itself.
    """

    column: int
    template: int | None = None
    view: int | None = None


# Why a column identifies rows: its values are all different, or grow from draw to draw.
DIFFERENT = "different"
GROWING = "growing"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A column that identifies rows.

    Attributes:
        name: of the column.
        why: `DIFFERENT` or `GROWING`.
        is_used: whether it, or a part of it, predicts the side and so was not left out.
    """

    name: str
    why: str
    is_used: bool


@dataclass(frozen=True, slots=True)
class TextReading:
    """How outputs are read before an event looks at them.

    Attributes:
        shapes: of the shapes that hold texts, or columns that are left out.
        identifiers: the columns that were noticed while it was learned; not stored.
        parts: of numbers, in shapes as they are after that.
    """

    shapes: tuple[ShapeReading, ...]
    identifiers: tuple[Identifier, ...] = field(default=(), compare=False)
    parts: tuple[ShapeParts, ...] = ()

    def read(self, outputs: Outputs) -> Outputs:
        """Returns the outputs with the columns that their texts become.

        Outputs that were read already, and those of unknown shapes, stay as they are.
        """
        reading_of = {reading.shape: reading for reading in self.shapes}
        parts_of = {parts.shape: parts for parts in self.parts}
        known = reading_of.keys() | parts_of.keys()
        if not any(block.shape in known for block in outputs.blocks):
            return outputs
        blocks: list[Block] = []
        for block in outputs.blocks:
            reading = reading_of.get(block.shape)
            blocks += reading.read(block) if reading and block.size else [block]
        with_parts = []
        for block in blocks:
            parts = parts_of.get(block.shape)
            with_parts.append(parts.read(block) if parts and block.size else block)
        return Outputs(tuple(sorted(with_parts, key=first_row)), outputs.size)

    def leave_out(self, outputs: Outputs) -> Outputs:
        """Returns the outputs as they come, but without the columns that are left out."""
        left_out = [
            ShapeReading(reading.shape, reading.n_columns, (), reading.left_out)
            for reading in self.shapes
            if reading.left_out
        ]
        return TextReading(tuple(left_out)).read(outputs)

    def kinds_of(self, shape: str) -> list[str] | None:
        """Returns the kinds of the columns of a shape that reading makes; None for other shapes."""
        if any(shape == parts.shape_with_parts for parts in self.parts):
            return column_kinds(shape)
        for reading in self.shapes:
            if shape in reading.shapes():
                return column_kinds(shape)
        return None

    def to_dict(self) -> list[dict[str, Any]]:
        """Returns plain data; `reading_from_dict` is the inverse."""
        return [
            *(reading.to_dict() for reading in self.shapes),
            *(parts.to_dict() for parts in self.parts),
        ]


# --- plain data


def reading_from_dict(data: Sequence[dict[str, Any]]) -> TextReading:
    """Inverse of `TextReading.to_dict`.

    Damaged or forged data is refused with a ValueError, KeyError or TypeError.
    """
    if not isinstance(data, list) or not data:
        raise ValueError("a reading of texts must list the shapes that it reads")
    shapes = tuple(_shape_from_dict(stored) for stored in data if "parts" not in stored)
    parts = tuple(shape_parts_from_dict(stored) for stored in data if "parts" in stored)
    for readings in (shapes, parts):
        if len({reading.shape for reading in readings}) < len(readings):
            raise ValueError("a reading of texts has two readings of one shape")
    reading = TextReading(shapes, parts=parts)
    for one in parts:
        if one.shape.startswith(READ) and TextReading(shapes).kinds_of(one.shape) is None:
            raise ValueError("parts of numbers in texts that the reading does not know")
    return reading


def _shape_from_dict(data: dict[str, Any]) -> ShapeReading:
    shape = data["shape"]
    if not isinstance(shape, str) or shape.startswith((READ, FEATURED)):
        raise ValueError(f"a reading of texts of the shape {shape!r:.80}")
    kinds = column_kinds(shape)
    if data["n_columns"] != len(kinds):
        raise ValueError(f"a reading of texts does not fit the shape {shape!r:.80}")
    columns = tuple(_column_from_dict(stored) for stored in data["columns"])
    places = [reading.column for reading in columns]
    for reading in columns:
        kind = kinds[reading.column] if 0 <= reading.column < len(kinds) else None
        if kind not in TEXT_KINDS or reading.is_bytes != (kind == "bytes"):
            raise ValueError("a reading of texts reads a column that holds no texts")
    left_out = tuple(data["left_out"])
    is_place = all(type(place) is int and 0 <= place < len(kinds) for place in left_out)
    if not is_place or len(set(left_out)) < len(left_out) or sorted(set(places)) != places:
        raise ValueError("a reading of texts names a column twice, or one that does not exist")
    if not all(kinds[place] for place in left_out):
        raise ValueError("a reading of texts leaves out half of a value")
    if np.prod([float(len(reading.templates)) for reading in columns]) > MAX_COMBINATIONS:
        raise ValueError("a reading of texts has too many templates")
    return ShapeReading(shape, len(kinds), columns, left_out)


# Combinations of templates of one shape, for outputs with several texts.
MAX_COMBINATIONS = 4096


def _column_from_dict(data: dict[str, Any]) -> ColumnReading:
    column = data["column"]
    is_bytes = data["bytes"]
    templates = tuple(_template_from_dict(stored) for stored in data["templates"])
    if type(column) is not int or type(is_bytes) is not bool:
        raise ValueError("a reading of texts names no column")
    if not 0 < len(templates) <= MAX_TEMPLATES + 1 or templates[-1].format.kind != "text":
        raise ValueError("the last template of a reading of texts must take every text")
    return ColumnReading(column, is_bytes, templates)


def _template_from_dict(data: dict[str, Any]) -> Template:
    views = tuple(view_from_dict(stored) for stored in data["views"])
    if len(views) > MAX_VIEWS or type(data["text"]) is not bool:
        raise ValueError("a template of texts has too many views")
    return Template(format_from_dict(data["format"]), views, data["text"])


# --- shapes and words


def column_kinds(shape: str) -> list[str]:
    """Returns the kind of each column of a shape; "" for the columns of a value in several."""
    kinds: list[str] = []
    for leaf in leaves_of(shape):
        kinds += [leaf.kind] if leaf.n_columns == 1 else [""] * leaf.n_columns
    return kinds


# Characters of a text in a name.
_MAX_SHOWN = 40


def shown(text: str) -> str:
    """Returns a text as words quote it: printable, and cut when long."""
    printable = text if text.isprintable() else ascii(text)[1:-1]
    return printable if len(printable) <= _MAX_SHOWN else printable[: _MAX_SHOWN - 1] + "…"
