"""Texts with a noisy number, count or category inside, as programs print them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.random import Generator

import epsilometer as em
from benchmarks.families.distributions import (
    geometric_log_mass,
    geometric_noise,
    laplace_log_interval,
    normal_log_interval,
    randomized_response,
    uniform_category_log_mass,
)
from benchmarks.families.family import Family
from epsilometer.arrays import Floats

GROUP = "texts"


def _parts(pattern: str, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """The groups of the pattern in every text: one tuple of texts per group."""
    matcher = re.compile(pattern)
    matches = [matcher.fullmatch(text) for text in texts]
    return list(zip(*(match.groups() for match in matches if match), strict=True))


def _integers(parts: Sequence[str]) -> Any:
    return np.array([int(part) for part in parts])


def _rounded_laplace(center: float, scale: float, step: float, n: int, rng: Generator) -> Any:
    """Laplace noise in whole steps, an integer array."""
    return np.rint(rng.laplace(center, scale, n) / step).astype(np.int64)


def _rounded_laplace_log_mass(steps: Any, center: float, scale: float, step: float) -> Floats:
    return laplace_log_interval((steps - 0.5) * step, (steps + 0.5) * step, center, scale)


def _join(template: Callable[..., str], *columns: Any) -> list[str]:
    """One text per row of the columns."""
    lists = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
    return [template(*row) for row in zip(*lists, strict=True)]


# --- rows=3 total=104.2

_TOTAL_SCALE = 20.0
_TOTAL_STEP = 0.1
_ROWS_EPSILON = 0.6


def draw_key_values(invoices: list[float], n: int, rng: Generator) -> list[str]:
    """Texts such as "rows=3 total=104.2"."""
    rows = len(invoices) + geometric_noise(_ROWS_EPSILON, n, rng)
    totals = _rounded_laplace(sum(invoices), _TOTAL_SCALE, _TOTAL_STEP, n, rng)
    return _join(lambda row, total: f"rows={row} total={total / 10:.1f}", rows, totals)


def log_density_of_key_values(invoices: list[float], texts: list[str]) -> Floats:
    """Both numbers are independent."""
    rows, totals = _parts(r"rows=(-?\d+) total=(-?\d+\.\d)", texts)
    steps = np.rint([10.0 * float(total) for total in totals])
    of_totals = _rounded_laplace_log_mass(steps, sum(invoices), _TOTAL_SCALE, _TOTAL_STEP)
    return of_totals + geometric_log_mass(_integers(rows) - len(invoices), _ROWS_EPSILON)


# --- towns: {"city": "Gent", "n": 12, "mean": 3.417}

_MEAN_DEVIATION = 0.5
_MEAN_STEP = 0.001
_TOWNS = ("Gent", "Brugge", "Aalst")


def draw_json_texts(grades: list[float], n: int, rng: Generator) -> list[str]:
    """Texts of JSON objects; town and number of rows say nothing."""
    towns = rng.integers(0, len(_TOWNS), n)
    rows = rng.integers(10, 30, n)
    means = np.rint(rng.normal(np.mean(grades), _MEAN_DEVIATION, n) / _MEAN_STEP)
    return _join(
        lambda town, row, mean: json.dumps(
            {"city": _TOWNS[town], "n": row, "mean": round(mean * _MEAN_STEP, 3)}
        ),
        towns,
        rows,
        means,
    )


def log_density_of_json_texts(grades: list[float], texts: list[str]) -> Floats:
    """Of the mean alone."""
    steps = np.rint([json.loads(text)["mean"] / _MEAN_STEP for text in texts])
    return normal_log_interval(
        (steps - 0.5) * _MEAN_STEP,
        (steps + 0.5) * _MEAN_STEP,
        float(np.mean(grades)),
        _MEAN_DEVIATION,
    )


# --- 2025,w17,38.25,F,0

_CSV_SCALE = 4.0
_CSV_STEP = 0.01
_SEX_EPSILON = 0.4


def draw_csv_lines(person: tuple[float, int], n: int, rng: Generator) -> list[str]:
    """Lines of a CSV file: year, week, a noisy weight, a randomized sex, a status."""
    weight, sex = person
    weeks = rng.integers(1, 53, n)
    weights = _rounded_laplace(weight, _CSV_SCALE, _CSV_STEP, n, rng)
    sexes = randomized_response(sex, 2, _SEX_EPSILON, n, rng)
    return _join(
        lambda week, steps, answer: f"2025,w{week:02d},{steps / 100:.2f},{'FM'[answer]},0",
        weeks,
        weights,
        sexes,
    )


def log_density_of_csv_lines(person: tuple[float, int], texts: list[str]) -> Floats:
    """Weight and sex are independent."""
    weight, sex = person
    fields = [text.split(",") for text in texts]
    steps = np.rint([100.0 * float(row[2]) for row in fields])
    answers = np.array(["FM".index(row[3]) for row in fields])
    of_weights = _rounded_laplace_log_mass(steps, weight, _CSV_SCALE, _CSV_STEP)
    return of_weights + uniform_category_log_mass(answers, sex, 2, _SEX_EPSILON)


# --- NO0147K3: region, number, ward, check digit

_REGIONS = ("NO", "SO", "EA", "WE")
_WARDS = "ABCDEFGHIJKLM"
_WARD_EPSILON = 1.8


def draw_codes(ward: int, n: int, rng: Generator) -> list[str]:
    """Codes of eight characters; the ward is randomized, the last digit checks the others."""
    regions = rng.integers(0, len(_REGIONS), n)
    numbers = rng.integers(0, 10_000, n)
    wards = randomized_response(ward, len(_WARDS), _WARD_EPSILON, n, rng)
    checks = (regions + numbers + wards) % 10
    return _join(
        lambda region, number, answer, check: (
            f"{_REGIONS[region]}{number:04d}{_WARDS[answer]}{check}"
        ),
        regions,
        numbers,
        wards,
        checks,
    )


def log_density_of_codes(ward: int, texts: list[str]) -> Floats:
    """Of the ward alone."""
    answers = np.array([_WARDS.index(text[6]) for text in texts])
    return uniform_category_log_mass(answers, ward, len(_WARDS), _WARD_EPSILON)


# --- 2026-03-01T12:34:56Z checkout completed

_SECONDS_EPSILON = 1.0 / 900.0
_NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def draw_timed_lines(bought: int, n: int, rng: Generator) -> list[str]:
    """Lines that begin with a noisy time; the dataset is a number of seconds after noon."""
    seconds = bought + geometric_noise(_SECONDS_EPSILON, n, rng)
    return _join(
        lambda second: f"{_NOON + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ} checkout completed",
        seconds,
    )


def log_density_of_timed_lines(bought: int, texts: list[str]) -> Floats:
    """Of the seconds after noon."""
    times = [datetime.fromisoformat(text.split(" ")[0]) for text in texts]
    seconds = np.array([round((time - _NOON).total_seconds()) for time in times])
    return geometric_log_mass(seconds - bought, _SECONDS_EPSILON)


# --- /v1/stats?region=north&count=17&token=9f3a60c2d1e8

_QUERY_EPSILON = 0.4


def draw_queries(members: list[int], n: int, rng: Generator) -> list[str]:
    """Paths with a noisy count and a random token, so that no text repeats."""
    counts = len(members) + geometric_noise(_QUERY_EPSILON, n, rng)
    tokens = rng.integers(0, 2**48, n)
    regions = rng.integers(0, 2, n)
    return _join(
        lambda region, count, token: (
            f"/v1/stats?region={('north', 'south')[region]}&count={count}&token={token:012x}"
        ),
        regions,
        counts,
        tokens,
    )


def log_density_of_queries(members: list[int], texts: list[str]) -> Floats:
    """Of the count alone."""
    (counts,) = _parts(r"/v1/stats\?region=\w+&count=(-?\d+)&token=[0-9a-f]{12}", texts)
    return geometric_log_mass(_integers(counts) - len(members), _QUERY_EPSILON)


# --- WARN worker-7 took 132 ms (retries: 2)

_LEVELS = ("INFO", "WARN", "ERROR")
_LEVEL_CHANCES = {"small": (0.90, 0.09, 0.01), "large": (0.72, 0.24, 0.04)}


def draw_log_lines(batch: str, n: int, rng: Generator) -> list[str]:
    """Lines whose level depends on the data; worker, time and retries say nothing."""
    levels = rng.choice(len(_LEVELS), n, p=_LEVEL_CHANCES[batch])
    workers = rng.integers(1, 17, n)
    times = rng.gamma(4.0, 30.0, n).astype(np.int64)
    retries = rng.poisson(0.4, n)
    return _join(
        lambda level, worker, time, retry: (
            f"{_LEVELS[level]} worker-{worker} took {time} ms (retries: {retry})"
        ),
        levels,
        workers,
        times,
        retries,
    )


def log_density_of_log_lines(batch: str, texts: list[str]) -> Floats:
    """Of the level alone."""
    levels = np.array([_LEVELS.index(text.split(" ")[0]) for text in texts])
    return np.log(_LEVEL_CHANCES[batch])[levels]


# --- <stat name="age" value="41.3"/>, sometimes with low="true"

_TAG_SCALE = 3.0
_TAG_STEP = 0.1
_FLAG_CHANCES = {False: 0.05, True: 0.12}


def draw_tags(person: tuple[float, bool], n: int, rng: Generator) -> list[str]:
    """Tags with a noisy value and an attribute that is present now and then."""
    age, is_poor = person
    values = _rounded_laplace(age, _TAG_SCALE, _TAG_STEP, n, rng)
    has_flag = rng.random(n) < _FLAG_CHANCES[is_poor]
    return _join(
        lambda value, flag: (
            f'<stat name="age" value="{value / 10:.1f}" low="true"/>'
            if flag
            else f'<stat name="age" value="{value / 10:.1f}"/>'
        ),
        values,
        has_flag,
    )


def log_density_of_tags(person: tuple[float, bool], texts: list[str]) -> Floats:
    """Value and attribute are independent."""
    age, is_poor = person
    values, flags = _parts(r'<stat name="age" value="(-?[\d.]+)"( low="true")?/>', texts)
    steps = np.rint([10.0 * float(value) for value in values])
    chance = _FLAG_CHANCES[is_poor]
    of_flags = np.where(np.array([flag is not None for flag in flags]), chance, 1.0 - chance)
    return _rounded_laplace_log_mass(steps, age, _TAG_SCALE, _TAG_STEP) + np.log(of_flags)


# --- € 1,234,567.80

_PAYROLL_SCALE = 40_000.0
_PAYROLL_STEP = 0.01


def draw_currencies(salaries: list[int], n: int, rng: Generator) -> list[str]:
    """Amounts with separators of thousands."""
    cents = _rounded_laplace(sum(salaries), _PAYROLL_SCALE, _PAYROLL_STEP, n, rng)
    return _join(
        lambda cent: f"{'−' if cent < 0 else ''}€ {abs(cent) // 100:,}.{abs(cent) % 100:02d}",
        cents,
    )


def log_density_of_currencies(salaries: list[int], texts: list[str]) -> Floats:
    """Of the amount in cents."""
    signs, amounts = _parts(r"(−?)€ ([\d,]+\.\d\d)", texts)
    cents = _integers([re.sub("[,.]", "", amount) for amount in amounts])
    cents = np.where([sign == "−" for sign in signs], -cents, cents)
    return _rounded_laplace_log_mass(cents, sum(salaries), _PAYROLL_SCALE, _PAYROLL_STEP)


# --- 37.5 % of 212 answered yes

_PERCENT_DEVIATION = 5.0
_PERCENT_STEP = 0.5


def draw_percents(answers: list[int], n: int, rng: Generator) -> list[str]:
    """Sentences with a noisy percentage in halves of a percent, never below 0 or above 100."""
    noisy = rng.normal(100.0 * np.mean(answers), _PERCENT_DEVIATION, n)
    halves = np.rint(noisy / _PERCENT_STEP).clip(0, 200).astype(np.int64)
    return _join(lambda half: f"{half / 2:g} % of {len(answers)} answered yes", halves)


def log_density_of_percents(answers: list[int], texts: list[str]) -> Floats:
    """The ends hold all that was clamped; the number of answers is the same on both sides."""
    (shares,) = _parts(r"([\d.]+) % of \d+ answered yes", texts)
    halves = np.rint([2.0 * float(share) for share in shares])
    low = np.where(halves == 0, -np.inf, (halves - 0.5) * _PERCENT_STEP)
    high = np.where(halves == 200, np.inf, (halves + 0.5) * _PERCENT_STEP)
    return normal_log_interval(low, high, 100.0 * float(np.mean(answers)), _PERCENT_DEVIATION)


# --- v2.14.3-beta+7f3c09

_MINORS = 20
_MINOR_EPSILON = 2.5
_BETA_CHANCES = (0.3, 0.45)


def draw_versions(device: tuple[int, int], n: int, rng: Generator) -> list[str]:
    """Version texts: the minor number is randomized, "-beta" depends on a bit, the hash is random."""
    minor, bit = device
    minors = randomized_response(minor, _MINORS, _MINOR_EPSILON, n, rng)
    patches = rng.integers(0, 10, n)
    is_beta = rng.random(n) < _BETA_CHANCES[bit]
    hashes = rng.integers(0, 2**24, n)
    return _join(
        lambda answer, patch, beta, digest: (
            f"v2.{answer}.{patch}{'-beta' if beta else ''}+{digest:06x}"
        ),
        minors,
        patches,
        is_beta,
        hashes,
    )


def log_density_of_versions(device: tuple[int, int], texts: list[str]) -> Floats:
    """Minor number and "-beta" are independent."""
    minor, bit = device
    minors, betas = _parts(r"v2\.(\d+)\.\d(-beta)?\+[0-9a-f]{6}", texts)
    chance = _BETA_CHANCES[bit]
    of_betas = np.where(np.array([beta is not None for beta in betas]), chance, 1.0 - chance)
    answers = uniform_category_log_mass(_integers(minors), minor, _MINORS, _MINOR_EPSILON)
    return answers + np.log(of_betas)


# --- bytes: a header, a nonce, a noisy count in two bytes

_HEADER = b"EPS1"
_PACKET_EPSILON = 0.02
_NONCE_BYTES = 6


def draw_packets(steps: int, n: int, rng: Generator) -> list[bytes]:
    """Bytes: header, nonce, and the noisy count of steps, big-endian, in two bytes that wrap."""
    counts = (steps + geometric_noise(_PACKET_EPSILON, n, rng)) % 2**16
    nonces = rng.bytes(_NONCE_BYTES * n)
    return [
        _HEADER + nonces[_NONCE_BYTES * i : _NONCE_BYTES * (i + 1)] + count.to_bytes(2, "big")
        for i, count in enumerate(counts.tolist())
    ]


def log_density_of_packets(steps: int, packets: list[bytes]) -> Floats:
    """The chance that the count wraps is below 1e-100 of any other."""
    counts = np.array([int.from_bytes(packet[-2:], "big") for packet in packets])
    return geometric_log_mass(counts - steps, _PACKET_EPSILON)


# --- ****7: a masked number whose length tells how large it is

_MASK_EPSILON = 0.5


def draw_masked(letters: int, n: int, rng: Generator) -> list[str]:
    """A name masked by stars, with its initial; the number of stars is noisy, at least 1."""
    stars = np.maximum(letters + geometric_noise(_MASK_EPSILON, n, rng), 1)
    initials = rng.integers(0, 26, n)
    return _join(lambda initial, star: chr(65 + initial) + "*" * star, initials, stars)


def log_density_of_masked(letters: int, texts: list[str]) -> Floats:
    """Of the number of stars; one star stands for all numbers below two."""
    stars = np.array([len(text) - 1 for text in texts])
    masses = geometric_log_mass(stars - letters, _MASK_EPSILON)
    at_most_one = _MASK_EPSILON * (1 - letters) - math.log1p(math.exp(-_MASK_EPSILON))
    return np.where(stars == 1, at_most_one, masses)


_INVOICES = [40.5, 30.25, 33.45]
_GRADES = [3.0, 3.5, 4.0, 2.5]
_MEMBERS = list(range(17))
_PAYROLL = [41_000, 52_500, 38_200, 47_900, 61_300]
_VOTES = [1] * 3 + [0] * 17

FAMILIES = (
    Family(
        "text-key-value",
        GROUP,
        "`rows=3 total=104.2`: a noisy count and a noisy sum; an invoice of 20.00 joins",
        draw_key_values,
        log_density_of_key_values,
        em.Pair(_INVOICES, [*_INVOICES, 20.0]),
        _ROWS_EPSILON + 20.0 / _TOTAL_SCALE,
    ),
    Family(
        "text-json",
        GROUP,
        '`{"city": "Gent", "n": 12, "mean": 3.417}`: Gaussian noise on the mean',
        draw_json_texts,
        log_density_of_json_texts,
        em.Pair(_GRADES, [*_GRADES[:-1], 5.0]),
        math.inf,
    ),
    Family(
        "text-csv-line",
        GROUP,
        "`2025,w17,38.25,F,0`: a noisy weight and a randomized sex",
        draw_csv_lines,
        log_density_of_csv_lines,
        em.Pair((60.0, 0), (64.0, 1)),
        4.0 / _CSV_SCALE + _SEX_EPSILON,
    ),
    Family(
        "text-fixed-width-code",
        GROUP,
        "`NO0147K3`: region, number, a randomized ward, a check digit over all of them",
        draw_codes,
        log_density_of_codes,
        em.Pair(10, 3),
        _WARD_EPSILON,
    ),
    Family(
        "text-date-time",
        GROUP,
        "`2026-03-01T12:34:56Z checkout completed`: noise of a quarter of an hour",
        draw_timed_lines,
        log_density_of_timed_lines,
        em.Pair(1800, 3000),
        1200.0 * _SECONDS_EPSILON,
    ),
    Family(
        "text-url-query",
        GROUP,
        "`/v1/stats?region=north&count=17&token=9f3a60c2d1e8`: a noisy count, a unique token",
        draw_queries,
        log_density_of_queries,
        em.Pair(_MEMBERS, _MEMBERS[:-3]),
        3.0 * _QUERY_EPSILON,
    ),
    Family(
        "text-log-line",
        GROUP,
        "`WARN worker-7 took 132 ms (retries: 2)`: the level depends on the data",
        draw_log_lines,
        log_density_of_log_lines,
        em.Pair("small", "large"),
        math.log(4.0),
    ),
    Family(
        "text-tag",
        GROUP,
        '`<stat name="age" value="41.3"/>`, with `low="true"` of 5 % or 12 %',
        draw_tags,
        log_density_of_tags,
        em.Pair((40.0, False), (42.0, True)),
        2.0 / _TAG_SCALE + math.log(0.12 / 0.05),
    ),
    Family(
        "text-currency",
        GROUP,
        "`€ 240,900.00`: Laplace noise, separators of thousands",
        draw_currencies,
        log_density_of_currencies,
        em.Pair(_PAYROLL, _PAYROLL[:-1]),
        _PAYROLL[-1] / _PAYROLL_SCALE,
    ),
    Family(
        "text-percent",
        GROUP,
        "`37.5 % of 20 answered yes`: Gaussian noise in halves of a percent, clamped",
        draw_percents,
        log_density_of_percents,
        em.Pair(_VOTES, [0, *_VOTES[1:]]),
        float(
            np.abs(
                log_density_of_percents(_VOTES, ["100 % of 20 answered yes"])
                - log_density_of_percents([0, *_VOTES[1:]], ["100 % of 20 answered yes"])
            )[0]
        ),
    ),
    Family(
        "text-version",
        GROUP,
        "`v2.14.3-beta+7f3c09`: a randomized minor number, a mark, a random hash",
        draw_versions,
        log_density_of_versions,
        em.Pair((14, 1), (9, 0)),
        _MINOR_EPSILON + math.log(1.5),
    ),
    Family(
        "text-bytes",
        GROUP,
        "twelve bytes: header, nonce, a noisy count in the last two",
        draw_packets,
        log_density_of_packets,
        em.Pair(9_800, 9_880),
        80.0 * _PACKET_EPSILON,
    ),
    Family(
        "text-masked-name",
        GROUP,
        "`K******`: a random initial, and as many stars as a noisy length",
        draw_masked,
        log_density_of_masked,
        em.Pair(5, 8),
        3.0 * _MASK_EPSILON,
    ),
)
