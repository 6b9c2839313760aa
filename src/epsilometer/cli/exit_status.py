"""Exit statuses of the command line."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What the exit status of a command says."""

    NOT_REFUTED = 0
    REFUTED = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    # By which shells report SIGINT and SIGPIPE.
    INTERRUPTED = 130
    BROKEN_PIPE = 141
