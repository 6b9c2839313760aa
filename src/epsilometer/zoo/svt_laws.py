"""The exact output laws of the sparse vector techniques, by integration over the noisy threshold.

Given the threshold's noise all answers are independent, so the probability of a sequence of answers is one integral
over that noise; between the breakpoints 0 and q_i - T its integrand is analytic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.zoo.laws import CellLaw, discrete_law, quadrature_cells, quadrature_law
from epsilometer.zoo.numerics import REACH_IN_SCALES, FloatArray, Panels, laplace_below, laplace_density

Answers = tuple[int, ...]


@dataclass(frozen=True)
class Scheme:
    """How a sparse vector technique adds its noise and when it stops.

    Attributes:
        threshold_scale: scale of the Laplace noise on the threshold.
        query_scale: scale of the Laplace noise on each query, 0 for none.
        cutoff: stop after so many answers "above"; None for never.
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
    """The law of the sequence of answers (1 above, 0 below) on two sequences of query values."""
    tables = [answer_probabilities(scheme, queries) for queries in (left, right)]
    keys = sorted(tables[0].keys() | tables[1].keys())
    probabilities = [np.array([table.get(key, 0.0) for key in keys]) for table in tables]
    return discrete_law(*probabilities)


def answer_probabilities(scheme: Scheme, queries: Sequence[float]) -> dict[Answers, float]:
    """P(answers) for every possible sequence of answers, up to the stop."""
    panels = scheme.panels(queries)
    fresh = [laplace_density(panels.nodes, scale) * panels.weights for scale in _threshold_scales(scheme)]
    below = [_below(scheme, panels, query) for query in queries]
    above = [_above(scheme, panels, query) for query in queries]
    table: dict[Answers, float] = {}
    # Each open prefix of answers carries its joint weight with the threshold's noise at every node.
    open_prefixes: list[tuple[Answers, FloatArray]] = [((), fresh[0])]
    while open_prefixes:
        prefix, weight = open_prefixes.pop()
        if len(prefix) == len(queries) or (scheme.cutoff is not None and sum(prefix) >= scheme.cutoff):
            table[prefix] = float(weight.sum())
            continue
        going_on = weight * above[len(prefix)]
        if scheme.reset_scale > 0:
            going_on = going_on.sum() * fresh[1]
        open_prefixes += [((*prefix, 0), weight * below[len(prefix)]), ((*prefix, 1), going_on)]
    return table


def _threshold_scales(scheme: Scheme) -> list[float]:
    return [scheme.threshold_scale] + ([scheme.reset_scale] if scheme.reset_scale > 0 else [])


def _below(scheme: Scheme, panels: Panels, query: float) -> FloatArray:
    """P(query + noise < T + threshold noise) at every node."""
    return laplace_below(scheme.threshold + panels.nodes - query, scheme.query_scale)


def _above(scheme: Scheme, panels: Panels, query: float) -> FloatArray:
    """The rest of `_below`, on its own so that small chances keep their digits."""
    return laplace_below(query - scheme.threshold - panels.nodes, scheme.query_scale)


def first_above_law(scheme: Scheme, left: Sequence[float], right: Sequence[float], value_scale: float) -> CellLaw:
    """The law of (position of the first answer above, that query with *fresh* Laplace noise)."""
    one = Scheme(scheme.threshold_scale, scheme.query_scale, 1, scheme.threshold)
    positions = [_by_position(answer_probabilities(one, queries)) for queries in (left, right)]
    shifts = np.abs(np.asarray(left, dtype=float) - np.asarray(right, dtype=float)) / value_scale
    return CellLaw(positions[0], positions[1], np.append(shifts, 0.0))


def _by_position(table: dict[Answers, float]) -> FloatArray:
    length = max(len(key) for key in table)
    probabilities = np.zeros(length + 1)
    for key, probability in table.items():
        probabilities[key.index(1) if 1 in key else length] = probability
    return probabilities


def compared_value_law(scheme: Scheme, left: Sequence[float], right: Sequence[float]) -> CellLaw:
    """The law of (position of the first answer above, the *same* noisy value that was compared)."""
    panels = scheme.panels(left, right, panels_per_scale=20)
    return quadrature_law(*(_position_value_cells(scheme, panels, queries) for queries in (left, right)))


def _position_value_cells(scheme: Scheme, panels: Panels, queries: Sequence[float]) -> FloatArray:
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
