"""The plain text says everything, in words, and nothing that a mechanism could use to mislead."""

import dataclasses
import math
import re

import numpy as np
import pytest

from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)
from epsilometer.inputs import Pair
from epsilometer.inputs.storing import StoredDigest
from epsilometer.outputs import Event, Partition
from epsilometer.report.html import render_html
from epsilometer.report.text import render_text
from epsilometer.report.wording import COMPARED_SAMPLES
from epsilometer.result import Verdict


def words(text):
    """Without line breaks and alignment."""
    return " ".join(text.split())


def test_a_refutation_tells_everything(make_result):
    text = words(render_text(make_result()))
    for part in (
        "REFUTED: noisy_count violates ε-differential privacy with ε = 1.",
        "ε is at least 1.987, but the claim allows only 1.",
        "The guarantee is exact",
        "probability of at most 5%",
        "Counterexample",
        "[0, 0]",
        "[0, 1]",
        "output ≥ 0.5",
        "4,000 of 10,000 draws (40%), probability at least 0.3891",
        "500 of 10,000 draws (5%), probability at most 0.0551",
        "14,000 left, 14,000 right, in 1.2 s",
        "nothing unusual",
        "seed 7 gives the same figures again",
        "epsilometer.replay(result, mechanism)",
    ):
        assert part in text


def test_not_refuted_says_what_would_have_been_refuted(make_result):
    text = words(render_text(make_result(Verdict.NOT_REFUTED, bound=0.97, detectable=1.03451)))
    assert text.startswith(
        "NOT REFUTED: No violation of ε-differential privacy with ε = 1 was found in noisy_count."
    )
    assert "ε is at least 0.97; the claim allows up to 1." in text
    assert "a true ε of 1.035 or more would have been refuted with 90% power" in text
    assert "does not prove the claim" in text
    assert "Strongest evidence" in text


def test_what_would_be_seen_names_the_kind_of_leak(make_result):
    result = make_result(
        Verdict.NOT_REFUTED, bound=0.97, detectable=1.03451, detectable_mass=0.000123
    )
    text = words(render_text(result))
    assert "leaks that are spread over the usual outputs: a true ε of 1.035 or more" in text
    assert "estimated with planted leaks" in text
    assert "an output that only one input gives" in text
    assert "power if its probability is 0.00013 or more, estimated with planted outputs" in text


def test_nothing_is_said_of_power_that_is_unknown(make_result):
    text = render_text(make_result(Verdict.NOT_REFUTED, bound=0.1, detectable=None))
    assert "would be seen" not in text


def test_spread_leaks_that_would_not_be_seen(make_result):
    text = words(render_text(make_result(Verdict.NOT_REFUTED, bound=0.1, detectable=math.inf)))
    assert "not even the largest planted one would have been refuted with 90% power" in text


@pytest.mark.parametrize(
    ("p_value", "sentence", "figure"),
    [
        (0.04, "at most once in 25 audits like this one", "p-value 0.04."),
        (3.1e-5, "at most once in 32,000 audits like this one", "p-value 3.1e-05."),
        (1e-163, "at most once in 10^163 audits like this one", "p-value 1e-163."),
        (5.8e-300, "at most once in 10^286 audits like this one", "p-value below 1e-286."),
    ],
)
def test_how_rare_the_counts_are_if_the_claim_is_true(make_result, p_value, sentence, figure):
    text = words(render_text(make_result(p_value=p_value)))
    assert f"If the claim were true, evidence as strong as this would come {sentence}." in text
    assert figure in text
    assert "probability of at most" not in text


def test_an_empty_event_is_said_to_be_none(make_result):
    result = make_result(Verdict.NOT_REFUTED)
    empty = Event(Partition(()), np.array([False]))
    witness = dataclasses.replace(result.witness, event=empty)
    finding = dataclasses.replace(result.findings[0], witness=witness)
    result = dataclasses.replace(result, findings=(finding,))
    sentence = "no set of outputs was found that distinguishes the inputs"
    assert f"event {sentence}" in words(render_text(result))
    page = render_html(result)
    assert sentence.capitalize() + "." in page
    assert "the outputs with" not in page


