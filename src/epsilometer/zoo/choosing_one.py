"""Exponential mechanisms on data: a private median, and the most popular of several elements."""

from __future__ import annotations

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
from epsilometer.zoo.laws import CellLaw, discrete_law
from epsilometer.zoo.numerics import FloatArray
from epsilometer.zoo.parameters import check_epsilon, check_positive, check_whole


@dataclass(frozen=True)
class ExponentialMedian:
    """A number t in [0, 1] with density proportional to exp(-epsilon·|values below t - values above t|/2), shape (n,).

    One person more or less changes the difference by 1, and so the weights and their sum by e^(epsilon/2) each.
    """

    epsilon: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray:
        """Draw n outputs: an interval between neighbouring values, and a uniform place in it."""
        edges, chances = self.intervals(dataset)
        chosen = np.searchsorted(np.cumsum(chances)[:-1], rng.random(n), side="right")
        return edges[chosen] + rng.random(n) * np.diff(edges)[chosen]

    def intervals(self, dataset: Any) -> tuple[FloatArray, FloatArray]:
        """The edges between which the density is constant, shape (k + 1,), and the probability of each interval."""
        values = np.sort(np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0))
        edges = np.concatenate([[0.0], values, [1.0]])
        distance = np.abs(2.0 * np.arange(values.size + 1) - values.size)
        weights = np.diff(edges) * np.exp(-self.epsilon * (distance - distance.min()) / 2)
        return edges, weights / weights.sum()


def joint_median(epsilon: float = 1.0, width: float = 0.05) -> ZooEntry:
    """A private median in [0, 1] by the exponential mechanism: the joint one of several quantiles, for one of them.

    On one value against two that lie `width` apart about 1/2 its truth is -ln((1 - width)·e^(-epsilon) + width), by an
    output between them, or epsilon minus that if it is larger, by an output elsewhere.

    Reference: Gillenwater, Joseph, Kulesza, "Differentially private quantiles"; a mechanism of DP-Auditorium.
    """
    epsilon, width = check_epsilon(epsilon), check_positive("width", width, 0.9)
    mechanism = ExponentialMedian(epsilon)
    pair = Pair([0.5 - width / 2], [0.5 - width / 2, 0.5 + width / 2])
    return ZooEntry(
        name="joint_median",
        summary="a median by the exponential mechanism",
        mechanism=from_batch(mechanism, name="joint_median"),
        claim=PureDP(epsilon),
        worst_pair=pair,
        keeps_claim=True,
        parameters={"epsilon": epsilon, "width": width},
        law=partial(_median_law, mechanism, pair),
    )


def _median_law(mechanism: ExponentialMedian, pair: Pair) -> CellLaw:
    """Both densities are constant between the right dataset's values, for the left one's are among them."""
    edges, right = mechanism.intervals(pair.right)
    left_edges, left = mechanism.intervals(pair.left)
    return discrete_law(np.diff(np.interp(edges, left_edges, np.append(0.0, np.cumsum(left)))), right)


@dataclass(frozen=True)
class MostPopular:
    """The element with the greatest count plus Gumbel noise of scale 2/epsilon; int64 outputs of shape (n,).

    The dataset is a list of votes, each for one of the elements 0, 1, ….
    """

    epsilon: float
    elements: int

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.int64]:
        """Draw n outputs: the position of the maximum of Gumbel noise about scores is a draw by their exponentials."""
        cumulative = np.cumsum(self.chances(dataset))[:-1]
        return np.searchsorted(cumulative, rng.random(n), side="right").astype(np.int64)

    def chances(self, dataset: Any) -> FloatArray:
        """The probability of every element, shape (elements,)."""
        counts = np.bincount(np.asarray(dataset, dtype=np.int64), minlength=self.elements)
        weights = np.exp(self.epsilon / 2 * (counts - counts.max()))
        result: FloatArray = weights / weights.sum()
        return result


def noisy_max(epsilon: float = 1.0, elements: int = 5, votes: int = 4) -> ZooEntry:
    """The most popular of several elements by noisy counts of votes: private, when one person changes her vote.

    On one vote for the first element and the others for the second, against all for the second, its truth tends to
    epsilon for many votes, on ever rarer events.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", Section 3.3; a mechanism of
    DP-Auditorium, with Gumbel noise.
    """
    epsilon, elements = check_epsilon(epsilon), check_whole("elements", elements, 2, 1000)
    votes = check_whole("votes", votes, 1, 1_000_000)
    mechanism = MostPopular(epsilon, elements)
    pair = Pair([0] + [1] * (votes - 1), [1] * votes)
    return ZooEntry(
        name="noisy_max",
        summary=f"the most popular of {elements} elements by noisy counts of votes",
        mechanism=from_batch(mechanism, name="noisy_max"),
        claim=PureDP(epsilon),
        worst_pair=pair,
        keeps_claim=True,
        parameters={"epsilon": epsilon, "elements": elements, "votes": votes},
        law=partial(_votes_law, mechanism, pair),
    )


def _votes_law(mechanism: MostPopular, pair: Pair) -> CellLaw:
    return discrete_law(mechanism.chances(pair.left), mechanism.chances(pair.right))
