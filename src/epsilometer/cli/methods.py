"""`epsilometer methods`."""

from __future__ import annotations


def methods() -> int:
    """List the methods that --method takes."""
    from epsilometer.cli.listing import print_rows
    from epsilometer.methods.registry import find_method, names

    rows = []
    for name in names():
        method = find_method(name)
        rows.append((name, method.guarantee, method.summary))
    print_rows(("name", "guarantee", "summary"), rows)
    return 0
