"""Cells, mid-points and samples against literal readings of the paper, in decimal arithmetic."""

import itertools
import math
from decimal import Decimal, getcontext

import pytest

from epsilometer.errors import InputError
from epsilometer.methods.published.ldp import plan_overall, plan_pair
from epsilometer.methods.published.ldp.formulas import Smoothness, log_deviation_chance
from epsilometer.methods.published.ldp.plans import affordable_precision

getcontext().prec = 60
getcontext().Emin, getcontext().Emax = -(10**17), 10**17


def exact(number):
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def f(x, y, z):
    """Equation (6), as printed."""
    x, y, z = exact(x), exact(y), exact(z)
    grow = z.exp()
    above = (-x * y * (grow - 1) ** 2 / (1 + grow)).exp()
    below = (-x * y * (1 - 1 / grow) ** 2 / 2).exp()
    return (above + below) / (1 - (1 - y) ** x)


def ceiling(value):
    return max(1, int(value.to_integral_value(rounding="ROUND_CEILING")))


def literal_pair(domain, lipschitz, precision, confidence, order=None, union=True, inputs=2):
    """m and the condition on n, read off equations (4), (5) and the inequalities below (7)."""
    a, b, c, gamma = (exact(x) for x in (*domain, lipschitz, precision))
    tau = 1 / (b - a) - c * (b - a) / 2
    if order is None:
        m = ceiling(6 * c * (b - a) / (tau * gamma))
        z, factor = gamma / 12, (2 * inputs * m if union else 4)
    else:
        alpha = exact(order)
        tau1 = 1 / (b - a) + c * (b - a) / 2
        k, k_ = 2 * tau1**alpha / tau ** (alpha - 1), tau**alpha / tau1 ** (alpha - 1)
        m = ceiling(c * k * (b - a) * (2 * alpha - 1) / (tau * k_ * (alpha - 1) * gamma))
        z = min(
            gamma * k_ * (alpha - 1) / (2 * k * (2 * alpha - 1)), Decimal(2).ln() / (2 * alpha - 1)
        )
        factor = inputs * m
    y = (b - a) / m * tau

    def is_enough(n):
        return inputs * m * (1 - y) ** n + factor * f(n, y, z) <= 1 - exact(confidence)

    return m, is_enough


