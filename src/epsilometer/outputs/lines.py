"""One column cut into cells: the number line, and values that are distinguished one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.outputs.columns import Column, Labels, Numbers
from epsilometer.outputs.reading_numbers import label_from_data, label_to_data

# Up to this many edges, every number is compared with each (measured: 8 edges 2 ns, the table 5 ns, searching 50 ns).
_FEW_EDGES = 8
# Fewer numbers than this are not worth a table.
_FEW_NUMBERS = 1024
# Even cells of the table per edge, and the most of them: 2^13 entries of two columns stay in the first-level cache.
_CELLS_PER_EDGE, _MOST_CELLS = 32, 1 << 13
# Numbers at a time: their temporary arrays stay in the second-level cache.
_PIECE = 1 << 13


def places(edges: Floats, numbers: Floats) -> Integers:
    """How many edges are at or below each number, shape (n,); for NaN the result means nothing.

    Args:
        edges: shape (k,), increasing, without NaN.
        numbers: shape (n,).
    """
    if len(edges) <= _FEW_EDGES:
        total = np.zeros(len(numbers), dtype=np.int8)
        for edge in edges:
            total += numbers >= edge
        return total.astype(np.int64)
    # By even cells between the outermost finite edges. Which cell a number falls into is computed with rounding, but
    # never decreases as the number grows. So a number in an earlier cell than an edge is below it, one in a later cell
    # above it; only within a cell must they be compared.
    finite, n_cells = edges[np.isfinite(edges)], min(_CELLS_PER_EDGE * len(edges), _MOST_CELLS)
    with np.errstate(all="ignore"):
        scale = n_cells / (finite[-1] - finite[0]) if len(finite) else 0.0
    if len(numbers) < _FEW_NUMBERS or not 0.0 < scale < np.inf:
        return np.searchsorted(edges, numbers, side="right")
    found = np.empty(len(numbers), dtype=np.int64)
    for start in range(-_PIECE, len(numbers), _PIECE):
        piece = edges if start < 0 else numbers[start : start + _PIECE]
        with np.errstate(over="ignore", invalid="ignore"):
            even: Floats = (piece - finite[0]) * scale
        np.fmax(even, 0.0, out=even)  # also turns NaN into 0
        np.fmin(even, n_cells - 1.0, out=even)
        inside = even.astype(np.int64)
        if start < 0:  # the edges come first, and make the table
            n_edges = np.bincount(inside, minlength=n_cells)
            below, several = np.cumsum(n_edges) - n_edges, n_edges > 1
            edge_in = np.full(n_cells, np.nan)  # a cell without an edge: nothing is at or above NaN
            edge_in[inside] = edges
            is_crowded = bool(several.any())
            continue
        place = below[inside]
        place += piece >= edge_in[inside]
        if is_crowded:
            unclear = np.flatnonzero(several[inside])
            place[unclear] = np.searchsorted(edges, piece[unclear], side="right")
        found[start : start + _PIECE] = place
    return found


# An odd number that scatters bits, and the bits of it that tell 2^17 buckets apart.
_SCATTER, _BUCKETS = np.uint64(0x9E3779B97F4A7C15), np.uint64(47)


def crowded(numbers: Floats, times: int) -> Floats:
    """Every value that occurs at least so many times, and few others: a sort of all takes ten times as long."""
    buckets = ((numbers + 0.0).view(np.uint64) * _SCATTER >> _BUCKETS).astype(np.int64)  # −0.0 is 0.0
    return numbers[np.bincount(buckets)[buckets] >= times]


# Up to this many ends of intervals, comparing every value with each end is faster than finding its cell (measured:
# 0.3 ns per value and end against 5 ns per value).
_FEW_ENDS = 16


def next_float(values: Floats) -> Floats:
    """The float after each one; infinity after the largest."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(values, np.inf), dtype=np.float64)


