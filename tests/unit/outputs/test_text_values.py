"""Numbers, dates and tokens of texts."""

from datetime import date, datetime

import numpy as np
import pytest

from epsilometer.outputs.text_values import (
    MAX_TOKENS,
    clock_of,
    compact_day_of,
    day_of,
    is_whole,
    moment_of,
    number_of,
    tokens_of,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3", 3.0),
        (" -2.5 ", -2.5),
        ("−7", -7.0),
        ("+1e-3", 1e-3),
        (".5", 0.5),
        ("3.", 3.0),
        ("1,234,567.8", 1234567.8),
        ("1'000", 1000.0),
        ("$12.50", 12.5),
        ("-€3", -3.0),
        ("12.5 %", 12.5),
        ("7 €", 7.0),
        ("0x1F", 31.0),
        ("1e400", np.inf),
        ("-1e400", -np.inf),
        ("9" * 400, np.inf),
        ("٣٤", 34.0),
        ("INF", np.inf),
    ],
)
def test_numbers(text, number):
    assert number_of(text) == number


def test_negative_zero_and_nan():
    assert np.signbit(number_of("-0"))
    assert np.isnan(number_of("nan"))


@pytest.mark.parametrize(
    "text", ["", " ", "x", "1_000", "1,23", "1e", "1e5f", "0x", "²", "3 4", "(3)", "1" * 5000]
)
def test_no_numbers(text):
    assert number_of(text) is None


def test_whole_numbers_are_written_without_point_and_exponent():
    assert is_whole("12")
    assert is_whole("0xE1")
    assert not is_whole("12.0")
    assert not is_whole("1e3")


def test_dates_and_times():
    assert day_of("2024-02-29") == date(2024, 2, 29).toordinal()
    assert day_of("2023-02-29") is None
    assert day_of("20240229") is None
    noon = (datetime(2024, 2, 29, 12) - datetime(1970, 1, 1)).total_seconds() * 1e6
    assert moment_of("2024-02-29 12:00") == noon
    assert moment_of("2024-02-29T12:00:00Z") == noon
    assert moment_of("2024-02-29T14:00:00+02:00") == noon
    assert moment_of("0001-01-01T00:00:00+23:00") is None
    assert clock_of("09:30") == clock_of("9:30:00") == 9.5 * 3600e6
    assert clock_of("9.30") is None


@pytest.mark.parametrize(
    ("text", "kinds", "values"),
    [
        ("rows=3 total=-104.2", "wnwn", ("rows", "3", "total", "-104.2")),
        ("10-3", "nn", ("10", "3")),
        ("12px", "nw", ("12", "px")),
        ("user_12", "wn", ("user", "12")),
        ("AB0042X7", "w", ("AB0042X7",)),
        ("AB0042", "wn", ("AB", "0042")),
        ("1e5f 1e5", "wn", ("1e5f", "1e5")),
        ("on 2024-02-29 at 9:30", "wdwt", ("on", "2024-02-29", "at", "9:30")),
        ("2024-02-29T09:30:00Z!", "m", ("2024-02-29T09:30:00Z",)),
        ("3.14.15", "nn", ("3.14", "15")),
        (
            "550e8400-e29b-41d4-a716-446655440000 3",
            "wn",
            ("550e8400-e29b-41d4-a716-446655440000", "3"),
        ),
        ("(12345-6789-0123)", "w", ("12345-6789-0123",)),
        ("1200-1400", "nn", ("1200", "1400")),
    ],
)
def test_tokens(text, kinds, values):
    tokens = tokens_of(text, grouped=False)
    assert (tokens.kinds, tokens.values) == (kinds, values)


def test_commas_belong_to_numbers_only_where_they_separate_thousands():
    assert tokens_of("1,234,5", grouped=False).values == ("1", "234", "5")
    assert tokens_of("$1,234.50", grouped=True).values == ("1,234.50",)
    assert tokens_of("1,2345", grouped=True).values == ("1", "2345")


def test_texts_without_tokens_and_with_too_many():
    assert tokens_of("", grouped=False) is None
    assert tokens_of("—\0—", grouped=False) is None
    assert tokens_of("a " * MAX_TOKENS, grouped=False) is not None
    assert tokens_of("a " * (MAX_TOKENS + 1), grouped=False) is None


def test_dates_without_hyphens():
    assert compact_day_of(" 20240229 ") == date(2024, 2, 29).toordinal()
    for text in (
        "20230229",
        "20241301",
        "18991231",
        "21000101",
        "2024022",
        "202402290",
        "٢٠٢٤٠٢٢٩",
    ):
        assert compact_day_of(text) is None
