"""Programs as mechanisms: a compiled one, and others that behave as badly as they can."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import epsilometer as em
from epsilometer.cli import main

# A Laplace mechanism by inverting the distribution function; its author forgot the sensitivity of 2.
LAPLACE_C = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double uniform(FILE *random) {
    uint64_t bits;
    if (fread(&bits, sizeof bits, 1, random) != 1) exit(3);
    return ((double)(bits >> 11) + 0.5) / 9007199254740992.0;
}

static double laplace(FILE *random, double scale) {
    double u = uniform(random) - 0.5;
    return (u < 0 ? 1 : -1) * scale * log(1 - 2 * fabs(u));
}

int main(int argc, char **argv) {
    FILE *random = fopen("/dev/urandom", "rb");
    if (argc > 1) {
        printf("%.17g\n", 2 * atof(argv[1]) + laplace(random, 1.0));
        return 0;
    }
    char line[256];
    if (!fgets(line, sizeof line, stdin)) return 4;
    long n = atol(strstr(line, "\"n\":") + 4);
    double value = atof(strstr(line, "\"dataset\":") + 10);
    for (long i = 0; i < n; i++) printf("%.17g\n", 2 * value + laplace(random, 1.0));
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "laplace.c").write_text(LAPLACE_C)
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "a C compiler is part of the test set-up"
    subprocess.run([compiler, "-O2", "-o", "laplace", "laplace.c", "-lm"], cwd=folder, check=True)
    return str(folder / "laplace")


@pytest.fixture
def script(tmp_path):
    """Makes a Python program and gives its command."""

    def make(source):
        path = tmp_path / "program.py"
        path.write_text("import sys, os, time, json\n" + source)
        return [sys.executable, "-S", str(path)]

    return make


def sample(argv, dataset=0, n=3, **settings):
    return em.from_command(argv, **settings).sample(dataset, n, np.random.default_rng(0))


def numbers(outputs):
    return outputs.blocks[0].columns[0].values.tolist()


# The program takes no seed. True ε 2, claim 1, 35 000 fresh draws of an event with p = .5, q = .068: the standard error
# of log p/q is .021, so that 1.5 and 2.3 are more than 14 of them away from what the bound comes to.
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_broken_compiled_laplace_is_refuted_in_batches(program, jobs):
    result = em.audit(
        em.from_command([program], batch=True),
        em.Pair(0, 1),
        em.PureDP(1.0),
        samples=50_000,
        seed=0,
        jobs=jobs,
    )
    assert result.is_refuted
    assert 1.5 < result.lower_bound < 2.3
    assert result.settings["seeded_mechanism"] is False


def test_a_broken_compiled_laplace_is_refuted_run_by_run(program):
    mechanism = em.from_command([program, "{dataset}"])
    result = em.audit(
        mechanism, em.Pair(0, 1.5), em.PureDP(0.5), samples=600, seed=0
    )  # true ε is 3
    assert result.is_refuted
    assert not em.audit(
        mechanism, em.Pair(0, 0.25), em.PureDP(0.5), samples=300, confidence=1 - 1e-9
    ).is_refuted


def test_from_the_command_line_with_replay(program, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    batch = f"command:{program}"
    single = f"command:{program} {{dataset}}"
    pair = ["--left", "0", "--right", "1"]
    many = ["--samples", "20000"]
    assert (
        main(["audit", batch, "--batch", *pair, *many, "--epsilon", "1", "--json", "r.json"]) == 1
    )
    assert main(["replay", "r.json", batch, "--batch", *many]) == 1
    assert main(["audit", single, *pair, "--samples", "300", "--epsilon", "9"]) == 0
    assert "the mechanism draws its own randomness" in " ".join(capsys.readouterr().out.split())


def test_draws_of_a_program_are_kept_and_replayed(program, tmp_path):
    settings = {"samples": 5000, "seed": 0}
    first = em.audit(
        em.from_command([program], batch=True),
        em.Pair(0, 1),
        em.PureDP(1),
        record=tmp_path / "d.npz",
        **settings,
    )
    again = em.audit(em.from_recording(tmp_path / "d.npz"), claim=em.PureDP(1), **settings)
    assert first.witness.to_dict() == again.witness.to_dict()
    assert first.lower_bound == again.lower_bound


def test_arguments_reach_the_program_as_they_are(script):
    echo = script("print(json.dumps(sys.argv[1:]))")
    hostile = "$(touch hacked); `id` 'x' \"y\" {dataset} *"
    outputs = sample([*echo, "{dataset}", "--x={dataset}", "{other}"], hostile, 1)
    labels = [column.labels[column.codes[0]] for column in outputs.blocks[0].columns]
    assert labels == [hostile, f"--x={hostile}", "{other}"]


def test_standard_input_environment_and_folder(script, tmp_path):
    read = script(
        "print(json.dumps([json.loads(sys.stdin.readline()), os.environ['A'], os.getcwd()]))"
    )
    outputs = sample(read, {"rows": [1, 2]}, 1, stdin=True, env={"A": "b"}, cwd=tmp_path)
    assert outputs.blocks[0].shape == "list({rows: list(2 × float)}, 2 × str)"
    assert outputs.blocks[0].columns[3].labels == (str(tmp_path),)
    large = list(range(200_000))  # far more than a pipe or an argument holds
    assert numbers(
        sample(script("print(len(json.loads(sys.stdin.read())))"), large, 1, stdin=True)
    ) == [200_000]
    assert numbers(sample(script("print(3)"), large, 1, stdin=True)) == [
        3
    ]  # it does not even read it


@pytest.mark.parametrize(
    ("source", "settings", "reason"),
    [
        ("print('x'); sys.exit(3)", {}, "ended with exit status 3 on the input 0"),
        ("sys.stderr.write('bad luck\\n'); sys.exit(1)", {}, "it said: bad luck"),
        ("os.kill(os.getpid(), 11)", {}, "ended with signal 11"),
        ("pass", {}, "printed nothing on the input 0"),
        ("os.write(1, b'\\xff\\xfe')", {}, r"is not text in UTF-8: b'\\xff\\xfe'"),
        ("time.sleep(1000)", {"timeout": 0.5}, "did not end within timeout=0.5 s; it printed nothing"),
        ("os.close(1); os.close(2); time.sleep(1000)", {"timeout": 0.5}, "did not end within timeout=0.5 s"),
        ("while True: os.write(1, b'y' * 65536)", {"max_output": 10**6}, "wrote more than 1000000 bytes, .* 'yyy"),
        ("print('garbage'); print(1); print(2)", {"batch": True}, "line 1 of what it printed is not JSON: 'garbage'"),
        ("print(1)", {"batch": True}, "printed 1 lines where 3 outputs were asked for; the last one is '1'"),
        ("pass", {"batch": True}, "printed 0 lines where 3 outputs"),
        ("print(1), print(2), print(3), print(4)", {"batch": True}, "printed 4 lines where 3 outputs"),
        ("print('[' * 100000), print(2), print(3)", {"batch": True}, "line 1 of what it printed is not JSON"),
        ("for i in range(10**9): print(i)", {"batch": True, "max_output": 10**5}, "more than 100000 bytes, beginning"),
    ],
)  # fmt: skip
def test_programs_that_misbehave_are_quoted(script, source, settings, reason):
    argv = script(source)
    with pytest.raises(em.MechanismError, match=reason) as caught:
        sample(argv if settings.get("batch") else [*argv, "{dataset}"], **settings)
    assert len(str(caught.value)) < 2000


def given_up(argv):
    """What is said of a program that never ends, with more and more patience, since a busy machine starts it late."""
    for timeout in (0.5 * 2**turn for turn in count()):
        with pytest.raises(em.MechanismError, match=f"timeout={timeout:g} s") as caught:
            sample([*argv, "{dataset}"], timeout=timeout)
        yield str(caught.value)


def test_what_a_program_printed_before_it_was_given_up_is_quoted(script):
    argv = script("print('thinking', flush=True); time.sleep(1000)")
    assert any("so far it printed 'thinking" in said for said in given_up(argv))


def test_missing_programs_and_folders(tmp_path):
    with pytest.raises(em.MechanismError, match=r"the program '\./no-such-program' does not exist"):
        sample(["./no-such-program", "{dataset}"])
    with pytest.raises(em.MechanismError, match="the folder '/no/such/folder' does not exist"):
        sample(["/bin/echo", "{dataset}"], cwd="/no/such/folder")
    (tmp_path / "data.txt").write_text("no program")
    with pytest.raises(em.MechanismError, match="cannot be run: Permission denied"):
        sample([str(tmp_path / "data.txt"), "{dataset}"])
    with pytest.raises(
        em.MechanismError,
        match=r"a large input goes into a file with \{file\}, or to standard input",
    ):
        sample(["/bin/echo", "{dataset}"], "x" * 3_000_000)


def alive(pid):
    """Whether a process runs; one that is dead but not yet reaped by init does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_children_are_killed_with_the_program(script, tmp_path):
    note = tmp_path / "pid"
    argv = script(
        "import subprocess\n"
        f"child = subprocess.Popen(['sleep', '1000'])\nopen({str(note)!r}, 'w').write(f'{{child.pid}}\\n')\n"
        "time.sleep(1000)\n"
    )
    assert any(note.exists() and note.read_text().endswith("\n") for _ in given_up(argv))
    while alive(int(note.read_text())):
        time.sleep(0.05)


