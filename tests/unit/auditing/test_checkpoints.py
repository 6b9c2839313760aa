"""Audits that are interrupted and go on come to the result of those that were left alone."""

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.checkpoints import FileJournal
from epsilometer.bounds import Counts
from epsilometer.engine import Folded
from epsilometer.engine.folding import TwoTallies
from epsilometer.mechanisms.callables import BatchMechanism
from epsilometer.outputs import read_outputs
from epsilometer.result import OnRequest
from epsilometer.storage.journal import stored_seed
from epsilometer.storage.tallies import (
    outputs_from_bytes,
    outputs_to_bytes,
    tally_from_data,
    tally_to_data,
)

PAIR = (0.0, 1.0)
STREAM = (2, 0, 0)


class Interrupted(Exception):
    pass


class Interrupter:
    """Stops the audit after so many outputs, as Ctrl-C does."""

    def __init__(self, after):
        self.left = after

    def advance(self, n):
        self.left -= n
        if self.left < 0:
            raise Interrupted


def noisy(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)


def mixed(dataset, rng):
    return [None, "word", 3, 2.5, (True, 1.0), float("nan")][int(rng.integers(6 if dataset else 5))]


def vectors(dataset, n, rng):
    return rng.laplace(dataset, 2.0, (n, 3))


def plain(result):
    """Without what the result would have rehearsed, which takes seconds to find out: `test_what_it_rehearses`."""
    data = replace(result, on_request=OnRequest()).to_dict()
    del data["seconds"], data["date"]
    return json.loads(json.dumps(data))


def findings(result):
    return [finding.to_dict() for finding in result.findings]


def audit_in_legs(path, run, every):
    """The result of a run that is interrupted after every so many outputs, a few more from leg to leg."""
    legs = 0
    while True:
        try:
            return run(checkpoint=path, progress=Interrupter(every * (1 + legs))), legs
        except Interrupted:
            legs += 1


def whole_and_in_legs(tmp_path, run, every):
    resumed, legs = audit_in_legs(tmp_path / "audit.journal", run, every)
    assert legs >= 2
    assert plain(resumed) == plain(run())
    return resumed


@pytest.mark.parametrize(
    ("mechanism", "samples", "every"),
    [
        (em.from_batch(noisy), 600_000, 131_072),
        (mixed, 4000, 700),
        (em.from_batch(vectors), 200_000, 65_536),
    ],
)
def test_outputs_of_every_kind(tmp_path, mechanism, samples, every):
    def run(**keywords):
        return em.audit(
            mechanism, PAIR, "eps=.5", samples=samples, seed=5, stop_early=False, **keywords
        )

    whole_and_in_legs(tmp_path, run, every)


@pytest.mark.parametrize(
    ("method", "claim", "options"),
    [
        ("events", "eps=.5", None),
        ("bits", "eps=1", None),
        ("renyi-bet", "eps=.2,order=2", None),
        ("renyi-floored", "eps=.2,order=2", None),
        ("local", "eps=.5", em.local.Options()),
        ("profile", "mu=.5", None),
    ],
)
def test_every_method(tmp_path, method, claim, options):
    def run(**keywords):
        settings = {"samples": 200_000, "seed": 5, "method": method, "options": options}
        return em.audit(em.from_batch(noisy), PAIR, claim, **settings, **keywords)

    whole_and_in_legs(tmp_path, run, 65_536)


@pytest.mark.rehearses
def test_what_it_rehearses(tmp_path):
    def run(**keywords):
        return em.audit(
            em.from_batch(noisy), PAIR, "eps=2", samples=600, seed=5, stop_early=False, **keywords
        )

    resumed, legs = audit_in_legs(tmp_path / "audit.journal", run, 300)
    assert legs >= 2
    assert resumed.detectable == run().detectable


def test_both_views(tmp_path):
    def run(**keywords):
        settings = {"samples": 200_000, "seed": 5, "representation": "all"}
        return em.audit(em.from_batch(noisy), PAIR, "eps=0.5", **settings, **keywords)

    assert len(whole_and_in_legs(tmp_path, run, 65_536).findings) == 2


def test_several_pairs(tmp_path):
    pairs = [em.Pair(0.0, 0.0, equal=True), (0.0, 1.0), (0.0, 0.1)]

    def run(**keywords):
        return em.audit(mixed, pairs, "eps=1", samples=6000, seed=5, method="events", **keywords)

    whole_and_in_legs(tmp_path, run, 900)


