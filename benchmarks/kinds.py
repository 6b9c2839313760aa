"""Mechanisms with outputs of every kind: a number, a vector, a tuple of varying length, a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.random import Generator

import epsilometer as em
from epsilometer.mechanisms import Mechanism

_NAMES = np.array(["maple", "oak", "birch", "ash", "elm", "beech"])
_MOST_ITEMS = 5


def noisy_number(dataset: float, n: int, rng: Generator) -> np.ndarray[Any, Any]:
    """The Laplace mechanism as a batch, shape (n,)."""
    return rng.laplace(dataset, 1.0, n)


def noisy_vector(dataset: float, n: int, rng: Generator) -> np.ndarray[Any, Any]:
    """Five numbers with Laplace noise, shape (n, 5)."""
    return rng.laplace(dataset / 5, 1.0, (n, 5))


def noisy_tuples(dataset: float, n: int, rng: Generator) -> list[tuple[float, ...]]:
    """From one to five noisy numbers each, as Python tuples."""
    lengths = rng.integers(1, _MOST_ITEMS + 1, n).tolist()
    numbers = iter(rng.laplace(dataset / _MOST_ITEMS, 1.0, _MOST_ITEMS * n).tolist())
    return [tuple(islice(numbers, length)) for length in lengths]


def noisy_name(dataset: float, n: int, rng: Generator) -> list[str]:
    """One of six names, as Python texts."""
    weights = np.exp(-0.2 * (1.0 + dataset) * np.arange(len(_NAMES)))
    chosen: list[str] = _NAMES[rng.choice(len(_NAMES), n, p=weights / weights.sum())].tolist()
    return chosen


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of outputs.

    Attributes:
        name: in the table.
        function: draws a batch for the input 0.0 or 1.0.
        draws: per side, for its figure.
        most: the audit may take so many times the drawing; None where nothing is promised.
    """

    name: str
    function: Callable[[float, int, Generator], Any]
    draws: int
    most: float | None

    def mechanism(self) -> Mechanism:
        """For audits."""
        return em.from_batch(self.function)

    def draw_alone(self, n: int, chunk: int, seed: int) -> None:
        """What an audit of n draws per side must at least do."""
        rng = np.random.default_rng(seed)
        for dataset in (0.0, 1.0):
            for start in range(0, n, chunk):
                self.function(dataset, min(chunk, n - start), rng)


SCALAR = Kind("scalars", noisy_number, 5_000_000, 2.0)
VECTOR = Kind("five-dimensional vectors", noisy_vector, 1_000_000, 30.0)
TUPLE = Kind("tuples of varying length", noisy_tuples, 1_000_000, 5.0)
TEXT = Kind("texts", noisy_name, 1_000_000, None)
KINDS = (SCALAR, VECTOR, TUPLE, TEXT)
PAIR = (0.0, 1.0)


def audit(mechanism: Mechanism, samples: int, seed: int, **settings: Any) -> em.AuditResult:
    """The audit that is timed: a true claim, every default."""
    return em.audit(mechanism, PAIR, em.PureDP(1.0), samples=samples, seed=seed, **settings)
