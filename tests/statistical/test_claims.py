"""True claims are rarely refuted, and the health checks stay silent about independent draws."""

from itertools import cycle

import pytest

import epsilometer as em
from epsilometer import zoo
from epsilometer.testing import assert_rare

TRUE_CLAIMS = [name for name in zoo.names() if zoo.find(name).keeps_claim]


@pytest.mark.parametrize("name", TRUE_CLAIMS)
def test_true_claims_are_not_refuted(name, rarely):
    """A claim that an entry breaks is refuted at any confidence: two audits show it, and false alarms."""
    entry, verdicts = zoo.find(name), []

    def is_refuted(seed):
        verdicts.append(em.audit(entry, samples=2000, seed=seed, confidence=0.9999).verdict)
        return verdicts[-1] is em.Verdict.REFUTED

    runs = rarely(is_refuted, 1e-4, 0.91)
    # Four checks of about 1e-9 each on both sides. Alarms in all runs are seen.
    assert_rare(verdicts.count(em.Verdict.INCONCLUSIVE), runs, 1e-8)


def test_true_claims_are_refuted_as_rarely_as_promised(rarely):
    """Over all entries, one after the other; tests/statistical/test_coverage.py looks at each kind of output."""
    entries = cycle(TRUE_CLAIMS)
    rarely(
        lambda seed: em.audit(zoo.find(next(entries)), samples=1000, seed=seed).is_refuted,
        0.05,
        0.16,
    )


def test_identical_inputs_are_never_told_apart(rarely):
    mechanism, control = zoo.laplace().mechanism, em.Pair(0.0, 0.0, equal=True)
    rarely(
        lambda seed: (
            em.measure(mechanism, control, em.PureDP, samples=2000, seed=seed).lower_bound > 0.0
        ),
        0.05,
        0.25,
    )
