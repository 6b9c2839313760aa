"""`make bench ARGS="generated --count 200 --seed 1"`: shares of the oracle on mechanisms that nobody chose."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.generated import FIRST_REPORTING_SET
from benchmarks.generated.measuring import measure_set
from benchmarks.generated.oracle import POPULATION
from benchmarks.generated.table import markdown, summary, title_of

OUT = Path("benchmarks/out")


def main(arguments: Sequence[str] | None = None) -> int:
    """Audits a set and prints its table; the exit status is 0."""
    chosen = _parse(arguments)
    is_report = chosen.seed >= FIRST_REPORTING_SET
    outcomes = measure_set(
        chosen.seed,
        chosen.count,
        chosen.samples,
        jobs=chosen.jobs,
        population=chosen.population,
        is_outside=chosen.families,
        is_told=chosen.told,
    )
    title = title_of(
        chosen.seed,
        chosen.count,
        chosen.samples,
        is_outside=chosen.families,
        is_told=chosen.told,
    )
    print(markdown(outcomes, title, is_closed=is_report and not chosen.worst))
    if chosen.json is not None:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "set": chosen.seed,
            "samples": chosen.samples,
            "summary": summary(outcomes),
            "mechanisms": [outcome.to_dict() for outcome in outcomes],
        }
        chosen.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks generated", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mechanisms [default: 200]")
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help=f"of the set; from {FIRST_REPORTING_SET} on for reporting [default: 1]",
    )
    parser.add_argument(
        "--samples", type=_whole, default=10_000, help="draws per side [default: 1e4]"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes [default: 2]")
    parser.add_argument(
        "--population",
        type=_whole,
        default=POPULATION,
        help=f"draws from which an oracle is found [default: {POPULATION:.0e}]",
    )
    parser.add_argument(
        "--families",
        action="store_true",
        help="ten families outside the grammar, in turn, instead of the grammar",
    )
    parser.add_argument(
        "--told",
        action="store_true",
        help="replace outputs by their exact log-likelihood ratios: what a learner could prove that knew the score",
    )
    parser.add_argument("--json", type=Path, default=None, help="file for all outcomes")
    parser.add_argument(
        "--worst",
        action="store_true",
        help="show groups and single mechanisms of a reporting set, too: it is a development set from then on",
    )
    return parser.parse_args(arguments)


def _whole(text: str) -> int:
    return int(float(text))


if __name__ == "__main__":
    sys.exit(main())
