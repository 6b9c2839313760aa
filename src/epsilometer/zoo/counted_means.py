"""Means of values whose number is private too: DP-Auditorium's, one private and five broken.

Neighbours differ by one person more or less. Values are clipped to [-1, 1], the widest range in
which a person changes the sum by at most 1. With ñ = max(1e-12, n + Lap(2/epsilon)) half of epsilon
is spent on the count, the other half on the noise 2/(ñ·epsilon) on the mean; the broken ones use n
where ñ belongs.

Reference: Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium: a large scale library for auditing
differential privacy", Section 6.1.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.arrays import Floats
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.inputs import Pair
from epsilometer.zoo.distributions.counted_means import (
    UnequalGaussianDistributions,
    UnequalLaplaceDistributions,
    count_distributions,
    gaussian_mean_density,
    laplace_mean_density,
    released_distributions,
)
from epsilometer.zoo.distributions.exact import CellDistributions, PairDistributions
from epsilometer.zoo.entry import ZooEntry, check_count, check_delta, check_epsilon, entry

# A noisy count below this is raised to it; in the released program, the scale of the noise is.
LEAST = 1e-12


def counted_mean(
    dataset: Any,
    n: int,
    rng: Generator,
    *,
    noise: float,
    gaussian: bool,
    noisy_divisor: bool,
    noisy_scale: bool,
) -> Floats:
    """Draws a sum of values in [-1, 1] over a count, plus noise of scale `noise`/count.

    Outputs have shape (n,).

    Args:
        dataset: the values; they are clipped to [-1, 1].
        n: how many outputs.
        rng: the source of randomness.
        noise: scale of the Laplace noise on the count, and scale (or standard deviation) of the
            noise on the mean of one value.
        gaussian: whether the noise on the mean is Gaussian; else it is Laplace noise.
        noisy_divisor: whether the sum is divided by the noisy count; else by the true one.
        noisy_scale: whether the noise is divided by the noisy count; else by the true one.
    """
    values = np.clip(np.asarray(dataset, dtype=np.float64), -1.0, 1.0)
    true_count = np.full(1, float(values.size))
    noisy_count = np.maximum(LEAST, true_count + rng.laplace(0.0, noise, n))
    mean = values.sum() / (noisy_count if noisy_divisor else true_count)
    unit_noise = rng.standard_normal(n) if gaussian else rng.laplace(0.0, 1.0, n)
    return np.asarray(mean + unit_noise * noise / (noisy_count if noisy_scale else true_count))


def released_mean(dataset: Any, n: int, rng: Generator, epsilon: float) -> Floats:
    """Draws the private mean of the released program; outputs of shape (n,).

    It keeps a negative noisy count; the scale of the noise, which is then negative, is raised to
    1e-12 instead.
    """
    values = np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0)
    noisy_count = values.size + rng.laplace(0.0, 2 / epsilon, n)
    scale = np.maximum(LEAST, 2 / (epsilon * noisy_count))
    return np.asarray(values.sum() / noisy_count + rng.laplace(0.0, 1.0, n) * scale)


def dp_laplace(epsilon: float = 1.0) -> ZooEntry:
    """The mean as published, private: the noisy count divides the sum and the noise.

    Its truth on one value 0 against 0, 1 is exactly epsilon: half for the count, half for the sum.

    Reference: Kong et al., DPLaplace.
    """
    epsilon = check_epsilon(epsilon)
    draw = partial(
        counted_mean, noise=1 / (epsilon / 2), gaussian=False, noisy_divisor=True, noisy_scale=True
    )
    return entry(
        "dp_laplace",
        summary="a mean over a noisy count, private as published",
        draw=draw,
        claim=PureDP(epsilon),
        worst_pair=Pair([0.0], [0.0, 1.0]),
        make_distributions=partial(_noisy_divisor_distributions, epsilon / 2),
        parameters={"epsilon": epsilon},
    )


def _noisy_divisor_distributions(half_epsilon: float) -> CellDistributions:
    left_count = half_epsilon
    right_count = 2 * half_epsilon
    return count_distributions(
        left=partial(laplace_mean_density, count=left_count),
        right=partial(laplace_mean_density, count=right_count, total=half_epsilon),
        centres=(0.0, 0.5),
        counts=(left_count, right_count),
        shift=half_epsilon,
    )


def dp_laplace_released(epsilon: float = 1.0) -> ZooEntry:
    """The "private mean" of the released program, broken: a negative count gives almost no noise.

    On the left of the pair, where the sum is 0, an output within 1e-11 of 0 then has probability
    about exp(-epsilon/2)/2, on the right practically none. Its truth is near 28.

    Reference: google/differential-privacy, python/dp_auditorium, mechanisms/mean.py.
    """
    epsilon = check_epsilon(epsilon)
    return entry(
        "dp_laplace_released",
        summary="a mean over a noisy count as released, almost without noise if that is negative",
        draw=partial(released_mean, epsilon=epsilon),
        claim=PureDP(epsilon),
        worst_pair=Pair([0.0], [0.0, 1.0]),
        make_distributions=partial(released_distributions, epsilon / 2, LEAST),
        parameters={"epsilon": epsilon},
        keeps_claim=False,
    )


def nondp_laplace1(epsilon: float = 1.0, size: int = 1) -> ZooEntry:
    """The mean over the true count, with noise by the true count, broken.

    On `size` values 1 against the same and a -1 the noise has scales 2/(size·epsilon) and
    2/((size + 1)·epsilon): in the tails the loss is unbounded. Rényi divergences are closed forms,
    infinite from order size + 1 on.

    Reference: Kong et al., NonDPLaplace1.
    """
    claim = PureDP(check_epsilon(epsilon))
    return _broken("nondp_laplace1", claim, size, noisy_scale=False)


def nondp_laplace2(epsilon: float = 1.0, size: int | None = None) -> ZooEntry:
    """The mean over the true count, with noise by the noisy count, broken.

    On `size` values 1 against the same and a -1 its truth is an integral: for one value 1.391 if
    epsilon = .01, 1.832 if epsilon = 1. By default `size` is 1 up to epsilon = 2; a larger epsilon
    is broken only by more values, hence 10.

    Reference: Kong et al., NonDPLaplace2.
    """
    epsilon = check_epsilon(epsilon)
    if size is None:
        size = 1 if epsilon <= 2 else 10
    return _broken("nondp_laplace2", PureDP(epsilon), size, noisy_scale=True)


def nondp_gaussian1(epsilon: float = 1.0, delta: float = 0.01, size: int = 1) -> ZooEntry:
    """As `nondp_laplace1` with Gaussian noise, broken; it claims (epsilon, delta).

    The standard deviation of the noise is the scale there. All its truths are closed forms.

    Reference: Kong et al., NonDPGaussian1, which is printed without its deviation; delta = .01 is
    theirs.
    """
    claim = ApproxDP(check_epsilon(epsilon), check_delta(delta))
    return _broken("nondp_gaussian1", claim, size, noisy_scale=False)


def nondp_gaussian2(epsilon: float = 1.0, delta: float = 0.01, size: int = 1) -> ZooEntry:
    """As `nondp_laplace2` with Gaussian noise, broken; it claims (epsilon, delta).

    The standard deviation of the noise is the scale there. On `size` values 1 against the same and
    a -1 its truth is an integral: for one value and delta = .01 the true epsilon is 1.03 for a
    claimed .01, 1.52 for 1. A pair need not break a claim with another delta or size.

    Reference: Kong et al., NonDPGaussian2, which is printed without its deviation; delta = .01 is
    theirs.
    """
    claim = ApproxDP(check_epsilon(epsilon), check_delta(delta))
    return _broken("nondp_gaussian2", claim, size, noisy_scale=True)


def _broken(name: str, claim: PureDP | ApproxDP, size: int, noisy_scale: bool) -> ZooEntry:
    """Returns one of the four broken means over the true count.

    Its pair is `size` values 1 against the same and a -1.

    Args:
        name: of the entry.
        claim: the noise is Gaussian if it has a delta, else Laplace noise.
        size: values on the left.
        noisy_scale: whether the noisy count, not the true one, divides the noise.
    """
    epsilon = claim.epsilon
    size = check_count("size", size, 1, 1000)
    gaussian = isinstance(claim, ApproxDP)
    make_distributions: Callable[[], PairDistributions]
    if noisy_scale:
        density = gaussian_mean_density if gaussian else laplace_mean_density
        make_distributions = partial(_noisy_scale_distributions, epsilon / 2, density, size)
    else:
        unequal_distributions = (
            UnequalGaussianDistributions if gaussian else UnequalLaplaceDistributions
        )
        scales = (2 / (epsilon * size), 2 / (epsilon * (size + 1)))
        make_distributions = partial(unequal_distributions, _fall_of_mean(size), scales)
    noise_words = "Gaussian noise" if gaussian else "noise"
    count_words = "noisy" if noisy_scale else "true"
    draw = partial(
        counted_mean,
        noise=2 / epsilon,
        gaussian=gaussian,
        noisy_divisor=False,
        noisy_scale=noisy_scale,
    )
    return entry(
        name,
        summary=f"a mean over the true count with {noise_words} by the {count_words} count",
        draw=draw,
        claim=claim,
        worst_pair=Pair([1.0] * size, [1.0] * size + [-1.0]),
        make_distributions=make_distributions,
        parameters={"epsilon": epsilon, **claim.fixed(), "size": size},
        keeps_claim=False,
    )


def _noisy_scale_distributions(
    half_epsilon: float, density_about_mean: Callable[..., Floats], size: int
) -> CellDistributions:
    """The distributions when the mean falls from 1 and the count rises from `size` by 1."""
    left_mean = 1.0
    left_count = half_epsilon * size
    right_mean = 1 - _fall_of_mean(size)
    right_count = half_epsilon * (size + 1)
    return count_distributions(
        left=lambda t: density_about_mean(t - left_mean, left_count),
        right=lambda t: density_about_mean(t - right_mean, right_count),
        centres=(left_mean, right_mean),
        counts=(left_count, right_count),
    )


def _fall_of_mean(size: int) -> float:
    """Returns how far the mean falls when a -1 joins `size` values 1."""
    return 2 / (size + 1)
