"""The pace of an audit, by a clock that the tests turn; the bar on a terminal that is none."""

import io
import re
import threading
import time

import pytest

import epsilometer as em
from epsilometer.report import progress
from epsilometer.report.progress import Pace, PatienceNotice, ProgressBar, short_number


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
    ("value", "text"),
    [(0, "0"), (12.34, "12.3"), (999, "999"), (1000, "1 k"), (25_600, "25.6 k"), (2e9, "2 G")],
)
def test_short_numbers(value, text):
    assert short_number(value) == text


def talk_at_once(monkeypatch):
    monkeypatch.setattr(progress, "_REFRESH_INTERVAL", 1e-4)
    for name in ("_BAR_DELAY", "_LINE_DELAY", "_LINE_INTERVAL"):
        monkeypatch.setattr(progress, name, 0.0)
    monkeypatch.setattr(progress, "_NEARLY_DONE", -1.0)


def laplace(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)


def test_lines_where_there_is_no_terminal(monkeypatch):
    talk_at_once(monkeypatch)
    stream = io.StringIO()
    em.audit(
        em.from_batch(laplace),
        (0, 1),
        "eps=1",
        samples=100_000,
        seed=0,
        progress=ProgressBar(stream),
    )
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("drawing: 0 % of 200 k draws, ")  # the first block of one side
    assert any(
        line.startswith("estimated bound on ε: 0.9") and ": 50 % of 200 k draws, " in line
        for line in lines
    )
    assert ": 100 % of 200 k draws, " in lines[-1]
    assert lines[-1].endswith("0 s left")


def test_evidence_is_told_beside_the_figures(monkeypatch):
    talk_at_once(monkeypatch)
    stream = io.StringIO()
    em.audit(
        em.zoo.svt5(epsilon=0.7), samples=500, seed=0, stop_early=True, progress=ProgressBar(stream)
    )
    assert "draws per side, certified ε ≥" in stream.getvalue()


def test_a_bar_on_a_terminal(monkeypatch):
    talk_at_once(monkeypatch)
    stream = Terminal()
    bar = ProgressBar(stream)
    em.audit(em.from_batch(laplace), (0, 1), "eps=1", samples=100_000, seed=0, progress=bar)
    assert bar._bar is None  # it was taken away
    shown = stream.getvalue()
    assert "100 % of 200 k draws" in shown
    assert "left" in shown


def test_short_work_shows_nothing():
    stream = Terminal()
    em.audit(
        em.from_batch(laplace), (0, 1), "eps=1", samples=1000, seed=0, progress=ProgressBar(stream)
    )
    assert stream.getvalue() == ""


def test_the_bar_goes_when_the_audit_fails(monkeypatch):
    talk_at_once(monkeypatch)
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


