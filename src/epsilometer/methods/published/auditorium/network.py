"""The function h as a small neural network, trained on the variational form itself.

The optimum of both directions is the same log-ratio, up to its sign: one network is trained on the
sum of both. Needs the extra `neural` (jax and optax).
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import MissingExtraError
from epsilometer.methods.partitions import FitScore
from epsilometer.methods.published.auditorium.kernel_space import fit_embedding
from epsilometer.outputs import Block
from epsilometer.outputs.scores import NetworkScore

# Draws per side and step: enough for a usable mean of exponentials.
_BATCH = 512
# Adam's first learning rate; it falls to 0 along a cosine.
_LEARNING_RATE = 1e-2
# Rows per side that train; a step sees only a batch, so more would only cost memory.
_MOST_ROWS = 100_000
# Fraction of the steps that first minimise the logistic loss: far from the optimum, exponentials of
# a large h carry little information.
_WARM_UP_FRACTION = 0.5


class Layer(NamedTuple):
    """A dense layer; a tuple, because jax differentiates tuples of arrays.

    Attributes:
        weights: shape (inputs, units).
        biases: shape (units,).
    """

    weights: Any
    biases: Any


def network_fit(
    order: float, bound: float, units: Sequence[int], steps: int, rng: np.random.Generator
) -> FitScore:
    """Returns a function that trains a network for outputs of one shape.

    Args:
        order: α of the divergence.
        bound: C, so that |h| ≤ C.
        units: of each hidden layer.
        steps: of the training.
        rng: draws the initial weights.
    """
    _import_jax()

    def fit(left: Block, right: Block, columns: Sequence[int]) -> NetworkScore:
        embedding = fit_embedding(left, right, columns)
        first = slice(0, _MOST_ROWS)
        left_points = embedding.points([column.take(first) for column in left.columns])
        right_points = embedding.points([column.take(first) for column in right.columns])
        layers = _train(
            left_points,
            right_points,
            order=order,
            bound=bound,
            initial=_initial_layers(left_points.shape[1], units, rng),
            steps=steps,
        )
        return NetworkScore(
            embedding=embedding,
            weights=tuple(layer.weights for layer in layers),
            biases=tuple(layer.biases for layer in layers),
            bound=bound,
        )

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


def _initial_layers(n_inputs: int, units: Sequence[int], rng: np.random.Generator) -> list[Layer]:
    """Returns random weights; drawn by NumPy, because jax would compile its generator."""
    layers: list[Layer] = []
    for n_below, n_above in pairwise([n_inputs, *units, 1]):
        weights = rng.normal(size=(n_below, n_above)) / np.sqrt(n_below)
        biases = np.zeros(n_above, dtype=np.float32)
        layers.append(Layer(weights.astype(np.float32), biases))
    return layers


def _train(
    left: Floats, right: Floats, *, order: float, bound: float, initial: list[Layer], steps: int
) -> list[Layer]:
    """Trains by Adam on batches; the same draws and initial weights give the same weights."""
    train = _trainer(order, bound, steps)
    layers = train(initial, _at_least_a_batch(left), _at_least_a_batch(right))
    return [
        Layer(
            weights=np.asarray(layer.weights, dtype=np.float64),
            biases=np.asarray(layer.biases, dtype=np.float64),
        )
        for layer in layers
    ]


def _at_least_a_batch(points: Floats) -> Floats:
    """Repeats points, shape (n, dimensions), until they fill a batch."""
    if len(points) >= _BATCH:
        return points
    copies = -(-_BATCH // len(points))
    return np.tile(points, (copies, 1))


@cache
def _trainer(order: float, bound: float, steps: int) -> Callable[..., Any]:
    """Compiles the training once for draws of one size, which takes longer than to train."""
    jax, optax = _import_jax()
    optimiser = optax.adam(optax.cosine_decay_schedule(_LEARNING_RATE, steps))
    warm_up_steps = int(_WARM_UP_FRACTION * steps)

    def loss(layers: Any, x: Any, y: Any, step: Any) -> Any:
        at_x = _evaluate(jax, layers, x, bound)
        at_y = _evaluate(jax, layers, y, bound)
        both = _divergence(jax, at_x, at_y, order) + _divergence(jax, -at_y, -at_x, order)
        logistic = jax.nn.softplus(-at_x).mean() + jax.nn.softplus(at_y).mean()
        return jax.numpy.where(step < warm_up_steps, logistic, -both)

    def batch(points: Any, step: Any) -> Any:
        start = (step * _BATCH) % (len(points) - _BATCH + 1)
        return jax.lax.dynamic_slice_in_dim(points, start, _BATCH)

    def train(initial: Any, left: Any, right: Any) -> Any:
        def advance(step: Any, state: Any) -> Any:
            layers, memory = state
            gradient = jax.grad(loss)(layers, batch(left, step), batch(right, step), step)
            change, memory = optimiser.update(gradient, memory)
            return optax.apply_updates(layers, change), memory

        layers, _ = jax.lax.fori_loop(0, steps, advance, (initial, optimiser.init(initial)))
        return layers

    return cast(Callable[..., Any], jax.jit(train))


def _evaluate(jax: Any, layers: Any, points: Any, bound: float) -> Any:
    """Returns h at each point, as `NetworkScore` does, but in jax."""
    for layer in layers[:-1]:
        points = jax.numpy.tanh(points @ layer.weights + layer.biases)
    last = points @ layers[-1].weights + layers[-1].biases
    return bound * jax.numpy.tanh(last[:, 0] / bound)


def _divergence(jax: Any, at_p: Any, at_q: Any, order: float) -> Any:
    """Returns R(h) on a batch, without its constants."""
    log_sum_exp = jax.scipy.special.logsumexp
    return order / (order - 1.0) * log_sum_exp((order - 1.0) * at_p) - log_sum_exp(order * at_q)
