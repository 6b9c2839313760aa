"""Draws outputs in chunks, each with its own seed, and reduces them where they are drawn.

The two sides of a pair take turns, block by block, in an order that the seed decides anew for every block. So a
distribution that changes while it is drawn changes for both sides, and is not mistaken for a difference between them.
"""

import math
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice, tee
from operator import is_not
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
from epsilometer.outputs import Outputs, concatenate

T = TypeVar("T")
Reductions = tuple[Callable[[Outputs], Any], Callable[[Outputs], Any]]
# Sending a task to a worker costs half a millisecond, a chunk of a vectorised mechanism often less. So workers get up
# to 8 blocks of such a mechanism at a time, as long as enough tasks remain to keep them all busy and the progress
# moving; blocks that take a while need more of them. Without workers, watching over a task is all that it costs.
_MANY_AT_ONCE, _MOST_TOGETHER = 4096, 8
_LARGE_BLOCK, _LEAST_TASKS, _LEAST_LARGE_TASKS, _LEAST_SERIAL_TASKS = 1 << 14, 16, 128, 4
# Coins that are tossed at a time: tossing one costs as much.
_COINS = 64


class Progress(Protocol):
    """Learns how many outputs were drawn.

    It may also have `begin(total)` and `end()`, which are called around the work (the total is None when a search
    decides it), and `tell(text)`, which receives the state of the evidence as it grows.
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


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """A chunk that is to be drawn.

    Attributes:
        side: 0 left, 1 right.
        chunk: its number in the stream of that side.
        n: how many outputs.
    """

    side: int
    chunk: int
    n: int


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The work that all chunks of a pair share: sent to a worker once, and a pure function of the chunks."""

    mechanism: Mechanism
    inputs: tuple[Any, Any]
    stream: tuple[int, int, int]
    reductions: Reductions

    def __call__(self, task: Sequence[ChunkRequest]) -> list[Chunk[Any]]:
        """Draws some chunks, in the given order."""
        chunks = []
        rngs = seeded.chunk_rngs(*self.stream, [(piece.side, piece.chunk) for piece in task])
        with own_tools(self.mechanism.name, [self.inputs[piece.side] for piece in task]):
            for piece, rng in zip(task, rngs, strict=True):
                with contained(self.mechanism.name, self.inputs[piece.side]):
                    outputs = self.mechanism.sample(self.inputs[piece.side], piece.n, rng)
                chunks.append(Chunk(self.reductions[piece.side](outputs), outputs.size, seeded.fingerprint(outputs)))
        return chunks

    def describe(self, task: Sequence[ChunkRequest]) -> str:
        """A task in words, for messages."""
        inputs = " or ".join(shown(self.inputs[side]) for side in dict.fromkeys(piece.side for piece in task))
        return f"{self.mechanism.name} on the input {inputs}"


