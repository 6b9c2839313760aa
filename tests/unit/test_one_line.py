"""Reprs are one short line, whatever an object holds; copies are equal. Nothing is computed."""

import copy
import dataclasses
import datetime
import pickle
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import strategies as st

import epsilometer as em
from epsilometer.one_line import one_line
from epsilometer.testing import RateTest

LONG = 400  # characters; a line that a terminal wraps a few times
FRAME = pd.DataFrame({"age": range(5000), "city": ["Basel"] * 5000})
ROWS = em.Pair([1, 0], [1, 1])
RECORDS = em.domains.Records(em.domains.Number(0, 1), size=(1, 12))


def noisy_count(rows, rng):
    return sum(rows) + rng.laplace()


def noisy_counts(rows, n, rng):
    return sum(rows) + rng.laplace(size=n)


@em.from_batch
def noisy_vector(point, n, rng):
    return np.array(point) + rng.laplace(size=(n, 2))


def neighbours(number):
    return [number - 1, number + 1]


def doubled(array):
    return 2 * array


class WithAnything(em.methods.Method):
    """A stranger's method, which holds what it likes."""

    name = "anything"
    summary = "certifies nothing"
    guarantee = "exact"

    def __init__(self):
        self.weights = np.zeros(500)
        self.kernel = np.cosh
        self.scorer = neighbours


VECTORS = em.Pair([0.0, 0.0], [1.0, 1.0])
REGION = ((-3, -3), (4, 4))
LIPSCHITZ = {"precision": 0.9, "confidence": 0.9, "lipschitz": 0.5, "domain": (0, 1)}


@cache
def sample(shift):
    return shift + np.random.default_rng(shift).laplace(size=500)


