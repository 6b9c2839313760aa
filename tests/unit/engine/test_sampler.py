import math
from contextlib import closing
from itertools import pairwise

import numpy as np
import pytest

from epsilometer.engine import Phase, Sampler, chunk_rng, open_runner, sampler
from epsilometer.engine.fingerprints import fingerprint
from epsilometer.engine.runners import SerialRunner
from epsilometer.errors import InputError, MechanismError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch, from_callable
from epsilometer.outputs import read_outputs
from epsilometer.testing import Coin, raising

PAIR = Pair(0.0, 1.0)


def shifted(dataset, rng):
    return dataset + rng.random()


def values(outputs):
    return outputs.blocks[0].columns[0].values


def test_chunks_have_their_own_generators():
    mechanism = from_callable(shifted)
    size = mechanism.chunk_size
    drawn = values(Sampler(mechanism, 7).outputs(Phase.TRAIN, 3, PAIR, 1, 2 * size + 5))
    expected = [
        1.0 + chunk_rng(7, Phase.TRAIN, 3, 1, chunk).random(n)
        for chunk, n in enumerate((size, size, 5))
    ]
    assert np.array_equal(drawn, np.concatenate(expected))


def test_skipped_chunks():
    mechanism = from_callable(shifted)
    sampler = Sampler(mechanism, 7)
    whole = values(sampler.outputs(Phase.TRAIN, 0, PAIR, 0, 2 * mechanism.chunk_size))
    rest = values(sampler.outputs(Phase.TRAIN, 0, PAIR, 0, mechanism.chunk_size, skip=1))
    assert np.array_equal(whole[mechanism.chunk_size :], rest)


def test_draws_are_counted_and_told():
    class Told:
        total = 0

        def advance(self, n):
            self.total += n

    told = Told()
    sampler = Sampler(Coin(0.5, 0.5).mechanism, 1, progress=told)
    sampler.outputs(Phase.TRAIN, 0, PAIR, 0, 70_000)
    list(sampler.chunks(Phase.CERTIFY, 0, PAIR, 1, 11, reduce=len))
    assert sampler.drawn == [70_000, 11]
    assert told.total == 70_011


def test_nothing_to_draw():
    assert len(Sampler(from_callable(shifted), 1).outputs(Phase.TRAIN, 0, PAIR, 0, 0)) == 0


def test_outputs_are_reduced_where_they_are_drawn():
    chunks = list(
        Sampler(from_callable(shifted), 1).chunks(Phase.CERTIFY, 0, PAIR, 0, 600, reduce=len)
    )
    assert [chunk.value for chunk in chunks] == [256, 256, 88]
    assert len({chunk.fingerprint for chunk in chunks}) == 3


def uniform(dataset, n, rng):
    return dataset + rng.random(n)


@pytest.mark.parametrize("skip", [0, 3])
def test_chunks_that_are_asked_for_together_are_the_same(skip, monkeypatch):
    mechanism = from_batch(uniform)
    mechanism.chunk_size = 4096
    n = 4096 * 300 + 5
    together = list(
        Sampler(mechanism, 7).chunks(Phase.CERTIFY, 2, PAIR, 1, n, reduce=first_value, skip=skip)
    )
    monkeypatch.setattr(sampler, "_MOST_TOGETHER", 1)
    assert (
        list(
            Sampler(mechanism, 7).chunks(
                Phase.CERTIFY, 2, PAIR, 1, n, reduce=first_value, skip=skip
            )
        )
        == together
    )
    assert [chunk.size for chunk in together] == [4096] * 300 + [5]
    assert together[10].value == 1.0 + chunk_rng(7, Phase.CERTIFY, 2, 1, skip + 10).random()


def first_value(outputs):
    return float(values(outputs)[0])


@pytest.mark.parametrize(
    ("chunk_size", "n", "expected", "serial"),
    [
        (65_536, 70_000, 8, 16),
        (65_536, 5_000_000, 2, 2),
        (65_536, 2**24, 4, 4),
        (65_536, 10**9, 16, 16),
        (8192, 1, 2, 2),
    ],
)
def test_how_many_chunks_are_asked_for_together(chunk_size, n, expected, serial):
    size = Sampler(blocks_of(chunk_size), 0).block_size(n)
    assert sampler._chunks_together(size, n, is_serial=False) == expected
    assert sampler._chunks_together(size, n, is_serial=True) == serial


