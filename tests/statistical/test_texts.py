"""Texts in which a number, a word, a part or the length leaks: found as well as by a function that picks it out."""

import datetime
import json
import re
import uuid
from itertools import cycle

import numpy as np
import pytest

import epsilometer as em

WORDS = ("red", "green", "blue", "deep", "pale")
START = np.datetime64("2024-06-01", "s")


def one_of(rng, values):
    return values[int(rng.integers(len(values)))]


def noisy(dataset, rng):
    """A number with ε = 1."""
    return float(rng.laplace(dataset, 1.0))


def coin(dataset, rng):
    """A truth value with ε = 1."""
    return bool(rng.random() < (0.731 if dataset else 0.269))


def pairs(dataset, rng):
    return f"rows={rng.poisson(5)} total={100 + noisy(dataset, rng):.3f}"


def json_text(dataset, rng):
    items = rng.integers(9, size=rng.integers(4)).tolist()
    value = {"user": one_of(rng, WORDS), "items": items, "stats": {"mean": noisy(dataset, rng)}}
    return json.dumps(value)


def line(dataset, rng):
    name = one_of(rng, ("al", "bo smith", "x y z"))
    return f"{name},{rng.integers(1000)},{noisy(dataset, rng):.4f}"


def sentence(dataset, rng):
    return f"The answer is {noisy(dataset, rng):.3f} for {one_of(rng, WORDS)}."


def money(dataset, rng):
    return f"${3000 + 900 * noisy(dataset, rng):,.2f}"


def moment(dataset, rng):
    return f"{START + int(86_400 * noisy(dataset, rng))}Z"


def code(dataset, rng):
    part = "PQ"[coin(dataset, rng)]
    return f"{one_of(rng, 'ABC')}{one_of(rng, 'ABC')}{rng.integers(1000):03d}{part}X{rng.integers(10**6):06d}"


def length(dataset, rng):
    size = 20 + int(rng.geometric(0.632)) + coin(dataset, rng)
    return "".join(one_of(rng, "abcdefghij ") for _ in range(size))


def templates(dataset, rng):
    if rng.random() < 0.7:
        return f"ok {noisy(dataset, rng):.3f}"
    return f"failed after {rng.integers(10**6)} ms: {uuid.UUID(bytes=rng.bytes(16))}"


def last_word(dataset, rng):
    words = [one_of(rng, WORDS) for _ in range(int(rng.integers(3, 12)))]
    return " ".join([*words, "yes" if coin(dataset, rng) else "no"])


def record(dataset, rng):
    note = f"took {rng.exponential():.4f} s, noise {noisy(dataset, rng):.3f}"
    return {"id": f"{rng.integers(2**62):016x}", "notes": [note]}


def raw(dataset, rng):
    return b"v=%d;x=%.3f;" % (rng.integers(100), noisy(dataset, rng))


