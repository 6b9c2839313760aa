"""How rare an output of one input alone may be and still be seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, laplace

import epsilometer as em
from epsilometer.auditing.judge import subsample_for_rehearsal
from epsilometer.auditing.rare_outputs import RareOutputs
from epsilometer.methods import Task, find_method
from epsilometer.outputs import read_outputs

pytestmark = pytest.mark.rehearses
PURE = em.PureDP(1.0)
NUMBERS = [side + laplace.ppf(np.linspace(0.005, 0.995, 301)) for side in (0.0, 1.0)]


def rare_outputs(n=700, claim=PURE, observed_value=0.9, values=NUMBERS):
    rows = subsample_for_rehearsal(*map(read_outputs, values))
    return RareOutputs(
        task=Task(claim, (n, n), 0.05),
        method=find_method("events", None),
        n_train=(n // 2, n // 2),
        rows=rows,
        observed_value=observed_value,
        seed=1,
    )


def test_outputs_that_are_too_rare_for_any_certificate_are_not_called_visible():
    """With probability x, all n fresh draws miss the output too often for 90 % power."""
    mass = rare_outputs().detectable_mass()
    # Fewer than four hits refute ε = 1 by no event.
    assert binom.sf(3, 700, mass) >= 0.9
    assert mass < 0.2


def test_noise_that_spends_the_claim_hides_rare_outputs():
    """A method that is free to choose may prefer what the noise shows."""
    spending = rare_outputs(400, observed_value=1.0).detectable_mass()
    sparing = rare_outputs(400, observed_value=0.0).detectable_mass()
    assert sparing < spending


def test_what_a_claim_allows_must_be_exceeded():
    claim = em.ApproxDP(1.0, 0.05)
    mass = rare_outputs(400, claim, observed_value=0.1).detectable_mass()
    assert 0.05 < mass < 0.4


def test_names():
    names = [np.array(list("abbccccd") * 40)] * 2
    assert 0.0 < rare_outputs(300, values=names, observed_value=0.0).detectable_mass() < 0.3


def test_a_smaller_audit_counts_as_many_rare_outputs():
    audit = rare_outputs(100_000, em.ApproxDP(1.0, 1e-5))
    smaller = audit.shrunk(0.1)
    assert smaller.n_train == (5000, 5000)
    assert smaller.task.n_fresh == (10_000, 10_000)
    assert math.isclose(smaller.task.claim.delta, 1e-4)


def test_the_probabilities_that_are_tried_end_at_certainty():
    probabilities = rare_outputs(claim=em.ApproxDP(1.0, 0.01)).probabilities()
    assert probabilities == sorted(probabilities)
    assert probabilities[0] > 0.01
    assert probabilities[-1] == 1.0


def test_a_failing_rehearsal_takes_no_verdict_with_it():
    assert replace(rare_outputs(), method=None).detectable_mass() is None