@pytest.mark.parametrize(("chunk_size", "expected"), [(256, 1), (4095, 1), (4096, 16)])
def test_outputs_that_are_drawn_one_at_a_time_are_asked_for_one_chunk_at_a_time(
    chunk_size, expected
):
    sizes = []

    class Watching(SerialRunner):
        def map(self, function, tasks):
            tasks = list(tasks)
            sizes.extend(map(len, tasks))
            return super().map(function, tasks)

    source = Sampler(blocks_of(chunk_size), 0)
    source.runner = Watching()
    source.both(Phase.TRAIN, 0, PAIR, 3 * chunk_size)
    assert set(sizes) == {expected}


def blocks_of(chunk_size):
    mechanism = from_batch(uniform)
    mechanism.chunk_size = chunk_size
    return mechanism


class TestSmallBlocksFirst:
    @pytest.mark.parametrize("n", [1, 2, 3, 9, 64, 65, 300, 1000, 100_000])
    def test_sizes_depend_on_the_number_of_the_block_alone(self, n):
        drawing = Sampler(from_callable(shifted), 7)
        sizes = list(drawing.block_sizes(n))
        usual_size = drawing.block_size(n)
        assert sum(sizes) == n
        # 1, 1, 2, 4, …: as many as all before, up to the usual size.
        for number, size in enumerate(sizes[:-1]):
            assert size == min(2 ** max(number - 1, 0), usual_size)

    def test_what_draws_many_outputs_in_one_call_is_not_called_for_one(self):
        drawing = Sampler(Coin(0.5, 0.5).mechanism, 7)
        assert list(drawing.block_sizes(200)) == [64, 64, 64, 8]
        assert list(drawing.block_sizes(64 * 1000)) == [1000] * 64

    @pytest.mark.parametrize("n_calls", [1, 2, 3, 5, 9, 20, 40])
    def test_an_interruption_loses_little(self, n_calls):
        calls = 0

        def interrupted(dataset, rng):
            nonlocal calls
            calls += 1
            if calls > n_calls:
                raise KeyboardInterrupt
            return dataset + rng.random()

        drawing = Sampler(from_callable(interrupted), 7)
        with pytest.raises(KeyboardInterrupt):
            drawing.both(Phase.TRAIN, 0, PAIR, 1000)
        # A block has as many outputs as all before it, and at first it is a single call.
        assert sum(drawing.drawn) >= n_calls / 2 - 1
        if n_calls <= 4:
            assert sum(drawing.drawn) == n_calls


class TestTurns:
    """The two sides are drawn in turns, whatever the audit does."""

    @pytest.mark.parametrize("n", [1, 63, 64, 65, 4095, 4096, 10_000, 5_000_000])
    @pytest.mark.parametrize("chunk_size", [1, 16, 256, 65_536])
    def test_blocks_are_small_and_neighbours(self, n, chunk_size):
        n = min(n, 1000 * chunk_size)
        requests = list(Sampler(blocks_of(chunk_size), 3).requests(Phase.TRAIN, 0, n, skip=5))
        assert max(request.n for request in requests) <= min(chunk_size, max(64, n / 64))
        for side in (0, 1):
            own = [request for request in requests if request.side == side]
            assert sum(request.n for request in own) == n
            assert [request.chunk for request in own] == list(range(5, 5 + len(own)))
        for first, second in zip(requests[::2], requests[1::2], strict=True):
            assert {first.side, second.side} == {0, 1}
            assert (first.chunk, first.n) == (second.chunk, second.n)

    def test_the_seed_decides_who_begins_block_by_block(self):
        def first_sides(seed, phase=Phase.TRAIN, number=0, skip=0):
            return [
                request.side
                for request in Sampler(blocks_of(1), seed).requests(phase, number, 1000, skip)
            ][::2]

        begins = first_sides(1)
        assert 400 < sum(begins) < 600  # 6.3 spreads
        assert 400 < sum(a != b for a, b in pairwise(begins)) < 600
        assert first_sides(1) == begins
        assert first_sides(1, skip=7)[:900] == begins[7:907]
        for other in (
            first_sides(2),
            first_sides(1, Phase.CERTIFY),
            first_sides(1, number=1),
            first_sides(1, skip=1),
        ):
            assert 400 < sum(a != b for a, b in zip(begins, other, strict=True)) < 600

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_every_way_of_drawing_takes_turns(self, jobs):
        mechanism, n = Coin(0.5, 0.5).mechanism, 700
        with closing(open_runner(jobs)) as runner:
            source = Sampler(mechanism, 7, runner)
            sides = [
                side for side, _ in source.chunks_of_both_sides(Phase.TRAIN, 0, PAIR_OF_COINS, n)
            ]
            left, _ = source.both(Phase.TRAIN, 0, PAIR_OF_COINS, n)
            folded = source.fold(Phase.TRAIN, 0, PAIR_OF_COINS, n, (len, len))
        assert sides == [request.side for request in source.requests(Phase.TRAIN, 0, n)]
        assert len(left) == n
        assert [side.total for side in folded] == [n, n]

    def test_the_answer_is_that_of_the_blocks_seeds(self):
        left, _ = Sampler(from_batch(uniform), 7).both(Phase.TRAIN, 3, PAIR, 150)
        expected = [
            chunk_rng(7, Phase.TRAIN, 3, 0, block).random(n) for block, n in enumerate((64, 64, 22))
        ]
        assert np.array_equal(values(left), np.concatenate(expected))


