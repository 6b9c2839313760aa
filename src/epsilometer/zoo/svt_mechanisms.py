"""How the sparse vector techniques draw their outputs: query by query, all n runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from epsilometer.zoo.numerics import FloatArray
from epsilometer.zoo.svt_laws import Scheme


@dataclass(frozen=True)
class AnswerAll:
    """Every query is answered; bool outputs of shape (n, d), True for "above"."""

    scheme: Scheme

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.bool_]:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        answers = np.empty((n, len(dataset)), dtype=np.bool_)
        for position, query in enumerate(dataset):
            answers[:, position] = _noisy_query(self.scheme, query, n, rng) >= bar
        return answers


@dataclass(frozen=True)
class FirstAbove:
    """Stops at the first "above"; int64 outputs of shape (n,): how many were "below" before it."""

    scheme: Scheme

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.int64]:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        first = np.full(n, len(dataset), dtype=np.int64)
        # From the last query to the first, so that the first one above has the last word.
        for position in reversed(range(len(dataset))):
            first[_noisy_query(self.scheme, dataset[position], n, rng) >= bar] = position
        return first


@dataclass(frozen=True)
class AnswerUntil:
    """Stops after `cutoff` times "above"; int8 outputs of shape (n, d): 1 above, 0 below, -1 not answered."""

    scheme: Scheme

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.int8]:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        answers = np.full((n, len(dataset)), -1, dtype=np.int8)
        left = np.full(n, self.scheme.cutoff or 1)
        for position, query in enumerate(dataset):
            above = _noisy_query(self.scheme, query, n, rng) >= bar
            going = left > 0
            answers[going, position] = above[going]
            left -= above & going
            if self.scheme.reset_scale > 0:
                bar[above] = self.scheme.threshold + rng.laplace(0.0, self.scheme.reset_scale, int(above.sum()))
        return answers


@dataclass(frozen=True)
class AnswerValuesUntil:
    """Stops after `cutoff` times "above" and releases the compared values; float outputs of shape (n, d).

    A value above, -inf below, nan not answered.
    """

    scheme: Scheme

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        answers = np.full((n, len(dataset)), np.nan)
        left = np.full(n, self.scheme.cutoff or 1)
        for position, query in enumerate(dataset):
            noisy = _noisy_query(self.scheme, query, n, rng)
            above, going = noisy >= bar, left > 0
            answers[going, position] = np.where(above, noisy, -np.inf)[going]
            left -= above & going
        return answers


@dataclass(frozen=True)
class FirstAboveValue:
    """Stops at the first "above" and releases it as a number; columns `position` and `value`, each of shape (n,).

    Attributes:
        scheme: the noises and the threshold.
        fresh_scale: scale of the noise on the released query; 0 releases the very value that was compared.
    """

    scheme: Scheme
    fresh_scale: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> dict[str, NDArray[Any]]:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        first = np.full(n, len(dataset), dtype=np.int64)
        value = np.full(n, np.nan)
        for position in reversed(range(len(dataset))):
            noisy = _noisy_query(self.scheme, dataset[position], n, rng)
            above = noisy >= bar
            first[above] = position
            value[above] = noisy[above] if self.fresh_scale == 0 else float(dataset[position])
        if self.fresh_scale > 0:
            value += rng.laplace(0.0, self.fresh_scale, n)
        return {"position": first, "value": value}


def _noisy_threshold(scheme: Scheme, n: int, rng: Generator) -> FloatArray:
    return rng.laplace(scheme.threshold, scheme.threshold_scale, n)


def _noisy_query(scheme: Scheme, query: float, n: int, rng: Generator) -> FloatArray:
    if scheme.query_scale == 0:
        return np.full(n, float(query))
    return rng.laplace(float(query), scheme.query_scale, n)
