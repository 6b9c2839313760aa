"""`make sound`: runs what a sceptic would and prints the table as it grows; status 1 if anything is wrong."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.sound.cases import Case, all_cases
from benchmarks.sound.running import Plan, Row, run_rows
from benchmarks.sound.table import (
    Margin,
    line_of,
    margins,
    markdown,
    plain,
    row_false_alarm,
    summary,
)
from epsilometer.environment import describe_environment

OUT = Path("benchmarks/out/sound")
FIGURES = Path("docs/figures.json")
# Rows whose lines are printed one by one; of the others only what is wrong is, and a line per entry.
_SINGLY = ("enumerations", "seams", "tampering")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status is 1 if a row or a margin is above its rate, or a row failed; else 0."""
    chosen = _parse(arguments)
    cases = _selected(chosen.only)
    if not cases:
        print(f"sound: no row has {chosen.only!r} in its name; --list shows all names")
        return 2
    if chosen.list:
        print("\n".join(cases))
        return 0
    seed = secrets.randbits(48) if chosen.seed is None else chosen.seed
    rows: list[Row] = []
    if chosen.resume:
        seed, rows = _done_before(chosen)
    # Those that run now; the table has the earlier ones, too.
    waiting = {name: case for name, case in cases.items() if name not in {row.name for row in rows}}
    cases = {
        name: case
        for name, case in all_cases().items()
        if name in cases or name in {row.name for row in rows}
    }
    ends = time.monotonic() + 60.0 * chosen.minutes
    plan = Plan(seed, chosen.runs, row_false_alarm(all_cases().values()))
    print(
        f"sound: {len(waiting)} rows, seed {seed}, at most {chosen.minutes:g} minutes, {chosen.jobs} processes",
        flush=True,
    )
    # In the workers, which load NumPy after this: processes that each take all cores wait for one another.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    left = _rows_by_entry(waiting)
    for row in run_rows(list(waiting.values()), plan, chosen.jobs, ends):
        rows.append(row)
        if row.state != "not run":
            _show(row, cases, left, rows)
    order = {name: place for place, name in enumerate(cases)}
    rows.sort(key=lambda row: order[row.name])
    pooled = margins(cases, rows)
    _write(chosen.out, rows, pooled, {"seed": seed, "runs": chosen.runs, "only": chosen.only})
    if chosen.document:
        _document(chosen, rows, pooled, seed)
    for margin in pooled:
        if margin.is_above:
            print(
                f"    ABOVE  {margin.of} {margin.name}: {margin.events} of {margin.runs}, allowed {margin.allowed:.3g}"
            )
    print(f"sound: {summary(rows, pooled)}; {chosen.out / 'table.md'}")
    return int(any(row.is_bad for row in rows) or any(margin.is_above for margin in pooled))


def _done_before(chosen: argparse.Namespace) -> tuple[int, list[Row]]:
    """The seed of the table in the folder, and the rows that it has and that need not run again.

    A row has the same seeds whenever it runs, so that a table in two parts is the one that a longer
    run would have made.
    """
    stored = json.loads((chosen.out / "table.json").read_text(encoding="utf-8"))
    done = [
        Row(**{**row, "seeds": tuple(row["seeds"]), **_figures_of(row)})
        for row in stored["rows"]
        if row["state"] not in ("not run", "failed")
    ]
    return int(stored["settings"]["seed"]), done


def _figures_of(row: dict[str, Any]) -> dict[str, float]:
    """Figures that do not exist are None in the file."""
    return {
        name: float("nan") if row[name] is None else row[name] for name in ("allowed", "figure")
    }


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sound", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=26.0, help="no row is begun after that time [default: 26]"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="rows with this text in their names, or of this part; may be repeated",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=200,
        help="the most per row; clear ones end before [default: 200]",
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="repeats a table [default: fresh, and printed]"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="goes on with the table in --out: runs what was not run or failed, with its seed",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 2, help="processes [default: one per core]"
    )
    parser.add_argument(
        "--out", type=Path, default=OUT, help=f"folder for table.json and table.md [default: {OUT}]"
    )
    parser.add_argument(
        "--list", action="store_true", help="shows the names of the rows and runs none"
    )
    parser.add_argument(
        "--document",
        action="store_true",
        help=f"puts the table into {FIGURES}; `make figures` then fills the page",
    )
    return parser.parse_args(arguments)


def _selected(texts: Sequence[str]) -> dict[str, Case]:
    cases = all_cases()
    if not texts:
        return cases
    return {
        name: case
        for name, case in cases.items()
        if any(text == case.part or text in name for text in texts)
    }


def _entry_of(case: Case) -> str:
    return getattr(case, "pools", {}).get("entry", "")


def _rows_by_entry(cases: dict[str, Case]) -> dict[str, int]:
    left: dict[str, int] = {}
    for case in cases.values():
        left[_entry_of(case)] = left.get(_entry_of(case), 0) + 1
    return left


def _show(row: Row, cases: dict[str, Case], left: dict[str, int], rows: Sequence[Row]) -> None:
    """Prints a row that stands for itself or is wrong, and an entry whose last row this was."""
    entry = _entry_of(cases[row.name])
    left[entry] -= 1
    if row.part in _SINGLY or row.is_bad:
        print(line_of(row), flush=True)
    if entry and left[entry] == 0:
        done = [each for each in rows if _entry_of(cases[each.name]) == entry]
        shares = []
        for allowed in sorted({each.allowed for each in done if each.runs}, reverse=True):
            alike = [each for each in done if each.runs and each.allowed == allowed]
            events, runs = sum(each.events for each in alike), sum(each.runs for each in alike)
            shares.append(f"{events} of {runs} = {events / runs:.3f}, allowed {allowed:.2g}")
        wrong = sum(each.is_bad for each in done)
        mark = f"{wrong} WRONG" if wrong else "ok"
        print(
            f"{mark:>9}  {entry}: {len(done)} rows; {'; '.join(shares)}  [{len(rows)} of {len(cases)} rows]",
            flush=True,
        )


def _write(
    out: Path, rows: Sequence[Row], pooled: Sequence[Margin], settings: dict[str, object]
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    content = {"settings": settings, "environment": describe_environment(), **plain(rows, pooled)}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    (out / "table.json").write_text(text + "\n", encoding="utf-8")
    (out / "table.md").write_text(f"# Soundness\n\n{markdown(rows, pooled)}\n", encoding="utf-8")


def _document(
    chosen: argparse.Namespace, rows: Sequence[Row], pooled: Sequence[Margin], seed: int
) -> None:
    """Keeps the table, and the command that gives it, for `docs/generate.py`."""
    only = "".join(f" --only '{text}'" for text in chosen.only)
    # A table in several parts is the one that a single, longer run would have made.
    minutes = "" if chosen.resume else f" --minutes {chosen.minutes:g}"
    only = "" if chosen.resume else only
    command = f'make sound ARGS="--seed {seed}{minutes} --runs {chosen.runs}{only}"'
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    figures["soundness"] = {"command": command, "markdown": markdown(rows, pooled).split("\n")}
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
