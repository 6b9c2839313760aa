"""The shipped assertion: exact at its threshold, and strict about its arguments."""

import math

import pytest
from scipy.stats import binom

from epsilometer.claims import PureDP
from epsilometer.errors import InputError
from epsilometer.testing import Coin, RateTest, assert_rare


@pytest.mark.parametrize(("runs", "rate"), [(1, 0.5), (400, 0.05), (10_000, 1e-3), (10**6, 1e-6)])
@pytest.mark.parametrize("false_alarm", [1e-9, 0.01])
def test_fails_exactly_beyond_its_false_alarm(runs, rate, false_alarm):
    most = max(k for k in range(min(runs, 2000) + 1) if binom.sf(k - 1, runs, rate) >= false_alarm)
    assert_rare(most, runs, rate, false_alarm)
    if most < runs:
        with pytest.raises(AssertionError, match=f"{most + 1} events in {runs} runs"):
            assert_rare(most + 1, runs, rate, false_alarm)


def test_ends():
    assert_rare(0, 10, 0.0)
    assert_rare(10, 10, 1.0)
    with pytest.raises(AssertionError):
        assert_rare(1, 10, 0.0)


@pytest.mark.parametrize(
    "arguments",
    [(-1, 10, 0.1), (11, 10, 0.1), (0, 0, 0.1), (1, 10, 1.5), (1, 10, -0.1), (1, 10, 0.1, 0.0)],
)
def test_nonsense(arguments):
    with pytest.raises(InputError):
        assert_rare(*arguments)


def test_the_truth_of_a_coin_looks_at_both_faces():
    """Tails may leak more than heads: 0.5 against 0.1 is more than 0.9 against 0.5."""
    assert Coin(0.9, 0.5).truth(PureDP(1.0)) == pytest.approx(math.log(5.0))
    assert Coin(0.5, 0.9).truth(PureDP(1.0)) == pytest.approx(math.log(5.0))


def test_a_failure_names_what_was_counted():
    with pytest.raises(AssertionError, match="10 wrong bounds in 10 runs, promised a rate"):
        assert_rare(10, 10, 0.01, what="wrong bounds")


def test_the_sequential_test_decides_where_its_likelihood_ratio_says(rarely):
    """At a promise of 5 % against 30 %: (0.7/0.95)¹⁶ is the first power below 1 %, 6¹² the first above 10⁹."""
    assert rarely(lambda seed: False, 0.05, 0.3) == 16
    with pytest.raises(AssertionError, match="12 events in 12 runs"):
        rarely(lambda seed: True, 0.05, 0.3)


def test_the_sequential_test_tells_a_kept_promise_from_a_broken_one(rarely, rng):
    """The former fails with 1e-9 each; of the latter, 16 of 200 pass with less than 1e-9."""
    passed = 0
    for _ in range(200):
        rarely(lambda seed: rng.random() < 0.05, 0.05, 0.3)
        try:
            rarely(lambda seed: rng.random() < 0.3, 0.05, 0.3)
        except AssertionError:
            continue
        passed += 1
    assert_rare(passed, 200, 0.01)


def test_evidence_is_fair_by_enumeration():
    """Its expectation at the promised rate is 1 after any number of runs, so that Ville's inequality applies."""
    for runs in (1, 7, 30):
        expected = 0.0
        for events in range(runs + 1):
            test = RateTest(0.2, 0.5, alternatives=(0.3, 0.5, 0.9))
            test.add_many(events, runs)
            expected += binom.pmf(events, runs, 0.2) * math.exp(test.log_evidence)
        assert expected == pytest.approx(1.0)


@pytest.mark.parametrize("rates", [(0.0, 0.5), (0.5, 0.5), (0.5, 0.2), (0.5, 1.0)])
def test_rates_that_cannot_be_told_apart_are_refused(rates):
    with pytest.raises(InputError, match="alternatives above the promised rate"):
        RateTest(*rates)


def test_more_events_than_runs_are_refused():
    with pytest.raises(InputError, match="events=2, runs=1"):
        RateTest(0.2, 0.5).add_many(2, 1)
