"""Fresh Python processes with compiled bytecode, whatever the machine's settings."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from functools import cache
from tempfile import TemporaryDirectory


@cache
def _bytecode_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="epsilometer-bench-")


def run_fresh(code: str) -> float:
    """Runs code in a new process and returns the number that it prints last."""
    return float(_run(["-c", code]).split()[-1])


def peak_memory() -> int:
    """Bytes of memory that this process held at most: the kernel's own mark. ru_maxrss begins with the parent's."""
    try:
        with open("/proc/self/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )


def start_fresh(arguments: list[str]) -> float:
    """The seconds that a new Python process with these arguments takes, by the clock."""
    began = time.perf_counter()
    _run(arguments)
    return time.perf_counter() - began


def _run(arguments: list[str]) -> str:
    """Runs Python with these arguments and returns what it printed.

    PYTHONDONTWRITEBYTECODE would make every process compile our sources again, which an installed package never does.
    So it is unset here and all bytecode goes to a temporary folder: ours, NumPy's and SciPy's alike.
    """
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    environment["PYTHONPYCACHEPREFIX"] = _bytecode_folder().name
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the benchmark process failed:\n{done.stderr}")
    return done.stdout
