"""Mechanisms as an engineer who releases private data would write them, mistakes included.

Whoever wrote them had not read the learner's code, only the documentation and the issue that names what it missed, and fixed all
figures before the first audit.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, timedelta
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import log_ndtr, logsumexp

import epsilometer as em
from benchmarks.families.distributions import (
    geometric_log_below,
    geometric_log_mass,
    geometric_noise,
    laplace_log_density,
    multivariate_normal_log_density,
    normal_log_density,
    normal_log_interval,
    randomized_response,
    student_log_density,
    uniform_category_log_mass,
)
from benchmarks.families.family import Family
from epsilometer.arrays import Floats

GROUP = "invented"

# --- an answer of a web service: a count, and a mean that is left out where the count is small

_API_COUNT_EPSILON = 0.5
_API_MEAN_SCALE = 2.5
_API_FEWEST = 10
_PATIENTS = [31, 58, 44, 29, 63, 38, 51, 47, 35, 42, 54]


def draw_api_answers(ages: list[int], n: int, rng: Generator) -> list[dict[str, Any]]:
    """Dicts with a count and, where it is large enough, a mean."""
    counts = len(ages) + geometric_noise(_API_COUNT_EPSILON, n, rng)
    means = rng.laplace(np.mean(ages), _API_MEAN_SCALE, n)
    answers: list[dict[str, Any]] = []
    for count, mean in zip(counts.tolist(), means.tolist(), strict=True):
        answer: dict[str, Any] = {"status": "ok", "count": count}
        if count >= _API_FEWEST:
            answer["mean_age"] = mean
        answers.append(answer)
    return answers


def log_density_of_api_answers(ages: list[int], answers: list[dict[str, Any]]) -> Floats:
    """The mean is drawn independently of the count."""
    counts = np.array([answer["count"] for answer in answers])
    means = np.array([answer.get("mean_age", np.nan) for answer in answers])
    of_means = laplace_log_density(means, np.mean(ages), _API_MEAN_SCALE)
    of_counts = geometric_log_mass(counts - len(ages), _API_COUNT_EPSILON)
    return of_counts + np.where(np.isnan(means), 0.0, of_means)


# --- a histogram of cities that leaves out small noisy counts

_CITIES = ("Gent", "Brugge", "Aalst", "Dinant", "Eupen")
_CITY_EPSILON = 0.7
_CITY_FEWEST = 5


def draw_histograms(cities: list[str], n: int, rng: Generator) -> list[dict[str, int]]:
    """Dicts from cities to noisy counts. The mistake: a person who moves changes two counts."""
    tally = Counter(cities)
    true_counts = np.array([tally[city] for city in _CITIES])
    noisy = true_counts + geometric_noise(_CITY_EPSILON, (n, len(_CITIES)), rng)
    return [
        {city: count for city, count in zip(_CITIES, row, strict=True) if count >= _CITY_FEWEST}
        for row in noisy.tolist()
    ]


def log_density_of_histograms(cities: list[str], histograms: list[dict[str, int]]) -> Floats:
    """Counts are independent; one that is left out is below the threshold."""
    tally = Counter(cities)
    total = np.zeros(len(histograms))
    for city in _CITIES:
        counts = np.array([histogram.get(city, _CITY_FEWEST - 1) for histogram in histograms])
        total += np.where(
            counts < _CITY_FEWEST,
            geometric_log_below(_CITY_FEWEST - tally[city], _CITY_EPSILON),
            geometric_log_mass(counts - tally[city], _CITY_EPSILON),
        )
    return total


_RESIDENTS = ["Gent"] * 30 + ["Brugge"] * 14 + ["Aalst"] * 9 + ["Dinant"] * 4 + ["Eupen"] * 2

# --- synthetic rows from smoothed frequencies, without any noise

_SEXES = ("f", "m")
_OCCUPATIONS = ("clerk", "farmer", "nurse", "pilot", "smith")
_PSEUDO_COUNT = 0.25
_INCOME_DEVIATION = 6.0
_POPULATION_INCOME = 35.0
_Row = tuple[str, str, float]


def _row_model(rows: list[_Row]) -> tuple[Floats, Floats, Floats]:
    """Chances of sexes, of occupations given the sex, and mean incomes of occupations."""
    sexes = np.array([sum(row[0] == sex for row in rows) for sex in _SEXES]) + _PSEUDO_COUNT
    cells = np.array(
        [[sum(row[:2] == (sex, job) for row in rows) for job in _OCCUPATIONS] for sex in _SEXES]
    )
    cells = cells + _PSEUDO_COUNT
    incomes = [
        # One imaginary colleague with the income of the population.
        np.mean([_POPULATION_INCOME] + [row[2] for row in rows if row[1] == job])
        for job in _OCCUPATIONS
    ]
    return sexes / sexes.sum(), cells / cells.sum(axis=1, keepdims=True), np.array(incomes)


def draw_synthetic_rows(rows: list[_Row], n: int, rng: Generator) -> list[dict[str, Any]]:
    """Dicts with sex, occupation, income and an age that has nothing to do with them."""
    sex_chances, job_chances, incomes = _row_model(rows)
    sexes = rng.choice(len(_SEXES), n, p=sex_chances)
    jobs = (job_chances[sexes].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    jobs = np.minimum(jobs, len(_OCCUPATIONS) - 1)
    earned = rng.normal(incomes[jobs], _INCOME_DEVIATION).round(2)
    ages = rng.integers(18, 80, n)
    return [
        {"sex": _SEXES[sex], "age": age, "occupation": _OCCUPATIONS[job], "income": income}
        for sex, job, income, age in zip(
            sexes.tolist(), jobs.tolist(), earned.tolist(), ages.tolist(), strict=True
        )
    ]


def log_density_of_synthetic_rows(rows: list[_Row], outputs: list[dict[str, Any]]) -> Floats:
    """Incomes are rounded to a cent."""
    sex_chances, job_chances, incomes = _row_model(rows)
    sexes = np.array([_SEXES.index(output["sex"]) for output in outputs])
    jobs = np.array([_OCCUPATIONS.index(output["occupation"]) for output in outputs])
    earned = np.array([output["income"] for output in outputs])
    of_incomes = normal_log_interval(
        earned - 0.005, earned + 0.005, incomes[jobs], _INCOME_DEVIATION
    )
    return np.log(sex_chances[sexes]) + np.log(job_chances[sexes, jobs]) + of_incomes


_STAFF: list[_Row] = [
    *[("f", "clerk", 33.0)] * 12,
    *[("m", "clerk", 34.0)] * 9,
    *[("f", "nurse", 38.0)] * 14,
    *[("m", "nurse", 37.0)] * 4,
    *[("m", "farmer", 29.0)] * 8,
    *[("f", "farmer", 30.0)] * 3,
    *[("m", "smith", 31.0)] * 6,
    *[("m", "pilot", 52.0)] * 5,
]

# --- the names of the three highest scores, with Gumbel noise

_TOP_K = 3
_SCORE_EPSILON = 0.25


def draw_top_names(scores: dict[str, int], n: int, rng: Generator) -> list[list[str]]:
    """Lists of three names. The mistake: the noise is enough for one name, not for three."""
    names = np.array(list(scores))
    noisy = _SCORE_EPSILON * np.array(list(scores.values())) + rng.gumbel(size=(n, len(names)))
    ranks = np.argsort(-noisy, axis=1)[:, :_TOP_K]
    chosen: list[list[str]] = names[ranks].tolist()
    return chosen


def log_density_of_top_names(scores: dict[str, int], outputs: list[list[str]]) -> Floats:
    """With Gumbel noise every place is a softmax over the names that are left (Plackett–Luce)."""
    weights = {name: _SCORE_EPSILON * score for name, score in scores.items()}
    known: dict[tuple[str, ...], float] = {}
    for output in map(tuple, outputs):
        if output not in known:
            left = dict(weights)
            known[output] = 0.0
            for name in output:
                known[output] += left[name] - float(logsumexp(list(left.values())))
                del left[name]
    return np.array([known[tuple(output)] for output in outputs])


_STREETS = {"Elm": 9, "Oak": 8, "Ash": 8, "Fir": 6, "Yew": 5, "Bay": 3, "Box": 1}

# --- a weekly series whose noise is autocorrelated

_SERIES_MEMORY = 0.8
_SERIES_SCALE = 1.5


def draw_series(weeks: list[float], n: int, rng: Generator) -> Floats:
    """Twelve weekly totals, shape (n, 12). The mistake: the noise of a week remembers the last."""
    innovations = rng.laplace(0.0, _SERIES_SCALE, (n, len(weeks)))
    noise = np.zeros_like(innovations)
    noise[:, 0] = innovations[:, 0]
    for week in range(1, len(weeks)):
        noise[:, week] = _SERIES_MEMORY * noise[:, week - 1] + innovations[:, week]
    return np.asarray(weeks) + noise


def log_density_of_series(weeks: list[float], outputs: Floats) -> Floats:
    """The innovations are independent, and the series is a linear map of them with determinant 1."""
    noise = np.asarray(outputs) - np.asarray(weeks)
    innovations = noise.copy()
    innovations[:, 1:] -= _SERIES_MEMORY * noise[:, :-1]
    return laplace_log_density(innovations, 0.0, _SERIES_SCALE).sum(axis=1)


_WEEKS = [12.0, 14.0, 13.0, 17.0, 21.0, 20.0, 18.0, 16.0, 15.0, 13.0, 12.0, 14.0]

# --- a place on a map with planar Laplace noise

_PLACE_EPSILON = 1.2


def draw_places(place: tuple[float, float], n: int, rng: Generator) -> list[dict[str, float]]:
    """Dicts with kilometres east and north: density ∝ exp(−epsilon · distance)."""
    distances = rng.gamma(2.0, 1.0 / _PLACE_EPSILON, n)
    angles = rng.uniform(0.0, 2.0 * math.pi, n)
    east = place[0] + distances * np.cos(angles)
    north = place[1] + distances * np.sin(angles)
    return [{"east": x, "north": y} for x, y in zip(east.tolist(), north.tolist(), strict=True)]


def log_density_of_places(place: tuple[float, float], outputs: list[dict[str, float]]) -> Floats:
    """Up to a constant that does not depend on the place."""
    east = np.array([output["east"] for output in outputs]) - place[0]
    north = np.array([output["north"] for output in outputs]) - place[1]
    return -_PLACE_EPSILON * np.hypot(east, north)


# --- heavy-tailed noise whose scale was taken from the data

_TAIL_FREEDOM = 3.0
_SALARIES = [31.0, 35.0, 36.0, 38.0, 40.0, 41.0, 44.0]


def _local_scale(salaries: list[float]) -> float:
    return 0.5 * (max(salaries) - float(np.median(salaries)))


def draw_medians(salaries: list[float], n: int, rng: Generator) -> Floats:
    """The median, with t noise. The mistake: its scale is the distance to the largest salary."""
    noise = rng.standard_t(_TAIL_FREEDOM, n)
    return float(np.median(salaries)) + _local_scale(salaries) * noise


def log_density_of_medians(salaries: list[float], outputs: Floats) -> Floats:
    """Only the scale differs."""
    return student_log_density(
        outputs, float(np.median(salaries)), _local_scale(salaries), _TAIL_FREEDOM
    )


# --- a date with noise in days, moved to a working day

_DAY_EPSILON = 0.25
_SATURDAY = 5


def draw_dates(admitted: date, n: int, rng: Generator) -> list[date]:
    """Dates; a Saturday or Sunday becomes the Monday after it."""
    days = (admitted.toordinal() + geometric_noise(_DAY_EPSILON, n, rng)).tolist()
    noisy = [date.fromordinal(day) for day in days]
    return [
        day + timedelta(days=7 - day.weekday()) if day.weekday() >= _SATURDAY else day
        for day in noisy
    ]


def log_density_of_dates(admitted: date, outputs: list[date]) -> Floats:
    """A Monday has the chances of three days."""
    days = np.array([day.toordinal() for day in outputs])
    is_monday = np.array([day.weekday() == 0 for day in outputs])
    masses = np.stack(
        [
            geometric_log_mass(days - before - admitted.toordinal(), _DAY_EPSILON)
            for before in range(3)
        ]
    )
    return np.where(is_monday, logsumexp(masses, axis=0), masses[0])


# --- randomized response over many diagnoses, with a rare fallback

_N_DIAGNOSES = 40
_DIAGNOSIS_EPSILON = 2.0
# A patient without an address takes another path through the code.
_FALLBACK_CHANCES = {True: 0.0003, False: 0.012}
_FALLBACK = "unknown"


def draw_diagnoses(patient: dict[str, Any], n: int, rng: Generator) -> list[str]:
    """Codes such as "D17", or the fallback, which is likelier where a field is missing."""
    answers = randomized_response(patient["code"], _N_DIAGNOSES, _DIAGNOSIS_EPSILON, n, rng)
    falls_back = rng.random(n) < _FALLBACK_CHANCES[patient["has_address"]]
    return [
        _FALLBACK if unknown else f"D{answer:02d}"
        for answer, unknown in zip(answers.tolist(), falls_back.tolist(), strict=True)
    ]


def log_density_of_diagnoses(patient: dict[str, Any], outputs: list[str]) -> Floats:
    """The fallback, or randomized response."""
    chance = _FALLBACK_CHANCES[patient["has_address"]]
    codes = np.array([-1 if output == _FALLBACK else int(output[1:]) for output in outputs])
    answered = uniform_category_log_mass(codes, patient["code"], _N_DIAGNOSES, _DIAGNOSIS_EPSILON)
    return np.where(codes < 0, math.log(chance), math.log1p(-chance) + answered)


# --- a share with Gaussian noise, clamped to [0, 1]

_SHARE_DEVIATION = 0.1


def draw_shares(answers: list[int], n: int, rng: Generator) -> Floats:
    """Shares; whatever the noise pushes out of [0, 1] becomes 0 or 1."""
    return np.clip(rng.normal(np.mean(answers), _SHARE_DEVIATION, n), 0.0, 1.0)


def log_density_of_shares(answers: list[int], outputs: Floats) -> Floats:
    """Probabilities of the ends, densities between them."""
    center = float(np.mean(answers))
    outputs = np.asarray(outputs)
    inside = normal_log_density(outputs, center, _SHARE_DEVIATION)
    at_zero = log_ndtr(-center / _SHARE_DEVIATION)
    at_one = log_ndtr((center - 1.0) / _SHARE_DEVIATION)
    return np.where(outputs == 0.0, at_zero, np.where(outputs == 1.0, at_one, inside))


def _truth_of_shares(left: list[int], right: list[int]) -> float:
    """The ratio is monotone in the output and largest at the end at 1."""
    centers = np.array([np.mean(left), np.mean(right)])
    at_one = log_ndtr((centers - 1.0) / _SHARE_DEVIATION)
    return float(abs(at_one[0] - at_one[1]))


# --- a random part of the records, each with noise

_KEPT = 0.5
_VISIT_SCALE = 2.0


def draw_sampled_lists(visits: list[float], n: int, rng: Generator) -> list[list[float]]:
    """Lists in the order of the records, each record kept with probability one half."""
    is_kept = rng.random((n, len(visits))) < _KEPT
    noisy = np.asarray(visits) + rng.laplace(0.0, _VISIT_SCALE, is_kept.shape)
    return [row[kept].tolist() for row, kept in zip(noisy, is_kept, strict=True)]


def log_density_of_sampled_lists(visits: list[float], outputs: list[list[float]]) -> Floats:
    """A sum over all subsets of as many records as the list has values."""
    lengths = np.array([len(output) for output in outputs])
    total = np.full(len(outputs), -np.inf)
    log_chance = len(visits) * math.log(_KEPT)
    for length in np.unique(lengths):
        members = np.flatnonzero(lengths == length)
        values = np.array([outputs[index] for index in members]).reshape(len(members), length)
        if length > len(visits):
            continue
        by_subset = [
            laplace_log_density(values, np.array(subset), _VISIT_SCALE).sum(axis=1)
            for subset in combinations(visits, int(length))
        ]
        total[members] = log_chance + logsumexp(np.stack(by_subset), axis=0)
    return total


# --- two measurements whose correlation tells a diagnosis

_CORRELATION = 0.5


def _correlation(has_disease: bool) -> Floats:
    sign = 1.0 if has_disease else -1.0
    return np.array([[1.0, sign * _CORRELATION], [sign * _CORRELATION, 1.0]])


def draw_correlated_pairs(has_disease: bool, n: int, rng: Generator) -> list[tuple[float, float]]:
    """Tuples of two standard normal numbers; only the sign of their correlation differs."""
    factor = np.linalg.cholesky(_correlation(has_disease))
    first, second = (factor @ rng.normal(size=(2, n))).tolist()
    return list(zip(first, second, strict=True))


def log_density_of_correlated_pairs(
    has_disease: bool, outputs: list[tuple[float, float]]
) -> Floats:
    """The ratio is a multiple of the product of both numbers."""
    return multivariate_normal_log_density(outputs, 0.0, _correlation(has_disease))


# --- a count with a code for a missing value

_SENTINEL = 9999
_SENTINEL_CHANCES = {"full": 0.0004, "incomplete": 0.006}
_STAY_EPSILON = 0.2


def draw_stays(record: tuple[int, str], n: int, rng: Generator) -> Any:
    """Nights in hospital, integers; sometimes 9999, more often where the record is incomplete."""
    nights, state = record
    counts = nights + geometric_noise(_STAY_EPSILON, n, rng)
    return np.where(rng.random(n) < _SENTINEL_CHANCES[state], _SENTINEL, counts)


def log_density_of_stays(record: tuple[int, str], outputs: Any) -> Floats:
    """A noisy count reaches 9999 with a probability below 1e-800, which is 0 in floating point."""
    nights, state = record
    outputs = np.asarray(outputs)
    chance = _SENTINEL_CHANCES[state]
    counted = math.log1p(-chance) + geometric_log_mass(outputs - nights, _STAY_EPSILON)
    return np.where(outputs == _SENTINEL, math.log(chance), counted)


# --- a median by the exponential mechanism, uniform between neighbouring records

_MEDIAN_EPSILON = 1.5
_MEDIAN_LOW = 0.0
_MEDIAN_HIGH = 100.0


def _gaps(values: list[float]) -> tuple[Floats, Floats]:
    """Edges of the gaps between records, and the log density inside each gap."""
    edges = np.array([_MEDIAN_LOW, *sorted(values), _MEDIAN_HIGH])
    ranks = np.arange(len(edges) - 1)
    # The mistake: the score's sensitivity was forgotten, so there is no division by two.
    scores = -_MEDIAN_EPSILON * np.abs(ranks - len(values) / 2.0)
    with np.errstate(divide="ignore"):
        log_total = logsumexp(scores + np.log(np.diff(edges)))
    return edges, scores - log_total


def draw_exponential_medians(values: list[float], n: int, rng: Generator) -> Floats:
    """Numbers between 0 and 100."""
    edges, log_densities = _gaps(values)
    chances = np.exp(log_densities) * np.diff(edges)
    gaps = rng.choice(len(chances), n, p=chances / chances.sum())
    return rng.uniform(edges[gaps], edges[gaps + 1])


def log_density_of_exponential_medians(values: list[float], outputs: Floats) -> Floats:
    """Constant inside each gap."""
    edges, log_densities = _gaps(values)
    return log_densities[np.searchsorted(edges[1:-1], np.asarray(outputs), side="right")]


def _truth_of_medians(left: list[float], right: list[float]) -> float:
    """Over the middles of all gaps of both datasets together."""
    edges = np.unique([_MEDIAN_LOW, *left, *right, _MEDIAN_HIGH])
    middles = (edges[1:] + edges[:-1]) / 2.0
    difference = log_density_of_exponential_medians(left, middles)
    difference = difference - log_density_of_exponential_medians(right, middles)
    return float(np.abs(difference).max())


_RENTS = [22.0, 31.0, 35.0, 38.0, 47.0, 52.0, 58.0, 71.0]

# --- whole euros of noise on an amount with cents

_EURO_EPSILON = 0.05


def draw_amounts(cents: list[int], n: int, rng: Generator) -> Floats:
    """Amounts in euros. The mistake: noise in whole euros leaves the cents as they are."""
    return (sum(cents) + 100 * geometric_noise(_EURO_EPSILON, n, rng)) / 100.0


def log_density_of_amounts(cents: list[int], outputs: Floats) -> Floats:
    """Amounts with other cents are impossible."""
    noise = np.rint(np.asarray(outputs) * 100.0).astype(np.int64) - sum(cents)
    masses = geometric_log_mass(noise / 100.0, _EURO_EPSILON)
    return np.where(noise % 100 == 0, masses, -np.inf)


# --- a count that is drawn again until it is not negative

_REDRAW_SCALE = 1.0


def draw_redrawn_counts(count: int, n: int, rng: Generator) -> Floats:
    """Non-negative numbers. The mistake: how often noise is rejected depends on the count."""
    accepted = rng.laplace(count, _REDRAW_SCALE, n)
    while (is_negative := accepted < 0.0).any():
        accepted[is_negative] = rng.laplace(count, _REDRAW_SCALE, int(is_negative.sum()))
    return accepted


def log_density_of_redrawn_counts(count: int, outputs: Floats) -> Floats:
    """Laplace noise, conditional on not being negative."""
    log_accepted = math.log1p(-0.5 * math.exp(-count / _REDRAW_SCALE))
    return laplace_log_density(outputs, count, _REDRAW_SCALE) - log_accepted


def _redrawn_truth(left: int, right: int) -> float:
    difference = [
        float(
            (
                log_density_of_redrawn_counts(left, np.array([place]))
                - log_density_of_redrawn_counts(right, np.array([place]))
            )[0]
        )
        for place in (0.0, float(max(left, right)))
    ]
    return max(map(abs, difference))


def _truth_of_top_names(left: dict[str, int], right: dict[str, int]) -> float:
    """Over all ordered triples of names."""
    triples = [[a, b, c] for a in left for b in left for c in left if len({a, b, c}) == _TOP_K]
    difference = log_density_of_top_names(left, triples) - log_density_of_top_names(right, triples)
    return float(np.abs(difference).max())


def _truth_of_diagnoses(left: dict[str, Any], right: dict[str, Any]) -> float:
    answers = [_FALLBACK, *(f"D{code:02d}" for code in range(_N_DIAGNOSES))]
    difference = log_density_of_diagnoses(left, answers) - log_density_of_diagnoses(right, answers)
    return float(np.abs(difference).max())


def _truth_of_histograms(moved_from: int, moved_to: int) -> float:
    """Of two counts that change by one; a small one may be left out, which reveals less."""
    return sum(
        max(
            _CITY_EPSILON,
            abs(
                float(geometric_log_below(_CITY_FEWEST - count, _CITY_EPSILON))
                - float(geometric_log_below(_CITY_FEWEST - count + 1, _CITY_EPSILON))
            ),
        )
        for count in (moved_from, moved_to)
    )


_STREETS_WITHOUT = {**_STREETS, "Elm": 6, "Box": 4}
_MOVED_RESIDENTS = [*_RESIDENTS[:-1], "Dinant"]
_PATIENT = {"code": 17, "has_address": True}
_HOMELESS_PATIENT = {"code": 5, "has_address": False}
_FEW_YES = [0] * 9 + [1]
_MORE_YES = [0] * 8 + [1] * 2
_OTHER_RENTS = [*_RENTS[:-1], 12.0]
_WEEKS_WITH_ONE_MORE = [*_WEEKS[:6], _WEEKS[6] + 1.0, *_WEEKS[7:]]
_VISITS = [2.0, 3.0, 5.0, 4.0]
_RICH = [*_SALARIES[:-1], 49.0]

FAMILIES = (
    Family(
        "api-answer",
        GROUP,
        "dict with a noisy count and, if it is at least 10, a noisy mean; a person of 91 joins",
        draw_api_answers,
        log_density_of_api_answers,
        em.Pair(_PATIENTS, [*_PATIENTS, 91]),
        _API_COUNT_EPSILON
        + float(np.mean([*_PATIENTS, 91]) - np.mean(_PATIENTS)) / _API_MEAN_SCALE,
    ),
    Family(
        "suppressed-histogram",
        GROUP,
        "dict of noisy counts of cities, those below 5 left out; a person moves between small ones",
        draw_histograms,
        log_density_of_histograms,
        em.Pair(_RESIDENTS, _MOVED_RESIDENTS),
        _truth_of_histograms(5, 2),
    ),
    Family(
        "synthetic-row",
        GROUP,
        "one synthetic row (sex, age, occupation, income) from smoothed frequencies; a woman pilot"
        " joins",
        draw_synthetic_rows,
        log_density_of_synthetic_rows,
        em.Pair([*_STAFF, ("f", "pilot", 60.0)], _STAFF),
        math.inf,
    ),
    Family(
        "top-three-names",
        GROUP,
        "ordered list of the three streets with the highest noisy scores; two scores change by 3",
        draw_top_names,
        log_density_of_top_names,
        em.Pair(_STREETS, _STREETS_WITHOUT),
        _truth_of_top_names(_STREETS, _STREETS_WITHOUT),
    ),
    Family(
        "autocorrelated-series",
        GROUP,
        "twelve weekly totals with AR(1) noise (memory .8); one week changes by 1",
        draw_series,
        log_density_of_series,
        em.Pair(_WEEKS, _WEEKS_WITH_ONE_MORE),
        (1.0 + _SERIES_MEMORY) / _SERIES_SCALE,
    ),
    Family(
        "place-on-a-map",
        GROUP,
        "dict of kilometres east and north with planar Laplace noise; the person moves by 1.3 km",
        draw_places,
        log_density_of_places,
        em.Pair((4.0, 7.0), (4.5, 8.2)),
        _PLACE_EPSILON * 1.3,
    ),
    Family(
        "noise-by-local-scale",
        GROUP,
        "median with t noise (3 degrees of freedom) whose scale depends on the largest record",
        draw_medians,
        log_density_of_medians,
        em.Pair(_SALARIES, _RICH),
        _TAIL_FREEDOM * math.log(_local_scale(_RICH) / _local_scale(_SALARIES)),
    ),
    Family(
        "admission-date",
        GROUP,
        "date with geometric noise in days, weekends moved to Monday; two days' difference",
        draw_dates,
        log_density_of_dates,
        em.Pair(date(2026, 3, 4), date(2026, 3, 6)),
        2.0 * _DAY_EPSILON,
    ),
    Family(
        "many-diagnoses",
        GROUP,
        "randomized response over 40 codes, and a fallback of .03 % or 1.2 %",
        draw_diagnoses,
        log_density_of_diagnoses,
        em.Pair(_PATIENT, _HOMELESS_PATIENT),
        _truth_of_diagnoses(_PATIENT, _HOMELESS_PATIENT),
    ),
    Family(
        "clamped-share",
        GROUP,
        "share .1 or .2 with Gaussian noise of .1, clamped to [0, 1]",
        draw_shares,
        log_density_of_shares,
        em.Pair(_FEW_YES, _MORE_YES),
        _truth_of_shares(_FEW_YES, _MORE_YES),
    ),
    Family(
        "sampled-list",
        GROUP,
        "list of noisy records, each kept with probability 1/2; a record of 12 joins four small"
        " ones",
        draw_sampled_lists,
        log_density_of_sampled_lists,
        em.Pair([*_VISITS, 12.0], _VISITS),
        math.inf,
    ),
    Family(
        "sign-of-a-correlation",
        GROUP,
        "tuple of two standard normal numbers with correlation .5 or −.5",
        draw_correlated_pairs,
        log_density_of_correlated_pairs,
        em.Pair(True, False),
        math.inf,
    ),
    Family(
        "missing-value-code",
        GROUP,
        "noisy integer around 8 or 9, and 9999 with probability .6 % or .04 %",
        draw_stays,
        log_density_of_stays,
        em.Pair((8, "full"), (9, "incomplete")),
        math.log(_SENTINEL_CHANCES["incomplete"] / _SENTINEL_CHANCES["full"]),
    ),
    Family(
        "exponential-median",
        GROUP,
        "median by the exponential mechanism, constant densities between records; one is replaced",
        draw_exponential_medians,
        log_density_of_exponential_medians,
        em.Pair(_RENTS, _OTHER_RENTS),
        _truth_of_medians(_RENTS, _OTHER_RENTS),
    ),
    Family(
        "visible-cents",
        GROUP,
        "amount with noise in whole euros; the cents are those of the true sum",
        draw_amounts,
        log_density_of_amounts,
        em.Pair([10420, 315], [10420, 350]),
        math.inf,
    ),
    Family(
        "redrawn-count",
        GROUP,
        "count 0 or 1 with Laplace noise, drawn again until it is not negative",
        draw_redrawn_counts,
        log_density_of_redrawn_counts,
        em.Pair(0, 1),
        _redrawn_truth(0, 1),
    ),
)