def assert_least(samples, is_enough):
    """n is enough and n − 1 is not; a hair of rounding (one part in 1e9) is allowed to floats."""
    slack = max(1, samples // 10**9)
    assert is_enough(samples + slack)
    assert samples <= 1 + slack or not is_enough(samples - 1 - slack)


# Odd numbers, so that no quotient is whole: there rounding would decide the number of cells.
GRID = list(
    itertools.product(
        [(0.0, 1.0), (-2.0, 3.0)],
        [0.0513, 0.5071, 0.9517],
        [0.1031, 0.5077, 2.0311],
        [0.5, 0.9, 0.99],
    )
)


def smooth(domain, steepness):
    """A constant that is a share of the greatest allowed one."""
    return Smoothness(domain, steepness * 2.0 / (domain[1] - domain[0]) ** 2)


@pytest.mark.parametrize(("domain", "steepness", "precision", "confidence"), GRID)
@pytest.mark.parametrize("as_published", [True, False])
@pytest.mark.paper("B3", "equal")
@pytest.mark.paper("B4", "corrected")
def test_pure_plans_agree_with_a_literal_reading(
    domain, steepness, precision, confidence, as_published
):
    smoothness = smooth(domain, steepness)
    plan = plan_pair(smoothness, precision, confidence, as_published=as_published)
    cells, is_enough = literal_pair(
        domain, smoothness.lipschitz, precision, confidence, union=not as_published
    )
    assert plan.cells == cells
    assert_least(plan.samples, is_enough)
    assert plan.draws == 2 * plan.samples
    assert plan.width == pytest.approx((domain[1] - domain[0]) / cells)


@pytest.mark.parametrize(("domain", "steepness", "precision", "confidence"), GRID)
@pytest.mark.parametrize("order", [1.5, 2.0, 5.0])
@pytest.mark.paper("B14", "equal")
def test_renyi_plans_agree_with_a_literal_reading(domain, steepness, precision, confidence, order):
    smoothness = smooth(domain, steepness)
    plan = plan_pair(smoothness, precision, confidence, order)
    cells, is_enough = literal_pair(domain, smoothness.lipschitz, precision, confidence, order)
    # Floats hold 15 digits; beyond 1e12 cells the last one may differ.
    assert plan.cells == cells or (cells > 10**12 and abs(plan.cells / cells - 1) < 1e-12)
    assert_least(plan.samples, is_enough)
    assert (
        plan.samples
        == plan_pair(smoothness, precision, confidence, order, as_published=True).samples
    )


@pytest.mark.parametrize(("domain", "steepness", "precision", "confidence"), GRID[::4])
@pytest.mark.parametrize("order", [None, 2.0])
@pytest.mark.parametrize("as_published", [True, False])
@pytest.mark.paper("B7", "corrected")
@pytest.mark.paper("B16", "equal")
def test_overall_plans_agree_with_a_literal_reading(
    domain, steepness, precision, confidence, order, as_published
):
    smoothness, slope, inputs = smooth(domain, steepness), 0.7, (-1.0, 4.0)
    plan = plan_overall(
        smoothness,
        input_domain=inputs,
        input_lipschitz=slope,
        precision=precision,
        confidence=confidence,
        order=order,
        as_published=as_published,
    )
    a, b, c, gamma = (exact(x) for x in (*domain, smoothness.lipschitz, precision))
    tau, spread = 1 / (b - a) - c * (b - a) / 2, exact(slope) * 5
    if order is None:
        midpoints = ceiling(3 * spread / (tau * gamma))
    else:
        alpha, tau1 = exact(order), 1 / (b - a) + c * (b - a) / 2
        k, k_ = 2 * tau1**alpha / tau ** (alpha - 1), tau**alpha / tau1 ** (alpha - 1)
        midpoints = ceiling(3 * (2 * alpha - 1) * k * spread / (2 * (alpha - 1) * k_ * tau * gamma))
    assert plan.midpoints == max(2, midpoints)
    third, union = precision / 3, not as_published
    each = math.sqrt(confidence) if as_published else confidence
    inputs_paid = 2 if as_published else plan.midpoints
    cells, is_enough = literal_pair(
        domain, smoothness.lipschitz, third, each, order, union, inputs_paid
    )
    assert plan.cells == cells
    assert_least(plan.samples, is_enough)
    assert plan.draws == plan.midpoints * plan.samples


@pytest.mark.paper("B4", "corrected")
def test_the_known_example():
    smoothness = Smoothness((0.0, 1.0), 0.667)
    assert plan_pair(smoothness, 0.5, 0.9, as_published=True).samples == 99_654
    assert plan_pair(smoothness, 0.5, 0.9).samples == 158_179


@pytest.mark.parametrize("n", [1, 10, 10**4, 10**8, 10**12, 10**15])
@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.4])
@pytest.mark.parametrize("deviation", [1e-6, 0.04, 3.0])
def test_f_is_stable_for_any_number_of_samples(n, share, deviation):
    value = log_deviation_chance(n, share, deviation)
    assert math.isfinite(value)
    assert value == pytest.approx(float(f(n, share, deviation).ln()), rel=1e-9, abs=1e-9)


def test_flat_densities_need_one_cell():
    plan = plan_pair(Smoothness((0.0, 1.0), 0.0), 0.5, 0.9)
    assert plan.cells == 1
    assert plan.samples > 1


