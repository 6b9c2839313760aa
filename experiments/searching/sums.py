"""Bugs of sums, means and counts of numbers: values that are not numbers, bounds, sizes, sensitivities, branches.

Every right twin says why it keeps its claim. Neighbours by "replace" have the same size, so that a noise scale may
depend on it; by "add-remove" nothing may. `number` puts any record into the bounds, whatever it holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from epsilometer.inputs.domains import Boolean, Integer, Number, Optional, Records
from epsilometer_experiments.searching.bug import Bug, Rng, number, numbers

_UNIT = Number(0.0, 1.0)
_NAN, _INF = math.nan, math.inf


# Values that are no numbers


def sum_with_nan(data: Any, rng: Rng) -> Any:
    """`max` and `min` let NaN through, and a sum with NaN is NaN whatever the noise."""
    return sum(min(max(value, 0.0), 1.0) for value in data) + rng.laplace()


def sum_without_nan(data: Any, rng: Rng) -> float:
    """One record moves the sum by at most 1."""
    return sum(numbers(data, 0.0, 1.0)) + rng.laplace()


def mean_of_finite(data: Any, rng: Rng) -> Any:
    """Drops what is not finite, but takes the noise for the number of all records."""
    kept = [min(max(value, 0.0), 1.0) for value in data if math.isfinite(value)]
    return sum(kept) / max(len(kept), 1) + rng.laplace(0.0, 1.0 / len(data))


def mean_of_all(data: Any, rng: Rng) -> float:
    """One record of n moves the mean of n numbers of [0, 1] by at most 1/n."""
    return sum(numbers(data, 0.0, 1.0)) / len(data) + rng.laplace(0.0, 1.0 / len(data))


def mean_of_answers(data: Any, rng: Rng) -> Any:
    """Missing answers are dropped from the mean, but counted for the noise."""
    given = [min(max(value, 0.0), 1.0) for value in data if value is not None]
    return sum(given) / max(len(given), 1) + rng.laplace(0.0, 1.0 / len(data))


def missing_counted(data: Any, rng: Rng) -> dict[str, float]:
    """Reports exactly how many answers are missing."""
    total = sum(number(value, 0.0, 1.0) for value in data if value is not None)
    return {"sum": total + rng.laplace(), "missing": sum(value is None for value in data)}


def missing_with_noise(data: Any, rng: Rng) -> dict[str, float]:
    """Both move by at most 1 and get ε/2."""
    total = sum(number(value, 0.0, 1.0) for value in data if value is not None)
    return {
        "sum": total + rng.laplace(0.0, 2.0),
        "missing": sum(value is None for value in data) + rng.laplace(0.0, 2.0),
    }


def squashed_sum(data: Any, rng: Rng) -> Any:
    """x/(1+|x|) is below 1 for every number, but inf/inf is NaN."""
    return sum(value / (1.0 + abs(value)) for value in data if not math.isnan(value)) + rng.laplace(
        0.0, 2.0
    )


def squashed_right(data: Any, rng: Rng) -> float:
    """Each term is in (−1, 1), so a replaced record moves the sum by less than 2."""
    clipped = numbers(data, -1e9, 1e9)
    return sum(value / (1.0 + abs(value)) for value in clipped) + rng.laplace(0.0, 2.0)


def angles(data: Any, rng: Rng) -> float:
    """Angles of numbers of [0, 1] are within π/4 of each other, except that of −0.0, which is −π."""
    clipped = [min(max(value, 0.0), 1.0) if value == value else 0.5 for value in data]
    return sum(math.atan2(value, -1.0) for value in clipped) + rng.laplace(0.0, math.pi / 4.0)


def angles_right(data: Any, rng: Rng) -> float:
    """Without the sign of zero (0.0 + −0.0 is 0.0) each angle is in [3π/4, π]."""
    return sum(math.atan2(0.0 + value, -1.0) for value in numbers(data, 0.0, 1.0)) + rng.laplace(
        0.0, math.pi / 4.0
    )


# Bounds


def _finite(data: Any) -> list[Any]:
    """What is not finite counts as 0, so that these bugs show at numbers only."""
    return [value if math.isfinite(value) else 0.0 for value in data]


def trusting_sum(data: Any, rng: Rng) -> Any:
    """Takes the declared bounds for granted."""
    return sum(_finite(data)) + rng.laplace()


def only_capped(data: Any, rng: Rng) -> Any:
    """Clips from above only."""
    return sum(min(value, 1.0) for value in _finite(data)) + rng.laplace()


def clipped_late(data: Any, rng: Rng) -> Any:
    """Clips the mean instead of the values."""
    return min(max(sum(_finite(data)) / len(data), 0.0), 1.0) + rng.laplace(0.0, 1.0 / len(data))


def last_bin_open(data: Any, rng: Rng) -> list[float]:
    """Values at the upper bound fall into a fifth bin, which gets no noise."""
    bins = [0.0] * 5
    for value in data:
        bins[int(min(max(value, 0.0), 1.0) * 4)] += 1.0
    noisy = [count + rng.laplace(0.0, 2.0) for count in bins[:4]]
    return noisy + bins[4:]


def four_bins(data: Any, rng: Rng) -> list[float]:
    """A replaced record moves two of the counts by 1."""
    bins = [0.0] * 4
    for value in numbers(data, 0.0, 1.0):
        bins[min(int(value * 4), 3)] += 1.0
    return [count + rng.laplace(0.0, 2.0) for count in bins]


def sum_of_logarithms(data: Any, rng: Rng) -> float:
    """Calibrated to values of at least 0.01; the logarithm of the lower bound, 0, is not that small."""
    logs = [math.log10(value) if value > 0.0 else -_INF for value in data]
    return sum(logs) + rng.laplace(0.0, 2.0)


def logarithms_right(data: Any, rng: Rng) -> float:
    """Each logarithm is in [−2, 0]."""
    return sum(math.log10(value) for value in numbers(data, 0.01, 1.0)) + rng.laplace(0.0, 2.0)


def half_width(data: Any, rng: Rng) -> float:
    """The width of [−1, 1] is taken for 1."""
    return sum(numbers(data, -1.0, 1.0)) / len(data) + rng.laplace(0.0, 1.0 / len(data))


def whole_width(data: Any, rng: Rng) -> float:
    """One of n numbers of [−1, 1] moves the mean by at most 2/n."""
    return sum(numbers(data, -1.0, 1.0)) / len(data) + rng.laplace(0.0, 2.0 / len(data))


# The size of the dataset, and none


def silent_when_empty(data: Any, rng: Rng) -> float:
    """Nothing to protect, it seems."""
    return sum(numbers(data, 0.0, 1.0)) + rng.laplace() if len(data) else 0.0


def single_as_it_is(data: Any, rng: Rng) -> float:
    """The mean of one record is the record."""
    if len(data) == 1:
        return float(data[0])
    return mean_of_all(data, rng)


def public_size(data: Any, rng: Rng) -> float:
    """The noise has a scale of 1/n, as if nobody could be added or removed."""
    return mean_of_all(data, rng)


def private_size(data: Any, rng: Rng) -> float:
    """Sum and count move by at most 1 and get ε/2 each; the quotient only looks at the noisy ones."""
    total = sum(numbers(data, 0.0, 1.0)) + rng.laplace(0.0, 2.0)
    return total / max(len(data) + rng.laplace(0.0, 2.0), 1.0)


def size_reported(data: Any, rng: Rng) -> dict[str, float]:
    """A noisy sum beside the exact number of records."""
    return {"sum": sum(numbers(data, 0.0, 1.0)) + rng.laplace(), "rows": len(data)}


def size_with_noise(data: Any, rng: Rng) -> dict[str, float]:
    """Both move by at most 1 and get ε/2."""
    return {
        "sum": sum(numbers(data, 0.0, 1.0)) + rng.laplace(0.0, 2.0),
        "rows": len(data) + rng.laplace(0.0, 2.0),
    }


def answers_one_by_one(data: Any, rng: Rng) -> list[bool]:
    """Randomised response for each record: right where one is replaced; but the output has a length."""
    return [bool(value) != (rng.random() < 1.0 / (1.0 + math.e)) for value in data]


def answers_counted(data: Any, rng: Rng) -> list[float]:
    """Added or removed, a record moves one of the two counts by 1."""
    yes = sum(bool(value) for value in data)
    return [yes + rng.laplace(), len(data) - yes + rng.laplace()]


def as_if_twelve(data: Any, rng: Rng) -> float:
    """Calibrated to the twelve records that there usually are."""
    return sum(numbers(data, 0.0, 1.0)) / len(data) + rng.laplace(0.0, 1.0 / 12.0)


def exact_when_large(data: Any, rng: Rng) -> float:
    """Counts of eight or more pass for harmless."""
    return float(len(data)) if len(data) >= 8 else len(data) + rng.laplace()


def never_exact(data: Any, rng: Rng) -> float:
    """A record moves the count by 1."""
    return len(data) + rng.laplace()


def suppressed_when_small(data: Any, rng: Rng) -> float | None:
    """Decides by the true number of records whether to answer."""
    return None if len(data) < 5 else sum(numbers(data, 0.0, 1.0)) + rng.laplace()


def suppressed_by_noise(data: Any, rng: Rng) -> float | None:
    """Decides by a noisy count (ε/2), answers with a noisy sum (ε/2)."""
    total = sum(numbers(data, 0.0, 1.0)) + rng.laplace(0.0, 2.0)
    return total if len(data) + rng.laplace(0.0, 2.0) >= 5.0 else None


# Data-dependent bounds and noise


def range_of_the_data(data: Any, rng: Rng) -> float:
    """The noise is scaled to the smallest and the largest value that are there."""
    values = numbers(data, 0.0, 1.0)
    return sum(values) / len(values) + rng.laplace(0.0, (max(values) - min(values)) / len(values))


def edges_of_the_data(data: Any, rng: Rng) -> tuple[float, float, float]:
    """Noisy counts of two bins between the smallest and the largest value, and the exact middle."""
    values = numbers(data, 0.0, 1.0)
    middle = (min(values) + max(values)) / 2.0
    upper = sum(value > middle for value in values)
    return middle, upper + rng.laplace(0.0, 2.0), len(values) - upper + rng.laplace(0.0, 2.0)


def fixed_edges(data: Any, rng: Rng) -> tuple[float, float, float]:
    """A replaced record moves two counts by 1."""
    upper = sum(value > 0.5 for value in numbers(data, 0.0, 1.0))
    return 0.5, upper + rng.laplace(0.0, 2.0), len(data) - upper + rng.laplace(0.0, 2.0)


def noise_in_proportion(data: Any, rng: Rng) -> float:
    """Multiplies by noise, and zero times anything is zero."""
    return sum(numbers(data, 0.0, 1.0)) * (1.0 + rng.laplace())


def unanimous(data: Any, rng: Rng) -> float:
    """If all agree, the share is said without noise."""
    share = sum(map(bool, data)) / len(data)
    return share if share in (0.0, 1.0) else share + rng.laplace(0.0, 1.0 / len(data))


def share(data: Any, rng: Rng) -> float:
    """One of n records moves the share by 1/n."""
    return sum(map(bool, data)) / len(data) + rng.laplace(0.0, 1.0 / len(data))


def whole_noise(data: Any, rng: Rng) -> float:
    """Whole noise on a sum that is not whole: the digits behind the point stay."""
    return sum(numbers(data, 0.0, 1.0)) + round(rng.laplace())


def rounded_after(data: Any, rng: Rng) -> float:
    """Rounding what is already noisy reveals nothing."""
    return float(round(sum(numbers(data, 0.0, 1.0)) + rng.laplace()))


# Sensitivities


def variance_too_calm(data: Any, rng: Rng) -> float:
    """The sensitivity of a variance is taken for the square of that of a mean."""
    values = numbers(data, 0.0, 1.0)
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values) + rng.laplace(
        0.0, 1.0 / len(values) ** 2
    )


def variance_right(data: Any, rng: Rng) -> float:
    """One of n numbers of [0, 1] moves the variance by at most (n − 1)/n² < 1/n."""
    values = numbers(data, 0.0, 1.0)
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values) + rng.laplace(
        0.0, 1.0 / len(values)
    )


def median_like_a_mean(data: Any, rng: Rng) -> float:
    """A median may move from one bound to the other."""
    values = sorted(numbers(data, 0.0, 1.0))
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2.0
    return middle + rng.laplace(0.0, 1.0 / len(values))


def median_right(data: Any, rng: Rng) -> float:
    """It stays in [0, 1]."""
    values = sorted(numbers(data, 0.0, 1.0))
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2.0 + rng.laplace()


def mean_of_different(data: Any, rng: Rng) -> float:
    """Drops duplicates before the mean, but not for the noise."""
    values = set(numbers(data, 0.0, 1.0))
    return sum(values) / len(values) + rng.laplace(0.0, 1.0 / len(data))


def from_the_first(data: Any, rng: Rng) -> float:
    """Distances from the first record: replacing that one moves them all."""
    values = numbers(data, 0.0, 1.0)
    return sum(abs(value - values[0]) for value in values) + rng.laplace()


def from_the_middle(data: Any, rng: Rng) -> float:
    """Each distance from 1/2 is in [0, 1/2]."""
    return sum(abs(value - 0.5) for value in numbers(data, 0.0, 1.0)) + rng.laplace(0.0, 0.5)


# Types


def rounded_count(data: Any, rng: Rng) -> float:
    """Above 2^53 a float skips numbers: two counts that are 1 apart become 0 or 2 apart."""
    return float(data) + rng.laplace()


def whole_count(data: Any, rng: Rng) -> int:
    """The difference of two geometric variables, p = 1 − 1/e, on a whole number of any size: ε = 1 for a step of 1."""
    steps = rng.geometric(1.0 - math.exp(-1.0), 2)
    return int(data) + int(steps[0]) - int(steps[1])


def total_in_32_bits(data: Any, rng: Rng) -> Any:
    """The sum wraps around at 2^31."""
    total = (sum(data) + 2**31) % 2**32 - 2**31
    return total + rng.laplace(0.0, 2.0**31)


def total_in_full(data: Any, rng: Rng) -> float:
    """A replaced record moves the sum by less than 2^31."""
    return sum(numbers(data, 0.0, 2.0**31 - 1.0)) + rng.laplace(0.0, 2.0**31)


def magnitudes(data: Any, rng: Rng) -> float:
    """The magnitude of −128 is −128 in eight bits."""
    return float(np.minimum(np.abs(data), 100).sum()) + rng.laplace(0.0, 100.0)


def magnitudes_right(data: Any, rng: Rng) -> float:
    """Each magnitude is in [0, 100]."""
    return sum(min(abs(int(value)), 100) for value in data) + rng.laplace(0.0, 100.0)


def squares_in_half_precision(data: Any, rng: Rng) -> float:
    """Squares above 65504 are infinite in sixteen bits."""
    with np.errstate(over="ignore"):
        return float((data * data).sum()) + rng.laplace(0.0, 1e6)


def squares_in_full(data: Any, rng: Rng) -> float:
    """Each square is in [0, 1e6]."""
    return sum(value * value for value in numbers(data, 0.0, 1000.0)) + rng.laplace(0.0, 1e6)


_LISTS = Records(_UNIT)
_FILLED = Records(_UNIT, size=(1, 12))
_MAYBE = Records(Optional(_UNIT), size=(1, 12))
_HALF_PRECISION = Records(Number(0.0, 1000.0), size=(1, 12), container="numpy", dtype="float16")
_BYTES = Records(Integer(-128, 127), size=(1, 12), container="numpy", dtype="int8")
_HIGH = 2**53

BUGS = (
    Bug(
        sum_with_nan,
        sum_without_nan,
        "not a number",
        _LISTS,
        "add-remove",
        ([_NAN], []),
        beyond=True,
    ),
    Bug(
        mean_of_finite,
        mean_of_all,
        "not a number",
        _FILLED,
        "replace",
        ([1.0, _NAN], [0.0, _NAN]),
        beyond=True,
    ),
    Bug(
        mean_of_answers,
        mean_of_all,
        "missing values",
        _MAYBE,
        "replace",
        ([1.0, None], [0.0, None]),
    ),
    Bug(missing_counted, missing_with_noise, "missing values", _MAYBE, "replace", ([None], [0.0])),
    Bug(
        squashed_sum, squashed_right, "infinities", _FILLED, "replace", ([_INF], [0.0]), beyond=True
    ),
    Bug(angles, angles_right, "signed zero", _FILLED, "replace", ([-0.0], [0.0]), beyond=True),
    Bug(
        trusting_sum,
        sum_without_nan,
        "outside of the bounds",
        _LISTS,
        "add-remove",
        ([9.0], []),
        beyond=True,
    ),
    Bug(
        only_capped,
        sum_without_nan,
        "outside of the bounds",
        _LISTS,
        "add-remove",
        ([-9.0], []),
        beyond=True,
    ),
    Bug(
        clipped_late,
        mean_of_all,
        "outside of the bounds",
        _FILLED,
        "replace",
        ([2.0, 0.0], [0.0, 0.0]),
        beyond=True,
    ),
    Bug(last_bin_open, four_bins, "at a bound", _LISTS, "replace", ([1.0], [0.0])),
    Bug(sum_of_logarithms, logarithms_right, "at a bound", _LISTS, "replace", ([0.0], [1.0])),
    Bug(
        half_width,
        whole_width,
        "sensitivity",
        Records(Number(-1.0, 1.0), size=(1, 12)),
        "replace",
        ([-1.0], [1.0]),
    ),
    Bug(silent_when_empty, sum_without_nan, "empty data", _LISTS, "add-remove", ([0.0], [])),
    Bug(single_as_it_is, mean_of_all, "one record", _FILLED, "replace", ([0.0], [1.0])),
    Bug(public_size, private_size, "size", _FILLED, "add-remove", ([0.0, 0.0], [0.0])),
    Bug(size_reported, size_with_noise, "size", _LISTS, "add-remove", ([0.0], [])),
    Bug(
        answers_one_by_one, answers_counted, "size", Records(Boolean()), "add-remove", ([False], [])
    ),
    Bug(as_if_twelve, mean_of_all, "size", _FILLED, "replace", ([0.0], [1.0])),
    Bug(
        exact_when_large,
        never_exact,
        "a branch without noise",
        _LISTS,
        "add-remove",
        ([0.0] * 8, [0.0] * 7),
    ),
    Bug(
        suppressed_when_small,
        suppressed_by_noise,
        "a branch on true data",
        _LISTS,
        "add-remove",
        ([0.0] * 5, [0.0] * 4),
    ),
    Bug(range_of_the_data, mean_of_all, "range of the data", _FILLED, "replace", ([0.0], [1.0])),
    Bug(edges_of_the_data, fixed_edges, "range of the data", _FILLED, "replace", ([0.0], [1.0])),
    Bug(
        noise_in_proportion,
        sum_without_nan,
        "noise that vanishes",
        _LISTS,
        "replace",
        ([0.0], [1.0]),
    ),
    Bug(
        unanimous,
        share,
        "noise that vanishes",
        Records(Boolean(), size=(3, 12)),
        "replace",
        ([True, True, True], [True, True, False]),
    ),
    Bug(whole_noise, rounded_after, "rounding", _LISTS, "replace", ([0.5], [0.0])),
    Bug(
        variance_too_calm,
        variance_right,
        "sensitivity",
        _FILLED,
        "replace",
        ([0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
    ),
    Bug(
        median_like_a_mean,
        median_right,
        "sensitivity",
        _FILLED,
        "replace",
        ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0]),
    ),
    Bug(
        mean_of_different,
        mean_of_all,
        "duplicates",
        _FILLED,
        "replace",
        ([1.0, 1.0, 1.0], [0.0, 1.0, 1.0]),
    ),
    Bug(
        from_the_first,
        from_the_middle,
        "order",
        _FILLED,
        "replace",
        ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ),
    Bug(
        rounded_count,
        whole_count,
        "large integers",
        Integer(0, 2**60, sensitivity=1),
        "replace",
        (_HIGH + 1, _HIGH + 2),
    ),
    Bug(
        total_in_32_bits,
        total_in_full,
        "overflow",
        Records(Integer(0, 2**31 - 1), size=(1, 12)),
        "replace",
        ([2**31 - 1, 1], [2**31 - 1, 0]),
    ),
    Bug(
        magnitudes,
        magnitudes_right,
        "dtype",
        _BYTES,
        "replace",
        (np.array([-128], "int8"), np.array([100], "int8")),
    ),
    Bug(
        squares_in_half_precision,
        squares_in_full,
        "dtype",
        _HALF_PRECISION,
        "replace",
        (np.array([1000.0], "float16"), np.array([0.0], "float16")),
    ),
)
