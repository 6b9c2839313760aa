"""`renyi-variational`: the objective, its families, pure privacy, the published bound."""

import builtins
import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError, MissingExtraError
from epsilometer.methods import Task
from epsilometer.methods.published.auditorium.families import (
    Options,
    best_function,
    variational_value,
)
from epsilometer.methods.published.auditorium.renyi_variational import RenyiVariationalMethod
from epsilometer.outputs import read_outputs
from epsilometer.outputs.events import LogRatio
from epsilometer.outputs.scores import NetworkScore

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])


def divergence(p, q, order):
    return math.log(float((p**order * q ** (1.0 - order)).sum())) / (order - 1.0)


def gaussian(side, n, rng):
    return rng.normal(side, 1.0, n)


def measured(entry, samples=20_000, notion=em.RenyiDP, options=None, **fixed):
    settings = {"samples": samples, "seed": 1, "method": "renyi-variational", "options": options}
    return em.measure(entry, None, notion, **settings, **fixed)


@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
@pytest.mark.paper("C5", "equal")
def test_free_values_reach_the_divergence(order):
    h = best_function(None, P, Q, order, 20.0)
    assert variational_value(h, P, Q, order) == pytest.approx(divergence(P, Q, order), abs=1e-3)
    # Its first two values are the log-ratio; at large orders the third hardly counts.
    assert h[0] - h[1] == pytest.approx(math.log(2.5), abs=0.05)


@pytest.mark.paper("C5", "equal")
def test_no_function_exceeds_the_divergence(rng):
    for order in (1.2, 2.0, 9.0):
        for _ in range(200):
            assert (
                variational_value(rng.normal(size=3) * 3, P, Q, order)
                <= divergence(P, Q, order) + 1e-9
            )


def test_the_bound_is_kept():
    h = best_function(None, P, Q, 2.0, 0.1)
    assert np.abs(h).max() <= 0.1
    assert 0.0 < variational_value(h, P, Q, 2.0) < divergence(P, Q, 2.0)


@pytest.mark.parametrize(
    ("family", "least"), [("bins", 0.8), ("chebyshev", 0.82), ("auto", 0.8), ("network", 0.75)]
)
def test_every_family_follows_a_gaussian(family, least):
    result = measured(em.zoo.gaussian(sigma=1.0), options=Options(family=family), order=2.0)
    assert result.guarantee == "exact"
    assert least < result.lower_bound < 1.0
    assert isinstance(result.witness.event, LogRatio)


@pytest.mark.parametrize("degree", [1, 4, 8])
def test_polynomials_do_not_live_on_a_handful_of_draws(degree):
    """Where R alone chose the coefficients, degree 4 proved .02 of 1 with 20 000 draws."""
    options = Options(family="chebyshev", degree=degree)
    found = measured(em.zoo.gaussian(sigma=1.0), order=2.0, options=options)
    assert 0.75 < found.lower_bound < 1.0


def test_a_wished_degree_and_bound_are_used():
    line = measured(
        em.zoo.gaussian(sigma=1.0),
        options=Options(family="chebyshev", degree=1, bound=0.5),
        order=2.0,
    )
    assert line.findings[0].details["range"] <= 0.5 + 1e-9
    assert 0.2 < line.lower_bound < 0.8


def test_vectors_are_vectors(rng):
    """Two columns that leak together: more than one column can, and the counts are those of the outputs."""
    sides = [read_outputs(rng.normal((side, side), 1.0, (10_000, 2))) for side in (0, 1)]
    for family in ("chebyshev", "network", "auto"):
        method = RenyiVariationalMethod(Options(family=family))
        proposal = method.propose(
            *sides, Task(em.RenyiDP(1.5, 0.0), (10_000, 10_000), 0.05, Stream(0))
        )
        tallies = [proposal.tally(side, number) for number, side in enumerate(sides)]
        assert tallies[0].sum() == 10_000
        assert 0.9 < proposal.certify(*tallies, em.Pair(0, 1), 0.05).lower_bound < 1.5


