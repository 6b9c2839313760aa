"""A certified bound is above the truth in at most 5 % of the audits, whatever the outputs and the notion.

Exactness is proved by enumeration in tests/unit/bounds; these tests look at the whole way from draws to bound, where
the same draws might choose and prove. 300 runs fail at 43 bounds above the truth (14 %), 100 runs at 23.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import epsilometer as em
from epsilometer import zoo
from epsilometer.testing import assert_rare

LEVEL = 0.05
SAMPLES = 2000
KINDS = {
    "continuous": [("laplace", 0.7), ("exponential", 1.5), ("noisy_max_value", 1.5)],
    "discrete": [("report_noisy_max", 1.5), ("randomized_response", 1.0), ("geometric", 1.0)],
    "mixed": [("clamped_laplace", 1.0), ("propose_test_release", 1.0), ("numerical_svt", 3.0)],
    "sequences": [("svt1", 0.7), ("svt4", 0.7), ("svt4", 3.0)],
}
NOTIONS = {
    "approximate epsilon": ("laplace", em.ApproxDP, {"delta": 1e-3}),
    "approximate delta": ("gaussian", em.ApproxDP, {"epsilon": 0.5}),
    "renyi": ("randomized_response", em.RenyiDP, {"order": 2.0}),
    "zero-concentrated": ("randomized_response", em.ZCDP, {}),
    "Gaussian": ("gaussian", em.GaussianDP, {}),
}


def seeds(rng: np.random.Generator, runs: int) -> list[int]:
    return [int(seed) for seed in rng.integers(2**62, size=runs)]


@pytest.mark.parametrize("kind", KINDS)
def test_pure_bounds_of_every_kind_of_output(kind, rng):
    above = 0
    for name, epsilon in KINDS[kind]:
        entry = zoo.find(name, epsilon=epsilon)
        truth = entry.truth(em.PureDP)
        for seed in seeds(rng, 60):
            above += em.measure(entry, None, em.PureDP, samples=SAMPLES, seed=seed).lower_bound > truth
    assert_rare(above, 180, LEVEL)


def test_vectors_whose_score_is_learned(rng):
    entry = zoo.find("laplace_vector", epsilon=3.0, dimension=3)
    runs = [em.measure(entry, None, em.PureDP, samples=SAMPLES, seed=seed).lower_bound for seed in seeds(rng, 80)]
    assert_rare(sum(bound > 3.0 for bound in runs), 80, LEVEL)


@pytest.mark.parametrize("case", NOTIONS)
def test_every_notion(case, rng):
    name, notion, fixed = NOTIONS[case]
    entry = zoo.find(name)
    truth = entry.truth(notion, **fixed)
    settings = {"samples": SAMPLES, "method": "events"}
    results = [em.measure(entry, None, notion, seed=seed, **settings, **fixed) for seed in seeds(rng, 100)]
    assert_rare(sum(result.lower_bound > truth for result in results), 100, LEVEL)


def test_trade_off_curve_that_holds_is_rarely_refuted(rng):
    claim = em.TradeOffDP(lambda error: float(ndtr(ndtri(1.0 - error) - 1.0)))
    refuted = [em.audit(zoo.gaussian(), None, claim, samples=SAMPLES, seed=seed).is_refuted for seed in seeds(rng, 100)]
    assert_rare(sum(refuted), 100, LEVEL)


def test_choosing_among_pairs_is_free(rng):
    """Four pairs that leak alike: the best-looking one is chosen, and proved on draws that did not choose it."""
    pairs = [(0.0, 1.0), (1.0, 2.0), (5.0, 4.0), (-1.0, 0.0)]
    mechanism = zoo.laplace(epsilon=0.7).mechanism
    runs = [em.measure(mechanism, pairs, em.PureDP, samples=SAMPLES, seed=seed).lower_bound for seed in seeds(rng, 100)]
    assert_rare(sum(bound > 0.7 for bound in runs), 100, LEVEL)


def test_recorded_samples(rng):
    above = 0
    for seed in seeds(rng, 100):
        left, right = rng.laplace(0.0, 1.0, SAMPLES), rng.laplace(1.0, 1.0, SAMPLES // 2)
        above += em.compare(left, right, em.PureDP, seed=seed).lower_bound > 1.0
    assert_rare(above, 100, LEVEL)


def test_replays(rng):
    """The chance that a replay's bound is too high does not depend on how lucky the audit was."""
    entry = zoo.randomized_response(epsilon=1.0)
    above = 0
    for seed in seeds(rng, 100):
        first = em.measure(entry, None, em.PureDP, samples=1000, seed=seed)
        above += em.replay(first, entry, samples=SAMPLES, seed=seed).lower_bound > 1.0
    assert_rare(above, 100, LEVEL)


@pytest.mark.parametrize("confidence", [0.5, 0.999])
def test_other_confidences(confidence, rng):
    entry = zoo.randomized_response(epsilon=1.0)
    runs = [
        em.measure(entry, None, em.PureDP, samples=SAMPLES, seed=seed, confidence=confidence).lower_bound
        for seed in seeds(rng, 100)
    ]
    assert_rare(sum(bound > entry.truth() for bound in runs), 100, 1.0 - confidence)
