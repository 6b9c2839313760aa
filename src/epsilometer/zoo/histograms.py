"""Counts per bin with noise on each."""

from __future__ import annotations

from functools import partial

from epsilometer.claims import PureDP
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.additive import AddLaplaceToEach
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import laplace_law
from epsilometer.zoo.parameters import check_choice, check_epsilon, check_whole


def noisy_histogram(epsilon: float = 1.0, scale: str = "right", bins: int = 5) -> ZooEntry:
    """A histogram with Laplace noise on every count; a person adds 1 to one of them. Outputs of shape (n, bins).

    Args:
        epsilon: what it claims.
        scale: "right" is Lap(1/epsilon), "wrong" is Lap(epsilon) by mistake, which breaks the claim if epsilon < 1.
        bins: how many counts.

    Its truth on histograms that differ by one person: only one count differs, so it is that of the Laplace mechanism;
    pure epsilon, or 1/epsilon for the wrong scale.

    Reference: Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy".
    """
    epsilon, bins = check_epsilon(epsilon), check_whole("bins", bins, 1, 1000)
    noise = 1 / epsilon if check_choice("scale", scale, ("right", "wrong")) == "right" else epsilon
    return ZooEntry(
        name="noisy_histogram",
        summary=f"a histogram with Laplace noise of the {scale} scale on every count",
        mechanism=from_batch(AddLaplaceToEach(noise), name="noisy_histogram"),
        claim=PureDP(epsilon),
        worst_pair=Pair([1] * bins, [2] + [1] * (bins - 1)),
        keeps_claim=scale == "right" or epsilon >= 1,
        parameters={"epsilon": epsilon, "scale": scale, "bins": bins},
        law=partial(laplace_law, 1 / noise),
    )
