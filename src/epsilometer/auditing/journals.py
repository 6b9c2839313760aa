"""A file from which an interrupted audit goes on and comes to the same result.

It holds the draws that explore and learn, and what the draws of the proof add up to so far. An SQLite database: a
transaction is in the file or never happened, whenever the process is killed, and the file stays small however many
draws there are. Plain arrays and JSON, nothing pickled.

Learning is done again from the kept draws; that it leads to the same proposal is checked on them. So tallies are never
mixed with those of another proposal, also if the mechanism cannot be seeded.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.auditing.judge import Question
from epsilometer.auditing.packing import outputs_from_bytes, outputs_to_bytes, tally_from_data, tally_to_data
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import Counts
from epsilometer.engine import Fingerprints, Folded, Journal, NoJournal
from epsilometer.engine.chunks import Pieces, Stream
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.finders.base import Finder
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.recordings import Recording
from epsilometer.outputs import Outputs
from epsilometer.storage import Undigestible, code_digest, input_key

_VERSION = 2
_HEADER, _ZIP = b"SQLite format 3\0", b"PK"
# What was drawn is safely on the disk after so many seconds at the latest, or when writing has cost a fiftieth of the
# time since.
_SECONDS, _SHARE = 0.5, 50.0
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS outputs (phase INTEGER, pair INTEGER, side INTEGER, chunk INTEGER, fingerprint BLOB,
    outputs BLOB, PRIMARY KEY (phase, pair, side, chunk));
CREATE TABLE IF NOT EXISTS folded (phase INTEGER, pair INTEGER, side INTEGER, chunks INTEGER, size INTEGER, total TEXT,
    pieces BLOB, width INTEGER, filled INTEGER, fingerprints BLOB,
    PRIMARY KEY (phase, pair, side));
"""


@contextmanager
def journal_of(
    path: str | Path | None,
    mechanism: Mechanism,
    inputs: Sequence[Pair] | Finder,
    question: Question,
    settings: Settings,
) -> Iterator[Journal]:
    """The journal of an audit in the file of that name; None remembers nothing."""
    if path is None:
        yield NoJournal()
        return
    journal = FileJournal(path, audit_key(mechanism, inputs, question, settings))
    try:
        yield journal
    finally:
        journal.close()


def audit_key(
    mechanism: Mechanism, inputs: Sequence[Pair] | Finder, question: Question, settings: Settings
) -> dict[str, Any]:
    """What must be the same for an audit to go on: everything but where it runs."""
    return {
        **identity_key(mechanism, inputs, settings.method),
        "chunk_size": mechanism.chunk_size,
        "claim": json.dumps(question.claim.to_dict(), sort_keys=True),
        "judged": question.judged,
        "confidence": settings.confidence,
        "samples": settings.samples,
        "seed": settings.seed,
        "representation": str(settings.record.get("representation")),
    }


def identity_key(mechanism: Mechanism, inputs: Sequence[Pair] | Finder, method: object) -> dict[str, Any]:
    """What is audited, and how, by content: another function of the same name is another mechanism.

    Raises:
        InputError: if something could not be recognised again, or begins anew every time.
    """
    if isinstance(mechanism, Recording) or mechanism.keeper is not None:
        raise InputError("checkpoint= does not go together with a recording, which begins at its beginning every time")
    asked = inputs if isinstance(inputs, Finder) else [(pair.left, pair.right) for pair in inputs]
    try:
        return {
            "mechanism": mechanism.name,
            "code": mechanism.digest(),
            "inputs": input_key(asked),
            "method": code_digest(method),
        }
    except Undigestible as error:
        raise InputError(f"checkpoint=: the audit could not be recognised when it goes on: {error}") from error


def is_journal(path: str | Path) -> bool:
    """Whether a file is the journal of an audit, as far as its first bytes tell."""
    return _first_bytes(Path(path)) == _HEADER


def journal_seed(path: str | Path) -> int | None:
    """The seed of the audit that a journal belongs to; None if nothing was written yet."""
    with _explained(Path(path)):
        # Not read-only: what a killed process left half written has to be taken back first.
        connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=rw", uri=True, timeout=0.0)
        try:
            is_new = not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchall()
            rows = [] if is_new else connection.execute("SELECT value FROM about WHERE name = 'key'").fetchall()
        finally:
            connection.close()
        return int(json.loads(rows[0][0])["seed"]) if rows else None


