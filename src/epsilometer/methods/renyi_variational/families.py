"""Where h comes from: free values on cells, Chebyshev polynomials, a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from epsilometer.methods.events.cells import blocks_of_both, learn_line
from epsilometer.methods.events.learning import FitScore, Learned, learn_partitions, learn_scored
from epsilometer.methods.renyi_bet.fitting import Way, finite_numbers, make_way, way_of
from epsilometer.methods.renyi_variational.objective import best_coefficients, best_function
from epsilometer.methods.renyi_variational.options import Options
from epsilometer.outputs import Block, BlockPartition, Group, Labels, Line, Numbers, Outputs, Partition
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.columns import Column
from epsilometer.outputs.scores import AdditiveScore, Term

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# |h| when nothing is wished: e^6 is a ratio that 10⁵ draws hardly see.
_BOUND = 6.0
# Bins for single numbers: free values need no more (Gaussian μ = 1, order 2, 1e5 draws).
_BINS = 64
# Even cells on which polynomials are evaluated, for single numbers and for each column of a vector.
_CELLS, _COLUMN_CELLS = 256, 64
# Degrees that are tried, and the one for vectors.
_DEGREES, _VECTOR_DEGREE = (1, 2, 4, 8), 4
# The polynomials' interval [−1, 1] lies between these quantiles; beyond it they stay constant.
_OUTSIDE = 5e-4
# Numbers beyond this are taken for this: differences of larger ones are no floats.
_LARGEST = 1e300
# Pseudo-counts per cell of free values.
_PRIOR = 0.5
_MOST_NAMES = 32
# Rows per side that polynomials of vectors are fitted to.
_MOST_ROWS = 40_000


def learn_functions(left: Outputs, right: Outputs, order: float, options: Options) -> list[Way]:
    """Cells with the fits of the wished family, learned on training draws."""
    bound = _BOUND if options.bound is None else float(options.bound)
    if options.family == "network":
        return [_network_way(left, right, order, bound, options)]
    ways: list[Way] = []
    if options.family in ("auto", "chebyshev"):
        ways += _polynomial_ways(left, right, order, bound, options.degree)
    # Repeated values and names have no polynomials.
    if options.family in ("auto", "bins") or not ways:
        ways += [make_way(learned, (_CellFit(None, order, bound),)) for learned in _bins(left, right)]
    return ways


@dataclass(frozen=True, slots=True)
class _CellFit:
    """From training counts of cells to h on each of them.

    Attributes:
        basis: shape (cells, k), or None for free values.
        order: α.
        bound: C.
    """

    basis: Floats | None
    order: float
    bound: float

    def __call__(self, left: Integers, right: Integers) -> Floats:
        prior = _PRIOR if self.basis is None else 0.0
        if not left.any() or not right.any():
            return np.zeros(len(left))
        p, q = (np.asarray((side + prior) / (side + prior).sum(), dtype=np.float64) for side in (left, right))
        return best_function(self.basis, p, q, self.order, self.bound)


def _bins(left: Outputs, right: Outputs) -> list[Learned]:
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1 and len(pairs[0][0].columns) == 1:
        a, b = (side.columns[0] for side in pairs[0])
        if isinstance(a, Numbers) and isinstance(b, Numbers):
            line = learn_line(a.values, b.values, most_bins=_BINS)
            return [Learned(_one_line(pairs[0][0].shape, line), left, right)]
    return learn_partitions(left, right)


def _one_line(shape: str, line: Line) -> Partition:
    return Partition((BlockPartition(shape, (None,), (Group((-1,), line),)),))


# --- polynomials -----------------------------------------------------------------------------------------------------


def _polynomial_ways(left: Outputs, right: Outputs, order: float, bound: float, degree: int | None) -> list[Way]:
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1 and len(pairs[0][0].columns) == 1:
        values = finite_numbers(*pairs[0])
        if values is None:
            return []
        line = _even_line(values, _CELLS)
        degrees = _DEGREES if degree is None else (degree,)
        fits = tuple(_CellFit(_cell_basis(line, each), order, bound) for each in degrees)
        return [make_way(Learned(_one_line(pairs[0][0].shape, line), left, right), fits)]
    learned = learn_scored(left, right, _polynomials_of_columns(order, bound, degree or _VECTOR_DEGREE))
    return [] if learned is None else [way_of(learned)]


def _even_line(values: Floats, cells: int) -> Line:
    """Even cells between the outer quantiles of the values."""
    if not len(values):
        return Line(np.array([0.0]))
    low, high = np.quantile(np.clip(values, -_LARGEST, _LARGEST), [_OUTSIDE, 1.0 - _OUTSIDE])
    return Line(np.unique(np.linspace(low, high, cells - 1)))


def _cell_basis(line: Line, degree: int) -> Floats:
    """T_1 … T_degree at the middle of each cell of the line; 0 for NaN, another signature and another shape."""
    basis = np.zeros((line.n_cells + 2, degree))
    basis[: line.n_cells] = _line_basis(line, degree)
    return basis


def _line_basis(line: Line, degree: int) -> Floats:
    edges = line.edges
    middles = np.concatenate([edges[:1], 0.5 * edges[:-1] + 0.5 * edges[1:], edges[-1:]])
    half = 0.5 * (edges[-1] - edges[0])
    places = (middles - edges[0]) / half - 1.0 if half > 0.0 else np.zeros(len(middles))
    basis = np.zeros((line.n_cells, degree))
    basis[:-1] = chebyshev.chebvander(np.clip(places, -1.0, 1.0), degree)[:, 1:]
    return basis


def _polynomials_of_columns(order: float, bound: float, degree: int) -> FitScore:
    """Fits a sum of polynomials, one per column of numbers, and of free values for names."""

    def fit(left: Block, right: Block, columns: Sequence[int]) -> AdditiveScore:
        first = slice(0, _MOST_ROWS)
        sides = [[column.take(first) for column in block.columns] for block in (left, right)]
        terms, tables = [], []
        for number in columns:
            term, table = _blank_term(sides[0][number], sides[1][number], number, degree)
            terms.append(term)
            tables.append(table)
        rows = [
            np.concatenate([table[term.index(side)] for side in sides])
            for term, table in zip(terms, tables, strict=True)
        ]
        n_left, n_right = (len(side[columns[0]]) for side in sides)
        p, q = np.zeros(n_left + n_right), np.zeros(n_left + n_right)
        p[:n_left], q[n_left:] = 1.0 / n_left, 1.0 / n_right
        coefficients = best_coefficients(np.concatenate(rows, axis=1), p, q, order, bound)
        parts = np.split(coefficients, np.cumsum([table.shape[1] for table in tables])[:-1])
        weights = [table @ part for table, part in zip(tables, parts, strict=True)]
        return AdditiveScore(
            tuple(Term(term.column, term.cells, weight) for term, weight in zip(terms, weights, strict=True))
        )

    return fit


def _blank_term(left: Column, right: Column, number: int, degree: int) -> tuple[Term, Floats]:
    """A column's cells, and the values of its family on each of them, shape (cells, k)."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        values = np.concatenate([np.asarray(side.values, dtype=np.float64) for side in (left, right)])
        line = _even_line(values[np.isfinite(values)], _COLUMN_CELLS)
        return Term(number, line, np.zeros(line.n_cells)), _line_basis(line, degree)
    labels = [label for side in (left, right) if isinstance(side, Labels) for label in side.labels]
    names = LabelAtoms(tuple(dict.fromkeys(labels))[:_MOST_NAMES])
    return Term(number, names, np.zeros(len(names) + 1)), np.eye(len(names) + 1)


# --- a network -------------------------------------------------------------------------------------------------------


def _network_way(left: Outputs, right: Outputs, order: float, bound: float, options: Options) -> Way:
    from epsilometer.methods.renyi_variational.network import network_fit  # needs an extra

    learned = learn_scored(left, right, network_fit(order, bound, options.units, options.steps), fewest_columns=1)
    # Outputs without any value have nothing to feed a network with.
    return way_of(learn_partitions(left, right)[0] if learned is None else learned)
