"""Known leaks are found.

Each test promises that a run misses a bar with a small probability (the bars are far below what was measured), and
fails with 99 % probability if nine of ten runs miss it.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import epsilometer as em
from epsilometer import zoo

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


PROMISE = 0.001, 0.91


@pytest.mark.parametrize(("name", "parameters", "samples", "bar"), BARS, ids=str)
def test_bounds_come_near_the_truth(name, parameters, samples, bar, rarely):
    entry = zoo.find(name, **parameters)
    rarely(
        lambda seed: (
            em.measure(entry, None, em.PureDP, samples=samples, seed=seed).lower_bound < bar
        ),
        0.02,
        0.91,
    )


@pytest.mark.parametrize("notion", FALSE_CLAIMS)
def test_every_notion_is_refuted(notion, rarely):
    name, claim = FALSE_CLAIMS[notion]
    entry, settings = zoo.find(name), {"samples": 10_000, "method": "events"}
    rarely(
        lambda seed: not em.audit(entry, None, claim, seed=seed, **settings).is_refuted, *PROMISE
    )


def test_delta_is_measured(rarely):
    """The Gaussian mechanism has δ(.5) = .238."""
    entry, settings = zoo.gaussian(), {"epsilon": 0.5, "samples": 10_000}
    rarely(
        lambda seed: em.measure(entry, None, em.ApproxDP, seed=seed, **settings).lower_bound < 0.15,
        *PROMISE,
    )


@pytest.mark.parametrize(("name", "samples"), BROKEN)
def test_broken_mechanisms_are_refuted(name, samples, rarely):
    entry = zoo.find(name)
    rarely(lambda seed: not em.audit(entry, samples=samples, seed=seed).is_refuted, *PROMISE)


def test_the_leaking_pair_is_picked(rarely):
    """Among eight pairs only one leaks much."""
    pairs = [em.Pair(0.0, 0.02 * step) for step in range(1, 8)] + [em.Pair(0.0, 1.0)]
    mechanism = zoo.laplace(epsilon=1.0).mechanism

    def is_missed(seed):
        result = em.audit(mechanism, pairs, em.PureDP(0.5), samples=20_000, seed=seed)
        return not (result.is_refuted and result.witness.pair.right == 1.0)

    rarely(is_missed, *PROMISE)


def leak_rarely(dataset, n, rng):
    """Only one direction shows it: the first input says "leak" in 5 % of the runs, the second never."""
    return np.where(rng.random(n) < (0.05 if dataset == "first" else 0.0), "leak", "-")


@pytest.mark.parametrize("pair", [("first", "second"), ("second", "first")])
def test_both_directions(pair, rarely):
    def is_missed(seed):
        result = em.audit(em.from_batch(leak_rarely), pair, em.PureDP(1.0), samples=5000, seed=seed)
        return not (result.is_refuted and result.witness.flipped == (pair[0] == "second"))

    rarely(is_missed, *PROMISE)


def test_a_counterexample_replays(rarely):
    """Stored as JSON, read again, refuted again on other draws than those of the audit, with the same seed."""
    entry = zoo.svt5()

    def is_missed(seed):
        first = em.audit(entry, samples=2000, seed=seed)
        again = em.replay(em.AuditResult.from_json(first.to_json()), entry, samples=2000, seed=seed)
        return not (again.is_refuted and again.witness.counts != first.witness.counts)

    rarely(is_missed, *PROMISE)


def test_recorded_leaks_are_refuted(rarely, rng):
    def is_missed(seed):
        left, right = rng.laplace(0.0, 1.0, 5000).tolist(), rng.laplace(2.0, 1.0, 4000).tolist()
        return not em.compare(left, right, em.PureDP(1.0), seed=seed).is_refuted

    rarely(is_missed, *PROMISE)
