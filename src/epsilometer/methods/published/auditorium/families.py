"""Where the bounded function of the variational form comes from: cells, Chebyshev polynomials, a network."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds.bets_on_means import THRESHOLDS
from epsilometer.claims.base import check_choice, check_positive, check_whole
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.events.cells import blocks_of_both, learn_line
from epsilometer.methods.events.learning import (
    FitScore,
    Learned,
    learn_by_values,
    learn_partitions,
    learn_scored,
)
from epsilometer.methods.log_ratios import Way, finite_numbers, make_way, on_line, way_of
from epsilometer.methods.published.auditorium.hockey_stick import CERTIFICATES
from epsilometer.outputs import Block, Labels, Line, Numbers, Outputs
from epsilometer.outputs.columns import Column
from epsilometer.outputs.lines import LabelAtoms
from epsilometer.outputs.scores import AdditiveScore, Term

FAMILIES = ("auto", "bins", "chebyshev", "network")
# Beyond this a polynomial only follows chance.
_MOST_DEGREE = 64


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `renyi-variational`.

    Attributes:
        family: where h comes from: "bins" (free values on cells), "chebyshev" (polynomials of each
            column), "network" (a small neural network; needs the extra `neural`), or "auto": bins
            or polynomials, by training draws.
        degree: of the polynomials; None tries a few.
        bound: C, so that |h| ≤ C; None chooses it on training draws.
        order: for PureDP, the order of the divergence; None chooses it on training draws. RenyiDP
            brings its own.
        threshold: for PureDP, "tight" or "published" (min(ε, 2αε²): valid, but looser).
        certificate: "exact" is the bet of `epsilometer.bounds.bets_on_means`; "published" is the
            paper's Chernoff bound, for reproduction: its proof has gaps, so it refutes nothing.
        units: of the hidden layers of the network.
        steps: of the network's training.
    """

    family: str = "auto"
    degree: int | None = None
    bound: float | None = None
    order: float | None = None
    threshold: str = "tight"
    certificate: str = "exact"
    units: tuple[int, ...] = (32, 32)
    steps: int = 400

    def __post_init__(self) -> None:
        check_choice("family", self.family, FAMILIES)
        check_choice("threshold", self.threshold, THRESHOLDS)
        check_choice("certificate", self.certificate, CERTIFICATES)
        if self.degree is not None and check_whole("degree", self.degree) > _MOST_DEGREE:
            raise InputError(f"degree={self.degree!r} must be at most {_MOST_DEGREE}")
        if self.bound is not None:
            check_positive("bound", self.bound)
        if self.order is not None:
            check_order(self.order)
        if not isinstance(self.units, tuple) or not self.units:
            raise InputError(
                f"units={self.units!r} must be a tuple of whole numbers, one per hidden layer"
            )
        for each in (*self.units, self.steps):
            check_whole("units and steps", each)


# Steps of L-BFGS after which the fourth digit no longer changes.
_STEPS = 60
# Pulls coefficients that no draw supports to 0.
_RIDGE = 1e-4


def variational_value(h: Floats, p: Floats, q: Floats, order: float) -> float:
    """R(h) for a function that takes the value h_j with probability p_j under P and q_j under Q."""
    with np.errstate(divide="ignore"):
        return _value_and_slope(h, np.log(p), np.log(q), order)[0]


def best_function(basis: Floats | None, p: Floats, q: Floats, order: float, bound: float) -> Floats:
    """The bounded function of the family with the largest R.

    Args:
        basis: shape (points, k), values of the family's members; None gives every point its own
            value.
        p: shape (points,), weights under P.
        q: under Q.
        order: α.
        bound: C.

    Returns:
        Its values, shape (points,).
    """
    coefficients = best_coefficients(basis, p, q, order, bound)
    return _bent(coefficients if basis is None else basis @ coefficients, bound)


def best_coefficients(
    basis: Floats | None, p: Floats, q: Floats, order: float, bound: float
) -> Floats:
    """The coefficients of that function before it is squashed into its bound, shape (k,)."""
    from scipy.optimize import minimize  # only needed by this method

    with np.errstate(divide="ignore"):
        log_p = np.log(p)
        log_q = np.log(q)
    size = len(p) if basis is None else basis.shape[1]

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        h = _bent(coefficients if basis is None else basis @ coefficients, bound)
        value, slope = _value_and_slope(h, log_p, log_q, order)
        slope = slope * (1.0 - (h / bound) ** 2)
        gradient = slope if basis is None else basis.T @ slope
        ridge = 0.5 * _RIDGE * float(coefficients @ coefficients)
        return ridge - value, _RIDGE * coefficients - gradient

    fitted = minimize(
        loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
    )
    return np.asarray(fitted.x, dtype=np.float64)


def _bent(values: Floats, bound: float) -> Floats:
    return np.asarray(bound * np.tanh(values / bound), dtype=np.float64)


def _value_and_slope(h: Floats, log_p: Floats, log_q: Floats, order: float) -> tuple[float, Floats]:
    """R and its gradient: α times the difference of the two tilted distributions."""
    above = log_p + (order - 1.0) * h
    below = log_q + order * h
    totals = np.logaddexp.reduce(above), np.logaddexp.reduce(below)
    tilts = np.exp(above - totals[0]), np.exp(below - totals[1])
    return float(order / (order - 1.0) * totals[0] - totals[1]), order * (tilts[0] - tilts[1])


