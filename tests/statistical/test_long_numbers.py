"""Whole numbers that no double holds are audited with the power of numbers, and true claims about them stand."""

import numpy as np
import pytest

import epsilometer as em


def noisy(base, scale):
    def batch(x, n, rng):
        return base + np.rint(rng.laplace(scale=scale, size=n)).astype(np.int64) + int(x * scale)

    return em.from_batch(batch)


@pytest.mark.parametrize("scale", [2, 500, 1e5, 1e15, 1e17])
@pytest.mark.parametrize("stop_early", [False, True])
def test_noise_around_a_long_number_is_bounded_as_around_zero(scale, stop_early):
    wants = {"samples": 10_000, "seed": 4, "stop_early": stop_early}
    far = em.audit(noisy(17 * 10**17, scale), em.Pair(0, 1), em.PureDP(0.3), **wants)
    near = em.audit(noisy(0, min(scale, 1e14)), em.Pair(0, 1), em.PureDP(0.3), **wants)
    assert far.is_refuted
    assert near.is_refuted
    # An audit that stops early stops at its first bound above the claim, however large it might have become.
    assert stop_early or far.lower_bound > 0.9 * near.lower_bound


def test_true_claims_about_long_numbers_are_rarely_refuted(rarely):
    mechanism, claim = noisy(2**60 + 77, 40), em.PureDP(1.0)
    rarely(
        lambda seed: em.audit(mechanism, em.Pair(0, 1), claim, samples=400, seed=seed).is_refuted,
        0.05,
        0.3,
    )


def test_a_hidden_last_digit_is_found():
    def parity(x, n, rng):
        return 17 * 10**17 + 2 * rng.integers(0, 3, n) + (x & (rng.random(n) < 0.9))

    assert em.audit(
        em.from_batch(parity), em.Pair(0, 1), em.PureDP(1.0), samples=2000, seed=0
    ).is_refuted
