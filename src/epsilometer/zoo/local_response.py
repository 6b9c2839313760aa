"""Local privacy: every person randomises her own answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from epsilometer.claims import PureDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import CellLaw, discrete_law
from epsilometer.zoo.parameters import check_epsilon, check_whole


@dataclass(frozen=True)
class RandomizedResponse:
    """Tells the true label with some probability, else one of the others; outputs are strings, shape (n,).

    Attributes:
        labels: all possible answers.
        truthful: probability of the true one.
    """

    labels: tuple[str, ...]
    truthful: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.str_]:
        """Draw n outputs."""
        if dataset not in self.labels:
            raise InputError(f"dataset={dataset!r} is not one of the answers {', '.join(self.labels)}")
        lie = rng.integers(1, len(self.labels), n)
        lie[rng.random(n) < self.truthful] = 0
        return np.array(self.labels)[(self.labels.index(dataset) + lie) % len(self.labels)]


def randomized_response(epsilon: float = 1.0, categories: int = 2) -> ZooEntry:
    """Randomized response over k labels ("yes" and "no" for two): the truth with probability e^eps/(e^eps + k - 1).

    Its truth on any two labels: pure epsilon; the other notions by a finite sum.

    Reference: Warner, "Randomized response"; Kairouz, Oh, Viswanath, "Extremal mechanisms for local differential
    privacy".
    """
    epsilon, categories = check_epsilon(epsilon), check_whole("categories", categories, 2, 10_000)
    labels = ("yes", "no") if categories == 2 else tuple(f"c{index}" for index in range(categories))
    truthful = 1 / (1 + (categories - 1) * math.exp(-epsilon))
    return ZooEntry(
        name="randomized_response",
        summary=f"a label, told truthfully or replaced by one of the other {categories - 1}",
        mechanism=from_batch(RandomizedResponse(labels, truthful), name="randomized_response"),
        claim=PureDP(epsilon),
        worst_pair=Pair(labels[0], labels[1]),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "categories": categories},
        law=partial(_law, epsilon, categories, truthful),
    )


def _law(epsilon: float, categories: int, truthful: float) -> CellLaw:
    lie = truthful * math.exp(-epsilon)
    others = (categories - 2) * lie
    return discrete_law(np.array([truthful, lie, others]), np.array([lie, truthful, others]))
