"""Canaries whose gradients are known."""

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_whole


def gradient_canaries(d: int, m: int, seed: int | None = None) -> Floats:
    """Directions in which canaries push a model, of length 1: their clipped gradients.

    Add those whose coin fell heads to the sum of clipped gradients of each step in whose batch they
    are, and score each canary by what was released along its own direction.

    Args:
        d: numbers of a gradient.
        m: canaries.
        seed: of the directions; None takes a fresh one.

    Returns:
        Shape (m, d). The directions are uniform, and orthogonal to each other if m is at most d, so
        that no canary is seen in the score of another.

    Example:
        >>> from epsilometer import models
        >>> canaries = models.gradient_canaries(d=5, m=3, seed=1)
        >>> np.allclose(canaries @ canaries.T, np.eye(3))
        True
    """
    n_numbers = check_whole("d", d)
    n_canaries = check_whole("m", m)
    if seed is not None:
        check_whole("seed", seed, least=0)
    directions = np.random.default_rng(seed).normal(size=(n_canaries, n_numbers))
    if n_canaries <= n_numbers:
        orthogonal, triangular = np.linalg.qr(directions.T)
        # With the signs of the diagonal the directions are uniform.
        return np.asarray((orthogonal * np.sign(np.diag(triangular))).T)
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))
