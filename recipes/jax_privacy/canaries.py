"""One training with jax_privacy, and five hundred canaries in it: an audit of one run."""

import dp_accounting
import jax.numpy as jnp
import jax_privacy
import numpy as np
from dp_accounting.pld import PLDAccountant
from jax_privacy.batch_selection import CyclicPoissonSampling

import epsilometer as em

CANARIES = 500
FEATURES = 600
STEPS = 60
RATE = 0.2
LEARNING_RATE = 0.01
CLAIMED_NOISE = 2.0

# Each canary is a record whose gradient points into a direction of its own, beyond the clip norm.
directions = em.models.gradient_canaries(FEATURES, CANARIES, seed=1)
ids = [f"canary {number}" for number in range(CANARIES)]


def loss(model, batch):
    return jnp.mean((10.0 * batch @ model + 30.0) ** 2)


def train(noise_multiplier, coins):
    """Trains on the canaries whose coins fell heads, and records what is released."""
    records = directions[coins.included]
    gradient_of = jax_privacy.clipped_grad(loss, l2_clip_norm=1.0)
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(
        stddev=noise_multiplier, prng_key=int(np.random.default_rng().integers(2**31))
    )
    model = jnp.zeros(FEATURES)
    state = privatizer.init(model)
    recorder = em.models.Recorder()
    for chosen in CyclicPoissonSampling(RATE, STEPS).batch_iterator(len(records)):
        noisy, state = privatizer.update(gradient_of(model, jnp.asarray(records[chosen])), state)
        recorder.step(noisy)
        model = model - LEARNING_RATE * noisy
    return recorder


accountant = PLDAccountant()
step = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(CLAIMED_NOISE))
accountant.compose(step, STEPS)
claim = em.TradeOffDP.from_accountant(accountant)

for name, noise_multiplier in (("right", CLAIMED_NOISE), ("too little noise", CLAIMED_NOISE / 8)):
    coins = em.models.coin_flips(ids)
    recorder = train(noise_multiplier, coins)
    scores = em.models.subsampled_score(recorder.scores(directions), RATE, CLAIMED_NOISE)
    audit = em.from_one_run(*coins.join(dict(zip(ids, scores, strict=True))))
    verdict = audit.check(claim).verdict
    print(f"{name}: {verdict}, μ ≥ {audit.mu:.2f}")
    if name == "too little noise":
        assert audit.check(claim).is_refuted
