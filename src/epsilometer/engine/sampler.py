"""Draws outputs in chunks, each with its own seed, and reduces them where they are drawn.

The two sides of a pair take turns, block by block, in an order that the seed decides anew for every
block. So a distribution that changes while it is drawn changes for both sides, and is not mistaken
for a difference between them.
"""

import json
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, tee
from operator import is_not
from time import monotonic  # by name: a mechanism may replace what the module holds
from typing import Any, Generic, Protocol, TextIO, TypeVar

import numpy as np

from epsilometer.engine import chunks as seeded
from epsilometer.engine.chunks import Fingerprints, Folded, Journal, Phase
from epsilometer.engine.parcels import TimeUp, own_generator
from epsilometer.engine.runners import Runner, SerialRunner
from epsilometer.errors import InputError, MechanismError, shown
from epsilometer.inputs import Pair
from epsilometer.interruptions import callers_error, mechanism_runs
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.base import failure_text
from epsilometer.mechanisms.drawing_log import NO_INCIDENTS, DrawingLog, Incidents, logged
from epsilometer.outputs import Outputs, concatenate

T = TypeVar("T")
Reductions = tuple[Callable[[Outputs], Any], Callable[[Outputs], Any]]
# Sending a task to a worker costs half a millisecond, a chunk of a vectorised mechanism often less.
# So workers get up to 8 blocks of such a mechanism at a time, as long as enough tasks remain to
# keep them all busy and the progress moving; blocks that take a while need more of them. Without
# workers, watching over a task is all that it costs.
_MANY_AT_ONCE = 4096
_MOST_TOGETHER = 8
_LARGE_BLOCK = 1 << 14
_LEAST_TASKS = 16
_LEAST_LARGE_TASKS = 128
_LEAST_SERIAL_TASKS = 4
# Coins that are tossed at a time: tossing one costs as much.
_COINS = 64


class Progress(Protocol):
    """Learns how many outputs were drawn.

    It may also have `begin(total)` and `end()`, which are called around the work (the total is None
    when a search decides it), and `tell(text)`, which receives the state of the evidence as it
    grows.
    """

    def advance(self, n: int) -> None:
        """n more outputs of one side."""


class NoProgress:
    """Says nothing."""

    def advance(self, n: int) -> None:
        """Ignores it."""


@contextmanager
def watched(progress: Progress, total: int | None) -> Iterator[None]:
    """Calls `begin` and `end` of a progress that has them."""
    getattr(progress, "begin", lambda total: None)(total)
    try:
        yield
    finally:
        getattr(progress, "end", lambda: None)()


