"""The installed command, as a user runs it: statuses, files, signals."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import epsilometer as em
from epsilometer.environment import package_version

COMMAND = [sys.executable, "-m", "epsilometer"]
# Signs of life, which commands give on a busy machine.
PROGRESS = re.compile(r"^(?!epsilometer: ).*(?: draws\b|ms per draw: ).*\n", re.MULTILINE)


@pytest.fixture
def run(tmp_path, warm_python):
    """Runs the command in an empty folder."""

    def run(*arguments, **settings):
        done = warm_python.run("-m", "epsilometer", *arguments, cwd=tmp_path, **settings)
        done.stderr = PROGRESS.sub("", done.stderr)
        return done

    return run


def test_a_refutation_is_stored_and_replayed(run, tmp_path):
    done = run(
        "audit", "zoo:svt5", "--epsilon", 1, "--seed", 3, "--json", "r.json", "--html", "r.html"
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("REFUTED")
    result = em.AuditResult.from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert result.is_refuted
    assert json.loads(result.to_json()) == json.loads(
        (tmp_path / "r.json").read_text(encoding="utf-8")
    )
    assert "zoo:svt5 violates" in (tmp_path / "r.html").read_text(encoding="utf-8")
    again = run("replay", "r.json", "zoo:svt5", "--json", "again.json")
    assert again.returncode == 1
    replayed = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert replayed["settings"]["replay_of"]["seed"] == 3
    assert replayed["witness"]["event"] == json.loads(result.to_json())["witness"]["event"]


_LEAKY = """
def noisy_sum(rows, rng):
    return sum(min(max(row["age"], 0), 99) for row in rows) + rng.laplace(scale=30)
