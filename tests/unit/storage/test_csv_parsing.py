"""CSV files: every row is an output or is refused by its line; what is missing, text, a number, a header."""

import csv
import io
import random

import numpy as np
import pytest

import epsilometer as em
from epsilometer.errors import InputError
from epsilometer.mechanisms.recordings import recorded_outputs
from epsilometer.outputs import Numbers
from epsilometer.storage.csv_parsing import csv_rows, header_of
from epsilometer.storage.formats import number_or_text, settle, settled_texts


@pytest.fixture
def file(tmp_path):
    def write(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def outputs_of(path, header=None):
    """The outputs of a recording with one column, in order."""
    outputs = em.from_recording(path, header=header).sides[0].outputs()
    found = [None] * len(outputs)
    for block in outputs:
        rows = range(len(outputs)) if block.rows is None else block.rows
        for place, row in enumerate(rows):
            for column in block.columns:
                is_number = isinstance(column, Numbers)
                found[row] = (
                    column.values[place] if is_number else column.labels[column.codes[place]]
                )
    return found


def test_rows_are_those_of_the_standard_library(file):
    rng = random.Random(1)
    refused = 0
    for _ in range(4000):
        width = rng.choice([1, 1, 2, 3])
        rows = [
            ["".join(rng.choices('ab,"\n\r 1.', k=rng.randint(0, 4))) for _ in range(width)]
            for _ in range(4)
        ]
        text = io.StringIO(newline="")
        csv.writer(text, quoting=rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])).writerows(rows)
        path = file(
            text.getvalue() if rng.random() < 0.8 else text.getvalue()[: rng.randint(1, 30)]
        )
        expected = [
            row or [""] for row in csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
        ]
        try:
            found = [["" if cell is None else cell for cell in row] for _, row in csv_rows(path)]
        except InputError as error:
            assert "not closed" in str(error) or len({len(row) for row in expected}) > 1  # noqa: PT017
            refused += 1
            continue
        assert found == expected[: len(found)]
        assert all(row == [""] for row in expected[len(found) :])  # blank lines at the end
    assert 0 < refused < 800


def test_numbers_of_a_column_are_read_alike_one_by_one():
    rng = random.Random(2)
    odd = [
        "",
        "007",
        "1_0",
        "-0",
        "00",
        "0.5",
        "-0.5",
        ".5",
        "+1",
        " 1",
        "9007199254740993",
        "1e400",
        "nan",
        "inf",
        "x",
    ]
    for _ in range(300):
        texts = (
            rng.choices(odd, k=3)
            if rng.random() < 0.5
            else [str(rng.uniform(-9, 9)) for _ in range(3)]
        )
        texts += rng.choices(odd, k=rng.randint(0, 1))
        assert list(map(repr, settled_texts(texts))) == [
            repr(settle(number_or_text(text))) for text in texts
        ]
    assert settled_texts(["1", None]) == [1.0, None]


def test_an_empty_cell_is_missing_and_a_quoted_one_is_text(file):
    assert outputs_of(file('a\n\n""\n1\n')) == ["a", None, "", 1.0]
    assert outputs_of(file("1\n2\n\n")) == [1.0, 2.0, None]
    assert outputs_of(file("\n\n")) == [None, None]
    assert [block.shape for block in recorded_outputs(file('1,\n,""\n'))] == [
        "tuple(float, None)",
        "tuple(None, str)",
    ]


def test_ends_of_lines_and_of_the_file_are_no_cells(file):
    for text in ("1\n2\n", "1\r\n2\r\n", "1\r2\r", "1\n2", b"\xef\xbb\xbf1\n2\n"):
        assert outputs_of(file(text)) == [1.0, 2.0]
    assert recorded_outputs(file("1,2\n3,4\n\n\n")).size == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1,2\n3\n", r"t\.csv, line 2: 1 cells, but the first row has 2"),
        ('"a\nb",2\n3\n', r"t\.csv, line 3: 1 cells"),
        ("1,2\n\n3,4\n", r"t\.csv, line 2: a blank line, but the first row has 2 cells"),
        ('a\n"b\nc\n', r"t\.csv, line 2: a quote is opened and not closed"),
        ('"' + "a\n" * (1 << 20), r"t\.csv, line 1: a quote is opened and not closed"),
        (b"1\n\xff\n", r"t\.csv, line 2: cannot be read as CSV: not text in UTF-8"),
        ("side,x\nleft,1\nRight,2\n", r"t\.csv, line 3: side is 'Right', not left or right"),
        ("side,x\nleft,1\nright ,2\n", r"t\.csv, line 3: side is 'right '"),
        ("side,x\nleft,1\n,2\n", r"t\.csv, line 3: side is None"),
        ("left,right\n,1\n2,3\n,4\n", r"t\.csv, line 4: the column left is empty from here on"),
        ("left,right\n1,\n2,\n", r"t\.csv, line 2: the column right is empty from here on"),
    ],
)
def test_what_is_no_output_is_refused_by_its_line(file, text, reason):
    with pytest.raises(InputError, match=reason):
        [side.outputs() for side in em.from_recording(file(text)).sides]


def test_the_shorter_of_two_columns_ends_with_empty_cells(file):
    both = em.from_recording(file("left,right\n1,4\n2,5\n3,\n7,\n"))
    assert [side.outputs().size for side in both.sides] == [4, 2]
    gaps = em.from_recording(file("left,right\n1,4\n,5\n,\n3,6\n"))
    assert [side.outputs().size for side in gaps.sides] == [4, 4]
    last = em.from_recording(file("left,right\n1,4\n,\n"))
    assert [side.outputs().size for side in last.sides] == [2, 2]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("value\n1\n2\n", ["value"]),
        ("value\n\n2\n", ["value"]),
        ("answer\nyes\nno\n", None),
        ("word\n1\nword\n", None),
        ("a,b\n1,x\n2,y\n", ["a", "b"]),
        ("1,2\n3,4\n", None),
        ("\n1\n", None),
        (" side ,x\nleft,a\n", ["side", "x"]),
    ],
)
def test_words_above_a_column_of_numbers_are_a_header(file, text, names):
    assert header_of(file(text), None) == names


def test_a_header_can_be_told_and_denied(file):
    assert outputs_of(file("answer\nyes\n"), header=True) == ["yes"]
    assert outputs_of(file("x\n1\n"), header=False) == ["x", 1.0]


def test_a_recording_says_how_many_outputs_it_has(file):
    path = file("left,right\n" + "1,2\n" * 30)
    with pytest.raises(InputError, match="only 30 outputs; audit it with samples=30 or fewer"):
        em.audit(em.from_recording(path), claim=em.PureDP(1.0), samples=31)


def test_a_leak_by_empty_cells_is_refuted_and_equal_files_are_not(file):
    rng = np.random.default_rng(0)

    def rows(share, seed):
        return (
            "\n".join(
                "" if draw < share else "a" for draw in np.random.default_rng(seed).random(2000)
            )
            + "\n"
        )

    paths = [file(rows(share, seed), f"{seed}.csv") for seed, share in enumerate((0.5, 0.05, 0.5))]
    assert em.compare(paths[0], paths[1], em.PureDP(1.0), seed=0).is_refuted
    assert not em.compare(paths[0], paths[2], em.PureDP(0.5), seed=0).is_refuted
    numbers = [
        file("\n".join(map(str, (17 * 10**17 + rng.integers(-9, 9, 500)).tolist())), f"n{i}.csv")
        for i in (0, 1)
    ]
    assert not em.compare(*numbers, em.PureDP(1.0), seed=0).is_refuted
