"""Sums of values in [0, 1] with noise, of all people or of a random part of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.claims import GaussianDP, PureDP, RenyiDP
from epsilometer.claims.renyi import check_order
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import CellLaw, GaussianLaw, density_law, laplace_law
from epsilometer.zoo.numerics import FloatArray, laplace_density
from epsilometer.zoo.parameters import check_epsilon, check_positive, check_share, check_whole
from epsilometer.zoo.subsampled_law import SubsampledGaussianLaw

# Draws of the inclusion of everybody are made in pieces of about this many numbers, which fit the cache.
_PIECE = 1 << 17


@dataclass(frozen=True)
class NoisySum:
    """The sum of a dataset plus noise; outputs of shape (n,).

    Attributes:
        noise: "laplace" or "gaussian".
        scale: the Laplace scale or the standard deviation.
        rate: each person is included with this probability, independently, in every run.
    """

    noise: str
    scale: float
    rate: float = 1.0

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray:
        """Draw n outputs."""
        values = np.asarray(dataset, dtype=np.float64)
        sums = np.full(n, values.sum()) if self.rate == 1.0 else self._subsampled(values, n, rng)
        sums += rng.laplace(0.0, self.scale, n) if self.noise == "laplace" else rng.normal(0.0, self.scale, n)
        return sums

    def _subsampled(self, values: FloatArray, n: int, rng: Generator) -> FloatArray:
        sums = np.empty(n)
        rows = max(1, _PIECE // values.size)
        for start in range(0, n, rows):
            part = sums[start : start + rows]
            np.matmul((rng.random((len(part), values.size)) < self.rate).astype(np.float64), values, out=part)
        return sums


def one_person(size: int) -> Pair:
    """Zeros but for one person who has 1, against zeros: the databases of the published experiments."""
    return Pair([1.0] + [0.0] * (size - 1), [0.0] * size)


def laplace_sum(epsilon: float = 1.0, size: int = 10) -> ZooEntry:
    """The sum of values in [0, 1] plus Lap(1/epsilon).

    Its truth when one of `size` people changes her value from 1 to 0: that of the Laplace mechanism.

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis".
    """
    epsilon, size = check_epsilon(epsilon), check_whole("size", size, 1, 1_000_000)
    return ZooEntry(
        name="laplace_sum",
        summary="a sum of values in [0, 1] plus Laplace noise",
        mechanism=from_batch(NoisySum("laplace", 1 / epsilon), name="laplace_sum"),
        claim=PureDP(epsilon),
        worst_pair=one_person(size),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "size": size},
        law=partial(laplace_law, epsilon),
    )


def gaussian_sum(sigma: float = 1.0, size: int = 10) -> ZooEntry:
    """The sum of values in [0, 1] plus N(0, sigma^2).

    Its truth when one of `size` people changes her value from 1 to 0: Gaussian with mu = 1/sigma.
    """
    sigma, size = check_positive("sigma", sigma), check_whole("size", size, 1, 1_000_000)
    return ZooEntry(
        name="gaussian_sum",
        summary="a sum of values in [0, 1] plus Gaussian noise",
        mechanism=from_batch(NoisySum("gaussian", sigma), name="gaussian_sum"),
        claim=GaussianDP(1 / sigma),
        worst_pair=one_person(size),
        keeps_claim=True,
        parameters={"sigma": sigma, "size": size},
        law=partial(GaussianLaw, 1 / sigma),
    )


def subsampled_laplace(epsilon: float = 1.0, rate: float = 0.5, size: int = 10) -> ZooEntry:
    """The sum of a Poisson subsample of values in [0, 1] plus Lap(1/epsilon).

    Everybody is included with probability `rate`. Pure epsilon falls to ln(1 + rate·(e^epsilon − 1)); the other notions
    by quadrature.

    Reference: Zhu and Wang, "Poisson subsampled Rényi differential privacy".
    """
    epsilon, size = check_epsilon(epsilon), check_whole("size", size, 1, 1_000_000)
    rate = check_share("rate", rate)
    return ZooEntry(
        name="subsampled_laplace",
        summary="a sum over a random part of the people plus Laplace noise",
        mechanism=from_batch(NoisySum("laplace", 1 / epsilon, rate), name="subsampled_laplace"),
        claim=PureDP(math.log1p(rate * math.expm1(epsilon))),
        worst_pair=one_person(size),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "rate": rate, "size": size},
        law=partial(_subsampled_laplace_law, 1 / epsilon, rate),
    )


def _subsampled_laplace_law(scale: float, rate: float) -> CellLaw:
    def left(x: FloatArray) -> FloatArray:
        return (1 - rate) * laplace_density(x, scale) + rate * laplace_density(x - 1.0, scale)

    return density_law(left, lambda x: laplace_density(x, scale), (0.0, 1.0), scale)


def subsampled_gaussian(sigma: float = 1.0, rate: float = 0.5, size: int = 10, order: float = 2.0) -> ZooEntry:
    """The sum of a Poisson subsample of values in [0, 1] plus N(0, sigma^2); claims its Rényi level of one order.

    Reference: Mironov, Talwar, Zhang, "Rényi differential privacy of the sampled Gaussian mechanism".
    """
    sigma, size = check_positive("sigma", sigma, 1e6), check_whole("size", size, 1, 1_000_000)
    rate, order = check_share("rate", rate), check_order(order)
    law = SubsampledGaussianLaw(sigma, rate)
    return ZooEntry(
        name="subsampled_gaussian",
        summary="a sum over a random part of the people plus Gaussian noise",
        mechanism=from_batch(NoisySum("gaussian", sigma, rate), name="subsampled_gaussian"),
        claim=RenyiDP(order, law.renyi(order)),
        worst_pair=one_person(size),
        keeps_claim=True,
        parameters={"sigma": sigma, "rate": rate, "size": size, "order": order},
        law=partial(SubsampledGaussianLaw, sigma, rate),
    )
