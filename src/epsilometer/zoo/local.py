"""Local privacy of one person: randomized response, unary encodings, Hadamard response, subset selection.

At the end, noise that is truncated to an interval: mechanisms whose densities have known Lipschitz constants.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr, ndtri

from epsilometer.arrays import Array, Booleans, Floats, Integers
from epsilometer.claims import PureDP
from epsilometer.claims.base import check_number
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry
from epsilometer.zoo.laws.exact import CellLaw, discrete_law, panel_law
from epsilometer.zoo.laws.numerics import Panels


def respond(dataset: Any, n: int, rng: Generator, labels: tuple[str, ...], truthful: float) -> Array:
    """Reports the true label with some probability, else one of the others; outputs are strings, shape (n,).

    Args:
        labels: all possible answers.
        truthful: probability of the true one.
    """
    if dataset not in labels:
        raise InputError(f"dataset={dataset!r} is not one of the answers {', '.join(labels)}")
    lie = rng.integers(1, len(labels), n)
    lie[rng.random(n) < truthful] = 0
    return np.array(labels)[(labels.index(dataset) + lie) % len(labels)]


def randomized_response(epsilon: float = 1.0, categories: int = 2) -> ZooEntry:
    """Randomized response over k labels ("yes" and "no" for two): the truth with probability e^eps/(e^eps + k - 1).

    Its truth on any two labels: pure epsilon; the other notions by a finite sum.

    Reference: Warner, "Randomized response"; Kairouz, Oh, Viswanath, "Extremal mechanisms for local differential
    privacy".
    """
    epsilon, categories = check_epsilon(epsilon), check_count("categories", categories, 2, 10_000)
    labels = ("yes", "no") if categories == 2 else tuple(f"c{index}" for index in range(categories))
    truthful = 1 / (1 + (categories - 1) * math.exp(-epsilon))
    summary = f"a label, reported truthfully or replaced by one of the other {categories - 1}"
    draw, claim = partial(respond, labels=labels, truthful=truthful), PureDP(epsilon)
    pair, law = Pair(labels[0], labels[1]), partial(_law, epsilon, categories, truthful)
    return entry("randomized_response", summary, draw, claim, pair, law, epsilon=epsilon, categories=categories)


def _law(epsilon: float, categories: int, truthful: float) -> CellLaw:
    lie = truthful * math.exp(-epsilon)
    others = (categories - 2) * lie
    return discrete_law(np.array([truthful, lie, others]), np.array([lie, truthful, others]))


_MOST_CATEGORIES = 1000


def encode_unary(dataset: Any, n: int, rng: Generator, categories: int, true_one: float, false_one: float) -> Booleans:
    """One bit per category, each sent through a coin; outputs are bool, shape (n, categories).

    Args:
        categories: number of bits.
        true_one: probability that the bit of one's own category is reported as 1.
        false_one: probability that any other bit is.
    """
    chances = np.full(categories, false_one)
    chances[check_category(dataset, categories)] = true_one
    return rng.random((n, categories)) < chances


def choose_column(dataset: Any, n: int, rng: Generator, categories: int, size: int, truthful: float) -> Integers:
    """A column of a Hadamard matrix, likelier where one's own row is +1; int64 outputs from 0 to size - 1, shape (n,).

    Args:
        categories: how many rows are used; category j has row j + 1, because row 0 is constant.
        size: of the matrix, a power of two above `categories`.
        truthful: probability of a column where one's own row is +1.
    """
    row, columns = check_category(dataset, categories) + 1, rng.integers(0, size, n)
    negative, wanted_negative = np.bitwise_count(columns & row) % 2 == 1, rng.random(n) >= truthful
    # Flipping one bit that the row depends on changes the sign, and maps one half of the columns onto the other.
    columns[negative != wanted_negative] ^= row & -row
    return columns


def choose_subset(dataset: Any, n: int, rng: Generator, categories: int, size: int, truthful: float) -> Booleans:
    """A random set of categories that holds one's own with high probability; bool outputs, shape (n, categories).

    Args:
        categories: all of them.
        size: members of every set.
        truthful: probability that one's own category is a member.
    """
    own = check_category(dataset, categories)
    # Random keys in [0, 1), of which the smallest are chosen: -1 always is, 2 never.
    keys = rng.random((n, categories))
    keys[:, own] = np.where(rng.random(n) < truthful, -1.0, 2.0)
    members = np.zeros((n, categories), dtype=np.bool_)
    np.put_along_axis(members, np.argpartition(keys, size - 1, axis=1)[:, :size], True, axis=1)
    return members


def sue(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Symmetric unary encoding: each bit of a one-hot code is kept with probability e^(eps/2)/(e^(eps/2) + 1).

    Its truth on any two categories: pure epsilon; the other notions by a finite sum.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation" (SUE, the
    basic one-time RAPPOR).
    """
    kept = 1 / (1 + math.exp(-check_epsilon(epsilon) / 2))
    return _unary_entry("sue", "symmetric", epsilon, categories, kept, 1 - kept)


