"""Files of membership scores."""

import json

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.storage.score_tables import read_score_table

SCORES = [0.5, -2.0, float("inf"), 3.0]
INCLUDED = [True, False, False, True]
IDS = ["a", "b", "c", "d"]


def write_csv(folder, member=("in", "OUT", "out", " In"), rows=None):
    path = folder / "table.csv"
    lines = ["id,loss,member,other"]
    for identity, score, word in zip(IDS, SCORES, member, strict=True):
        lines.append(f"{identity},{score},{word},x")
    path.write_text("\n".join(lines if rows is None else rows) + "\n")
    return path


def write_jsonl(folder, member=(1, 0, False, True), rows=None):
    path = folder / "table.jsonl"
    entries = [
        {"id": identity, "loss": score, "member": word, "other": None}
        for identity, score, word in zip(IDS, SCORES, member, strict=True)
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows or entries))
    return path


def write_parquet(folder, member=INCLUDED):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = folder / "table.parquet"
    columns = {"id": IDS, "loss": SCORES, "member": list(member), "other": IDS}
    parquet.write_table(pyarrow.table(columns), path)
    return path


def write_npz(folder, member=(1, 0, 0, 1)):
    path = folder / "table.npz"
    np.savez(path, id=np.array(IDS), loss=np.array(SCORES), member=np.array(member), other=[1])
    return path


WRITERS = [write_csv, write_jsonl, write_parquet, write_npz]


@pytest.mark.parametrize("write", WRITERS)
def test_every_format(write, tmp_path):
    table = read_score_table(write(tmp_path), score="loss", member="member", id_column="id")
    assert table.scores.tolist() == SCORES
    assert table.included.tolist() == INCLUDED
    assert table.ids == tuple(IDS)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (write_csv, ("1", "0", "0", "1")),
        (write_csv, ("true", "False", "FALSE", "TRUE")),
        (write_csv, ('"in"', "out", "0", "1.0")),
        (write_jsonl, ("in", "out", 0.0, 1.0)),
        (write_parquet, ("true", "false", "out", "in")),
        (write_npz, (True, False, False, True)),
        (write_npz, ("in", "out", "out", "in")),
    ],
)
def test_words_of_membership(write, words, tmp_path):
    table = read_score_table(write(tmp_path, words), score="loss", member="member")
    assert table.included.tolist() == INCLUDED
    assert table.ids is None


@pytest.mark.parametrize("write", WRITERS)
def test_a_missing_column_is_told_those_that_are_there(write, tmp_path):
    with pytest.raises(InputError, match=r"no column 'lost'.*id, loss, member, other"):
        read_score_table(write(tmp_path), score="lost", member="member")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (["loss,member", "1,in", "2,", "3,out", ",in"], "loss is missing or NaN in line 5"),
        (["loss,member", "1,in", "2,", "3,out", "4,"], "member is missing or NaN in lines 3, 5"),
        (["loss,member", "nan,in", "2,out", "NaN,out"], "loss is missing or NaN in lines 2, 4"),
        (["loss,member", *["nan,in"] * 9], "lines 2, 3, 4, 5, 6 and 4 more"),
        (["loss,member", "1,in", "2,yes"], "line 3: member is 'yes', .*0/1, true/false or in/out"),
        (["loss,member", "1,in", "2,2"], "line 3: member is 2"),
        (["loss,member", "1,in", "high,out"], "line 3: loss is 'high', but scores must be numbers"),
        (["loss,member", "1,in", "2,in"], "no row of the column 'member' says out"),
        (["loss,member", "1,0", "2,0"], "no row of the column 'member' says in"),
        (
            ["loss,member", "9007199254740992,in", "9007199254740993,out"],
            "line 3: loss is 9007199254740993, which no float holds exactly",
        ),
        (["loss,member"], "has no rows"),
        ([], "is empty"),
        (["loss,loss,member", "1,2,in"], "two columns called 'loss'"),
    ],
)
def test_mistakes_of_csv_files_name_their_rows(rows, why, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("".join(row + "\n" for row in rows))
    with pytest.raises(InputError, match=why) as refused:
        read_score_table(path, score="loss", member="member")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        (["a", "b", "a"], "the id 'a' occurs in lines 2 and 4"),
        ([1, 2, 1], "the id 1 occurs"),
        (["a", "", "c"], "id is missing or NaN in line 3"),
    ],
)
def test_ids(ids, why, tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{identity},{place},{place % 2}\n" for place, identity in enumerate(ids)]
    path.write_text("".join(["id,loss,member\n", *rows]))
    with pytest.raises(InputError, match=why):
        read_score_table(path, score="loss", member="member", id_column="id")
    assert len(read_score_table(path, score="loss", member="member").scores) == 3


def test_a_key_that_some_lines_lack_is_a_missing_value(tmp_path):
    rows = [{"loss": 1.0, "member": 1}, {"loss": 1.0}, {"loss": None, "member": 0}]
    path = write_jsonl(tmp_path, rows=rows)
    with pytest.raises(InputError, match="loss is missing or NaN in line 3"):
        read_score_table(path, score="loss", member="member")
    rows[2]["loss"] = True
    with pytest.raises(InputError, match="line 3: loss is True"):
        read_score_table(write_jsonl(tmp_path, rows=rows), score="loss", member="member")
    with pytest.raises(InputError, match="must be an object"):
        read_score_table(write_jsonl(tmp_path, rows=[3]), score="loss", member="member")


def test_arrays_must_fit_together(tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, loss=np.ones(3), member=np.ones(4))
    with pytest.raises(InputError, match="loss has 3, member has 4"):
        read_score_table(path, score="loss", member="member")
    np.savez(path, loss=np.ones((3, 2)), member=np.ones(3))
    with pytest.raises(InputError, match="one-dimensional"):
        read_score_table(path, score="loss", member="member")


def test_other_files(tmp_path):
    other = tmp_path / "table.txt"
    other.write_text("x")
    with pytest.raises(InputError, match=r"\.csv, \.jsonl, \.parquet, \.npz"):
        read_score_table(other, score="a", member="b")
    with pytest.raises(InputError, match="missing"):
        read_score_table(tmp_path / "missing.csv", score="a", member="b")
