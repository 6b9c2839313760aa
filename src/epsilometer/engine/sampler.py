"""Draws outputs in chunks, each with its own seed, and reduces them where they are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from epsilometer.engine.folding import Fingerprints, Folded
from epsilometer.engine.journal import Journal, NoJournal, Stream
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
class Order(Generic[T]):
    """Draws of one side that are wanted.

    Attributes:
        side: 0 left, 1 right.
        n: how many outputs.
        reduce: what is wanted of the outputs of a chunk.
        skip: chunks of this side's stream that were drawn before.
    """

    side: int
    n: int
    reduce: Callable[[Outputs], T]
    skip: int = 0


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The work that all chunks of a pair share: sent to a worker once, and a pure function of the chunk."""

    mechanism: Mechanism
    pair: Pair
    stream: tuple[int, int, int]
    reductions: dict[int, Callable[[Outputs], Any]]

    def __call__(self, task: tuple[int, int, int]) -> list[Chunk[Any]]:
        """Draws some chunks.

        Args:
            task: side, the first one's number in the stream of that side, and how many outputs they have together.
        """
        side, first, n = task
        size = self.mechanism.chunk_size
        return [self._draw(side, first + start // size, min(size, n - start)) for start in range(0, n, size)]

    def _draw(self, side: int, number: int, n: int) -> Chunk[Any]:
        outputs = self.mechanism.sample(self.pair.side(side), n, chunk_rng(*self.stream, side, number))
        return Chunk(self.reductions[side](outputs), len(outputs), fingerprint(outputs))

    def describe(self, task: tuple[int, int, int]) -> str:
        """A task in words, for messages."""
        return f"{self.mechanism.name} on the input {shown(self.pair.side(task[0]))}"


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
        return (chunk for _, chunk in self.draw(phase, number, pair, [Order(side, n, reduce, skip)]))

    def draw(self, phase: Phase, number: int, pair: Pair, orders: Sequence[Order[T]]) -> Iterator[tuple[int, Chunk[T]]]:
        """Draws what is ordered, one side after the other, and yields (side, chunk) in order.

        Both sides in one go keep all workers busy until the last chunk: none waits for the end of the first side.
        """
        keeper = getattr(self.mechanism, "keeper", None)
        reductions: dict[int, Callable[[Outputs], Any]] = {
            order.side: order.reduce if keeper is None else _Kept(order.reduce) for order in orders
        }
        drawing = _Drawing(self.mechanism, pair, (self.seed, phase, number), reductions)
        tasks = chain.from_iterable(map(self._tasks, orders))
        sides = chain.from_iterable(repeat(order.side, self._count_chunks(order.n)) for order in orders)
        for side, chunk in zip(sides, chain.from_iterable(self.runner.map(drawing, tasks)), strict=True):
            self._count(side, chunk.size)
            if keeper is not None:
                value, outputs = chunk.value
                keeper.keep(pair.side(side), outputs)
                chunk = replace(chunk, value=value)
            yield side, chunk

    def outputs(self, phase: Phase, number: int, pair: Pair, side: int, n: int, skip: int = 0) -> Outputs:
        """Draws n outputs of one side and keeps them all."""
        chunks = self.chunks(phase, number, pair, side, n, Outputs.copied, skip)
        return concatenate([chunk.value for chunk in chunks])

    def kept(
        self, phase: Phase, number: int, pair: Pair, n: int, skip: int = 0
    ) -> Iterator[tuple[int, Chunk[Outputs]]]:
        """Draws n outputs of both sides and keeps them all; a chunk that the journal knows is not drawn again."""
        places = [skip, skip]
        orders = []
        for side in (0, 1):
            missing = n
            for chunk in self._recalled((int(phase), number, side), skip, n):
                places[side], missing = places[side] + 1, missing - chunk.size
                yield side, chunk
            orders.append(Order(side, missing, Outputs.copied, places[side]))
        for side, chunk in self.draw(phase, number, pair, orders):
            self.journal.keep((int(phase), number, side), places[side], chunk.value, chunk.fingerprint)
            places[side] += 1
            yield side, chunk

    def both(self, phase: Phase, number: int, pair: Pair, n: int, skip: int = 0) -> tuple[Outputs, Outputs]:
        """Draws n outputs of both sides and keeps them all."""
        parts: tuple[list[Outputs], list[Outputs]] = ([], [])
        for side, chunk in self.kept(phase, number, pair, n, skip):
            parts[side].append(chunk.value)
        return concatenate(parts[0]), concatenate(parts[1])

    def fold(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        reductions: tuple[Callable[[Outputs], Any], Callable[[Outputs], Any]],
        *,
        earlier: Sequence[Fingerprints],
        examples: tuple[Any, Any] = (None, None),
    ) -> tuple[Folded, Folded]:
        """Draws n outputs of both sides and adds up what their chunks are reduced to, from where the journal stopped.

        Args:
            reductions: of left and right outputs.
            earlier: fingerprints of other draws of each side; those of these draws are added to them.
            examples: what other outputs of each side are reduced to; only a journal that is kept needs them.
        """
        sides, orders = [], []
        for side in (0, 1):
            known = self.journal.resume((int(phase), number, side), examples[side])
            folded = Folded(fingerprints=earlier[side]) if known is None else known
            self._count(side, folded.size)
            sides.append(folded)
            orders.append(Order(side, n - folded.size, reductions[side], folded.chunks))
        for side, chunk in self.draw(phase, number, pair, orders):
            sides[side].add(chunk.value, chunk.size, chunk.fingerprint)
            self.journal.save((int(phase), number, side), sides[side])
        return sides[0], sides[1]

    def _recalled(self, stream: Stream, place: int, n: int) -> Iterator[Chunk[Outputs]]:
        """The first of n outputs, as far as the journal knows them."""
        while n > 0 and (known := self.journal.recall(stream, place)) is not None:
            outputs, print_of = known
            if len(outputs) != min(self.mechanism.chunk_size, n):
                raise InputError(f"a chunk of {len(outputs)} outputs was remembered where another number is drawn")
            self._count(stream[2], len(outputs))
            yield Chunk(outputs, len(outputs), print_of)
            place, n = place + 1, n - len(outputs)

    def _tasks(self, order: Order[Any]) -> Iterator[tuple[int, int, int]]:
        size = self.mechanism.chunk_size
        step = size * _chunks_together(size, order.n)
        for start in range(0, order.n, step):
            yield order.side, order.skip + start // size, min(step, order.n - start)

    def _count_chunks(self, n: int) -> int:
        return -(-n // self.mechanism.chunk_size)

    def _count(self, side: int, n: int) -> None:
        if n:
            self.drawn[side] += n
            self.progress.advance(n)
