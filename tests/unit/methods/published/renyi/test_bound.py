"""The published bound: what it is made of, and what it refuses."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

import epsilometer as em
from epsilometer.errors import InputError

LEFT = np.repeat([0, 1, 2], [500, 300, 200])
RIGHT = np.repeat([0, 1, 2], [700, 800, 500])


@pytest.mark.paper("D7", "equal")
def test_the_bound_is_the_estimate_less_its_spread():
    bound = em.renyi.lower_bound(LEFT, RIGHT, 2.0, floor=0.05, confidence=0.9)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.35, 0.4, 0.25])
    assert bound.estimate == pytest.approx(em.renyi.floored_divergence(p, q, 2.0, 0.05), rel=1e-12)
    cost = ndtri(0.9) * math.sqrt(bound.variance / 1000)
    assert bound.lower_bound == pytest.approx(bound.estimate - cost, rel=1e-12)
    assert bound.guarantee == "asymptotic"
    assert bound.warnings == ()


def test_the_variance_is_that_of_resampled_draws(rng):
    """20 000 multinomial samples: the relative error of a variance is 1 %; six of them is once in 1e9."""
    n, p, q = 5000, np.array([0.5, 0.3, 0.2]), np.array([0.35, 0.4, 0.25])
    values = [
        em.renyi.floored_divergence(a / n, b / n, 3.0, 1e-3)
        for a, b in zip(rng.multinomial(n, p, 20_000), rng.multinomial(n, q, 20_000), strict=True)
    ]
    exact = [np.repeat(np.arange(3), np.round(law * n).astype(int)) for law in (p, q)]
    bound = em.renyi.lower_bound(*exact, 3.0, floor=1e-3)
    assert n * np.var(values) == pytest.approx(bound.variance, rel=0.08)


def test_several_orders_come_from_one_sample():
    several = em.renyi.lower_bounds(LEFT, RIGHT, (2.0, 5.0), 0.05)
    assert several == tuple(em.renyi.lower_bound(LEFT, RIGHT, order, 0.05) for order in (2.0, 5.0))


@pytest.mark.paper("D3", "equal")
@pytest.mark.parametrize(
    "smoothing",
    [
        {},
        {"kernel": "laplace", "bandwidth": 0.3},
        {"bandwidth": "nrd0", "undersmoothing": 1.3},
        {"kernel": "epanechnikov", "bandwidth": lambda draws: draws.std() * len(draws) ** -0.2},
    ],
)
def test_the_largest_of_bounds_takes_the_kernel_and_the_bandwidth(smoothing):
    """(8): max of N bounds, each with the caller's kernel, bandwidth and undersmoothing."""
    x = ndtri((np.arange(3000) + 0.5) / 3000)
    samples = [(x, x + 0.3), (x, x + 0.6), (x + 0.1, x)]
    best, bound = em.renyi.lower_bound_of_pairs(samples, 2.0, 0.01, confidence=0.9, **smoothing)
    each = [
        em.renyi.lower_bound(*pair, 2.0, 0.01, confidence=0.9 ** (1 / 3), **smoothing)
        for pair in samples
    ]
    assert best == 1
    assert bound == max(each, key=lambda found: found.lower_bound)
    if smoothing:
        assert bound != em.renyi.lower_bound_of_pairs(samples, 2.0, 0.01, confidence=0.9)[1]


def test_several_pairs_pay_for_their_number():
    samples = [(RIGHT, LEFT), (LEFT, RIGHT), (LEFT[::-1], LEFT)]
    best, bound = em.renyi.lower_bound_of_pairs(samples, 2.0, 0.05, confidence=0.9)
    assert bound == em.renyi.lower_bound(*samples[best], 2.0, 0.05, confidence=0.9 ** (1 / 3))
    assert (
        bound.lower_bound
        < em.renyi.lower_bound(*samples[best], 2.0, 0.05, confidence=0.9).lower_bound
    )
    with pytest.raises(InputError, match="empty"):
        em.renyi.lower_bound_of_pairs([], 2.0)


@pytest.mark.paper("D10", "corrected")
def test_the_floor_comes_from_the_sample_size():
    bound = em.renyi.lower_bound(LEFT, RIGHT, 2.0)
    assert bound.floor == pytest.approx(50 / 1000)
    assert bound.sharpness == pytest.approx(1000 / 50)
    assert bound.warnings == ()


def test_densities_have_a_floor_in_their_own_units():
    x = ndtri((np.arange(5000) + 0.5) / 5000)
    bounds = [em.renyi.lower_bound(unit * x, unit * (x + 1), 2.0) for unit in (1.0, 1000.0)]
    assert bounds[0].estimate == pytest.approx(bounds[1].estimate, rel=1e-6)
    assert bounds[0].floor == pytest.approx(1000 * bounds[1].floor, rel=1e-6)


def test_a_floor_that_too_few_draws_reach_is_told():
    (warning,) = em.renyi.lower_bound(LEFT, RIGHT, 2.0, floor=0.01).warnings
    assert "n·floor = 10" in warning
    assert em.renyi.lower_bound(np.tile(LEFT, 5), np.tile(RIGHT, 5), 2.0, floor=0.01).warnings == ()


@pytest.mark.parametrize("order", [1, 1.0, 0.3, 0, -1, math.inf, math.nan])
def test_orders_up_to_one_are_refused(order):
    with pytest.raises(InputError, match="order"):
        em.renyi.lower_bound(LEFT, RIGHT, order)


@pytest.mark.parametrize("floor", [0, 0.0, -1e-9, math.nan])
def test_floors_up_to_zero_are_refused(floor):
    with pytest.raises(InputError, match="floor"):
        em.renyi.lower_bound(LEFT, RIGHT, 2.0, floor=floor)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 2, "95", True])
def test_senseless_confidences_are_refused(confidence):
    with pytest.raises(InputError, match="confidence"):
        em.renyi.lower_bound(LEFT, RIGHT, 2.0, confidence=confidence)


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ([], RIGHT, "left_outputs has 0 outputs"),
        (LEFT, [], "right_outputs has 0 outputs"),
        ([1], [2], "left_outputs has 1 outputs"),
        ([0.5, math.nan], [0.1, 0.2], "NaN"),
        (3.0, [0.1, 0.2], "must be an array"),
        (np.zeros((4, 2)), np.zeros((4, 3)), "shape"),
        (np.arange(30.0).reshape(10, 3), np.arange(31.0, 61.0).reshape(10, 3), "at most 2"),
        (np.concatenate([np.zeros(50), np.linspace(1, 2, 30)]), np.linspace(0, 1, 19), "mixed"),
        (
            np.linspace(-2, 2, 4000).reshape(1000, 4).clip(-1, 1),
            np.linspace(-2, 2, 4000).reshape(1000, 4),
            "mixed",
        ),
        (np.array([1j, 2j]), np.array([1j, 2j]), "type"),
    ],
)
def test_samples_without_densities_are_refused(left, right, text):
    with pytest.raises(InputError, match=text):
        em.renyi.lower_bound(left, right, 2.0)


def test_samples_that_are_no_pairs_are_told():
    for samples in ([LEFT, RIGHT], [(LEFT, RIGHT, LEFT)]):
        with pytest.raises(InputError, match="list of pairs"):
            em.renyi.lower_bound_of_pairs(samples, 2.0)


@pytest.mark.parametrize("samples", [None, 5, np.zeros((2, 2, 50)), iter([])])
def test_what_is_no_list_of_samples_is_told(samples):
    with pytest.raises(em.InputError, match=r"samples=.* must be a list of pairs"):
        em.renyi.lower_bound_of_pairs(samples, 2.0)
