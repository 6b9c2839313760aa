"""Leaks of known size in outputs like those that were seen."""

import math

import numpy as np
import pytest
from scipy.stats import laplace, norm

import epsilometer as em
from epsilometer.auditing.judge import subsample_for_rehearsal
from epsilometer.auditing.synthetic_leaks import (
    EventLeak,
    OutputPool,
    ShiftedNoiseLeak,
    _event_probabilities,
    _normal_shift,
    _true_value,
    looks_like_laplace,
)
from epsilometer.claims import ApproxDeltaDP
from epsilometer.outputs import Numbers, read_outputs

CLAIMS = [
    em.PureDP(1.3),
    em.ApproxDP(0.7, 1e-3),
    ApproxDeltaDP(0.5, 0.1),
    em.RenyiDP(2.0, 0.4),
    em.ZCDP(0.2),
    em.GaussianDP(1.1),
    em.TradeOffDP(lambda error: norm.cdf(norm.ppf(1.0 - error) - 1.0), 0.05),
]
notions = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)


def pool_of(left, right):
    return OutputPool(subsample_for_rehearsal(left, right))


def pool_of_same(values):
    """Both sides return the same."""
    return pool_of(read_outputs(values), read_outputs(values))


@notions
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_an_event_has_just_the_value_of_the_claim(claim, share):
    p, q = _event_probabilities(claim, share)
    assert (p + q) / 2 == pytest.approx(share)
    assert claim.least_value(p, q) == pytest.approx(claim.value, rel=1e-6)
    assert claim.least_value(q, p) <= claim.value


def test_randomized_response_is_planted_as_it_is():
    p, q = _event_probabilities(em.PureDP(1.0), 0.5)
    assert p == pytest.approx(math.e / (1.0 + math.e))
    assert q == pytest.approx(1.0 / (1.0 + math.e))


def test_a_value_that_no_share_reaches_is_not_planted():
    assert _event_probabilities(em.ApproxDP(1.0, 0.3), 0.1) is None
    assert EventLeak(np.arange(100) < 10).row_probabilities(em.ApproxDP(1.0, 0.3)) is None
    assert (
        ShiftedNoiseLeak(np.arange(100), np.arange(0), False).row_probabilities(
            em.TradeOffDP(lambda error: 0.0, 0.5)
        )
        is None
    )


@pytest.mark.parametrize(
    ("claim", "shift"),
    [
        (em.GaussianDP(1.1), 1.1),
        (em.RenyiDP(3.0, 1.5), 1.0),
        (em.ZCDP(0.5), 1.0),
        (em.TradeOffDP(lambda error: norm.cdf(norm.ppf(1.0 - error) - 1.0), 0.0), 0.0),
    ],
    ids=lambda value: getattr(value, "notion", ""),
)
def test_the_distance_of_normal_distributions(claim, shift):
    assert _normal_shift(claim) == pytest.approx(shift, abs=1e-3)


def test_the_distance_of_normal_distributions_with_a_delta():
    shift = _normal_shift(em.ApproxDP(1.0, 1e-3))
    delta = norm.cdf(shift / 2 - 1 / shift) - math.e * norm.cdf(-shift / 2 - 1 / shift)
    assert delta == pytest.approx(1e-3, rel=0.01)


def test_noise_has_the_value_of_the_claim():
    leak = ShiftedNoiseLeak(np.arange(1000), np.arange(1000, 1500), False)
    left, right = leak.row_probabilities(em.PureDP(1.5))
    assert [side[1000:].sum() for side in (left, right)] == pytest.approx([1 / 3, 1 / 3])
    assert [side.sum() for side in (left, right)] == pytest.approx([1.0, 1.0])
    # Beyond both inputs the ratio is e^ε everywhere; the pooled ranks stay even.
    assert np.log(left[:100] / right[:100]) == pytest.approx(1.5, abs=1e-4)
    assert np.log(right[900:1000] / left[900:1000]) == pytest.approx(1.5, abs=1e-4)
    assert left + right == pytest.approx(2 / 1500)


@pytest.mark.parametrize("is_laplace", [False, True])
@pytest.mark.parametrize(
    "claim",
    [claim for claim in CLAIMS[1:-1] if claim.notion != "zcdp"],
    ids=lambda claim: claim.notion,
)
def test_ranks_of_noise_have_the_value_of_the_claim(claim, is_laplace):
    """The best events hold the lowest ranks; for divergences, all ranks count."""
    leak = ShiftedNoiseLeak(np.arange(20_000), np.arange(0), is_laplace)
    probabilities = leak.row_probabilities(claim)
    assert _true_value(claim, probabilities) == pytest.approx(claim.value, rel=0.03)


@pytest.mark.parametrize("n", [300, 4000])
def test_noise_is_told_from_its_numbers(n):
    levels = (np.arange(n) + 0.5) / n
    assert looks_like_laplace([laplace.ppf(levels), 7.0 + 3.0 * laplace.ppf(levels)])
    assert not looks_like_laplace([norm.ppf(levels), 7.0 + norm.ppf(levels)])
    assert not looks_like_laplace([levels, np.full(n, np.nan)])


def test_a_number_leaks_in_outputs_of_every_shape():
    """What is wrong with the noise of a total is so whether or not there is a further key."""
    values = [{"total": 0.1 * k, "vip": 1} if k % 3 else {"total": 0.1 * k} for k in range(60)]
    shape, number = pool_of_same(values).synthetic_leaks()
    assert isinstance(shape, EventLeak)
    assert (len(number.order), len(number.others)) == (120, 0)
    # The key whose value is always the same tells no more than that it is there.
    other_key = [{"sum": 0.1 * k} if k % 3 else {"total": 0.1 * k} for k in range(60)]
    _, number = pool_of_same(other_key).synthetic_leaks()
    assert (len(number.order), len(number.others)) == (80, 40)


