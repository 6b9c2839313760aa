"""Local privacy of one person: randomized response, unary encodings, Hadamard response, subsets.

At the end, noise that is truncated to an interval: mechanisms whose densities have known Lipschitz
constants.
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
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    PairDistributions,
    discrete_distributions,
    panel_distributions,
)
from epsilometer.zoo.distributions.numerics import Panels
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry

# --- randomized response


def respond(
    dataset: Any, n: int, rng: Generator, labels: tuple[str, ...], truthful: float
) -> Array:
    """Reports the true label with some probability, else one of the others.

    Outputs are strings, shape (n,).

    Args:
        dataset: the true label.
        n: how many outputs.
        rng: the source of randomness.
        labels: all possible answers.
        truthful: probability of the true one.
    """
    if dataset not in labels:
        raise InputError(f"dataset={dataset!r} is not one of the answers {', '.join(labels)}")
    offset = rng.integers(1, len(labels), n)
    offset[rng.random(n) < truthful] = 0
    return np.array(labels)[(labels.index(dataset) + offset) % len(labels)]


def randomized_response(epsilon: float = 1.0, categories: int = 2) -> ZooEntry:
    """Randomized response over k labels: the truth with probability e^eps/(e^eps + k - 1).

    Two labels are "yes" and "no". Its truth on any two labels: pure epsilon; the other notions by a
    finite sum.

    Reference: Warner, "Randomized response"; Kairouz, Oh, Viswanath, "Extremal mechanisms for local
    differential privacy".
    """
    epsilon = check_epsilon(epsilon)
    categories = check_count("categories", categories, 2, 10_000)
    labels = ("yes", "no") if categories == 2 else tuple(f"c{code}" for code in range(categories))
    truthful = 1 / (1 + (categories - 1) * math.exp(-epsilon))
    return entry(
        "randomized_response",
        summary=f"a label, reported truthfully or replaced by one of the other {categories - 1}",
        draw=partial(respond, labels=labels, truthful=truthful),
        claim=PureDP(epsilon),
        worst_pair=Pair(labels[0], labels[1]),
        make_distributions=partial(_response_distributions, epsilon, categories, truthful),
        parameters={"epsilon": epsilon, "categories": categories},
    )


def _response_distributions(epsilon: float, categories: int, truthful: float) -> CellDistributions:
    """The distributions of the left label, the right label, and all others together."""
    lie = truthful * math.exp(-epsilon)
    others = (categories - 2) * lie
    return discrete_distributions(
        np.array([truthful, lie, others]), np.array([lie, truthful, others])
    )


# --- categories as bits, columns and subsets

_MAX_CATEGORIES = 1000


def check_category(dataset: Any, categories: int) -> int:
    """Returns a category as an integer, or raises an InputError."""
    is_integer = isinstance(dataset, int | np.integer) and not isinstance(dataset, bool)
    if not is_integer or not 0 <= dataset < categories:
        raise InputError(
            f"dataset={dataset!r} must be a category, a whole number from 0 to {categories - 1}"
        )
    return int(dataset)


def _check_categories(value: int) -> int:
    return check_count("categories", value, 2, _MAX_CATEGORIES)


def _category_entry(
    name: str,
    *,
    summary: str,
    draw: Callable[..., Any],
    make_distributions: Callable[[], PairDistributions],
    epsilon: float,
    categories: int,
) -> ZooEntry:
    """Returns a mechanism for one category on which any two categories are a worst pair."""
    return entry(
        name,
        summary=summary,
        draw=draw,
        claim=PureDP(epsilon),
        worst_pair=Pair(0, 1),
        make_distributions=make_distributions,
        parameters={"epsilon": epsilon, "categories": categories},
    )


def encode_unary(
    dataset: Any, n: int, rng: Generator, *, categories: int, true_one: float, false_one: float
) -> Booleans:
    """Draws one bit per category, each by a coin; outputs are bool, shape (n, categories).

    Args:
        dataset: the true category.
        n: how many outputs.
        rng: the source of randomness.
        categories: number of bits.
        true_one: probability that the bit of the true category is reported as 1.
        false_one: probability that any other bit is.
    """
    probability_of_one = np.full(categories, false_one)
    probability_of_one[check_category(dataset, categories)] = true_one
    return rng.random((n, categories)) < probability_of_one


def sue(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Symmetric unary encoding: bits of a one-hot code, kept with chance e^(eps/2)/(e^(eps/2) + 1).

    Its truth on any two categories: pure epsilon; the other notions by a finite sum.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency
    estimation" (SUE, the basic one-time RAPPOR).
    """
    epsilon = check_epsilon(epsilon)
    p_kept = 1 / (1 + math.exp(-epsilon / 2))
    return _unary_entry(
        "sue", "symmetric", epsilon, categories, true_one=p_kept, false_one=1 - p_kept
    )


