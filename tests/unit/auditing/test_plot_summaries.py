"""Pictures of outputs: those that are hard to draw, and drawing that fails, cost no verdict."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.report.html import render_html


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param(
            lambda rng: 1.7e18 + rng.laplace(0, 500, 4000), id="few floats between the ends"
        ),
        pytest.param(lambda rng: 1e300 * rng.standard_cauchy(4000), id="a range beyond the floats"),
        pytest.param(lambda rng: 5e-324 * rng.integers(0, 50, 4000), id="subnormal"),
        pytest.param(
            lambda rng: np.where(rng.random(4000) < 0.5, np.inf, rng.normal(size=4000)),
            id="infinities",
        ),
        pytest.param(lambda rng: np.full(4000, np.nan), id="nothing but NaN"),
        pytest.param(
            lambda rng: 1.0 + np.finfo(float).eps * rng.integers(0, 40, 4000),
            id="neighbouring floats",
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_outputs_that_are_hard_to_draw_get_their_verdict_and_their_report(outputs):
    with np.errstate(over="ignore"):
        left, right = (outputs(np.random.default_rng(side)) for side in (0, 1))
    result = em.compare(left, right, em.PureDP(1.0), seed=0)
    assert result.verdict is not None
    assert "<html" in render_html(result)


def test_a_picture_that_fails_does_not_take_the_answer_with_it(monkeypatch):
    def fails(*_):
        raise ValueError("no picture of this")

    monkeypatch.setattr("epsilometer.auditing.judge.binned_densities", fails)
    counts = np.arange(100)
    assert em.compare(counts, counts + 1000, em.PureDP(1.0), seed=0).verdict is not None
