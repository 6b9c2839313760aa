"""Draws demo.svg, the picture of the README, from what `epsilometer demo` really prints.

`make figures` draws it anew, and a test compares it with what the demo prints now.
"""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from epsilometer.cli.demo import ACTS, perform

if TYPE_CHECKING:
    from epsilometer.result import AuditResult

PICTURE = Path(__file__).parent / "demo.svg"
WIDTH = 104  # characters
# The last part of a result, which is another one in each run: its date, how long it took, and the commit.
_LAST_TITLE = "This run"


@cache
def show() -> tuple[str, dict[str, AuditResult]]:
    """What the demo prints on a terminal, with its colours, and its results by target."""
    printed = io.StringIO()
    console = Console(width=WIDTH, file=printed, force_terminal=True, color_system="truecolor")
    results = {
        target: perform(target, number, console) for number, target in enumerate(ACTS, start=1)
    }
    return printed.getvalue(), results


def draw() -> str:
    """The terminal as SVG, with the reader's own fonts: rich would fetch one from the network."""
    printed, _ = show()
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print("$ epsilometer demo", highlight=False)
    for line in without_last_parts(printed.rstrip().splitlines()):
        console.print(Text.from_ansi(line))
    svg = console.export_svg(title="epsilometer demo", unique_id="demo")
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    svg = svg.replace(
        "Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono"
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def without_last_parts(lines: list[str]) -> list[str]:
    """The lines without the last part of each panel and the empty row above it."""
    kept: list[str] = []
    is_left_out = False
    for line in lines:
        text = Text.from_ansi(line).plain
        if text.strip("│ ") == _LAST_TITLE:
            is_left_out = True
            kept.pop()
        if text.startswith("╰"):
            is_left_out = False
        if not is_left_out:
            kept.append(line)
    return kept
