"""Sums and means of values in [0, 1] with noise, and gradient descent, which adds noise to means of gradients."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.arrays import Floats
from epsilometer.claims import GaussianDP, PureDP, RenyiDP, check_order
from epsilometer.claims.base import check_positive
from epsilometer.inputs import Pair
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry
from epsilometer.zoo.laws.exact import CellLaw, GaussianLaw, SubsampledGaussianLaw, density_law, laplace_law
from epsilometer.zoo.laws.numerics import laplace_density

# Who is included is drawn in pieces of about this many numbers, which fit the cache.
_PIECE = 1 << 17


def noisy_sum(dataset: Any, n: int, rng: Generator, noise: str, scale: float, rate: float = 1.0) -> Floats:
    """The sum of a dataset plus noise; outputs of shape (n,).

    Args:
        noise: "laplace" or "gaussian".
        scale: the Laplace scale or the standard deviation.
        rate: each person is included with this probability, independently, in every run.
    """
    values = np.asarray(dataset, dtype=np.float64)
    sums = np.full(n, values.sum())
    if rate < 1.0:
        rows = max(1, _PIECE // values.size)
        for start in range(0, n, rows):
            part = sums[start : start + rows]
            part[:] = (rng.random((len(part), values.size)) < rate).astype(np.float64) @ values
    sums += rng.laplace(0.0, scale, n) if noise == "laplace" else rng.normal(0.0, scale, n)
    return sums


def one_person(size: int) -> Pair:
    """Zeros except for one person with a 1, against zeros: the databases of the published experiments."""
    return Pair([1.0] + [0.0] * (size - 1), [0.0] * size)


def laplace_sum(epsilon: float = 1.0, size: int = 10) -> ZooEntry:
    """The sum of values in [0, 1] plus Lap(1/epsilon).

    Its truth when one of `size` people changes their value from 1 to 0: that of the Laplace mechanism.

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis".
    """
    epsilon, size = check_epsilon(epsilon), check_count("size", size, 1, 1_000_000)
    summary = "a sum of values in [0, 1] plus Laplace noise"
    draw, law = partial(noisy_sum, noise="laplace", scale=1 / epsilon), partial(laplace_law, epsilon)
    return entry("laplace_sum", summary, draw, PureDP(epsilon), one_person(size), law, epsilon=epsilon, size=size)


def gaussian_sum(sigma: float = 1.0, size: int = 10) -> ZooEntry:
    """The sum of values in [0, 1] plus N(0, sigma^2).

    Its truth when one of `size` people changes their value from 1 to 0: Gaussian with mu = 1/sigma.
    """
    sigma, size = check_positive("sigma", sigma), check_count("size", size, 1, 1_000_000)
    summary = "a sum of values in [0, 1] plus Gaussian noise"
    draw, law = partial(noisy_sum, noise="gaussian", scale=sigma), partial(GaussianLaw, 1 / sigma)
    return entry("gaussian_sum", summary, draw, GaussianDP(1 / sigma), one_person(size), law, sigma=sigma, size=size)


def subsampled_laplace(epsilon: float = 1.0, rate: float = 0.5, size: int = 10) -> ZooEntry:
    """The sum of a Poisson subsample of values in [0, 1] plus Lap(1/epsilon).

    Everybody is included with probability `rate`. Pure epsilon falls to ln(1 + rate·(e^epsilon − 1)); the other notions
    by quadrature.

    Reference: Zhu and Wang, "Poisson subsampled Rényi differential privacy".
    """
    epsilon, size = check_epsilon(epsilon), check_count("size", size, 1, 1_000_000)
    rate, summary = check_positive("rate", rate, 1.0), "a sum over a random part of the people plus Laplace noise"
    level = math.log1p(rate * math.expm1(epsilon))
    draw, claim = partial(noisy_sum, noise="laplace", scale=1 / epsilon, rate=rate), PureDP(level)
    pair, law = one_person(size), partial(_subsampled_laplace_law, 1 / epsilon, rate)
    return entry("subsampled_laplace", summary, draw, claim, pair, law, epsilon=epsilon, rate=rate, size=size)


def _subsampled_laplace_law(scale: float, rate: float) -> CellLaw:
    def left(x: Floats) -> Floats:
        return (1 - rate) * laplace_density(x, scale) + rate * laplace_density(x - 1.0, scale)

    return density_law(left, lambda x: laplace_density(x, scale), (0.0, 1.0), scale)


def subsampled_gaussian(sigma: float = 1.0, rate: float = 0.5, size: int = 10, order: float = 2.0) -> ZooEntry:
    """The sum of a Poisson subsample of values in [0, 1] plus N(0, sigma^2); claims its Rényi level of one order.

    Reference: Mironov, Talwar, Zhang, "Rényi differential privacy of the sampled Gaussian mechanism".
    """
    sigma, size = check_positive("sigma", sigma, 1e6), check_count("size", size, 1, 1_000_000)
    rate, order = check_positive("rate", rate, 1.0), check_order(order)
    law = partial(SubsampledGaussianLaw, sigma, rate)
    summary = "a sum over a random part of the people plus Gaussian noise"
    draw = partial(noisy_sum, noise="gaussian", scale=sigma, rate=rate)
    claim, pair = RenyiDP(order, law().renyi(order)), one_person(size)
    return entry("subsampled_gaussian", summary, draw, claim, pair, law, sigma=sigma, rate=rate, size=size, order=order)


def noisy_mean(dataset: Any, n: int, rng: Generator, noise_times_size: float) -> Floats:
    """The mean of values clipped to [0, 1], plus Laplace noise; outputs of shape (n,).

    Args:
        noise_times_size: scale of the noise for one value; for k values it is divided by k.
    """
    values = np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0)
    return rng.laplace(float(values.mean()), noise_times_size / values.size, n)


def dp_mean(epsilon: float = 1.0, scale_error: float = 0.5, size: int = 10) -> ZooEntry:
    """The mean of k values clipped to [0, 1], plus scale_error times the right noise Lap(1/(k·epsilon)).

    With scale_error = 1 it keeps its claim, with less it does not: the default is a forgotten factor of 2. Its
    truth when one person changes their value from 0 to 1: pure epsilon/scale_error.

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis".
    """
    epsilon, size = check_epsilon(epsilon), check_count("size", size, 1, 1_000_000)
    scale_error = check_positive("scale_error", scale_error)
    summary = f"a mean with {scale_error:g} times the Laplace noise that it needs"
    draw, law = partial(noisy_mean, noise_times_size=scale_error / epsilon), partial(laplace_law, epsilon / scale_error)
    pair = Pair([0.0] * size, [1.0] + [0.0] * (size - 1))
    keeps, given = scale_error >= 1, {"epsilon": epsilon, "scale_error": scale_error, "size": size}
    return entry("dp_mean", summary, draw, PureDP(epsilon), pair, law, keeps_claim=keeps, **given)


def noisy_descent(dataset: Any, n: int, rng: Generator, step: float, noise: float, steps: int) -> Floats:
    """Langevin steps on the mean of (θ − x)²/2, from 0; outputs are the last θ, shape (n,).

    Args:
        step: learning rate η; θ ← θ − η·(θ − mean) + √(2η)·noise·Z.
        noise: standard deviation of the noise.
        steps: how many.
    """
    pull, spread = step * float(np.mean(np.asarray(dataset, dtype=np.float64))), math.sqrt(2 * step) * noise
    place = np.zeros(n)
    for _ in range(steps):
        place = (1 - step) * place + pull + spread * rng.standard_normal(n)
    return place


def noisy_gradient_descent(step: float = 0.2, noise: float = 1.0, steps: int = 10, size: int = 10) -> ZooEntry:
    """Noisy gradient descent on a quadratic loss; only the last parameter is published.

    With c = (1 − step)^steps its truth when one of `size` people changes their value from 1 to 0 is Gaussian with
    mu² = (2 − step)/(2·noise²·size²)·(1 − c)/(1 + c). (The loss is (θ − x)²/2; the paper prints it without the half.)

    Reference: Chourasia, Ye, Shokri, "Differential privacy dynamics of Langevin diffusion and noisy gradient descent".
    """
    step, noise = check_positive("step", step, 1.0), check_positive("noise", noise)
    steps, size = check_count("steps", steps, 1, 10_000), check_count("size", size, 1, 1_000_000)
    contraction = (1 - step) ** steps
    mu = math.sqrt((2 - step) / 2 * (1 - contraction) / (1 + contraction)) / (noise * size)
    summary = "gradient descent with Gaussian noise in every step, last parameter only"
    draw, claim = partial(noisy_descent, step=step, noise=noise, steps=steps), GaussianDP(mu)
    pair, law = one_person(size), partial(GaussianLaw, mu)
    given: dict[str, Any] = {"step": step, "noise": noise, "steps": steps, "size": size}
    return entry("noisy_gradient_descent", summary, draw, claim, pair, law, **given)


def clipped_descent(dataset: Any, n: int, rng: Generator, sigma: float, steps: int, step: float = 0.1) -> Floats:
    """Gradient descent on a linear loss with clipped gradients and Gaussian noise; the last parameter, shape (n,).

    Args:
        sigma: standard deviation of the noise on each sum of gradients that are clipped to norm 1.
        steps: how many.
        step: learning rate.
    """
    gradients, place = np.clip(np.asarray(dataset, dtype=np.float64), -1.0, 1.0), np.zeros(n)
    for _ in range(steps):
        place -= step / gradients.size * (gradients.sum() + sigma * rng.standard_normal(n))
    return place


def scaled_gd(scale: float = 0.5, sigma: float = 2.0, steps: int = 4, size: int = 10, order: float = 2.0) -> ZooEntry:
    """Gradient descent whose noise is `scale` times what its accountant believes.

    The accountant composes `steps` Gaussian mechanisms of noise multiplier `sigma` and claims the Rényi level
    order·steps/(2·sigma²); the effective multiplier is scale·sigma. Below 1 the claim is false: scale = 1/2 is the bug
    of clipping micro-batches instead of examples. The truth is Gaussian with mu = √steps/(scale·sigma).

    Reference: Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium", figure 2.
    """
    scale, sigma = check_positive("scale", scale), check_positive("sigma", sigma)
    steps, size = check_count("steps", steps, 1, 10_000), check_count("size", size, 1, 1_000_000)
    order, summary = check_order(order), f"gradient descent with {scale:g} times the noise that it accounts for"
    draw = partial(clipped_descent, sigma=scale * sigma, steps=steps)
    law = partial(GaussianLaw, math.sqrt(steps) / (scale * sigma))
    claim, keeps = RenyiDP(order, order * steps / (2 * sigma**2)), scale >= 1
    given = {"scale": scale, "sigma": sigma, "steps": steps, "size": size, "order": order}
    return entry("scaled_gd", summary, draw, claim, one_person(size), law, keeps_claim=keeps, **given)
