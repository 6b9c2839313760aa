"""What a row of the table is: a rate that is run until it is clear, or a figure that is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

# A run tells whether the event happened, which should be rare; None if the program refused by name to do it.
Run = Callable[[int], bool | None]


@dataclass(frozen=True, slots=True)
class Rate:
    """Something that may happen at most at a rate.

    Attributes:
        part: of the table.
        name: unique; what `--only` looks at.
        allowed: the promised greatest probability per run.
        run: runs once with a seed.
        pools: margins of the table to which its runs are added, by their names.
    """

    part: str
    name: str
    allowed: float
    run: Run
    pools: Mapping[str, str] = field(default_factory=dict)


class Worked(NamedTuple):
    """A figure that was worked out, what is allowed, and where the figure is largest."""

    figure: float
    allowed: float
    where: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that is worked out once, and must not exceed what is allowed: no chance excuses it.

    Attributes:
        part: of the table.
        name: unique.
        work_out: works it out; the seed is for examples, such as results to be forged.
    """

    part: str
    name: str
    work_out: Callable[[int], Worked]


Case = Rate | Figure


def all_cases() -> dict[str, Case]:
    """Every row by its name, in the order of the table; made anew in every process."""
    from benchmarks.sound import enumerations, rates, seams, tampering

    parts = [enumerations, tampering, seams, rates]
    cases: dict[str, Case] = {}
    for case in (case for part in parts for case in part.cases()):
        if case.name in cases:
            raise ValueError(f"two rows of the table are called {case.name!r}")
        cases[case.name] = case
    return cases
