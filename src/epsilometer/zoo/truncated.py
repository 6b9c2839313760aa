"""Noise that is truncated to an interval: the local mechanisms whose densities have known Lipschitz constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from epsilometer.arrays import Floats
from epsilometer.claims import PureDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.zoo.entry import ZooEntry, check_epsilon, check_number, entry
from epsilometer.zoo.laws.exact import CellLaw, panel_law
from epsilometer.zoo.laws.numerics import Panels

# Panels per noise scale: delta's kink then costs less than 1e-6 (see `quadrature_law`).
_PANELS = 50
_PEAK = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class LipschitzEntry(ZooEntry):
    """A local mechanism on an interval whose densities are Lipschitz; what `epsilometer.ldp` needs.

    Attributes:
        domain: (a, b), where outputs lie.
        lipschitz: C, a Lipschitz constant of every output density.
        input_domain: (c, d), where inputs lie.
        input_lipschitz: D, a Lipschitz constant of the density at any output as a function of the input.
    """

    domain: tuple[float, float]
    lipschitz: float
    input_domain: tuple[float, float]
    input_lipschitz: float


@dataclass(frozen=True)
class TruncatedLaplace:
    """A number of [low, high] plus Laplace noise, given that the sum stays in [low, high]; outputs of shape (n,)."""

    scale: float
    low: float
    high: float

    def density(self, centre: float, outputs: Floats) -> Floats:
        """The density of the outputs inside [low, high] for the input `centre`, elementwise."""
        result: Floats = np.exp(-np.abs(outputs - centre) / self.scale) / (self.scale * sum(self._sides(centre)))
        return result

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> Floats:
        """Draw n outputs: exponential noise to one side, cut off at its end by the inverse distribution function."""
        centre = _inside(dataset, self.low, self.high)
        below, above = self._sides(centre)
        place = rng.random(n) * (below + above) - below
        distance: Floats = -self.scale * np.log1p(-np.abs(place))
        return np.clip(np.where(place < 0, centre - distance, centre + distance), self.low, self.high)

    def _sides(self, centre: float) -> tuple[float, float]:
        """Weights of the noise below and above the centre, in units of a whole side."""
        return -math.expm1((self.low - centre) / self.scale), -math.expm1((centre - self.high) / self.scale)


@dataclass(frozen=True)
class TruncatedGaussian:
    """A number of [low, high] plus Gaussian noise, given that the sum stays in [low, high]; outputs of shape (n,)."""

    sigma: float
    low: float
    high: float

    def density(self, centre: float, outputs: Floats) -> Floats:
        """The density of the outputs inside [low, high] for the input `centre`, elementwise."""
        start, end = self._ends(centre)
        result: Floats = _PEAK * np.exp(-(((outputs - centre) / self.sigma) ** 2) / 2) / (self.sigma * (end - start))
        return result

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> Floats:
        """Draw n outputs by the inverse distribution function."""
        centre = _inside(dataset, self.low, self.high)
        start, end = self._ends(centre)
        noise: Floats = ndtri(start + (end - start) * rng.random(n))
        return np.clip(centre + self.sigma * noise, self.low, self.high)

    def _ends(self, centre: float) -> tuple[float, float]:
        start, end = ndtr([(self.low - centre) / self.sigma, (self.high - centre) / self.sigma])
        return float(start), float(end)


def truncated_laplace(epsilon: float = 1.0, low: float = 0.0, high: float = 1.0) -> LipschitzEntry:
    """Laplace noise of scale (high - low)/epsilon on a number of [low, high], truncated to [low, high].

    Its truth on the two ends: pure epsilon, since their normalising constants are equal; nearer inputs lose less. The
    densities are C-Lipschitz with C = 1/(scale^2 (1 - e^-epsilon)), steepest at an end, and 2C-Lipschitz in the input.
    C < 2/(high - low)^2, which `epsilometer.ldp` needs, holds for epsilon up to 1.17.

    Reference: Holohan, Antonatos, Braghin, Mac Aonghusa, "The bounded Laplace mechanism in differential privacy".
    """
    epsilon, low, high = check_epsilon(epsilon), *_check_interval(low, high)
    scale = (high - low) / epsilon
    steepest = 1 / (scale**2 * -math.expm1(-epsilon))
    constants = {"lipschitz": steepest, "input_lipschitz": 2 * steepest}
    return _entry("laplace", epsilon, TruncatedLaplace(scale, low, high), scale, **constants)


def truncated_gaussian(epsilon: float = 1.0, low: float = 0.0, high: float = 1.0) -> LipschitzEntry:
    """Gaussian noise on a number of [low, high], truncated to [low, high]: pure privacy with Gaussian noise.

    With sigma = (high - low)/sqrt(2 epsilon) the truth on the two ends is pure epsilon; nearer inputs lose less. With
    u = (high - low)/sigma and t = min(1, u) the densities are C-Lipschitz with C = t phi(t)/(sigma^2 (Phi(u) - 1/2)),
    steepest for an input at an end. The constant for the input is an upper bound, not the least one.
    """
    epsilon, low, high = check_epsilon(epsilon), *_check_interval(low, high)
    width = math.sqrt(2 * epsilon)  # of the interval, in standard deviations
    sigma = (high - low) / width
    share = math.erf(width / math.sqrt(2)) / 2
    turn = min(1.0, width)
    steepest = turn * _PEAK * math.exp(-(turn**2) / 2) / (sigma**2 * share)
    # What the normalising constant adds: highest density times the steepest logarithm of the constant.
    norming = _PEAK / (sigma * share) * -_PEAK * math.expm1(-epsilon) / (sigma * share)
    shortest, constants = sigma / max(1.0, width), {"lipschitz": steepest, "input_lipschitz": steepest + norming}
    return _entry("gaussian", epsilon, TruncatedGaussian(sigma, low, high), shortest, **constants)


def _entry(
    kind: str, epsilon: float, noise: TruncatedLaplace | TruncatedGaussian, scale: float, **constants: Any
) -> LipschitzEntry:
    summary = f"a number of an interval plus {kind.capitalize()} noise, truncated to the interval"
    ends, law = (noise.low, noise.high), partial(_law_between_ends, noise.density, noise.low, noise.high, scale)
    given: dict[str, Any] = {"epsilon": epsilon, "low": noise.low, "high": noise.high}
    plain = entry(f"truncated_{kind}", summary, noise, PureDP(epsilon), Pair(*ends), law, **given)
    return LipschitzEntry(**vars(plain), domain=ends, input_domain=ends, **constants)


def _law_between_ends(density: Callable[[float, Floats], Floats], low: float, high: float, scale: float) -> CellLaw:
    # Wide noise is smooth, but delta's kink still needs short panels.
    panels = Panels.between((low, high), min(scale, high - low), 0.0, panels_per_scale=_PANELS)
    return panel_law(panels, partial(density, low), partial(density, high))


def _inside(dataset: Any, low: float, high: float) -> float:
    centre = float(dataset)
    if not low <= centre <= high:
        raise InputError(f"dataset={dataset!r} must be a number from {low:g} to {high:g}")
    return centre


def _check_interval(low: float, high: float) -> tuple[float, float]:
    low, high = check_number("low", low), check_number("high", high)
    if not high > low:
        raise InputError(f"low={low:g}, high={high:g} make no sense here: low must be below high")
    return low, high
