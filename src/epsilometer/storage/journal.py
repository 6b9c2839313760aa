"""The checkpoint file of an audit that may be interrupted: what `checkpoint=` names.

It is an SQLite database, for every kind of audit: a transaction is in the file or never happened,
whenever the process is killed, and the file stays small however many draws there are. One audit
holds it at a time. It contains plain bytes and JSON, nothing pickled.

The second half of this module turns outputs and tallies into such data and back. The file holds
values, never the names of types: the types of a tally's parts are taken from another tally of the
same proposal.
"""

import base64
import io
import json
import os
import sqlite3
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError
from epsilometer.outputs import Block, Labels, Numbers, Outputs
from epsilometer.outputs.columns import Column
from epsilometer.outputs.reading_numbers import label_from_data, label_to_data

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
            f"checkpoint={str(path)!r} is not a checkpoint of such an audit: {error}"
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


# The name, in an .npz file of outputs, of the JSON text that describes the other arrays.
_TABLE = "table"
# Kinds of NumPy arrays that are stored: truth values, whole numbers and floats.
_PLAIN_KINDS = "biuf"


def outputs_to_bytes(outputs: Outputs) -> bytes:
    """Returns outputs as the bytes of an .npz file: arrays, and a table that describes them."""
    arrays: dict[str, Array] = {}
    blocks = []
    for number, block in enumerate(outputs.blocks):
        if block.rows is not None:
            arrays[f"{number}.rows"] = block.rows
        labels: list[list[Any] | None] = []
        for place, column in enumerate(block.columns):
            if isinstance(column, Labels):
                arrays[f"{number}.{place}"] = column.codes
                labels.append([label_to_data(label) for label in column.labels])
            else:
                arrays[f"{number}.{place}"] = column.values
                if column.widths is not None:
                    arrays[f"{number}.{place}.widths"] = column.widths
                labels.append(None)
        blocks.append({"shape": block.shape, "size": block.size, "labels": labels})
    table = json.dumps({"size": outputs.size, "blocks": blocks})
    arrays[_TABLE] = np.frombuffer(table.encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mixes up its keywords
    return file.getvalue()


def outputs_from_bytes(stored: bytes) -> Outputs:
    """The inverse of `outputs_to_bytes`."""
    with np.load(io.BytesIO(stored), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    table = json.loads(arrays.pop(_TABLE).tobytes())
    blocks = []
    for number, block in enumerate(table["blocks"]):
        columns: list[Column] = []
        for place, labels in enumerate(block["labels"]):
            values = arrays[f"{number}.{place}"]
            if labels is None:
                widths = arrays.get(f"{number}.{place}.widths")
                columns.append(Numbers(values, widths))
            else:
                columns.append(Labels(values, tuple(label_from_data(label) for label in labels)))
        blocks.append(
            Block(
                shape=str(block["shape"]),
                rows=arrays.get(f"{number}.rows"),
                columns=tuple(columns),
                size=int(block["size"]),
            )
        )
    return Outputs(tuple(blocks), int(table["size"]))


def tally_to_data(tally: Any) -> Any:
    """Returns a tally as data that JSON can hold; `tally_from_data` is the inverse.

    A tally may consist of plain values, arrays of numbers, outputs, and lists, dictionaries and
    dataclasses of these.

    Raises:
        InputError: the tally has a part of another type.
    """
    if isinstance(tally, np.generic):
        tally = tally.item()
    if tally is None or isinstance(tally, bool | int | float | str):
        return tally
    if isinstance(tally, Outputs):
        return base64.b64encode(outputs_to_bytes(tally)).decode()
    if isinstance(tally, np.ndarray) and tally.dtype.kind in _PLAIN_KINDS:
        values = base64.b64encode(tally.tobytes()).decode()
        return {"dtype": tally.dtype.str, "shape": list(tally.shape), "values": values}
    if isinstance(tally, list | tuple):
        return [tally_to_data(entry) for entry in tally]
    if isinstance(tally, dict) and all(isinstance(name, str) for name in tally):
        return {name: tally_to_data(entry) for name, entry in tally.items()}
    if is_dataclass(tally) and not isinstance(tally, type):
        return {
            attribute.name: tally_to_data(getattr(tally, attribute.name))
            for attribute in fields(tally)
        }
    raise InputError(
        f"a tally of type {type(tally).__name__} cannot be kept in a checkpoint: "
        "make it of numbers, arrays and dataclasses of these"
    )


def tally_from_data(data: Any, example: Any) -> Any:
    """The inverse of `tally_to_data`.

    Args:
        data: what `tally_to_data` returned.
        example: another tally of the same proposal and side, with the types that belong here.

    Raises:
        InputError: if the data is not of that kind.
    """
    try:
        return _rebuild(data, example)
    except (KeyError, TypeError, ValueError, AttributeError, EOFError) as error:
        raise InputError(
            f"a stored tally cannot be read as {type(example).__name__}: {error!r}"
        ) from error


def _rebuild(data: Any, example: Any) -> Any:
    """Returns the data as an object of the example's type; errors are those of plain Python."""
    if example is None or isinstance(example, bool | int | float | str | np.generic):
        # A whole number may stand where the example has a fraction, and vice versa.
        if data is not None and not isinstance(data, bool | int | float | str):
            raise ValueError(f"{data!r:.60} is not a plain value")
        return type(example)(data) if isinstance(example, np.generic) else data
    if isinstance(example, Outputs):
        return outputs_from_bytes(base64.b64decode(data))
    if isinstance(example, np.ndarray):
        kind = np.dtype(data["dtype"])
        if kind.kind not in _PLAIN_KINDS:
            raise ValueError(f"an array of {kind}")
        read_only = np.frombuffer(base64.b64decode(data["values"]), dtype=kind)
        return read_only.reshape(data["shape"]).copy()
    if isinstance(example, list | tuple):
        if len(data) and not example:
            raise ValueError("entries of a list that was empty in the example")
        # A list may have grown since; its new entries are like the example's last one.
        last = len(example) - 1
        rebuilt = [_rebuild(entry, example[min(number, last)]) for number, entry in enumerate(data)]
        is_named_tuple = hasattr(example, "_fields")
        return type(example)(*rebuilt) if is_named_tuple else type(example)(rebuilt)
    if isinstance(example, dict):
        return {name: _rebuild(data[name], entry) for name, entry in example.items()}
    attributes = {
        attribute.name: _rebuild(data[attribute.name], getattr(example, attribute.name))
        for attribute in fields(example)
    }
    return type(example)(**attributes)
