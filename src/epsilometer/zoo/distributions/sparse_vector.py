"""The exact output distributions of sparse vectors, by integration over the noisy threshold.

Given the threshold's noise, all answers are independent, so the probability of a sequence of
answers is one integral over that noise; between the breakpoints 0 and q_i - T its integrand is
analytic.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    PairDistributions,
    discrete_distributions,
    quadrature_cells,
    quadrature_distributions,
)
from epsilometer.zoo.distributions.numerics import (
    REACH_IN_SCALES,
    Panels,
    laplace_below,
    laplace_density,
)

# One entry per answered query: 1 above, 0 below.
Answers = tuple[int, ...]
# Slices of one value between the two queries that it may belong to, where one noise scale is long
# against their distance.
_SLICES = 4
# The order at which the Kullback-Leibler divergence, of order 1, is computed.
_JUST_ABOVE_ONE = 1 + 1e-6


@dataclass(frozen=True)
class Scheme:
    """How a sparse vector technique adds its noise and when it stops.

    Attributes:
        threshold_scale: scale of the Laplace noise on the threshold.
        query_scale: scale of the Laplace noise on each query, 0 for none.
        cutoff: stop after this many answers "above"; None for never.
        threshold: the threshold T before noise.
        reset_scale: scale of the fresh threshold noise after an answer "above", 0 if the old noise
            is kept.
    """

    threshold_scale: float
    query_scale: float
    cutoff: int | None
    threshold: float = 1.0
    reset_scale: float = 0.0

    def panels(self, *queries: Sequence[float], panels_per_scale: float = 2.0) -> Panels:
        """Returns where the threshold's noise is evaluated, the same for all the given queries."""
        all_scales = (self.threshold_scale, self.query_scale, self.reset_scale)
        scales = [scale for scale in all_scales if scale > 0]
        kinks = [0.0]
        for values in queries:
            kinks += [value - self.threshold for value in values]
        return Panels.between(
            kinks,
            scale=min(scales),
            reach=REACH_IN_SCALES * max(scales),
            panels_per_scale=panels_per_scale,
        )

    def is_complete(self, answers: Answers, n_queries: int) -> bool:
        """Returns whether the technique stops after these answers to the first queries."""
        if len(answers) == n_queries:
            return True
        return self.cutoff is not None and sum(answers) >= self.cutoff


def _complete_answers(scheme: Scheme, n_queries: int) -> Iterator[Answers]:
    """Yields every possible sequence of answers, up to the stop."""
    prefixes: list[Answers] = [()]
    while prefixes:
        prefix = prefixes.pop()
        if scheme.is_complete(prefix, n_queries):
            yield prefix
        else:
            prefixes.append((*prefix, 0))
            prefixes.append((*prefix, 1))


# --- answers only


def answers_distributions(
    scheme: Scheme, left: Sequence[float], right: Sequence[float]
) -> CellDistributions:
    """The distributions of the sequence of answers on two sequences of query values."""
    left_table = answer_probabilities(scheme, left)
    right_table = answer_probabilities(scheme, right)
    sequences = sorted(left_table.keys() | right_table.keys())
    return discrete_distributions(
        np.array([left_table.get(answers, 0.0) for answers in sequences]),
        np.array([right_table.get(answers, 0.0) for answers in sequences]),
    )


