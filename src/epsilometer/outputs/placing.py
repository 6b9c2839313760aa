"""The place of each number among sorted edges: what `np.searchsorted(edges, numbers, side="right")` says, sooner.

Searching costs 20 to 100 ns per number, because the processor cannot guess the way. Comparing all numbers with one
edge costs 0.2 ns each, and looking them up in a table 5 ns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# Up to so many edges every number is compared with each (measured: 8 edges 2 ns, the table 5 ns, searching 50 ns).
_FEW_EDGES = 8
# Fewer numbers than this are not worth a table.
_FEW_NUMBERS = 4096
# Even cells of the table per edge, and the most of them: 2^13 entries of two columns stay in the first-level cache.
_CELLS_PER_EDGE, _MOST_CELLS = 32, 1 << 13
# Numbers at a time: what is made of them on the way stays in the second-level cache.
_PIECE = 1 << 13


def places(edges: Floats, numbers: Floats) -> Places:
    """How many edges are at or below each number, shape (n,); for NaN some place that means nothing.

    Args:
        edges: shape (k,), increasing, without NaN.
        numbers: shape (n,).
    """
    if len(edges) <= _FEW_EDGES:
        return _compared(edges, numbers)
    if len(numbers) < _FEW_NUMBERS:
        return np.searchsorted(edges, numbers, side="right")
    return _looked_up(edges, numbers)


def _compared(edges: Floats, numbers: Floats) -> Places:
    total = np.zeros(len(numbers), dtype=np.int8)
    for edge in edges:
        total += numbers >= edge
    return total.astype(np.int64)


def _looked_up(edges: Floats, numbers: Floats) -> Places:
    """By even cells between the outermost finite edges.

    Which cell a number falls into is a rounded calculation, but one that never falls when the number grows. So a number
    in an earlier cell than an edge is below it, one in a later cell above it, and only within a cell they are compared.
    """
    finite = edges[np.isfinite(edges)]
    n_cells = min(_CELLS_PER_EDGE * len(edges), _MOST_CELLS)
    with np.errstate(all="ignore"):
        scale = n_cells / (finite[-1] - finite[0]) if len(finite) else 0.0
    if not 0.0 < scale < np.inf:
        return np.searchsorted(edges, numbers, side="right")

    def cells(values: Floats) -> Places:
        with np.errstate(over="ignore", invalid="ignore"):
            even: Floats = (values - finite[0]) * scale
        np.fmax(even, 0.0, out=even)  # also takes NaN to 0
        np.fmin(even, n_cells - 1.0, out=even)
        return even.astype(np.int64)

    cell_of_edge = cells(edges)
    n_edges = np.bincount(cell_of_edge, minlength=n_cells)
    below = np.cumsum(n_edges) - n_edges
    edge_in = np.full(n_cells, np.nan)  # a cell without an edge: nothing is at or above NaN
    edge_in[cell_of_edge] = edges
    crowded = n_edges > 1
    is_crowded = bool(crowded.any())
    found = np.empty(len(numbers), dtype=np.int64)
    for start in range(0, len(numbers), _PIECE):
        piece = numbers[start : start + _PIECE]
        inside = cells(piece)
        place = below[inside]
        place += piece >= edge_in[inside]
        if is_crowded:
            unclear = np.flatnonzero(crowded[inside])
            place[unclear] = np.searchsorted(edges, piece[unclear], side="right")
        found[start : start + _PIECE] = place
    return found
