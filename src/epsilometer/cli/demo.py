"""`epsilometer demo`."""

import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from epsilometer.result import AuditResult

REPORT = "epsilometer-report.html"
# Any seed will do; with a fixed one everybody sees the same figures.
_SEED = 0
_SAMPLES = 100_000


# What is audited, and two sentences about it.
ACTS = {
    "zoo:laplace": (
        "A correct mechanism: a count with Laplace noise of scale 1, which promises ε = 1. "
        "No audit can prove that, but it would have noticed a true ε of 1.11 or more, "
        "nine times in ten."
    ),
    "zoo:dp_mean": (
        "A broken mechanism: a mean with half the noise that its promise of ε = 1 needs. "
        "The audit, which can only run it, finds the outputs that give it away."
    ),
}


def demo() -> int:
    """Audit a correct and a broken mechanism, and write a report.

    Takes a few seconds, needs no network, and writes epsilometer-report.html into the current
    folder.
    """
    from epsilometer.cli.output import Answers, writable
    from epsilometer.storage.writing import write_whole

    writable(REPORT, "the report", Answers())
    console = None
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console()
    results = [perform(target, number, console) for number, target in enumerate(ACTS, start=1)]
    say("Writing the report…", console)
    from epsilometer.report.html import render_page

    write_whole(REPORT, render_page(results, "A correct and a broken mechanism"))
    say(f"The report with both results: {REPORT}", console)
    say("Next: epsilometer audit --help", console)
    return 0


def perform(target: str, number: int, console: "Console | None") -> "AuditResult":
    """Explains one audit, runs it, and shows its result."""
    from epsilometer.auditing.public import audit
    from epsilometer.cli.targets import open_target
    from epsilometer.report.text import show_result

    say(f"{number}. {ACTS[target]}", console)
    say("", console)
    result = audit(open_target(target), samples=_SAMPLES, seed=_SEED)
    result = replace(result, settings={**result.settings, "target": target})
    show_result(result, console)
    say("", console)
    return result


def say(text: str, console: "Console | None") -> None:
    """Prints a paragraph."""
    if console is None:
        sys.stdout.write("\n".join(textwrap.wrap(text, 100, break_on_hyphens=False)) + "\n")
    else:
        console.print(text, markup=False, highlight=False, width=min(104, console.width))
