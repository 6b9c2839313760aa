"""The network of the variational form: dense layers with a bounded output, trained and evaluated alike."""

import math

import numpy as np
import pytest

from epsilometer.methods.published.auditorium.network import _evaluate, network_fit
from epsilometer.outputs import read_outputs


def literal(score, point):
    """One point through dense layers with tanh between them, squashed into ±C; no matrices."""
    values = list(point)
    for number, (weights, biases) in enumerate(zip(score.weights, score.biases, strict=True)):
        sums = [
            sum(values[row] * weights[row, unit] for row in range(len(values))) + biases[unit]
            for unit in range(len(biases))
        ]
        is_last = number == len(score.weights) - 1
        values = sums if is_last else [math.tanh(total) for total in sums]
    return score.bound * math.tanh(values[0] / score.bound)


@pytest.mark.paper("C10", "equal")
def test_the_network_is_dense_layers_with_a_bounded_output(rng):
    jax = pytest.importorskip("jax")
    bound = 0.8
    fit = network_fit(2.0, bound, (5, 4), 30, rng)
    (left,), (right,) = (
        read_outputs(rng.normal(shift, 1.0, size=(600, 2))).blocks for shift in (0.0, 2.0)
    )
    score = fit(left, right, range(2))
    assert [layer.shape[1] for layer in score.weights] == [5, 4, 1]
    points = score.embedding.points(left.columns)[:20]
    ours = score.of_points(points)
    assert ours == pytest.approx([literal(score, point) for point in points])
    layers = list(zip(score.weights, score.biases, strict=True))
    from epsilometer.methods.published.auditorium.network import Layer

    trained = _evaluate(jax, [Layer(*layer) for layer in layers], points, bound)
    assert ours == pytest.approx(np.asarray(trained), abs=1e-4)
    assert np.abs(score.of_points(1e3 * points)).max() <= bound
