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
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry
from epsilometer.zoo.laws.exact import HALVINGS, CellLaw, density_law, discrete_law
from epsilometer.zoo.laws.numerics import REACH_IN_SCALES, Panels, laplace_below, laplace_density


def near_on_half_line(dataset: Any, n: int, rng: np.random.Generator, rate: float) -> Floats:
    """A number t >= 0 with density proportional to exp(-rate |s - t|), s the dataset; outputs of shape (n,).

    Drawn by the inverse of the distribution function.
    """
    centre = float(dataset)
    lost = math.exp(-rate * centre)
    # Mass in units of 1/rate: 1 - lost below the centre, 1 above it.
    mass = rng.random(n) * (2 - lost)
    below, above = np.log(np.minimum(mass + lost, 1.0)), -np.log(np.minimum(2 - lost - mass, 1.0))
    return centre + (below + above) / rate


def _half_line_density(t: Floats, centre: float, rate: float) -> Floats:
    """Its density, same shape as t."""
    return np.where(t >= 0, np.exp(-rate * np.abs(t - centre)) * rate / (2 - math.exp(-rate * centre)), 0.0)


def exponential(epsilon: float = 1.0) -> ZooEntry:
    """The exponential mechanism on the half-line: density proportional to exp(-λ|s - t|) for t >= 0.

    Its truth on s = 1 against 2 is exactly epsilon, by the choice of λ: epsilon = λ + ln(2 - e^(-2λ)) - ln(2 - e^(-λ)).
    The claim is about inputs s from 1 to 2; nearer to 0 the loss is greater.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local approach".
    """
    epsilon = check_epsilon(epsilon)

    def loses_less(rate: float) -> bool:
        return rate + math.log(2 - math.exp(-2 * rate)) - math.log(2 - math.exp(-rate)) < epsilon

    rate = rejected_end(loses_less, 0.0, epsilon + 1.0, HALVINGS)
    summary, draw = "the exponential mechanism on the half-line, score -|s - t|", partial(near_on_half_line, rate=rate)
    left, right = (partial(_half_line_density, centre=centre, rate=rate) for centre in (1.0, 2.0))
    law = partial(density_law, left, right, (0.0, 1.0, 2.0), 1 / rate)
    return entry("exponential", summary, draw, PureDP(epsilon), Pair(1.0, 2.0), law, epsilon=epsilon)


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

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> Floats | Integers:
        """Draw n outputs."""
        best, winner = np.full(n, -np.inf), np.zeros(n, dtype=np.int64)
        for position, query in enumerate(dataset):
            noise = rng.laplace(0.0, self.scale, n) if self.noise == "laplace" else rng.exponential(self.scale, n)
            noisy = float(query) + noise
            winner[noisy > best] = position
            np.maximum(best, noisy, out=best)
        return winner if self.output == "index" else best

    def winning_densities(self, nodes: Floats, queries: Sequence[float]) -> list[Floats]:
        """For each query, the density at the nodes of "it is the greatest, with this value"."""
        density_of, below_of = laplace_density, laplace_below
        if self.noise == "exponential":
            density_of, below_of = _exponential_density, _exponential_below
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
    epsilon, queries = check_epsilon(epsilon), check_count("queries", queries, 2, 100)
    output = check_choice("output", output, ("index", "value"))
    mechanism = NoisyMax(check_choice("noise", noise, ("laplace", "exponential")), output, 2 / epsilon)
    pair, law = _all_shifted(queries), partial(value_law, mechanism, queries)
    if output == "index":
        pair = Pair([1.0] * queries, [0.0] + [2.0] * (queries - 1))
        law = partial(index_law, mechanism, pair)
    keeps = output == "index" or (noise == "laplace" and queries == 2)
    summary = f"the {output} of the greatest of {queries} queries with {noise} noise"
    given = {"epsilon": epsilon, "output": output, "noise": noise, "queries": queries}
    return entry("report_noisy_max", summary, mechanism, PureDP(epsilon), pair, law, keeps_claim=keeps, **given)


def noisy_max_value(epsilon: float = 1.0, queries: int = 3) -> ZooEntry:
    """The greatest of k numbers, each with Lap(k/epsilon): a value may be released if the noise is calibrated for it.

    Its truth on 0^k against 1^k is exactly epsilon, attained by every output up to 0.

    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local approach", Example 1
    (corrected: the loss is attained for t <= 0).
    """
    epsilon, queries = check_epsilon(epsilon), check_count("queries", queries, 1, 100)
    mechanism = NoisyMax("laplace", "value", queries / epsilon)
    summary = f"the greatest of {queries} numbers with Laplace noise calibrated for its release"
    pair, law = _all_shifted(queries), partial(value_law, mechanism, queries)
    return entry("noisy_max_value", summary, mechanism, PureDP(epsilon), pair, law, epsilon=epsilon, queries=queries)


def _all_shifted(queries: int) -> Pair:
    return Pair([0.0] * queries, [1.0] * queries)


def index_law(mechanism: NoisyMax, pair: Pair) -> CellLaw:
    """The distributions of the position of the greatest."""
    panels = Panels.between({*pair.left, *pair.right}, mechanism.scale, REACH_IN_SCALES * mechanism.scale)
    sides = [mechanism.winning_densities(panels.nodes, side) for side in (pair.left, pair.right)]
    return discrete_law(*(np.array([(density * panels.weights).sum() for density in side]) for side in sides))