@pytest.mark.parametrize(
    "entry", [em.zoo.svt3(1.5), em.zoo.clamped_laplace(1.0), em.zoo.randomized_response(1.0)]
)
def test_mixed_and_discrete_outputs(entry):
    assert measured(entry, order=2.0).lower_bound > 0.2


def test_pure_privacy_by_the_tight_threshold():
    """Randomized response attains the threshold at every order, so little is lost."""
    entry = em.zoo.randomized_response(1.0)
    tight = measured(entry, notion=em.PureDP)
    published = measured(entry, notion=em.PureDP, options=Options(threshold="published"))
    assert 0.8 < tight.lower_bound < 1.0
    assert published.lower_bound < tight.lower_bound
    wished = measured(entry, notion=em.PureDP, options=Options(order=3.0))
    assert wished.findings[0].details["order"] == 3.0


def test_pure_privacy_is_replayed_as_such():
    entry = em.zoo.laplace(1.0)
    result = em.audit(
        entry, None, em.PureDP(0.5), samples=20_000, seed=1, method="renyi-variational"
    )
    assert result.is_refuted
    again = em.replay(em.AuditResult.from_json(result.to_json()), entry, samples=20_000, seed=2)
    assert again.is_refuted
    assert again.lower_bound < 1.0
    assert again.findings[0].claim == em.PureDP(0.5)


@pytest.mark.paper("C6", "corrected")
def test_the_published_bound_names_its_gap_and_decides_nothing():
    options = Options(certificate="published")
    result = em.audit(
        em.zoo.gaussian(sigma=1.0),
        None,
        em.RenyiDP(1.5, 0.2),
        samples=20_000,
        seed=1,
        method="renyi-variational",
        options=options,
    )
    assert 0.4 < result.lower_bound < 0.75
    assert "gaps" in result.guarantee
    assert result.verdict is em.Verdict.INCONCLUSIVE


def test_a_network_is_stored_as_numbers():
    options = Options(family="network", units=(8,), steps=100)
    result = measured(em.zoo.laplace_vector(1.5, dimension=3), order=2.0, options=options)
    score = result.witness.event.partition.blocks[0].groups[0].score
    assert isinstance(score, NetworkScore)
    assert [layer.shape for layer in score.weights] == [(6, 8), (8, 1)]
    stored = em.AuditResult.from_json(result.to_json())
    assert stored.to_dict() == result.to_dict()


def test_without_the_extra_only_the_network_is_missing(monkeypatch):
    whole = builtins.__import__

    def without_jax(name, *rest):
        if name.split(".")[0] in ("jax", "optax"):
            raise ImportError(name)
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_jax)
    with pytest.raises(MissingExtraError, match=r"pip install jax optax$"):
        measured(em.zoo.laplace(1.0), samples=1000, order=2.0, options=Options(family="network"))
    for family in ("chebyshev", "bins"):
        assert (
            measured(
                em.zoo.laplace(1.0), samples=2000, order=2.0, options=Options(family=family)
            ).lower_bound
            > 0.2
        )


@pytest.mark.parametrize("claim", [em.ZCDP(1.0), em.ApproxDP(1.0, 0.01), em.GaussianDP(1.0)])
def test_other_notions_are_refused(claim):
    with pytest.raises(InputError, match="RenyiDP and PureDP"):
        em.audit(em.zoo.laplace(1.0), None, claim, samples=1000, method="renyi-variational")


@pytest.mark.parametrize(
    "settings",
    [
        {"family": "splines"},
        {"degree": 0},
        {"degree": 1000},
        {"bound": 0.0},
        {"bound": math.nan},
        {"order": 1.0},
        {"threshold": "loose"},
        {"certificate": "x"},
        {"units": ()},
        {"units": (0,)},
        {"steps": 0},
    ],
)
def test_nonsense_options(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        Options(**settings)
