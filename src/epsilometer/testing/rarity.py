"""Statistical tests that state their own false alarm."""

from scipy.special import betainc

from epsilometer.errors import InputError


def assert_rare(events: int, runs: int, rate: float, false_alarm: float = 1e-9, what: str = "events") -> None:
    """Asserts that so many events in so many independent runs are compatible with a probability ≤ rate.

    The tail is that of the binomial law, which has no normal approximation to break at small rates.

    Guarantee: exact. If every run has the event with probability ≤ rate, independently of the others (or given
        the others), the assertion fails with probability ≤ false_alarm.

    Args:
        events: how often the event was seen, an integer from 0 to runs.
        runs: number of independent runs, at least 1.
        rate: the promised greatest probability per run, between 0 and 1.
        false_alarm: the assertion fails only where the chance of so many events is below this.
        what: the events by their name, for the text of the failure.
    """
    if runs < 1 or not 0 <= events <= runs:
        raise InputError(f"events={events!r}, runs={runs!r}: events must be between 0 and runs, and runs at least 1")
    if not 0 <= rate <= 1:
        raise InputError(f"rate={rate!r}: must be between 0 and 1")
    if not 0 < false_alarm < 1:
        raise InputError(f"false_alarm={false_alarm!r}: must be between 0 and 1, for example 1e-9")
    # P(at least so many events); betainc keeps its digits in the far tail, where bdtrc does not.
    chance = 1.0 if events == 0 else float(betainc(events, runs - events + 1, rate))
    assert chance >= false_alarm, (
        f"{events} {what} in {runs} runs, promised a rate of at most {rate:g}: the chance of so many is {chance:.1e}, "
        f"below the false alarm {false_alarm:g} of this test"
    )
