"""Numerical tools of the zoo: quadrature in panels, a maximum on an interval, Laplace noise."""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from epsilometer.arrays import Floats

# Laplace tails beyond 45 scales weigh e^-45 = 3e-20: below rounding.
REACH_IN_SCALES = 45.0
# The rule of a panel is then exact for polynomials of degree 23.
NODES_PER_PANEL = 12
# `maximise` looks at this many points first,
_FIRST_GRID = 101
# at this many between the neighbours of the best one afterwards,
_ZOOM_GRID = 21
# and does so as often as this; each zoom narrows the bracket by 10.
_N_GRIDS = 6


@dataclass(frozen=True, eq=False)
class Panels:
    """Gauss-Legendre nodes on panels between breakpoints, where the integrands are analytic.

    Attributes:
        nodes: shape (k, m), m nodes on each of k neighbouring panels, increasing.
        weights: shape (k, m).
        edges: shape (k + 1,), where the panels meet; the breakpoints are among them.
    """

    nodes: Floats
    weights: Floats
    edges: Floats

    @staticmethod
    def between(
        breakpoints: Iterable[float], scale: float, reach: float, panels_per_scale: float = 2.0
    ) -> "Panels":
        """Covers the line from `reach` below the first to `reach` above the last breakpoint.

        Args:
            breakpoints: where an integrand has a kink or a jump.
            scale: the shortest length on which an integrand changes by a factor e.
            reach: how far beyond the breakpoints anything still counts.
            panels_per_scale: panels per `scale`; more of them where the integral itself has a kink.
        """
        inner = sorted(set(breakpoints))
        corners = [inner[0] - reach, *inner, inner[-1] + reach]
        edges = [np.array([corners[0]])]
        for low, high in itertools.pairwise(corners):
            n_panels = max(1, math.ceil((high - low) / scale * panels_per_scale))
            edges.append(np.linspace(low, high, n_panels + 1)[1:])
        return Panels.on(np.concatenate(edges))

    @staticmethod
    def around(
        centres: Iterable[float], nearest: float, farthest: float, panels_per_doubling: int = 4
    ) -> "Panels":
        """Covers the line with panels that grow with their distance from the centres.

        Args:
            centres: where an integrand has a kink, a jump or a narrow peak.
            nearest: the width of the panels next to a centre.
            farthest: how far from the centres anything still counts.
            panels_per_doubling: panels for each doubling of the distance.
        """
        count = panels_per_doubling * math.ceil(math.log2(farthest / nearest)) + 1
        distances = np.concatenate([[0.0], np.geomspace(nearest, farthest, count)])
        edges = []
        for centre in centres:
            edges.append(centre + distances)
            edges.append(centre - distances)
        return Panels.on(np.unique(edges))

    @staticmethod
    def on(edges: Floats) -> "Panels":
        """Returns panels between neighbouring edges, shape (k + 1,), increasing."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES_PER_PANEL)
        half_width = np.diff(edges)[:, None] / 2
        middle = (edges[:-1] + edges[1:])[:, None] / 2
        return Panels(nodes=middle + half_width * nodes, weights=half_width * weights, edges=edges)

    def running_integral(self, values: Floats) -> tuple[Floats, Floats]:
        """Returns the integral from the left end to every node and to every edge.

        Args:
            values: shape (k, m), the integrand at the nodes.

        Returns:
            Shapes (k, m) and (k + 1,).
        """
        weighted = values * self.weights
        at_edges = np.concatenate([[0.0], np.cumsum(weighted.sum(axis=1))])
        at_nodes = at_edges[:-1, None] + weighted @ _integration_matrix().T
        return at_nodes, at_edges


@cache
def _integration_matrix() -> Floats:
    """Returns the matrix that turns weighted values into integrals from -1, shape (m, m).

    The values are those at the nodes of [-1, 1], times their weights; the integrals end at each of
    the nodes.
    """
    nodes, _ = np.polynomial.legendre.leggauss(NODES_PER_PANEL)
    degrees = np.arange(NODES_PER_PANEL)
    basis = np.polynomial.legendre.legvander(nodes, NODES_PER_PANEL)
    integrals = np.empty((NODES_PER_PANEL, NODES_PER_PANEL))
    integrals[:, 0] = nodes + 1
    integrals[:, 1:] = (basis[:, 2:] - basis[:, :-2]) / (2 * degrees[1:] + 1)
    # The coefficient of the polynomial P_k is (2k + 1)/2 times the weighted sum of values * P_k.
    return np.asarray((integrals * (2 * degrees + 1) / 2) @ basis[:, :-1].T)


def maximise(function: Callable[[float], float], low: float, high: float) -> float:
    """Returns the greatest value of a function on [low, high].

    It looks at a coarse grid, then zooms in on its best point.
    """
    points = np.linspace(low, high, _FIRST_GRID)
    greatest = -math.inf
    for _ in range(_N_GRIDS):
        values = [function(float(point)) for point in points]
        greatest = max(greatest, *values)
        peak = int(np.argmax(values))
        before = points[max(peak - 1, 0)]
        after = points[min(peak + 1, len(points) - 1)]
        points = np.linspace(before, after, _ZOOM_GRID)
    return greatest


def laplace_density(x: Floats, scale: float) -> Floats:
    """Returns the density of Laplace noise of the given scale at x."""
    return np.asarray(np.exp(-np.abs(x) / scale) / (2 * scale))


def laplace_below(x: Floats, scale: float) -> Floats:
    """Returns P(noise <= x) for Laplace noise; for scale 0 the noise is 0.

    It is accurate in the left tail.
    """
    if scale == 0:
        return (x >= 0).astype(np.float64)
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(x < 0, tail, 1 - tail)
