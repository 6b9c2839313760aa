"""How an audit that draws all samples is remembered, so that it resumes after an interruption with the same result.

The file keeps the draws that explore and learn, and the tallies of the proof so far. Learning is repeated from the kept
draws, and the proposal is checked to be the same. So tallies never mix with those of another proposal, even if the
mechanism cannot be seeded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.auditing.judge import Question
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import Counts
from epsilometer.engine import Fingerprints, Folded, Journal
from epsilometer.engine.chunks import Pieces
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.finders.base import Finder
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.recordings import Recording
from epsilometer.methods.sequential import SequentialMethod
from epsilometer.outputs import Outputs
from epsilometer.storage import Undigestible, code_digest, input_key
from epsilometer.storage.journal import JournalFile, Stream
from epsilometer.storage.packing import outputs_from_bytes, outputs_to_bytes, tally_from_data, tally_to_data


@contextmanager
def journal_of(
    path: str | Path, mechanism: Mechanism, inputs: Sequence[Pair] | Finder, question: Question, settings: Settings
) -> Iterator[Journal]:
    """The journal of an audit in the file of that name."""
    journal = FileJournal(path, audit_key(mechanism, inputs, question, settings))
    try:
        yield journal
    finally:
        journal.close()


def audit_key(
    mechanism: Mechanism, inputs: Sequence[Pair] | Finder, question: Question, settings: Settings
) -> dict[str, Any]:
    """What must be the same for an audit to resume: everything but where it runs.

    An audit that stops early may resume with more samples and more time. Its options also name the file, so those that
    matter are listed one by one.
    """
    method = settings.method
    key = {
        **_identity(mechanism, inputs, method.name if isinstance(method, SequentialMethod) else method),
        "claim": json.dumps(question.claim.to_dict(), sort_keys=True),
        "judged": question.judged,
        "confidence": settings.confidence,
        "seed": settings.seed,
    }
    if isinstance(method, SequentialMethod):
        return key | {"pilot": method.options.pilot, "growth": method.options.growth}
    representation = str(settings.record.get("representation"))
    return key | {"chunk_size": mechanism.chunk_size, "samples": settings.samples, "representation": representation}


def _identity(mechanism: Mechanism, inputs: Sequence[Pair] | Finder, method: object) -> dict[str, Any]:
    """What is audited, and how, by content: another function of the same name is another mechanism.

    Raises:
        InputError: if something cannot be recognised again, or restarts from its beginning every time.
    """
    if isinstance(mechanism, Recording) or mechanism.keeper is not None:
        raise InputError("checkpoint= cannot be combined with a recording, which is read from its beginning every time")
    asked = inputs if isinstance(inputs, Finder) else [(pair.left, pair.right) for pair in inputs]
    try:
        return {
            "mechanism": mechanism.name,
            "code": mechanism.digest(),
            "inputs": input_key(asked),
            "method": code_digest(method),
        }
    except Undigestible as error:
        raise InputError(f"checkpoint=: the audit could not be recognised when it resumes: {error}") from error


class FileJournal:
    """Remembers the draws of one audit in one file."""

    is_kept = True

    def __init__(self, path: str | Path, key: Mapping[str, Any]) -> None:
        self._file = JournalFile(path, key)
        self._pending: dict[Stream, Folded] = {}

    def recall(self, stream: Stream, chunk: int) -> tuple[Outputs, bytes] | None:
        """The outputs of a chunk and their fingerprint; None if it was not drawn before."""
        with self._file.explained():
            known = self._file.chunk(stream, chunk)
            return None if known is None else (outputs_from_bytes(known[0]), known[1])

    def keep(self, stream: Stream, chunk: int, outputs: Outputs, fingerprint: bytes) -> None:
        """Remembers a chunk of outputs."""
        with self._file.explained():
            self._file.put_chunk(stream, chunk, outputs_to_bytes(outputs), fingerprint)
            self._write_if_due()

    def recognise(self, number: int, examples: tuple[Any, Any]) -> None:
        """Makes sure that the proposal is the one from before the interruption."""
        text = json.dumps([tally_to_data(example) for example in examples])
        name, digest = f"proposal {number}", hashlib.sha256(text.encode()).hexdigest()
        with self._file.explained():
            known = self._file.about(name)
            if known is None:
                self._file.tell(name, digest)
            elif known != digest:
                raise InputError(
                    f"checkpoint={str(self._file.path)!r}: the same draws lead to another proposal than before the "
                    "interruption (did the program or a library change?), so its counts are useless; give another file"
                )

    def resume(self, stream: Stream, example: Any) -> Folded | None:
        """The total of the first chunks of a stream; None if the stream is unknown."""
        with self._file.explained():
            row = self._file.folded(stream)
            return None if row is None else _folded_from(row, example)

    def save(self, stream: Stream, folded: Folded) -> None:
        """Remembers the total of a stream's chunks so far, replacing the one before."""
        with self._file.explained():
            if self._pending and next(iter(self._pending))[:2] != stream[:2]:
                self._put_pending()
                self._pending.clear()
            self._pending[stream] = folded  # the two sides take turns
            self._write_if_due()

    def told(self, name: str) -> str | None:
        """What was told under a name; None if nothing was."""
        with self._file.explained():
            return self._file.about(name)

    def tell(self, name: str, text: str) -> None:
        """Remembers a text."""
        with self._file.explained():
            self._file.tell(name, text)
            self._write_if_due()

    def close(self) -> None:
        """Writes everything that was completed."""
        try:
            with self._file.explained():
                self._put_pending()
        finally:
            self._file.close()

    def _write_if_due(self) -> None:
        if self._file.is_due:
            self._write()

    def _write(self) -> None:
        self._put_pending()
        self._file.commit()

    def _put_pending(self) -> None:
        # A total that an interruption left half added keeps its old value in the file, and its chunk is drawn again.
        for stream, folded in self._pending.items():
            if folded.is_whole:
                self._file.put_folded(stream, _folded_to_row(folded))


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