def _plain(numbers: Floats) -> list[float | str]:
    """Plain numbers; NaN and infinities as text, because JSON has none."""
    return [each if np.isfinite(each) else repr(each) for each in numbers.tolist()]


@dataclass(frozen=True, slots=True)
class Line:
    """Cells [edge, next edge) on the number line, and one more for NaN.

    A single value v is the cell [v, next float after v), so atoms and bins live on one line.

    Attributes:
        edges: shape (k,), strictly increasing. Cell 0 lies below the first edge, cell k at or above the last,
            cell k + 1 holds NaN.
    """

    edges: Floats

    @property
    def n_cells(self) -> int:
        """k + 2 cells for k edges."""
        return len(self.edges) + 2

    def index(self, values: NDArray[np.generic]) -> Integers:
        """The cell of each value, shape (n,)."""
        if values.dtype == np.bool_:  # there are but two, and looking them up is 5 × faster
            return np.searchsorted(self.edges, (0.0, 1.0), side="right")[values.view(np.uint8)]
        numbers = np.asarray(values, dtype=np.float64)
        cells = places(self.edges, numbers)
        # NaN sorts last: it is the only value at or above every edge that is not equal to itself.
        cells[np.isnan(numbers)] = len(self.edges) + 1
        return cells

    def merged(self, chosen: Booleans) -> tuple["Line", Booleans]:
        """The coarsest line that still separates chosen cells from others, and which of its cells are chosen."""
        keep = chosen[:-2] != chosen[1:-1]
        return Line(self.edges[keep]), np.append(chosen[:-2][keep], chosen[-2:])

    def contains(self, values: NDArray[np.generic], chosen: Booleans) -> Booleans:
        """Whether each value falls into a chosen cell, shape (n,)."""
        ends = self.edges[chosen[:-2] != chosen[1:-1]]
        if len(ends) > _FEW_ENDS:
            return chosen[self.index(values)]
        numbers = np.asarray(values, dtype=np.float64)
        inside = numbers >= ends[0] if len(ends) else np.zeros(len(numbers), dtype=np.bool_)
        for edge in ends[1:]:
            inside ^= numbers >= edge
        if chosen[0]:
            np.logical_not(inside, out=inside)
        if chosen[-1] != chosen[0]:  # NaN is at or above no edge
            inside[np.isnan(numbers)] = chosen[-1]
        return inside

    def intervals(self, chosen: Booleans) -> list[tuple[float, float]]:
        """The chosen part as disjoint half-open intervals, in order (NaN aside)."""
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        # Where the chosen part begins and ends: +1 and −1.
        turns = np.diff(chosen[:-1].astype(np.int8), prepend=0, append=0)
        return list(zip(ends[turns > 0].tolist(), ends[turns < 0].tolist(), strict=True))

    def to_list(self) -> list[float | str]:
        """The edges as plain data."""
        return _plain(self.edges)

    @classmethod
    def from_list(cls, edges: Sequence[float | str]) -> "Line":
        """The inverse of `to_list`."""
        line = cls(np.array([float(edge) for edge in edges], dtype=np.float64))
        if not np.all(line.edges[1:] > line.edges[:-1]) or np.isnan(line.edges).any():
            raise ValueError("the edges of a line must increase")
        return line


# Intervals that are spelled out in words; the rest are counted.
_MOST_INTERVALS = 6


