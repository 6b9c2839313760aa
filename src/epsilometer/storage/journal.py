"""The file of an audit that may be interrupted: what `checkpoint=` names, for every kind of audit.

It is an SQLite database: a transaction is in the file or never happened, whenever the process is
killed, and the file stays small however many draws there are. One audit holds it at a time. It
contains plain bytes and JSON, nothing pickled. At the end, draws and tallies as such data: a file
holds values, never the names of types; what a tally is made of is known from another tally of the
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

_VERSION = 5
# Draws are safely on disk after the first number of seconds; less often where writing would take
# more than a fiftieth of the time.
_SECONDS = 0.5
_SHARE = 50.0
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS outputs (phase INTEGER, pair INTEGER, side INTEGER, chunk INTEGER, size INTEGER,
    fingerprint BLOB, outputs BLOB, PRIMARY KEY (phase, pair, side, chunk));
CREATE TABLE IF NOT EXISTS incidents (phase INTEGER, pair INTEGER, side INTEGER, chunk INTEGER, requests INTEGER,
    retried INTEGER, failed INTEGER, PRIMARY KEY (phase, pair, side, chunk));
CREATE TABLE IF NOT EXISTS folded (phase INTEGER, pair INTEGER, side INTEGER, chunks INTEGER, size INTEGER, total TEXT,
    pieces BLOB, width INTEGER, filled INTEGER, fingerprints BLOB,
    PRIMARY KEY (phase, pair, side));
CREATE TABLE IF NOT EXISTS state (number INTEGER PRIMARY KEY, content BLOB);
"""
_STREAM = ("phase", "pair", "side")
_KEYS = {
    "about": ("name",),
    "outputs": (*_STREAM, "chunk"),
    "incidents": (*_STREAM, "chunk"),
    "folded": _STREAM,
    "state": ("number",),
}


def stored_seed(path: str | Path) -> int | None:
    """The seed of the audit that a file belongs to; None if there is no file, or nothing in it yet."""
    target = Path(path)
    if not target.is_file() or not target.stat().st_size:
        return None
    with explained(target):
        # Not read-only: what a killed process left half written has to be rolled back first.
        with closing(
            sqlite3.connect(f"{target.resolve().as_uri()}?mode=rw", uri=True, timeout=0.0)
        ) as connection:
            is_new = not connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'about'"
            ).fetchall()
            rows = (
                []
                if is_new
                else connection.execute("SELECT value FROM about WHERE name = 'key'").fetchall()
            )
        return int(json.loads(rows[0][0])["seed"]) if rows else None


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


# The files that this process holds. To open one and close it again would give up the lock (POSIX is
# like that).
_held: set[tuple[int, int]] = set()
# Where SQLite keeps the number `user_version`, in which the process that holds the file leaves its
# own number.
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
        key: what must be the same for the audit to resume; an InputError if the file belongs to
            another one.
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
            self.put("about", "version", str(_VERSION))
            self.put("about", "key", json.dumps(key))
        elif self.about("version") != str(_VERSION):
            raise InputError(
                f"checkpoint={str(self.path)!r} was written by another version of this program"
            )
        else:
            before = json.loads(stored)
            different = [name for name in {**before, **key} if before.get(name) != key.get(name)]
            if different:
                other = f"checkpoint={str(self.path)!r} belongs to another audit (its {', '.join(different)} differ)"
                raise InputError(
                    f"{other}; give another file, or the same mechanism, inputs and settings"
                )
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")

    def row(self, table: str, *key: Any) -> Sequence[Any] | None:
        """What is stored under a key of a table, without the key; None if nothing is."""
        condition = " AND ".join(f"{name} = ?" for name in _KEYS[table])
        row = self._connection.execute(f"SELECT * FROM {table} WHERE {condition}", key).fetchone()
        return None if row is None else row[len(key) :]

    def put(self, table: str, *row: Any) -> None:
        """Stores a row, its key first, in place of an earlier one with that key."""
        self._connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row
        )

    def rows(self, table: str, columns: str, stream: Stream) -> list[Sequence[Any]]:
        """Some columns of all chunks of a stream."""
        condition = " AND ".join(f"{name} = ?" for name in _STREAM)
        return self._connection.execute(
            f"SELECT {columns} FROM {table} WHERE {condition}", stream
        ).fetchall()

    def clear(self, table: str) -> None:
        """Forgets all rows of a table."""
        self._connection.execute(f"DELETE FROM {table}")

    def about(self, name: str) -> str | None:
        """The remark of that name."""
        row = self.row("about", name)
        return None if row is None else str(row[0])

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


_TABLE = "table"
_PLAIN_KINDS = "biuf"


def outputs_to_bytes(outputs: Outputs) -> bytes:
    """Outputs as the bytes of an .npz file: its arrays, and a table that says what they are."""
    arrays: dict[str, Array] = {}
    blocks = []
    for number, block in enumerate(outputs.blocks):
        if block.rows is not None:
            arrays[f"{number}.rows"] = block.rows
        labels = []
        for column, values in enumerate(block.columns):
            arrays[f"{number}.{column}"] = (
                values.codes if isinstance(values, Labels) else values.values
            )
            if isinstance(values, Numbers) and values.widths is not None:
                arrays[f"{number}.{column}.widths"] = values.widths
            labels.append(
                list(map(label_to_data, values.labels)) if isinstance(values, Labels) else None
            )
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
        for column, labels in enumerate(block["labels"]):
            values = arrays[f"{number}.{column}"]
            widths = arrays.get(f"{number}.{column}.widths")
            names = None if labels is None else tuple(map(label_from_data, labels))
            columns.append(Numbers(values, widths) if names is None else Labels(values, names))
        blocks.append(
            Block(
                str(block["shape"]),
                arrays.get(f"{number}.rows"),
                tuple(columns),
                int(block["size"]),
            )
        )
    return Outputs(tuple(blocks), int(table["size"]))


def tally_to_data(tally: Any) -> Any:
    """A tally as JSON can hold it: numbers, arrays of numbers, draws, and dataclasses and containers of these."""
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
        return [tally_to_data(each) for each in tally]
    if isinstance(tally, dict) and all(isinstance(name, str) for name in tally):
        return {name: tally_to_data(each) for name, each in tally.items()}
    if is_dataclass(tally) and not isinstance(tally, type):
        return {each.name: tally_to_data(getattr(tally, each.name)) for each in fields(tally)}
    hint = "make it of numbers, arrays and dataclasses of these"
    raise InputError(
        f"a tally of type {type(tally).__name__} cannot be kept in a checkpoint: {hint}"
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
        return (
            np.frombuffer(base64.b64decode(data["values"]), dtype=kind)
            .reshape(data["shape"])
            .copy()
        )
    if isinstance(example, list | tuple):
        if len(data) and not example:
            raise ValueError("entries of a list that was empty in the example")
        # A list may have grown since; its new entries are like the example's last one.
        rebuilt = [
            _rebuild(each, example[min(number, len(example) - 1)])
            for number, each in enumerate(data)
        ]
        # A named tuple takes its entries one by one.
        return type(example)(*rebuilt) if hasattr(example, "_fields") else type(example)(rebuilt)
    if isinstance(example, dict):
        return {name: _rebuild(data[name], each) for name, each in example.items()}
    values = {
        each.name: _rebuild(data[each.name], getattr(example, each.name))
        for each in fields(example)
    }
    return type(example)(**values)
