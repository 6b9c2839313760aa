"""Drawing: the work that is sent to a worker, which draws and reduces some chunks of a pair."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from epsilometer.engine.fingerprints import fingerprint
from epsilometer.engine.isolation import detect_monkeypatching, isolate_process_state
from epsilometer.engine.seeds import chunk_rngs
from epsilometer.errors import short_repr
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.drawing_log import NO_INCIDENTS, DrawingLog, Incidents, logged
from epsilometer.outputs import Outputs

T = TypeVar("T")
# How to reduce the outputs of a left and of a right chunk.
Reductions = tuple[Callable[[Outputs], Any], Callable[[Outputs], Any]]


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """The result of one chunk.

    Attributes:
        value: its reduced outputs.
        size: its number of outputs.
        fingerprint: by which repetitions are recognised.
        incidents: what happened while it was drawn.
    """

    value: T
    size: int
    fingerprint: bytes
    incidents: Incidents = NO_INCIDENTS


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """A chunk that is to be drawn, or the rest of one that was interrupted.

    Attributes:
        side: 0 left, 1 right.
        chunk: its number in the stream of that side.
        n: how many outputs.
        start: how many outputs of the chunk were drawn before.
    """

    side: int
    chunk: int
    n: int
    start: int = 0


class RequestedChunk(NamedTuple):
    """A chunk, or the finished part of one, with the request that it answers."""

    request: ChunkRequest
    chunk: Chunk[Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The work that all chunks of a pair share.

    It is sent to a worker once, and is a pure function of the chunks.

    Attributes:
        mechanism: what draws.
        inputs: left and right.
        seed: of the audit.
        phase: what the draws are for.
        pair: the number of the pair in the audit.
        reductions: of left and right outputs.
        rescued: in the process that gives out the work: chunks that were finished when it was
            interrupted, and the finished outputs of a chunk that was not.
        lost: also there: the side of every draw that was begun, or may have been, and whose output
            will never be known.
    """

    mechanism: Mechanism
    inputs: tuple[Any, Any]
    seed: int
    phase: int
    pair: int
    reductions: Reductions
    rescued: list[RequestedChunk] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)

    def __call__(self, task: Sequence[ChunkRequest]) -> list[Chunk[Any]]:
        """Draws some chunks, in the given order."""
        chunks: list[Chunk[Any]] = []
        sides_and_numbers = [(request.side, request.chunk) for request in task]
        rngs = chunk_rngs(self.seed, self.phase, self.pair, sides_and_numbers)
        datasets = [self.inputs[request.side] for request in task]
        with detect_monkeypatching(self.mechanism.name, datasets):
            for request, rng in zip(task, rngs, strict=True):
                dataset = self.inputs[request.side]
                with logged() as log:
                    try:
                        with isolate_process_state(self.mechanism.name, dataset):
                            outputs = self.mechanism.sample(dataset, request.n, rng)
                        value = self.reductions[request.side](outputs)
                        chunk = Chunk(
                            value=value,
                            size=outputs.size,
                            fingerprint=fingerprint(outputs),
                            incidents=log.incidents,
                        )
                        chunks.append(chunk)
                    except BaseException:
                        self._abandon(task, chunks, log)
                        raise
        return chunks

    @property
    def is_unseeded(self) -> bool:
        """Whether drawing again gives other outputs."""
        return not self.mechanism.is_seeded

    def _abandon(
        self, task: Sequence[ChunkRequest], chunks: list[Chunk[Any]], log: DrawingLog
    ) -> None:
        """Keeps what a task has finished when it is interrupted, and counts what is lost."""
        self.rescue(task, chunks)
        if len(chunks) == len(task):
            return
        interrupted = task[len(chunks)]
        finished: Outputs | None = None
        if log.finished is not None:
            with suppress(Exception):  # outputs that cannot be read are lost
                finished = log.finished().copied()
        if finished is None:
            self.lose([interrupted])
            return
        if finished.size:
            part = Chunk(
                value=finished,
                size=finished.size,
                fingerprint=fingerprint(finished),
                incidents=log.incidents,
            )
            self.rescued.append(RequestedChunk(interrupted, part))
        if finished.size < interrupted.n:  # one at a time: the draw that was under way
            self.lost.append(interrupted.side)

    def rescue(self, task: Sequence[ChunkRequest], chunks: Sequence[Chunk[Any]]) -> None:
        """Keeps the first chunks of a task, which were finished before it was interrupted."""
        for request, chunk in zip(task, chunks, strict=False):
            self.rescued.append(RequestedChunk(request, chunk))

    def lose(self, task: Sequence[ChunkRequest]) -> None:
        """Counts all draws of a task as lost.

        The task was begun, or may have been, and will never be answered.
        """
        for request in task:
            self.lost.extend([request.side] * request.n)

    def describe(self, task: Sequence[ChunkRequest]) -> str:
        """Describes a task, for messages."""
        sides = dict.fromkeys(request.side for request in task)
        inputs = " or ".join(short_repr(self.inputs[side]) for side in sides)
        return f"{self.mechanism.name} on the input {inputs}"
