"""How an audit is remembered, so that it resumes after an interruption with the same result.

Of an audit that draws all samples the file keeps the draws that explore and learn, and the tallies
of the proof so far. Learning is repeated from the kept draws, and the proposal is checked to be the
same. So tallies never mix with those of another proposal, even if the mechanism cannot be seeded.
Of one that may stop early it keeps the `State`.
"""

import hashlib
import json
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.auditing.questions import AnyQuestion, Question
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import Counts
from epsilometer.engine.fingerprints import Fingerprints
from epsilometer.engine.folding import ChunkGroups, Folded
from epsilometer.engine.journal import Journal, StreamKey
from epsilometer.errors import InputError
from epsilometer.inputs.pairs import Finder, Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.drawing_log import Incidents
from epsilometer.methods.sequential import SequentialMethod, Stake
from epsilometer.outputs import Outputs
from epsilometer.storage import Undigestible, code_digest, input_key
from epsilometer.storage.journal import JournalFile
from epsilometer.storage.tallies import (
    outputs_from_bytes,
    outputs_to_bytes,
    tally_from_data,
    tally_to_data,
)

Key = dict[str, Any]


def audit_key(
    mechanism: Mechanism, inputs: list[Pair] | Finder, question: AnyQuestion, settings: Settings
) -> Key:
    """What must be the same for an audit to resume: everything but where it runs.

    An audit that stops early may resume with more samples and more time. Its options also name the
    file, so those that matter are listed one by one.

    Raises:
        InputError: if something cannot be recognised again, or restarts from its beginning every
            time.
    """
    if mechanism.used is not None:  # it reads a recording, or writes one
        raise InputError(
            "checkpoint= cannot be combined with a recording, "
            "which is read from its beginning every time"
        )
    method = settings.method
    asked = inputs if isinstance(inputs, Finder) else [(pair.left, pair.right) for pair in inputs]
    try:  # by content: another function of the same name is another mechanism
        identity = {
            "mechanism": mechanism.name,
            "code": mechanism.digest(),
            "inputs": input_key(asked),
        }
        if mechanism.features is not None:
            identity["features"] = code_digest(mechanism.features)
        identity["method"] = code_digest(
            method.name if isinstance(method, SequentialMethod) else method
        )
    except Undigestible as error:
        raise InputError(
            f"checkpoint=: the audit could not be recognised when it resumes: {error}"
        ) from error
    claim = "the mechanism's own, for every pair"  # which is recognised by its code
    if isinstance(question, Question):
        claim = json.dumps(question.claim.to_dict(), sort_keys=True)
    key = {**identity, "claim": claim, "judged": question.judged}
    key |= {"confidence": settings.confidence, "seed": settings.seed}
    if isinstance(method, SequentialMethod):
        return key | {"pilot": method.options.pilot, "growth": method.options.growth}
    return key | {
        "chunk_size": mechanism.chunk_size,
        "samples": settings.samples,
        "representation": settings.representation,
    }


