"""Draws kept in a file come back exactly."""

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

import epsilometer as em
from epsilometer.engine.fingerprints import fingerprint
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.callables import failed_run
from epsilometer.mechanisms.drawing_log import current_log
from epsilometer.mechanisms.kept_draws import KeptLines, record_draws
from epsilometer.outputs import read_outputs

HOSTILE = [
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        -0.0,
        5e-324,
        0.1,
        2**53 + 1,
        2**70,
        -(2**63),
        True,
        False,
    ),
    *(
        "",
        "\ud800",
        "\u202e<script>",
        "a\nb",
        b"\xff\0",
        None,
        (1, 2.5),
        [1, [2]],
        {"a": (None, "x")},
        np.arange(3),
    ),
    *(np.float32(0.1), 1j),
]


def noisy(dataset, rng):
    value = dataset + rng.laplace()
    return (bool(value > 0), value) if rng.random() < 0.8 else None


def draw_pairs(dataset, n, rng):
    return rng.laplace(dataset, 1.0, (n, 2))


def without_provenance(result):
    data = result.to_dict()
    for key in ("seconds", "environment", "date", "identity"):
        del data[key]
    names = ("mechanism", "recipe", "recorded_to", "seeded_mechanism", "jobs")
    data["settings"] = {key: value for key, value in data["settings"].items() if key not in names}
    return json.dumps(data, sort_keys=True)


def test_every_kind_of_output_comes_back(tmp_path):
    outputs = read_outputs(HOSTILE)
    with record_draws(em.from_callable(noisy), [em.Pair(0, 1)], tmp_path / "d.jsonl") as kept:
        kept.keeper.keep(0, outputs)
        kept.keeper.keep(1, read_outputs([1.0]))
        kept.keeper.keep("met on the way", read_outputs([2.0]))
    (again,) = KeptLines(tmp_path / "d.jsonl", 0).pieces()
    assert fingerprint(again) == fingerprint(outputs)
    assert [dataclasses.replace(block, rows=None, columns=()) for block in again] == [
        dataclasses.replace(block, rows=None, columns=()) for block in outputs
    ]
    recording = em.from_recording(tmp_path / "d.jsonl")
    assert recording.sample("met on the way", 1, np.random.default_rng(0)).blocks[0].columns[
        0
    ].values.tolist() == [2.0]


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (noisy, "d.jsonl"),
        (em.from_batch(draw_pairs), "d.jsonl"),
        (em.from_batch(draw_pairs), "d.npz"),
    ],
)
@pytest.mark.parametrize(
    "inputs", [em.Pair(0, 2), [(0, 1), (1, 3), em.Pair(0, 0, equal=True)]], ids=["one", "many"]
)
@pytest.mark.parametrize("keywords", [{}, {"stop_early": True}], ids=str)
def test_an_audit_of_kept_draws_is_the_audit(tmp_path, mechanism, name, inputs, keywords):
    settings = {"samples": 3000, "seed": 3, **keywords}
    first = em.audit(mechanism, inputs, em.PureDP(0.5), record=tmp_path / name, **settings)
    kept = em.from_recording(tmp_path / name)
    again = em.audit(kept, claim=em.PureDP(0.5), **settings)
    assert without_provenance(first) == without_provenance(again)
    assert first.settings["recorded_to"].endswith(name)


