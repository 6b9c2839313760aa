"""Answers of queries on two neighbouring datasets: every answer may move a little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.inputs.checking import check_interval, check_positive, check_whole, check_whole_interval
from epsilometer.inputs.coordinates import Coordinate, signed_step, whole_within, within
from epsilometer.inputs.domains.base import Neighbours, Point
from epsilometer.inputs.pairs import Pair
from epsilometer.inputs.relations import check_relation


@dataclass(frozen=True, slots=True)
class Queries:
    """Lists of answers of so many queries, counts say.

    Neighbours: every answer moves by at most `sensitivity` ("linf", as with counting queries of which one person may
    change all), or all together do ("l1", as with a histogram).

    Attributes:
        count: how many queries.
        low: the smallest answer.
        high: the largest answer.
        sensitivity: how far answers move.
        whole: whether answers are whole numbers.
    """

    count: int
    low: float = 0.0
    high: float = 10.0
    sensitivity: float = 1.0
    whole: bool = False
    relations: ClassVar[tuple[str, ...]] = ("linf", "l1")

    def __post_init__(self) -> None:
        check_whole("count", self.count, 1, ": no queries have no answers")
        check_interval(self.low, self.high)
        check_positive("sensitivity", self.sensitivity)

    def neighbours(self, relation: str) -> Neighbours:
        """Two lists of answers."""
        check_relation(relation, self.relations, "answers of queries")
        return ShiftedAnswers(self.count, self.low, self.high, self.sensitivity, self.whole, in_all=relation == "l1")


@dataclass(frozen=True, slots=True)
class ShiftedAnswers:
    """Two lists of numbers, of which the right one is moved.

    Attributes:
        count: how many numbers.
        low: the smallest.
        high: the largest.
        sensitivity: the most that one moves, or all together.
        whole: whether numbers are whole.
        in_all: whether the sensitivity is that of the sum of all moves.
    """

    count: int
    low: float
    high: float
    sensitivity: float
    whole: bool
    in_all: bool

    def __post_init__(self) -> None:
        if self.whole:
            check_whole_interval(self.low, self.high)
            if self.sensitivity < 1.0:
                raise InputError(f"sensitivity={self.sensitivity!r}: whole numbers have no neighbour less than 1 away")

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The numbers, and how each moves."""
        levels = int(self.high) - int(self.low) + 1 if self.whole else None
        return (Coordinate(levels),) * self.count + (Coordinate(signed=True),) * self.count

    def pair(self, point: Point) -> Pair:
        """The right numbers stay within the domain, too."""
        left = self._numbers(point[: self.count])
        moves = self._moves(np.array([signed_step(u) for u in point[self.count :]]))
        right = np.clip(left + moves, self.low, self.high)
        if np.array_equal(left, right):
            right = left.copy()
            first = min(self.sensitivity, self.high - self.low)
            step = float(np.floor(first)) if self.whole else first
            right[0] += step if self.high - left[0] >= step else -min(step, left[0] - self.low)
        return Pair(self._plain(left), self._plain(right))

    def _numbers(self, point: Point) -> NDArray[np.float64]:
        if self.whole:
            return np.array([float(whole_within(u, int(self.low), int(self.high))) for u in point])
        return np.array([within(u, float(self.low), float(self.high)) for u in point])

    def _moves(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far each number moves: −1 to 1 times the sensitivity, all together no more than it where that counts."""
        total = float(np.abs(steps).sum())
        if self.in_all and total > 0.0:
            steps = steps / total  # the whole of it: smaller moves tell less
        moves = steps * self.sensitivity
        if not self.whole:
            return moves
        whole = np.trunc(moves)
        if not whole.any() and total > 0.0:  # too small to count for any of them: the largest gets a full step
            place = int(np.argmax(np.abs(moves)))
            whole[place] = np.copysign(np.trunc(self.sensitivity), moves[place])
        return whole

    def _plain(self, numbers: NDArray[np.float64]) -> list[float]:
        return [int(each) for each in numbers] if self.whole else numbers.tolist()
