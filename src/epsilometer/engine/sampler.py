"""Draws outputs of one side in chunks, each with its own seed, and reduces them where they are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from epsilometer.engine.runners import Runner, SerialRunner
from epsilometer.engine.seeds import Phase, chunk_rng
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import Labels, Outputs, concatenate

T = TypeVar("T")
# So many outputs at the head of a chunk make its fingerprint: enough to recognise a repetition, cheap to hash. Only
# the head, because chunks of different length repeat each other's beginning when a seed is frozen.
FINGERPRINT_ROWS = 256


class Progress(Protocol):
    """Is told how many outputs were drawn."""

    def advance(self, n: int) -> None:
        """n more outputs of one side."""


class NoProgress:
    """Says nothing."""

    def advance(self, n: int) -> None:
        """Ignores it."""


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """What came of one chunk: its reduced outputs, its size, and a fingerprint to recognise repetitions."""

    value: T
    size: int
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class _Task:
    mechanism: Mechanism
    dataset: Any
    n: int
    key: tuple[int, int, int, int, int]
    reduce: Callable[[Outputs], Any]


def _run(task: _Task) -> Chunk[Any]:
    outputs = task.mechanism.sample(task.dataset, task.n, chunk_rng(*task.key))
    return Chunk(task.reduce(outputs), len(outputs), fingerprint(outputs))


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


def keep(outputs: Outputs) -> Outputs:
    """The reduction that keeps everything."""
    return outputs


@dataclass(slots=True)
class Sampler:
    """Draws from one mechanism with one seed.

    Attributes:
        drawn: outputs drawn so far, left and right.
    """

    mechanism: Mechanism
    seed: int
    runner: Runner = field(default_factory=SerialRunner)
    progress: Progress = field(default_factory=NoProgress)
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
        tasks = (
            _Task(
                self.mechanism,
                dataset,
                min(size, n - start),
                (self.seed, phase, number, side, skip + start // size),
                reduction,
            )
            for start in range(0, n, size)
        )
        for chunk in self.runner.map(_run, tasks):
            self.drawn[side] += chunk.size
            self.progress.advance(chunk.size)
            if keeper is not None:
                value, outputs = chunk.value
                keeper.keep(dataset, outputs)
                chunk = replace(chunk, value=value)
            yield chunk

    def outputs(self, phase: Phase, number: int, pair: Pair, side: int, n: int, skip: int = 0) -> Outputs:
        """Draws n outputs and keeps them all."""
        parts = [chunk.value for chunk in self.chunks(phase, number, pair, side, n, keep, skip)]
        return concatenate(parts) if parts else Outputs((), 0)
