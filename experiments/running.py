"""Runs the cases of an experiment on several processes, and keeps what was done when it is stopped."""

from __future__ import annotations

import platform
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.engine import open_runner
from epsilometer.errors import InputError
from epsilometer_experiments.experiment import Case, Experiment, Numbers, Results, Settings
from epsilometer_experiments.reporting import (
    print_table,
    progress_bar,
    write_figures,
    write_json,
    write_markdown,
)

RESULTS = "results.json"
# (number of the case, number of the run)
Place = tuple[int, int]
Done = dict[Place, Numbers]


def run_experiment(
    experiment: Experiment, runs: int, out: Path, seed: int, jobs: int, options: Settings
) -> Path:
    """Runs everything, prints the table and writes results and figures; returns the path of `results.json`."""
    run_and_collect(experiment, runs, out, seed, jobs, options)
    return out / RESULTS


def run_and_collect(
    experiment: Experiment, runs: int, out: Path, seed: int, jobs: int, options: Settings
) -> Results:
    """The same; returns the results."""
    cases = list(experiment.cases(options))
    _check_names(cases)
    _make_folder(out)
    workers = jobs if experiment.parallel else 1
    total = len(cases) * runs
    began = time.perf_counter()
    done: Done = {}
    try:
        with progress_bar(experiment.name, total) as advance:
            for place, numbers in _outcomes(experiment, cases, runs, seed, workers, options):
                done[place] = numbers
                advance()
    finally:
        # Also after Ctrl-C or an error, which then goes on: hours of work are not thrown away.
        settings = _describe(runs, seed, workers, options, len(done) < total)
        results = collect(experiment, cases, done, settings, time.perf_counter() - began)
        if done:
            _publish(experiment, results, out)
        if 0 < len(done) < total:
            print(
                f"stopped after {len(done)} of {total} runs; what was done is in {out}",
                file=sys.stderr,
            )
    return results


def collect(
    experiment: Experiment,
    cases: Sequence[Case],
    done: Done,
    settings: dict[str, Any],
    seconds: float,
) -> Results:
    """The table of what was done, the same whatever the order in which it was."""
    runs_of = [
        [done[place] for place in sorted(done) if place[0] == number]
        for number in range(len(cases))
    ]
    begun = [(case, runs) for case, runs in zip(cases, runs_of, strict=True) if runs]
    rows = tuple(
        replace(row, is_judged=len(runs) >= experiment.runs_to_judge)
        for case, runs in begun
        for row in experiment.tabulate(case, runs)
    )
    return Results(experiment.name, tuple(case for case, _ in begun), rows, settings, seconds)


def run_seed(seed: int, experiment: str, case: str, run: int) -> int:
    """The seed of one run: it depends on what is run, not on which other cases run or where."""
    key = (zlib.crc32(experiment.encode()), zlib.crc32(case.encode()), run)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)[0] >> 1)


def _outcomes(
    experiment: Experiment,
    cases: Sequence[Case],
    runs: int,
    seed: int,
    jobs: int,
    options: Settings,
) -> Iterator[tuple[Place, Numbers]]:
    # Run by run over all cases: after an interruption every case has about as many.
    places = [(number, run) for run in range(runs) for number in range(len(cases))]
    tasks = [
        (
            experiment.run_once,
            place,
            cases[place[0]],
            run_seed(seed, experiment.name, cases[place[0]].name, place[1]),
        )
        for place in places
    ]
    with closing(open_runner(jobs)) as runner:
        yield from runner.map(partial(_run_one, options), tasks)


def _run_one(options: Settings, task: tuple[Any, Place, Case, int]) -> tuple[Place, Numbers]:
    run_once, place, case, seed = task
    numbers = run_once(case, seed, options)
    return place, {quantity: float(value) for quantity, value in numbers.items()}


def _publish(experiment: Experiment, results: Results, out: Path) -> None:
    """Prints the table, writes all files, and names those beside results.json."""
    write_json(results, out / RESULTS)
    print_table(results, experiment.wide)
    if any(row.target is not None and not row.is_judged for row in results.rows):
        print(f"met: – means too few runs to judge; it takes {experiment.runs_to_judge} per case")
    written: list[Path] = []
    if experiment.wide:
        written.append(out / "table.md")
        write_markdown(results, written[-1])
    if experiment.draw is not None and results.rows:
        written += write_figures(experiment.draw(results), out)
    for path in written:
        print(f"written: {path}")


def _describe(runs: int, seed: int, jobs: int, options: Settings, stopped: bool) -> dict[str, Any]:
    versions = {name: version(name) for name in ("epsilometer", "numpy", "scipy")}
    return {
        "runs": runs,
        "seed": seed,
        "jobs": jobs,
        "options": dict(options),
        "interrupted": stopped,
        "python": platform.python_version(),
        **versions,
    }


def _check_names(cases: Sequence[Case]) -> None:
    names = [case.name for case in cases]
    if not names:
        raise InputError("these options leave nothing to run")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"case {twice[0]!r} is given twice")


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out={str(out)!r} cannot be made: {error.strerror}") from error
