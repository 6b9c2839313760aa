"""--accountant wherever a claim is given."""

import json

import numpy as np
import pytest

import epsilometer as em
from epsilometer.claims import from_dict
from epsilometer.cli import main

BOOKS = """
def gaussian():
    import epsilometer as em
    return em.GaussianDP(1.0).delta

def pairs():
    return [(0.0, 0.4), (1.0, 0.13), (2.0, 0.02)]

def too_large():
    return [(0.0, 1.5)]

def fails():
    raise RuntimeError("no ledger")

number = 3

def quiet(x, rng):
    return float(x) + 0.2 * rng.normal()
"""


@pytest.fixture
def books(tmp_path, monkeypatch):
    (tmp_path / "accounting_books.py").write_text(BOOKS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


AUDIT = ["audit", "accounting_books.py:quiet", "--left", "0", "--right", "1", "--samples", "100"]
ACCOUNTANT = ["--accountant", "accounting_books.py:gaussian"]


def test_audit(books, capsys):
    assert main([*AUDIT, *ACCOUNTANT, "--seed", "0", "--json", "result.json"]) == 1
    capsys.readouterr()
    stored = json.loads((books / "result.json").read_text(encoding="utf-8"))
    claim = em.TradeOffDP.from_accountant(em.GaussianDP(1.0).delta)
    assert from_dict(stored["claim"]) == claim
    assert stored["settings"]["accountant"] == "accounting_books.py:gaussian"
    assert main(["verify", "result.json"]) == 0
    replay = ["replay", "result.json", "accounting_books.py:quiet", "--samples", "100"]
    assert main([*replay, "--seed", "1"]) == 1


def test_a_file_with_settings(books, capsys):
    text = 'mechanism = "accounting_books.py:quiet"\nleft = 0\nright = 1\nsamples = 100\n'
    text += 'accountant = "accounting_books.py:gaussian"\n'
    (books / "audit.toml").write_text(text, encoding="utf-8")
    assert main(["audit", "audit.toml", "--seed", "0"]) == 1
    # A claim of the command line replaces that of the file.
    assert main(["audit", "audit.toml", "--seed", "0", "--mu", "1", "--json", "-"]) == 1
    assert '"notion": "gaussian"' in capsys.readouterr().out


def test_compare(books, rng):
    np.save(books / "left.npy", rng.normal(0.0, 0.2, 100))
    np.save(books / "right.npy", rng.normal(1.0, 0.2, 100))
    files = ["compare", "left.npy", "right.npy", "--seed", "0"]
    assert main([*files, *ACCOUNTANT]) == 1
    assert main([*files, *ACCOUNTANT, "--notion", "pure"]) == 2


def test_plan_and_profile(books, capsys):
    assert main(["plan", *ACCOUNTANT, "--truth", ".2"]) == 0
    assert "refute TradeOffDP" in capsys.readouterr().out
    profile = ["profile", *AUDIT[1:], *ACCOUNTANT, "--claim", "mu=9", "--seed", "0"]
    assert main(profile) == 1
    assert "TradeOffDP(curve with f(0.05)=0.74): refuted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["accounting_books.py:too_large"], "δ=1.5 at ε=0"),
        (["accounting_books.py:fails"], "raised RuntimeError: no ledger"),
        (["accounting_books.py:number"], "is 3: it must be a function without arguments"),
        (["accounting_books.py:quiet"], "a function without arguments"),
        (["accounting_books.py:unknown"], "has no 'unknown'"),
        (["accounting_books"], "must be package.module:function"),
        (["accounting_books.py:pairs", "--mu", "1"], "does not go with --mu"),
    ],
)
def test_mistakes_are_named(books, capsys, arguments, message):
    assert main([*AUDIT, "--accountant", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.strip().splitlines()) == 1
