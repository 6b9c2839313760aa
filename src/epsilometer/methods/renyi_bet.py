"""Method `renyi-bet`: an exact bound on a Rényi divergence, from one bet on a learned score.

In this module P is the distribution in the numerator of the divergence, the larger one, and Q is
the other one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.bounds import Counts
from epsilometer.bounds.bets_on_means import JointBet, bet_lower, bet_p_value
from epsilometer.claims import ZCDP, Claim, RenyiDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.log_ratios import (
    LogRatioCandidates,
    kernel_log_ratios,
    score_log_ratios,
    value_log_ratios,
)
from epsilometer.methods.scores import LearnedScore, learn_scores
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.events import LogRatio
from epsilometer.outputs.preparing import Prepared, prepare
from epsilometer.result import Finding, Witness

NAME = "renyi-bet"

# Where scores are clipped, as fractions of the largest absolute score.
_CLIPS = np.linspace(0.08, 1.0, 24)
# Orders that are tried for zero-concentrated privacy: below 1.01 the cost of the certificate
# dominates, beyond 64 the tails do.
ZCDP_ORDERS = (1.01, 1.03, 1.1, 1.3, 2.0, 3.0, 4.5, 7.0, 11.0, 20.0, 40.0, 64.0)
# Of these, about so many choose the shortlist of scores.
_N_SHORTLIST_ORDERS = 3
# Scores on the shortlist, which are tried at all orders.
_SHORTLIST = 4
# Stakes that are tried, in units of the one that is best for a normal sum.
_STAKES = np.array([0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5])
# Largest stake, as a fraction of the one that could lose everything on a draw from P.
MOST_STAKE = 0.95
# Pseudo-draws from Q with the largest score: without them rare large scores look free (Gaussian,
# order 5, 1e5 draws: certified 1.75 whether 1, 2 or 4 are added, but predicted 1.91, 1.88, 1.83).
_PSEUDO_DRAWS = 2.0
# Steps of the bisection for a prediction, which needs no more than eight digits.
_HALVINGS = 26
# Largest exponent of a power of the score: e^300 can be squared and summed over many draws.
_MOST_EXPONENT = 300.0


def check_divergence(name: str, claim: Claim) -> None:
    """Raises an InputError unless the claim is about Rényi divergences.

    Args:
        name: of the method, for the message.
        claim: the claim.
    """
    if not isinstance(claim, RenyiDP | ZCDP):
        raise InputError(
            f"method={name!r} bounds RenyiDP and ZCDP, not {type(claim).__name__};"
            " use method='auto'"
        )


def per_order(task: Task, order: float) -> float:
    """The value of one unit of divergence of this order in the claim's own parameter."""
    return 1.0 if isinstance(task.claim, RenyiDP) else 1.0 / order


# --- The score ---