@dataclass(frozen=True, slots=True)
class Chunk(Generic[T]):
    """The result of one chunk: its reduced outputs, its size, and a fingerprint to recognise repetitions."""

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


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The work that all chunks of a pair share: sent to a worker once, and a pure function of the chunks.

    Attributes:
        rescued: in the process that gives out the work: chunks that were finished when it was
            interrupted, and the finished outputs of a chunk that was not.
        lost: there: the side of every draw that was begun, or may have been, and whose output will
            never be known.
    """

    mechanism: Mechanism
    inputs: tuple[Any, Any]
    stream: tuple[int, int, int]
    reductions: Reductions
    rescued: list[tuple[ChunkRequest, Chunk[Any]]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)

    def __call__(self, task: Sequence[ChunkRequest]) -> list[Chunk[Any]]:
        """Draws some chunks, in the given order."""
        chunks: list[Chunk[Any]] = []
        rngs = seeded.chunk_rngs(*self.stream, [(piece.side, piece.chunk) for piece in task])
        with own_tools(self.mechanism.name, [self.inputs[piece.side] for piece in task]):
            for piece, rng in zip(task, rngs, strict=True):
                with logged() as log:
                    try:
                        with contained(self.mechanism.name, self.inputs[piece.side]):
                            outputs = self.mechanism.sample(self.inputs[piece.side], piece.n, rng)
                        value = self.reductions[piece.side](outputs)
                        chunks.append(
                            Chunk(value, outputs.size, seeded.fingerprint(outputs), log.incidents)
                        )
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
        piece = task[len(chunks)]
        finished: Outputs | None = None
        if log.finished is not None:
            with suppress(Exception):  # outputs that cannot be read are lost
                finished = log.finished().copied()
        if finished is None:
            self.lose([piece])
            return
        if finished.size:
            fingerprint = seeded.fingerprint(finished)
            self.rescued.append((piece, Chunk(finished, finished.size, fingerprint, log.incidents)))
        if finished.size < piece.n:  # one at a time: the draw that was under way
            self.lost.append(piece.side)

    def rescue(self, task: Sequence[ChunkRequest], chunks: Sequence[Chunk[Any]]) -> None:
        """Keeps the first chunks of a task, which were finished although the work as a whole was interrupted."""
        self.rescued.extend(zip(task, chunks, strict=False))

    def lose(self, task: Sequence[ChunkRequest]) -> None:
        """Counts all draws of a task as lost: it was begun, or may have been, and will never be answered."""
        for piece in task:
            self.lost.extend([piece.side] * piece.n)

    def describe(self, task: Sequence[ChunkRequest]) -> str:
        """A task in words, for messages."""
        inputs = " or ".join(
            shown(self.inputs[side]) for side in dict.fromkeys(piece.side for piece in task)
        )
        return f"{self.mechanism.name} on the input {inputs}"


# What we work with ourselves. A mechanism that replaces a part of it, for a test or by mistake,
# would have us count something else.
_TOOLS = (np, np.random, math)
_HANDLED = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def own_tools(name: str, inputs: Sequence[Any]) -> Iterator[None]:
    """Lets a mechanism draw, and puts back what we count with and how we hear signals.

    It takes as long as a short chunk: use it around several of them, before any is believed.

    Raises:
        MechanismError: if functions were replaced that we count with.
    """
    before = [vars(tool).copy() for tool in _TOOLS]
    is_main = threading.current_thread() is threading.main_thread()
    handlers = [signal.getsignal(each) for each in _HANDLED]
    try:
        yield
    finally:
        if is_main and handlers != [signal.getsignal(each) for each in _HANDLED]:
            for number, handler in zip(_HANDLED, handlers, strict=True):
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        replaced = []
        for tool, old in zip(_TOOLS, before, strict=True):
            now = vars(tool)
            # A look at the values takes a fifth of the time.
            if len(now) != len(old) or any(map(is_not, now.values(), old.values())):
                replaced += [
                    (tool, each, value)
                    for each, value in old.items()
                    if now.get(each, tool) is not value
                ]
        for tool, each, value in replaced:
            setattr(tool, each, value)
        if replaced and not isinstance(sys.exc_info()[1], TimeUp):
            names = ", ".join(sorted(f"{tool.__name__}.{each}" for tool, each, _ in replaced))
            where = " or ".join(dict.fromkeys(map(shown, inputs)))
            hint = "have it put them back, or run it as a program of its own (from_command)"
            what = f"{name} replaced {names} while it ran on the input {where}"
            raise MechanismError(f"{what}, with which its outputs are read and counted; {hint}")


@contextmanager
def contained(name: str, dataset: Any) -> Iterator[None]:
    """Lets a mechanism draw, puts back what it changed around us, and says what it must not do.

    What is no Exception passes unchanged: it is meant for the caller of the audit, like the end of
    a test.

    Raises:
        MechanismError: if it tried to end the program, or recursed too deeply.
    """
    filters = warnings.filters[:]
    depth = sys.getrecursionlimit()
    path = sys.path[:]
    caught: BaseException | None = None
    try:
        with np.errstate(), mechanism_runs():
            yield
    except BaseException as error:
        caught = error
    if sys.getrecursionlimit() != depth:
        sys.setrecursionlimit(depth)
    if warnings.filters != filters:
        warnings.filters[:] = filters  # type: ignore[index]  # a list, whatever typeshed says
    if sys.path != path:  # it may have added to it
        sys.path += [each for each in path if each not in sys.path]
    if getattr(sys.stdout, "closed", False) or getattr(sys.stderr, "closed", False):
        _reopen_streams()
    if isinstance(caught, TimeUp):
        raise TimeUp(f"{name} on the input {shown(dataset)}") from caught
    if caught is None:
        return
    # The status of SystemExit would pass for a verdict, unless a handler of the caller wants the
    # program to end.
    is_its_own = callers_error(caught) is None
    if is_its_own and isinstance(caught, SystemExit | RecursionError):
        raise MechanismError(failure_text(name, dataset, caught)) from caught
    raise caught


def _reopen_streams() -> None:
    """What a mechanism has closed: we still have something to say."""
    is_one = sys.stdout is sys.stderr
    if getattr(sys.stderr, "closed", False):
        sys.stderr = _reopened(2)
    if is_one:
        sys.stdout = sys.stderr
    elif getattr(sys.stdout, "closed", False):
        sys.stdout = _reopened(1)


def _reopened(descriptor: int) -> TextIO:
    try:
        os.fstat(descriptor)
    except OSError:
        # closed as well: nobody hears what is said there, and no other file must get its number
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
    return os.fdopen(descriptor, "w", errors="backslashreplace", closefd=False)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Reduces outputs and keeps them, too."""

    reduce: Callable[[Outputs], Any]

    def __call__(self, outputs: Outputs) -> tuple[Any, Outputs]:
        """The reduced outputs, and the outputs."""
        kept = outputs.copied()  # before anything else sees them
        return self.reduce(outputs), kept


