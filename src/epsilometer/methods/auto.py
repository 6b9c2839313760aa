"""Method `auto`: the exact method with the best prediction, chosen on training draws only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import ZCDP, RenyiDP
from epsilometer.methods.base import Method, Task
from epsilometer.methods.events import (
    CandidatePartition,
    EventProposal,
    EventsMethod,
    candidate_partitions,
)
from epsilometer.methods.events.learning import LearnedPartition, learn_scored
from epsilometer.methods.events.scores import LearnedScore
from epsilometer.methods.log_ratios import learn_log_ratios, with_fits
from epsilometer.methods.renyi_bet import BetProposal, RenyiBetMethod
from epsilometer.outputs import Outputs, Partition
from epsilometer.outputs.columns import FEATURED, n_of_features

# Training draws per side from which trees find more in several columns than an additive score.
_ENOUGH_FOR_TREES = 500
# Trees, or features of outputs, must separate the sides better by this many standard errors.
_ADVANTAGE = 1.0
# The prediction of trees must be larger by this fraction: each further candidate is one more that
# may win by selection bias (decision 0027).
_MARGIN = 0.1
# Trees that are grown first, to find out whether the others are worth their time.
_FIRST_TREES = 24
# The advantage, in standard errors, that these first trees must have.
_FIRST_ADVANTAGE = -2.0
# Draws per side on which partitions are compared: with this many, chance matters little.
_MOST_ROWS = 40_000


class AutoMethod(Method):
    """An event, or for Rényi divergences a bet on a score if that promises more.

    Outputs with several columns are divided by an additive score and by the trees of
    `hockey-stick`. Searching is free: all are proposed from the same training draws, and only one
    is certified.
    """

    name = "auto"
    summary = (
        "events, of vectors also by trees; for RenyiDP and ZCDP the better of events and renyi-bet"
    )
    guarantee = "exact"
    is_quick = True

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal | BetProposal:
        """Proposes what has the largest predicted bound."""
        events = EventsMethod()
        bets = RenyiBetMethod()
        n_train = min(len(left), len(right))
        is_divergence = isinstance(task.claim, RenyiDP | ZCDP)
        partitions = candidate_partitions(left, right)
        best: EventProposal | BetProposal = events.propose_from(partitions, task)
        if is_divergence:
            bet = bets.propose_from(learn_log_ratios(left, right), task, n_train)
            if _has_several_outcomes(bet) and bet.predicted > best.predicted:
                best = bet
        if any(block.shape.startswith(FEATURED) for block in left.blocks):
            best = _propose_by_features(left, right, partitions, task) or best
        if not any(_is_additive_score(partition) for partition in partitions):
            return best
        trees = _learn_trees(left, right, partitions)
        if trees is None:
            return best
        by_trees: EventProposal | BetProposal = events.propose_from([trees], task)
        if is_divergence:
            bet = bets.propose_from([with_fits(trees)], task, n_train)
            if bet.predicted > by_trees.predicted:
                by_trees = bet
        required = best.predicted + _MARGIN * abs(best.predicted)
        return by_trees if by_trees.predicted > required else best


def _has_several_outcomes(bet: BetProposal) -> bool:
    """Whether the outputs have more than two outcomes.

    Of two outcomes one event has the whole divergence, and its test spends the whole failure
    probability, where a bet rests on Markov's inequality (two coins, order 2, 400 draws: bounds of
    0.32 against 0.27 at 95 %; at 50 % a true claim of just their divergence is refuted in 40 %
    against 10 %).
    """
    occurred = (bet.score.p > 0.0) | (bet.score.q > 0.0)
    return int(np.count_nonzero(occurred)) > 2


def _is_additive_score(partition: CandidatePartition) -> bool:
    """Whether it is a score of several columns."""
    return (
        isinstance(partition, LearnedScore)
        and not partition.is_line
        and bool(partition.additive_scores)
    )


def advantage(one: Partition, other: Partition, draws: tuple[Outputs, Outputs]) -> float:
    """By how many standard errors the loss of `one` is smaller than that of `other`.

    Both losses are taken on the same draws.

    Args:
        one: a partition.
        other: another partition of the same outputs.
        draws: left and right outputs that did not shape `one`.
    """
    left = draws[0].take(slice(0, _MOST_ROWS))
    right = draws[1].take(slice(0, _MOST_ROWS))
    left_loss, right_loss = _losses(one, left, right)
    other_left_loss, other_right_loss = _losses(other, left, right)
    left_gain = other_left_loss - left_loss
    right_gain = other_right_loss - right_loss
    left_variance = float(left_gain.var()) / max(len(left_gain), 1)
    right_variance = float(right_gain.var()) / max(len(right_gain), 1)
    standard_error = math.sqrt(left_variance + right_variance)
    if not standard_error > 0.0:
        return 0.0
    return (float(left_gain.mean()) + float(right_gain.mean())) / standard_error


def _losses(partition: Partition, left: Outputs, right: Outputs) -> tuple[Floats, Floats]:
    """The logistic losses of every second draw, with log-ratios of cells from the other draws."""
    left_cells = partition.index(left)
    right_cells = partition.index(right)
    left_counts = np.bincount(left_cells[::2], minlength=partition.n_cells) + 1.0
    right_counts = np.bincount(right_cells[::2], minlength=partition.n_cells) + 1.0
    left_log = np.log(left_counts / left_counts.sum())
    log_ratio = left_log - np.log(right_counts / right_counts.sum())
    left_loss = np.logaddexp(0.0, -log_ratio[left_cells[1::2]])
    right_loss = np.logaddexp(0.0, log_ratio[right_cells[1::2]])
    return left_loss, right_loss


def _propose_by_features(
    left: Outputs, right: Outputs, partitions: Sequence[CandidatePartition], task: Task
) -> EventProposal | None:
    """Proposes the best event of the features alone; None if all columns separate the sides better.

    Cells that also depend on the rest of an output, like the seed of a hash function, may win by
    selection bias: binary local hashing at 1e5 draws certified 0 to 0.99 of ε = 1 by all columns,
    and 0.97 to 0.99 by features alone.

    Args:
        left: training outputs.
        right: training outputs.
        partitions: of all columns.
        task: what is to be certified.
    """
    n_columns = {block.shape: len(block.columns) for block in (*left, *right)}
    by_features = candidate_partitions(_features_only(left), _features_only(right))
    plain = _with_all_columns(by_features[0].partition, n_columns)
    for partition in partitions:
        if advantage(partition.partition, plain, (left, right)) > _ADVANTAGE:
            return None
    proposal = EventsMethod().propose_from(by_features, task)
    event = proposal.event
    event = replace(event, partition=_with_all_columns(event.partition, n_columns))
    return replace(proposal, candidate=replace(proposal.candidate, event=event))


def _features_only(side: Outputs) -> Outputs:
    """The outputs without the columns that are no features; those without features unchanged."""
    blocks = []
    for block in side:
        n_features = n_of_features(block.shape) or None
        blocks.append(replace(block, columns=block.columns[:n_features]))
    return Outputs(tuple(blocks), side.size)


def _with_all_columns(partition: Partition, n_columns: Mapping[str, int]) -> Partition:
    """Turns cells of the first columns of each shape into cells of all of them.

    Args:
        partition: of the first columns.
        n_columns: how many columns each shape has.
    """
    blocks = []
    for block in partition.blocks:
        n_missing = n_columns[block.shape] - len(block.atoms)
        groups = tuple(
            replace(group, signature=(*group.signature, *(-1,) * n_missing))
            for group in block.groups
        )
        atoms = (*block.atoms, *(None,) * n_missing)
        blocks.append(replace(block, atoms=atoms, groups=groups))
    return Partition(tuple(blocks))


def _learn_trees(
    left: Outputs, right: Outputs, partitions: Sequence[CandidatePartition]
) -> LearnedPartition | None:
    """Cells of a score made of trees; None unless it separates the sides better than the others.

    Args:
        left: training outputs.
        right: training outputs.
        partitions: the others.
    """
    if min(len(left), len(right)) < _ENOUGH_FOR_TREES:
        return None
    # Audits of single numbers do not need this module.
    from epsilometer.methods.trees import fit_trees

    def is_better(learned: LearnedPartition, required: float) -> bool:
        draws = (learned.left, learned.right)
        return all(
            advantage(learned.partition, partition.partition, draws) > required
            for partition in partitions
        )

    first = learn_scored(left, right, partial(fit_trees, n_trees=_FIRST_TREES))
    if first is None or not is_better(first, _FIRST_ADVANTAGE):
        return None
    trees = learn_scored(left, right, fit_trees)
    if trees is None or not is_better(trees, _ADVANTAGE):
        return None
    return trees
