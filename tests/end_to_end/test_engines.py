"""Audits on real workers: processes, a Dask scheduler with its workers, a Ray head; and what happens when they die."""

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest

import epsilometer as em
from epsilometer.engine import Phase, open_runner
from epsilometer.engine.clusters import DaskPool
from epsilometer.engine.task_serialization import Fault

HOST = "127.0.0.1"
# Without a dashboard Dask still serves pages about itself, and by default to everybody.
NO_PAGES = ("--no-dashboard", "--dashboard-address", f"{HOST}:0")
TOOLS = Path(sys.executable).parent
# How a Ray head is kept to this machine: the loopback address, and a password that only this run knows.
RAY_SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
    # The child that Ray forks for a client would now and then die of gRPC's own handlers of forks.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "3",
}


def free_ports(n):
    """Distinct ones: all are held until the last is found."""
    with_ports = [socket.create_server((HOST, 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in with_ports]
    for each in with_ports:
        each.close()
    return ports


def wait_for_port(port, process):
    """Until somebody listens; the time limit of the test ends this wait if nobody ever does."""
    while process.poll() is None:
        with suppress(OSError):
            socket.create_connection((HOST, port)).close()
            return
        time.sleep(0.1)
    pytest.fail(f"{process.args} ended with status {process.returncode}")


@contextmanager
def started(argv, log, environment=None):
    """A program in a group of its own. It is asked to end what it has started; what is left of the group is killed."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(part) for part in argv],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def listening(group):
    """The addresses at which the processes of a group listen, as the system writes them (Linux)."""
    sockets = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                sockets |= {os.readlink(each) for each in (process / "fd").iterdir()}
    rows = [
        row.split()
        for name in ("tcp", "tcp6")
        for row in Path("/proc/net", name).read_text().splitlines()[1:]
    ]
    return {
        row[1].partition(":")[0]
        for row in rows
        if row[3] == "0A" and f"socket:[{row[9]}]" in sockets
    }


@contextmanager
def dask_cluster(folder, port, name="dask", n_workers=1):
    scheduler = [TOOLS / "dask", "scheduler", "--host", HOST, "--port", port, *NO_PAGES]
    sizes = ["--nworkers", n_workers, "--nthreads", 1, "--memory-limit", 0, "--death-timeout", 30]
    workers = [TOOLS / "dask", "worker", f"tcp://{HOST}:{port}", "--host", HOST, *sizes, *NO_PAGES]
    with started(scheduler, folder / f"{name}-scheduler.log") as process:
        wait_for_port(port, process)
        with started(
            [*workers, "--local-directory", folder / name], folder / f"{name}-workers.log"
        ) as others:
            process.others = others
            yield process


@contextmanager
def ray_head(folder, port):
    # Unix sockets have short names, and Ray makes them below its folder.
    short = Path("/tmp") / f"eps-ray-{os.getpid()}"
    ports = free_ports(1)
    own = [
        "--port",
        ports[0],
        "--ray-client-server-port",
        port,
        "--node-ip-address",
        HOST,
        "--num-cpus",
        2,
    ]
    lean = [
        "--object-store-memory",
        80_000_000,
        "--include-dashboard",
        "false",
        "--temp-dir",
        short,
    ]
    argv = [TOOLS / "ray", "start", "--head", "--block", "--disable-usage-stats", *own, *lean]
    try:
        with started(argv, folder / "ray.log", RAY_SETTINGS) as process:
            wait_for_port(port, process)
            yield process
    finally:
        subprocess.run(["rm", "-rf", str(short)], check=True)


@pytest.fixture(scope="module")
def dask_scheduler(tmp_path_factory):
    (port,) = free_ports(1)
    with dask_cluster(tmp_path_factory.mktemp("dask"), port, n_workers=2) as scheduler:
        scheduler.address = f"dask://{HOST}:{port}"
        yield scheduler


@pytest.fixture(scope="module")
def dask(dask_scheduler):
    return dask_scheduler.address


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    (port,) = free_ports(1)
    with pytest.MonkeyPatch.context() as patch, ray_head(tmp_path_factory.mktemp("ray"), port):
        for name, value in RAY_SETTINGS.items():
            patch.setenv(name, value)
        yield f"ray://{HOST}:{port}"


@pytest.fixture(scope="module")
def connected_ray(ray):
    """A connection of the program's own: making one takes seconds."""
    import ray as package

    for left in (2, 1, 0):
        try:
            package.init(ray, log_to_driver=False)
            break
        except (
            ConnectionError
        ):  # on a busy machine Ray's own patience of half a minute may not be enough
            if not left:
                raise
    yield "ray://auto"
    assert package.is_initialized()  # no audit has closed it
    package.shutdown()


ENGINES = [("local", ()), ("dask", pytest.mark.slow), ("connected_ray", pytest.mark.slow)]


@pytest.fixture(params=[pytest.param(name, marks=marks) for name, marks in ENGINES])
def engine(request):
    """Keywords of an audit on each engine."""
    if request.param == "local":
        return {"jobs": 2}
    return {"engine": request.getfixturevalue(request.param)}


def slow_laplace(seconds=0.0, folder=None, event=None):
    """A mechanism that takes its time, leaves the number of its process in a folder, and waits for an event: a file."""

    def noisy(dataset, rng):
        if folder is not None:
            (folder / str(os.getpid())).touch()
        while event is not None and not event.exists():
            time.sleep(0.01)
        if seconds:
            time.sleep(seconds)
        return dataset + rng.laplace()

    return noisy


def what_counts(result):
    """All that must not depend on where the draws were made, except what takes seconds to work out from it."""
    findings = [finding.to_dict() for finding in result.findings]
    return (
        result.verdict,
        result.lower_bound,
        result.guarantee,
        result.witness.to_dict(),
        findings,
        result.samples_used,
    )


class TestTheSameEverywhere:
    def test_numbers(self, engine):
        settings = {"samples": 300_000, "seed": 3}
        here = em.audit(em.zoo.laplace(epsilon=1.0), **settings)
        assert what_counts(
            em.audit(em.zoo.laplace(epsilon=1.0), **settings, **engine)
        ) == what_counts(here)

    def test_lists_of_varying_length_and_many_pairs(self, engine):
        entry = em.zoo.svt5(epsilon=1.0)
        pairs = [em.Pair([0.0, 1.0], [1.0, 0.0]), em.Pair([1.0, 1.0], [0.0, 0.0])]
        settings = {"samples": 8000, "seed": 4}
        here = em.audit(entry, pairs, entry.claim, **settings)
        assert what_counts(
            em.audit(entry, pairs, entry.claim, **settings, **engine)
        ) == what_counts(here)

    def test_early_stopping(self, engine):
        function = slow_laplace()
        settings = {"samples": 2000, "seed": 5, "stop_early": True}
        here = em.audit(function, (0.0, 2.0), em.PureDP(1.0), **settings)
        assert what_counts(
            em.audit(function, (0.0, 2.0), em.PureDP(1.0), **settings, **engine)
        ) == what_counts(here)

    def test_one_and_three_workers(self):
        function = slow_laplace()
        results = [
            what_counts(
                em.audit(function, (0.0, 1.0), em.PureDP(1.0), samples=3000, seed=6, **where)
            )
            for where in ({}, {"engine": "serial", "jobs": 2}, {"jobs": 3})
        ]
        assert results[0] == results[1] == results[2]

    def test_replay(self, engine):
        found = em.audit(em.zoo.svt5(epsilon=1.0), samples=5000, seed=0)
        runs = [
            em.replay(found, em.zoo.svt5(epsilon=1.0), samples=5000, seed=1, **where)
            for where in ({}, engine)
        ]
        assert what_counts(runs[0]) == what_counts(runs[1])


class Killer(threading.Thread):
    """Kills workers at random moments: processes that have left their number in a folder."""

    def __init__(self, folder, rng, kills, event):
        super().__init__(daemon=True)
        self.folder, self.rng, self.left, self.event = folder, rng, kills, event
        self.killed = []
        self.is_over = threading.Event()

    def run(self):
        while self.left and not self.is_over.wait(self.rng.uniform(0.1, 0.5)):
            alive = [
                int(each.name)
                for each in self.folder.iterdir()
                if int(each.name) not in self.killed
            ]
            if alive:
                victim = int(self.rng.choice(alive))
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    self.left -= 1
                    self.event.touch()
                self.killed.append(victim)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


class TestFaults:
    def test_workers_that_are_killed_change_nothing(self, engine, tmp_path, rng):
        settings = {"samples": 10_000, "seed": 7}
        here = em.audit(slow_laplace(), (0.0, 1.0), em.PureDP(0.5), **settings)
        folder, first_kill = tmp_path / "workers", tmp_path / "killed"
        folder.mkdir()
        mechanism = em.from_callable(
            slow_laplace(0.0003, folder, first_kill), name=here.settings["mechanism"]
        )
        with Killer(folder, rng, 3, first_kill):
            there = em.audit(mechanism, (0.0, 1.0), em.PureDP(0.5), **settings, **engine)
        assert what_counts(there) == what_counts(here)

    def test_a_mechanism_that_ends_its_process(self, engine):
        def deadly(dataset):
            os._exit(3)

        with pytest.raises(em.EngineError, match=r"work was lost .*deadly on the input 1[78]"):
            em.audit(deadly, (17, 18), em.PureDP(1.0), samples=600, **engine)

    def test_what_was_done_before_an_engine_gave_up_is_kept(self, engine, tmp_path):
        deadly, calls = tmp_path / "deadly", []

        def mechanism(dataset, rng):
            if deadly.exists() and rng.bit_generator.seed_seq.spawn_key == (Phase.CERTIFY, 0, 1, 3):
                os._exit(3)  # in the fourth block of right draws that prove
            calls.append(dataset)
            return dataset + rng.laplace()

        settings = {"samples": 2000, "seed": 9, "stop_early": False}
        here = em.audit(mechanism, (0.0, 1.0), em.PureDP(0.5), **settings)
        assert calls.count(0.0) == calls.count(1.0) == 2000
        deadly.touch()
        calls.clear()  # it is part of what the mechanism is, and must be the same when the audit goes on
        checkpoint = tmp_path / "audit.checkpoint"
        with pytest.raises(em.EngineError, match=r"on the input 1\.0"):
            em.audit(
                mechanism, (0.0, 1.0), em.PureDP(0.5), **settings, checkpoint=checkpoint, **engine
            )
        deadly.unlink()
        calls.clear()
        again = em.audit(mechanism, (0.0, 1.0), em.PureDP(0.5), **settings, checkpoint=checkpoint)
        assert what_counts(again) == what_counts(here)
        proving = 2000 - 600  # 30 % of an audit of this size learn
        three_blocks = 1 + 1 + 2  # blocks of slow functions grow from one call on
        assert calls.count(1.0) == proving - three_blocks
        assert calls.count(0.0) in (
            proving - three_blocks,
            proving - three_blocks - 4,
        )  # who begins a block is chance

    def test_a_failing_mechanism_is_not_tried_again(self, engine, tmp_path):
        def failing(dataset, rng):
            with (tmp_path / "begun").open("a") as file:
                file.write(f"{rng.random()}\n")  # tells which chunk this is
            raise ValueError("never works")

        with pytest.raises(em.MechanismError, match=r"on the input [01].*never works"):
            em.audit(failing, (0, 1), em.PureDP(1.0), samples=5000, **engine)
        begun = (tmp_path / "begun").read_text().split()
        assert 1 <= len(begun) == len(set(begun))

    def test_draws_that_die_with_a_worker_are_counted(self, engine, tmp_path):
        """Without a seed, what replaces them is something else; Dask runs them again without being asked."""

        def toss(dataset):
            with (tmp_path / str(dataset)).open("a") as file:
                file.write("x")
            n = sum(
                path.stat().st_size for path in (tmp_path / "0", tmp_path / "1") if path.exists()
            )
            if n >= 100 and not (tmp_path / "killed").exists():
                (tmp_path / "killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return secrets.randbits(1)

        result = em.audit(toss, (0, 1), em.PureDP(0.1), samples=400, seed=0, **engine)
        begun = [(tmp_path / name).stat().st_size for name in ("0", "1")]
        lost = [n - used for n, used in zip(begun, result.samples_used, strict=True)]
        assert sum(lost) >= 1
        assert all(
            counted >= n for counted, n in zip(result.settings["redrawn"], lost, strict=True)
        )

    def test_a_mechanism_that_tries_to_end_the_program(self, engine):
        def leaving(dataset):
            sys.exit(3)

        with pytest.raises(em.MechanismError, match=r"SystemExit on the input [01]: '3'"):
            em.audit(leaving, (0, 1), em.PureDP(1.0), samples=600, **engine)

    @pytest.mark.parametrize(
        ("engine", "stop_early"),
        [
            ("local", False),
            ("local", True),
            pytest.param("dask", False, marks=pytest.mark.slow),
            pytest.param("connected_ray", True, marks=pytest.mark.slow),
        ],
        indirect=["engine"],
    )
    def test_a_call_that_hangs_ends_when_the_time_is_up(self, engine, tmp_path, stop_early):
        here = tmp_path / "hangs"

        def hanging(dataset, rng):
            if rng.bit_generator.seed_seq.spawn_key[0] == Phase.CERTIFY and rng.random() < 0.02:
                here.write_text(str(os.getpid()))
                time.sleep(600)
            return dataset + rng.laplace()

        wishes = {"samples": 2000, "seed": 0, "stop_early": stop_early, **engine}
        for seconds in (
            4.0,
            8.0,
            16.0,
            32.0,
        ):  # on a busy machine, it may take longer to come to the call that hangs
            result = error = None
            try:
                result = em.audit(hanging, (17, 18), em.PureDP(3.0), max_seconds=seconds, **wishes)
            except em.MechanismError as raised:
                error = raised
            if here.exists():
                break
        if stop_early:
            assert result.findings[0].details["stopped"] == "seconds", error
            assert any("hanging on the input 1" in report.message for report in result.health)
        else:
            assert re.search(
                rf"max_seconds={seconds:g} .*hanging on the input 1[78].* draws", str(error)
            ), result
        while is_running(int(here.read_text())):  # the worker is ended, not the task
            time.sleep(0.1)


ORPHANS = """
import os, sys, time
import epsilometer as em

def slow(dataset, rng):
    open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
    time.sleep(0.01)
    return dataset + rng.laplace()

if __name__ == "__main__":
    em.audit(slow, (0.0, 1.0), em.PureDP(1.0), samples=100_000, jobs=2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="looks for its parent as POSIX has them")
def test_local_workers_end_with_a_program_that_was_killed(tmp_path):
    (tmp_path / "program.py").write_text(ORPHANS, encoding="utf-8")
    folder = tmp_path / "workers"
    folder.mkdir()
    program = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(folder)], stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: len(list(folder.iterdir())) == 2)
    finally:
        program.kill()
        program.wait()
    for worker in (int(path.name) for path in folder.iterdir()):
        wait_until(lambda worker=worker: not is_running(worker))


def wait_until(condition):
    """Waits for an event; the time limit of the test ends this wait if it never comes."""
    while not condition():
        time.sleep(0.02)


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that has ended but was not waited for by its new parent is a zombie.
    return (
        Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        != "Z"
    )


def importable_here(dataset, rng):
    return rng.random()


class TestWhatIsSent:
    def test_work_is_unpacked_once_per_worker(self, engine, tmp_path):
        class Heavy:
            def __init__(self, folder):
                self.folder = folder

            def __setstate__(self, state):
                self.__dict__.update(state)
                (self.folder / secrets.token_hex(8)).touch()

            def __call__(self, task):
                return task

        runner = open_runner(**{"jobs": 2, **engine})
        try:
            assert list(runner.map(Heavy(tmp_path), range(40))) == list(range(40))
        finally:
            runner.close()
        # Ray starts workers as it likes.
        assert 1 <= len(list(tmp_path.iterdir())) <= (2 if "ray" not in str(engine) else 4)

    def test_endless_tasks(self, engine):
        runner = open_runner(**{"jobs": 2, **engine})
        try:
            assert list(islice(runner.map(lambda task: 2 * task, count()), 50)) == list(
                range(0, 100, 2)
            )
        finally:
            runner.close()

    def test_inputs_may_be_changed_by_the_mechanism(self, engine):
        def greedy(dataset, rng):
            dataset[0] += 1.0  # some engines would hand over arrays that cannot be written
            return float(rng.random() < 0.5)

        large = np.zeros(300_000)
        em.audit(greedy, (large, large + 1), em.PureDP(1.0), samples=100, **engine)

    def test_what_cannot_be_sent(self, engine):
        lock = threading.Lock()

        def locked(dataset, rng):
            with lock:
                return rng.random()

        with pytest.raises(
            em.InputError, match=r"(jobs|engine)=.* cannot be sent to worker processes .*lock"
        ):
            em.audit(locked, (0, 1), em.PureDP(1.0), samples=600, **engine)

    def test_a_module_that_workers_cannot_import(self, engine):
        # This file is imported by pytest under a name that nobody else finds.
        with pytest.raises(
            em.InputError, match=r"(jobs|engine)=.* cannot make out .*install its module"
        ):
            em.audit(importable_here, (0, 1), em.PureDP(1.0), samples=600, **engine)


class TestConnections:
    @pytest.mark.slow
    def test_whatever_dask_stumbles_over_is_a_fault(self, dask):
        # Seen when a worker died while it was sent its work: the scheduler handed on a KeyError of its own.
        pool = DaskPool(dask)
        pool.open()
        try:
            with pytest.raises(Fault, match=r"KeyError.*a worker that is gone"):
                pool._guarded(
                    lambda: pool._client.run_on_scheduler(lambda: {}["a worker that is gone"])
                )
        finally:
            pool.close()

    @pytest.mark.slow
    def test_a_client_of_dask_stays_open(self, dask):
        from distributed import Client

        with Client(dask.replace("dask", "tcp"), set_as_default=False) as client:
            for _ in range(2):
                result = em.audit(em.zoo.laplace(epsilon=1.0), samples=2000, seed=0, engine=client)
            assert client.submit(sum, [1, 2]).result() == 3
        assert result.settings["engine"] == dask.replace("dask://", "dask at tcp://")
        assert em.AuditResult.from_json(result.to_json()).settings == result.settings

    @pytest.mark.slow
    def test_our_connections_are_closed(self, dask):
        from distributed import Client

        def clients(dask_scheduler):
            return [name for name in dask_scheduler.clients if name.startswith("Client-")]

        with Client(dask.replace("dask", "tcp"), set_as_default=False) as client:
            before = client.run_on_scheduler(clients)
            em.audit(em.zoo.laplace(epsilon=1.0), samples=2000, seed=0, engine=dask)
            with pytest.raises(em.MechanismError):
                em.audit(lambda dataset: [][1], (0, 1), em.PureDP(1.0), samples=2000, engine=dask)
            assert client.run_on_scheduler(clients) == before

    @pytest.mark.slow
    def test_another_cluster_than_the_one_that_is_connected(self, connected_ray):
        with pytest.raises(em.InputError, match=r"connected .* already; use engine='ray://auto'"):
            em.audit(em.zoo.laplace(epsilon=1.0), samples=100, engine="ray://there:10001")

    @pytest.mark.slow
    def test_our_connection_to_ray_is_closed(self, ray):
        program = (
            "import epsilometer as em, ray\n"
            "run = {'samples': 2000, 'seed': 0}\n"
            f"there = em.audit(em.zoo.laplace(epsilon=1.0), engine={ray!r}, **run)\n"
            "here = em.audit(em.zoo.laplace(epsilon=1.0), **run)\n"
            "print(here.witness.counts == there.witness.counts, ray.is_initialized())\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert done.stdout == "True False\n", done.stderr

    @pytest.mark.slow
    def test_a_scheduler_that_comes_back_and_then_goes_away(self, tmp_path, monkeypatch):
        (port,) = free_ports(1)
        settings = {"samples": 5000, "seed": 8}
        here = em.audit(slow_laplace(), (0.0, 1.0), em.PureDP(0.5), **settings)
        begun = tmp_path / "begun"
        begun.mkdir()
        mechanism = em.from_callable(slow_laplace(0.0003, begun), name=here.settings["mechanism"])
        found = []

        def audit():
            found.append(
                em.audit(
                    mechanism, (0.0, 1.0), em.PureDP(0.5), engine=f"tcp://{HOST}:{port}", **settings
                )
            )

        # So long may the second one take to start: on a busy machine, starting takes as long as it takes.
        monkeypatch.setattr("epsilometer.engine.clusters._CONNECT_SECONDS", 250)
        thread = threading.Thread(target=audit)
        with dask_cluster(tmp_path, port, "first") as scheduler:
            thread.start()
            wait_until(lambda: list(begun.iterdir()))
            scheduler.kill()
        with dask_cluster(tmp_path, port, "second") as scheduler:
            thread.join()
            assert what_counts(found[0]) == what_counts(here)
            monkeypatch.setattr("epsilometer.engine.clusters._CONNECT_SECONDS", 5)
            again = tmp_path / "again"
            again.mkdir()

            def kill_when_begun():
                wait_until(lambda: list(again.iterdir()))
                scheduler.kill()

            thread = threading.Thread(target=kill_when_begun, daemon=True)
            thread.start()
            mechanism = slow_laplace(folder=again, event=tmp_path / "never")
            with pytest.raises(em.EngineError, match="is gone"):
                em.audit(
                    mechanism, (0, 1), em.PureDP(1.0), samples=5000, engine=f"tcp://{HOST}:{port}"
                )
            thread.join()

    @pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")
    @pytest.mark.slow
    def test_nobody_listens_beyond_this_machine(self, dask, dask_scheduler):
        em.audit(em.zoo.laplace(epsilon=1.0), samples=100, engine=dask)  # so the workers are up
        assert listening(dask_scheduler.pid) | listening(dask_scheduler.others.pid) == {
            "0100007F"
        }  # 127.0.0.1

    @pytest.mark.slow
    def test_a_scheduler_without_workers(self, tmp_path, monkeypatch):
        monkeypatch.setattr("epsilometer.engine.clusters._WORKER_SECONDS", 1)
        (port,) = free_ports(1)
        argv = [TOOLS / "dask", "scheduler", "--host", HOST, "--port", port, *NO_PAGES]
        with started(argv, tmp_path / "scheduler.log") as process:
            wait_for_port(port, process)
            with pytest.raises(
                em.EngineError, match=f"no workers.*dask worker tcp://{HOST}:{port}"
            ):
                em.audit(em.zoo.laplace(epsilon=1.0), samples=100, engine=f"dask://{HOST}:{port}")

    @pytest.mark.slow
    def test_the_command_line(self, dask, tmp_path):
        stored = [tmp_path / "here.json", tmp_path / "there.json"]
        for path, more in zip(stored, ([], ["--engine", dask]), strict=True):
            argv = [
                "audit",
                "zoo:svt5",
                "--epsilon",
                "1",
                "--samples",
                "3000",
                "--seed",
                "0",
                "--json",
                path,
                *more,
            ]
            done = subprocess.run(
                [TOOLS / "epsilometer", *argv], capture_output=True, text=True, check=False
            )
            assert done.returncode == 1, done.stderr
        here, there = (em.AuditResult.from_json(path.read_text()) for path in stored)
        assert what_counts(here) == what_counts(there)
