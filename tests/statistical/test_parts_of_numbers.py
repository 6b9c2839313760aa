"""Leaks in a part of a value: the weekday of a date, the hour of a time, the last digit of a whole number.

The whole value says nothing here: every date, time or number is about as likely on either side.
"""

import datetime
import json

import numpy as np
import pytest

import epsilometer as em

SAMPLES = 10_000
SEEDS = (11, 12, 13)
# What few draws and the choice of the event leave of ε, at least.
LEAST_SHARE = 0.6
FIRST_MONDAY = datetime.date(2021, 1, 4)


def tilted(n_parts, favourite):
    """Probabilities of parts, of which one is three times as likely as each of the others."""
    weights = np.ones(n_parts)
    weights[favourite] = 3.0
    return weights / weights.sum()


def drawn(rng, n_parts, dataset):
    """A part whose favourite depends on the data: ε = ln 3."""
    return int(rng.choice(n_parts, p=tilted(n_parts, n_parts - 2 if dataset else 1)))


EPSILON = float(np.log(3.0))


def day(dataset, rng):
    return FIRST_MONDAY + datetime.timedelta(
        days=7 * int(rng.integers(150)) + drawn(rng, 7, dataset)
    )


def moment(dataset, rng):
    midnight = datetime.datetime(2023, 3, 1) + datetime.timedelta(days=int(rng.integers(400)))
    seconds = 3600 * drawn(rng, 24, dataset) + int(rng.integers(3600))
    return midnight + datetime.timedelta(seconds=seconds)


def digits(dataset, rng):
    return 10 * int(rng.poisson(60)) + drawn(rng, 10, dataset)


def parity(dataset, rng):
    """Noise that is even three times as often on one side, and positive or negative."""
    noise = 2 * int(rng.laplace(0.0, 40.0))
    return noise + int(rng.random() < (0.25 if dataset else 0.75))


def days_in_texts(dataset, rng):
    return {"start": day(dataset, rng).isoformat(), "rate": float(rng.normal())}


def compact_days(dataset, rng):
    return f"{day(dataset, rng):%Y%m%d}"


def hours_in_json(dataset, rng):
    return json.dumps({"at": f"{moment(dataset, rng).isoformat()}Z", "load": float(rng.normal())})


def moments_of_numpy(dataset, rng):
    return (float(rng.normal()), np.datetime64(moment(dataset, rng), "s"))


def digits_beside(dataset, rng):
    return {
        "city": "ABC"[int(rng.integers(3))],
        "count": digits(dataset, rng),
        "rate": rng.normal(),
    }


def digits_in_text(dataset, rng):
    return f"rows={digits(dataset, rng)} total={rng.normal(100.0):.3f}"


def whole_floats(dataset, rng):
    return [float(digits(dataset, rng)), float(rng.normal())]


# Each with the words that tell the part.
LEAKS = {
    "dates": (day, "the weekday of output"),
    "ISO dates": (days_in_texts, "the weekday of the date in start"),
    "compact dates": (compact_days, "the weekday of the date in the text"),
    "times": (moment, "the hour of output"),
    "times in JSON": (hours_in_json, "the hour of `at` in the JSON text"),
    "times of numpy": (moments_of_numpy, "the hour of output[1]"),
    "whole numbers": (digits, "the last digit of output"),
    "parity": (parity, "the parity of output is"),
    "records": (digits_beside, "the last digit of count"),
    "key=value": (digits_in_text, "the last digit of the number after `rows=`"),
    "whole floats": (whole_floats, "the last digit of output[0]"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_found_and_told(leak):
    mechanism, words = LEAKS[leak]
    results = [
        em.measure(mechanism, (0, 1), em.PureDP, samples=SAMPLES, seed=seed) for seed in SEEDS
    ]
    assert min(result.lower_bound for result in results) >= LEAST_SHARE * EPSILON
    # An event of single values may be as good by chance.
    told = [words in result.witness.event.describe() for result in results]
    assert sum(told) >= 2


def test_replayed():
    result = em.measure(day, (0, 1), em.PureDP, samples=SAMPLES, seed=1)
    restored = em.AuditResult.from_json(result.to_json())
    assert restored.witness.event.describe() == result.witness.event.describe()
    again = em.replay(restored, day, samples=SAMPLES, seed=2)
    assert again.lower_bound >= LEAST_SHARE * EPSILON


def counted(values):
    """A mechanism whose outputs hold a whole number, a date and a text of both; both sides alike."""

    def mechanism(dataset, rng):
        number = int(values(rng))
        when = FIRST_MONDAY + datetime.timedelta(days=int(rng.integers(1000)))
        return {"count": number, "day": when, "note": f"n={number % 977} on {when}"}

    return mechanism


EQUAL = {
    "counts": lambda rng: rng.poisson(300),
    "rounded": lambda rng: 5 * rng.geometric(0.02),
    "integers of a wide range": lambda rng: rng.integers(10**7),
}


@pytest.mark.parametrize("kind", EQUAL)
def test_sides_that_are_alike(kind, rarely):
    mechanism = counted(EQUAL[kind])
    rarely(
        lambda seed: (
            em.measure(
                mechanism, em.Pair(0, 1), em.PureDP, samples=200, confidence=0.8, seed=seed
            ).lower_bound
            > 0.0
        ),
        0.2,
        0.5,
    )
