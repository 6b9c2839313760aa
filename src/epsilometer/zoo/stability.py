"""Releases that are tested for stability first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from epsilometer.claims import ApproxDP
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import CellLaw
from epsilometer.zoo.numerics import laplace_below
from epsilometer.zoo.parameters import check_delta, check_epsilon, check_whole


@dataclass(frozen=True)
class ProposeTestRelease:
    """Columns `released` (bool) and `value` (float, nan if not released), each of shape (n,).

    The dataset is (value, distance): what would be released, and how many people would have to change before the
    proposed local sensitivity 1 fails.
    """

    scale: float
    threshold: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> dict[str, NDArray[Any]]:
        """Draw n outputs."""
        centre, distance = dataset
        released = rng.laplace(float(distance), self.scale, n) > self.threshold
        value = np.where(released, rng.laplace(float(centre), self.scale, n), np.nan)
        return {"released": released, "value": value}


def propose_test_release(epsilon: float = 1.0, delta: float = 1e-3, distance: int | None = None) -> ZooEntry:
    """Propose-test-release: a value is released only if the noisy distance to instability is large enough.

    Lap(1/epsilon) on the distance, threshold ln(1/(2 delta))/epsilon, and Lap(1/epsilon) on the released value; it
    claims and keeps (2 epsilon, delta).

    Args:
        epsilon: the budget of each of the two noises.
        delta: the chance to release although the proposed sensitivity fails.
        distance: of the left dataset (the right one's is smaller by 1). By default the greatest whole number up to
            the threshold, at least 1: there the pure loss is all of 2 epsilon if the threshold is 1 or more.

    The truth with F(d) = P(released): |ln F(d)/F(d - 1)| + epsilon, or that of "not released" if it is larger; 1.649
    for distance = 7 and the other defaults.

    Reference: Dwork and Lei, "Differential privacy and robust statistics".
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    mechanism = ProposeTestRelease(1 / epsilon, math.log(1 / (2 * delta)) / epsilon)
    if distance is None:
        distance = max(1, math.floor(mechanism.threshold))
    distance = check_whole("distance", distance, 1, 10**9)
    return ZooEntry(
        name="propose_test_release",
        summary="a value that is released only if it is far from unstable",
        mechanism=from_batch(mechanism, name="propose_test_release"),
        claim=ApproxDP(2 * epsilon, delta),
        worst_pair=Pair([0.0, float(distance)], [1.0, float(distance - 1)]),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "delta": delta, "distance": distance},
        law=partial(_law, mechanism, float(distance)),
    )


def _law(mechanism: ProposeTestRelease, distance: float) -> CellLaw:
    margins = np.array([distance, distance - 1]) - mechanism.threshold
    released = laplace_below(margins, mechanism.scale)
    kept = laplace_below(-margins, mechanism.scale)
    shifts = np.array([1 / mechanism.scale, 0.0])
    return CellLaw(np.array([released[0], kept[0]]), np.array([released[1], kept[1]]), shifts)
