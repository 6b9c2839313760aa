"""When a figure counts as worse: only ratios, and only by more than their repeats differ anyway."""

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import __main__ as program
from benchmarks import baseline
from benchmarks.measurement import Measurement, of_repeats

from epsilometer.testing import assert_rare

QUIET = (1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0)


def ratio(factor=1.0, name="audit / drawing", relation="≤", unit="×", noise=1.0):
    values = [factor * (1.0 + noise * (value - 1.0)) for value in QUIET]
    return of_repeats("speed", name, values, unit, relation)


def shuffled(measurement):
    """The same repeats in another order."""
    return replace(measurement, values=measurement.values[::-1][3:] + measurement.values[::-1][:3])


def verdict(before, after):
    (change,) = baseline.compare([before], [after])
    return change.verdict


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (ratio(), ratio(1.05), "same"),  # less than is worth a look
        (ratio(), ratio(1.2), "worse"),
        (ratio(), ratio(0.8), "better"),
        (ratio(noise=10), shuffled(ratio(1.2, noise=10)), "same"),  # repeats differ by more
        (ratio(noise=10), shuffled(ratio(2.5, noise=10)), "worse"),
        (ratio(noise=10), ratio(1.2, noise=10), "worse"),  # seeds differ, but every one got slower
        (ratio(relation="≥"), ratio(1.2, relation="≥"), "better"),
        (ratio(relation="≥"), ratio(0.8, relation="≥"), "worse"),
        (ratio(unit="slope"), ratio(1.3, unit="slope"), "worse"),
    ],
)
def test_worse_is_more_than_noise(before, after, expected):
    assert verdict(before, after) == expected


def test_a_figure_without_repeats_is_given_room():
    single = Measurement("memory", "peak", 1.0, "×")
    assert verdict(single, Measurement("memory", "peak", 1.5, "×")) == "same"
    assert verdict(single, Measurement("memory", "peak", 2.5, "×")) == "worse"


def test_noise_alone_is_seldom_called_worse():
    rng = np.random.default_rng(0)
    runs = 1 + 0.3 * rng.normal(size=(4000, 2, 7))
    worse = sum(
        verdict(*(of_repeats("speed", "x", side.tolist(), "×") for side in run)) == "worse"
        for run in runs
    )
    assert_rare(worse, len(runs), 1e-3)


def test_other_numbers_of_repeats_are_compared_by_their_medians():
    assert verdict(ratio(), replace(ratio(1.2), values=ratio(1.2).values[:5])) == "worse"
    assert (
        verdict(ratio(noise=10), replace(ratio(1.2), values=ratio(1.2, noise=10).values[:5]))
        == "same"
    )


def test_seconds_and_unknown_figures_are_not_compared():
    before = [ratio(unit="s"), ratio(name="old")]
    assert baseline.compare(before, [ratio(9.0, unit="s"), ratio(9.0, name="new")]) == []


def test_writing_keeps_other_groups(tmp_path):
    path = tmp_path / "baseline.json"
    assert baseline.read(path) == []
    baseline.write(path, [ratio(), Measurement("power", "laplace", 0.69, "ε")], {"repeats": 7})
    baseline.write(path, [ratio(2.0)], {"repeats": 5})
    assert baseline.read(path) == [Measurement("power", "laplace", 0.69, "ε"), ratio(2.0)]
    assert json.loads(path.read_text(encoding="utf-8"))["settings"] == {"repeats": 5}


def test_what_changed_is_said():
    changes = baseline.compare([ratio(), ratio(name="other")], [ratio(2.0), ratio(name="other")])
    assert baseline.describe(changes).startswith("worse: speed: audit / drawing: 1 → 2")
    assert (
        baseline.describe(changes[1:])
        == "1 ratios compared with the baseline, none differs by more than noise"
    )


def run(measured, tmp_path, monkeypatch, *options):
    monkeypatch.setitem(program.GROUPS, "speed", lambda effort: measured)
    known = ["--baseline", str(tmp_path / "known.json")]
    return program.main(["speed", "--out", str(tmp_path / "out"), *known, *options])


def test_the_program_writes_compares_and_judges(tmp_path, monkeypatch, capsys):
    assert run([ratio()], tmp_path, monkeypatch, "--update-baseline") == 0
    assert run([ratio(1.02)], tmp_path, monkeypatch) == 0
    assert run([ratio(2.0)], tmp_path, monkeypatch) == 1
    assert "worse: speed: audit / drawing" in capsys.readouterr().out
    assert baseline.read(tmp_path / "out" / "results.json") == [ratio(2.0)]
    assert "| audit / drawing | 2 × |" in (tmp_path / "out" / "results.md").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "out" / "speed.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_missed_target_is_named(tmp_path, monkeypatch, capsys):
    missed = Measurement("speed", "slow", 3.0, "×", "≤", 2.0)
    assert run([ratio(), missed], tmp_path, monkeypatch) == 1
    assert "0 of 1 targets met; missed: slow (3, ≤ 2)" in capsys.readouterr().out


def test_the_committed_baseline_can_be_read():
    known = baseline.read(baseline.PATH)
    # Families are compared with their table in experiments/notes, not with the baseline.
    assert {each.group for each in known} >= set(program.GROUPS) - {"families"}
    assert all(each.value >= 0 for each in known)
    assert not [change for change in baseline.compare(known, known) if change.verdict != "same"]