class FileJournal(Journal):
    """Remembers the draws of one audit in one file."""

    is_kept = True

    def __init__(self, path: str | Path, key: Key) -> None:
        self._file = JournalFile(path, key)
        self._pending: dict[StreamKey, Folded] = {}

    def recall(self, stream: StreamKey, chunk: int) -> tuple[Outputs, bytes] | None:
        """The outputs of a chunk and their fingerprint; None if it was not drawn before."""
        with self._file.explained():
            known = self._file.row("outputs", *stream, chunk)
            return None if known is None else (outputs_from_bytes(known[2]), known[1])

    def sizes(self, stream: StreamKey) -> dict[int, int]:
        """How many outputs of which chunks are remembered."""
        with self._file.explained():
            return {
                int(chunk): int(size)
                for chunk, size in self._file.rows("outputs", "chunk, size", stream)
            }

    def keep(self, stream: StreamKey, chunk: int, outputs: Outputs, fingerprint: bytes) -> None:
        """Remembers a chunk of outputs."""
        with self._file.explained():
            stored = outputs_to_bytes(outputs)
            self._file.put("outputs", *stream, chunk, outputs.size, fingerprint, stored)
            self._write_if_due()

    def note_incidents(self, stream: StreamKey, chunk: int, incidents: Incidents) -> None:
        """Remembers what happened while a chunk was drawn."""
        with self._file.explained():
            self._file.put(
                "incidents", *stream, chunk, incidents.requests, incidents.retried, incidents.failed
            )

    def incidents(self, stream: StreamKey) -> dict[int, Incidents]:
        """What happened while chunks were drawn, by the number of the chunk."""
        with self._file.explained():
            rows = self._file.rows("incidents", "chunk, requests, retried, failed", stream)
        return {int(chunk): Incidents(*map(int, counts)) for chunk, *counts in rows}

    def check_same_proposal(self, number: int, examples: tuple[Any, Any]) -> None:
        """Makes sure that the proposal is the one from before the interruption."""
        text = json.dumps([tally_to_data(example) for example in examples])
        name = f"proposal {number}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self._file.explained():
            stored_digest = self._file.about(name)
            if stored_digest is None:
                self._file.put("about", name, digest)
            elif stored_digest != digest:
                raise InputError(
                    f"checkpoint={str(self._file.path)!r}: the same draws lead to another proposal "
                    "than before the interruption (did the program or a library change?), "
                    "so its counts are useless; give another file"
                )

    def resume(self, stream: StreamKey, example: Any) -> Folded | None:
        """The total of the first chunks of a stream; None if the stream is unknown."""
        with self._file.explained():
            row = self._file.row("folded", *stream)
            if row is None:
                return None
            chunks, size, total, count_bytes, width, filled, prints = row
            hits_and_trials = np.frombuffer(count_bytes, dtype="<i8").reshape(-1, 2).tolist()
            counts = [Counts(hits, trials) for hits, trials in hits_and_trials]
            tally = tally_from_data(json.loads(total), example)
            groups = ChunkGroups(counts, int(width), int(filled))
            return Folded(int(chunks), int(size), tally, groups, Fingerprints.from_bytes(prints))

    def save(self, stream: StreamKey, folded: Folded) -> None:
        """Remembers the total of a stream's chunks so far, replacing the one before."""
        with self._file.explained():
            if self._pending and next(iter(self._pending))[:2] != stream[:2]:
                self._put_pending()
                self._pending.clear()
            self._pending[stream] = folded  # the two sides take turns
            self._write_if_due()

    def read_note(self, name: str) -> str | None:
        """The note of this name; None if there is none."""
        with self._file.explained():
            return self._file.about(name)

    def write_note(self, name: str, text: str) -> None:
        """Remembers a text."""
        with self._file.explained():
            self._file.put("about", name, text)
            self._write_if_due()

    def write_note_now(self, name: str, text: str) -> None:
        """Remembers a text, and writes everything to disk before it returns."""
        with self._file.explained():
            self._file.put("about", name, text)
            self._put_pending()
            self._file.commit()

    def stored_state(self) -> bytes | None:
        """The state of an audit that may stop early; None if it has none yet."""
        with self._file.explained():
            row = self._file.row("state", 0)
        return None if row is None else row[0]

    def store_state(self, state: bytes) -> None:
        """Remembers the state of an audit that may stop early, on disk before it returns.

        The state holds the draws of the batches so far, which are therefore forgotten.
        """
        with self._file.explained():
            self._file.put("state", 0, state)
            self._file.clear("outputs")
            self._file.clear("incidents")
            self._file.commit()

    def close(self) -> None:
        """Writes everything that was completed."""
        try:
            with self._file.explained():
                self._put_pending()
        finally:
            self._file.close()

    def _write_if_due(self) -> None:
        if self._file.is_due:
            self._put_pending()
            self._file.commit()

    def _put_pending(self) -> None:
        # A total that an interruption left half added keeps its old value in the file, and its
        # chunk is drawn again.
        for stream, folded in self._pending.items():
            if folded.is_whole:
                groups = folded.groups
                total = json.dumps(tally_to_data(folded.total))
                hits_and_trials = [(count.hits, count.trials) for count in groups.counts]
                self._file.put(
                    "folded",
                    *stream,
                    folded.chunks,
                    folded.size,
                    total,
                    np.array(hits_and_trials, dtype="<i8").tobytes(),
                    groups.width,
                    groups.filled,
                    folded.fingerprints.to_bytes(),
                )


NOTHING = Outputs((), 0)
# The fields of a state that are whole numbers.
_INTEGER_FIELDS = ("pair", "choices", "chosen_at", "batch", "spent", "evidence")
# The fields of a state that are stored like tallies.
_TALLY_FIELDS = ("log_wealth", "best", "left", "right")