# How each text is made, and what of it leaks.
SHAPES = {
    "pairs": (pairs, lambda text: float(text.rpartition("=")[2])),
    "json": (json_text, lambda text: json.loads(text)["stats"]["mean"]),
    "line": (line, lambda text: float(text.split(",")[2])),
    "sentence": (sentence, lambda text: float(text.split()[3])),
    "money": (money, lambda text: float(re.sub("[$,]", "", text))),
    "moment": (moment, lambda text: float(np.datetime64(text[:-1]).astype(int))),
    "code": (code, lambda text: text[5]),
    "templates": (templates, lambda text: float(text[3:]) if text[0] == "o" else "failed"),
    "last word": (last_word, lambda text: text.split()[-1]),
    "record": (record, lambda output: float(output["notes"][0].split()[-1])),
    "bytes": (raw, lambda text: float(text.split(b"x=")[1][:-1])),
}
PAIR = em.Pair(0, 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_leak_in_a_text_is_found_like_one_in_a_number(shape, rng):
    make, pick = SHAPES[shape]
    seed = int(rng.integers(2**32))

    def audited(mechanism):
        return em.audit(mechanism, PAIR, em.PureDP(0.4), samples=6000, seed=seed)

    by_text = audited(lambda dataset, rng: make(dataset, rng))
    by_feature = audited(lambda dataset, rng: pick(make(dataset, rng)))
    assert by_feature.is_refuted
    assert by_text.is_refuted
    assert by_text.lower_bound > 0.75 * by_feature.lower_bound
    # The stored counterexample is about the texts as they come.
    again = em.replay(by_text, lambda dataset, rng: make(dataset, rng), samples=6000, seed=seed + 1)
    assert again.lower_bound > 0.4


def test_a_leak_in_the_length(rng):
    result = em.audit(length, PAIR, em.PureDP(0.4), samples=6000, seed=int(rng.integers(2**32)))
    assert result.is_refuted


@pytest.mark.parametrize("method", ["profile", "renyi-bet"])
def test_other_methods_read_texts_too(method):
    claim = em.RenyiDP(order=2.0, epsilon=0.05) if method == "renyi-bet" else em.ApproxDP(0.3, 1e-5)
    result = em.audit(sentence, PAIR, claim, samples=6000, seed=3, method=method)
    assert result.is_refuted


def test_bets_that_stop_early_read_texts_too():
    result = em.audit(sentence, PAIR, em.PureDP(0.3), samples=20_000, seed=3, stop_early=True)
    assert result.is_refuted
    assert "text" in result.witness.event.describe() or "number" in result.witness.event.describe()


# Few draws, so that an event which only fits its own draws would often be above 0.
@pytest.mark.parametrize("method", ["auto", "profile"])
def test_equal_distributions_of_texts_are_rarely_accused(method, rarely):
    makers = cycle([make for make, _ in SHAPES.values()] + [length])

    def is_above_truth(seed):
        make = next(makers)
        result = em.measure(
            lambda dataset, rng: make(0, rng),
            PAIR,
            em.PureDP,
            samples=600,
            seed=seed,
            confidence=0.8,
            method=method,
        )
        return result.lower_bound > 0.0

    rarely(is_above_truth, 0.2, 0.5)


# Beside a column that identifies rows, a leak is found as if it were not there.
def identified(make_id):
    def draw(dataset, rng):
        output = {
            "count": round(10 + float(rng.laplace(dataset, 0.6)), 3),
            "city": one_of(rng, WORDS),
        }
        if make_id is not None:
            output["run_id"] = make_id(rng)
        return output

    return draw


class Counter:
    """A run id that counts up over all calls."""

    def __init__(self, make):
        self.make = make
        self.n = 0

    def __call__(self, rng):
        self.n += 1
        return self.make(self.n)


@pytest.mark.parametrize(
    "make_id",
    [
        Counter(int),
        Counter("run-{:06d}".format),
        Counter("2026-01-01T00:00:00.{:06d}".format),
        Counter(lambda n: 1.7e9 + 0.31 * n),
        Counter(lambda n: datetime.datetime(2026, 1, 1) + n * datetime.timedelta(seconds=7)),
        lambda rng: f"{rng.integers(2**62):016x}",
        lambda rng: rng.bytes(12),
    ],
    ids=["number", "text", "time as text", "time as number", "time", "hash", "bytes"],
)
def test_identifiers_blind_nothing(make_id):
    result = em.audit(identified(make_id), PAIR, em.PureDP(1.0), samples=6000, seed=5)
    plain = em.audit(identified(None), PAIR, em.PureDP(1.0), samples=6000, seed=5)
    assert plain.is_refuted
    assert result.is_refuted
    assert result.lower_bound > 0.85 * plain.lower_bound
    (remark,) = [report for report in result.health if report.name == "identifier-columns"]
    assert remark.message.startswith("run_id has ")
    # The shape of the output names all columns; no clause uses this one.
    clauses = re.sub(r"\{[^}]*\}", "", result.witness.event.describe())
    assert "run_id" not in clauses


def test_noise_of_every_kind_is_no_identifier(rarely):
    def noise(dataset, rng):
        return {
            "float": float(rng.normal()),
            "wide": int(rng.integers(2**40)),
            "count": int(rng.poisson(40)),
            "text": f"{rng.normal():.4f}",
            "moment": f"{START + int(rng.integers(10**9))}",
        }

    def is_remarked_on(seed):
        result = em.measure(noise, PAIR, em.PureDP, samples=600, seed=seed)
        return any(report.name == "identifier-columns" for report in result.health)

    rarely(is_remarked_on, 1e-6, 0.2)
