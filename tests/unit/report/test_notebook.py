"""What a notebook shows."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.profile import Profile
from epsilometer.bounds.bands import Band
from epsilometer.inputs import Pair
from epsilometer.report.notebook import render_profile_fragment, render_scores_fragment
from epsilometer.result import HealthReport, Verdict

ATTACK = "</td><script>alert(1)</script>\"'\x1b"


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_the_fragment_says_what_the_report_says(make_result, verdict):
    fragment = make_result(verdict)._repr_html_()
    assert "1.987" in fragment
    assert "4,000 of 10,000 draws (40%)" in fragment
    assert "<style" not in fragment
    assert fragment.count("<div") == fragment.count("</div")


def test_hostile_values_are_text(make_result):
    fragment = make_result(
        pair=Pair(ATTACK, "x" * 1_000_000), event=ATTACK, settings={"mechanism": ATTACK}
    )._repr_html_()
    assert "<script" not in fragment
    assert "\x1b" not in fragment
    assert len(fragment) < 10_000


def test_without_a_witness(make_result):
    assert "confidence" in make_result(witness=False)._repr_html_()


def test_a_profile_shows_its_bounds_and_what_weakens_them():
    profile = Profile(
        band=Band(p_lower=(0.5,), q_upper=(0.1,)),
        confidence=0.95,
        samples_used=(5000, 6000),
        health=(HealthReport("drift", ATTACK, untrusted=False),),
        settings={"mechanism": ATTACK, "suppress": ["serial-correlation"]},
    )
    fragment = render_profile_fragment(profile)
    assert "ε at δ = 0.01</td>" in fragment
    assert "at least 1.609" in fragment  # ln 5
    assert "5,000 left, 6,000 right" in fragment
    assert "With the serial-correlation check switched off." in fragment
    assert "drift: " in fragment
    assert "<script" not in fragment
    assert "\x1b" not in fragment
    assert fragment.count("<div") == fragment.count("</div")


def test_scores_show_what_is_observed_apart_from_what_is_certified():
    audit = em.from_scores(np.arange(100) + 90.0, np.arange(100) * 1.0)
    fragment = render_scores_fragment(audit)
    assert f"{audit.auroc:.4g} observed, from" in fragment
    assert "observed 0.91" in fragment
    assert "100 held in, 100 held out" in fragment
    assert "95% confidence" in fragment
