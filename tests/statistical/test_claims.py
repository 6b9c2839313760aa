"""True claims are rarely refuted, and the health checks stay silent about independent draws."""

import pytest

import epsilometer as em
from epsilometer import zoo
from epsilometer.testing import assert_rare

RUNS = 20
TRUE_CLAIMS = [name for name in zoo.names() if zoo.find(name).keeps_claim]


@pytest.mark.parametrize("name", TRUE_CLAIMS)
def test_true_claims_are_rarely_refuted(name, rng):
    entry = zoo.find(name)
    verdicts = [em.audit(entry, samples=2000, seed=int(seed)).verdict for seed in rng.integers(2**62, size=RUNS)]
    assert_rare(verdicts.count(em.Verdict.REFUTED), RUNS, 0.05)
    # Four checks of about 1e-9 each on both sides.
    assert_rare(verdicts.count(em.Verdict.INCONCLUSIVE), RUNS, 1e-8)


def test_identical_inputs_are_never_told_apart(rng):
    mechanism = zoo.laplace().mechanism
    bounds = [
        em.measure(mechanism, em.Pair(0.0, 0.0, equal=True), em.PureDP, samples=2000, seed=int(seed)).lower_bound
        for seed in rng.integers(2**62, size=100)
    ]
    assert_rare(sum(bound > 0.0 for bound in bounds), 100, 0.05)
