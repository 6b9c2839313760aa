"""Patterns of query answers that tell much about counting mechanisms.

Reference: Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy", Table 1: answers all 1
against answers 0, 1 and 2, for five queries.
"""

from __future__ import annotations

from collections.abc import Callable

Steps = list[int]
# Per pattern the answers of the left and of the right dataset for so many queries, in steps away from a level.
PATTERNS: dict[str, Callable[[int], tuple[Steps, Steps]]] = {
    "one above": lambda k: ([0] * k, [1] + [0] * (k - 1)),
    "one below": lambda k: ([0] * k, [-1] + [0] * (k - 1)),
    "one above, rest below": lambda k: ([0] * k, [1] + [-1] * (k - 1)),
    "one below, rest above": lambda k: ([0] * k, [-1] + [1] * (k - 1)),
    "half below, half above": lambda k: ([0] * k, [-1] * ((k + 1) // 2) + [1] * (k // 2)),
    "all above": lambda k: ([0] * k, [1] * k),
    "all below": lambda k: ([0] * k, [-1] * k),
    "x shape": lambda k: ([0] * (k // 2) + [-1] * (k - k // 2), [-1] * (k // 2) + [0] * (k - k // 2)),
}


def farthest(left: Steps, right: Steps) -> int:
    """The most that one answer moves, in steps."""
    return max(abs(one - two) for one, two in zip(left, right, strict=True))


def moved_in_all(left: Steps, right: Steps) -> int:
    """What all answers move together, in steps."""
    return sum(abs(one - two) for one, two in zip(left, right, strict=True))
