"""A sequential test of a promised rate: it needs only as many runs as the evidence takes."""

import math
from collections.abc import Sequence

from epsilometer.errors import InputError


class RateTest:
    """Wald's test of a promised rate against rates that would break the promise.

    Every run multiplies, for each alternative, the likelihood ratio of what happened. The
    *evidence* is the mean of these products. It may be looked at after every run, and runs may end
    for any reason.

    Guarantee: exact. If every run has the event with probability at most `rate`, given the runs
        before it, then `is_broken` is ever true with probability at most `false_alarm` (Ville's
        inequality: likelihood ratios are martingales). If the events are independent and happen at
        a rate of `broken` or more, `is_clear` is ever true with probability at most `miss`.

    Args:
        rate: the promised greatest probability of the event in each run, strictly between 0 and 1.
        broken: a rate, above the promised one, that must not be called clear.
        false_alarm: the probability with which a kept promise may be called broken.
        miss: the probability with which a rate of `broken` may be called clear.
        alternatives: rates that the evidence weighs against the promised one, each above it;
            `broken` unless given.

    Attributes:
        runs: the number of runs so far.
        events: the number of runs in which the event happened.

    Example:
        >>> test = RateTest(rate=0.2, broken=0.5)
        >>> while not test.is_clear:
        ...     test.add(False)
        >>> test.runs, test.is_broken
        (10, False)
    """

    def __init__(
        self,
        rate: float,
        broken: float,
        *,
        false_alarm: float = 1e-9,
        miss: float = 0.01,
        alternatives: Sequence[float] = (),
    ) -> None:
        for name, value in (("false_alarm", false_alarm), ("miss", miss)):
            if not 0.0 < value < 1.0:
                raise InputError(f"{name}={value!r}: must lie strictly between 0 and 1")
        for alternative in (broken, *alternatives):
            if not 0.0 < rate < alternative < 1.0:
                raise InputError(
                    f"rate={rate!r}, alternative {alternative!r}: "
                    "rates must lie strictly between 0 and 1, "
                    "and alternatives above the promised rate"
                )
        self.rate = rate
        self.broken = broken
        self.false_alarm = false_alarm
        self.miss = miss
        self.alternatives = tuple(alternatives) or (broken,)
        self.runs = 0
        self.events = 0

    def __repr__(self) -> str:
        promise = f"rate={self.rate}, broken={self.broken}"
        return f"<RateTest {promise}: {self.events} events in {self.runs} runs>"

    def add(self, event: bool) -> None:
        """Counts one run."""
        self.add_many(int(event), 1)

    def add_many(self, events: int, runs: int) -> None:
        """Counts several runs at once."""
        if not 0 <= events <= runs:
            raise InputError(f"events={events!r}, runs={runs!r}: events must be between 0 and runs")
        self.runs += runs
        self.events += events

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence against the promise.

        It is 0 at the start, and tends to be negative where the promise is kept.
        """
        log_ratios = [self._log_ratio(alternative) for alternative in self.alternatives]
        # The largest is factored out, so that no exponential overflows.
        largest = max(log_ratios)
        total = math.fsum(math.exp(log_ratio - largest) for log_ratio in log_ratios)
        return largest + math.log(total / len(log_ratios))

    @property
    def is_broken(self) -> bool:
        """Whether the promise is refuted."""
        return self.log_evidence >= -math.log(self.false_alarm)

    @property
    def is_clear(self) -> bool:
        """Whether a rate of `broken` or more is refuted."""
        return self._log_ratio(self.broken) < math.log(self.miss)

    def _log_ratio(self, alternative: float) -> float:
        """The log-likelihood ratio of all runs: the alternative rate against the promised one."""
        runs_without = self.runs - self.events
        with_event = self.events * math.log(alternative / self.rate)
        without_event = runs_without * math.log((1.0 - alternative) / (1.0 - self.rate))
        return with_event + without_event
