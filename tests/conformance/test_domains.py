"""The suite for domains, on ours."""

import datetime

import hypothesis.strategies as st
import pytest

from epsilometer import domains
from epsilometer.testing import DomainConformance


class TestNumber(DomainConformance):
    @pytest.fixture(
        params=[domains.Number(0, 1), domains.Number(-5.0, 5.0, sensitivity=1.0)], ids=repr
    )
    def domain(self, request):
        return request.param


class TestInteger(DomainConformance):
    @pytest.fixture(
        params=[
            domains.Integer(0, 1),
            domains.Integer(-3, 3),
            domains.Integer(0, 1000, sensitivity=2),
        ],
        ids=repr,
    )
    def domain(self, request):
        return request.param


class TestCategory(DomainConformance):
    @pytest.fixture(
        params=[domains.Category(["yes", "no"]), domains.Category([None, 1, "a"])], ids=repr
    )
    def domain(self, request):
        return request.param


class TestSphere(DomainConformance):
    @pytest.fixture(
        params=[
            domains.Sphere(3),
            domains.Sphere(1, radius=2.0),
            domains.Records(domains.Sphere(4), size=(1, 3)),
            domains.Records(domains.Sphere(2), size=2, container="numpy"),
        ],
        ids=repr,
    )
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
            domains.Table(
                {"age": domains.Integer(0, 99), "ill": domains.Category([True, False])}, rows=3
            ),
            domains.Table(
                {"always": domains.Category(["x"]), "sum": domains.Number(0.0, 10.0)}, rows=1
            ),
        ],
        ids=["two columns", "one column can change"],
    )
    def domain(self, request):
        return request.param


NUMBER, AGE, COLOUR = (
    domains.Number(0, 1),
    domains.Integer(0, 99),
    domains.Category(["red", "green"]),
)
MIXED = {
    "uid": domains.Integer(1, 3),
    "sum": NUMBER,
    "ill": domains.Boolean(),
    "name": domains.Text(3),
    "born": domains.Date(datetime.date(2020, 2, 28), "2020-03-01"),
    "colour": domains.Optional(COLOUR),
}


class TestValues(DomainConformance):
    points = 100

    @pytest.fixture(
        params=[
            domains.Boolean(),
            domains.Text(),
            domains.Text(1),
            domains.Date(),
            domains.Optional(NUMBER),
        ],
        ids=repr,
    )
    def domain(self, request):
        return request.param


class TestRecords(DomainConformance):
    points = 50

    @pytest.fixture(
        params=[
            domains.Records(NUMBER),
            domains.Records(AGE, size=3, container="numpy", dtype="int8"),
            domains.Records(AGE, size=(2, 4), container="series"),
            domains.Records(domains.Boolean(), container="numpy"),
            domains.Records(COLOUR, size=(1, 1), container="numpy"),
            domains.Records(domains.Text(2)),
            domains.Records(domains.Optional(NUMBER), size=(0, 5)),
        ],
        ids=repr,
    )
    def domain(self, request):
        return request.param


class TestTables(DomainConformance):
    points = 30

    @pytest.fixture(
        params=[
            domains.Table(MIXED, user="uid"),
            domains.Table({"uid": AGE, "sum": NUMBER}, rows=(0, 4), container="pandas", user="uid"),
            domains.Table(
                {"uid": AGE, "ill": domains.Boolean(), "name": domains.Text(2)}, container="polars"
            ),
            domains.Table({"a": NUMBER, "b": AGE}, rows=(1, 3), container="numpy"),
            domains.Table({"a": AGE, "b": AGE}, rows=3, container="numpy", dtype="int32"),
            domains.Matrix((0, 5), 2, 0, 1),
            domains.Matrix(3, 2, -1, 1, labels=[0, 1]),
        ],
        ids=lambda domain: f"{type(domain).__name__} {getattr(domain, 'container', '')}",
    )
    def domain(self, request):
        return request.param


class TestStrategies(DomainConformance):
    points = 50

    @pytest.fixture(params=[st.lists(st.integers(0, 9)), st.floats(0, 1)], ids=["lists", "numbers"])
    def domain(self, request):
        return domains.from_strategy(request.param, examples=40)
