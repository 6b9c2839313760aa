"""The suite for finders, on ours."""

import pytest

from epsilometer import Pair, domains, finders
from epsilometer.testing import FinderConformance
from epsilometer.testing.plugins import are_neighbours

TABLE = domains.Table(
    {"age": domains.Integer(0, 99), "ill": domains.Category([True, False])}, rows=2
)
SPACES = {
    "vector": (domains.Vector(3), "replace"),
    "queries": (domains.Queries(3, whole=True), "l1"),
    "table": (TABLE, "add-remove"),
}


@pytest.fixture(params=SPACES, ids=str)
def space(request):
    return SPACES[request.param]


class TestRandom(FinderConformance):
    @pytest.fixture
    def make_finder(self, space):
        return lambda: finders.Random(*space, trials=12, seed=3)


class TestGrid(FinderConformance):
    @pytest.fixture(params=[True, False], ids=["shuffled", "in order"])
    def make_finder(self, space, request):
        return lambda: finders.Grid(*space, trials=12, levels=3, shuffled=request.param)


class TestBayesian(FinderConformance):
    @pytest.fixture(params=["gaussian-process", "tree"])
    def make_finder(self, space, request):
        return lambda: finders.Bayesian(*space, trials=16, seed=1, surrogate=request.param)


class TestPatterns(FinderConformance):
    @pytest.fixture
    def make_finder(self):
        return lambda: finders.Patterns(5)


RECORDS = domains.Records(domains.Number(0, 1), size=(0, 3))
PEOPLE = domains.Table(
    {"uid": domains.Integer(1, 2), "x": domains.Optional(domains.Text(2))}, user="uid"
)
ROWS = domains.Table(PEOPLE.columns)


class TestSearch(FinderConformance):
    @pytest.fixture(
        params=[
            (RECORDS, "add-remove", True),
            (PEOPLE, "user", False),
            (ROWS, "substitute-column", True),
            (domains.Queries(3, whole=True), "l1", False),
            (domains.Matrix((0, 3), 2, labels=[0, 1]), "replace", True),
            (domains.Boolean(), "replace", True),
        ],
        ids=lambda case: f"{type(case[0]).__name__} {case[1]}",
    )
    def make_finder(self, request):
        domain, relation, beyond = request.param
        return lambda: finders.Search(domain, relation, beyond=beyond, trials=40, seed=2)

    def test_pairs_are_neighbours(self, make_finder):
        finder = make_finder()
        while (pair := finder.ask()) is not None:
            if pair.within:
                domain, relation = finder.domain, finder.relation
                reach, user = getattr(domain, "sensitivity", None), getattr(domain, "user", None)
                assert are_neighbours(pair, relation, reach, user) or are_neighbours(
                    Pair(pair.right, pair.left), relation, reach, user
                ), f"{relation}: {pair!r}"
            finder.tell(0.5)


def test_search_says_whether_a_pair_is_within_the_domain():
    finder, seen = (
        finders.Search(RECORDS, "add-remove", beyond=True, trials=300),
        {True: 0, False: 0},
    )
    while (pair := finder.ask()) is not None:
        inside = all(
            isinstance(value, float) and 0.0 <= value <= 1.0 for value in (*pair.left, *pair.right)
        )
        assert pair.within is inside
        assert pair.note
        seen[inside] += 1
        finder.tell(None)
    assert min(seen.values()) > 60
