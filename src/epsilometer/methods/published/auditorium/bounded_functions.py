"""Bounded functions h for the published Rényi tester, evaluated at every single draw.

The exact bet counts cells, so its h is constant on cells. The published estimate needs only means
of e^((α−1)h) and e^(αh), so that h may be anything: here it is free values on cells, a network's
cells, or a Chebyshev polynomial itself.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Section 4.1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.log_ratios import Fit, LogRatioCandidates
from epsilometer.methods.partitions import half_of
from epsilometer.methods.published.adapters import oriented
from epsilometer.methods.published.auditorium.families import (
    Options,
    learn_functions,
    variational_value,
)
from epsilometer.methods.published.auditorium.variational_error import published_error
from epsilometer.outputs import Numbers, Outputs, Partition

# Half-ranges of h that are tried where C is not given, as fractions of the fitted one: the error
# grows exponentially with C.
_RANGE_FRACTIONS = np.linspace(0.1, 1.0, 19)
# C while h is fitted, where it is not given: e^6 is a ratio that 10⁵ draws hardly show.
_WIDEST_BOUND = 6.0
# Degrees that are tried where none is given.
_DEGREES = (1, 2, 4, 8)
# The polynomials' interval [−1, 1] leaves this fraction of the draws outside on each side, where
# they stay constant.
_OUTSIDE_FRACTION = 5e-4
# Larger numbers are clipped to this: their differences would overflow.
_LARGEST_NUMBER = 1e300
# Steps of L-BFGS after which the fourth digit no longer changes.
_OPTIMISER_STEPS = 60
# Penalty on squared coefficients: pulls those that no draw supports to 0.
_RIDGE = 1e-4
# Draws per side that polynomials are fitted to: few coefficients need no more.
_MOST_ROWS = 40_000
# Outputs of more columns get no polynomials of their own: their coefficients would fit noise.
_MOST_COLUMNS = 64
# Units in which exponentials, at most 1 each, are summed: first the coarse ones, then what is left
# of them. A 64-bit number holds the sums of 8·10⁹ draws.
_COARSE_UNIT = 2.0**-30
_FINE_UNIT = 2.0**-61


class Function(Protocol):
    """Anything that gives every output a number."""

    def evaluate(self, outputs: Outputs) -> Floats:
        """Returns a number for each output, shape (n,)."""


@dataclass(frozen=True, slots=True)
class CellFunction:
    """A function that is constant on cells.

    Attributes:
        partition: the cells.
        values: shape (cells,).
    """

    partition: Partition
    values: Floats

    def evaluate(self, outputs: Outputs) -> Floats:
        """Returns the value of each output's cell, shape (n,)."""
        return self.values[self.partition.index(outputs)]


@dataclass(frozen=True, slots=True)
class ChebyshevPolynomial:
    """A sum of Chebyshev polynomials, one for each column of numbers.

    Attributes:
        low: shape (columns,), the ends of the intervals that are mapped to [−1, 1]; beyond them the
            polynomials stay constant.
        high: shape (columns,).
        coefficients: shape (columns, degree), of T_1, T_2, ….
        constant: of T_0; R does not depend on it, but where h is cut off does.
    """

    low: Floats
    high: Floats
    coefficients: Floats
    constant: float = 0.0

    def evaluate(self, outputs: Outputs) -> Floats:
        """Returns the sum of the polynomials at each output, shape (n,); 0 for other shapes."""
        values = np.zeros(len(outputs))
        for block in outputs:
            columns = _numbers_of(block.columns)
            if columns is not None and columns.shape[1] == len(self.low):
                basis = _basis(columns, self.low, self.high, self.coefficients.shape[1])
                values[block.places()] = self.constant + basis @ self.coefficients.ravel()
        return values


