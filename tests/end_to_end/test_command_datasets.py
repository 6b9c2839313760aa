"""How a dataset gets to a program: as an argument, in a file, on standard input; and that no file is left."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

import epsilometer as em
from epsilometer.cli import main
from epsilometer.storage.dataset_formats import DATASET_FORMATS

ROWS = [{"age": 1, "name": "ann"}, {"age": 2, "name": "bob, jr"}]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """An empty folder for temporary files, in this process and in those that it starts."""
    folder = tmp_path / "temporary files"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture
def script(tmp_path):
    """Makes a Python program and gives its command."""

    def make(source):
        path = tmp_path / "program.py"
        path.write_text("import sys, os, time, json\n" + source)
        return [sys.executable, "-S", str(path)]

    return make


def text_of(argv, dataset, **settings):
    """What a program prints that quotes what it was given."""
    mechanism = em.from_command(argv, **settings)
    outputs = mechanism.sample(dataset, 1, np.random.default_rng(0))
    return texts_in(outputs)[0]


def texts_in(outputs):
    column = outputs.blocks[0].columns[0]
    return [column.labels[code] for code in column.codes]


SHOW = "text = open(sys.argv[1], newline='').read()\nprint('got ' + repr(text))\n"


@pytest.mark.parametrize(
    ("dataset", "dataset_format", "content"),
    [
        ([1, 2.5], "json", "[1, 2.5]\n"),
        (ROWS, "json", json.dumps(ROWS) + "\n"),
        (pd.DataFrame(ROWS), "json", json.dumps(ROWS) + "\n"),
        (pl.DataFrame(ROWS), "json", json.dumps(ROWS) + "\n"),
        (3, "json", "3\n"),
        (ROWS, "jsonl", "".join(json.dumps(row) + "\n" for row in ROWS)),
        (np.array([1, 2]), "jsonl", "1\n2\n"),
        ([], "jsonl", ""),
        ([1, 2.5, None], "csv", '1\n2.5\n""\n'),
        ([[1, "a"], [2, "b"]], "csv", "1,a\n2,b\n"),
        (np.array([[1.0, 2.0]]), "csv", "1.0,2.0\n"),
        (ROWS, "csv", 'age,name\n1,ann\n2,"bob, jr"\n'),
        (pd.DataFrame(ROWS), "csv", 'age,name\n1,ann\n2,"bob, jr"\n'),
        (pd.DataFrame(ROWS)[:0], "csv", "age,name\n"),
        ([float("nan"), float("inf"), True], "csv", "nan\ninf\ntrue\n"),
    ],
    ids=repr,
)
def test_texts(script, temporary, dataset, dataset_format, content):
    argv = [*script(SHOW), "{file}"]
    assert text_of(argv, dataset, dataset_format=dataset_format) == "got " + repr(content)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("dataset", "dataset_format", "read"),
    [
        ([1.5, 2.5], "npy", "numpy.load(sys.argv[1]).tolist()"),
        (np.array([[1, 2]], dtype="int8"), "npy", "numpy.load(sys.argv[1]).tolist()"),
        (["a", "b"], "npy", "numpy.load(sys.argv[1]).tolist()"),
        (ROWS, "parquet", "pyarrow.parquet.read_table(sys.argv[1]).to_pylist()"),
        (pd.DataFrame(ROWS), "parquet", "pyarrow.parquet.read_table(sys.argv[1]).to_pylist()"),
        (
            [1.5, 2.5],
            "parquet",
            "pyarrow.parquet.read_table(sys.argv[1]).column('value').to_pylist()",
        ),
    ],
    ids=repr,
)
def test_binary_files(tmp_path, temporary, dataset, dataset_format, read):
    program = tmp_path / "program.py"
    package = "numpy" if dataset_format == "npy" else "pyarrow.parquet"
    program.write_text(f"import sys, {package}\nprint('got ' + repr({read}))\n")
    plain = dataset
    if hasattr(dataset, "to_dict"):
        plain = dataset.to_dict("records")
    elif hasattr(dataset, "tolist"):
        plain = dataset.tolist()
    argv = [sys.executable, str(program), "{file}"]
    assert text_of(argv, dataset, dataset_format=dataset_format) == f"got {plain!r}"


def test_the_name_tells_the_format_and_nothing_of_the_data(script, temporary):
    for dataset_format in DATASET_FORMATS:
        argv = [*script("print('got ' + sys.argv[1])"), "--in={file}"]
        names = {
            text_of(argv, dataset, dataset_format=dataset_format) for dataset in ([1], [2], [3, 4])
        }
        assert len(names) == 1
        name = names.pop()
        assert name.startswith(f"got --in={temporary}{os.sep}epsilometer-")
        assert name.endswith(f"dataset.{dataset_format}")


def test_standard_input(script, temporary):
    argv = script("print('got ' + repr([sys.argv[1:], sys.stdin.read()]))")
    for call, settings in [
        ([*argv, "{stdin}", "-v"], {}),
        ([*argv, "-v"], {"stdin": True}),
    ]:
        assert text_of(call, [1, 2], **settings) == "got " + repr([["-v"], "[1, 2]\n"])
        csv = text_of(call, [1, 2], dataset_format="csv", **settings)
        assert csv == "got " + repr([["-v"], "1\n2\n"])


def test_all_places_at_once_and_places_in_the_data(script, temporary):
    argv = script("print('got ' + repr([sys.argv[1], open(sys.argv[2]).read(), sys.stdin.read()]))")
    text = text_of([*argv, "{dataset}", "{file}", "{stdin}"], "{file} {dataset}")
    quoted = '"{file} {dataset}"\n'
    assert text == "got " + repr(["{file} {dataset}", quoted, quoted])


def test_batch_programs_may_read_a_file_as_well(script, temporary):
    source = (
        "n = json.loads(sys.stdin.readline())['n']\n"
        "total = sum(map(float, open(sys.argv[1])))\n"
        "for _ in range(n): print(total)\n"
    )
    mechanism = em.from_command([*script(source), "{file}"], batch=True, dataset_format="csv")
    outputs = mechanism.sample([1, 2], 3, np.random.default_rng(0))
    assert outputs.blocks[0].columns[0].values.tolist() == [3.0, 3.0, 3.0]
    assert list(temporary.iterdir()) == []


def test_every_run_finds_the_same_folder(script, temporary):
    """A program that changes its input, and leaves something beside it, does so for itself only."""
    source = (
        "folder = os.path.dirname(sys.argv[1])\n"
        "print('got ' + repr([sorted(os.listdir(folder)), open(sys.argv[1]).read()]))\n"
        "open(sys.argv[1], 'a').write('changed')\n"
        "open(os.path.join(folder, 'cache'), 'w').write('noise of this run')\n"
    )
    mechanism = em.from_command([*script(source), "{file}"])
    outputs = mechanism.sample([1], 3, np.random.default_rng(0))
    assert texts_in(outputs) == ["got " + repr([["dataset.json"], "[1]\n"])] * 3
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "settings", "reason"),
    [
        (["prog"], {}, r"never sees its input; write \{dataset\} .*, \{file\} .*, or \{stdin\}"),
        (["prog", "{data}"], {}, "never sees its input"),
        (["prog", "--in={stdin}"], {}, "an argument of its own"),
        (["prog", "{stdin}"], {"batch": True}, "leave out {stdin}"),
        (["prog"], {"batch": True, "stdin": True}, "leave out {stdin}"),
        (["prog", "{file}"], {"dataset_format": "cvs"}, "did you mean 'csv'"),
        (
            ["prog", "{file}"],
            {"dataset_format": "xlsx"},
            "known are json, jsonl, csv, npy, parquet",
        ),
        (["prog", "{dataset}"], {"dataset_format": "csv"}, r"neither as \{file\} nor on standard"),
    ],
)
def test_what_no_program_can_be_given(argv, settings, reason):
    with pytest.raises(em.InputError, match=reason):
        em.from_command(argv, **settings)


@pytest.mark.parametrize(
    ("dataset", "dataset_format"),
    [
        (3, "csv"),
        ({"a": [1]}, "csv"),
        ([[1], [2, 3]], "csv"),
        ([[[1]]], "csv"),
        ([{"a": 1}, {"b": 2}], "csv"),
        (3, "jsonl"),
        (["a", 1], "npy"),
        ([[1], [2, 3]], "npy"),
        (ROWS, "npy"),
        ([1, "a"], "parquet"),
        ("text", "parquet"),
        ([1j], "json"),
    ],
    ids=repr,
)
def test_what_a_format_cannot_hold(script, temporary, dataset, dataset_format):
    mechanism = em.from_command([*script(SHOW), "{file}"], dataset_format=dataset_format)
    with pytest.raises(em.InputError) as error:
        mechanism.sample(dataset, 1, np.random.default_rng(0))
    assert dataset_format == "json" or "the format json" in str(error.value)


@pytest.mark.parametrize(
    ("pair", "argument", "settings"),
    [
        (em.Pair(1, "1"), "{dataset}", {}),
        (em.Pair([1], (1,)), "{dataset}", {}),
        (em.Pair([1], (1,)), "{file}", {}),
        (em.Pair(["1"], [1]), "{file}", {"dataset_format": "csv"}),
        (em.Pair([None], [""]), "{stdin}", {"dataset_format": "csv"}),
    ],
    ids=repr,
)
def test_inputs_that_are_the_same_to_the_program(script, temporary, pair, argument, settings):
    program = em.from_command([*script("print(1)"), argument], **settings)
    with pytest.raises(em.InputError, match=r"are the same to .*written out, they do not differ"):
        em.audit(program, pair, "eps=1", samples=20)


LEAKY = (
    "print(len(open(sys.argv[1]).read().split()) + int.from_bytes(os.urandom(1), 'big') / 256)\n"
)


def test_the_report_shows_the_data(script, temporary, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "left.csv").write_text("age,city\n39,Bern\n41,Rome\n")
    (tmp_path / "right.csv").write_text("age,city\n39,Bern\n99,Rome\n41,Oslo\n")
    target = "command:" + " ".join([*script(LEAKY), "{file}"])
    files = ["--json", "result.json", "--html", "report.html"]
    inputs = ["--left", "@left.csv", "--right", "@right.csv"]
    audit = ["audit", target, *inputs, "--dataset-format", "csv", "--epsilon", "1"]
    assert main([*audit, "--samples", "40", *files]) == 1
    result = em.AuditResult.from_json((tmp_path / "result.json").read_text())
    assert result.witness.pair.right[1] == {"age": 99, "city": "Rome"}
    assert result.settings["dataset_format"] == "csv"
    report = (tmp_path / "report.html").read_text()
    assert "Oslo" in report
    for text in (report, (tmp_path / "result.json").read_text(), capsys.readouterr().out):
        assert str(temporary) not in text
        assert "right.csv" not in text
    assert list(temporary.iterdir()) == []
    replayed = ["replay", "result.json", target, "--dataset-format", "csv", "--samples", "40"]
    assert main(replayed) == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_and_threads_share_nothing(script, temporary, jobs):
    """Each run sees its own input, also if several runs take place at the same time."""
    source = "first = open(sys.argv[1]).read(); time.sleep(0.02)\n"
    source += "print(float(open(sys.argv[1]).read()) if os.urandom(1) and first else 0)\n"
    program = em.from_command([*script(source), "{file}"])
    results = {}

    def audit(left):
        results[left] = em.measure(program, em.Pair(left, left + 1), samples=40, jobs=jobs, seed=0)

    threads = [threading.Thread(target=audit, args=(10 * number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 10]
    for result in results.values():
        assert result.health  # both inputs always give one answer, each its own
        assert result.witness.is_deterministic
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_is_left_when_the_audit_is_killed(script, temporary, tmp_path, sent, jobs):
    started = tmp_path / "started"
    source = f"open({str(started)!r}, 'a').write('x')\ntime.sleep(60)\nprint(1)\n"
    code = (
        "import sys, epsilometer as em\n"
        'program = em.from_command([*sys.argv[2:], "{file}"])\n'
        "em.measure(program, em.Pair(1, 2), samples=200, jobs=int(sys.argv[1]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(jobs), *script(source)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert started.exists()
    assert list(temporary.iterdir()) != []
    process.send_signal(sent)
    process.wait(30)
    while list(temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(temporary.iterdir()) == []


def test_a_folder_that_cannot_be_written_to(script, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    mechanism = em.from_command([*script(SHOW), "{file}"], on_error="outcome")
    with pytest.raises(em.MechanismError, match=r"cannot be written to .*nowhere.* TMPDIR"):
        mechanism.sample([1], 1, np.random.default_rng(0))