def oue(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Optimised unary encoding: a fair coin for the true bit, 1/(e^eps + 1) for any other.

    These are the probabilities that a bit is reported as 1. Its truth on any two categories: pure
    epsilon; the other notions by a finite sum.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency
    estimation" (OUE).
    """
    epsilon = check_epsilon(epsilon)
    false_one = 1 / (1 + math.exp(epsilon))
    return _unary_entry("oue", "optimised", epsilon, categories, true_one=0.5, false_one=false_one)


def _unary_entry(
    name: str, kind: str, epsilon: float, categories: int, *, true_one: float, false_one: float
) -> ZooEntry:
    categories = _check_categories(categories)
    draw = partial(encode_unary, categories=categories, true_one=true_one, false_one=false_one)
    return _category_entry(
        name,
        summary=f"{kind} unary encoding of a category",
        draw=draw,
        make_distributions=partial(unary_distributions, true_one, false_one),
        epsilon=epsilon,
        categories=categories,
    )


def unary_distributions(true_one: float, false_one: float) -> CellDistributions:
    """The distributions of two bits, the first set by the left input, the second by the right."""
    set_bit = np.array([1 - true_one, true_one])
    unset_bit = np.array([1 - false_one, false_one])
    left = np.outer(set_bit, unset_bit).ravel()
    right = np.outer(unset_bit, set_bit).ravel()
    return discrete_distributions(left, right)


def choose_column(
    dataset: Any, n: int, rng: Generator, *, categories: int, size: int, truthful: float
) -> Integers:
    """Draws a column of a Hadamard matrix, likelier where the category's row is +1.

    Outputs are int64 from 0 to size - 1, shape (n,).

    Args:
        dataset: the true category.
        n: how many outputs.
        rng: the source of randomness.
        categories: how many rows are used; category j has row j + 1, because row 0 is constant.
        size: of the matrix, a power of two above `categories`.
        truthful: probability of a column where the category's row is +1.
    """
    row = check_category(dataset, categories) + 1
    columns = rng.integers(0, size, n)
    is_negative = np.bitwise_count(columns & row) % 2 == 1
    should_be_negative = rng.random(n) >= truthful
    # Flipping one bit that the row depends on changes the sign, and maps one half of the columns
    # onto the other.
    lowest_bit = row & -row
    columns[is_negative != should_be_negative] ^= lowest_bit
    return columns


def hadamard_response(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Hadamard response: a column of a Hadamard matrix, e^eps times likelier where the row is +1.

    The row is that of the true category. Its truth on any two categories: pure epsilon; the other
    notions by a finite sum.

    Reference: Acharya, Sun, Zhang, "Hadamard response: estimating distributions privately,
    efficiently, and with little communication".
    """
    epsilon = check_epsilon(epsilon)
    categories = _check_categories(categories)
    size = 1 << categories.bit_length()  # the least power of two above the number of categories
    truthful = 1 / (1 + math.exp(-epsilon))
    return _category_entry(
        "hadamard_response",
        summary="a column of a Hadamard matrix",
        draw=partial(choose_column, categories=categories, size=size, truthful=truthful),
        make_distributions=partial(_hadamard_distributions, epsilon),
        epsilon=epsilon,
        categories=categories,
    )


def _hadamard_distributions(epsilon: float) -> CellDistributions:
    """The distributions of the signs of both rows.

    Any two rows agree on half of the columns, and each is +1 on a quarter where the other is -1.
    """
    likely = 1 / (1 + math.exp(-epsilon)) / 2
    unlikely = 1 / (1 + math.exp(epsilon)) / 2
    left = np.array([likely, likely, unlikely, unlikely])
    right = np.array([likely, unlikely, likely, unlikely])
    return discrete_distributions(left, right)


def choose_subset(
    dataset: Any, n: int, rng: Generator, *, categories: int, size: int, truthful: float
) -> Booleans:
    """Draws a random set of categories that holds the true one with high probability.

    Outputs are bool, shape (n, categories).

    Args:
        dataset: the true category.
        n: how many outputs.
        rng: the source of randomness.
        categories: all of them.
        size: members of every set.
        truthful: probability that the true category is a member.
    """
    true_category = check_category(dataset, categories)
    # Random keys in [0, 1), of which the smallest are chosen: -1 always is, 2 never.
    keys = rng.random((n, categories))
    keys[:, true_category] = np.where(rng.random(n) < truthful, -1.0, 2.0)
    smallest = np.argpartition(keys, size - 1, axis=1)[:, :size]
    is_member = np.zeros((n, categories), dtype=np.bool_)
    np.put_along_axis(is_member, smallest, True, axis=1)
    return is_member


def subset_selection(epsilon: float = 1.0, categories: int = 6) -> ZooEntry:
    """Subset selection: a set of about categories/(e^eps + 1) categories.

    A set with the true category in it is e^eps times likelier than one without. Its truth on any
    two categories: pure epsilon; the other notions by a finite sum.

    Reference: Ye, Barg, "Optimal schemes for discrete distribution estimation under locally
    differential privacy".
    """
    epsilon = check_epsilon(epsilon)
    categories = _check_categories(categories)
    size = max(1, min(categories - 1, round(categories / (math.exp(epsilon) + 1))))
    truthful = size / (size + (categories - size) * math.exp(-epsilon))
    return _category_entry(
        "subset_selection",
        summary="a random set of categories around one's own",
        draw=partial(choose_subset, categories=categories, size=size, truthful=truthful),
        make_distributions=partial(_subset_distributions, epsilon, categories, size),
        epsilon=epsilon,
        categories=categories,
    )


def _subset_distributions(epsilon: float, categories: int, size: int) -> CellDistributions:
    """The distributions of sets with both categories, with one of them, with none.

    They are counted, and weighted by 1 with the true category, by e^-epsilon without.
    """
    n_pairs = categories * (categories - 1)
    both = size * (size - 1) / n_pairs
    one = size * (categories - size) / n_pairs
    none = (categories - size) * (categories - size - 1) / n_pairs
    rare = math.exp(-epsilon)
    weights = np.array([both, one, one * rare, none * rare])
    left = weights / weights.sum()
    right = left[[0, 2, 1, 3]]
    return discrete_distributions(left, right)


# --- noise truncated to an interval

# Panels per noise scale: delta's kink then costs less than 1e-6 (see `quadrature_distributions`).
_PANELS_PER_SCALE = 50
# The density of a standard normal number at 0.
_NORMAL_PEAK = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True, repr=False)
class LipschitzEntry(ZooEntry):
    """A local mechanism on an interval whose densities are Lipschitz; what `epsilometer.ldp` needs.

    Attributes:
        domain: (a, b), where outputs lie.
        lipschitz: C, a Lipschitz constant of every output density.
        input_domain: (c, d), where inputs lie.
        input_lipschitz: D, a Lipschitz constant of the density at any output as a function of the
            input.
    """

    domain: tuple[float, float]
    lipschitz: float
    input_domain: tuple[float, float]
    input_lipschitz: float


