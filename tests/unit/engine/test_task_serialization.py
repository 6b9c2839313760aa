import pickle
import threading
from functools import partial

import numpy as np
import pytest

from epsilometer.claims import PureDP
from epsilometer.engine import Phase, Sampler
from epsilometer.engine.task_serialization import (
    Fault,
    WorkerTraceback,
    open_answer,
    pack,
    run_parcel,
)
from epsilometer.errors import EngineError, InputError, MechanismError, MissingExtraError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.methods import Task, find_method

ASKED = "jobs=2"


def run(function, task):
    """There and back, without an engine."""
    key, content = pack(function, ASKED)
    return open_answer(run_parcel(key, lambda: content, task), ASKED)


def failing(error):
    def fail(task):
        raise error

    return fail


def test_there_and_back():
    array = run(lambda task: np.arange(task) + 0.5, 3)
    assert array.tolist() == [0.5, 1.5, 2.5]
    assert array.flags.writeable


def test_equal_work_has_equal_keys():
    assert pack(len, ASKED)[0] == pack(len, ASKED)[0] != pack(sum, ASKED)[0]


def test_a_worker_fetches_the_work_once():
    fetched = []
    key, content = pack(lambda task: task + 1, ASKED)

    def fetch():
        fetched.append(1)
        return content

    assert [open_answer(run_parcel(key, fetch, task), ASKED) for task in range(5)] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert len(fetched) == 1


def test_threads_do_not_share_the_work():
    key, content = pack(lambda task, seen=[]: (seen.append(task), len(seen))[1], ASKED)
    answers = []

    def work():
        answers.append(open_answer(run_parcel(key, lambda: content, 0), ASKED))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    assert answers == [1, 1, 1]


def test_errors_of_the_work_come_back_with_their_place():
    with pytest.raises(MechanismError, match="broken") as caught:
        run(failing(MechanismError("broken")), 0)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in fail" in str(caught.value.__cause__)


def test_an_attempt_to_end_the_program_comes_back():
    with pytest.raises(SystemExit):
        run(failing(SystemExit(3)), 0)


def test_errors_that_cannot_travel_are_told():
    def fail(task):
        # Its arguments are not those that an exception keeps, so it cannot be unpickled.
        raise MissingExtraError("ray", "ray", "this")

    with pytest.raises(EngineError, match=r"MissingExtraError.*pip install"):
        run(fail, 0)


@pytest.mark.parametrize("error", [MemoryError("full"), ConnectionResetError("gone")])
def test_what_may_pass_is_a_fault(error):
    with pytest.raises(Fault, match=str(error)):
        run(failing(error), 0)


def test_work_that_does_not_arrive_is_a_fault():
    def fetch():
        raise FileNotFoundError("no such parcel")

    with pytest.raises(Fault, match=r"did not arrive.*no such parcel"):
        open_answer(run_parcel("never seen", fetch, 0), ASKED)


def test_work_that_a_worker_cannot_import():
    content = pickle.dumps(len).replace(b"builtins", b"nowheres")
    with pytest.raises(
        InputError, match=r"jobs=2: the workers cannot make out .*nowheres.*install its module"
    ):
        open_answer(run_parcel("elsewhere", lambda: content, 0), ASKED)


def test_work_that_cannot_leave():
    lock = threading.Lock()
    with pytest.raises(
        InputError, match=r"jobs=2: .* cannot be sent .*lock.*define it at the top level"
    ):
        pack(lambda task: lock, ASKED)


class WeighingRunner:
    """Packs and unpacks like an engine, and weighs what comes back."""

    def __init__(self):
        self.weight = 0

    def map(self, function, tasks):
        key, content = pack(function, ASKED)
        for task in tasks:
            answer = run_parcel(key, lambda: content, task)
            self.weight += len(answer)
            yield open_answer(answer, ASKED)

    def close(self):
        pass


def scalars(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)


def vectors(dataset, n, rng):
    return rng.laplace(dataset, 1.0, (n, 3))


def texts(dataset, n, rng):
    return np.where(rng.random(n) < 0.3 + 0.2 * dataset, "yes", "no")


@pytest.mark.parametrize("draw", [scalars, vectors, texts])
def test_a_million_draws_come_back_as_kilobytes(draw):
    pair, runner = Pair(0.0, 1.0), WeighingRunner()
    sampler = Sampler(from_batch(draw), 1, runner)
    training = [sampler.outputs(Phase.TRAIN, 0, pair, side, 20_000) for side in (0, 1)]
    assert runner.weight > 20_000  # all of them travelled, at a byte each or more
    proposal = find_method("events", None).propose(
        *training, Task(PureDP(0.5), (10**6, 10**6), 0.05)
    )
    runner.weight = 0
    tallies = sampler.chunks(
        Phase.CERTIFY, 0, pair, 0, 10**6, reduce=partial(proposal.tally, side=0)
    )
    assert sum(chunk.size for chunk in tallies) == 10**6
    assert runner.weight < 20_000  # a thousand bytes per chunk, to recognise one that repeats