def describe_intervals(intervals: Sequence[tuple[float, float]], name: str, kind: str = "float") -> str:
    """The intervals in words, e.g. "output < 2 or between 3 and 4".

    Args:
        intervals: half-open, disjoint, in order.
        name: of the number.
        kind: the kind of the leaf, which decides how numbers are written.
    """
    if kind in _WHOLE:
        ends = [(np.ceil(low), np.ceil(high) - 1.0) for low, high in intervals]
        parts = [_whole_range(low, high, kind) for low, high in ends if low <= high]
    else:
        parts = [_describe_interval(low, high, kind) for low, high in intervals]
    if len(intervals) == 2 and np.isneginf(intervals[0][0]) and np.isposinf(intervals[1][1]):
        low, high = intervals[0][1], intervals[1][0]
        if next_float(np.array(low)) == high or (kind in _WHOLE and np.ceil(high) - np.ceil(low) == 1.0):
            return f"{name} is not {number_text(float(np.ceil(low)) if kind in _WHOLE else low, kind)}"
    if "" in parts:
        return f"any {name}"
    shown, more = parts[:_MOST_INTERVALS], len(parts) - _MOST_INTERVALS
    are_values = len(parts) > 1 and all(part.startswith("= ") for part in parts)
    told = f"is one of {', '.join(part[2:] for part in shown)}" if are_values else " or ".join(shown)
    rest = f" or {more} more {'value' if are_values else 'interval'}{'s' if more > 1 else ''}" if more > 0 else ""
    return f"{name} {told}{rest}" if parts else f"no {name}"


# Kinds of leaves that are whole numbers, so that the least and the greatest of an interval can be named.
_WHOLE = frozenset({"int", "bool", "date"})


def _whole_range(low: float, high: float, kind: str) -> str:
    first, last = (number_text(end, kind) if np.isfinite(end) else "" for end in (low, high))
    if low == high or (kind == "bool" and (low > 0.0) == (high >= 1.0)):
        return f"= {first if low > 0.0 or kind != 'bool' else number_text(0.0, kind)}"
    if not first or not last:
        return f"≥ {first}" if first else f"≤ {last}" if last else ""
    return f"between {first} and {last}"


def _describe_interval(low: float, high: float, kind: str) -> str:
    if np.isneginf(low) and np.isposinf(high):
        return ""
    if next_float(np.array(low)) == high:
        return f"= {number_text(low, kind)}"
    above, first = _end(low, ">", "≥")
    below, last = _end(high, "≤", "<")
    if np.isneginf(low):
        return f"{below} {number_text(last, kind)}"
    if np.isposinf(high):
        return f"{above} {number_text(first, kind)}"
    digits = next((d for d in (4, 6, 9) if number_text(first, kind, d) != number_text(last, kind, d)), 17)
    ends = [number_text(end, kind, digits) for end in (first, last)]
    return f"{above} {ends[0]} and {below} {ends[1]}" if above == ">" else f"between {ends[0]} and {ends[1]}"


def _end(end: float, beside: str, at: str) -> tuple[str, float]:
    """How an end is written: an end one float above a short number v came from the atom v."""
    if not np.isfinite(end):
        return at, end
    before = -float(next_float(np.array(-end)))
    return (beside, before) if before == 0.0 or len(repr(before)) + 4 < len(repr(end)) else (at, end)


def number_text(value: float, kind: str = "float", digits: int = 4) -> str:
    """A number of a leaf as people write it: a date as a date."""
    try:
        if kind == "bool":
            return str(bool(value))
        if kind == "date":
            return str(date.fromordinal(int(value)))
        if kind.startswith(("timedelta64", "datetime64")):
            return str(np.array(int(value)).astype(np.int64).view(kind))
        if kind.startswith(("datetime", "long datetime", "Timestamp", "time ")) or kind == "time":
            moment = datetime(1970, 1, 1) + timedelta(microseconds=value)
            return str(moment.time() if kind.startswith("time") else moment)
        if kind.startswith(("timedelta", "long timedelta", "Timedelta")):
            return str(timedelta(microseconds=value))
    except (ValueError, OverflowError, TypeError):  # an edge beyond all dates
        pass
    if value == int(value) if np.isfinite(value) and abs(value) < 1e15 else False:
        return f"{int(value)}"
    return f"{value:.{max(digits, 6) if abs(value) >= 1000 else digits}g}"


