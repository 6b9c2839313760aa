"""`epsilometer plan`: audits and estimates of local privacy."""

import json

import pytest

import epsilometer as em
from epsilometer.cli import main


def test_the_command_tells_the_figures(capsys):
    arguments = "plan --precision .5 --confidence .9 --lipschitz .667 --domain 0 1"
    assert main(arguments.split()) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("158,179", "13 of width 0.0769231", "0.6665", "316,358"))
    assert main([*arguments.split(), "--as-published", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 99_654


def test_the_command_times_a_target_and_plans_audits(capsys):
    assert main(["plan", "zoo:truncated_laplace?epsilon=.5", "--precision", "1"]) == 0
    assert "pilot draws" in capsys.readouterr().out
    assert main(["plan", "--epsilon", "1", "--truth", "1.5"]) == 0
    shown = capsys.readouterr().out
    assert f"{em.plan(em.PureDP(1.0), truth=1.5).samples:,}, training included" in shown
    assert main(["plan", "--epsilon", "1", "--truth", "1.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claim"] == {"notion": "pure", "epsilon": 1.0}
    assert main(["plan", "--epsilon", "1", "--order", "2", "--truth", "1.5"]) == 0
    assert "RenyiDP" in capsys.readouterr().out


def test_the_command_refuses_with_the_figure(capsys):
    arguments = "plan --precision .5 --lipschitz .6 --domain 0 1 --order 5"
    assert main([*arguments.split(), "--most-draws", "1e9"]) == 2
    assert "most_draws=1,000,000,000" in capsys.readouterr().err
    assert main(arguments.split()) == 0
    assert "above the limit of 1,000,000,000" in capsys.readouterr().out
    assert main(["plan", "--precision", ".5", "--lipschitz", "2", "--domain", "0", "1"]) == 2
    assert "lipschitz=2 must be below" in capsys.readouterr().err


def test_the_command_for_an_interval_of_inputs(capsys):
    text = "plan --precision 1 --lipschitz .3 --domain 0 1 --input-lipschitz .6 --input-domain 0 1"
    assert main(text.split()) == 0
    assert "mid-points, all pairs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "with --truth to plan an audit, or --precision"),
        ("--epsilon 1", "--truth is needed"),
        ("--truth 1.5", "there is no claim"),
        ("--epsilon 1 --truth 1.5 --precision .5", "not both"),
    ],
)
def test_the_command_plans_one_thing(arguments, message, capsys):
    assert main(["plan", *arguments.split()]) == 2
    assert message in capsys.readouterr().err
