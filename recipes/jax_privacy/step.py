"""One private step of jax_privacy as the mechanism, and the same step without noise."""

import dp_accounting
import jax.numpy as jnp
import jax_privacy
import numpy as np
from dp_accounting.pld import PLDAccountant

import epsilometer as em

CLIP_NORM = 1.0
NOISE_MULTIPLIER = 1.0
FEATURES = 64


def loss(model, batch):
    """The squared error of a linear model with two layers of parameters."""
    predicted = batch[:, :32] @ model["first"] + batch[:, 32:-1] @ model["second"]
    return jnp.mean((predicted - batch[:, -1]) ** 2)


def clipped_sum(rows):
    """The sum of clipped gradients, which noise is added to."""
    model = {"first": jnp.zeros(32), "second": jnp.zeros(32)}
    return jax_privacy.clipped_grad(loss, l2_clip_norm=CLIP_NORM)(model, jnp.asarray(rows))


def clipped_layer_by_layer(rows):
    """A mistake: each layer is clipped to the norm that both together may have."""
    model = {"first": jnp.zeros(32), "second": jnp.zeros(32)}
    return {
        layer: jax_privacy.clipped_grad(
            lambda part, batch, layer=layer: loss({**model, layer: part}, batch),
            l2_clip_norm=CLIP_NORM,
        )(model[layer], jnp.asarray(rows))
        for layer in model
    }


def private_sum(rows, rng):
    """One private step at rate 1: the whole noisy gradient is released."""
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(
        stddev=NOISE_MULTIPLIER * CLIP_NORM, prng_key=int(rng.integers(2**31))
    )
    gradient = clipped_sum(rows)
    noisy, _ = privatizer.update(gradient, privatizer.init(gradient))
    return np.concatenate([noisy["first"], noisy["second"]])


def private_average(rows, rng):
    """A mistake: it divides by the number of records, which is private."""
    return private_sum(rows, rng) / len(rows)


# First without noise: two runs, and no statistics. One record more, with a gradient in both layers.
one_record = np.full((1, FEATURES + 1), 10.0)
two_records = np.vstack([one_record, -one_record])
right_step = em.models.movement(clipped_sum, two_records, one_record, CLIP_NORM)
wrong_step = em.models.movement(clipped_layer_by_layer, two_records, one_record, CLIP_NORM)
print("clipped together:", right_step)
print("layer by layer:", wrong_step)

# Then with noise, against the whole curve of the accountant.
accountant = PLDAccountant()
accountant.compose(dp_accounting.GaussianDpEvent(NOISE_MULTIPLIER))
claim = em.TradeOffDP.from_accountant(accountant)
pair = em.Pair(two_records, one_record)
broken = em.audit(private_average, pair, claim, samples=60, seed=0)
print("divided by the batch size:", broken.verdict, "by", broken.witness.event.describe())
right = em.audit(private_sum, pair, claim, samples=60, seed=0)
print("summed:", right.verdict)

assert not right_step.is_refuted
assert wrong_step.is_refuted
assert broken.is_refuted
assert not right.is_refuted