def oue(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Optimised unary encoding: one's own bit is a fair coin, any other is 1 with probability 1/(e^eps + 1).

    Its truth on any two categories: pure epsilon; the other notions by a finite sum.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation" (OUE).
    """
    return _unary_entry("oue", "optimised", epsilon, categories, 0.5, 1 / (1 + math.exp(check_epsilon(epsilon))))


def _unary_entry(name: str, kind: str, epsilon: float, categories: int, true_one: float, false_one: float) -> ZooEntry:
    epsilon, categories = check_epsilon(epsilon), _check_categories(categories)
    coins = partial(encode_unary, categories=categories, true_one=true_one, false_one=false_one)
    law = partial(unary_law, true_one, false_one)
    return _entry(name, f"{kind} unary encoding of a category", epsilon, categories, coins, law)


def hadamard_response(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Hadamard response: a column of a Hadamard matrix, e^eps times likelier where one's own row is +1.

    Its truth on any two categories: pure epsilon; the other notions by a finite sum.

    Reference: Acharya, Sun, Zhang, "Hadamard response: estimating distributions privately, efficiently, and with
    little communication".
    """
    epsilon, categories = check_epsilon(epsilon), _check_categories(categories)
    size = 1 << categories.bit_length()  # the least power of two above the number of categories
    draw = partial(choose_column, categories=categories, size=size, truthful=1 / (1 + math.exp(-epsilon)))
    law = partial(_halves_law, epsilon)
    return _entry("hadamard_response", "a column of a Hadamard matrix", epsilon, categories, draw, law)


def subset_selection(epsilon: float = 1.0, categories: int = 6) -> ZooEntry:
    """Subset selection: a set of about categories/(e^eps + 1) categories, e^eps times likelier with one's own in it.

    Its truth on any two categories: pure epsilon; the other notions by a finite sum.

    Reference: Ye, Barg, "Optimal schemes for discrete distribution estimation under locally differential privacy".
    """
    epsilon, categories = check_epsilon(epsilon), _check_categories(categories)
    size = max(1, min(categories - 1, round(categories / (math.exp(epsilon) + 1))))
    truthful = size / (size + (categories - size) * math.exp(-epsilon))
    draw = partial(choose_subset, categories=categories, size=size, truthful=truthful)
    law = partial(_subset_law, epsilon, categories, size)
    return _entry("subset_selection", "a random set of categories around one's own", epsilon, categories, draw, law)


def unary_law(true_one: float, false_one: float) -> CellLaw:
    """The distributions of two bits, the first set by the left input and the second by the right one."""
    own, other = np.array([1 - true_one, true_one]), np.array([1 - false_one, false_one])
    return discrete_law(np.outer(own, other).ravel(), np.outer(other, own).ravel())


def check_category(dataset: Any, categories: int) -> int:
    """A category as a whole number, or an InputError."""
    if isinstance(dataset, bool) or not isinstance(dataset, int | np.integer) or not 0 <= dataset < categories:
        raise InputError(f"dataset={dataset!r} must be a category, a whole number from 0 to {categories - 1}")
    return int(dataset)


def _entry(name: str, summary: str, epsilon: float, categories: int, draw: Any, law: Any) -> ZooEntry:
    return entry(name, summary, draw, PureDP(epsilon), Pair(0, 1), law, epsilon=epsilon, categories=categories)


def _check_categories(value: int) -> int:
    return check_count("categories", value, 2, _MOST_CATEGORIES)


def _halves_law(epsilon: float) -> CellLaw:
    """Any two rows agree on half of the columns, and each is +1 on a quarter where the other is -1."""
    likely, unlikely = 1 / (1 + math.exp(-epsilon)) / 2, 1 / (1 + math.exp(epsilon)) / 2
    return discrete_law(np.array([likely, likely, unlikely, unlikely]), np.array([likely, unlikely, likely, unlikely]))


def _subset_law(epsilon: float, categories: int, size: int) -> CellLaw:
    """Sets with both categories, with one of them, with none: counted, and weighted by 1 or e^-epsilon."""
    shared = size * (size - 1), size * (categories - size), (categories - size) * (categories - size - 1)
    both, one, none = (count / (categories * (categories - 1)) for count in shared)
    rare = math.exp(-epsilon)
    weights = np.array([both, one, one * rare, none * rare])
    left = weights / weights.sum()
    return discrete_law(left, left[[0, 2, 1, 3]])


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
        return np.asarray(np.exp(-np.abs(outputs - centre) / self.scale) / (self.scale * sum(self._sides(centre))))

    def __call__(self, dataset: Any, n: int, rng: Generator) -> Floats:
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
        return np.asarray(_PEAK * np.exp(-(((outputs - centre) / self.sigma) ** 2) / 2) / (self.sigma * (end - start)))

    def __call__(self, dataset: Any, n: int, rng: Generator) -> Floats:
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
    return _lipschitz_entry("laplace", epsilon, TruncatedLaplace(scale, low, high), scale, **constants)


def truncated_gaussian(epsilon: float = 1.0, low: float = 0.0, high: float = 1.0) -> LipschitzEntry:
    """Gaussian noise on a number of [low, high], truncated to [low, high]: pure privacy with Gaussian noise.

    With sigma = (high - low)/sqrt(2 epsilon) the truth on the two ends is pure epsilon; nearer inputs lose less. With
    u = (high - low)/sigma and t = min(1, u) the densities are C-Lipschitz with C = t phi(t)/(sigma^2 (Phi(u) - 1/2)),
    steepest for an input at an end. The constant for the input is an upper bound, not the least one.
    """
    epsilon, low, high = check_epsilon(epsilon), *_check_interval(low, high)
    width = math.sqrt(2 * epsilon)  # of the interval, in standard deviations
    sigma, share, turn = (high - low) / width, math.erf(width / math.sqrt(2)) / 2, min(1.0, width)
    steepest = turn * _PEAK * math.exp(-(turn**2) / 2) / (sigma**2 * share)
    # What the normalising constant adds: highest density times the steepest logarithm of the constant.
    norming = _PEAK / (sigma * share) * -_PEAK * math.expm1(-epsilon) / (sigma * share)
    shortest, constants = sigma / max(1.0, width), {"lipschitz": steepest, "input_lipschitz": steepest + norming}
    return _lipschitz_entry("gaussian", epsilon, TruncatedGaussian(sigma, low, high), shortest, **constants)


def _lipschitz_entry(
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
