"""The numbers behind the pictures, against closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest

from epsilometer.claims import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP
from epsilometer.report.panels import (
    certified_corners,
    certified_delta,
    claimed_delta,
    panels,
    profile,
    search_history,
    trade_off,
    wealth,
)
from epsilometer.result import Verdict


def with_details(result, **details):
    return replace(result, findings=(replace(result.findings[0], details=details),))


def test_one_event_gives_a_corner_and_two_pictures(make_result):
    result = make_result()
    assert certified_corners(result.findings[0]) == ((0.0551, 0.3891),)
    assert [panel.title for panel in panels(result)] == ["Trade-off curve", "Privacy profile"]


def test_trade_off_is_the_hull_of_the_corner(make_result):
    panel = trade_off(make_result())
    assert not panel.is_log
    assert panel.observed == (0.05, 0.4)
    at = np.searchsorted(panel.q, 0.0551)
    assert (panel.q[at], panel.certified[at]) == (0.0551, 0.3891)
    assert panel.certified[0] == 0.0
    assert panel.certified[-1] == 1.0
    assert np.all(
        np.diff(panel.certified, 2)[np.abs(np.diff(panel.q, 2)) < 1e-12] <= 1e-12
    )  # concave
    assert panel.claimed[at] == pytest.approx(math.e * 0.0551)


def test_a_corner_inside_the_hull_changes_nothing(make_result):
    band = with_details(make_result(), p_lower=[0.3891, 0.51, 0.4], q_upper=[0.0551, 0.5, 0.5])
    assert certified_corners(band.findings[0]) == ((0.0551, 0.3891), (0.5, 0.51))
    grid, other = trade_off(band), trade_off(make_result())
    assert np.interp(other.q, grid.q, grid.certified) == pytest.approx(other.certified)


def test_rare_events_get_logarithmic_axes(make_result):
    result = make_result()
    witness = replace(result.witness, p_lower=1e-3, q_upper=1e-5)
    rare = replace(result, findings=(replace(result.findings[0], witness=witness),))
    panel = trade_off(rare)
    assert panel.is_log
    assert panel.q[0] < 1e-5


def test_a_measurement_has_no_claimed_lines(make_result):
    result = make_result(None)
    assert trade_off(result).claimed is None
    assert profile(result).claimed is None


def test_certified_delta_is_the_corner_or_its_complement():
    epsilon = np.array([0.0, 0.5, 5.0])
    assert certified_delta(epsilon, [(0.1, 0.4)]) == pytest.approx(
        [0.3, 0.4 - 0.1 * math.exp(0.5), 0.0]
    )
    assert certified_delta(epsilon, [(0.6, 0.9)]) == pytest.approx(
        [0.3, 0.4 - 0.1 * math.exp(0.5), 0.0]
    )


def test_claimed_delta_of_pure_privacy():
    epsilon = np.array([0.0, 0.5, 1.0, 2.0])
    # The greatest p − e^t q under ε: at q = 1/(1 + e^ε).
    expected = [(math.e - math.exp(t)) / (1.0 + math.e) for t in (0.0, 0.5, 1.0)]
    assert claimed_delta(PureDP(1.0), epsilon) == pytest.approx([*expected, 0.0], abs=1e-3)


def test_claimed_delta_of_approximate_and_gaussian_privacy():
    assert claimed_delta(ApproxDP(1.0, 1e-3), np.array([1.0])) == pytest.approx([1e-3], rel=1e-6)
    from scipy.special import ndtr

    exact = ndtr(0.5 - 1.0) - math.e * ndtr(-0.5 - 1.0)
    assert claimed_delta(GaussianDP(1.0), np.array([1.0])) == pytest.approx([exact], rel=1e-3)


@pytest.mark.parametrize(
    "claim", [PureDP(1.0), ApproxDP(0.5, 1e-6), RenyiDP(2.0, 1.0), ZCDP(0.5), GaussianDP(1.0)]
)
@pytest.mark.parametrize("verdict", [Verdict.REFUTED, Verdict.NOT_REFUTED, None])
def test_every_notion_has_both_pictures(make_result, claim, verdict):
    result = make_result(verdict, claim=claim)
    for panel in panels(result):
        assert panel.description
    found = profile(result)
    assert np.all(np.diff(found.certified) <= 0.0)
    assert found.min_delta > 0.0
    if verdict is not None:
        assert np.all(np.diff(found.claimed) <= 1e-12)


def test_nothing_is_drawn_without_a_witness_or_if_it_proves_nothing(make_result):
    assert panels(make_result(witness=False)) == []
    result = make_result()
    weak = replace(result.witness, p_lower=0.2, q_upper=0.5)
    assert panels(replace(result, findings=(replace(result.findings[0], witness=weak),))) == []


def test_search_history(make_result):
    trials = [{"predicted": value} for value in (0.1, None, 0.7, "nan", 0.3)]
    panel = search_history(with_details(make_result(), search=trials))
    assert panel.scores == (0.1, None, 0.7, None, 0.3)
    assert panel.best == (0.1, 0.1, 0.7, 0.7, 0.7)
    assert panel.claimed == 1.0
    assert panel.certified == (None,) * 5
    assert panel.description == "5 trials, 2 without a score; the best promised 0.7."


def test_certified_trials_of_a_search(make_result):
    trials = [{"predicted": 0.9, "certified": None}, {"predicted": 1.3, "certified": 1.2}]
    panel = search_history(with_details(make_result(), search=trials))
    assert panel.certified == (None, 1.2)
    assert panel.description == "2 trials, 1 certified; the best promised 1.3."


@pytest.mark.parametrize("trials", [None, [], [{"predicted": 1.0}], "text", [1, 2, 3]])
def test_no_search_no_picture(make_result, trials):
    assert search_history(with_details(make_result(), search=trials)) is None


def test_wealth(make_result):
    panel = wealth(with_details(make_result(), wealth=[[10, 1.0], [20, 4.0], [30, 25.0]]))
    assert panel.draws == (10.0, 20.0, 30.0)
    assert panel.needed == pytest.approx(20.0)
    assert "25" in panel.description


@pytest.mark.parametrize("looks", [None, [], [[1, 2]], [[1, "x"], [2, None]], ["ab", "cd"], 7])
def test_no_wealth_no_picture(make_result, looks):
    assert wealth(with_details(make_result(), wealth=looks)) is None