def test_a_search(tmp_path):
    def run(**keywords):
        finder = em.finders.Random(em.domains.Number(0, 1), trials=5, samples=2000, seed=3)
        return em.audit(em.from_batch(noisy), finder, "eps=3", samples=90_000, seed=5, **keywords)

    whole_and_in_legs(tmp_path, run, 20_000)


def test_measuring(tmp_path):
    def run(**keywords):
        return em.measure(
            em.from_batch(noisy), PAIR, em.PureDP, samples=300_000, seed=5, **keywords
        )

    whole_and_in_legs(tmp_path, run, 65_536)


def test_other_workers_may_go_on(tmp_path):
    path, mechanism = tmp_path / "audit.journal", em.zoo.laplace()
    keywords = {"samples": 400_000, "method": "events", "checkpoint": path}
    with pytest.raises(Interrupted):
        em.audit(mechanism, seed=5, progress=Interrupter(300_000), **keywords)
    resumed = em.audit(mechanism, jobs=2, **keywords)  # the seed is that of the file
    alone = em.audit(mechanism, samples=400_000, seed=5, method="events")
    assert findings(resumed) == findings(alone)


def test_without_a_seed_nothing_that_was_kept_is_drawn_again(tmp_path):
    rng = np.random.default_rng(1)
    calls = tmp_path / "calls"  # not in a list, which would be part of what the mechanism is

    def unseeded(dataset):
        with open(calls, "a", encoding="ascii") as file:
            file.write(".")
        return rng.laplace(dataset)

    def run(**keywords):
        return em.audit(unseeded, PAIR, "eps=1", samples=6000, seed=0, stop_early=False, **keywords)

    result, legs = audit_in_legs(tmp_path / "audit.journal", run, 1500)
    # Each leg loses the one chunk during which it was interrupted.
    assert legs >= 2
    assert 12_000 <= calls.stat().st_size <= 12_000 + 256 * legs
    assert result.samples_used == (6000, 6000)
    assert result.witness.left_counts.trials == result.witness.right_counts.trials


def test_it_is_over_when_it_is_over(tmp_path, monkeypatch):
    def run(**keywords):
        path = tmp_path / "audit.journal"
        return em.audit(
            em.from_batch(noisy),
            PAIR,
            "eps=1",
            samples=90_000,
            stop_early=False,
            checkpoint=path,
            **keywords,
        )

    first = run()
    monkeypatch.setattr(BatchMechanism, "sample", lambda *_: pytest.fail("drawn again"))
    assert plain(run()) == plain(first)
    assert stored_seed(tmp_path / "audit.journal") == first.settings["seed"]


def test_the_file_stays_small(tmp_path):
    path = tmp_path / "audit.journal"
    em.audit(
        em.from_batch(noisy),
        PAIR,
        "eps=1",
        samples=3_000_000,
        seed=0,
        stop_early=False,
        checkpoint=path,
    )
    training = 2 * 8 * 320_000
    assert path.stat().st_size < 1.1 * training + 200_000


def test_a_mechanism_that_fails_leaves_what_was_completed(tmp_path):
    path = tmp_path / "audit.journal"
    calls = tmp_path / "calls"  # not in a list, which would be part of what the mechanism is

    def fragile(dataset, rng):
        with open(calls, "a", encoding="ascii") as file:
            file.write(".")
        if calls.stat().st_size == 600:
            raise OSError("the line is down")
        return rng.laplace(dataset)

    def run():
        return em.audit(
            fragile, PAIR, "eps=1", samples=1000, seed=0, method="events", checkpoint=path
        )

    with pytest.raises(em.MechanismError, match="line is down"):
        run()
    resumed = run()
    assert calls.stat().st_size - 600 < 2000 - 256  # the first chunks were not drawn again
    alone = em.audit(fragile, PAIR, "eps=1", samples=1000, seed=0, method="events")
    assert findings(resumed) == findings(alone)


