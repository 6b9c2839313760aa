"""Few draws: what they prove is true, and the more of them the more they prove.

A mean of bounds misses its bar with less than 1e-9: every bar lies about six standard errors of the mean below what
was measured over other seeds.
"""

import numpy as np
import pytest

import epsilometer as em

# (what is drawn, draws per side, the least mean of the bounds)
BARS = [
    ("normal 50", 30, 1.5),
    ("normal 50", 100, 2.8),
    ("normal 3", 60, 1.6),
    ("normal 3", 100, 1.9),
    ("normal 3", 1000, 3.4),
    ("uniform", 100, 2.0),
    ("spread", 100, 1.5),
    ("clamped", 100, 1.1),
    ("names", 100, 1.5),
    ("booleans", 100, 1.7),
    ("geometric", 100, 0.7),
    ("mixed", 100, 1.4),
    ("many names", 100, 1.8),
    ("vector 2", 100, 1.2),
    ("vector 7", 200, 2.0),
    ("vector 20", 500, 2.6),
    ("vector 100", 1000, 2.6),
]
RUNS = 24


def draw(name, n, side, rng):
    """Draws of one side of a pair of laws that lie apart."""
    kind, _, size = name.partition(" ")
    match kind:
        case "normal":
            return rng.normal(float(size) * side, 1.0, n)
        case "uniform":
            return rng.random(n) + 0.5 * side
        case "spread":
            return rng.normal(0.0, 5.0 if side else 1.0, n)
        case "clamped":
            return np.clip(rng.normal(2.0 * side, 1.0, n), 0.0, 2.0)
        case "names":
            return np.where(rng.random(n) < 0.8, "ab"[side], rng.choice(list("abcde"), n))
        case "booleans":
            return rng.random(n) < (0.95 if side else 0.05)
        case "geometric":
            return rng.geometric(0.87, n) - rng.geometric(0.87, n) + side
        case "mixed":
            return [
                (bool(rng.random() < 0.5 + 0.4 * side), float(rng.normal(3.0 * side)))
                for _ in range(n)
            ]
        case "many":
            return [f"{'lr'[side]}{number}" for number in rng.integers(0, 8, n)]
    draws = rng.normal(size=(n, int(size)))
    draws[:, int(size) // 2] -= 3.0 * side
    return draws


@pytest.mark.parametrize(("name", "n", "bar"), BARS, ids=str)
def test_few_draws_prove_much(name, n, bar, rng):
    bounds = []
    for run in range(RUNS):
        left, right = (draw(name, n, side if run % 2 else 1 - side, rng) for side in (0, 1))
        bounds.append(em.compare(left, right, em.PureDP(1.0), seed=run).lower_bound)
    assert np.mean(bounds) > bar


@pytest.mark.parametrize(
    "claim",
    [em.ApproxDP(1.0, 1e-3), em.GaussianDP(1.0), em.RenyiDP(order=2.0, epsilon=0.5), em.ZCDP(0.25)],
    ids=lambda claim: claim.notion,
)
def test_every_notion_is_refuted_where_nothing_overlaps(claim, rng):
    for sizes in ((40, 40), (40, 200), (200, 40)):
        left, right = rng.normal(50.0, 1.0, sizes[0]), rng.normal(0.0, 1.0, sizes[1])
        assert em.compare(left, right, claim, seed=1).verdict is em.Verdict.REFUTED


@pytest.mark.parametrize("n", [60, 100, 139, 160, 180, 200, 220, 250, 300, 400, 1000, 4000])
def test_power_does_not_fall_when_draws_are_added(n, rarely):
    """Laplace noise of ε = 4 against a claim of 1: 40 of 40 are refuted from 60 draws on, as with `stop_early`."""
    mechanism, claim = em.from_batch(lambda x, n, rng: x + rng.laplace(0, 0.25, n)), em.PureDP(1.0)
    rarely(
        lambda seed: (
            em.audit(mechanism, em.Pair(0, 1), claim, samples=n, seed=seed).lower_bound <= 1.0
        ),
        0.05,
        0.6,
    )


# (left, right, true ε): the largest loss of each is exact.
TRUE = {
    "Laplace": (
        lambda n, rng: rng.laplace(1.0, 1.0, n),
        lambda n, rng: rng.laplace(0.0, 1.0, n),
        1.0,
    ),
    "geometric": (
        lambda n, rng: rng.geometric(1 - np.exp(-1.0), n) - rng.geometric(1 - np.exp(-1.0), n) + 1,
        lambda n, rng: rng.geometric(1 - np.exp(-1.0), n) - rng.geometric(1 - np.exp(-1.0), n),
        1.0,
    ),
    "ties": (
        lambda n, rng: np.round(rng.random(n) * 3),
        lambda n, rng: np.round(rng.random(n) * 3),
        0.0,
    ),
    "clamped": (
        lambda n, rng: np.clip(rng.laplace(1.0, 1.0, n), 0.0, 1.0),
        lambda n, rng: np.clip(rng.laplace(0.0, 1.0, n), 0.0, 1.0),
        1.0,
    ),
    "same vectors": (
        lambda n, rng: rng.normal(size=(n, 5)),
        lambda n, rng: rng.normal(size=(n, 5)),
        0.0,
    ),
    "same names": (
        lambda n, rng: [f"n{number}" for number in rng.integers(0, 30, n)],
        lambda n, rng: [f"n{number}" for number in rng.integers(0, 30, n)],
        0.0,
    ),
}


@pytest.mark.parametrize("law", TRUE)
def test_true_claims_are_rarely_refuted(law, rarely, rng):
    left, right, truth = TRUE[law]
    claim = em.PureDP(truth)
    rarely(
        lambda seed: (
            em.compare(left(60, rng), right(45, rng), claim, seed=seed).lower_bound > truth
        ),
        0.05,
        0.16,
    )
