"""What a method is: it learns on some draws what to certify, and certifies it on fresh ones.

The audit loop owns the split and the error budget. A method never sees fresh draws before it has
fixed its proposal, and a proposal sees them only as tallies.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from epsilometer.bounds import Counts
from epsilometer.claims import Claim
from epsilometer.engine.streams import Purpose, Stream
from epsilometer.inputs import Pair
from epsilometer.one_line import one_line
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.identifiers import ColumnPlace
from epsilometer.outputs.preparing import Prepared
from epsilometer.result import Finding, Witness

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be certified.

    Attributes:
        claim: the notion, its fixed parameters, and the claimed value.
        n_fresh: draws per side that the certificate will have, (left, right).
        failure_probability: what the certificate may spend.
        stream: random numbers for methods that need some. An audit gives each proposal a stream of
            its own, derived from the audit's seed. The default comes from the system's entropy, so
            that no method works with a constant seed by accident.
        growing: columns that grew from draw to draw, such as a counter: training draws come in
            random order, in which this does not show. None if they come in their own order.
    """

    claim: Claim
    n_fresh: tuple[int, int]
    failure_probability: float
    stream: Stream = field(default_factory=Stream.fresh)
    growing: frozenset[ColumnPlace] | None = None

    def learning_rng(self) -> np.random.Generator:
        """Returns random numbers for `propose`; the same ones at every call."""
        return self.stream.rng(Purpose.LEARN)

    def proving_rng(self) -> np.random.Generator:
        """Returns random numbers for `certify`; the same ones at every call.

        They took no part in `propose`. Because they repeat, the bounds of one certificate at
        several failure probabilities rest on the same numbers.
        """
        return self.stream.rng(Purpose.PROVE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event that may be worth certifying, with its frequencies in the draws that chose it.

    Attributes:
        event: the set of outputs.
        flipped: False when the left outputs fall into it more often.
        p: its frequency on the side where it is more frequent.
        q: its frequency on the other side.
        predicted: the bound to expect.
    """

    event: Event
    flipped: bool
    p: float
    q: float
    predicted: float

    def oriented(self, left: T, right: T) -> tuple[T, T]:
        """Returns what belongs to the side where the event is more frequent, then the other."""
        return (right, left) if self.flipped else (left, right)


class Proposal:
    """What a method wants to certify, fixed before the fresh draws. It must survive pickling.

    Attributes:
        predicted: the bound to expect, from training draws only; chooses among pairs and methods.
    """

    __slots__ = ()

    # Only for type checkers: at run time a dataclass would take the property for a field's default.
    if TYPE_CHECKING:

        @property
        def predicted(self) -> float:
            """The bound to expect."""

    @property
    def event(self) -> Event | None:
        """The outputs that it counts, if any; the health checks examine how they are spread."""
        return None

    @property
    def detectable(self) -> float | None:
        """The smallest true value that it would refute with 90 % power; None if it is not known.

        Most methods do not know it. The audit rehearses those methods that are quick.
        """
        return None

    def tally(self, outputs: Outputs, side: int) -> Any:
        """Summarises what the certificate needs from fresh outputs of one side.

        Args:
            outputs: fresh draws.
            side: 0 for the left side, 1 for the right one.

        Returns:
            Tallies of chunks are added with `+`.
        """
        raise NotImplementedError

    def certify(self, left: Any, right: Any, pair: Pair, failure_probability: float) -> Finding:
        """Certifies a bound from the summed tallies.

        Guarantee: the bound exceeds the truth with at most this probability.
        """
        raise NotImplementedError

    def p_value(self, left: Any, right: Any, failure_probability: float) -> float | None:
        """The p-value of the claim that `certify` judges; None if the method has none.

        Guarantee: if the claim holds, it is at most t with probability at most t, for every t and
        not only for this failure probability. It is at most the failure probability where `certify`
        refutes the claim.
        """
        return None

    def certify_secondary(
        self, left: Any, right: Any, pair: Pair, failure_probability: float
    ) -> tuple[Finding, ...]:
        """Certifies further findings, which are reported but decide nothing.

        Guarantee: these findings and the one of `certify` share the failure probability.
        """
        return ()


@dataclass(frozen=True, slots=True)
class CandidateProposal(Proposal):
    """A proposal that counts one event; how it certifies the counts is up to the method.

    Attributes:
        candidate: the event.
        task: what is to be certified.
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

    def of_raw_outputs(self, prepared: Prepared) -> Self:
        """The same proposal, learned from prepared draws, about outputs as they come."""
        event = prepared.of_raw_outputs(self.candidate.event)
        return replace(self, candidate=replace(self.candidate, event=event))

    def tally(self, outputs: Outputs, side: int) -> Counts:
        """Counts how often the event happened."""
        hits = int(np.count_nonzero(self.candidate.event.contains(outputs)))
        return Counts(hits, outputs.size)

    def finding(
        self,
        left: Counts,
        right: Counts,
        pair: Pair,
        failure_probability: float,
        *,
        method: str,
        lower_bound: float,
        guarantee: str = "exact",
        details: dict[str, Any] | None = None,
    ) -> Finding:
        """A certified bound together with the event and the counts that it rests on."""
        witness = Witness.of(
            pair,
            self.event,
            flipped=self.candidate.flipped,
            left=left,
            right=right,
            failure_probability=failure_probability,
        )
        return Finding(
            method=method,
            lower_bound=lower_bound,
            guarantee=guarantee,
            confidence=1.0 - failure_probability,
            witness=witness,
            claim=self.task.claim,
            details={} if details is None else details,
        )


class Method:
    """A way to find and certify a loss of privacy.

    Name, summary, guarantee and `propose` make a method; the rest has defaults. The base class is a
    convenience: any object with these names works too, and so does a proposal with `predicted`,
    `tally` and `certify`.

    Attributes:
        name: appears in results and in `epsilometer methods`.
        summary: what it does, in one line.
        guarantee: "exact", "asymptotic", "conditional: …" or "none: …".
        stops_early: whether it draws in growing batches until it has certified enough; only
            `sequential` does.
        is_quick: whether its audits take milliseconds, so that a hundred can be rehearsed to
            estimate the power of an audit.
    """

    __slots__ = ()

    name: str
    summary: str
    guarantee: str
    stops_early: bool = False
    is_quick: bool = False

    def __repr__(self) -> str:
        # What it was made with: a method that is an object is its own options.
        attributes = {**getattr(self, "__dict__", {})}
        settings = [
            f"{name}={one_line(value)}" for name, value in attributes.items() if name[0] != "_"
        ]
        return f"{type(self).__name__}({', '.join(settings)})"

    def propose(self, left: Outputs, right: Outputs, task: Task) -> Proposal:
        """Learns from training draws what to certify on fresh ones."""
        raise NotImplementedError

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Raises an InputError for what the method cannot do, before anything is drawn."""

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Fixes how many draws per side learn (for each pair), and how many are certified on.

        Returns:
            None leaves the split to the audit.
        """
        return None
