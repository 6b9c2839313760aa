"""Exact intervals: the envelope holds every Lipschitz density, and coverage is a finite sum where it can be."""

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multinomial

import epsilometer as em
from epsilometer.methods.published.ldp import intervals
from epsilometer.methods.published.ldp.formulas import (
    CellCounts,
    LipschitzDensities,
    divergence_of_gaps,
    log_gaps,
)
from epsilometer.methods.published.ldp.intervals import (
    DensityLimits,
    DomainPlaces,
    cell_limits,
    cells_for,
    exact_interval,
    mean_distance,
)

UNIT = (0.0, 1.0)


def lipschitz_density(rng, slope):
    """A random density on [0, 1] with slopes up to ±C, as its values at 401 places."""
    steps = slope * rng.choice([-1.0, -0.3, 0.0, 1.0], size=400) / 400
    values = np.concatenate([[0.0], np.cumsum(steps)])
    values += 1.0 - np.trapezoid(values, dx=1 / 400)
    return values if values.min() > 0.0 else None


@pytest.mark.parametrize("place", [-0.5, 0.2, 0.35, 0.5, 0.9])
def test_the_mean_distance_is_an_integral(place):
    expected = quad(lambda u: abs(place - u), 0.2, 0.5, points=[min(max(place, 0.2), 0.5)])[0] / 0.3
    assert mean_distance(np.array([place]), 0.2, 0.5)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("cells", [1, 2, 5, 16])
@pytest.mark.parametrize("slope", [0.5, 1.9, 8.0])
def test_an_envelope_holds_every_density_whose_cells_are_within_their_limits(cells, slope, rng):
    """With limits that are the probabilities themselves, nothing but the Lipschitz term is left."""
    found = 0
    while found < 10:
        values = lipschitz_density(rng, slope)
        if values is None:
            continue
        found += 1
        fine = np.interp(np.linspace(0, 1, 6401), np.linspace(0, 1, 401), values)
        masses = np.array(
            [np.trapezoid(part, dx=1 / 6400) for part in overlapping(fine, cells)], dtype=float
        )
        envelope = DomainPlaces(LipschitzDensities(UNIT, slope), cells).envelope(
            DensityLimits(masses, masses)
        )
        parts = np.minimum(
            (np.linspace(0, 1, 6401) * len(envelope.low)).astype(int), len(envelope.low) - 1
        )
        assert (envelope.low[parts] <= fine + 1e-6).all()
        assert (fine <= envelope.high[parts] + 1e-6).all()
        # … and it is not idle: nowhere wider than the whole domain allows.
        assert envelope.high.max() <= 1 + slope * (0.5 + 1 / cells / 32) + 1e-9


def overlapping(values, cells):
    """The values in each cell, both ends included (interpolated places, 6400 is no multiple of 5)."""
    grid = np.linspace(0, 1, 6401)
    for cell in range(cells):
        dense = np.linspace(cell / cells, (cell + 1) / cells, 6401)
        yield np.interp(dense, grid, values) / cells


@pytest.mark.parametrize("failure_probability", [0.05, 0.3])
def test_limits_of_all_cells_hold_together_by_enumeration(failure_probability):
    n = 12
    probabilities = np.array([0.5, 0.3, 0.2])
    wrong = 0.0
    for counts in product(range(n + 1), repeat=2):
        if sum(counts) > n:
            continue
        full = np.array([*counts, n - sum(counts)])
        limits = cell_limits(CellCounts(full, 0), failure_probability)
        if not ((limits.low <= probabilities) & (probabilities <= limits.high)).all():
            wrong += multinomial.pmf(full, n, probabilities)
    assert 0.0 < wrong <= failure_probability