class TurnedAway(Mechanism):
    """A service that fails now and then, and turns requests away for some inputs only."""

    name = "turned away"
    is_seeded = False
    chunk_size = 50

    def __init__(self, *turned_away):
        self.turned_away = turned_away
        self.on_error = "outcome"
        self._rng = np.random.default_rng(3)

    def sample(self, dataset, n, rng):
        values = self._rng.laplace(dataset, 1.0, n).round(1).tolist()
        values[0] = failed_run("Status500")
        is_turned_away = dataset in self.turned_away
        current_log().add(requests=n, retried=n // 2 if is_turned_away else 0, failed=1)
        return read_outputs(values)


def reported(result):
    names = ("on_error", "failed", "retried", "redrawn")
    facts = {name: result.settings[name] for name in names if name in result.settings}
    return facts, {report.name: report.untrusted for report in result.health}


@pytest.mark.parametrize("turned_away", [(0,), (0, 3), ()], ids=str)
def test_requests_that_were_sent_again_and_failures_are_kept(tmp_path, turned_away):
    """A recording is as trustworthy as the audit that made it."""
    inputs, claim = em.Pair(0, 3), em.PureDP(0.5)
    settings = {"samples": 600, "seed": 3}
    path = tmp_path / "d.jsonl"
    first = em.audit(TurnedAway(*turned_away), inputs, claim, record=path, **settings)
    assert min(reported(first)[0]["failed"]) > 0
    assert (
        reported(first)[1].get("retried-requests") is {0: None, 1: True, 2: False}[len(turned_away)]
    )

    recording = em.from_recording(path)
    assert reported(em.audit(recording, inputs, claim, **settings)) == reported(first)
    copied = tmp_path / "copy.jsonl"
    em.audit(recording, inputs, claim, record=copied, **settings)
    assert reported(em.audit(em.from_recording(copied), inputs, claim, **settings)) == reported(
        first
    )
    facts, reports = reported(em.compare(recording.left, recording.right, claim, seed=0))
    assert facts == reported(first)[0]
    assert reports.get("retried-requests") is reported(first)[1].get("retried-requests")


@pytest.mark.parametrize("name", ["d.jsonl", "d.npz"])
@pytest.mark.parametrize("keywords", [{}, {"stop_early": True}, {"method": "profile"}], ids=str)
def test_draws_that_were_lost_and_drawn_again_are_kept(tmp_path, name, keywords):
    """As when a worker dies: what replaces a lost draw counts against the finding here, too."""
    inputs, claim = em.Pair(0, 1), em.PureDP(0.5)
    rng = np.random.default_rng(1)
    with record_draws(em.from_callable(lambda x: x), [inputs], tmp_path / name) as kept:
        for dataset in (0, 1):
            kept.keeper.keep(dataset, read_outputs(rng.laplace(dataset, 1.0, 1000)))
        kept.keeper.lose(0, 40)
    recording = em.from_recording(tmp_path / name)
    settings = {"samples": 1000, "seed": 3, **keywords}
    result = em.audit(recording, claim=claim, **settings)
    facts, reports = reported(result)
    assert facts["redrawn"][0] >= 40
    assert facts["redrawn"][1] == 0
    assert reports["redrawn"] is ("method" in keywords)
    np.savez(tmp_path / "same.npz", **side_arrays(recording))
    fair = em.audit(em.from_recording(tmp_path / "same.npz", pair=inputs), claim=claim, **settings)
    assert result.lower_bound < fair.lower_bound or "method" in keywords

    compared = em.compare(recording.left, recording.right, claim, seed=0)
    assert reported(compared)[0]["redrawn"] == [40, 0]
    assert reported(compared)[1]["redrawn"] is True
    assert compared.verdict is em.Verdict.INCONCLUSIVE


def test_recordings_behind_each_other_keep_what_happened_in_both(tmp_path):
    settings = {"samples": 600, "seed": 3}
    lines = []
    for name in ("a.jsonl", "b.jsonl"):
        path = tmp_path / name
        em.audit(TurnedAway(0), em.Pair(0, 3), em.PureDP(0.5), record=path, **settings)
        lines += path.read_text().splitlines()[1 if lines else 0 :]
    both = tmp_path / "both.jsonl"
    both.write_text("\n".join(lines) + "\n")
    recording = em.from_recording(both)
    facts, reports = reported(em.compare(recording.left, recording.right, em.PureDP(0.5), seed=0))
    single = em.from_recording(tmp_path / "a.jsonl")
    of_one, _ = reported(em.compare(single.left, single.right, em.PureDP(0.5), seed=0))
    assert facts["retried"] == [2 * n for n in of_one["retried"]]
    assert reports["retried-requests"] is True


def side_arrays(recording):
    """The outputs of both sides, as arrays."""
    sides = {"left": recording.left, "right": recording.right}
    return {
        name: np.concatenate([piece.blocks[0].columns[0].values for piece in side.pieces()])
        for name, side in sides.items()
    }


def test_draws_of_worker_processes_are_kept(tmp_path):
    entry = em.zoo.laplace(epsilon=2)
    settings = {"claim": em.PureDP(1.0), "samples": 200_000, "seed": 4}
    first = em.audit(entry, jobs=2, record=tmp_path / "d.npz", **settings)
    again = em.audit(em.from_recording(tmp_path / "d.npz"), **settings)
    assert without_provenance(first) == without_provenance(again)


def test_measurements_are_kept_too(tmp_path):
    first = em.measure(
        noisy, em.Pair(0, 2), em.PureDP, samples=1000, seed=1, record=str(tmp_path / "d.jsonl")
    )
    again = em.measure(
        em.from_recording(tmp_path / "d.jsonl"), None, em.PureDP, samples=1000, seed=1
    )
    assert without_provenance(first) == without_provenance(again)


def test_inputs_that_json_cannot_hold(tmp_path):
    inputs = em.Pair({1, 2}, frozenset({3}))
    first = em.audit(
        _size, inputs, em.PureDP(0.5), samples=500, seed=1, record=tmp_path / "d.jsonl"
    )
    again = em.audit(
        em.from_recording(tmp_path / "d.jsonl"), inputs, em.PureDP(0.5), samples=500, seed=1
    )
    assert first.lower_bound == again.lower_bound


def _size(dataset, rng):
    return len(dataset) + rng.laplace()


def test_refusals(tmp_path):
    def audit(record, mechanism=noisy):
        return em.audit(
            mechanism, em.Pair(0, 1), em.PureDP(1.0), samples=100, seed=0, record=record
        )

    with pytest.raises(em.InputError, match=r"must end in \.jsonl"):
        audit(tmp_path / "d.csv")
    with pytest.raises(em.InputError, match="existing folder"):
        audit(tmp_path / "no" / "d.jsonl")
    with pytest.raises(em.InputError, match=r"use record=….jsonl"):
        audit(tmp_path / "d.npz")


def test_what_was_changed_is_refused_by_line(tmp_path):
    path = tmp_path / "d.jsonl"
    em.audit(noisy, em.Pair(0, 1), em.PureDP(9.0), samples=600, seed=0, record=path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:50], *lines[2:]]))
    with pytest.raises(em.InputError, match="line 2: not a chunk of draws"):
        em.audit(em.from_recording(path), claim=em.PureDP(9.0), samples=600, seed=0)
    path.write_text(
        "\n".join(
            [
                lines[0].replace('"epsilometer_recording": 1', '"epsilometer_recording": 9'),
                *lines[1:],
            ]
        )
    )
    with pytest.raises(em.InputError, match="format that this version does not read"):
        em.from_recording(path)


