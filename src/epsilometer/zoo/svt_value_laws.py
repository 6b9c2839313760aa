"""The exact law of a sparse vector technique that releases several of the values it compared.

Given the threshold's noise z, answers are independent. A sequence of answers with released values v has the density
G(w)·Π f(v - q), where w = min v - T, f is the density of a query's noise, and G(w) the integral over z <= w of the
density of z times the chances of the answers "below": values and threshold meet only in the least value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.zoo.laws import PairLaw
from epsilometer.zoo.numerics import FloatArray, Panels, laplace_below, laplace_density
from epsilometer.zoo.svt_laws import Answers, Scheme


@dataclass(frozen=True, eq=False)
class ComparedValuesLaw(PairLaw):
    """The law on two sequences of queries; delta is not known.

    Attributes:
        scheme: the noises and the threshold.
        queries: those of the left and of the right dataset.
        panels: where w is evaluated.
    """

    scheme: Scheme
    queries: tuple[Sequence[float], Sequence[float]]
    panels: Panels

    @classmethod
    def on(cls, scheme: Scheme, left: Sequence[float], right: Sequence[float]) -> ComparedValuesLaw:
        """The law on two sequences of query values."""
        return cls(scheme, (left, right), scheme.panels(left, right))

    def pure_epsilon(self) -> float:
        """See `PairLaw`."""
        return max(self._greatest_loss(answers) for answers in _sequences(self.scheme, len(self.queries[0])))

    def delta(self, epsilon: float) -> float | None:
        """Not known."""
        return None

    def renyi(self, order: float) -> float:
        """See `PairLaw`; order 1 as the limit from above."""
        if math.isinf(order):
            return self.pure_epsilon()
        order = max(order, 1 + 1e-6)
        sequences = list(_sequences(self.scheme, len(self.queries[0])))
        totals = [
            np.logaddexp.reduce([self._log_power_integral(answers, direction, order) for answers in sequences])
            for direction in (0, 1)
        ]
        return max(0.0, float(max(totals)) / (order - 1))

    def rho(self) -> float | None:
        """Not computed: a supremum over all orders takes minutes."""
        return None

    def _reached(self, answers: Answers, side: int) -> tuple[FloatArray, FloatArray]:
        """G at the nodes and at the edges."""
        weight = laplace_density(self.panels.nodes, self.scheme.threshold_scale)
        for query, answer in zip(self.queries[side], answers, strict=False):
            if not answer:
                weight = weight * laplace_below(
                    self.scheme.threshold + self.panels.nodes - query, self.scheme.query_scale
                )
        return self.panels.running_integral(weight)

    def _log_density(self, places: FloatArray, position: int, side: int) -> FloatArray:
        """log f of one query's value T + w, at the places w."""
        query, scale = self.queries[side][position], self.scheme.query_scale
        result: FloatArray = -np.abs(self.scheme.threshold + places - query) / scale - math.log(2 * scale)
        return result

    def _greatest_loss(self, answers: Answers) -> float:
        """The greatest |log ratio| over all values, for one sequence of answers; all its kinks are edges."""
        left, right = (self._reached(answers, side)[1] for side in (0, 1))
        above = [position for position, answer in enumerate(answers) if answer]
        if not above:
            return abs(math.log(left[-1] / right[-1]))
        possible = np.minimum(left, right) > 0
        reached, edges = np.log(left[possible]) - np.log(right[possible]), self.panels.edges[possible]
        values = [self._log_density(edges, place, 0) - self._log_density(edges, place, 1) for place in above]
        return max(_greatest_sum(sign * reached, [sign * value for value in values]) for sign in (1, -1))

    def _log_power_integral(self, answers: Answers, side: int, order: float) -> float:
        """The logarithm of the integral of P^order·Q^(1 - order), P the given side, for one sequence of answers."""
        with np.errstate(divide="ignore"):
            own, other = (np.log(self._reached(answers, each)[0]) for each in (side, 1 - side))
        reached = np.where(np.isfinite(own) & np.isfinite(other), order * own + (1 - order) * other, -np.inf)
        if not any(answers):
            return float(reached[-1, -1])
        # -d/dw of the chance that every value lies beyond w, where "chance" is by density^order·density^(1 - order);
        # every factor is kept below 1, and the logarithms of their sizes apart.
        size = reached.max()
        beyond, falling = np.ones_like(reached), np.zeros_like(reached)
        for place in (position for position, answer in enumerate(answers) if answer):
            own_value, other_value = (self._log_density(self.panels.nodes, place, each) for each in (side, 1 - side))
            powers = order * own_value + (1 - order) * other_value
            size += powers.max()
            density = np.exp(powers - powers.max())
            upto, at_edges = self.panels.running_integral(density)
            rest = np.maximum(at_edges[-1] - upto, 0.0)
            beyond, falling = beyond * rest, falling * rest + density * beyond
        total = (np.exp(reached - reached.max()) * falling * self.panels.weights).sum()
        return float(size + np.log(total))


def _greatest_sum(reached: FloatArray, values: list[FloatArray]) -> float:
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
