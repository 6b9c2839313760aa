"""The number line cut into cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.placing import places

# Up to this many ends of intervals, comparing every value with each end is faster than sorting (measured: 0.4 ns
# per value and end against 12 ns per value for the sort).
_FEW_ENDS = 16
# Values per sorted piece: 2^15 doubles fit the second-level cache.
_PIECE = 1 << 15

Floats = NDArray[np.float64]


def next_float(values: Floats) -> Floats:
    """The float after each one; infinity after the largest."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(values, np.inf), dtype=np.float64)


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

    def index(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """The cell of each value, shape (n,)."""
        numbers = np.asarray(values, dtype=np.float64)
        cells = places(self.edges, numbers)
        # NaN sorts last: it is the only value at or above every edge that is not equal to itself.
        cells[np.isnan(numbers)] = len(self.edges) + 1
        return cells

    def count(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """How many values fall into each cell, shape (n_cells,): by sorting pieces, no slower than indexing."""
        numbers = np.asarray(values, dtype=np.float64)
        below = np.zeros(len(self.edges), dtype=np.int64)
        n_nan = 0
        for start in range(0, len(numbers), _PIECE):
            piece = np.sort(numbers[start : start + _PIECE])
            n_nan += int(np.isnan(piece).sum()) if np.isnan(piece[-1]) else 0
            below += np.searchsorted(piece, self.edges, side="left")
        return np.concatenate([np.diff(below, prepend=0, append=len(numbers) - n_nan), [n_nan]])

    def merged(self, chosen: NDArray[np.bool_]) -> tuple[Line, NDArray[np.bool_]]:
        """The coarsest line that still tells chosen cells from others, and which of its cells are chosen."""
        keep = chosen[:-2] != chosen[1:-1]
        kept = np.append(np.append(chosen[:-2][keep], chosen[-2]), chosen[-1])
        return Line(self.edges[keep]), kept

    def count_chosen(self, values: NDArray[np.generic], chosen: NDArray[np.bool_]) -> int:
        """How many values fall into chosen cells."""
        change = np.flatnonzero(chosen[:-2] != chosen[1:-1])
        if len(change) > _FEW_ENDS:
            return int(self.count(values)[chosen].sum())
        numbers = np.asarray(values, dtype=np.float64)
        n_nan = int(np.isnan(numbers).sum())
        hits = n_nan if chosen[-1] else 0
        if chosen[-2]:
            hits += len(numbers) - n_nan
        for cell in change:
            below = int(np.count_nonzero(numbers < self.edges[cell]))
            hits += below if chosen[cell] else -below
        return hits

    def intervals(self, chosen: NDArray[np.bool_]) -> list[tuple[float, float]]:
        """The chosen part as disjoint half-open intervals, in order (NaN aside)."""
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        found: list[tuple[float, float]] = []
        for cell in np.flatnonzero(chosen[:-1]):
            low, high = float(ends[cell]), float(ends[cell + 1])
            if found and found[-1][1] == low and cell > 0:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
        return found

    def to_list(self) -> list[float | str]:
        """Edges as plain numbers; infinities as text, because JSON has none."""
        return [float(edge) if np.isfinite(edge) else repr(float(edge)) for edge in self.edges]

    @classmethod
    def from_list(cls, edges: Sequence[float | str]) -> Line:
        """The inverse of `to_list`."""
        line = cls(np.array([float(edge) for edge in edges], dtype=np.float64))
        if not np.all(line.edges[1:] > line.edges[:-1]) or np.isnan(line.edges).any():
            raise ValueError("the edges of a line must increase")
        return line


def describe_intervals(intervals: Sequence[tuple[float, float]], name: str) -> str:
    """The intervals in words, with `name` for the number, e.g. "output < 2" or "output = 3"."""
    return " or ".join(_describe_interval(low, high, name) for low, high in intervals) or f"no {name}"


def _describe_interval(low: float, high: float, name: str) -> str:
    if np.isneginf(low) and np.isposinf(high):
        return f"any {name}"
    if next_float(np.array(low)) == high:
        return f"{name} = {low:.6g}"
    at_least, from_ = _end(low, ">", "≥")
    below, to = _end(high, "≤", "<")
    if np.isneginf(low):
        return f"{name} {below} {to}"
    if np.isposinf(high):
        return f"{name} {at_least} {from_}"
    return f"{from_} {'<' if at_least == '>' else '≤'} {name} {below} {to}"


def _end(end: float, beside: str, at: str) -> tuple[str, str]:
    """How an end is written: an end one float above a short number v came from the atom v."""
    if not np.isfinite(end):
        return at, f"{end:g}"
    before = -float(next_float(np.array(-end)))
    if before == 0.0 or len(repr(before)) + 4 < len(repr(end)):
        return beside, f"{before:.6g}"
    return at, f"{end:.6g}"
