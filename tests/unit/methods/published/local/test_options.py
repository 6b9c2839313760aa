"""Bad settings are refused in words before anything is drawn."""

import math

import numpy as np
import pytest

import epsilometer as em


def never(dataset, n, rng):
    raise AssertionError("drew before the settings were checked")


NEVER = em.from_batch(never)
PAIR = em.Pair(0.0, 1.0)
BAD = [
    ({"floor": 0.0}, "floor"),
    ({"floor": -1e-3}, "floor"),
    ({"floor": math.nan}, "floor"),
    ({"n": 100, "N": 50}, "n=100 is more than N=50"),
    ({"n": 0}, "n=0"),
    ({"n": 2.5}, "n=2.5"),
    ({"region": (1.0, 1.0)}, "empty"),
    ({"region": (2.0, 1.0)}, "empty"),
    ({"region": (0.0, math.inf)}, "unbounded"),
    ({"region": (-math.inf, 0.0)}, "unbounded"),
    ({"region": 3.0}, "must be"),
    ({"region": ([0, 0], [1])}, "equal length"),
    ({"region": ("a", "b")}, "numbers"),
    ({"bandwidth": 0.0}, "bandwidth"),
    ({"bandwidth": [0.1, -0.1]}, "bandwidth"),
    ({"proof_bandwidth": -1}, "proof_bandwidth"),
    ({"undersmoothing": -0.1}, "undersmoothing"),
    ({"kernel": "box"}, "kernel='box'"),
    ({"kind": "both"}, "kind='both'"),
    ({"proof_floor": -1e-3}, "proof_floor"),
    ({"search_undersmoothing": 1.0}, "search_undersmoothing=1.0"),
    ({"kernel_shape": "round"}, "kernel_shape='round'"),
    ({"select": "best"}, "select='best'"),
    ({"support": (1, 0)}, "support"),
    ({"support": (0, None), "region": (-2, -1)}, "outside"),
    ({"no_such_option": 1}, "no_such_option"),
]


@pytest.mark.parametrize(("settings", "words"), BAD, ids=lambda value: str(value))
def test_mpl_refuses(settings, words):
    with pytest.raises(em.InputError, match=words):
        em.local.mpl(NEVER, [PAIR], **settings)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, "high"])
def test_confidence(confidence):
    with pytest.raises(em.InputError, match="confidence"):
        em.local.mpl(NEVER, [PAIR], confidence=confidence)


def test_the_audit_refuses_too():
    with pytest.raises(em.InputError, match="PureDP"):
        em.audit(NEVER, PAIR, em.RenyiDP(2.0, 1.0), method="local")
    with pytest.raises(em.InputError, match="samples=1000 is too few"):
        em.measure(
            NEVER,
            PAIR,
            em.PureDP,
            samples=1000,
            method="local",
            options=em.local.Options(n=500, N=900),
        )
    with pytest.raises(em.InputError, match=r"epsilometer\.local\.Options"):
        em.measure(NEVER, PAIR, em.PureDP, method="local", options="fast")


def test_a_region_without_draws_is_refused():
    with pytest.raises(em.InputError, match="none of the training draws"):
        em.local.mpl(em.zoo.laplace(1.0), [PAIR], n=1000, N=1000, region=(500, 600), seed=0)
    with pytest.raises(em.InputError, match="none of the training draws"):
        em.measure(
            em.zoo.laplace(1.0),
            None,
            em.PureDP,
            method="local",
            options=em.local.Options(region=(500, 600)),
            seed=0,
        )
    with pytest.raises(em.InputError, match="none of the training draws"):
        em.local.dpl(em.zoo.geometric(1.0), em.Pair(0, 1), n=1000, region=(500, 600), seed=0)


def test_region_and_bandwidth_must_fit_the_outputs():
    entry = em.zoo.laplace_vector(1.0, 2)
    with pytest.raises(em.InputError, match="3 coordinates, the outputs have 2"):
        em.local.dpl(entry, entry.worst_pair, n=500, region=([0] * 3, [1] * 3), seed=0)
    with pytest.raises(em.InputError, match="bandwidth has 3 coordinates"):
        em.local.dpl(entry, entry.worst_pair, n=500, bandwidth=[1, 1, 1], seed=0)
    with pytest.raises(em.InputError, match="leave it out"):
        em.local.loss_function(["a", "b", "a"], ["a", "b", "b"], region=(0, 1))


def clamped_vector(centre):
    u = (np.arange(3000) + 0.5) / 3000
    noise = np.log(u / (1 - u))
    return np.stack([np.clip(centre + noise, -1, 1), noise[::-1] + centre], axis=1)


def test_mixed_laws_are_sent_to_events():
    """Several continuous columns with point masses: a mass may lie on a line, and has no density there."""
    with pytest.raises(em.InputError, match="events"):
        em.local.loss_function(clamped_vector(0.0), clamped_vector(0.5))
    with pytest.raises(em.InputError, match="continuous except for the value"):
        em.local.loss_function(
            np.clip(np.linspace(-2, 2, 999), -1, 1), np.linspace(-2, 2, 999), kind="continuous"
        )


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [
        (np.arange(1000) % 7, "discrete"),
        (np.round(np.linspace(-3, 3, 5000), 1), "discrete"),
        (np.arange(1000) / 2.0 - 30.5, "continuous"),
        (np.arange(1000.0), "discrete"),
        (np.linspace(0, 1, 1000) ** 2, "continuous"),
        (np.linspace(0, 1, 3000).reshape(1500, 2) ** 2, "continuous"),
        (["x", "y"] * 30, "discrete"),
        ([None, (1, 2), "z"] * 30, "discrete"),
        (np.clip(np.linspace(-2, 2, 3000), -1, 1), "mixed"),
        ([None] * 50 + np.linspace(0.1, 0.9, 500).tolist(), "mixed"),
    ],
    ids=[
        "ints",
        "tenths",
        "halves, each once",
        "whole floats",
        "reals",
        "vectors",
        "names",
        "shapes",
        "clamped reals",
        "a real or nothing",
    ],
)
def test_the_kind_is_found(outputs, kind):
    assert em.local.loss_function(outputs, outputs).kind == kind
