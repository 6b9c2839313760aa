"""`epsilometer compare` on every kind of file."""

import json
import sys

import numpy as np
import pytest

from epsilometer.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def write(kind, name, values):
    if kind == "npy":
        np.save(f"{name}.npy", values)
    elif kind == "npz":
        np.savez(f"{name}.npz", outputs=values)
    elif kind == "json":
        with open(f"{name}.json", "w", encoding="utf-8") as file:
            json.dump(np.asarray(values).tolist(), file)
    else:
        with open(f"{name}.csv", "w", encoding="utf-8") as file:
            file.write(
                "".join(
                    f"{line}\n"
                    for line in (["noisy"] if kind == "csv-header" else []) + list(values)
                )
            )
    return f"{name}.{kind.partition('-')[0]}"


KINDS = ["npy", "npz", "json", "csv", "csv-header"]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers(kind, rng, capsys):
    # The true ε is 2; the claims are so far from it that chance plays no role.
    files = [
        write(kind, name, rng.laplace(centre, 0.5, 4000))
        for name, centre in (("left", 0), ("right", 1))
    ]
    assert main(["compare", *files, "--epsilon", "1", "--seed", "0"]) == 1
    if kind == "npy":  # what is not refuted is rehearsed, which takes seconds
        assert main(["compare", *files, "--epsilon", "4", "--seed", "0"]) == 0
    assert main(["compare", *files, "--notion", "pure", "--seed", "0"]) == 0
    assert f"recorded in {files[0]}" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["npy", "json", "csv"])
def test_words(kind, rng):
    files = [
        write(kind, name, rng.choice(["yes", "no"], 2000, p=[share, 1 - share]))
        for name, share in (("left", 0.1), ("right", 0.9))
    ]
    assert main(["compare", *files, "--epsilon", "1", "--seed", "0"]) == 1


def test_how_a_file_stores_numbers_is_no_leak(rng, capsys):
    files = [
        write("npy", "left", rng.integers(0, 5, 3000)),
        write("npy", "right", rng.integers(0, 5, 3000).astype(float)),
    ]
    assert main(["compare", *files, "--epsilon", "1", "--seed", "0"]) == 0
    assert "both are compared as float64" in capsys.readouterr().err


def test_results_of_recordings_are_stored(rng, here):
    files = [
        write("npy", name, rng.laplace(centre, 0.5, 2000))
        for name, centre in (("left", 0), ("right", 1))
    ]
    assert (
        main(
            [
                "compare",
                *files,
                "--mu",
                "0.1",
                "--json",
                "r.json",
                "--html",
                "r.html",
                "--seed",
                "0",
            ]
        )
        == 1
    )
    stored = json.loads((here / "r.json").read_text(encoding="utf-8"))
    assert stored["settings"]["left"] == "left.npy"
    assert "left.npy" in (here / "r.html").read_text(encoding="utf-8")
