"""Families of bounded functions for the variational form: cells, Chebyshev polynomials, a network.

The variational form of a Rényi divergence is the supremum over functions h of
R(h) = α/(α − 1)·ln E_P e^((α−1)h) − ln E_Q e^(αh). Here h is learned from training draws, within
a family and with |h| ≤ C.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds.pure_by_renyi import THRESHOLDS
from epsilometer.claims.base import check_choice, check_positive, check_whole
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.log_ratios import LogRatioCandidates, finite_numbers, on_line, with_fits
from epsilometer.methods.partitions import (
    FitScore,
    LearnedPartition,
    learn_by_values,
    learn_partitions,
    learn_scored,
)
from epsilometer.methods.published.auditorium.hockey_stick import CERTIFICATES
from epsilometer.methods.scores.cells import blocks_of_both, learn_line
from epsilometer.one_line import fields_on_one_line
from epsilometer.outputs import Block, Labels, Line, Numbers, Outputs
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.columns import Column
from epsilometer.outputs.lines import CodedColumn
from epsilometer.outputs.scores import AdditiveScore, Term

FAMILIES = ("auto", "bins", "chebyshev", "network")

# Polynomials of a higher degree fit only noise.
_MAX_DEGREE = 64
# Steps of L-BFGS after which the fourth digit no longer changes.
_OPTIMISER_STEPS = 60
# Penalty on squared coefficients: pulls those that no draw supports to 0.
_RIDGE = 1e-4
# C by default: e^6 is a ratio that 10⁵ draws hardly show.
_DEFAULT_BOUND = 6.0
# Bins for single numbers: free values need no more (Gaussian μ = 1, order 2, 1e5 draws).
_BINS = 64
# Even cells on which polynomials of single numbers are evaluated.
_NUMBER_CELLS = 256
# Even cells on which polynomials of each column of a vector are evaluated.
_COLUMN_CELLS = 64
# Degrees that are tried for single numbers.
_NUMBER_DEGREES = (1, 2, 4, 8)
# Degree of the polynomials of each column of a vector.
_VECTOR_DEGREE = 4
# The polynomials' interval [−1, 1] leaves this fraction of the draws outside on each side, where
# they stay constant.
_OUTSIDE_FRACTION = 5e-4
# Larger numbers are clipped to this: their differences would overflow.
_LARGEST_NUMBER = 1e300
# Pseudo-counts per cell of free values.
_PRIOR = 0.5
# Categories of a column that get a value of their own; the rest share one.
_MAX_CATEGORIES = 32
# Rows per side that polynomials of vectors are fitted to.
_MOST_ROWS = 40_000


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

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        check_choice("family", self.family, FAMILIES)
        check_choice("threshold", self.threshold, THRESHOLDS)
        check_choice("certificate", self.certificate, CERTIFICATES)
        if self.degree is not None and check_whole("degree", self.degree) > _MAX_DEGREE:
            raise InputError(f"degree={self.degree!r} must be at most {_MAX_DEGREE}")
        if self.bound is not None:
            check_positive("bound", self.bound)
        if self.order is not None:
            check_order(self.order)
        if not isinstance(self.units, tuple) or not self.units:
            raise InputError(
                f"units={self.units!r} must be a tuple of whole numbers, one per hidden layer"
            )
        for number in (*self.units, self.steps):
            check_whole("units and steps", number)


def learn_functions(
    left: Outputs, right: Outputs, order: float, options: Options, rng: np.random.Generator
) -> list[LogRatioCandidates]:
    """Learns cells with the fits of the requested family from training draws.

    Args:
        left: training outputs of the left.
        right: training outputs of the right.
        order: α.
        options: the family, and its parameters.
        rng: draws the initial weights of a network.
    """
    bound = _DEFAULT_BOUND if options.bound is None else float(options.bound)
    if options.family == "network":
        # Imported here because it needs an extra.
        from epsilometer.methods.published.auditorium.network import network_fit

        fit = network_fit(order, bound, options.units, options.steps, rng)
        scored = learn_scored(left, right, fit, fewest_columns=1)
        if scored is None:
            # Outputs that hold no values give a network nothing to learn from.
            scored = learn_by_values(left, right)
        return [with_fits(scored)]
    partitions: list[LogRatioCandidates] = []
    if options.family in ("auto", "chebyshev"):
        partitions.extend(_learn_polynomials(left, right, order, bound, options.degree))
    # Repeated values and names have no polynomials.
    if options.family in ("auto", "bins") or not partitions:
        fit_of_cells = _CellFit(basis=None, order=order, bound=bound)
        bins = _learn_bins(left, right)
        partitions.extend(LogRatioCandidates.of(learned, (fit_of_cells,)) for learned in bins)
    return partitions


def _learn_bins(left: Outputs, right: Outputs) -> list[LearnedPartition]:
    """Returns bins for single numbers, and the partitions of the method `events` for the rest."""
    blocks = blocks_of_both(left, right)
    if len(blocks) == 1 and len(blocks[0][0].columns) == 1:
        left_block, right_block = blocks[0]
        left_column = left_block.columns[0]
        right_column = right_block.columns[0]
        if isinstance(left_column, Numbers) and isinstance(right_column, Numbers):
            line = learn_line(left_column.values, right_column.values, most_bins=_BINS)
            return [LearnedPartition(on_line(left_block.shape, line), left, right)]
    return learn_partitions(left, right)


# --- polynomials ------------------------------------------------------------------------------


def _learn_polynomials(
    left: Outputs, right: Outputs, order: float, bound: float, degree: int | None
) -> list[LogRatioCandidates]:
    """Returns cells with polynomials, or nothing for outputs that have none."""
    blocks = blocks_of_both(left, right)
    if len(blocks) == 1 and len(blocks[0][0].columns) == 1:
        left_block, right_block = blocks[0]
        values = finite_numbers(left_block, right_block)
        if values is None:
            return []
        line = _even_line(values, _NUMBER_CELLS)
        fits: list[_CellFit] = []
        for tried in _NUMBER_DEGREES if degree is None else (degree,):
            # 0 for another signature and another shape.
            basis = np.pad(_line_basis(line, tried), ((0, 2), (0, 0)))
            fits.append(_CellFit(basis=basis, order=order, bound=bound))
            fits.append(_CellFit(basis=basis, order=order, bound=bound, is_classifier=True))
        learned = LearnedPartition(on_line(left_block.shape, line), left, right)
        return [LogRatioCandidates.of(learned, tuple(fits))]
    fit_columns = _polynomials_of_columns(degree or _VECTOR_DEGREE)
    scored = learn_scored(left, right, fit_columns)
    return [] if scored is None else [with_fits(scored)]


def _even_line(values: Floats, cells: int) -> Line:
    """Returns even cells between the outer quantiles of the values."""
    if not len(values):
        return Line(np.array([0.0]))
    clipped = np.clip(values, -_LARGEST_NUMBER, _LARGEST_NUMBER)
    low, high = np.quantile(clipped, [_OUTSIDE_FRACTION, 1.0 - _OUTSIDE_FRACTION])
    return Line(np.unique(np.linspace(low, high, cells - 1)))


def _line_basis(line: Line, degree: int) -> Floats:
    """Returns T_1 … T_degree at the middle of each cell of the line, shape (cells, degree).

    The last cell, which holds NaN, gets 0.
    """
    edges = line.edges
    middles = np.concatenate([edges[:1], 0.5 * edges[:-1] + 0.5 * edges[1:], edges[-1:]])
    half_width = 0.5 * (edges[-1] - edges[0])
    positions = np.zeros(len(middles))
    if half_width > 0.0:
        positions = (middles - edges[0]) / half_width - 1.0
    basis = np.zeros((line.n_cells, degree))
    # Without T_0: a constant added to h changes nothing.
    basis[:-1] = chebyshev.chebvander(np.clip(positions, -1.0, 1.0), degree)[:, 1:]
    return basis


@dataclass(frozen=True, slots=True)
class _ColumnFamily(CodedColumn):
    """A column cut into cells, and the functions of it among which the best is sought.

    Attributes:
        basis: shape (cells, k), values of the family's members on each cell.
    """

    basis: Floats

    def rows(self, columns: Sequence[Column]) -> Floats:
        """Returns the values of the family's members for each output, shape (n, k)."""
        return self.basis[self.index(columns)]

    def term(self, coefficients: Floats) -> Term:
        """Returns the member with the given coefficients, shape (k,)."""
        return Term(self.column, self.cells, self.basis @ coefficients)


