"""`epsilometer zoo`."""

from __future__ import annotations


def zoo() -> int:
    """List the reference mechanisms.

    Audit one with: epsilometer audit zoo:NAME. Parameters follow a question mark: "zoo:laplace?epsilon=.7".
    """
    from epsilometer import zoo as mechanisms
    from epsilometer.cli.listing import print_rows

    rows = []
    for name in mechanisms.names():
        entry = mechanisms.find(name)
        rows.append((name, entry.claim.describe(), "kept" if entry.keeps_claim else "broken", entry.summary))
    print_rows(("name", "claim", "in truth", "summary"), rows)
    return 0