class TestBelonging:
    def run(self, path, **changed):
        settings = {
            "inputs": PAIR,
            "claim": "eps=1",
            "seed": 2,
            "samples": 2000,
            "method": "events",
        } | changed
        return em.audit(em.from_batch(noisy), checkpoint=path, **settings)

    @pytest.mark.parametrize(
        "changed",
        [
            {"claim": "eps=1.5"},
            {"confidence": 0.9},
            {"seed": 3},
            {"inputs": (0.0, 2.0)},
            {"samples": 3000},
            {"method": "local"},
            {"method": "auto", "representation": "all"},
        ],
    )
    def test_to_one_audit(self, tmp_path, changed):
        path = tmp_path / "audit.journal"
        self.run(path)
        with pytest.raises(em.InputError, match="belongs to another audit"):
            self.run(path, **changed)

    def test_not_to_one_that_stops_early(self, tmp_path):
        path = tmp_path / "early.journal"
        em.audit(
            em.from_batch(noisy),
            PAIR,
            "eps=1",
            samples=60,
            seed=2,
            stop_early=True,
            checkpoint=path,
        )
        with pytest.raises(em.InputError, match=r"belongs to another audit \(its .*method"):
            self.run(path)
        self.run(tmp_path / "audit.journal")
        with pytest.raises(em.InputError, match=r"belongs to another audit \(its .*method"):
            self.run(tmp_path / "audit.journal", method="sequential")

    def test_not_to_two_at_once(self, tmp_path):
        path = tmp_path / "audit.journal"
        first = FileJournal(path, {"seed": 1})
        for _ in range(2):  # to look who holds it does not make us let go of it
            with pytest.raises(em.InputError, match="in use by another audit of this process"):
                FileJournal(path, {"seed": 1})
        assert _other_process_opens(path) == f"in use by another audit, process {os.getpid()}"
        first.close()
        assert _other_process_opens(path) == "opened"
        FileJournal(path, {"seed": 1}).close()

    @pytest.mark.parametrize("stop_early", [False, True])
    def test_the_second_audit_is_told(self, tmp_path, stop_early):
        keywords = {
            "samples": 200,
            "seed": 2,
            "stop_early": stop_early,
            "checkpoint": tmp_path / "audit.journal",
        }
        told = []

        def nested(dataset, n, rng):
            if not told:
                told.append(None)
                with pytest.raises(em.InputError, match="in use by another audit"):
                    em.audit(em.from_batch(nested), PAIR, "eps=1", **keywords)
                told[0] = True
            return noisy(dataset, n, rng)

        em.audit(em.from_batch(nested), PAIR, "eps=1", **keywords)
        assert told == [True]

    def test_files_of_others(self, tmp_path):
        path = tmp_path / "audit.journal"
        path.write_bytes(b"some text, long enough to be none of ours")
        with pytest.raises(em.InputError, match="not a checkpoint"):
            self.run(path)
        path.unlink()
        sqlite3.connect(path).execute("CREATE TABLE about (thing TEXT)")
        with pytest.raises(em.InputError, match="cannot be used"):
            self.run(path)
        with pytest.raises(em.InputError, match="no folder"):
            self.run(tmp_path / "no" / "audit.journal")

    def test_a_new_file_may_be_empty(self, tmp_path):
        path = tmp_path / "audit.journal"
        path.touch()
        assert self.run(path, seed=None).samples_used == (2000, 2000)

    def test_a_file_that_was_killed_before_its_first_entry(self, tmp_path):
        path = tmp_path / "audit.journal"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE other (thing)")
        connection.execute("DROP TABLE other")
        connection.close()
        assert stored_seed(path) is None
        assert self.run(path, seed=None).samples_used == (2000, 2000)

    def test_no_recordings(self, tmp_path):
        path = tmp_path / "audit.journal"
        with pytest.raises(em.InputError, match="recording"):
            self.run(path, record=tmp_path / "draws.npz")
        np.savez(tmp_path / "both.npz", left=np.arange(50.0), right=np.arange(50.0))
        recording = em.from_recording(tmp_path / "both.npz")
        with pytest.raises(em.InputError, match="recording"):
            em.audit(recording, claim="eps=1", samples=50, method="events", checkpoint=path)