PAIR_OF_COINS = Pair(0.3, 0.4)


def test_fingerprints():
    def of(batch):
        return fingerprint(read_outputs(batch))

    assert of([1.0, 2.0]) == of([1.0, 2.0])
    assert of([1.0, 2.0]) != of([2.0, 1.0])
    assert of(["a", "b"]) == of(["a", "b"])
    assert of(["a", "b"]) != of(["a", "c"])
    assert of([1.0]) != of([1])
    assert of([None]) != of(["None"])
    assert of(["\ud800"])
    assert of([None, "a", "a"]) != of(["a", None, "a"])  # the place of each output counts, too
    assert of([2**53]) != of([2**53 + 1])


class TestRunners:
    @pytest.mark.parametrize("jobs", [0, -1, 1.5, "2", True, None])
    def test_jobs(self, jobs):
        with pytest.raises(InputError, match="jobs="):
            open_runner(jobs)

    @pytest.mark.parametrize("engine", ["magic", "", None])
    def test_engine(self, engine):
        with pytest.raises(InputError, match="engine="):
            open_runner(1, engine)

    def test_processes_draw_the_same(self):
        mechanism = Coin(
            0.5, 0.5
        ).mechanism  # of an installed package: workers cannot import this test
        serial = Sampler(mechanism, 7).outputs(Phase.TRAIN, 0, Pair(0.3, 0.4), 0, 150_000)
        spread = Sampler(mechanism, 7, open_runner(2)).outputs(
            Phase.TRAIN, 0, Pair(0.3, 0.4), 0, 150_000
        )
        assert np.array_equal(values(serial), values(spread))

    def test_failures_come_back_from_processes(self):
        sampler = Sampler(raising(ValueError("inside a worker")), 7, open_runner(2))
        with pytest.raises(MechanismError, match="inside a worker"):
            sampler.outputs(Phase.TRAIN, 0, PAIR, 0, 600)

    def test_what_cannot_be_sent(self):
        import threading

        lock = threading.Lock()

        def locked(dataset, n, rng):
            with lock:
                return rng.random(n)

        sampler = Sampler(from_batch(locked), 7, open_runner(2))
        with pytest.raises(InputError, match="jobs=2"):
            sampler.outputs(Phase.TRAIN, 0, PAIR, 0, 200_000)


class TestFunctionsThatWeCountWith:
    """Several chunks are drawn before it is looked at them: none of these is believed if something was replaced."""

    @staticmethod
    def drawn_while(monkeypatch, tool, name, value):
        def mechanism(dataset, n, rng):
            monkeypatch.setattr(tool, name, value)
            return rng.random(n)

        return Sampler(from_batch(mechanism), 7).both(Phase.TRAIN, 0, PAIR, 5000)

    @pytest.mark.parametrize(
        ("tool", "name", "value"),
        [
            (np, "count_nonzero", lambda *_: 0),
            (np, "pi", np.zeros(3)),  # cannot be compared by ==
            (np.random, "SeedSequence", None),  # the next chunk fails
            (math, "log", math.exp),
        ],
    )
    def test_replaced_ones_are_named_and_put_back(self, monkeypatch, tool, name, value):
        before = getattr(tool, name)
        with pytest.raises(
            MechanismError, match=rf"replaced {tool.__name__}\.{name} while .* input 0.0 or 1.0"
        ):
            self.drawn_while(monkeypatch, tool, name, value)
        assert getattr(tool, name) is before

    def test_the_same_again_and_what_is_new_do_no_harm(self, monkeypatch):
        monkeypatch.setattr(math, "a_new_name", 1, raising=False)
        left, _ = self.drawn_while(monkeypatch, math, "a_new_name", math.a_new_name)
        assert len(left) == 5000
