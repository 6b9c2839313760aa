"""Coverage of the two-sided estimates, power of the planner, and draws of the local mechanisms under audit."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.settings import training_size
from epsilometer.bounds import Counts, two_bounds_value
from epsilometer.bounds.ratio import epsilon_test
from epsilometer.testing import assert_rare

CONFIDENCE = 0.9


@pytest.mark.parametrize("part", [1, 200])
@pytest.mark.parametrize("epsilon", [0.2, 0.52])
def test_pure_estimates_are_within_the_precision(epsilon, part):
    """At the planned n as promised; at a 200th of it practice still holds."""
    entry = em.zoo.truncated_laplace(epsilon)
    runs, missed = 200, 0
    planned = em.plan(mechanism=entry, precision=0.5, confidence=CONFIDENCE).samples
    for seed in range(runs):
        n = None if part == 1 else planned // part
        result = em.ldp.estimate(entry, precision=0.5, confidence=CONFIDENCE, n=n, seed=seed)
        missed += not result.interval[0] <= epsilon <= result.interval[1]
    assert_rare(missed, runs, 1 - CONFIDENCE)


def test_renyi_estimates_are_within_the_precision():
    entry = em.zoo.truncated_laplace(0.2)
    truth = entry.truth(em.RenyiDP, order=2.0)
    runs, missed = 100, 0
    for seed in range(runs):
        result = em.ldp.estimate(entry, precision=0.5, confidence=CONFIDENCE, order=2.0, seed=seed)
        assert result.guarantee.startswith("conditional")
        missed += not result.interval[0] <= truth <= result.interval[1]
    assert_rare(missed, runs, 1 - CONFIDENCE)


def test_the_overall_level_is_within_the_precision():
    entry = em.zoo.truncated_gaussian(0.2)
    runs, missed = 40, 0
    for seed in range(runs):
        result = em.ldp.overall(entry, precision=1.0, confidence=CONFIDENCE, seed=seed)
        missed += not result.interval[0] <= 0.2 <= result.interval[1]
    assert_rare(missed, runs, 1 - CONFIDENCE)


@pytest.mark.parametrize(
    ("claim", "truth", "event_probability"),
    [
        (em.PureDP(1), 1.2, 0.5),
        (em.PureDP(1), 3.0, 0.01),
        (em.ApproxDP(1, 0.01), 1.5, 0.3),
        (em.GaussianDP(1), 1.2, 0.5),
    ],
)
def test_planned_audits_have_their_power(claim, truth, event_probability, rng):
    """The certificate itself, on counts of the planned event; the plan may be off by 5 %."""
    plan = em.plan(claim=claim, truth=truth, event_probability=event_probability)
    n, runs = plan.samples - training_size(plan.samples), 200
    refuted = 0
    for _ in range(runs):
        left, right = (Counts(int(rng.binomial(n, chance)), n) for chance in plan.event)
        refuted += refutes(claim, left, right)
    assert_rare(runs - refuted, runs, 1 - plan.power + 0.05)
    assert_rare(refuted, runs, plan.power + 0.05)


def refutes(claim, left, right):
    """Whether the claim itself is rejected: quicker than the bound, which looks for the largest that is."""
    if isinstance(claim, em.GaussianDP):
        return two_bounds_value(claim, left, right, 0.05) > claim.value
    delta = claim.fixed().get("delta", 0.0)
    return epsilon_test(left, right, 0.05, delta).rejects(claim.epsilon, delta)


def test_a_planned_audit_refutes():
    """The whole audit, which has to find its event: Laplace noise of level 1.5 that claims 1."""
    samples = 2 * em.plan(claim=em.PureDP(1.0), truth=1.5).samples
    runs = 30
    refuted = sum(
        em.audit(em.zoo.laplace(1.5), claim=em.PureDP(1.0), samples=samples, seed=i).is_refuted for i in range(runs)
    )
    assert_rare(runs - refuted, runs, 0.3)


LOCAL = ["truncated_laplace", "truncated_gaussian", "sue", "oue", "rappor", "rappor_longitudinal"]
LOCAL += ["hadamard_response", "subset_selection"]


def test_local_mechanisms_keep_their_claim_and_leak_what_they_should():
    """The default method on any pair of values: rarely above the truth, and most of it is found."""
    runs, above = 4, 0
    for name in LOCAL:
        entry = em.zoo.find(name)
        truth = entry.truth()
        bounds = [em.measure(entry, None, em.PureDP, samples=10_000, seed=seed).lower_bound for seed in range(runs)]
        above += sum(bound > truth for bound in bounds)
        assert np.mean(bounds) > (0.2 if name.startswith("rappor") else 0.5) * truth, name
    assert_rare(above, runs * len(LOCAL), 0.05)
