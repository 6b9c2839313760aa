"""Timings of actions, taken in turn so that all see the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Action = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Seconds:
    """What one action took: by the clock, and of the processor (this process, all its threads)."""

    wall: float
    processor: float


def timed(action: Action, number: int) -> Seconds:
    """Runs the action with the number of the repeat, e.g. as its seed."""
    wall, processor = time.perf_counter(), time.process_time()
    action(number)
    return Seconds(time.perf_counter() - wall, time.process_time() - processor)


def interleaved(repeats: int, *actions: Action) -> list[list[Seconds]]:
    """The timings of each action, one action after the other in every repeat."""
    found = [[timed(action, number) for action in actions] for number in range(repeats)]
    return [list(each) for each in zip(*found, strict=True)]


def processor_times(timings: list[Seconds]) -> list[float]:
    """The processor's seconds: other work on the machine does not lengthen them."""
    return [each.processor for each in timings]


def wall_times(timings: list[Seconds]) -> list[float]:
    """The seconds of the clock."""
    return [each.wall for each in timings]