# |h| by default: e^6 is a ratio that 10⁵ draws hardly see.
_BOUND = 6.0
# Bins for single numbers: free values need no more (Gaussian μ = 1, order 2, 1e5 draws).
_BINS = 64
# Even cells on which polynomials are evaluated, for single numbers and for each column of a vector.
_CELLS = 256
_COLUMN_CELLS = 64
# Degrees that are tried, and the one for vectors.
_DEGREES = (1, 2, 4, 8)
_VECTOR_DEGREE = 4
# The polynomials' interval [−1, 1] lies between these quantiles; beyond it they stay constant.
_OUTSIDE = 5e-4
# Larger numbers are clipped to this: their differences would overflow.
_LARGEST = 1e300
# Pseudo-counts per cell of free values.
_PRIOR = 0.5
_MOST_NAMES = 32
# Rows per side that polynomials of vectors are fitted to.
_MOST_ROWS = 40_000


def learn_functions(
    left: Outputs, right: Outputs, order: float, options: Options, rng: np.random.Generator
) -> list[Way]:
    """Cells with the fits of the requested family, learned on training draws.

    Args:
        rng: of the weights with which a network begins.
    """
    bound = _BOUND if options.bound is None else float(options.bound)
    if options.family == "network":
        from epsilometer.methods.published.auditorium.network import network_fit  # needs an extra

        fit = network_fit(order, bound, options.units, options.steps, rng)
        learned = learn_scored(left, right, fit, fewest_columns=1)
        # Outputs that hold no values give a network nothing to learn from.
        return [way_of(learn_by_values(left, right) if learned is None else learned)]
    ways: list[Way] = []
    if options.family in ("auto", "chebyshev"):
        ways += _polynomial_ways(left, right, order, bound, options.degree)
    # Repeated values and names have no polynomials.
    if options.family in ("auto", "bins") or not ways:
        ways += [
            make_way(learned, (_CellFit(None, order, bound),)) for learned in _bins(left, right)
        ]
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
        p, q = (
            np.asarray((side + prior) / (side + prior).sum(), dtype=np.float64)
            for side in (left, right)
        )
        return best_function(self.basis, p, q, self.order, self.bound)


def _bins(left: Outputs, right: Outputs) -> list[Learned]:
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1 and len(pairs[0][0].columns) == 1:
        a, b = (side.columns[0] for side in pairs[0])
        if isinstance(a, Numbers) and isinstance(b, Numbers):
            return [
                Learned(
                    on_line(pairs[0][0].shape, learn_line(a.values, b.values, most_bins=_BINS)),
                    left,
                    right,
                )
            ]
    return learn_partitions(left, right)


# --- polynomials
# -----------------------------------------------------------------------------------------------------


def _polynomial_ways(
    left: Outputs, right: Outputs, order: float, bound: float, degree: int | None
) -> list[Way]:
    pairs = blocks_of_both(left, right)
    if len(pairs) == 1 and len(pairs[0][0].columns) == 1:
        values = finite_numbers(*pairs[0])
        if values is None:
            return []
        line = _even_line(values, _CELLS)
        degrees = _DEGREES if degree is None else (degree,)
        # 0 for NaN, another signature and another shape.
        bases = [np.pad(_line_basis(line, each), ((0, 2), (0, 0))) for each in degrees]
        fits = tuple(_CellFit(basis, order, bound) for basis in bases)
        return [make_way(Learned(on_line(pairs[0][0].shape, line), left, right), fits)]
    learned = learn_scored(
        left, right, _polynomials_of_columns(order, bound, degree or _VECTOR_DEGREE)
    )
    return [] if learned is None else [way_of(learned)]


def _even_line(values: Floats, cells: int) -> Line:
    """Even cells between the outer quantiles of the values."""
    if not len(values):
        return Line(np.array([0.0]))
    low, high = np.quantile(np.clip(values, -_LARGEST, _LARGEST), [_OUTSIDE, 1.0 - _OUTSIDE])
    return Line(np.unique(np.linspace(low, high, cells - 1)))


def _line_basis(line: Line, degree: int) -> Floats:
    """T_1 … T_degree at the middle of each cell of the line; 0 for NaN."""
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
        terms = [
            _blank_term(sides[0][number], sides[1][number], number, degree) for number in columns
        ]
        rows = [
            np.concatenate([table[term.index(side)] for side in sides]) for term, table in terms
        ]
        n_left, n_right = (len(side[columns[0]]) for side in sides)
        p = np.repeat([1.0 / n_left, 0.0], [n_left, n_right])
        q = np.repeat([0.0, 1.0 / n_right], [n_left, n_right])
        coefficients = best_coefficients(np.concatenate(rows, axis=1), p, q, order, bound)
        parts = np.split(coefficients, np.cumsum([table.shape[1] for _, table in terms])[:-1])
        weighted = zip(terms, parts, strict=True)
        return AdditiveScore(
            tuple(Term(term.column, term.cells, table @ part) for (term, table), part in weighted)
        )

    return fit


def _blank_term(left: Column, right: Column, number: int, degree: int) -> tuple[Term, Floats]:
    """A column's cells, and the values of its family on each of them, shape (cells, k)."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        values = np.concatenate(
            [np.asarray(side.values, dtype=np.float64) for side in (left, right)]
        )
        line = _even_line(values[np.isfinite(values)], _COLUMN_CELLS)
        return Term(number, line, np.zeros(line.n_cells)), _line_basis(line, degree)
    labels = [label for side in (left, right) if isinstance(side, Labels) for label in side.labels]
    names = LabelAtoms(tuple(dict.fromkeys(labels))[:_MOST_NAMES])
    return Term(number, names, np.zeros(len(names) + 1)), np.eye(len(names) + 1)
