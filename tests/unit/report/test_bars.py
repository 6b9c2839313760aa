"""The numbers behind the bars."""

import math

import pytest

from epsilometer.bounds import Counts
from epsilometer.report.bars import Mark, claim_scale, nice_end, share_bars
from epsilometer.result import Verdict


@pytest.mark.parametrize(
    ("value", "end"),
    [(0.0, 1.0), (0.3, 0.3), (0.31, 0.4), (1.0, 1.0), (1.01, 1.5), (9.4, 10.0), (0.00042, 0.0005)],
)
def test_nice_end(value, end):
    assert nice_end(value) == pytest.approx(end)


def test_scale_of_a_refutation(make_result):
    scale = claim_scale(make_result(bound=1.5))
    assert (scale.end, scale.bound.at) == ("2", 0.75)
    assert scale.claim.at == 0.5
    assert scale.detectable is None
    assert "certified: ε ≥ 1.5" in scale.description


def test_scale_of_a_measurement_has_no_claim(make_result):
    assert claim_scale(make_result(None)).claim is None


def test_scale_of_what_was_not_refuted_shows_what_would_have_been(make_result):
    scale = claim_scale(make_result(Verdict.NOT_REFUTED, bound=0.9, detectable=1.2))
    assert scale.detectable.at == pytest.approx(0.8)
    assert (
        claim_scale(make_result(Verdict.NOT_REFUTED, bound=0.9, detectable=math.inf)).detectable
        is None
    )


def test_shares_and_what_the_claim_allows(make_result):
    result = make_result()
    bars = share_bars(result.witness, result)
    assert bars.end == "40%"
    assert [bar.share.at for bar in bars.bars] == pytest.approx([1.0, 0.125])
    assert [bar.certified.at for bar in bars.bars] == pytest.approx([0.3891 / 0.4, 0.0551 / 0.4])
    assert bars.likelier == 0
    assert bars.allowed.label == "the claim allows 15%"


def test_an_allowance_that_would_flatten_the_bars_is_left_out(make_result):
    result = make_result(Verdict.NOT_REFUTED, counts=(Counts(0, 10_000), Counts(0, 10_000)))
    bars = share_bars(result.witness, result)
    assert all(0.0 <= bar.share.at <= 1.0 for bar in bars.bars)


@pytest.mark.parametrize(("at", "anchor"), [(0.0, "start"), (0.5, "middle"), (0.95, "end")])
def test_labels_stay_inside(at, anchor):
    assert Mark(at, "").anchor == anchor
