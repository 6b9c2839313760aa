"""Stored results that were damaged anywhere: an InputError or a result, never another error."""

import json
from copy import copy
from functools import cache

import numpy as np
import pytest

import epsilometer as em

GONE = object()
VALUES = [GONE, None, True, -1, 0, 1.5, 10**30, 1e300, "", "x", "nan", [], [0], ["a"], {}, {"a": 1}]
# A witness is stored twice and read by the same code: each copy gets every other value.
COPIES = {("witness",): VALUES[::2], ("findings", 0, "witness"): VALUES[1::2]}


def mixed(dataset, n, rng):
    """Atoms, bins, words and an additive score."""
    kinds = rng.integers(0, 3, n)
    numbers, words = rng.normal(dataset, 1, (n, 2)), rng.choice(["a", "b"], n)
    rows = zip(kinds, numbers, words, strict=True)
    return [(None, str(word), tuple(map(float, pair)))[kind] for kind, pair, word in rows]


def correlated(dataset, n, rng):
    """Two numbers that tell something together only: a score of trees."""
    first = rng.normal(0, 1, n)
    return np.stack([first, np.where(dataset > 0, first, -first) + rng.normal(0, 0.1, n)], axis=1)


def bits(dataset, n, rng):
    """Bit vectors."""
    return (rng.random((n, 16)) < 0.5 + 0.1 * dataset).astype(int)


def lists(dataset, n, rng):
    """Lists of many lengths."""
    return [list(range(length)) for length in rng.poisson(1 + dataset, n)]


CASES = [
    pytest.param(mixed, [1.0, None, "a", (0.5, 0.5)], id="mixed"),
    pytest.param(correlated, [(1.0, 1.0)], id="trees"),
    pytest.param(bits, [(1,) * 16], id="bits"),
    pytest.param(lists, [[1, 2], []], id="lists"),
]


@cache
def stored(draw):
    """As plain data, which nobody changes."""
    result = em.audit(em.from_batch(draw), (0.0, 1.0), em.PureDP(0.05), samples=8000, seed=1)
    return json.loads(json.dumps(result.to_dict()))


def places(data, path=()):
    if isinstance(data, dict):
        return [
            place
            for key, value in data.items()
            for place in [(*path, key), *places(value, (*path, key))]
        ]
    if isinstance(data, list):
        return [
            place
            for key, value in enumerate(data[:3])
            for place in [(*path, key), *places(value, (*path, key))]
        ]
    return []


def damaged(data, place, value):
    """A copy with one part that is different; the others are shared."""
    data = inner = copy(data)
    for key in place[:-1]:
        inner[key] = copy(inner[key])
        inner = inner[key]
    if value is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return data


@pytest.mark.parametrize(("draw", "outputs"), CASES)
def test_damage_is_an_input_error_or_harmless(draw, outputs):
    data = stored(draw)
    text, tried, step = json.dumps(data), places(data), 1
    if (
        draw is not mixed
    ):  # what is stored beside the evidence is alike in all, and a tree has many places of a kind
        tried, step = [place for place in tried if place[0] in ("witness", "findings")], 4
    assert len(tried) > 100
    for number, place in enumerate(tried):
        values = next((half for twin, half in COPIES.items() if place[: len(twin)] == twin), VALUES)
        for value in values[number % step :: step]:
            try:
                back = em.AuditResult.from_dict(damaged(data, place, value))
                back.to_json(indent=None)
                for each in (back, *back.findings):
                    if each.witness is not None:
                        each.witness.event.contains(outputs)
            except em.InputError:
                pass
            except Exception as error:
                error.add_note(f"{value!r} at {place}")
                raise
    assert json.dumps(data) == text  # reading has changed nothing


@pytest.mark.parametrize(("draw", "outputs"), CASES)
def test_undamaged(draw, outputs):
    data = stored(draw)
    back = em.AuditResult.from_dict(data)
    assert np.isfinite(back.lower_bound)
    assert back.witness.event.contains(outputs).shape == (len(outputs),)
    assert json.loads(back.to_json()) == data
