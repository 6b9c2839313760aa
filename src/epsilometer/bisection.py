"""Halves a bracket so that the answer errs on the safe side."""

from __future__ import annotations

from collections.abc import Callable


def rejected_end(rejects: Callable[[float], bool], rejected: float, kept: float, halvings: int) -> float:
    """The value closest to `kept` that was seen to be rejected; `rejected` itself if no other was.

    A bound must be a value that was tested, not a root between a rejected and a kept one, as solvers return.

    Args:
        rejects: on the way from `rejected` to `kept` it changes once from true to false.
        rejected: the end that is known to be rejected, whether it is the lower or the upper one.
        kept: the other end.
        halvings: how often the bracket is halved.
    """
    for _ in range(halvings):
        middle = 0.5 * (rejected + kept)
        if rejects(middle):
            rejected = middle
        else:
            kept = middle
    return rejected
