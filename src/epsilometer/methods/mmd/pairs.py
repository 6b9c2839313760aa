"""The published estimate of the squared discrepancy, on disjoint pairs of draws, so that its terms are independent.

Reference: DP-Auditorium, Algorithm 7; Gretton, Borgwardt, Rasch, Schölkopf and Smola (2012), Section 6, for the form
with disjoint pairs. The corrections: the square root covers the variance alone, and the variance is the unbiased one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds.bernstein import bernstein_lower
from epsilometer.methods.mmd.kernel_space import Shape
from epsilometer.outputs import Outputs

Floats = NDArray[np.float64]

# So far apart in units of the bandwidth the kernel of two outputs of different shape is exactly 0.
_APART = 100.0


@dataclass(frozen=True, slots=True)
class Points:
    """Draws of one side as points; those of two chunks are joined with +.

    Attributes:
        rows: shape (n, dimensions).
    """

    rows: Floats

    def __add__(self, other: Points) -> Points:
        return Points(np.concatenate([self.rows, other.rows]))


def points_of(outputs: Outputs, shapes: list[Shape]) -> Points:
    """Outputs as points in bandwidths; the first coordinate keeps shapes apart, all unknown shapes are one point."""
    size = max((shape.embedding.dimensions for shape in shapes if shape.embedding), default=0)
    points = np.zeros((len(outputs), 1 + size))
    known = {shape.shape: (number + 1, shape) for number, shape in enumerate(shapes)}
    for block in outputs:
        if block.shape not in known:
            continue
        number, shape = known[block.shape]
        rows = slice(None) if block.rows is None else block.rows
        points[rows, 0] = _APART * number
        if shape.embedding is not None:
            inside = shape.embedding.points(block.columns) / shape.bandwidth
            points[rows, 1 : 1 + inside.shape[1]] = inside
    return Points(points)


def pair_terms(left: Floats, right: Floats) -> Floats:
    """k(x, x') + k(y, y') − k(x, y') − k(x', y) of disjoint pairs: mean MMD², between −2 and 2, shape (pairs,)."""
    n = min(len(left), len(right)) // 2
    x, other_x = left[: 2 * n : 2], left[1 : 2 * n : 2]
    y, other_y = right[: 2 * n : 2], right[1 : 2 * n : 2]
    return _kernel(x, other_x) + _kernel(y, other_y) - _kernel(x, other_y) - _kernel(other_x, y)


def squared_lower(left: Floats, right: Floats, failure_probability: float) -> float:
    """A lower bound on MMD², by the empirical Bernstein bound.

    Guarantee: exact, if the embedding and the bandwidth were fixed before the draws.
    """
    return bernstein_lower(pair_terms(left, right), -2.0, 2.0, failure_probability)


def predicted_squared(left: Floats, right: Floats, n_fresh: int, failure_probability: float) -> float:
    """The bound to expect of so many fresh draws, from the terms of training draws."""
    terms = pair_terms(left, right)
    if len(terms) < 2:
        return -2.0
    pairs, needed = max(n_fresh // 2, 2), math.log(2.0 / failure_probability)
    return float(
        terms.mean()
        - terms.std() * (math.sqrt(2.0 * needed / pairs) + 1.0 / math.sqrt(len(terms)))
        - 10.0 * needed / pairs
    )


def _kernel(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * ((one - other) ** 2).sum(axis=1)), dtype=np.float64)