@dataclass(frozen=True)
class TruncatedLaplace:
    """A number of [low, high] plus Laplace noise, given that the sum stays in [low, high].

    Outputs have shape (n,).

    Attributes:
        scale: of the noise.
        low: the lower end.
        high: the upper end.
    """

    scale: float
    low: float
    high: float

    def density(self, centre: float, outputs: Floats) -> Floats:
        """Returns the density of outputs inside [low, high] for the input `centre`."""
        below, above = self._side_weights(centre)
        unnormalised = np.exp(-np.abs(outputs - centre) / self.scale)
        return np.asarray(unnormalised / (self.scale * (below + above)))

    def __call__(self, dataset: Any, n: int, rng: Generator) -> Floats:
        """Draws n outputs by the inverse distribution function of each side."""
        centre = _check_inside(dataset, self.low, self.high)
        below, above = self._side_weights(centre)
        # Negative numbers are below the centre; their size is the weight between them and it.
        signed_weight = rng.random(n) * (below + above) - below
        distance: Floats = -self.scale * np.log1p(-np.abs(signed_weight))
        noisy = np.where(signed_weight < 0, centre - distance, centre + distance)
        return np.clip(noisy, self.low, self.high)

    def _side_weights(self, centre: float) -> tuple[float, float]:
        """Returns the weights of the noise below and above the centre, in units of a full side."""
        below = -math.expm1((self.low - centre) / self.scale)
        above = -math.expm1((centre - self.high) / self.scale)
        return below, above


