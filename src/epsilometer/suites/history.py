"""The audits of a suite, their outcomes, their history in one SQLite file, and what changed since the last run."""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from epsilometer.environment import package_version
from epsilometer.errors import EpsilometerError, InputError
from epsilometer.report.wording import figure, figure_down, parameter, plain, reservations
from epsilometer.result import AuditResult, Verdict
from epsilometer.suites.family import Terms

# By weight: an audit that could not be done outweighs a refutation, which outweighs an inconclusive audit.
_STATUSES = (2, 1, 3, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """One audit of a suite.

    Attributes:
        name: unique in the suite.
        settings: as they were written, with the suite's defaults.
        digest: of the settings and of the files they name: an outcome with another digest is out of date.
        expected: the verdict to expect, for mechanisms that are known to be broken; None if every refutation is news.
        seconds: after which the audit is given up; None for never.
    """

    name: str
    settings: Mapping[str, Any]
    digest: str
    expected: Verdict | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one audit.

    Attributes:
        name: of the entry.
        digest: of the entry.
        result: None if there was an error.
        error: what went wrong, None if nothing did.
        finished: when, in UTC.
    """

    name: str
    digest: str
    result: AuditResult | None
    error: str | None
    finished: str

    @property
    def word(self) -> str:
        """The verdict, "measured", or "error"."""
        if self.result is None:
            return "error"
        return "measured" if self.result.verdict is None else str(self.result.verdict)

    def status(self, expected: Verdict | None = None) -> int:
        """The exit status: 0 as expected, 1 refuted (or not, though it was expected), 2 error, 3 inconclusive."""
        if self.result is None:
            return 2
        if self.result.verdict in (None, expected or Verdict.NOT_REFUTED):
            return 0
        return 3 if self.result.verdict is Verdict.INCONCLUSIVE else 1

    @property
    def figures(self) -> str:
        """The bound against the claim, or the error, short."""
        if self.result is None:
            return plain(self.error, 90)
        start = f"{parameter(self.result.claim)} ≥ {figure_down(self.result.lower_bound)}"
        if self.result.verdict is not None:
            start += f" (claim {figure(self.result.claim.value)})"
        weakened = reservations(self.result.settings)
        return f"{start}, with {plain(weakened, 200)}" if weakened else start


def status_over_all(statuses: Iterable[int]) -> int:
    """The exit status of a suite: the most serious of its audits."""
    found = set(statuses)
    return next((status for status in _STATUSES if status in found), 0)


# How long to wait for another process that writes, in seconds: a transaction of ours takes milliseconds.
_PATIENCE = 5.0
# "Epsi" in ASCII: says whose file it is.
_APPLICATION = 0x45707369
_VERSION = 1
_TABLES = """
CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, began TEXT NOT NULL, ended TEXT, version TEXT NOT NULL);
CREATE TABLE outcomes (run INTEGER NOT NULL REFERENCES runs (number), name TEXT NOT NULL, digest TEXT NOT NULL,
    finished TEXT NOT NULL, verdict TEXT NOT NULL, lower_bound REAL, claimed REAL, error TEXT, result TEXT,
    PRIMARY KEY (run, name));
