"""The log ratios of benchmarks/families are those of the draws.

If each output comes from a side chosen by a fair coin, and r is its exact log ratio, then given all outputs the coins are
independent and heads with probability expit(r). So in every bin of outputs the number of left ones has a known mean and
variance, and Bernstein's inequality bounds its deviation for every number of draws. The bins are those of the ratio
itself, of each part of the output, and of two parts together, since a ratio that overlooks a part is calibrated by
itself. The bins of a test share a false alarm of 1e-9.
"""

import re
import sys
from datetime import date
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.families import all_families

FALSE_ALARM = 1e-9
FAMILIES = {family.name: family for family in all_families()}
DRAWS = 20_000
# What leaks rarely must be seen often enough.
MORE_DRAWS = {
    "rare-mark": 100_000,
    "rare-mark-both-sides": 100_000,
    "rare-far-group": 100_000,
    "synthetic-row": 60_000,
}
# Bins of a part of the output, by ranks; the outer ones hold rare values.
LEVELS = (0.002, 0.03, 0.25, 0.5, 0.75, 0.97, 0.998)
MOST_PAIRED_PARTS = 5
# Rounding of amounts in cents, relative to their scale.
ROUNDING = 1e-6


def parts_of(output):
    """Numbers by which an output can be looked at."""
    if isinstance(output, dict):
        return {f"{key}.{k}": v for key in output for k, v in parts_of(output[key]).items()}
    if isinstance(output, (list, tuple, np.ndarray)):
        parts = {f"{i}.{k}": v for i, each in enumerate(output) for k, v in parts_of(each).items()}
        return {**parts, "length": len(output)}
    if isinstance(output, bytes):
        return {f"byte {i}": value for i, value in enumerate(output)}
    if isinstance(output, str):
        numbers = re.findall(r"\d+\.?\d*", output.replace(",", ""))
        parts = {f"number {i}": float(number) for i, number in enumerate(numbers[:8])}
        letters = {f"letter {i}": ord(letter) for i, letter in enumerate(output[:8])}
        return {**parts, **letters, "length": len(output)}
    return {"value": output.toordinal() if isinstance(output, date) else float(output)}


def bins_of(values):
    """The number of the bin of each value; missing ones have a bin of their own."""
    known = values[~np.isnan(values)]
    edges = np.unique(np.quantile(known, LEVELS, method="lower")) if known.size else []
    return np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))


def columns_of(outputs):
    """Columns of shape (n,) with nan for what an output does not have."""
    if isinstance(outputs, np.ndarray):
        return list(outputs.reshape(len(outputs), -1).T.astype(float))
    rows = [parts_of(output) for output in outputs]
    names = {name: None for row in rows for name in row}
    return [np.array([row.get(name, np.nan) for row in rows], float) for name in names]


def all_bins(log_ratios, left, right):
    """Partitions of the outputs: the numbers of bins, one array of shape (n,) per partition.

    Ratios are rounded: their last bits show how the noise was added, since 0 + x has more bits than 1 + x.
    """
    both = np.concatenate([left, right]) if isinstance(left, np.ndarray) else [*left, *right]
    columns = columns_of(both)
    rounded = np.nan_to_num(np.round(log_ratios, 6), posinf=1e9, neginf=-1e9)
    partitions = [bins_of(rounded), *map(bins_of, columns)]
    halves = [np.where(np.isnan(v), 2, v > np.nanmedian(v)) for v in columns]
    varied = [half for half in halves if np.unique(half).size > 1][:MOST_PAIRED_PARTS]
    # Labels are paired as they are, since halves of them would not show that two are equal.
    labels = [v for v in columns if np.unique(v[~np.isnan(v)]).size <= 8]
    labels = [v for v in labels if np.unique(v).size > 1][:MOST_PAIRED_PARTS]
    for first, second in combinations(varied, 2):
        partitions.append(3 * first + second)
    for first, second in combinations(labels, 2):
        partitions.append(np.where(first == second, 1, 0))
    return partitions


def n_contradictions(is_left, log_ratios, partitions):
    """Bins in which the sides of the outputs contradict their log ratios."""
    chances = expit(log_ratios)
    deviations, variances = [], []
    for numbers in partitions:
        bins = np.unique(numbers, return_inverse=True)[1]
        deviations.append(np.abs(np.bincount(bins, weights=is_left - chances)))
        variances.append(np.bincount(bins, weights=chances * (1.0 - chances)))
    t, variance = np.concatenate(deviations), np.concatenate(variances)
    # Sums of many chances may differ from a count by their rounding.
    t = np.maximum(t - 1e-6, 1e-12)
    p_values = 2.0 * np.exp(-(t**2) / (2.0 * (variance + t / 3.0)))
    return int(np.count_nonzero(p_values < FALSE_ALARM / p_values.size))


@pytest.mark.parametrize("name", FAMILIES)
def test_ratios_are_exact(name, rng):
    family = FAMILIES[name]
    n = MORE_DRAWS.get(name, DRAWS)
    n_left = int(rng.binomial(n, 0.5))
    left = family.draw(family.pair.left, n_left, rng)
    right = family.draw(family.pair.right, n - n_left, rng)
    log_ratios = np.concatenate([family.log_ratio(left), family.log_ratio(right)])
    is_left = np.arange(n) < n_left
    partitions = all_bins(log_ratios, left, right)
    assert n_contradictions(is_left, log_ratios, partitions) == 0
    assert np.abs(log_ratios).max() <= family.truth + ROUNDING
    # So many draws would have shown that the sides differ at all.
    assert n_contradictions(is_left, np.zeros(n), partitions) > 0
