"""Engines that are not there, or make no sense; those that are there have tests in tests/end_to_end/test_engines.py."""

import socket
import subprocess
import sys

import pytest

import epsilometer as em
from epsilometer.engine import SerialRunner, open_runner

HOST = "127.0.0.1"


@pytest.fixture
def port():
    """One that refuses: bound, so that nobody else gets it, but not listened at."""
    with socket.socket() as held:
        held.bind((HOST, 0))
        yield held.getsockname()[1]


def test_one_worker_needs_no_processes():
    assert isinstance(open_runner(1), SerialRunner)
    assert isinstance(open_runner(4, "serial"), SerialRunner)


def test_nothing_is_connected_to_before_the_first_task(port):
    runner = open_runner(1, f"dask://{HOST}:{port}")
    assert list(runner.map(len, [])) == []
    runner.close()


# Ray itself would try for half a minute, and then say something else.
@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        ("dask", "start one with: dask scheduler"),
        ("ray", "refused.*start one with: ray start --head"),
    ],
)
def test_nobody_there(scheme, reason, port, monkeypatch):
    monkeypatch.setattr("epsilometer.engine.clusters._CONNECT_SECONDS", 1)
    with pytest.raises(em.EngineError, match=f"{port}.*{reason}"):
        em.audit(em.zoo.laplace(epsilon=1.0), samples=100, engine=f"{scheme}://{HOST}:{port}")


@pytest.mark.parametrize(
    "engine", ["dask", "dask://", "spark://there:1", "ray://", "ray://nowhere", "", None, 7]
)
def test_addresses_that_make_no_sense(engine):
    with pytest.raises((em.InputError, em.EngineError), match="engine="):
        em.audit(em.zoo.laplace(epsilon=1.0), samples=100, engine=engine)


@pytest.mark.parametrize(("package", "extra"), [("distributed", "dask"), ("ray", "ray")])
def test_extras_that_are_not_installed(package, extra):
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import epsilometer as em\n"
        "try:\n"
        f"    em.audit(em.zoo.laplace(epsilon=1.0), engine='{extra}://127.0.0.1:1')\n"
        "except em.MissingExtraError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert {"dask": "pip install distributed", "ray": "pip install 'ray[client]'"}[
        extra
    ] in done.stdout


def test_daemons_have_no_workers_of_their_own():
    # A suite's audits run in daemon processes, which may not have children.
    program = (
        "import multiprocessing\n"
        "import epsilometer as em\n"
        "def audit(pipe):\n"
        "    pipe.send(em.audit(em.zoo.laplace(epsilon=1.0), samples=2000, seed=0, jobs=2).lower_bound)\n"
        "if __name__ == '__main__':\n"
        "    ours, theirs = multiprocessing.Pipe()\n"
        "    multiprocessing.Process(target=audit, args=(theirs,), daemon=True).start()\n"
        "    print(ours.recv() == em.audit(em.zoo.laplace(epsilon=1.0), samples=2000, seed=0).lower_bound)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
