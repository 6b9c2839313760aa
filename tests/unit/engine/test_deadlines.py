"""Who may end the process when a call ignores the alarm: whoever made the deadline says so, nobody looks for it."""

import os
import threading

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
