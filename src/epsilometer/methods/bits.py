"""Method `bits`: one certified event about how floating-point outputs are written, not about their values.

Reference: Mironov, "On significance of the least significant bits for differential privacy" (2012).
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from epsilometer.arrays import Integers
from epsilometer.bounds import Counts
from epsilometer.engine.chunks import TwoTallies
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.events import EventProposal, EventsMethod
from epsilometer.methods.profile import ProfileMethod, ProfileProposal
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.bits import as_bits_event, bits_view
from epsilometer.result import Finding

# What the separate finding about bits costs the finding that decides: less than 1 % of its
# shortfall.
BITS_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class BitsProposal(EventProposal):
    """An event of bits to be counted on fresh draws."""

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        return replace(
            EventProposal.certify(self, left, right, pair, failure_probability),
            method=BitsMethod.name,
        )


class BitsMethod(Method):
    """Learns which sign, exponent and trailing zero bits distinguish the two inputs, and counts them on fresh draws."""

    name = "bits"
    summary = "one event of sign, exponent and trailing zero bits: leaks of noise that is computed in floating point"
    guarantee = "exact"

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BitsProposal:
        """The event of codes with the best predicted bound."""
        found = EventsMethod().propose(bits_view(left), bits_view(right), task)
        return BitsProposal(replace(found.candidate, event=as_bits_event(found.event)), task)


@dataclass(frozen=True, slots=True)
class BitsProfileProposal(ProfileProposal):
    """Nested events of bits to be counted on fresh draws."""

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How many outputs have each level, shape (n_events + 1,)."""
        return ProfileProposal.tally(self, bits_view(outputs), side)

    def event_at(self, number: int) -> Event:
        """The event of that number."""
        return as_bits_event(ProfileProposal.event_at(self, number))


class BitsProfileMethod(ProfileMethod):
    """The method `profile` on the floating-point view of outputs."""

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BitsProfileProposal:
        """The nested events of the order of bits that promises most."""
        found = ProfileMethod.propose(self, bits_view(left), bits_view(right), task)
        return BitsProfileProposal(
            **{each.name: getattr(found, each.name) for each in fields(found)}
        )


@dataclass(frozen=True, slots=True)
class ProposalWithBits(Proposal):
    """A proposal about values that decides, and one about bits that is reported beside it."""

    values: Proposal
    bits: Proposal

    @property
    def predicted(self) -> float:
        """That of the proposal that decides."""
        return self.values.predicted

    @property
    def event(self) -> Event | None:
        """That of the proposal that decides."""
        return self.values.event

    def tally(self, outputs: Outputs, side: int) -> TwoTallies:
        """The tallies of both."""
        return TwoTallies(self.values.tally(outputs, side), self.bits.tally(outputs, side))

    def certify(
        self, left: TwoTallies, right: TwoTallies, pair: Pair, failure_probability: float
    ) -> Finding:
        """The finding about values, at its share of the price."""
        share = failure_probability * (1.0 - BITS_SHARE)
        return self.values.certify(left.deciding, right.deciding, pair, share)

    def p_value(
        self, left: TwoTallies, right: TwoTallies, failure_probability: float
    ) -> float | None:
        """That of the proposal that decides, which has only its share of the price."""
        share = 1.0 - BITS_SHARE
        found = self.values.p_value(left.deciding, right.deciding, failure_probability * share)
        return None if found is None else min(found / share, 1.0)

    def certify_beside(
        self, left: Any, right: Any, pair: Pair, failure_probability: float
    ) -> tuple[Finding, ...]:
        """The finding about bits, at its share, from the same tallies of both."""
        return (
            self.bits.certify(left.beside, right.beside, pair, failure_probability * BITS_SHARE),
        )


class WithBits(Method):
    """A method that decides by values, with a separate finding about bits that does not decide."""

    def __init__(self, values: Method, bits: Method) -> None:
        self.values = values
        self.bits = bits
        self.name = values.name
        self.guarantee = values.guarantee
        self.is_quick = values.is_quick
        self.summary = f"{values.name}, and a separate finding about floating-point bits"

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Those of the method that decides."""
        return self.values.fixed_sizes(n_pairs, samples)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProposalWithBits:
        """Both proposals, each at its own price."""
        price = task.failure_probability * BITS_SHARE
        rest = replace(task, failure_probability=task.failure_probability - price)
        bits = replace(task, failure_probability=price)
        return ProposalWithBits(
            self.values.propose(left, right, rest), self.bits.propose(left, right, bits)
        )
