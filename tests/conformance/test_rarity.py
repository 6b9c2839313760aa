"""The shipped assertion: exact at its threshold, and strict about its arguments."""

import pytest
from scipy.stats import binom

from epsilometer.errors import InputError
from epsilometer.testing import assert_rare


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
    "arguments", [(-1, 10, 0.1), (11, 10, 0.1), (0, 0, 0.1), (1, 10, 1.5), (1, 10, -0.1), (1, 10, 0.1, 0.0)]
)
def test_nonsense(arguments):
    with pytest.raises(InputError):
        assert_rare(*arguments)