@dataclass(frozen=True, slots=True)
class NumberAtoms:
    """Atoms of a column of numbers.

    Attributes:
        values: shape (k,), increasing; a NaN may be last.
    """

    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, column: Column) -> Integers:
        """Position of each value among the atoms, −1 where it is none; shape (n,)."""
        if isinstance(column, Labels):
            return np.full(len(column), -1, dtype=np.int64)
        if column.values.dtype == np.bool_ and np.array_equal(self.values, (0.0, 1.0)):
            return column.values.astype(np.int64)  # the usual case for yes-or-no answers, 10× faster
        numbers = np.asarray(column.values, dtype=np.float64)
        if not len(self.values):
            return np.full(len(numbers), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.values, numbers), len(self.values) - 1)
        same = self.values[place] == numbers
        if np.isnan(self.values[-1]):
            same |= np.isnan(numbers)  # NaN sorts last, so its place is that of the NaN atom
        return np.where(same, place, -1)

    def name(self, code: int, kind: str = "float") -> str:
        """The atom as text."""
        return number_text(float(self.values[code]), kind, 6)


@dataclass(frozen=True, slots=True)
class LabelAtoms:
    """Atoms of a column of names."""

    labels: tuple[str, ...]
    _place: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {label: code for code, label in enumerate(self.labels)})

    def __len__(self) -> int:
        return len(self.labels)

    def codes(self, column: Column) -> Integers:
        """Position of each label among the atoms, −1 where it is none; shape (n,)."""
        if not isinstance(column, Labels):
            return np.full(len(column), -1, dtype=np.int64)
        table = np.array([self._place.get(label, -1) for label in column.labels], dtype=np.int64)
        return table[column.codes] if len(table) else np.empty(0, dtype=np.int64)

    def name(self, code: int, kind: str = "str") -> str:
        """The atom as text, cut when long."""
        label = self.labels[code]
        return repr(label if len(label) <= 60 else label[:57] + "…")


Atoms = NumberAtoms | LabelAtoms


def atoms_to_dict(atoms: Atoms) -> dict[str, Any]:
    """Plain data; `atoms_from_dict` is the inverse."""
    if isinstance(atoms, LabelAtoms):
        return {"labels": list(map(label_to_data, atoms.labels))}
    return {"numbers": _plain(atoms.values)}


def atoms_from_dict(data: dict[str, Any]) -> Atoms:
    """The inverse of `atoms_to_dict`."""
    if "labels" in data:
        return LabelAtoms(tuple(map(label_from_data, data["labels"])))
    return NumberAtoms(np.array([float(value) for value in data["numbers"]], dtype=np.float64))


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """How one column of a block is coded.

    Attributes:
        column: position of the column in its block.
        cells: a line for numbers, atoms for names (their order is the order of the codes).
    """

    column: int
    cells: Line | LabelAtoms

    @property
    def n_codes(self) -> int:
        """Cells of the line; or the names, and one code more for any other name."""
        return self.cells.n_cells if isinstance(self.cells, Line) else len(self.cells) + 1

    def index(self, columns: Sequence[Column]) -> Integers:
        """The code of each row, shape (n,)."""
        if isinstance(self.cells, Line):
            return self.cells.index(self.numbers(columns))
        codes = self.cells.codes(columns[self.column])
        return np.where(codes < 0, len(self.cells), codes)

    def numbers(self, columns: Sequence[Column]) -> NDArray[np.generic]:
        """The numbers that a line cuts, shape (n,)."""
        column = columns[self.column]
        assert isinstance(column, Numbers)  # lines are only made for numbers
        return column.values

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        data: dict[str, Any] = {"column": self.column}
        return data | ({"edges": self.cells.to_list()} if isinstance(self.cells, Line) else atoms_to_dict(self.cells))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CodedColumn":
        """The inverse of `to_dict`."""
        cells = Line.from_list(data["edges"]) if "edges" in data else atoms_from_dict(data)
        if not isinstance(cells, Line | LabelAtoms):
            raise ValueError("a column is coded by a line or by names")
        return cls(int(data["column"]), cells)
