"""The paper's mechanisms, grid and testers.

Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium: a large scale library for auditing differential privacy", Section 6:
failure probability 1/3, Rényi order 1.5, δ = .01 for Gaussian noise, 100 cells, ten runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer.zoo import ZooEntry
from epsilometer_experiments.options import words

EPSILONS = (0.01, 1.0)
SIZES = (50_000, 100_000, 500_000)
ORDER = 1.5
PAPER_LEVEL, LEVEL = 1 / 3, 0.05
PAPER_CONFIDENCE, OUR_CONFIDENCE = 1 - PAPER_LEVEL, 1 - LEVEL
AUTO = "auto"
# The paper's testers under our names, in the order of its columns.
TESTERS = ("poisson-histogram", "hockey-stick", "renyi-variational", "mmd")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One line of the paper's tables.

    Attributes:
        title: as the paper names it.
        name: in our zoo.
        private: whether it keeps its claim.
        answers: whether its inputs are answers of queries; else lists of values.
    """

    title: str
    name: str
    private: bool = False
    answers: bool = False

    def entry(self, epsilon: float) -> ZooEntry:
        """The zoo entry that claims this ε."""
        return em.zoo.find(self.name, epsilon=epsilon)


MEANS = (
    Mechanism("NonDPLaplace1", "nondp_laplace1"),
    Mechanism("NonDPLaplace2", "nondp_laplace2"),
    Mechanism("NonDPGaussian1", "nondp_gaussian1"),
    Mechanism("NonDPGaussian2", "nondp_gaussian2"),
)
SPARSE_VECTORS = tuple(Mechanism(f"SVT{number}", f"svt{number}", answers=True) for number in (3, 4, 5, 6))
RELEASED = (Mechanism("DPLaplace as released", "dp_laplace_released"),)
PRIVATE = (
    Mechanism("DPLaplace", "dp_laplace", private=True),
    Mechanism("JointMedian", "joint_median", private=True),
    Mechanism("NoisyMax", "noisy_max", private=True),
    Mechanism("SVT1", "svt1", private=True, answers=True),
    Mechanism("SVT2", "svt2", private=True, answers=True),
)
MECHANISMS = {mechanism.title: mechanism for mechanism in (*MEANS, *SPARSE_VECTORS, *RELEASED, *PRIVATE)}


def claim_for(entry: ZooEntry, tester: str) -> Claim:
    """What a tester compares with: the entry's claim, or ε at order 1.5 where Gaussian noise meets the Rényi tester."""
    if tester == "renyi-variational" and isinstance(entry.claim, em.ApproxDP):
        return em.RenyiDP(ORDER, entry.claim.epsilon)
    return entry.claim


def floats(value: object) -> tuple[float, ...]:
    """Reads numbers separated by commas, for an option."""
    return tuple(float(part) for part in words(value))
