"""Who may end the process when a call ignores the alarm: whoever made the deadline says so, nobody looks for it."""

import gc
import os
import signal
import sys
import threading
import time

import pytest

from epsilometer.engine import Deadline, deadlines, open_runner


@pytest.fixture
def ended(monkeypatch):
    """The statuses with which the process would have been ended."""
    statuses = []
    monkeypatch.setattr(deadlines, "_UNRESPONSIVE_SECONDS", 0.0)
    monkeypatch.setattr(os, "_exit", statuses.append)
    monkeypatch.setattr(os, "write", lambda descriptor, text: len(text))
    monkeypatch.setattr(threading, "Timer", Immediate)
    return statuses


class Immediate:
    """A timer that rings as soon as it is started."""

    def __init__(self, seconds, function):
        self.function = function

    def start(self):
        self.function()

    def cancel(self):
        """Too late."""


@pytest.mark.parametrize(("may_exit_process", "expected"), [(False, []), (True, [2])])
def test_only_a_program_that_says_so_is_ended(ended, may_exit_process, expected):
    with Deadline(600.0, may_exit_process=may_exit_process).last_resort("a call", 0.0):
        pass
    assert ended == expected


@pytest.mark.parametrize("may_exit_process", [False, True])
def test_the_runner_carries_it(may_exit_process):
    deadline = Deadline(600.0, may_exit_process=may_exit_process)
    runner = open_runner(1, "local", deadline)
    assert runner.deadline.may_exit_process is may_exit_process


class SlowFinalizer:
    """Takes a while to be collected, which only the garbage collector does."""

    def __init__(self):
        self.myself = self

    def __del__(self):
        sum(range(20_000))


def hang(task):
    """Ends only by an exception, and takes a while to clean up, in finalizers too."""
    try:
        time.sleep(600.0)
    finally:
        SlowFinalizer()
        gc.collect()
        sum(range(100_000))


def test_an_alarm_that_rings_again_while_it_is_heard_is_given_back(monkeypatch):
    """On a busy machine it rings again before the first exception has arrived.

    Whatever is interrupted then, no alarm of one audit may ring in the next.
    """
    monkeypatch.setattr(deadlines, "_RING_AGAIN_SECONDS", 2e-4)
    # Also the garbage collector is interrupted. What is raised in a finalizer goes nowhere, and it
    # rings again; but pytest's hook, itself interrupted, would take it for an error of the test.
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    callers = signal.getsignal(signal.SIGALRM)
    late = []
    for _ in range(100):
        runner = open_runner(1, "local", Deadline(2e-3))
        with pytest.raises(deadlines.OutOfTime) as caught:
            list(runner.map(hang, [0]))
        # A traceback that is kept keeps what was not left.
        late.append(caught)
        assert signal.getsignal(signal.SIGALRM) is callers
