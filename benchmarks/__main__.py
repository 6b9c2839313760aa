"""`python -m benchmarks [power|speed|memory|import|all]`: measures, prints a table, writes JSON."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Measurement
from benchmarks.memory import measure_memory
from benchmarks.power import measure_power
from benchmarks.speed import measure_speed
from benchmarks.starting import measure_import

GROUPS: dict[str, Callable[[argparse.Namespace], list[Measurement]]] = {
    "import": lambda chosen: measure_import(chosen.repeats),
    "memory": lambda chosen: measure_memory(chosen.repeats),
    "speed": lambda chosen: measure_speed(chosen.repeats),
    "power": lambda chosen: measure_power(chosen.runs, chosen.out, chosen.jobs),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the chosen groups; the exit status is 0 if every target is met and 1 if one is missed."""
    chosen = _parse(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    names = list(GROUPS) if chosen.group == "all" else [chosen.group]
    measured = [measurement for name in names for measurement in GROUPS[name](chosen)]
    path = chosen.out / f"{chosen.group}.json"
    path.write_text(json.dumps(describe(measured, chosen.repeats, chosen.runs), indent=1), encoding="utf-8")
    _print_table([measurement for measurement in measured if measurement.group != "power"])
    missed = [measurement for measurement in measured if measurement.is_met is False]
    print(summary(measured))
    print(f"written to {path}")
    return 1 if missed else 0


def describe(measured: Sequence[Measurement], repeats: int, runs: int) -> dict[str, Any]:
    """The content of the JSON file."""
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    settings = {"repeats": repeats, "runs": runs, **machine}
    return {"measurements": [measurement.to_dict() for measurement in measured], "settings": settings}


def summary(measured: Sequence[Measurement]) -> str:
    """How many targets are met, and which are missed."""
    judged = [measurement for measurement in measured if measurement.is_met is not None]
    missed = [f"{each.name} ({each.value:.3g}, {each.relation} {each.target:g})" for each in judged if not each.is_met]
    met = f"{len(judged) - len(missed)} of {len(judged)} targets met"
    return f"{met}; missed: {'; '.join(missed)}" if missed else met


def _print_table(measured: Sequence[Measurement]) -> None:
    if not measured:
        return
    table = Table(title="benchmarks", title_justify="left")
    for heading in ("group", "measurement"):
        table.add_column(heading)
    for heading in ("figure", "target", "met"):
        table.add_column(heading, justify="right")
    table.add_column("how")
    for each in measured:
        target = "" if each.target is None else f"{each.relation} {each.target:g} {each.unit}"
        met = {True: "yes", False: "no", None: ""}[each.is_met]
        table.add_row(each.group, each.name, f"{each.value:.3g} {each.unit}", target, met, each.detail)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("group", nargs="?", default="all", choices=[*GROUPS, "all"])
    parser.add_argument("--repeats", type=int, default=5, help="interleaved repeats of each timing")
    parser.add_argument("--runs", type=int, default=10, help="seeds per line of the power table")
    parser.add_argument("--jobs", type=int, default=2, help="processes for the power table; timings use one")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"), help="where to write")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
