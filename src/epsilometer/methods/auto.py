"""Method `auto`: the exact method with the best prospects for the claim, chosen on training draws only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import ZCDP, RenyiDP
from epsilometer.methods.base import Method, Task
from epsilometer.methods.events import EventProposal, EventsMethod, Way, ways_of
from epsilometer.methods.events.learning import Learned, learn_scored
from epsilometer.methods.events.tails import Scored
from epsilometer.methods.log_ratios import learn_ways, way_of
from epsilometer.methods.renyi_bet import BetProposal, RenyiBetMethod
from epsilometer.outputs import Outputs, Partition
from epsilometer.outputs.columns import FEATURED, n_of_features

Sides = tuple[Outputs, Outputs]

# Draws per side that are compared: with this many, chance matters little.
_MOST_ROWS = 40_000


def advantage(one: Partition, other: Partition, draws: Sides) -> float:
    """By how many standard errors the loss of `one` is smaller than that of `other`, on the same draws.

    Args:
        one: cells.
        other: other cells of the same outputs.
        draws: left and right outputs that did not shape `one`.
    """
    first = (draws[0].take(slice(0, _MOST_ROWS)), draws[1].take(slice(0, _MOST_ROWS)))
    differences = [
        theirs - ours
        for ours, theirs in zip(_losses(one, first), _losses(other, first), strict=True)
    ]
    error = math.sqrt(sum(float(each.var()) / max(len(each), 1) for each in differences))
    return sum(float(each.mean()) for each in differences) / error if error > 0.0 else 0.0


def _losses(partition: Partition, draws: Sides) -> tuple[Floats, Floats]:
    """The logistic loss of every second draw, with log-ratios of cells from the others."""
    cells = [partition.index(side) for side in draws]
    counts = [np.bincount(side[::2], minlength=partition.n_cells) + 1.0 for side in cells]
    ratio = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    left, right = (ratio[side[1::2]] for side in cells)
    return np.logaddexp(0.0, -left), np.logaddexp(0.0, right)


# With at least this many training draws per side, trees see more in several columns than an
# additive score.
_ENOUGH_FOR_TREES = 500
# Trees must distinguish the sides better by the first number of standard errors, and promise more
# by the second share: each further candidate is one more that may be lucky (decision 0027).
_ADVANTAGE = 1.0
_MARGIN = 0.1
# The first trees show whether the others are worth growing: how many, and which advantage they must
# have.
_FIRST_TREES = 24
_FIRST_ADVANTAGE = -2.0


class AutoMethod(Method):
    """An event, or for Rényi divergences a bet on a score if that promises more.

    Outputs that vary in several columns are cut by an additive score and by the trees of
    `hockey-stick`. Searching is
    free: all are proposed from the same training draws, and only one is proved.
    """

    name = "auto"
    summary = (
        "events, of vectors also by trees; for RenyiDP and ZCDP the better of events and renyi-bet"
    )
    guarantee = "exact"
    is_quick = True

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal | BetProposal:
        """The proposal with the larger predicted bound."""
        events = EventsMethod()
        bets = RenyiBetMethod()
        n_train = min(len(left), len(right))
        needs_bets = isinstance(task.claim, RenyiDP | ZCDP)
        ways = ways_of(left, right)
        found: list[EventProposal | BetProposal] = [events.propose_from(ways, task)]
        if needs_bets:
            bet = bets.propose_from(learn_ways(left, right), task, n_train)
            found += [bet] if _sees_more_than_an_event(bet) else []
        best = max(found, key=lambda each: each.predicted)
        if any(block.shape.startswith(FEATURED) for block in left.blocks):
            best = _by_features(left, right, ways, task) or best
        has_score = any(isinstance(way, Scored) and not way.is_line and way.sums for way in ways)
        trees = _by_trees(left, right, ways) if has_score else None
        if trees is None:
            return best
        found = [events.propose_from([trees], task)]
        if needs_bets:
            found.append(bets.propose_from([way_of(trees)], task, n_train))
        other = max(found, key=lambda each: each.predicted)
        return other if other.predicted > best.predicted + _MARGIN * abs(best.predicted) else best


def _sees_more_than_an_event(bet: BetProposal) -> bool:
    """Whether the outputs have more than two outcomes.

    Of two outcomes one event has the whole divergence, and its test spends the whole failure
    probability, where a bet rests on Markov's inequality (two coins, order 2, 400 draws: bounds of
    0.32 against 0.27 at 95 %; at 50 % a true claim of just their divergence is refuted in 40 %
    against 10 %).
    """
    seen = (bet.score.p > 0.0) | (bet.score.q > 0.0)
    return int(np.count_nonzero(seen)) > 2


def _by_features(
    left: Outputs, right: Outputs, ways: Sequence[Way], task: Task
) -> EventProposal | None:
    """The best event of the features alone, unless some way of cutting whole outputs sees more.

    Cells that also depend on the rest of an output, like the seed of a hash function, may be mere
    luck: binary local hashing at 1e5 draws proved 0 to 0.99 of ε = 1 by all columns, and 0.97 to
    0.99 by features alone.
    """
    sides = []
    for side in (left, right):
        kept = ((block, n_of_features(block.shape) or None) for block in side)
        sides.append(
            Outputs(
                tuple(replace(block, columns=block.columns[:n]) for block, n in kept), side.size
            )
        )
    n_columns = {block.shape: len(block.columns) for block in (*left, *right)}
    own = ways_of(sides[0], sides[1])
    plain = _widened(own[0].partition, n_columns)
    if any(advantage(each.partition, plain, (left, right)) > _ADVANTAGE for each in ways):
        return None
    found = EventsMethod().propose_from(own, task)
    event = replace(found.event, partition=_widened(found.event.partition, n_columns))
    return replace(found, candidate=replace(found.candidate, event=event))


def _widened(partition: Partition, n_columns: Mapping[str, int]) -> Partition:
    """Cells of the first columns of each shape as cells of all of them."""
    parts = []
    for part in partition.blocks:
        rest = n_columns[part.shape] - len(part.atoms)
        groups = (
            replace(group, signature=(*group.signature, *(-1,) * rest)) for group in part.groups
        )
        parts.append(replace(part, atoms=(*part.atoms, *(None,) * rest), groups=tuple(groups)))
    return Partition(tuple(parts))


def _by_trees(left: Outputs, right: Outputs, ways: Sequence[Way]) -> Learned | None:
    """Cells of a score made of trees, if there are enough draws and they see more than the other ways."""
    if min(len(left), len(right)) < _ENOUGH_FOR_TREES:
        return None
    from epsilometer.methods.trees import fit_trees  # not needed for single numbers

    made = None
    for fit, least in (
        (partial(fit_trees, n_trees=_FIRST_TREES), _FIRST_ADVANTAGE),
        (fit_trees, _ADVANTAGE),
    ):
        made = learn_scored(left, right, fit)
        if made is None or any(
            advantage(made.partition, each.partition, (made.left, made.right)) <= least
            for each in ways
        ):
            return None
    return made
