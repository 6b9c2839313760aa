from itertools import count, islice

import pytest

from epsilometer.engine.pool_runner import PoolRunner
from epsilometer.engine.task_serialization import Fault, run_parcel
from epsilometer.errors import EngineError, MechanismError


class PlannedPool:
    """Does its work in this process, when it is collected, and fails as planned.

    Attributes:
        faults: a fault for the n-th submission, when it is collected.
        runs: how often each task was answered.
        begun: how often the n-th submission was begun, if not once: some engines run tasks again.
    """

    asked = "engine='planned'"

    def __init__(self, workers=2, faults=None, refusals=None, begun=None):
        self.workers = workers
        self.begun = begun or {}
        self.faults = faults or {}
        self.refusals = refusals or {}
        self.submitted = self.opened = self.dropped = self.most_out = 0
        self.out, self.runs, self.cancelled, self.shipped = {}, {}, [], []

    def open(self):
        self.opened += 1
        return self.workers

    def ship(self, key, content):
        self.shipped.append(content)
        return content

    def submit(self, key, shipped, task):
        self.submitted += 1
        if self.submitted in self.refusals:
            raise self.refusals[self.submitted]
        self.out[self.submitted] = (key, shipped, task)
        self.most_out = max(self.most_out, len(self.out))
        return self.submitted

    def collect(self, ticket, deadline=None):
        key, content, task = self.out.pop(ticket)
        if ticket in self.faults:
            raise self.faults[ticket]
        self.runs[task] = self.runs.get(task, 0) + 1
        return run_parcel(key, lambda: content, task)

    def times_begun(self, ticket):
        return self.begun.get(ticket, 1)

    def has_answer(self, ticket):
        return ticket % 2 == 0  # some had come back before everything was lost

    def drop(self):
        self.dropped += 1
        self.out = {
            ticket: errand for ticket, errand in self.out.items() if self.has_answer(ticket)
        }

    def cancel(self, tickets):
        self.cancelled += tickets

    def withdraw(self, shipped):
        self.shipped.remove(shipped)

    def close(self):
        pass


def square(task):
    return task * task


SQUARES = [square(task) for task in range(30)]


def test_results_in_order():
    pool = PlannedPool()
    assert list(PoolRunner(pool).map(square, range(30))) == SQUARES
    assert set(pool.runs.values()) == {1}


def test_nothing_to_do():
    pool = PlannedPool()
    assert list(PoolRunner(pool).map(square, [])) == []
    assert pool.opened == 0


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_few_tasks_are_out_at_a_time(workers):
    pool = PlannedPool(workers)
    assert list(islice(PoolRunner(pool).map(square, count()), 30)) == SQUARES
    assert pool.most_out <= 4 * workers


def test_what_is_out_is_called_back():
    pool = PlannedPool()
    results = PoolRunner(pool).map(square, count())
    assert next(results) == 0
    results.close()
    assert sorted(pool.cancelled) == sorted(pool.out)
    assert pool.shipped == []


def test_a_lost_task_is_sent_again_alone():
    pool = PlannedPool(faults={3: Fault("a worker died")})
    assert list(PoolRunner(pool).map(square, range(30))) == SQUARES
    assert pool.submitted == 31
    assert set(pool.runs.values()) == {1}


def test_a_lost_engine_is_opened_again_and_answers_that_came_are_kept():
    pool = PlannedPool(faults={3: Fault("all gone", engine_lost=True)})
    assert list(PoolRunner(pool).map(square, range(30))) == SQUARES
    assert (pool.opened, pool.dropped) == (2, 1)
    assert pool.shipped == []
    # 8 were out, 2 done; of 3 … 10 the odd ones were lost.
    assert pool.submitted == 30 + 4
    assert set(pool.runs.values()) == {1}


def test_a_refused_submission_is_made_again():
    refusals = {4: Fault("just ended", engine_lost=True), 5: Fault("not yet", engine_lost=True)}
    pool = PlannedPool(refusals=refusals)
    assert list(PoolRunner(pool).map(square, range(30))) == SQUARES
    assert set(pool.runs.values()) == {1}


def test_faults_far_apart_do_not_add_up():
    pool = PlannedPool(workers=1, faults={n: Fault("again") for n in range(1, 60, 2)})
    assert list(PoolRunner(pool).map(square, range(30))) == SQUARES


