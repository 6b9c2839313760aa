"""`epsilometer verify`."""

from __future__ import annotations

from typing import Annotated

import typer


def verify(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="What --json wrote.")],
    recording: Annotated[
        str | None,
        typer.Option(
            "--recording",
            metavar="FILE",
            help="The draws of the audit, as record='FILE.jsonl' kept them.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Check a stored result without trusting the code that made it.

    Recomputes from the stored counts whether the bound holds at its confidence, and whether everything in the file
    agrees. With --recording the event is counted again on the draws. The checker is one file that needs nothing but
    Python: epsilometer/checker.py.

    Exit status: 0 the result holds, 1 it does not, 2 it cannot be checked.

    Examples:
      epsilometer audit zoo:svt5 --epsilon 1 --json result.json
      epsilometer verify result.json
      epsilometer verify result.json --recording draws.jsonl
    """
    from epsilometer.checker import main

    return main([result] if recording is None else [result, "--recording", recording])