def answer_probabilities(scheme: Scheme, queries: Sequence[float]) -> dict[Answers, float]:
    """Returns P(answers) for every possible sequence of answers, up to the stop."""
    panels = scheme.panels(queries)
    below = [_probability_below(scheme, panels, query) for query in queries]
    # Not as the complement, so that small probabilities keep their digits.
    above = [_probability_above(scheme, panels, query) for query in queries]
    table: dict[Answers, float] = {}
    # Each open prefix of answers carries its joint weight with the threshold's noise at every node.
    fresh = laplace_density(panels.nodes, scheme.threshold_scale) * panels.weights
    open_prefixes: list[tuple[Answers, Floats]] = [((), fresh)]
    while open_prefixes:
        prefix, weight = open_prefixes.pop()
        if scheme.is_complete(prefix, len(queries)):
            table[prefix] = float(weight.sum())
            continue
        position = len(prefix)
        weight_above = weight * above[position]
        if scheme.reset_scale > 0:
            density = laplace_density(panels.nodes, scheme.reset_scale)
            weight_above = weight_above.sum() * density * panels.weights
        open_prefixes.append(((*prefix, 0), weight * below[position]))
        open_prefixes.append(((*prefix, 1), weight_above))
    return table


def _probability_below(scheme: Scheme, panels: Panels, query: float) -> Floats:
    """Returns P(query + noise < T + threshold noise) at every node."""
    return laplace_below(scheme.threshold + panels.nodes - query, scheme.query_scale)


def _probability_above(scheme: Scheme, panels: Panels, query: float) -> Floats:
    """Returns P(query + noise >= T + threshold noise) at every node."""
    return laplace_below(query - scheme.threshold - panels.nodes, scheme.query_scale)


# --- the first answer above, with a value


def first_above_distributions(
    scheme: Scheme, left: Sequence[float], right: Sequence[float], value_scale: float
) -> CellDistributions:
    """The distributions of (position of the first answer above, that query with *fresh* noise).

    Args:
        scheme: the noises and the threshold; its cutoff is ignored.
        left: query values.
        right: query values.
        value_scale: scale of the fresh Laplace noise.
    """
    one_answer = replace(scheme, cutoff=1, reset_scale=0.0)
    distances = np.abs(np.subtract(left, right))
    return CellDistributions(
        left=_first_position_probabilities(one_answer, left),
        right=_first_position_probabilities(one_answer, right),
        shifts=np.append(distances / value_scale, 0.0),
    )


def _first_position_probabilities(scheme: Scheme, queries: Sequence[float]) -> Floats:
    """Returns the probability of each position of the first answer above; the last one is "none".

    The scheme must stop at the first answer above.
    """
    probabilities = np.zeros(len(queries) + 1)
    for answers, probability in answer_probabilities(scheme, queries).items():
        position = answers.index(1) if 1 in answers else -1
        probabilities[position] = probability
    return probabilities


def compared_value_distributions(
    scheme: Scheme, left: Sequence[float], right: Sequence[float]
) -> CellDistributions:
    """The distributions of (position of the first answer above, the *same* value as compared)."""
    panels = scheme.panels(left, right, panels_per_scale=20)
    return quadrature_distributions(
        _position_value_cells(scheme, panels, left),
        _position_value_cells(scheme, panels, right),
    )


def _position_value_cells(scheme: Scheme, panels: Panels, queries: Sequence[float]) -> Floats:
    """Returns weights of (position, value) with values T + nodes, then that of "none above"."""
    weight = laplace_density(panels.nodes, scheme.threshold_scale)
    cells = []
    for query in queries:
        # The value v is reported if the threshold's noise lies below v - T and all earlier answers
        # were "below".
        reached_at_nodes, reached_at_edges = panels.running_integral(weight)
        at_nodes = laplace_density(scheme.threshold + panels.nodes - query, scheme.query_scale)
        at_edges = laplace_density(scheme.threshold + panels.edges - query, scheme.query_scale)
        cells.append(
            quadrature_cells(panels, at_nodes * reached_at_nodes, at_edges * reached_at_edges)
        )
        weight = weight * _probability_below(scheme, panels, query)
    none_above = float((weight * panels.weights).sum())
    return np.concatenate([*cells, [none_above]])


# --- several answers above, with the values that were compared


