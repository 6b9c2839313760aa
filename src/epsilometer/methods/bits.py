"""Method `bits`: one certified event of how floating-point outputs are written, not of what they are worth.

Reference: METHODS section 9 of our notes; Mironov (2012).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from epsilometer.bounds import Counts
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.events import EventProposal, EventsMethod
from epsilometer.outputs import Outputs
from epsilometer.outputs.bits import as_bits_event, bits_view
from epsilometer.result import Finding

# What the separate finding about bits costs the finding that decides: less than 1 % of its shortfall.
BITS_SHARE = 0.2
NOTHING_SEEN = Counts(0, 0)


@dataclass(frozen=True, slots=True)
class BitsProposal(EventProposal):
    """An event of bits to be counted on fresh draws."""

    def certify(self, left: Counts, right: Counts, pair: Pair, failure_probability: float) -> Finding:
        """The exact bound from the counts of the fresh draws."""
        finding = EventProposal.certify(self, left, right, pair, failure_probability)
        return replace(finding, method=BitsMethod.name)


class BitsMethod:
    """Learns which sign, exponent and trailing zero bits tell the two inputs apart, and counts them on fresh draws."""

    name = "bits"
    summary = "one event of sign, exponent and trailing zero bits: leaks of noise that is computed in floating point"
    guarantee = "exact"

    def __init__(self, options: None = None) -> None:
        if options is not None:
            raise InputError(f"options={options!r:.100}: the method bits has none")

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BitsProposal:
        """The event of codes with the best predicted bound."""
        found = EventsMethod().propose(bits_view(left), bits_view(right), task)
        settings = {each.name: getattr(found, each.name) for each in fields(found)}
        return BitsProposal(**{**settings, "event": as_bits_event(found.event)})


@dataclass(frozen=True, slots=True)
class TwoCounts(Counts):
    """Counts of the deciding event, and of the one about bits beside it."""

    beside: Counts = NOTHING_SEEN

    def __add__(self, other: Counts) -> TwoCounts:
        assert isinstance(other, TwoCounts)
        return TwoCounts(self.hits + other.hits, self.trials + other.trials, self.beside + other.beside)


@dataclass(frozen=True, slots=True)
class ProposalWithBits(EventProposal):
    """An event of values that decides, and one of bits that is told beside it.

    Attributes:
        bits: the event of bits.
    """

    bits: BitsProposal

    def tally(self, outputs: Outputs, side: int) -> TwoCounts:
        """How often either event happened."""
        return TwoCounts(self.event.count(outputs), len(outputs), self.bits.tally(outputs, side))

    def certify(self, left: Counts, right: Counts, pair: Pair, failure_probability: float) -> Finding:
        """The finding about values, with the one about bits in its details; both pay their share."""
        assert isinstance(left, TwoCounts)
        assert isinstance(right, TwoCounts)
        price = failure_probability * BITS_SHARE
        beside = self.bits.certify(left.beside, right.beside, pair, price)
        own = [Counts(each.hits, each.trials) for each in (left, right)]
        decides = EventProposal.certify(self, own[0], own[1], pair, failure_probability - price)
        return replace(decides, details={**decides.details, "beside": beside.to_dict()})


class EventsWithBits:
    """The method `events`, with a separate finding about bits that does not decide."""

    name = "events"
    summary = "events, and a separate finding about floating-point bits"
    guarantee = "exact"

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProposalWithBits:
        """Both proposals, each at its own price."""
        price = task.failure_probability * BITS_SHARE
        values = EventsMethod().propose(
            left, right, replace(task, failure_probability=task.failure_probability - price)
        )
        bits = BitsMethod().propose(left, right, replace(task, failure_probability=price))
        settings = {each.name: getattr(values, each.name) for each in fields(values)}
        return ProposalWithBits(**settings, bits=bits)
