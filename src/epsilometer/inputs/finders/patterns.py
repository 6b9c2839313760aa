"""Known patterns of query answers that reveal much about counting mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from epsilometer.errors import InputError
from epsilometer.inputs.coordinates import check_number, check_relation
from epsilometer.inputs.domains import Queries
from epsilometer.inputs.finders.base import PointFinder
from epsilometer.inputs.pairs import Pair

Steps = list[int]
# Per pattern, the answers of the left and of the right dataset to k queries, in steps away from a level.
PATTERNS: dict[str, Callable[[int], tuple[Steps, Steps]]] = {
    "one above": lambda k: ([0] * k, [1] + [0] * (k - 1)),
    "one below": lambda k: ([0] * k, [-1] + [0] * (k - 1)),
    "one above, rest below": lambda k: ([0] * k, [1] + [-1] * (k - 1)),
    "one below, rest above": lambda k: ([0] * k, [-1] + [1] * (k - 1)),
    "half below, half above": lambda k: ([0] * k, [-1] * ((k + 1) // 2) + [1] * (k // 2)),
    "all above": lambda k: ([0] * k, [1] * k),
    "all below": lambda k: ([0] * k, [-1] * k),
    "x shape": lambda k: ([0] * (k // 2) + [-1] * (k - k // 2), [-1] * (k // 2) + [0] * (k - k // 2)),
}


def farthest(left: Steps, right: Steps) -> int:
    """The most that one answer moves, in steps."""
    return max(abs(one - two) for one, two in zip(left, right, strict=True))


def moved_in_all(left: Steps, right: Steps) -> int:
    """How far all answers move in total, in steps."""
    return sum(abs(one - two) for one, two in zip(left, right, strict=True))


class Patterns(PointFinder):
    """Tries the patterns of StatDP's table: one above, one below, …, x shape.

    Args:
        queries: how many queries there are and how far their answers move, or just how many.
        relation: "linf", or "l1", which keeps only the patterns in which one answer moves.
        levels: answers from which the patterns step away; None takes one sensitivity above the smallest answer, so
            that the answers are 0, 1 and 2 by default.
        trials: the most pairs to try; None tries all.
        samples: draws per side to explore a pair.
        stop_at_refutation: whether to end at the first refutation, or to try every pair for the largest bound.
    """

    name = "patterns"

    def __init__(
        self,
        queries: Queries | int,
        relation: str = "linf",
        *,
        levels: Sequence[float] | None = None,
        trials: int | None = None,
        samples: int = 20_000,
        stop_at_refutation: bool = True,
    ) -> None:
        self.queries = queries if isinstance(queries, Queries) else Queries(queries)
        self.relation = check_relation(relation, Queries.relations, "answers of queries")
        lowest = self.queries.low + self.queries.sensitivity
        self.levels = [lowest] if levels is None else [check_number("levels", level) for level in levels]
        self._found = self._all()
        if not self._found:
            raise InputError(f"no pattern fits into {self.queries!r} around levels={levels!r}: no pair to try")
        most = len(self._found)
        super().__init__(
            trials=most if trials is None else min(trials, most),
            samples=samples,
            seed=0,
            stop_at_refutation=stop_at_refutation,
        )

    def describe(self) -> dict[str, Any]:
        """The settings."""
        own = {"queries": repr(self.queries), "relation": self.relation, "levels": self.levels}
        return {**super().describe(), **own}

    @property
    def patterns(self) -> list[str]:
        """The names of the patterns, in the order in which they are tried."""
        return [name for name, _ in self._found]

    def _all(self) -> list[tuple[str, Pair]]:
        found = []
        distance = moved_in_all if self.relation == "l1" else farthest
        for level in self.levels:
            for name, make in PATTERNS.items():
                left, right = make(self.queries.count)
                pair = Pair(*(self._answers(level, steps) for steps in (left, right)))
                if distance(left, right) <= 1 and left != right and self._holds(pair):
                    found.append((name, pair))
        distinct = [(name, pair) for place, (name, pair) in enumerate(found) if pair not in _pairs(found[:place])]
        return distinct

    def _answers(self, level: float, steps: list[int]) -> list[float]:
        answers = [level + step * self.queries.sensitivity for step in steps]
        return [int(each) for each in answers] if self.queries.whole else answers

    def _holds(self, pair: Pair) -> bool:
        return all(self.queries.low <= each <= self.queries.high for each in (*pair.left, *pair.right))

    def _knows(self, point: tuple[float, ...]) -> bool:
        return len(point) == 1 and point[0] in range(len(self._found))

    def next_point(self, number: int) -> tuple[float]:
        """The point of trial `number`."""
        return (float(number),)

    def _pair(self, point: tuple[float, ...]) -> Pair:
        return self._found[int(point[0])][1]


def _pairs(found: list[tuple[str, Pair]]) -> list[Pair]:
    return [pair for _, pair in found]
