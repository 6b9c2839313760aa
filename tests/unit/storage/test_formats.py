"""Datasets and outputs as text."""

import json
import math

import numpy as np
import pytest

from epsilometer.errors import InputError, MechanismError
from epsilometer.storage.formats import decode, read_json, read_value, settle, to_argument, to_json


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        (3, "3"),
        (2.5, "2.5"),
        (-0.0, "-0.0"),
        (1e300, "1e+300"),
        ("a b; $(rm)", "a b; $(rm)"),
        (True, "true"),
        (None, "null"),
        ([1, 2], "[1, 2]"),
        ((1, "x"), '[1, "x"]'),
        ({"a": np.int64(3)}, '{"a": 3}'),
        (np.array([1.5, 2.0]), "[1.5, 2.0]"),
        (np.float64(0.5), "0.5"),
        (math.inf, "inf"),
    ],
)
def test_arguments(dataset, text):
    assert to_argument(dataset) == text


@pytest.mark.parametrize("dataset", [object(), {1: object()}, [math.nan], {"a": {1, 2}}, 1j])
def test_what_json_has_no_word_for_is_an_input_error(dataset):
    with pytest.raises(InputError, match="cannot be written as JSON"):
        to_json(dataset)


def test_a_zero_byte_is_refused():
    with pytest.raises(InputError, match="zero byte"):
        to_argument("a\0b")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3.0),
        ("3.5", 3.5),
        ("[1, 2.5]", [1.0, 2.5]),
        ('{"a": 1, "b": true}', {"a": 1.0, "b": True}),
        ('"3"', "3"),
        ("true", True),
        ("null", None),
        ("nan?", "nan?"),
        ("inf", math.inf),
        ("1e3", 1000.0),
        ("hello world", "hello world"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_reading_what_a_program_printed(text, value):
    read = read_value(text)
    assert read == value
    assert type(read) is type(value)


def test_whole_numbers_are_floats_as_far_as_floats_hold_them():
    assert [type(settle(value)) for value in (1, 2**53, 2**53 + 1, -(2**60), True)] == [
        float,
        float,
        int,
        int,
        bool,
    ]


def test_refusals_quote_what_they_saw():
    with pytest.raises(MechanismError, match="line 3 is not JSON: 'oops'"):
        read_json("oops", "line 3")
    with pytest.raises(MechanismError, match=r"it is not text in UTF-8: b'\\xff'"):
        decode(b"\xff", "it")


def test_json_of_datasets_is_one_line():
    assert "\n" not in to_json({"text": "a\nb"})
    assert json.loads(to_json({"text": "a\nb"})) == {"text": "a\nb"}