def _polynomials_of_columns(degree: int) -> FitScore:
    """Returns a fit of sums: a polynomial for each column of numbers, free values for names."""

    def fit(left: Block, right: Block, columns: Sequence[int]) -> AdditiveScore:
        first = slice(0, _MOST_ROWS)
        left_columns = [column.take(first) for column in left.columns]
        right_columns = [column.take(first) for column in right.columns]
        families = [
            _column_family(left_columns[number], right_columns[number], number, degree)
            for number in columns
        ]
        left_rows = np.concatenate([family.rows(left_columns) for family in families], axis=1)
        right_rows = np.concatenate([family.rows(right_columns) for family in families], axis=1)
        n_left = len(left_rows)
        n_right = len(right_rows)
        # By the logistic loss: R itself has optima that live on a handful of draws, and a score of
        # vectors is cut into cells whose values are fitted anew.
        coefficients = best_classifier(
            np.concatenate([left_rows, right_rows]),
            np.repeat([1.0 / n_left, 0.0], [n_left, n_right]),
            np.repeat([0.0, 1.0 / n_right], [n_left, n_right]),
        )[1:]
        ends = np.cumsum([family.basis.shape[1] for family in families])[:-1]
        parts = np.split(coefficients, ends)
        terms = [family.term(part) for family, part in zip(families, parts, strict=True)]
        return AdditiveScore(tuple(terms))

    return fit


