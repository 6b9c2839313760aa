"""The file of an audit that may be interrupted: what `checkpoint=` names, for every kind of audit.

It is an SQLite database: a transaction is in the file or never happened, whenever the process is killed, and the file
stays small however many draws there are. One audit holds it at a time. It contains plain bytes and JSON, nothing
pickled; what they mean is up to those who write them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epsilometer.errors import InputError

# Phase, number of the pair, side.
Stream = tuple[int, int, int]

_VERSION = 3
# Draws are safely on disk after the first number of seconds; less often where writing would take more than a fiftieth
# of the time.
_SECONDS, _SHARE = 0.5, 50.0
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS outputs (phase INTEGER, pair INTEGER, side INTEGER, chunk INTEGER, fingerprint BLOB,
    outputs BLOB, PRIMARY KEY (phase, pair, side, chunk));
CREATE TABLE IF NOT EXISTS folded (phase INTEGER, pair INTEGER, side INTEGER, chunks INTEGER, size INTEGER, total TEXT,
    pieces BLOB, width INTEGER, filled INTEGER, fingerprints BLOB,
    PRIMARY KEY (phase, pair, side));
CREATE TABLE IF NOT EXISTS state (number INTEGER PRIMARY KEY, content BLOB);
"""


def stored_seed(path: str | Path) -> int | None:
    """The seed of the audit that a file belongs to; None if there is no file, or nothing in it yet."""
    target = Path(path)
    if not target.is_file() or not target.stat().st_size:
        return None
    with explained(target):
        # Not read-only: what a killed process left half written has to be rolled back first.
        connection = sqlite3.connect(f"{target.resolve().as_uri()}?mode=rw", uri=True, timeout=0.0)
        try:
            is_new = not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchall()
            rows = [] if is_new else connection.execute("SELECT value FROM about WHERE name = 'key'").fetchall()
        finally:
            connection.close()
        return int(json.loads(rows[0][0])["seed"]) if rows else None


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns database errors into messages about the checkpoint."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise InputError(f"checkpoint={str(path)!r} is in use by another audit{_holder(path)}") from error
        raise InputError(f"checkpoint={str(path)!r} cannot be used: {error}") from error
    except (sqlite3.Error, zipfile.BadZipFile, json.JSONDecodeError, KeyError, TypeError, OSError) as error:
        raise InputError(f"checkpoint={str(path)!r} is not a checkpoint of such an audit: {error}") from error


# The files that this process holds. To open one and close it again would give up the lock (POSIX is like that).
_held: set[tuple[int, int]] = set()
# Where SQLite keeps the number `user_version`, in which the process that holds the file leaves its own number.
_USER_VERSION = 60


def _holder(path: Path) -> str:
    """Who holds a file that is in use, as far as that can be known."""
    try:
        if _identity(path) in _held:
            return " of this process"
        with path.open("rb") as file:  # without a lock, which would not be granted
            file.seek(_USER_VERSION)
            process = int.from_bytes(file.read(4), "big")
    except OSError:
        return ""
    return f", process {process}" if process and process != os.getpid() else ""


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


class JournalFile:
    """The file of one audit, held until it is closed.

    Args:
        path: created if missing.
        key: what must be the same for the audit to resume; an InputError if the file belongs to another one.
    """

    def __init__(self, path: str | Path, key: Mapping[str, Any]) -> None:
        self.path = Path(os.path.abspath(path))
        if not self.path.parent.is_dir():
            raise InputError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}")
        with self.explained():
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=0.0)
            try:
                self._open(dict(key))
            except BaseException:
                self._connection.close()
                raise
            self._identity = _identity(self.path)
            _held.add(self._identity)
        self._due = time.monotonic() + _SECONDS

    def _open(self, key: dict[str, Any]) -> None:
        # Held until the end: two audits in one file would count each other's draws.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("BEGIN EXCLUSIVE")
        self._connection.execute(f"PRAGMA user_version = {os.getpid()}")
        for statement in _TABLES.split(";\n")[:-1]:
            self._connection.execute(statement)
        stored = self.about("key")
        if stored is None:
            self.tell("version", str(_VERSION))
            self.tell("key", json.dumps(key))
        elif self.about("version") != str(_VERSION):
            raise InputError(f"checkpoint={str(self.path)!r} was written by another version of this program")
        else:
            self._compare(json.loads(stored), key)
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")

    def _compare(self, stored: dict[str, Any], key: dict[str, Any]) -> None:
        different = [name for name in {**stored, **key} if stored.get(name) != key.get(name)]
        if different:
            raise InputError(
                f"checkpoint={str(self.path)!r} belongs to another audit (its {', '.join(different)} differ); "
                "give another file, or the same mechanism, inputs and settings"
            )

    def about(self, name: str) -> str | None:
        """The remark of that name."""
        row = self._connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def tell(self, name: str, value: str) -> None:
        """Stores a remark, replacing an earlier one of that name."""
        self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def chunk(self, stream: Stream, chunk: int) -> tuple[bytes, bytes] | None:
        """The stored outputs of a chunk and their fingerprint; None if it was not drawn before."""
        row = self._connection.execute(
            "SELECT outputs, fingerprint FROM outputs WHERE phase = ? AND pair = ? AND side = ? AND chunk = ?",
            (*stream, chunk),
        ).fetchone()
        return None if row is None else (bytes(row[0]), bytes(row[1]))

    def put_chunk(self, stream: Stream, chunk: int, outputs: bytes, fingerprint: bytes) -> None:
        """Remembers the outputs of a chunk."""
        row = (*stream, chunk, fingerprint, outputs)
        self._connection.execute("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?, ?, ?, ?)", row)

    def folded(self, stream: Stream) -> Sequence[Any] | None:
        """The total of the first chunks of a stream, as it was put; None if the stream is unknown."""
        row: Sequence[Any] | None = self._connection.execute(
            "SELECT chunks, size, total, pieces, width, filled, fingerprints FROM folded "
            "WHERE phase = ? AND pair = ? AND side = ?",
            stream,
        ).fetchone()
        return row

    def put_folded(self, stream: Stream, row: Sequence[Any]) -> None:
        """Remembers the total of a stream's chunks so far, replacing the one before."""
        values = (*stream, *row)
        self._connection.execute(f"INSERT OR REPLACE INTO folded VALUES ({', '.join('?' * len(values))})", values)

    def state(self) -> bytes | None:
        """The state of an audit in batches, after the last one; None before the first."""
        row = self._connection.execute("SELECT content FROM state WHERE number = 0").fetchone()
        return None if row is None else bytes(row[0])

    def put_state(self, content: bytes) -> None:
        """Replaces the state; safely on disk when this returns."""
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (0, ?)", (content,))
        self.commit()

    @property
    def is_due(self) -> bool:
        """Whether it is time to write to disk."""
        return time.monotonic() >= self._due

    def commit(self) -> None:
        """Writes everything safely to disk."""
        began = time.monotonic()
        if self._connection.in_transaction:  # an interruption may come right here
            self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")
        ended = time.monotonic()
        self._due = ended + max(_SECONDS, _SHARE * (ended - began))

    def close(self) -> None:
        """Writes everything that was put."""
        with self.explained():
            try:
                self.commit()
            finally:
                self._connection.close()
                _held.discard(self._identity)

    def explained(self) -> Any:
        """A context that explains errors of this file."""
        return explained(self.path)
