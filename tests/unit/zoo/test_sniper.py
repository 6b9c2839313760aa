"""DP-Sniper's mechanisms: laws against what others measured, and against likelihood ratios of single draws."""

import itertools
import math

import numpy as np
import pytest

from epsilometer import zoo
from epsilometer.errors import InputError
from epsilometer.zoo.distributions.exact import (
    discrete_distributions,
    independent_distributions,
    laplace_distributions,
)
from epsilometer.zoo.sniper import SNIPER_NAMES

# (P(E), Q(E)) of the strongest single event with 1.07 million draws, found elsewhere by drawing.
STRONGEST = {
    "LaplaceMechanism": (0.500563, 0.452928),
    "TruncatedGeometricMechanism": (0.52945, 0.470622),
    "NoisyHist1": (0.500217, 0.452616),
    "NoisyHist2": (0.540294, 2.46897e-05),
    "ReportNoisyMax1": (0.199267, 0.181278),
    "ReportNoisyMax2": (0.199267, 0.180305),
    "ReportNoisyMax3": (0.0314283, 0.024477),
    "ReportNoisyMax4": (2.58333e-05, 2.29321e-06),
    "SparseVectorTechnique1": (0.0238933, 0.0218849),
    "SparseVectorTechnique2": (0.02432, 0.0222828),
    "SparseVectorTechnique3": (0.00185417, 0.00143053),
    "SparseVectorTechnique4": (0.0166408, 0.0140046),
    "SparseVectorTechnique5": (0.0489475, 0.0),
    "SparseVectorTechnique6": (0.0004725, 0.000312174),
    "Rappor": (0.0182792, 0.0135407),
    "OneTimeRappor": (0.020885, 0.0114562),
    "LaplaceParallel": (0.0210242, 0.0199265),
    "SVT34Parallel": (0.001, 0.000687816),
    "PrefixSum": (0.00113917, 0.000420332),
    "NumericalSVT": (0.026575, 0.0249539),
}
# The greatest losses as published, where finite and seen on the same pair.
TRUTHS = {
    "TruncatedGeometricMechanism": 0.12,
    "ReportNoisyMax3": 0.25,
    "Rappor": 0.3,
    "OneTimeRappor": 0.6,
}
N_DRAWS = 20_000


def greatest_power(law, q):
    """The greatest P(E) among events with Q(E) = q: the least of δ(t) + e^t·q, which is convex in e^t."""
    grid = np.linspace(0.0, min(law.pure_epsilon(), 30.0), 40)
    for _ in range(2):
        lines = [law.delta(t) + math.exp(t) * q for t in grid]
        place = int(np.argmin(lines))
        grid = np.linspace(grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)], 20)
    return min(lines)


@pytest.mark.parametrize("name", SNIPER_NAMES)
def test_the_law_allows_the_strongest_event_and_nothing_much_stronger(name):
    p, q = STRONGEST[name]
    expected = 0.01 if p > 1e-3 else 0.06  # events found by drawing: the rarer, the rougher
    assert greatest_power(zoo.find(name).distributions, q) == pytest.approx(p, rel=expected)


@pytest.mark.parametrize(("name", "truth"), TRUTHS.items())
def test_truths_are_the_published_ones(name, truth):
    assert zoo.find(name).truth() == pytest.approx(truth, abs=0.005)


def test_the_published_names_are_parameters_of_one_entry():
    assert zoo.find("PrefixSum").parameters == zoo.sniper(mechanism="PrefixSum").parameters
    with pytest.raises(InputError, match="'PrefixSums' is unknown; did you mean PrefixSum"):
        zoo.find("PrefixSums")
    with pytest.raises(InputError, match="mechanism='Prefix' must be one of"):
        zoo.sniper(mechanism="Prefix")


def laplace_ratios(values, left, right, scale):
    return (np.abs(values - right) - np.abs(values - left)) / scale


