"""What is learned from texts of known formats."""

import json
import uuid

import numpy as np
import pytest

from epsilometer.outputs import read_outputs
from epsilometer.outputs.shapes import leaves_of, shape_words
from epsilometer.outputs.text_learning import _frequent_keys, learn_text_reading

N = 200
# Numbers that look random and do not repeat.
SPREAD = [round(((turn * 0.6180339887) % 1.0) * 100.0, 3) for turn in range(2 * N)]


def read(texts):
    """Learns from texts, half of them on each side, and reads all of them."""
    half = len(texts) // 2
    reading = learn_text_reading(read_outputs(texts[:half]), read_outputs(texts[half:]))
    return None if reading is None else reading.read(read_outputs(texts))


def names(block):
    return [leaf.path for leaf in leaves_of(block.shape)]


def kinds(block):
    return [leaf.kind for leaf in leaves_of(block.shape)]


def values(block, name):
    column = block.columns[names(block).index(name)]
    if hasattr(column, "values"):
        return column.values.tolist()
    return [column.labels[code] for code in column.codes.tolist()]


class TestFormats:
    def test_pairs(self):
        (block,) = read([f"rows={turn % 5} total={SPREAD[turn]}" for turn in range(2 * N)])
        assert names(block) == ["the number after `rows=`", "the number after `total=`"]
        assert kinds(block) == ["int", "float"]
        assert values(block, "the number after `rows=`")[:6] == [0, 1, 2, 3, 4, 0]
        assert values(block, "the number after `total=`") == SPREAD
        assert shape_words(block.shape) == "str like `key=value`"

    def test_pairs_that_some_texts_lack(self):
        texts = [
            f"a: {SPREAD[turn]}" if turn % 3 else f"a: {SPREAD[turn]}, b: x{turn % 2}"
            for turn in range(2 * N)
        ]
        (block,) = read(texts)
        assert values(block, "the text after `b:`")[:3] == ["x0", "(missing)", "(missing)"]

    def test_names_that_never_repeat_are_no_columns(self):
        # Of 400 texts, each with 20 names of its own, only the name that all share is looked at.
        found = [
            {"total": SPREAD[turn]} | {f"k{20 * turn + field}": 1.0 for field in range(20)}
            for turn in range(2 * N)
        ]
        assert _frequent_keys(found, np.ones(2 * N, np.int64)) == ["total"]
        (block,) = read([json.dumps(fields) for fields in found])
        assert values(block, "`total` in the JSON text") == SPREAD

    def test_json_of_varying_shapes(self):
        texts = []
        for turn in range(2 * N):
            value = {"total": SPREAD[turn], "user": {"name": "al" if turn % 2 else "bo"}}
            if turn % 4 == 0:
                value["items"] = list(range(turn % 3))
            texts.append(json.dumps(value))
        (block,) = read(texts)
        assert values(block, "`total` in the JSON text") == SPREAD
        assert values(block, "`user.name` in the JSON text")[:2] == ["bo", "al"]
        lengths = values(block, "the length of `items` in the JSON text")
        assert lengths[0] == 0.0
        assert np.isnan(lengths[1])

    def test_sentences_of_one_pattern(self):
        texts = [
            f"The answer is {number} for {'Al' if number < 50 else 'Bo'}." for number in SPREAD
        ]
        (block,) = read(texts)
        assert names(block) == ["the number after `The answer is`", "the text after `for`"]
        assert shape_words(block.shape) == "str like `The answer is # for ….`"

    def test_identifiers_in_sentences_are_one_word(self):
        # Cut at its letters and digits, every UUID would be a pattern of its own.
        rng = np.random.default_rng(3)
        texts = [
            f"job {uuid.UUID(bytes=rng.bytes(16))} took {SPREAD[turn]} ms of {turn % 9}"
            for turn in range(2 * N)
        ]
        (block,) = read(texts)
        assert values(block, "the number after `took`") == SPREAD
        assert values(block, "the number after `ms of`")[:3] == [0, 1, 2]

    def test_lines_of_entries(self):
        users = ["al", "bo smith", "x y z"]
        texts = [f"{users[turn % 3]};{SPREAD[turn]};7" for turn in range(2 * N)]
        (block,) = read(texts)
        assert names(block) == ["entry 1 of the line", "entry 2 of the line"]
        assert values(block, "entry 1 of the line")[:3] == users

    def test_lines_of_numbers_only(self):
        (block,) = read([f"{turn % 7},{SPREAD[turn]}" for turn in range(2 * N)])
        assert names(block) == ["number 1 in the text", "number 2 in the text"]

    @pytest.mark.parametrize("pattern", ["{:9.3f}", "x = {:9.3f}", "{:>12.3e} |"])
    def test_aligned_numbers(self, pattern):
        (block,) = read([pattern.format(number - 50.0) for number in SPREAD])
        assert len(names(block)) == 1
        np.testing.assert_allclose(block.columns[0].values, np.array(SPREAD) - 50.0, rtol=1e-3)

    def test_thousands(self):
        (block,) = read([f"${100 * number:,.2f}" for number in SPREAD])
        assert names(block) == ["the number in the text"]
        np.testing.assert_allclose(values(block, "the number in the text"), 100 * np.array(SPREAD))

    def test_dates(self):
        days = [str(np.datetime64("2024-01-01") + turn % 90) for turn in range(2 * N)]
        (block,) = read(days)
        assert kinds(block) == ["date"]
        (block,) = read([day.replace("-", "") for day in days])
        assert kinds(block) == ["date"]
        (block,) = read([f"{20_240_101 + turn}" for turn in range(2 * N)])
        assert kinds(block) == ["int"]
        moments = [f"{day}T{turn % 24:02d}:00:00Z" for turn, day in enumerate(days)]
        (block,) = read(moments)
        assert kinds(block) == ["datetime"]

    def test_several_templates_are_shapes_of_their_own(self):
        texts = []
        for turn in range(2 * N):
            if turn % 2:
                texts.append(f"ok {SPREAD[turn]}")
            elif turn % 5:
                texts.append(f"failed after {turn} ms")
            else:
                texts.append("?")
        ok, failed, rest = sorted(read(texts).blocks, key=lambda block: -block.size)
        assert names(ok) == ["the number after `ok`"]
        assert names(failed) == ["the number after `failed after`"]
        assert names(rest) == ["output"]
        assert sorted([*ok.places(), *failed.places(), *rest.places()]) == list(range(2 * N))

    def test_free_sentences(self):
        words = ["red", "green", "blue", "deep"]
        texts = [
            " ".join(words[(turn * step) % 4] for step in range(1, 3 + turn % 11)) + f" {turn} m"
            for turn in range(2 * N)
        ]
        (block,) = read(texts)
        assert "the first number in the text" in names(block)
        assert "the number of words in the text" in names(block)

    def test_codes(self):
        texts = [
            f"{'AB'[turn % 2]}X{turn % 90 + 10}{'QRS'[turn % 3]}{chr(97 + turn % 26)}{turn % 10}"
            for turn in range(2 * N)
        ]
        (block,) = read(texts)
        assert "characters 3–4 of the text" in names(block)
        assert values(block, "character 7 of the text")[:3] == ["0", "1", "2"]

    def test_at_most_64_columns(self):
        codes = [
            "".join(
                chr(97 + (turn * (place + 3) + place) % 26) + str(turn % 9) for place in range(32)
            )
            for turn in range(2 * N)
        ]
        (block,) = read(codes)
        assert 0 < len(block.columns) <= 65
        wide = [code + code[:2] for code in codes]
        (block,) = read(wide)
        assert len(block.columns) < 10

    def test_bytes(self):
        texts = [b"x=%.3f;" % number for number in SPREAD]
        (block,) = read(texts)
        assert names(block) == ["the number after `x=`"]
        raw = [bytes([turn % 250, 7, turn % 199]) for turn in range(2 * N)]
        (block,) = read(raw)
        assert values(block, "byte 3 of the text")[:3] == [0, 1, 2]
        assert "byte 2 of the text" not in names(block)

    def test_texts_inside_of_records(self):
        rows = [
            {"n": turn % 3, "note": f"got {SPREAD[turn]} ms", "tags": [f"t={turn % 40}"]}
            for turn in range(2 * N)
        ]
        (block,) = read(rows)
        assert names(block) == [
            "n",
            "the number after `got` in note",
            "the number after `t=` in tags[0]",
        ]


