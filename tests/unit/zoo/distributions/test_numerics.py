"""Quadrature, roots and maxima."""

import math

import numpy as np
import pytest

from epsilometer.zoo.distributions.numerics import Panels, laplace_below, laplace_density, maximise


def test_panels_integrate_a_density_with_a_kink_to_one():
    panels = Panels.between([0.0], scale=2.0, reach=90.0)
    assert (laplace_density(panels.nodes, 2.0) * panels.weights).sum() == pytest.approx(
        1.0, abs=1e-14
    )


def test_breakpoints_are_edges_and_nodes_lie_between():
    panels = Panels.between([1.0, 0.0, 1.0], scale=1.0, reach=3.0)
    assert {0.0, 1.0, -3.0, 4.0} <= set(panels.edges.tolist())
    assert np.all(np.diff(panels.nodes.ravel()) > 0)


def test_running_integral_is_the_distribution_function():
    panels = Panels.between([0.0], scale=1.0, reach=45.0)
    at_nodes, at_edges = panels.running_integral(laplace_density(panels.nodes, 1.0))
    assert at_nodes == pytest.approx(laplace_below(panels.nodes, 1.0), abs=1e-13)
    assert at_edges == pytest.approx(laplace_below(panels.edges, 1.0), abs=1e-13)


def test_laplace_below_without_noise_is_a_step():
    assert laplace_below(np.array([-1.0, 0.0, 1.0]), 0.0).tolist() == [0.0, 1.0, 1.0]


def test_laplace_below_keeps_its_relative_accuracy_in_the_tail():
    assert laplace_below(np.array([-600.0]), 1.0)[0] == pytest.approx(math.exp(-600) / 2, rel=1e-12)


def test_maximise_finds_an_inner_and_a_boundary_maximum():
    assert maximise(lambda x: -((x - 0.777) ** 2), 0.0, 1.0) == pytest.approx(0.0, abs=1e-12)
    assert maximise(lambda x: x, 0.0, 1.0) == 1.0


def test_panels_around_centres_see_peaks_of_any_width():
    """Cauchy peaks of widths 1e-7 and 100: half of each lies within its width."""
    panels = Panels.around((0.0, 3.0), 1e-12, 1e14)
    assert (np.diff(panels.edges) > 0).all()
    assert {0.0, 3.0} <= set(panels.edges.tolist())
    for centre, width in ((0.0, 1e-7), (3.0, 1e-7), (0.0, 100.0), (3.0, 100.0)):
        density = width / (math.pi * (width**2 + (panels.nodes - centre) ** 2))
        inside = np.abs(panels.nodes - centre) < 1e9
        assert float((density * panels.weights)[inside].sum()) == pytest.approx(1.0, abs=1e-6)