@dataclass(frozen=True, slots=True)
class BoundedFunction:
    """h of the variational form, clipped to its range.

    Attributes:
        function: h before it is clipped.
        low: the least value of h.
        high: its greatest value.
        order: α.
        flipped: False for D(left ‖ right).
        predicted: the published bound to expect, by draws that did not fit it.
    """

    function: Function
    low: float
    high: float
    order: float
    flipped: bool
    predicted: float

    @property
    def bound(self) -> float:
        """C, the largest |h| after the best shift: a constant added to h changes nothing."""
        return 0.5 * (self.high - self.low)

    def evaluate(self, outputs: Outputs) -> Floats:
        """Returns h of each output, shape (n,)."""
        return np.clip(self.function.evaluate(outputs), self.low, self.high)

    def moments(self, outputs: Outputs, side: int) -> Integers:
        """Returns how many draws there are, and the sum of their exponentials, shape (3,).

        The sum is kept as two whole numbers, in units of `_COARSE_UNIT` and `_FINE_UNIT`: sums of
        floats depend on the order, and those of chunks would not add up to that of all draws.

        Args:
            outputs: of one side.
            side: 0 for the left.
        """
        is_p = (side == 1) == self.flipped
        power = self.order - 1.0 if is_p else self.order
        # Relative to the largest possible one, so that no exponential overflows.
        exponentials = np.exp(power * (self.evaluate(outputs) - self.high))
        coarse = np.round(exponentials / _COARSE_UNIT)
        fine = np.round((exponentials - coarse * _COARSE_UNIT) / _FINE_UNIT)
        sums = [int(coarse.astype(np.int64).sum()), int(fine.astype(np.int64).sum())]
        return np.array([len(outputs), *sums], dtype=np.int64)

    def estimate(self, left: Integers, right: Integers) -> float:
        """Returns R of (5) from the moments of both sides."""
        p, q = oriented(left, right, self.flipped)
        order = self.order
        with np.errstate(divide="ignore"):
            # The shift by `high` cancels: α/(α − 1)·(α − 1) = α.
            log_p = np.log(_mean_exponential(p))
            log_q = np.log(_mean_exponential(q))
            return float(order / (order - 1.0) * log_p - log_q)


def _mean_exponential(moments: Integers) -> float:
    """Returns the mean of the exponentials that `BoundedFunction.moments` has summed."""
    n, coarse, fine = (int(moment) for moment in moments)
    return (coarse * _COARSE_UNIT + fine * _FINE_UNIT) / n


class Judgement(NamedTuple):
    """What held-out draws say about the function of one fit and one range.

    Attributes:
        predicted: the published bound to expect.
        low: the least value of h.
        high: its greatest value.
    """

    predicted: float
    low: float
    high: float