class TestInsideOfFields:
    def test_amounts_with_a_unit_are_numbers(self):
        (block,) = read([f"mass={SPREAD[turn]}kg&size={turn % 40} mm" for turn in range(2 * N)])
        assert values(block, "the number after `mass=`") == SPREAD

    def test_amounts_that_repeat_are_numbers_too(self):
        (block,) = read(
            [f'{{"age": "{turn % 40}h", "x": {SPREAD[turn]}}}' for turn in range(2 * N)]
        )
        found = values(block, "the number in `age` in the JSON text")
        assert found == [turn % 40 for turn in range(2 * N)]

    def test_lists_of_one_length(self):
        texts = [f"k=x{turn % 3},s={SPREAD[turn]}|{turn % 7}|-1" for turn in range(2 * N)]
        (block,) = read(texts)
        assert values(block, "number 1 of the text after `s=`") == SPREAD
        assert values(block, "number 2 of the text after `s=`")[:8] == [0, 1, 2, 3, 4, 5, 6, 0]

    def test_lists_of_any_length(self):
        texts = [
            f"s={','.join(str((turn + place) % 9) for place in range(turn % 5 + 1))} k={SPREAD[turn]}"
            for turn in range(2 * N)
        ]
        (block,) = read(texts)
        lengths = values(block, "the number of entries of the text after `s=`")
        assert lengths == [turn % 5 + 1 for turn in range(2 * N)]
        second = values(block, "entry 2 of the text after `s=`")
        assert np.isnan(second[0])
        assert second[1:3] == [2.0, 3.0]

    def test_an_entry_that_some_lines_lack(self):
        texts = [
            f"{turn % 4}\tx{turn % 3}\t" + (f"{SPREAD[turn]};{turn}" if turn % 3 else "")
            for turn in range(2 * N)
        ]
        (block,) = read(texts)
        first = values(block, "number 1 of entry 3 of the line")
        assert np.isnan(first[0])
        assert first[1:3] == SPREAD[1:3]

    @pytest.mark.parametrize(
        "value",
        [
            lambda turn: f"user-{turn * 7919 % 100_003:06d}",
            lambda turn: f"{turn % 28 + 1:02d}.{turn % 12 + 1:02d}.2017",
            lambda turn: f"{turn % 5}.{turn % 7}.{turn % 11}",
        ],
        ids=["name", "dotted date", "version"],
    )
    def test_names_dates_and_versions_are_no_amounts(self, value):
        (block,) = read([f"a={value(turn)} b={SPREAD[turn]}" for turn in range(2 * N)])
        assert not any(
            name.startswith(("number 1", "the number after `a=`")) for name in names(block)
        )


