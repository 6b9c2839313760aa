"""The checkpoint file of an audit that may be interrupted: what `checkpoint=` names.

It is an SQLite database, for every kind of audit: a transaction is in the file or never happened,
whenever the process is killed, and the file stays small however many draws there are. One audit
holds it at a time. It contains plain bytes and JSON, nothing pickled: see
`tallies.py`.
"""

import json
import os
import sqlite3
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from epsilometer.errors import InputError

# Phase, number of the pair, side.
Stream = tuple[int, int, int]

# The format of the file: what another version wrote is refused.
_FORMAT_VERSION = 5
# Seconds between two commits, which is the most that a killed process loses.
_SECONDS_BETWEEN_COMMITS = 0.5
# At least this many times the duration of the last commit passes before the next one, so that
# writing takes at most about a fiftieth of the time.
_COMMIT_DURATIONS_BETWEEN_COMMITS = 50.0
_TABLES = """
CREATE TABLE IF NOT EXISTS about (
    name TEXT PRIMARY KEY,
    value TEXT
);
CREATE TABLE IF NOT EXISTS outputs (
    phase INTEGER,
    pair INTEGER,
    side INTEGER,
    chunk INTEGER,
    size INTEGER,
    fingerprint BLOB,
    outputs BLOB,
    PRIMARY KEY (phase, pair, side, chunk)
);
CREATE TABLE IF NOT EXISTS incidents (
    phase INTEGER,
    pair INTEGER,
    side INTEGER,
    chunk INTEGER,
    requests INTEGER,
    retried INTEGER,
    failed INTEGER,
    PRIMARY KEY (phase, pair, side, chunk)
);
CREATE TABLE IF NOT EXISTS folded (
    phase INTEGER,
    pair INTEGER,
    side INTEGER,
    chunks INTEGER,
    size INTEGER,
    total TEXT,
    pieces BLOB,
    width INTEGER,
    filled INTEGER,
    fingerprints BLOB,
    PRIMARY KEY (phase, pair, side)
);
CREATE TABLE IF NOT EXISTS state (
    number INTEGER PRIMARY KEY,
    content BLOB
);
"""
_STREAM_COLUMNS = ("phase", "pair", "side")
# The columns of each table's primary key, which come first in its rows.
_KEY_COLUMNS = {
    "about": ("name",),
    "outputs": (*_STREAM_COLUMNS, "chunk"),
    "incidents": (*_STREAM_COLUMNS, "chunk"),
    "folded": _STREAM_COLUMNS,
    "state": ("number",),
}


def stored_seed(path: str | Path) -> int | None:
    """The seed of the audit that a file belongs to; None if the file is missing or still empty."""
    target = Path(path)
    if not target.is_file() or not target.stat().st_size:
        return None
    with explained(target):
        # Not read-only: what a killed process left half written has to be rolled back first.
        address = f"{target.resolve().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=0.0)) as connection:
            tables = connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'about'"
            ).fetchall()
            if not tables:
                return None
            rows = connection.execute("SELECT value FROM about WHERE name = 'key'").fetchall()
        if not rows:
            return None
        key = json.loads(rows[0][0])
        return int(key["seed"])


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns database errors into messages about the checkpoint."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise InputError(
                f"checkpoint={str(path)!r} is in use by another audit{_holder(path)}"
            ) from error
        raise InputError(f"checkpoint={str(path)!r} cannot be used: {error}") from error
    except (
        sqlite3.Error,
        zipfile.BadZipFile,
        json.JSONDecodeError,
        KeyError,
        TypeError,
        OSError,
    ) as error:
        raise InputError(
            f"checkpoint={str(path)!r} is not a checkpoint of such an audit: {error}; name "
            "a new file, or the one that this audit wrote"
        ) from error


# The files that this process holds, by device and inode. They must not be opened a second time:
# closing any handle of a file releases all of the process's POSIX locks on it.
_held: set[tuple[int, int]] = set()
# Byte offset at which SQLite stores `user_version`; the process that holds the file leaves its own
# number there.
_USER_VERSION_OFFSET = 60