def learn_bounded(
    left: Outputs,
    right: Outputs,
    order: float,
    options: Options,
    *,
    directions: Sequence[bool],
    n_fresh: int,
    failure_probability: float,
    rng: np.random.Generator,
) -> BoundedFunction:
    """Returns the function of the family with the best published bound to expect.

    Args:
        left: training outputs of the left.
        right: training outputs of the right.
        order: α.
        options: the family, its degree, and C.
        directions: False for D(left ‖ right), True for D(right ‖ left), or both.
        n_fresh: draws of each side that will evaluate it.
        failure_probability: β.
        rng: draws the initial weights of a network.
    """
    judge = _Judge(order, options.bound, n_fresh, failure_probability)
    learned: list[BoundedFunction] = []
    if options.family in ("auto", "chebyshev"):
        learned.extend(_polynomials(left, right, options.degree, directions, judge))
    # Repeated values and names have no polynomials.
    if options.family != "chebyshev" or not learned:
        family = "network" if options.family == "network" else "bins"
        cells = learn_functions(left, right, order, replace(options, family=family), rng)
        learned.extend(_on_cells(cells, directions, judge))
    return max(learned, key=lambda function: function.predicted)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Predicts the published bound of a function, and chooses its range where C is not given.

    Attributes:
        order: α.
        bound: C; None chooses it.
        n_fresh: draws of each side that will evaluate the function.
        failure_probability: β.
    """

    order: float
    bound: float | None
    n_fresh: int
    failure_probability: float

    @property
    def widest(self) -> float:
        """C while the function is fitted."""
        return _WIDEST_BOUND if self.bound is None else float(self.bound)

    def judge(self, h: Floats, p: Floats, q: Floats) -> Judgement:
        """Returns the best range of a function whose values have these held-out probabilities."""
        if self.bound is not None:
            ranges = [(-self.widest, self.widest)]
        else:
            middle = 0.5 * float(h.max() + h.min())
            half = 0.5 * float(h.max() - h.min())
            ranges = [(middle - f * half, middle + f * half) for f in _RANGE_FRACTIONS]
        judged: list[Judgement] = []
        for low, high in ranges:
            value = variational_value(np.clip(h, low, high), p, q, self.order)
            error = published_error(
                self.order, 0.5 * (high - low), self.n_fresh, self.failure_probability
            )
            judged.append(Judgement(value - error, low, high))
        return max(judged, key=lambda judgement: judgement.predicted)


def _on_cells(
    sources: Sequence[LogRatioCandidates], directions: Sequence[bool], judge: _Judge
) -> Iterator[BoundedFunction]:
    """Fits functions on cells: judged on the half that did not fit them, then fitted to all."""
    for source in sources:
        for flipped in directions:
            above, below = source.oriented(flipped)
            for fit in source.fits:
                h = np.concatenate([fit(above[0], below[0]), fit(above[1], below[1])])
                p = np.concatenate([above[1], above[0]])
                q = np.concatenate([below[1], below[0]])
                if not p.any() or not q.any():
                    continue
                judgement = judge.judge(_within(h, judge.widest), p / p.sum(), q / q.sum())
                yield _cell_function(source, fit, flipped, judgement, judge)


def _cell_function(
    source: LogRatioCandidates, fit: Fit, flipped: bool, judgement: Judgement, judge: _Judge
) -> BoundedFunction:
    above, below = source.oriented(flipped)
    by_level = _within(fit(above[0] + above[1], below[0] + below[1]), judge.widest)
    return BoundedFunction(
        function=CellFunction(source.partition, source.of_cells(by_level)),
        low=judgement.low,
        high=judgement.high,
        order=judge.order,
        flipped=flipped,
        predicted=judgement.predicted,
    )


def _within(h: Floats, bound: float) -> Floats:
    return np.clip(h, -bound, bound)


# --- polynomials ------------------------------------------------------------------------------


def _polynomials(
    left: Outputs,
    right: Outputs,
    degree: int | None,
    directions: Sequence[bool],
    judge: _Judge,
) -> Iterator[BoundedFunction]:
    """Fits polynomials to the draws themselves; none for outputs that are not all of numbers."""
    halves = [(half_of(left, number), half_of(right, number)) for number in (0, 1)]
    for tried in _DEGREES if degree is None else (degree,):
        for flipped in directions:
            held_out_p, held_out_q = oriented(*halves[1], flipped)
            weights = _sides(len(held_out_p), len(held_out_q))
            for objective in (_Variational(judge.order, judge.widest), _Logistic()):
                of_first_half = _fit_polynomial(*oriented(*halves[0], flipped), tried, objective)
                of_all_draws = _fit_polynomial(*oriented(left, right, flipped), tried, objective)
                if of_first_half is None or of_all_draws is None:
                    return
                h = np.concatenate(
                    [of_first_half.evaluate(held_out_p), of_first_half.evaluate(held_out_q)]
                )
                judgement = judge.judge(_within(h, judge.widest), *weights)
                yield BoundedFunction(
                    function=of_all_draws,
                    low=judgement.low,
                    high=judgement.high,
                    order=judge.order,
                    flipped=flipped,
                    predicted=judgement.predicted,
                )


class _Objective(Protocol):
    """What coefficients are chosen by: a loss and its slopes at the draws."""

    def loss(self, h_p: Floats, h_q: Floats) -> tuple[float, Floats, Floats]:
        """Returns the loss of a function, and its derivatives by h at the draws of P and of Q."""


@dataclass(frozen=True, slots=True)
class _Variational:
    """The published objective itself, −R of h cut off at ±C.

    Attributes:
        order: α.
        bound: C.
    """

    order: float
    bound: float

    def loss(self, h_p: Floats, h_q: Floats) -> tuple[float, Floats, Floats]:
        """Returns −R and its derivatives."""
        order = self.order
        log_mean_p, tilted_p = _tilted((order - 1.0) * _within(h_p, self.bound))
        log_mean_q, tilted_q = _tilted(order * _within(h_q, self.bound))
        value = order / (order - 1.0) * log_mean_p - log_mean_q
        slope_p = np.where(np.abs(h_p) < self.bound, -order * tilted_p, 0.0)
        slope_q = np.where(np.abs(h_q) < self.bound, order * tilted_q, 0.0)
        return -value, slope_p, slope_q


@dataclass(frozen=True, slots=True)
class _Logistic:
    """The loss of a classifier, whose best function is ln P/Q, as that of the published objective.

    With few draws or a large C the published objective has optima that live on a handful of draws;
    this one has none.
    """

    def loss(self, h_p: Floats, h_q: Floats) -> tuple[float, Floats, Floats]:
        """Returns the logistic loss and its derivatives."""
        value = float(np.logaddexp(0.0, -h_p).mean() + np.logaddexp(0.0, h_q).mean())
        return value, -expit(-h_p) / len(h_p), expit(h_q) / len(h_q)


def _tilted(exponents: Floats) -> tuple[float, Floats]:
    """Returns ln of the mean of some exponentials, and the share of each in their sum."""
    highest = float(exponents.max())
    powers = np.exp(exponents - highest)
    total = float(powers.sum())
    return highest + math.log(total / len(exponents)), powers / total


def _fit_polynomial(
    p: Outputs, q: Outputs, degree: int, objective: _Objective
) -> ChebyshevPolynomial | None:
    """Returns the polynomial with the least loss at the draws themselves."""
    from scipy.optimize import minimize  # only needed by this method

    p_numbers = _numbers_of_outputs(p)
    q_numbers = _numbers_of_outputs(q)
    if p_numbers is None or q_numbers is None or p_numbers.shape[1] != q_numbers.shape[1]:
        return None
    numbers = np.concatenate([p_numbers, q_numbers])
    low, high = np.quantile(numbers, [_OUTSIDE_FRACTION, 1.0 - _OUTSIDE_FRACTION], axis=0)
    basis = _basis(numbers, low, high, degree)
    basis_p, basis_q = basis[: len(p_numbers)], basis[len(p_numbers) :]

    def loss_and_gradient(coefficients: Floats) -> tuple[float, Floats]:
        # A constant of its own, which classifiers need, and which changes no R.
        constant, rest = coefficients[0], coefficients[1:]
        value, slope_p, slope_q = objective.loss(
            basis_p @ rest + constant, basis_q @ rest + constant
        )
        gradient = np.concatenate(
            [[slope_p.sum() + slope_q.sum()], slope_p @ basis_p + slope_q @ basis_q]
        )
        ridge = 0.5 * _RIDGE * float(rest @ rest)
        gradient[1:] += _RIDGE * rest
        return value + ridge, gradient

    optimum = minimize(
        loss_and_gradient,
        np.zeros(1 + basis.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _OPTIMISER_STEPS},
    )
    coefficients = np.asarray(optimum.x[1:], dtype=np.float64).reshape(-1, degree)
    return ChebyshevPolynomial(low, high, coefficients, constant=float(optimum.x[0]))


def _sides(n_p: int, n_q: int) -> tuple[Floats, Floats]:
    """Returns the weights of draws of P followed by draws of Q, under P and under Q."""
    weights_p = np.repeat([1.0 / max(n_p, 1), 0.0], [n_p, n_q])
    weights_q = np.repeat([0.0, 1.0 / max(n_q, 1)], [n_p, n_q])
    return weights_p, weights_q


def _numbers_of_outputs(outputs: Outputs) -> Floats | None:
    """Returns the first draws as numbers, shape (n, columns); None unless all are of one shape."""
    blocks = [block for block in outputs if block.size]
    if len(blocks) != 1:
        return None
    first = slice(0, _MOST_ROWS)
    return _numbers_of([column.take(first) for column in blocks[0].columns])


def _numbers_of(columns: Sequence[object]) -> Floats | None:
    """Returns columns of finite numbers, shape (n, columns), and None if one is of something else.

    A number that is not finite is 0: a polynomial has no value for it.
    """
    if not 0 < len(columns) <= _MOST_COLUMNS:
        return None
    numbers: list[Floats] = []
    for column in columns:
        if not isinstance(column, Numbers):
            return None
        values = np.asarray(column.values, dtype=np.float64)
        finite = np.where(np.isfinite(values), values, 0.0)
        numbers.append(np.clip(finite, -_LARGEST_NUMBER, _LARGEST_NUMBER))
    return np.stack(numbers, axis=1)


def _basis(numbers: Floats, low: Floats, high: Floats, degree: int) -> Floats:
    """Returns T_1 … T_degree of every column at every draw, shape (n, columns · degree)."""
    half_width = 0.5 * (high - low)
    is_wide = half_width > 0.0
    scaled = (numbers - low) / np.where(is_wide, half_width, 1.0) - 1.0
    positions = np.clip(np.where(is_wide, scaled, 0.0), -1.0, 1.0)
    # Without T_0, which all columns share.
    basis = chebyshev.chebvander(positions, degree)[..., 1:]
    return np.asarray(basis.reshape(len(numbers), -1), dtype=np.float64)
