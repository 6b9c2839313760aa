"""Local worker processes, whatever happens to them: killed, stopped, forked, forgotten. No wait is without end."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from select import select

import pytest

import epsilometer as em
from epsilometer.engine import local_pool, open_runner
from epsilometer.engine.local_pool import LocalPool
from epsilometer.engine.local_worker import Ticket, Worker, exchange
from epsilometer.engine.pool_runner import PoolRunner
from epsilometer.engine.task_serialization import Fault, open_answer, pack

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals and forks")
# The stress test takes some ten seconds; this many times as long on request (see tests/README.md).
STRESS = int(os.environ.get("EPSILOMETER_STRESS", "1"))


def pids(runner, tasks=40):
    """The processes that did some tasks. One of them may have done all."""
    return set(runner.map(lambda _: (time.sleep(0.005), os.getpid())[1], range(tasks)))


def is_running(pid):
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except FileNotFoundError:
        return False


def wait_until(condition):
    """Waits for an event; the time limit of every test ends this wait if it never comes."""
    while not condition():
        time.sleep(0.02)


@pytest.mark.time_limit(300 * STRESS)
def test_every_future_ends(monkeypatch, rng):
    """Thousands of submissions at random pauses around the time-outs; workers killed and stopped at random moments."""
    monkeypatch.setattr(local_pool, "_PULSE_SECONDS", 0.02)
    monkeypatch.setattr(local_pool, "_PATIENCE_SECONDS", 0.02)
    ends = {"answer": 0, "fault": 0}
    seen = set()

    def work(task):
        size, seconds = task
        time.sleep(seconds)
        return os.getpid(), bytes(size)

    def strike():
        alive = [pid for pid in seen if is_running(pid)]
        if alive:
            with suppress(ProcessLookupError):
                os.kill(
                    int(rng.choice(alive)),
                    rng.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM]),
                )

    def collect(pool, ticket):
        try:
            pid, _ = open_answer(pool.collect(ticket), pool.asked)
        except Fault:
            ends["fault"] += 1
            return False
        ends["answer"] += 1
        seen.add(pid)
        return True

    key, content = pack(work, "jobs=2")
    for _ in range(60 * STRESS):
        pool = LocalPool(2)
        with closing(pool):
            pool.open()
            shipped = pool.ship(key, content)
            timer = threading.Timer(rng.uniform(0, 0.05), strike)
            if rng.random() < 0.2:
                timer.start()
            tickets = []
            for _ in range(int(rng.integers(1, 120))):
                size, seconds = (
                    int(10 ** rng.uniform(0, 6)),
                    rng.choice([0.0, 0.0, 0.0, 0.001, 0.02]),
                )
                try:
                    tickets.append(pool.submit(key, shipped, (size, seconds)))
                except Fault:
                    break
                if rng.random() < 0.03:
                    time.sleep(rng.uniform(0.0, 0.045))  # around one pulse and two
            # Some audits stop early and leave their workers with work that nobody wants.
            for number, ticket in enumerate(tickets):
                if not collect(pool, ticket) or rng.random() < 0.003:
                    pool.cancel(tickets[number + 1 :])
                    break
            if timer.ident is not None:
                timer.join()
            pool.withdraw(shipped)
    assert ends["answer"] > 1000 * STRESS, ends
    assert ends["fault"] > STRESS, ends  # or this test shows nothing


class TestWorkersThatAreLost:
    def test_a_kill_in_the_middle_of_an_answer(self):
        # With one pipe for all workers, half an answer blocks whoever reads it for ever.
        pool = LocalPool(2)
        key, content = pack(lambda size: bytes(size), "jobs=2")
        with closing(pool):
            pool.open()
            shipped = pool.ship(key, content)
            ticket = pool.submit(key, shipped, 100_000_000)
            (worker,) = [each for each in pool._workers if each.out]
            select([worker.channel], [], [])  # it has begun, and cannot end: nobody reads
            worker.process.send_signal(signal.SIGKILL)
            with pytest.raises(Fault, match="ended by signal SIGKILL") as caught:
                pool.collect(ticket)
            assert caught.value.engine_lost
            pool.drop()
            pool.withdraw(shipped)

    def test_a_stopped_worker(self, monkeypatch):
        monkeypatch.setattr(local_pool, "_PULSE_SECONDS", 0.05)
        with closing(open_runner(2)) as runner:
            seen = pids(runner)
            os.kill(min(seen), signal.SIGSTOP)
            again = pids(runner)
            assert min(seen) not in again
            wait_until(lambda: not is_running(min(seen)))

    def test_a_worker_that_goes_on_after_a_short_stop_is_kept(self):
        with closing(open_runner(2)) as runner:
            wait_until(lambda: len(pids(runner)) == 2)
            seen = pids(runner)
            os.kill(min(seen), signal.SIGSTOP)
            threading.Timer(0.3, os.kill, (min(seen), signal.SIGCONT)).start()
            wait_until(lambda: pids(runner) == seen)

    def test_idle_workers_that_are_killed_are_replaced(self):
        with closing(open_runner(2)) as runner:
            seen = pids(runner)
        for pid in seen:
            os.kill(pid, signal.SIGKILL)
        with closing(open_runner(2)) as runner:
            assert not pids(runner) & seen

    def test_a_child_of_a_dead_worker_that_holds_on_to_its_channel(self, tmp_path):
        def forks_and_dies(_):
            child = os.fork()
            if child:
                (tmp_path / str(child)).touch()
                os._exit(3)
            time.sleep(1000)

        try:
            with (
                closing(open_runner(2)) as runner,
                pytest.raises(em.EngineError, match="ended with status 3"),
            ):
                list(runner.map(forks_and_dies, [0]))
        finally:
            for path in tmp_path.iterdir():
                wait_until(
                    lambda path=path: not is_running(int(path.name))
                )  # it ends with its worker

    def test_workers_that_cannot_be_started(self, monkeypatch):
        with local_pool._lock:
            surplus, local_pool._warm[:] = list(local_pool._warm), []
        for worker in surplus:
            worker.end()
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with (
            closing(open_runner(2)) as runner,
            pytest.raises(em.EngineError, match="no worker process could be started"),
        ):
            list(runner.map(abs, [-1]))


class TestWarmWorkers:
    def test_they_serve_one_audit_after_the_other_and_notice_where_the_program_is(
        self, tmp_path, monkeypatch
    ):
        with closing(open_runner(2)) as runner:
            wait_until(lambda: len(pids(runner)) == 2)
            seen = pids(runner)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "only_here.py").write_text("PLACE = 7\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        with closing(open_runner(2)) as runner:
            found = set(
                runner.map(lambda _: (os.getcwd(), __import__("only_here").PLACE), range(20))
            )
            assert found == {(str(tmp_path.resolve()), 7)}
            assert pids(runner) <= seen

    def test_a_pool_that_nobody_closed_gives_its_workers_back(self):
        runner = open_runner(2)
        wait_until(lambda: len(pids(runner)) == 2)
        seen = pids(runner)
        del runner
        with closing(open_runner(2)) as runner:
            assert pids(runner) <= seen

    def test_audits_in_several_threads_have_workers_of_their_own(self):
        def bound(**where):
            return em.audit(
                em.zoo.laplace(epsilon=1.0), samples=20_000, seed=1, **where
            ).lower_bound

        found = []
        threads = [threading.Thread(target=lambda: found.append(bound(jobs=2))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == 3 * [bound()]
        assert len(local_pool._warm) <= 2

    def test_work_that_was_forgotten_does_not_delay_the_next_audit(self, tmp_path):
        def slow(task):
            (tmp_path / str(task)).touch()
            time.sleep(1000 if task else 0)
            return task

        with closing(open_runner(2)) as runner:
            first = runner.map(slow, range(3))
            assert next(first) == 0
            wait_until(lambda: (tmp_path / "1").exists())
            first.close()
        with closing(open_runner(2)) as runner:
            assert list(runner.map(abs, range(10))) == list(range(10))

    def test_the_dataset_of_the_last_audit_is_let_go(self, tmp_path):
        class Witnessed:
            def __call__(self, task):
                return task

            def __del__(self):
                if os.getpid() != parent:
                    (tmp_path / str(os.getpid())).touch()

        parent = os.getpid()
        with closing(open_runner(2)) as runner:
            list(runner.map(Witnessed(), range(20)))
        wait_until(lambda: list(tmp_path.iterdir()))

    def test_threads_of_numerical_libraries_are_shared_out(self, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS")
        monkeypatch.setattr(os, "cpu_count", lambda: 6)
        with closing(open_runner(2)) as runner:
            assert set(runner.map(lambda _: os.environ["OMP_NUM_THREADS"], range(10))) == {"3"}

    def test_large_tasks_and_large_answers_at_the_same_time(self):
        # Neither side may wait for the other to read first.
        tasks = [bytes([number]) * 5_000_000 for number in range(12)]
        with closing(open_runner(2)) as runner:
            assert list(runner.map(lambda task: task, tasks)) == tasks


PROGRAM = """
import epsilometer as em
print("the program begins", flush=True)
shift = 0.0
settings = {"inputs": (0.0, 1.0), "claim": em.PureDP(1.0), "samples": 2000, "seed": 0}
there = em.audit(lambda dataset, rng: shift + dataset + rng.laplace(), **settings, jobs=2)
here = em.audit(lambda dataset, rng: shift + dataset + rng.laplace(), **settings)
print(there.lower_bound == here.lower_bound, flush=True)
"""


@pytest.mark.parametrize("way", ["script", "command", "standard input", "module", "interactive"])
def test_programs_need_no_main_guard(way, tmp_path):
    """Workers never import the caller's main module: it runs once, and its functions travel."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    arguments, given = {
        "script": (["program.py"], None),
        "command": (["-c", PROGRAM], None),
        "standard input": (["-"], PROGRAM),
        "module": (["-m", "program"], None),
        "interactive": (["-i"], PROGRAM),
    }[way]
    argv = [sys.executable, *arguments]
    done = subprocess.run(
        argv, cwd=tmp_path, input=given, capture_output=True, text=True, check=False
    )
    assert done.stdout == "the program begins\nTrue\n", done.stderr


