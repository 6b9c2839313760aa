"""Membership scores of many runs."""

import json
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import epsilometer as em
from epsilometer.report.formatting import figure_down

GRID = (np.arange(2000) + 0.5) / 2000


@pytest.fixture(scope="module")
def audit():
    return em.from_scores(1.0 + norm.ppf(GRID), norm.ppf(GRID))


def test_quantile_spaced_scores(audit):
    assert audit.auroc == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=1e-3)
    lower, upper = audit.auroc_interval
    assert 0.7 < lower < audit.auroc < upper < 0.8
    assert audit.tpr(0.01) == pytest.approx(em.GaussianDP(1.0).max_power(0.01), abs=0.02)
    assert audit.tpr(1.0) == 1.0
    assert 0.85 < audit.mu < 1.0
    assert audit.profile.mu < audit.mu
    assert 0.5 < audit.profile.epsilon(1e-5) < audit.epsilon(1e-5)
    assert audit.epsilon(1e-5) < em.GaussianDP(1.0).epsilon(1e-5)
    assert 0.0 < audit.tpr_lower(0.05) < audit.tpr(0.05)
    assert (audit.tpr_lower(0.0), audit.tpr_lower(1.0)) == (0.0, 1.0)
    with pytest.raises(em.InputError, match="fpr=2"):
        audit.tpr_lower(2)


@pytest.mark.parametrize(
    ("claim", "is_refuted"),
    [
        ("mu=.8", True),
        ("mu=1", False),
        ("eps=1", True),
        ("eps=4.4,delta=1e-5", False),
        ("rho=.1", True),
        (em.RenyiDP(2.0, 5.0), False),
        (em.TradeOffDP(([0.0, 1.0], [1.0, 0.0])), True),
    ],
)
def test_a_claim_is_refuted_when_its_p_value_is_small(audit, claim, is_refuted):
    check = audit.check(claim)
    assert check.is_refuted == is_refuted
    assert (audit.p_value(claim) <= 0.05) == is_refuted
    assert (check.lower_bound > check.claim.value) == is_refuted
    assert audit.profile.check(claim).lower_bound <= check.lower_bound


def test_print_is_short_and_shows_the_band_only(audit):
    lines = str(audit).splitlines()
    assert len(lines) <= 10
    assert f"at least {figure_down(audit.profile.mu)}" in str(audit)
    assert figure_down(audit.mu) not in str(audit)
    assert "2,000 held in" in str(audit)
    assert "ScoreAudit" in repr(audit)


def test_infinite_scores_are_allowed_and_said():
    plain = np.arange(100.0)
    audit = em.from_scores([*plain, np.inf], [-np.inf, *plain])
    assert audit.n_infinite == 2
    assert "2 of them infinite" in str(audit)
    assert len(str(audit).splitlines()) <= 10
    assert audit.to_dict()["infinite_scores"] == 2


def test_ties_count_half():
    assert em.from_scores([1.0] * 10, [1.0] * 10).auroc == 0.5
    assert em.from_scores([2.0] * 10, [1.0] * 10).auroc == 1.0


def test_scores_that_point_the_wrong_way_are_bounded_and_warned_about():
    with pytest.warns(em.EpsilometerWarning, match="give -scores"):
        wrong = em.from_scores(-1.0 - norm.ppf(GRID), norm.ppf(GRID))
    right = em.from_scores(1.0 + norm.ppf(GRID), norm.ppf(GRID))
    assert 0.0 < wrong.mu <= right.mu
    assert wrong.tpr_lower(0.1) == pytest.approx(0.1)
    with pytest.warns(em.EpsilometerWarning, match="AUROC 0"):
        em.from_scores(np.zeros(10), np.ones(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        em.from_scores(norm.ppf(GRID[::40]) - 0.1, norm.ppf(GRID[::40]))  # by chance


@pytest.mark.parametrize(
    ("side", "scores"), [("in_scores", [1.0] * 9), ("out_scores", [float("nan")] * 10)]
)
def test_wrong_scores(side, scores):
    sides = {"in_scores": [1.0] * 10, "out_scores": [0.0] * 10, side: scores}
    with pytest.raises(em.InputError, match=side):
        em.from_scores(**sides)
    with pytest.raises(em.InputError, match="confidence"):
        em.from_scores([1.0] * 10, [0.0] * 10, confidence=1.0)


def test_scores_say_what_so_many_of_them_can_show_at_all(rng):
    noisy = em.from_scores(rng.normal(1.0, size=500), rng.normal(size=500))
    perfect = em.from_scores(np.ones(500), np.zeros(500))
    assert noisy.greatest_epsilon(1e-5) == perfect.epsilon(1e-5)
    assert noisy.epsilon(1e-5) < noisy.greatest_epsilon(1e-5)
    assert noisy.greatest_bound("mu=1") == perfect.mu
    assert noisy.to_dict()["greatest_epsilon"] == perfect.epsilon(0.0)
    assert "and no more" in noisy._repr_html_()


def test_stored_as_plain_data(audit):
    data = json.loads(audit.to_json())
    assert data["kind"] == "scores"
    assert data["samples_used"] == [2000, 2000]
    assert data["auroc_interval"] == list(audit.auroc_interval)
    assert em.Profile.from_dict(data["profile"]).mu == audit.profile.mu


def test_a_higher_confidence_costs(audit):
    surer = em.from_scores(audit.in_scores, audit.out_scores, confidence=0.999)
    assert surer.mu < audit.mu
    assert surer.profile.mu < audit.profile.mu
    assert surer.p_value("mu=.8") == audit.p_value("mu=.8")


def test_a_check_says_that_so_few_scores_could_not_have_refuted(rng):
    few = em.from_scores(rng.normal(1.0, 1.0, 50), rng.normal(0.0, 1.0, 50))
    assert few.check("eps=9").blind == few.blind("eps=9")
    assert few.check("eps=9").blind is not None
    assert few.check("eps=1").blind is None
    run = em.from_one_run(rng.normal(size=50), np.arange(50) % 3 == 0)
    assert run.check("eps=9").blind == run.blind("eps=9")
    assert run.check("eps=9").blind is not None
