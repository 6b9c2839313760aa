"""Stored results that were damaged anywhere: an InputError or a result, never another error."""

import json

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import epsilometer as em

VALUES = st.sampled_from([None, True, -1, 0, 1.5, 10**30, 1e300, "", "x", "nan", [], [0], ["a"], {}, {"a": 1}])


def stored():
    """A small audit with atoms, bins, words and a score in its witness."""

    def draw(dataset, n, rng):
        kinds = rng.integers(0, 3, n)
        numbers, words = rng.normal(dataset, 1, (n, 2)), rng.choice(["a", "b"], n)
        rows = zip(kinds, numbers, words, strict=True)
        return [(None, str(word), tuple(map(float, pair)))[kind] for kind, pair, word in rows]

    return em.audit(em.from_batch(draw), (0.0, 2.0), em.PureDP(0.1), samples=3000, seed=1).to_dict()


DATA = json.loads(json.dumps(stored()))


def places(data, path=()):
    if isinstance(data, dict):
        return [place for key, value in data.items() for place in [(*path, key), *places(value, (*path, key))]]
    if isinstance(data, list):
        return [place for key, value in enumerate(data[:3]) for place in [(*path, key), *places(value, (*path, key))]]
    return []


def damaged(place, value, delete):
    data = json.loads(json.dumps(DATA))
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    if delete:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return data


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(places(DATA)), VALUES, st.booleans())
def test_damage_is_an_input_error_or_harmless(place, value, delete):
    try:
        back = em.AuditResult.from_dict(damaged(place, value, delete))
        back.to_json()
        if back.witness is not None:
            back.witness.event.contains([1.0, None, "a", (0.5, 0.5)])
    except em.InputError:
        pass


def test_undamaged():
    back = em.AuditResult.from_dict(DATA)
    assert np.isfinite(back.lower_bound)
    assert json.loads(back.to_json()) == DATA
