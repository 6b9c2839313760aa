"""Used rows are found again in any order; independent draws are never taken for them."""

import math
from itertools import combinations

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.outputs import read_outputs
from epsilometer.storage.row_samples import (
    RowSample,
    RowSampler,
    _Followed,
    _log2_chance,
    holds_again,
)


def samples_of(values):
    sampler = RowSampler()
    sampler.add(read_outputs(values))
    return sampler.samples()


def finds(used, values, skipped=()):
    return holds_again([read_outputs(values)], skipped, samples_of(used))


DISTRIBUTIONS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "far from 0": lambda rng, n: 1e12 + rng.normal(size=n),
    "two decimals": lambda rng, n: rng.normal(size=n).round(2),
    "coin": lambda rng, n: rng.integers(0, 2, n),
    "long tail": lambda rng, n: rng.zipf(1.3, n),
    "half zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
    "texts": lambda rng, n: np.char.mod("word %d", rng.integers(0, 5000, n)),
    "vectors": lambda rng, n: rng.normal(size=(n, 3)),
    "bits": lambda rng, n: rng.integers(0, 2, (n, 24)),
    "a set of 10 000": lambda rng, n: rng.integers(0, 10_000, n),
}
# Draws of these have hardly any values that occur once or twice.
ALIKE = ("coin", "two decimals")


@pytest.mark.parametrize("sizes", [(60, 60), (1000, 300), (3000, 20_000)])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_independent_draws_are_not_taken_for_used_ones(name, sizes, rng):
    used, others = (DISTRIBUTIONS[name](rng, n) for n in sizes)
    assert not finds(used, others)


@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name not in ALIKE])
def test_used_draws_are_found_in_any_order(name, rng):
    used = DISTRIBUTIONS[name](rng, 400)
    assert finds(used, used[rng.permutation(400)])
    assert not finds(used, used, skipped=[(0, 400)])


def test_rounded_values_and_moved_columns(rng):
    numbers = rng.normal(size=400)
    assert finds(numbers, numbers.astype(np.float32))
    assert finds(numbers, [float(f"{value:.6f}") for value in numbers])
    vectors = rng.normal(size=(400, 3))
    assert finds(vectors, vectors[:, [2, 0, 1]])


def with_fewer_digits(values, store):
    return values.astype(store) if store is np.float16 else values.round(store)


STORES = (2, 3, 4, 5, np.float16)


@pytest.mark.parametrize("store", STORES, ids=str)
@pytest.mark.parametrize("n_used", [100, 1000])
@pytest.mark.parametrize("width", [1, 3])
def test_values_that_were_stored_with_fewer_digits(width, n_used, store, rng):
    """Exports to text, to database columns of fixed decimals and to half precision."""
    used = rng.normal(size=(n_used, width))
    if (width, n_used, store) != (1, 1000, 2):  # which nearly all have the same few values
        assert finds(used, with_fewer_digits(used, store))
        assert finds(used, with_fewer_digits(used, store)[rng.permutation(n_used)])
    others = rng.normal(size=(n_used, width))
    assert not finds(used, with_fewer_digits(others, store))
    assert not finds(with_fewer_digits(used, store), with_fewer_digits(others, store))


def test_some_of_the_used_rows_among_others(rng):
    used = rng.normal(size=1000)
    assert finds(used, used[::2])
    mixed = np.concatenate([rng.normal(size=5000), used])
    assert finds(used, mixed[rng.permutation(6000)])


@pytest.mark.parametrize(("n_used", "n_file", "n_values"), [(4, 4, 2), (5, 3, 2), (3, 6, 3)])
def test_the_chance_by_enumeration(n_used, n_file, n_values):
    """Values that occur twice, laid on all places: how often are all of them shared?"""
    places = range(n_used + n_file)
    shared = total = 0

    def lay(left, n_left, is_shared):
        nonlocal shared, total
        if n_left == 0:
            total += 1
            shared += is_shared
            return
        for first, second in combinations(left, 2):
            rest = [place for place in left if place not in (first, second)]
            lay(rest, n_left - 1, is_shared and first < n_used <= second)

    lay(list(places), n_values, True)
    once = tuple(range(n_values))
    sample = RowSample(n_used, bits=0, limit=n_values, once=once, twice=())
    counted = _Followed(np.array(once, dtype=np.uint64), np.ones(n_values, dtype=np.int64))
    assert math.isclose(2.0 ** _log2_chance(sample, counted, n_file), shared / total)


def test_values_that_are_not_shared_weaken_the_evidence():
    shared = RowSample(100, bits=0, limit=99, once=tuple(range(50)), twice=())
    counted = _Followed(np.arange(50, dtype=np.uint64), np.ones(50, dtype=np.int64))
    chance = _log2_chance(shared, counted, 100)
    with_own = RowSample(100, bits=0, limit=99, once=tuple(range(50)), twice=(60, 61))
    assert chance < _log2_chance(with_own, counted, 100)
    repeats = _Followed(np.arange(52, dtype=np.uint64), np.append(np.ones(50, dtype=int), [2, 2]))
    assert chance < _log2_chance(shared, repeats, 100)


def test_in_pieces_and_as_plain_data(rng):
    values = rng.normal(size=5000).round(3)
    pieces = RowSampler()
    for some in np.split(values, [1, 7, 3000]):
        pieces.add(read_outputs(some))
    samples = pieces.samples()
    assert len(samples) > 1
    assert samples == samples_of(values)
    assert [RowSample.from_dict(sample.to_dict()) for sample in samples] == samples


@pytest.mark.parametrize(
    "change",
    [{"limit": "xyz"}, {"once": "abc"}, {"rows": "x"}, {"twice": 3}, {"bits": 5}],
)
def test_what_nobody_could_have_noted(change, rng):
    with pytest.raises(InputError, match="notes about its recorded draws cannot be read"):
        RowSample.from_dict({**samples_of(rng.normal(size=50))[0].to_dict(), **change})
