"""The suite for finders, on ours."""

import pytest

from epsilometer import domains, finders
from epsilometer.testing import FinderConformance

TABLE = domains.Table({"age": domains.Integer(0, 99), "ill": domains.Category([True, False])}, rows=2)
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
