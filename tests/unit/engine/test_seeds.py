import itertools

import numpy as np
import pytest

from epsilometer.engine import Phase, check_seed, chunk_rng
from epsilometer.errors import InputError


def test_no_two_pieces_of_work_share_a_stream():
    keys = itertools.product((0, 1, 2**63), Phase, (0, 1, 2), (0, 1), (0, 1, 2, 1 << 32))
    first = [tuple(chunk_rng(*key).integers(0, 2**63, 2)) for key in keys]
    assert len(set(first)) == len(first) == 3 * len(Phase) * 3 * 2 * 4


def test_one_piece_of_work_has_one_stream():
    assert np.array_equal(chunk_rng(1, 2, 3, 0, 4).random(5), chunk_rng(1, 2, 3, 0, 4).random(5))


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
