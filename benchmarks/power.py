"""The power table: the experiment self/power, and its rows as measurements."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.measurement import Measurement
from epsilometer_experiments import run
from epsilometer_experiments.self.power import REQUIRED


def measure_power(runs: int, out: Path, jobs: int) -> list[Measurement]:
    """Mean certified ε over the runs, each with a seed of its own; prints the experiment's own table."""
    path = run("self/power", runs=runs, out=out / "power", seed=0, jobs=jobs)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return [
        Measurement("power", row["case"], row["measured"], "ε", "≥", least, f"mean of {row['runs']} seeds")
        for row, (_, _, least) in zip(rows, REQUIRED, strict=True)
    ]
