"""Which columns identify rows, and which only look like it."""

import uuid

import numpy as np
import pytest

from epsilometer.outputs import Numbers, read_outputs
from epsilometer.outputs.identifiers import (
    grows,
    identifier_columns,
    never_repeats_although_close,
    predicts_side,
)
from epsilometer.outputs.preparing import prepare
from epsilometer.outputs.shapes import leaves_of

N = 400


def spread(turn):
    """Numbers between 0 and 1 that look random."""
    return (turn * 0.6180339887498949) % 1.0


def rows(identifier, shift=0.0, n=N):
    """Outputs with a number, a category and something else."""
    return [
        {"count": spread(turn) + shift, "city": "ABC"[turn % 3], "id": identifier(turn)}
        for turn in range(n)
    ]


def prepared_names(left, right):
    """The names of the columns that are left for learning, and the identifiers noticed."""
    prepared = prepare(read_outputs(left), read_outputs(right))
    noticed = [] if prepared.reading is None else prepared.reading.identifiers
    names = {leaf.path for block in prepared.left for leaf in leaves_of(block.shape)}
    return names, [(one.name, one.why, one.is_used) for one in noticed]


class TestNumbers:
    def test_integers_that_never_repeat_although_they_are_close(self):
        rng = np.random.default_rng(1)
        assert never_repeats_although_close(rng.permutation(N))
        assert never_repeats_although_close(3 * rng.permutation(N) + 10_000)
        assert never_repeats_although_close(rng.permutation(N).astype(float))

    def test_integers_of_a_wide_range_may_be_noise(self):
        rng = np.random.default_rng(1)
        assert not never_repeats_although_close(rng.integers(0, 1 << 50, size=N))
        assert not never_repeats_although_close(np.arange(N) * 1_000_003)

    def test_noise_is_no_identifier(self):
        rng = np.random.default_rng(1)
        for values in (
            rng.normal(size=N),
            rng.laplace(0.0, 1e9, size=N),
            rng.poisson(1000.0, size=N),
            rng.integers(0, 1 << 14, size=N),
            np.full(N, np.nan),
            np.array([True, False] * (N // 2)),
        ):
            assert not never_repeats_although_close(values)
            assert not grows(values)

    def test_numbers_that_grow(self):
        assert grows(np.arange(N))
        assert grows(np.cumsum([1e-9 + spread(turn) for turn in range(N)]))
        mostly = np.arange(N, dtype=float)
        mostly[7::40] = 0.0
        assert grows(mostly)
        assert not grows(np.arange(N)[::-1])
        assert not grows(np.repeat(np.arange(N // 8), 8))
        assert not grows(np.arange(20))

    def test_prediction(self):
        low = Numbers(np.array([spread(turn) for turn in range(N)]))
        high = Numbers(np.array([spread(turn + 0.5) + 0.5 for turn in range(N)]))
        assert predicts_side(low, high)
        assert not predicts_side(low, Numbers(np.array([spread(turn + 0.3) for turn in range(N)])))
        # What separates the sides early says nothing about later draws if it grows on.
        early = np.arange(N) // 10 % 2 == 0
        counter = np.arange(N)
        assert not predicts_side(Numbers(counter[early]), Numbers(counter[~early]))


class TestColumns:
    def test_no_identifiers_among_noise_and_categories(self):
        noise = rows(lambda turn: spread(3 * turn) * 1e6)
        assert prepared_names(noise, noise[::-1]) == ({"count", "city", "id"}, [])
        assert prepare(read_outputs(noise), read_outputs(noise)).reading is None

    @pytest.mark.parametrize(
        ("identifier", "why"),
        [
            (lambda turn: turn, "growing"),
            (lambda turn: (turn * 177) % N, "different"),
            (lambda turn: 1.7e9 + 0.25 * turn + 0.1 * spread(turn), "growing"),
            (lambda turn: f"run-{turn:06d}", "different"),
            (lambda turn: str(uuid.UUID(int=int(spread(turn) * 2**60) ** 2)), "different"),
            (lambda turn: uuid.UUID(int=int(spread(turn) * 2**60) ** 2).bytes, "different"),
            (lambda turn: f"2024-01-01T{turn // 60:02d}:{turn % 60:02d}:00Z", "different"),
        ],
    )
    def test_left_out_and_noticed(self, identifier, why):
        names, noticed = prepared_names(rows(identifier), rows(identifier, shift=0.5))
        assert noticed == [("id", why, False)]
        assert names == {"count", "city"}

    def test_kept_where_it_predicts_the_side(self):
        left = rows(lambda turn: f"left-{turn}")
        right = rows(lambda turn: f"right-{turn}")
        names, noticed = prepared_names(left, right)
        assert noticed == [("id", "different", True)]
        assert names == {"count", "city", "word 1 in id"}

    def test_numbers_that_predict_the_side_are_kept(self):
        left = rows(lambda turn: turn)
        right = rows(lambda turn: 10 * N + turn)
        near = rows(lambda turn: N + turn)
        assert prepared_names(left, near)[1] == [("id", "growing", False)]
        names, noticed = prepared_names(left, right)
        assert noticed == [("id", "growing", True)]
        assert names == {"count", "city", "id"}

    def test_a_counter_inside_of_a_text_with_noise(self):
        texts = rows(lambda turn: f"run={turn} ms={spread(turn):.3f}")
        names, noticed = prepared_names(texts, texts[::-1])
        assert noticed == [("the number after `run=` in id", "different", False)]
        assert names == {"count", "city", "the number after `ms=` in id"}

    def test_texts_with_noise_never_repeat_and_are_kept(self):
        texts = rows(lambda turn: f"ms={spread(turn):.6f}")
        names, noticed = prepared_names(texts, texts[::-1])
        assert noticed == []
        assert names == {"count", "city", "the number after `ms=` in id"}

    def test_nothing_is_left_out_where_nothing_would_remain(self):
        for outputs in ([f"{turn:06d}" for turn in range(N)], list(range(N))):
            names, noticed = prepared_names(outputs, outputs)
            assert len(names) == 1
            assert noticed == []

    def test_few_draws(self):
        few = rows(lambda turn: turn, n=40)
        assert identifier_columns(read_outputs(few), read_outputs(few)) == ()

    def test_texts_as_they_come(self):
        texts = read_outputs(rows(lambda turn: f"run-{turn:06d}"))
        (identifier,) = identifier_columns(texts, texts)
        assert (identifier.name, identifier.why) == ("id", "different")

    @pytest.mark.parametrize("swap", [False, True])
    def test_formats_of_texts_of_one_side_only(self, swap):
        """Numbers that never repeat on one side, other texts on the other."""
        sides = [f"{turn}" for turn in range(N)], [f"{N + turn}x" for turn in range(N)]
        left, right = sides[::-1] if swap else sides
        names, _ = prepared_names(left, right)
        assert names

    def test_shapes_of_one_side_only(self):
        left = read_outputs(rows(lambda turn: turn))
        assert identifier_columns(left, read_outputs([1.0] * N)) == ()
