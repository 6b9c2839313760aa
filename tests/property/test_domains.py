"""Whatever a domain is made of, its points stand for neighbours that lie in it."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsilometer import domains
from epsilometer.testing.plugins import are_neighbours

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
WIDTHS = st.floats(1e-3, 1e6)
UNIT = st.floats(0.0, 1.0)


def point_of(data, neighbours):
    return data.draw(
        st.lists(UNIT, min_size=len(neighbours.coordinates), max_size=len(neighbours.coordinates))
    )


def check(data, domain, relation, low, high):
    neighbours = domain.neighbours(relation)
    pair = neighbours.pair(point_of(data, neighbours))
    assert pair.left != pair.right
    room = math.ulp(max(abs(low), abs(high)))  # adding a move rounds
    sensitivity = getattr(domain, "sensitivity", None)
    assert are_neighbours(pair, relation, None if sensitivity is None else sensitivity + 10 * room)
    for side in (pair.left, pair.right):
        assert np.all((np.asarray(side) >= low) & (np.asarray(side) <= high))


@given(st.data(), NUMBERS, WIDTHS, st.none() | WIDTHS)
def test_numbers(data, low, width, sensitivity):
    check(data, domains.Number(low, low + width, sensitivity), "replace", low, low + width)


@given(st.data(), st.integers(-1000, 1000), st.integers(1, 1000), st.none() | st.integers(1, 2000))
def test_whole_numbers(data, low, width, sensitivity):
    check(data, domains.Integer(low, low + width, sensitivity), "linf", low, low + width)


@given(st.data(), st.integers(1, 6), NUMBERS, WIDTHS, st.sampled_from(domains.Vector.relations))
def test_vectors(data, size, low, width, relation):
    check(data, domains.Vector(size, low, low + width), relation, low, low + width)


@given(
    st.data(),
    st.integers(1, 6),
    st.integers(-10, 10),
    st.integers(1, 30),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from(domains.Queries.relations),
)
def test_answers(data, count, low, width, sensitivity, whole, relation):
    domain = domains.Queries(count, low, low + width, sensitivity, whole=whole)
    check(data, domain, relation, low, low + width)
