"""Statuses of audits and of suites."""

from dataclasses import replace

import pytest

from epsilometer.result import HealthReport, Verdict
from epsilometer.suites import status_over_all


@pytest.mark.parametrize(
    ("verdict", "expected", "status"),
    [
        (Verdict.NOT_REFUTED, None, 0),
        (Verdict.REFUTED, None, 1),
        (Verdict.INCONCLUSIVE, None, 3),
        (None, None, 0),
        (Verdict.REFUTED, Verdict.REFUTED, 0),
        (Verdict.NOT_REFUTED, Verdict.REFUTED, 1),
        (Verdict.INCONCLUSIVE, Verdict.REFUTED, 3),
        (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, 0),
    ],
)
def test_status(make_outcome, verdict, expected, status):
    assert make_outcome(verdict=verdict).status(expected) == status


def test_an_error_is_bad_input_whatever_was_expected(make_outcome):
    outcome = make_outcome(error="no such module")
    assert (outcome.word, outcome.status(Verdict.REFUTED)) == ("error", 2)


@pytest.mark.parametrize(
    ("statuses", "over_all"), [([], 0), ([0, 0], 0), ([0, 3], 3), ([3, 1, 0], 1), ([1, 2, 3], 2)]
)
def test_the_weightiest_status_wins(statuses, over_all):
    assert status_over_all(statuses) == over_all


def test_what_weakens_a_reading_is_said(make_outcome):
    outcome = make_outcome()
    assert "with" not in outcome.figures
    settings = {**outcome.result.settings, "suppress": ["drift"]}
    weakened = replace(outcome, result=replace(outcome.result, settings=settings))
    assert weakened.figures.endswith(", with the drift check switched off")


@pytest.mark.parametrize(("expected", "status"), [(None, 3), (Verdict.INCONCLUSIVE, 0)])
def test_a_measurement_of_untrusted_draws_is_inconclusive(make_outcome, expected, status):
    outcome = make_outcome(verdict=None)
    assert outcome.word == "measured"
    drift = HealthReport("drift", "the share varies", untrusted=True)
    untrusted = replace(outcome, result=replace(outcome.result, health=(drift,)))
    assert (untrusted.word, untrusted.status(expected)) == ("inconclusive", status)


def test_blind_audits_fail_only_where_that_is_asked_for(make_outcome):
    outcome = make_outcome(verdict=Verdict.NOT_REFUTED)
    assert outcome.status(fail_blind=True) == 0
    blind = replace(outcome, result=replace(outcome.result, blind="too few draws"))
    assert (blind.status(), blind.status(fail_blind=True)) == (0, 3)
    assert "could not have been refuted: too few draws" in blind.figures
