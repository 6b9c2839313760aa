"""What a method is: it learns on some draws what to prove, and proves it on fresh ones.

The audit loop owns the split and the budget. A method never sees fresh draws before it has fixed its proposal, and a
proposal sees them only as tallies.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from epsilometer.claims import Claim
from epsilometer.inputs import Pair
from epsilometer.outputs import Outputs
from epsilometer.result import Finding


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  # SciPy has a BLAS library of its own: loaded first, it is found, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks for libraries once


def one_thread() -> AbstractContextManager[None]:
    """A context in which linear algebra does not start threads."""
    limited: AbstractContextManager[None] = _libraries().limit(limits=1, user_api="blas")
    return limited


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be proved.

    Attributes:
        claim: the notion, its fixed parameters, and the claimed value.
        n_fresh: draws per side that the proof will have, (left, right).
        failure_probability: what the proof may spend.
    """

    claim: Claim
    n_fresh: tuple[int, int]
    failure_probability: float


class Proposal(Protocol):
    """What a method wants to prove, fixed before the fresh draws. It must survive pickling."""

    @property
    def predicted(self) -> float:
        """The bound to expect, from training draws only; chooses among pairs and methods."""

    def tally(self, outputs: Outputs, side: int) -> Any:
        """What the proof needs of fresh outputs of one side (0 left, 1 right). Tallies of chunks are added with +."""

    def certify(self, left: Any, right: Any, pair: Pair, failure_probability: float) -> Finding:
        """The proof from the summed tallies."""


class Method(Protocol):
    """A way to find and prove a loss of privacy."""

    name: str
    summary: str
    guarantee: str

    def propose(self, left: Outputs, right: Outputs, task: Task) -> Proposal:
        """Learns from training draws what to prove on fresh ones."""
