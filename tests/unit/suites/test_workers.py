"""Workers that answer, fail, die and hang. Their work is from the standard library, which a worker can import."""

import json
import os
import signal
import time

from epsilometer.suites import run_tasks
from epsilometer.suites.workers import Job


def ends(work, tasks, jobs=2):
    return {
        each.number: (each.state, each.answer)
        for each in run_tasks(work, tasks, jobs)
        if each.state != "started"
    }


def test_answers_and_exceptions():
    found = ends(json.dumps, [Job([1]), Job({1, 2}), Job("x")])
    assert found[0] == ("done", "[1]")
    assert found[1][0] == "failed"
    assert found[1][1].startswith("TypeError: ")
    assert found[2] == ("done", '"x"')


def test_a_death_costs_one_task():
    found = ends(os._exit, [Job(7), Job(0)], jobs=1)
    assert found == {
        0: ("failed", "the process ended with status 7 and no answer"),
        1: ("failed", "the process ended with status 0 and no answer"),
    }


def test_a_signal_is_named():
    assert ends(signal.raise_signal, [Job(6)])[0] == (
        "failed",
        "the process was ended by signal SIGABRT",
    )


def test_a_hang_is_given_up():
    found = ends(time.sleep, [Job(1000, seconds=1.0)])
    assert found == {0: ("failed", "given up after 1 seconds")}


def test_nothing_to_do():
    assert ends(json.dumps, []) == {}
