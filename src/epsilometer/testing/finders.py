"""What every domain and every finder must satisfy."""

from __future__ import annotations

import copy
import json
import math
import pickle
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.domains import RELATIONS, Domain, Neighbours
from epsilometer.inputs.finders import Finder
from epsilometer.inputs.pairs import is_complete, pair_digest, pair_from_dict, pair_to_dict


class DomainConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `domain`.

    Attributes:
        points: random points of the unit cube that are tried besides its corners.
    """

    points: ClassVar[int] = 300

    def test_it_has_relations_that_exist(self, domain: Domain) -> None:
        """The first one is its default."""
        assert domain.relations, "domain.relations is empty"
        assert set(domain.relations) <= RELATIONS.keys(), f"domain.relations={domain.relations}"

    def test_it_refuses_other_relations(self, domain: Domain) -> None:
        """With an InputError, never with a wrong pair."""
        for relation in ({*RELATIONS, "cousins"} - set(domain.relations)) | {""}:
            try:
                domain.neighbours(relation)
            except InputError:
                continue
            raise AssertionError(f"neighbours({relation!r}) was not refused")

    def test_pairs_are_neighbours(self, domain: Domain) -> None:
        """Two different datasets, as near as the relation says."""
        for relation, pair in self._pairs(domain):
            assert not pair.has_equal_sides, f"{relation}: the same dataset twice, {pair.left!r}"
            reach, user = getattr(domain, "sensitivity", None), getattr(domain, "user", None)
            assert are_neighbours(pair, relation, reach, user), f"{relation}: {pair!r}"

    def test_a_point_always_means_the_same_pair(self, domain: Domain) -> None:
        """A repeated search asks for the same inputs."""
        for relation in domain.relations:
            point = np.random.default_rng(1).random(len(domain.neighbours(relation).coordinates)).tolist()
            first, again = (domain.neighbours(relation).pair(point) for _ in range(2))
            assert first.digest == again.digest, f"{relation}: {point} means {first!r} and {again!r}"

    def test_pairs_can_be_stored(self, domain: Domain) -> None:
        """Plain data, so that a result holds its counterexample."""
        for relation, pair in self._pairs(domain):
            again = pair_from_dict(json.loads(json.dumps(pair_to_dict(pair))))
            assert is_complete(again), f"{relation}: {pair!r} is not plain data"
            assert again.digest == pair.digest, f"{relation}: {pair!r} is not plain data"

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
        assert repr(pickle.loads(pickle.dumps(domain))) == repr(domain), "a pickled domain differs"

    def _pairs(self, domain: Domain) -> Iterator[tuple[str, Pair]]:
        for relation in domain.relations:
            neighbours = domain.neighbours(relation)
            for point in _some_points(neighbours, self.points):
                yield relation, neighbours.pair(point)


def are_neighbours(pair: Pair, relation: str, sensitivity: float | None = None, user: str | None = None) -> bool:
    """Whether two datasets are neighbours, checked from the datasets alone."""
    if relation in ("l1", "linf"):
        moves = np.abs(np.subtract(np.asarray(pair.left), np.asarray(pair.right), dtype=np.float64)).ravel()
        moved = float(moves.sum() if relation == "l1" else moves.max())
        return moved <= float(math.inf if sensitivity is None else sensitivity) * (1.0 + 1e-9)
    left, right = _listed(pair.left), _listed(pair.right)
    if left is None or right is None:  # single records, which must differ
        return _near(pair.left, pair.right, sensitivity)
    if relation == "add-remove":
        return any(left[:place] + left[place + 1 :] == right for place in range(len(left)))
    if relation == "user":
        gone = {row[user] for row in left} - {row[user] for row in right}
        return len(gone) == 1 and [row for row in left if row[user] not in gone] == right
    differing = [(one, two) for one, two in zip(left, right, strict=True) if repr(one) != repr(two)]  # -0.0 is another
    if relation == "substitute-column" and len(differing) == 1:
        one, two = differing[0]
        names = one if isinstance(one, dict) else range(len(one))
        return sum(repr(one[name]) != repr(two[name]) for name in names) == 1
    return len(differing) == 1


def _listed(dataset: Any) -> list[Any] | None:
    """The records of a dataset in any container; None for a single value."""
    if isinstance(dataset, tuple):  # an array and its labels
        return [[*row, label] for row, label in zip(*(part.tolist() for part in dataset), strict=True)]
    for method in ("to_dicts", "tolist"):  # of polars, of numpy and of a series
        if hasattr(dataset, method):
            return list(getattr(dataset, method)())
    if hasattr(dataset, "to_dict"):
        return list(dataset.to_dict("records"))
    return dataset if isinstance(dataset, list) else None


def _near(one: Any, two: Any, sensitivity: float | None) -> bool:
    return sensitivity is None or bool(abs(one - two) <= sensitivity * (1.0 + 1e-9))


def _some_points(neighbours: Neighbours, count: int) -> Iterator[list[float]]:
    dimensions = len(neighbours.coordinates)
    for corner in product((0.0, 1.0), repeat=min(dimensions, 6)):
        yield [*corner, *[0.5] * (dimensions - len(corner))]
    yield [0.5] * dimensions
    yield from np.random.default_rng(0).random((count, dimensions)).tolist()


class FinderConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `make_finder`.

    The fixture returns a function without arguments that makes a new finder, always with the same settings, of at
    least three trials.
    """

    def test_it_is_a_finder(self, make_finder: Callable[[], Finder]) -> None:
        """It has everything that a search needs."""
        finder = make_finder()
        assert isinstance(finder, Finder), f"{finder!r} lacks something of epsilometer.finders.Finder"
        assert finder.trials >= 3, f"trials={finder.trials}"
        assert finder.samples >= 1, f"samples={finder.samples}"
        assert json.loads(json.dumps(finder.describe())) == finder.describe(), "describe() is not plain data"

    def test_a_pair_stays_until_it_is_told_about(self, make_finder: Callable[[], Finder]) -> None:
        """Asking twice is the same as asking once."""
        finder = make_finder()
        assert _asked(finder).digest == _asked(finder).digest, "ask() without tell() gave two pairs"

    def test_it_ends(self, make_finder: Callable[[], Finder]) -> None:
        """No more pairs than trials, all of them two different datasets."""
        finder = make_finder()
        pairs = _search(finder, finder.trials + 1)
        assert 1 <= len(pairs) <= finder.trials, f"{len(pairs)} pairs in {finder.trials} trials"
        assert finder.ask() is None, "ask() gives more pairs after the last trial"
        assert not any(pair.has_equal_sides for pair in pairs), "a pair of equal datasets"

    def test_same_scores_same_pairs(self, make_finder: Callable[[], Finder]) -> None:
        """A search can be repeated."""
        first, again = make_finder(), make_finder()
        assert _path(first, first.trials) == _path(again, again.trials), "two equal searches differ"

    def test_any_number_is_a_score(self, make_finder: Callable[[], Finder]) -> None:
        """0.0 and negative numbers are scores, and None stands for trials without one."""
        for scores in ((None,), (0.0,), (-1.0, None), (0.0, 0.0, 1e6)):
            finder = make_finder()
            for number in range(finder.trials):
                if finder.ask() is None:
                    break
                finder.tell(scores[number % len(scores)])

    def test_what_is_no_number_is_no_score(self, make_finder: Callable[[], Finder]) -> None:
        """NaN would win or lose every comparison."""
        for score in (math.nan, math.inf, -math.inf):
            finder = make_finder()
            finder.ask()
            _expect_refusal(partial(finder.tell, score), f"tell({score})")
        _expect_refusal(lambda: make_finder().tell(1.0), "tell() without ask()")

    def test_it_goes_on_from_its_state(self, make_finder: Callable[[], Finder]) -> None:
        """A search that was interrupted asks for what it would have asked for."""
        whole = make_finder()
        expected = _path(whole, whole.trials)
        first = make_finder()
        begun = _path(first, 2)
        first.ask()  # interrupted in a trial
        stored = json.dumps(first.state(), allow_nan=False)
        later = make_finder()
        later.restore(json.loads(stored))
        assert begun + _path(later, later.trials) == expected, "a restored search takes another path"

    def test_a_state_that_is_none_is_refused(self, make_finder: Callable[[], Finder]) -> None:
        """Files are never trusted."""
        states: tuple[dict[str, Any], ...] = ({}, {"told": 3}, {"finder": {}, "told": []})
        for state in states:
            _expect_refusal(partial(make_finder().restore, state), f"restore({state})")

    def test_a_copy_is_independent(self, make_finder: Callable[[], Finder]) -> None:
        """An audit searches with a copy, so that a finder can be used again."""
        finder = make_finder()
        other = copy.deepcopy(finder)
        _search(other, 2)
        assert _asked(finder).digest == _asked(make_finder()).digest, "searching with a copy changed the original"


def _path(finder: Finder, most: int) -> list[tuple[str, str]]:
    return [pair.digest for pair in _search(finder, most)]


def _search(finder: Finder, most: int) -> list[Pair]:
    """Scores each pair by its own content, so that equal searches get equal scores."""
    pairs: list[Pair] = []
    while len(pairs) < most and (pair := finder.ask()) is not None:
        pairs.append(pair)
        finder.tell(zlib.crc32(pair_digest(pair).encode()) / 2**32)
    return pairs


def _asked(finder: Finder) -> Pair:
    pair = finder.ask()
    assert pair is not None, "ask() gave no pair"
    return pair


def _expect_refusal(action: Callable[[], Any], what: str) -> None:
    try:
        action()
    except InputError:
        return
    raise AssertionError(f"{what} was not refused")