@pytest.mark.paper("B11", "equal")
def test_samples_fall_with_precision_and_grow_with_confidence_and_steepness():
    def samples(steepness=0.5, precision=0.5, confidence=0.9, order=None):
        return plan_pair(smooth((0.0, 1.0), steepness), precision, confidence, order).samples

    for order in (None, 2.0):
        assert (
            samples(precision=0.1, order=order)
            > samples(precision=0.2, order=order)
            > samples(order=order)
        )
        assert (
            samples(confidence=0.99, order=order)
            > samples(order=order)
            > samples(confidence=0.5, order=order)
        )
        assert (
            samples(steepness=0.9, order=order)
            > samples(order=order)
            > samples(steepness=0.1, order=order)
        )


def test_only_the_product_of_constant_and_squared_length_matters():
    plans = [
        plan_pair(Smoothness((0.0, scale), 0.6 / scale**2), 0.5, 0.9)
        for scale in (1.0, 0.01, 300.0)
    ]
    assert len({(plan.cells, plan.samples) for plan in plans}) == 1


@pytest.mark.parametrize("order", [None, 2.0])
@pytest.mark.parametrize("samples", [10**4, 10**6, 10**8])
def test_the_affordable_precision_is_the_finest(order, samples):
    smoothness = smooth((0.0, 1.0), 0.2)
    precision = affordable_precision(smoothness, samples, 0.9, order)
    assert plan_pair(smoothness, precision, 0.9, order).samples <= samples
    assert plan_pair(smoothness, 0.999 * precision, 0.9, order).samples > samples
    assert affordable_precision(smoothness, 2, 0.9, order) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lipschitz": 2.0}, r"lipschitz=2 must be below 2/\(b − a\)² = 2"),
        (
            {"lipschitz": 0.6, "domain": (0.0, 2.0)},
            r"lipschitz=0\.6 must be below 2/\(b − a\)² = 0\.5",
        ),
        ({"lipschitz": -0.1}, "lipschitz=-0.1"),
        ({"lipschitz": math.inf}, "lipschitz=inf"),
        ({"lipschitz": "steep"}, "lipschitz='steep'"),
        ({"domain": (1.0, 1.0)}, r"domain=\(1, 1\).*a < b"),
        ({"domain": (1.0, 0.0)}, r"domain=\(1, 0\).*a < b"),
        ({"domain": (0.0, math.inf)}, "domain"),
        ({"domain": 3}, "domain=3"),
        ({"precision": 0.0}, r"precision=0\.0.*above 0"),
        ({"precision": -1.0}, r"precision=-1\.0.*above 0"),
        ({"precision": math.nan}, "precision=nan"),
        ({"confidence": 0.0}, r"confidence=0\.0.*between 0 and 1"),
        ({"confidence": 1.0}, r"confidence=1\.0.*between 0 and 1"),
        ({"confidence": 95}, "confidence=95.*between 0 and 1"),
        ({"order": 1.0}, r"order=1\.0"),
        ({"order": 1e4}, "1e300"),
        ({"input_domain": (2.0, 1.0)}, r"input_domain=\(2, 1\)"),
        ({"input_lipschitz": -1.0}, r"input_lipschitz=-1\.0"),
    ],
)
def test_what_makes_no_sense_is_told(change, message):
    given = {
        "domain": (0.0, 1.0),
        "lipschitz": 0.5,
        "input_domain": (0.0, 1.0),
        "input_lipschitz": 1.0,
        "precision": 0.5,
        "confidence": 0.9,
    }
    given |= change
    with pytest.raises(InputError, match=message):
        plan_overall(Smoothness(given.pop("domain"), given.pop("lipschitz")), **given)


def test_too_many_draws_are_refused_with_the_figure():
    plan = plan_pair(Smoothness((0.0, 1.0), 0.6), 0.5, 0.9, order=5.0)
    with pytest.raises(
        InputError,
        match=rf"{plan.draws:,} draws .*{plan.samples:,} per input.*most_draws=1,000,000,000",
    ):
        plan.check_affordable()
    assert plan.check_affordable(1e20) is plan
