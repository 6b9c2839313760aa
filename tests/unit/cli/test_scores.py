"""The command that reads membership scores."""

import json

import numpy as np
import pytest
from scipy.stats import norm

import epsilometer as em
from epsilometer.cli import main

GRID = (np.arange(200) + 0.5) / 200


@pytest.fixture
def losses(tmp_path):
    """Losses of 200 members and 200 others, two standard deviations apart."""
    path = tmp_path / "runs.csv"
    rows = ["run,loss,in_training"]
    rows += [f"i{place},{loss},in" for place, loss in enumerate(norm.ppf(GRID) - 2.0)]
    rows += [f"o{place},{loss},out" for place, loss in enumerate(norm.ppf(GRID))]
    path.write_text("\n".join(rows) + "\n")
    return [
        *("scores", str(path), "--score", "loss", "--member", "in_training"),
        "--smaller-means-member",
    ]


def test_a_claim_is_refuted(losses, capsys):
    assert main([*losses, "--mu", "1"]) == 1
    shown = capsys.readouterr()
    assert "GaussianDP(mu=1): refuted; μ is at least 1." in shown.out
    assert "p-value at most" in shown.out
    assert shown.err == ""


def test_a_claim_is_not_refuted(losses, capsys):
    assert main([*losses, "--epsilon", "3", "--delta", "1e-5", "--id", "run"]) == 0
    assert "not refuted" in capsys.readouterr().out


def test_what_so_few_scores_cannot_refute_is_said(losses, capsys):
    assert main([*losses, "--epsilon", "9", "--delta", "1e-5"]) == 0
    # Before everything else.
    assert capsys.readouterr().out.startswith("So few scores could not have refuted it")
    assert main([*losses, "--epsilon", "9", "--delta", "1e-5", "--fail-blind"]) == 3


@pytest.mark.parametrize("more", [[], ["--one-run"]])
def test_the_page_says_so_too_and_answers_a_question_about_delta(losses, more, tmp_path, capsys):
    page = tmp_path / "report.html"
    asked = [*losses, *more, "--html", str(page)]
    assert main([*asked, "--epsilon", "9", "--delta", "1e-5"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.index("could not have refuted it") < text.index("<table")
    assert '<section class="card inconclusive">' in text
    assert "Not refuted, and could not have been" in text
    assert main([*asked, "--epsilon", "1", "--delta", "1e-5"]) == 1
    assert "could not have refuted it" not in page.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main([*asked, "--delta", "2e-3"]) == 0
    answer = capsys.readouterr().out.splitlines()[-1]
    assert answer.startswith("ε at δ = 0.002 is at least ")
    assert answer in page.read_text(encoding="utf-8")


def test_without_a_claim_it_measures(losses, capsys):
    assert main([*losses, "--delta", "1e-3"]) == 0
    assert "ε at δ = 0.001 is at least 1." in capsys.readouterr().out
    assert main(losses) == 0
    assert "membership scores" in capsys.readouterr().out


def test_files(losses, tmp_path, capsys):
    page, data = tmp_path / "report.html", tmp_path / "result.json"
    assert main([*losses, "--rho", ".1", "--json", str(data), "--html", str(page)]) == 1
    stored = json.loads(data.read_text())
    assert stored["verdict"] == "refuted"
    assert stored["claim"] == {"notion": "zcdp", "rho": 0.1}
    assert stored["lower_bound"] > 0.1
    assert stored["p_value"] < 0.05
    assert stored["blind"] is False
    assert "ZCDP(rho=0.1)" in page.read_text()
    capsys.readouterr()
    assert main([*losses, "--delta", "1e-5", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] > 1.5


def test_the_wrong_way_is_warned_about(losses, capsys):
    assert main([*losses[:-1], "--mu", ".1"]) == 1
    assert "(here: --smaller-means-member)" in capsys.readouterr().err
    assert main([*losses[:-1], "--one-run", "--mu", ".1"]) == 0
    assert "(here: --smaller-means-member)" in capsys.readouterr().err


def test_a_flag_too_many_is_named(losses, capsys, tmp_path):
    path = tmp_path / "runs.csv"
    swapped = path.read_text().replace(",in\n", ",1\n").replace(",out\n", ",in\n")
    path.write_text(swapped.replace(",1\n", ",out\n"))
    assert main([*losses, "--mu", ".1"]) == 1
    assert "(here: leave out --smaller-means-member)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (["--score", "lost"], "no column 'lost'; it has 'run, loss, in_training'"),
        (["--member", "run"], "membership must be 0/1, true/false or in/out"),
        (["--id", "in_training"], "every id must occur once"),
        (["--delta", "2"], "delta=2.0"),
        (["--mu", "1", "--epsilon", "1"], "a claim cannot be made of"),
        (["--confidence", "1"], "confidence=1.0"),
    ],
)
def test_mistakes_are_one_line_and_status_2(losses, changed, why, capsys):
    option = changed[0]
    if option in losses:  # given twice, it would be refused for that
        place = losses.index(option)
        losses = [*losses[:place], *losses[place + 2 :]]
    assert main([*losses, *changed]) == 2
    complaint = capsys.readouterr().err
    assert why in complaint
    assert complaint.count("\n") == 1


class TestOneRun:
    """The same file read as the canaries of one run."""

    def test_a_claim(self, losses, capsys):
        assert main([*losses, "--one-run", "--id", "run", "--epsilon", "0.1"]) == 1
        assert "refuted" in capsys.readouterr().out

    def test_measured_as_from_one_run_measures(self, losses, capsys):
        assert main([*losses, "--one-run", "--delta", "1e-5", "--json", "-"]) == 0
        scores = np.concatenate([2.0 - norm.ppf(GRID), -norm.ppf(GRID)])
        included = np.arange(400) < 200
        with pytest.warns(em.EpsilometerWarning):  # exactly half of them are in
            expected = em.from_one_run(scores, included).epsilon(1e-5)
        assert json.loads(capsys.readouterr().out)["epsilon"] == pytest.approx(float(expected))

    def test_an_accountant_as_claim(self, losses, capsys, tmp_path, monkeypatch):
        (tmp_path / "weak_accountant.py").write_text("def curve():\n    return [(0.1, 1e-3)]\n")
        monkeypatch.chdir(tmp_path)
        assert main([*losses, "--one-run", "--accountant", "weak_accountant:curve"]) == 1
        assert "refuted" in capsys.readouterr().out
        assert main([*losses, "--accountant", "weak_accountant:curve", "--mu", "1"]) == 2
        assert "--accountant is a whole claim" in capsys.readouterr().err

    def test_so_few_canaries_could_not_have_refuted_it(self, losses, capsys):
        assert (
            main([*losses, "--one-run", "--epsilon", "9", "--delta", "1e-5", "--fail-blind"]) == 3
        )
        assert "could not have refuted" in capsys.readouterr().out

    def test_a_page(self, losses, capsys, tmp_path):
        page = tmp_path / "run.html"
        assert main([*losses, "--one-run", "--epsilon", "0.1", "--html", str(page)]) == 1
        assert "one training run" in page.read_text(encoding="utf-8")
