"""What the benchmarks say about their figures; the figures themselves are no test."""

import json

import pytest
from benchmarks import __main__ as program
from benchmarks.measurement import Measurement, median_ratio
from benchmarks.processes import run_fresh
from benchmarks.speed import draw_alone

MET = Measurement("speed", "fast", 1.0, "×", "≤", 2.0)
MISSED = Measurement("power", "weak", 0.5, "ε", "≥", 0.67)
FREE = Measurement("speed", "reading", 0.1, "s")


def test_targets():
    assert (MET.is_met, MISSED.is_met, FREE.is_met) == (True, False, None)


def test_ratios_are_taken_within_a_repeat():
    assert median_ratio([2.0, 30.0, 4.0], [1.0, 10.0, 4.0]) == 2.0


def test_summary_names_what_is_missed():
    assert program.summary([MET, FREE]) == "1 of 1 targets met"
    assert program.summary([MET, MISSED]) == "1 of 2 targets met; missed: weak (0.5, ≥ 0.67)"


@pytest.mark.parametrize(("measured", "status"), [([MET, FREE], 0), ([MET, MISSED], 1)])
def test_the_program_writes_and_judges(measured, status, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(program.GROUPS, "speed", lambda chosen: measured)
    assert program.main(["speed", "--out", str(tmp_path)]) == status
    content = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert [each["met"] for each in content["measurements"]] == [each.is_met for each in measured]
    assert "targets met" in capsys.readouterr().out


def test_fresh_processes_answer_or_complain():
    assert run_fresh("print('noise'); print(1.5)") == 1.5
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_fresh("1 / 0")


def test_drawing_alone_covers_every_draw(monkeypatch):
    drawn = []
    monkeypatch.setattr("benchmarks.speed.noisy_number", lambda dataset, n, rng: drawn.append((dataset, n)))
    draw_alone(25, 10, seed=0)
    assert drawn == [(0.0, 10), (0.0, 10), (0.0, 5), (1.0, 10), (1.0, 10), (1.0, 5)]
