"""What an experiment is: cases, one function that does one run of one case, and the figures to expect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scipy.special import bdtr, bdtrc

from epsilometer.errors import InputError
from epsilometer_experiments.options import Option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A table of 50 rows shows a "no" by bad luck alone once in 20 times.
_INCOMPATIBLE = 1e-3

# Runs that a judgement takes of experiments that make so many: a mean over fewer says little about its own error.
_ENOUGH_RUNS = 20

# Where a figure comes from that no paper prints. "exact": a formula or an enumeration. "promised": by the guarantee.
# "our earlier measurement": by a prototype, before the project began. "the released program, measured by us": the
# paper's own code on our machine. "our bar": what we ask of ourselves.
EXACT, PROMISED, BAR = "exact", "promised", "our bar"
EARLIER, RELEASED_PROGRAM = "our earlier measurement", "the released program, measured by us"
SOURCES = (EXACT, PROMISED, BAR, EARLIER, RELEASED_PROGRAM)
# Of a figure that nothing is compared with.
NOT_COMPARED = "measured here, nothing to compare with"

Settings = Mapping[str, Any]
Numbers = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Target:
    """A figure to expect.

    Attributes:
        value: the figure.
        relation: "≥" or "≤" for a bar to clear, "≈" for a figure of a paper to come near.
        tolerance: how near, for "≈"; None makes no judgement.
        source: where the figure comes from, such as "paper: Table 1"; see `SOURCES` for the others.
    """

    value: float
    relation: str = "≈"
    tolerance: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if self.source not in SOURCES and not self.source.startswith("paper: "):
            raise InputError(
                f"source={self.source!r} must be one of {', '.join(SOURCES)}, or paper: and a place in it"
            )

    def is_met(self, measured: float, runs: int) -> bool | None:
        """Whether a figure measured over some runs is as expected; None where no judgement is made."""
        if self.relation == "≥":
            return measured >= self.value
        if self.relation == "≤":
            return measured <= self.value
        return None if self.tolerance is None else abs(measured - self.value) <= self.tolerance

    def describe(self) -> str:
        """The figure with its relation."""
        near = "" if self.tolerance is None else f" ± {self.tolerance:g}"
        return f"{self.relation} {self.value:g}{near}"


@dataclass(frozen=True, slots=True)
class Rate(Target):
    """A probability to expect of an event that each run has or has not: met if chance explains the difference."""

    def is_met(self, measured: float, runs: int) -> bool | None:
        """Whether so many events are no rarer than 1 in 1000, to the side that the relation forbids."""
        hits = round(measured * runs)
        too_many = (
            self.relation != "≥" and hits > 0 and bdtrc(hits - 1, runs, self.value) < _INCOMPATIBLE
        )
        too_few = (
            self.relation != "≤" and hits < runs and bdtr(hits, runs, self.value) < _INCOMPATIBLE
        )
        return not (too_many or too_few)


@dataclass(frozen=True, slots=True)
class Case:
    """One line of an experiment, run many times.

    Attributes:
        name: unique within the experiment; part of the seed of each run.
        parameters: what the run function needs; must survive pickling.
        expected: the figures to expect, by quantity.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Target] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure.

    Attributes:
        case: the case's name.
        quantity: what was measured.
        target: the figure to expect, if any.
        measured: the figure over all runs.
        standard_error: of `measured`; None where there is none, e.g. after one run.
        values: one figure per run.
        is_judged: False if there were too few runs for a judgement, see `Experiment.runs_to_judge`.
    """

    case: str
    quantity: str
    target: Target | None
    measured: float
    standard_error: float | None
    values: tuple[float, ...]
    is_judged: bool = True

    @property
    def is_met(self) -> bool | None:
        """Whether the figure is as expected; None where nothing is expected, or too few runs were made."""
        if self.target is None or not self.is_judged:
            return None
        return self.target.is_met(self.measured, len(self.values))

    def to_dict(self) -> dict[str, Any]:
        """The row of `results.json`."""
        return {
            "case": self.case,
            "quantity": self.quantity,
            "expected": self.target.value if self.target else None,
            "relation": self.target.relation if self.target else None,
            "source": self.target.source if self.target else NOT_COMPARED,
            "measured": self.measured,
            "standard_error": self.standard_error,
            "runs": len(self.values),
            "values": list(self.values),
        }


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that came of an experiment.

    Attributes:
        experiment: its name.
        cases: those with at least one finished run.
        rows: what was measured.
        settings: runs, seed, jobs, options, versions, and whether it was interrupted.
        seconds: wall time.
    """

    experiment: str
    cases: tuple[Case, ...]
    rows: tuple[Row, ...]
    settings: dict[str, Any]
    seconds: float

    def row(self, case: str, quantity: str) -> Row:
        """The row of one case and quantity."""
        return next(row for row in self.rows if (row.case, row.quantity) == (case, quantity))

    def of(self, quantity: str) -> list[Row]:
        """The rows of one quantity, in the order of the cases."""
        return [row for row in self.rows if row.quantity == quantity]

    def to_dict(self) -> dict[str, Any]:
        """The content of `results.json`."""
        return {
            "experiment": self.experiment,
            "rows": [row.to_dict() for row in self.rows],
            "settings": self.settings,
            "seconds": self.seconds,
        }


def mean_rows(case: Case, runs: Sequence[Numbers]) -> list[Row]:
    """The mean over the runs of every quantity; shares are means of zeros and ones."""
    quantities = dict.fromkeys(quantity for numbers in runs for quantity in numbers)
    return [
        _mean_row(case, quantity, [n[quantity] for n in runs if quantity in n])
        for quantity in quantities
    ]


def _mean_row(case: Case, quantity: str, values: list[float]) -> Row:
    mean = math.fsum(values) / len(values)
    error = None
    if len(values) > 1:
        error = math.sqrt(
            math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
        )
    return Row(case.name, quantity, case.expected.get(quantity), mean, error, tuple(values))


@dataclass(frozen=True, slots=True)
class Quick:
    """How an experiment is run by `reproduce --quick`: everything, but small.

    Attributes:
        runs: per case.
        options: its options that are set to something smaller.
    """

    runs: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure or table to reproduce.

    Attributes:
        name: "folder/name", as `epsilometer reproduce` takes it.
        summary: one line.
        runs: how often each case runs by default.
        cases: makes the cases for the given options.
        run_once: one run of one case with a seed of its own; a top-level function, for it is sent to other processes.
        options: the options it takes.
        tabulate: turns a case and its runs into rows; means by default.
        draw: makes figures, each with the stem of its file name.
        parallel: False where runs are timed and must not disturb each other.
        wide: prints a line per case with a column per quantity, instead of a line per figure, and writes `table.md`.
        quick: how it is run small.
        why: known reasons for figures that differ from what was expected, by a piece of "case: quantity".
    """

    name: str
    summary: str
    runs: int
    cases: Callable[[Settings], Sequence[Case]]
    run_once: Callable[[Case, int, Settings], Numbers]
    options: tuple[Option, ...] = ()
    tabulate: Callable[[Case, Sequence[Numbers]], list[Row]] = mean_rows
    draw: Callable[[Results], Iterable[tuple[str, Figure]]] | None = None
    parallel: bool = True
    wide: bool = False
    quick: Quick = field(default_factory=Quick)
    why: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs_to_judge(self) -> int:
        """Runs per case from which on a figure is compared with what was expected."""
        return min(self.runs, _ENOUGH_RUNS)
