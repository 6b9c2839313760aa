"""The experiments on local privacy, on tiny runs."""

import json
import math

import numpy as np
import pytest

import epsilometer_experiments as experiments
from epsilometer_experiments.ldp import exact, impossibility, laplace, practice, renyi
from epsilometer_experiments.options import read_options

TINY = {
    "ldp/laplace": {"epsilon": ".2", "parts": "10,200"},
    "ldp/renyi": {"epsilon": ".1", "parts": "1e3,1e4", "precision": ".5"},
    "ldp/impossibility": {"samples": "1e3"},
    "ldp/bias": {"samples": "5e4"},
    "ldp/exact": {"sizes": "300"},
}


@pytest.mark.parametrize("name", list(TINY))
def test_a_tiny_run_of_each(name, tmp_path):
    path = experiments.run(name, runs=2, out=tmp_path, jobs=1, options=TINY[name])
    assert json.loads(path.read_text(encoding="utf-8"))["rows"]
    stem = name.partition("/")[2]
    tables = {"table.md"} if experiments.registry.find(name).wide else set()
    assert {path.name for path in tmp_path.iterdir()} - tables == {
        "results.json",
        f"{stem}.svg",
        f"{stem}.png",
    }


@pytest.mark.paper("B11", "equal")
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


@pytest.mark.paper("B12", "corrected")
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


@pytest.mark.paper("B2", "equal")
def test_the_hidden_spike_has_its_level():
    spike = impossibility.hidden_spike(1000, 10.0, 0.01)
    assert spike.epsilon == pytest.approx(10.0, abs=1e-9)
    density_inside = 1 - spike.mass + spike.mass / spike.width
    assert math.log(density_inside) == pytest.approx(10.0, abs=1e-9)
    visible = impossibility.HiddenSpike(0.5, 0.1)
    inside = visible(1, 100_000, np.random.default_rng(0)) < 0.1
    assert inside.mean() == pytest.approx(0.55, abs=0.02)


@pytest.mark.paper("B17", "corrected")
def test_a_hundred_thousand_times_fewer_samples_suffice_at_one_level_only():
    """Order 2, γ = .1: at ε = .2 every estimate from n/10⁵ samples is above the truth by more, at .5 none is."""
    options = read_options("ldp/renyi", renyi.EXPERIMENT.options, {"parts": "1e5"})
    within = {
        case.parameters["epsilon"]: [
            practice.run_once(case, seed, options)[practice.WITHIN] for seed in range(5)
        ]
        for case in renyi.make_cases(options)
    }
    assert sum(within[0.2]) == 0
    assert sum(within[0.5]) == 5


@pytest.mark.paper("B18", "equal")
def test_a_share_is_that_of_the_executions(tmp_path):
    """The share within γ of 100 executions, counted anew from the estimates themselves."""
    path = experiments.run(
        "ldp/laplace",
        runs=100,
        out=tmp_path,
        jobs=1,
        options={"epsilon": ".52", "parts": "600"},
    )
    rows = {row["quantity"]: row for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    estimates = np.array(rows[practice.ESTIMATE]["values"])
    failed = round(100 * rows[practice.FAILED]["measured"])
    assert len(estimates) == 100 - failed
    share = np.count_nonzero(np.abs(estimates - 0.52) <= 0.5) / 100
    assert rows[practice.WITHIN]["measured"] == pytest.approx(share)
    assert 0.5 < share < 0.99


def test_laws_of_the_exact_interval_have_their_truths(rng):
    for name in exact.LAWS:
        law = exact.law(name)
        assert exact.truth_of(name, 2.0) < law.level
        assert exact.truth_of(name, 60.0) == pytest.approx(law.level, abs=0.15)
    draws = exact.draw_waves(1, 40_000, rng)
    heights, edges = np.histogram(draws, 24, (0, 1), density=True)
    middles = (edges[1:] + edges[:-1]) / 2
    assert heights == pytest.approx(exact.wave_density(middles, 1), abs=0.2)
