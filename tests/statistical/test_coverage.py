"""A certified bound is above the truth in at most 5 % of the audits, whatever the outputs and the notion.

Exactness is proved by enumeration in tests/unit/bounds; these tests look at the whole way from draws to bound, where
the same draws might choose and prove. Each fails with 99 % probability if a quarter of the bounds are too high.
"""

from itertools import cycle

import pytest
from scipy.special import ndtr, ndtri

import epsilometer as em
from epsilometer import zoo

LEVEL, BROKEN = 0.05, 0.25
SAMPLES = 1000  # few, so that an event which only fits its own draws goes far beyond the truth
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


@pytest.mark.parametrize("kind", KINDS)
def test_pure_bounds_of_every_kind_of_output(kind, rarely):
    entries = cycle([zoo.find(name, epsilon=epsilon) for name, epsilon in KINDS[kind]])

    def too_high(seed):
        entry = next(entries)
        return em.measure(
            entry, None, em.PureDP, samples=SAMPLES, seed=seed
        ).lower_bound > entry.truth(em.PureDP)

    rarely(too_high, LEVEL, 0.2)  # of three entries, a third of the runs each


def test_vectors_whose_score_is_learned(rarely):
    entry = zoo.find("laplace_vector", epsilon=3.0, dimension=3)
    rarely(
        lambda seed: (
            em.measure(entry, None, em.PureDP, samples=SAMPLES, seed=seed).lower_bound > 3.0
        ),
        LEVEL,
        BROKEN,
    )


@pytest.mark.parametrize("case", NOTIONS)
def test_every_notion(case, rarely):
    name, notion, fixed = NOTIONS[case]
    entry = zoo.find(name)
    truth = entry.truth(notion, **fixed)
    settings = {"samples": SAMPLES, "method": "events", **fixed}
    rarely(
        lambda seed: em.measure(entry, None, notion, seed=seed, **settings).lower_bound > truth,
        LEVEL,
        BROKEN,
    )


def test_trade_off_curve_that_holds_is_rarely_refuted(rarely):
    claim = em.TradeOffDP(lambda error: float(ndtr(ndtri(1.0 - error) - 1.0)))
    entry = zoo.gaussian()
    rarely(
        lambda seed: em.audit(entry, None, claim, samples=SAMPLES, seed=seed).is_refuted,
        LEVEL,
        BROKEN,
    )


def test_choosing_among_pairs_is_free(rarely):
    """Four pairs that leak alike: the best-looking one is chosen, and proved on draws that did not choose it."""
    pairs = [(0.0, 1.0), (1.0, 2.0), (5.0, 4.0), (-1.0, 0.0)]
    mechanism = zoo.laplace(epsilon=0.7).mechanism
    rarely(
        lambda seed: (
            em.measure(mechanism, pairs, em.PureDP, samples=2 * SAMPLES, seed=seed).lower_bound
            > 0.7
        ),
        LEVEL,
        BROKEN,
    )


def test_recorded_samples(rarely, rng):
    def too_high(seed):
        left, right = rng.laplace(0.0, 1.0, SAMPLES), rng.laplace(1.0, 1.0, SAMPLES // 2)
        return em.compare(left, right, em.PureDP, seed=seed).lower_bound > 1.0

    rarely(too_high, LEVEL, BROKEN)


def test_replays(rarely):
    """The chance that a replay's bound is too high does not depend on how lucky the audit was."""
    entry = zoo.randomized_response(epsilon=1.0)

    def too_high(seed):
        first = em.measure(entry, None, em.PureDP, samples=1000, seed=seed)
        return em.replay(first, entry, samples=SAMPLES, seed=seed).lower_bound > 1.0

    rarely(too_high, LEVEL, BROKEN)


@pytest.mark.parametrize(("confidence", "broken"), [(0.5, 0.8), (0.999, 0.25)])
def test_other_confidences(confidence, broken, rarely):
    entry = zoo.randomized_response(epsilon=1.0)
    settings = {"samples": SAMPLES, "confidence": confidence}
    rarely(
        lambda seed: (
            em.measure(entry, None, em.PureDP, seed=seed, **settings).lower_bound > entry.truth()
        ),
        1.0 - confidence,
        broken,
    )
