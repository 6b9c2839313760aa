"""What every domain must satisfy."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar

import numpy as np

from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.domains import RELATIONS, Domain, Neighbours
from epsilometer.inputs.storing import is_complete, pair_from_dict, pair_to_dict


class DomainConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `domain`.

    Attributes:
        points: random points of the unit cube that are tried, beside its corners.
    """

    points: ClassVar[int] = 300

    def test_it_has_relations_that_exist(self, domain: Domain) -> None:
        """The first one is its default."""
        assert domain.relations, "domain.relations is empty"
        assert set(domain.relations) <= RELATIONS.keys(), f"domain.relations={domain.relations}"

    def test_it_refuses_other_relations(self, domain: Domain) -> None:
        """With an InputError, never with a pair that is none."""
        for relation in ({*RELATIONS, "cousins"} - set(domain.relations)) | {""}:
            try:
                domain.neighbours(relation)
            except InputError:
                continue
            raise AssertionError(f"neighbours({relation!r}) was not refused")

    def test_pairs_are_neighbours(self, domain: Domain) -> None:
        """Two different datasets, as near as the relation says."""
        for relation, pair in self._pairs(domain):
            assert pair.left != pair.right, f"{relation}: the same dataset twice, {pair.left!r}"
            assert are_neighbours(pair, relation, getattr(domain, "sensitivity", None)), f"{relation}: {pair!r}"

    def test_a_point_always_means_the_same_pair(self, domain: Domain) -> None:
        """A search that is repeated asks for the same inputs."""
        for relation in domain.relations:
            point = np.random.default_rng(1).random(len(domain.neighbours(relation).coordinates)).tolist()
            first, again = (domain.neighbours(relation).pair(point) for _ in range(2))
            assert first == again, f"{relation}: {point} means {first!r} and {again!r}"

    def test_pairs_can_be_stored(self, domain: Domain) -> None:
        """Plain data, so that a result holds its counterexample."""
        for relation, pair in self._pairs(domain):
            again = pair_from_dict(json.loads(json.dumps(pair_to_dict(pair))))
            assert is_complete(again), f"{relation}: {pair!r} is not plain data"
            assert again == pair, f"{relation}: {pair!r} is not plain data"

    def test_grids_stay_in_the_cube(self, domain: Domain) -> None:
        """Every coordinate offers at least one value, and more if it is asked for more."""
        for relation in domain.relations:
            for coordinate in domain.neighbours(relation).coordinates:
                for most in (2, 5):
                    grid = coordinate.grid(most)
                    assert len(grid) >= 1, f"{relation}: {coordinate!r} offers nothing"
                    assert np.all((grid >= 0.0) & (grid <= 1.0)), f"{relation}: {coordinate!r} leaves [0, 1]"

    def test_it_survives_pickling(self, domain: Domain) -> None:
        """It is part of a finder, which may be sent elsewhere."""
        assert repr(pickle.loads(pickle.dumps(domain))) == repr(domain), "a pickled domain is another one"

    def _pairs(self, domain: Domain) -> Iterator[tuple[str, Pair]]:
        for relation in domain.relations:
            neighbours = domain.neighbours(relation)
            for point in _some_points(neighbours, self.points):
                yield relation, neighbours.pair(point)


def are_neighbours(pair: Pair, relation: str, sensitivity: float | None = None) -> bool:
    """Whether two datasets are neighbours, checked from the datasets alone."""
    if relation == "add-remove":
        places = range(len(pair.left))
        return any(bool(pair.left[:place] + pair.left[place + 1 :] == pair.right) for place in places)
    if relation in ("l1", "linf"):
        moves = np.abs(np.subtract(pair.left, pair.right, dtype=np.float64)).ravel()
        moved = float(moves.sum() if relation == "l1" else moves.max())
        return moved <= float(math.inf if sensitivity is None else sensitivity) * (1.0 + 1e-9)
    if not isinstance(pair.left, list):  # one record, which is another one
        return _near(pair.left, pair.right, sensitivity)
    return sum(bool(one != two) for one, two in zip(pair.left, pair.right, strict=True)) == 1


def _near(one: Any, two: Any, sensitivity: float | None) -> bool:
    return sensitivity is None or bool(abs(one - two) <= sensitivity * (1.0 + 1e-9))


def _some_points(neighbours: Neighbours, count: int) -> Iterator[list[float]]:
    dimensions = len(neighbours.coordinates)
    for corner in product((0.0, 1.0), repeat=min(dimensions, 6)):
        yield [*corner, *[0.5] * (dimensions - len(corner))]
    yield [0.5] * dimensions
    yield from np.random.default_rng(0).random((count, dimensions)).tolist()