class TestSignsOfLife:
    """Whatever a mechanism does, somebody who waits learns that it is at work."""

    def test_before_anything_is_drawn(self):
        stream = Terminal()
        bar = ProgressBar(stream)
        bar.begin(1000)
        try:
            wait_until(lambda: "0 % of 1 k draws, waiting for the first ones" in stream.getvalue())
        finally:
            bar.end()

    def test_in_a_log_of_something_slow(self, monkeypatch):
        monkeypatch.setattr(progress, "_LINE_INTERVAL", 0.3)
        stream = io.StringIO()
        bar = ProgressBar(stream)
        bar.begin(1000)
        try:
            wait_until(lambda: stream.getvalue().count("\n") >= 3)
        finally:
            bar.end()
        said = stream.getvalue()
        time.sleep(0.5)
        assert stream.getvalue() == said  # it ends with the work

    def test_long_work_gets_a_hint_once(self, monkeypatch):
        talk_at_once(monkeypatch)
        stream = io.StringIO()
        bar = ProgressBar(stream, hint="--stop-early usually needs fewer draws")
        bar.begin(200_000)
        time.sleep(0.05)
        for _ in range(3):
            bar.advance(1)
        bar.end()
        hints = [line for line in stream.getvalue().splitlines() if "ms per draw: about" in line]
        assert len(hints) == 1
        assert hints[0].endswith("; --stop-early usually needs fewer draws")

    def test_work_that_may_stop_early_gets_none(self, monkeypatch):
        talk_at_once(monkeypatch)
        stream = io.StringIO()
        bar = ProgressBar(stream)
        bar.begin(200_000)
        bar.tell("at most 100,000 draws per side")
        time.sleep(0.05)
        bar.advance(1)
        bar.end()
        assert "ms per draw" not in stream.getvalue()

    def test_true_and_false(self, capsys, monkeypatch):
        talk_at_once(monkeypatch)
        em.audit(em.zoo.laplace(), samples=1000, seed=0, progress=False)
        assert capsys.readouterr().err == ""
        em.audit(em.zoo.laplace(), samples=1000, seed=0, progress=True)
        assert "of 2 k draws" in capsys.readouterr().err

    def test_what_is_known_when_it_is_interrupted(self):
        bar = ProgressBar(io.StringIO())

        def interrupted(dataset, rng):
            if bar._pace.drawn > 1000:
                raise KeyboardInterrupt
            return dataset + rng.laplace()

        with pytest.raises(KeyboardInterrupt):
            em.audit(interrupted, (0, 1), "eps=1", samples=1000, seed=0, progress=bar)
        assert re.fullmatch(
            r"1,\d{3} of 2,000 draws \(estimated bound on ε: [\d.]+\)", bar.summary()
        )


def wait_until(holds):
    """The time limit of the test ends this wait if it never holds."""
    while not holds():
        time.sleep(0.02)


def test_the_first_draws_say_how_long_all_of_it_will_take(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_DELAY", 0.0)
    monkeypatch.setattr(progress, "_LINE_INTERVAL", 1e9)
    stream = io.StringIO()
    bar = ProgressBar(stream)
    bar.begin(10**9)
    while "waiting for the first ones" not in stream.getvalue():
        time.sleep(0.01)
    bar.advance(1)
    bar.end()
    first, second, *_ = stream.getvalue().splitlines()
    assert "left" not in first
    assert "left" in second


class TestPatienceNotice:
    def test_quick_work_says_nothing(self):
        stream = io.StringIO()
        with PatienceNotice("working out", stream, delay=1000.0):
            pass
        assert stream.getvalue() == ""

    def test_long_work_says_what_it_does(self):
        said = threading.Event()

        class Stream(io.StringIO):
            def flush(self):
                said.set()

        stream = Stream()
        with PatienceNotice("working out", stream, delay=0.0, interval=1000.0):
            said.wait()
        assert re.fullmatch(r"epsilometer: working out, for .* so far\n", stream.getvalue())


def test_draws_of_an_earlier_run_say_nothing_about_the_pace():
    clock = Clock()
    pace = Pace(1000, clock)
    pace.remember(500)
    clock.now = 3.0
    assert pace.describe() == "50 % of 1 k draws, waiting for the next ones for 3 s"
    clock.now = 4.0
    pace.advance(2)
    pace.remember(98)
    assert (pace.rate, pace.seconds_left) == (0.5, 800.0)
    assert pace.describe() == "60 % of 1 k draws, 0.5/s, 13 min 20 s left"


def test_a_resumed_audit_tells_what_is_remembered(tmp_path):
    class Counting:
        drawn = 0
        remembered = 0

        def advance(self, n):
            self.drawn += n

        def remember(self, n):
            self.remembered += n

    def audit(samples):
        progress = Counting()
        em.audit(
            em.zoo.laplace(),
            claim=em.PureDP(1.0),
            samples=samples,
            seed=0,
            checkpoint=tmp_path / "audit.checkpoint",
            progress=progress,
            max_seconds=600.0,
        )
        return progress

    first = audit(2000)
    again = audit(2000)
    assert (first.drawn, first.remembered) == (4000, 0)
    assert (again.drawn, again.remembered) == (0, 4000)
