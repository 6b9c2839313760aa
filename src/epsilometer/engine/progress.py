"""Progress: who learns how many outputs were drawn."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Learns how many outputs were drawn.

    It may also have `begin(total)` and `end()`, which are called around the work (the total is None
    when a search decides it), `tell(text)`, which receives the state of the evidence as it grows,
    and `remember(n)`, which receives in the place of `advance` how many outputs a checkpoint
    remembers: they were drawn by an earlier run, at no pace of this one.
    """

    def advance(self, n: int) -> None:
        """Receives that n more outputs of one side were drawn."""


class NoProgress:
    """Discards progress."""

    def advance(self, n: int) -> None:
        """Ignores it."""


@contextmanager
def progress_scope(progress: Progress, total: int | None) -> Iterator[None]:
    """Calls `begin` and `end` of a progress that has them."""
    begin = getattr(progress, "begin", None)
    end = getattr(progress, "end", None)
    if begin is not None:
        begin(total)
    try:
        yield
    finally:
        if end is not None:
            end()
