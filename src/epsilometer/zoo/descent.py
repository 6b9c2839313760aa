"""Gradient descent with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.claims import GaussianDP, RenyiDP
from epsilometer.claims.renyi import check_order
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import GaussianLaw
from epsilometer.zoo.numerics import FloatArray
from epsilometer.zoo.parameters import check_positive, check_whole
from epsilometer.zoo.sums import one_person


@dataclass(frozen=True)
class NoisyDescent:
    """Langevin steps on the mean of (θ − x)²/2, from 0; outputs are the last θ, shape (n,).

    Attributes:
        step: learning rate η; θ ← θ − η·(θ − mean) + √(2η)·noise·Z.
        noise: standard deviation of the noise.
        steps: how many.
    """

    step: float
    noise: float
    steps: int

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray:
        """Draw n outputs."""
        pull = self.step * float(np.mean(np.asarray(dataset, dtype=np.float64)))
        spread = math.sqrt(2 * self.step) * self.noise
        place, kick = np.zeros(n), np.empty(n)
        for _ in range(self.steps):
            rng.standard_normal(out=kick)
            kick *= spread
            place *= 1 - self.step
            place += pull
            place += kick
        return place


def noisy_gradient_descent(step: float = 0.2, noise: float = 1.0, steps: int = 10, size: int = 10) -> ZooEntry:
    """Noisy gradient descent on a quadratic loss; only the last parameter is published.

    With c = (1 − step)^steps its truth when one of `size` people changes her value from 1 to 0 is Gaussian with
    mu² = (2 − step)/(2·noise²·size²)·(1 − c)/(1 + c). (The loss is (θ − x)²/2; the paper prints it without the half.)

    Reference: Chourasia, Ye, Shokri, "Differential privacy dynamics of Langevin diffusion and noisy gradient descent".
    """
    step, noise = check_positive("step", step, 1.0), check_positive("noise", noise)
    steps, size = check_whole("steps", steps, 1, 10_000), check_whole("size", size, 1, 1_000_000)
    contraction = (1 - step) ** steps
    mu = math.sqrt((2 - step) / 2 * (1 - contraction) / (1 + contraction)) / (noise * size)
    return ZooEntry(
        name="noisy_gradient_descent",
        summary="gradient descent with Gaussian noise in every step, last parameter only",
        mechanism=from_batch(NoisyDescent(step, noise, steps), name="noisy_gradient_descent"),
        claim=GaussianDP(mu),
        worst_pair=one_person(size),
        keeps_claim=True,
        parameters={"step": step, "noise": noise, "steps": steps, "size": size},
        law=partial(GaussianLaw, mu),
    )


@dataclass(frozen=True)
class ClippedDescent:
    """Gradient descent on a linear loss with clipped gradients and Gaussian noise; the last parameter, shape (n,).

    Attributes:
        sigma: standard deviation of the noise on each sum of gradients that are clipped to norm 1.
        steps: how many.
        step: learning rate.
    """

    sigma: float
    steps: int
    step: float = 0.1

    def __call__(self, dataset: Any, n: int, rng: Generator) -> FloatArray:
        """Draw n outputs."""
        gradients = np.clip(np.asarray(dataset, dtype=np.float64), -1.0, 1.0)
        place = np.zeros(n)
        for _ in range(self.steps):
            place -= self.step / gradients.size * (gradients.sum() + self.sigma * rng.standard_normal(n))
        return place


def scaled_gd(scale: float = 0.5, sigma: float = 2.0, steps: int = 4, size: int = 10, order: float = 2.0) -> ZooEntry:
    """Gradient descent whose noise is `scale` times what its accountant believes.

    The accountant composes `steps` Gaussian mechanisms of noise multiplier `sigma` and claims the Rényi level
    order·steps/(2·sigma²); the effective multiplier is scale·sigma. Below 1 the claim is false: scale = 1/2 is the bug
    of clipping micro-batches instead of examples. The truth is Gaussian with mu = √steps/(scale·sigma).

    Reference: Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium", figure 2.
    """
    scale, sigma = check_positive("scale", scale), check_positive("sigma", sigma)
    steps, size = check_whole("steps", steps, 1, 10_000), check_whole("size", size, 1, 1_000_000)
    order = check_order(order)
    return ZooEntry(
        name="scaled_gd",
        summary=f"gradient descent with {scale:g} times the noise that it accounts for",
        mechanism=from_batch(ClippedDescent(scale * sigma, steps), name="scaled_gd"),
        claim=RenyiDP(order, order * steps / (2 * sigma**2)),
        worst_pair=one_person(size),
        keeps_claim=scale >= 1,
        parameters={"scale": scale, "sigma": sigma, "steps": steps, "size": size, "order": order},
        law=partial(GaussianLaw, math.sqrt(steps) / (scale * sigma)),
    )
