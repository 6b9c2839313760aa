"""Files that promise too much, or are no files at all, are refused in one line and at once."""

import io
import json
import os
import struct
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

import epsilometer as em
from epsilometer.cli import main
from epsilometer.storage.formats import memory_share


def header(shape, descr="<f8", fortran_order=False):
    file = io.BytesIO()
    np.lib.format.write_array_header_2_0(
        file, {"descr": descr, "fortran_order": fortran_order, "shape": shape}
    )
    return file.getvalue()


def raw_header(text):
    body = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body


def packed(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)


def sparse(path, start, size):
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("ok.npy", np.random.default_rng(0).laplace(size=300))
    return tmp_path


def refused(capfd, *arguments, seconds=2.0):
    """The complaint of a command that must refuse something at once."""
    began = time.process_time()
    status = main(list(map(str, arguments)))
    took = time.process_time() - began
    said = capfd.readouterr().err
    assert status == 2, said
    assert not any(
        word in said for word in ("Traceback", "epsilometer: unexpected", "object at 0x")
    ), said
    assert len(said.strip().splitlines()) == 1, said
    # Its own work; on a busy machine the clock says more about the others.
    assert took < seconds, f"{took:.1f} s"
    return said


def make(name, folder):
    """A bad file of that name."""
    path = folder / name
    huge = 10**9
    if name == "bomb.npz":
        packed(
            path,
            left=header((1 << 23,)) + bytes(1 << 26),
            right=header((1 << 23,)) + bytes(1 << 26),
        )
    elif name == "liar.npz":
        packed(path, left=header((huge,)), right=header((huge,)))
    elif name == "twice.npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("left.npy", header((0,)))
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr("left.npy", header((0,)))
    elif name == "encrypted.npz":
        packed(path, left=header((3,)) + bytes(24))
        data = bytearray(path.read_bytes())
        data[6] |= 1
        data[data.find(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(data)
    elif name == "about.npz":
        packed(path, about=header((huge,), "<U9"), left=header((0,)))
    elif name == "sparse.npy":
        sparse(path, header((1 << 34,)), 1 << 37)
    elif name == "wide.npy":
        sparse(path, header((2, 1 << 33)), 1 << 37)
    elif name == "columns.npy":
        sparse(path, header((1 << 17, 1 << 17), fortran_order=True), 1 << 37)
    elif name in ("line.csv", "line.jsonl", "list.json", "pairs.toml"):
        sparse(path, b"[1, ", 1 << 37)
    elif name == "fifo.csv":
        os.mkfifo(path)
    elif name == "zero.csv":
        path.symlink_to("/dev/zero")
    elif name == "folder.npy":
        path.mkdir()
    else:
        path.write_bytes(FILES[name])
    return path


FILES = {
    "shape.npy": header((10**9, 10**9)),
    "overflow.npy": header((1 << 61, 1 << 61, 1 << 61)),
    "negative.npy": raw_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }"),
    "bool.npy": raw_header("{'descr': '<f8', 'fortran_order': False, 'shape': (3.5,), }"),
    "empty_rows.npy": header((10**15, 0)),
    "objects.npy": header((3,), "|O") + bytes(24),
    "nested.npy": raw_header("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }")
    + bytes(8),
    "nothing.npy": header((3,), "|V0"),
    "letters.npy": header((300,), "<U1") + b"\xff" * 1200,
    "foreign_letters.npy": header((300,), ">U1") + b"\x7f" * 1200,
    "fields.npy": raw_header("{'descr': [('a', '<U1')], 'fortran_order': False, 'shape': (2,), }")
    + b"\xff" * 8,
    "long_header.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
    "brackets.npy": raw_header("(" * 100),
    "deep.json": b"[" * 100_000 + b"]" * 100_000,
    "deep.jsonl": b'{"a":' * 100_000,
    "utf16.csv": "output\n1\n2\n".encode("utf-16"),
    "utf16.jsonl": "1\n2\n".encode("utf-16"),
    "utf16.json": "[1, 2]".encode("utf-16"),
    "object.json": b'{"a": 1}',
    "twice.json": b'[{"a": 1, "a": 2}]',
    "junk.parquet": b"PAR1" + b"\xff" * 40 + b"PAR1",
    "quote.csv": b'a\n"' + b"x" * 3_000_000,
    "kept.jsonl": b'{"epsilometer_recording": 1, "mechanism": "m", "chunk_size": 1, "pairs": [], "further": ["x"]}\n'
    b'{"dataset": 0, "size": 5, "blocks": [{"shape": "float", "rows": null, "size": 2, "columns": [{"float": [1]}]}]}',
    "input.jsonl": b'{"epsilometer_recording": 1, "mechanism": "m", "chunk_size": 1, "pairs": [], "further": []}\n'
    b'{"input": [[[',
}
SPECIAL = (
    *(
        "bomb.npz",
        "liar.npz",
        "twice.npz",
        "encrypted.npz",
        "about.npz",
        "sparse.npy",
        "wide.npy",
        "columns.npy",
    ),
    *("line.csv", "line.jsonl", "list.json", "fifo.csv", "zero.csv", "folder.npy"),
)


@pytest.mark.parametrize("name", [*FILES, *SPECIAL])
def test_recordings(name, folder, capfd):
    path = make(name, folder)
    place = f"{path}:left" if name.endswith(".npz") and name != "about.npz" else path
    limit = ["--max-output-bytes", "5e7"] if name == "bomb.npz" else []
    assert name in refused(capfd, "compare", place, "ok.npy", "--epsilon", 1, *limit)
    refused(capfd, "compare", "ok.npy", place, "--epsilon", 1, *limit)


def test_the_limit_is_named_and_can_be_raised(folder, capfd):
    packed(
        folder / "b.npz", left=header((1000,)) + bytes(8000), right=header((1000,)) + bytes(8000)
    )
    said = refused(
        capfd, "compare", "b.npz:left", "b.npz:right", "--epsilon", 1, "--max-output-bytes", 7999
    )
    assert "outputs of 8000 bytes, above the limit of 7999" in said
    assert "max_output_bytes" in said
    assert (
        main(
            ["compare", "b.npz:left", "b.npz:right", "--epsilon", "1", "--max-output-bytes", "8000"]
        )
        == 0
    )
    recording = em.from_recording("b.npz", max_output_bytes=7999)  # an audit reads in pieces
    assert em.audit(recording, claim=em.PureDP(1.0), samples=1000).is_refuted is False
    (folder / "c.csv").write_text("\n".join(map(str, range(1000))), encoding="utf-8")
    assert "more than 8000 bytes" in refused(
        capfd, "compare", "c.csv", "ok.npy", "--epsilon", 1, "--max-output-bytes", 100
    )
    for wrong in (0, -1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(em.InputError, match=r"max_output_bytes=.* must be a number of bytes"):
            em.from_recording("b.npz", max_output_bytes=wrong)


def test_a_promise_that_the_memory_cannot_keep(folder):
    """The limit follows the memory of the process; 300 MB of zeros in 300 kB are refused without being unpacked."""
    with zipfile.ZipFile("b.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("left.npy", "w") as file:
            file.write(header((40_000_000,)))
            for _ in range(32):
                file.write(bytes(10_000_000))
        archive.writestr("right.npy", header((300,)) + bytes(2400))
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({2 << 30}, {2 << 30}))"
    code = f"{limit}\nimport sys\nfrom epsilometer.cli import main\nsys.exit(main(sys.argv[1:]))"
    argv = [sys.executable, "-c", code, "compare", "b.npz:left", "b.npz:right", "--epsilon", "1"]
    run = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert run.returncode == 2, run.stderr
    assert f"outputs of 320000000 bytes, above the limit of {2**31 // 8}" in run.stderr
    assert memory_share() <= 8 << 30


@pytest.mark.parametrize(
    "name",
    ["shape.npy", "objects.npy", "deep.json", "utf16.json", "zero.csv", "fifo.csv", "nothing.npy"],
)
def test_inputs(name, folder, capfd):
    path = make(name, folder)
    refused(capfd, "audit", "zoo:laplace", "--left", f"@{path}", "--right", 0, "--epsilon", 1)


@pytest.mark.parametrize("option", ["samples", "jobs", "distance"])
def test_numbers_beyond_all_sizes(option, folder, capfd):
    (folder / "a.toml").write_text(
        f'mechanism = "zoo:laplace"\nepsilon = 1\n{option} = {2**64}', encoding="utf-8"
    )
    assert option in refused(capfd, "audit", "a.toml")


def test_numbers_of_thousands_of_digits(folder, capfd):
    digits = "9" * 6000
    (folder / "n.json").write_text(f"[{digits}]", encoding="utf-8")
    (folder / "n.toml").write_text(
        f'mechanism = "zoo:laplace"\nepsilon = {digits}', encoding="utf-8"
    )
    refused(capfd, "audit", "zoo:laplace", "--left", digits, "--right", 0, "--epsilon", 1)
    refused(capfd, "audit", "zoo:laplace", "--left", "@n.json", "--right", 0, "--epsilon", 1)
    refused(capfd, "audit", "n.toml")
    refused(capfd, "compare", "n.json", "ok.npy", "--epsilon", 1)
    refused(capfd, "replay", "n.json", "zoo:laplace")


WRONG_TOML = [
    "mechanism = 3\nepsilon = 'x'",
    'mechanism = "zoo:laplace"\nepsilon = [1]\nsamples = -5',
    'mechanism = "zoo:laplace"\nepsilon = 1979-05-27',
    'mechanism = "zoo:laplace"\nepsilon = 1\nsamples = "many"',
    'mechanism = "zoo:laplace"\nepsilon = 1\nsamples = [[]]',
    'mechanism = "zoo:laplace"\nepsilon = nan',
    'mechanism = "zoo:laplace"\nepsilon = 1\nseed = {a = 1}',
    'mechanism = "zoo:laplace"\nepsilon = 1\nconfidence = true',
    'mechanism = "zoo:laplace"\nepsilon = 1\njobs = "2"',
    'mechanism = "zoo:laplace"\nepsilon = 1\nsuppress = [[1]]',
    'mechanism = "zoo:laplace"\nepsilon = 1\ndistance = 1.5',
    'mechanism = "zoo:laplace"\nepsilon = 1\nmax_seconds = []',
    'mechanism = "zoo:laplace"\nepsilon = 1\noptions = {a = 1}',
    'mechanism = "zoo:laplace"\nepsilon = 1\nfinder = {name = 1}',
    'mechanism = "zoo:laplace"\nepsilon = 1\npairs = [1]',
    'mechanism = "zoo:laplace"\nleft = "@\\u0000"\nright = 1',
    "a = " + "[" * 5000,
    "\x00",
]


@pytest.mark.parametrize("text", WRONG_TOML)
def test_settings(text, folder, capfd):
    (folder / "a.toml").write_text(text, encoding="utf-8")
    refused(capfd, "audit", "a.toml")


def test_settings_of_other_encodings(folder, capfd):
    text = 'mechanism = "zoo:laplace"\nepsilon = 1\nsamples = 50'
    (folder / "a.toml").write_text(text, encoding="utf-16")
    refused(capfd, "audit", "a.toml")
    (folder / "a.toml").write_text(text, encoding="utf-8-sig")
    assert main(["audit", "a.toml"]) == 0
    make("pairs.toml", folder)
    refused(capfd, "audit", "pairs.toml")


@pytest.mark.parametrize(
    "name", ["x" * 300 + ".csv", "ü/é.npy", "\udcff.csv", "a\0b.csv", "日本.json", "ok.npy/x.csv"]
)
def test_names_of_files(name, folder, capfd):
    refused(capfd, "compare", name, "ok.npy", "--epsilon", 1)
    refused(capfd, "replay", name, "zoo:laplace")
    refused(capfd, "audit", "zoo:laplace", "--left", f"@{name}", "--right", 0, "--epsilon", 1)


def test_files_with_names_that_are_not_ascii(folder):
    np.save(folder / "größe 日本.npy", np.zeros(300))
    assert main(["compare", "größe 日本.npy", "größe 日本.npy", "--epsilon", "1"]) == 0


def test_two_parquet_columns_of_one_name(folder, capfd):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(
        pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), "t.parquet"
    )
    assert "two columns of one name" in refused(
        capfd, "compare", "t.parquet", "ok.npy", "--epsilon", 1
    )


def test_results(folder, capfd):
    main(["audit", "zoo:svt5", "--epsilon", "1", "--samples", "500", "--json", "r.json"])
    stored = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    capfd.readouterr()
    for key in stored:
        for value in (None, [], "x", 1e400):
            (folder / "bad.json").write_text(json.dumps({**stored, key: value}), encoding="utf-8")
            for command in (
                ["replay", "bad.json", "zoo:svt5", "--samples", "100"],
                ["verify", "bad.json"],
            ):
                status = main(command)
                said = capfd.readouterr().err
                assert status in (0, 1, 2, 3)
                assert not any(word in said for word in ("Traceback", "unexpected")), (
                    key,
                    value,
                    command,
                    said,
                )
