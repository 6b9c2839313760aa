"""DP-Auditorium's testers: bounds above the truth are as rare as promised, and known leaks are found.

Where 5 % of the bounds may be above the truth, 30 % are noticed with a probability of 99 %.
"""

import numpy as np
import pytest

import epsilometer as em
from epsilometer import zoo

LEVEL, BROKEN, SAMPLES = 0.05, 0.3, 1000
CASES = {
    "hockey-stick, numbers": ("hockey-stick", None, zoo.laplace(0.7), em.PureDP, {}),
    "hockey-stick, mixed": ("hockey-stick", None, zoo.clamped_laplace(1.0), em.PureDP, {}),
    "hockey-stick, δ": ("hockey-stick", None, zoo.gaussian(), em.ApproxDP, {"epsilon": 0.5}),
    "hockey-stick, trees": (
        "hockey-stick",
        em.auditorium.hockey_stick.Options(classifier="boosting"),
        zoo.laplace_vector(3.0, dimension=3),
        em.PureDP,
        {},
    ),
    "hockey-stick, published": (
        "hockey-stick",
        em.auditorium.hockey_stick.Options(certificate="published"),
        zoo.gaussian(),
        em.ApproxDP,
        {"epsilon": 0.5},
    ),
    "poisson-histogram": ("poisson-histogram", None, zoo.randomized_response(1.0), em.PureDP, {}),
    "renyi-variational": (
        "renyi-variational",
        None,
        zoo.gaussian(sigma=1.0),
        em.RenyiDP,
        {"order": 2.0},
    ),
    "renyi-variational, coin": (
        "renyi-variational",
        None,
        zoo.randomized_response(1.0),
        em.RenyiDP,
        {"order": 1.5},
    ),
    "renyi-variational, pure": (
        "renyi-variational",
        None,
        zoo.randomized_response(1.0),
        em.PureDP,
        {},
    ),
    "mmd": (
        "mmd",
        em.auditorium.mmd.Options(threshold="total-variation"),
        zoo.randomized_response(1.0),
        em.PureDP,
        {},
    ),
}


def seeds(rng: np.random.Generator, runs: int) -> list[int]:
    return [int(seed) for seed in rng.integers(2**62, size=runs)]


@pytest.mark.parametrize("case", CASES)
def test_bounds_are_rarely_above_the_truth(case, rarely):
    method, options, entry, notion, fixed = CASES[case]
    truth = entry.truth(notion, **fixed)
    settings = {"samples": SAMPLES, "method": method, "options": options, **fixed}
    rarely(
        lambda seed: em.measure(entry, None, notion, seed=seed, **settings).lower_bound > truth,
        LEVEL,
        BROKEN,
    )


@pytest.mark.parametrize("certificate", ["exact", "published"])
@pytest.mark.paper("C28", "equal")
def test_equal_laws_have_no_discrepancy(certificate, rarely, rng):
    """There a discrepancy of 0 is the truth, and nothing is to spare."""
    options = em.auditorium.mmd.Options(certificate=certificate)

    def tells_apart(seed):
        left, right = rng.normal(size=(2, SAMPLES))
        return (
            em.compare(left, right, em.PureDP, method="mmd", options=options, seed=seed).lower_bound
            > 0.0
        )

    rarely(tells_apart, LEVEL, BROKEN)


@pytest.mark.parametrize(
    ("method", "entry", "notion", "fixed", "least"),
    [
        ("renyi-variational", zoo.gaussian(sigma=1.0), em.RenyiDP, {"order": 1.5}, 0.68),
        ("renyi-variational", zoo.gaussian(sigma=1.0), em.RenyiDP, {"order": 2.0}, 0.88),
        ("hockey-stick", zoo.laplace(1.0), em.ApproxDP, {"epsilon": 0.5}, 0.21),
    ],
)
def test_what_must_be_reached_on_average(method, entry, notion, fixed, least, rng):
    """Means over 12 audits of 10⁵ draws; they are at least six standard errors above the bar."""
    settings = {"samples": 100_000, "method": method}
    bounds = [
        em.measure(entry, None, notion, seed=seed, **settings, **fixed).lower_bound
        for seed in seeds(rng, 12)
    ]
    assert np.mean(bounds) >= least


@pytest.mark.parametrize(
    ("method", "claim"),
    [
        ("hockey-stick", em.PureDP(1.0)),
        ("hockey-stick", em.ApproxDP(1.0, 0.01)),
        ("poisson-histogram", em.PureDP(1.0)),
        ("renyi-variational", em.PureDP(1.0)),
        ("renyi-variational", em.RenyiDP(2.0, 1.0)),
        ("mmd", em.PureDP(0.3)),
    ],
)
def test_half_the_noise_is_refuted(method, claim, rng):
    for seed in seeds(rng, 2):
        assert em.audit(
            zoo.laplace(2.0), None, claim, samples=20_000, seed=seed, method=method
        ).is_refuted