class TestFile:
    def folded(self, hits):
        folded = Folded()
        folded.add(Counts(hits, 10), 10, bytes(16))
        return folded

    def test_the_latest_sum_is_kept(self, tmp_path):
        journal = FileJournal(tmp_path / "file", {})
        folded = self.folded(3)
        journal.save(STREAM, folded)
        folded.add(Counts(1, 10), 10, bytes(range(16)))
        journal.save(STREAM, folded)
        journal.close()
        assert (
            FileJournal(tmp_path / "file", {}).resume(STREAM, Counts(0, 1)).groups == folded.groups
        )

    def test_what_was_added_by_half_is_not_kept(self, tmp_path):
        journal = FileJournal(tmp_path / "file", {})
        folded = self.folded(3)
        journal.save(STREAM, folded)
        journal._put_pending()
        journal._file.commit()
        folded.total, folded.is_whole = (
            Counts(4, 20),
            False,
        )  # interrupted here, before the chunk was counted
        journal.close()
        again = FileJournal(tmp_path / "file", {}).resume(STREAM, Counts(0, 1))
        assert (again.total, again.chunks) == (Counts(3, 10), 1)

    def test_another_proposal_is_refused(self, tmp_path):
        journal = FileJournal(tmp_path / "file", {})
        journal.check_same_proposal(0, (Counts(1, 5), Counts(2, 5)))
        journal.check_same_proposal(1, (Counts(3, 5), Counts(2, 5)))  # of another pair
        journal.check_same_proposal(0, (Counts(1, 5), Counts(2, 5)))
        with pytest.raises(em.InputError, match="another proposal"):
            journal.check_same_proposal(0, (Counts(1, 5), Counts(3, 5)))

    def test_spoiled_contents_are_told(self, tmp_path):
        journal = FileJournal(tmp_path / "file", {})
        journal.save(STREAM, self.folded(3))
        journal.close()
        connection = sqlite3.connect(tmp_path / "file")
        for total in (
            '{"hits": 3}',
            "[]",
            "{",
            '{"hits": [], "trials": 10}',
            '{"hits": 30, "trials": 10}',
        ):
            connection.execute("UPDATE folded SET total = ?", (total,))
            connection.commit()
            spoiled = FileJournal(tmp_path / "file", {})
            with pytest.raises(em.InputError):
                spoiled.resume(STREAM, Counts(0, 1))
            spoiled.close()


@dataclass(frozen=True)
class Several:
    counts: np.ndarray
    parts: tuple
    by_name: dict
    share: float
    exact: np.float64
    draws: object


class TestPacking:
    @pytest.mark.parametrize(
        "tally",
        [
            Counts(3, 7),
            TwoTallies(Counts(3, 7), Counts(1, 7)),
            np.arange(6, dtype=np.int64),
            np.array([[0.1, np.inf], [np.nan, -0.0]]),
            (1, 2.5, None, "x", True),
            [np.array([1.5])],
            {"a": 1, "b": np.array([True])},
            np.float64(0.1),
        ],
    )
    def test_round_trip(self, tally):
        again = tally_from_data(json.loads(json.dumps(tally_to_data(tally))), tally)
        assert type(again) is type(tally)
        np.testing.assert_equal(again, tally)

    def test_dataclasses_of_everything(self):
        draws = read_outputs([1.0, "a", (1, None)])
        tally = Several(np.arange(3), (Counts(1, 2), 3), {"x": 0.5}, 1.0, np.float64(2.0), draws)
        again = tally_from_data(json.loads(json.dumps(tally_to_data(tally))), tally)
        assert again.parts == tally.parts
        assert again.draws.blocks[1].columns[0].labels == draws.blocks[1].columns[0].labels
        assert tally_to_data(again) == tally_to_data(tally)

    def test_a_list_may_grow(self):
        assert tally_from_data([[3, 4], [5, 6]], [(1, 2)]) == [(3, 4), (5, 6)]

    @pytest.mark.parametrize("tally", [object(), {1: 2}, np.array(["a"]), np.array([object()]), 1j])
    def test_what_cannot_be_kept(self, tally):
        with pytest.raises(em.InputError, match="cannot be kept"):
            tally_to_data(tally)

    def test_arrays_of_objects_are_never_read(self):
        data = {"dtype": "|O", "shape": [1], "values": "AAAAAAAAAAA="}
        with pytest.raises(em.InputError):
            tally_from_data(data, np.array([1]))

    def test_outputs(self):
        outputs = read_outputs([1.0, "a", (1, None), float("nan"), "b", True])
        again = outputs_from_bytes(outputs_to_bytes(outputs))
        assert outputs_to_bytes(again) == outputs_to_bytes(outputs)


def _other_process_opens(path):
    code = (
        "import sys\nfrom epsilometer import InputError\nfrom epsilometer.storage.journal import JournalFile\n"
        "try:\n    JournalFile(sys.argv[1], {'seed': 1}).close(); print('opened')\n"
        "except InputError as error:\n    print(str(error).partition(' is ')[2])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