def sparse_ratios(answers, values, scales, queries, compared):
    """log P/Q of sequences of answers (1, 0, nan), integrated over the noisy threshold on a plain grid.

    `compared`: the released values are those that were compared; else they come with noise of their own, of infinite
    scale for answers without a value.
    """
    threshold_scale, query_scale, value_scale = scales
    grid = np.linspace(-12 * threshold_scale, 12 * threshold_scale, 1201)
    logs = []
    for side in queries:
        total = np.tile(-np.abs(grid) / threshold_scale, (len(answers), 1))
        for column, query in enumerate(side):
            below = np.where(
                grid + 1.0 < query,
                np.exp(-np.abs(grid + 1.0 - query) / query_scale) / 2,
                1 - np.exp(-np.abs(grid + 1.0 - query) / query_scale) / 2,
            )
            answer, value = answers[:, column], np.nan_to_num(values[:, column])
            total[answer == 0] += np.log(below)
            above = answer == 1
            if compared:
                total[above] -= (np.abs(value - query) / query_scale)[above, None]
                total[above] += np.where(grid + 1.0 <= value[above, None], 0.0, -np.inf)
            else:
                total[above] += (
                    np.log1p(-below) - (np.abs(value - query) / value_scale)[above, None]
                )
        logs.append(np.logaddexp.reduce(total, axis=1))
    return logs[0] - logs[1]


def svt34_ratios(draws, pair):
    values, answers = draws[:, :10], draws[:, 10:]
    marks = np.select([values == -1000.0, values == -2000.0], [0.0, np.nan], 1.0)
    first = sparse_ratios(marks, values, (20.0, 40.0, 0.0), pair, compared=True)
    plain = np.where(answers < 0, np.nan, answers)
    return first + sparse_ratios(
        plain, np.zeros_like(plain), (40.0, 1 / 0.075, math.inf), pair, compared=False
    )


def numerical_svt_ratios(draws, pair):
    marks = np.select([draws == 0.0, draws == -1000.0], [0.0, np.nan], 1.0)
    return sparse_ratios(marks, draws, (30.0, 120.0, 60.0), pair, compared=False)


def prefix_ratios(draws, pair):
    return laplace_ratios(np.diff(draws, axis=1, prepend=0.0), *map(np.array, pair), 10.0).sum(
        axis=1
    )


def parallel_ratios(draws, pair):
    return laplace_ratios(draws, *pair, 200.0).sum(axis=1)


@pytest.mark.parametrize(
    ("name", "ratios", "n"),
    [
        ("PrefixSum", prefix_ratios, N_DRAWS),
        ("LaplaceParallel", parallel_ratios, N_DRAWS),
        ("NumericalSVT", numerical_svt_ratios, N_DRAWS // 10),
        ("SVT34Parallel", svt34_ratios, N_DRAWS // 10),
    ],
)
def test_laws_of_several_numbers_agree_with_likelihood_ratios_of_draws(name, ratios, n):
    """At every tenth quantile the shares differ by less than 6.5 spreads, which chance does once in 1e10 times."""
    entry, rng = zoo.find(name), np.random.default_rng(5)
    law, pair = entry.distributions, (entry.worst_pair.left, entry.worst_pair.right)
    losses = np.log(law.left) - np.log(law.right)
    slack = 2e-3 * law.pure_epsilon()
    for side, cells in enumerate((law.left, law.right)):
        found = ratios(entry.mechanism.function(pair[side], n, rng), pair)
        for level in np.quantile(losses, np.linspace(0.1, 0.9, 9)):
            share, spread = float((found > level).mean()), 6.5 * math.sqrt(0.25 / n)
            assert (
                cells[losses > level + slack].sum() - spread
                <= share
                <= cells[losses > level - slack].sum() + spread
            )


def test_independent_outputs_multiply():
    one = discrete_distributions(np.array([0.7, 0.3]), np.array([0.4, 0.6]))
    cells = list(itertools.product(range(2), repeat=3))
    sides = [
        np.array([math.prod(side[i] for i in cell) for cell in cells])
        for side in (one.left, one.right)
    ]
    expected, found = discrete_distributions(*sides), independent_distributions([one] * 3)
    for epsilon in (0.0, 0.3, 1.0):
        assert found.delta(epsilon) == pytest.approx(expected.delta(epsilon), abs=1e-12)
    assert found.pure_epsilon() == pytest.approx(expected.pure_epsilon())


def test_independent_laplace_noises_have_the_divergences_of_their_sum():
    found = independent_distributions([laplace_distributions(0.5)] * 4)
    for order in (1.0, 2.0, 10.0):
        assert found.renyi(order) == pytest.approx(
            4 * laplace_distributions(0.5).renyi(order), rel=1e-3
        )
    assert found.pure_epsilon() == pytest.approx(2.0)
