"""Draws demo.svg, the picture of the README, from what `epsilometer demo` really prints.

Run it after a change of the demo: .venv/bin/python docs/images/make_demo_svg.py
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from epsilometer.cli.demo import ACTS, perform

WIDTH = 104


def draw() -> str:
    """The terminal as SVG, with the reader's own fonts: rich would fetch one from the network."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print("$ epsilometer demo", highlight=False)
    for number, target in enumerate(ACTS, start=1):
        perform(target, number, console)
    svg = console.export_svg(title="epsilometer demo", unique_id="demo")
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    svg = svg.replace(
        "Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono"
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "demo.svg").write_text(draw(), encoding="utf-8")