class ChosenScore(NamedTuple):
    """A score with its prediction.

    Attributes:
        score: the score.
        flipped: whether P is the right distribution.
        predicted: the bound to expect.
    """

    score: LogRatio
    flipped: bool
    predicted: float


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A score before it is fitted to all draws.

    Attributes:
        source: the partition, its counts and its estimators.
        fit: which of the estimators.
        flipped: whether P is the right distribution.
        order: of the divergence.
        clip: the largest absolute score.
        predicted: the bound to expect.
    """

    source: LogRatioCandidates
    fit: int
    flipped: bool
    order: float
    clip: float
    predicted: float


def choose_score(sources: Sequence[LogRatioCandidates], task: Task) -> ChosenScore:
    """Chooses the score with the best predicted bound.

    Args:
        sources: the partitions with their estimators.
        task: what is to be certified.
    """
    orders = (task.claim.order,) if isinstance(task.claim, RenyiDP) else ZCDP_ORDERS
    # Which score is good depends little on the order: few orders choose the shortlist, all of them
    # choose from it.
    first_orders = orders[:: max(1, len(orders) // _N_SHORTLIST_ORDERS)]
    candidates = [
        _best_clip(source, fit, flipped, order, task)
        for source in sources
        for fit in range(len(source.fits))
        for flipped in (False, True)
        for order in first_orders
    ]
    if len(first_orders) < len(orders):
        shortlist = sorted(candidates, key=lambda candidate: -candidate.predicted)[:_SHORTLIST]
        candidates += [
            _best_clip(listed.source, listed.fit, listed.flipped, order, task)
            for listed in shortlist
            for order in orders
        ]
    best = max(candidates, key=lambda candidate: candidate.predicted)
    # The chosen score is fitted to all training draws.
    above, below = best.source.oriented(best.flipped)
    counts_p = above[0] + above[1]
    counts_q = below[0] + below[1]
    estimate = best.source.fits[best.fit]
    scores = np.clip(estimate(counts_p, counts_q), -best.clip, best.clip)
    frequency_p = counts_p / max(counts_p.sum(), 1)
    frequency_q = counts_q / max(counts_q.sum(), 1)
    normaliser = _log_normaliser(scores[None, :], best.order, frequency_p)[0]
    score = LogRatio(
        partition=best.source.partition,
        scores=best.source.of_cells(scores - normaliser),
        order=best.order,
        p=best.source.spread_over_cells(frequency_p),
        q=best.source.spread_over_cells(frequency_q),
    )
    return ChosenScore(score=score.simplified(), flipped=best.flipped, predicted=best.predicted)


def _best_clip(
    source: LogRatioCandidates, fit: int, flipped: bool, order: float, task: Task
) -> _Candidate:
    """The best clipping of one estimator for one direction and order."""
    above, below = source.oriented(flipped)
    estimate = source.fits[fit]
    # Fitted to one half, judged on the other: two copies of every cell.
    scores = np.concatenate([estimate(above[0], below[0]), estimate(above[1], below[1])])
    counts_p = np.concatenate([above[1], above[0]])
    counts_q = np.concatenate([below[1], below[0]])
    is_filled = (counts_p > 0) | (counts_q > 0)
    scores = scores[is_filled]
    counts_p = counts_p[is_filled]
    counts_q = counts_q[is_filled]
    largest = float(np.abs(scores).max(initial=0.0))
    if largest == 0.0:
        return _Candidate(source, fit, flipped, order, clip=1.0, predicted=0.0)
    clips = largest * _CLIPS
    clipped = np.clip(scores, -clips[:, None], clips[:, None])
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    bounds, _ = predict(
        clipped,
        order,
        counts_p,
        counts_q,
        n_fresh=n_fresh,
        failure=task.failure_probability,
        stakes=np.ones(1),
    )
    best = int(np.argmax(bounds))
    return _Candidate(
        source=source,
        fit=fit,
        flipped=flipped,
        order=order,
        clip=float(clips[best]),
        predicted=float(bounds[best]) * per_order(task, order),
    )


class BetPrediction(NamedTuple):
    """Predicted bounds with the stakes of the bets, shape (scores · stakes,) each."""

    bounds: Floats
    stakes: Floats


def predict(
    scores: Floats,
    order: float,
    p: Array,
    q: Array,
    *,
    n_fresh: tuple[int, int],
    failure: float,
    stakes: Floats,
) -> BetPrediction:
    """Predicts the bounds that fresh draws with the frequencies of these counts would give.

    Args:
        scores: shape (scores, cells).
        order: of the divergence.
        p: shape (cells,), counts under P.
        q: shape (cells,), counts under Q.
        n_fresh: draws of the certificate, from P and from Q.
        failure: probability with which the certificate may fail.
        stakes: shape (k,), in units of the one that is best for a normal sum.

    Returns:
        For each score, all stakes in turn.
    """
    n, m = n_fresh
    frequency_p = p / max(p.sum(), 1)
    counts_q = q + np.zeros(scores.shape)
    counts_q[np.arange(len(scores)), np.argmax(scores, axis=1)] += _PSEUDO_DRAWS
    frequency_q = counts_q / counts_q.sum(axis=1, keepdims=True)
    shifted = scores - _log_normaliser(scores, order, frequency_p)[:, None]
    growth = order / (order - 1.0)
    # What a draw from P gains and what a draw from Q costs, per unit of the stake. This is only a
    # forecast: cells without draws from P may have powers whose squares would overflow.
    gain = growth * np.expm1(np.minimum((order - 1.0) * shifted, _MOST_EXPONENT))
    cost = np.exp(np.minimum(order * shifted, _MOST_EXPONENT))
    mean_cost = (frequency_q * cost).sum(axis=1)
    relative_variance = (frequency_q * cost**2).sum(axis=1) / mean_cost**2 - 1.0
    variance = (gain**2) @ frequency_p + n / m * relative_variance
    needed = -math.log(failure)
    best_for_normal = np.sqrt(2.0 * needed / (n * np.maximum(variance, 1e-12)))
    stake = np.minimum(best_for_normal[:, None] * stakes, MOST_STAKE / growth).ravel()
    row = np.repeat(np.arange(len(scores)), len(stakes))
    wealth = n * (np.log1p(stake[:, None] * gain[row]) @ frequency_p) - needed
    # For each row, the divergence at which the draws from Q use up the wealth; below 0 if there is
    # none.
    cost = cost[row]
    expected_q = frequency_q[row] * m
    stake_on_q = stake * n / m
    low = np.full(len(stake), -1.0)
    high = np.log1p(1.0 / stake_on_q) - np.log(cost.max(axis=1))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        factors = 1.0 + stake_on_q[:, None] - (stake_on_q * np.exp(middle))[:, None] * cost
        log_factors = np.log(np.maximum(factors, 1e-300))
        has_won = wealth + (expected_q * log_factors).sum(axis=1) >= 0.0
        low = np.where(has_won, middle, low)
        high = np.where(has_won, high, middle)
    return BetPrediction(bounds=low, stakes=stake)


def _log_normaliser(scores: Floats, order: float, frequency: Floats) -> Floats:
    """What is subtracted from each row of scores so that e^((order − 1)·score) has mean 1.

    Args:
        scores: shape (scores, cells).
        order: of the divergence.
        frequency: shape (cells,), under P.

    Returns:
        Shape (scores,).
    """
    # Relative to the greatest power with a positive frequency: relative to another one, all that
    # count might vanish.
    has_draws = frequency.any()
    is_counted = frequency > 0.0 if has_draws else frequency == 0.0
    powers = np.where(is_counted, (order - 1.0) * scores, -np.inf)
    greatest = powers.max(axis=1)
    weights = frequency if has_draws else np.full(len(frequency), 1.0 / len(frequency))
    # The mean less 1, and not the mean: near order 1 its logarithm would be rounding error, divided
    # by order − 1.
    mean_less_one = np.expm1(powers - greatest[:, None]) @ weights
    return np.asarray((greatest + np.log1p(mean_less_one)) / (order - 1.0), dtype=np.float64)


# --- The proposal ---


@dataclass(frozen=True, slots=True)
class BetProposal(Proposal):
    """A score to be bet on with fresh draws.

    Attributes:
        score: is constant on cells, so that counts of cells are all the certificate needs.
        stake: of the bet.
        flipped: False when P is the left distribution.
        task: what is to be certified.
        predicted: the bound to expect.
    """

    score: LogRatio
    stake: float
    flipped: bool
    task: Task
    predicted: float

    @property
    def event(self) -> Event:
        """The outputs that the score favours, for the health checks."""
        return self.score.favourable

    def of_raw_outputs(self, prepared: Prepared) -> Self:
        """The same proposal, learned from prepared draws, about outputs as they come."""
        return replace(self, score=prepared.of_raw_outputs(self.score))

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """Counts how often each cell happened, shape (cells,)."""
        return self.score.partition.count(outputs)

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the exact bound from the cell counts of the fresh draws."""
        above, below = (right, left) if self.flipped else (left, right)
        bet = JointBet(self.score.order, self.score.scores, self.stake)
        divergence = bet_lower(bet, above, below, failure_probability)
        # The witness is the score, with the counts of the outputs that it favours.
        is_favoured = self.score.favourable.chosen
        left_counts = Counts(int(left[is_favoured].sum()), int(left.sum()))
        right_counts = Counts(int(right[is_favoured].sum()), int(right.sum()))
        witness = Witness.of(
            pair,
            self.score,
            flipped=self.flipped,
            left=left_counts,
            right=right_counts,
            failure_probability=failure_probability,
        )
        # `epsilometer.checker` needs these to verify the certificate.
        details = {
            "order": self.score.order,
            "stake": self.stake,
            "divergence_lower": divergence,
            "cells": {"left": left.tolist(), "right": right.tolist()},
        }
        return Finding(
            method=NAME,
            lower_bound=divergence * per_order(self.task, self.score.order),
            guarantee="exact",
            confidence=1.0 - failure_probability,
            witness=witness,
            claim=self.task.claim,
            details=details,
        )

    @property
    def claimed_divergence(self) -> float:
        """The greatest divergence of the score's order that the claim allows."""
        return self.task.claim.value / per_order(self.task, self.score.order)

    def p_value(self, left: Integers, right: Integers, failure_probability: float) -> float | None:
        """The inverse of the wealth of the bet against the claimed divergence."""
        above, below = (right, left) if self.flipped else (left, right)
        bet = JointBet(self.score.order, self.score.scores, self.stake)
        return bet_p_value(bet, above, below, self.claimed_divergence)


