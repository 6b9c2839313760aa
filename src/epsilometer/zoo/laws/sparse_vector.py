"""The exact output distributions of the sparse vector techniques, by integration over the noisy threshold.

Given the threshold's noise, all answers are independent, so the probability of a sequence of answers is one integral
over that noise; between the breakpoints 0 and q_i - T its integrand is analytic.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.zoo.laws.exact import CellLaw, PairLaw, discrete_law, quadrature_cells, quadrature_law
from epsilometer.zoo.laws.numerics import REACH_IN_SCALES, Panels, laplace_below, laplace_density

Answers = tuple[int, ...]
# Of one value between the two queries that it may belong to, where one noise scale is long against their distance.
_SLICES = 4


@dataclass(frozen=True)
class Scheme:
    """How a sparse vector technique adds its noise and when it stops.

    Attributes:
        threshold_scale: scale of the Laplace noise on the threshold.
        query_scale: scale of the Laplace noise on each query, 0 for none.
        cutoff: stop after this many answers "above"; None for never.
        threshold: the threshold T before noise.
        reset_scale: scale of the fresh threshold noise after an answer "above", 0 if the old noise is kept.
    """

    threshold_scale: float
    query_scale: float
    cutoff: int | None
    threshold: float = 1.0
    reset_scale: float = 0.0

    def panels(self, *queries: Sequence[float], panels_per_scale: float = 2.0) -> Panels:
        """Where the threshold's noise is evaluated, the same places for all the given queries."""
        scales = [scale for scale in (self.threshold_scale, self.query_scale, self.reset_scale) if scale > 0]
        kinks = [0.0, *(value - self.threshold for values in queries for value in values)]
        return Panels.between(kinks, min(scales), REACH_IN_SCALES * max(scales), panels_per_scale)


def answers_law(scheme: Scheme, left: Sequence[float], right: Sequence[float]) -> CellLaw:
    """The distributions of the sequence of answers (1 above, 0 below) on two sequences of query values."""
    tables = [answer_probabilities(scheme, queries) for queries in (left, right)]
    keys = sorted(tables[0].keys() | tables[1].keys())
    return discrete_law(*(np.array([table.get(key, 0.0) for key in keys]) for table in tables))


def answer_probabilities(scheme: Scheme, queries: Sequence[float]) -> dict[Answers, float]:
    """P(answers) for every possible sequence of answers, up to the stop."""
    panels = scheme.panels(queries)
    fresh = laplace_density(panels.nodes, scheme.threshold_scale) * panels.weights
    below = [_below(scheme, panels, query) for query in queries]
    # Not as the complement, so that small chances keep their digits.
    above = [laplace_below(query - scheme.threshold - panels.nodes, scheme.query_scale) for query in queries]
    table: dict[Answers, float] = {}
    # Each open prefix of answers carries its joint weight with the threshold's noise at every node.
    open_prefixes: list[tuple[Answers, Floats]] = [((), fresh)]
    while open_prefixes:
        prefix, weight = open_prefixes.pop()
        if len(prefix) == len(queries) or (scheme.cutoff is not None and sum(prefix) >= scheme.cutoff):
            table[prefix] = float(weight.sum())
            continue
        going_on = weight * above[len(prefix)]
        if scheme.reset_scale > 0:
            going_on = going_on.sum() * laplace_density(panels.nodes, scheme.reset_scale) * panels.weights
        open_prefixes += [((*prefix, 0), weight * below[len(prefix)]), ((*prefix, 1), going_on)]
    return table


def _below(scheme: Scheme, panels: Panels, query: float) -> Floats:
    """P(query + noise < T + threshold noise) at every node."""
    return laplace_below(scheme.threshold + panels.nodes - query, scheme.query_scale)


def first_above_law(scheme: Scheme, left: Sequence[float], right: Sequence[float], value_scale: float) -> CellLaw:
    """The distributions of (position of the first answer above, that query with *fresh* Laplace noise)."""
    one = Scheme(scheme.threshold_scale, scheme.query_scale, 1, scheme.threshold)
    positions = np.zeros((2, len(left) + 1))  # the last one: no answer above
    for side, queries in enumerate((left, right)):
        for answers, probability in answer_probabilities(one, queries).items():
            positions[side, answers.index(1) if 1 in answers else -1] = probability
    return CellLaw(positions[0], positions[1], np.append(np.abs(np.subtract(left, right)) / value_scale, 0.0))