def _holder(path: Path) -> str:
    """Names the holder of a file that is in use, as the end of a message; empty if unknown."""
    try:
        if _identity(path) in _held:
            return " of this process"
        with path.open("rb") as file:  # without a lock, which would not be granted
            file.seek(_USER_VERSION_OFFSET)
            process = int.from_bytes(file.read(4), "big")
    except OSError:
        return ""
    is_another_process = process not in (0, os.getpid())
    return f", process {process}" if is_another_process else ""


def _identity(path: Path) -> tuple[int, int]:
    """The device and inode of a file, which are the same under all of its names."""
    status = path.stat()
    return status.st_dev, status.st_ino


class JournalFile:
    """The file of one audit, held until it is closed.

    Args:
        path: created if missing.
        key: what must be the same for the audit to resume.

    Raises:
        InputError: the file belongs to another audit, is in use, or cannot be read.
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
        self._due = time.monotonic() + _SECONDS_BETWEEN_COMMITS

    def _open(self, key: dict[str, Any]) -> None:
        """Locks the file, creates its tables if they are missing, and checks whose file it is."""
        # Held until the end: two audits in one file would count each other's draws.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("BEGIN EXCLUSIVE")
        self._connection.execute(f"PRAGMA user_version = {os.getpid()}")
        for statement in _TABLES.split(";\n")[:-1]:
            self._connection.execute(statement)
        stored_key = self.about("key")
        if stored_key is None:
            self.put("about", "version", str(_FORMAT_VERSION))
            self.put("about", "key", json.dumps(key))
        else:
            self._check_is_same_audit(key, stored_key)
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")

    def _check_is_same_audit(self, key: dict[str, Any], stored_json: str) -> None:
        """Refuses a file of another version or another audit."""
        if self.about("version") != str(_FORMAT_VERSION):
            raise InputError(
                f"checkpoint={str(self.path)!r} was written by another version of this program"
            )
        stored_key = json.loads(stored_json)
        all_names = {**stored_key, **key}
        different = [name for name in all_names if stored_key.get(name) != key.get(name)]
        if different:
            raise InputError(
                f"checkpoint={str(self.path)!r} belongs to another audit "
                f"(its {', '.join(different)} differ); "
                "give another file, or the same mechanism, inputs and settings"
            )

    def row(self, table: str, *key: Any) -> Sequence[Any] | None:
        """The row with this key, without the key itself; None if there is none."""
        condition = " AND ".join(f"{name} = ?" for name in _KEY_COLUMNS[table])
        row = self._connection.execute(f"SELECT * FROM {table} WHERE {condition}", key).fetchone()
        return None if row is None else row[len(key) :]

    def put(self, table: str, *row: Any) -> None:
        """Stores a row, its key first; it replaces an earlier row with that key."""
        placeholders = ", ".join("?" * len(row))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({placeholders})", row)

    def rows(self, table: str, columns: str, stream: Stream) -> list[Sequence[Any]]:
        """Returns the columns (SQL: names separated by commas) of all chunks of a stream."""
        condition = " AND ".join(f"{name} = ?" for name in _STREAM_COLUMNS)
        return self._connection.execute(
            f"SELECT {columns} FROM {table} WHERE {condition}", stream
        ).fetchall()

    def clear(self, table: str) -> None:
        """Deletes all rows of a table."""
        self._connection.execute(f"DELETE FROM {table}")

    def about(self, name: str) -> str | None:
        """The value stored under this name in the table `about`; None if there is none."""
        row = self.row("about", name)
        return None if row is None else str(row[0])

    @property
    def is_due(self) -> bool:
        """Whether it is time to commit."""
        return time.monotonic() >= self._due

    def commit(self) -> None:
        """Writes everything safely to disk."""
        began = time.monotonic()
        if self._connection.in_transaction:  # an interruption may come right here
            self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")
        ended = time.monotonic()
        pause = max(_SECONDS_BETWEEN_COMMITS, _COMMIT_DURATIONS_BETWEEN_COMMITS * (ended - began))
        self._due = ended + pause

    def close(self) -> None:
        """Commits everything, and releases the file."""
        with self.explained():
            try:
                self.commit()
            finally:
                self._connection.close()
                _held.discard(self._identity)

    def explained(self) -> Any:
        """A context that explains errors of this file."""
        return explained(self.path)