def restored_bet(
    score: LogRatio, flipped: bool, task: Task, predicted: float, n_train: int
) -> BetProposal:
    """Makes the bet on a score, with the stake that suits the fresh draws of the task.

    Args:
        score: with the expected frequencies of its cells, which alone choose the stake.
        flipped: whether P is the right distribution.
        task: what is to be certified.
        predicted: the bound to expect.
        n_train: how many draws the frequencies count for.
    """
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    prediction = predict(
        score.scores[None, :],
        score.order,
        score.p * n_train,
        score.q * n_train,
        n_fresh=n_fresh,
        failure=task.failure_probability,
        stakes=_STAKES,
    )
    best = int(np.argmax(prediction.bounds))
    return BetProposal(
        score=score,
        stake=float(prediction.stakes[best]),
        flipped=flipped,
        task=task,
        predicted=predicted,
    )


class RenyiBetMethod(Method):
    """Learns how much likelier each output is on one side, and bets on it."""

    name = NAME
    summary = "one bet on a learned log-ratio: sharper than an event for RenyiDP and ZCDP"
    guarantee = "exact"
    is_quick = True

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Refuses claims that are not about Rényi divergences, before anything is drawn."""
        check_divergence(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> BetProposal:
        """Proposes the score with the best predicted bound."""
        self.check(task.claim)
        prepared = prepare(left, right, task.growing)
        scores = learn_scores(prepared.left, prepared.right)
        proposal = self.propose_from(scores, prepared.left, prepared.right, task)
        return proposal.of_raw_outputs(prepared)

    def propose_from(
        self, scores: Sequence[LearnedScore], left: Outputs, right: Outputs, task: Task
    ) -> BetProposal:
        """Proposes the best bet over the given scores; single numbers also get kernel estimates.

        Args:
            scores: learned on the training outputs.
            left: training outputs.
            right: training outputs.
            task: what is to be certified.
        """
        sources = [*score_log_ratios(scores), *kernel_log_ratios(left, right)]
        if not sources:
            # All outputs are alike: one cell, on which nothing can be bet.
            sources = value_log_ratios(left, right)
        chosen = choose_score(sources, task)
        n_train = min(len(left), len(right))
        return restored_bet(chosen.score, chosen.flipped, task, chosen.predicted, n_train)
