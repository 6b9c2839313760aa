"""Known leaks are found.

Each test promises that a run misses a bar with a small probability (the bars are far below what was measured) and
fails when so many misses would be a miracle: at a rate of 0.02, 12 runs fail at 7 misses, at a rate of 0.001 at 4.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import epsilometer as em
from epsilometer import zoo
from epsilometer.testing import assert_rare

RUNS = 12
# (entry, its parameters, samples, a bar that at most 1 % of 200 to 500 measured bounds missed)
BARS = [
    ("laplace", {"epsilon": 0.7}, 20_000, 0.55),
    ("laplace", {"epsilon": 1.5}, 20_000, 1.25),
    ("exponential", {"epsilon": 1.5}, 20_000, 1.30),
    ("noisy_max_value", {"epsilon": 1.5}, 20_000, 1.10),
    ("report_noisy_max", {"epsilon": 1.5}, 20_000, 1.20),
    ("geometric", {"epsilon": 1.0}, 20_000, 0.80),
    ("randomized_response", {"epsilon": 1.0}, 20_000, 0.93),
    ("clamped_laplace", {"epsilon": 1.0}, 20_000, 0.85),
    ("propose_test_release", {"epsilon": 1.0}, 20_000, 1.50),
    ("noisy_histogram", {"epsilon": 0.5, "scale": "wrong"}, 20_000, 1.30),
    ("laplace_vector", {"epsilon": 1.5}, 20_000, 0.60),
    ("svt4", {"epsilon": 1.5}, 20_000, 1.20),
    ("svt5", {"epsilon": 0.7}, 20_000, 6.0),
    ("svt6", {"epsilon": 1.5}, 20_000, 1.80),
    ("svt3", {"epsilon": 1.5}, 20_000, 1.30),
]
# (mechanism, claim that is false by far)
FALSE_CLAIMS = {
    "pure": ("laplace", em.PureDP(0.5)),
    "approximate": ("gaussian", em.ApproxDP(0.5, 1e-3)),
    "renyi": ("gaussian", em.RenyiDP(order=2.0, epsilon=0.3)),
    "zero-concentrated": ("gaussian", em.ZCDP(0.12)),
    "Gaussian": ("gaussian", em.GaussianDP(0.7)),
    "trade-off": ("gaussian", em.TradeOffDP(lambda error: float(ndtr(ndtri(1.0 - error) - 0.7)))),
}
# (entry, samples at which 200 audits were all refuted by far)
BROKEN = [("svt3", 100_000), ("svt4", 100_000), ("svt5", 2000), ("svt6", 20_000), ("dp_mean", 2000)]


def seeds(rng: np.random.Generator, runs: int = RUNS) -> list[int]:
    return [int(seed) for seed in rng.integers(2**62, size=runs)]


@pytest.mark.parametrize(("name", "parameters", "samples", "bar"), BARS, ids=str)
def test_bounds_come_near_the_truth(name, parameters, samples, bar, rng):
    entry = zoo.find(name, **parameters)
    bounds = [em.measure(entry, None, em.PureDP, samples=samples, seed=seed).lower_bound for seed in seeds(rng)]
    assert_rare(sum(bound < bar for bound in bounds), RUNS, 0.02)


@pytest.mark.parametrize("notion", FALSE_CLAIMS)
def test_every_notion_is_refuted(notion, rng):
    name, claim = FALSE_CLAIMS[notion]
    settings = {"samples": 10_000, "method": "events"}
    results = [em.audit(zoo.find(name), None, claim, seed=seed, **settings) for seed in seeds(rng)]
    assert_rare(sum(not result.is_refuted for result in results), RUNS, 0.001)


def test_delta_is_measured(rng):
    """The Gaussian mechanism has δ(.5) = .238."""
    entry = zoo.gaussian()
    bounds = [em.measure(entry, None, em.ApproxDP, epsilon=0.5, samples=10_000, seed=s).lower_bound for s in seeds(rng)]
    assert_rare(sum(bound < 0.15 for bound in bounds), RUNS, 0.001)


@pytest.mark.parametrize(("name", "samples"), BROKEN)
def test_broken_mechanisms_are_refuted(name, samples, rng):
    results = [em.audit(zoo.find(name), samples=samples, seed=seed) for seed in seeds(rng)]
    assert_rare(sum(not result.is_refuted for result in results), RUNS, 0.001)


def test_the_leaking_pair_is_picked(rng):
    """Among eight pairs only one leaks much."""
    pairs = [em.Pair(0.0, 0.02 * step) for step in range(1, 8)] + [em.Pair(0.0, 1.0)]
    mechanism = zoo.laplace(epsilon=1.0).mechanism
    results = [em.audit(mechanism, pairs, em.PureDP(0.5), samples=20_000, seed=seed) for seed in seeds(rng)]
    found = [result.is_refuted and result.witness.pair.right == 1.0 for result in results]
    assert_rare(found.count(False), RUNS, 0.001)


def leak_rarely(dataset, n, rng):
    """Only one direction shows it: the first input says "leak" in 5 % of the runs, the second never."""
    return np.where(rng.random(n) < (0.05 if dataset == "first" else 0.0), "leak", "-")


@pytest.mark.parametrize("pair", [("first", "second"), ("second", "first")])
def test_both_directions(pair, rng):
    results = [
        em.audit(em.from_batch(leak_rarely), pair, em.PureDP(1.0), samples=5000, seed=seed) for seed in seeds(rng)
    ]
    right_way = [result.is_refuted and result.witness.flipped == (pair[0] == "second") for result in results]
    assert_rare(right_way.count(False), RUNS, 0.001)


def test_a_counterexample_replays(rng):
    """Stored as JSON, read again, refuted again on other draws than those of the audit, with the same seed."""
    entry = zoo.svt5()
    missed = 0
    for seed in seeds(rng):
        first = em.audit(entry, samples=5000, seed=seed)
        again = em.replay(em.AuditResult.from_json(first.to_json()), entry, samples=5000, seed=seed)
        missed += not (again.is_refuted and again.witness.counts != first.witness.counts)
    assert_rare(missed, RUNS, 0.001)


def test_recorded_leaks_are_refuted(rng):
    missed = 0
    for seed in seeds(rng):
        left, right = rng.laplace(0.0, 1.0, 5000).tolist(), rng.laplace(2.0, 1.0, 4000).tolist()
        missed += not em.compare(left, right, em.PureDP(1.0), seed=seed).is_refuted
    assert_rare(missed, RUNS, 0.001)
