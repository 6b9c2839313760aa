"""Method `auto`: the exact method with the best prospects for the claim, chosen on training draws only."""

import math
from collections.abc import Sequence

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import ZCDP, RenyiDP
from epsilometer.methods.base import Method, Task
from epsilometer.methods.events import EventProposal, EventsMethod, ways_of
from epsilometer.methods.events.few import Ordered
from epsilometer.methods.events.learning import Learned, learn_scored
from epsilometer.methods.events.tails import Scored
from epsilometer.methods.log_ratios import learn_ways, way_of
from epsilometer.methods.renyi_bet import BetProposal, RenyiBetMethod
from epsilometer.outputs import Outputs, Partition

Sides = tuple[Outputs, Outputs]

# Draws per side that are compared: with so many, chance matters little.
_MOST_ROWS = 40_000


def advantage(one: Partition, other: Partition, draws: Sides) -> float:
    """By how many standard errors the loss of `one` is smaller than that of `other`, on the same draws.

    Args:
        one: cells.
        other: other cells of the same outputs.
        draws: left and right outputs that did not shape `one`.
    """
    first = (draws[0].take(slice(0, _MOST_ROWS)), draws[1].take(slice(0, _MOST_ROWS)))
    differences = [theirs - ours for ours, theirs in zip(_losses(one, first), _losses(other, first), strict=True)]
    error = math.sqrt(sum(float(each.var()) / max(len(each), 1) for each in differences))
    return sum(float(each.mean()) for each in differences) / error if error > 0.0 else 0.0


def _losses(partition: Partition, draws: Sides) -> tuple[Floats, Floats]:
    """The logistic loss of every second draw, with log-ratios of cells from the others."""
    cells = [partition.index(side) for side in draws]
    counts = [np.bincount(side[::2], minlength=partition.n_cells) + 1.0 for side in cells]
    ratio = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    left, right = (ratio[side[1::2]] for side in cells)
    return np.logaddexp(0.0, -left), np.logaddexp(0.0, right)


# With at least this many training draws per side, trees see more in several columns than an additive score.
_ENOUGH_FOR_TREES = 500
# Trees must distinguish the sides better by the first number of standard errors, and promise more by the second share:
# each further candidate is one more that may be lucky (decision 0027).
_TREES_ADVANTAGE, _TREES_MARGIN = 1.0, 0.1


class AutoMethod(Method):
    """An event, or for Rényi divergences a bet on a score if that promises more.

    Outputs that vary in several columns are cut by an additive score and by the trees of `hockey-stick`. Searching is
    free: all are proposed from the same training draws, and only one is proved.
    """

    name = "auto"
    summary = "events, of vectors also by trees; for RenyiDP and ZCDP the better of events and renyi-bet"
    guarantee = "exact"
    is_quick = True
    # A finding carries the name of the method that made it.
    chooses_from = (EventsMethod.name, RenyiBetMethod.name)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> EventProposal | BetProposal:
        """The proposal with the larger predicted bound."""
        events, bets, n_train = EventsMethod(), RenyiBetMethod(), min(len(left), len(right))
        needs_bets = isinstance(task.claim, RenyiDP | ZCDP)
        ways = ways_of(left, right)
        found: list[EventProposal | BetProposal] = [events.propose_from(ways, task)]
        if needs_bets:
            found.append(bets.propose_from(learn_ways(left, right), task, n_train))
        best = max(found, key=lambda each: each.predicted)
        has_score = any(isinstance(way, Scored) and not way.is_line for way in ways)
        trees = _by_trees(left, right, ways) if has_score else None
        if trees is None:
            return best
        found = [events.propose_from([trees], task)]
        if needs_bets:
            found.append(bets.propose_from([way_of(trees)], task, n_train))
        other = max(found, key=lambda each: each.predicted)
        return other if other.predicted > best.predicted + _TREES_MARGIN * abs(best.predicted) else best


def _by_trees(left: Outputs, right: Outputs, ways: Sequence[Learned | Ordered | Scored]) -> Learned | None:
    """Cells of a score made of trees, if there are enough draws and they see more than the other ways."""
    if min(len(left), len(right)) < _ENOUGH_FOR_TREES:
        return None
    from epsilometer.methods.trees import fit_trees  # not needed for single numbers

    trees = learn_scored(left, right, fit_trees)
    if trees is None:
        return None
    held_out = trees.left, trees.right
    others = [way.partition for way in ways if not isinstance(way, Ordered)]
    advantages = (advantage(trees.partition, other, held_out) for other in others)
    return trees if all(each > _TREES_ADVANTAGE for each in advantages) else None
