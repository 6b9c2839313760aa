"""`python -m benchmarks [group …]`: measures, prints a table, writes JSON and pictures, compares with the baseline.

`python -m benchmarks generated …` audits random mechanisms instead, with options of its own.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from benchmarks import baseline, plots
from benchmarks.effort import SIZES, Effort
from benchmarks.engines import measure_engines
from benchmarks.families.running import measure_families
from benchmarks.generated.__main__ import main as generated_main
from benchmarks.growth import measure_growth
from benchmarks.long import measure_long
from benchmarks.measurement import Measurement
from benchmarks.memory import measure_memory
from benchmarks.papers import measure_papers
from benchmarks.power import measure_power
from benchmarks.speed import measure_small, measure_speed
from benchmarks.starting import measure_start
from benchmarks.strength import measure_strength
from benchmarks.tables import markdown, print_table
from benchmarks.workers import measure_workers

GROUPS: dict[str, Callable[[Effort], list[Measurement]]] = {
    "start": measure_start,
    "small": measure_small,
    "speed": measure_speed,
    "growth": measure_growth,
    "workers": measure_workers,
    "engines": measure_engines,
    "papers": measure_papers,
    "memory": measure_memory,
    "long": measure_long,
    "power": measure_power,
    "strength": measure_strength,
    "families": measure_families,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the chosen groups; the exit status is 1 if a target is missed or a ratio got worse, else 0."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["generated"]:
        return generated_main(words[1:])
    chosen = _parse(words)
    effort = Effort(**{field.name: getattr(chosen, field.name) for field in fields(Effort)})
    effort.out.mkdir(parents=True, exist_ok=True)
    measured: list[Measurement] = []
    for name in chosen.groups or GROUPS:
        found = GROUPS[name](effort)
        measured += found
        plots.draw_ratios(found, effort.out / f"{name}.svg")
        print_table(name, found)
    settings = describe_run(effort)
    baseline.write(effort.out / "results.json", measured, settings)
    (effort.out / "results.md").write_text(markdown(measured), encoding="utf-8")
    changes = baseline.compare(baseline.read(chosen.baseline), measured)
    print(summary(measured), baseline.describe(changes), f"written to {effort.out}", sep="\n")
    if chosen.update_baseline:
        baseline.write(chosen.baseline, measured, settings)
        print(f"the baseline {chosen.baseline} holds these figures from now on")
        return 0
    is_bad = any(each.is_met is False for each in measured) or any(
        each.verdict == "worse" for each in changes
    )
    return 1 if is_bad else 0


def describe_run(effort: Effort) -> dict[str, Any]:
    """What the figures were measured with."""
    return {
        "repeats": effort.repeats,
        "runs": effort.runs,
        "share": effort.share,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
    }


def summary(measured: Sequence[Measurement]) -> str:
    """How many targets are met, and which are missed."""
    judged = [measurement for measurement in measured if measurement.is_met is not None]
    missed = [
        f"{each.name} ({each.value:.3g}, {each.relation} {each.target:g})"
        for each in judged
        if not each.is_met
    ]
    met = f"{len(judged) - len(missed)} of {len(judged)} targets met"
    return f"{met}; missed: {'; '.join(missed)}" if missed else met


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "groups", nargs="*", choices=[*GROUPS, []], metavar="group", help=", ".join(GROUPS)
    )
    parser.add_argument(
        "--repeats", type=int, default=Effort.repeats, help="interleaved repeats of each timing"
    )
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, help="draws per side, such as 1e4,1e6"
    )
    parser.add_argument(
        "--runs", type=int, default=Effort.runs, help="seeds per line of the power table"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=Effort.seeds,
        help="audits per line of the strength and families tables",
    )
    parser.add_argument(
        "--only",
        type=_words,
        default=(),
        help="lines of the strength table: PrefixSum,svt1, zoo, sniper; of the families: texts, rare-mark",
    )
    parser.add_argument(
        "--population", type=_whole, default=0, help="judge chosen events on so many fresh draws"
    )
    parser.add_argument(
        "--samples", type=_whole, default=0, help="draws per side of the families table"
    )
    parser.add_argument(
        "--first-seed", type=int, default=0, help="of the audits of the families table"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=Effort.jobs,
        help="processes for the power table; timings use one",
    )
    parser.add_argument(
        "--share", type=float, default=Effort.share, help="of the draws of all other figures"
    )
    parser.add_argument("--out", type=Path, default=Effort.out, help="where to write")
    parser.add_argument("--baseline", type=Path, default=baseline.PATH, help="what to compare with")
    parser.add_argument(
        "--update-baseline", action="store_true", help="make these figures the baseline"
    )
    return parser.parse_args(arguments)


def _whole(text: str) -> int:
    return int(float(text))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(map(_whole, _words(text))))


if __name__ == "__main__":
    sys.exit(main())