def test_inconclusive_shows_the_remarks(make_result):
    text = words(
        render_text(make_result(Verdict.INCONCLUSIVE, health=[("drift", "the share moved", True)]))
    )
    assert text.startswith("INCONCLUSIVE: The draws of noisy_count cannot be trusted")
    assert "drift: the share moved" in text
    assert "nothing unusual" not in text


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        (PureDP(0.0), "ε is at least 1.987."),
        (ApproxDP(0.0, 1e-5), "ε at δ = 1e-05 is at least 1.987."),
        (ApproxDeltaDP(0.5, 0.0), "δ at ε = 0.5 is at least 1.987."),
        (RenyiDP(2.0, 0.0), "ε at order 2 is at least 1.987."),
        (ZCDP(0.0), "ρ is at least 1.987."),
        (GaussianDP(0.0), "μ is at least 1.987."),
    ],
)
def test_a_measurement_says_at_least(make_result, claim, sentence):
    text = words(render_text(make_result(None, claim)))
    assert text.startswith("MEASURED: noisy_count loses at least this much")
    assert sentence in text
    assert "claim allows" not in text


@pytest.mark.parametrize("verdict", [*Verdict, None])
@pytest.mark.parametrize(
    "claim", [PureDP(1.0), ApproxDP(1.0, 1e-6), TradeOffDP(([0.0, 1.0], [1.0, 0.0]))]
)
def test_nothing_is_ever_called_private(make_result, verdict, claim):
    assert not re.search(
        r"\bprivate\b|\bpassed\b", render_text(make_result(verdict, claim)).lower()
    )


def test_a_bound_just_above_the_claim_is_seen_to_be_above(make_result):
    assert "at least 1.00001, but the claim allows only 1." in words(
        render_text(make_result(bound=1.0000123))
    )


def test_the_target_gives_the_command_to_replay(make_result):
    settings = {"mechanism": "f", "target": "my mod:f", "seed": 1, "batch": True}
    assert "epsilometer replay result.json 'my mod:f' --batch" in words(
        render_text(make_result(settings=settings))
    )


@pytest.mark.parametrize("recorded", [{"mechanism": COMPARED_SAMPLES}, {"kind": "recorded"}])
def test_a_recording_cannot_be_replayed(make_result, recorded):
    settings = {**recorded, "seed": 1, "left": "l.csv", "right": "r.csv"}
    text = words(render_text(make_result(settings=settings)))
    assert "the recorded mechanism violates" in text
    assert "recorded in l.csv" in text
    assert "replay" not in text


def test_a_mechanism_with_its_own_randomness_is_told(make_result):
    settings = {"mechanism": "f", "seed": 1, "seeded_mechanism": False, "pairs": 3}
    text = words(render_text(make_result(settings=settings)))
    assert "draws its own randomness" in text
    assert "over 3 pairs of inputs" in text


class Hostile:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "dataset",
    [
        "\x1b[31mred\x07\r\n\u202e\ud800",
        "x" * 1_000_000,
        list(range(1_000_000)),
        np.arange(1_000_000),
        {str(number): "\x00" * 1000 for number in range(1000)},
        Hostile(),
        StoredDigest("Thing", "\x1b" * 200, "ab" * 32),
    ],
    ids=["control", "long text", "long list", "array", "dict", "hostile repr", "digest"],
)
def test_hostile_values_are_cut_and_spelled_out(make_result, dataset):
    settings = {"mechanism": "\x1b]0;title\x07" * 1000, "seed": "\n\n"}
    health = [("drift", "\x1b[2J" + "y" * 1_000_000, True)]
    text = render_text(
        make_result(
            pair=Pair(dataset, 1), event="\x1b[H" * 100_000, settings=settings, health=health
        )
    )
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text) < 6000
    text.encode()


def test_a_result_without_a_witness(make_result):
    text = render_text(make_result(witness=False, guarantee="none: a guess"))
    assert "event" not in text
    assert "The guarantee is none: a guess." in words(text)