def _column_family(left: Column, right: Column, number: int, degree: int) -> _ColumnFamily:
    """Returns polynomials for a column of numbers, and free values for a column of names."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        left_values = np.asarray(left.values, dtype=np.float64)
        right_values = np.asarray(right.values, dtype=np.float64)
        values = np.concatenate([left_values, right_values])
        line = _even_line(values[np.isfinite(values)], _COLUMN_CELLS)
        return _ColumnFamily(number, line, _line_basis(line, degree))
    labels: list[str] = []
    for side in (left, right):
        if isinstance(side, Labels):
            labels.extend(side.labels)
    categories = LabelAtoms(tuple(dict.fromkeys(labels))[:_MAX_CATEGORIES])
    # The last one is that of all other categories.
    return _ColumnFamily(number, categories, np.eye(len(categories) + 1))


# --- the best function of a family ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CellFit:
    """Turns training counts of cells into the values of h on each of them.

    Attributes:
        basis: shape (cells, k), or None for free values.
        order: α.
        bound: C.
        is_classifier: whether the function is fitted by the logistic loss, whose best function is
            the same, ln P/Q. With few draws R itself has optima that live on a handful of them.
    """

    basis: Floats | None
    order: float
    bound: float
    is_classifier: bool = False

    def __call__(self, left: Integers, right: Integers) -> Floats:
        if not left.any() or not right.any():
            return np.zeros(len(left))
        prior = _PRIOR if self.basis is None else 0.0
        p = np.asarray((left + prior) / (left + prior).sum(), dtype=np.float64)
        q = np.asarray((right + prior) / (right + prior).sum(), dtype=np.float64)
        if self.is_classifier and self.basis is not None:
            constant, *rest = best_classifier(self.basis, p, q)
            return _bounded(constant + self.basis @ np.array(rest), self.bound)
        return best_function(self.basis, p, q, self.order, self.bound)


def best_function(basis: Floats | None, p: Floats, q: Floats, order: float, bound: float) -> Floats:
    """Returns the bounded function of the family with the largest R.

    Args:
        basis: shape (points, k), values of the family's members; None gives every point its own
            value.
        p: shape (points,), weights under P.
        q: shape (points,), weights under Q.
        order: α.
        bound: C.

    Returns:
        Its values, shape (points,).
    """
    coefficients = best_coefficients(basis, p, q, order, bound)
    return _bounded(coefficients if basis is None else basis @ coefficients, bound)


def best_coefficients(
    basis: Floats | None, p: Floats, q: Floats, order: float, bound: float
) -> Floats:
    """Returns the coefficients of the best function before it is bounded, shape (k,)."""
    from scipy.optimize import minimize  # only needed by this method

    with np.errstate(divide="ignore"):
        log_p = np.log(p)
        log_q = np.log(q)
    size = len(p) if basis is None else basis.shape[1]

    def loss_and_gradient(coefficients: Floats) -> tuple[float, Floats]:
        h = _bounded(coefficients if basis is None else basis @ coefficients, bound)
        value, slope = _value_and_slope(h, log_p, log_q, order)
        # By the chain rule through the hyperbolic tangent.
        slope = slope * (1.0 - (h / bound) ** 2)
        gradient = slope if basis is None else basis.T @ slope
        ridge = 0.5 * _RIDGE * float(coefficients @ coefficients)
        return ridge - value, _RIDGE * coefficients - gradient

    optimum = minimize(
        loss_and_gradient,
        np.zeros(size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _OPTIMISER_STEPS},
    )
    return np.asarray(optimum.x, dtype=np.float64)


def best_classifier(basis: Floats, p: Floats, q: Floats) -> Floats:
    """Returns the coefficients with the least logistic loss, shape (1 + k,), the constant first.

    Args:
        basis: shape (points, k), values of the family's members, to which a constant is added.
        p: shape (points,), weights under P.
        q: shape (points,), weights under Q.
    """
    from scipy.optimize import minimize  # only needed by this method

    with_constant = np.column_stack([np.ones(len(basis)), basis])

    def loss_and_gradient(coefficients: Floats) -> tuple[float, Floats]:
        h = with_constant @ coefficients
        loss = float(p @ np.logaddexp(0.0, -h) + q @ np.logaddexp(0.0, h))
        slope = q * expit(h) - p * expit(-h)
        ridge = 0.5 * _RIDGE * float(coefficients @ coefficients)
        return loss + ridge, with_constant.T @ slope + _RIDGE * coefficients

    optimum = minimize(
        loss_and_gradient,
        np.zeros(with_constant.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _OPTIMISER_STEPS},
    )
    return np.asarray(optimum.x, dtype=np.float64)


def variational_value(h: Floats, p: Floats, q: Floats, order: float) -> float:
    """Returns R(h) of a function on finitely many points.

    Args:
        h: shape (points,), values of the function.
        p: shape (points,), probabilities under P.
        q: shape (points,), probabilities under Q.
        order: α.

    Reference: Kong et al. (2023), (5).
    """
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
        log_q = np.log(q)
    value, _ = _value_and_slope(h, log_p, log_q, order)
    return value


def _bounded(values: Floats, bound: float) -> Floats:
    """Squashes values into ±bound."""
    return np.asarray(bound * np.tanh(values / bound), dtype=np.float64)


def _value_and_slope(h: Floats, log_p: Floats, log_q: Floats, order: float) -> tuple[float, Floats]:
    """Returns R and its gradient: α times the difference of the two tilted distributions."""
    log_tilted_p = log_p + (order - 1.0) * h
    log_tilted_q = log_q + order * h
    log_total_p = np.logaddexp.reduce(log_tilted_p)
    log_total_q = np.logaddexp.reduce(log_tilted_q)
    tilted_p = np.exp(log_tilted_p - log_total_p)
    tilted_q = np.exp(log_tilted_q - log_total_q)
    value = float(order / (order - 1.0) * log_total_p - log_total_q)
    return value, order * (tilted_p - tilted_q)
