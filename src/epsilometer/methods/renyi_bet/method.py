"""Method `renyi-bet`: an exact bound on a Rényi divergence, from one bet on a learned score.

Reference: METHODS section 6 of our notes; the inequality is that of Birrell, Dupuis, Katsoulakis, Rey-Bellet and Wang,
"Variational representations and neural network estimation of Rényi divergences". The bet is our own
(`epsilometer.bounds.joint_bet`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.bounds import Counts, lower, upper
from epsilometer.bounds.joint_bet import JointBet, divergence_lower
from epsilometer.claims import ZCDP, Claim, RenyiDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.renyi_bet.choosing import best_stake, choose_score, per_order
from epsilometer.methods.renyi_bet.fitting import Way, learn_ways
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.log_ratio import LogRatio
from epsilometer.result import Finding, Witness

NAME = "renyi-bet"


@dataclass(frozen=True, slots=True)
class BetProposal:
    """A score to be bet on with fresh draws.

    Attributes:
        score: the score; constant on cells, so that counts of cells are all the proof needs.
        stake: of the bet.
        flipped: False when the left law is the larger one.
        task: what is to be proved.
        predicted: the bound to expect.
        n_train: draws per side behind the score's expected frequencies.
    """

    score: LogRatio
    stake: float
    flipped: bool
    task: Task
    predicted: float
    n_train: int

    @property
    def event(self) -> Event:
        """The outputs that the score favours: what the health checks watch."""
        return self.score.favourable

    def tally(self, outputs: Outputs, side: int) -> NDArray[np.int64]:
        """How often each cell happened, shape (cells,)."""
        return self.score.partition.count(outputs)

    def certify(
        self, left: NDArray[np.int64], right: NDArray[np.int64], pair: Pair, failure_probability: float
    ) -> Finding:
        """The exact bound from the cell counts of the fresh draws."""
        above, below = (right, left) if self.flipped else (left, right)
        bet = JointBet(self.score.order, self.score.scores, self.stake)
        divergence = divergence_lower(bet, above, below, failure_probability)
        witness = self._witness(left, right, pair, failure_probability)
        details = {
            "order": self.score.order,
            "stake": self.stake,
            "divergence_lower": divergence,
            "cells": {"left": left.tolist(), "right": right.tolist()},  # the proof needs these (`epsilometer.checker`)
        }
        bound = divergence * per_order(self.task, self.score.order)
        return Finding(NAME, bound, "exact", 1.0 - failure_probability, witness, self.task.claim, details)

    def _witness(
        self, left: NDArray[np.int64], right: NDArray[np.int64], pair: Pair, failure_probability: float
    ) -> Witness:
        """The score, with the counts of the outputs that it favours."""
        favoured = self.score.favourable.chosen
        counts = [Counts(int(side[favoured].sum()), int(side.sum())) for side in (left, right)]
        above, below = counts[::-1] if self.flipped else counts
        return Witness(
            pair=pair,
            event=self.score,
            flipped=self.flipped,
            left_counts=counts[0],
            right_counts=counts[1],
            p_lower=lower(above, failure_probability / 2),
            q_upper=upper(below, failure_probability / 2),
        )


class RenyiBetMethod:
    """Learns how much likelier each output is under one law, and bets on it."""

    name = NAME
    summary = "one bet on a learned log-ratio: sharper than an event for RenyiDP and ZCDP"
    guarantee = "exact"

    def __init__(self, options: None = None) -> None:
        if options is not None:
            raise InputError(f"options={options!r:.100}: the method {NAME} has none")

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Rényi divergences only; called before anything is drawn."""
        if not isinstance(claim, RenyiDP | ZCDP):
            raise InputError(f"method={NAME!r} bounds RenyiDP and ZCDP, not {type(claim).__name__}; use method='auto'")

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BetProposal:
        """The score with the best predicted bound."""
        self.check(task.claim)
        return self.propose_from(learn_ways(left, right), task, min(len(left), len(right)))

    def propose_from(self, ways: Sequence[Way], task: Task, n_train: int) -> BetProposal:
        """The same over given ways to score the outputs."""
        choice = choose_score(ways, task)
        return restored_bet(choice.score, choice.flipped, task, choice.predicted, n_train)


def restored_bet(score: LogRatio, flipped: bool, task: Task, predicted: float, n_train: int) -> BetProposal:
    """The bet on a score, with the stake that suits the fresh draws of the task."""
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    stake = best_stake(score, n_fresh, n_train, task.failure_probability)
    return BetProposal(score, stake, flipped, task, predicted, n_train)