"""
_HOLDER = "CREATE TABLE IF NOT EXISTS holder (process INTEGER); DELETE FROM holder; INSERT INTO holder VALUES ({});"
# The terms of runs that judge a family, and how often each audit of a run was begun. They are made where they are
# missing: older histories lack them, and older programs do not mind them.
_FAMILY_TABLES = """
CREATE TABLE IF NOT EXISTS families (run INTEGER PRIMARY KEY REFERENCES runs (number), confidence REAL NOT NULL,
    night INTEGER, seed TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS starts (run INTEGER NOT NULL REFERENCES runs (number), name TEXT NOT NULL,
    times INTEGER NOT NULL, PRIMARY KEY (run, name));
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite.

    Attributes:
        number: counted from 1.
        began: when, in UTC.
        ended: None while it runs, or if it was killed.
        words: the verdict of every audit.
        night: its number among the nights of a family; None if it is none.
    """

    number: int
    began: str
    ended: str | None
    words: tuple[str, ...]
    night: int | None = None


class History:
    """All runs of one suite. Use it as a context manager.

    One process at a time runs the suite and writes; others may look meanwhile, and wait for a moment if need be.

    Args:
        path: made if it is not there yet.
        must_exist: only look.
        patience: how many seconds to wait for a process that writes.

    Raises:
        InputError: the file is in use, cannot be read or written, or is no history; says which, and by whom.
    """

    def __init__(self, path: Path, must_exist: bool = False, patience: float = _PATIENCE) -> None:
        if must_exist and not path.is_file():
            raise InputError(f"{path} is missing: there is no history yet")
        self.path = path
        self._held = _hold(path) if not must_exist else None
        with self._explained():
            self._connection = sqlite3.connect(path, timeout=patience)
        try:
            with self._explained():
                self._prepare()
                if self._held is not None:
                    self._connection.executescript(f"BEGIN; {_HOLDER.format(os.getpid())} {_FAMILY_TABLES} COMMIT;")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        if self._held is not None:
            self._held.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Says what is wrong with the file."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise _in_use(self.path) from error
            raise InputError(f"the history {self.path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path} is not a history of audits: {error}") from error

    def open_run(self, fresh: bool = False) -> int:
        """The number of an interrupted run, or of a new one. A run that judges a family is not resumed by this.

        Args:
            fresh: do not resume an interrupted run.
        """
        number = self._interrupted_run()
        if number is not None and not fresh and self._family_of(number) is None:
            return number
        return self._write("INSERT INTO runs (began, version) VALUES (?, ?)", (_now(), package_version()))

    def open_family_run(
        self,
        confidence: float,
        digest: str,
        fresh_seed: Callable[[], int],
        counts_nights: bool = False,
        night: int | None = None,
        fresh: bool = False,
    ) -> tuple[int, Terms]:
        """The number and the terms of an interrupted run of the same family, or of a new one.

        A new run is stored with its night before anything is drawn: a night that is interrupted counts.

        Args:
            confidence: of the family.
            digest: of all its audits; an interrupted run with another digest is not resumed.
            fresh_seed: makes the seed of a new run.
            counts_nights: whether the confidence is about all nights.
            night: the number of this night; None for the one after the last night on record.
            fresh: do not resume an interrupted run.

        Raises:
            InputError: the number of the night is not known, or was used before.
        """
        number = self._interrupted_run()
        found = None if number is None or fresh else self._family_of(number)
        if number is not None and found is not None:
            terms, old_digest = found
            is_same = (terms.confidence, old_digest) == (confidence, digest)
            is_same = is_same and (terms.night is not None) == counts_nights and night in (None, terms.night)
            if is_same:
                return number, terms
        if counts_nights:
            night = self._next_night(night)
        terms = Terms(confidence=confidence, night=night, seed=fresh_seed())
        with self._explained(), self._connection:
            opened = self._connection.execute(
                "INSERT INTO runs (began, version) VALUES (?, ?)", (_now(), package_version())
            )
            number = int(opened.lastrowid or 0)
            self._connection.execute(
                "INSERT INTO families VALUES (?, ?, ?, ?, ?)", (number, confidence, night, str(terms.seed), digest)
            )
        return number, terms

    def _interrupted_run(self) -> int | None:
        rows = self._read("SELECT number, ended FROM runs ORDER BY number DESC LIMIT 1")
        return int(rows[0][0]) if rows and rows[0][1] is None else None

    def _family_of(self, run: int) -> tuple[Terms, str] | None:
        rows = self._read("SELECT confidence, night, seed, digest FROM families WHERE run = ?", (run,))
        if not rows:
            return None
        confidence, night, seed, digest = rows[0]
        return Terms(confidence=confidence, night=night, seed=int(seed)), digest

    def _next_night(self, given: int | None) -> int:
        last = self._read("SELECT MAX(night) FROM families")[0][0]
        if last is None and given is None:
            hint = "give its number: --night 1 if it is the first, else one above all earlier nights"
            raise InputError(f"{self.path} has no night on record, so the number of this night is unknown; {hint}")
        if last is not None and given is not None and given <= last:
            hint = f"leave --night out, or give {last + 1} or more"
            raise InputError(f"--night {given}: the last night on record is {last}, and each pays only once; {hint}")
        return last + 1 if given is None else given

    def note_start(self, run: int, name: str) -> None:
        """Notes that an audit of a run begins, before its first draw."""
        statement = "INSERT INTO starts VALUES (?, ?, 1) ON CONFLICT (run, name) DO UPDATE SET times = times + 1"
        self._write(statement, (run, name))

    def begun_again(self, run: int) -> set[str]:
        """The names of the audits that were begun more than once in a run."""
        return {name for (name,) in self._read("SELECT name FROM starts WHERE run = ? AND times > 1", (run,))}

    def close_run(self, run: int) -> None:
        """Notes that every audit of the run is done."""
        self._write("UPDATE runs SET ended = ? WHERE number = ?", (_now(), run))

    def record(self, run: int, name: str, digest: str, result: AuditResult | None, error: str | None) -> Outcome:
        """Stores the outcome of an audit at once."""
        outcome = Outcome(name, digest, result, error, _now())
        bound, claimed = (None, None) if result is None else (result.lower_bound, result.claim.value)
        stored = None if result is None else result.to_json(None)
        row = (run, name, digest, outcome.finished, outcome.word, bound, claimed, error, stored)
        self._write("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return outcome

    def outcomes(self, run: int) -> dict[str, Outcome]:
        """The outcomes of a run so far, by the name of the audit."""
        query = "SELECT name, digest, result, error, finished FROM outcomes WHERE run = ? ORDER BY rowid"
        found = {}
        for name, digest, stored, error, at in self._read(query, (run,)):
            result = None
            try:
                result = None if stored is None else AuditResult.from_json(stored)
            except EpsilometerError as problem:  # stored by another version: shown, and audited again
                digest, error = "", f"the stored result cannot be read: {problem}"
            found[name] = Outcome(name, digest, result, error, at)
        return found

    def run_before(self, run: int) -> int | None:
        """The last finished run before this one."""
        number = self._read("SELECT MAX(number) FROM runs WHERE number < ? AND ended IS NOT NULL", (run,))[0][0]
        return None if number is None else int(number)

    def runs(self) -> list[Run]:
        """All runs, the newest first."""
        rows = self._read("SELECT number, began, ended FROM runs ORDER BY number DESC")
        words: dict[int, list[str]] = {}
        for run, verdict in self._read("SELECT run, verdict FROM outcomes ORDER BY rowid"):
            words.setdefault(run, []).append(verdict)
        nights = self._nights()
        return [
            Run(number, began, ended, tuple(words.get(number, ())), nights.get(number)) for number, began, ended in rows
        ]

    def _nights(self) -> dict[int, int]:
        """The number of the night of each run that is one."""
        if not self._read("SELECT name FROM sqlite_master WHERE name = 'families'"):
            return {}  # an older history, which is only looked at
        return dict(self._read("SELECT run, night FROM families WHERE night IS NOT NULL"))

    def bounds(self, name: str, most: int = 30) -> list[tuple[int, str, str, float | None, float | None]]:
        """Run, time, verdict, bound and claimed value of one audit, the oldest first."""
        query = "SELECT run, finished, verdict, lower_bound, claimed FROM outcomes WHERE name = ?"
        return self._read(f"{query} ORDER BY run DESC LIMIT ?", (name, most))[::-1]

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._explained():
            return self._connection.execute(query, values).fetchall()

    def _write(self, statement: str, values: Sequence[Any]) -> int:
        """In a transaction of its own; returns the number of the new row."""
        with self._explained(), self._connection:
            return int(self._connection.execute(statement, values).lastrowid or 0)

    def _prepare(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not self._connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION};"
            self._connection.executescript(f"BEGIN; {_TABLES} {marks} COMMIT;")
        elif self._connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise InputError(f"{self.path} is a database, but not a history of audits")
        elif version != _VERSION:
            raise InputError(f"{self.path} has version {version}; this program reads {_VERSION}")


def _hold(path: Path) -> IO[bytes]:
    """Locks the file for as long as this process lives: two processes would both resume the same run."""
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
    """Says who holds a history, if that is known."""
    rows: list[Any] = []
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=0.0)) as base:
        rows = base.execute("SELECT process FROM holder").fetchall()
    holder = f" by process {rows[0][0]}" if rows else ""
    return InputError(f"{path} is in use{holder}: another run of this suite is under way")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


# With another seed, bounds of the same mechanism differ by chance; less than this share of the larger is no news.
_MOVED = 0.05
_Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True, slots=True)
class Change:
    """How an audit differs from its last run.

    Attributes:
        name: of the audit.
        kind: "new", "gone", "verdict", "bound", "settings" or "same".
        text: the difference in words; empty when there is none.
    """

    name: str
    kind: str
    text: str

    @property
    def is_news(self) -> bool:
        """Whether it should be shown."""
        return self.kind != "same"


def find_changes(entries: Sequence[Entry], now: _Outcomes, before: _Outcomes) -> dict[str, Change]:
    """A change for every current audit, in the order of the suite, then for those that are gone.

    Args:
        entries: the suite.
        now: outcomes by name.
        before: outcomes of the previous run by name; empty for the first run.
    """
    known = [entry.name for entry in entries if entry.name in now]
    changes = {name: _change(now[name], before.get(name), bool(before)) for name in known}
    for name in before:
        if name not in changes:
            changes[name] = Change(name, "gone", f"gone; was {before[name].word}")
    return changes


def _change(now: Outcome, before: Outcome | None, has_before: bool) -> Change:
    if before is None:
        return Change(now.name, "new", "new") if has_before else Change(now.name, "same", "")
    if now.word != before.word:
        return Change(now.name, "verdict", f"{before.word} → {now.word}")
    if now.result is None or before.result is None:
        return Change(now.name, "same", "")
    claim = now.result.claim
    if claim != before.result.claim:
        return Change(now.name, "settings", f"claim {before.result.claim.describe()} → {claim.describe()}")
    old, new = before.result.lower_bound, now.result.lower_bound
    if abs(new - old) > _MOVED * max(abs(new), abs(old)):
        return Change(now.name, "bound", f"{claim.symbol} ≥ {figure_down(old)} → {figure_down(new)}")
    if now.digest != before.digest:
        return Change(now.name, "settings", "settings or code changed")
    return Change(now.name, "same", "")