class FileJournal:
    """The journal of one audit in one file."""

    is_kept = True

    def __init__(self, path: str | Path, key: Mapping[str, Any]) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise InputError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}")
        if self.path.is_file() and _first_bytes(self.path).startswith(_ZIP):
            raise InputError(f"checkpoint={str(path)!r} belongs to an audit that stops early; give another file")
        self._pending: dict[Stream, Folded] = {}
        with self._explained():
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=0.0)
            try:
                self._open(dict(key))
            except BaseException:
                self._connection.close()
                raise
        self._due = time.monotonic() + _SECONDS

    def _open(self, key: dict[str, Any]) -> None:
        # Held until the end: two audits in one file would count each other's draws.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES.split(";\n")[:-1]:
            self._connection.execute(statement)
        stored = self._about("key")
        if stored is None:
            self._tell("version", str(_VERSION))
            self._tell("key", json.dumps(key))
        elif self._about("version") != str(_VERSION):
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

    def recall(self, stream: Stream, chunk: int) -> tuple[Outputs, bytes] | None:
        """The outputs of a chunk and their fingerprint; None if it was not drawn before."""
        with self._explained():
            row = self._connection.execute(
                "SELECT outputs, fingerprint FROM outputs WHERE phase = ? AND pair = ? AND side = ? AND chunk = ?",
                (*stream, chunk),
            ).fetchone()
            return None if row is None else (outputs_from_bytes(row[0]), bytes(row[1]))

    def keep(self, stream: Stream, chunk: int, outputs: Outputs, fingerprint: bytes) -> None:
        """Remembers a chunk of outputs."""
        with self._explained():
            row = (*stream, chunk, fingerprint, outputs_to_bytes(outputs))
            self._connection.execute("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?, ?, ?, ?)", row)
            self._write_if_due()

    def recognise(self, number: int, examples: tuple[Any, Any]) -> None:
        """Makes sure that what is to be proved is what was to be proved before the interruption."""
        text = json.dumps([tally_to_data(example) for example in examples])
        name, digest = f"proposal {number}", hashlib.sha256(text.encode()).hexdigest()
        with self._explained():
            known = self._about(name)
            if known is None:
                self._tell(name, digest)
            elif known != digest:
                raise InputError(
                    f"checkpoint={str(self.path)!r}: the same draws lead to another proposal than before the "
                    "interruption (did the program or a library change?), so its counts are useless; give another file"
                )

    def resume(self, stream: Stream, example: Any) -> Folded | None:
        """What the first chunks of a stream add up to; None if nothing is known of it."""
        with self._explained():
            row = self._connection.execute(
                "SELECT chunks, size, total, pieces, width, filled, fingerprints FROM folded "
                "WHERE phase = ? AND pair = ? AND side = ?",
                stream,
            ).fetchone()
            return None if row is None else _folded_from(row, example)

    def save(self, stream: Stream, folded: Folded) -> None:
        """Remembers what the chunks of a stream add up to so far, in place of what it knew before."""
        with self._explained():
            if self._pending and next(iter(self._pending))[:2] != stream[:2]:
                self._write_pending()
                self._pending.clear()
            self._pending[stream] = folded  # the two sides take turns
            self._write_if_due()

    def close(self) -> None:
        """Everything that was completed is in the file."""
        with self._explained():
            try:
                self._write()
            finally:
                self._connection.close()

    def _write_if_due(self) -> None:
        if time.monotonic() >= self._due:
            began = time.monotonic()
            self._write()
            ended = time.monotonic()
            self._due = ended + max(_SECONDS, _SHARE * (ended - began))

    def _write(self) -> None:
        """Puts everything safely on the disk."""
        self._write_pending()
        if self._connection.in_transaction:  # it may be interrupted just here
            self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")

    def _write_pending(self) -> None:
        # What an interruption left half added stays as it was in the file, and that chunk is drawn again.
        for stream, folded in self._pending.items():
            if folded.is_whole:
                row = (*stream, *_folded_to_row(folded))
                self._connection.execute(f"INSERT OR REPLACE INTO folded VALUES ({', '.join('?' * len(row))})", row)

    def _about(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _tell(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def _explained(self) -> Any:
        return _explained(self.path)


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_HEADER))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Says what is wrong with a checkpoint."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise InputError(f"checkpoint={str(path)!r} is in use by another audit") from error
        raise InputError(f"checkpoint={str(path)!r} cannot be used: {error}") from error
    except (sqlite3.Error, zipfile.BadZipFile, json.JSONDecodeError, KeyError, TypeError, OSError) as error:
        raise InputError(f"checkpoint={str(path)!r} is no checkpoint of such an audit: {error}") from error


def _folded_to_row(folded: Folded) -> tuple[Any, ...]:
    pieces = folded.pieces
    counts = np.array([(each.hits, each.trials) for each in pieces.counts], dtype="<i8").tobytes()
    total = json.dumps(tally_to_data(folded.total))
    numbers = pieces.width, pieces.filled
    return folded.chunks, folded.size, total, counts, *numbers, folded.fingerprints.to_bytes()


def _folded_from(row: Sequence[Any], example: Any) -> Folded:
    chunks, size, total, stored, width, filled, prints = row
    counts = [Counts(hits, trials) for hits, trials in np.frombuffer(stored, dtype="<i8").reshape(-1, 2).tolist()]
    return Folded(
        int(chunks),
        int(size),
        tally_from_data(json.loads(total), example),
        Pieces(counts, int(width), int(filled)),
        Fingerprints.from_bytes(prints),
    )
