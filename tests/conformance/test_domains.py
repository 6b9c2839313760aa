"""The suite for domains, on ours."""

import pytest

from epsilometer import domains
from epsilometer.testing import DomainConformance


class TestNumber(DomainConformance):
    @pytest.fixture(params=[domains.Number(0, 1), domains.Number(-5.0, 5.0, sensitivity=1.0)], ids=repr)
    def domain(self, request):
        return request.param


class TestInteger(DomainConformance):
    @pytest.fixture(
        params=[domains.Integer(0, 1), domains.Integer(-3, 3), domains.Integer(0, 1000, sensitivity=2)], ids=repr
    )
    def domain(self, request):
        return request.param


class TestCategory(DomainConformance):
    @pytest.fixture(params=[domains.Category(["yes", "no"]), domains.Category([None, 1, "a"])], ids=repr)
    def domain(self, request):
        return request.param


class TestVector(DomainConformance):
    @pytest.fixture(
        params=[
            domains.Vector(4, low=0, high=1),
            domains.Vector(1),
            domains.Vector(3, low=0, high=2, whole=True),
            domains.Vector(3, low=-1.0, high=1.0, sensitivity=0.25),
        ],
        ids=repr,
    )
    def domain(self, request):
        return request.param


class TestQueries(DomainConformance):
    @pytest.fixture(
        params=[
            domains.Queries(5),
            domains.Queries(1, low=0, high=1, whole=True),
            domains.Queries(4, low=0, high=20, sensitivity=3, whole=True),
            domains.Queries(3, low=0, high=0.5),
        ],
        ids=repr,
    )
    def domain(self, request):
        return request.param


class TestTable(DomainConformance):
    @pytest.fixture(
        params=[
            domains.Table({"age": domains.Integer(0, 99), "ill": domains.Category([True, False])}, rows=3),
            domains.Table({"always": domains.Category(["x"]), "sum": domains.Number(0.0, 10.0)}, rows=1),
        ],
        ids=["two columns", "one column can change"],
    )
    def domain(self, request):
        return request.param
