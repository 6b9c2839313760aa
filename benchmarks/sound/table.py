"""The table: margins that pool the runs of many rows, lines for the terminal, Markdown and plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.sound.cases import Case, Rate
from benchmarks.sound.running import Row
from epsilometer.testing import RateTest

# If nothing is wrong, anything in the whole table is called above its rate with at most this probability.
FALSE_ALARM = 1e-9
# Half of it belongs to the single rows, half to the margins; each divides its half equally.
_HALF = 0.5
# Rates against which a margin is weighed, in parts of the way from the allowed rate to 1: it has many runs, so that
# small excesses show.
_PARTS = (0.03, 0.06, 0.12, 0.25, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Margin:
    """The runs of many rows with one allowed rate, together.

    Attributes:
        of: the dimension: "entry", "claim", "outputs" or "all".
        name: in that dimension.
        allowed: the rate.
        rows: pooled.
        runs: of all of them.
        events: likewise.
        evidence: the logarithm of the evidence against the rate.
        is_above: whether that is enough.
    """

    of: str
    name: str
    allowed: float
    rows: int
    runs: int
    events: int
    evidence: float
    is_above: bool


def row_false_alarm(cases: Iterable[Case]) -> float:
    """The share of every single row in the false alarm of the table."""
    n_rates = sum(isinstance(case, Rate) for case in cases)
    return _HALF * FALSE_ALARM / max(n_rates, 1)


def margins(cases: Mapping[str, Case], rows: Iterable[Row]) -> list[Margin]:
    """Every margin of the table."""
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in rows:
        case = cases[row.name]
        if not isinstance(case, Rate) or not case.pools:
            continue
        for dimension, name in (*case.pools.items(), ("all", "all")):
            groups.setdefault((dimension, name, case.allowed), []).append(row)
    found = []
    for (dimension, name, allowed), pooled in groups.items():
        alternatives = [allowed + part * (1.0 - allowed) for part in _PARTS]
        false_alarm = _HALF * FALSE_ALARM / len(groups)
        test = RateTest(
            allowed, alternatives[-1], false_alarm=false_alarm, alternatives=alternatives
        )
        for row in pooled:
            test.add_many(row.events, row.runs)
        found.append(
            Margin(
                of=dimension,
                name=name,
                allowed=allowed,
                rows=len(pooled),
                runs=test.runs,
                events=test.events,
                evidence=test.log_evidence,
                is_above=test.is_broken,
            )
        )
    return found


def line_of(row: Row) -> str:
    """A row for the terminal."""
    mark = {"clear": "ok", "above": "ABOVE", "failed": "FAILED"}.get(row.state, row.state)
    seeds = (
        f"; seeds {', '.join(map(str, row.seeds))}" if row.state == "above" and row.seeds else ""
    )
    note = (
        f"\n          {row.note.strip()}" if row.note and row.state in ("failed", "above") else ""
    )
    return f"{mark:>9}  {row.name}: {_counted(row)}{seeds}  ({row.seconds:.1f} s){note}"


def _counted(row: Row) -> str:
    if row.runs:
        refused = f", {row.refused} refused" if row.refused else ""
        return f"{row.events} of {row.runs}{refused}, allowed {row.allowed:.3g}"
    if not math.isnan(row.figure):
        return f"{row.figure:.6g}, allowed {row.allowed:.6g}"
    return row.state


def summary(rows: Sequence[Row], pooled: Sequence[Margin]) -> str:
    """The whole table in a sentence."""
    states = dict.fromkeys(("clear", "undecided", "refused", "not run", "failed", "above"), 0)
    for row in rows:
        states[row.state] += 1
    counted = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    runs = sum(row.runs for row in rows)
    n_above = sum(margin.is_above for margin in pooled)
    return f"{len(rows)} rows, {runs:,} runs: {counted}; {n_above} of {len(pooled)} margins above their rate"


def markdown(rows: Sequence[Row], pooled: Sequence[Margin]) -> str:
    """The table as it is printed in the documentation."""
    lines = [summary(rows, pooled) + ".", ""]
    for dimension in ("entry", "claim", "outputs", "all"):
        lines += _margin_table(dimension, [margin for margin in pooled if margin.of == dimension])
    singles = [row for row in rows if row.part != "rates"]
    for part in dict.fromkeys(row.part for row in singles):
        lines += [f"| {part} | found | allowed | |", "|---|---:|---:|---|"]
        lines += [_cells(row) for row in singles if row.part == part] + [""]
    bad = [row for row in rows if row.is_bad and row.part == "rates"]
    if bad:
        lines += [
            "| rates above or failed | found | allowed | |",
            "|---|---:|---:|---|",
            *map(_cells, bad),
            "",
        ]
    return "\n".join(lines)


def _cells(row: Row) -> str:
    found = (
        f"{row.events} of {row.runs}"
        if row.runs
        else ("" if math.isnan(row.figure) else f"{row.figure:.4g}")
    )
    allowed = "" if math.isnan(row.allowed) else f"{row.allowed:.4g}"
    state = row.state if not row.refused or not row.runs else f"{row.state}, {row.refused} refused"
    return f"| {row.name} | {found} | {allowed} | {state} |"


def _margin_table(dimension: str, pooled: Sequence[Margin]) -> Iterator[str]:
    """One line per name, a pair of columns per allowed rate."""
    if not pooled:
        return
    rates = sorted({margin.allowed for margin in pooled}, reverse=True)
    yield f"| {dimension} | " + " | ".join(f"allowed {rate:.2g} | share" for rate in rates) + " | |"
    yield "|---|" + "---:|---:|" * len(rates) + "---|"
    for name in dict.fromkeys(margin.name for margin in pooled):
        cells = [name]
        is_above = False
        for rate in rates:
            margin = next(
                (each for each in pooled if each.name == name and each.allowed == rate), None
            )
            has_runs = margin is not None and margin.runs > 0
            cells += (
                [f"{margin.events} of {margin.runs}", f"{margin.events / margin.runs:.3f}"]
                if has_runs
                else ["", ""]
            )
            is_above |= margin is not None and margin.is_above
        yield "| " + " | ".join(cells) + f" | {'above' if is_above else ''} |"
    yield ""


def plain(rows: Sequence[Row], pooled: Sequence[Margin]) -> dict[str, Any]:
    """Everything as plain data; figures that do not exist are None."""
    found = {"summary": summary(rows, pooled), "false_alarm": FALSE_ALARM}
    found["margins"] = [asdict(margin) for margin in pooled]
    found["rows"] = [
        {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(row).items()
        }
        for row in rows
    ]
    return found
