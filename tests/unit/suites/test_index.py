"""The index page: a row and a picture each, hostile names as text."""

from dataclasses import replace

import pytest

from epsilometer.result import Verdict
from epsilometer.suites import Entry, Terms, find_changes, judge_family
from epsilometer.suites.index import SuiteRun, bar, counted, render_index, spark_line

EVIL = "<script>alert(1)</script>\"'\x1b\u202e"


@pytest.fixture
def make_run(make_outcome):
    def make(outcomes, before=None, terms=None):
        entries = [Entry(each.name, {"mechanism": "m:f"}, each.digest) for each in outcomes]
        now = {each.name: each for each in outcomes}
        earlier = {each.name: each for each in before or []}
        changes = find_changes(entries, now, earlier)
        pages = {
            each.name: f"{at:03d}.html"
            for at, each in enumerate(outcomes)
            if each.result is not None
        }
        family = None if terms is None else judge_family(entries, now, terms)
        return SuiteRun(
            "T",
            2,
            "2026",
            entries,
            now,
            changes,
            1 if before else None,
            {"a": [0.5, 0.9]},
            pages,
            family,
        )

    return make


def test_rows_pictures_and_changes(make_run, make_outcome):
    outcomes = [
        make_outcome("a", Verdict.REFUTED, 1.5),
        make_outcome("b"),
        make_outcome("c", error="no module"),
    ]
    page = render_index(make_run(outcomes, [make_outcome("a"), make_outcome("b")]))
    assert page.count('<li class="refuted">') == 1
    assert page.count('class="chart bar"') == 2
    assert page.count('class="chart spark"') == 1
    assert "Run 2: 1 refuted, 1 not refuted, 1 with an error" in page
    assert "not refuted → refuted" in page
    assert "no module" in page
    assert 'href="000.html"' in page


def test_what_weakens_a_reading_is_said(make_run, make_outcome):
    outcome = make_outcome("a", Verdict.REFUTED, 1.5)
    settings = {**outcome.result.settings, "suppress": ["drift"]}
    page = render_index(
        make_run([replace(outcome, result=replace(outcome.result, settings=settings))])
    )
    assert "With the drift check switched off." in page


def test_blind_audits_are_counted(make_run, make_outcome):
    outcome = make_outcome("a")
    blind = replace(outcome, result=replace(outcome.result, blind="too few draws"))
    assert make_run([outcome]).counts() == "1 not refuted"
    run = make_run([blind])
    assert run.counts() == "1 not refuted; 1 of them could not have been refuted"
    assert run.counts() in render_index(run)


def test_hostile_names_are_text(make_run, make_outcome):
    page = render_index(make_run([make_outcome(EVIL), make_outcome("b", error=EVIL * 10_000)]))
    assert "<script" not in page
    assert not {"\x1b", "\u202e"} & set(page)
    assert len(page) < 20_000


def test_claims_that_are_judged_together(make_run, make_outcome):
    outcomes = [
        make_outcome("a", Verdict.REFUTED, 1.5),
        make_outcome("b"),
        make_outcome(EVIL, error=EVIL),
    ]
    run = make_run(outcomes, terms=Terms(0.9, 2, 0))
    page = render_index(run)
    assert "Run 2: 1 refuted alone, 1 not refuted, 1 with an error" in page
    assert (
        "at least 90% no true claim of this family is called refuted over all nights; night 2"
        in page
    )
    assert "Refuted alone, which does not count: a." in page
    assert page.count("In the family: adjusted p ") == 3
    assert "<script" not in page
    assert run.family_properties()["family_size"] == "3"
    assert run.family_properties(run.entries[0])["family"] == "refuted alone"
    assert [run.status(entry) for entry in run.entries] == [0, 0, 2]


def test_the_claim_is_always_at_the_same_place(make_result):
    assert bar(make_result(bound=0.5))["width"] == "25.0%"
    assert bar(make_result(Verdict.REFUTED, bound=7.0))["width"] == "100.0%"
    assert bar(make_result(Verdict.REFUTED, bound=0.1, claimed=0.0))["width"] == "100.0%"
    assert bar(make_result(None))["claim"] is None


def test_a_line_needs_two_runs():
    assert spark_line([1.0]) is None
    assert spark_line([0.0, 0.0])["points"] == "3.0,22.0 93.0,22.0"
    assert spark_line([1.0, 2.0])["points"] == "3.0,13.0 93.0,4.0"


def test_counts_in_words():
    assert counted(["refuted", "error", "refuted"]) == "2 refuted, 1 with an error"
    assert counted([]) == "nothing"