# What we work with ourselves. A mechanism that replaces a part of it, for a test or by mistake, would have us count
# something else.
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
                replaced += [(tool, each, value) for each, value in old.items() if now.get(each, tool) is not value]
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

    What is no Exception passes unchanged: it is meant for the caller of the audit, like the end of a test.

    Raises:
        MechanismError: if it tried to end the program, or recursed too deeply.
    """
    filters, depth, path = warnings.filters[:], sys.getrecursionlimit(), sys.path[:]
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
    # The status of SystemExit would pass for a verdict, unless a handler of the caller wants the program to end.
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
    except OSError:  # closed as well: nobody hears what is said there, and no other file must get its number
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
    least = _LEAST_LARGE_TASKS if size >= _LARGE_BLOCK else _LEAST_SERIAL_TASKS if is_serial else _LEAST_TASKS
    return 2 * max(1, min(n // size // least, _MOST_TOGETHER))


@dataclass(slots=True)
class Sampler:
    """Draws from one mechanism with one seed.

    Attributes:
        journal: remembers draws of an interrupted audit.
        turns: the least number of turns of the two sides in a phase, if there are enough outputs.
        fewest_per_turn: the least number of outputs in one side's turn.
        drawn: outputs drawn so far, left and right; those of an audit that was interrupted are among them.
        own_generator: the mechanism's own generator, if workers would repeat it; everything is then drawn here.
    """

    mechanism: Mechanism
    seed: int
    runner: Runner = field(default_factory=SerialRunner)
    progress: Progress = field(default_factory=NoProgress)
    journal: Journal = field(default_factory=Journal)
    turns: int = seeded.TURNS
    fewest_per_turn: int = seeded.FEWEST_PER_TURN
    drawn: list[int] = field(default_factory=lambda: [0, 0])
    own_generator: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.runner, SerialRunner):
            # Every worker would get a copy of the generator, and draw the same numbers as the others.
            self.own_generator = own_generator(self.mechanism)
            if self.own_generator is not None:
                self.runner = SerialRunner(self.runner.deadline)

    def block_size(self, n: int) -> int:
        """How many of n outputs of a side are drawn with one generator before the other side has its turn."""
        return max(1, min(self.mechanism.chunk_size, max(self.fewest_per_turn, n // self.turns)))

    def pieces(self, phase: Phase, number: int, n: int, skip: int = 0) -> Iterator[ChunkRequest]:
        """The chunks of n outputs of both sides, in the order in which they are to be drawn.

        Which side of a block comes first is decided by the toss of a coin: a fixed order could stay in step with a
        mechanism that changes at the same pace.

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
                coins = (np.random.SeedSequence(self.seed, spawn_key=key).generate_state(_COINS) & 1).tolist()
            first = coins[block % _COINS]
            for side in (first, 1 - first):
                yield ChunkRequest(side, block, min(size, n - start))

    def draw(
        self, phase: Phase, number: int, pair: Pair, n: int, pieces: Iterable[ChunkRequest], reductions: Reductions
    ) -> Iterator[tuple[ChunkRequest, Chunk[Any]]]:
        """Draws chunks and yields their reduced outputs, in order.

        Args:
            n: roughly how many outputs of each side these are.
            reductions: how to reduce the outputs of a left and of a right chunk.
        """
        if self.mechanism.used is not None:
            self.mechanism.used.proves = phase in (Phase.CERTIFY, Phase.REPLAY)
        keeper = self.mechanism.keeper
        if keeper is not None:
            reductions = _Kept(reductions[0]), _Kept(reductions[1])
        drawing = _Drawing(self.mechanism, (pair.left, pair.right), (self.seed, phase, number), reductions)
        sent, awaited = tee(pieces)
        # Outputs that are drawn one at a time are spread over the workers as finely as they can be.
        size, is_serial = self.block_size(n), isinstance(self.runner, SerialRunner)
        together = 1 if self.mechanism.chunk_size < _MANY_AT_ONCE else _pieces_together(size, n, is_serial)
        tasks = iter(lambda: tuple(islice(sent, together)), ())
        for piece, chunk in zip(awaited, chain.from_iterable(self.runner.map(drawing, tasks)), strict=True):
            self.drawn[piece.side] += chunk.size
            self.progress.advance(chunk.size)
            if keeper is not None:
                value, outputs = chunk.value
                keeper.keep(pair.side(piece.side), outputs)
                chunk = replace(chunk, value=value)
            yield piece, chunk

    def chunks(
        self, phase: Phase, number: int, pair: Pair, side: int, n: int, reduce: Callable[[Outputs], T], skip: int = 0
    ) -> Iterator[Chunk[T]]:
        """Draws n outputs of one side alone, for callers that do not compare two sides."""
        size = self.mechanism.chunk_size
        pieces = (ChunkRequest(side, skip + start // size, min(size, n - start)) for start in range(0, n, size))
        return (chunk for _, chunk in self.draw(phase, number, pair, n, pieces, (reduce, reduce)))

    def outputs(self, phase: Phase, number: int, pair: Pair, side: int, n: int, skip: int = 0) -> Outputs:
        """Draws n outputs of one side alone and keeps them all."""
        return concatenate([chunk.value for chunk in self.chunks(phase, number, pair, side, n, Outputs.copied, skip)])

    def kept(
        self, phase: Phase, number: int, pair: Pair, n: int, skip: int = 0
    ) -> Iterator[tuple[int, Chunk[Outputs]]]:
        """Draws n outputs of both sides and keeps them all; a chunk that the journal knows is not drawn again."""
        missing = deque(self.pieces(phase, number, n, skip))
        is_kept = self.journal.is_kept
        while is_kept and missing:
            piece = missing[0]
            known = self.journal.recall((int(phase), number, piece.side), piece.chunk)
            if known is None:
                break
            size = known[0].size
            if size != piece.n:
                raise InputError(f"a chunk of {size} outputs was remembered where {piece.n} should be drawn")
            self._count_known(piece.side, size)
            yield missing.popleft().side, Chunk(known[0], size, known[1])
        for piece, chunk in self.draw(phase, number, pair, n, missing, (Outputs.copied, Outputs.copied)):
            if is_kept:
                self.journal.keep((int(phase), number, piece.side), piece.chunk, chunk.value, chunk.fingerprint)
            yield piece.side, chunk

    def both(
        self, phase: Phase, number: int, pair: Pair, n: int, skip: int = 0, prints: Sequence[Fingerprints] = ()
    ) -> tuple[Outputs, Outputs]:
        """Draws n outputs of both sides and keeps them all; adds their fingerprints to those of each side, if given."""
        parts: tuple[list[Outputs], list[Outputs]] = ([], [])
        for side, chunk in self.kept(phase, number, pair, n, skip):
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
            earlier: fingerprints of other draws of each side; those of these draws are added to them.
            examples: other reduced outputs of each side; needed only with a journal that is kept.
        """
        prints = (Fingerprints(), Fingerprints()) if earlier is None else earlier
        sides = [Folded(fingerprints=each) for each in prints]
        for side in (0, 1) if self.journal.is_kept else ():
            known = self.journal.resume((int(phase), number, side), examples[side])
            if known is not None:
                sides[side] = known
                self._count_known(side, known.size)
        done = sides[0].chunks, sides[1].chunks
        missing = (piece for piece in self.pieces(phase, number, n) if piece.chunk >= done[piece.side])
        for piece, chunk in self.draw(phase, number, pair, n, missing, reductions):
            folded = sides[piece.side]
            folded.add(chunk.value, chunk.size, chunk.fingerprint)
            if self.journal.is_kept:
                self.journal.save((int(phase), number, piece.side), folded)
        return sides[0], sides[1]

    def _count_known(self, side: int, n: int) -> None:
        """Outputs of an audit that was interrupted count as if they had just been drawn."""
        self.drawn[side] += n
        self.progress.advance(n)
