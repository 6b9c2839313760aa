"""All experiments one after the other, and the table of what agreed, what differs, and why."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.storage.writing import write_atomically
from epsilometer_experiments.experiment import Experiment, Rate, Results, Row
from epsilometer_experiments.reporting import finite

JSON, TABLE = "agreement.json", "agreement.md"


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure that is not as expected.

    Attributes:
        case: of the experiment.
        quantity: what was measured.
        expected: the figure with its relation.
        measured: ours.
        source: where the expected figure comes from.
        why: the reason, as far as it is known.
    """

    case: str
    quantity: str
    expected: str
    measured: float
    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """One line of the table.

    Attributes:
        experiment: its name.
        size: how large it was run.
        agreed: figures as expected.
        differences: figures that are not.
        unjudged: figures beside one that is only shown, or beside none, or that so few runs cannot tell from it.
        seconds: wall time.
        error: what ended it, if something did.
    """

    experiment: str
    size: str
    agreed: int
    differences: tuple[Difference, ...]
    unjudged: int
    seconds: float
    error: str = ""

    @property
    def state(self) -> str:
        """In one word."""
        if self.error:
            return "failed"
        if self.differences:
            return "differs"
        return "agreed" if self.agreed else "shown"


def compare(experiment: Experiment, results: Results, quick: bool) -> Agreement:
    """What of an experiment's results is as expected."""
    size = describe_size(experiment, results.settings, quick)
    judged = [(row, row.is_met) for row in results.rows if row.target is not None]
    differences = tuple(
        Difference(
            row.case,
            row.quantity,
            row.target.describe(),
            row.measured,
            row.target.source,
            why(experiment, f"{row.case}: {row.quantity}", quick, size),
        )
        for row, met in judged
        if met is False and row.target is not None and not _may_be_chance(experiment, row)
    )
    agreed = sum(met is True for _, met in judged)
    unjudged = len(results.rows) - agreed - len(differences)
    return Agreement(experiment.name, size, agreed, differences, unjudged, results.seconds)


def _may_be_chance(experiment: Experiment, row: Row) -> bool:
    """Whether so few runs cannot tell: the mean may be as expected within four standard errors, or there are none."""
    assert row.target is not None
    is_known = any(piece in f"{row.case}: {row.quantity}" for piece in experiment.why)
    if is_known or isinstance(
        row.target, Rate
    ):  # a rate is judged with its own allowance for chance
        return False
    if row.standard_error is None:
        return len(row.values) == 1 and row.target.relation != "≤"
    return (
        abs(row.measured - row.target.value)
        <= (row.target.tolerance or 0.0) + 4.0 * row.standard_error
    )


def why(experiment: Experiment, figure: str, quick: bool, size: str) -> str:
    """The known reason for a difference, by the first key that the figure's name contains."""
    known = next((reason for piece, reason in experiment.why.items() if piece in figure), "")
    if known:
        return known
    if quick:
        return f"a small run ({size}) cannot show it; run it at full size"
    return "not known"


def describe_size(experiment: Experiment, settings: dict[str, Any], quick: bool) -> str:
    """The runs, and what else a quick run made smaller."""
    runs = f"{settings['runs']} of {experiment.runs} runs" if quick else f"{settings['runs']} runs"
    smaller = (
        [f"{name} = {_short(settings['options'][name])}" for name in experiment.quick.options]
        if quick
        else []
    )
    return ", ".join([runs, *smaller])


def _short(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def run_all(
    experiments: Sequence[Experiment],
    out: Path,
    seed: int,
    jobs: int,
    quick: bool,
    runs: int | None,
) -> list[Agreement]:
    """Runs each into its own folder, and writes the table after each; one that fails does not end the rest."""
    from epsilometer_experiments.options import read_options
    from epsilometer_experiments.running import run_and_collect

    lines: list[Agreement] = []
    for experiment in experiments:
        given = dict(experiment.quick.options) if quick else {}
        n_runs = runs or (experiment.quick.runs if quick else experiment.runs)
        began = time.perf_counter()
        try:
            settings = read_options(experiment.name, experiment.options, given)
            results = run_and_collect(
                experiment, n_runs, out / experiment.name, seed, jobs, settings
            )
            lines.append(compare(experiment, results, quick))
        except Exception as error:  # the table says what failed, and the others still run
            seconds = time.perf_counter() - began
            lines.append(
                Agreement(
                    experiment.name, "", 0, (), 0, seconds, f"{type(error).__name__}: {error}"[:300]
                )
            )
        write_table(lines, out)
    return lines


def write_table(lines: Sequence[Agreement], out: Path) -> None:
    """Both files: for people, and for programs."""
    content = [
        {
            "experiment": line.experiment,
            "state": line.state,
            "size": line.size,
            "agreed": line.agreed,
            "differs": [
                {name: getattr(each, name) for name in Difference.__slots__}
                for each in line.differences
            ],
            "unjudged": line.unjudged,
            "seconds": line.seconds,
            "error": line.error,
        }
        for line in lines
    ]
    write_atomically(out / JSON, json.dumps(finite(content), indent=1, allow_nan=False))
    write_atomically(out / TABLE, as_markdown(lines))


def as_markdown(lines: Sequence[Agreement]) -> str:
    """The table, and below it each figure that differs."""
    total = sum(line.seconds for line in lines)
    text = [
        f"{len(lines)} experiments in {total / 60:.1f} minutes.",
        "",
        "| experiment | state | agreed | differs | not judged | size | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        counts = f"{line.agreed} | {len(line.differences)} | {line.unjudged}"
        text.append(
            f"| {line.experiment} | {line.state} | {counts} | {line.size} | {line.seconds:.0f} |"
        )
    differing = [(line.experiment, each) for line in lines for each in line.differences]
    if differing:
        text += [
            "",
            "| experiment | figure | expected | measured | source | why |",
            "|---|---|---|---|---|---|",
        ]
    for name, each in differing:
        figures = f"{each.expected} | {each.measured:.4g}"
        text.append(
            f"| {name} | {each.case}: {each.quantity} | {figures} | {each.source} | {each.why} |"
        )
    text += [f"\n{line.experiment} failed: {line.error}" for line in lines if line.error]
    return "\n".join(text) + "\n"