"""


def test_the_neighbours_of_a_file_are_searched_and_the_leak_is_kept_as_a_test(run, tmp_path):
    (tmp_path / "leaky.py").write_text(_LEAKY, encoding="utf-8")
    (tmp_path / "people.csv").write_text("age,ill\n31,yes\n99,no\n0,no\n", encoding="utf-8")
    search = (
        "--around",
        "people.csv",
        "--relation",
        "add-remove",
        "--trials",
        64,
        "--samples",
        3000,
        "--seed",
        0,
    )
    done = run("audit", "leaky:noisy_sum", "--epsilon", 1, *search, "--write-test", "test_leak.py")
    assert (done.returncode, done.stderr) == (1, "")
    assert "neighbours by 'add-remove'" in done.stdout

    written = (tmp_path / "test_leak.py").read_text(
        encoding="utf-8"
    )  # run as printed in test_pytest_plugin.py
    compile(written, "test_leak.py", "exec")
    assert (
        "epsilometer.audit(leaky.noisy_sum, (left, right), claim, **settings).raise_if_refuted()"
        in written
    )


def test_a_search_for_inputs(run, tmp_path):
    search = ("--finder", "bayesian", "--domain", "vector:10:0:1", "--relation", "replace")
    sizes = ("--trials", 30, "--trial-samples", 1000, "--samples", 5000, "--seed", 0)
    done = run(
        "audit",
        "zoo:dp_mean",
        "--epsilon",
        1,
        *search,
        *sizes,
        "--json",
        "r.json",
        "--html",
        "r.html",
    )
    assert (done.returncode, done.stderr) == (1, "")
    result = em.AuditResult.from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert result.settings["finder"]["relation"] == "replace"
    assert result.findings[0].details["search"][-1]["certified"] == result.lower_bound
    assert "Search for inputs" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert run("replay", "r.json", "zoo:dp_mean", "--samples", 5000).returncode == 1


def test_a_correct_mechanism_is_not_refuted(run):
    done = run("audit", "zoo:laplace", "--epsilon", 1, "--seed", 0)
    # A busy machine may need so long for the power that the command says what it is doing.
    said = [line for line in done.stderr.splitlines() if "working out what" not in line]
    assert (done.returncode, said) == (0, [])
    assert "would have been refuted with 90% power" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "zoo:laplace", "--epsilon", "-1"],
        ["audit", "zoo:laplace", "--epsilon", "nan"],
        ["audit", "zoo:nothing", "--epsilon", "1"],
        ["audit", "missing.toml"],
        ["audit", "zoo:laplace", "--left", "abc", "--right", "1", "--epsilon", "1"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line(run, arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_function_beside_a_toml_file(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def noisy(x, n, rng):\n    return rng.laplace(sum(x), 0.5, n)\n"
    )
    (tmp_path / "right.json").write_text("[1, 1]")
    (tmp_path / "audit.toml").write_text(
        'mechanism = "mine:noisy"\nbatch = true\npairs = [[[0, 1], [0.2, 1]], [[0, 1], "@right.json"]]\n'
        'epsilon = 1\nsamples = 20000\nseed = 1\njson = "r.json"\n'
    )
    done = run("audit", "audit.toml", "--jobs", 2)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["witness"]["pair"][
        "right"
    ]["json"] == [1, 1]
    assert run("audit", "audit.toml", "--epsilon", 3).returncode == 0


def test_outputs_that_attack_the_reader(run, tmp_path):
    (tmp_path / "evil.py").write_text(
        "EVIL = '<script>alert(1)</script>\\x1b[2J\\u202e' + 'A' * 100_000\n"
        "def evil(x, rng):\n    return EVIL if rng.random() < 0.2 + 0.6 * x else 'b'\n"
    )
    done = run(
        *(
            "audit",
            "evil:evil",
            "--left",
            "0",
            "--right",
            "1",
            "--epsilon",
            "1",
            "--samples",
            "400",
            "--seed",
            "0",
        ),
        *("--html", "r.html", "--json", "r.json"),
    )
    assert done.returncode == 1
    assert all(character.isprintable() or character == "\n" for character in done.stdout)
    assert len(done.stdout) < 6000
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not {"\x1b", "\u202e"} & set(page)


def test_files_for_continuous_integration(run, tmp_path):
    files = ("--junit", "j.xml", "--markdown", "m.md")
    assert run("audit", "zoo:dp_mean", "--seed", 0, "--samples", 2000, *files).returncode == 1
    assert '<failure type="refuted"' in (tmp_path / "j.xml").read_text(encoding="utf-8")
    assert "| ❌ | zoo\\:dp\\_mean | refuted |" in (tmp_path / "m.md").read_text(encoding="utf-8")
    done = run("audit", "zoo:dp_mean", "--junit", "missing/j.xml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no folder missing" in done.stderr


def test_demo_writes_a_report(run, tmp_path):
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "NOT REFUTED" in done.stdout
    assert "\nREFUTED" in done.stdout
    page = (tmp_path / "epsilometer-report.html").read_text(encoding="utf-8")
    assert page.count("<article") == 2
    assert len(page) < 500_000


def test_interrupted(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import sys, time\ndef slow(x):\n    print('started', file=sys.stderr, flush=True)\n    time.sleep(1000)\n"
    )
    command = [*COMMAND, "audit", "slow:slow", "--left", "0", "--right", "1", "--epsilon", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline() == "started\n"
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
        said = running.stderr.read()
        assert said.startswith("epsilometer: interrupted after ")
        assert (
            "nothing was decided. With --checkpoint FILE the same command could go on from here"
            in said
        )
        assert said.count("\n") == 1


def test_a_reader_that_goes_away(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [*COMMAND, "zoo"], cwd=tmp_path, stdout=gone, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_without_greek_letters(run):
    done = run(
        "audit",
        "zoo:svt5",
        "--seed",
        0,
        "--samples",
        2000,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "\\u03b5 is at least" in done.stdout


def test_the_console_script_is_installed():
    script = Path(sys.executable).with_name("epsilometer")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"epsilometer {package_version()}\n")


def test_help_and_version_load_neither_rich_nor_jinja():
    code = (
        "import sys\nfrom epsilometer.cli import main\nstatus = main(sys.argv[1:])\n"
        "print(status, *sorted({'rich', 'jinja2', 'typer', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    loaded = {
        argument: subprocess.run(
            [sys.executable, "-c", code, argument], capture_output=True, text=True, check=True
        ).stdout.splitlines()[-1]
        for argument in ("--version", "--help")
    }
    assert loaded == {"--version": "0", "--help": "0 typer"}
