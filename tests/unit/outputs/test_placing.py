"""Places among edges against NumPy's search, which is slow and certainly right."""

import numpy as np
import pytest

from epsilometer.outputs.placing import places

LARGEST = np.finfo(np.float64).max
TINY = 5e-324


def around(edges):
    """The edges, the floats beside them, and what lies between and beyond."""
    finite = edges[np.isfinite(edges)]
    with np.errstate(over="ignore"):
        beside = [np.nextafter(finite, -np.inf), finite, np.nextafter(finite, np.inf)]
    between = [0.5 * finite[:-1] + 0.5 * finite[1:]] if len(finite) else []
    return np.concatenate(
        [*beside, *between, [-np.inf, np.inf, 0.0, -0.0, -LARGEST, LARGEST, TINY, -TINY]]
    )


def quantiles(k, seed=0):
    return np.unique(
        np.quantile(np.random.default_rng(seed).laplace(size=4000), np.linspace(0, 1, k + 2)[1:-1])
    )


ATOMS = np.arange(-20.0, 21.0)
EDGES = {
    "none": np.empty(0),
    "one": np.array([0.3]),
    "eight": quantiles(8),
    "nine": quantiles(9),
    "many": quantiles(500),
    "single values": np.unique(np.concatenate([ATOMS, np.nextafter(ATOMS, np.inf)])),
    "single values and bins": np.unique(
        np.concatenate([ATOMS, np.nextafter(ATOMS, np.inf), quantiles(100)])
    ),
    "infinities": np.concatenate([[-np.inf, -LARGEST], quantiles(20), [LARGEST, np.inf]]),
    "infinities and bins": np.concatenate([[-np.inf], quantiles(20), [np.inf]]),
    "heavy tails": np.unique(np.tan(np.linspace(-1.5707, 1.5707, 300))),
    "far away": 1e15 + np.arange(40.0),
    "tiny": TINY * np.arange(-12.0, 13.0),
    "the whole range": np.linspace(-0.9, 0.9, 30) * LARGEST,
    "crowded in one place": np.sort(np.concatenate([1.0 + 1e-12 * np.arange(40.0), [-5e3, 5e3]])),
}


@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES.keys())
def test_the_same_as_searching(edges):
    values = around(edges)
    spread = np.random.default_rng(1).normal(scale=3.0, size=20_000)
    for numbers in (
        values,
        np.concatenate([np.tile(values, 40), spread]),
    ):  # few are searched, many looked up
        found = places(edges, numbers)
        assert found.dtype == np.int64
        assert np.array_equal(found, np.searchsorted(edges, numbers, side="right"))


def test_nan_disturbs_nobody_else():
    edges = quantiles(50)
    numbers = np.random.default_rng(2).laplace(size=10_000)
    mixed = numbers.copy()
    mixed[::7] = np.nan
    found = places(edges, mixed)
    kept = ~np.isnan(mixed)
    assert np.array_equal(found[kept], np.searchsorted(edges, numbers[kept], side="right"))