class TestWhatStaysAText:
    def test_few_texts_are_categories(self):
        assert read(["yes", "no"] * N) is None

    def test_many_texts_that_all_repeat_and_hold_no_numbers(self):
        texts = [chr(97 + turn % 20) * 3 for turn in range(2 * N)]
        assert read(texts) is None

    def test_numbers_do_not_need_the_text(self):
        (block,) = read([str(turn % 30) for turn in range(2 * N)])
        assert names(block) == ["the number in the text"]
        assert kinds(block) == ["int"]

    def test_repeated_texts_of_several_numbers_stay_outcomes(self):
        texts = [f"{turn % 4} of {turn % 5}" for turn in range(2 * N)]
        (block,) = read(texts)
        assert names(block)[0] == "output"
        assert len(names(block)) == 3

    def test_a_text_that_is_frequent_stays_an_outcome(self):
        texts = [
            "a=0 b=0" if turn % 10 == 0 else f"a={SPREAD[turn]} b={turn % 7}"
            for turn in range(2 * N)
        ]
        (block,) = read(texts)
        assert names(block)[0] == "output"

    def test_few_draws(self):
        assert read([f"x={number}" for number in SPREAD[:30]]) is None

    def test_texts_of_one_megabyte(self):
        texts = [f"{number} " * 3 + "x" * 1_000_000 + str(number) for number in SPREAD[:60]]
        (block,) = read(texts)
        assert "the length of the text" in names(block)


def test_lengths_that_differ_between_the_sides_are_a_column():
    left = [f"x={number:.1f}" for number in SPREAD]
    right = [f"x={number:.3f}" for number in SPREAD]
    reading = learn_text_reading(read_outputs(left), read_outputs(right))
    (block,) = reading.read(read_outputs(left))
    assert names(block) == ["the number after `x=`", "the length of the text"]


@pytest.mark.parametrize("digits", [".2f", ".6g", ""])
def test_larger_numbers_are_longer_without_a_column_for_that(digits):
    numbers = [((turn * 0.6180339887498949) % 1.0) * 97.3 for turn in range(2 * N)]
    left = [f"x={format(number, digits)}" for number in numbers]
    right = [f"x={format(20 * number, digits)}" for number in numbers]
    reading = learn_text_reading(read_outputs(left), read_outputs(right))
    (block,) = reading.read(read_outputs(left))
    assert names(block) == ["the number after `x=`"]
