"""Inputs and recordings from files; nothing is unpickled."""

import json

import numpy as np
import pytest

from epsilometer.cli.files import read_value
from epsilometer.cli.output import Answers, writable, write_all
from epsilometer.errors import InputError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", ["0", "-1.5", '"word"', "[1, [2], null]", '{"a": true}'])
def test_json_is_read_as_it_is(text):
    assert read_value(text, "--left") == json.loads(text)


@pytest.mark.parametrize("text", ["word", "", "[1,", "[" * 100_000])
def test_what_is_not_json_is_quoted(text):
    with pytest.raises(InputError, match=r"--left .* is not JSON") as caught:
        read_value(text, "--left")
    assert len(str(caught.value)) < 500


def test_a_word_is_told_how_to_be_quoted():
    with pytest.raises(InputError, match="write a word as '\"yes\"', a file as @FILE"):
        read_value("yes", "--left")


def test_inputs_from_files(here):
    (here / "a.json").write_text("[1, 2]")
    np.save("a.npy", np.eye(2))
    (here / "a.csv").write_text("age,name\n3,x\n4,y\n")
    (here / "b.csv").write_text("1\n2\n")
    assert read_value("@a.json", "--left") == [1, 2]
    np.testing.assert_array_equal(read_value("@a.npy", "--left"), np.eye(2))
    assert read_value("@a.csv", "--left") == [{"age": 3, "name": "x"}, {"age": 4, "name": "y"}]
    assert read_value("@b.csv", "--left") == [1, 2]
    (here / "c.csv").write_text('id,name\n9007199254740993,\n007,""\n')
    assert read_value("@c.csv", "--left") == [["id", "name"], [2**53 + 1, None], ["007", ""]]
    (here / "d.csv").write_text("")
    with pytest.raises(InputError, match="empty"):
        read_value("@d.csv", "--left")


@pytest.mark.parametrize("text", ["@missing.json", "@a.txt", "@.", "@broken.json", "@broken.npy"])
def test_unreadable_inputs(here, text):
    (here / "broken.json").write_bytes(b"\xff{")
    (here / "broken.npy").write_bytes(b"no array")
    with pytest.raises(InputError):
        read_value(text, "--left")


def test_files_that_cannot_be_written_are_told_before_the_work(here):
    assert writable(None, "--json", Answers()) is None
    assert writable("-", "--json", Answers()) == "-"
    assert writable("new.json", "--json", Answers()) == str(here / "new.json")
    with pytest.raises(InputError, match="no folder"):
        writable("no/such/folder/x.json", "--json", Answers())
    with pytest.raises(InputError, match="is a folder"):
        writable(str(here), "--html", Answers())


def test_a_test_that_cannot_be_written_costs_no_other_file(here):
    def refuse():
        raise InputError("no test can hold it")

    problem = write_all([refuse, lambda: (here / "a.json").write_text("{}")])
    assert str(problem) == "no test can hold it"
    assert (here / "a.json").exists()
