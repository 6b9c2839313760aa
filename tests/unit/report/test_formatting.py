"""Numbers and values for people."""

import math

import pandas as pd
import polars as pl
import pytest

from epsilometer.report import formatting as showing


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (0.7, "0.7", "0.7"),
        (1.98765, "1.987", "1.988"),
        (0.0, "0", "0"),
        (123456.0, "1.234e+05", "1.235e+05"),
        (5.26968e-05, "5.269e-05", "5.27e-05"),
    ],
)
def test_bounds_are_rounded_to_their_safe_side(value, down, up):
    assert (showing.figure_down(value), showing.figure_up(value)) == (down, up)


def test_bound_against_a_claim_that_it_does_not_exceed():
    assert showing.bound_against(0.99999, 1.0) == "0.9999"


def test_bound_one_float_above_the_claim():
    assert float(showing.bound_against(math.nextafter(1.0, 2.0), 1.0)) > 1.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.012 s"), (59.4, "59 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")],
)
def test_duration(seconds, text):
    assert showing.duration(seconds) == text


def test_a_cut_list_tells_its_length():
    assert showing.display_value(list(range(1000)), 60).endswith("… (1,000 items)")


def test_a_short_value_is_as_python_writes_it():
    assert showing.display_value({"a": [1.5, None, "x"]}) == "{'a': [1.5, None, 'x']}"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.394, "39.4%"),
        (0.95, "95%"),
        (1.0, "100%"),
        (0.0, "0%"),
        (1e-9, "1e-07%"),
        (0.99999, "99.999%"),
        (math.nextafter(1.0, 0.0), "99.99999999999999%"),
    ],
)
def test_only_certainty_is_shown_as_certain(share, text):
    assert showing.percent(share) == text


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames_are_shown_by_shape_and_columns(library):
    name = library.__name__
    frame = library.DataFrame({"age": [30, 40, 50], "city": ["a", "b", "c"]})
    assert showing.display_value(frame) == f"{name}.DataFrame, 3 rows × 2 columns: age, city"
    wide = library.DataFrame({f"c{number}": [1] for number in range(1000)})
    assert showing.display_value(wide).startswith(
        f"{name}.DataFrame, 1 row × 1,000 columns: c0, c1,"
    )
    assert showing.display_value(wide).endswith("c7, …")
    assert showing.display_value(library.DataFrame()) == f"{name}.DataFrame, 0 rows × 0 columns"
    assert showing.display_value(frame["age"]) == f"{name}.Series age, 3 values"


def test_names_of_columns_are_cleaned_and_cut():
    frame = pd.DataFrame({"\x1b[31m": [1], "x" * 1000: [2]})
    text = showing.display_value(frame)
    assert text.isprintable()
    assert len(text) <= showing.MAX_VALUE_CHARACTERS
