"""A domain of your own: lists of visits, as minutes of the day; neighbours differ by one visit.

A domain names its relations. For each of them it describes the pairs of neighbours as points of a
unit cube: how many numbers between 0 and 1 there are to choose, and which pair they stand for. Any
finder can then search it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import epsilometer as em

MINUTES = 24 * 60


@dataclass(frozen=True)
class Visits:
    visits: int

    @property
    def relations(self) -> tuple[str, ...]:  # the first one is the default
        return ("add-remove",)

    def neighbours(self, relation: str) -> "Visits":
        em.domains.check_relation(relation, self.relations, "visits")  # an InputError for others
        return self

    @property
    def coordinates(self) -> tuple[em.domains.Coordinate, ...]:
        return (em.domains.Coordinate(levels=MINUTES),) * self.visits

    def pair(self, point: Sequence[float]) -> em.Pair:
        visits = [min(int(u * MINUTES), MINUTES - 1) for u in point]
        return em.Pair(visits, visits[:-1])


def night_visits(visits: list[int], n: int, rng: np.random.Generator) -> np.ndarray:
    at_night = sum(minute < 360 for minute in visits)
    return at_night + rng.laplace(scale=0.5, size=n)  # ε = 1 would need scale=1
