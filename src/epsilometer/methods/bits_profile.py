"""The whole privacy curve of how floating-point outputs are written, alone or beside that of their values."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from epsilometer.arrays import Integers
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.bits import BITS_SHARE
from epsilometer.methods.profile import ProfileMethod, ProfileProposal
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.bits import as_bits_event, bits_view
from epsilometer.result import Finding


@dataclass(frozen=True, slots=True)
class BitsProfileProposal(ProfileProposal):
    """Nested events of bits to be counted on fresh draws."""

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """How many outputs have each level, shape (n_events + 1,)."""
        return ProfileProposal.tally(self, bits_view(outputs), side)

    def event(self, number: int) -> Event:
        """The event of that number."""
        return as_bits_event(ProfileProposal.event(self, number))


class BitsProfileMethod(ProfileMethod):
    """The method `profile` on the floating-point view of outputs."""

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BitsProfileProposal:
        """The nested events of the order of bits that promises most."""
        found = ProfileMethod.propose(self, bits_view(left), bits_view(right), task)
        return BitsProfileProposal(**{each.name: getattr(found, each.name) for each in fields(found)})


@dataclass(frozen=True, slots=True)
class ProfileWithBitsProposal(ProfileProposal):
    """Nested events of values, which decide, and of bits beside them.

    Attributes:
        bits: the events of bits.
    """

    bits: BitsProfileProposal

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """The levels of the values, followed by those of the bits."""
        return np.concatenate([ProfileProposal.tally(self, outputs, side), self.bits.tally(outputs, side)])

    def certify(self, left: Integers, right: Integers, pair: Pair, failure_probability: float) -> Finding:
        """The band of the values, with that of the bits in its details; both pay their share."""
        cut, price = self.n_events + 1, failure_probability * BITS_SHARE
        beside = self.bits.certify(left[cut:], right[cut:], pair, price)
        decides = ProfileProposal.certify(self, left[:cut], right[:cut], pair, failure_probability - price)
        return replace(decides, details={**decides.details, "beside": beside.to_dict()})


class ProfileWithBits(ProfileMethod):
    """The method `profile`, with a separate band of the bits that does not decide."""

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProfileWithBitsProposal:
        """Both proposals, each at its own price."""
        price = task.failure_probability * BITS_SHARE
        rest = replace(task, failure_probability=task.failure_probability - price)
        values = ProfileMethod.propose(self, left, right, rest)
        bits = BitsProfileMethod().propose(left, right, replace(task, failure_probability=price))
        settings = {each.name: getattr(values, each.name) for each in fields(values)}
        return ProfileWithBitsProposal(**settings, bits=bits)