def value_law(mechanism: NoisyMax, queries: int) -> CellLaw:
    """The distributions of the greatest value when all queries rise by 1."""

    def density(nodes: Floats, centre: float) -> Floats:
        return sum(mechanism.winning_densities(nodes, [centre] * queries), np.zeros_like(nodes))

    left, right = partial(density, centre=0.0), partial(density, centre=1.0)
    return density_law(left, right, (0.0, 1.0), mechanism.scale)


def _exponential_density(x: Floats, scale: float) -> Floats:
    return np.where(x >= 0, np.exp(-np.maximum(x, 0.0) / scale) / scale, 0.0)


def _exponential_below(x: Floats, scale: float) -> Floats:
    return np.asarray(-np.expm1(-np.maximum(x, 0.0) / scale))


def exponential_median(dataset: Any, n: int, rng: np.random.Generator, epsilon: float) -> Floats:
    """A number t in [0, 1] with density proportional to exp(-epsilon·|values below t - values above t|/2), shape (n,).

    One person more or less changes the difference by 1, and so the weights and their sum by e^(epsilon/2) each. Drawn
    as an interval between neighbouring values, and a uniform place in it.
    """
    edges, chances = _median_intervals(dataset, epsilon)
    chosen = np.searchsorted(np.cumsum(chances)[:-1], rng.random(n), side="right")
    return edges[chosen] + rng.random(n) * np.diff(edges)[chosen]


def _median_intervals(dataset: Any, epsilon: float) -> tuple[Floats, Floats]:
    """The edges between which the density is constant, shape (k + 1,), and the probability of each interval."""
    values = np.sort(np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0))
    edges = np.concatenate([[0.0], values, [1.0]])
    distance = np.abs(2.0 * np.arange(values.size + 1) - values.size)
    weights = np.diff(edges) * np.exp(-epsilon * (distance - distance.min()) / 2)
    return edges, weights / weights.sum()


def joint_median(epsilon: float = 1.0, width: float = 0.05) -> ZooEntry:
    """A private median in [0, 1] by the exponential mechanism: the joint mechanism for several quantiles, used for one.

    On one value against two that lie `width` apart about 1/2 its truth is -ln((1 - width)·e^(-epsilon) + width), by an
    output between them, or epsilon minus that if it is larger, by an output elsewhere.

    Reference: Gillenwater, Joseph, Kulesza, "Differentially private quantiles"; a mechanism of DP-Auditorium.
    """
    epsilon, width = check_epsilon(epsilon), check_positive("width", width, 0.9)
    pair = Pair([0.5 - width / 2], [0.5 - width / 2, 0.5 + width / 2])
    draw, law = partial(exponential_median, epsilon=epsilon), partial(_median_law, pair, epsilon)
    summary = "a median by the exponential mechanism"
    return entry("joint_median", summary, draw, PureDP(epsilon), pair, law, epsilon=epsilon, width=width)


def _median_law(pair: Pair, epsilon: float) -> CellLaw:
    """Both densities are constant between the right dataset's values, since the left one's are among them."""
    edges, right = _median_intervals(pair.right, epsilon)
    left_edges, left = _median_intervals(pair.left, epsilon)
    return discrete_law(np.diff(np.interp(edges, left_edges, np.append(0.0, np.cumsum(left)))), right)


def most_popular(dataset: Any, n: int, rng: np.random.Generator, epsilon: float, elements: int) -> Integers:
    """The element with the greatest count plus Gumbel noise of scale 2/epsilon; int64 outputs of shape (n,).

    The dataset is a list of votes, each for one of the elements 0, 1, …. The position of the maximum of Gumbel noise
    about scores is a draw by their exponentials.
    """
    chances = _popularity(dataset, epsilon, elements)
    return np.searchsorted(np.cumsum(chances)[:-1], rng.random(n), side="right").astype(np.int64)


def _popularity(dataset: Any, epsilon: float, elements: int) -> Floats:
    """The probability of every element, shape (elements,)."""
    counts = np.bincount(np.asarray(dataset, dtype=np.int64), minlength=elements)
    weights = np.exp(epsilon / 2 * (counts - counts.max()))
    return np.asarray(weights / weights.sum())


def noisy_max(epsilon: float = 1.0, elements: int = 5, votes: int = 4) -> ZooEntry:
    """The most popular of several elements by noisy counts of votes: private, when one person changes their vote.

    On one vote for the first element and the others for the second, against all for the second, its truth tends to
    epsilon for many votes, on ever rarer events.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", Section 3.3; a mechanism of
    DP-Auditorium, with Gumbel noise.
    """
    epsilon, elements = check_epsilon(epsilon), check_count("elements", elements, 2, 1000)
    votes = check_count("votes", votes, 1, 1_000_000)
    summary = f"the most popular of {elements} elements by noisy counts of votes"
    draw, pair = partial(most_popular, epsilon=epsilon, elements=elements), Pair([0] + [1] * (votes - 1), [1] * votes)
    law = partial(discrete_law, *(_popularity(side, epsilon, elements) for side in (pair.left, pair.right)))
    claim = PureDP(epsilon)
    return entry("noisy_max", summary, draw, claim, pair, law, epsilon=epsilon, elements=elements, votes=votes)
