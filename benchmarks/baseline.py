"""Compares a run with the committed one and tells what got worse by more than noise.

Only ratios within one run are compared: seconds say more about the machine than about the code. The noise of a figure
is estimated from its repeats in both runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measurement import Measurement, standard_error

PATH = Path(__file__).with_name("baseline.json")
_COMPARED = ("×", "slope")
# A difference of so many standard errors is no chance: among a hundred figures, a false alarm in a few hundred runs.
_SPREADS = 4.0
# What differs by less than this share is not worth a look: another build of NumPy moves ratios as much.
_WORTH_A_LOOK = 0.1
# The standard error of a figure with too few repeats to tell, as a share of it.
_UNKNOWN = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in two runs.

    Attributes:
        key: group and name.
        before: the figure of the baseline.
        after: the figure now.
        noise: how far the two may lie apart by chance.
        verdict: "worse", "better" or "same".
    """

    key: str
    before: float
    after: float
    noise: float
    verdict: str


def compare(before: Iterable[Measurement], after: Iterable[Measurement]) -> list[Change]:
    """All figures that both runs have, in the order of the later one."""
    known = {each.key: each for each in before if each.unit in _COMPARED}
    return [_change(known[each.key], each) for each in after if each.key in known and each.unit in _COMPARED]


def _change(before: Measurement, after: Measurement) -> Change:
    noise = max(_SPREADS * math.hypot(_error(before), _error(after)), _WORTH_A_LOOK * abs(before.value))
    gain = after.value - before.value if after.relation == "≥" else before.value - after.value
    verdict = "worse" if gain < -noise else "better" if gain > noise else "same"
    return Change(after.key, before.value, after.value, noise, verdict)


def _error(measurement: Measurement) -> float:
    known = standard_error(measurement.values)
    return _UNKNOWN * abs(measurement.value) if known is None else known


def read(path: Path) -> list[Measurement]:
    """The measurements of a file; none if there is no such file."""
    if not path.exists():
        return []
    return [Measurement.from_dict(each) for each in json.loads(path.read_text(encoding="utf-8"))["measurements"]]


def write(path: Path, measured: Sequence[Measurement], settings: dict[str, Any]) -> None:
    """The measurements as JSON; figures of other groups that the file holds stay."""
    groups = {each.group for each in measured}
    kept = [each for each in read(path) if each.group not in groups]
    content = {"settings": settings, "measurements": [each.to_dict() for each in [*kept, *measured]]}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def describe(changes: Sequence[Change]) -> str:
    """What changed, one line each; a word if nothing did."""
    lines = [
        f"{change.verdict}: {change.key}: {change.before:.3g} → {change.after:.3g} (noise {change.noise:.2g})"
        for change in changes
        if change.verdict != "same"
    ]
    return "\n".join(lines) or f"{len(changes)} ratios compared with the baseline, none differs by more than noise"