RESULTS = {
    "result": lambda: em.audit(noisy_count, ROWS, em.PureDP(1.0), samples=500, seed=0),
    "measurement": lambda: em.measure(noisy_count, ROWS, samples=500, seed=0),
    "Rényi": lambda: em.measure(noisy_count, ROWS, em.RenyiDP, order=2.0, samples=500, seed=0),
    "bits": lambda: em.audit(
        noisy_count, ROWS, em.PureDP(1.0), samples=500, seed=0, representation="bits"
    ),
    "profile": lambda: em.profile(noisy_count, ROWS, samples=500, seed=0),
    "scores": lambda: em.from_scores(sample(1), sample(0)),
    "one run": lambda: em.one_run(100, 50, 45),
    "scores of one run": lambda: em.from_one_run(sample(1), sample(7) > 7),
    "plan": lambda: em.plan("eps=1", truth=1.5),
    "plan of an estimate": lambda: em.ldp.plan(precision=0.5, lipschitz=0.5, domain=(0, 1)),
    "estimate": lambda: em.ldp.estimate(
        em.zoo.truncated_laplace(0.5), precision=0.5, n=2000, seed=0
    ),
    "loss": lambda: em.local.loss_function(sample(1), sample(0), region=(-2, 3), floor=1e-3),
    "interval": lambda: em.local.interval(sample(1), sample(0), t=0.0),
    "bound": lambda: em.renyi.lower_bound(sample(1), sample(0), order=2.0),
    "maximum loss": lambda: em.local.mpl(
        noisy_vector, [VECTORS], n=200, N=200, region=REGION, floor=1e-3, seed=0
    ),
    "data-specific loss": lambda: em.local.dpl(
        noisy_vector, VECTORS, n=200, region=REGION, floor=1e-3, seed=0
    ),
    "levels": lambda: em.local.level_map(
        em.zoo.laplace(), range(20), neighbours, n=200, N=200, region=(-9, 29), floor=1e-3, seed=0
    ),
    "trials": lambda: em.auditorium.audit(
        em.zoo.laplace(),
        [em.Pair(0.0, 1.0)] * 50,
        em.auditorium.estimators.Histogram(1.0),
        trials=50,
        samples=20,
        threshold=1.0,
        seed=0,
    ),
    "overall estimate": lambda: em.ldp.overall(
        em.zoo.truncated_laplace(0.5), **LIPSCHITZ, input_domain=(0, 1), input_lipschitz=0.5, seed=0
    ),
    "check": lambda: em.verify(RESULTS["result"]()),
    "movement": lambda: em.models.movement(doubled, np.ones(1000), np.zeros(1000), 5.0),
    "coins": lambda: em.models.coin_flips(range(3000), seed=0),
    "joined scores": lambda: em.models.coin_flips(range(500)).join(dict.fromkeys(range(500), 0.5)),
    "stream": lambda: em.ScoreStream(em.ApproxDP(1.0, 1e-5)),
}
OTHERS = {
    "pair": ROWS,
    "pair of frames": em.Pair(FRAME, FRAME.iloc[1:]),
    "pair of nested frames": em.Pair({"rows": FRAME}, [FRAME] * 50),
    "pair of polars frames": em.Pair(pl.DataFrame({"a": range(99)}), pl.DataFrame({"a": [1]})),
    "pair of arrays": em.Pair(np.zeros((500, 3)), np.ones((500, 3))),
    "pair of lists": em.Pair(list(range(10_000)), list(range(9_999))),
    "pair of texts": em.Pair("a\nb" * 5000, "c"),
    "search": em.finders.Search(RECORDS),
    "random": em.finders.Random(RECORDS),
    "grid": em.finders.Grid(RECORDS, trials=3),
    "bayesian": em.finders.Bayesian(RECORDS),
    "patterns": em.finders.Patterns(em.domains.Queries(3)),
    "around a frame": em.around(FRAME),
    "callable": em.from_callable(noisy_count),
    "batch": em.from_batch(noisy_counts),
    "command": em.from_command(["cat", "{dataset}"]),
    "service": em.from_http("http://localhost:1/count"),
    "repeated": em.repeated(noisy_count, 3),
    "repeated entry": em.repeated(em.zoo.laplace(), 3),
    "number": em.domains.Number(0, 1),
    "integer": em.domains.Integer(0, 9),
    "boolean": em.domains.Boolean(),
    "category": em.domains.Category([f"city {number}" for number in range(1000)]),
    "text": em.domains.Text(),
    "date": em.domains.Date(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    "optional": em.domains.Optional(em.domains.Boolean()),
    "vector": em.domains.Vector(3),
    "queries": em.domains.Queries(3),
    "table": em.domains.Table({"age": em.domains.Integer(0, 99)}),
    "records": RECORDS,
    "wide table": em.domains.Table({f"c{i}": em.domains.Integer(0, 99) for i in range(200)}),
    "records of a wide table": em.domains.Optional(
        em.domains.Category([f"city {number}" for number in range(1000)])
    ),
    "category of arrays": em.domains.Category([np.zeros(300), np.ones(300)]),
    "matrix": em.domains.Matrix(3, 2, labels=em.domains.Category(range(1000))),
    "sphere": em.domains.Sphere(3),
    "candidate": em.finders.PairCandidate(em.Pair([0] * 5000, [1])),
    "pair of functions": em.Pair(neighbours, lambda: None),
    "pair of objects": em.Pair(object(), object()),
    "long name": em.from_callable(noisy_count, name="a\nb" * 300),
    "method with anything": WithAnything(),
    "foreign method": em.methods.as_method(WithAnything()),
    "options with functions": em.auditorium.mmd.Options(kernel=lambda u: u),
    "options with arrays": em.local.Options(region=(np.zeros(500), np.ones(500))),
    "recorder": em.models.Recorder(),
    "training": em.zoo.training.dp_sgd(),
    "rate test": RateTest(0.05, 0.2),
    "strategy": em.domains.from_strategy(st.lists(st.floats(0, 1))),
    "pure": em.PureDP(1.0),
    "approx": em.ApproxDP(1.0, 1e-5),
    "renyi": em.RenyiDP(2.0, 1.0),
    "zcdp": em.ZCDP(0.5),
    "gaussian": em.GaussianDP(1.0),
    "curve": em.TradeOffDP(lambda error: 1.0 - error),
    "points": em.TradeOffDP((np.linspace(0, 1, 500), 1 - np.linspace(0, 1, 500))),
    "progress": em.ProgressBar(),
    "outputs": em.from_batch(noisy_counts).sample([1], 1000, np.random.default_rng(0)),
}


def check(thing):
    text = repr(thing)
    assert "\n" not in text
    assert " at 0x" not in text
    assert len(text) < LONG, text
    return text


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_one_line(name):
    result = RESULTS[name]()
    check(result)
    for finding in getattr(result, "findings", ()):
        check(finding)
        check(finding.witness)
        if finding.witness is not None:
            check(finding.witness.event)
            check(finding.witness.pair)


@pytest.mark.parametrize("name", OTHERS)
def test_other_objects_have_one_line(name):
    check(OTHERS[name])


@pytest.mark.parametrize("name", sorted(set(RESULTS) - {"coins", "joined scores", "stream"}))
def test_a_copy_of_a_result_equals_it(name):
    result = RESULTS[name]()
    copied = copy.deepcopy(result)
    assert copied == result
    assert pickle.loads(pickle.dumps(result)) == result
    assert result != 1


@pytest.mark.parametrize("name", [name for name in OTHERS if name.startswith("pair of")])
def test_a_pair_equals_itself_whatever_it_holds(name):
    pair = OTHERS[name]
    assert pair == em.Pair(pair.left, pair.right)
    assert pair != em.Pair(pair.left, "something else")


@pytest.mark.parametrize("name", em.zoo.names())
def test_zoo_entries_have_one_line(name):
    entry = em.zoo.find(name)
    assert entry.name in check(entry)
    check(entry.mechanism)
    check(entry.worst_pair)


@pytest.mark.parametrize("name", em.methods.names())
def test_methods_have_one_line(name):
    try:
        method = em.methods.find_method(name)
    except em.InputError:  # it needs options
        method = em.methods.find_method(name, em.ldp.Options(domain=(0.0, 1.0), lipschitz=0.5))
    check(method)


def test_a_profile_shows_itself_in_a_notebook():
    profile = RESULTS["profile"]()
    assert "<table" in profile._repr_html_()
    assert repr(profile).startswith("<Profile: ε ≥ ")


@pytest.mark.parametrize("name", ["result", "measurement", "bits"])
def test_a_fresh_result_computes_nothing_for_its_repr_copies_and_comparisons(name):
    result = RESULTS[name]()

    def not_now():
        raise AssertionError("computed")

    for value in result.on_request._values:
        if callable(result.on_request._values[value]):
            result.on_request._values[value] = not_now
    repr(result)
    dir(result)
    assert dataclasses.replace(result, seconds=1.0) != result
    assert copy.copy(result) == result
    assert copy.deepcopy(result) == result


def test_a_search_records_all_values_of_its_domain():
    domain = em.domains.Table({"city": OTHERS["category"]})
    described = em.finders.Random(domain).describe()["domain"]
    assert "'city 999'" in described
    assert described.startswith("Table(columns={'city': Category(values=['city 0', 'city 1', ")
    assert "city 999" not in repr(domain)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, "a  b"], "[1, 'a  b']"),
        (FRAME, "<pandas.DataFrame, 5,000 rows × 2 columns: age, city>"),
        (np.arange(3), "array([0, 1, 2])"),
        (np.eye(6), "<float64 array of shape (6, 6)>"),
        ({"a": np.arange(4).reshape(2, 2)}, "{'a': array([[0, 1], [2, 3]])}"),
        ("x" * 200, "'" + "x" * 78 + "…"),
    ],
    ids=str,
)
def test_foreign_values(value, text):
    assert one_line(value) == text


def test_a_repr_that_raises():
    class Hostile:
        def __repr__(self):
            raise RuntimeError("no")

    assert repr(em.Pair(Hostile(), 1)).startswith("Pair(left=<Hostile")


def test_a_stored_result_keeps_its_repr():
    result = RESULTS["result"]()
    assert repr(em.AuditResult.from_json(result.to_json())) == repr(result)
    again = pickle.loads(pickle.dumps(em.audit(em.zoo.laplace(), samples=500, seed=0)))
    assert repr(again).startswith("<AuditResult not refuted: ")