def test_failures_can_be_outcomes(script):
    argv = [*script("sys.exit(int(sys.argv[1]))\n"), "{dataset}"]
    assert sample(argv, 7, 2, on_error="outcome").blocks[0].columns[0].labels == ("ExitStatus7",)
    assert em.audit(
        em.from_command([sys.executable, "-S", "-c", "import sys; sys.exit({dataset})"], on_error="outcome"),
        em.Pair(1, 2), em.PureDP(1.0), samples=30, seed=0,
    ).is_refuted  # fmt: skip
    assert numbers(sample([*script("print(1); sys.exit(5)"), "{dataset}"], statuses=(0, 5))) == [
        1,
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("argv", "settings", "reason"),
    [
        ("./prog {dataset}", {}, "there is no shell to split it"),
        ([], {}, "must begin with the program"),
        (["prog"], {}, "the program never sees its input"),
        (["prog", 3], {"batch": True}, "must consist of texts"),
        (
            ["prog", "{dataset}"],
            {"timeout": 0},
            "timeout=0 must be a finite number above 0",
        ),
        (["prog"], {"batch": True, "on_error": "outcome"}, "for one run per output"),
    ],
)
def test_bad_settings(argv, settings, reason):
    with pytest.raises(em.InputError, match=reason):
        em.from_command(argv, **settings)


