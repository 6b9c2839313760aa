"""Draws outputs in chunks, each with its own seed, and reduces them where they are drawn.

The two sides of a pair take turns, block by block, in an order that the seed decides anew for every
block. So a distribution that changes while it is drawn changes for both sides, and is not mistaken
for a difference between them.

A mechanism without a seed is treated with care: a draw that is lost in an interruption cannot be
repeated, so finished draws are rescued, and lost ones are counted and reported.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice, tee
from time import monotonic  # by name: a mechanism may replace what the module holds
from typing import Any, NamedTuple, TypeVar

import numpy as np

from epsilometer.engine.drawing import Chunk, ChunkRequest, Drawing, Reductions, RequestedChunk
from epsilometer.engine.fingerprints import Fingerprints, fingerprint
from epsilometer.engine.folding import Folded
from epsilometer.engine.generator_search import own_generator
from epsilometer.engine.isolation import undisturbed
from epsilometer.engine.journal import Journal, StreamKey
from epsilometer.engine.progress import NoProgress, Progress
from epsilometer.engine.runners import Runner, SerialRunner
from epsilometer.engine.seeds import Phase
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.drawing_log import NO_INCIDENTS, Incidents
from epsilometer.outputs import Outputs, concatenate

__all__ = [
    "Draws",
    "Sampler",
]

T = TypeVar("T")

# The two sides of an audit are drawn in at least this many turns. If a distribution changes while
# it is drawn, both sides see the same change, up to one turn.
TURNS = 64
# Outputs in one side's turn, at least: smaller turns cost more than they help.
FEWEST_PER_TURN = 64

# Sending a task to a worker costs half a millisecond, a chunk of a vectorised mechanism often less.
# So a worker gets several blocks of such a mechanism at a time, as long as enough tasks remain to
# keep all workers busy and the progress moving.
# Outputs per chunk from which a mechanism counts as vectorised.
_VECTORISED_CHUNK_SIZE = 4096
# Blocks that a worker gets at a time, at most.
_MOST_TOGETHER = 8
# Outputs per block from which a block takes a while.
_LARGE_BLOCK = 1 << 14
# Tasks that must remain, at least; of large blocks more are needed, and without workers fewer,
# since watching over a task is then all that it costs.
_MIN_TASKS = 16
_MIN_LARGE_TASKS = 128
_MIN_SERIAL_TASKS = 4
# Coins that are tossed at a time, since tossing one costs as much.
_COINS_AT_ONCE = 64
# The side whose streams decide which side is drawn first: no chunk is drawn from it.
_SIDE_OF_COINS = 2
# Seconds between two announcements in the journal of chunks that may have begun, roughly.
_ANNOUNCE_SECONDS = 0.5
# Chunks that are announced at a time, at most.
_MAX_ANNOUNCED = 256
# The journal's name for the counts of draws that were lost and drawn again.
_REDRAWN = "redrawn"


class Draws(NamedTuple):
    """Identifies the draws of one call of the sampler.

    Attributes:
        phase: what they are for, a `Phase`.
        pair: the number of the pair in the audit.
        first_chunk: the number of the first chunk.
    """

    phase: int
    pair: int
    first_chunk: int

    @property
    def journal_name(self) -> str:
        """The journal's name for the list of chunks that may have begun."""
        return f"begun ({self.phase}, {self.pair}, {self.first_chunk})"


@dataclass(frozen=True, slots=True)
class _ReduceAndKeep:
    """Reduces outputs, and keeps the outputs, too."""

    reduce: Callable[[Outputs], Any]

    def __call__(self, outputs: Outputs) -> tuple[Any, Outputs]:
        """Returns the reduced outputs, and the outputs."""
        copied = outputs.copied()  # before anything else sees them
        return self.reduce(outputs), copied


# Keeps the outputs of both sides as they are.
_UNREDUCED: Reductions = (Outputs.copied, Outputs.copied)


