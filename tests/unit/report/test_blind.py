"""An audit that could not have refuted anything says so before anything else, in every report."""

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest

from epsilometer.claims import ApproxDP
from epsilometer.outputs import Event, Partition
from epsilometer.report.html import render_html
from epsilometer.report.junit import junit_case, render_junit
from epsilometer.report.markdown import render_markdown
from epsilometer.report.notebook import render_fragment
from epsilometer.report.text import COLOURS, render_panel, render_text
from epsilometer.result import Verdict

REASON = "even an event that always tells the inputs apart needs 12,849 draws per side"
AMBER = COLOURS[Verdict.INCONCLUSIVE]


@pytest.fixture
def blind(make_result):
    claim = ApproxDP(8.0, 1e-5)
    return make_result(Verdict.NOT_REFUTED, claim, bound=0.0, blind=REASON, detectable=9.0)


@pytest.fixture
def nothing_found(make_result):
    result = make_result(Verdict.NOT_REFUTED, bound=0.0)
    empty = Event(Partition(()), np.array([False]))
    witness = dataclasses.replace(result.witness, event=empty)
    finding = dataclasses.replace(result.findings[0], witness=witness)
    return dataclasses.replace(result, findings=(finding,))


def test_text(blind):
    text = " ".join(render_text(blind).split())
    assert text.startswith(f"NOT REFUTED, and could not have been: {REASON}.")
    assert "Strongest evidence" not in text
    assert "output ≥ 0.5" not in text
    assert "would have been refuted" not in text
    assert "This audit says nothing about (ε, δ)-differential privacy" in text


def test_text_names_the_notion_that_needs_fewer_draws(blind):
    text = " ".join(render_text(blind).split())
    assert "if the noise is Gaussian, this claim is μ = 1.6" in text
    assert "for which 20 draws per side can be enough" in text


def test_stopping_early_is_named_where_draws_are_slow(blind):
    assert "--stop-early" not in render_text(blind)
    slow = dataclasses.replace(blind, seconds=3600.0)
    assert "--stop-early" in render_text(slow)
    early = dataclasses.replace(slow, settings={**slow.settings, "method": "sequential"})
    assert "--stop-early" not in render_text(early)


def test_panel_is_amber(blind):
    assert render_panel(blind).border_style == AMBER


def test_page_is_amber_without_event_and_pictures(blind):
    page = render_html(blind)
    assert "<title>Not refuted, and could not have been: noisy_count" in page
    assert '<article class="inconclusive"' in page
    assert page.index(f"E{REASON[1:]}") < page.index("ε at δ")
    assert "Event: the outputs with" not in page
    assert "What came out" not in page
    assert "strongest evidence" not in page


def test_notebook(blind):
    fragment = render_fragment(blind)
    assert "NOT REFUTED, and could not have been" in fragment
    assert "#1d8f8a" not in fragment
    assert "output ≥ 0.5" not in fragment


def test_markdown(blind):
    row = next(line for line in render_markdown([blind]).splitlines() if "noisy" in line)
    assert row.startswith("| ⚠️ |")
    assert "not refuted, and could not have been" in row
    assert "✅" not in row


def test_junit(blind):
    root = ElementTree.fromstring(render_junit([blind]))
    first = root.find(".//property")
    assert (first.get("name"), first.get("value")) == ("blind", REASON)
    assert root.find(".//system-out").text.startswith("NOT REFUTED, and could not have been")
    assert root.find(".//error") is None
    error = junit_case(blind, "case", fail_blind=True).find("error")
    assert error.get("message").startswith(f"NOT REFUTED, and could not have been: {REASON}")


def test_nothing_found_is_neither_blind_nor_green(nothing_found):
    text = render_text(nothing_found)
    assert text.startswith("NOT REFUTED: Nothing was found in noisy_count")
    assert "could not have been" not in text
    assert render_panel(nothing_found).border_style == COLOURS[None]
    assert '<article class="measured"' in render_html(nothing_found)
    assert "| ⚪ |" in render_markdown([nothing_found])


def test_what_was_refuted_is_never_told_as_blind(make_result):
    """A stored file may hold anything."""
    text = render_text(make_result(blind=REASON))
    assert text.startswith("REFUTED: ")


@pytest.fixture
def untrusted_measurement(make_result):
    return make_result(None, health=(("drift", "the share of the event varies", True),))


def test_a_measurement_of_draws_that_cannot_be_trusted_says_so_first(untrusted_measurement):
    text = render_text(untrusted_measurement)
    assert text.startswith("MEASURED, but not to be trusted: The draws of noisy_count cannot be")
    assert "loses at least" not in text
    assert "Look at the remarks on the draws first" in text
    assert render_panel(untrusted_measurement).border_style == AMBER
    assert '<article class="inconclusive"' in render_html(untrusted_measurement)
    assert "MEASURED, but not to be trusted" in render_fragment(untrusted_measurement)
    assert "| ⚠️ |" in render_markdown([untrusted_measurement])
    error = junit_case(untrusted_measurement, "case").find("error")
    assert error.get("type") == "inconclusive"


def test_a_measurement_that_can_be_trusted_is_told_as_ever(make_result):
    remark = ("own-generator", "draws from a generator of its own", False)
    result = make_result(None, health=(remark,))
    assert render_text(result).startswith("MEASURED: noisy_count loses at least")
    assert '<article class="measured"' in render_html(result)
    assert junit_case(result, "case").find("error") is None
