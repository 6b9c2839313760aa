"""`epsilometer methods`."""

from __future__ import annotations


def methods() -> int:
    """List the methods that --method takes, with the names that --option takes for each."""
    from epsilometer.cli.listing import print_rows
    from epsilometer.methods.registry import find_method, names, option_names

    rows = []
    for name in names():
        method = find_method(name)
        rows.append((name, method.guarantee, method.summary, ", ".join(option_names(name))))
    print_rows(("name", "guarantee", "summary", "options"), rows)
    return 0