@dataclass(frozen=True, eq=False)
class ComparedValuesDistributions(PairDistributions):
    """The distributions of all answers and of the compared values above; delta is not known.

    For given answers with values v_i = T + w_i above, the density is G(w)·Π f_i(w_i), where w is
    the least of the w_i and G(w) the probability that the threshold's noise is below w and all
    answers "below" are.

    Attributes:
        scheme: the noises and the threshold.
        queries: those of the left and of the right dataset.
        panels: where w is evaluated.
    """

    scheme: Scheme
    queries: tuple[Sequence[float], Sequence[float]]
    panels: Panels

    @classmethod
    def on(
        cls, scheme: Scheme, left: Sequence[float], right: Sequence[float]
    ) -> "ComparedValuesDistributions":
        """The distributions on two sequences of query values."""
        return cls(scheme=scheme, queries=(left, right), panels=scheme.panels(left, right))

    def pure_epsilon(self) -> float:
        """See `PairDistributions`."""
        return max(self._greatest_loss(answers) for answers in self._all_answers())

    def renyi(self, order: float) -> float:
        """See `PairDistributions`; order 1 as the limit from above."""
        if math.isinf(order):
            return self.pure_epsilon()
        order = max(order, _JUST_ABOVE_ONE)

        def log_moment(side: int) -> float:
            integrals = [
                self._log_power_integral(answers, side, order) for answers in self._all_answers()
            ]
            return float(np.logaddexp.reduce(integrals))

        return max(0.0, max(log_moment(0), log_moment(1)) / (order - 1))

    def rho(self) -> float | None:
        """See `PairDistributions`: not computed, as a supremum over all orders takes minutes."""
        return None

    def reached(self, answers: Answers, side: int) -> tuple[Floats, Floats]:
        """Returns G at the nodes and at the edges."""
        weight = laplace_density(self.panels.nodes, self.scheme.threshold_scale)
        for query, answer in zip(self.queries[side], answers, strict=False):
            if not answer:
                weight = weight * _probability_below(self.scheme, self.panels, query)
        return self.panels.running_integral(weight)

    def log_density(self, w: Floats, position: int, side: int) -> Floats:
        """Returns log f of one query's value T + w."""
        query = self.queries[side][position]
        scale = self.scheme.query_scale
        return np.asarray(-np.abs(self.scheme.threshold + w - query) / scale - math.log(2 * scale))

    def _all_answers(self) -> Iterator[Answers]:
        return _complete_answers(self.scheme, len(self.queries[0]))

    def _greatest_loss(self, answers: Answers) -> float:
        """Returns the greatest |log ratio| over all values, for one sequence of answers.

        All its kinks are edges of panels.
        """
        _, left = self.reached(answers, 0)
        _, right = self.reached(answers, 1)
        above = _positions_above(answers)
        if not above:
            return abs(math.log(left[-1] / right[-1]))
        possible = np.minimum(left, right) > 0
        edges = self.panels.edges[possible]
        reached_ratio = np.log(left[possible]) - np.log(right[possible])
        value_ratios = [
            self.log_density(edges, position, 0) - self.log_density(edges, position, 1)
            for position in above
        ]
        return max(
            _greatest_sum(reached_ratio, value_ratios),
            _greatest_sum(-reached_ratio, [-ratio for ratio in value_ratios]),
        )

    def _log_power_integral(self, answers: Answers, side: int, order: float) -> float:
        """Returns the logarithm of the integral of P^order·Q^(1 - order) for given answers.

        P is the distribution of the given side, Q that of the other.
        """
        other_side = 1 - side
        with np.errstate(divide="ignore"):
            log_p = np.log(self.reached(answers, side)[0])
            log_q = np.log(self.reached(answers, other_side)[0])
        is_finite = np.isfinite(log_p) & np.isfinite(log_q)
        reached = np.where(is_finite, order * log_p + (1 - order) * log_q, -np.inf)
        if not any(answers):
            return float(reached[-1, -1])
        # The derivative -d/dw of the weight of all values beyond w, where the weight of a value is
        # p^order·q^(1 - order). Every factor is kept below 1; the logarithms of their sizes are
        # added separately.
        log_size = reached.max()
        beyond = np.ones_like(reached)
        falling = np.zeros_like(reached)
        for position in _positions_above(answers):
            log_p = self.log_density(self.panels.nodes, position, side)
            log_q = self.log_density(self.panels.nodes, position, other_side)
            powers = order * log_p + (1 - order) * log_q
            log_size += powers.max()
            density = np.exp(powers - powers.max())
            at_nodes, at_edges = self.panels.running_integral(density)
            value_beyond = np.maximum(at_edges[-1] - at_nodes, 0.0)
            falling = falling * value_beyond + density * beyond
            beyond = beyond * value_beyond
        relative = np.exp(reached - reached.max()) * falling * self.panels.weights
        return float(log_size + np.log(relative.sum()))