@pytest.mark.parametrize("order", [None, 2.0, 5.0])
def test_the_interval_covers_by_enumeration(order):
    """Two wedges in two cells with 20 draws each: the probability of every pair of counts, added up."""
    slope, n, confidence = 1.2, 20, 0.8
    right_half = 0.5 + slope / 8
    truth = math.log((1 + slope / 2) / (1 - slope / 2))
    if order is not None:
        integral = quad(
            lambda z: (1 + slope * (z - 0.5)) ** order * (1 - slope * (z - 0.5)) ** (1 - order),
            0,
            1,
        )[0]
        truth = math.log(integral) / (order - 1)
    chances = np.array(
        [math.comb(n, k) * right_half**k * (1 - right_half) ** (n - k) for k in range(n + 1)]
    )
    missed, informative = 0.0, 0.0
    for up, down in product(range(n + 1), repeat=2):
        sides = [CellCounts(np.array([n - up, up]), 0), CellCounts(np.array([down, n - down]), 0)]
        ends = exact_interval(*sides, LipschitzDensities(UNIT, slope), confidence, order)
        assert 0.0 <= ends.low <= ends.high
        missed += chances[up] * chances[down] * (not ends.low <= truth <= ends.high)
        informative += chances[up] * chances[down] * (ends.low > 0.0)
    assert missed <= 1 - confidence
    assert informative > 0.1


@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
def test_the_gap_is_least_and_greatest_at_corners(order, rng):
    for _ in range(200):
        p_low, q_low = rng.random(2)
        p = DensityLimits(np.array([p_low]), np.array([p_low + rng.random()]))
        q = DensityLimits(np.array([q_low]), np.array([q_low + rng.random()]))
        grid_p, grid_q = np.meshgrid(
            np.linspace(p.low[0], p.high[0], 41), np.linspace(q.low[0], q.high[0], 41)
        )
        gaps = np.exp(log_gaps(grid_p, grid_q, order))
        assert np.exp(intervals._least_log_gaps(p, q, order)[0]) <= gaps.min() + 1e-12
        greatest = np.exp(intervals._greatest_log_gaps(p, q, order)[0])
        assert greatest == pytest.approx(gaps.max(), rel=1e-9)


def test_the_gap_sums_up_to_the_divergence(rng):
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    for order in (1.5, 3.0):
        divergence = divergence_of_gaps(log_gaps(p, q, order), order)
        expected = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
        assert divergence == pytest.approx(expected)


@pytest.mark.parametrize("excess", [2.0**-52, 1e-14, 1e-9, 1e-3, 1.0, 1e3, 1e4, 1e6, 1e15])
def test_the_divergence_of_gaps_keeps_its_digits_at_every_order(excess, rng):
    """Beside decimals of 60 digits: next to 1 nothing cancels, and large orders do not overflow."""
    order = 1.0 + excess
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    with localcontext() as context:
        context.prec = 60
        exact_p = [Decimal(number) for number in p.tolist()]
        exact_q = [Decimal(number) for number in q.tolist()]
        s = Decimal(order) - 1
        terms = zip(exact_p, exact_q, strict=True)
        gaps = [a * (s * (a / b).ln()).exp() - a - s * (a - b) for a, b in terms]
        expected = (1 + sum(gaps)).ln() / s
    divergence = divergence_of_gaps(log_gaps(p, q, order), order)
    assert divergence == pytest.approx(float(expected), rel=1e-9)


WEDGE = 0.5  # p(z) = 1/2 + z, beside the uniform density