def compared_value_law(scheme: Scheme, left: Sequence[float], right: Sequence[float]) -> CellLaw:
    """The distributions of (position of the first answer above, the *same* noisy value that was compared)."""
    panels = scheme.panels(left, right, panels_per_scale=20)
    return quadrature_law(*(_position_value_cells(scheme, panels, queries) for queries in (left, right)))


def _position_value_cells(scheme: Scheme, panels: Panels, queries: Sequence[float]) -> Floats:
    """Weights of (position, value) with the values T + nodes, then the weight of "none above"."""
    weight = laplace_density(panels.nodes, scheme.threshold_scale)
    cells = []
    for query in queries:
        # The value v is reported if the threshold's noise lies below v - T and all earlier answers were "below".
        reached = panels.running_integral(weight)
        values = (scheme.threshold + places - query for places in (panels.nodes, panels.edges))
        densities = [laplace_density(value, scheme.query_scale) for value in values]
        cells.append(quadrature_cells(panels, densities[0] * reached[0], densities[1] * reached[1]))
        weight = weight * _below(scheme, panels, query)
    return np.concatenate([*cells, [float((weight * panels.weights).sum())]])


def two_compared_values_law(scheme: Scheme, left: Sequence[float], right: Sequence[float]) -> CellLaw:
    """As `compared_value_law` with a cutoff of 2, numerically: the greater of two values only by slices.

    Given the lesser value w, which says all about the threshold, a greater one reveals its query by a ratio that varies
    between the two queries only; a few slices there lose nothing that counts.
    """
    # Two noise scales per panel: exact to nine digits, and a quarter of the cells.
    law = ComparedValuesLaw(scheme, (left, right), scheme.panels(left, right, panels_per_scale=0.5))
    sides: tuple[list[Floats], list[Floats]] = ([], [])
    for answers in _sequences(scheme, len(left)):
        above = [position for position, answer in enumerate(answers) if answer]
        for side, cells in enumerate(sides):
            reached, at_edges = law.reached(answers, side)
            if not above:
                cells.append(at_edges[-1:])
            for least in above:
                density = np.exp(law.log_density(law.panels.nodes, least, side)) * law.panels.weights
                rest = [_beyond(law, place, side) for place in above if place != least]
                cells.append((reached * density * (rest[0] if rest else 1.0)).ravel())
    return quadrature_law(*(np.concatenate(cells) for cells in sides))


def _beyond(law: "ComparedValuesLaw", position: int, side: int) -> Floats:
    """P(one query's noisy value lies beyond w, in each slice) at every node w; shape (slices, k, m)."""
    centres = sorted({float(queries[position]) for queries in law.queries})
    cuts = np.concatenate([[-np.inf], np.linspace(centres[0], centres[-1], _SLICES + 1), [np.inf]])
    low = np.maximum(law.scheme.threshold + law.panels.nodes, cuts[:-1, None, None])
    beyond, further = (
        laplace_below(law.queries[side][position] - places, law.scheme.query_scale)
        for places in (low, np.maximum(low, cuts[1:, None, None]))
    )
    return beyond - further


