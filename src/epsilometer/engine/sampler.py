"""Draws outputs of one side in chunks, each with its own seed, and reduces them where they are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from epsilometer.engine.folding import Fingerprints, Folded
from epsilometer.engine.journal import Journal, NoJournal
from epsilometer.engine.runners import Runner, SerialRunner
from epsilometer.engine.seeds import Phase, chunk_rng
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.base import shown
from epsilometer.outputs import Labels, Outputs, concatenate

T = TypeVar("T")
# So many outputs at the head of a chunk make its fingerprint: enough to recognise a repetition, cheap to hash. Only
# the head, because chunks of different length repeat each other's beginning when a seed is frozen.
FINGERPRINT_ROWS = 256
# Sending a task to a worker costs half a millisecond, a chunk of a vectorised mechanism little more. So workers are
# asked for up to 8 such chunks at a time, where enough tasks remain to keep them all busy and the progress moving.
_MANY_AT_ONCE, _LEAST_TASKS, _MOST_TOGETHER = 4096, 128, 8


class Progress(Protocol):
    """Is told how many outputs were drawn.

    It may also have `begin(total)` and `end()`, which are called around the work (the total is None when a search
    decides it), and `tell(text)`, which gets the state of the evidence while it grows.
    """

    def advance(self, n: int) -> None:
        """n more outputs of one side."""


class NoProgress:
    """Says nothing."""

    def advance(self, n: int) -> None:
        """Ignores it."""


@contextmanager
def watched(progress: Progress, total: int | None) -> Iterator[None]:
    """Tells a progress that wants to know where its work begins and ends."""
    begin, end = getattr(progress, "begin", None), getattr(progress, "end", None)
    if begin is not None:
        begin(total)
    try:
        yield
    finally:
        if end is not None:
            end()


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """What came of one chunk: its reduced outputs, its size, and a fingerprint to recognise repetitions."""

    value: T
    size: int
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The work that all chunks of one side share: sent to a worker once, and a pure function of the chunk."""

    mechanism: Mechanism
    dataset: Any
    stream: tuple[int, int, int, int]
    reduce: Callable[[Outputs], Any]

    def __call__(self, task: tuple[int, int]) -> list[Chunk[Any]]:
        """Draws some chunks.

        Args:
            task: the first one's number in the stream, and how many outputs they have together.
        """
        first, n = task
        size = self.mechanism.chunk_size
        return [self._draw(first + start // size, min(size, n - start)) for start in range(0, n, size)]

    def _draw(self, number: int, n: int) -> Chunk[Any]:
        outputs = self.mechanism.sample(self.dataset, n, chunk_rng(*self.stream, number))
        return Chunk(self.reduce(outputs), len(outputs), fingerprint(outputs))

    def __str__(self) -> str:
        return f"{self.mechanism.name} on the input {shown(self.dataset)}"


@dataclass(frozen=True, slots=True)
class _Kept:
    """Reduces outputs and keeps them, too."""

    reduce: Callable[[Outputs], Any]

    def __call__(self, outputs: Outputs) -> tuple[Any, Outputs]:
        """The reduced outputs, and the outputs."""
        kept = outputs.copied()  # before anything else sees them
        return self.reduce(outputs), kept


def fingerprint(outputs: Outputs) -> bytes:
    """A digest of the first outputs of a chunk: equal outputs, equal digest."""
    digest = hashlib.blake2b(digest_size=16)
    for block in outputs.take(slice(0, FINGERPRINT_ROWS)):
        digest.update(f"{block.shape}:{block.size};".encode())
        for column in block.columns:
            if isinstance(column, Labels):
                digest.update("\0".join(column.labels[code] for code in column.codes).encode(errors="replace"))
            else:
                digest.update(np.ascontiguousarray(column.values).tobytes())
    return digest.digest()


def _chunks_together(size: int, n: int) -> int:
    """How many chunks a worker is asked for at a time; what they give does not depend on it."""
    if size < _MANY_AT_ONCE:
        return 1
    return int(np.clip(n // size // _LEAST_TASKS, 1, _MOST_TOGETHER))


@dataclass(slots=True)
class Sampler:
    """Draws from one mechanism with one seed.

    Attributes:
        journal: remembers draws of an interrupted audit.
        drawn: outputs drawn so far, left and right; those of an audit that was interrupted are among them.
    """

    mechanism: Mechanism
    seed: int
    runner: Runner = field(default_factory=SerialRunner)
    progress: Progress = field(default_factory=NoProgress)
    journal: Journal = field(default_factory=NoJournal)
    drawn: list[int] = field(default_factory=lambda: [0, 0])

    def chunks(
        self, phase: Phase, number: int, pair: Pair, side: int, n: int, reduce: Callable[[Outputs], T], skip: int = 0
    ) -> Iterator[Chunk[T]]:
        """Draws n outputs of one side of a pair and yields what each chunk was reduced to, in order.

        Args:
            number: the pair's number in the audit, part of the seed.
            skip: chunks of this stream that were drawn before.
        """
        size = self.mechanism.chunk_size
        dataset = pair.side(side)
        keeper = getattr(self.mechanism, "keeper", None)
        reduction: Callable[[Outputs], Any] = reduce if keeper is None else _Kept(reduce)
        drawing = _Drawing(self.mechanism, dataset, (self.seed, phase, number, side), reduction)
        step = size * _chunks_together(size, n)
        tasks = ((skip + start // size, min(step, n - start)) for start in range(0, n, step))
        for chunk in chain.from_iterable(self.runner.map(drawing, tasks)):
            self._count(side, chunk.size)
            if keeper is not None:
                value, outputs = chunk.value
                keeper.keep(dataset, outputs)
                chunk = replace(chunk, value=value)
            yield chunk

    def kept(self, phase: Phase, number: int, pair: Pair, side: int, n: int, skip: int = 0) -> Iterator[Chunk[Outputs]]:
        """Like `chunks`, with all outputs; a chunk that the journal knows is not drawn again."""
        stream, place, missing = (int(phase), number, side), skip, n
        while missing > 0 and (known := self.journal.recall(stream, place)) is not None:
            outputs, print_of = known
            if len(outputs) != min(self.mechanism.chunk_size, missing):
                raise InputError(f"a chunk of {len(outputs)} outputs was remembered where another number is drawn")
            self._count(side, len(outputs))
            yield Chunk(outputs, len(outputs), print_of)
            place, missing = place + 1, missing - len(outputs)
        for chunk in self.chunks(phase, number, pair, side, missing, Outputs.copied, place):
            self.journal.keep(stream, place, chunk.value, chunk.fingerprint)
            place += 1
            yield chunk

    def outputs(self, phase: Phase, number: int, pair: Pair, side: int, n: int, skip: int = 0) -> Outputs:
        """Draws n outputs and keeps them all."""
        return concatenate([chunk.value for chunk in self.kept(phase, number, pair, side, n, skip)])

    def fold(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        side: int,
        n: int,
        reduce: Callable[[Outputs], Any],
        *,
        earlier: Fingerprints,
        example: Any = None,
    ) -> Folded:
        """Draws n outputs and adds up what their chunks are reduced to, from where the journal stopped.

        Args:
            earlier: fingerprints of other draws of this side; those of these draws are added to them.
            example: what other outputs of this side are reduced to; only a journal that is kept needs it.
        """
        stream = (int(phase), number, side)
        known = self.journal.resume(stream, example)
        folded = Folded(fingerprints=earlier) if known is None else known
        self._count(side, folded.size)
        for chunk in self.chunks(phase, number, pair, side, n - folded.size, reduce, folded.chunks):
            folded.add(chunk.value, chunk.size, chunk.fingerprint)
            self.journal.save(stream, folded)
        return folded

    def _count(self, side: int, n: int) -> None:
        if n:
            self.drawn[side] += n
            self.progress.advance(n)
