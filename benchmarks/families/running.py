"""`make bench ARGS="families"`: what audits prove on every family, beside what the best event would.

Seeds 0 to 7 of all families were looked at, before the learner was rewritten: experiments/notes/families.md. Figures
that judge a learner which was developed after that take others, by `--first-seed`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median

import epsilometer as em
from benchmarks.effort import Effort, short
from benchmarks.families import Family, all_families, family_of
from benchmarks.families.oracle import best_event
from benchmarks.measurement import Measurement
from epsilometer.engine import open_runner

CONFIDENCE = 0.95
FAILURE_PROBABILITY = 0.05
# Less than this is nothing: the bound of an event without a leak is 0, rounding aside.
LEAST_PROVED = 1e-9
# Longer texts of events are cut: enough to judge whether a reader could follow.
_SHOWN_CHARACTERS = 160
_HEADINGS = (
    "family",
    "draws",
    "truth",
    "oracle",
    "bound",
    "share",
    "worst seed",
    "proves nothing",
    "refutes",
    "seconds",
    "event of the first seed",
)
_FIGURES = _HEADINGS[1:-1]


@dataclass(frozen=True, slots=True)
class Task:
    """One audit."""

    name: str
    n: int
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one audit proved.

    Attributes:
        bound: certified.
        event: in words; empty if there is none.
        is_refuted: None without a claim.
        seconds: of the processor.
    """

    bound: float
    event: str
    is_refuted: bool | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    family: Family
    n: int
    oracle: float
    outcomes: tuple[Outcome, ...]

    @property
    def bounds(self) -> tuple[float, ...]:
        """One per seed."""
        return tuple(outcome.bound for outcome in self.outcomes)

    @property
    def shares(self) -> tuple[float, ...]:
        """Of the oracle, one per seed."""
        return tuple(bound / max(self.oracle, LEAST_PROVED) for bound in self.bounds)

    @property
    def n_nothing(self) -> int:
        """Seeds that prove nothing."""
        return sum(bound < LEAST_PROVED for bound in self.bounds)

    def cells(self) -> tuple[str, ...]:
        """As printed."""
        runs = len(self.outcomes)
        refuted = [outcome.is_refuted for outcome in self.outcomes]
        truth = "∞" if math.isinf(self.family.truth) else f"{self.family.truth:.3g}"
        return (
            self.family.name,
            short(self.n),
            truth,
            f"{self.oracle:.3g}",
            f"{fmean(self.bounds):.3g}",
            f"{fmean(self.shares):.2f}",
            f"{min(self.shares):.2f}",
            f"{self.n_nothing} of {runs}" if self.n_nothing else "–",
            "" if None in refuted else f"{sum(map(bool, refuted))} of {runs}",
            f"{median(outcome.seconds for outcome in self.outcomes):.2g}",
            _one_line(self.outcomes[0].event) or "none",
        )


def measure_families(effort: Effort) -> list[Measurement]:
    """The share of the oracle of every family; prints the table and writes `families.md`."""
    rows = family_rows(effort)
    table = markdown(rows)
    effort.out.mkdir(parents=True, exist_ok=True)
    (effort.out / "families.md").write_text(table, encoding="utf-8")
    print(table)
    return [_measurement(row) for row in rows]


def family_rows(effort: Effort) -> list[Row]:
    """The table; every seed of every line is a task of its own."""
    chosen = [
        family
        for family in all_families()
        if not effort.only or family.name in effort.only or family.group in effort.only
    ]
    sizes = {family.name: effort.draws(effort.samples or family.draws) for family in chosen}
    seeds = range(effort.first_seed, effort.first_seed + effort.seeds)
    tasks = [Task(family.name, sizes[family.name], seed) for family in chosen for seed in seeds]
    with closing(open_runner(effort.jobs)) as workers:
        outcomes = dict(zip(tasks, workers.map(audit_once, tasks), strict=True))
        oracles = list(workers.map(oracle_of, list(sizes.items())))
    rows = []
    for family, oracle in zip(chosen, oracles, strict=True):
        n = sizes[family.name]
        of_seeds = tuple(outcomes[Task(family.name, n, seed)] for seed in seeds)
        rows.append(Row(family, n, oracle, of_seeds))
    return rows


def audit_once(task: Task) -> Outcome:
    """One audit with the defaults."""
    family = family_of(task.name)
    _load_all_code()
    began = time.process_time()
    if family.claim is None:
        result = em.measure(
            family.mechanism,
            family.pair,
            em.PureDP,
            samples=task.n,
            seed=task.seed,
            confidence=CONFIDENCE,
        )
    else:
        result = em.audit(
            family.mechanism,
            family.pair,
            em.PureDP(family.claim),
            samples=task.n,
            seed=task.seed,
            confidence=CONFIDENCE,
        )
    seconds = time.process_time() - began
    is_refuted = None if family.claim is None else result.verdict is em.Verdict.REFUTED
    event = "" if result.witness is None else result.witness.event.describe()
    return Outcome(result.lower_bound, event, is_refuted, seconds)


def oracle_of(sized: tuple[str, int]) -> float:
    """What the best event proves on all draws of a family, in the mean."""
    name, n = sized
    return best_event(family_of(name), n, FAILURE_PROBABILITY).bound


@cache
def _load_all_code() -> None:
    """The first audit of a process imports what it needs, which is no part of its cost."""
    em.measure(em.zoo.laplace(1.0), None, em.PureDP, samples=2000, seed=0)


def markdown(rows: Sequence[Row]) -> str:
    """The table, with a line of means for each group."""
    rules = ["---:" if heading in _FIGURES else "---" for heading in _HEADINGS]
    lines = [_line(_HEADINGS), _line(rules), *(_line(row.cells()) for row in rows), ""]
    for group in dict.fromkeys(row.family.group for row in rows):
        shares = [fmean(row.shares) for row in rows if row.family.group == group]
        n_blind = sum(row.n_nothing > 0 for row in rows if row.family.group == group)
        lines.append(
            f"{group}: {len(shares)} families, mean share {fmean(shares):.2f}, "
            f"median {median(shares):.2f}, least {min(shares):.2f}; "
            f"{n_blind} prove nothing in one seed or more"
        )
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= _SHOWN_CHARACTERS else joined[: _SHOWN_CHARACTERS - 1] + "…"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _measurement(row: Row) -> Measurement:
    detail = f"{fmean(row.bounds):.4g} of {row.oracle:.4g}; least seed {min(row.shares):.2f}"
    if row.n_nothing:
        detail += f"; {row.n_nothing} of {len(row.bounds)} seeds prove nothing"
    name = f"{row.family.name} at {short(row.n)} / oracle"
    return Measurement("families", name, fmean(row.shares), "×", "≥", None, detail, row.shares)
