"""Estimates against the literal algorithms, on draws of a known mechanism and on made-up outputs."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.published.ldp.formulas import CellCounts, Cells, divergence
from epsilometer.methods.published.ldp.midpoints import greatest_divergence, middle_points
from epsilometer.outputs import read_outputs

ENTRY = em.zoo.truncated_laplace(0.8)
GIVEN = {"domain": (0.0, 1.0), "lipschitz": 0.5, "precision": 0.5, "confidence": 0.9, "seed": 0}


def literal_estimate(left, right, low, high, m, order=None):
    """Lines 8 to 15 of Algorithm 1, and the Rényi value."""
    z = [low + j * (high - low) / m for j in range(m + 1)]
    n = len(left)
    first, second = [], []
    for j in range(m):
        first.append(sum(1 for s in left if z[j] <= s < z[j + 1]))
        second.append(sum(1 for s in right if z[j] <= s < z[j + 1]))
        if first[j] == 0 or second[j] == 0:
            return None
    if order is None:
        return max(math.log(a / b) for a, b in zip(first, second, strict=True))
    return math.log(sum((a / b) ** order * b / n for a, b in zip(first, second, strict=True))) / (
        order - 1
    )


@pytest.mark.parametrize("m", [1, 3, 17])
@pytest.mark.parametrize("order", [None, 1.5, 2.0, 7.0])
@pytest.mark.paper("B5", "equal")
@pytest.mark.paper("B15", "equal")
def test_estimates_are_those_of_the_literal_algorithm(m, order, rng):
    left, right = 2.0 + 3.0 * rng.beta(1.0, 1.3, 3000), 2.0 + 3.0 * rng.random(3000)
    cells = Cells((2.0, 5.0), m)
    counts = [cells.count(read_outputs(side)) for side in (left, right)]
    assert divergence(*counts, order) == pytest.approx(
        literal_estimate(left, right, 2.0, 5.0, m, order), abs=1e-12
    )


def test_a_published_function_gives_the_literal_estimate():
    result = em.ldp.estimate(ENTRY, precision=1.0, n=5000, seed=3)
    seen = []
    recorder = em.from_batch(
        lambda x, n, rng: seen.append((x, ENTRY.mechanism.function(x, n, rng))) or seen[-1][1]
    )
    again = em.ldp.estimate(
        recorder,
        ENTRY.worst_pair,
        domain=ENTRY.domain,
        lipschitz=ENTRY.lipschitz,
        precision=1.0,
        n=5000,
        seed=3,
    )
    assert again == result
    sides = [
        np.concatenate([values for x, values in seen if x == own])
        for own in (ENTRY.worst_pair.left, ENTRY.worst_pair.right)
    ]
    assert result.estimate == pytest.approx(
        literal_estimate(*sides, 0.0, 1.0, result.cells), abs=1e-12
    )


def test_a_result_says_what_it_is():
    result = em.ldp.estimate(ENTRY, precision=2.0, confidence=0.8, seed=1)
    assert (
        result.samples
        == result.planned_samples
        == em.ldp.plan(mechanism=ENTRY, precision=2.0, confidence=0.8).samples
    )
    assert result.guarantee == f"conditional: {result.assumption}"
    assert result.interval == (max(0.0, result.estimate - 2.0), result.estimate + 2.0)
    assert (result.order, result.midpoints, result.confidence) == (None, None, 0.8)
    practical = em.ldp.estimate(ENTRY, precision=2.0, confidence=0.8, n=result.samples - 1, seed=1)
    assert practical.guarantee == "none: practical n"
    assert em.ldp.estimate(ENTRY, precision=2.0, confidence=0.8, n=result.samples, seed=1) == result
    published = em.ldp.estimate(ENTRY, precision=2.0, confidence=0.8, as_published=True, seed=1)
    assert published.samples < result.samples
    assert "as published" in published.guarantee


def test_the_same_on_two_workers():
    one, two = (
        em.ldp.estimate(ENTRY, precision=0.5, n=200_000, seed=4, jobs=jobs) for jobs in (1, 2)
    )
    assert one == two


@pytest.mark.paper("B1", "equal")
def test_directions_are_left_from_right():
    """A wedge 2(1 − z) against the uniform law: (3) one way is ln of its largest cell, 2m − 1 to m, the other
    way of its smallest, 1 to m."""
    wedge = em.from_batch(lambda x, n, rng: rng.beta(1.0, 2.0, n) if x else rng.random(n))
    given = GIVEN | {"lipschitz": 1.99, "precision": 500.0}
    forth, back = (em.ldp.estimate(wedge, pair, **given, n=100_000) for pair in ((1, 0), (0, 1)))
    m = forth.cells
    assert 2 < m <= 12
    # Five standard errors of the log of a cell's count, or of both.
    assert forth.estimate == pytest.approx(math.log((2 * m - 1) / m), abs=5 * math.sqrt(m / 1e5))
    assert back.estimate == pytest.approx(math.log(m), abs=5 * m / math.sqrt(1e5))
    assert forth.pair == em.Pair(1, 0)
    assert back.pair == em.Pair(0, 1)


def test_outputs_outside_are_counted():
    mechanism = em.from_batch(lambda x, n, rng: np.where(np.arange(n) < x, 1.5, rng.random(n)))
    with pytest.raises(
        em.InputError, match=r"12 of 128 outputs are not numbers of domain=\(0, 1\)"
    ):
        em.ldp.estimate(mechanism, (5, 7), **GIVEN, n=64)


@pytest.mark.parametrize("strange", [math.nan, math.inf, "a word", None, (0.5, 0.5)])
def test_what_is_no_number_is_outside(strange):
    mechanism = em.from_callable(
        lambda x, rng: strange if x and rng.random() < 2 else float(rng.random())
    )
    with pytest.raises(em.InputError, match="300 of 600 outputs"):
        em.ldp.estimate(mechanism, (0, 1), **GIVEN, n=300)


def test_both_ends_belong_to_the_domain():
    counts = Cells((0.0, 1.0), 4).count(read_outputs(np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.0])))
    assert counts.counts.tolist() == [1, 1, 1, 3]
    assert counts.outside == 0


@pytest.mark.paper("B5", "equal")
def test_an_empty_cell_is_reported_with_the_remedy():
    mechanism = em.from_batch(lambda x, n, rng: rng.random(n) * (0.5 + 0.5 * x))
    with pytest.raises(
        em.InputError, match=r"cells are empty .*more samples \(n=\), or wider cells"
    ):
        em.ldp.estimate(mechanism, (0, 1), **GIVEN, n=2000)


def test_too_many_draws_are_refused_before_anything_is_drawn():
    def never(x, n, rng):
        raise AssertionError("drawn")

    with pytest.raises(em.InputError, match=r"takes [\d,]+ draws .*most_draws=1,000,000;"):
        em.ldp.estimate(
            em.from_batch(never), (0, 1), **(GIVEN | {"precision": 0.01}), most_draws=1e6
        )


@pytest.mark.parametrize("name", ["domain", "lipschitz"])
def test_an_assumption_must_be_stated(name):
    given = {key: value for key, value in GIVEN.items() if key != name}
    with pytest.raises(em.InputError, match=f"{name}= is needed"):
        em.ldp.estimate(em.zoo.laplace(), **given)


@pytest.mark.parametrize("n", [0, -5, 1.5, True, "many"])
def test_a_senseless_n(n):
    with pytest.raises(em.InputError, match="n="):
        em.ldp.estimate(ENTRY, precision=0.5, n=n)


# --- all pairs of an interval ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [None, 2.0, 30.0])
def test_the_greatest_of_all_ordered_pairs(order, rng):
    counts = [CellCounts(rng.integers(1, 2000, 9), 0) for _ in range(7)]
    pairs = [(i, j) for i in range(7) for j in range(7) if i != j]
    naive = max((divergence(counts[i], counts[j], order), i, j) for i, j in pairs)
    value, left, right = greatest_divergence(counts, order)
    assert value == pytest.approx(naive[0], abs=1e-12)
    assert (left, right) == naive[1:]


def test_overall_draws_each_midpoint_once():
    drawn = []

    def draws(x, n, rng):
        drawn.append((x, n))
        return ENTRY.mechanism.function(x, n, rng)

    known = {
        name: getattr(ENTRY, name)
        for name in ("domain", "lipschitz", "input_domain", "input_lipschitz")
    }
    result = em.ldp.overall(
        em.from_batch(draws), **known, precision=1.0, n=3000, midpoints=6, seed=0
    )
    assert drawn == [(x, 3000) for x in middle_points((0.0, 1.0), 6)]
    assert middle_points((0.0, 1.0), 6) == pytest.approx(
        [1 / 12, 3 / 12, 5 / 12, 7 / 12, 9 / 12, 11 / 12]
    )
    assert result.midpoints == 6
    assert result.guarantee == "none: practical n and k"
    assert result == em.ldp.overall(ENTRY, precision=1.0, n=3000, midpoints=6, seed=0)


def test_overall_at_the_planned_numbers():
    entry = em.zoo.truncated_laplace(0.3)
    result = em.ldp.overall(entry, precision=1.0, confidence=0.9, seed=2)
    assert result.guarantee.startswith("conditional: ")
    assert "in the input" in result.guarantee
    assert result.interval[0] <= entry.truth() <= result.interval[1]
    assert result.pair.left != result.pair.right


def test_overall_needs_its_own_assumption():
    with pytest.raises(em.InputError, match="input_domain= is needed"):
        em.ldp.overall(em.zoo.laplace(), **GIVEN)
    with pytest.raises(em.InputError, match="midpoints=1"):
        em.ldp.overall(ENTRY, precision=0.5, midpoints=1)


# --- the hint -------------------------------------------------------------------------------------------------------


def test_a_hint_is_near_and_labelled():
    entry = em.zoo.truncated_gaussian(1.0)
    hint = em.ldp.lipschitz_hint(
        entry, [0.0, 0.25, 0.5, 0.75, 1.0], domain=(0.0, 1.0), n=200_000, seed=0
    )
    assert "hint" in hint.note
    assert 0.7 * entry.lipschitz < hint.lipschitz < 1.3 * entry.lipschitz
    assert 0.3 * entry.input_lipschitz < hint.input_lipschitz < 1.3 * entry.input_lipschitz
    assert hint.noise < 0.3
    words = em.ldp.lipschitz_hint(
        lambda x, rng: float(rng.random()), ["a"], domain=(0, 1), n=500, seed=0
    )
    assert words.input_lipschitz is None
    with pytest.raises(em.InputError, match="at least one input"):
        em.ldp.lipschitz_hint(entry, [], domain=(0.0, 1.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": None}, "n=None"),
        ({"n": 3}, "n=3"),
        ({"n": 1e3}, "n=1000.0"),
        ({"inputs": 0.5}, r"inputs=0\.5 must be a list"),
        ({"inputs": None}, "inputs=None must be a list"),
    ],
)
def test_a_hint_from_nonsense_is_refused(given, message):
    settings = {"inputs": [0.0], "n": 100, **given}
    with pytest.raises(em.InputError, match=message):
        em.ldp.lipschitz_hint(ENTRY, domain=(0.0, 1.0), **settings)