@dataclass(frozen=True, eq=False)
class ComparedValuesLaw(PairLaw):
    """The distributions on two sequences of queries; delta is not known.

    Attributes:
        scheme: the noises and the threshold.
        queries: those of the left and of the right dataset.
        panels: where w is evaluated.
    """

    scheme: Scheme
    queries: tuple[Sequence[float], Sequence[float]]
    panels: Panels

    @classmethod
    def on(cls, scheme: Scheme, left: Sequence[float], right: Sequence[float]) -> "ComparedValuesLaw":
        """The distributions on two sequences of query values."""
        return cls(scheme, (left, right), scheme.panels(left, right))

    def pure_epsilon(self) -> float:
        """See `PairLaw`."""
        return max(self._greatest_loss(answers) for answers in _sequences(self.scheme, len(self.queries[0])))

    def renyi(self, order: float) -> float:
        """See `PairLaw`; order 1 as the limit from above."""
        if math.isinf(order):
            return self.pure_epsilon()
        order, sequences = max(order, 1 + 1e-6), list(_sequences(self.scheme, len(self.queries[0])))
        totals = [
            np.logaddexp.reduce([self._log_power_integral(answers, direction, order) for answers in sequences])
            for direction in (0, 1)
        ]
        return max(0.0, float(max(totals)) / (order - 1))

    def rho(self) -> float | None:
        """Not computed: a supremum over all orders takes minutes."""
        return None

    def reached(self, answers: Answers, side: int) -> tuple[Floats, Floats]:
        """G at the nodes and at the edges."""
        weight = laplace_density(self.panels.nodes, self.scheme.threshold_scale)
        for query, answer in zip(self.queries[side], answers, strict=False):
            if not answer:
                weight = weight * _below(self.scheme, self.panels, query)
        return self.panels.running_integral(weight)

    def log_density(self, places: Floats, position: int, side: int) -> Floats:
        """log f of one query's value T + w, at the places w."""
        query, scale = self.queries[side][position], self.scheme.query_scale
        return np.asarray(-np.abs(self.scheme.threshold + places - query) / scale - math.log(2 * scale))

    def _greatest_loss(self, answers: Answers) -> float:
        """The greatest |log ratio| over all values, for one sequence of answers; all its kinks are edges."""
        left, right = (self.reached(answers, side)[1] for side in (0, 1))
        above = [position for position, answer in enumerate(answers) if answer]
        if not above:
            return abs(math.log(left[-1] / right[-1]))
        possible = np.minimum(left, right) > 0
        reached, edges = np.log(left[possible]) - np.log(right[possible]), self.panels.edges[possible]
        values = [self.log_density(edges, place, 0) - self.log_density(edges, place, 1) for place in above]
        return max(_greatest_sum(sign * reached, [sign * value for value in values]) for sign in (1, -1))

    def _log_power_integral(self, answers: Answers, side: int, order: float) -> float:
        """The logarithm of the integral of P^order·Q^(1 - order), P the given side, for one sequence of answers."""
        with np.errstate(divide="ignore"):
            own, other = (np.log(self.reached(answers, each)[0]) for each in (side, 1 - side))
        reached = np.where(np.isfinite(own) & np.isfinite(other), order * own + (1 - order) * other, -np.inf)
        if not any(answers):
            return float(reached[-1, -1])
        # -d/dw of the chance that every value lies beyond w, where "chance" is by density^order·density^(1 - order);
        # every factor is kept below 1, and the logarithms of their sizes separate.
        size, beyond, falling = reached.max(), np.ones_like(reached), np.zeros_like(reached)
        for place in (position for position, answer in enumerate(answers) if answer):
            own_value, other_value = (self.log_density(self.panels.nodes, place, each) for each in (side, 1 - side))
            powers = order * own_value + (1 - order) * other_value
            size += powers.max()
            density = np.exp(powers - powers.max())
            upto, at_edges = self.panels.running_integral(density)
            rest = np.maximum(at_edges[-1] - upto, 0.0)
            beyond, falling = beyond * rest, falling * rest + density * beyond
        return float(size + np.log((np.exp(reached - reached.max()) * falling * self.panels.weights).sum()))


def _greatest_sum(reached: Floats, values: list[Floats]) -> float:
    """The greatest reached(w) + Σ value(v) over values v >= w of which one is w itself."""
    later = [np.maximum.accumulate(value[::-1])[::-1] for value in values]
    together = sum(later, np.zeros_like(reached))
    return max(float((reached + together - most + value).max()) for value, most in zip(values, later, strict=True))


def _sequences(scheme: Scheme, length: int) -> Iterator[Answers]:
    """Every possible sequence of answers, up to the stop."""
    open_prefixes: list[Answers] = [()]
    while open_prefixes:
        prefix = open_prefixes.pop()
        if len(prefix) == length or (scheme.cutoff is not None and sum(prefix) >= scheme.cutoff):
            yield prefix
        else:
            open_prefixes += [(*prefix, 0), (*prefix, 1)]
