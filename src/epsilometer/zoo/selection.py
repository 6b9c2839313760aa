"""Choosing or measuring the best of several: the exponential mechanism and noisy maxima."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from epsilometer.claims import PureDP
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import CellLaw, density_law, discrete_law
from epsilometer.zoo.numerics import (
    REACH_IN_SCALES,
    FloatArray,
    Panels,
    laplace_below,
    laplace_density,
    solve_increasing,
)
from epsilometer.zoo.parameters import check_choice, check_epsilon, check_whole


@dataclass(frozen=True)
class Exponential:
    """A number t >= 0 with density proportional to exp(-rate |s - t|), s the dataset; outputs of shape (n,)."""

    rate: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray:
        """Draw n outputs by the inverse of the distribution function."""
        centre = float(dataset)
        lost = math.exp(-self.rate * centre)
        # Mass in units of 1/rate: 1 - lost below the centre, 1 above it.
        mass = rng.random(n) * (2 - lost)
        below = np.log(np.minimum(mass + lost, 1.0))
        above = -np.log(np.minimum(2 - lost - mass, 1.0))
        return centre + (below + above) / self.rate

    def density(self, t: FloatArray, centre: float) -> FloatArray:
        """The output's density, same shape as t."""
        inside = np.exp(-self.rate * np.abs(t - centre)) * self.rate / (2 - math.exp(-self.rate * centre))
        return np.where(t >= 0, inside, 0.0)


def exponential(epsilon: float = 1.0) -> ZooEntry:
    """The exponential mechanism on the half-line: density proportional to exp(-λ|s - t|) for t >= 0.

    Its truth on s = 1 against 2 is exactly epsilon, by the choice of λ: epsilon = λ + ln(2 - e^(-2λ)) - ln(2 - e^(-λ)).
    The claim is about inputs s from 1 to 2; nearer to 0 the loss is greater.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local approach".
    """
    epsilon = check_epsilon(epsilon)
    mechanism = Exponential(_rate_for(epsilon))
    return ZooEntry(
        name="exponential",
        summary="the exponential mechanism on the half-line, score -|s - t|",
        mechanism=from_batch(mechanism, name="exponential"),
        claim=PureDP(epsilon),
        worst_pair=Pair(1.0, 2.0),
        keeps_claim=True,
        parameters={"epsilon": epsilon},
        law=partial(_exponential_law, mechanism),
    )


def _rate_for(epsilon: float) -> float:
    def loss(rate: float) -> float:
        return rate + math.log(2 - math.exp(-2 * rate)) - math.log(2 - math.exp(-rate))

    return solve_increasing(loss, epsilon, 0.0, epsilon + 1.0)


def _exponential_law(mechanism: Exponential) -> CellLaw:
    left, right = (partial(mechanism.density, centre=centre) for centre in (1.0, 2.0))
    return density_law(left, right, (0.0, 1.0, 2.0), 1 / mechanism.rate)


@dataclass(frozen=True)
class NoisyMax:
    """The greatest of several numbers with independent noise: its position (int64) or its value (float), shape (n,).

    Attributes:
        noise: "laplace", or "exponential" for one-sided noise.
        output: "index" or "value".
        scale: scale of the noise on each number.
    """

    noise: str
    output: str
    scale: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray | NDArray[np.int64]:
        """Draw n outputs."""
        best, winner = np.full(n, -np.inf), np.zeros(n, dtype=np.int64)
        for position, query in enumerate(dataset):
            noisy = float(query) + self._draw_noise(n, rng)
            winner[noisy > best] = position
            np.maximum(best, noisy, out=best)
        return winner if self.output == "index" else best

    def _draw_noise(self, n: int, rng: Generator) -> FloatArray:
        return rng.laplace(0.0, self.scale, n) if self.noise == "laplace" else rng.exponential(self.scale, n)

    def winning_densities(self, nodes: FloatArray, queries: Sequence[float]) -> list[FloatArray]:
        """For each query, the density at the nodes of "it is the greatest, with this value"."""
        one_sided = self.noise == "exponential"
        density_of = _exponential_density if one_sided else laplace_density
        below_of = _exponential_below if one_sided else laplace_below
        densities = [density_of(nodes - query, self.scale) for query in queries]
        below = [below_of(nodes - query, self.scale) for query in queries]
        for winner, density in enumerate(densities):
            for other, chance in enumerate(below):
                if other != winner:
                    density *= chance
        return densities


