"""Every kind of output that mechanisms return: a leak through it is found, and a correct mechanism is not accused."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import epsilometer as em
from epsilometer.outputs import read_outputs
from epsilometer.result import Finding

Colour = enum.Enum("Colour", "RED BLUE")
Point = collections.namedtuple("Point", "a b")
START = datetime.datetime(2026, 1, 1)
HOUR = datetime.timedelta(hours=1)


@dataclasses.dataclass
class Answer:
    total: float
    unit: str


def library(name):
    return importlib.import_module(name)


@functools.cache
def made_by(name):
    if name == "attrs":
        return library(name).make_class("Made", ["total"])
    return library(name).create_model("Made", total=(float, ...))


def estimator(x):
    model = library("sklearn.linear_model").LinearRegression()
    model.coef_, model.intercept_ = np.array([x, 0.0]), 0.5
    return em.fitted(model)


def pandas(name, *args, **kwargs):
    return getattr(library("pandas"), name)(*args, **kwargs)


def polars(x):
    return library("polars").DataFrame({"k": ["a", "b"], "v": [x, 0.0]})


# From a number to an output that holds it.
KINDS = {
    "Decimal": lambda x: decimal.Decimal(repr(round(x, 3))),
    "Fraction": lambda x: fractions.Fraction(x),
    "date": lambda x: START.date() + datetime.timedelta(days=round(5 * x)),
    "datetime": lambda x: START + HOUR * x,
    "datetime with zone": lambda x: (START + HOUR * x).replace(tzinfo=datetime.UTC),
    "timedelta": lambda x: HOUR * x,
    "time": lambda x: (START + HOUR * (12 + x)).time(),
    "complex": lambda x: complex(x, 0),
    "int keys": lambda x: {1: x, 2: 0.5},
    "other keys": lambda x: {None: x, ("a", 1): 2, float("nan"): 3},
    "namedtuple": lambda x: Point(x, "z"),
    "dataclass": lambda x: Answer(x, "z"),
    "attrs": lambda x: made_by("attrs")(total=x),
    "pydantic": lambda x: made_by("pydantic")(total=x),
    "zip": lambda x: zip([x], ["a"], strict=True),
    "generator": lambda x: (each for each in (x, 1.0)),
    "map": lambda x: map(float, [x]),
    "dict values": lambda x: {"a": x}.values(),
    "deque": lambda x: collections.deque([x]),
    "range": lambda x: range(round(20 * x), 100),
    "bytes": lambda x: bytes([round(5 * x) % 256]),
    "bytearray": lambda x: bytearray([round(5 * x) % 256]),
    "path": lambda x: pathlib.Path("out") / str(round(5 * x)),
    "enum": lambda x: Colour.RED if x > 0.5 else Colour.BLUE,
    "frozenset": lambda x: frozenset(["a"] if x > 0.5 else ["b"]),
    "sparse": lambda x: library("scipy.sparse").csr_matrix([[x, 0.0], [0.0, 1.0]]),
    "large sparse": lambda x: library("scipy.sparse").coo_array(([x], ([7], [9])), shape=(1000, 1000)),
    "estimator": estimator,
    "pandas frame": lambda x: pandas("DataFrame", {"k": ["a", "b"], "v": [x, 0.0]}),
    "pandas frame by label": lambda x: pandas("DataFrame", {1: [x, 0.0]}, index=["a", "b"]),
    "pandas series": lambda x: pandas("Series", [x, 0.0], index=["a", "b"]),
    "pandas timestamp": lambda x: pandas("Timestamp", "2026-01-01") + pandas("Timedelta", hours=x),
    "pandas timestamp with zone": lambda x: pandas("Timestamp", START + HOUR * x, tz="Europe/Vienna"),
    "pandas timedelta": lambda x: pandas("Timedelta", hours=x),
    "pandas NA": lambda x: library("pandas").NA if x > 0.5 else 1.0,
    "pandas NaT": lambda x: library("pandas").NaT if x > 0.5 else None,
    "pandas nullable": lambda x: pandas("Series", [None if x > 0.5 else 1, 2], dtype="Int64"),
    "polars frame": polars,
    "polars lazy frame": lambda x: polars(x).lazy(),
    "polars series": lambda x: polars(x)["v"],
    "arrow table": lambda x: library("pyarrow").table({"v": [x, None]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_leak_is_found_and_a_correct_mechanism_is_not_accused(kind):
    try:
        KINDS[kind](0.5)
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed")

    def leaks(x, rng):
        return KINDS[kind](x + rng.laplace(scale=0.15))

    def keeps(x, rng):
        return KINDS[kind](float(rng.laplace(scale=0.15)))

    confidence = 1 - 1e-9
    found = em.audit(
        leaks, em.Pair(0.0, 1.0), em.PureDP(1.0), samples=300, seed=1, confidence=confidence
    )
    assert found.is_refuted, found.lower_bound
    # Not the whole result: its p-value takes a second.
    replayed = Finding.from_dict(json.loads(json.dumps(found.findings[0].to_dict()))).witness.event
    some = [leaks(1.0, np.random.default_rng(seed)) for seed in range(5)]
    again = [leaks(1.0, np.random.default_rng(seed)) for seed in range(5)]
    assert (replayed.contains(some) == found.witness.event.contains(again)).all()
    kept = em.audit(
        keeps, em.Pair(0.0, 1.0), em.PureDP(1.0), samples=300, seed=1, confidence=confidence
    )
    assert kept.verdict is em.Verdict.NOT_REFUTED


def test_the_frame_of_opendp_is_collected_once():
    library("polars")

    class OnceFrame:  # as the one of OpenDP, which gives its answer only once
        collected = False

        def __init__(self, total: Any) -> None:
            self.total = total

        def collect(self):
            assert not self.collected
            self.collected = True
            return polars(self.total)

    OnceFrame.__module__ = "opendp.extras.polars"
    (block,) = read_outputs([OnceFrame(1.5), OnceFrame(2.5)])
    assert block.shape == "DataFrame({k: list(2 × str), v: list(2 × float)})"


def test_an_endless_generator_is_refused():
    def endless(x):
        while True:
            yield x

    with pytest.raises(em.MechanismError, match="more than the 10000 allowed"):
        em.audit(endless, em.Pair(0, 1), em.PureDP(1.0), samples=100, seed=0)


def test_a_generator_that_fails_is_an_error_of_the_mechanism():
    def failing(x):
        yield 1 / x

    with pytest.raises(em.MechanismError, match="generator that raised ZeroDivisionError"):
        em.audit(failing, em.Pair(0, 1), em.PureDP(1.0), samples=100, seed=0)


def test_an_estimator_that_has_learned_nothing_is_refused():
    class Model:
        pass

    with pytest.raises(em.MechanismError, match="has learned nothing"):
        em.fitted(Model())
