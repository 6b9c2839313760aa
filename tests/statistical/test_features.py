"""Features may cost power, never truth; and they find what draws alone cannot show."""

import zlib

import numpy as np
import pytest

import epsilometer as em
from epsilometer import zoo
from epsilometer.mechanisms.features import Features

LEVEL, BROKEN = 0.05, 0.25


def scattered(output):
    """Looks like chance, and is a function of the output: as much room for luck as a method can get."""
    number = zlib.crc32(repr(np.asarray(output).tolist()).encode())
    return {"many": number % 97, "few": number % 3, "part": number / 2**32}


@pytest.mark.parametrize("name", ["laplace", "randomized_response", "oue", "olh"])
def test_useless_features_do_not_make_bounds_too_high(name, rarely):
    entry = zoo.find(name)
    mechanism = entry.mechanism.with_features(Features.of(scattered))

    def too_high(seed):
        return (
            em.measure(mechanism, entry.worst_pair, samples=2000, seed=seed).lower_bound
            > entry.truth()
        )

    rarely(too_high, LEVEL, BROKEN)


@pytest.mark.parametrize("name", ["blh", "olh"])
def test_bounds_of_hashing_protocols_are_rarely_too_high(name, rarely):
    entry = zoo.find(name, categories=16)
    rarely(
        lambda seed: em.measure(entry, samples=2000, seed=seed).lower_bound > entry.truth(),
        LEVEL,
        BROKEN,
    )


@pytest.mark.parametrize("name", ["blh", "olh"])
def test_hashing_protocols_are_found_with_their_hash_only(name):
    # The weaker of both bounds has a standard error of 0.02 around 0.95: 0.8 is seven of them away.
    entry = zoo.find(name, categories=128)
    assert em.measure(entry, samples=40_000, seed=1).lower_bound > 0.8 * entry.truth()
    blind = em.measure(
        entry.mechanism.with_features(None), entry.worst_pair, samples=40_000, seed=1
    )
    assert blind.lower_bound < 0.1
