"""h by a small neural network, trained on the variational form itself. Needs the extra `neural` (jax and optax).

The optimum of both directions is the same log-ratio, up to its sign: one network is trained on the
sum of both.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, cast

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import MissingExtraError
from epsilometer.methods.events.learning import FitScore
from epsilometer.methods.published.auditorium.kernel_space import fit_embedding
from epsilometer.outputs import Block
from epsilometer.outputs.scores import NetworkScore

# Draws per side and step: enough for a usable mean of exponentials.
_BATCH = 512
_RATE = 1e-2
# Rows per side that train; a step sees only a batch, so more would only cost memory.
_MOST_ROWS = 100_000
# Share of the steps that first minimise the logistic loss: far from the optimum, exponentials of
# large h say little.
_WARM_SHARE = 0.5


def network_fit(
    order: float, bound: float, units: Sequence[int], steps: int, rng: np.random.Generator
) -> FitScore:
    """Trains a network for outputs of one shape.

    Args:
        rng: of the first weights.
    """
    _import_jax()

    def fit(left: Block, right: Block, columns: Sequence[int]) -> NetworkScore:
        embedding = fit_embedding(left, right, columns)
        first = slice(0, _MOST_ROWS)
        points = [
            embedding.points([column.take(first) for column in block.columns])
            for block in (left, right)
        ]
        first_layers = _first_layers(points[0].shape[1], tuple(units), rng)
        layers = _train(points[0], points[1], order, bound, first_layers, steps)
        weights, biases = zip(*layers, strict=True)
        return NetworkScore(embedding, tuple(weights), tuple(biases), bound)

    return fit


def _import_jax() -> tuple[Any, Any]:
    try:
        import jax
        import optax
    except ImportError as error:
        raise MissingExtraError(
            "jax with optax", "neural", "a network as variational function"
        ) from error
    return jax, optax


def _train(
    left: Floats,
    right: Floats,
    order: float,
    bound: float,
    first_layers: list[tuple[Any, Any]],
    steps: int,
) -> list[tuple[Floats, Floats]]:
    """Adam on batches; the same draws and first weights give the same weights."""
    # At least one batch.
    sides = [
        np.tile(side, (-(-_BATCH // len(side)), 1)) if len(side) < _BATCH else side
        for side in (left, right)
    ]
    layers = _trainer(order, bound, steps)(first_layers, *sides)
    return [
        (np.asarray(weights, dtype=np.float64), np.asarray(biases, dtype=np.float64))
        for weights, biases in layers
    ]


@cache
def _trainer(order: float, bound: float, steps: int) -> Callable[..., Any]:
    """Compiled once for draws of one size, which takes longer than to train."""
    jax, optax = _import_jax()
    optimiser = optax.adam(optax.cosine_decay_schedule(_RATE, steps))
    warm = int(_WARM_SHARE * steps)

    def loss(layers: Any, x: Any, y: Any, step: Any) -> Any:
        at_x, at_y = (_apply(jax, layers, side, bound) for side in (x, y))
        both = _divergence(jax, at_x, at_y, order) + _divergence(jax, -at_y, -at_x, order)
        logistic = jax.nn.softplus(-at_x).mean() + jax.nn.softplus(at_y).mean()
        return jax.numpy.where(step < warm, logistic, -both)

    def train(first: Any, *sides: Any) -> Any:
        def advance(step: Any, state: Any) -> Any:
            layers, memory = state
            starts = [(step * _BATCH) % (len(side) - _BATCH + 1) for side in sides]
            x, y = (
                jax.lax.dynamic_slice_in_dim(*each, _BATCH)
                for each in zip(sides, starts, strict=True)
            )
            change, memory = optimiser.update(jax.grad(loss)(layers, x, y, step), memory)
            return optax.apply_updates(layers, change), memory

        return jax.lax.fori_loop(0, steps, advance, (first, optimiser.init(first)))[0]

    return cast(Callable[..., Any], jax.jit(train))


def _first_layers(
    inputs: int, units: tuple[int, ...], rng: np.random.Generator
) -> list[tuple[Any, Any]]:
    """Random weights of the usual size; by NumPy, because jax would compile its generator."""
    return [
        (
            (rng.normal(size=(below, above)) / np.sqrt(below)).astype(np.float32),
            np.zeros(above, dtype=np.float32),
        )
        for below, above in pairwise([inputs, *units, 1])
    ]


def _apply(jax: Any, layers: Any, points: Any, bound: float) -> Any:
    """The same as `NetworkScore`, in jax."""
    for weights, biases in layers[:-1]:
        points = jax.numpy.tanh(points @ weights + biases)
    return bound * jax.numpy.tanh((points @ layers[-1][0] + layers[-1][1])[:, 0] / bound)


def _divergence(jax: Any, at_p: Any, at_q: Any, order: float) -> Any:
    """R(h) on a batch, without its constants."""
    total = jax.scipy.special.logsumexp
    return order / (order - 1.0) * total((order - 1.0) * at_p) - total(order * at_q)
