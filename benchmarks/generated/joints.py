"""Joint laws of several numbers: independent, correlated, rotated, summed, spherical, clustered, sorted."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from benchmarks.generated.laws import Law
from epsilometer.arrays import Floats


class Joint(ABC):
    """A distribution of vectors."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n vectors, of shape (n, d)."""

    @abstractmethod
    def log_density(self, values: Floats) -> Floats:
        """Returns log-densities of vectors of shape (n, d), as shape (n,)."""


@dataclass(frozen=True)
class Independent(Joint):
    """Each coordinate has its own law."""

    laws: tuple[Law, ...]

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n vectors, of shape (n, d)."""
        return np.column_stack([law.sample(n, rng) for law in self.laws])

    def log_density(self, values: Floats) -> Floats:
        """Returns log-densities of shape (n,)."""
        parts = [law.log_density(values[:, place]) for place, law in enumerate(self.laws)]
        return np.sum(parts, axis=0)


@dataclass(frozen=True)
class Affine(Joint):
    """A joint law after x → matrix·x + shift: correlated or rotated noise, running sums.

    Attributes:
        joint: of x.
        matrix: invertible, of shape (d, d).
        shift: of shape (d,).
    """

    joint: Joint
    matrix: Floats
    shift: Floats

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n vectors, of shape (n, d)."""
        return self.joint.sample(n, rng) @ self.matrix.T + self.shift

    def log_density(self, values: Floats) -> Floats:
        """Returns log-densities of shape (n,)."""
        inner = np.linalg.solve(self.matrix, (values - self.shift).T).T
        return self.joint.log_density(inner) - np.linalg.slogdet(self.matrix)[1]


@dataclass(frozen=True)
class Spherical(Joint):
    """Noise whose density depends on the distance from a centre only.

    Attributes:
        radial: "gamma" (density ∝ exp(−distance)), "normal", "student" (3 degrees of freedom) or "ball" (uniform).
        centre: of shape (d,).
        scale: of the distance.
    """

    radial: str
    centre: Floats
    scale: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n vectors, of shape (n, d)."""
        dimension = len(self.centre)
        normal = rng.normal(size=(n, dimension))
        length = np.linalg.norm(normal, axis=1)
        if self.radial == "gamma":
            radius = rng.gamma(dimension, size=n)
        elif self.radial == "normal":
            radius = length
        elif self.radial == "student":
            radius = length / np.sqrt(rng.chisquare(3.0, size=n) / 3.0)
        else:
            radius = rng.random(n) ** (1.0 / dimension)
        return self.centre + self.scale * normal * (radius / length)[:, None]

    def log_density(self, values: Floats) -> Floats:
        """Returns log-densities of shape (n,)."""
        dimension = len(self.centre)
        distance = np.linalg.norm(values - self.centre, axis=1) / self.scale
        # Surface of the unit sphere.
        surface = math.log(2.0) + 0.5 * dimension * math.log(math.pi) - gammaln(0.5 * dimension)
        if self.radial == "gamma":
            density = -distance - gammaln(dimension) - surface
        elif self.radial == "normal":
            density = -0.5 * distance**2 - 0.5 * dimension * math.log(2.0 * math.pi)
        elif self.radial == "student":
            constant = gammaln(0.5 * (3.0 + dimension)) - gammaln(1.5)
            constant -= 0.5 * dimension * math.log(3.0 * math.pi)
            density = constant - 0.5 * (3.0 + dimension) * np.log1p(distance**2 / 3.0)
        else:
            density = np.where(distance <= 1.0, math.log(dimension) - surface, -np.inf)
        return density - dimension * math.log(self.scale)


@dataclass(frozen=True)
class Clusters(Joint):
    """One of several joint laws, with probabilities."""

    weights: tuple[float, ...]
    joints: tuple[Joint, ...]

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n vectors, of shape (n, d)."""
        cluster = rng.choice(len(self.joints), size=n, p=self.weights)
        values = self.joints[0].sample(n, rng)
        for place, joint in enumerate(self.joints[1:], start=1):
            here = cluster == place
            values[here] = joint.sample(int(here.sum()), rng)
        return values

    def log_density(self, values: Floats) -> Floats:
        """Returns log-densities of shape (n,)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        parts = [
            log + joint.log_density(values) for log, joint in zip(logs, self.joints, strict=True)
        ]
        return np.logaddexp.reduce(parts, axis=0)


@dataclass(frozen=True)
class SometimesSorted(Joint):
    """Independent numbers of one law, which come sorted with a probability and in random order otherwise."""

    law: Law
    dimension: int
    chance: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n vectors, of shape (n, d)."""
        values = self.law.sample(n * self.dimension, rng).reshape(n, self.dimension)
        is_sorted = rng.random(n) < self.chance
        values[is_sorted] = np.sort(values[is_sorted], axis=1)
        return values

    def log_density(self, values: Floats) -> Floats:
        """Returns log-densities of shape (n,), with respect to the law of independent numbers."""
        is_sorted = (np.diff(values, axis=1) >= 0.0).all(axis=1)
        orders = math.factorial(self.dimension)
        return np.where(
            is_sorted, math.log(1.0 - self.chance + self.chance * orders), math.log1p(-self.chance)
        )
