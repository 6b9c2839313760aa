"""The published error of the variational estimate."""

import math

import pytest

from epsilometer.methods.published.auditorium.variational_error import published_error


@pytest.mark.paper("C6", "corrected")
def test_the_published_error():
    """Corollary 4.4 at α = 2, C = .5, n = 10⁵, β = .05."""
    eta = math.sqrt(max(3 * math.exp(1.0), 2 * math.exp(1.0)) * math.log(40) / 1e5)
    assert published_error(2.0, 0.5, 100_000, 0.05) == pytest.approx(
        math.log((1 + eta) / (1 - eta))
    )
    assert published_error(2.0, 50.0, 100_000, 0.05) == math.inf
    assert published_error(2.0, 1e6, 1, 0.05) == math.inf
