"""Mechanisms whose dataset says which canaries are in: what audits of one run are tried on."""

from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from epsilometer.arrays import Floats
from epsilometer.claims import GaussianDP
from epsilometer.claims.base import check_positive
from epsilometer.inputs import Pair
from epsilometer.zoo.distributions.exact import GaussianDistributions
from epsilometer.zoo.entry import ZooEntry, check_count, entry

_MAX_CANARIES = 1_000_000
# With a larger mu the sign is certain in floats, and nothing is left to guess.
_MAX_MU = 50.0


def share_noise(dataset: Any, n: int, rng: Generator, mu: float) -> Floats:
    """Draws one score per canary, all with the same absolute value; outputs of shape (n, m).

    Args:
        dataset: one 0 or 1 per canary, 1 if it is included.
        n: how many outputs.
        rng: the source of randomness.
        mu: how far apart the two distributions of a score are.
    """
    signs = 2.0 * np.asarray(dataset, dtype=np.float64) - 1.0
    # The absolute value of N(mu/2, 1) has the same distribution as that of N(-mu/2, 1).
    magnitude = np.abs(rng.normal(mu / 2, 1.0, (n, 1)))
    is_right = rng.random((n, signs.size)) < expit(mu * magnitude)
    return magnitude * np.where(is_right, signs, -signs)


def shared_noise(mu: float = 1.0, canaries: int = 10) -> ZooEntry:
    """A score per canary, N(mu/2, 1) if it is included, else N(-mu/2, 1), all equally large.

    One run decides for all canaries together how much their scores tell: they share the absolute
    value of the log-likelihood ratio, and only the signs are drawn for each. Every canary by itself
    sees the Gaussian mechanism, so the mechanism is exactly mu-GDP; but canaries are as dependent
    as the claim allows, and an audit of one run that takes them for independent refutes it.

    Its truth on one canary more or less is that of the Gaussian mechanism.

    Args:
        mu: what it claims.
        canaries: how many there are; a dataset has a 0 or 1 for each.
    """
    mu = check_positive("mu", mu, _MAX_MU)
    canaries = check_count("canaries", canaries, 1, _MAX_CANARIES)
    return entry(
        "shared_noise",
        summary="Gaussian scores of canaries, all of one absolute value",
        draw=partial(share_noise, mu=mu),
        claim=GaussianDP(mu),
        worst_pair=Pair([1] + [0] * (canaries - 1), [0] * canaries),
        make_distributions=partial(GaussianDistributions, mu),
        parameters={"mu": mu, "canaries": canaries},
    )
