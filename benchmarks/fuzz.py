"""`python -m benchmarks.fuzz`: damaged files of every format are given to the command line, which must refuse them.

A damaged file may be refused or, if the damage left it whole, read. It must not cause a traceback, an "unexpected"
error, more than four lines of complaint, a run of over five seconds, or a peak of over 1 GB.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.processes import peak_memory
from epsilometer.cli import main as epsilometer

FORMATS = ("npy", "npz", "csv", "jsonl", "json", "parquet", "toml", "result")
SECONDS = 5.0
PEAK = 1_000_000_000
_BATCH = 250
_WELL = ("read", "refused")
_NASTY = [
    *(
        b"NaN",
        b"-0",
        b"1e999",
        b"-1",
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b"'",
        b'"',
        b"\0",
        b"\r",
        b"\xff\xfe",
    ),
    *(
        b"\xef\xbb\xbf",
        b"9" * 30,
        b"7" * 6000,
        b"[" * 3000,
        b'{"a":' * 3000,
        b"(" * 300,
        b"1979-05-27",
        b"@x",
        b"\xf0",
    ),
    *(
        b"inf",
        b"0x10",
        b"1_0",
        b"\xe2\x80\xae",
        b"left",
        b"side",
        b"output",
        b"18446744073709551616",
        b"PAR1",
        b"PK\3\4",
    ),
]


class Hung(BaseException):
    """A file took too long. Not an Exception, so that nobody takes it for an error of the file."""


def seed_files(folder: Path) -> dict[str, list[bytes]]:
    """Whole files of every format, from which damaged ones are made."""
    rng = np.random.default_rng(0)
    made: dict[str, list[bytes]] = {}
    arrays = [
        rng.laplace(size=300),
        rng.integers(0, 9, 300),
        rng.normal(size=(300, 3)),
        np.array(["a", "b"] * 150),
    ]
    arrays += [
        np.asfortranarray(rng.normal(size=(300, 2))),
        np.zeros(300, dtype=[("x", "<f8"), ("y", "<i4")]),
    ]
    made["npy"] = [_npy(array) for array in arrays]
    made["npz"] = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, left=arrays[0], right=arrays[0] + 1)
        made["npz"].append(file.getvalue())
    values = rng.laplace(size=300).round(3).tolist()
    texts = ["output", *map(repr, values)], ["a,b", *(f"{x},{i}" for i, x in enumerate(values))]
    sides = ["side,output", *(f"{'left' if i % 2 else 'right'},{x}" for i, x in enumerate(values))]
    quoted = ["word", *(f'"x ""{i % 5}"""' for i in range(300))]
    made["csv"] = ["\n".join(lines).encode() for lines in (*texts, sides, quoted)]
    lines = [
        json.dumps({"side": "left" if i % 2 else "right", "output": x})
        for i, x in enumerate(values)
    ]
    made["jsonl"] = [
        "\n".join(map(json.dumps, values)).encode(),
        "\n".join(lines).encode(),
        _kept(folder),
    ]
    mixed = [[1, 2.5, "x", None, {"a": [True]}][i % 5] for i in range(300)]
    made["json"] = [json.dumps(values).encode(), json.dumps(mixed).encode()]
    made["parquet"] = _parquet(folder, values)
    one = 'mechanism = "zoo:laplace"\nepsilon = 1.0\nsamples = 200\nseed = 0\nconfidence = 0.9\nmethod = "events"\n'
    pairs = 'mechanism = "zoo:laplace"\npairs = [[0, 1], [1, 2]]\ndelta = 1e-6\nepsilon = 1\nsamples = 99\nbatch = false\n'
    finder = 'mechanism = "zoo:laplace"\nepsilon = 1\nsamples = 50\n[finder]\nname = "grid"\ndomain = "number:0:1"\n'
    made["toml"] = [
        text.encode()
        for text in (one, pairs, finder + 'relation = "replace"\ntrials = 2\nsamples = 50\n')
    ]
    made["result"] = [_result(folder, name) for name in ("zoo:laplace", "zoo:svt5")]
    return made


def _npy(array: np.ndarray) -> bytes:  # type: ignore[type-arg]
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _kept(folder: Path) -> bytes:
    import epsilometer as em

    em.audit(
        lambda x, rng: x + rng.laplace(),
        em.Pair(0, 1),
        em.PureDP(1.0),
        samples=99,
        record=folder / "kept.jsonl",
    )
    return (folder / "kept.jsonl").read_bytes()