def report_noisy_max(epsilon: float = 1.0, output: str = "index", noise: str = "laplace", queries: int = 6) -> ZooEntry:
    """Report noisy max: noise of scale 2/epsilon on each query, which may all change by 1 in any direction.

    Args:
        epsilon: what it claims.
        output: "index", the position of the greatest, keeps the claim. "value", the greatest noisy value, breaks it:
            with Laplace noise the truth on 0^k against 1^k is k·epsilon/2, with exponential noise it is infinite.
        noise: "laplace" or "exponential" (one-sided).
        queries: how many, k.

    The truth of "index" on 1^k against (0, 2^(k-1)) is an integral: 1.492 for epsilon = 1.5, k = 6, Laplace.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", Section 3.3; the broken versions
    are among those of Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy".
    """
    epsilon, queries = check_epsilon(epsilon), check_whole("queries", queries, 2, 100)
    output = check_choice("output", output, ("index", "value"))
    mechanism = NoisyMax(check_choice("noise", noise, ("laplace", "exponential")), output, 2 / epsilon)
    by_index = Pair([1.0] * queries, [0.0] + [2.0] * (queries - 1))
    return ZooEntry(
        name="report_noisy_max",
        summary=f"the {output} of the greatest of {queries} queries with {noise} noise",
        mechanism=from_batch(mechanism, name="report_noisy_max"),
        claim=PureDP(epsilon),
        worst_pair=by_index if output == "index" else _all_shifted(queries),
        keeps_claim=output == "index" or (noise == "laplace" and queries == 2),
        parameters={"epsilon": epsilon, "output": output, "noise": noise, "queries": queries},
        law=partial(_index_law, mechanism, by_index) if output == "index" else partial(_value_law, mechanism, queries),
    )


def noisy_max_value(epsilon: float = 1.0, queries: int = 3) -> ZooEntry:
    """The greatest of k numbers, each with Lap(k/epsilon): a value may be released if the noise is made for it.

    Its truth on 0^k against 1^k is exactly epsilon, attained by every output up to 0.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local approach", Example 1
    (corrected: the loss is attained for t <= 0).
    """
    epsilon, queries = check_epsilon(epsilon), check_whole("queries", queries, 1, 100)
    mechanism = NoisyMax("laplace", "value", queries / epsilon)
    return ZooEntry(
        name="noisy_max_value",
        summary=f"the greatest of {queries} numbers with Laplace noise made for releasing it",
        mechanism=from_batch(mechanism, name="noisy_max_value"),
        claim=PureDP(epsilon),
        worst_pair=_all_shifted(queries),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "queries": queries},
        law=partial(_value_law, mechanism, queries),
    )


def _all_shifted(queries: int) -> Pair:
    return Pair([0.0] * queries, [1.0] * queries)


def _index_law(mechanism: NoisyMax, pair: Pair) -> CellLaw:
    panels = Panels.between({*pair.left, *pair.right}, mechanism.scale, REACH_IN_SCALES * mechanism.scale)
    sides = [mechanism.winning_densities(panels.nodes, side) for side in (pair.left, pair.right)]
    return discrete_law(*(np.array([(density * panels.weights).sum() for density in side]) for side in sides))


def _value_law(mechanism: NoisyMax, queries: int) -> CellLaw:
    def density(nodes: FloatArray, centre: float) -> FloatArray:
        return sum(mechanism.winning_densities(nodes, [centre] * queries), np.zeros_like(nodes))

    left, right = partial(density, centre=0.0), partial(density, centre=1.0)
    return density_law(left, right, (0.0, 1.0), mechanism.scale)


def _exponential_density(x: FloatArray, scale: float) -> FloatArray:
    return np.where(x >= 0, np.exp(-np.maximum(x, 0.0) / scale) / scale, 0.0)


def _exponential_below(x: FloatArray, scale: float) -> FloatArray:
    result: FloatArray = -np.expm1(-np.maximum(x, 0.0) / scale)
    return result
