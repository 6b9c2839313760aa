"""What was switched off, left out or forgiven is in the settings of the result."""

import inspect
import json

import numpy as np
import pytest

import epsilometer as em
from _epsilometer_pytest import Auditor

PAIR = em.Pair(0, 1)
CLAIM = em.PureDP(0.5)


@em.from_batch
def in_order(x, n, rng):
    """A batch that is sorted, so that its outputs depend on each other."""
    return np.sort(rng.normal(size=n))


def test_checks_that_are_switched_off():
    result = em.audit(
        in_order, PAIR, CLAIM, samples=2000, seed=0, suppress=["serial-correlation", "drift"]
    )
    assert result.settings["suppress"] == ["drift", "serial-correlation"]
    assert "serial-correlation" in result.settings["silenced"]
    stored = json.loads(result.to_json())["settings"]
    assert (stored["suppress"], stored["silenced"]) == (
        result.settings["suppress"],
        result.settings["silenced"],
    )
    assert "with           the checks drift and serial-correlation switched off" in str(result)


def test_a_check_that_has_nothing_to_say():
    result = em.measure(em.zoo.dp_mean(), samples=1000, seed=0, suppress="drift")
    assert result.settings["suppress"] == ["drift"]
    assert "silenced" not in result.settings
    assert (
        not {"suppress", "on_error", "silenced"}
        & em.measure(em.zoo.dp_mean(), samples=1000, seed=0).settings.keys()
    )


def test_every_entry_records_what_was_suppressed(rng):
    left, right = rng.normal(size=(2, 500))
    many = {"samples": 2000, "seed": 0, "suppress": ["constant"]}
    source = em.from_batch(lambda x, n, rng: rng.normal(x, size=n))
    results = [
        em.compare(left, right, CLAIM, seed=0, suppress=["constant"]),
        em.audit(source, PAIR, CLAIM, **many, stop_early=True),
        em.audit(source, [PAIR, em.Pair(0, 2)], CLAIM, **many),
        em.audit(source, em.domains.Number(0, 1), CLAIM, **many),
        em.profile(source, PAIR, **many),
    ]
    assert [result.settings["suppress"] for result in results] == [["constant"]] * 5


def flaky(x, rng):
    if rng.random() < 0.1:
        raise ValueError("no answer")
    return x + rng.laplace()


def test_failures_that_count_as_outcomes():
    source = em.from_callable(flaky, on_error="outcome")
    result = em.audit(source, PAIR, CLAIM, samples=500, seed=0)
    assert result.settings["on_error"] == "outcome"
    for again in (
        em.replay(result, source, samples=500, seed=1),
        em.audit(em.repeated(source, 2), PAIR, CLAIM, samples=500),
    ):
        assert again.settings["on_error"] == "outcome"
    assert (
        "on_error"
        not in em.audit(
            em.from_callable(lambda x, rng: rng.normal()), PAIR, CLAIM, samples=500
        ).settings
    )


def test_failures_of_recorded_runs(tmp_path):
    source = em.from_callable(flaky, on_error="outcome")
    em.audit(source, PAIR, CLAIM, samples=500, seed=0, record=tmp_path / "kept.jsonl")
    result = em.audit(em.from_recording(tmp_path / "kept.jsonl"), claim=CLAIM, samples=500, seed=0)
    assert result.settings["on_error"] == "outcome"


