"""What the benchmarks say about their figures; the figures themselves are no test."""

import math

import pytest
from benchmarks.effort import Effort, short
from benchmarks.measurement import Measurement, median_ratio, of_repeats, ratios, standard_error
from benchmarks.processes import run_fresh, start_fresh
from benchmarks.speed import slope
from benchmarks.timing import interleaved

MET = Measurement("speed", "fast", 1.0, "×", "≤", 2.0)
MISSED = Measurement("power", "weak", 0.5, "ε", "≥", 0.67)
FREE = Measurement("speed", "reading", 0.1, "s")


def test_targets():
    assert (MET.is_met, MISSED.is_met, FREE.is_met) == (True, False, None)


def test_ratios_are_taken_within_a_repeat():
    assert ratios([2.0, 30.0, 4.0], [1.0, 10.0, 4.0]) == [2.0, 3.0, 1.0]
    assert median_ratio([2.0, 30.0, 4.0], [1.0, 10.0, 4.0]) == 2.0


def test_a_measurement_survives_as_plain_data():
    made = of_repeats("speed", "fast", [1.0, 3.0, 2.0], "×", "≤", 2.5, "how")
    assert made.value == 2.0
    assert Measurement.from_dict(made.to_dict()) == made
    assert made.to_dict()["met"] is True


def test_the_noise_is_that_of_a_mean():
    assert standard_error([1.0, 2.0]) is None
    assert standard_error([5.0] * 7) == 0.0
    assert standard_error([0.0, 1.0, 2.0]) == pytest.approx(1.0 / math.sqrt(3))


def test_slope_is_the_exponent():
    assert slope([10, 100, 1000], [2e-3 * n**1.25 for n in (10, 100, 1000)]) == pytest.approx(1.25)


def test_actions_take_turns():
    seen = []
    timings = interleaved(
        3, lambda number: seen.append(("a", number)), lambda number: seen.append(("b", number))
    )
    assert seen == [(name, number) for number in range(3) for name in "ab"]
    assert [len(each) for each in timings] == [3, 3]
    assert all(each.wall >= 0 and each.processor >= 0 for action in timings for each in action)


def test_effort():
    effort = Effort(repeats=7, share=0.01)
    assert (effort.draws(1_000_000), effort.draws(100)) == (10_000, 400)
    assert (effort.target(2.0), Effort().target(2.0), Effort().target(None)) == (None, 2.0, None)
    assert (effort.repeats_at(10_000), effort.repeats_at(100_000_000)) == (7, 3)


@pytest.mark.parametrize(
    ("n", "text"), [(400, "400"), (1000, "1e3"), (5_000_000, "5e6"), (12_500, "1.25e4")]
)
def test_numbers_of_draws_are_short(n, text):
    assert short(n) == text


def test_fresh_processes_answer_or_complain():
    assert run_fresh("print('noise'); print(1.5)") == 1.5
    assert start_fresh(["-c", "pass"]) > 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_fresh("1 / 0")
