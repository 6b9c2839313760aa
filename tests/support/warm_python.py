"""Programs that begin where a fresh one has imported everything: forks of one process that waits for them.

Most of the time of a short audit on the command line goes into importing NumPy and SciPy. Where a test is about what
the command does, and not about how it starts, it runs in such a fork: a process with its own folder, environment,
streams and search path, which may crash or exit as it likes. The first worker processes that it asks for (`--jobs`) are
forks, too, made before it has done anything.
"""

import gc
import importlib
import io
import json
import os
import random
import resource
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress


class WarmProgram:
    """A program that was started; used like `subprocess.Popen`."""

    def __init__(self, told: socket.socket, readers: dict[str, int]) -> None:
        self._told = told.makefile("rb", buffering=0)
        told.close()
        self._readers = readers
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def poll(self) -> int | None:
        if self.returncode is None and not select.select([self._told], [], [], 0)[0]:
            return None
        return self.wait()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self) -> tuple[str | None, str | None]:
        """What it writes until nobody holds the other ends of its pipes any more."""
        found = {name: bytearray() for name in self._readers}
        with selectors.DefaultSelector() as selector:
            for name, reader in self._readers.items():
                selector.register(reader, selectors.EVENT_READ, name)
            while selector.get_map():
                for key, _ in selector.select():
                    piece = os.read(key.fd, 1 << 16)
                    found[key.data] += piece
                    if not piece:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        self._readers = {}
        self.wait()
        texts = {name: content.decode() for name, content in found.items()}
        return texts.get("stdout"), texts.get("stderr")


