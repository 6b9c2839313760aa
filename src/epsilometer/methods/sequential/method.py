"""Bets on an event against the claim, exact at any stopping time.

`SequentialProposal` is one bet, fixed on training draws, on a given number of fresh draws; the loop in
`epsilometer.auditing.sequential_loop` places a new one per batch and stops when the claim is refuted.

Reference: METHODS section 8 of our notes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epsilometer.bounds import Counts, lower, upper
from epsilometer.bounds.betting import place_bets
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.sequential.choosing import choose
from epsilometer.methods.sequential.wealth import ladder_of
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding, Witness


@dataclass(frozen=True, slots=True)
class Options:
    """How a sequential audit runs.

    Attributes:
        pilot: draws per side that only choose the first event; None takes a quarter of the samples, 40 at most.
        growth: each batch is this share of all draws so far, at least one pair. Larger is faster and stops later.
        max_seconds: when to stop at the latest; None for never.
        checkpoint: a file that is kept up to date, from which an interrupted run goes on.
    """

    pilot: int | None = None
    growth: float = 0.05
    max_seconds: float | None = None
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        if self.pilot is not None and (
            isinstance(self.pilot, bool) or not isinstance(self.pilot, int) or self.pilot < 5
        ):
            raise InputError(f"pilot={self.pilot!r} must be a whole number of at least 5, or None")
        if not 0.0 < self.growth <= 1.0:
            raise InputError(f"growth={self.growth!r} must be above 0 and at most 1, e.g. 0.05")
        if self.max_seconds is not None and not self.max_seconds > 0.0:
            raise InputError(f"max_seconds={self.max_seconds!r} must be above 0, or None for no limit")


@dataclass(frozen=True, slots=True)
class SequentialProposal:
    """A bet on an event.

    Attributes:
        event: the set of outputs.
        flipped: False when the left outputs should fall into it more often.
        task: what is to be proved.
        p: the guessed probability under the larger law.
        q: under the other.
        predicted: the bound to expect.
    """

    event: Event
    flipped: bool
    task: Task
    p: float
    q: float
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Counts:
        """How often the event happened."""
        return Counts(self.event.count(outputs), len(outputs))

    def certify(self, left: Counts, right: Counts, pair: Pair, failure_probability: float) -> Finding:
        """The values against which the bet won."""
        above, below = (right, left) if self.flipped else (left, right)
        ladder = ladder_of(self.task.claim)
        bets = place_bets(ladder.lines, self.p, self.q, above.trials, below.trials)
        bound = ladder.bound(bets.log_wealth(above, below), failure_probability)
        bounds = lower(above, failure_probability / 2), upper(below, failure_probability / 2)
        witness = Witness(pair, self.event, self.flipped, left, right, *bounds)
        return Finding("sequential", bound, "exact", 1.0 - failure_probability, witness, self.task.claim)


class SequentialMethod:
    """Bets against the claim on fresh draws and stops as soon as it is refuted."""

    name = "sequential"
    summary = "bets on an event that may stop at any time: for mechanisms that take long, from 20 samples on"
    guarantee = "exact"
    # An audit by this method has a loop of its own.
    stops_early = True

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100} must be epsilometer.sequential.Options")
        self.options = options or Options()

    def propose(self, left: Outputs, right: Outputs, task: Task) -> SequentialProposal:
        """The event whose bet should grow fastest."""
        chosen = choose(left, right, ladder_of(task.claim).claim_lines())[0]
        predicted = task.claim.least_value(chosen.p, chosen.q) if chosen.p > chosen.q else 0.0
        return SequentialProposal(chosen.event, chosen.flipped, task, chosen.p, chosen.q, predicted)
