"""What an audit could have found: the other half of "not refuted"."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from epsilometer.methods.events.method import EventProposal
from epsilometer.methods.events.prediction import Predictor, predictor

POWER = 0.9
_HALVINGS = 40
# The event's size is halved at most so often when no value is detectable on one of its own size.
_SMALLER = 12


def detectable_value(proposal: EventProposal) -> float | None:
    """The smallest true value that the proof would have refuted with 90 % power, on an event about as likely.

    None when no value would have been: there were too few draws.
    """
    task = proposal.task
    n_fresh = task.n_fresh[::-1] if proposal.flipped else task.n_fresh
    # With training as long as the proof, the predictor's second figure is the spread of the proof itself.
    predict = predictor(task, n_fresh, n_fresh)
    q = min(max(proposal.q, 3.0 / n_fresh[1]), 0.5)
    for _ in range(_SMALLER):
        found = _least_refuted(predict, proposal, q)
        if found is not None:
            return found
        q /= 2.0
    return None


def _least_refuted(predict: Predictor, proposal: EventProposal, q: float) -> float | None:
    claim = proposal.task.claim

    def is_refuted(value: float) -> bool:
        p = claim.with_value(value).max_power(q)
        if p >= 1.0:
            return False
        bound, spread = (float(each[0]) for each in predict(np.array([p]), np.array([q])))
        # The prediction already gives one spread away; 90 % power needs 1.28 of them.
        return bound - (float(ndtri(POWER)) - 1.0) * spread > claim.value

    # The largest value whose event of size q is not yet certain on the other side.
    low, high = claim.value, claim.least_value(1.0 - 1.0 / proposal.task.n_fresh[0], q)
    if not high > low or not is_refuted(high):
        return None
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_refuted(middle) else (middle, high)
    return high
