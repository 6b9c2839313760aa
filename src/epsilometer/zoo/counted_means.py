"""Means of values whose number is private too: DP-Auditorium's mechanisms, one private and five broken.

Neighbours differ by one person more or less. Values are clipped to [-1, 1], the widest range in which a person changes
the sum by at most 1. With ñ = max(1e-12, n + Lap(2/epsilon)) half of epsilon pays for the count, the other half for the
noise 2/(ñ·epsilon) on the mean; the broken ones use n where ñ belongs.

Reference: Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium: a large scale library for auditing differential privacy",
Section 6.1.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

import epsilometer.zoo.laws.counted_means as laws
from epsilometer.arrays import Floats
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.inputs import Pair
from epsilometer.zoo.entry import ZooEntry, check_count, check_delta, check_epsilon, entry
from epsilometer.zoo.laws.exact import CellLaw, PairLaw

# A noisy count below this is raised to it; in the released program, the scale of the noise is.
LEAST = 1e-12


def counted_mean(
    dataset: Any, n: int, rng: Generator, noise: float, gaussian: bool, noisy_divisor: bool, noisy_scale: bool
) -> Floats:
    """The sum of values clipped to [-1, 1] over a count, plus noise of scale `noise`/count; outputs of shape (n,).

    Args:
        noise: scale of the Laplace noise on the count, and scale (or deviation) of that on the mean of one value.
        gaussian: whether the noise on the mean is Gaussian; else it is Laplace noise.
        noisy_divisor: whether the sum is divided by the noisy count; else by the true one.
        noisy_scale: whether the noise is divided by the noisy count; else by the true one.
    """
    values = np.clip(np.asarray(dataset, dtype=np.float64), -1.0, 1.0)
    true = np.full(1, float(values.size))
    noisy = np.maximum(LEAST, true + rng.laplace(0.0, noise, n))
    mean = values.sum() / (noisy if noisy_divisor else true)
    draws = rng.standard_normal(n) if gaussian else rng.laplace(0.0, 1.0, n)
    return np.asarray(mean + draws * noise / (noisy if noisy_scale else true))


def released_mean(dataset: Any, n: int, rng: Generator, epsilon: float) -> Floats:
    """The private mean of the released program; outputs of shape (n,).

    It keeps a negative noisy count; the scale of the noise, which is then negative, is raised to 1e-12 instead.
    """
    values = np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0)
    noisy = values.size + rng.laplace(0.0, 2 / epsilon, n)
    return np.asarray(values.sum() / noisy + rng.laplace(0.0, 1.0, n) * np.maximum(LEAST, 2 / (epsilon * noisy)))


def dp_laplace(epsilon: float = 1.0) -> ZooEntry:
    """The mean as published, private: the noisy count divides the sum and the noise.

    Its truth on one value 0 against 0, 1 is exactly epsilon: half for the count, half for the sum.

    Reference: Kong et al., DPLaplace.
    """
    epsilon = check_epsilon(epsilon)
    half, summary = epsilon / 2, "a mean over a noisy count, private as published"
    draw = partial(counted_mean, noise=1 / half, gaussian=False, noisy_divisor=True, noisy_scale=True)
    pair, law = Pair([0.0], [0.0, 1.0]), partial(_noisy_divisor_law, half)
    return entry("dp_laplace", summary, draw, PureDP(epsilon), pair, law, epsilon=epsilon)


def _noisy_divisor_law(half: float) -> CellLaw:
    right = partial(laws.laplace_mean_density, count=2 * half, total=half)
    return laws.count_law(partial(laws.laplace_mean_density, count=half), right, (0.0, 0.5), (half, 2 * half), half)


def dp_laplace_released(epsilon: float = 1.0) -> ZooEntry:
    """The "private mean" of the released program, broken: a negative noisy count gives almost no noise.

    On the left of the pair, where the sum is 0, an output within 1e-11 of 0 then has probability about
    exp(-epsilon/2)/2, on the right practically none. Its truth is near 28.

    Reference: google/differential-privacy, python/dp_auditorium, mechanisms/mean.py.
    """
    epsilon = check_epsilon(epsilon)
    summary = "a mean over a noisy count as released, almost without noise if that is negative"
    draw, pair = partial(released_mean, epsilon=epsilon), Pair([0.0], [0.0, 1.0])
    law = partial(laws.released_law, epsilon / 2, LEAST)
    return entry("dp_laplace_released", summary, draw, PureDP(epsilon), pair, law, keeps_claim=False, epsilon=epsilon)


def nondp_laplace1(epsilon: float = 1.0, size: int = 1) -> ZooEntry:
    """The mean over the true count, with noise by the true count, broken.

    On `size` values 1 against the same and a -1 the noise has scales 2/(size·epsilon) and 2/((size + 1)·epsilon): in
    the tails the loss is unbounded. Rényi divergences are closed forms, infinite from order size + 1 on.

    Reference: Kong et al., NonDPLaplace1.
    """
    return _broken("nondp_laplace1", PureDP(check_epsilon(epsilon)), size, noisy_scale=False)


def nondp_laplace2(epsilon: float = 1.0, size: int | None = None) -> ZooEntry:
    """The mean over the true count, with noise by the noisy count, broken.

    On `size` values 1 against the same and a -1 its truth is an integral: for one value 1.391 if epsilon = .01, 1.832
    if epsilon = 1. By default `size` is 1 up to epsilon = 2; a larger one is broken only by more values, hence 10.

    Reference: Kong et al., NonDPLaplace2.
    """
    epsilon = check_epsilon(epsilon)
    size = (1 if epsilon <= 2 else 10) if size is None else size
    return _broken("nondp_laplace2", PureDP(epsilon), size, noisy_scale=True)


def nondp_gaussian1(epsilon: float = 1.0, delta: float = 0.01, size: int = 1) -> ZooEntry:
    """As `nondp_laplace1` with Gaussian noise whose deviation is the scale there; it claims (epsilon, delta), broken.

    All its truths are closed forms.

    Reference: Kong et al., NonDPGaussian1, which is printed without its deviation; delta = .01 is theirs.
    """
    return _broken("nondp_gaussian1", ApproxDP(check_epsilon(epsilon), check_delta(delta)), size, noisy_scale=False)


def nondp_gaussian2(epsilon: float = 1.0, delta: float = 0.01, size: int = 1) -> ZooEntry:
    """As `nondp_laplace2` with Gaussian noise whose deviation is the scale there; it claims (epsilon, delta), broken.

    On `size` values 1 against the same and a -1 its truth is an integral: for one value and delta = .01 the true
    epsilon is 1.03 for a claimed .01, 1.52 for 1. A pair need not break a claim with another delta or size.

    Reference: Kong et al., NonDPGaussian2, which is printed without its deviation; delta = .01 is theirs.
    """
    return _broken("nondp_gaussian2", ApproxDP(check_epsilon(epsilon), check_delta(delta)), size, noisy_scale=True)


def _broken(name: str, claim: PureDP | ApproxDP, size: int, noisy_scale: bool) -> ZooEntry:
    """One of the four broken means over the true count, with Gaussian noise if they claim a delta.

    Its pair is `size` values 1 against the same and a -1.
    """
    epsilon, size, gaussian = claim.epsilon, check_count("size", size, 1, 1000), isinstance(claim, ApproxDP)
    law: Callable[[], PairLaw]
    if noisy_scale:
        density = laws.gaussian_mean_density if gaussian else laws.laplace_mean_density
        law = partial(_noisy_scale_law, epsilon / 2, density, size)
    else:
        unequal = laws.UnequalGaussianLaw if gaussian else laws.UnequalLaplaceLaw
        law = partial(unequal, _shift(size), (2 / (epsilon * size), 2 / (epsilon * (size + 1))))
    kinds = "Gaussian noise" if gaussian else "noise", "noisy" if noisy_scale else "true"
    summary = "a mean over the true count with {} by the {} count".format(*kinds)
    draw = partial(counted_mean, noise=2 / epsilon, gaussian=gaussian, noisy_divisor=False, noisy_scale=noisy_scale)
    pair, given = Pair([1.0] * size, [1.0] * size + [-1.0]), {"epsilon": epsilon, **claim.fixed(), "size": size}
    return entry(name, summary, draw, claim, pair, law, keeps_claim=False, **given)


def _noisy_scale_law(half: float, about: Callable[..., Floats], size: int) -> CellLaw:
    """The mean of the pair falls from 1, and the count rises from `size` by 1."""
    counts, fallen = (half * size, half * (size + 1)), 1 - _shift(size)
    return laws.count_law(
        lambda t: about(t - 1.0, counts[0]), lambda t: about(t - fallen, counts[1]), (1.0, fallen), counts
    )


def _shift(size: int) -> float:
    """How far the mean falls when a -1 joins `size` values 1."""
    return 2 / (size + 1)
