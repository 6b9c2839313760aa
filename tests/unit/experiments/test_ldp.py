"""The experiments on local privacy, on tiny runs."""

import json
import math

import numpy as np
import pytest

import epsilometer_experiments as experiments
from epsilometer_experiments.ldp import impossibility, laplace, practice
from epsilometer_experiments.options import read_options

TINY = {
    "ldp/laplace": {"epsilon": ".2", "parts": "10,200"},
    "ldp/renyi": {"epsilon": ".1", "parts": "1e3,1e4", "precision": ".5"},
    "ldp/impossibility": {"samples": "1e3"},
    "ldp/bias": {"samples": "5e4"},
}


@pytest.mark.parametrize("name", list(TINY))
def test_a_tiny_run_of_each(name, tmp_path):
    path = experiments.run(name, runs=2, out=tmp_path, jobs=1, options=TINY[name])
    assert json.loads(path.read_text(encoding="utf-8"))["rows"]
    stem = name.partition("/")[2]
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.json",
        f"{stem}.svg",
        f"{stem}.png",
    }


def test_the_known_sample_sizes_are_expected(tmp_path):
    """Nothing is drawn for these figures."""
    path = experiments.run("ldp/samples", out=tmp_path, jobs=1)
    rows = {
        (row["case"], row["quantity"]): row
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]
    }
    for quantity, figure in (
        ("samples as published", 99_654),
        ("samples with union bounds", 158_179),
    ):
        assert rows["base", quantity]["measured"] == rows["base", quantity]["expected"] == figure


def test_the_share_is_promised_up_to_a_200th():
    settings = read_options("ldp/laplace", laplace.EXPERIMENT.options, {"epsilon": "0.52"})
    cases = laplace.make_cases(settings)
    assert [case.parameters["part"] for case in cases if practice.WITHIN in case.expected] == [
        1,
        10,
        50,
        100,
        200,
    ]


def test_the_hidden_spike_has_its_level():
    spike = impossibility.hidden_spike(1000, 10.0, 0.01)
    assert spike.epsilon == pytest.approx(10.0, abs=1e-9)
    density_inside = 1 - spike.mass + spike.mass / spike.width
    assert math.log(density_inside) == pytest.approx(10.0, abs=1e-9)
    visible = impossibility.HiddenSpike(0.5, 0.1)
    inside = visible(1, 100_000, np.random.default_rng(0)) < 0.1
    assert inside.mean() == pytest.approx(0.55, abs=0.02)
