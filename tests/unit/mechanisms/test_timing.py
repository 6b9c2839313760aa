"""How long a draw takes, from a few pilot draws."""

from epsilometer.mechanisms.timing import seconds_per_draw


def test_a_slow_mechanism_is_not_run_for_long():
    calls = []

    def slow(dataset):
        calls.append(dataset)
        sum(range(2_000_000))
        return 0.5

    assert seconds_per_draw(slow, 7) > 1e-3
    assert len(calls) < 100
    assert set(calls) == {7}
