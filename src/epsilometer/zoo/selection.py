"""Choosing the best of several: the exponential mechanism and noisy maxima."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.bisection import rejected_end
from epsilometer.claims import PureDP
from epsilometer.claims.base import check_choice, check_positive
from epsilometer.inputs import Pair
from epsilometer.zoo.distributions.exact import (
    HALVINGS,
    CellDistributions,
    density_distributions,
    discrete_distributions,
)
from epsilometer.zoo.distributions.numerics import (
    REACH_IN_SCALES,
    Panels,
    laplace_below,
    laplace_density,
)
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry

# --- the exponential mechanism on the half-line


def near_on_half_line(dataset: Any, n: int, rng: np.random.Generator, rate: float) -> Floats:
    """Draws t >= 0 with density proportional to exp(-rate |s - t|), s the dataset; shape (n,).

    It uses the inverse of the distribution function.
    """
    centre = float(dataset)
    mass_below_zero = math.exp(-rate * centre)
    # Mass in units of 1/rate: 1 - mass_below_zero below the centre, 1 above it.
    mass = rng.random(n) * (2 - mass_below_zero)
    below = np.log(np.minimum(mass + mass_below_zero, 1.0))
    above = -np.log(np.minimum(2 - mass_below_zero - mass, 1.0))
    return centre + (below + above) / rate


def _half_line_density(t: Floats, centre: float, rate: float) -> Floats:
    """Returns the density of `near_on_half_line`, same shape as t."""
    density = np.exp(-rate * np.abs(t - centre)) * rate / (2 - math.exp(-rate * centre))
    return np.where(t >= 0, density, 0.0)


def exponential(epsilon: float = 1.0) -> ZooEntry:
    """The exponential mechanism on the half-line: density proportional to exp(-λ|s - t|), t >= 0.

    Its truth on s = 1 against 2 is exactly epsilon, by the choice of λ:
    epsilon = λ + ln(2 - e^(-2λ)) - ln(2 - e^(-λ)). The claim is about inputs s from 1 to 2; nearer
    to 0 the loss is greater.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local
    approach".
    """
    epsilon = check_epsilon(epsilon)

    def loses_less(rate: float) -> bool:
        loss = rate + math.log(2 - math.exp(-2 * rate)) - math.log(2 - math.exp(-rate))
        return loss < epsilon

    rate = rejected_end(loses_less, 0.0, epsilon + 1.0, HALVINGS)
    left = partial(_half_line_density, centre=1.0, rate=rate)
    right = partial(_half_line_density, centre=2.0, rate=rate)
    return entry(
        "exponential",
        summary="the exponential mechanism on the half-line, score -|s - t|",
        draw=partial(near_on_half_line, rate=rate),
        claim=PureDP(epsilon),
        worst_pair=Pair(1.0, 2.0),
        make_distributions=partial(density_distributions, left, right, (0.0, 1.0, 2.0), 1 / rate),
        parameters={"epsilon": epsilon},
    )


# --- noisy maxima


@dataclass(frozen=True)
class NoisyMax:
    """The greatest of several numbers with independent noise, shape (n,).

    Attributes:
        noise: "laplace", or "exponential" for one-sided noise.
        output: "index" for its position (int64) or "value" for its value (float).
        scale: scale of the noise on each number.
    """

    noise: str
    output: str
    scale: float

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> Floats | Integers:
        """Draws n outputs."""
        greatest = np.full(n, -np.inf)
        winner = np.zeros(n, dtype=np.int64)
        for position, query in enumerate(dataset):
            noisy = float(query) + self._noise(n, rng)
            winner[noisy > greatest] = position
            np.maximum(greatest, noisy, out=greatest)
        return winner if self.output == "index" else greatest

    def _noise(self, n: int, rng: np.random.Generator) -> Floats:
        if self.noise == "laplace":
            return rng.laplace(0.0, self.scale, n)
        return rng.exponential(self.scale, n)

    def winning_densities(self, nodes: Floats, queries: Sequence[float]) -> list[Floats]:
        """Returns for each query the density at the nodes of "it is the greatest, with this value".

        Args:
            nodes: values of the greatest, any shape.
            queries: without noise.
        """
        if self.noise == "exponential":
            noise_density = _exponential_density
            noise_below = _exponential_below
        else:
            noise_density = laplace_density
            noise_below = laplace_below
        densities = [noise_density(nodes - query, self.scale) for query in queries]
        below = [noise_below(nodes - query, self.scale) for query in queries]
        for winner, density in enumerate(densities):
            for other, probability in enumerate(below):
                if other != winner:
                    np.multiply(density, probability, out=density)
        return densities


def _exponential_density(x: Floats, scale: float) -> Floats:
    return np.where(x >= 0, np.exp(-np.maximum(x, 0.0) / scale) / scale, 0.0)


def _exponential_below(x: Floats, scale: float) -> Floats:
    return np.asarray(-np.expm1(-np.maximum(x, 0.0) / scale))


def report_noisy_max(
    epsilon: float = 1.0, output: str = "index", noise: str = "laplace", queries: int = 6
) -> ZooEntry:
    """Report noisy max: noise of scale 2/epsilon on each query.

    All queries may change by 1 in any direction. The truth of "index" on 1^k against (0, 2^(k-1))
    is an integral: 1.492 for epsilon = 1.5, k = 6, Laplace.

    Args:
        epsilon: what it claims.
        output: "index", the position of the greatest, keeps the claim. "value", the greatest noisy
            value, breaks it: with Laplace noise the truth on 0^k against 1^k is k·epsilon/2, with
            exponential noise it is infinite.
        noise: "laplace" or "exponential" (one-sided).
        queries: how many, k.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", Section 3.3;
    the broken versions are among those of Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of
    differential privacy".
    """
    epsilon = check_epsilon(epsilon)
    queries = check_count("queries", queries, 2, 100)
    output = check_choice("output", output, ("index", "value"))
    noise = check_choice("noise", noise, ("laplace", "exponential"))
    mechanism = NoisyMax(noise=noise, output=output, scale=2 / epsilon)
    if output == "index":
        pair = Pair([1.0] * queries, [0.0] + [2.0] * (queries - 1))
        make_distributions = partial(index_distributions, mechanism, pair)
        keeps_claim = True
    else:
        pair = _all_shifted(queries)
        make_distributions = partial(value_distributions, mechanism, queries)
        keeps_claim = noise == "laplace" and queries == 2
    return entry(
        "report_noisy_max",
        summary=f"the {output} of the greatest of {queries} queries with {noise} noise",
        draw=mechanism,
        claim=PureDP(epsilon),
        worst_pair=pair,
        make_distributions=make_distributions,
        parameters={"epsilon": epsilon, "output": output, "noise": noise, "queries": queries},
        keeps_claim=keeps_claim,
    )


def noisy_max_value(epsilon: float = 1.0, queries: int = 3) -> ZooEntry:
    """The greatest of k numbers, each with Lap(k/epsilon).

    A value may be released if the noise is calibrated for it. Its truth on 0^k against 1^k is
    exactly epsilon, attained by every output up to 0.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local
    approach", Example 1 (corrected: the loss is attained for t <= 0).
    """
    epsilon = check_epsilon(epsilon)
    queries = check_count("queries", queries, 1, 100)
    mechanism = NoisyMax(noise="laplace", output="value", scale=queries / epsilon)
    return entry(
        "noisy_max_value",
        summary=f"the greatest of {queries} numbers with Laplace noise calibrated for its release",
        draw=mechanism,
        claim=PureDP(epsilon),
        worst_pair=_all_shifted(queries),
        make_distributions=partial(value_distributions, mechanism, queries),
        parameters={"epsilon": epsilon, "queries": queries},
    )


def _all_shifted(queries: int) -> Pair:
    return Pair([0.0] * queries, [1.0] * queries)


def index_distributions(mechanism: NoisyMax, pair: Pair) -> CellDistributions:
    """The distributions of the position of the greatest."""
    panels = Panels.between(
        {*pair.left, *pair.right},
        scale=mechanism.scale,
        reach=REACH_IN_SCALES * mechanism.scale,
    )

    def probabilities(queries: Sequence[float]) -> Floats:
        densities = mechanism.winning_densities(panels.nodes, queries)
        return np.array([(density * panels.weights).sum() for density in densities])

    return discrete_distributions(probabilities(pair.left), probabilities(pair.right))


def value_distributions(mechanism: NoisyMax, queries: int) -> CellDistributions:
    """The distributions of the greatest value when all queries rise from 0 to 1."""

    def density(nodes: Floats, centre: float) -> Floats:
        return sum(mechanism.winning_densities(nodes, [centre] * queries), np.zeros_like(nodes))

    return density_distributions(
        left=partial(density, centre=0.0),
        right=partial(density, centre=1.0),
        breakpoints=(0.0, 1.0),
        scale=mechanism.scale,
    )


# --- a median


def exponential_median(dataset: Any, n: int, rng: np.random.Generator, epsilon: float) -> Floats:
    """Draws t in [0, 1] with density proportional to exp(-epsilon·|below - above|/2), shape (n,).

    Here `below` and `above` are the numbers of values below and above t. One person more or less
    changes their difference by 1, and so the weights and their sum by e^(epsilon/2) each. An output
    is drawn as an interval between neighbouring values, and a uniform place in it.
    """
    edges, probabilities = _median_intervals(dataset, epsilon)
    chosen = np.searchsorted(np.cumsum(probabilities)[:-1], rng.random(n), side="right")
    return edges[chosen] + rng.random(n) * np.diff(edges)[chosen]


def _median_intervals(dataset: Any, epsilon: float) -> tuple[Floats, Floats]:
    """Returns the intervals on which the density of the median is constant.

    Returns:
        Their edges, shape (k + 1,), and their probabilities, shape (k,).
    """
    values = np.sort(np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0))
    edges = np.concatenate([[0.0], values, [1.0]])
    distance = np.abs(2.0 * np.arange(values.size + 1) - values.size)
    weights = np.diff(edges) * np.exp(-epsilon * (distance - distance.min()) / 2)
    return edges, weights / weights.sum()


def joint_median(epsilon: float = 1.0, width: float = 0.05) -> ZooEntry:
    """A private median in [0, 1] by the exponential mechanism.

    It is the joint mechanism for several quantiles, used for one. On one value against two that lie
    `width` apart about 1/2 its truth is -ln((1 - width)·e^(-epsilon) + width), by an output between
    them, or epsilon minus that if it is larger, by an output elsewhere.

    Reference: Gillenwater, Joseph, Kulesza, "Differentially private quantiles"; a mechanism of
    DP-Auditorium.
    """
    epsilon = check_epsilon(epsilon)
    width = check_positive("width", width, 0.9)
    pair = Pair([0.5 - width / 2], [0.5 - width / 2, 0.5 + width / 2])
    return entry(
        "joint_median",
        summary="a median by the exponential mechanism",
        draw=partial(exponential_median, epsilon=epsilon),
        claim=PureDP(epsilon),
        worst_pair=pair,
        make_distributions=partial(_median_distributions, pair, epsilon),
        parameters={"epsilon": epsilon, "width": width},
    )


def _median_distributions(pair: Pair, epsilon: float) -> CellDistributions:
    """The distributions over the intervals between the right dataset's values.

    Both densities are constant there, since the left dataset's values are among them.
    """
    edges, right = _median_intervals(pair.right, epsilon)
    left_edges, left = _median_intervals(pair.left, epsilon)
    left_below_edges = np.interp(edges, left_edges, np.append(0.0, np.cumsum(left)))
    return discrete_distributions(np.diff(left_below_edges), right)


# --- votes


def most_popular(
    dataset: Any, n: int, rng: np.random.Generator, epsilon: float, elements: int
) -> Integers:
    """Draws the element with the greatest count plus Gumbel noise of scale 2/epsilon.

    Outputs are int64 of shape (n,). The position of the maximum of Gumbel noise about scores is a
    draw with weights that are the exponentials of the scores.

    Args:
        dataset: a list of votes, each for one of the elements 0, 1, ….
        n: how many outputs.
        rng: the source of randomness.
        epsilon: privacy level.
        elements: how many.
    """
    probabilities = _popularity(dataset, epsilon, elements)
    chosen = np.searchsorted(np.cumsum(probabilities)[:-1], rng.random(n), side="right")
    return chosen.astype(np.int64)


def _popularity(dataset: Any, epsilon: float, elements: int) -> Floats:
    """Returns the probability of every element, shape (elements,)."""
    counts = np.bincount(np.asarray(dataset, dtype=np.int64), minlength=elements)
    weights = np.exp(epsilon / 2 * (counts - counts.max()))
    return np.asarray(weights / weights.sum())


def noisy_max(epsilon: float = 1.0, elements: int = 5, votes: int = 4) -> ZooEntry:
    """The most popular of several elements by noisy counts of votes.

    It is private when one person changes their vote. On one vote for the first element and the
    others for the second, against all for the second, its truth tends to epsilon for many votes, on
    ever rarer events.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", Section 3.3; a
    mechanism of DP-Auditorium, with Gumbel noise.
    """
    epsilon = check_epsilon(epsilon)
    elements = check_count("elements", elements, 2, 1000)
    votes = check_count("votes", votes, 1, 1_000_000)
    pair = Pair([0] + [1] * (votes - 1), [1] * votes)
    left = _popularity(pair.left, epsilon, elements)
    right = _popularity(pair.right, epsilon, elements)
    return entry(
        "noisy_max",
        summary=f"the most popular of {elements} elements by noisy counts of votes",
        draw=partial(most_popular, epsilon=epsilon, elements=elements),
        claim=PureDP(epsilon),
        worst_pair=pair,
        make_distributions=partial(discrete_distributions, left, right),
        parameters={"epsilon": epsilon, "elements": elements, "votes": votes},
    )
