"""The pace of an audit, by a clock that the tests turn; the bar on a terminal that is none."""

import io

import pytest

import epsilometer as em
from epsilometer.report import progress
from epsilometer.report.progress import Pace, ProgressBar, short_number


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_pace_is_that_of_the_last_half_minute():
    clock = Clock()
    pace = Pace(10_000, clock)
    for clock.now in range(1, 101):
        pace.advance(10)
    assert (pace.rate, pace.seconds_left) == (10.0, 900.0)
    for clock.now in range(101, 141):
        pace.advance(100)
    assert pace.rate == pytest.approx(100.0)
    assert pace.seconds_left == pytest.approx(50.0)
    assert pace.describe() == "50 % of 10 k draws, 100/s, 50 s left"


def test_pace_between_the_moments():
    clock = Clock()
    pace = Pace(100, clock)
    assert pace.seconds_left is None
    clock.now = 0.5
    pace.advance(5)
    pace.advance(5)
    assert (pace.rate, pace.seconds_left) == (20.0, 4.5)
    pace.advance(200)  # more than was announced
    assert pace.seconds_left == 0.0
    assert pace.describe().startswith("100 % of 100 draws")


def test_nobody_knows_how_long_a_search_takes():
    clock = Clock()
    pace = Pace(None, clock)
    clock.now = 2.0
    pace.advance(3_000_000)
    assert pace.seconds_left is None
    assert pace.describe() == "3 M draws, 1.5 M/s"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (12.34, "12.3"), (999, "999"), (1000, "1 k"), (25_600, "25.6 k"), (2e9, "2 G")]
)
def test_short_numbers(value, text):
    assert short_number(value) == text


def laplace(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)


def test_lines_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.0)
    stream = io.StringIO()
    em.audit(em.from_batch(laplace), (0, 1), "eps=1", samples=100_000, seed=0, progress=ProgressBar(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("drawing: 0 % of 200 k draws, ")  # the first block of one side
    assert any(line.startswith("drawing: 50 % of 200 k draws, ") for line in lines)
    assert lines[-1].startswith("drawing: 100 % of 200 k draws, ")
    assert lines[-1].endswith("0 s left")


def test_evidence_is_told_beside_the_figures(monkeypatch):
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.0)
    stream = io.StringIO()
    em.audit(em.zoo.svt5(epsilon=0.7), samples=500, seed=0, stop_early=True, progress=ProgressBar(stream))
    assert "draws per side, ε ≥" in stream.getvalue()


def test_a_bar_on_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    stream = Terminal()
    bar = ProgressBar(stream)
    em.audit(em.from_batch(laplace), (0, 1), "eps=1", samples=100_000, seed=0, progress=bar)
    assert bar._bar is None  # it was taken away
    shown = stream.getvalue()
    assert "100 % of 200 k draws" in shown
    assert "left" in shown


def test_short_work_shows_nothing():
    stream = Terminal()
    em.audit(em.from_batch(laplace), (0, 1), "eps=1", samples=1000, seed=0, progress=ProgressBar(stream))
    assert stream.getvalue() == ""


def test_the_bar_goes_when_the_audit_fails(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    bar = ProgressBar(Terminal())

    countdown = iter(range(600, -1, -1))

    def breaks(dataset):
        return 1 / next(countdown)

    with pytest.raises(em.MechanismError):
        em.audit(breaks, (0, 1), "eps=1", samples=1000, seed=0, progress=bar)
    assert bar._bar is None


def test_a_progress_needs_nothing_but_advance():
    class Counting:
        n = 0

        def advance(self, n):
            self.n += n

    counting = Counting()
    em.audit(em.from_batch(laplace), (0, 1), "eps=1", samples=1000, seed=0, progress=counting)
    assert counting.n == 2000


def test_a_progress_hears_where_work_begins_and_ends():
    class Listening:
        def __init__(self):
            self.heard = []

        def advance(self, n):
            self.heard.append(n)

        def begin(self, total):
            self.heard.append(("begin", total))

        def end(self):
            self.heard.append("end")

    listening = Listening()
    em.audit(em.from_batch(laplace), (0, 1), "eps=1", samples=1000, seed=0, progress=listening)
    assert listening.heard[0] == ("begin", 2000)
    assert listening.heard[-1] == "end"
    assert sum(listening.heard[1:-1]) == 2000