@dataclass(frozen=True)
class TruncatedGaussian:
    """A number of [low, high] plus Gaussian noise, given that the sum stays in [low, high].

    Outputs have shape (n,).

    Attributes:
        sigma: standard deviation of the noise.
        low: the lower end.
        high: the upper end.
    """

    sigma: float
    low: float
    high: float

    def density(self, centre: float, outputs: Floats) -> Floats:
        """Returns the density of outputs inside [low, high] for the input `centre`."""
        start, end = self._quantile_levels(centre)
        unnormalised = _NORMAL_PEAK * np.exp(-(((outputs - centre) / self.sigma) ** 2) / 2)
        return np.asarray(unnormalised / (self.sigma * (end - start)))

    def __call__(self, dataset: Any, n: int, rng: Generator) -> Floats:
        """Draws n outputs by the inverse distribution function."""
        centre = _check_inside(dataset, self.low, self.high)
        start, end = self._quantile_levels(centre)
        noise: Floats = ndtri(start + (end - start) * rng.random(n))
        return np.clip(centre + self.sigma * noise, self.low, self.high)

    def _quantile_levels(self, centre: float) -> tuple[float, float]:
        """Returns the probabilities that untruncated noise ends below `low` and below `high`."""
        start, end = ndtr([(self.low - centre) / self.sigma, (self.high - centre) / self.sigma])
        return float(start), float(end)


def truncated_laplace(epsilon: float = 1.0, low: float = 0.0, high: float = 1.0) -> LipschitzEntry:
    """Laplace noise of scale (high - low)/epsilon on a number of [low, high], truncated to it.

    Its truth on the two ends: pure epsilon, since their normalising constants are equal; nearer
    inputs lose less. The densities are C-Lipschitz with C = 1/(scale^2 (1 - e^-epsilon)), steepest
    at an end, and 2C-Lipschitz in the input. C < 2/(high - low)^2, which `epsilometer.ldp` needs,
    holds for epsilon up to 1.17.

    Reference: Holohan, Antonatos, Braghin, Mac Aonghusa, "The bounded Laplace mechanism in
    differential privacy".
    """
    epsilon = check_epsilon(epsilon)
    low, high = _check_interval(low, high)
    scale = (high - low) / epsilon
    steepest = 1 / (scale**2 * -math.expm1(-epsilon))
    return _lipschitz_entry(
        "laplace",
        epsilon,
        TruncatedLaplace(scale=scale, low=low, high=high),
        shortest_scale=scale,
        lipschitz=steepest,
        input_lipschitz=2 * steepest,
    )


