"""Learns from training draws how outputs of one shape become points: what kernels and networks work on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsilometer.outputs import Block, Labels, Numbers
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.coding import CodedColumn
from epsilometer.outputs.columns import Column
from epsilometer.outputs.embedding import Embedding, NameAxis, NumberAxis

# Names that get a corner of their own; the rest share one.
_MOST_NAMES = 32
# Draws per side that tell where the middle is.
_MOST_ROWS = 50_000
# Spread of a normal law in units of its interquartile range.
_QUARTILES = 1.349


def fit_embedding(left: Block, right: Block, columns: Sequence[int]) -> Embedding:
    """Every number in units of its pooled spread, every frequent name a corner.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns to read.
    """
    return Embedding(tuple(_axis(left.columns[number], right.columns[number], number) for number in columns))


def _axis(left: Column, right: Column, number: int) -> NumberAxis | NameAxis:
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        sides = [np.asarray(side.values[:_MOST_ROWS], dtype=np.float64) for side in (left, right)]
        values = np.concatenate(sides)
        return NumberAxis(number, *_middle_and_spread(values[np.isfinite(values)]))
    counts: dict[str, int] = {}
    for side in (left, right):
        assert isinstance(side, Labels)  # what is no column of numbers is one of names
        for label, count in zip(side.labels, np.bincount(side.codes, minlength=len(side.labels)).tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
    frequent = sorted(counts, key=lambda label: -counts[label])[:_MOST_NAMES]
    return NameAxis(CodedColumn(number, LabelAtoms(tuple(frequent))))


def _middle_and_spread(values: np.ndarray) -> tuple[float, float]:
    """Median and robust spread; a spread of 1 where nothing varies, or too much for a float."""
    if not len(values):
        return 0.0, 1.0
    low, middle, high = (float(each) for each in np.quantile(values, [0.25, 0.5, 0.75]))
    with np.errstate(over="ignore", invalid="ignore"):
        candidates = [(high - low) / _QUARTILES, float(values.std())]
    spread = next((each for each in candidates if 1e-150 < each < 1e150), 1.0)
    return middle, spread
