"""Bisection that errs on the safe side."""

from __future__ import annotations

from collections.abc import Callable


def rejected_end(
    rejects: Callable[[float], bool], rejected: float, kept: float, halvings: int
) -> float:
    """Returns the value closest to `kept` that was tested and rejected.

    A bound must be a value that was itself tested and rejected. Root finders return a value between
    a rejected and a kept one instead.

    Args:
        rejects: tests a value. From `rejected` to `kept` it changes once, from true to false.
        rejected: the end of the bracket that is known to be rejected, be it the lower or the upper
            one. It is returned if no other value is rejected.
        kept: the other end of the bracket.
        halvings: how often the bracket is halved.
    """
    for _ in range(halvings):
        middle = 0.5 * (rejected + kept)
        if rejects(middle):
            rejected = middle
        else:
            kept = middle
    return rejected
