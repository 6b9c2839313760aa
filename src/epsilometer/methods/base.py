"""What a method is: it learns on some draws what to prove, and proves it on fresh ones.

The audit loop owns the split and the budget. A method never sees fresh draws before it has fixed
its proposal, and a proposal sees them only as tallies.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from epsilometer.bounds import Counts
from epsilometer.claims import Claim
from epsilometer.engine.streams import Purpose, Stream
from epsilometer.inputs import Pair
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be proved.

    Attributes:
        claim: the notion, its fixed parameters, and the claimed value.
        n_fresh: draws per side that the proof will have, (left, right).
        failure_probability: what the proof may spend.
        stream: of random numbers, for methods that draw some themselves. An audit gives each
            proposal its own, from its seed; without one it comes from the system's entropy, so that
            no method can do with a constant seed.
    """

    claim: Claim
    n_fresh: tuple[int, int]
    failure_probability: float
    stream: Stream = field(default_factory=Stream.fresh)

    def learning_rng(self) -> np.random.Generator:
        """Random numbers for `propose`; the same ones at every call."""
        return self.stream.rng(Purpose.LEARN)

    def proving_rng(self) -> np.random.Generator:
        """Random numbers for `certify`, which chose nothing; the same ones at every call.

        So the bounds of one certificate at several failure probabilities rest on the same numbers.
        """
        return self.stream.rng(Purpose.PROVE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event that may be worth proving, with its frequencies in the draws that chose it.

    Attributes:
        event: the set of outputs.
        flipped: False when the left outputs fall into it more often.
        p: its frequency on the side where it is more frequent.
        q: on the other.
        predicted: the bound to expect.
    """

    event: Event
    flipped: bool
    p: float
    q: float
    predicted: float

    def oriented(self, left: T, right: T) -> tuple[T, T]:
        """The side where the event is more frequent, then the other."""
        return (right, left) if self.flipped else (left, right)


class Proposal:
    """What a method wants to prove, fixed before the fresh draws. It must survive pickling.

    Attributes:
        predicted: the bound to expect, from training draws only; chooses among pairs and methods.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # at run time a dataclass would take the property for a field's default

        @property
        def predicted(self) -> float:
            """The bound to expect."""

    @property
    def event(self) -> Event | None:
        """The outputs that it counts: the health checks look at how these are spread over the draws."""
        return None

    @property
    def detectable(self) -> float | None:
        """The smallest true value that it would refute with 90 % power, where the method itself knows.

        Most cannot. The audit rehearses those methods that are quick.
        """
        return None

    def tally(self, outputs: Outputs, side: int) -> Any:
        """What the proof needs from fresh outputs of one side (0 left, 1 right). Tallies of chunks are added with +."""
        raise NotImplementedError

    def certify(self, left: Any, right: Any, pair: Pair, failure_probability: float) -> Finding:
        """The proof from the summed tallies, which fails with at most this probability."""
        raise NotImplementedError

    def p_value(self, left: Any, right: Any, failure_probability: float) -> float | None:
        """The p-value of the claim that `certify` judges at this failure probability; None where there is none.

        It must be at most t with probability at most t, for every t and not only for this failure
        probability, if the claim holds; and it is at most the failure probability where `certify`
        refutes the claim.
        """
        return None

    def certify_beside(
        self, left: Any, right: Any, pair: Pair, failure_probability: float
    ) -> tuple[Finding, ...]:
        """Further findings, which decide nothing. They and `certify` share the failure probability."""
        return ()


@dataclass(frozen=True, slots=True)
class CandidateProposal(Proposal):
    """A proposal that counts one event; how it certifies the counts is up to the method.

    Attributes:
        candidate: the event.
        task: what is to be proved.
    """

    candidate: Candidate
    task: Task

    @property
    def predicted(self) -> float:
        """The bound to expect."""
        return self.candidate.predicted

    @property
    def event(self) -> Event:
        """The set of outputs."""
        return self.candidate.event

    def tally(self, outputs: Outputs, side: int) -> Counts:
        """How often the event happened."""
        return Counts(int(np.count_nonzero(self.candidate.event.contains(outputs))), outputs.size)


class Method:
    """A way to find and prove a loss of privacy.

    Name, summary, guarantee and `propose` make a method; the rest has defaults. The base class is a
    convenience: any object with these names works too, and so does a proposal with `predicted`,
    `tally` and `certify`.

    Attributes:
        name: in results, in `epsilometer methods`.
        summary: what it does, in one line.
        guarantee: "exact", "asymptotic", "conditional: …" or "none: …".
        stops_early: whether it draws in growing batches until it has proved enough; only
            `sequential` does.
        is_quick: whether its audits take milliseconds, so that a hundred can be rehearsed to find
            out what an audit could have found.
    """

    __slots__ = ()

    name: str
    summary: str
    guarantee: str
    stops_early: bool = False
    is_quick: bool = False

    def propose(self, left: Outputs, right: Outputs, task: Task) -> Proposal:
        """Learns from training draws what to prove on fresh ones."""
        raise NotImplementedError

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Raises an InputError for what the method cannot do, before anything is drawn."""

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Draws per side and pair that learn, and that prove; None leaves the split to the audit."""
        return None
