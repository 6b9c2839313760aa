"""Checks that an output does not depend on those before it."""

from collections.abc import Sequence

import numpy as np

from epsilometer.arrays import Booleans
from epsilometer.engine.health_statistics import (
    EVIDENCE_THRESHOLD,
    FALSE_ALARM,
    USUAL_DEVIATIONS,
    clustering_evidence,
    hypergeometric_tails,
)
from epsilometer.outputs import Numbers, Outputs
from epsilometer.result import HealthReport

# Distances between draws that are compared.
_LAGS = (1, 2, 3)
# Outputs of a side that are examined; more would not change the answer.
_MAX_ROWS = 100_000
# Columns of the outputs that are examined, the longest first.
_MAX_COLUMNS = 8
# A column with fewer numbers is not examined.
_MIN_ROWS = 32
# Neighbouring outputs that form a group when groups are compared with each other.
_GROUP_SIZE = 8
# Outputs that are grouped.
_MAX_GROUPED_ROWS = 1024
_SIDES = ("left", "right")


def check_order(left: Outputs, right: Outputs) -> list[HealthReport]:
    """Checks whether numbers depend on those before them.

    That shows in outputs which are sorted, cumulative, alternating, or calm and wild by turns.
    """
    reports = []
    for side, outputs in enumerate((left, right)):
        indicators: list[Booleans] = []
        are_clustered = False
        for numbers in _longest_columns(outputs):
            values = numbers[np.isfinite(numbers)]
            if len(values) < _MIN_ROWS:
                continue
            low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
            indicators.append(values > middle)
            indicators.append((values < low) | (values > high))
            quarters = (values > low) + 1 * (values > middle) + (values > high)
            are_clustered |= _are_clustered(quarters)
        if are_clustered:
            text = f"{_SIDES[side]} outputs drawn together are alike"
            reports.append(HealthReport("serial-correlation", text, untrusted=True))
        else:
            reports += check_correlation(side, indicators)
    return reports


def _longest_columns(outputs: Outputs) -> list["np.ndarray[tuple[int], np.dtype[np.float64]]"]:
    """Returns the longest columns of numbers, each of shape (n,)."""
    columns = []
    for block in outputs.take(slice(0, _MAX_ROWS)).blocks:
        for column in block.columns:
            if isinstance(column, Numbers):
                columns.append(column.values)  # noqa: PERF401  # plainer than a nested comprehension
    longest = sorted(columns, key=len, reverse=True)[:_MAX_COLUMNS]
    return [np.asarray(column, dtype=np.float64) for column in longest]


def _are_clustered(quarters: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> bool:
    """Returns whether neighbouring outputs are in the same quarter more often than by chance."""
    n_rows = min(len(quarters) // _GROUP_SIZE * _GROUP_SIZE, _MAX_GROUPED_ROWS)
    groups = quarters[:n_rows].reshape(-1, _GROUP_SIZE, 1)
    counts = (groups == np.arange(4)).sum(axis=1)
    # The columns share one false alarm.
    return bool(clustering_evidence(counts) > EVIDENCE_THRESHOLD + np.log(_MAX_COLUMNS))


def check_correlation(side: int, indicators: Sequence[Booleans]) -> list[HealthReport]:
    """Reports if one of the indicators depends on its own past.

    Independent draws are exchangeable, so given k hits of n every order is equally likely; laying
    the draws out in strides of the lag makes draws a lag apart neighbours, and the number of hits
    that follow a hit is hypergeometric. All indicators share one false alarm.

    Args:
        side: 0 left, 1 right.
        indicators: whether each draw (in order) fell into an event, for some events.
    """
    threshold = FALSE_ALARM / max(1, len(indicators))
    examined = [hits[:_MAX_ROWS] for hits in indicators]
    hit_counts = [int(np.count_nonzero(hits)) for hits in examined]
    for lag in _LAGS:
        for hits, n_hits in zip(examined, hit_counts, strict=True):
            n = len(hits)
            n_followed = _count_followed(hits, lag)
            if n_hits <= 1:
                continue
            tails = hypergeometric_tails(n_followed, n, n_hits - 1, n_hits, USUAL_DEVIATIONS)
            if tails < threshold:
                text = f"{_SIDES[side]} outputs {lag} apart are not independent of each other"
                return [HealthReport("serial-correlation", text, untrusted=True)]
    return []


def _count_followed(hits: Booleans, lag: int) -> int:
    """Returns how many hits are followed by a hit when the draws are laid out in strides.

    First come draws 0, lag, 2 lag, …, then 1, 1 + lag, …, and so on: each stride begins where the
    one before it has ended.
    """
    n = len(hits)
    n_followed = int(np.count_nonzero(hits[lag:] & hits[:-lag]))
    for start in range(min(lag, n) - 1):
        end_of_stride = start + (n - 1 - start) // lag * lag
        start_of_next = start + 1
        n_followed += int(hits[end_of_stride] and hits[start_of_next])
    return n_followed
