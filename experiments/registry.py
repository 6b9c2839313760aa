"""The experiments by name, and the one function that runs them."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import epsilometer_experiments
from epsilometer.errors import InputError
from epsilometer_experiments.experiment import Experiment
from epsilometer_experiments.options import read_options, whole
from epsilometer_experiments.papers import ORIGINS, Origin


@cache
def _experiments() -> dict[str, Experiment]:
    """Every folder of this package lists its own in EXPERIMENTS; a new folder needs no entry here."""
    folders = sorted(
        module.name
        for module in pkgutil.iter_modules(epsilometer_experiments.__path__)
        if module.ispkg
    )
    modules = [import_module(f"epsilometer_experiments.{folder}") for folder in folders]
    found: list[Experiment] = [
        experiment for module in modules for experiment in module.EXPERIMENTS
    ]
    return {experiment.name: experiment for experiment in found}


def names() -> list[str]:
    """All names that `run` takes."""
    return list(_experiments())


def summaries() -> dict[str, str]:
    """One line about each experiment, by name."""
    return {name: experiment.summary for name, experiment in _experiments().items()}


def listing() -> list[tuple[str, str, str, str]]:
    """Name, paper with its year, place in it, and one line about each experiment."""
    return [
        (name, *ORIGINS.get(name, Origin()), experiment.summary)
        for name, experiment in _experiments().items()
    ]


def find(name: str) -> Experiment:
    """The experiment of that name, or an InputError with the nearest names."""
    known = _experiments()
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise InputError(
            f"experiment {name!r} is unknown; {hint}all of them: epsilometer reproduce --list"
        )
    return known[name]


def run(
    name: str,
    runs: int | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    jobs: int = 2,
    options: Mapping[str, Any] | None = None,
    quick: bool = False,
) -> Path:
    """Runs an experiment, prints its table, and writes its results and figures.

    Args:
        name: one of `names()`.
        runs: runs per case; None for the experiment's default.
        out: the folder to write to; None for `results/NAME` in the current folder.
        seed: every run of every case has a seed of its own made of this one.
        jobs: worker processes; the results do not depend on it.
        options: the experiment's own options, as text or values.
        quick: runs it small, as `run_all` does; `runs` and `options` still win.

    Returns:
        The path of `results.json`. After an interruption it holds what was done until then, and the interruption goes
        on to the caller.
    """
    from epsilometer_experiments.running import run_experiment

    experiment = find(name)
    small = experiment.quick.options if quick else {}
    settings = read_options(name, experiment.options, {**small, **(options or {})})
    usual = experiment.quick.runs if quick else experiment.runs
    n_runs = usual if runs is None else _check_count("runs", runs)
    folder = Path("results") / name if out is None else Path(out)
    return run_experiment(
        experiment, n_runs, folder, _check_seed(seed), _check_count("jobs", jobs), settings
    )


def run_all(
    quick: bool = False,
    runs: int | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    jobs: int = 2,
) -> Path:
    """Runs every experiment, and writes the table of what agreed, what differs, and why.

    Args:
        quick: runs each of them small: everything in minutes.
        runs: runs per case of every experiment; None for their defaults.
        out: the folder to write to; None for `results`.

    Returns:
        The path of `agreement.md`; `agreement.json` beside it says the same.
    """
    from epsilometer_experiments.agreement import TABLE
    from epsilometer_experiments.agreement import run_all as run_these

    folder = Path("results") if out is None else Path(out)
    n_runs = None if runs is None else _check_count("runs", runs)
    run_these(
        list(_experiments().values()),
        folder,
        _check_seed(seed),
        _check_count("jobs", jobs),
        quick,
        n_runs,
    )
    return folder / TABLE


def _check_count(name: str, value: int) -> int:
    try:
        return whole(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} must be a whole number of at least 1") from None


def _check_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed={seed!r} must be a whole number of at least 0")
    return seed
