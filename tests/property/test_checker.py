"""The checker never turns an honest result down, and never accepts a forged one.

`python -m benchmarks.tampering` does the same with 500 honest and 2000 forged results.
"""

import functools
import zlib

import numpy as np
import pytest
from benchmarks.forgeries import FORGERIES, UNKNOWABLE, forge
from benchmarks.honest_results import kinds, stored
from benchmarks.tampering import run_tampering

import epsilometer as em

KINDS = {kind.name: kind for kind in kinds()}
# All entries, methods, settings and endings, and every fourth combination of claim, output and method:
# `make sound` and the command above run all of them.
PLAIN = ("auto, ", "events, ", "profile, ", "sequential, ", "outputs: ", "representation ")
TRIED = [name for number, name in enumerate(KINDS) if number % 4 == 0 or not name.startswith(PLAIN)]
# What is forged first; the others if a kind of forgery applies to none of these.
FORGED = [
    "outputs: dependent",
    "events, pure, leaky",
    "events, pure, private",
    "events, approx, leaky",
    "representation all, auto, pure",
    "sequential, pure, leaky",
    "sequential, approx, private",
    "sequential, gaussian, leaky",
    "profile, pure, leaky",
    "profile, gaussian, private",
    "renyi-bet, renyi",
    "renyi-bet, zcdp",
    "measure pure",
    "measure pure, stop_early",
    "local",
    "random search, near the claim",
    "random search, refuted",
    "search with a failed certificate",
    "compare gaussian",
    "replay pure",
]
# Forgeries of each kind, each of another result.
PER_KIND = 2
# A search whose result may have several certificates, and how many seeds of it are tried.
SEVERAL = "search with a failed certificate"
MORE_SEEDS = 40


@functools.cache
def honest(name):
    """An honest result of a kind, made once."""
    return stored(KINDS[name].make(seed=zlib.crc32(name.encode()) % 10_000))


@pytest.mark.parametrize("name", TRIED)
def test_honest_results_are_never_turned_down(name):
    check = em.verify(honest(name))
    assert check.holds is KINDS[name].holds, check.reason


def _forged(changes, kind):
    """Some forgeries of a kind, with the names of what they were made from."""
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    found = []
    others = [name for name in TRIED if name not in FORGED]
    for name in [*rng.permutation(FORGED), *others]:
        document = forge(honest(str(name)), changes[kind], rng)
        if document is not None:
            found.append((name, document))
        if len(found) == PER_KIND or (found and name in others):
            break
    # A search may end at its first certificate; another seed of it has several.
    seed = 0
    while not found and seed < MORE_SEEDS:
        document = forge(stored(KINDS[SEVERAL].make(seed=seed)), changes[kind], rng)
        if document is not None:
            found.append((SEVERAL, document))
        seed += 1
    assert found, "this forgery applies to nothing"
    return found


@pytest.mark.parametrize("kind", FORGERIES)
def test_forged_results_never_hold(kind):
    for source, document in _forged(FORGERIES, kind):
        assert em.verify(document).holds is not True, source


@pytest.mark.parametrize("kind", UNKNOWABLE)
def test_what_no_file_betrays_is_what_the_documentation_lists(kind):
    assert any(em.verify(document).holds is True for _, document in _forged(UNKNOWABLE, kind))


def test_both_counts_in_one_call():
    outcome = run_tampering(honest=3, forged=0, seed=1)
    assert outcome.honest.holds == 3
    assert not outcome.mistakes
    assert "honest, exact" in outcome.table()


# What was reproduced before it was mended, by name.


def test_untrusted_draws_decide_nothing_however_certain_the_event():
    document = honest("outputs: dependent")
    assert document["verdict"] == "inconclusive"
    assert em.verify(document).holds is True
    assert em.verify({**document, "verdict": "refuted"}).holds is False


@pytest.mark.parametrize(
    "name", ["search beyond the domain", "search out of time", "search with a failed certificate"]
)
def test_a_certificate_without_a_finding_is_paid_for(name):
    document = honest(name)
    first = document["findings"][0]
    if name != "search beyond the domain":
        assert len(first["details"]["paid"]) > len(document["findings"])
    assert em.verify(document).holds is True
    first["details"]["paid"].append(["certificate of trial 99", 1.0])
    try:
        assert em.verify(document).holds is False
    finally:
        first["details"]["paid"].pop()


def test_out_of_time_after_the_pilot():
    document = honest("out of time after the pilot")
    assert document["witness"]["left_counts"] == [0, 0]
    assert em.verify(document).holds is True


FACTS = {
    "with the drift check switched off": {"suppress": ["drift"]},
    "with the drift and repeats checks switched off": {"suppress": ["drift", "repeats"]},
    "failed runs count as outcomes": {"on_error": "outcome"},
    "4 runs on the left and 1 on the right failed and counted as outcomes": {"failed": [4, 1]},
    "12 requests on the left and 3 on the right were sent again": {"retried": [12, 3]},
    "5 draws on the left and 0 on the right were lost and drawn again": {"redrawn": [5, 0]},
    "what its features compute is not checked": {"features": {"name": "f"}},
    "the inputs are 3 neighbouring steps apart": {"distance": 3},
    "only the columns a and b were looked at": {"columns": ["a", "b"]},
}


@pytest.mark.parametrize("fact", FACTS)
def test_what_weakens_the_reading_is_repeated(fact):
    document = honest("outputs: numbers")
    plain = em.verify(document)
    weakened = em.verify({**document, "settings": {**document["settings"], **FACTS[fact]}})
    assert weakened.holds is True
    assert weakened.reason == f"{plain.reason}, {fact}"


def test_a_blind_audit_is_said_to_mean_little():
    document = honest("too few draws for the claim")
    assert document["blind"]
    check = em.verify(document)
    assert check.holds is True
    assert f"which means little: {document['blind']}" in check.reason


def test_what_is_no_result_is_named():
    scores = em.from_scores(np.arange(60.0), np.arange(60.0))
    for thing in (scores.check(em.PureDP(1.0)), 3, None, [1]):
        check = em.verify(thing)
        assert check.holds is None
        assert f"no result of an audit but a {type(thing).__name__}" in check.reason


def _with_rows(document, chose, proved):
    entry = {"digest": "", "chose": chose, "proved": proved}
    draws = [{**entry, "input": side} for side in ("left", "right")]
    return {**document, "settings": {**document["settings"], "recording": {"draws": draws}}}


def test_recorded_rows_that_chose_prove_nothing():
    document = honest("outputs: numbers")
    trials = document["witness"]["left_counts"][1]
    fair = em.verify(_with_rows(document, [[0, 450]], [[450, 450 + trials]]))
    assert fair.holds is True
    assert f"rows 451 to {450 + trials} of the recorded draws" in fair.reason
    for chose, proved in (
        ([[0, 450]], [[449, 449 + trials]]),
        ([[0, 450]], [[450, 449 + trials]]),
        ([[0, 450], [500, 510]], [[450, 450 + trials]]),
    ):
        assert em.verify(_with_rows(document, chose, proved)).holds is False
