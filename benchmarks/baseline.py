"""Compares a run with the committed one and tells what got worse by more than noise.

Only ratios within one run are compared: seconds say more about the machine than about the code. The noise of a figure
is estimated from its repeats in both runs. A repeat has the same seed in every run, so repeats are compared one by one:
that an audit takes longer with one seed than with another is no noise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy.special import stdtrit

from benchmarks.measurement import Measurement, standard_error
from epsilometer.storage.writing import write_atomically

PATH = Path(__file__).with_name("baseline.json")
_COMPARED = ("×", "slope")
# How often noise alone may look worse, for one figure (Student's law); most such differences are not worth a look.
_FALSE_ALARM = 1e-3
# What differs by less than this share is not worth a look: another build of NumPy moves ratios as much.
_WORTH_A_LOOK = 0.1
# Half of how far two figures with too few repeats may lie apart, as a share of them.
_UNKNOWN = 0.25


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
    return [
        _change(known[each.key], each)
        for each in after
        if each.key in known and each.unit in _COMPARED
    ]


def _change(before: Measurement, after: Measurement) -> Change:
    difference, reach = _difference(before, after)
    noise = max(reach, _WORTH_A_LOOK * abs(before.value))
    gain = difference if after.relation == "≥" else -difference
    verdict = "worse" if gain < -noise else "better" if gain > noise else "same"
    return Change(after.key, before.value, after.value, noise, verdict)


def _difference(before: Measurement, after: Measurement) -> tuple[float, float]:
    """How much the later figure is larger, and how much of that may be chance."""
    if len(before.values) == len(after.values):
        differences = [b - a for a, b in zip(before.values, after.values, strict=True)]
        error = standard_error(differences)
        if error is not None:
            return fmean(differences), error * _spreads(len(differences))
    errors = [standard_error(each.values) for each in (before, after)]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return after.value - before.value, _UNKNOWN * (abs(before.value) + abs(after.value))
    fewest = min(len(before.values), len(after.values))
    return fmean(after.values) - fmean(before.values), math.hypot(*known) * _spreads(fewest)


def _spreads(n: int) -> float:
    """How many standard errors from 0 a mean of n values may lie by chance."""
    return float(stdtrit(n - 1, 1.0 - _FALSE_ALARM))


def read(path: Path) -> list[Measurement]:
    """The measurements of a file; none if there is no such file."""
    if not path.exists():
        return []
    return [
        Measurement.from_dict(each)
        for each in json.loads(path.read_text(encoding="utf-8"))["measurements"]
    ]


def write(path: Path, measured: Sequence[Measurement], settings: dict[str, Any]) -> None:
    """The measurements as JSON; figures of other groups that the file holds stay."""
    groups = {each.group for each in measured}
    kept = [each for each in read(path) if each.group not in groups]
    content = {
        "settings": settings,
        "measurements": [each.to_dict() for each in [*kept, *measured]],
    }
    write_atomically(
        path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    )


def describe(changes: Sequence[Change]) -> str:
    """What changed, one line each; a word if nothing did."""
    lines = [
        f"{change.verdict}: {change.key}: {change.before:.3g} → {change.after:.3g} (noise {change.noise:.2g})"
        for change in changes
        if change.verdict != "same"
    ]
    return (
        "\n".join(lines)
        or f"{len(changes)} ratios compared with the baseline, none differs by more than noise"
    )