def test_a_task_that_is_always_lost():
    pool = PlannedPool(faults={n: Fault("a worker died") for n in range(1, 100)})
    with pytest.raises(
        EngineError,
        match=r"engine='planned': work was lost 4 times in a row .*square.* a worker died",
    ):
        list(PoolRunner(pool).map(square, range(30)))
    assert pool.runs == {}
    assert pool.submitted == 8 + 3


def test_workers_that_cannot_be_told_any_more_do_not_hide_the_reason():
    class Deaf(PlannedPool):
        def cancel(self, tickets):
            raise Fault("nobody listens")

    with pytest.raises(EngineError, match="gave up"):
        list(
            PoolRunner(Deaf(faults={n: Fault("gave up", is_final=True) for n in range(2, 99)})).map(
                square, range(30)
            )
        )


def test_a_pool_that_never_takes_anything():
    pool = PlannedPool(refusals={n: Fault("no") for n in range(1, 100)})
    with pytest.raises(EngineError, match="4 times"):
        list(PoolRunner(pool).map(square, range(30)))
    assert pool.submitted == 4


def test_an_engine_that_has_tried_enough_itself_is_asked_once_more_for_the_task_alone():
    """Others that were out with it may have been to blame."""
    pool = PlannedPool(faults={2: Fault("gave up", is_final=True)})
    assert list(PoolRunner(pool).map(square, range(30))) == SQUARES
    assert set(pool.runs.values()) == {1}
    pool = PlannedPool(faults={n: Fault("gave up", is_final=True) for n in range(2, 99)})
    with pytest.raises(EngineError, match="gave up"):
        list(PoolRunner(pool).map(square, range(30)))
    assert pool.runs == {0: 1}


def test_after_a_fault_tasks_go_one_at_a_time_until_all_that_were_out_are_back():
    class Deadly(PlannedPool):
        """Loses everything that is out when the task 5 is."""

        def collect(self, ticket, deadline=None):
            if any(task == 5 for _, _, task in self.out.values()):
                raise Fault("a worker died", engine_lost=True)
            return super().collect(ticket)

        def has_answer(self, ticket):
            return False

    class Work:
        def __call__(self, task):
            return square(task)

        def describe(self, task):
            return f"the square of {task}"

    pool, results = Deadly(), []
    with pytest.raises(EngineError, match="4 times in a row while running the square of 5;"):
        results.extend(PoolRunner(pool).map(Work(), range(30)))
    assert set(pool.runs) == {0, 1, 2, 3, 4}


def test_errors_of_the_work_are_not_tried_again():
    def fail(task):
        raise MechanismError(f"task {task}")

    pool = PlannedPool()
    with pytest.raises(MechanismError, match="task 0"):
        list(PoolRunner(pool).map(fail, range(30)))
    assert pool.runs == {0: 1}
    assert sorted(pool.cancelled) == [1, 2, 3, 4, 5, 6, 7, 8]


class Counting:
    """Work that is told which runs of its tasks were lost."""

    def __init__(self):
        self.lost = []

    def __call__(self, task):
        return task

    def lose(self, task):
        self.lost.append(task)

    def __reduce__(self):
        return Counting, ()


class TestLostRuns:
    def test_every_run_but_the_answered_one_is_lost(self):
        pool, work = PlannedPool(begun={2: 3, 3: 2}), Counting()
        assert list(PoolRunner(pool).map(work, "abcd")) == list("abcd")
        assert work.lost == ["b", "b", "c"]

    def test_a_task_that_is_never_answered_is_lost_as_often_as_it_was_begun(self):
        pool = PlannedPool(faults={1: Fault("died, too often", is_final=False)}, begun={1: 4})
        work = Counting()
        assert list(PoolRunner(pool).map(work, "ab")) == list("ab")
        assert work.lost == ["a"] * 4

    def test_a_task_that_nobody_waits_for_any_more_is_lost_if_it_has_begun(self):
        pool, work = PlannedPool(workers=1, begun={2: 2, 3: 0, 4: 1}), Counting()
        results = PoolRunner(pool).map(work, "abcdefgh")
        assert next(results) == "a"
        results.close()
        assert work.lost == ["b", "b", "d"]
