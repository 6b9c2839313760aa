"""auditorium/anecdotes: Section 6.7. SVT4 was thought to be private, and a mean was computed with an undivided budget.

The mean estimates its numerator and its denominator with a Laplace mechanism each. Each may spend ε/2. With all of ε
for both, the two together have 2ε, and their ratio has more than ε as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer_experiments.auditorium.settings import PAPER_CONFIDENCE, PAPER_LEVEL
from epsilometer_experiments.experiment import (
    EXACT,
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Quick,
    Rate,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole

FLAGGED, BOUND = "flagged by {}", "ε by auto"
METHODS = ("auto", "hockey-stick")


@dataclass(frozen=True)
class BothNoisyMean:
    """A noisy sum over a noisy count of numbers in [0, 1], with the two noisy numbers as they are or their ratio.

    Attributes:
        epsilon: the claim.
        share: what part of it each of the two spends.
        ratio: whether to return the mean; else both numbers.
    """

    epsilon: float
    share: float
    ratio: bool = False

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs."""
        scale = 1.0 / (self.epsilon * self.share)
        both = np.array([sum(dataset), len(dataset)]) + rng.laplace(0.0, scale, (n, 2))
        return both[:, 0] / np.maximum(both[:, 1], 1e-12) if self.ratio else both


# One person with the value 1 is added to three others: both numbers move by 1.
PAIR = em.Pair([1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
MECHANISMS = {
    "SVT4 at ε = 1": (None, 1.0, False),
    "sum and count, undivided budget": (BothNoisyMean(1.0, 1.0), 1.0, False),
    "sum and count, divided budget": (BothNoisyMean(1.0, 0.5), 1.0, True),
    "mean, undivided budget": (BothNoisyMean(1.0, 1.0, True), 1.0, False),
    "mean, divided budget": (BothNoisyMean(1.0, 0.5, True), 1.0, True),
}


def make_cases(settings: Settings) -> list[Case]:
    """The two bugs, and the corrected mean."""
    cases = []
    for name, (_, _, private) in MECHANISMS.items():
        expected: dict[str, Target] = {}
        for method in METHODS:
            level = 0.05 if method == "auto" else PAPER_LEVEL
            kept, broken = (
                Rate(level, "≤", source=PROMISED),
                Target(1.0, "≥", source="paper: Section 6.7"),
            )
            expected[FLAGGED.format(method)] = kept if private else broken
        if name.startswith("sum and count"):
            expected[BOUND] = Target(1.0 if private else 2.0, "≤", source=EXACT)
        cases.append(Case(name, {}, expected))
    return cases


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether each method flags the mechanism, and how large its ε is at least."""
    made, claim, _ = MECHANISMS[case.name]
    entry = em.zoo.svt4(1.0)
    mechanism: Any = entry.mechanism if made is None else em.from_batch(made)
    pair = entry.worst_pair if made is None else PAIR
    numbers: dict[str, float] = {}
    for method in METHODS:
        confidence = 0.95 if method == "auto" else PAPER_CONFIDENCE
        found = em.audit(
            mechanism,
            pair,
            em.PureDP(claim),
            samples=settings["samples"],
            seed=seed,
            method=method,
            confidence=confidence,
        )
        numbers[FLAGGED.format(method)] = float(found.is_refuted)
        if method == "auto":
            numbers[BOUND] = found.lower_bound
    return numbers


EXPERIMENT = Experiment(
    name="auditorium/anecdotes",
    summary="Section 6.7: SVT4, and the mean with an undivided budget",
    runs=10,
    cases=make_cases,
    run_once=run_once,
    options=(Option("samples", "draws per side", 100_000, whole),),
    quick=Quick(1),
)
