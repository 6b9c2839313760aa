"""CSV files: what is a number, what is a header, what is refused."""

import numpy as np
import pytest

from epsilometer.cli.tables import read_csv
from epsilometer.errors import InputError


@pytest.fixture
def table(tmp_path):
    def read(text, header=None):
        path = tmp_path / "t.csv"
        path.write_text(text, encoding="utf-8")
        return read_csv(path, header)

    return read


def test_numbers_without_a_header(table):
    outputs = table("1\n2.5\nnan\n-inf\n").outputs()
    np.testing.assert_array_equal(outputs, [1.0, 2.5, np.nan, -np.inf])


def test_a_word_above_numbers_is_a_header(table):
    found = table("value\n1\n2\n")
    assert found.names == ["value"]
    np.testing.assert_array_equal(found.outputs(), [1.0, 2.0])


def test_words_have_no_header_unless_told(table):
    assert table("answer\nyes\nno\n").outputs() == ["answer", "yes", "no"]
    assert table("answer\nyes\nno\n", header=True).outputs() == ["yes", "no"]


def test_a_header_can_be_denied(table):
    assert table("x\n1\n", header=False).outputs() == ["x", 1.0]


def test_whole_numbers_are_no_kind_of_their_own(table):
    assert table("1\n2\n").outputs().dtype == table("1.5\n2\n").outputs().dtype


def test_columns_of_numbers_are_an_array(table):
    assert table("a,b\n1,2\n3,4\n").outputs().shape == (2, 2)


def test_columns_with_words_are_tuples(table):
    assert table("1,yes\n2,no\n").outputs() == [(1.0, "yes"), (2.0, "no")]


def test_a_byte_order_mark_and_empty_lines_are_no_cells(table):
    np.testing.assert_array_equal(table("\ufeff1\n\n2\n\n").outputs(), [1.0, 2.0])


def test_quoted_cells_may_hold_commas(table):
    assert table('"a,b"\n"c"\n').outputs() == ["a,b", "c"]


@pytest.mark.parametrize(("text", "what"), [("1,2\n3\n", "line 2: 1 cells"), ("", "is empty")])
def test_what_cannot_be_read_is_named(table, text, what):
    with pytest.raises(InputError, match=what):
        table(text)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read as CSV"):
        read_csv(tmp_path / "b.csv")
