"""Noisy sums and means of values in [0, 1], and gradient descent with noisy gradients."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.arrays import Floats
from epsilometer.claims import GaussianDP, PureDP, RenyiDP, check_order
from epsilometer.claims.base import check_positive
from epsilometer.inputs import Pair
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    GaussianDistributions,
    SubsampledGaussianDistributions,
    density_distributions,
    laplace_distributions,
)
from epsilometer.zoo.distributions.numerics import laplace_density
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry

# Who is included is drawn for about this many people and outputs at a time, which fits the cache.
_NUMBERS_AT_A_TIME = 1 << 17
_MAX_PEOPLE = 1_000_000
_MAX_STEPS = 10_000


def noisy_sum(
    dataset: Any, n: int, rng: Generator, *, noise: str, scale: float, rate: float = 1.0
) -> Floats:
    """Draws the sum of a dataset plus noise; outputs of shape (n,).

    Args:
        dataset: the values.
        n: how many outputs.
        rng: the source of randomness.
        noise: "laplace" or "gaussian".
        scale: the Laplace scale or the standard deviation.
        rate: each person is included with this probability, independently, in every run.
    """
    values = np.asarray(dataset, dtype=np.float64)
    sums = np.full(n, values.sum())
    if rate < 1.0:
        rows = max(1, _NUMBERS_AT_A_TIME // values.size)
        for start in range(0, n, rows):
            chunk = sums[start : start + rows]
            is_included = rng.random((len(chunk), values.size)) < rate
            chunk[:] = is_included.astype(np.float64) @ values
    sums += rng.laplace(0.0, scale, n) if noise == "laplace" else rng.normal(0.0, scale, n)
    return sums


def one_person(size: int) -> Pair:
    """Returns zeros except for one person with a 1, against zeros.

    These are the databases of the published experiments.
    """
    return Pair([1.0] + [0.0] * (size - 1), [0.0] * size)


def _check_size(value: float) -> int:
    return check_count("size", value, 1, _MAX_PEOPLE)


def _check_steps(value: float) -> int:
    return check_count("steps", value, 1, _MAX_STEPS)


def laplace_sum(epsilon: float = 1.0, size: int = 10) -> ZooEntry:
    """The sum of values in [0, 1] plus Lap(1/epsilon).

    Its truth when one of `size` people changes their value from 1 to 0: that of the Laplace
    mechanism.

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
    analysis".
    """
    epsilon = check_epsilon(epsilon)
    size = _check_size(size)
    return entry(
        "laplace_sum",
        summary="a sum of values in [0, 1] plus Laplace noise",
        draw=partial(noisy_sum, noise="laplace", scale=1 / epsilon),
        claim=PureDP(epsilon),
        worst_pair=one_person(size),
        make_distributions=partial(laplace_distributions, epsilon),
        parameters={"epsilon": epsilon, "size": size},
    )


def gaussian_sum(sigma: float = 1.0, size: int = 10) -> ZooEntry:
    """The sum of values in [0, 1] plus N(0, sigma^2).

    Its truth when one of `size` people changes their value from 1 to 0: Gaussian with mu = 1/sigma.
    """
    sigma = check_positive("sigma", sigma)
    size = _check_size(size)
    return entry(
        "gaussian_sum",
        summary="a sum of values in [0, 1] plus Gaussian noise",
        draw=partial(noisy_sum, noise="gaussian", scale=sigma),
        claim=GaussianDP(1 / sigma),
        worst_pair=one_person(size),
        make_distributions=partial(GaussianDistributions, 1 / sigma),
        parameters={"sigma": sigma, "size": size},
    )


def subsampled_laplace(epsilon: float = 1.0, rate: float = 0.5, size: int = 10) -> ZooEntry:
    """The sum of a Poisson subsample of values in [0, 1] plus Lap(1/epsilon).

    Everybody is included with probability `rate`. Pure epsilon falls to
    ln(1 + rate·(e^epsilon − 1)); the other notions by quadrature.

    Reference: Zhu and Wang, "Poisson subsampled Rényi differential privacy".
    """
    epsilon = check_epsilon(epsilon)
    size = _check_size(size)
    rate = check_positive("rate", rate, 1.0)
    amplified_epsilon = math.log1p(rate * math.expm1(epsilon))
    return entry(
        "subsampled_laplace",
        summary="a sum over a random part of the people plus Laplace noise",
        draw=partial(noisy_sum, noise="laplace", scale=1 / epsilon, rate=rate),
        claim=PureDP(amplified_epsilon),
        worst_pair=one_person(size),
        make_distributions=partial(_subsampled_laplace_distributions, 1 / epsilon, rate),
        parameters={"epsilon": epsilon, "rate": rate, "size": size},
    )


def _subsampled_laplace_distributions(scale: float, rate: float) -> CellDistributions:
    def left(x: Floats) -> Floats:
        return (1 - rate) * laplace_density(x, scale) + rate * laplace_density(x - 1.0, scale)

    def right(x: Floats) -> Floats:
        return laplace_density(x, scale)

    return density_distributions(left, right, breakpoints=(0.0, 1.0), scale=scale)


def subsampled_gaussian(
    sigma: float = 1.0, rate: float = 0.5, size: int = 10, order: float = 2.0
) -> ZooEntry:
    """The sum of a Poisson subsample of values in [0, 1] plus N(0, sigma^2).

    It claims its Rényi level of one order.

    Reference: Mironov, Talwar, Zhang, "Rényi differential privacy of the sampled Gaussian
    mechanism".
    """
    sigma = check_positive("sigma", sigma, 1e6)
    size = _check_size(size)
    rate = check_positive("rate", rate, 1.0)
    order = check_order(order)
    make_distributions = partial(SubsampledGaussianDistributions, sigma, rate)
    return entry(
        "subsampled_gaussian",
        summary="a sum over a random part of the people plus Gaussian noise",
        draw=partial(noisy_sum, noise="gaussian", scale=sigma, rate=rate),
        claim=RenyiDP(order, make_distributions().renyi(order)),
        worst_pair=one_person(size),
        make_distributions=make_distributions,
        parameters={"sigma": sigma, "rate": rate, "size": size, "order": order},
    )


def noisy_mean(dataset: Any, n: int, rng: Generator, noise_times_size: float) -> Floats:
    """Draws the mean of values clipped to [0, 1], plus Laplace noise; outputs of shape (n,).

    Args:
        dataset: the values.
        n: how many outputs.
        rng: the source of randomness.
        noise_times_size: scale of the noise for one value; for k values it is divided by k.
    """
    values = np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0)
    return rng.laplace(float(values.mean()), noise_times_size / values.size, n)


def dp_mean(epsilon: float = 1.0, scale_error: float = 0.5, size: int = 10) -> ZooEntry:
    """The mean of k values in [0, 1], plus scale_error times the right noise Lap(1/(k·epsilon)).

    With scale_error = 1 it keeps its claim, with less it does not: the default is a forgotten
    factor of 2. Its truth when one person changes their value from 0 to 1: pure
    epsilon/scale_error.

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
    analysis".
    """
    epsilon = check_epsilon(epsilon)
    size = _check_size(size)
    scale_error = check_positive("scale_error", scale_error)
    return entry(
        "dp_mean",
        summary=f"a mean with {scale_error:g} times the Laplace noise that it needs",
        draw=partial(noisy_mean, noise_times_size=scale_error / epsilon),
        claim=PureDP(epsilon),
        worst_pair=Pair([0.0] * size, [1.0] + [0.0] * (size - 1)),
        make_distributions=partial(laplace_distributions, epsilon / scale_error),
        parameters={"epsilon": epsilon, "scale_error": scale_error, "size": size},
        keeps_claim=scale_error >= 1,
    )


def noisy_descent(
    dataset: Any, n: int, rng: Generator, *, step: float, noise: float, steps: int
) -> Floats:
    """Takes Langevin steps on the mean of (θ − x)²/2, from 0; outputs are the last θ, shape (n,).

    Args:
        dataset: the values x.
        n: how many outputs.
        rng: the source of randomness.
        step: learning rate η; θ ← θ − η·(θ − mean) + √(2η)·noise·Z.
        noise: standard deviation of the noise.
        steps: how many.
    """
    mean = float(np.mean(np.asarray(dataset, dtype=np.float64)))
    drift = step * mean
    standard_deviation = math.sqrt(2 * step) * noise
    theta = np.zeros(n)
    for _ in range(steps):
        theta = (1 - step) * theta + drift + standard_deviation * rng.standard_normal(n)
    return theta


def noisy_gradient_descent(
    step: float = 0.2, noise: float = 1.0, steps: int = 10, size: int = 10
) -> ZooEntry:
    """Noisy gradient descent on a quadratic loss; only the last parameter is published.

    With c = (1 − step)^steps its truth when one of `size` people changes their value from 1 to 0 is
    Gaussian with mu² = (2 − step)/(2·noise²·size²)·(1 − c)/(1 + c). (The loss is (θ − x)²/2; the
    paper prints it without the half.)

    Reference: Chourasia, Ye, Shokri, "Differential privacy dynamics of Langevin diffusion and noisy
    gradient descent".
    """
    step = check_positive("step", step, 1.0)
    noise = check_positive("noise", noise)
    steps = _check_steps(steps)
    size = _check_size(size)
    contraction = (1 - step) ** steps
    mu = math.sqrt((2 - step) / 2 * (1 - contraction) / (1 + contraction)) / (noise * size)
    return entry(
        "noisy_gradient_descent",
        summary="gradient descent with Gaussian noise in every step, last parameter only",
        draw=partial(noisy_descent, step=step, noise=noise, steps=steps),
        claim=GaussianDP(mu),
        worst_pair=one_person(size),
        make_distributions=partial(GaussianDistributions, mu),
        parameters={"step": step, "noise": noise, "steps": steps, "size": size},
    )


def clipped_descent(
    dataset: Any, n: int, rng: Generator, *, sigma: float, steps: int, step: float = 0.1
) -> Floats:
    """Takes gradient steps on a linear loss with clipped gradients and Gaussian noise.

    Outputs are the last parameter, shape (n,).

    Args:
        dataset: the gradients, one number per person.
        n: how many outputs.
        rng: the source of randomness.
        sigma: standard deviation of the noise on each sum of gradients that are clipped to norm 1.
        steps: how many.
        step: learning rate.
    """
    gradients = np.clip(np.asarray(dataset, dtype=np.float64), -1.0, 1.0)
    theta = np.zeros(n)
    for _ in range(steps):
        noisy_gradient = gradients.sum() + sigma * rng.standard_normal(n)
        theta -= step / gradients.size * noisy_gradient
    return theta


def scaled_gd(
    scale: float = 0.5, sigma: float = 2.0, steps: int = 4, size: int = 10, order: float = 2.0
) -> ZooEntry:
    """Gradient descent whose noise is `scale` times what its accountant believes.

    The accountant composes `steps` Gaussian mechanisms of noise multiplier `sigma` and claims the
    Rényi level order·steps/(2·sigma²); the effective multiplier is scale·sigma. Below 1 the claim
    is false: scale = 1/2 is the bug of clipping micro-batches instead of examples. The truth is
    Gaussian with mu = √steps/(scale·sigma).

    Reference: Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium", figure 2.
    """
    scale = check_positive("scale", scale)
    sigma = check_positive("sigma", sigma)
    steps = _check_steps(steps)
    size = _check_size(size)
    order = check_order(order)
    return entry(
        "scaled_gd",
        summary=f"gradient descent with {scale:g} times the noise that it accounts for",
        draw=partial(clipped_descent, sigma=scale * sigma, steps=steps),
        claim=RenyiDP(order, order * steps / (2 * sigma**2)),
        worst_pair=one_person(size),
        make_distributions=partial(GaussianDistributions, math.sqrt(steps) / (scale * sigma)),
        parameters={
            "scale": scale,
            "sigma": sigma,
            "steps": steps,
            "size": size,
            "order": order,
        },
        keeps_claim=scale >= 1,
    )
