"""Membership scores."""

import numpy as np
import pytest
from scipy.stats import norm

import epsilometer as em

GRID = (np.arange(2000) + 0.5) / 2000


def test_quantile_spaced_scores():
    audit = em.from_scores(1.0 + norm.ppf(GRID), norm.ppf(GRID))
    assert audit.auroc == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=1e-3)
    assert audit.tpr(0.01) == pytest.approx(em.GaussianDP(1.0).max_power(0.01), abs=0.02)
    assert audit.tpr(1.0) == 1.0
    assert 0.7 < audit.mu < 1.0
    assert 0.5 < audit.epsilon(1e-5) < em.GaussianDP(1.0).epsilon(1e-5)
    assert audit.tpr_lower(0.05) < audit.tpr(0.05)
    assert audit.check("mu=.5").is_refuted
    assert not audit.check("mu=1").is_refuted
    assert audit.to_dict()["profile"]["kind"] == "profile"


def test_ties_count_half():
    assert em.from_scores([1.0] * 10, [1.0] * 10).auroc == 0.5
    assert em.from_scores([2.0] * 10, [1.0] * 10).auroc == 1.0


@pytest.mark.parametrize("scores", [[1.0] * 9, [[1.0] * 10], ["a"] * 10, [float("nan")] * 10])
def test_wrong_scores(scores):
    with pytest.raises(em.InputError, match="in_scores"):
        em.from_scores(scores, [1.0] * 10)


def test_one_run_is_a_number_with_more_to_say():
    bound = em.one_run(m=1000, r=600, v=600, delta=1e-5)
    assert bound == pytest.approx(5.2703994, abs=1e-6)
    assert bound.epsilon == float(bound)
    assert bound.mu > 1.0
    assert bound.p_value("eps=5.2,delta=1e-5") < 0.05 < bound.p_value("eps=5.3,delta=1e-5")
    assert bound.to_dict()["v"] == 600
    assert em.one_run(1000, 600, 600, 1e-5, confidence=0.99) < bound
    with pytest.raises(em.InputError, match="one-run test"):
        bound.p_value("mu=1")
    with pytest.raises(em.InputError, match="v=601"):
        em.one_run(1000, 600, 601, 1e-5)
