"""Method `bits`: one certified event about the representation of floating-point outputs.

The event is about sign, exponent and trailing zero bits, not about the values.

Reference: Mironov, "On significance of the least significant bits for differential privacy" (2012).
"""

from dataclasses import dataclass, replace
from typing import Any

from epsilometer.arrays import Integers
from epsilometer.bounds import Counts
from epsilometer.engine.folding import TwoTallies
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.events import EventProposal, EventsMethod
from epsilometer.methods.profile import ProfileMethod, ProfileProposal
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.bits import as_bits_event, bits_view
from epsilometer.result import Finding

# The fraction of the failure probability that the secondary finding about bits spends. It lowers
# the finding about values by less than 1 % of its distance from the truth.
BITS_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class BitsProposal(EventProposal):
    """An event of bits to be counted on fresh draws."""

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the exact bound from the counts of the fresh draws."""
        # A dataclass with slots is a new class, which `super()` without arguments does not know.
        finding = EventProposal.certify(self, left, right, pair, failure_probability)
        return replace(finding, method=BitsMethod.name)


class BitsMethod(Method):
    """Learns which sign, exponent and trailing zero bits distinguish the two inputs."""

    name = "bits"
    summary = (
        "one event of sign, exponent and trailing zero bits: leaks of noise that is computed in "
        "floating point"
    )
    guarantee = "exact"

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BitsProposal:
        """Proposes the event of bits with the best predicted bound."""
        proposal = EventsMethod().propose(bits_view(left), bits_view(right), task)
        event = as_bits_event(proposal.event)
        return BitsProposal(replace(proposal.candidate, event=event), task)


@dataclass(frozen=True, slots=True)
class BitsProfileProposal(ProfileProposal):
    """Nested events of bits to be counted on fresh draws."""

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """Counts how many outputs have each level, shape (n_events + 1,)."""
        return ProfileProposal.tally(self, bits_view(outputs), side)

    def event_at(self, number: int) -> Event:
        """The event of that number."""
        return as_bits_event(ProfileProposal.event_at(self, number))


class BitsProfileMethod(ProfileMethod):
    """The method `profile` on the floating-point representation of outputs."""

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BitsProfileProposal:
        """Proposes the nested events of the order of bits that promises most."""
        proposal = ProfileMethod.propose(self, bits_view(left), bits_view(right), task)
        return BitsProfileProposal(
            partition=proposal.partition,
            level=proposal.level,
            n_events=proposal.n_events,
            flipped=proposal.flipped,
            task=proposal.task,
            predicted=proposal.predicted,
        )


@dataclass(frozen=True, slots=True)
class ProposalWithBits(Proposal):
    """A proposal about values, which decides, and a secondary one about bits.

    Attributes:
        values: decides.
        bits: is reported only.
    """

    values: Proposal
    bits: Proposal

    @property
    def predicted(self) -> float:
        """The prediction of the proposal about values."""
        return self.values.predicted

    @property
    def event(self) -> Event | None:
        """The event of the proposal about values."""
        return self.values.event

    def tally(self, outputs: Outputs, side: int) -> TwoTallies:
        """Summarises fresh outputs for both proposals."""
        return TwoTallies(self.values.tally(outputs, side), self.bits.tally(outputs, side))

    def certify(
        self, left: TwoTallies, right: TwoTallies, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the finding about values, at its share of the failure probability."""
        error_share = failure_probability * (1.0 - BITS_SHARE)
        return self.values.certify(left.deciding, right.deciding, pair, error_share)

    def p_value(
        self, left: TwoTallies, right: TwoTallies, failure_probability: float
    ) -> float | None:
        """The p-value of the proposal about values, corrected for its share of the probability."""
        fraction = 1.0 - BITS_SHARE
        error_share = failure_probability * fraction
        p_value = self.values.p_value(left.deciding, right.deciding, error_share)
        return None if p_value is None else min(p_value / fraction, 1.0)

    def certify_secondary(
        self, left: Any, right: Any, pair: Pair, failure_probability: float
    ) -> tuple[Finding, ...]:
        """Certifies the finding about bits, at its share of the failure probability."""
        error_share = failure_probability * BITS_SHARE
        return (self.bits.certify(left.secondary, right.secondary, pair, error_share),)


class WithBits(Method):
    """A method that decides by values, with a secondary finding about bits.

    Args:
        values: the method that decides.
        bits: the method for the secondary finding.
    """

    def __init__(self, values: Method, bits: Method) -> None:
        self.values = values
        self.bits = bits
        self.name = values.name
        self.guarantee = values.guarantee
        self.is_quick = values.is_quick
        self.summary = f"{values.name}, and a separate finding about floating-point bits"

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """The sizes of the method that decides."""
        return self.values.fixed_sizes(n_pairs, samples)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProposalWithBits:
        """Proposes both, each for its share of the failure probability."""
        share_of_bits = task.failure_probability * BITS_SHARE
        share_of_values = task.failure_probability - share_of_bits
        task_of_values = replace(task, failure_probability=share_of_values)
        task_of_bits = replace(task, failure_probability=share_of_bits)
        return ProposalWithBits(
            values=self.values.propose(left, right, task_of_values),
            bits=self.bits.propose(left, right, task_of_bits),
        )