def _chunks_together(size: int, n: int, is_serial: bool) -> int:
    """Returns how many chunks a worker gets at a time; the results do not depend on it.

    Both sides of a block go to one worker, so that they are drawn one right after the other.

    Args:
        size: outputs per block.
        n: outputs per side in all.
        is_serial: whether there are no workers.
    """
    if size >= _LARGE_BLOCK:
        min_tasks = _MIN_LARGE_TASKS
    elif is_serial:
        min_tasks = _MIN_SERIAL_TASKS
    else:
        min_tasks = _MIN_TASKS
    n_blocks = n // size
    return 2 * max(1, min(n_blocks // min_tasks, _MOST_TOGETHER))


@dataclass(slots=True)
class Sampler:
    """Draws from one mechanism with one seed.

    Attributes:
        mechanism: what draws.
        seed: of the audit.
        runner: where the work runs.
        progress: learns how many outputs were drawn.
        journal: remembers draws of an interrupted audit.
        turns: the least number of turns of the two sides in a phase, if there are enough outputs.
        fewest_per_turn: the least number of outputs in one side's turn.
        drawn: outputs drawn so far, left and right; those of an audit that was interrupted are
            among them.
        incidents: what happened while they were drawn, by the number of the pair: left and right.
        redrawn: of a mechanism without a seed: draws of the left and of the right that were begun,
            lost and drawn again.
        own_generator: the type of the mechanism's own generator, if workers would repeat it;
            everything is then drawn here.
    """

    mechanism: Mechanism
    seed: int
    runner: Runner = field(default_factory=SerialRunner)
    progress: Progress = field(default_factory=NoProgress)
    journal: Journal = field(default_factory=Journal)
    turns: int = TURNS
    fewest_per_turn: int = FEWEST_PER_TURN
    drawn: list[int] = field(default_factory=lambda: [0, 0])
    incidents: dict[int, list[Incidents]] = field(default_factory=dict)
    redrawn: dict[Draws, list[int]] = field(default_factory=dict)
    own_generator: str | None = None

    def __post_init__(self) -> None:
        stored = self.journal.read_note(_REDRAWN)
        if stored is not None:
            for phase, pair, first_chunk, lost in json.loads(stored):
                self.redrawn[Draws(phase, pair, first_chunk)] = lost
        if not isinstance(self.runner, SerialRunner):
            # Every worker would get a copy of the generator, and draw the same numbers as the
            # others.
            self.own_generator = own_generator(self.mechanism)
            if self.own_generator is not None:
                self.runner = SerialRunner(self.runner.deadline)

    # Which chunks are drawn.

    def block_size(self, n: int) -> int:
        """Returns how many of n outputs of a side are drawn before the other side has its turn."""
        per_turn = max(self.fewest_per_turn, n // self.turns)
        return max(1, min(self.mechanism.chunk_size, per_turn))

    def block_sizes(self, n: int) -> Iterator[int]:
        """Yields how many outputs of a side each of its blocks has, n in all.

        Where each output takes a call, the first blocks are small: 1, 1, 2, 4, … up to the usual
        size. So a slow mechanism shows early how long it will take, and an interruption at the
        start costs a single call. The sizes depend on the number of the block, never on a clock:
        the same seed means the same draws. A function that draws many outputs in one call has none
        of this to gain, and pays for every call.
        """
        usual_size = self.block_size(n)
        size = usual_size
        if self.mechanism.chunk_size < _VECTORISED_CHUNK_SIZE:
            size = 1
        n_drawn = 0
        while n_drawn < n:
            drawn_now = min(size, n - n_drawn)
            yield drawn_now
            n_drawn += drawn_now
            # As many as all before it.
            size = min(max(size, n_drawn), usual_size)

    def requests(self, phase: Phase, number: int, n: int, skip: int = 0) -> Iterator[ChunkRequest]:
        """Yields the chunks of n outputs of both sides, in the order in which they are to be drawn.

        Which side of a block comes first is decided by the toss of a coin: a fixed order could stay
        in step with a mechanism that changes at the same pace.

        Args:
            phase: what the draws are for.
            number: the pair's number in the audit, part of the seed.
            n: outputs of each side.
            skip: chunks of these streams that were drawn before.
        """
        coins: list[int] = []
        for block, size in enumerate(self.block_sizes(n), skip):
            if not coins or block % _COINS_AT_ONCE == 0:
                coins = self._toss_coins(phase, number, block // _COINS_AT_ONCE)
            first = coins[block % _COINS_AT_ONCE]
            for side in (first, 1 - first):
                yield ChunkRequest(side=side, chunk=block, n=size)

    def _toss_coins(self, phase: Phase, number: int, batch: int) -> list[int]:
        """Returns 0 or 1 for each block of a batch: the side that is drawn first."""
        key = (phase, number, _SIDE_OF_COINS, batch)
        words = np.random.SeedSequence(self.seed, spawn_key=key).generate_state(_COINS_AT_ONCE)
        coins: list[int] = (words & 1).tolist()
        return coins

    # Drawing them.

    def draw(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        *,
        requests: Iterable[ChunkRequest],
        reductions: Reductions,
        skip: int = 0,
    ) -> Generator[RequestedChunk, None, None]:
        """Draws chunks and yields their reduced outputs, in order.

        Args:
            phase: what the draws are for.
            number: the pair's number in the audit.
            pair: the two inputs.
            n: roughly how many outputs of each side these are.
            requests: the chunks to draw.
            reductions: how to reduce the outputs of a left and of a right chunk.
            skip: the number of the first chunk, by which lost draws are distinguished from those of
                other calls.
        """
        if self.mechanism.used is not None:
            self.mechanism.used.proves = phase in (Phase.CERTIFY, Phase.REPLAY)
        keeper = self.mechanism.keeper
        if keeper is not None:
            reductions = (_ReduceAndKeep(reductions[0]), _ReduceAndKeep(reductions[1]))
        drawing = Drawing(
            mechanism=self.mechanism,
            inputs=(pair.left, pair.right),
            seed=self.seed,
            phase=phase,
            pair=number,
            reductions=reductions,
        )
        draws = Draws(int(phase), number, skip)
        under_way: dict[tuple[int, int], int] = {}
        if self._is_careful:
            requests = self._announced(draws, requests, under_way)
        sent, awaited = tee(requests)
        n_together = self._chunks_per_task(n)
        tasks = iter(lambda: tuple(islice(sent, n_together)), ())
        results = self.runner.map(drawing, tasks)
        try:
            for request, chunk in zip(awaited, chain.from_iterable(results), strict=True):
                self.drawn[request.side] += chunk.size
                self._note(number, request.side, chunk.incidents)
                if chunk.incidents.redrawn:
                    self._count_redrawn(draws, request.side, chunk.incidents.redrawn)
                self.progress.advance(chunk.size)
                requested = RequestedChunk(request, chunk)
                if keeper is not None:
                    value, outputs = chunk.value
                    keeper.keep(pair.side(request.side), outputs, chunk.incidents)
                    requested = RequestedChunk(request, replace(chunk, value=value))
                # It counts as rescued until whoever asked for it has counted it.
                drawing.rescued.append(requested)
                yield requested
                drawing.rescued.pop()
                under_way.pop((request.side, request.chunk), None)
        finally:
            # The work that is still out ends before lost draws are counted.
            close = getattr(results, "close", None)
            if close is not None:
                close()
            self._settle(draws, drawing)
            if keeper is not None and not self.mechanism.is_seeded:
                for side in (0, 1):
                    keeper.lose(pair.side(side), drawing.lost.count(side))

    def _chunks_per_task(self, n: int) -> int:
        """Returns how many chunks of n outputs per side go to a worker at a time."""
        if self.mechanism.chunk_size < _VECTORISED_CHUNK_SIZE:
            # Outputs drawn one at a time are spread over the workers as finely as possible.
            return 1
        is_serial = isinstance(self.runner, SerialRunner)
        return _chunks_together(self.block_size(n), n, is_serial)

    @property
    def _is_careful(self) -> bool:
        """Whether draws must survive an interruption, since drawing again gives other outputs."""
        return self.journal.is_kept and not self.mechanism.is_seeded

    def _announced(
        self, draws: Draws, requests: Iterable[ChunkRequest], under_way: dict[tuple[int, int], int]
    ) -> Iterator[ChunkRequest]:
        """Passes chunks on, after the journal says that they may have begun.

        So draws that were under way can be counted even if this process is killed. The number that
        is announced at a time adapts to how fast chunks are drawn.

        Args:
            draws: of this call.
            requests: the chunks to pass on.
            under_way: by side and number: the size of chunks that may have begun; filled here.
        """
        remaining = iter(requests)
        n_ahead = 1
        while True:
            batch = list(islice(remaining, n_ahead))
            if not batch:
                return
            for request in batch:
                under_way[request.side, request.chunk] = request.n
            begun = [[side, chunk, n] for (side, chunk), n in under_way.items()]
            self.journal.write_note_now(draws.journal_name, json.dumps(begun))
            written = monotonic()
            yield from batch
            is_quick = monotonic() - written < _ANNOUNCE_SECONDS
            n_ahead = min(2 * n_ahead, _MAX_ANNOUNCED) if is_quick else max(1, n_ahead // 2)

    # Draws that were lost or rescued.

    def _settle(self, draws: Draws, drawing: Drawing) -> None:
        """Keeps what was rescued from an interruption, and counts what was lost."""
        if self.mechanism.is_seeded:
            return
        if drawing.lost:
            lost = self.redrawn.setdefault(draws, [0, 0])
            for side in drawing.lost:
                lost[side] += 1
        if not self._is_careful:
            return
        for request, chunk in drawing.rescued:
            stream = StreamKey(draws.phase, draws.pair, request.side)
            known = self.journal.recall(stream, request.chunk)
            n_known = 0 if known is None else known[0].size
            if n_known != request.start:
                continue  # it was kept by whoever asked for it
            incidents = chunk.incidents
            outputs = chunk.value
            if known is not None:
                incidents += self.journal.incidents(stream).get(request.chunk, NO_INCIDENTS)
                outputs = concatenate([known[0], outputs])
            self.journal.note_incidents(stream, request.chunk, incidents)
            self.journal.keep(stream, request.chunk, outputs, fingerprint(outputs))
        self.journal.write_note(draws.journal_name, "[]")
        self._save_redrawn()

    def _count_redrawn(self, draws: Draws, side: int, n: int) -> None:
        """Counts draws as lost that were lost when a recording was made."""
        lost = self.redrawn.setdefault(draws, [0, 0])
        lost[side] = max(lost[side], n)

    def _save_redrawn(self) -> None:
        if self.redrawn:
            rows = [[*draws, lost] for draws, lost in self.redrawn.items()]
            self.journal.write_note(_REDRAWN, json.dumps(rows))

    def _count_killed(self, draws: Draws, wanted: Sequence[ChunkRequest]) -> None:
        """Counts draws as lost that an audit had begun, or announced, when it was killed."""
        begun = json.loads(self.journal.read_note(draws.journal_name) or "[]")
        missing = {(request.side, request.chunk): request.n for request in wanted}
        lost = [0, 0]
        for side, chunk, n in begun:
            lost[side] += min(n, missing.get((side, chunk), 0))
        if any(lost):
            before = self.redrawn.setdefault(draws, [0, 0])
            self.redrawn[draws] = [before[0] + lost[0], before[1] + lost[1]]
            self.journal.write_note(draws.journal_name, "[]")
            self._save_redrawn()

    def lost_of(self, phase: Phase, number: int, skip: int = 0) -> tuple[int, int]:
        """Returns the draws of left and right that were begun, lost and drawn again in one call."""
        left, right = self.redrawn.get(Draws(int(phase), number, skip), (0, 0))
        return left, right

    def lost_of_pair(self, number: int, last: int | None = None) -> tuple[int, int]:
        """Returns the same for all draws of a pair.

        Args:
            number: of the pair.
            last: counts only calls whose first chunk is at most this one; None counts all.
        """
        left = 0
        right = 0
        for draws, lost in self.redrawn.items():
            if draws.pair == number and (last is None or draws.first_chunk <= last):
                left += lost[0]
                right += lost[1]
        return left, right

    def incidents_of(self, number: int) -> tuple[Incidents, Incidents]:
        """Returns what happened while a pair's outputs were drawn, left and right."""
        left, right = self.incidents.get(number, (NO_INCIDENTS, NO_INCIDENTS))
        return left, right

    def _note(self, number: int, side: int, incidents: Incidents) -> None:
        if incidents:
            self.incidents.setdefault(number, [NO_INCIDENTS, NO_INCIDENTS])[side] += incidents

    # What callers ask for.

    def chunks(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        side: int,
        n: int,
        *,
        reduce: Callable[[Outputs], T],
        skip: int = 0,
    ) -> Iterator[Chunk[T]]:
        """Draws n outputs of one side alone, for callers that do not compare two sides."""
        size = self.mechanism.chunk_size
        requests = (
            ChunkRequest(side=side, chunk=skip + start // size, n=min(size, n - start))
            for start in range(0, n, size)
        )
        drawn = self.draw(
            phase=phase,
            number=number,
            pair=pair,
            n=n,
            requests=requests,
            reductions=(reduce, reduce),
        )
        return (chunk for _, chunk in drawn)

    def outputs(
        self, phase: Phase, number: int, pair: Pair, side: int, n: int, *, skip: int = 0
    ) -> Outputs:
        """Draws n outputs of one side alone and returns them all."""
        chunks = self.chunks(
            phase=phase,
            number=number,
            pair=pair,
            side=side,
            n=n,
            reduce=Outputs.copied,
            skip=skip,
        )
        return concatenate([chunk.value for chunk in chunks])

    def chunks_of_both_sides(
        self, phase: Phase, number: int, pair: Pair, n: int, skip: int = 0
    ) -> Generator[tuple[int, Chunk[Outputs]], None, None]:
        """Draws n outputs of both sides and yields them all, chunk by chunk, with their side.

        A chunk that the journal knows is not drawn again.
        """
        requests = self.requests(phase, number, n, skip)
        if self.journal.is_kept:
            chunks = self._resumed(
                phase, number, pair, n, requests=requests, skip=skip, is_kept=True
            )
        else:
            chunks = self.draw(
                phase, number, pair, n, requests=requests, reductions=_UNREDUCED, skip=skip
            )
        with closing(chunks):
            for request, chunk in chunks:
                yield request.side, chunk

    def _resumed(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        *,
        requests: Iterable[ChunkRequest],
        skip: int,
        is_kept: bool,
    ) -> Generator[RequestedChunk, None, None]:
        """Draws chunks, in order, except for those that the journal knows, in whole or in part.

        Args:
            is_kept: whether the journal is to remember the others from now on.
        """
        streams = [StreamKey(int(phase), number, side) for side in (0, 1)]
        known_sizes = [self.journal.sizes(stream) for stream in streams]
        known_incidents = [self.journal.incidents(stream) for stream in streams]
        requests = list(requests)
        wanted = []
        for request in requests:
            n_known = known_sizes[request.side].get(request.chunk, 0)
            is_part = 0 < n_known < request.n
            if n_known > request.n or (is_part and not self._is_careful):
                raise InputError(
                    f"a chunk of {n_known} outputs was remembered where {request.n} should be drawn"
                )
            if n_known < request.n:
                wanted.append(replace(request, n=request.n - n_known, start=n_known))
        if self._is_careful:
            self._count_killed(Draws(int(phase), number, skip), wanted)
        with closing(
            self.draw(phase, number, pair, n, requests=wanted, reductions=_UNREDUCED, skip=skip)
        ) as drawn:
            for request in requests:
                stream = streams[request.side]
                n_known = known_sizes[request.side].get(request.chunk, 0)
                chunk: Chunk[Outputs] | None = None
                if n_known < request.n:
                    _, chunk = next(drawn)
                if n_known:
                    incidents = known_incidents[request.side].get(request.chunk, NO_INCIDENTS)
                    chunk = self._joined(stream, request, chunk, incidents)
                    self._count_known(request.side, n_known)
                    self._note(number, request.side, incidents)
                assert chunk is not None
                if is_kept and n_known < request.n:
                    if chunk.incidents:
                        self.journal.note_incidents(stream, request.chunk, chunk.incidents)
                    self.journal.keep(stream, request.chunk, chunk.value, chunk.fingerprint)
                yield RequestedChunk(request, chunk)
            next(drawn, None)  # it ends, and counts what it has lost

    def _joined(
        self,
        stream: StreamKey,
        request: ChunkRequest,
        rest: Chunk[Outputs] | None,
        incidents: Incidents,
    ) -> Chunk[Outputs]:
        """Returns a chunk that the journal knows, with the outputs that it lacked.

        Args:
            stream: of the chunk.
            request: which chunk.
            rest: the outputs that it lacked; None if it is complete.
            incidents: what happened while the known outputs were drawn.
        """
        known = self.journal.recall(stream, request.chunk)
        assert known is not None
        known_outputs, known_fingerprint = known
        if rest is None:
            return Chunk(
                value=known_outputs,
                size=known_outputs.size,
                fingerprint=known_fingerprint,
                incidents=incidents,
            )
        outputs = concatenate([known_outputs, rest.value])
        return Chunk(
            value=outputs,
            size=outputs.size,
            fingerprint=fingerprint(outputs),
            incidents=incidents + rest.incidents,
        )

    def both(
        self,
        phase: Phase,
        number: int,
        pair: Pair,
        n: int,
        *,
        skip: int = 0,
        prints: Sequence[Fingerprints] = (),
    ) -> tuple[Outputs, Outputs]:
        """Draws n outputs of both sides and returns them all.

        Args:
            phase: what the draws are for.
            number: the pair's number in the audit.
            pair: the two inputs.
            n: outputs of each side.
            skip: chunks of these streams that were drawn before.
            prints: of each side; the fingerprints of these draws are added to them.
        """
        left_chunks: list[Outputs] = []
        right_chunks: list[Outputs] = []
        with closing(self.chunks_of_both_sides(phase, number, pair, n, skip)) as drawn:
            for side, chunk in drawn:
                (right_chunks if side else left_chunks).append(chunk.value)
                if prints:
                    prints[side].add(chunk.fingerprint)
        left = concatenate(left_chunks)
        left_chunks.clear()  # before the other side is joined: wide outputs fill the memory
        return left, concatenate(right_chunks)

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
        """Draws n outputs of both sides and adds up their reduced chunks.

        If the journal remembers a part of them, it continues from there.

        Args:
            phase: what the draws are for.
            number: the pair's number in the audit.
            pair: the two inputs.
            n: outputs of each side.
            reductions: of left and right outputs.
            earlier: fingerprints of other draws of each side; those of these draws are added to
                them.
            examples: other reduced outputs of each side; needed only with a journal that is kept.
        """
        fingerprints = (Fingerprints(), Fingerprints()) if earlier is None else earlier
        sides = [Folded(fingerprints=fingerprints[0]), Folded(fingerprints=fingerprints[1])]
        if self.journal.is_kept:
            for side in (0, 1):
                known = self._known_total(StreamKey(int(phase), number, side), examples[side])
                if known is not None:
                    sides[side] = known
        n_done = (sides[0].chunks, sides[1].chunks)
        missing = (
            request
            for request in self.requests(phase, number, n)
            if request.chunk >= n_done[request.side]
        )
        if self._is_careful:
            resumed = self._resumed(phase, number, pair, n, requests=missing, skip=0, is_kept=False)
            chunks = self._reduced(resumed, reductions)
        else:
            chunks = self.draw(phase, number, pair, n, requests=missing, reductions=reductions)
        with closing(chunks):
            for request, chunk in chunks:
                folded = sides[request.side]
                if not self.journal.is_kept:
                    folded.add(chunk.value, chunk.size, chunk.fingerprint)
                    continue
                stream = StreamKey(int(phase), number, request.side)
                # A chunk is counted both in memory and in the file, or in neither.
                with undisturbed():
                    if chunk.incidents:
                        self.journal.note_incidents(stream, request.chunk, chunk.incidents)
                    folded.add(chunk.value, chunk.size, chunk.fingerprint)
                    self.journal.save(stream, folded)
        return sides[0], sides[1]

    def _known_total(self, stream: StreamKey, example: Any) -> Folded | None:
        """Returns the total that the journal remembers of a stream, and counts its draws."""
        known = self.journal.resume(stream, example)
        if known is None:
            return None
        self._count_known(stream.side, known.size)
        for chunk_number, incidents in self.journal.incidents(stream).items():
            if chunk_number < known.chunks:
                self._note(stream.pair, stream.side, incidents)
        return known

    @staticmethod
    def _reduced(
        chunks: Generator[RequestedChunk, None, None], reductions: Reductions
    ) -> Generator[RequestedChunk, None, None]:
        """Reduces chunks of outputs here: their outputs had to be kept until they were complete."""
        with closing(chunks):
            for request, chunk in chunks:
                value = reductions[request.side](chunk.value)
                yield RequestedChunk(request, replace(chunk, value=value))

    def _count_known(self, side: int, n: int) -> None:
        """Counts outputs of an audit that was interrupted as if they had just been drawn."""
        self.drawn[side] += n
        getattr(self.progress, "remember", self.progress.advance)(n)