def test_a_hostile_output_of_a_megabyte(script, tmp_path):
    argv = script(
        "evil = '<script>alert(1)</script>\\x1b[2J' + 'A' * 10**6\n"
        "print(json.dumps(evil if sys.argv[1] == '1' else 'b'))"
    )
    result = em.audit(
        em.from_command([*argv, "{dataset}"]), em.Pair(0, 1), em.PureDP(1.0), samples=30, seed=0
    )
    assert result.is_refuted
    assert len(str(result)) < 5000
    page = result.save_html(tmp_path / "r.html").read_text()
    assert "<script>alert" not in page


def test_mechanisms_are_sent_to_workers(program):
    sent = pickle.loads(pickle.dumps(em.from_command([program, "{dataset}"], env={"A": "1"})))
    assert len(sent.sample(0, 2, np.random.default_rng(0))) == 2


def test_nothing_is_left_open(script):
    argv = [*script("print(1)"), "{dataset}"]
    before = len(os.listdir("/proc/self/fd"))
    sample(argv, n=20)
    with pytest.raises(em.MechanismError):
        sample([*script("time.sleep(1000)"), "{dataset}"], timeout=0.3)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_batch_request_is_one_line_of_json(script):
    argv = script(
        "line = sys.stdin.readline()\nfor _ in range(json.loads(line)['n']): print(json.dumps(line))"
    )
    (text,) = sample(argv, {"a": [1, "x\n"]}, 4, batch=True).blocks[0].columns[0].labels
    assert json.loads(text) == {"n": 4, "dataset": {"a": [1, "x\n"]}}


def test_a_program_without_noise_is_refuted_because_every_run_is_a_new_process():
    echo = em.from_command(["echo", "{dataset}"])
    result = em.audit(echo, em.Pair(0, 1), em.PureDP(1.0), samples=60, seed=0)
    assert result.is_refuted
    assert result.settings["constant_test"] == "a new process per run"
    (report,) = [report for report in result.health if report.name == "constant"]
    assert "a seed that is fixed inside" in report.message
    assert em.verify(result).holds


def test_constant_answers_on_the_command_line_and_in_toml(tmp_path, capsys):
    for side, value in (("left", 0.0), ("right", 1.0)):
        np.save(tmp_path / f"{side}.npy", np.full(200, value))
    files = [str(tmp_path / "left.npy"), str(tmp_path / "right.npy")]
    assert main(["compare", *files, "--epsilon", "1"]) == 3
    assert main(["compare", *files, "--epsilon", "1", "--constant", "leak"]) == 1
    assert "constant answers taken for a leak" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "kept.py").write_text(
        "import functools, random\n"
        "@functools.lru_cache\n"
        "def kept(x):\n"
        "    return x + random.gauss(0.0, 1.0)\n"
    )
    audit = tmp_path / "audit.toml"
    text = (
        f'mechanism = "{tmp_path}/kept.py:kept"\nleft = 0\nright = 1\nepsilon = 1\nsamples = 200\n'
    )
    audit.write_text(text)
    assert main(["audit", str(audit)]) == 3
    assert "a fresh process gave another one" in " ".join(capsys.readouterr().out.split())
    audit.write_text(text + 'constant = "leak"\n')
    assert main(["audit", str(audit)]) == 1
    audit.write_text(text + "constant = 3\n")
    assert main(["audit", str(audit)]) == 2
