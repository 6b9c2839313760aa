"""The file that a result names is the one of the user's function, however it is wrapped."""

import functools

import pytest

from epsilometer.identity import CodeIdentity
from epsilometer.mechanisms import as_mechanism


def count(rows):
    return len(rows)


def logged(function):
    @functools.wraps(function)
    def call(rows):
        return function(rows)

    return call


def scaled(factor, rows):
    return factor * len(rows)


WRAPPED = {
    "as it is": count,
    "cached": functools.cache(count),
    "decorated": logged(count),
    "partial": functools.partial(scaled, 2),
    "partial of a cached one": functools.partial(functools.cache(scaled), 2),
}


@pytest.mark.parametrize("way", WRAPPED)
def test_the_file_is_that_of_the_function(way):
    identity = CodeIdentity.of(as_mechanism(WRAPPED[way]))()
    assert identity["file"].endswith("test_identity.py")


class Everything:
    """Pretends to have any attribute."""

    def __getattr__(self, name):
        return self

    def __call__(self, rows):
        return len(rows)


def test_an_object_that_has_every_attribute_ends_the_search():
    assert CodeIdentity.of(Everything()).run_by == ""
