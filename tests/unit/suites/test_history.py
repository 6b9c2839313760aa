"""The file that remembers."""

import os
import resource
import sqlite3

import pytest

from epsilometer.errors import InputError
from epsilometer.result import Verdict
from epsilometer.suites import History


@pytest.fixture
def path(tmp_path):
    return tmp_path / "h.sqlite"


def test_what_is_recorded_is_there_in_the_next_process(path, make_result):
    with History(path) as history:
        run = history.open_run()
        history.record(run, "a", "d", make_result(Verdict.REFUTED, 1.5), None)
        history.record(run, "b", "d", None, "no such module")
    with History(path) as history:
        known = history.outcomes(run)
        assert list(known) == ["a", "b"]
        assert known["a"].result.lower_bound == 1.5
        assert (known["b"].result, known["b"].error) == (None, "no such module")


def test_a_broken_off_run_goes_on_and_a_finished_one_does_not(path):
    with History(path) as history:
        assert [history.open_run(), history.open_run()] == [1, 1]
        assert history.open_run(fresh=True) == 2
        history.close_run(2)
        assert history.open_run() == 3
        assert (history.run_before(3), history.run_before(2)) == (2, None)


def open_night(history, digest="d", confidence=0.95, **how):
    return history.open_family_run(confidence, digest, fresh_seed=lambda: 7, **how)


def test_a_family_run_resumes_only_as_it_was(path):
    with History(path) as history:
        number, terms = open_night(history)
        assert (number, terms.night, terms.failure_probability) == (1, None, pytest.approx(0.05))
        assert open_night(history) == (1, terms)
        assert open_night(history, digest="other code")[0] == 2
        assert open_night(history, digest="other code", confidence=0.9)[0] == 3
        assert history.open_run() == 4  # a run without a family is another thing
        assert open_night(history)[0] == 5
        assert open_night(history, fresh=True)[0] == 6


def test_nights_are_counted_from_their_start(path):
    with History(path) as history:
        with pytest.raises(InputError, match=r"no night on record.*--night 1"):
            open_night(history, counts_nights=True)
        assert history.runs() == []
        assert open_night(history, counts_nights=True, night=1)[1].night == 1
    with History(path) as history:  # it was killed at once, and its night still counts
        assert open_night(history, counts_nights=True)[:1] == (1,)
        assert open_night(history, counts_nights=True, fresh=True)[1].night == 2
        history.close_run(2)
        for used in (1, 2):
            with pytest.raises(InputError, match="last night on record is 2"):
                open_night(history, counts_nights=True, night=used)
        assert open_night(history, counts_nights=True, digest="other code")[1].night == 3
        assert open_night(history, counts_nights=True, night=7, confidence=0.5)[1].night == 7
        assert open_night(history)[1].night is None
        assert open_night(history, counts_nights=True)[1].night == 8
        assert [run.night for run in history.runs()] == [8, None, 7, 3, 2, 1]


def test_starts_are_counted(path):
    with History(path) as history:
        run = history.open_run()
        for name in ("a", "b", "a"):
            history.note_start(run, name)
        assert history.begun_again(run) == {"a"}
        assert history.begun_again(run + 1) == set()


def test_a_history_without_families_is_taken_on(path):
    with History(path) as history:
        history.close_run(history.open_run())
    base = sqlite3.connect(path)
    base.executescript("DROP TABLE families; DROP TABLE starts;")
    base.close()
    with History(path, must_exist=True) as history:
        assert [run.night for run in history.runs()] == [None]
    with History(path) as history:
        assert open_night(history, counts_nights=True, night=1)[0] == 2


def test_runs_and_bounds(path, make_result):
    with History(path) as history:
        for bound in (0.5, 0.7):
            run = history.open_run()
            history.record(run, "a", "d", make_result(bound=bound), None)
            history.close_run(run)
        assert [(run.number, run.words) for run in history.runs()] == [
            (2, ("not refuted",)),
            (1, ("not refuted",)),
        ]
        assert [row[3] for row in history.bounds("a")] == [0.5, 0.7]
        assert history.bounds("b") == []


def test_a_second_process_waits_outside(path):
    with (
        History(path),
        pytest.raises(InputError, match=f"in use by process {os.getpid()}: another run"),
    ):
        History(path)
    with History(path), History(path, must_exist=True) as reader:
        assert reader.runs() == []


def test_whoever_writes_for_long_is_named_after_a_while(path):
    with History(path):
        writer = sqlite3.connect(path)
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="is in use: another run"):
            History(path, must_exist=True, patience=0.1)
        writer.close()


def test_a_full_disk_is_named_and_loses_nothing(path, make_result):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with History(path) as history:
        run = history.open_run()
        history.record(run, "a", "d", make_result(), None)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
        try:
            with pytest.raises(InputError, match=r"the history .* cannot be used"):
                history.record(run, "b" * 100_000, "d", make_result(), None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with History(path) as history:
        assert history.outcomes(run)["a"].result is not None


def test_a_result_of_another_version_is_an_error_not_an_end(path, make_result):
    with History(path) as history:
        run = history.open_run()
        history.record(run, "a", "d", make_result(), None)
    base = sqlite3.connect(path)
    base.execute("UPDATE outcomes SET result = '{}'")
    base.commit()
    base.close()
    with History(path) as history:
        outcome = history.outcomes(run)["a"]
    assert outcome.result is None
    assert "cannot be read" in outcome.error
    assert outcome.digest == ""


def test_other_files_are_refused(path, tmp_path):
    path.write_bytes(b"not a database at all, but long enough to look like one" * 40)
    with pytest.raises(InputError, match="not a history"):
        History(path)
    other = tmp_path / "other.sqlite"
    base = sqlite3.connect(other)
    base.execute("CREATE TABLE t (x)")
    base.commit()
    base.close()
    with pytest.raises(InputError, match="not a history"):
        History(other)
    with pytest.raises(InputError, match="no history yet"):
        History(tmp_path / "missing.sqlite", must_exist=True)
    with pytest.raises(InputError, match="cannot be written"):
        History(tmp_path / "missing" / "h.sqlite")
