"""The frame of the experiments, with an experiment that needs no audits."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import epsilometer_experiments as experiments
from epsilometer.errors import InputError
from epsilometer_experiments import Case, Experiment, Rate, Target
from epsilometer_experiments.agreement import run_all
from epsilometer_experiments.experiment import Row, mean_rows
from epsilometer_experiments.options import Option, read_options, whole, wholes, words
from epsilometer_experiments.papers import ORIGINS
from epsilometer_experiments.reporting import table_cells, write_figures
from epsilometer_experiments.running import run_experiment, run_seed


def make_cases(settings):
    return [
        Case(name, {"shift": shift}, {"value": Target(shift, "≥", source="exact")})
        for shift, name in enumerate(settings["names"])
    ]


def run_once(case, seed, settings):
    value = case.parameters["shift"] + np.random.default_rng(seed).random()
    return {"value": value, "never finite": math.inf}


def stop_at_b(case, seed, settings):
    if case.name == "b":
        raise KeyboardInterrupt
    return {"value": 1.0}


def draw(results):
    figure = Figure()
    figure.subplots().plot([row.measured for row in results.of("value")])
    yield "picture", figure


TOY = Experiment(
    "toy/one",
    "a toy",
    3,
    make_cases,
    run_once,
    (Option("names", "cases", ("a", "b"), words),),
    draw=draw,
)


def run_toy(tmp_path, jobs=1, names=("a", "b")):
    path = run_experiment(TOY, 3, tmp_path, seed=5, jobs=jobs, options={"names": names})
    return json.loads(path.read_text(encoding="utf-8"))


def test_results_have_the_promised_form(tmp_path, capsys):
    content = run_toy(tmp_path)
    assert set(content) == {"experiment", "rows", "settings", "seconds"}
    keys = {
        "case",
        "quantity",
        "expected",
        "relation",
        "source",
        "measured",
        "standard_error",
        "runs",
        "values",
    }
    assert [set(row) for row in content["rows"]] == [keys] * 4
    first = content["rows"][0]
    assert (first["case"], first["quantity"], first["expected"], first["runs"]) == (
        "a",
        "value",
        0,
        3,
    )
    assert first["measured"] == pytest.approx(np.mean(first["values"]))
    assert first["standard_error"] == pytest.approx(np.std(first["values"], ddof=1) / math.sqrt(3))
    assert content["rows"][1]["measured"] is None
    assert content["settings"]["interrupted"] is False
    assert "toy/one" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.json",
        "picture.svg",
        "picture.png",
    }


def test_results_do_not_depend_on_other_cases(tmp_path):
    assert run_toy(tmp_path)["rows"][:2] == run_toy(tmp_path, names=("a",))["rows"]


def test_results_do_not_depend_on_workers(tmp_path):
    options = {"samples": "500", "entry": "randomized_response,svt5"}
    paths = [
        experiments.run("self/power", 3, tmp_path / str(jobs), 0, jobs, options) for jobs in (1, 2)
    ]
    one, two = (json.loads(path.read_text(encoding="utf-8"))["rows"] for path in paths)
    assert one == two


def test_an_interruption_keeps_what_was_done(tmp_path, capsys):
    experiment = Experiment("toy/two", "stops", 3, make_cases, stop_at_b)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment, 3, tmp_path, 0, 1, {"names": ("a", "b")})
    content = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [(row["case"], row["runs"]) for row in content["rows"]] == [("a", 1)]
    assert content["settings"]["interrupted"] is True
    assert "stopped after 1 of 6 runs" in capsys.readouterr().err


def test_nothing_done_writes_nothing(tmp_path):
    experiment = Experiment("toy/two", "stops", 3, make_cases, stop_at_b)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment, 3, tmp_path, 0, 1, {"names": ("b",)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [(), ("a", "a")])
def test_cases_must_exist_and_differ(names, tmp_path):
    with pytest.raises(InputError):
        run_toy(tmp_path, names=names)


def test_seeds_differ_in_every_part():
    seeds = {
        run_seed(0, "x", "a", 0),
        run_seed(1, "x", "a", 0),
        run_seed(0, "y", "a", 0),
        run_seed(0, "x", "b", 0),
    }
    assert len(seeds | {run_seed(0, "x", "a", 1)}) == 5
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_options_are_read_or_refused():
    known = (
        Option("samples", "draws", 10, whole),
        Option("sizes", "several", (), wholes),
        Option("method", "which", "auto"),
    )
    assert read_options("x", known, None) == {"samples": 10, "sizes": (), "method": "auto"}
    given = read_options("x", known, {"samples": "1e5", "sizes": "1e4, 2e4", "method": "events"})
    assert given == {"samples": 100_000, "sizes": (10_000, 20_000), "method": "events"}
    assert read_options("x", known, {"sizes": 7})["sizes"] == (7,)
    with pytest.raises(
        InputError, match="no option 'sample'; its options are: samples, sizes, method"
    ):
        read_options("x", known, {"sample": 1})
    for bad in ("many", "0", "1.5", "nan", "inf", None):
        with pytest.raises(InputError, match="samples="):
            read_options("x", known, {"samples": bad})


def test_a_figure_without_a_source_is_refused():
    for source in ("", "hearsay", "paper"):
        with pytest.raises(InputError, match="source="):
            Target(1.0, source=source)


@pytest.mark.parametrize("name", experiments.names())
def test_every_figure_of_every_experiment_has_a_source(name):
    """Also in a quick run; a figure that nothing is compared with says so in its row."""
    experiment = experiments.find(name)
    for options in ({}, experiment.quick.options):
        for case in experiment.cases(read_options(name, experiment.options, options)):
            assert all(target.source for target in case.expected.values())
    row = Row("a", "x", None, 1.5, None, (1.5,)).to_dict()
    assert row["source"].startswith("measured here")


def test_all_experiments_make_one_table(tmp_path):
    bad = replace(TOY, name="toy/two", run_once=fails)
    known = replace(TOY, name="toy/three", cases=cannot_be_met, why={"b: value": "it is a toy"})
    (one,) = run_all([known], tmp_path, seed=5, jobs=1, quick=True, runs=None)
    assert one.size == "1 of 3 runs"
    assert (one.state, one.agreed, one.differences) == ("shown", 0, ())  # one run cannot tell
    lines = run_all([TOY, bad, known], tmp_path, seed=5, jobs=1, quick=True, runs=3)
    assert [line.state for line in lines] == ["agreed", "failed", "differs"]
    assert [each.why for each in lines[2].differences] == [
        "a small run (3 of 3 runs) cannot show it; run it at full size",
        "it is a toy",
    ]
    text = (tmp_path / "agreement.md").read_text(encoding="utf-8")
    assert "| toy/one | agreed | 2 | 0 | 2 |" in text
    assert "toy/two failed: ValueError: no" in text
    content = json.loads((tmp_path / "agreement.json").read_text(encoding="utf-8"))
    assert content[2]["differs"][1]["source"] == "our bar"


def fails(case, seed, settings):
    raise ValueError("no")


def cannot_be_met(settings):
    return [
        Case(name, {"shift": 0}, {"value": Target(2.0, "≥", source="our bar")})
        for name in ("a", "b")
    ]


def test_targets_judge():
    assert Target(1.0, "≥", source="exact").is_met(1.0, 1)
    assert not Target(1.0, "≥", source="exact").is_met(0.99, 1)
    assert Target(1.0, "≤", source="exact").is_met(1.0, 1)
    assert Target(1.0, source="exact").is_met(5.0, 1) is None
    assert Target(1.0, "≈", 0.1, source="exact").is_met(1.05, 1)
    assert not Target(1.0, "≈", 0.1, source="exact").is_met(1.2, 1)


def test_rates_allow_for_chance():
    """P(X ≥ 34) = 2.1e-3 and P(X ≥ 36) = 5.7e-4 of 400 at 5 %."""
    assert Rate(0.05, "≤", source="exact").is_met(34 / 400, 400)
    assert not Rate(0.05, "≤", source="exact").is_met(36 / 400, 400)
    assert Rate(0.05, "≤", source="exact").is_met(0.0, 400)
    assert not Rate(0.5, source="exact").is_met(0.4, 400)
    assert not Rate(0.95, "≥", source="exact").is_met(0.9, 400)
    assert Rate(0.95, "≥", source="exact").is_met(1.0, 400)


def test_rows_of_quantities_that_not_every_run_has():
    rows = mean_rows(Case("a"), [{"x": 1.0}, {"x": 3.0, "y": 5.0}])
    assert [(row.quantity, row.measured, row.standard_error, row.values) for row in rows] == [
        ("x", 2.0, 1.0, (1.0, 3.0)),
        ("y", 5.0, None, (5.0,)),
    ]


def test_table_says_what_is_met():
    row = Row("a", "x", Target(2.0, "≥", source="paper: Table 1"), 1.5, None, (1.5,))
    assert table_cells(row) == ("a", "x", "≥ 2", "1.5", "", "1", "no", "paper: Table 1")


def test_too_few_runs_are_not_judged(tmp_path, capsys):
    for runs, judged in ((2, False), (3, True)):
        run_experiment(TOY, runs, tmp_path, 5, 1, {"names": ("a",)})
        shown = capsys.readouterr().out
        assert ("too few runs to judge; it takes 3 per case" in shown) is not judged
        assert ("yes" in shown) is judged
    assert replace(TOY, runs=1000).runs_to_judge == 20
    too_few = Row("a", "x", Target(2.0, "≥", source="exact"), 1.5, None, (1.5,), is_judged=False)
    assert table_cells(too_few)[6] == "–"


def test_every_file_is_named(tmp_path, capsys):
    path = run_experiment(TOY, 3, tmp_path, 5, 1, {"names": ("a",)})
    shown = capsys.readouterr().out.replace("\n", "") + str(path)
    assert all(str(file) in shown for file in tmp_path.iterdir())


def test_the_list_names_papers_and_places():
    rows = {name: (paper, place) for name, paper, place, _ in experiments.listing()}
    assert set(rows) == set(experiments.names()) >= set(ORIGINS)
    assert rows["local/figure4"] == ("Askin, Kutta, Dette 2022", "Figure 4")
    assert rows["self/power"] == ("ours", "")
    for paper, place in rows.values():
        assert bool(place) is bool(re.search(r" 20\d\d$", paper))


def test_figures_are_the_same_bytes_again(tmp_path):
    def picture():
        figure = Figure()
        figure.subplots().plot([1, 2, 3])
        return [("f", figure)]

    first, second = (
        [path.read_bytes() for path in write_figures(picture(), tmp_path)] for _ in range(2)
    )
    assert first == second


def test_registry_knows_our_own_experiments():
    assert {"self/coverage", "self/power"} <= set(experiments.names())
    assert set(experiments.summaries()) == set(experiments.names())
    with pytest.raises(InputError, match="did you mean self/power"):
        experiments.run("self/powr")


@pytest.mark.parametrize(
    "bad", [{"runs": 0}, {"runs": "many"}, {"jobs": 0}, {"seed": -1}, {"options": {"sample": 1}}]
)
def test_bad_settings_are_refused_before_anything_runs(bad, tmp_path):
    with pytest.raises(InputError):
        experiments.run("self/power", out=tmp_path / "out", **bad)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        experiments.run("self/power", out=tmp_path / "file" / "out")