def _parquet(folder: Path, values: list[float]) -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sides = ["left" if i % 2 else "right" for i in range(len(values))]
    pq.write_table(pa.table({"output": values}), folder / "a.parquet")
    pq.write_table(pa.table({"side": sides, "output": values}), folder / "b.parquet")
    pq.write_table(
        pa.Table.from_arrays([pa.array(values)] * 2, names=["x", "x"]), folder / "c.parquet"
    )
    return [(folder / f"{name}.parquet").read_bytes() for name in "abc"]


def _result(folder: Path, target: str) -> bytes:
    path = folder / "result.json"
    with contextlib.redirect_stdout(io.StringIO()):
        epsilometer(["audit", target, "--epsilon", "1", "--samples", "500", "--json", str(path)])
    return path.read_bytes()


def damage(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """A file with one to four faults."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(_FAULTS)(data, rng, others)
    return data


def _flip(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = rng.randrange(min(len(data), rng.choice((200, len(data)))))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    return (
        data[: rng.randrange(len(data) + 1)]
        if rng.random() < 0.7
        else data[rng.randrange(len(data) + 1) :]
    )


def _drop(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randrange(40) :]


def _repeat(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at, size = rng.randrange(len(data) + 1), rng.randrange(200)
    return data[:at] + data[at : at + size] * rng.choice((2, 3, 50)) + data[at + size :]


def _insert(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_NASTY) + data[at:]


def _replace(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Another value in the place of a number or a word."""
    found = list(re.finditer(rb"[\w.+-]+", data[:20_000]))
    if not found:
        return data
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(_NASTY) + data[one.end() :]


def _splice(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _recode(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    text = data.decode("latin-1")
    return text.encode(rng.choice(("utf-16", "utf-32", "utf-8-sig", "utf-16-be", "utf-7")))


def _claim(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Another shape or kind in the header of an array, or another size in the directory of an archive."""
    shape = rng.choice(
        (
            b"(10**9,)",
            b"(900000000,)",
            b"(-1,)",
            b"(3, 99999999999)",
            b"(1,)*99",
            b"()",
            b"(True,)",
            b"('a',)",
        )
    )
    kind = rng.choice(
        (
            b"'|O'",
            b"'<f16'",
            b"'|V0'",
            b"'|S0'",
            b"'<U9'",
            b"'<M8'",
            b"[('a','O')]",
            b"'x'",
            b"'<i3'",
            b"7",
        )
    )
    if rng.random() < 0.5:
        return re.sub(rb"\(3[0-9, ]*\)", shape.ljust(6), data, count=1)
    if rng.random() < 0.5:
        return re.sub(rb"'[<|][fiU][0-9]'", kind, data, count=1)
    at = max(
        data.find(b"PK\x01\x02"), 0
    )  # the directory of a zip file: flags (encrypted), method, sizes
    at += rng.choice((8, 10, 16, 20, 24, 42))
    return (
        data[:at] + rng.randbytes(rng.choice((1, 2, 4))) + data[at + 4 :]
        if at < len(data)
        else data
    )


_FAULTS: list[Callable[[bytes, random.Random, Sequence[bytes]], bytes]] = [
    *(
        _flip,
        _flip,
        _cut,
        _drop,
        _repeat,
        _insert,
        _replace,
        _replace,
        _replace,
        _splice,
        _recode,
        _claim,
    ),
]


def archive(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """An archive that is whole, of arrays that are not."""
    file = io.BytesIO()
    with zipfile.ZipFile(
        file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    ) as out:
        for name in (
            "left",
            "right",
            *(["left"] if rng.random() < 0.1 else []),
            *(["about"] * (rng.random() < 0.2)),
        ):
            with contextlib.suppress(UserWarning):
                out.writestr(f"{name}.npy", damage(rng.choice(seeds), rng, seeds))
    return file.getvalue()


def arguments(kind: str, path: Path, rng: random.Random) -> list[str]:
    """A command that reads the file."""
    claim = [
        "--notion",
        "pure",
        "--json",
        "-",
    ]  # a verdict would be rehearsed on many audits, which takes seconds
    if kind == "toml":
        few = [] if b"samples" in path.read_bytes() else ["--samples", "200"]
        return ["audit", str(path), "--json", "-", *few]
    if kind == "result":
        again = ["replay", str(path), "zoo:laplace", "--samples", "200", "--json", "-"]
        return rng.choice((["verify", str(path)], again))
    inputs = ["--left", f"@{path}", "--right", "0", "--samples", "100", *claim]
    ways = [
        ["compare", str(path), "ok.npy", *claim],
        ["compare", "ok.npy", f"{path}:left" if kind == "npz" else str(path), *claim],
        ["measure", f"recording:{path}", *claim, "--samples", "50"],
        ["measure", f"recording:{path},ok.npy", *claim, "--samples", "50"],
        *([["measure", "zoo:laplace", *inputs]] if kind in ("json", "npy", "csv") else []),
        *([["verify", "ok.json", "--recording", str(path)]] if kind == "jsonl" else []),
    ]
    return rng.choice(ways)


def judge(command: Sequence[str]) -> str:
    """How a command ends: "read", "refused", or what is wrong with it."""
    errors, began = io.StringIO(), time.monotonic()
    signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    status: object = None
    try:
        try:
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                status = epsilometer(list(command))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Hung:
        return "hang"
    except BaseException as error:
        return f"traceback: {type(error).__name__}: {str(error)[:150]}"
    said = errors.getvalue()
    if "Traceback" in said or "unexpected" in said.partition(":")[2][:20]:
        return f"traceback: {said[-300:]}"
    if status not in (0, 1, 2, 3):
        return f"status {status}: {said[-200:]}"
    if status == 2 and len(said.strip().splitlines()) > 4:
        return f"{len(said.splitlines())} lines: {said[:200]}"
    if time.monotonic() - began >= SECONDS:
        return "hang"
    return "refused" if status == 2 else "read"


def _ring(*_: object) -> None:
    raise Hung


def run_batch(seed: int, numbers: range, folder: Path) -> list[tuple[str, str, str]]:
    """Format, outcome and file of every number, in this process. What went wrong stays in the folder."""
    os.chdir(folder)
    seeds = seed_files(folder)
    np.save("ok.npy", np.random.default_rng(1).laplace(size=300))
    Path("ok.json").write_bytes(seeds["result"][0])
    everything = [data for found in seeds.values() for data in found]
    outcomes = []
    for number in numbers:
        rng = random.Random(f"{seed}-{number}")
        kind = FORMATS[number % len(FORMATS)]
        path = folder / f"file{number}.{'json' if kind == 'result' else kind}"
        whole = kind == "npz" and rng.random() < 0.5
        path.write_bytes(
            archive(seeds["npy"], rng)
            if whole
            else damage(rng.choice(seeds[kind]), rng, everything)
        )
        command = arguments(kind, path, rng)
        outcome = judge(command)
        outcomes.append((kind, outcome, " ".join(command)))
        if outcome in _WELL:
            path.unlink()
    return outcomes


def run_all(files: int, seed: int, folder: Path) -> tuple[Counter[str], list[str], float]:
    """Counts of outcomes, what went wrong, and the peak of memory: each batch in a process of its own."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    peak = 0.0
    for start in range(0, files, _BATCH):
        stop = min(start + _BATCH, files)
        call = [
            sys.executable,
            "-m",
            "benchmarks.fuzz",
            "--batch",
            f"{seed},{start},{stop}",
            "--folder",
            str(folder),
        ]
        limit = (stop - start) * SECONDS + 60.0
        done = subprocess.run(call, capture_output=True, text=True, timeout=limit, check=False)
        if done.returncode != 0:
            wrong.append(
                f"files {start} to {stop}: the process ended with {done.returncode}: {done.stderr[-500:]}"
            )
            counts["crash"] += 1
            continue
        answer = json.loads(done.stdout.splitlines()[-1])
        peak = max(peak, answer["peak"])
        for kind, what, command in answer["outcomes"]:
            counts[kind] += 1
            counts[what.partition(":")[0].partition(" ")[0]] += 1
            wrong += [] if what in _WELL else [f"{command}: {what}"]
    return counts, wrong, peak


def main(given: Sequence[str] | None = None) -> int:
    """Runs all files, prints counts, and exits with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--folder", type=Path, help="for the files that cause trouble; a temporary one if not given"
    )
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if chosen.batch:
        seed, start, stop = map(int, chosen.batch.split(","))
        outcomes = run_batch(seed, range(start, stop), chosen.folder.resolve())
        print(json.dumps({"outcomes": outcomes, "peak": peak_memory()}))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        counts, wrong, peak = run_all(chosen.files, chosen.seed, folder)
    print("\n".join(wrong[:40]))
    formats = ", ".join(f"{counts[kind]} {kind}" for kind in FORMATS)
    print(f"{chosen.files} files ({formats}) in {time.monotonic() - began:.0f} s")
    trouble = ", ".join(
        f"{counts[name]} {name}" for name in ("traceback", "hang", "status", "crash")
    )
    print(
        f"{counts['refused']} refused, {counts['read']} read, {trouble}; peak {peak / 1e6:.0f} MB"
    )
    return int(bool(wrong) or peak > PEAK)


if __name__ == "__main__":
    sys.exit(main())