@pytest.mark.parametrize("claim", CLAIMS[:-1], ids=lambda claim: claim.notion)
def test_tempered_categories_have_just_the_value_of_the_claim(claim):
    """For every notion, and other probabilities than were observed."""
    left = list("a" * 400 + "b" * 350 + "c" * 250)
    right = list("a" * 330 + "b" * 330 + "c" * 340)
    (leak,) = pool_of(read_outputs(left), read_outputs(right)).tempered_leaks()
    probabilities = leak.row_probabilities(claim.with_value(0.3 * claim.value))
    shares = [np.bincount(leak.categories, side, minlength=3) for side in probabilities]
    assert _true_value(claim, np.array(shares)) == pytest.approx(0.3 * claim.value, rel=1e-6)


def test_rows_are_drawn_with_their_probabilities(rng):
    pool = pool_of_same(["a"] * 3)
    rows = pool.drawn_rows(np.array([0.0, 0.5, 0.0, 0.125, 0.0, 0.375]), 100_000, rng)
    counts = np.bincount(rows, minlength=6)
    assert counts[[0, 2, 4]].tolist() == [0, 0, 0]
    assert counts[[1, 3, 5]] / 100_000 == pytest.approx([0.5, 0.125, 0.375], abs=0.01)


def test_a_randomized_response_is_tempered_into_another():
    seen = [list("a" * 500 + "b" * 250 + "c" * 250), list("b" * 500 + "a" * 250 + "c" * 250)]
    (leak,) = pool_of(*map(read_outputs, seen)).tempered_leaks()
    p, q = leak._tempered(2.0)
    assert math.log(p[0] / q[0]) == pytest.approx(
        2 * math.log(leak.probabilities[0, 0] / leak.probabilities[1, 0])
    )
    assert (
        1.9 * math.log(2) < math.log(p[0] / q[0]) < 2 * math.log(2)
    )  # the sides were drawn together a little
    assert leak.row_probabilities(em.PureDP(10.0)) is None


@pytest.mark.parametrize(
    "values", [["yes", "no"], [0.1 * k for k in range(50)], [("a", "b"), ("b", "c"), ("c", "c")]]
)
def test_what_is_not_one_of_several_categories_is_not_tempered(values):
    assert pool_of_same(values).tempered_leaks() == []


def test_single_numbers_move_and_all_others_stay(rng):
    floats = np.concatenate(
        [[np.nan, np.inf, -np.inf], np.full(20, 0.25), np.linspace(1.0, 2.0, 77)]
    )
    values = [(float(x), int(1000 * i), i % 2 == 0, "ab"[i % 2]) for i, x in enumerate(floats)]
    pool = OutputPool(read_outputs(values))
    drawn = pool.output_sampler()(np.repeat(np.arange(100), 50), rng)
    number, whole, flag, name = drawn.blocks[0].columns
    assert len(drawn) == 5000
    assert np.isnan(number.values[:50]).all()
    assert (number.values[50:150] == np.repeat([np.inf, -np.inf], 50)).all()
    assert (number.values[150:1150] == 0.25).all()
    moved = number.values[1150:]
    assert len(np.unique(moved)) > 0.95 * len(moved)
    assert (
        np.abs(moved - np.repeat(floats[23:], 50)).max() <= 0.5 / 76 + 0.4
    )  # the lowest has 0.25 as its neighbour
    assert moved.min() > 0.25
    assert moved.max() <= 2.0
    assert whole.values.dtype == np.int64
    assert len(np.unique(whole.values)) > 4000
    kept = pool.outputs.take(np.repeat(np.arange(100), 50)).blocks[0].columns
    assert np.array_equal(flag.values, kept[2].values)
    assert np.array_equal(name.codes, kept[3].codes)


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ([0.1 * k for k in range(50)], [ShiftedNoiseLeak]),
        (list(range(50)), [ShiftedNoiseLeak]),
        ([k % 3 for k in range(60)], [EventLeak]),
        (["yes", "no"] * 30, [EventLeak]),
        ([("ab"[k % 2], 0.1 * k) for k in range(60)], [EventLeak, ShiftedNoiseLeak]),
        ([[0.1 * k, 0.2 * k, 1.0] for k in range(60)], [ShiftedNoiseLeak]),
        ([None if k % 3 else "a" for k in range(60)], [EventLeak]),
        ([None if k % 10 == 0 else 0.1 * k for k in range(60)], [EventLeak, ShiftedNoiseLeak]),
        (["always"] * 30, []),
        (
            [("ab"[k == 5], 0.1 * k) for k in range(200)],
            [ShiftedNoiseLeak],
        ),  # a name that next to nobody has is left out
    ],
)
def test_what_is_planted_goes_by_the_outputs(values, kinds):
    assert [type(leak) for leak in pool_of_same(values).synthetic_leaks()] == kinds


def test_a_name_of_middling_frequency():
    leaks = pool_of_same(["a"] * 40 + ["b"] * 35 + ["c"] * 25).synthetic_leaks()
    assert leaks[0].frequency == pytest.approx(0.35)


def test_few_rows_are_kept():
    wide = pool_of(read_outputs(np.zeros((9000, 200))), read_outputs(np.ones((9000, 200))))
    assert 64 <= len(wide.outputs) <= 400
    single = pool_of(read_outputs(np.arange(9000.0)), read_outputs(np.arange(50.0)))
    assert len(single.outputs) == 100
    assert isinstance(single.outputs.blocks[0].columns[0], Numbers)
    assert single.outputs.blocks[0].columns[0].values.base is None
