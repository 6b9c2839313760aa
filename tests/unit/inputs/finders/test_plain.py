"""Domains and finders as text and plain data."""

import pytest

from epsilometer import InputError, domains, finders
from epsilometer.inputs.finders.plain import read_domain, read_finder


@pytest.mark.parametrize(
    ("given", "domain"),
    [
        ("number:0:1", domains.Number(0, 1)),
        ("number:-.5:1e3:2", domains.Number(-0.5, 1000.0, 2)),
        ("integer:0:99", domains.Integer(0, 99)),
        ('category:red,"1",1', domains.Category(["red", "1", 1])),
        ("vector:4", domains.Vector(4)),
        ("vector:4:-1:1", domains.Vector(4, -1, 1)),
        ("queries:5:0:20:2", domains.Queries(5, 0, 20, 2)),
        ({"kind": "queries", "count": 3, "whole": True}, domains.Queries(3, whole=True)),
        ('{"kind": "vector", "size": 2}', domains.Vector(2)),
        (
            {
                "kind": "table",
                "rows": 2,
                "columns": {"age": "integer:0:9", "ill": {"kind": "category", "values": [0, 1]}},
            },
            domains.Table({"age": domains.Integer(0, 9), "ill": domains.Category([0, 1])}, rows=2),
        ),
    ],
)
def test_domains(given, domain):
    assert read_domain(given) == domain


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("vektor:3", "did you mean 'vector'"),
        ("", "the kind '' is unknown; known are number"),
        ("number:0", "is not complete: write number:LOW:HIGH"),
        ("number:0:x", "'x' is not a number"),
        ("number:0:nan", "high=nan must be a number"),
        ("number:0:1:2:3", "too many parts: write number:LOW:HIGH:SENSITIVITY"),
        ("category:", "values|no value|neighbours"),
        ("{not json", "is not JSON"),
        (
            {"kind": "vector", "length": 3},
            "no setting 'length'; known are high, low, sensitivity, size, whole$",
        ),
        ({"size": 3}, "a table needs a kind, as in {kind = 'number'"),
        (
            {"kind": "table", "rows": 2, "columns": {"age": "vector:3"}},
            "must be the domain of a single value",
        ),
        (3, "domain=3"),
    ],
)
def test_domains_that_cannot_be_read(given, reason):
    with pytest.raises(InputError, match=reason):
        read_domain(given).neighbours("replace")


def test_finders():
    made = read_finder(
        {
            "name": "bayesian",
            "domain": "vector:4:0:1",
            "relation": "add-remove",
            "trials": 7,
            "seed": 3,
        }
    )
    expected = finders.Bayesian(domains.Vector(4, 0, 1), "add-remove", trials=7, seed=3)
    assert made.describe() == expected.describe()
    assert read_finder({"name": "patterns", "domain": "queries:5"}).trials == 8
    assert read_finder({"name": "grid", "domain": "number:0:1", "levels": 3}).size == 9


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"name": "randon", "domain": "vector:3"}, "did you mean 'random'"),
        ({"domain": "vector:3"}, "the name None is unknown"),
        ({"name": "random"}, "needs a domain"),
        (
            {"name": "random", "domain": "vector:3", "levels": 3},
            "no setting 'levels'; known are domain, relation, samples, seed,",
        ),
        ({"name": "random", "domain": "vector:3", "trials": 0}, "trials=0"),
        ({"name": "patterns", "domain": "vector:3"}, "write 'queries:5'"),
    ],
)
def test_finders_that_cannot_be_read(table, reason):
    with pytest.raises(InputError, match=reason):
        read_finder(table)