@dataclass(slots=True)
class State:
    """A sequential audit after some batches.

    Attributes:
        log_wealth: shape (values,), of the bet against each value.
        best: the same at its best so far.
        left: draws that may choose an event, in order.
        right: likewise.
        pair: number of the pair.
        stakes: the events that are bet on, the better first; empty before the pilot.
        choices: how often events were chosen so far.
        chosen_at: draws per side at the last choice.
        batch: batches that were counted.
        spent: draws per side, pilot included.
        evidence: draws per side that were bet on.
        curve: per batch: draws per side, log-wealth against the claim, bound.
        fingerprints: of chunks, left and right.
        batches: per batch and bet, what is needed to recompute the wealth; see
            `SequentialRun._count`.
        stopped: why it ended: "refuted", "samples" or "seconds"; empty while it continues.
        incidents: what happened while the batches were drawn, by the number of the pair: left and
            right.
    """

    log_wealth: Floats
    best: Floats
    left: Outputs = NOTHING
    right: Outputs = NOTHING
    pair: int = 0
    stakes: list[Stake] = field(default_factory=list)
    choices: int = 0
    chosen_at: int = 0
    batch: int = 0
    spent: int = 0
    evidence: int = 0
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    fingerprints: tuple[Fingerprints, Fingerprints] = field(
        default_factory=lambda: (Fingerprints(), Fingerprints())
    )
    batches: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""
    incidents: dict[int, list[Incidents]] = field(default_factory=dict)

    @classmethod
    def empty(cls, n_values: int) -> "State":
        """The initial state, before the pilot."""
        return cls(log_wealth=np.zeros(n_values), best=np.zeros(n_values))

    def begin(
        self,
        pair: int,
        stakes: list[Stake],
        draws: tuple[Outputs, Outputs],
        spent: int,
        n_values: int,
    ) -> None:
        """Sets the state after the pilot, when nothing has been bet.

        Args:
            pair: the number of the pair that the pilot chose.
            stakes: the events to bet on.
            draws: the pilot's draws, left and right.
            spent: draws per side of the pilot, for all pairs together.
            n_values: values to bet against, which depend on the claim about the pair.
        """
        self.log_wealth = np.zeros(n_values)
        self.best = np.zeros(n_values)
        self.pair = pair
        self.spent = spent
        self.left, self.right = draws
        self.chosen_at = len(self.left)
        self.change(stakes)

    def change(self, stakes: list[Stake]) -> None:
        """Bets on other events from now on."""
        self.stakes = stakes
        self.choices += 1

    def add(self, size: int, log_factor: Floats) -> None:
        """Adds a batch of `size` draws per side that was bet on."""
        self.spent += size
        self.evidence += size
        self.log_wealth = self.log_wealth + log_factor
        self.best = np.maximum(self.best, self.log_wealth)

    def to_bytes(self) -> bytes:
        """The whole state as JSON; `from_bytes` is the inverse."""
        plain_fields = (*_INTEGER_FIELDS, "curve", "batches", "stopped")
        state = {name: getattr(self, name) for name in plain_fields}
        for name in _TALLY_FIELDS:
            state[name] = tally_to_data(getattr(self, name))
        state["stakes"] = [stake.to_dict() for stake in self.stakes]
        state["fingerprints"] = [side.to_bytes().hex() for side in self.fingerprints]
        state["incidents"] = [
            [number, *map(asdict, sides)] for number, sides in self.incidents.items()
        ]
        return json.dumps(state).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "State":
        """The inverse of `to_bytes`."""
        try:
            state = json.loads(content)
            example = cls.empty(0)
            fields: dict[str, Any] = {name: int(state[name]) for name in _INTEGER_FIELDS}
            for name in _TALLY_FIELDS:
                fields[name] = tally_from_data(state[name], getattr(example, name))
            left_prints, right_prints = [bytes.fromhex(text) for text in state["fingerprints"]]
            fields["fingerprints"] = (
                Fingerprints.from_bytes(left_prints),
                Fingerprints.from_bytes(right_prints),
            )
            fields["stakes"] = [Stake.from_dict(stake) for stake in state["stakes"]]
            fields["curve"] = [
                (int(n), float(log_wealth), float(bound)) for n, log_wealth, bound in state["curve"]
            ]
            fields["incidents"] = {
                int(number): [Incidents(**side) for side in sides]
                for number, *sides in state["incidents"]
            }
            return cls(**fields, batches=list(state["batches"]), stopped=str(state["stopped"]))
        except (KeyError, TypeError, ValueError, IndexError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(
                f"the state of the audit in its checkpoint cannot be read: {error!r}"
            ) from error