def truncated_gaussian(epsilon: float = 1.0, low: float = 0.0, high: float = 1.0) -> LipschitzEntry:
    """Gaussian noise on a number of [low, high], truncated to it: pure privacy.

    With sigma = (high - low)/sqrt(2 epsilon) the truth on the two ends is pure epsilon; nearer
    inputs lose less. With u = (high - low)/sigma and t = min(1, u) the densities are C-Lipschitz
    with C = t phi(t)/(sigma^2 (Phi(u) - 1/2)), steepest for an input at an end. The constant for
    the input is an upper bound, not the least one.
    """
    epsilon = check_epsilon(epsilon)
    low, high = _check_interval(low, high)
    width = math.sqrt(2 * epsilon)  # of the interval, in standard deviations
    sigma = (high - low) / width
    mass_from_end = math.erf(width / math.sqrt(2)) / 2  # Phi(u) - 1/2
    steepest_at = min(1.0, width)
    steepest = (
        steepest_at * _NORMAL_PEAK * math.exp(-(steepest_at**2) / 2) / (sigma**2 * mass_from_end)
    )
    # What the normalising constant adds: the highest density times the steepest logarithm of the
    # constant.
    highest = _NORMAL_PEAK / (sigma * mass_from_end)
    from_constant = highest * -_NORMAL_PEAK * math.expm1(-epsilon) / (sigma * mass_from_end)
    return _lipschitz_entry(
        "gaussian",
        epsilon,
        TruncatedGaussian(sigma=sigma, low=low, high=high),
        shortest_scale=sigma / max(1.0, width),
        lipschitz=steepest,
        input_lipschitz=steepest + from_constant,
    )


def _lipschitz_entry(
    kind: str,
    epsilon: float,
    noise: TruncatedLaplace | TruncatedGaussian,
    *,
    shortest_scale: float,
    lipschitz: float,
    input_lipschitz: float,
) -> LipschitzEntry:
    """Returns the entry of truncated noise.

    Args:
        kind: "laplace" or "gaussian".
        epsilon: what it claims.
        noise: draws outputs.
        shortest_scale: the shortest length on which a density changes by a factor e.
        lipschitz: see `LipschitzEntry`.
        input_lipschitz: see `LipschitzEntry`.
    """
    ends = (noise.low, noise.high)
    noise_words = f"{kind.capitalize()} noise"
    plain = entry(
        f"truncated_{kind}",
        summary=f"a number of an interval plus {noise_words}, truncated to the interval",
        draw=noise,
        claim=PureDP(epsilon),
        worst_pair=Pair(noise.low, noise.high),
        make_distributions=partial(_truncated_distributions, noise, shortest_scale),
        parameters={"epsilon": epsilon, "low": noise.low, "high": noise.high},
    )
    return LipschitzEntry(
        **vars(plain),
        domain=ends,
        lipschitz=lipschitz,
        input_domain=ends,
        input_lipschitz=input_lipschitz,
    )


def _truncated_distributions(
    noise: TruncatedLaplace | TruncatedGaussian, shortest_scale: float
) -> CellDistributions:
    """The distributions of outputs for inputs at the two ends of the interval."""
    # Wide noise is smooth, but delta's kink still needs short panels.
    panels = Panels.between(
        (noise.low, noise.high),
        scale=min(shortest_scale, noise.high - noise.low),
        reach=0.0,
        panels_per_scale=_PANELS_PER_SCALE,
    )
    return panel_distributions(
        panels, partial(noise.density, noise.low), partial(noise.density, noise.high)
    )


def _check_inside(dataset: Any, low: float, high: float) -> float:
    centre = float(dataset)
    if not low <= centre <= high:
        raise InputError(f"dataset={dataset!r} must be a number from {low:g} to {high:g}")
    return centre


def _check_interval(low: float, high: float) -> tuple[float, float]:
    low = check_number("low", low)
    high = check_number("high", high)
    if not high > low:
        raise InputError(f"low={low:g} must be below high={high:g}")
    return low, high
