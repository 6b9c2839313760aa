"""The picture of a loss function, for any audit with one-dimensional outputs."""

import json

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.plot_summaries import BINS, binned_densities
from epsilometer.outputs import read_outputs
from epsilometer.report.loss_panel import loss_panel


def densities(left, right):
    return binned_densities(read_outputs(left), read_outputs(right))


def test_continuous_outputs_are_binned():
    data = densities(np.linspace(0, 1, 5001) ** 2, np.linspace(0, 2, 4001) ** 2)
    assert data["atoms"] == []
    assert len(data["left"]) == len(data["right"]) == BINS
    assert sum(data["left"]) >= 0.99 * 5001
    assert len(json.dumps(data)) < 3000


def test_outcomes_are_counted():
    data = densities([1, 2, 2, 3] * 10, [1, 1, 2, 3] * 10)
    assert (data["atoms"], data["left_atoms"], data["right_atoms"]) == (
        [1, 2, 3],
        [10, 20, 10],
        [20, 10, 10],
    )
    assert densities(["b", "a"], ["a", "a"])["n"] == [2, 2]


def test_mixed_outputs_have_both():
    values = np.concatenate([np.zeros(100), np.linspace(0.01, 1, 901) ** 2])
    data = densities(values, values)
    assert data["atoms"] == [0.0]
    assert "low" in data


def test_several_dimensions_have_none():
    assert densities(np.zeros((10, 2)), np.ones((10, 2))) is None
    assert densities([1.0, None], [1.0, None]) is None


@pytest.mark.parametrize("name", ["laplace", "clamped_laplace", "randomized_response", "geometric"])
@pytest.mark.parametrize("method", ["events", "local"])
def test_every_audit_of_numbers_can_draw_its_loss(name, method):
    if (name, method) == ("clamped_laplace", "local"):
        pytest.skip("a mixed law")
    # Refuted: what else could have been refuted takes a second to find out.
    result = em.audit(em.zoo.find(name), claim="eps=.5", samples=20_000, seed=0, method=method)
    panel = loss_panel(result)
    assert panel.mark.estimate == pytest.approx(1.0, abs=0.5)
    assert len(result.plot_loss().axes) >= 2
    assert "Loss function" in _html(result)
    assert em.AuditResult.from_json(result.to_json()).plot_loss()


def test_recorded_samples_can_draw_it_too(rng):
    result = em.compare(rng.laplace(0, 1, 2000), rng.laplace(1, 1, 2000), em.PureDP, seed=0)
    assert len(loss_panel(result).curve.points) == BINS


def test_vectors_cannot():
    result = em.measure(em.zoo.laplace_vector(1.0, 2), None, em.PureDP, samples=2000, seed=0)
    assert loss_panel(result) is None
    with pytest.raises(em.InputError, match="single numbers"):
        result.plot_loss()


def _html(result):
    from epsilometer.report.html import render_html

    return render_html(result)
