"""Method `auto`: the exact method with the best prospects for the claim, chosen on training draws only."""

from __future__ import annotations

from epsilometer.claims import ZCDP, RenyiDP
from epsilometer.errors import InputError
from epsilometer.methods.base import Task
from epsilometer.methods.events import EventProposal, EventsMethod
from epsilometer.methods.renyi_bet import BetProposal, RenyiBetMethod
from epsilometer.outputs import Outputs


class AutoMethod:
    """An event, or for Rényi divergences a bet on a score if that promises more.

    Searching is free: both are proposed from the same training draws, and only one is proved.
    """

    name = "auto"
    summary = "events; for RenyiDP and ZCDP the better of events and renyi-bet, by training draws"
    guarantee = "exact"
    # A finding carries the name of the method that made it.
    chooses_from = (EventsMethod.name, RenyiBetMethod.name)

    def __init__(self, options: None = None) -> None:
        if options is not None:
            raise InputError(f"options={options!r:.100}: the method auto has none; name the method they belong to")

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal | BetProposal:
        """The proposal with the larger predicted bound."""
        event = EventsMethod().propose(left, right, task)
        if not isinstance(task.claim, RenyiDP | ZCDP):
            return event
        bet = RenyiBetMethod().propose(left, right, task)
        return bet if bet.predicted > event.predicted else event
