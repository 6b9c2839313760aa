"""Seeded draws against exact probabilities; each test's false alarm is at most 1e-9."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from epsilometer import zoo
from epsilometer.zoo.distributions.sparse_vector import Scheme, answer_probabilities

RUNS = 200_000
FALSE_ALARM = 1e-9


def assert_counts(hits, probabilities):
    """Every number of hits is plausible for its probability, by exact binomial tails."""
    share = FALSE_ALARM / (2 * len(hits))
    for count, probability in zip(hits, probabilities, strict=True):
        low, high = (
            stats.binom.cdf(count, RUNS, probability),
            stats.binom.sf(count - 1, RUNS, probability),
        )
        assert min(low, high) >= share, (
            f"{count}/{RUNS} hits, exact {probability:.6g}: chance {min(low, high):.1e}"
        )


def draw(entry, side, rng):
    return entry.mechanism.function(entry.worst_pair.side(side), RUNS, rng)


def below(limit):
    return lambda outputs: outputs < limit


def laplace_below(x):
    return stats.laplace.cdf(x)


E = math.e
RATE = 0.541662
EVENTS = {
    "laplace": (zoo.laplace(), below(0), 0.5, 0.5 / E),
    "laplace tail": (zoo.laplace(0.5, 3.0), below(-6), 0.5 / E, 0.5 / E**1.5),
    "gaussian": (zoo.gaussian(sigma=0.5), below(0), 0.5, stats.norm.cdf(-2)),
    "geometric": (zoo.geometric(), below(0.5), E / (1 + E), 1 / (1 + E)),
    "clamped low": (zoo.clamped_laplace(), lambda x: x == 0, 0.5, 0.5 / E),
    "clamped high": (zoo.clamped_laplace(), lambda x: x == 1, 0.5 / E, 0.5),
    "vector": (zoo.laplace_vector(), lambda x: (x < 0).all(axis=1), 0.5**5, 0.5**5 / E),
    "answer": (zoo.randomized_response(), lambda x: x == "yes", E / (1 + E), 1 / (1 + E)),
    "third answer": (
        zoo.randomized_response(categories=4),
        lambda x: x == "c2",
        1 / (E + 3),
        1 / (E + 3),
    ),
    "exponential": (
        zoo.exponential(0.7),
        below(1),
        (1 - math.exp(-RATE)) / (2 - math.exp(-RATE)),
        (math.exp(-RATE) - math.exp(-2 * RATE)) / (2 - math.exp(-2 * RATE)),
    ),
    "exponential tail": (
        zoo.exponential(0.7),
        lambda t: t > 3,
        math.exp(-2 * RATE) / (2 - math.exp(-RATE)),
        math.exp(-RATE) / (2 - math.exp(-2 * RATE)),
    ),
    "value": (zoo.noisy_max_value(), below(0), 0.5**3, 0.5**3 / E),
    "released value": (
        zoo.report_noisy_max(output="value"),
        below(1),
        laplace_below(0.5) ** 6,
        0.5**6,
    ),
    "one-sided value": (
        zoo.report_noisy_max(output="value", noise="exponential"),
        below(2),
        (1 - 1 / E) ** 6,
        (1 - math.exp(-0.5)) ** 6,
    ),
    "histogram": (zoo.noisy_histogram(), lambda x: (x[:, 0] < 1) & (x[:, 4] < 1), 0.25, 0.25 / E),
    "wrong histogram": (
        zoo.noisy_histogram(0.5, scale="wrong"),
        lambda x: x[:, 0] < 1,
        0.5,
        0.5 / E**2,
    ),
    "release": (
        zoo.propose_test_release(distance=7),
        lambda x: x["released"] & (x["value"] < 0),
        laplace_below(7 - math.log(500)) * 0.5,
        laplace_below(6 - math.log(500)) * 0.5 / E,
    ),
    "mean": (zoo.dp_mean(), below(0), 0.5, 0.5 / E**2),
}


@pytest.mark.parametrize("case", list(EVENTS))
def test_an_event_has_its_exact_probability(case, rng):
    entry, event, *probabilities = EVENTS[case]
    assert_counts(
        [int(np.count_nonzero(event(draw(entry, side, rng)))) for side in (0, 1)], probabilities
    )


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@pytest.mark.parametrize("side", [0, 1])
def test_positions_of_the_noisy_maximum_have_their_exact_law(noise, side, rng):
    entry = zoo.report_noisy_max(noise=noise)
    law = entry.distributions
    assert_counts(np.bincount(draw(entry, side, rng), minlength=6), law.right if side else law.left)


def as_answers(outputs):
    """Rows of answers for any of the encodings."""
    if outputs.ndim == 1:
        return [(0,) * first + ((1,) if first < 10 else ()) for first in outputs.tolist()]
    return [tuple(answer for answer in row if answer >= 0) for row in outputs.astype(int).tolist()]


@pytest.mark.parametrize(
    "entry",
    [
        zoo.svt1(),
        zoo.svt2(),
        zoo.svt4(),
        zoo.svt5(),
        zoo.svt6(),
        zoo.svt1(cutoff=2),
        zoo.svt2(cutoff=2),
    ],
    ids=lambda entry: f"{entry.name}-{entry.parameters.get('cutoff', 1)}",
)
@pytest.mark.parametrize("side", [0, 1])
def test_answers_have_their_exact_law(entry, side, rng):
    table = answer_probabilities(
        entry.mechanism.function.keywords["scheme"], entry.worst_pair.side(side)
    )
    counts = dict.fromkeys(table, 0)
    for answers in as_answers(draw(entry, side, rng)):
        counts[answers] += 1
    assert_counts(counts.values(), np.clip(list(table.values()), 0.0, 1.0))


@pytest.mark.parametrize("entry", [zoo.svt3(), zoo.numerical_svt()], ids=lambda entry: entry.name)
@pytest.mark.parametrize("side", [0, 1])
def test_positions_of_numeric_answers_have_their_exact_law(entry, side, rng):
    table = answer_probabilities(
        entry.mechanism.function.keywords["scheme"], entry.worst_pair.side(side)
    )
    exact = sorted(
        (key.index(1) if 1 in key else 10, probability) for key, probability in table.items()
    )
    counts = np.bincount(draw(entry, side, rng)["position"], minlength=11)
    assert_counts(counts, [probability for _, probability in exact])


def test_the_compared_value_is_what_is_released(rng):
    """The first answer, below 1/2: the threshold's noise must lie below the value, too."""
    entry = zoo.svt3(1.5)
    scale = 2 / 1.5

    def density(value):
        return stats.laplace.pdf(value, 1.0, scale) * stats.laplace.cdf(value - 1, 0.0, scale)

    exact = integrate.quad(density, -60, 0.5)[0]
    columns = draw(entry, 1, rng)
    assert_counts(
        [int(np.count_nonzero((columns["position"] == 0) & (columns["value"] < 0.5)))], [exact]
    )


def test_the_fresh_value_knows_nothing_of_the_comparison(rng):
    entry = zoo.numerical_svt(1.5)
    first = answer_probabilities(Scheme(2.0, 4.0, 1), entry.worst_pair.right)[(1,)]
    columns = draw(entry, 1, rng)
    exact = first * stats.laplace.cdf(0.5, 1.0, 2.0)
    assert_counts(
        [int(np.count_nonzero((columns["position"] == 0) & (columns["value"] < 0.5)))], [exact]
    )