def test_exit_statuses(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho $RANDOM$1\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    source = em.from_command([str(program), "{dataset}"], statuses=[3, 0])
    assert em.measure(source, PAIR, samples=20, seed=0).settings["statuses"] == [0, 3]


def test_columns(tmp_path, rng):
    path = tmp_path / "draws.csv"
    rows = [
        f"{side},{value},{value}" for side in ("left", "right") for value in rng.normal(size=100)
    ]
    path.write_text("\n".join(["side,count,city", *rows]), encoding="utf-8")
    recording = em.from_recording(path, columns=["count"], pair=PAIR)
    assert em.audit(recording, claim=CLAIM, samples=100, seed=0).settings["columns"] == ["count"]
    assert em.compare(recording.left, recording.right, CLAIM, seed=0).settings["columns"] == [
        "count"
    ]
    assert (
        "columns"
        not in em.audit(
            em.from_recording(path, pair=PAIR), claim=CLAIM, samples=100, seed=0
        ).settings
    )


def test_a_replay_keeps_what_its_claim_is_about():
    source = em.from_batch(lambda x, n, rng: rng.normal(x, size=n))
    result = em.audit(
        source, em.Pair(0, 2), CLAIM, samples=500, seed=0, distance=2, representation="bits"
    )
    again = em.replay(result, source, samples=500, seed=1)
    assert (again.settings["distance"], again.settings["representation"]) == (2, "bits")


# Where each keyword leaves its trace in a result. Whoever adds a keyword decides here whether it is recorded in the
# settings under a name, is recorded elsewhere in the result, or cannot weaken a reading.
IN_SETTINGS = {
    "samples": "samples",
    "confidence": "confidence",
    "seed": "seed",
    "method": "method",
    "options": "options",
    "stop_early": "method",  # sequential
    "jobs": "jobs",
    "engine": "engine",
    "suppress": "suppress",
    "max_seconds": "max_seconds",
    "representation": "representation",
    "distance": "distance",
    "record": "recorded_to",
    "features": "features",
    "on_error": "on_error",
    "statuses": "statuses",
    "columns": "columns",
    "answer": "answer",
    "dataset_format": "dataset_format",
    "constant": "constant",
    "retries": "retried",  # what was sent again, not what might have been
    "checkpoint": "redrawn",  # what was lost and drawn again
    "result": "replay_of",
    "mechanism": "mechanism",
    "function": "mechanism",
    "argv": "mechanism",
    "url": "mechanism",
    "path": "mechanism",
    "right": "mechanism",
    "left_outputs": "recording",
    "right_outputs": "recording",
}
ELSEWHERE = {
    "inputs": "the pair of the witness",
    "pair": "the pair of the witness",
    "claim": "the claim",
    "notion": "the claim",
    "fixed": "the claim",
    "settings": "passed on to audit",
    "self": "the fixture",
}
HARMLESS = {
    "progress": "shows how far it is",
    "allow_inconclusive": "whether a test goes on; the verdict stays",
    "fail_blind": "whether a test goes on; the verdict stays",
    "name": "of the mechanism in reports",
    "batch": "how outputs are asked for; which mechanism it is says the digest of its code",
    "stdin": "how the program gets its input; part of the digest",
    "env": "part of the digest",
    "cwd": "part of the digest",
    "headers": "part of the digest; they may hold secrets",
    "body": "how the service gets its input; part of the digest",
    "timeout": "whoever exceeds it has failed, which ends the audit or counts as an outcome (on_error)",
    "max_output": "likewise",
    "pause": "only how long to wait",
    "chunk_size": "how draws are put into chunks, which the checks take into account",
    "header": "which rows of a file are outputs; what is no output is refused",
    "max_output_bytes": "what needs more memory is refused",
}
ENTRIES = [
    *(em.audit, em.measure, em.compare, em.profile, em.replay),
    *(em.from_callable, em.from_batch, em.from_command, em.from_http, em.from_recording),
    Auditor.assert_private,
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
def test_every_keyword_is_on_record_or_harmless(entry):
    known = {**IN_SETTINGS, **ELSEWHERE, **HARMLESS}
    assert len(known) == len(IN_SETTINGS) + len(ELSEWHERE) + len(HARMLESS)
    new = [name for name in inspect.signature(entry).parameters if name not in known]
    assert not new, (
        f"{entry.__name__}({new[0]}=…): record it in the settings, or say here why it is harmless"
    )