class WarmPython:
    """Stands for the interpreter: `run` and `start` take what follows its name."""

    def __init__(self) -> None:
        self._process = self._wire = None

    def start(
        self,
        *arguments: object,
        cwd=None,
        env=None,
        stdout=None,
        stderr=None,
        start_new_session=False,
        file_size=None,
    ) -> WarmProgram:
        """Starts `-m module …` or `-c code …`; what it writes goes to pipes, or to open files if they are given.

        No file that it writes can be larger than `file_size`.
        """
        request = {
            "argv": [str(each) for each in arguments],
            "cwd": str(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
            "leads": start_new_session,
            "file_size": file_size,
        }
        readers, sent = {}, []
        for name, file in (("stdout", stdout), ("stderr", stderr)):
            if file is None:
                readers[name], writer = os.pipe()
            else:
                writer = os.dup(_number(file))
            sent.append(writer)
        here, there = socket.socketpair()
        content = json.dumps(request).encode()
        wire = self._connect()
        socket.send_fds(wire, [len(content).to_bytes(8, "big")], [*sent, there.fileno()])
        wire.sendall(content)
        there.close()
        for writer in sent:
            os.close(writer)
        return WarmProgram(here, readers)

    def run(self, *arguments: object, **settings: object) -> subprocess.CompletedProcess:
        """Runs a program to its end, like `subprocess.run`."""
        try:
            program = self.start(*arguments, **settings)
            said = program.communicate()
        except BaseException:  # above all the time limit of a test: what hangs ends here
            self.close()
            raise
        return subprocess.CompletedProcess(list(arguments), program.returncode, *said)

    def _connect(self) -> socket.socket:
        if self._process is None:
            self._wire, there = socket.socketpair()
            command = [sys.executable, __file__, str(there.fileno())]
            nothing = subprocess.DEVNULL
            self._process = subprocess.Popen(
                command, pass_fds=[there.fileno()], stdin=nothing, start_new_session=True
            )
            there.close()
        return self._wire

    def close(self) -> None:
        """Ends the process, and the programs that were started from it and are still there."""
        if self._process is not None:
            self._wire.close()
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = self._wire = None


def _number(file: object) -> int:
    if file == subprocess.DEVNULL:
        return _nothing.fileno()
    return file if isinstance(file, int) else file.fileno()


_nothing = open(os.devnull, "r+b", buffering=0)  # noqa: SIM115  # open as long as there may be programs


def serve(channel: int) -> Sequence[str]:
    """Waits for programs and forks for each. In a fork it returns what follows the interpreter's name."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for programs
    with socket.socket(fileno=channel) as wire, wire.makefile("rb") as stream:
        while True:
            head, descriptors, *_ = socket.recv_fds(wire, 8, 3)
            if not head:
                os._exit(0)
            request = json.loads(stream.read(int.from_bytes(head, "big")))
            if not os.fork():
                break
            for each in descriptors:
                os.close(each)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told = descriptors.pop()
    program = os.fork()
    if program:
        for each in descriptors:
            os.close(each)
        os.write(told, b"%d\n" % program)
        status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        os.write(told, b"%d\n" % status)
        os._exit(0)
    os.close(told)
    if request["leads"]:
        os.setsid()
    if request["file_size"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"],) * 2)
    for number, each in enumerate(descriptors, start=1):
        os.dup2(each, number)
        os.close(each)
    _settle(request["cwd"], request["env"])
    return request["argv"]


def _settle(folder: str, environment: dict[str, str]) -> None:
    """Makes the surroundings of a fork those of a fresh interpreter."""
    import numpy as np

    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    wanted = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:] = ["", *wanted, *(each for each in sys.path[1:] if each not in known)]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    importlib.invalidate_caches()
    encoding = environment.get("PYTHONIOENCODING") or "utf-8"
    sys.stdout = sys.__stdout__ = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding, "backslashreplace", closefd=False)  # noqa: SIM115
    random.seed()
    np.random.seed()  # noqa: NPY002  # a mechanism may draw from it


def run_program(argv: Sequence[str]) -> None:
    """Runs a module or a piece of code as the main one."""
    how, what, *rest = argv
    if how == "-m":
        sys.argv[:] = [what, *rest]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = ["-c", *rest]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)


# For two workers at a time, and for those that take their place where mechanisms end them.
SPARE = 6


class SpareWorker(subprocess.Popen):
    """A child of a program that waits to become a worker of `epsilometer.engine.local_worker`."""

    def __init__(self) -> None:
        self._wire, there = socket.socketpair()
        self.args, self.stdin, self.stdout, self.stderr = "a spare worker", None, None, None
        self.returncode, self._waitpid_lock, self._child_created = None, threading.Lock(), True
        parent, self.pid = os.getpid(), os.fork()
        if not self.pid:
            self._wire.close()
            with suppress(BaseException):
                _become_worker(there, parent)
            os._exit(0)
        there.close()

    def employ(self, channel: socket.socket, *told: object) -> None:
        content = json.dumps(told).encode()
        with self._wire:
            socket.send_fds(self._wire, [len(content).to_bytes(8, "big")], [channel.fileno(), 1, 2])
            self._wire.sendall(content)


def _become_worker(wire: socket.socket, parent: int) -> None:
    import numpy as np

    from epsilometer.engine import local_worker

    os.setsid()
    with wire, wire.makefile("rb") as stream:
        head, descriptors, *_ = socket.recv_fds(wire, 8, 3)
        if not head:
            return  # nobody wanted one
        surroundings, sys.argv[:], environment = json.loads(
            stream.read(int.from_bytes(head, "big"))
        )
    channel, *streams = descriptors
    for number, each in enumerate(
        streams, start=1
    ):  # as they are now: the program may have changed them
        os.dup2(each, number)
        os.close(each)
    local_worker.settle(*surroundings)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    np.random.seed()  # noqa: NPY002
    local_worker.serve(channel, parent)


def spare_workers(argv: Sequence[str]) -> None:
    """Keeps some workers ready for a program that says it will ask for them."""
    from epsilometer.engine import local_worker

    has_workers = "--jobs" in argv and argv[argv.index("--jobs") + 1 :][:1] != ["1"]
    spare = [SpareWorker() for _ in range(SPARE if has_workers else 0)]
    start_fresh = local_worker._start

    def start(there: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen:
        if not spare:
            return start_fresh(there, environment)
        worker = spare.pop()
        worker.employ(there, local_worker.surroundings(), sys.argv, dict(environment))
        return worker

    local_worker._start = start


def load() -> None:
    """Imports what a short audit on the command line and its report import, by running one."""
    from epsilometer.cli import main

    with redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
        report = ["--html", f"{folder}/report.html", "--json", f"{folder}/result.json"]
        main(
            [
                "audit",
                "zoo:laplace",
                "--epsilon",
                "0.1",
                "--samples",
                "1000",
                "--seed",
                "0",
                *report,
            ]
        )
    gc.collect()
    gc.freeze()  # what is never looked at again is never copied


if __name__ == "__main__":
    load()
    program = serve(int(sys.argv[1]))
    spare_workers(program)
    run_program(program)
