"""Coverage of the two-sided estimates, power of the planner, and draws of the local mechanisms under audit."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.settings import training_size
from epsilometer.bounds import Counts, two_bounds_value
from epsilometer.bounds.two_counts import epsilon_test
from epsilometer.testing import assert_rare

CONFIDENCE = 0.9


@pytest.mark.parametrize("part", [1, 200])
@pytest.mark.parametrize("epsilon", [0.2, 0.52])
@pytest.mark.paper("B6", "equal")
@pytest.mark.paper("B12", "corrected")
def test_pure_estimates_are_within_the_precision(epsilon, part, rarely):
    """At the planned n as promised; at a 200th of it practice still holds."""
    entry = em.zoo.truncated_laplace(epsilon)
    planned = em.ldp.plan(mechanism=entry, precision=0.5, confidence=CONFIDENCE).samples
    n = None if part == 1 else planned // part

    def misses(seed):
        result = em.ldp.estimate(entry, precision=0.5, confidence=CONFIDENCE, n=n, seed=seed)
        return not result.interval[0] <= epsilon <= result.interval[1]

    rarely(misses, 1 - CONFIDENCE, 0.3)


@pytest.mark.paper("B15", "equal")
@pytest.mark.paper("B17", "corrected")
def test_renyi_estimates_are_within_the_precision(rarely):
    entry = em.zoo.truncated_laplace(0.2)
    truth = entry.truth(em.RenyiDP, order=2.0)

    def misses(seed):
        result = em.ldp.estimate(entry, precision=0.5, confidence=CONFIDENCE, order=2.0, seed=seed)
        assert result.guarantee.startswith("conditional")
        return not result.interval[0] <= truth <= result.interval[1]

    rarely(misses, 1 - CONFIDENCE, 0.35)


@pytest.mark.paper("B10", "equal")
def test_the_overall_level_is_within_the_precision(rarely):
    entry = em.zoo.truncated_gaussian(0.2)

    def misses(seed):
        result = em.ldp.overall(entry, precision=1.0, confidence=CONFIDENCE, seed=seed)
        return not result.interval[0] <= 0.2 <= result.interval[1]

    rarely(misses, 1 - CONFIDENCE, 0.5)


@pytest.mark.parametrize(
    ("claim", "truth", "event_probability"),
    [
        (em.PureDP(1), 1.2, 0.5),
        (em.PureDP(1), 3.0, 0.01),
        (em.ApproxDP(1, 0.01), 1.5, 0.3),
        (em.GaussianDP(1), 1.2, 0.5),
    ],
)
def test_planned_audits_have_their_power(claim, truth, event_probability, rarely, rng):
    """The certificate itself, on counts of the planned event; the plan may be off by 5 %."""
    plan = em.plan(claim, truth=truth, event_probability=event_probability)
    n = plan.samples - training_size(plan.samples)

    def is_refuted(_):
        chances = (plan.event_probability, plan.other_probability)
        left, right = (Counts(int(rng.binomial(n, chance)), n) for chance in chances)
        return refutes(claim, left, right)

    rarely(lambda run: not is_refuted(run), 1 - plan.power + 0.05, 1 - plan.power + 0.2)
    rarely(is_refuted, plan.power + 0.05, 1 - 0.1 * (1 - plan.power))


def refutes(claim, left, right):
    """Whether the claim itself is rejected: quicker than the bound, which looks for the largest that is."""
    if isinstance(claim, em.GaussianDP):
        return two_bounds_value(claim, left, right, 0.05) > claim.value
    delta = claim.fixed().get("delta", 0.0)
    return epsilon_test(left, right, 0.05, delta).rejects(claim.epsilon, delta)


def test_a_planned_audit_refutes(rarely):
    """The whole audit, which has to find its event: Laplace noise of level 1.5 that claims 1."""
    samples = 2 * em.plan(em.PureDP(1.0), truth=1.5).samples
    entry, claim = em.zoo.laplace(1.5), em.PureDP(1.0)
    rarely(
        lambda seed: not em.audit(entry, claim=claim, samples=samples, seed=seed).is_refuted,
        0.3,
        0.8,
    )


LOCAL = ["truncated_laplace", "truncated_gaussian", "sue", "oue", "rappor", "rappor_longitudinal"]
LOCAL += ["hadamard_response", "subset_selection"]


def test_local_mechanisms_keep_their_claim_and_leak_what_they_should():
    """The default method on any pair of values: rarely above the truth, and most of it is found."""
    runs, above = 2, 0
    for name in LOCAL:
        entry = em.zoo.find(name)
        truth = entry.truth()
        bounds = [
            em.measure(entry, None, em.PureDP, samples=10_000, seed=seed).lower_bound
            for seed in range(runs)
        ]
        above += sum(bound > truth for bound in bounds)
        assert np.mean(bounds) > (0.2 if name.startswith("rappor") else 0.5) * truth, name
    assert_rare(above, runs * len(LOCAL), 0.05)
