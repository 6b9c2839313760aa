"""The command line. `main` is the console script; each command has its own file and imports what it needs late."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: what follows the program's name; None takes them from `sys.argv`.

    Returns:
        The exit status: 0 not refuted or measured, 1 refuted, 2 bad usage, input or mechanism, 3 inconclusive,
        130 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:  # answered before anything slow is imported
        from epsilometer.environment import package_version

        sys.stdout.write(f"epsilometer {package_version()}\n")
        return 0
    from epsilometer.cli.application import run_command

    return run_command(given)
