"""Experiments about the auditor itself on hand-made or tiny runs."""

import json

import numpy as np
import pytest

import epsilometer_experiments as experiments
from epsilometer.errors import InputError
from epsilometer_experiments.options import read_options
from epsilometer_experiments.self import coverage, detectable, power, unlucky
from epsilometer_experiments.self.measuring import entry_of, truth_of


def settings_of(experiment, **given):
    return read_options(experiment.name, experiment.options, given)


def test_entries_from_text():
    assert entry_of("laplace?epsilon=.7&sensitivity=2").parameters == {
        "epsilon": 0.7,
        "sensitivity": 2.0,
    }
    assert entry_of("zoo:svt5").name == "svt5"
    for bad in ("nothing", "laplace?epsilon", "laplace?scale=1", "laplace?epsilon=-1"):
        with pytest.raises(InputError):
            entry_of(bad)


def test_truth_is_that_of_the_notion():
    assert truth_of(entry_of("laplace?epsilon=.7"), "") == pytest.approx(0.7)
    assert truth_of(entry_of("gaussian"), "eps=0,order=2") == pytest.approx(1.0)


def test_coverage_runs_what_is_promised():
    cases = coverage.make_cases(settings_of(coverage.EXPERIMENT))
    assert [case.name for case in cases] == list(coverage.ENTRIES)
    assert all(case.parameters["samples"] == 10_000 for case in cases)
    assert all(case.expected[coverage.ABOVE].value == 0.05 for case in cases)


def test_power_runs_what_must_be_reached():
    cases = power.make_cases(settings_of(power.EXPERIMENT))
    assert [case.expected[power.BOUND].value for case in cases] == [
        least for _, _, least in power.REQUIRED
    ]


def test_power_at_other_sizes_has_the_figures_of_the_prototype():
    cases = power.make_cases(settings_of(power.EXPERIMENT, samples="1e4,1e6"))
    assert {case.parameters["samples"] for case in cases} == {10_000, 1_000_000}
    assert cases[0].expected[power.BOUND].value == 0.652
    assert power.make_cases(settings_of(power.EXPERIMENT, samples="123")) == []


def test_power_of_a_given_entry():
    known, new = power.make_cases(
        settings_of(power.EXPERIMENT, entry="laplace?epsilon=.7,geometric")
    )
    assert known.expected[power.BOUND].relation == "≥"
    assert new.expected == {}
    (other,) = power.make_cases(
        settings_of(power.EXPERIMENT, entry="laplace?epsilon=.7", claim="eps=1,order=2")
    )
    assert other.expected == {}


@pytest.mark.parametrize("name", ["self/coverage", "self/power"])
def test_a_tiny_run_of_each(name, tmp_path):
    options = {"samples": "500", "entry": "randomized_response,svt5", "method": "events"}
    path = experiments.run(name, runs=2, out=tmp_path, jobs=1, options=options)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert {row["runs"] for row in rows} == {2}
    stem = name.partition("/")[2]
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.json",
        f"{stem}.svg",
        f"{stem}.png",
    }


def test_a_notion_without_a_known_truth_has_no_coverage():
    with pytest.raises(InputError):
        coverage.make_cases(settings_of(coverage.EXPERIMENT, entry="nothing"))


def test_noise_drifts_along_its_path_whichever_side_is_drawn(rng):
    still, moving = (
        unlucky.Drifting("mean jumps by 1", 1000, sensitivity) for sensitivity in (0.0, 1000.0)
    )
    early, late = still(0, 400, rng), still(1, 600, rng)
    assert late[100:].mean() - early.mean() == pytest.approx(1.0, abs=0.5)
    assert moving(1, 400, rng).mean() == pytest.approx(1000.0, abs=1.0)


def test_long_numbers_keep_their_digits(rng):
    base = 2**62 + 1
    outputs = unlucky.LongNumbers(base, 3)(0, 500, rng)
    assert outputs.dtype == np.int64
    assert np.median(outputs) == pytest.approx(base)
    assert len({int(each) - base for each in outputs}) > 5


def test_a_tiny_run_of_unlucky_draws(tmp_path):
    path = experiments.run("self/unlucky", runs=1, out=tmp_path, jobs=1, options={"samples": "100"})
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert {row["quantity"] for row in rows} == {unlucky.REFUTED, unlucky.INCONCLUSIVE}
    assert len(rows) == 2 * 2 * (2 * len(unlucky.PATHS) + 3)


def test_families_have_the_value_that_they_are_given(rng):
    x, y = (detectable.Family("randomized response", 1.0)(side, 20_000, rng) for side in (0, 1))
    assert np.log((x == "a").mean() / (y == "a").mean()) == pytest.approx(1.0, abs=0.1)
    assert detectable.Family("Gaussian, (ε, δ)", 1.0)(1, 4000, rng).mean() == pytest.approx(
        0.4, abs=0.1
    )
    assert set(detectable.SIZES) == set(detectable._DRAW)


def test_nothing_is_asked_of_a_case_without_a_statement(monkeypatch):
    monkeypatch.setattr(
        detectable, "stated", lambda kind, n, looks: float("nan" if kind == "vectors" else "2.5")
    )
    settings = settings_of(detectable.EXPERIMENT, sizes=1)
    runs = {
        case.name: detectable.run_once(case, 0, settings)
        for case in detectable.make_cases(settings)[1:4]
    }
    assert [case for case, numbers in runs.items() if detectable.REFUTED not in numbers] == [
        "vectors, n=1000"
    ]
