"""Bugs of tables, names, texts and dates: keys that come and go, users with many rows, columns that meet.

Every right twin says why it keeps its claim.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer.inputs.domains import (
    Boolean,
    Category,
    Date,
    Integer,
    Matrix,
    Number,
    Records,
    Table,
    Text,
)
from epsilometer_experiments.searching.bug import Bug, Rng, counts, number

_NAMES = ("a", "b", "c")


# Categories


def present_names(data: Any, rng: Rng) -> dict[str, float]:
    """A histogram of the names that occur: one that does not occur has no key."""
    return {name: count + rng.laplace(0.0, 2.0) for name, count in Counter(data).items()}


def declared_names(data: Any, rng: Rng) -> dict[str, float]:
    """A replaced record moves two of the counts of the declared names by at most 1; others are not counted."""
    return {
        name: count + rng.laplace(0.0, 2.0)
        for name, count in zip(_NAMES, counts(data, _NAMES), strict=True)
    }


def new_names_appended(data: Any, rng: Rng) -> dict[str, float]:
    """Starts with the declared names, but takes in whatever else it meets."""
    seen = dict.fromkeys(_NAMES, 0)
    for name in data:
        seen[name] = seen.get(name, 0) + 1
    return {name: count + rng.laplace(0.0, 2.0) for name, count in seen.items()}


def winner_among_present(data: Any, rng: Rng) -> Any:
    """The name with the greatest noisy count, of those that occur."""
    noisy = {name: count + rng.laplace(0.0, 2.0) for name, count in Counter(data).items()}
    return max(noisy, key=lambda name: noisy[name])


def winner_among_declared(data: Any, rng: Rng) -> str:
    """Report noisy max: every count moves by at most 1, and the noise has a scale of 2/ε."""
    noisy = [count + rng.laplace(0.0, 2.0) for count in counts(data, _NAMES)]
    return _NAMES[int(np.argmax(noisy))]


def zeros_suppressed(data: Any, rng: Rng) -> list[float]:
    """Names that do not occur are shown as an exact 0."""
    return [count + rng.laplace(0.0, 2.0) if count else 0.0 for count in counts(data, _NAMES)]


def small_suppressed(data: Any, rng: Rng) -> list[float]:
    """Noise first, then a threshold, which only looks at noisy counts."""
    noisy = [count + rng.laplace(0.0, 2.0) for count in counts(data, _NAMES)]
    return [count if count > 1.0 else 0.0 for count in noisy]


def groups_counted(data: Any, rng: Rng) -> dict[str, float]:
    """The noisy number of records, and the exact number of different ones."""
    return {"records": len(data) + rng.laplace(), "groups": len(set(data))}


def groups_with_noise(data: Any, rng: Rng) -> dict[str, float]:
    """A record added or removed moves both by at most 1; ε/2 each."""
    return {
        "records": len(data) + rng.laplace(0.0, 2.0),
        "groups": len(set(map(repr, data))) + rng.laplace(0.0, 2.0),
    }


def order_of_truth(data: Any, rng: Rng) -> list[tuple[str, float]]:
    """Noisy counts in the order of the true ones."""
    ordered = sorted(zip(_NAMES, counts(data, _NAMES), strict=True), key=lambda each: -each[1])
    return [(name, count + rng.laplace(0.0, 2.0)) for name, count in ordered]


def order_of_noise(data: Any, rng: Rng) -> list[tuple[str, float]]:
    """Sorted by what is shown: the noisy counts of a histogram with a replaced record."""
    noisy = [
        (name, count + rng.laplace(0.0, 2.0))
        for name, count in zip(_NAMES, counts(data, _NAMES), strict=True)
    ]
    return sorted(noisy, key=lambda each: -each[1])


def self_join(data: Any, rng: Rng) -> float:
    """Counts pairs of equal keys as if each record were in one of them."""
    return sum(count * count for count in Counter(data).values()) + rng.laplace()


def keys_counted(data: Any, rng: Rng) -> float:
    """One record adds or removes at most one key."""
    return len(set(map(repr, data))) + rng.laplace()


# Texts and dates


def letters(data: Any, rng: Rng) -> float:
    """Texts have at most eight letters, the schema says."""
    return sum(len(text) for text in data) + rng.laplace(0.0, 8.0)


def letters_right(data: Any, rng: Rng) -> float:
    """Each length is in [0, 8]."""
    return sum(min(len(text), 8) if isinstance(text, str) else 0 for text in data) + rng.laplace(
        0.0, 8.0
    )


def initials(data: Any, rng: Rng) -> dict[str, float]:
    """Whether texts begin with a vowel; the empty one begins with nothing, and gets a key of its own."""
    kinds = Counter(
        "empty" if not text else "vowel" if text[0].lower() in "aeiou" else "other" for text in data
    )
    shown = {
        "vowel": kinds["vowel"] + rng.laplace(0.0, 2.0),
        "other": kinds["other"] + rng.laplace(0.0, 2.0),
    }
    return {**shown, "empty": float(kinds["empty"])} if kinds["empty"] else shown


def initials_right(data: Any, rng: Rng) -> dict[str, float]:
    """A replaced record moves two counts by 1."""
    vowels = sum(isinstance(text, str) and text[:1].lower() in tuple("aeiou") for text in data)
    return {
        "vowel": vowels + rng.laplace(0.0, 2.0),
        "other": len(data) - vowels + rng.laplace(0.0, 2.0),
    }


def years_since_1970(data: Any, rng: Rng) -> Any:
    """Calibrated to the years since the epoch; dates before it are negative."""
    return sum(min(day.year - 1970, 55) for day in data) + rng.laplace(0.0, 55.0)


def years_right(data: Any, rng: Rng) -> float:
    """Each is in [0, 55]."""
    return sum(number(getattr(day, "year", 0) - 1970, 0.0, 55.0) for day in data) + rng.laplace(
        0.0, 55.0
    )


def leap_days(data: Any, rng: Rng) -> Any:
    """The anniversary of a leap day raises."""
    ages = [day.replace(year=2025) < datetime.date(2025, 7, 1) for day in data]
    return sum(ages) + rng.laplace()


def leap_days_right(data: Any, rng: Rng) -> Any:
    """Each record adds 0 or 1, and none raises."""
    return sum(getattr(day, "month", 12) < 7 for day in data) + rng.laplace()


# Tables


def rows_of_users(data: Any, rng: Rng) -> float:
    """Every row is clipped, but a user has many."""
    return sum(number(row["spent"], 0.0, 1.0) for row in data) + rng.laplace()


def sums_of_users(data: Any, rng: Rng) -> float:
    """All rows of a user add at most 1."""
    spent: defaultdict[str, float] = defaultdict(float)
    for row in data:
        spent[repr(row["uid"])] += number(row["spent"], 0.0, 1.0)
    return sum(min(total, 1.0) for total in spent.values()) + rng.laplace()


def places_of_users(data: Any, rng: Rng) -> list[float]:
    """Counts each user once per place, but a user may be in all places."""
    visits = {(repr(row["uid"]), row["place"]) for row in data}
    return [sum(place == each for _, place in visits) + rng.laplace() for each in _NAMES]


def first_places(data: Any, rng: Rng) -> list[float]:
    """A user counts for the least of the declared places only: adding or removing one moves one count by 1."""
    least: dict[str, str] = {}
    for row in data:
        if row["place"] in _NAMES:
            least[repr(row["uid"])] = min(row["place"], least.get(repr(row["uid"]), "z"))
    return [sum(place == each for place in least.values()) + rng.laplace() for each in _NAMES]


def weights_that_meet(data: Any, rng: Rng) -> float:
    """Each of two weights was checked alone; together they make four."""
    return sum(
        (2.0 if row["old"] else 1.0) * (2.0 if row["ill"] else 1.0) for row in data
    ) + rng.laplace(0.0, 2.0)


def weights_capped(data: Any, rng: Rng) -> float:
    """No record adds more than 2."""
    weights = ((2.0 if row["old"] else 1.0) * (2.0 if row["ill"] else 1.0) for row in data)
    return sum(min(weight, 2.0) for weight in weights) + rng.laplace(0.0, 2.0)


def a_budget_per_column(data: Any, rng: Rng) -> dict[str, float]:
    """Three sums, each with the whole ε."""
    return {
        name: sum(number(row[name], 0.0, 1.0) for row in data) + rng.laplace()
        for name in ("x", "y", "z")
    }


def a_shared_budget(data: Any, rng: Rng) -> dict[str, float]:
    """Three sums, each with a third of ε."""
    return {
        name: sum(number(row[name], 0.0, 1.0) for row in data) + rng.laplace(0.0, 3.0)
        for name in ("x", "y", "z")
    }


def state_beside(data: Any, rng: Rng) -> dict[str, Any]:
    """A noisy mean with the state from which it was made."""
    total = sum(number(row["x"], 0.0, 1.0) for row in data)
    return {"mean": (total + rng.laplace()) / 12.0, "state": {"sum": total}}


def state_inside(data: Any, rng: Rng) -> dict[str, Any]:
    """Everything shown is made of the noisy sum, which moves by at most 1."""
    total = sum(number(row["x"], 0.0, 1.0) for row in data) + rng.laplace()
    return {"mean": total / 12.0, "state": {"sum": total}}


def no_weight_at_all(data: Any, rng: Rng) -> float:
    """A weighted mean; weights that are all zero divide by zero."""
    weights = [number(row["weight"], 0.0, 1.0) for row in data]
    weighted = sum(
        weight * number(row["x"], 0.0, 1.0) for row, weight in zip(data, weights, strict=True)
    )
    return weighted / sum(weights) + rng.laplace()


def half_without_weight(data: Any, rng: Rng) -> float:
    """A weighted mean of numbers of [0, 1] is one, and so is a half."""
    weights = [number(row["weight"], 0.0, 1.0) for row in data]
    weighted = sum(
        weight * number(row["x"], 0.0, 1.0) for row, weight in zip(data, weights, strict=True)
    )
    return (weighted / sum(weights) if sum(weights) > 0.0 else 0.5) + rng.laplace()


def groups_of_a_frame(data: Any, rng: Rng) -> dict[str, float]:
    """`value_counts` of a data frame has the values that are there."""
    present = data["place"].value_counts()
    return {
        str(name): count + rng.laplace(0.0, 2.0)
        for name, count in zip(present.index, present, strict=True)
    }


def places_of_a_frame(data: Any, rng: Rng) -> dict[str, float]:
    """A replaced row moves two counts by 1."""
    return declared_names(data["place"].tolist(), rng)


def second_moments(data: Any, rng: Rng) -> list[float]:
    """Sums of squares of three features in [−1, 1]; the Gaussian noise is that of one."""
    return list((np.asarray(data) ** 2).sum(axis=0) + rng.normal(size=3))


def second_moments_right(data: Any, rng: Rng) -> list[float]:
    """A replaced row moves each of three sums by at most 1, so all by √3 in the Euclidean norm: μ = 1."""
    rows = np.clip(np.nan_to_num(np.asarray(data, dtype=np.float64)), -1.0, 1.0)
    return list((rows**2).sum(axis=0) + rng.normal(0.0, math.sqrt(3.0), size=3))


_WORDS = Records(Category(_NAMES), size=(1, 12))
_SPENDING = Table(
    {"uid": Category(("ann", "bob", "eve")), "spent": Number(0.0, 1.0)}, rows=(0, 12), user="uid"
)
_VISITS = Table(
    {"uid": Category(("ann", "bob", "eve")), "place": Category(_NAMES)}, rows=(0, 12), user="uid"
)
_PATIENTS = Table({"old": Boolean(), "ill": Boolean(), "age": Integer(0, 99)}, rows=(0, 12))
_POINTS = Table({"x": Number(0.0, 1.0), "y": Number(0.0, 1.0), "z": Number(0.0, 1.0)}, rows=(1, 12))
_WEIGHED = Table({"x": Number(0.0, 1.0), "weight": Number(0.0, 1.0)}, rows=(1, 12))
_FRAME = Table({"place": Category(_NAMES), "x": Number(0.0, 1.0)}, rows=(1, 12), container="pandas")
_OLD, _LEAP = datetime.date(1930, 1, 1), datetime.date(1932, 2, 29)
_DAYS = Records(Date(_OLD, datetime.date(2024, 12, 31)))
_ANN, _ELSE = {"uid": "ann", "place": "a"}, {"uid": "ann", "place": "b"}
_FULL, _NONE = {"x": 1.0, "y": 1.0, "z": 1.0}, {"x": 0.0, "y": 0.0, "z": 0.0}


def _frame(*places: str) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    return pd.DataFrame({"place": list(places), "x": [0.0] * len(places)})


BUGS = (
    Bug(present_names, declared_names, "vanishing names", _WORDS, "replace", (["a"], ["b"])),
    Bug(
        new_names_appended,
        declared_names,
        "unseen names",
        _WORDS,
        "replace",
        (["d"], ["a"]),
        beyond=True,
    ),
    Bug(
        winner_among_present,
        winner_among_declared,
        "vanishing names",
        _WORDS,
        "replace",
        (["a"], ["b"]),
    ),
    Bug(
        zeros_suppressed,
        small_suppressed,
        "a branch without noise",
        _WORDS,
        "replace",
        (["a"], ["b"]),
    ),
    Bug(
        groups_counted,
        groups_with_noise,
        "vanishing names",
        _WORDS,
        "add-remove",
        (["a", "b"], ["a"]),
    ),
    Bug(order_of_truth, order_of_noise, "order", _WORDS, "replace", (["a"], ["b"])),
    Bug(self_join, keys_counted, "duplicates", _WORDS, "add-remove", (["a", "a"], ["a"])),
    Bug(
        letters,
        letters_right,
        "length of texts",
        Records(Text(most=8)),
        "replace",
        (["x" * 99], [""]),
        beyond=True,
    ),
    Bug(initials, initials_right, "empty texts", Records(Text(most=8)), "replace", ([""], ["a"])),
    Bug(
        years_since_1970,
        years_right,
        "dates",
        _DAYS,
        "replace",
        ([_OLD], [datetime.date(2024, 12, 31)]),
    ),
    Bug(leap_days, leap_days_right, "dates", _DAYS, "replace", ([_LEAP], [_OLD]), raises=True),
    Bug(
        rows_of_users,
        sums_of_users,
        "users with many rows",
        _SPENDING,
        "user",
        ([{"uid": "ann", "spent": 1.0}, {"uid": "ann", "spent": 1.0}], []),
    ),
    Bug(
        places_of_users, first_places, "users with many rows", _VISITS, "user", ([_ANN, _ELSE], [])
    ),
    Bug(
        weights_that_meet,
        weights_capped,
        "columns that meet",
        _PATIENTS,
        "add-remove",
        ([{"old": True, "ill": True, "age": 0}], []),
    ),
    Bug(
        a_budget_per_column, a_shared_budget, "sensitivity", _POINTS, "replace", ([_FULL], [_NONE])
    ),
    Bug(
        state_beside,
        state_inside,
        "state beside the answer",
        _POINTS,
        "replace",
        ([_FULL], [_NONE]),
    ),
    Bug(
        no_weight_at_all,
        half_without_weight,
        "exceptions",
        _WEIGHED,
        "replace",
        ([{"x": 0.0, "weight": 0.0}], [{"x": 0.0, "weight": 1.0}]),
        raises=True,
    ),
    Bug(
        groups_of_a_frame,
        places_of_a_frame,
        "data frames",
        _FRAME,
        "replace",
        (_frame("a"), _frame("b")),
    ),
    Bug(
        second_moments,
        second_moments_right,
        "sensitivity",
        Matrix((1, 8), 3, -1.0, 1.0),
        "replace",
        (np.array([[1.0, 1.0, 1.0]]), np.array([[0.0, 0.0, 0.0]])),
        em.GaussianDP(1.0),
    ),
)
