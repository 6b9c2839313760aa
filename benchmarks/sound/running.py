"""Runs rows of the table in processes of their own. A row that fails, hangs or kills its process costs only itself."""

from __future__ import annotations

import functools
import json
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks.sound.cases import Case, Figure, Rate, all_cases
from epsilometer.errors import InputError
from epsilometer.suites.workers import Job, run_tasks
from epsilometer.testing import RateTest

# A row at its allowed rate plus this much is called clear with probability 1 % at most. What is nearer to the allowed
# rate shows in the margins of the table, where the runs of many rows are pooled.
EXCESS = 0.3
# A row of the table that is still undecided after so many seconds is reported as it is.
MOST_SECONDS = 60.0
# A process that does not answer for so long is ended.
STUCK_SECONDS = 180.0
# Seeds of events that a row keeps, to look at them one by one.
_MOST_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What all rows have in common.

    Attributes:
        seed: of the whole table; every run of every row has its own from it.
        runs: the most per row.
        false_alarm: with which a single row that keeps its rate may be called above it.
        most_seconds: after which a row that is still undecided ends. Tests have none: on a busy machine a
            clock would decide instead of the runs.
    """

    seed: int
    runs: int
    false_alarm: float
    most_seconds: float = MOST_SECONDS


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a case.

    Attributes:
        part: of the table.
        name: of the case.
        state: "clear", "undecided" (too few runs to say), "above" (its rate, or what is allowed), "refused" (the
            program does by no means do it), "failed" or "not run".
        allowed: the rate, or the greatest figure.
        runs: that gave an answer.
        events: in how many of them a true claim was refuted, or a bound was above the truth.
        refused: runs that the program refused by name.
        figure: of an enumeration; the share of events otherwise.
        evidence: the logarithm of the evidence against the rate.
        note: what went wrong, or where a figure is largest.
        seeds: of the first events.
        seconds: it took.
    """

    part: str
    name: str
    state: str
    allowed: float = float("nan")
    runs: int = 0
    events: int = 0
    refused: int = 0
    figure: float = float("nan")
    evidence: float = 0.0
    note: str = ""
    seeds: tuple[int, ...] = field(default=())
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Whether the table must not be green."""
        return self.state in ("above", "failed")


_known_cases = functools.cache(all_cases)


def seed_of(plan_seed: int, name: str, run: int) -> int:
    """The seed of one run of one row, whichever other rows are run."""
    sequence = np.random.SeedSequence([plan_seed, zlib.crc32(name.encode())], spawn_key=(run,))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(2))


def run_row(case: Case, plan: Plan) -> Row:
    """Runs one row in this process."""
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = _run_rate(case, plan, began) if isinstance(case, Rate) else _work_out(case, plan)
    return Row(**{**asdict(row), "seconds": round(time.monotonic() - began, 3)})


def _run_rate(case: Rate, plan: Plan, began: float) -> Row:
    broken = min(case.allowed + EXCESS, 0.5 * (1.0 + case.allowed))
    test = RateTest(case.allowed, broken, false_alarm=plan.false_alarm)
    seeds: list[int] = []
    refused = 0
    note = ""
    failed = False
    for run in range(plan.runs):
        seed = seed_of(plan.seed, case.name, run)
        try:
            event = case.run(seed)
        except InputError as error:
            event, note = None, f"refused: {error}"[:300]
        except Exception:
            failed, note = True, f"seed {seed}: {traceback.format_exc(limit=-3)}"
            break
        if event is None:
            refused += 1
        else:
            test.add(event)
            seeds += [seed] if event else []
        # A program that refuses from the start will go on refusing.
        is_refusing = refused >= 3 and test.runs == 0
        if (
            test.is_clear
            or test.is_broken
            or is_refusing
            or time.monotonic() - began > plan.most_seconds
        ):
            break
    if failed:
        state = "failed"
    elif test.is_broken:
        state = "above"
    elif test.is_clear:
        state = "clear"
    else:
        state = "refused" if refused and not test.runs else "undecided"
    return Row(
        part=case.part,
        name=case.name,
        state=state,
        allowed=case.allowed,
        runs=test.runs,
        events=test.events,
        refused=refused,
        figure=test.events / test.runs if test.runs else float("nan"),
        evidence=test.log_evidence,
        note=note,
        seeds=tuple(seeds[:_MOST_SEEDS]),
    )


def _work_out(case: Figure, plan: Plan) -> Row:
    seed = seed_of(plan.seed, case.name, 0)
    try:
        figure, allowed, where = case.work_out(seed)
    except InputError as error:
        return Row(case.part, case.name, "refused", note=str(error)[:300])
    except Exception:
        return Row(
            case.part, case.name, "failed", note=f"seed {seed}: {traceback.format_exc(limit=-3)}"
        )
    # A figure that is not a number is above everything.
    state = "clear" if figure <= allowed else "above"
    return Row(case.part, case.name, state, allowed=allowed, figure=figure, note=where)


def answer(payload: Mapping[str, Any]) -> str:
    """Runs one row in a worker and tells about it in JSON."""
    row = run_row(_known_cases()[payload["name"]], Plan(**payload["plan"]))
    return json.dumps(asdict(row))


def run_rows(cases: Sequence[Case], plan: Plan, jobs: int, ends: float) -> Iterator[Row]:
    """Rows as they are done, in any order; those for which no time is left come last, as not run.

    Args:
        cases: begun in this order.
        plan: what they have in common.
        jobs: processes.
        ends: by the monotonic clock; what is running then is given up.
    """
    waiting = dict(enumerate(cases))
    tasks = [Job({"name": case.name, "plan": asdict(plan)}, STUCK_SECONDS) for case in cases]
    news_of_tasks = run_tasks(answer, tasks, jobs)
    for news in news_of_tasks:
        if news.state == "started":
            if time.monotonic() > ends:
                break
            continue
        case = waiting.pop(news.number)
        if news.state == "done":
            content = json.loads(news.answer)
            yield Row(**{**content, "seeds": tuple(content["seeds"])})
        else:
            yield Row(case.part, case.name, "failed", note=f"seed {plan.seed}: {news.answer}")
    news_of_tasks.close()  # type: ignore[attr-defined]
    for case in waiting.values():
        yield Row(case.part, case.name, "not run", note="no time was left")
