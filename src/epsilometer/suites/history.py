"""The history of a suite: one SQLite file, written after every audit, so that nothing is lost when a run is killed."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from epsilometer.environment import package_version
from epsilometer.errors import EpsilometerError, InputError
from epsilometer.result import AuditResult
from epsilometer.suites.outcomes import Outcome

# "Epsi" in ASCII: says whose file it is.
_APPLICATION = 0x45707369
_VERSION = 1
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


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite.

    Attributes:
        number: counted from 1.
        began: when, in UTC.
        ended: None while it runs, or if it was killed.
        words: the verdict of every audit.
    """

    number: int
    began: str
    ended: str | None
    words: tuple[str, ...]


class History:
    """All runs of one suite. Use it as a context manager; the file belongs to one process at a time."""

    def __init__(self, path: Path, must_exist: bool = False) -> None:
        if must_exist and not path.is_file():
            raise InputError(f"{path} is missing: there is no history yet")
        self.path = path
        self._held = _hold(path) if not must_exist else None
        self._base = sqlite3.connect(path)
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.__exit__()
            raise InputError(f"{path} is not a history of audits: {error}") from error
        except InputError:
            self.__exit__()
            raise

    def __enter__(self) -> History:
        return self

    def __exit__(self, *error: object) -> None:
        self._base.close()
        if self._held is not None:
            self._held.close()

    def open_run(self, fresh: bool = False) -> int:
        """The number of the run that was broken off, or of a new one.

        Args:
            fresh: do not go on with a broken-off run.
        """
        row = self._base.execute("SELECT number, ended FROM runs ORDER BY number DESC LIMIT 1").fetchone()
        if row is not None and row[1] is None and not fresh:
            return int(row[0])
        with self._base:
            new = self._base.execute("INSERT INTO runs (began, version) VALUES (?, ?)", (_now(), package_version()))
        return int(new.lastrowid or 0)

    def close_run(self, run: int) -> None:
        """Notes that every audit of the run is done."""
        with self._base:
            self._base.execute("UPDATE runs SET ended = ? WHERE number = ?", (_now(), run))

    def record(self, run: int, name: str, digest: str, result: AuditResult | None, error: str | None) -> Outcome:
        """Stores what came of an audit, at once."""
        outcome = Outcome(name, digest, result, error, _now())
        bound, claimed = (None, None) if result is None else (result.lower_bound, result.claim.value)
        stored = None if result is None else result.to_json(None)
        row = (run, name, digest, outcome.finished, outcome.word, bound, claimed, error, stored)
        with self._base:
            self._base.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return outcome

    def outcomes(self, run: int) -> dict[str, Outcome]:
        """What is known of a run, by the name of the audit."""
        query = "SELECT name, digest, result, error, finished FROM outcomes WHERE run = ? ORDER BY rowid"
        rows = self._base.execute(query, (run,)).fetchall()
        return {name: _outcome(name, digest, stored, error, at) for name, digest, stored, error, at in rows}

    def run_before(self, run: int) -> int | None:
        """The last finished run before this one."""
        query = "SELECT MAX(number) FROM runs WHERE number < ? AND ended IS NOT NULL"
        number = self._base.execute(query, (run,)).fetchone()[0]
        return None if number is None else int(number)

    def runs(self) -> list[Run]:
        """All runs, the newest first."""
        rows = self._base.execute("SELECT number, began, ended FROM runs ORDER BY number DESC").fetchall()
        words: dict[int, list[str]] = {}
        for run, verdict in self._base.execute("SELECT run, verdict FROM outcomes ORDER BY rowid"):
            words.setdefault(run, []).append(verdict)
        return [Run(number, began, ended, tuple(words.get(number, ()))) for number, began, ended in rows]

    def bounds(self, name: str, most: int = 30) -> list[tuple[int, str, str, float | None, float | None]]:
        """Run, time, verdict, bound and claimed value of one audit, the oldest first."""
        query = (
            "SELECT run, finished, verdict, lower_bound, claimed FROM outcomes WHERE name = ? ORDER BY run DESC LIMIT ?"
        )
        return self._base.execute(query, (name, most)).fetchall()[::-1]

    def _prepare(self) -> None:
        version = self._base.execute("PRAGMA user_version").fetchone()[0]
        application = self._base.execute("PRAGMA application_id").fetchone()[0]
        if version == 0 and not self._base.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            self._base.executescript(
                f"BEGIN; {_TABLES} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION}; COMMIT;"
            )
        elif application != _APPLICATION:
            raise InputError(f"{self.path} is a database, but not a history of audits")
        elif version != _VERSION:
            raise InputError(f"{self.path} has version {version}; this program reads {_VERSION}")


def _hold(path: Path) -> IO[bytes] | None:
    """Locks the file for as long as this process lives: two runs at once would both go on with the same run."""
    try:
        import fcntl
    except ImportError:  # not on this system; then it is up to the user
        return None
    try:
        file = path.open("ab")
    except OSError as error:
        raise InputError(f"the history {path} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(f"{path} is in use: another run of this suite is under way") from None
    return file


def _outcome(name: str, digest: str, stored: str | None, error: str | None, finished: str) -> Outcome:
    if stored is None:
        return Outcome(name, digest, None, error, finished)
    try:
        return Outcome(name, digest, AuditResult.from_json(stored), None, finished)
    except EpsilometerError as problem:  # stored by another version: shown, and audited again
        return Outcome(name, "", None, f"the stored result cannot be read: {problem}", finished)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
