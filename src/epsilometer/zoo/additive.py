"""Noise that is added to a number, a vector or a histogram."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.arrays import Floats, Integers
from epsilometer.claims import ApproxDP, Claim, GaussianDP, PureDP
from epsilometer.claims.base import check_choice, check_positive
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    GaussianDistributions,
    ProductDistributions,
    discrete_distributions,
    laplace_distributions,
    mu_through,
)
from epsilometer.zoo.entry import ZooEntry, check_count, check_delta, check_epsilon, entry


def add_laplace(dataset: Any, n: int, rng: Generator, scale: float) -> Floats:
    """Draws a number plus Laplace noise; outputs of shape (n,)."""
    return rng.laplace(float(dataset), scale, n)


def add_laplace_to_each(dataset: Any, n: int, rng: Generator, scale: float) -> Floats:
    """Draws a vector plus independent Laplace noise per component; outputs of shape (n, d)."""
    centre = np.asarray(dataset, dtype=np.float64)
    return rng.laplace(centre, scale, (n, centre.size))


def add_gaussian(dataset: Any, n: int, rng: Generator, sigma: float) -> Floats:
    """Draws a number plus Gaussian noise; outputs of shape (n,)."""
    return rng.normal(float(dataset), sigma, n)


def add_geometric(dataset: Any, n: int, rng: Generator, ratio: float) -> Integers:
    """Draws an integer plus two-sided geometric noise, P(k) proportional to ratio^|k|.

    Outputs are int64 of shape (n,).
    """
    # The difference of two geometric numbers is two-sided geometric.
    return int(dataset) + rng.geometric(1 - ratio, n) - rng.geometric(1 - ratio, n)


def add_clamped_laplace(
    dataset: Any, n: int, rng: Generator, *, scale: float, low: float, high: float
) -> Floats:
    """Draws a number plus Laplace noise, clamped to [low, high]: a density between two atoms."""
    noisy = rng.laplace(float(dataset), scale, n)
    return np.clip(noisy, low, high, out=noisy)


def laplace(epsilon: float = 1.0, sensitivity: float = 1.0) -> ZooEntry:
    """The Laplace mechanism: a number plus Lap(sensitivity/epsilon).

    Its truth on 0 against `sensitivity`: pure epsilon; every other notion in closed form.

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
    analysis".
    """
    epsilon = check_epsilon(epsilon)
    sensitivity = check_positive("sensitivity", sensitivity)
    return entry(
        "laplace",
        summary="a number plus Laplace noise",
        draw=partial(add_laplace, scale=sensitivity / epsilon),
        claim=PureDP(epsilon),
        worst_pair=Pair(0.0, sensitivity),
        make_distributions=partial(laplace_distributions, epsilon),
        parameters={"epsilon": epsilon, "sensitivity": sensitivity},
    )


def clamped_laplace(epsilon: float = 1.0) -> ZooEntry:
    """A number in [0, 1] plus Lap(1/epsilon), clamped to [0, 1]: two atoms and a density between.

    Its truth on 0 against 1 is that of the Laplace mechanism in every notion: outside [0, 1] the
    ratio of the two densities is constant, so clamping loses nothing.
    """
    epsilon = check_epsilon(epsilon)
    return entry(
        "clamped_laplace",
        summary="a number plus Laplace noise, clamped to [0, 1]",
        draw=partial(add_clamped_laplace, scale=1 / epsilon, low=0.0, high=1.0),
        claim=PureDP(epsilon),
        worst_pair=Pair(0.0, 1.0),
        make_distributions=partial(laplace_distributions, epsilon),
        parameters={"epsilon": epsilon},
    )


def laplace_vector(epsilon: float = 1.0, dimension: int = 5) -> ZooEntry:
    """A vector, each component with its own Lap(dimension/epsilon).

    A person may change all components by 1. Its truth on 0^d against 1^d: pure epsilon; Rényi
    divergences are d times those of one component; the curve delta(epsilon) is not known in closed
    form.
    """
    epsilon = check_epsilon(epsilon)
    dimension = check_count("dimension", dimension, 1, 1000)
    return entry(
        "laplace_vector",
        summary="a vector with independent Laplace noise on each component",
        draw=partial(add_laplace_to_each, scale=dimension / epsilon),
        claim=PureDP(epsilon),
        worst_pair=Pair([0.0] * dimension, [1.0] * dimension),
        make_distributions=partial(
            ProductDistributions, laplace_distributions(epsilon / dimension), dimension
        ),
        parameters={"epsilon": epsilon, "dimension": dimension},
    )


def geometric(epsilon: float = 1.0, sensitivity: int = 1) -> ZooEntry:
    """The geometric mechanism: a count plus geometric noise of ratio e^(-epsilon/sensitivity).

    Its truth on 0 against `sensitivity`: pure epsilon; the other notions by a finite sum.

    Reference: Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy
    mechanisms".
    """
    epsilon = check_epsilon(epsilon)
    sensitivity = check_count("sensitivity", sensitivity, 1, 10_000)
    return entry(
        "geometric",
        summary="a count plus two-sided geometric noise",
        draw=partial(add_geometric, ratio=math.exp(-epsilon / sensitivity)),
        claim=PureDP(epsilon),
        worst_pair=Pair(0, sensitivity),
        make_distributions=partial(_geometric_distributions, epsilon / sensitivity, sensitivity),
        parameters={"epsilon": epsilon, "sensitivity": sensitivity},
    )


def _geometric_distributions(decay: float, sensitivity: int) -> CellDistributions:
    """The distributions of geometric noise of ratio e^(-decay) about 0 and `sensitivity`."""
    # Up to 0 and from `sensitivity` on the ratio is constant: two cells, besides the integers
    # between.
    tail = 1 / (1 + math.exp(-decay))
    inner = math.tanh(decay / 2) * np.exp(-decay * np.arange(1, sensitivity))
    left = np.array([tail, *inner, tail * math.exp(-decay * sensitivity)])
    return discrete_distributions(left, left[::-1].copy())


def gaussian(
    sigma: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    sensitivity: float = 1.0,
) -> ZooEntry:
    """The Gaussian mechanism: a number plus N(0, sigma^2).

    With sigma alone (default 1) it claims mu = sensitivity/sigma. With epsilon and delta (given
    one, the other is 1 or 1e-5) it claims (epsilon, delta), and sigma, if not given, is the least
    that keeps this claim. All its truths on 0 against `sensitivity` are closed forms; pure epsilon
    is infinite.

    Reference: Balle and Wang, "Improving the Gaussian mechanism for differential privacy",
    Theorem 8.
    """
    sensitivity = check_positive("sensitivity", sensitivity)
    claim: Claim
    claimed: dict[str, float] = {}
    if epsilon is None and delta is None:
        sigma = check_positive("sigma", 1.0 if sigma is None else sigma)
        claim = GaussianDP(sensitivity / sigma)
        keeps_claim = True
    else:
        if sigma is not None and (epsilon is None or delta is None):
            raise InputError(
                "sigma= with a claim needs both epsilon= and delta=; "
                "sigma= alone claims mu = 1/sigma"
            )
        epsilon = check_epsilon(1.0 if epsilon is None else epsilon)
        delta = check_delta(1e-5 if delta is None else delta)
        claim = ApproxDP(epsilon, delta)
        claimed = {"epsilon": epsilon, "delta": delta}
        least_sigma = sensitivity / mu_through(epsilon, delta)
        sigma = least_sigma if sigma is None else check_positive("sigma", sigma)
        keeps_claim = sigma >= least_sigma
    return entry(
        "gaussian",
        summary="a number plus Gaussian noise",
        draw=partial(add_gaussian, sigma=sigma),
        claim=claim,
        worst_pair=Pair(0.0, sensitivity),
        make_distributions=partial(GaussianDistributions, sensitivity / sigma),
        parameters={"sigma": sigma, "sensitivity": sensitivity, **claimed},
        keeps_claim=keeps_claim,
    )


def noisy_histogram(epsilon: float = 1.0, scale: str = "right", bins: int = 5) -> ZooEntry:
    """A histogram with Laplace noise on every count; a person adds 1 to one of them.

    Outputs have shape (n, bins). Its truth on histograms that differ by one person: only one count
    differs, so it is that of the Laplace mechanism; pure epsilon, or 1/epsilon for the wrong scale.

    Args:
        epsilon: what it claims.
        scale: "right" is Lap(1/epsilon), "wrong" is Lap(epsilon) by mistake, which breaks the claim
            if epsilon < 1.
        bins: how many counts.

    Reference: Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy".
    """
    epsilon = check_epsilon(epsilon)
    bins = check_count("bins", bins, 1, 1000)
    scale = check_choice("scale", scale, ("right", "wrong"))
    noise_scale = 1 / epsilon if scale == "right" else epsilon
    return entry(
        "noisy_histogram",
        summary=f"a histogram with Laplace noise of the {scale} scale on every count",
        draw=partial(add_laplace_to_each, scale=noise_scale),
        claim=PureDP(epsilon),
        worst_pair=Pair([1] * bins, [2] + [1] * (bins - 1)),
        make_distributions=partial(laplace_distributions, 1 / noise_scale),
        parameters={"epsilon": epsilon, "scale": scale, "bins": bins},
        keeps_claim=scale == "right" or epsilon >= 1,
    )
