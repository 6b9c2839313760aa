"""The guarantee of a whole search: true claims are rarely refuted, however many pairs it looks at."""

import math

import numpy as np

import epsilometer as em
from epsilometer.testing import assert_rare

RUNS, CONFIDENCE = 40, 0.8
NUMBERS = em.domains.Records(em.domains.Number(0, 1), size=(0, 3))
ANSWERS = em.domains.Records(em.domains.Boolean(), size=(1, 2))


def total(data, n, rng):
    """Tight: a replaced record moves it by exactly its sensitivity, whatever is in the record."""
    values = [min(max(value, 0.0), 1.0) if isinstance(value, float) and value == value else 0.0 for value in data]
    return sum(values) + rng.laplace(size=n)


def flips(data, n, rng):
    """Randomised response: coupled looks see every output move."""
    return np.array([bool(value) for value in data]) ^ (rng.random((n, len(data))) < 1.0 / (1.0 + math.e))


def test_true_claims_are_rarely_refuted():
    refuted = 0
    for run in range(RUNS):
        mechanism, domain = ((total, NUMBERS), (flips, ANSWERS))[run % 2]
        finder = em.finders.Search(domain, "replace", beyond=run % 4 > 1, trials=32, samples=60, seed=run)
        settings = {"samples": 200, "confidence": CONFIDENCE, "seed": run}
        result = em.audit(em.from_batch(mechanism), finder, em.PureDP(1.0), **settings)
        refuted += result.is_refuted
        assert sum(amount for _, amount in result.findings[0].details["paid"]) <= 1.0 - CONFIDENCE + 1e-12
    assert_rare(refuted, RUNS, 1.0 - CONFIDENCE)
