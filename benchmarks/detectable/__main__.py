"""`python -m benchmarks.detectable`: audits leaks of the size that results call detectable.

For each notion and size, and each kind of planted leak, audits that do not refute say what they
would have refuted with 90 % power: `result.detectable` of spread leaks, `result.detectable_mass` of
rare ones. Leaks of exactly that size are then audited, and how many audits refute is counted; once
more at three quarters of the excess, where fewer than 90 % should.

Audits end where the answer is clear (Wald's test, see `RateTest`), so that a cell takes fewer audits
than `--audits`. A cell is TOO WEAK if its audits refute a power of 90 %: of cells that have it, at
most one in a thousand is called so. One whose power is below 80 % is called clear with a
probability of at most 5 %. It is cautious if 90 % of its audits of three quarters of the excess
refute.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

import epsilometer as em
from benchmarks.detectable.leaks import CASES, KINDS, Case, rare, spread
from epsilometer.testing import RateTest

# What results promise.
POWER = 0.9
# Cells that have it and are called too weak, at most.
FALSE_ALARM = 1e-3
# A power that must not be called enough, …
WEAK = 0.8
# … and the probability with which it is.
MISS = 0.05
# Audits of the stated value that every cell has: their refutations are a fair sample of its power,
# while audits that end where the answer is clear are not.
FIRST = 40
# Where power is below 90 %, it is told from this one: at three quarters of the excess.
LOWER = 0.75
# Where power must be below 90 %, or the value is far above what is needed.
FRACTION = 0.75
# Audits that do not refute, whose values are tried in turn.
STATED = 4
# Audits of a true claim that are run at most to find them.
MOST_TRIES = 12
PAIR = em.Pair(0, 1)
LEAKS = ("spread", "rare")


@dataclass(frozen=True)
class Cell:
    """What was measured of one kind of leak, at one notion and size.

    Attributes:
        case: the notion and the size.
        leak: "spread" or "rare".
        kind: the kind of leak.
        stated: the values that were called detectable.
        silent: audits that named none.
        refuted: audits of leaks of that size that refuted.
        audits: of how many.
        refuted_first: of the first 40 audits of leaks of that size, or of all if there may be fewer.
        refuted_below: the same at three quarters of the excess.
        audits_below: of how many.
        is_too_weak: whether fewer than 90 % refute, surely.
        is_cautious: whether three quarters of the excess would do, too.
    """

    case: str
    leak: str
    kind: str
    stated: tuple[float, ...]
    silent: int
    refuted: int
    audits: int
    refuted_first: int
    refuted_below: int
    audits_below: int
    is_too_weak: bool
    is_cautious: bool
    seconds: float


@dataclass
class Refutations:
    """Audits of one size of a leak.

    Attributes:
        test: counts them, and those that do not refute.
        least: audits at least.
        most: audits at most.
    """

    test: RateTest
    least: int
    most: int

    @property
    def refuted(self) -> int:
        """How many refuted the claim."""
        return self.test.runs - self.test.events

    @property
    def is_decided(self) -> bool:
        """Whether no more audits are needed."""
        if self.test.runs < min(self.least, self.most):
            return False
        return self.test.is_broken or self.test.is_clear or self.test.runs >= self.most


def measure(case: Case, leak: str, kind: str, audits: int, seed: int) -> Cell:
    """Measures one cell."""
    began = time.process_time()
    claim = case.claim
    base = spread(kind, claim) if leak == "spread" else rare(kind, claim, 0.0)
    stated: list[float] = []
    silent = 0
    for number in range(MOST_TRIES):
        if len(stated) + silent == STATED:
            break
        result = em.audit(base, PAIR, claim, samples=case.samples, seed=seed + number)
        if result.verdict is not em.Verdict.NOT_REFUTED:
            continue
        value = result.detectable if leak == "spread" else result.detectable_mass
        if value is None or math.isinf(value):
            silent += 1
        else:
            stated.append(value)
    least = claim.value if leak == "spread" else getattr(claim, "delta", 0.0)

    def audited(
        test: RateTest, fraction: float, n_first: int, first_seed: int
    ) -> tuple[Refutations, int]:
        refutations = Refutations(test, least=n_first, most=audits if stated else 0)
        refuted_first = 0
        while not refutations.is_decided:
            number = test.runs
            value = stated[number % len(stated)]
            size = least + fraction * (value - least)
            mechanism = (
                spread(kind, claim.with_value(size))
                if leak == "spread"
                else rare(kind, claim, size)
            )
            result = em.audit(
                mechanism, PAIR, claim, samples=case.samples, seed=first_seed + number
            )
            test.add(not result.is_refuted)
            if test.runs <= n_first:
                refuted_first = refutations.refuted
        return refutations, refuted_first

    missed = 1.0 - POWER
    at_stated, refuted_first = audited(
        RateTest(missed, 1.0 - WEAK, false_alarm=FALSE_ALARM, miss=MISS), 1.0, FIRST, seed + 1000
    )
    below, _ = audited(
        RateTest(missed, 1.0 - LOWER, false_alarm=MISS, miss=MISS), FRACTION, 0, seed + 2000
    )
    return Cell(
        case=case.name,
        leak=leak,
        kind=kind,
        stated=tuple(stated),
        silent=silent,
        refuted=at_stated.refuted,
        audits=at_stated.test.runs,
        refuted_first=refuted_first,
        refuted_below=below.refuted,
        audits_below=below.test.runs,
        is_too_weak=at_stated.test.is_broken,
        is_cautious=bool(stated) and below.refuted >= POWER * below.test.runs,
        seconds=time.process_time() - began,
    )


def line_of(cell: Cell) -> str:
    """A cell as one row of a table."""
    remarks = []
    if cell.is_too_weak:
        remarks.append("TOO WEAK")
    if cell.is_cautious:
        remarks.append("cautious")
    if cell.silent:
        remarks.append(f"silent {cell.silent} of {cell.silent + len(cell.stated)}")
    values = ", ".join(f"{value:.3g}" for value in sorted(cell.stated))
    counts = f"{cell.refuted}/{cell.audits} | {cell.refuted_below}/{cell.audits_below}"
    return (
        f"| {cell.case} | {cell.leak} | {cell.kind} | {values} | {counts} | {'; '.join(remarks)} |"
    )


def summary_of(cells: Sequence[Cell]) -> str:
    """All cells of one kind of leak in a line."""
    lines = []
    for leak in LEAKS:
        chosen = [cell for cell in cells if cell.leak == leak]
        audits = sum(cell.audits for cell in chosen)
        if not audits:
            continue
        # Cells weigh the same, however many audits they took.
        measured = [cell for cell in chosen if cell.audits]
        power = mean(cell.refuted_first / min(cell.audits, FIRST) for cell in measured)
        below = mean(cell.refuted_below / cell.audits_below for cell in measured)
        n_stated = sum(len(cell.stated) for cell in chosen)
        n_asked = n_stated + sum(cell.silent for cell in chosen)
        # Rare outputs are judged by the kind that is hardest to see.
        by_case = {cell.case: False for cell in chosen}
        for cell in chosen:
            by_case[cell.case] |= bool(cell.audits) and not cell.is_cautious
        lines.append(
            f"{leak}: power {power:.3f} at the stated "
            f"value, {below:.3f} at {FRACTION:g} of "
            f"the excess; stated {n_stated} of {n_asked}; "
            f"{sum(cell.is_too_weak for cell in chosen)} of {len(chosen)} cells too weak, "
            f"{sum(cell.is_cautious for cell in chosen)} cautious; "
            f"{sum(by_case.values())} of {len(by_case)} notions and sizes have a kind that needs it"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures all cells, prints them as a table, and returns 1 if one is too weak."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detectable", description=__doc__)
    parser.add_argument("--audits", type=int, default=200, help="per cell and size, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the first audit")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--leak", choices=LEAKS, action="append", help="only these leaks")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these kinds")
    parser.add_argument("--case", type=int, action="append", help="only these notions, by number")
    parser.add_argument("--out", type=Path, help="a JSON file for all cells")
    chosen = parser.parse_args(arguments)
    cases = [CASES[number] for number in chosen.case or range(len(CASES))]
    print("| notion and size | leak | kind | stated | refuted | at 3/4 of the excess | |")
    print("|---|---|---|---|---|---|---|", flush=True)
    cells = []
    with ProcessPoolExecutor(chosen.jobs) as pool:
        tasks = [
            pool.submit(measure, case, leak, kind, chosen.audits, chosen.seed)
            for case in cases
            for leak in chosen.leak or LEAKS
            for kind in chosen.kind or KINDS
        ]
        for task in tasks:
            cell = task.result()
            cells.append(cell)
            print(line_of(cell), flush=True)
    print(summary_of(cells))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps([asdict(cell) for cell in cells], indent=1), "utf-8")
    return 1 if any(cell.is_too_weak for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
