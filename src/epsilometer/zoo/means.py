"""Means of bounded values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.claims import PureDP
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import laplace_law
from epsilometer.zoo.numerics import FloatArray
from epsilometer.zoo.parameters import check_epsilon, check_positive, check_whole


@dataclass(frozen=True)
class NoisyMean:
    """The mean of values clipped to [0, 1], plus Laplace noise; outputs of shape (n,).

    Attributes:
        noise_times_size: scale of the noise for one value; for k values it is divided by k.
    """

    noise_times_size: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray:
        """Draw n outputs."""
        values = np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0)
        return rng.laplace(float(values.mean()), self.noise_times_size / values.size, n)


def dp_mean(epsilon: float = 1.0, scale_error: float = 0.5, size: int = 10) -> ZooEntry:
    """The mean of k values clipped to [0, 1], plus scale_error times the right noise Lap(1/(k·epsilon)).

    With scale_error = 1 it keeps its claim, with less it does not: the default is a factor 2 that someone forgot. Its
    truth when one person changes her value from 0 to 1: pure epsilon/scale_error.

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis".
    """
    epsilon, size = check_epsilon(epsilon), check_whole("size", size, 1, 1_000_000)
    scale_error = check_positive("scale_error", scale_error)
    return ZooEntry(
        name="dp_mean",
        summary=f"a mean with {scale_error:g} times the Laplace noise that it needs",
        mechanism=from_batch(NoisyMean(scale_error / epsilon), name="dp_mean"),
        claim=PureDP(epsilon),
        worst_pair=Pair([0.0] * size, [1.0] + [0.0] * (size - 1)),
        keeps_claim=scale_error >= 1,
        parameters={"epsilon": epsilon, "scale_error": scale_error, "size": size},
        law=partial(laplace_law, epsilon / scale_error),
    )
