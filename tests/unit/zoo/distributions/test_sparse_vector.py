"""The law of several released values: against that of one, against brute force, and against seeded draws."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from epsilometer import zoo
from epsilometer.claims import ApproxDP, RenyiDP
from epsilometer.zoo.distributions.sparse_vector import (
    ComparedValuesDistributions,
    Scheme,
    answer_probabilities,
    compared_value_distributions,
)

RUNS = 200_000
FALSE_ALARM = 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_value_has_the_law_of_the_other_computation(epsilon):
    scheme, (left, right) = (
        Scheme(2 / epsilon, 2 / epsilon, 1),
        ([0.0] * 4 + [1.0], [1.0] * 4 + [0.0]),
    )
    law, twin = (
        ComparedValuesDistributions.on(scheme, left, right),
        compared_value_distributions(scheme, left, right),
    )
    assert law.pure_epsilon() == pytest.approx(twin.pure_epsilon(), abs=1e-9)
    for order in (1.5, 2.0, 20.0):
        assert law.renyi(order) == pytest.approx(twin.renyi(order), rel=1e-6)
    assert law.renyi(1.0) == pytest.approx(twin.renyi(1.0), rel=1e-4)


def density(scheme, queries, answers, values):
    """One sequence of answers with its values, by a fine sum over the threshold's noise."""
    z = np.linspace(-60 * scheme.threshold_scale, 60 * scheme.threshold_scale, 200_001)
    weight = stats.laplace.pdf(z, 0, scheme.threshold_scale)
    released = iter(values)
    for query, answer in zip(queries, answers, strict=True):
        bar = scheme.threshold + z
        if answer:
            value = next(released)
            weight = weight * stats.laplace.pdf(value, query, scheme.query_scale) * (value >= bar)
        else:
            weight = weight * stats.laplace.cdf(bar, query, scheme.query_scale)
    return float(np.trapezoid(weight, z))


def test_no_values_exceed_the_truth_of_two():
    """Brute force over a grid of values comes near the greatest loss and never above it."""
    scheme, left, right = Scheme(2.0, 4.0, 2), [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]
    truth = ComparedValuesDistributions.on(scheme, left, right).pure_epsilon()
    grid = (-30.0, 0.0, 1.0, 30.0)
    losses = []
    for answers in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1)):
        for values in itertools.product(grid, repeat=sum(answers)):
            sides = [
                density(scheme, queries[: len(answers)], answers, values)
                for queries in (left, right)
            ]
            if min(sides) > 1e-12:
                losses.append(abs(math.log(sides[0] / sides[1])))
    assert truth - 0.02 < max(losses) <= truth + 1e-3


def test_ten_queries_bound_the_loss():
    """Ten noises of epsilon/(2c) each pay for everything: 5 epsilon/c."""
    for cutoff in (2, 3):
        entry = zoo.svt3(1.0, cutoff=cutoff)
        assert entry.truth() == pytest.approx(5 / cutoff, abs=1e-6)
        assert entry.truth(RenyiDP, order=2.0) < entry.truth()
        assert entry.truth(ApproxDP, delta=1e-3) is None
    assert zoo.svt3(1.0, cutoff=5).keeps_claim


@pytest.mark.parametrize("side", [0, 1])
def test_draws_have_the_law_of_the_answers(side, rng):
    entry = zoo.svt3(cutoff=2)
    table = answer_probabilities(
        entry.mechanism.function.keywords["scheme"], entry.worst_pair.side(side)
    )
    outputs = entry.mechanism.function(entry.worst_pair.side(side), RUNS, rng)
    counts = dict.fromkeys(table, 0)
    for row in outputs.tolist():
        counts[tuple(int(value > -math.inf) for value in row if not math.isnan(value))] += 1
    for answers, chance in table.items():
        tails = (
            stats.binom.cdf(counts[answers], RUNS, chance),
            stats.binom.sf(counts[answers] - 1, RUNS, chance),
        )
        assert min(tails) >= FALSE_ALARM / (4 * len(table)), (
            f"{answers}: {counts[answers]}/{RUNS}, exact {chance:.6g}"
        )
