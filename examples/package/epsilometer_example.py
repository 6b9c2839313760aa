"""A package that brings a method and a mechanism; pyproject.toml names them as entry points."""

import numpy as np

import epsilometer as em
from epsilometer.methods import Method, Proposal, Task, find_method
from epsilometer.outputs import Outputs


class QuickEvents(Method):
    """The method `events`, with fewer draws for learning and more for the proof."""

    name = "quick-events"
    guarantee = "exact"
    summary = "events learned from at most 1000 draws"

    def propose(self, left: Outputs, right: Outputs, task: Task) -> Proposal:
        return find_method("events").propose(left, right, task)

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int]:
        learning = min(1000, samples // (2 * n_pairs))
        return learning, samples - n_pairs * learning


def noisy_count(rows: list[int], rng: np.random.Generator) -> float:
    return sum(rows) + rng.laplace(scale=0.5)  # ε = 1 would need scale=1


half_noise = em.from_callable(noisy_count)
half_noise.claim = em.PureDP(1.0)  # both may be left out; then the caller states them
half_noise.worst_pair = em.Pair([1, 1, 0], [1, 1, 1])
