"""True claims are rarely refuted, and the health checks stay silent about independent draws."""

import pytest

import epsilometer as em
from epsilometer import zoo
from epsilometer.testing import assert_rare

TRUE_CLAIMS = [name for name in zoo.names() if zoo.find(name).keeps_claim]


@pytest.mark.parametrize("name", TRUE_CLAIMS)
def test_true_claims_are_rarely_refuted(name, rarely):
    entry, verdicts = zoo.find(name), []

    def is_refuted(seed):
        verdicts.append(em.audit(entry, samples=2000, seed=seed).verdict)
        return verdicts[-1] is em.Verdict.REFUTED

    runs = rarely(is_refuted, 0.05, 0.5)
    # Four checks of about 1e-9 each on both sides. Eight runs or more: half of them with an alarm are seen.
    assert_rare(verdicts.count(em.Verdict.INCONCLUSIVE), runs, 1e-8)


def test_identical_inputs_are_never_told_apart(rarely):
    mechanism, control = zoo.laplace().mechanism, em.Pair(0.0, 0.0, equal=True)
    rarely(
        lambda seed: em.measure(mechanism, control, em.PureDP, samples=2000, seed=seed).lower_bound > 0.0, 0.05, 0.25
    )
