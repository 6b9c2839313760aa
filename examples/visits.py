"""A domain of your own: lists of visits, as minutes of the day; neighbours differ by one visit.

A domain names its relations. For each of them it describes the pairs of neighbours as points of a unit cube: how many
numbers between 0 and 1 there are to choose, and which pair they stand for. Any finder can then search it.
"""

from dataclasses import dataclass
from typing import ClassVar

import epsilometer as em
from epsilometer.inputs.coordinates import Coordinate, check_relation

MINUTES = 24 * 60


@dataclass(frozen=True)
class Visits:
    visits: int
    relations: ClassVar = ("add-remove",)  # the first one is the default

    def neighbours(self, relation):
        check_relation(relation, self.relations, "visits")  # an InputError for others
        return self

    @property
    def coordinates(self):
        return (Coordinate(levels=MINUTES),) * self.visits

    def pair(self, point):
        visits = [min(int(u * MINUTES), MINUTES - 1) for u in point]
        return em.Pair(visits, visits[:-1])


def night_visits(visits, n, rng):
    return sum(minute < 360 for minute in visits) + rng.laplace(scale=0.5, size=n)  # ε = 1 would need scale=1
