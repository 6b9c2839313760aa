import itertools
import pickle
import random

import numpy as np
import pytest

from epsilometer.engine import Phase, check_seed, chunk_rng
from epsilometer.engine.seeds import chunk_rngs
from epsilometer.errors import InputError


def test_no_two_pieces_of_work_share_a_stream():
    keys = itertools.product((0, 1, 2**63), Phase, (0, 1, 2), (0, 1), (0, 1, 2, 1 << 32))
    first = [tuple(chunk_rng(*key).integers(0, 2**63, 2)) for key in keys]
    assert len(set(first)) == len(first) == 3 * len(Phase) * 3 * 2 * 4


def test_one_piece_of_work_has_one_stream():
    assert np.array_equal(chunk_rng(1, 2, 3, 0, 4).random(5), chunk_rng(1, 2, 3, 0, 4).random(5))


def keys_of_all_lengths():
    """Seeds, pairs and chunks of one and of several words, alone and together."""
    choose = random.Random(0)
    for _ in range(200):
        seed = choose.getrandbits(choose.choice([1, 31, 32, 33, 64, 96, 97, 128, 129, 200]))
        pair = choose.choice([0, 1, 7, 2**32 - 1, 2**32, 2**40])
        numbers = choose.choice([[0, 1, 5, 2**31, 2**32 - 1], [2**32, 2**32 + 7, 5 << 32, 2**50]])
        numbers = numbers if choose.random() < 0.7 else [3, *numbers, 1 << 32]
        chunks = [
            (choose.randrange(2), choose.choice(numbers))
            for _ in range(choose.choice([1, 2, 5, 16]))
        ]
        yield seed, choose.choice(list(Phase)), pair, chunks


def test_generators_made_together_are_those_made_one_by_one():
    for seed, phase, pair, chunks in keys_of_all_lengths():
        together = chunk_rngs(seed, phase, pair, chunks)
        for rng, key in zip(together, chunks, strict=True):
            alone = chunk_rng(seed, phase, pair, *key)
            assert rng.bit_generator.state == alone.bit_generator.state
            assert np.array_equal(rng.random(3), alone.random(3))


def test_generators_made_together_have_a_whole_seed_sequence():
    together = chunk_rngs(3, Phase.TRAIN, 1, [(0, chunk) for chunk in range(8)])
    for chunk, rng in enumerate(together):
        alone, seeds = chunk_rng(3, Phase.TRAIN, 1, 0, chunk), rng.bit_generator.seed_seq
        theirs = alone.bit_generator.seed_seq
        assert (seeds.entropy, seeds.spawn_key) == (3, (Phase.TRAIN, 1, 0, chunk))
        for wanted in ((4, np.uint64), (2, np.uint64), (9, np.uint32)):
            assert np.array_equal(seeds.generate_state(*wanted), theirs.generate_state(*wanted))
        assert [child.random() for child in rng.spawn(2)] == [
            child.random() for child in alone.spawn(2)
        ]
        assert rng.spawn(1)[0].random() == alone.spawn(1)[0].random()  # it counts its children
        copied = pickle.loads(pickle.dumps(rng))
        assert copied.random() == alone.random()
        assert copied.spawn(1)[0].random() == alone.spawn(1)[0].random()


def test_phases_have_numbers_of_their_own():
    assert len({int(phase) for phase in Phase}) == len(Phase)


def test_seeds():
    assert check_seed(0) == 0
    assert type(check_seed(np.int64(5))) is int
    assert check_seed(2**200) == 2**200
    assert len({check_seed(None) for _ in range(20)}) == 20


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, float("nan"), [1]])
def test_what_is_no_seed(seed):
    with pytest.raises(InputError, match="seed="):
        check_seed(seed)