def test_options_of_the_interpreter_hold_in_workers_too():
    program = (
        "from epsilometer.engine import open_runner\n"
        "runner = open_runner(2)\n"
        "print(__debug__, set(runner.map(lambda _: __debug__, range(4))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-O", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False {False}\n"


def test_what_a_mechanism_prints_is_seen():
    program = (
        "from epsilometer.engine import open_runner\n"
        # Each in one piece: the pieces of two workers would mix.
        "list(open_runner(2).map(lambda task: print(f'task {task}\\n', end=''), range(3)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.split("\n")) == ["", "task 0", "task 1", "task 2"]


BUSY = """
import os, sys, time, warnings
warnings.simplefilter("error")
from epsilometer.engine import open_runner

def forever(task):
    open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
    time.sleep(1000 if task else 0)

tasks = open_runner(2).map(forever, range(8))
next(tasks)
"""


class TestTheEndOfTheProgram:
    @pytest.fixture
    def start(self, tmp_path, warm_python):
        folder = tmp_path / "workers"
        folder.mkdir()

        def start(ending):
            program = warm_python.start("-c", BUSY + ending, folder)
            return program, lambda: [int(path.name) for path in folder.iterdir()]

        return start

    @pytest.mark.parametrize(
        "ending", ["", "tasks.close()", "import gc; del tasks; gc.collect()", "sys.exit(0)"]
    )
    def test_it_does_not_wait_for_workers(self, start, ending):
        process, workers = start(ending)
        said = process.communicate()
        assert (process.returncode, *said) == (0, "", "")
        wait_until(lambda: not any(map(is_running, workers())))

    def test_an_interrupt_leaves_no_workers(self, start):
        process, workers = start("next(tasks)")
        wait_until(lambda: len(workers()) == 2)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate()[1]
        wait_until(lambda: not any(map(is_running, workers())))

    def test_an_interrupt_from_the_terminal_reaches_workers_too(self, start):
        ending = "import signal\nos.setpgid(0, 0)\nprint('waiting', flush=True)\nnext(tasks)"
        process, workers = start(
            ending.replace("next(tasks)", "os.killpg(0, signal.SIGINT); next(tasks)")
        )
        complaint = process.communicate()[1]
        assert complaint.count("KeyboardInterrupt") == 1, (
            complaint
        )  # the program's; workers say nothing
        wait_until(lambda: not any(map(is_running, workers())))

    def test_audits_go_on_after_an_interrupt(self, start):
        ending = (
            "import signal, threading\n"
            "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try: next(tasks)\n"
            "except KeyboardInterrupt: print(list(open_runner(2).map(abs, range(9))) == list(range(9)))\n"
        )
        process, _ = start(ending)
        assert process.communicate() == ("True\n", "")


FORK = """
import os, sys, time
from epsilometer.engine import open_runner

def pid(task):
    time.sleep(0.01)
    return os.getpid()

runner = open_runner(2)
before = set(runner.map(pid, range(20)))
under_way = runner.map(pid, range(20))
next(under_way)
child = os.fork()
mine = set(runner.map(pid, range(20)))
assert len(list(under_way)) == 19
if not child:
    assert not mine & before, "a fork took the workers of its parent"
    sys.exit(0)
status = os.waitpid(child, 0)[1]
runner.close()
print(status, mine <= before, set(open_runner(2).map(pid, range(20))) <= before)
"""


def test_a_fork_of_the_program_has_workers_of_its_own():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0 True True\n", "")


def test_a_worker_that_dies_while_its_task_is_being_sent_loses_it(tmp_path, monkeypatch):
    """On a busy machine a worker may be dead before the call that gave it its task returns."""

    class DiesOnce:
        """Work that kills its worker the first time, and is told which tasks were lost."""

        is_unseeded = True

        def __init__(self, folder):
            self.folder = folder
            self.lost = []

        def __call__(self, task):
            if not (self.folder / "died").exists():
                (self.folder / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return task

        def lose(self, task):
            self.lost.append(task)

    work = DiesOnce(tmp_path)
    exchange = local_pool.local_worker.exchange

    def late_exchange(workers, seconds):
        for worker in workers:
            # The worker has died of its task before the call that gave it returns.
            while (
                worker.out and worker.process.poll() is None and not (tmp_path / "again").exists()
            ):
                exchange(workers, 0.01)
        (tmp_path / "again").touch()
        return exchange(workers, seconds)

    monkeypatch.setattr(local_pool.local_worker, "exchange", late_exchange)
    with closing(PoolRunner(LocalPool(1))) as runner:
        assert list(runner.map(work, [7])) == [7]
    assert work.lost == [7]


FORK_AND_ANSWER = """
(
    (child := __import__("os").fork()) or __import__("time").sleep(600),
    str(child).encode(),
)[1]
"""


@pytest.mark.parametrize("attempt", range(5))
def test_what_an_idle_worker_has_forked_ends_with_the_program(attempt):
    """Whichever of its threads notices first that the program is gone: both wait for that between two tasks."""
    worker = Worker({})
    ticket = Ticket(number=1, message=pickle.dumps((eval, FORK_AND_ANSWER)))
    worker.give(ticket)
    while ticket.answer is None:
        assert not exchange([worker], seconds=1.0)
    child = int(ticket.answer)
    assert is_running(child)
    worker.channel.close()  # as when the program is killed: nobody calls `worker.end`
    worker.process.wait()
    wait_until(lambda: not is_running(child))
