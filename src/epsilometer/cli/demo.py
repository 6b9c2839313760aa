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


# What is audited, and what is said before.
ACTS = {
    "zoo:laplace": (
        "A correct mechanism: a count with Laplace noise of scale 1, which promises ε = 1."
    ),
    "zoo:dp_mean": (
        "A broken mechanism: a mean with half the noise that its promise of ε = 1 needs. "
        "The audit, which can only run it, finds the outputs that give it away."
    ),
}
NEXT = "epsilometer audit my.py:noisy_count --left 0 --right 1 --epsilon 1"


def demo() -> int:
    """Audit a correct and a broken mechanism, and write a report.

    Takes a few seconds, needs no network, and writes epsilometer-report.html into the current
    folder.
    """
    from epsilometer.cli.output import Answers, writable
    from epsilometer.storage.writing import write_atomically

    writable(REPORT, "the report", Answers())
    console = None
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console()
    results = [perform(target, number, console) for number, target in enumerate(ACTS, start=1)]
    say("Writing the report…", console)
    from epsilometer.report.html import render_page

    write_atomically(REPORT, render_page(results, "A correct and a broken mechanism"))
    say(f"The report with both results: {REPORT}", console)
    say(f"Next, a function of your own: {NEXT}", console)
    return 0


def perform(target: str, number: int, console: "Console | None") -> "AuditResult":
    """Explains one audit, runs it, and shows its result and what it would have noticed."""
    from epsilometer.auditing.api import audit
    from epsilometer.cli.targets import open_target
    from epsilometer.report.text import show_result

    say(f"{number}. {ACTS[target]}", console)
    say("", console)
    result = audit(open_target(target), samples=_SAMPLES, seed=_SEED)
    result = replace(result, settings={**result.settings, "target": target})
    show_result(result, console)
    say("", console)
    noticed = noticed_sentence(result)
    if noticed is not None:
        say(noticed, console)
        say("", console)
    return result


def noticed_sentence(result: "AuditResult") -> str | None:
    """Returns what an audit that refuted nothing would have noticed; None if that is unknown."""
    from math import isfinite

    from epsilometer.report.formatting import figure_up

    if result.detectable is None or not isfinite(result.detectable):
        return None
    least = figure_up(result.detectable, 3)
    return (
        f"No audit can prove a promise. But if the usual outputs revealed a true ε of {least} or "
        "more, this one would have noticed it nine times in ten."
    )


def say(text: str, console: "Console | None") -> None:
    """Prints a paragraph."""
    if console is None:
        sys.stdout.write("\n".join(textwrap.wrap(text, 100, break_on_hyphens=False)) + "\n")
    else:
        console.print(text, markup=False, highlight=False, width=min(104, console.width))
