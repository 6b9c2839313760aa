"""The command line. `main` is the console script.

Each command has its own file and imports what it needs late.
"""

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Sequence

_BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: what follows the program's name; None takes them from `sys.argv`.

    Returns:
        The exit status: 0 not refuted or measured, 1 refuted, 2 bad usage, input or mechanism, 3
        inconclusive, 130 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not _has_streams():
        sys.stderr.write(
            "epsilometer: standard output is closed: send it to a file, a pipe or /dev/null\n"
        )
        return _BAD_INPUT
    if given == ["--version"]:  # answered before anything slow is imported
        return _print_version()
    from epsilometer.cli.application import run_command

    if arguments is not None:
        return run_command(given)
    status: list[int] = []
    atexit.register(_leave, status)  # what is registered first runs last
    status.append(run_command(given, ends_process=True))
    return status[0]


def _leave(status: list[int]) -> None:
    """Ends the program while threads of a mechanism still run.

    Python waits for none of them, and aborts if one is in the middle of printing: the exit status
    would be lost.
    """
    if status and threading.active_count() > 1:
        import ctypes

        for flush in (sys.stdout.flush, sys.stderr.flush, lambda: ctypes.CDLL(None).fflush(None)):
            with contextlib.suppress(OSError, ValueError):  # closed, or nobody listens any more
                flush()
        os._exit(status[0])


def _print_version() -> int:
    from epsilometer.environment import package_version

    try:
        sys.stdout.write(f"epsilometer {package_version()}\n")
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"epsilometer: standard output: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python tries again at exit
        return _BAD_INPUT
    return 0


def _has_streams() -> bool:
    """Returns whether there is a standard output.

    Opens the null device in the place of closed streams, or a file would be opened there.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open until the end
    return sys.stdout is not None
