"""Many claims judged together by `epsilometer run --family-confidence`, over nights, killed and resumed."""

import json
import signal
import sqlite3
import subprocess
import sys
from xml.etree import ElementTree

import pytest

# An output that only one input gives, against a claim of 1: the logarithm (base 10) of the p-value has
# mean -8 and standard deviation .8, so that it is far below 1e-4 and far above 1e-13.
SUITE = """
title = "Together"
samples = 4000
{keys}
[[audit]]
name = "false"
samples = 112
mechanism = "mine:noisy"
batch = true
left = 0
right = 1
epsilon = 1
"""
OTHERS = """
[[audit]]
name = "true"
mechanism = "zoo:randomized_response"
epsilon = 3
samples = 200

[[audit]]
name = "known"
mechanism = "zoo:dp_mean"
expect = "refuted"

[[audit]]
name = "how much"
mechanism = "zoo:laplace"
notion = "pure"
"""
MINE = """
import os, time
import numpy as np

def noisy(x, n, rng):
    ordinary = rng.integers(2, 4, n)
    return ordinary if x else np.where(rng.random(n) < 0.6, 1, ordinary)

def halting(x, n):
    while os.path.exists("wait"):
        open("waiting", "w").close()
        time.sleep(0.05)
    return np.random.default_rng().laplace(x, 0.2, n)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


@pytest.fixture
def run(folder, warm_python):
    """Writes the suite with these keys above its audits, and runs it."""

    def run_suite(*arguments, keys="", others=""):
        (folder / "suite.toml").write_text(SUITE.format(keys=keys) + others, encoding="utf-8")
        return warm_python.run("-m", "epsilometer", "run", "suite.toml", *arguments, cwd=folder)

    return run_suite


def stored_family(folder):
    return json.loads((folder / "epsilometer-report" / "family.json").read_text(encoding="utf-8"))


def stored_seed(folder, name):
    """The seed of one audit of the last run."""
    (result,) = (folder / "epsilometer-report").glob(f"*-{name}.json")
    return json.loads(result.read_text(encoding="utf-8"))["settings"]["seed"]


@pytest.mark.slow
def test_what_survives_and_what_is_refuted_alone(folder, run):
    done = run(
        "--family-confidence", "0.95", "--junit", "j.xml", "--markdown", "m.md", others=OTHERS
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert (
        "With probability at least 95% no true claim of this family is called refuted in this run."
        in done.stdout
    )
    family = stored_family(folder)
    assert (family["confidence"], family["size"], family["survivors"]) == (0.95, 2, ["false"])
    assert {each["name"] for each in family["apart"]} == {"known", "how much"}
    by_name = {each["name"]: each for each in family["members"]}
    assert by_name["false"]["adjusted_p_value"] == 2 * by_name["false"]["p_value"] < 1e-4
    suite = ElementTree.parse(folder / "j.xml").getroot()[0]
    about = {each.get("name"): each.get("value") for each in suite.find("properties")}
    assert (about["family_size"], about["family_survivors"]) == ("2", "false")
    assert suite.get("failures") == "1"

    # A night so late that hardly anything is left to spend.
    late = run(
        "--family-confidence",
        "0.95",
        "--night",
        "1000000",
        "--junit",
        "j.xml",
        "--markdown",
        "m.md",
        others=OTHERS,
    )
    assert late.returncode == 0, late.stdout + late.stderr
    assert "Refuted alone, which does not count: false." in late.stdout
    assert "over all nights; night 1000000 may spend" in late.stdout
    assert stored_family(folder)["refuted_alone"] == ["false"]
    suite = ElementTree.parse(folder / "j.xml").getroot()[0]
    assert suite.get("failures") == "0"
    case = next(case for case in suite.iter("testcase") if case.get("name") == "false")
    about = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert about["family"] == "refuted alone"
    assert 0.0 < float(about["adjusted_p_value"]) < 1e-4
    markdown = (folder / "m.md").read_text(encoding="utf-8")
    assert "refuted alone" in markdown
    assert "Apart from the family: known" in markdown.replace("\\", "")
    index = (folder / "epsilometer-report" / "index.html").read_text(encoding="utf-8")
    assert "All claims together" in index
    assert "Refuted alone" in index


def test_nights_are_numbered_and_take_fresh_seeds(folder, run):
    keys = "family_confidence = 0.9\nnights = true"
    lost = run(keys=keys)
    assert lost.returncode == 2
    assert "no night on record" in lost.stderr
    assert run("--night", "1", keys=keys).returncode == 1
    first = stored_family(folder)
    first_seed = stored_seed(folder, "false")
    assert run(keys=keys).returncode == 1
    second = stored_family(folder)
    assert (first["night"], second["night"]) == (1, 2)
    assert second["failure_probability"] == pytest.approx(first["failure_probability"] / 4)
    # Other draws may have the same counts, and so the same p-value.
    assert first["seed"] != second["seed"]
    assert first_seed != stored_seed(folder, "false")
    assert first["repeated_draws"] == []
    fixed = run(keys=f"{keys}\nseed = 3")
    assert (
        "Warning: false sees the same draws every night (seed = 3 is fixed), which is no new"
        in fixed.stdout
    )
    assert stored_family(folder)["night"] == 3


def test_mistakes_are_named(run):
    assert (
        "--family-confidence = 95.0 must be a number above 0"
        in run("--family-confidence", "95").stderr
    )
    assert "give --family-confidence" in run("--nights").stderr
    assert "--night 0 must be between" in run("--night", "0", "--family-confidence", "0.9").stderr


@pytest.mark.slow
def test_a_night_that_was_killed_counts_and_a_second_draw_does_not(folder, warm_python):
    """The audit that was under way takes draws of its own: begun again, it has had two chances."""
    lines = ["family_confidence = 0.95", "nights = true", "samples = 3000", "epsilon = 1"]
    lines += ["[[audit]]", 'name = "seeded"', 'mechanism = "zoo:dp_mean"']
    lines += [
        "[[audit]]",
        'name = "own draws"',
        'mechanism = "mine:halting"',
        "batch = true",
        "left = 0",
        "right = 1",
    ]
    (folder / "suite.toml").write_text("\n".join(lines))
    (folder / "wait").touch()
    command = [
        sys.executable,
        "-m",
        "epsilometer",
        "run",
        "suite.toml",
        "--night",
        "4",
        "--jobs",
        "1",
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        assert "seeded" in running.stdout.readline()
        while not (folder / "waiting").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGKILL)
        running.wait()
    (folder / "wait").unlink()
    base = sqlite3.connect(folder / "suite.history.sqlite")
    assert base.execute("SELECT night FROM families").fetchall() == [(4,)]
    base.close()

    resumed = warm_python.run("-m", "epsilometer", "run", "suite.toml", cwd=folder)
    assert resumed.stdout.startswith("resuming run 1: 1 of 2 audits are done"), (
        resumed.stdout + resumed.stderr
    )
    family = stored_family(folder)
    assert (family["night"], family["size"], family["survivors"]) == (4, 2, ["seeded"])
    assert family["refuted_alone"] == ["own draws"]
    assert "drew anew" in family["members"][1]["note"]
    fresh = warm_python.run("-m", "epsilometer", "run", "suite.toml", cwd=folder)
    assert fresh.returncode == 1
    assert stored_family(folder)["night"] == 5
    assert stored_family(folder)["survivors"] == ["seeded", "own draws"]
