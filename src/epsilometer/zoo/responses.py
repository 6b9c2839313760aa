"""Randomized response of many people, as it is or shuffled."""

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
from epsilometer.zoo.parameters import check_choice, check_epsilon, check_whole

# More people than this have more shuffled answers than a float can tell apart.
_MOST_USERS = 50


@dataclass(frozen=True)
class Responses:
    """Every person's bit, flipped with some probability; bool outputs of shape (n, people).

    Attributes:
        lie: probability of a flip.
    """

    lie: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.bool_]:
        """Draw n outputs."""
        bits = _read_bits(dataset)
        flips = rng.random((n, len(bits))) < self.lie
        return np.not_equal(flips, bits, out=flips)


@dataclass(frozen=True)
class ShuffledResponses:
    """The same answers in random order; bool outputs of shape (n, people).

    Attributes:
        responses: how people answer.
    """

    responses: Responses

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.bool_]:
        """Draw n outputs: a fresh uniform permutation for every row."""
        answers = self.responses(dataset, n, rng)
        # Sorting by random keys permutes uniformly; a tie of two 62-bit keys, which would sort by answer, has
        # probability below 1e-15 per row.
        keys = rng.integers(0, 1 << 62, answers.shape, dtype=np.int64)
        keys <<= 1
        keys |= answers
        keys.sort(axis=1)
        return (keys & 1).astype(np.bool_)


@dataclass(frozen=True)
class CountedResponses:
    """How many people answered 1; int64 outputs of shape (n,).

    Attributes:
        responses: how people answer.
    """

    responses: Responses

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.int64]:
        """Draw n outputs."""
        return np.asarray(self.responses(dataset, n, rng).sum(axis=1), dtype=np.int64)


def randomized_responses(epsilon: float = 1.0, users: int = 10) -> ZooEntry:
    """Binary randomized response of each of several people; the output is everybody's answer.

    Its truth when one person changes her bit is that of one response: pure epsilon.

    Reference: Warner, "Randomized response".
    """
    epsilon, users = check_epsilon(epsilon), check_whole("users", users, 1, _MOST_USERS)
    return ZooEntry(
        name="randomized_responses",
        summary=f"the bits of {users} people, each told truthfully or flipped",
        mechanism=from_batch(Responses(_lie(epsilon)), name="randomized_responses"),
        claim=PureDP(epsilon),
        worst_pair=_one_bit(users),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "users": users},
        law=partial(_response_law, epsilon),
    )


def shuffled_responses(epsilon: float = 1.0, users: int = 10, output: str = "vector") -> ZooEntry:
    """Binary randomized response of each of several people, shuffled before it is published.

    `output` is "vector" (the answers in random order) or "counts" (how many answered 1): the same privacy, since the
    order tells nothing, but 2^users outputs against users + 1. The claim is that of one response, which shuffling can
    only improve; the truth is a finite sum.

    Reference: Girgis, Data, Diggavi, Suresh, Kairouz, "On the Rényi differential privacy of the shuffle model".
    """
    epsilon, users = check_epsilon(epsilon), check_whole("users", users, 1, _MOST_USERS)
    output = check_choice("output", output, ("vector", "counts"))
    draw = (ShuffledResponses if output == "vector" else CountedResponses)(Responses(_lie(epsilon)))
    return ZooEntry(
        name="shuffled_responses",
        summary=f"the bits of {users} people, each told truthfully or flipped, in random order",
        mechanism=from_batch(draw, name="shuffled_responses"),
        claim=PureDP(epsilon),
        worst_pair=_one_bit(users),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "users": users, "output": output},
        law=partial(_count_law, epsilon, users),
    )


def _lie(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon))


def _one_bit(users: int) -> Pair:
    return Pair([1] + [0] * (users - 1), [0] * users)


def _read_bits(dataset: Any) -> NDArray[np.bool_]:
    bits = np.asarray(dataset)
    if bits.ndim != 1 or not np.isin(bits, (0, 1)).all():
        raise InputError(f"dataset={dataset!r:.100} must be a list of bits, one per person")
    return bits.astype(np.bool_)


def _response_law(epsilon: float) -> CellLaw:
    lie = _lie(epsilon)
    return discrete_law(np.array([1 - lie, lie]), np.array([lie, 1 - lie]))


def _count_law(epsilon: float, users: int) -> CellLaw:
    """The number of ones: the others' answers are binomial, the one person's answer comes on top."""
    lie = _lie(epsilon)
    k = np.arange(users)
    logs = [math.lgamma(users) - math.lgamma(i + 1) - math.lgamma(users - i) for i in range(users)]
    others = np.exp(np.array(logs) + k * math.log(lie) + (users - 1 - k) * math.log1p(-lie))
    none, one = np.append(others, 0.0), np.append(0.0, others)
    return discrete_law(lie * none + (1 - lie) * one, (1 - lie) * none + lie * one)