def _pieces_together(size: int, n: int, is_serial: bool) -> int:
    """How many chunks of many outputs a worker gets at a time; the results do not depend on it.

    Both sides of a block go to one worker, so that they are drawn one right after the other.
    """
    least = (
        _LEAST_LARGE_TASKS
        if size >= _LARGE_BLOCK
        else _LEAST_SERIAL_TASKS
        if is_serial
        else _LEAST_TASKS
    )
    return 2 * max(1, min(n // size // least, _MOST_TOGETHER))


# Phase, number of the pair, number of the first chunk: the draws of one call.
Draws = tuple[int, int, int]
_AS_THEY_ARE: Reductions = (Outputs.copied, Outputs.copied)
# The file says which chunks may have begun, at most about this often; and how many of them at a
# time, at most.
_ANNOUNCE_SECONDS = 0.5
_MOST_AHEAD = 256
# The name of a remark in the journal.
_REDRAWN = "redrawn"


def _begun(draws: Draws) -> str:
    """The name of the remark which chunks may have begun."""
    return f"begun {draws}"


def _nothing() -> None:
    """Does nothing."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Has signals wait until something short is done, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(slots=True)
class Sampler:
    """Draws from one mechanism with one seed.

    Attributes:
        journal: remembers draws of an interrupted audit.
        turns: the least number of turns of the two sides in a phase, if there are enough outputs.
        fewest_per_turn: the least number of outputs in one side's turn.
        drawn: outputs drawn so far, left and right; those of an audit that was interrupted are
            among them.
        incidents: what happened while they were drawn, by the number of the pair: left and right.
        redrawn: of a mechanism without a seed, by phase, pair and first chunk: draws of the left
            and of the right that were begun, lost and drawn again.
        own_generator: the mechanism's own generator, if workers would repeat it; everything is then
            drawn here.
    """

    mechanism: Mechanism
    seed: int
    runner: Runner = field(default_factory=SerialRunner)
    progress: Progress = field(default_factory=NoProgress)
    journal: Journal = field(default_factory=Journal)
    turns: int = seeded.TURNS
    fewest_per_turn: int = seeded.FEWEST_PER_TURN
    drawn: list[int] = field(default_factory=lambda: [0, 0])
    incidents: dict[int, list[Incidents]] = field(default_factory=dict)
    redrawn: dict[Draws, list[int]] = field(default_factory=dict)
    own_generator: str | None = None

    def __post_init__(self) -> None:
        if (known := self.journal.told(_REDRAWN)) is not None:
            self.redrawn = {
                (phase, pair, skip): lost for phase, pair, skip, lost in json.loads(known)
            }
        if not isinstance(self.runner, SerialRunner):
            # Every worker would get a copy of the generator, and draw the same numbers as the
            # others.
            self.own_generator = own_generator(self.mechanism)
            if self.own_generator is not None:
                self.runner = SerialRunner(self.runner.deadline)

    def block_size(self, n: int) -> int:
        """How many of n outputs of a side are drawn with one generator before the other side has its turn."""
        return max(1, min(self.mechanism.chunk_size, max(self.fewest_per_turn, n // self.turns)))

    def pieces(self, phase: Phase, number: int, n: int, skip: int = 0) -> Iterator[ChunkRequest]:
        """The chunks of n outputs of both sides, in the order in which they are to be drawn.

        Which side of a block comes first is decided by the toss of a coin: a fixed order could stay
        in step with a mechanism that changes at the same pace.

        Args:
            number: the pair's number in the audit, part of the seed.
            skip: chunks of these streams that were drawn before.
        """
        size = self.block_size(n)
        coins: list[int] = []
        for block, start in enumerate(range(0, n, size), skip):
            if not coins or block % _COINS == 0:
                # From a stream that no chunk uses: there is no third side.
                key = phase, number, 2, block // _COINS
                coins = (
                    np.random.SeedSequence(self.seed, spawn_key=key).generate_state(_COINS) & 1
                ).tolist()
            first = coins[block % _COINS]
            for side in (first, 1 - first):
                yield ChunkRequest(side, block, min(size, n - start))

    def draw(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        pieces: Iterable[ChunkRequest],
        reductions: Reductions,
        skip: int = 0,
    ) -> Generator[tuple[ChunkRequest, Chunk[Any]], None, None]:
        """Draws chunks and yields their reduced outputs, in order.

        Args:
            n: roughly how many outputs of each side these are.
            reductions: how to reduce the outputs of a left and of a right chunk.
            skip: the number of the first chunk, by which lost draws are told from those of other
                calls.
        """
        if self.mechanism.used is not None:
            self.mechanism.used.proves = phase in (Phase.CERTIFY, Phase.REPLAY)
        keeper = self.mechanism.keeper
        if keeper is not None:
            reductions = _Kept(reductions[0]), _Kept(reductions[1])
        drawing = _Drawing(
            self.mechanism, (pair.left, pair.right), (self.seed, phase, number), reductions
        )
        draws = (int(phase), number, skip)
        under_way: dict[tuple[int, int], int] = {}
        if self._is_careful:
            pieces = self._announced(draws, pieces, under_way)
        sent, awaited = tee(pieces)
        # Outputs that are drawn one at a time are spread over the workers as finely as they can be.
        size = self.block_size(n)
        is_serial = isinstance(self.runner, SerialRunner)
        together = (
            1 if self.mechanism.chunk_size < _MANY_AT_ONCE else _pieces_together(size, n, is_serial)
        )
        tasks = iter(lambda: tuple(islice(sent, together)), ())
        results = self.runner.map(drawing, tasks)
        try:
            for piece, chunk in zip(awaited, chain.from_iterable(results), strict=True):
                self.drawn[piece.side] += chunk.size
                self._note(number, piece.side, chunk.incidents)
                self.progress.advance(chunk.size)
                if keeper is not None:
                    value, outputs = chunk.value
                    keeper.keep(pair.side(piece.side), outputs)
                    chunk = replace(chunk, value=value)
                drawing.rescued.append((piece, chunk))  # until whoever asked for it has counted it
                yield piece, chunk
                drawing.rescued.pop()
                under_way.pop((piece.side, piece.chunk), None)
        finally:
            # ends the work that is still out, before the account is made up
            getattr(results, "close", _nothing)()
            self._settle(draws, drawing)

    @property
    def _is_careful(self) -> bool:
        """Whether draws must survive an interruption: what is drawn again with a seed is the same once more."""
        return self.journal.is_kept and not self.mechanism.is_seeded

    def _announced(
        self, draws: Draws, pieces: Iterable[ChunkRequest], under_way: dict[tuple[int, int], int]
    ) -> Iterator[ChunkRequest]:
        """Passes chunks on, after the file says that they may have begun: that holds even if we are killed."""
        following = iter(pieces)
        ahead = 1
        while some := list(islice(following, ahead)):
            for piece in some:
                under_way[piece.side, piece.chunk] = piece.n
            begun = [[side, chunk, n] for (side, chunk), n in under_way.items()]
            self.journal.tell_now(_begun(draws), json.dumps(begun))
            written = monotonic()
            yield from some
            is_quick = monotonic() - written < _ANNOUNCE_SECONDS
            ahead = min(2 * ahead, _MOST_AHEAD) if is_quick else max(1, ahead // 2)

    def _settle(self, draws: Draws, drawing: _Drawing) -> None:
        """Keeps what was rescued from an interruption, and counts what was lost."""
        if self.mechanism.is_seeded:
            return
        if drawing.lost:
            lost = self.redrawn.setdefault(draws, [0, 0])
            for side in drawing.lost:
                lost[side] += 1
        if not self._is_careful:
            return
        phase, number, _ = draws
        for piece, chunk in drawing.rescued:
            stream = (phase, number, piece.side)
            before = self.journal.recall(stream, piece.chunk)
            if (0 if before is None else before[0].size) != piece.start:
                continue  # it was kept by whoever asked for it
            incidents = chunk.incidents
            outputs = chunk.value
            if before is not None:
                incidents += self.journal.incidents(stream).get(piece.chunk, NO_INCIDENTS)
                outputs = concatenate([before[0], outputs])
            self.journal.note_incidents(stream, piece.chunk, incidents)
            self.journal.keep(stream, piece.chunk, outputs, seeded.fingerprint(outputs))
        self.journal.tell(_begun(draws), "[]")
        self._tell_redrawn()

    def _tell_redrawn(self) -> None:
        if self.redrawn:
            self.journal.tell(
                _REDRAWN, json.dumps([[*draws, lost] for draws, lost in self.redrawn.items()])
            )

    def _count_killed(self, draws: Draws, wanted: Sequence[ChunkRequest]) -> None:
        """Counts draws as lost that an audit had begun, or announced, when it was killed."""
        begun = json.loads(self.journal.told(_begun(draws)) or "[]")
        missing = {(piece.side, piece.chunk): piece.n for piece in wanted}
        lost = [0, 0]
        for side, chunk, n in begun:
            lost[side] += min(n, missing.get((side, chunk), 0))
        if any(lost):
            known = self.redrawn.setdefault(draws, [0, 0])
            self.redrawn[draws] = [known[0] + lost[0], known[1] + lost[1]]
            self.journal.tell(_begun(draws), "[]")
            self._tell_redrawn()

    def lost_of(self, phase: Phase, number: int, skip: int = 0) -> tuple[int, int]:
        """Draws of the left and of the right that were begun, lost and drawn again."""
        left, right = self.redrawn.get((int(phase), number, skip), (0, 0))
        return left, right

    def lost_of_pair(self, number: int, last: int | None = None) -> tuple[int, int]:
        """The same for all draws of a pair, or for those whose first chunk is at most the `last` one."""
        counted = [
            draws
            for draws in self.redrawn
            if draws[1] == number and (last is None or draws[2] <= last)
        ]
        of_pair = [self.redrawn[draws] for draws in counted]
        return sum(lost[0] for lost in of_pair), sum(lost[1] for lost in of_pair)

    def incidents_of(self, number: int) -> tuple[Incidents, Incidents]:
        """What happened while a pair's outputs were drawn, left and right."""
        left, right = self.incidents.get(number, (NO_INCIDENTS, NO_INCIDENTS))
        return left, right

    def _note(self, number: int, side: int, incidents: Incidents) -> None:
        if incidents:
            self.incidents.setdefault(number, [NO_INCIDENTS, NO_INCIDENTS])[side] += incidents

    def chunks(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        side: int,
        n: int,
        reduce: Callable[[Outputs], T],
        skip: int = 0,
    ) -> Iterator[Chunk[T]]:
        """Draws n outputs of one side alone, for callers that do not compare two sides."""
        size = self.mechanism.chunk_size
        pieces = (
            ChunkRequest(side, skip + start // size, min(size, n - start))
            for start in range(0, n, size)
        )
        return (chunk for _, chunk in self.draw(phase, number, pair, n, pieces, (reduce, reduce)))

    def outputs(
        self, phase: Phase, number: int, pair: Pair, side: int, n: int, skip: int = 0
    ) -> Outputs:
        """Draws n outputs of one side alone and keeps them all."""
        return concatenate(
            [
                chunk.value
                for chunk in self.chunks(phase, number, pair, side, n, Outputs.copied, skip)
            ]
        )

    def kept(
        self, phase: Phase, number: int, pair: Pair, n: int, skip: int = 0
    ) -> Generator[tuple[int, Chunk[Outputs]], None, None]:
        """Draws n outputs of both sides and keeps them all; a chunk that the journal knows is not drawn again."""
        pieces = self.pieces(phase, number, n, skip)
        if not self.journal.is_kept:
            for piece, chunk in self.draw(phase, number, pair, n, pieces, _AS_THEY_ARE, skip):
                yield piece.side, chunk
            return
        with closing(self._resumed(phase, number, pair, n, pieces, skip, is_kept=True)) as resumed:
            for piece, chunk in resumed:
                yield piece.side, chunk

    def _resumed(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        pieces: Iterable[ChunkRequest],
        skip: int,
        *,
        is_kept: bool,
    ) -> Generator[tuple[ChunkRequest, Chunk[Outputs]], None, None]:
        """Draws chunks, in order, except for those that the journal knows, in whole or in part.

        Args:
            is_kept: whether the journal is to know the others from now on.
        """
        streams = [(int(phase), number, side) for side in (0, 1)]
        sizes = [self.journal.sizes(stream) for stream in streams]
        incidents = [self.journal.incidents(stream) for stream in streams]
        asked = list(pieces)
        wanted = []
        for piece in asked:
            size = sizes[piece.side].get(piece.chunk, 0)
            if size > piece.n or (0 < size < piece.n and not self._is_careful):
                raise InputError(
                    f"a chunk of {size} outputs was remembered where {piece.n} should be drawn"
                )
            if size < piece.n:
                wanted.append(replace(piece, n=piece.n - size, start=size))
        if self._is_careful:
            self._count_killed((int(phase), number, skip), wanted)
        with closing(self.draw(phase, number, pair, n, wanted, _AS_THEY_ARE, skip)) as drawn:
            for piece in asked:
                size = sizes[piece.side].get(piece.chunk, 0)
                chunk = next(drawn)[1] if size < piece.n else None
                if size:
                    happened = incidents[piece.side].get(piece.chunk, NO_INCIDENTS)
                    chunk = self._joined(streams[piece.side], piece, chunk, happened)
                    self._count_known(piece.side, size)
                    self._note(number, piece.side, happened)
                assert chunk is not None
                if is_kept and size < piece.n:
                    if chunk.incidents:
                        self.journal.note_incidents(
                            streams[piece.side], piece.chunk, chunk.incidents
                        )
                    self.journal.keep(
                        streams[piece.side], piece.chunk, chunk.value, chunk.fingerprint
                    )
                yield piece, chunk
            next(drawn, None)  # it ends, and makes up its account

    def _joined(
        self,
        stream: seeded.Stream,
        piece: ChunkRequest,
        rest: Chunk[Outputs] | None,
        happened: Incidents,
    ) -> Chunk[Outputs]:
        """A chunk that the journal knows, with the outputs that it lacked."""
        known = self.journal.recall(stream, piece.chunk)
        assert known is not None
        if rest is None:
            return Chunk(known[0], known[0].size, known[1], happened)
        outputs = concatenate([known[0], rest.value])
        return Chunk(outputs, outputs.size, seeded.fingerprint(outputs), happened + rest.incidents)

    def both(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        skip: int = 0,
        prints: Sequence[Fingerprints] = (),
    ) -> tuple[Outputs, Outputs]:
        """Draws n outputs of both sides and keeps them all; adds their fingerprints to those of each side, if given."""
        parts: tuple[list[Outputs], list[Outputs]] = ([], [])
        with closing(self.kept(phase, number, pair, n, skip)) as kept:
            for side, chunk in kept:
                parts[side].append(chunk.value)
                if prints:
                    prints[side].add(chunk.fingerprint)
        left = concatenate(parts[0])
        parts[0].clear()  # before the other side is joined: wide outputs fill the memory
        return left, concatenate(parts[1])

    def fold(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        reductions: Reductions,
        *,
        earlier: Sequence[Fingerprints] | None = None,
        examples: tuple[Any, Any] = (None, None),
    ) -> tuple[Folded, Folded]:
        """Draws n outputs of both sides and adds up their reduced chunks, from where the journal stopped.

        Args:
            reductions: of left and right outputs.
            earlier: fingerprints of other draws of each side; those of these draws are added to
                them.
            examples: other reduced outputs of each side; needed only with a journal that is kept.
        """
        prints = (Fingerprints(), Fingerprints()) if earlier is None else earlier
        sides = [Folded(fingerprints=each) for each in prints]
        for side in (0, 1) if self.journal.is_kept else ():
            stream = (int(phase), number, side)
            known = self.journal.resume(stream, examples[side])
            if known is not None:
                sides[side] = known
                self._count_known(side, known.size)
                for chunk_number, happened in self.journal.incidents(stream).items():
                    if chunk_number < known.chunks:
                        self._note(number, side, happened)
        done = sides[0].chunks, sides[1].chunks
        missing = (
            piece for piece in self.pieces(phase, number, n) if piece.chunk >= done[piece.side]
        )
        if self._is_careful:
            resumed = self._resumed(phase, number, pair, n, missing, 0, is_kept=False)
            chunks = self._reduced(resumed, reductions)
        else:
            chunks = self.draw(phase, number, pair, n, missing, reductions)
        with closing(chunks):
            for piece, chunk in chunks:
                folded = sides[piece.side]
                if not self.journal.is_kept:
                    folded.add(chunk.value, chunk.size, chunk.fingerprint)
                    continue
                stream = (int(phase), number, piece.side)
                # a chunk that was drawn is counted, in memory and in the file, or it is not
                with undisturbed():
                    if chunk.incidents:
                        self.journal.note_incidents(stream, piece.chunk, chunk.incidents)
                    folded.add(chunk.value, chunk.size, chunk.fingerprint)
                    self.journal.save(stream, folded)
        return sides[0], sides[1]

    @staticmethod
    def _reduced(
        chunks: Generator[tuple[ChunkRequest, Chunk[Outputs]], None, None], reductions: Reductions
    ) -> Generator[tuple[ChunkRequest, Chunk[Any]], None, None]:
        """Chunks of outputs, reduced here: their outputs had to be kept until they were whole."""
        with closing(chunks):
            for piece, chunk in chunks:
                yield piece, replace(chunk, value=reductions[piece.side](chunk.value))

    def _count_known(self, side: int, n: int) -> None:
        """Outputs of an audit that was interrupted count as if they had just been drawn."""
        self.drawn[side] += n
        self.progress.advance(n)
