"""A few kilobytes that keep the shape of both output distributions, so that any result can draw its loss function."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.outputs import Numbers, Outputs

# Enough for the eye; as JSON about 1 kB per side.
BINS = 96
# Outcomes beyond the most frequent ones are left out of the picture.
_MOST_ATOMS = 32
# Draws per side that are looked at: more would not change the picture.
_MOST_ROWS = 40_000
# A value seen at least this often is shown on its own.
_REPEATS = 5
# The bins cover all but this share of the draws at each end.
_TAIL = 0.002


def binned_densities(left: Outputs, right: Outputs) -> dict[str, Any] | None:
    """Counts of both sides in bins and of repeated values, for outputs that are one number or one name each.

    Returns:
        Plain data: `n` (draws of left and right), `atoms` (values or names that repeat) with `left_atoms` and
        `right_atoms`, and, where something varies, `low`, `high`, `left`, `right` (counts in even bins), `bandwidth`.
        None for outputs of several dimensions or shapes.
    """
    left, right = (side.take(slice(0, _MOST_ROWS)) for side in (left, right))
    shapes = {block.shape for side in (left, right) for block in side.blocks if block.size}
    if len(shapes) != 1 or not len(left) or not len(right) or len(left.blocks[0].columns) != 1:
        return None
    data: dict[str, Any] = {"n": [len(left), len(right)]}
    columns = [side.blocks[0].columns[0] for side in (left, right)]
    if not all(isinstance(column, Numbers) and column.values.dtype.kind == "f" for column in columns):
        return data | _atoms_of(left, right)
    values = [np.asarray(column.values, np.float64) for column in columns if isinstance(column, Numbers)]
    repeated = _repeated(np.concatenate(values))
    alone = [np.isin(side, repeated) for side in values] if len(repeated) else None
    data |= {"atoms": repeated.tolist()}
    for name, side in zip(("left_atoms", "right_atoms"), values, strict=True):
        data[name] = [int(np.count_nonzero(side == atom)) for atom in repeated]
    rest = values if alone is None else [side[~mask] for side, mask in zip(values, alone, strict=True)]
    return data | _bins_of([side[np.isfinite(side)] for side in rest])


def _atoms_of(left: Outputs, right: Outputs) -> dict[str, Any]:
    from epsilometer.methods.published.local.samples import count_outcomes  # not needed for numbers

    outcomes = count_outcomes(left, right)
    total = outcomes.left + outcomes.right
    kept = np.sort(np.argsort(-total, kind="stable")[:_MOST_ATOMS])
    if (numbers := outcomes.numbers()) is not None:
        kept = kept[np.argsort(numbers[kept], kind="stable")]
    return {
        "atoms": [outcomes.value(int(number)) for number in kept],
        "left_atoms": outcomes.left[kept].tolist(),
        "right_atoms": outcomes.right[kept].tolist(),
    }


def _repeated(values: Floats) -> Floats:
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    most = np.argsort(-counts, kind="stable")[:_MOST_ATOMS]
    return np.sort(distinct[most[counts[most] >= _REPEATS]])


def _bins_of(sides: list[Floats]) -> dict[str, Any]:
    if min(len(side) for side in sides) < 2 * _REPEATS:
        return {}
    ends = [np.quantile(side, [_TAIL, 1.0 - _TAIL]) for side in sides]
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    if not np.finfo(np.float64).tiny < (high - low) / BINS < np.inf:  # equal, or beyond what floats can divide
        return {}
    counts, widths = [], []
    for side in sides:
        # Unlike numpy's histogram, this works even with fewer floats than bins between the ends.
        inside = side[(side >= low) & (side <= high)]
        places = np.minimum(((inside - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
        counts.append(np.bincount(places, minlength=BINS).tolist())
        widths.append(_bandwidth(side))
    return {"low": low, "high": high, "left": counts[0], "right": counts[1], "bandwidth": min(widths)}


def _bandwidth(values: Floats) -> float:
    """Silverman's rule of thumb, as `bw.nrd0` of R has it: 0.9 · spread · n^(−1/5)."""
    quartiles = np.quantile(values, [0.25, 0.75])
    with np.errstate(over="ignore", invalid="ignore"):  # a single 1e300 has an infinite variance
        deviation = float(values.std(ddof=1))
    spread = min(deviation, float(quartiles[1] - quartiles[0]) / 1.34) or deviation or abs(float(values[0])) or 1.0
    return float(0.9 * spread * len(values) ** -0.2)