def _positions_above(answers: Answers) -> list[int]:
    """Returns the positions of the answers "above"."""
    return [position for position, answer in enumerate(answers) if answer]


def _greatest_sum(reached: Floats, values: list[Floats]) -> float:
    """Returns the greatest reached(w) + Σ value(v) over values v >= w of which one is w itself."""
    greatest_later = [np.maximum.accumulate(value[::-1])[::-1] for value in values]
    together = sum(greatest_later, np.zeros_like(reached))
    sums = []
    for value, later in zip(values, greatest_later, strict=True):
        sums.append(float((reached + together - later + value).max()))
    return max(sums)


def two_compared_values_distributions(
    scheme: Scheme, left: Sequence[float], right: Sequence[float]
) -> CellDistributions:
    """As `compared_value_distributions` with a cutoff of 2: the greater value only by slices.

    Given the lesser value w, which says all about the threshold, a greater one reveals its query by
    a ratio that varies between the two queries only; a few slices there lose nothing that counts.
    """
    # Two noise scales per panel: exact to nine digits, and a quarter of the cells.
    panels = scheme.panels(left, right, panels_per_scale=0.5)
    distributions = ComparedValuesDistributions(scheme=scheme, queries=(left, right), panels=panels)
    return quadrature_distributions(
        _two_value_cells(distributions, side=0), _two_value_cells(distributions, side=1)
    )


def _two_value_cells(distributions: ComparedValuesDistributions, side: int) -> Floats:
    """Returns the weights of all answers, with the lesser value by nodes, the greater by slices."""
    cells: list[Floats] = []
    for answers in _complete_answers(distributions.scheme, len(distributions.queries[side])):
        above = _positions_above(answers)
        reached, reached_at_edges = distributions.reached(answers, side)
        if not above:
            cells.append(reached_at_edges[-1:])
        for lesser in above:
            density = (
                np.exp(distributions.log_density(distributions.panels.nodes, lesser, side))
                * distributions.panels.weights
            )
            weight = reached * density
            for greater in above:
                if greater != lesser:
                    weight = weight * _slices_beyond(distributions, greater, side)
            cells.append(weight.ravel())
    return np.concatenate(cells)


def _slices_beyond(distributions: ComparedValuesDistributions, position: int, side: int) -> Floats:
    """Returns P(one query's noisy value lies beyond w, in each slice) at every node w.

    Its shape is (slices, k, m).
    """
    scale = distributions.scheme.query_scale
    query = distributions.queries[side][position]
    centres = sorted({float(queries[position]) for queries in distributions.queries})
    inner_cuts = np.linspace(centres[0], centres[-1], _SLICES + 1)
    cuts = np.concatenate([[-np.inf], inner_cuts, [np.inf]])
    start = np.maximum(
        distributions.scheme.threshold + distributions.panels.nodes, cuts[:-1, None, None]
    )
    end = np.maximum(start, cuts[1:, None, None])
    return laplace_below(query - start, scale) - laplace_below(query - end, scale)
