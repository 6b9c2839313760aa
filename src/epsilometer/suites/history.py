"""The history of a suite: all of its runs and their outcomes, in one SQLite file."""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from epsilometer.environment import package_version
from epsilometer.errors import EpsilometerError, InputError
from epsilometer.result import AuditResult
from epsilometer.suites.family import Terms
from epsilometer.suites.outcomes import Outcome

__all__ = [
    "History",
    "RecordedBound",
    "Run",
]

# How long to wait for another process that writes, in seconds: a transaction of ours takes
# milliseconds.
_PATIENCE_SECONDS = 5.0
# "Epsi" in ASCII: marks the file as ours.
_APPLICATION_ID = 0x45707369
# The version of the tables below; a program refuses a history of another version.
_SCHEMA_VERSION = 1
_TABLES = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    began TEXT NOT NULL,
    ended TEXT,
    version TEXT NOT NULL
);
CREATE TABLE outcomes (
    run INTEGER NOT NULL REFERENCES runs (number),
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    finished TEXT NOT NULL,
    verdict TEXT NOT NULL,
    lower_bound REAL,
    claimed REAL,
    error TEXT,
    result TEXT,
    PRIMARY KEY (run, name)
);
"""
# The process that runs the suite, for the message to a second one.
_RECORD_HOLDER = """
CREATE TABLE IF NOT EXISTS holder (process INTEGER);
DELETE FROM holder;
INSERT INTO holder VALUES ({process});
"""
# The terms of runs that judge a family, and how often each audit of a run was started. These tables
# are added where they are missing: older histories lack them, and older programs ignore them.
_FAMILY_TABLES = """
CREATE TABLE IF NOT EXISTS families (
    run INTEGER PRIMARY KEY REFERENCES runs (number),
    confidence REAL NOT NULL,
    night INTEGER,
    seed TEXT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS starts (
    run INTEGER NOT NULL REFERENCES runs (number),
    name TEXT NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (run, name)
);
"""
_INSERT_RUN = "INSERT INTO runs (began, version) VALUES (?, ?)"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite.

    Attributes:
        number: counted from 1.
        began: the time at which it began, in UTC.
        ended: the time at which it ended; None while it runs, or if it was killed.
        words: the verdict of every audit.
        night: its number among the nights of a family; None if it is not one of them.
    """

    number: int
    began: str
    ended: str | None
    words: tuple[str, ...]
    night: int | None = None


class RecordedBound(NamedTuple):
    """The bound of one audit in one run.

    Attributes:
        run: the number of the run.
        finished: the time at which the audit ended, in UTC.
        verdict: as `Outcome.word` gives it.
        lower_bound: the certified bound; None if the audit failed.
        claimed: the claimed value; None if the audit failed.
    """

    run: int
    finished: str
    verdict: str
    lower_bound: float | None
    claimed: float | None


class _StoredFamily(NamedTuple):
    """The terms of a run that judges a family, and the digest of the family's audits."""

    terms: Terms
    digest: str


class History:
    """All runs of one suite. Use it as a context manager.

    One process at a time runs the suite and writes. Others may read meanwhile; they wait for a
    moment if they have to.

    Args:
        path: the file, which is created if it does not exist.
        must_exist: open it for reading only.
        patience: how many seconds to wait for a process that writes.

    Raises:
        InputError: the file is in use, cannot be read or written, or is not a history; the message
            says which, and names the process that uses it.
    """

    def __init__(
        self, path: Path, must_exist: bool = False, patience: float = _PATIENCE_SECONDS
    ) -> None:
        if must_exist and not path.is_file():
            raise InputError(f"{path} is missing: there is no history yet")
        self.path = path
        self._lock = None if must_exist else _lock(path)
        with self._explain_errors():
            self._connection = sqlite3.connect(path, timeout=patience)
        try:
            with self._explain_errors():
                self._prepare()
                if self._lock is not None:
                    record_holder = _RECORD_HOLDER.format(process=os.getpid())
                    self._connection.executescript(
                        f"BEGIN; {record_holder} {_FAMILY_TABLES} COMMIT;"
                    )
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def open_run(self, fresh: bool = False) -> int:
        """Returns the number of an interrupted run, or of a new one.

        A run that judges a family is resumed by `open_family_run` only.

        Args:
            fresh: do not resume an interrupted run.
        """
        number = self._interrupted_run()
        if number is not None and not fresh and self._family_of(number) is None:
            return number
        return self._write(_INSERT_RUN, (_now(), package_version()))

    def open_family_run(
        self,
        confidence: float,
        digest: str,
        fresh_seed: Callable[[], int],
        *,
        counts_nights: bool = False,
        night: int | None = None,
        fresh: bool = False,
    ) -> tuple[int, Terms]:
        """Returns the number and the terms of an interrupted run of the family, or of a new run.

        A new run is stored with its night before anything is drawn, so a night that is interrupted
        counts as well.

        Args:
            confidence: of the family.
            digest: of all audits of the family; an interrupted run with another digest is not
                resumed.
            fresh_seed: returns the seed of a new run.
            counts_nights: whether the confidence is about all nights.
            night: the number of this night; None for the one after the last night on record.
            fresh: do not resume an interrupted run.

        Raises:
            InputError: the number of the night is not known, or was used before.
        """
        interrupted = self._interrupted_run()
        if interrupted is not None and not fresh:
            family = self._family_of(interrupted)
            if family is not None:
                is_same_family = family.terms.confidence == confidence and family.digest == digest
                has_night = family.terms.night is not None
                is_same_night = night is None or night == family.terms.night
                if is_same_family and has_night == counts_nights and is_same_night:
                    return interrupted, family.terms
        if counts_nights:
            night = self._next_night(night)
        terms = Terms(confidence=confidence, night=night, seed=fresh_seed())
        # One transaction: there is never a run of a family without its terms.
        with self._explain_errors(), self._connection:
            inserted = self._connection.execute(_INSERT_RUN, (_now(), package_version()))
            number = int(inserted.lastrowid or 0)
            self._connection.execute(
                "INSERT INTO families VALUES (?, ?, ?, ?, ?)",
                (number, confidence, night, str(terms.seed), digest),
            )
        return number, terms

    def note_start(self, run: int, name: str) -> None:
        """Records that an audit of a run begins; to be called before its first draw."""
        self._write(
            "INSERT INTO starts VALUES (?, ?, 1) "
            "ON CONFLICT (run, name) DO UPDATE SET times = times + 1",
            (run, name),
        )

    def begun_again(self, run: int) -> set[str]:
        """Returns the names of the audits that were started more than once in a run."""
        rows = self._read("SELECT name FROM starts WHERE run = ? AND times > 1", (run,))
        return {name for (name,) in rows}

    def close_run(self, run: int) -> None:
        """Records that every audit of the run is done."""
        self._write("UPDATE runs SET ended = ? WHERE number = ?", (_now(), run))

    def record(
        self, run: int, name: str, digest: str, result: AuditResult | None, error: str | None
    ) -> Outcome:
        """Stores the outcome of an audit at once, and returns it.

        Args:
            run: the number of the run.
            name: of the audit.
            digest: of the audit's entry.
            result: of the audit; None if there was an error.
            error: the error message; None if there was no error.
        """
        outcome = Outcome(name=name, digest=digest, result=result, error=error, finished=_now())
        lower_bound = None
        claimed = None
        stored_result = None
        if result is not None:
            lower_bound = result.lower_bound
            claimed = result.claim.value
            stored_result = result.to_json(None)
        self._write(
            "INSERT OR REPLACE INTO outcomes (run, name, digest, finished, verdict, lower_bound, "
            "claimed, error, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run,
                name,
                digest,
                outcome.finished,
                outcome.word,
                lower_bound,
                claimed,
                error,
                stored_result,
            ),
        )
        return outcome

    def outcomes(self, run: int) -> dict[str, Outcome]:
        """Returns the outcomes of a run so far, by the name of the audit."""
        rows = self._read(
            "SELECT name, digest, result, error, finished FROM outcomes "
            "WHERE run = ? ORDER BY rowid",
            (run,),
        )
        outcomes: dict[str, Outcome] = {}
        for name, digest, stored_result, error, finished in rows:
            outcome = Outcome(name=name, digest=digest, result=None, error=error, finished=finished)
            if stored_result is not None:
                try:
                    outcome = replace(outcome, result=AuditResult.from_json(stored_result))
                except EpsilometerError as problem:
                    # Stored by another version: it is shown, and audited again since no entry has
                    # an empty digest.
                    message = f"the stored result cannot be read: {problem}"
                    outcome = replace(outcome, digest="", error=message)
            outcomes[name] = outcome
        return outcomes

    def run_before(self, run: int) -> int | None:
        """Returns the number of the last finished run before this one; None if there is none."""
        query = "SELECT MAX(number) FROM runs WHERE number < ? AND ended IS NOT NULL"
        number = self._read(query, (run,))[0][0]
        return None if number is None else int(number)

    def runs(self) -> list[Run]:
        """Returns all runs, the newest first."""
        verdicts: dict[int, list[str]] = {}
        for run, verdict in self._read("SELECT run, verdict FROM outcomes ORDER BY rowid"):
            verdicts.setdefault(run, []).append(verdict)
        nights = self._nights()
        runs = []
        rows = self._read("SELECT number, began, ended FROM runs ORDER BY number DESC")
        for number, began, ended in rows:
            run = Run(
                number=number,
                began=began,
                ended=ended,
                words=tuple(verdicts.get(number, ())),
                night=nights.get(number),
            )
            runs.append(run)
        return runs

    def bounds(self, name: str, most: int = 30) -> list[RecordedBound]:
        """Returns the bounds of one audit in its last runs, the oldest first.

        Args:
            name: of the audit.
            most: the greatest number of runs.
        """
        newest_first = self._read(
            "SELECT run, finished, verdict, lower_bound, claimed FROM outcomes "
            "WHERE name = ? ORDER BY run DESC LIMIT ?",
            (name, most),
        )
        return [RecordedBound._make(row) for row in reversed(newest_first)]

    def _interrupted_run(self) -> int | None:
        """Returns the number of the last run if it has not ended."""
        rows = self._read("SELECT number, ended FROM runs ORDER BY number DESC LIMIT 1")
        if not rows:
            return None
        number, ended = rows[0]
        return int(number) if ended is None else None

    def _family_of(self, run: int) -> _StoredFamily | None:
        """Returns the family that a run judges; None if it judges none."""
        query = "SELECT confidence, night, seed, digest FROM families WHERE run = ?"
        rows = self._read(query, (run,))
        if not rows:
            return None
        confidence, night, seed, digest = rows[0]
        terms = Terms(confidence=confidence, night=night, seed=int(seed))
        return _StoredFamily(terms=terms, digest=digest)

    def _next_night(self, given: int | None) -> int:
        """Returns the number of a new night, which no earlier night may have."""
        last = self._read("SELECT MAX(night) FROM families")[0][0]
        if last is None and given is None:
            raise InputError(
                f"{self.path} has no night on record, so the number of this night is unknown; "
                "give its number: --night 1 if it is the first, else one above all earlier nights"
            )
        if last is not None and given is not None and given <= last:
            raise InputError(
                f"--night {given}: the last night on record is {last}, and each night may spend "
                f"its share only once; leave --night out, or give {last + 1} or more"
            )
        return last + 1 if given is None else given

    def _nights(self) -> dict[int, int]:
        """Returns the numbers of the nights by the numbers of their runs."""
        has_families = self._read("SELECT name FROM sqlite_master WHERE name = 'families'")
        if not has_families:  # an older history that is opened for reading only
            return {}
        return dict(self._read("SELECT run, night FROM families WHERE night IS NOT NULL"))

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows that a query selects."""
        with self._explain_errors():
            return self._connection.execute(query, values).fetchall()

    def _write(self, statement: str, values: Sequence[Any]) -> int:
        """Executes a statement in its own transaction, and returns the number of the new row."""
        with self._explain_errors(), self._connection:
            return int(self._connection.execute(statement, values).lastrowid or 0)

    def _prepare(self) -> None:
        """Creates the tables of a new history, and refuses other databases."""
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        n_tables = self._connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if version == 0 and n_tables == 0:
            marks = (
                f"PRAGMA application_id = {_APPLICATION_ID}; "
                f"PRAGMA user_version = {_SCHEMA_VERSION};"
            )
            self._connection.executescript(f"BEGIN; {_TABLES} {marks} COMMIT;")
            return
        application_id = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if application_id != _APPLICATION_ID:
            raise InputError(f"{self.path} is a database, but not a history of audits")
        if version != _SCHEMA_VERSION:
            raise InputError(
                f"{self.path} has version {version}; this program reads {_SCHEMA_VERSION}"
            )

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turns errors of SQLite into an InputError that says what is wrong with the file."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise _in_use(self.path) from error
            raise InputError(f"the history {self.path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path} is not a history of audits: {error}") from error


def _lock(path: Path) -> IO[bytes]:
    """Locks the file for as long as this process lives, and returns the open file.

    Otherwise two processes would both resume the same run.
    """
    try:
        file = path.open("ab")
    except OSError as error:
        raise InputError(f"the history {path} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise _in_use(path) from None
    return file


def _in_use(path: Path) -> InputError:
    """Returns an error that names the process which uses a history, if that is known."""
    rows: list[Any] = []
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=0.0)) as connection:
        rows = connection.execute("SELECT process FROM holder").fetchall()
    holder = f" by process {rows[0][0]}" if rows else ""
    return InputError(f"{path} is in use{holder}: another run of this suite is under way")


def _now() -> str:
    """Returns the time in UTC, as it is stored."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