@pytest.mark.parametrize("name", ["draws.jsonl", "draws.npz"])
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.longdouble, np.int64, np.uint64])
def test_long_and_short_numbers_are_kept_as_they_were(tmp_path, name, kind):
    def batch(x, n, rng):
        if kind in (np.int64, np.uint64):
            return (np.uint64(17 * 10**17) + rng.integers(0, 2 + x, n, dtype=np.uint64)).astype(
                kind
            )
        return rng.normal(size=n).astype(np.float16).astype(kind)

    settings = {"samples": 400, "seed": 3, "representation": "bits"}
    first = em.audit(
        em.from_batch(batch), em.Pair(0, 1), em.PureDP(1.0), record=tmp_path / name, **settings
    )
    again = em.audit(em.from_recording(tmp_path / name), claim=em.PureDP(1.0), **settings)
    assert (first.lower_bound, first.verdict) == (again.lower_bound, again.verdict)
    assert first.witness.event.to_dict() == again.witness.event.to_dict()


def failing(error, after):
    """A mechanism that fails after so many calls."""
    calls = []

    def fail(dataset, rng):
        calls.append(dataset)
        if len(calls) > after:
            raise error
        return rng.laplace()

    return fail


@pytest.mark.parametrize("name", ["d.jsonl", "d.npz"])
@pytest.mark.parametrize("keywords", [{}, {"stop_early": True}], ids=str)
class TestAnOldRecording:
    """Stays until the new one is complete."""

    @pytest.fixture
    def old(self, tmp_path, name):
        path = tmp_path / name
        em.audit(em.zoo.laplace(), samples=100, seed=0, record=path)
        return path

    @pytest.mark.parametrize("after", [0, 300])
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_survives_an_error(self, old, keywords, error, after):
        content = old.read_bytes()
        with pytest.raises((em.MechanismError, error)):
            em.audit(
                failing(error, after),
                em.Pair(0, 1),
                em.PureDP(1.0),
                record=old,
                samples=500,
                seed=0,
                **keywords,
            )
        assert old.read_bytes() == content
        assert [*old.parent.iterdir()] == [old]

    def test_survives_a_kill(self, old, keywords):
        content = old.read_bytes()
        code = (
            "import os, sys, epsilometer as em\ncalls = []\n"
            "def f(x, rng):\n    calls.append(x)\n    len(calls) < 300 or os.kill(os.getpid(), 9)\n"
            "    return rng.laplace()\n"
            f"em.audit(f, em.Pair(0, 1), em.PureDP(1.0), record=sys.argv[1], samples=500, seed=0, **{keywords})\n"
        )
        assert (
            subprocess.run([sys.executable, "-c", code, old], check=False).returncode
            == -signal.SIGKILL
        )
        assert old.read_bytes() == content
        assert not hasattr(os, "O_TMPFILE") or [*old.parent.iterdir()] == [old]

    def test_survives_a_full_disk(self, old, keywords):
        content, limits = old.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large") as caught:
                em.audit(em.zoo.laplace(), record=old, samples=9000, seed=0, **keywords)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.filename == str(old)
        assert old.read_bytes() == content
        assert [*old.parent.iterdir()] == [old]

    def test_is_replaced_where_it_was(self, old, keywords, monkeypatch, name):
        content = old.read_bytes()
        monkeypatch.chdir(old.parent)

        def wandering(dataset, rng):
            os.chdir("/")
            return rng.laplace()

        result = em.audit(
            wandering, em.Pair(0, 1), em.PureDP(1.0), record=name, samples=500, seed=0, **keywords
        )
        assert old.read_bytes() != content
        assert result.settings["recorded_to"] == name
        assert em.from_recording(old).name


def test_an_old_recording_can_be_the_one_that_is_read(tmp_path):
    path = tmp_path / "d.jsonl"
    em.audit(noisy, em.Pair(0, 2), em.PureDP(1.0), samples=300, seed=0, record=path)
    content = path.read_bytes()
    em.audit(em.from_recording(path), claim=em.PureDP(1.0), samples=300, seed=0, record=path)
    assert len(path.read_bytes().splitlines()) == len(content.splitlines())