@pytest.mark.parametrize("excess", [2.0**-52, 1e-15, 1e-14, 1e-10, 1.0, 1e3, 1e4, 1e6, 1e300])
def test_the_interval_holds_the_truth_at_every_order(excess):
    """Counts as they are expected. Rounding must neither raise the lower end nor lose the upper."""
    order = 1.0 + excess
    n, cells = 200_000, 20
    edges = np.linspace(0.0, 1.0, cells + 1)
    above = np.round(n * np.diff(WEDGE * edges + edges**2 / 2)).astype(int)
    below = np.full(cells, above.sum() // cells)
    sides = CellCounts(above, 0), CellCounts(below, 0)
    ends = exact_interval(*sides, LipschitzDensities(UNIT, 1.0), 0.95, order)
    # The divergence grows with its order, from Kullback and Leibler's to the largest log-ratio.
    least = quad(lambda z: (WEDGE + z) * math.log(WEDGE + z), 0, 1)[0]
    greatest = math.log(1.5)
    if excess <= 1e-10:
        assert ends.low <= least <= ends.high < 2 * least
        assert ends.low > least / 2
    else:
        assert least / 2 < ends.low <= greatest
        assert ends.high < 2 * greatest
    if excess >= 1e4:
        assert ends.low > 0.8 * greatest
        assert ends.high >= greatest
    assert not ends.is_contradicted


def test_more_draws_take_more_cells_and_a_steeper_density_too():
    flat, steep = LipschitzDensities(UNIT, 0.3), LipschitzDensities(UNIT, 1.8)
    by_draws = [cells_for(flat, n, 0.9) for n in (100, 10_000, 1_000_000)]
    assert by_draws == sorted(by_draws)
    assert by_draws[0] < by_draws[-1]
    assert cells_for(steep, 10_000, 0.9) > cells_for(flat, 10_000, 0.9)
    assert cells_for(LipschitzDensities(UNIT, 0.0), 10**6, 0.9) == 1
    # The unit of the outputs does not matter.
    assert cells_for(LipschitzDensities((0.0, 10.0), 0.018), 10_000, 0.9) == cells_for(
        steep, 10_000, 0.9
    )


@pytest.mark.parametrize("length", [1.0, 50.0])
@pytest.mark.parametrize("slope", [100.0, 1e4])
def test_where_no_upper_end_can_be_promised_the_lower_end_decides(slope, length):
    """So steep a density may fall to 0 between any two places, but counts of cells still differ."""
    steep = LipschitzDensities((0.0, length), slope / length**2)
    cells = cells_for(steep, 1000, 0.9)
    assert 8 <= cells <= 200
    assert cells <= cells_for(steep, 100_000, 0.9)


# --- as users call it ---------------------------------------------------------------------------------------


def test_an_estimate_with_an_exact_interval():
    entry = em.zoo.truncated_laplace(0.52)
    found = em.ldp.estimate(entry, n=1000, confidence=0.9, interval="exact", seed=5)
    assert found.guarantee == "conditional: C-Lipschitz densities"
    assert "0.666865-Lipschitz on [0, 1]" in found.assumption
    assert found.interval == (found.lower, found.upper)
    assert found.lower <= found.estimate <= found.upper
    assert found.precision == pytest.approx((found.upper - found.lower) / 2)
    # The published plan takes 158 179 draws for ± .5.
    assert found.precision < 0.36
    assert found == em.ldp.estimate(entry, n=1000, confidence=0.9, interval="exact", seed=5)
    sharper = em.ldp.estimate(entry, n=100_000, confidence=0.9, interval="exact", seed=5)
    assert sharper.precision < 0.1
    assert sharper.cells > found.cells


def test_a_planned_estimate_has_the_same_ends():
    found = em.ldp.estimate(em.zoo.truncated_laplace(0.2), precision=2.0, n=500, seed=0)
    assert (found.lower, found.upper) == found.interval


def test_a_steep_density_has_an_interval_too():
    """C = 2 and more is beyond the published plan; one draw per cell leaves the upper end open."""

    def parabola(x, n, rng):
        return rng.beta(2.0, 2.0, n) if x else rng.random(n)

    given = {"domain": UNIT, "lipschitz": 6.0, "interval": "exact", "seed": 0}
    found = em.ldp.estimate(em.from_batch(parabola), (1, 0), n=20_000, **given)
    assert found.lower <= math.log(1.5) <= found.upper < 1.0
    back = em.ldp.estimate(em.from_batch(parabola), (0, 1), n=20_000, **given)
    # The right density is 0 at both ends.
    assert back.upper == math.inf
    assert back.precision == math.inf


def test_densities_that_differ_have_a_lower_end_whatever_the_slope():
    """The lower end needs no assumption, so that a large C must not take it away."""

    def halves(side, n, rng):
        return 0.5 * (rng.random(n) + side)

    found = em.ldp.estimate(
        em.from_batch(halves),
        (0, 1),
        domain=UNIT,
        lipschitz=1e3,
        n=1000,
        interval="exact",
        seed=0,
    )
    assert found.lower > 1.0
    assert found.upper == math.inf
    assert found.estimate >= found.lower


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"interval": "exact"}, "n= is needed with interval='exact'"),
        ({"interval": "exact", "n": 100, "precision": 0.5}, "interval='exact' has no plan"),
        ({"interval": "exact", "n": 100, "as_published": True}, "interval='exact' has no plan"),
        ({"interval": "exact", "n": 100, "order": 1.0}, "order=1"),
        ({"interval": "exact", "n": 100, "confidence": 2.0}, "confidence=2"),
        ({"interval": "exact", "n": 10**9}, "most_draws=1,000,000,000"),
        ({"interval": "wide", "n": 100}, "interval='wide'"),
        ({"n": 100}, "precision= is needed"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_drawn(given, message):
    def never(x, n, rng):
        raise AssertionError("drawn")

    with pytest.raises(em.InputError, match=message):
        em.ldp.estimate(em.from_batch(never), (0, 1), domain=UNIT, lipschitz=0.5, **given)


def test_draws_that_contradict_the_assumption_have_no_upper_end():
    """All draws of the left in one half: no density with C = .5 does that."""

    def half(x, n, rng):
        return rng.random(n) * (0.5 if x else 1.0)

    found = em.ldp.estimate(
        em.from_batch(half), (1, 0), domain=UNIT, lipschitz=0.5, n=2000, interval="exact", seed=0
    )
    assert found.guarantee.startswith("none: the draws contradict C-Lipschitz densities")
    assert found.upper == math.inf
    assert 0.0 < found.lower <= math.log(2.0)


@pytest.mark.parametrize("order", [None, 2.0])
@pytest.mark.parametrize("n", [50, 5000])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 1e6)])
def test_noise_that_is_clamped_has_no_density(ends, n, order):
    """So flat a density takes one cell, which sees nothing; but no density has draws at an end of the domain."""
    low, high = ends

    def clamped(x, n, rng):
        return np.clip(low + (high - low) * (0.5 * x + rng.laplace(size=n)), low, high)

    found = em.ldp.estimate(
        em.from_batch(clamped),
        (0, 1),
        domain=ends,
        lipschitz=0.1 / (high - low) ** 2,
        n=n,
        order=order,
        interval="exact",
        seed=0,
    )
    assert found.guarantee.startswith("none: the draws contradict")
    assert found.upper == math.inf


@pytest.mark.parametrize("ends", [(0.0, 1.0), (1e12, 1e12 + 1.0), (-5e-324, 1e-300)])
@pytest.mark.parametrize("precise", [np.float64, np.float32])
def test_rounding_at_the_ends_is_no_point_mass(ends, precise):
    """Numbers far from 0 are coarse, and so are those of half the precision: a few draws lie at an end."""
    low, high = ends

    def uniform(x, n, rng):
        return low + (high - low) * rng.random(n, dtype=precise).astype(float)

    found = em.ldp.estimate(
        em.from_batch(uniform),
        (0, 1),
        domain=ends,
        lipschitz=0.1 / (high - low) ** 2 if high - low > 1e-9 else 0.0,
        n=100_000,
        interval="exact",
        seed=0,
    )
    assert found.guarantee == "conditional: C-Lipschitz densities"


def test_outputs_outside_the_domain_are_refused():
    mechanism = em.from_batch(lambda x, n, rng: 2.0 * rng.random(n))
    with pytest.raises(em.InputError, match="not numbers of domain"):
        em.ldp.estimate(
            mechanism, (0, 1), domain=UNIT, lipschitz=0.5, n=100, interval="exact", seed=0
        )
