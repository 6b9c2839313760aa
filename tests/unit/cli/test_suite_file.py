"""Suites in TOML."""

import numpy as np
import pytest

from epsilometer.cli.settings_file import read_settings
from epsilometer.cli.suite_file import read_suite
from epsilometer.errors import InputError
from epsilometer.result import Verdict


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        path = tmp_path / "suite.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


TWO = """
title = "Ours"
samples = 1000
epsilon = 1
delta = 1e-6
[[audit]]
mechanism = "zoo:laplace"
[[audit]]
name = "second"
mechanism = "zoo:svt5"
mu = 2
samples = 50
expect = "refuted"
time_limit = 9
"""


def test_defaults_and_own_settings(suite):
    read = read_suite(suite(TWO))
    first, second = read.entries
    assert (read.title, read.family_confidence, read.nights) == ("Ours", None, False)
    assert first.name == "zoo:laplace"
    assert first.settings == {
        "mechanism": "zoo:laplace",
        "samples": 1000,
        "epsilon": 1,
        "delta": 1e-6,
    }
    assert second.settings == {"mechanism": "zoo:svt5", "samples": 50, "mu": 2}
    assert (second.name, second.expected, second.seconds) == ("second", Verdict.REFUTED, 9.0)


def test_the_family_of_a_suite(suite):
    read = read_suite(suite("family_confidence = 0.9\nnights = true\n" + TWO))
    assert (read.family_confidence, read.nights) == (0.9, True)
    assert not {"family_confidence", "nights"} & set(read.entries[0].settings)


def test_one_audit_is_a_suite_of_one(suite):
    read = read_suite(suite('mechanism = "zoo:laplace"\n'))
    assert (read.title, [entry.name for entry in read.entries]) == ("suite", ["zoo:laplace"])


def test_the_digest_follows_settings_inputs_and_code(suite, tmp_path):
    text = '[[audit]]\nmechanism = "mine:f"\npairs = [[0, "@right.json"]]\nepsilon = 1\n'
    (tmp_path / "mine.py").write_text("f = 1")
    (tmp_path / "right.json").write_text("1")
    digests = {read_suite(suite(text)).entries[0].digest}
    digests.add(read_suite(suite(text)).entries[0].digest)
    assert len(digests) == 1
    (tmp_path / "mine.py").write_text("f = 2")
    digests.add(read_suite(suite(text)).entries[0].digest)
    (tmp_path / "right.json").write_text("2")
    digests.add(read_suite(suite(text)).entries[0].digest)
    digests.add(read_suite(suite(text + "seed = 1\n")).entries[0].digest)
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("audit = 3\n", r"\[\[audit\]\]"),
        ("title = 3\n", "must be a text"),
        ('[[audit]]\nmechanism = "zoo:laplace"\nepsilom = 1\n', "did you mean 'epsilon'"),
        ('[[audit]]\nname = "x"\n', "names no mechanism"),
        ("family_confidence = 95\n", "family_confidence = 95 must be a number above 0 and below 1"),
        ("family_confidence = true\n", "family_confidence = True must be a number"),
        ('nights = "all"\n', "must be true or false"),
        ('[[audit]]\nmechanism = "zoo:laplace"\nnights = true\n', "above the first"),
        ('[[audit]]\nmechanism = "zoo:laplace"\nhtml = "x.html"\n', "--out"),
        ('[[audit]]\nmechanism = "zoo:laplace"\nexpect = "private"\n', "must be one of 'refuted'"),
        ('[[audit]]\nmechanism = "zoo:laplace"\ntime_limit = 0\n', "above 0"),
        (
            '[[audit]]\nmechanism = "zoo:laplace"\n[[audit]]\nmechanism = "zoo:laplace"\n',
            "two audits are called",
        ),
    ],
)
def test_nonsense_is_named(suite, text, reason):
    with pytest.raises(InputError, match=reason):
        read_suite(suite(text))


def test_a_suite_is_not_one_audit(suite):
    with pytest.raises(InputError, match="epsilometer run"):
        read_settings(suite(TWO))


def changes_with(suite, mechanism, change):
    """Whether the digest of an audit stays for nothing and follows a change."""
    text = f'mechanism = "{mechanism}"\nepsilon = 1\nleft = 0\nright = 1\n'
    before = [read_suite(suite(text)).entries[0].digest for _ in range(2)]
    change()
    return before[0] == before[1] != read_suite(suite(text)).entries[0].digest


@pytest.mark.parametrize(
    "target", ["recording:both.npz", "recording:l.npy,r.npy", "recording:both.npz:left,r.npy"]
)
def test_the_digest_follows_recordings(suite, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    np.savez("both.npz", left=np.zeros(9), right=np.zeros(9))
    np.save("l.npy", np.zeros(9))
    np.save("r.npy", np.zeros(9))
    changed = "both.npz" if "both" in target else "r.npy"
    assert changes_with(suite, target, lambda: (tmp_path / changed).write_bytes(b"other"))


@pytest.mark.parametrize(
    "target", ["./run {dataset}", "sh run {dataset}", "./other --file=run {dataset}"]
)
def test_the_digest_follows_programs(suite, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    for name in ("run", "other"):
        (tmp_path / name).write_text("#!/bin/sh\necho 1\n")
        (tmp_path / name).chmod(0o755)
    assert changes_with(
        suite, f"command:{target}", lambda: (tmp_path / "run").write_text("#!/bin/sh\necho 2\n")
    )


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("import helper", "helper.py"),
        ("from helper import noise", "helper.py"),
        ("from package import deep", "package/deep.py"),
        ("import package.deep", "package/__init__.py"),
        ("def f(x):\n    from package.other import g", "package/deep.py"),
    ],
)
def test_the_digest_follows_what_a_module_imports(suite, tmp_path, statement, file):
    (tmp_path / "package").mkdir()
    (tmp_path / "mechanisms.py").write_text(f"{statement}\n")
    for name in ("helper.py", "package/__init__.py", "package/deep.py"):
        (tmp_path / name).write_text("noise = 1\n")
    (tmp_path / "package" / "other.py").write_text(
        "from . import deep\nfrom .deep import noise as g\n"
    )
    assert changes_with(suite, "mechanisms:f", lambda: (tmp_path / file).write_text("noise = 2\n"))


def test_a_command_that_cannot_be_read_is_left_to_its_audit(suite):
    assert (
        len(
            read_suite(
                suite("mechanism = 'command:\"'\nepsilon = 1\nleft = 0\nright = 1\n")
            ).entries
        )
        == 1
    )
