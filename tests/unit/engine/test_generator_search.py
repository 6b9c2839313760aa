"""Generators are found wherever a mechanism has them."""

import random
import sys
import textwrap
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from numpy.random import laplace

import epsilometer as em
from epsilometer.engine.generator_search import own_generator

RNG = np.random.default_rng(0)
MODULE = """
import numpy as np

rng = np.random.default_rng(0)

def noise():
    return rng.laplace()

def direct(x):
    return x + rng.laplace()

def by_another(x):
    return x + noise()

class Attribute:
    rng = np.random.default_rng(0)
    def __call__(self, x):
        return x + self.rng.laplace()

class ByAnother:
    def __call__(self, x):
        return x + noise()

def clean(x):
    return x + np.random.laplace()
"""


class Holder:
    def __init__(self, generator):
        self.inner = {"deep": [generator]}

    def answer(self, x):
        return x + self.inner["deep"][0].random()


def closing_over(held):
    return lambda x: held.answer(x)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x + RNG.laplace(), "Generator"),
        (partial(lambda rng_, x: x + rng_.laplace(), RNG), "Generator"),
        (Holder(RNG).answer, "Generator"),
        (closing_over(Holder(np.random.RandomState(1))), "RandomState"),
        (closing_over(Holder(random.Random(1))), "Random"),
        (partial(lambda bits, x: x, np.random.PCG64(1)), "PCG64"),
        (lambda x: x + laplace(), "RandomState"),  # noqa: NPY002  # a method of the global generator
    ],
    ids=["global", "partial", "bound", "deep", "python", "bits", "imported"],
)
def test_found(function, name):
    assert own_generator(em.from_callable(function)) == name


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_generators.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("own_generators")
    del sys.modules["own_generators"]


@pytest.mark.parametrize("name", ["direct", "by_another", "Attribute", "ByAnother"])
def test_found_in_a_module_that_every_worker_would_import_afresh(module, name):
    made = getattr(module, name)
    assert (
        own_generator(em.from_callable(made() if isinstance(made, type) else made)) == "Generator"
    )


def test_nothing_to_find(module):
    assert own_generator(em.from_callable(module.clean)) is None
    assert own_generator(em.from_callable(lambda x, rng: x + rng.laplace())) is None
    for entry in (em.zoo.laplace(), em.zoo.svt5(), em.zoo.randomized_response()):
        assert own_generator(entry.mechanism) is None


def test_what_cannot_be_packed_is_left_to_the_engine():
    import threading

    lock = threading.Lock()
    assert own_generator(em.from_callable(lambda x: lock)) is None
