"""Every way to fail is one line on standard error and status 2; verdicts have statuses of their own."""

import json
import sys

import pytest

from epsilometer.cli import main

FAST = ["--samples", "400", "--seed", "1"]
MECHANISMS = """
import itertools, sys
def good(x, rng): return rng.laplace(x)
def batch(x, n, rng): return rng.laplace(x, 0.1, n)
def boom(x): raise ValueError("two\\nlines \\x1b[31m")
def quits(x): sys.exit(0)
def talks(x, rng):
    print("noise")
    return rng.laplace(x)
count = itertools.count()
def drifts(x): return next(count) // 100
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "cli_mechanisms", raising=False)
    (tmp_path / "cli_mechanisms.py").write_text(MECHANISMS)
    (tmp_path / "cli_broken.py").write_text("raise RuntimeError('cannot start')")
    return tmp_path


def audit(name, *more):
    claim = [] if "--epsilon" in more else ["--epsilon", "1"]
    return main(
        [
            "audit",
            f"cli_mechanisms:{name}",
            "--left",
            "0",
            "--right",
            "1",
            *claim,
            *FAST,
            *more,
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["audit", "zoo:laplace", "--epsilon", "-1"], "epsilon=-1"),
        (["audit", "zoo:laplace", "--epsilon", "nan"], "epsilon=nan"),
        (["audit", "zoo:laplace", "--epsilon", "much"], "--epsilon"),
        (["audit", "zoo:laplace", "--epsilon", "1", "--mu", "1"], "a claim cannot be made of"),
        (["audit", "zoo:laplac"], "did you mean laplace"),
        (["audit", "zoo:laplace?epsilon=x"], "epsilon='x'"),
        (["audit", "zoo:laplace?nothing"], "write parameters like"),
        (["audit", "zoo:laplace?epsilon=1&epsilon=2"], "twice"),
        (["audit", "zoo:laplace", "--batch"], "--batch is for functions"),
        (["audit", "nonsense"], "neither package.module:function nor file.py:function"),
        (["audit", "missing.toml"], "missing.toml is missing"),
        (["audit", "no_such_module:f"], "No module named 'no_such_module'"),
        (["audit", "cli_broken:f"], "RuntimeError: cannot start"),
        (["audit", "cli_mechanisms:goof"], "did you mean 'good'"),
        (["audit", "cli_mechanisms:good", "--epsilon", "1"], "--left and --right are needed"),
        (
            ["audit", "cli_mechanisms:good", "--left", "0", "--right", "1"],
            "there is no claim",
        ),
        (
            ["audit", "cli_mechanisms:good", "--left", "zero", "--right", "1"],
            "--left 'zero' is not JSON",
        ),
        (
            ["audit", "cli_mechanisms:good", "--left", "@none.npy", "--right", "1"],
            "none.npy is missing",
        ),
        (["audit", "zoo:laplace", "--json", "no/folder/r.json"], "there is no folder"),
        (["audit", "zoo:laplace", "--method", "evnts"], "did you mean 'events'"),
        (["audit", "zoo:laplace", "--samples", "3"], "samples=3"),
        (["audit", "zoo:laplace", "--confidence", "95"], "confidence=95"),
        (["audit", "zoo:laplace", "--suppress", "nothing"], "not a health check"),
        (["audit", "zoo:laplace", "--epsilom", "1"], "--epsilon"),
        (["audit"], "TARGET"),
        (["audt"], "Did you mean 'audit'"),
        (["measure", "zoo:gaussian", "--notion", "gausian"], "did you mean 'gaussian'"),
        (["compare", "a.npy", "b.npy"], "nothing is claimed"),
        (["compare", "a.npy", "b.npy", "--epsilon", "1"], "a.npy is missing"),
        (["replay", "none.json", "zoo:svt5"], "none.json is missing"),
        (["replay", "cli_mechanisms.py", "zoo:svt5"], "not JSON"),
        (["reproduce"], "--list"),
        (["reproduce", "self/power", "--set", "x"], "NAME=VALUE"),
        (["reproduce", "self/power", "--all"], "leave out NAME"),
    ],
    ids=" ".join,
)
def test_bad_usage_and_input(arguments, reason, capsys):
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert reason in told.err
    assert told.err.startswith("epsilometer: ")
    assert told.err.count("\n") == 1


def test_a_mechanism_that_raises(capsys):
    assert audit("boom") == 2
    told = capsys.readouterr().err
    assert "boom raised ValueError on the input 0" in told
    assert told.count("\n") == 1
    assert "\x1b" not in told


def test_debug_shows_the_traceback(capsys):
    assert audit("boom", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_mechanism_cannot_end_the_program_with_a_verdict(capsys):
    assert audit("quits") == 2
    assert "SystemExit" in capsys.readouterr().err


def test_verdicts(capsys):
    assert audit("good") == 0
    assert audit("batch", "--batch") == 1
    assert audit("drifts") == 3
    assert [
        line.split(":")[0] for line in capsys.readouterr().out.splitlines() if ":" in line[:13]
    ] == [
        "NOT REFUTED",
        "REFUTED",
        "INCONCLUSIVE",
    ]


def test_a_report_holds_no_folder_that_was_not_given(capsys, here):
    assert audit("good", "--epsilon", "2", "--json", "r.json", "--html", "r.html") == 0
    stored = json.loads((here / "r.json").read_text())
    assert stored["settings"]["json"] == "r.json"
    page = (here / "r.html").read_text()
    assert "epsilometer verify r.json" in page
    for text in (page, (here / "r.json").read_text(), capsys.readouterr().out):
        assert str(here) not in text


def test_fail_blind_has_a_status_of_its_own_and_the_verdict_stays(capsys, here):
    # With these draws not even a perfect event refutes ε = 9.
    assert audit("good", "--epsilon", "9") == 0
    assert audit("good", "--epsilon", "9", "--fail-blind") == 3
    assert capsys.readouterr().out.count("NOT REFUTED, and could not have been: ") == 2
    assert audit("good", "--epsilon", "9", "--fail-blind", "--junit", "blind.xml") == 3
    assert 'errors="1"' in (here / "blind.xml").read_text()  # as the exit status says
    assert audit("good", "--epsilon", "9", "--junit", "blind.xml") == 0
    assert 'errors="0"' in (here / "blind.xml").read_text()
    assert audit("good", "--epsilon", "2", "--fail-blind") == 0
    assert audit("batch", "--batch", "--epsilon", "1", "--fail-blind") == 1
    profile = ["profile", "cli_mechanisms:good", "--left", "0", "--right", "1", "--samples", "300"]
    capsys.readouterr()
    assert main([*profile, "--claim", "eps=9"]) == 0
    assert "PureDP(epsilon=9): not refuted, and could not have been" in capsys.readouterr().out
    assert main([*profile, "--claim", "eps=9", "--fail-blind"]) == 3
    assert main([*profile, "--claim", "eps=2", "--fail-blind"]) == 0
    settings = 'mechanism = "cli_mechanisms:good"\nleft = 0\nright = 1\nepsilon = 9.0\n'
    (here / "audit.toml").write_text(settings + "samples = 400\nfail_blind = true\n")
    assert main(["audit", "audit.toml"]) == 3
    assert main(["audit", "audit.toml", "--epsilon", "1.5"]) == 0


def test_json_on_standard_output_is_nothing_but_json(capsys):
    assert audit("talks", "--json", "-") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["settings"]["target"] == "cli_mechanisms:talks"
    assert "noise" in told.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "ε is at least"),
        (["--delta", "1e-3"], "ε at δ = 0.001 is at least"),
        (["--epsilon", ".5"], "δ at ε = 0.5 is at least"),
        (["--order", "2"], "ε at order 2 is at least"),
        (["--notion", "zcdp"], "ρ is at least"),
        (["--notion", "gaussian"], "μ is at least"),
    ],
)
def test_measure(flags, words, capsys):
    assert main(["measure", "zoo:gaussian", *flags, *FAST]) == 0
    assert words in capsys.readouterr().out


def test_lists(capsys):
    assert main(["zoo"]) == 0
    assert main(["methods"]) == 0
    told = capsys.readouterr().out
    assert "svt5" in told
    assert "broken" in told
    assert "events" in told


def test_no_arguments_is_help_but_no_success(capsys):
    assert main([]) == 2
    assert "epsilometer demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["demo", "audit", "measure", "compare", "replay", "zoo", "methods", "reproduce"]
)
def test_every_command_has_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"Usage: epsilometer {command}" in capsys.readouterr().out
