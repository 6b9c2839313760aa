"""Pictures and pages of membership scores."""

import numpy as np
import pytest
from scipy.stats import norm

import epsilometer as em
from epsilometer.claims import GaussianDP
from epsilometer.report.scores_figure import score_curves

GRID = (np.arange(400) + 0.5) / 400


@pytest.fixture(scope="module")
def audit():
    return em.from_scores(1.0 + norm.ppf(GRID), norm.ppf(GRID))


def test_the_data_of_both_pictures(audit):
    curves = score_curves(audit, GaussianDP(1.0))
    assert (curves.observed_fpr[0], curves.observed_tpr[0]) == (0.0, 0.0)
    assert (curves.observed_fpr[-1], curves.observed_tpr[-1]) == (1.0, 1.0)
    assert np.all(np.diff(curves.observed_fpr) >= 0.0)
    observed = np.interp(curves.fpr, curves.observed_fpr, curves.observed_tpr)
    assert np.all(curves.tpr_lower <= observed + 0.01)
    assert np.all(curves.power >= curves.tpr_lower - 1e-12)
    assert np.all(curves.power <= curves.claimed_power + 1e-12)
    assert score_curves(audit).claimed_power is None


def test_the_area_below_the_observed_curve_is_the_observed_one(audit):
    curves = score_curves(audit)
    area = np.trapezoid(curves.observed_tpr, curves.observed_fpr)
    assert area == pytest.approx(audit.auroc, abs=1e-6)


def test_a_figure_and_a_file(audit, tmp_path):
    path = tmp_path / "scores.svg"
    figure = audit.plot(path, claim="mu=.5")
    roc, tradeoff = figure.axes
    assert roc.get_xlabel() == "false-positive rate"
    assert tradeoff.get_ylabel() == "type-II error at most"
    labels = [text.get_text() for text in roc.get_legend().get_texts()]
    assert any("GaussianDP(mu=0.5)" in label for label in labels)
    assert path.read_text().startswith("<?xml")
    with pytest.raises(em.InputError, match="must end in"):
        audit.plot(tmp_path / "scores.doc")


def test_a_page(audit, tmp_path):
    page = audit.save_html(tmp_path / "scores.html", claim="mu=.1").read_text()
    assert "Refuted" in page
    assert "GaussianDP(mu=0.1)" in page
    assert "400 held in" in page
    assert "Refuted" not in audit.save_html(tmp_path / "bare.html").read_text()
