"""The guarantee of a whole search: true claims are rarely refuted, however many pairs it looks at."""

import math
from itertools import cycle, product

import numpy as np

import epsilometer as em

CONFIDENCE = 0.8
NUMBERS = em.domains.Records(em.domains.Number(0, 1), size=(0, 3))
ANSWERS = em.domains.Records(em.domains.Boolean(), size=(1, 2))


def total(data, n, rng):
    """Tight: a replaced record moves it by exactly its sensitivity, whatever is in the record."""
    values = [
        min(max(value, 0.0), 1.0) if isinstance(value, float) and value == value else 0.0
        for value in data
    ]
    return sum(values) + rng.laplace(size=n)


def flips(data, n, rng):
    """Randomised response: coupled looks see every output move."""
    return np.array([bool(value) for value in data]) ^ (
        rng.random((n, len(data))) < 1.0 / (1.0 + math.e)
    )


def test_true_claims_are_rarely_refuted(rarely):
    cases = cycle(product((False, True), ((total, NUMBERS), (flips, ANSWERS))))

    def is_refuted(seed):
        beyond, (mechanism, domain) = next(cases)
        finder = em.finders.Search(
            domain, "replace", beyond=beyond, trials=32, samples=60, seed=seed
        )
        settings = {"samples": 200, "confidence": CONFIDENCE, "seed": seed}
        result = em.audit(em.from_batch(mechanism), finder, em.PureDP(1.0), **settings)
        assert (
            sum(amount for _, amount in result.findings[0].details["paid"])
            <= 1.0 - CONFIDENCE + 1e-12
        )
        return result.is_refuted

    rarely(is_refuted, 1.0 - CONFIDENCE, 0.6)
