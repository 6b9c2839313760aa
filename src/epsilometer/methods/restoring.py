"""From a stored witness back to a proposal, so that anyone can prove it again on fresh draws."""

from __future__ import annotations

from epsilometer.claims import PureDP
from epsilometer.methods.base import Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.outputs.log_ratio import LogRatio
from epsilometer.result import Witness


def restore_proposal(witness: Witness, task: Task, predicted: float) -> Proposal:
    """The proposal that a witness came from, ready for fresh draws.

    Args:
        witness: a set of outputs or a score of them.
        task: what is to be proved this time.
        predicted: the bound that was found before.
    """
    above, below = witness.counts[::-1] if witness.flipped else witness.counts
    if isinstance(witness.event, LogRatio):
        # Only a replay of a score needs these methods, and every audit loads this file.
        from epsilometer.methods.renyi_bet.method import restored_bet
        from epsilometer.methods.renyi_variational.method import restored_function

        n_known = min(above.trials, below.trials)
        if isinstance(task.claim, PureDP):
            return restored_function(witness.event, witness.flipped, task, n_known)
        return restored_bet(witness.event, witness.flipped, task, predicted, n_known)
    return EventProposal(witness.event, witness.flipped, task, predicted, 0.5, above.share, below.share)
