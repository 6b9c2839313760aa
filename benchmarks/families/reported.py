"""The families on which the learner was seen to miss much, each as a mechanism with an exact ratio."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

import epsilometer as em
from benchmarks.families.distributions import (
    geometric_log_mass,
    geometric_noise,
    laplace_log_density,
    multivariate_normal_log_density,
    normal_log_density,
    uniform_category_log_mass,
)
from benchmarks.families.family import Draw, Family, LogDensity
from epsilometer.arrays import Floats

GROUP = "reported"

# --- the exact value with some probability, else with Laplace noise

_RELEASE_SCALE = 4.0


def _exact_release(share: float) -> tuple[Draw, LogDensity]:
    def draw(value: float, n: int, rng: Generator) -> Floats:
        return np.where(rng.random(n) < share, value, rng.laplace(value, _RELEASE_SCALE, n))

    def log_density(value: float, outputs: Any) -> Floats:
        """An exact value of the pair is an atom; no noise ever hits one."""
        outputs = np.asarray(outputs)
        noisy = math.log1p(-share) + laplace_log_density(outputs, value, _RELEASE_SCALE)
        is_atom = np.isin(outputs, _RELEASED)
        return np.where(is_atom, np.where(outputs == value, math.log(share), -np.inf), noisy)

    return draw, log_density


_RELEASED = (0.75, 1.25)

# --- a rare mark far away from the noise

_MARK_SCALE = 2.0
_MARK = -1e6


def _rare_mark(chances: tuple[float, float], spread: float = 0.0) -> tuple[Draw, LogDensity]:
    """A mark with the chance of the side, at one place or uniform between 1 and 1 + spread times it."""

    def draw(side: int, n: int, rng: Generator) -> Floats:
        places = _MARK * (1.0 + spread * rng.random(n))
        return np.where(rng.random(n) < chances[side], places, rng.laplace(side, _MARK_SCALE, n))

    def log_density(side: int, outputs: Any) -> Floats:
        """Noise does not reach the mark: e^(−5e5) is 0. Its place is uniform on both sides."""
        outputs = np.asarray(outputs)
        with np.errstate(divide="ignore"):
            marked = np.log(chances[side])
        noisy = math.log1p(-chances[side]) + laplace_log_density(outputs, side, _MARK_SCALE)
        return np.where(outputs <= _MARK, marked, noisy)

    return draw, log_density


# --- leaks only where two columns meet

_AGREEMENT = {"left": 0.75, "right": 0.25}
_EQUAL_CHANCES = {"left": 0.4, "right": 1.0 / 6.0}
_SUITS = ("amber", "blue", "coral", "denim", "ebony", "flax")


def draw_agreeing_signs(side: str, n: int, rng: Generator) -> Floats:
    """Two Laplace numbers, shape (n, 2); how often their signs agree differs."""
    numbers = np.abs(rng.laplace(size=(n, 2)))
    signs = rng.choice([-1.0, 1.0], n)
    other_signs = np.where(rng.random(n) < _AGREEMENT[side], signs, -signs)
    return numbers * np.stack([signs, other_signs], axis=1)


def log_density_of_agreeing_signs(side: str, outputs: Any) -> Floats:
    """Up to the densities of the sizes."""
    outputs = np.asarray(outputs)
    chance = _AGREEMENT[side]
    return np.log(np.where(outputs.prod(axis=1) > 0, chance, 1.0 - chance))


def draw_equal_labels(side: str, n: int, rng: Generator) -> list[tuple[str, str]]:
    """Two of six colours; how often they are equal differs, each alone is uniform."""
    first = rng.integers(0, len(_SUITS), n)
    others = (first + rng.integers(1, len(_SUITS), n)) % len(_SUITS)
    second = np.where(rng.random(n) < _EQUAL_CHANCES[side], first, others)
    return [(_SUITS[a], _SUITS[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)]


def log_density_of_equal_labels(side: str, outputs: list[tuple[str, str]]) -> Floats:
    """Up to the chance of the first colour."""
    chance = _EQUAL_CHANCES[side]
    is_equal = np.array([first == second for first, second in outputs])
    return np.log(np.where(is_equal, chance, (1.0 - chance) / (len(_SUITS) - 1)))


# --- noise that is correlated, rotated or spherical over columns

_SHARED_CORRELATION = 0.8
_CORRELATED_COVARIANCE = (1.0 - _SHARED_CORRELATION) * np.eye(3) + _SHARED_CORRELATION


def draw_correlated(center: list[float], n: int, rng: Generator) -> Floats:
    """Three numbers with noise that they mostly share, shape (n, 3)."""
    factor = np.linalg.cholesky(_CORRELATED_COVARIANCE)
    return np.asarray(center) + rng.normal(size=(n, 3)) @ factor.T


def log_density_of_correlated(center: list[float], outputs: Any) -> Floats:
    """A multivariate normal density."""
    return multivariate_normal_log_density(outputs, np.asarray(center), _CORRELATED_COVARIANCE)


_ROTATED_SCALES = np.array([6.0, 3.0, 1.0, 3.0])
# An orthogonal matrix without zeros: half of a Hadamard matrix.
_ROTATION = 0.5 * np.array(
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], dtype=float
)


def draw_rotated(center: list[float], n: int, rng: Generator) -> Floats:
    """Four numbers with Laplace noise along rotated axes, shape (n, 4)."""
    return np.asarray(center) + (rng.laplace(size=(n, 4)) * _ROTATED_SCALES) @ _ROTATION


def log_density_of_rotated(center: list[float], outputs: Any) -> Floats:
    """Independent Laplace numbers along the axes."""
    noise = (np.asarray(outputs) - np.asarray(center)) @ _ROTATION.T
    return -(np.abs(noise) / _ROTATED_SCALES).sum(axis=1)


_SPHERE_DIMENSIONS = 5
_SPHERE_EPSILON = 2.0


def draw_spherical(center: list[float], n: int, rng: Generator) -> Floats:
    """Five numbers with density ∝ exp(−epsilon · Euclidean distance), shape (n, 5)."""
    directions = rng.normal(size=(n, _SPHERE_DIMENSIONS))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = rng.gamma(_SPHERE_DIMENSIONS, 1.0 / _SPHERE_EPSILON, (n, 1))
    return np.asarray(center) + lengths * directions


def log_density_of_spherical(center: list[float], outputs: Any) -> Floats:
    """Up to a constant."""
    return -_SPHERE_EPSILON * np.linalg.norm(np.asarray(outputs) - np.asarray(center), axis=1)


# --- trees of sums

_LEAVES = 8
_NODE_SCALE = 2.5
_PREFIX_DEVIATION = 1.5


def _tree() -> Floats:
    """Which leaves each of the 15 nodes adds up, shape (15, 8)."""
    levels = []
    width = _LEAVES
    while width >= 1:
        levels.append(np.kron(np.eye(_LEAVES // width), np.ones(width)))
        width //= 2
    return np.concatenate(levels)


_TREE = _tree()


def _prefixes() -> Floats:
    """Which nodes each prefix sum adds up, shape (8, 15): the fewest that cover it."""
    rows = np.zeros((_LEAVES, len(_TREE)))
    for length in range(1, _LEAVES + 1):
        open_leaves = np.arange(_LEAVES) < length
        for node, leaves in enumerate(_TREE > 0):
            if open_leaves[leaves].all():
                rows[length - 1, node] = 1.0
                open_leaves = open_leaves & ~leaves
    return rows


_PREFIXES = _prefixes()
_PREFIX_COVARIANCE = _PREFIX_DEVIATION**2 * _PREFIXES @ _PREFIXES.T


def draw_trees(leaves: list[float], n: int, rng: Generator) -> Floats:
    """All 15 sums of a binary tree with Laplace noise, shape (n, 15)."""
    return _TREE @ np.asarray(leaves) + rng.laplace(0.0, _NODE_SCALE, (n, len(_TREE)))


def log_density_of_trees(leaves: list[float], outputs: Any) -> Floats:
    """The nodes are independent."""
    return laplace_log_density(outputs, _TREE @ np.asarray(leaves), _NODE_SCALE).sum(axis=1)


def draw_prefix_sums(leaves: list[float], n: int, rng: Generator) -> Floats:
    """Eight prefix sums that share the Gaussian noise of a tree's nodes, shape (n, 8)."""
    noise = rng.normal(0.0, _PREFIX_DEVIATION, (n, len(_TREE)))
    return np.cumsum(leaves) + noise @ _PREFIXES.T


def log_density_of_prefix_sums(leaves: list[float], outputs: Any) -> Floats:
    """A multivariate normal density."""
    return multivariate_normal_log_density(outputs, np.cumsum(leaves), _PREFIX_COVARIANCE)


# --- a change of scale


def draw_scaled_number(scale: float, n: int, rng: Generator) -> Floats:
    """One number around 0."""
    return rng.normal(0.0, scale, n)


def log_density_of_scaled_number(scale: float, outputs: Any) -> Floats:
    """A normal density."""
    return normal_log_density(outputs, 0.0, scale)


def draw_scaled_vector(scale: float, n: int, rng: Generator) -> Floats:
    """Four numbers around 3, shape (n, 4)."""
    return rng.laplace(3.0, scale, (n, 4))


def log_density_of_scaled_vector(scale: float, outputs: Any) -> Floats:
    """Independent Laplace numbers."""
    return laplace_log_density(outputs, 3.0, scale).sum(axis=1)


# --- lists of random length

_LIST_SCALE = 2.0


def draw_lists(side: tuple[float, float], n: int, rng: Generator) -> list[list[float]]:
    """Lists of a Poisson number of values around a centre."""
    mean_length, center = side
    lengths = rng.poisson(mean_length, n)
    values = rng.laplace(center, _LIST_SCALE, int(lengths.sum()))
    return [part.tolist() for part in np.split(values, np.cumsum(lengths)[:-1])]


def log_density_of_lists(side: tuple[float, float], outputs: list[list[float]]) -> Floats:
    """The length, then the values."""
    mean_length, center = side
    lengths = np.array([len(output) for output in outputs])
    owners = np.repeat(np.arange(len(outputs)), lengths)
    values = np.array([value for output in outputs for value in output], dtype=float)
    of_values = laplace_log_density(values, center, _LIST_SCALE)
    summed = np.bincount(owners, weights=of_values, minlength=len(outputs))
    return lengths * math.log(mean_length) - mean_length - gammaln(lengths + 1) + summed


# --- unique ids beside columns that leak

_ID_COUNT_EPSILON = 0.8
_ID_WARD_EPSILON = 0.8
_ID_WARDS = ("north", "south", "east")


def draw_with_ids(person: tuple[int, str], n: int, rng: Generator) -> list[dict[str, Any]]:
    """Dicts with a random identifier, a noisy count and a randomized ward."""
    visits, ward = person
    counts = visits + geometric_noise(_ID_COUNT_EPSILON, n, rng)
    others = rng.integers(0, len(_ID_WARDS) - 1, n)
    true_index = _ID_WARDS.index(ward)
    others += others >= true_index
    chance = math.exp(_ID_WARD_EPSILON) / (math.exp(_ID_WARD_EPSILON) + len(_ID_WARDS) - 1)
    wards = np.where(rng.random(n) < chance, true_index, others)
    ids = rng.integers(0, 2**62, n)
    return [
        {"id": f"{number:016x}", "visits": count, "ward": _ID_WARDS[index]}
        for number, count, index in zip(ids.tolist(), counts.tolist(), wards.tolist(), strict=True)
    ]


def log_density_with_ids(person: tuple[int, str], outputs: list[dict[str, Any]]) -> Floats:
    """The identifier says nothing."""
    visits, ward = person
    counts = np.array([output["visits"] for output in outputs])
    wards = np.array([output["ward"] for output in outputs])
    return geometric_log_mass(counts - visits, _ID_COUNT_EPSILON) + uniform_category_log_mass(
        wards, ward, len(_ID_WARDS), _ID_WARD_EPSILON
    )


def _truth_of_rotated(shift: Floats) -> float:
    return float((np.abs(shift @ _ROTATION.T) / _ROTATED_SCALES).sum())


_ROTATED_SHIFT = np.array([1.0, 0.0, -1.0, 0.5])
_SPHERE_SHIFT = np.array([0.6, -0.3, 0.6, 0.2, -0.4])
_SUMS = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
_MORE_SUMS = [*_SUMS[:4], 6.0, *_SUMS[5:]]
_RARE = 0.0044
_RARE_RATIO = 3.5
_RARE_CLAIM = 2.2
_RARE_DRAWS = 100_000


def _releases() -> tuple[Family, ...]:
    families = []
    for share in (0.03, 0.10, 0.30):
        draw, log_density = _exact_release(share)
        families.append(
            Family(
                f"exact-release-{share:.0%}".replace("%", "-percent"),
                GROUP,
                f"{share:.0%} of the outputs are the true value, the others have Laplace noise",
                draw,
                log_density,
                em.Pair(*_RELEASED),
                math.inf,
            )
        )
    return tuple(families)


def _marks() -> tuple[Family, ...]:
    settings = (
        ("rare-mark", (_RARE, 0.0), 0.0, "a mark of .44 % on one side, none on the other"),
        (
            "rare-mark-both-sides",
            (_RARE, _RARE * math.exp(-_RARE_RATIO)),
            0.0,
            "a mark of .44 % on one side, of .013 % on the other",
        ),
        (
            "rare-far-group",
            (_RARE, _RARE * math.exp(-_RARE_RATIO)),
            0.5,
            "values far below all noise, never twice the same, of .44 % and .013 %",
        ),
    )
    families = []
    for name, chances, spread, description in settings:
        draw, log_density = _rare_mark(chances, spread)
        truth = math.log(chances[0] / chances[1]) if chances[1] else math.inf
        families.append(
            Family(
                name,
                GROUP,
                description,
                draw,
                log_density,
                em.Pair(0, 1),
                truth,
                _RARE_CLAIM,
                _RARE_DRAWS,
            )
        )
    return tuple(families)


FAMILIES = (
    *_releases(),
    *_marks(),
    Family(
        "two-columns-signs",
        GROUP,
        "two numbers whose signs agree in 75 % or 25 %; each alone has the same distribution",
        draw_agreeing_signs,
        log_density_of_agreeing_signs,
        em.Pair("left", "right"),
        math.log(3.0),
    ),
    Family(
        "two-columns-labels",
        GROUP,
        "two of six labels, equal in 40 % or 17 %; each alone is uniform",
        draw_equal_labels,
        log_density_of_equal_labels,
        em.Pair("left", "right"),
        math.log(0.4 * 6.0),
    ),
    Family(
        "correlated-noise",
        GROUP,
        "three numbers with Gaussian noise of correlation .8; one is shifted",
        draw_correlated,
        log_density_of_correlated,
        em.Pair([0.0, 0.0, 0.0], [0.7, 0.0, 0.0]),
        math.inf,
    ),
    Family(
        "rotated-noise",
        GROUP,
        "four numbers with Laplace noise along rotated axes, of scales 6, 3, 1, 3",
        draw_rotated,
        log_density_of_rotated,
        em.Pair([0.0] * 4, _ROTATED_SHIFT.tolist()),
        _truth_of_rotated(_ROTATED_SHIFT),
    ),
    Family(
        "spherical-noise",
        GROUP,
        "five numbers with density ∝ exp(−2·distance), shifted by a vector of length 1.005",
        draw_spherical,
        log_density_of_spherical,
        em.Pair([0.0] * _SPHERE_DIMENSIONS, _SPHERE_SHIFT.tolist()),
        _SPHERE_EPSILON * float(np.linalg.norm(_SPHERE_SHIFT)),
    ),
    Family(
        "tree-of-sums",
        GROUP,
        "15 sums of a binary tree with Laplace noise of 2.5; one leaf changes by 1, four sums too",
        draw_trees,
        log_density_of_trees,
        em.Pair(_SUMS, _MORE_SUMS),
        4.0 / _NODE_SCALE,
    ),
    Family(
        "tree-prefix-sums",
        GROUP,
        "eight prefix sums that share the Gaussian noise of a tree's nodes; one leaf changes by 1",
        draw_prefix_sums,
        log_density_of_prefix_sums,
        em.Pair(_SUMS, _MORE_SUMS),
        math.inf,
    ),
    Family(
        "change-of-scale",
        GROUP,
        "a normal number of deviation 1 or 1.4",
        draw_scaled_number,
        log_density_of_scaled_number,
        em.Pair(1.0, 1.4),
        math.inf,
    ),
    Family(
        "change-of-scale-vector",
        GROUP,
        "four Laplace numbers of scale 1 or 1.3",
        draw_scaled_vector,
        log_density_of_scaled_vector,
        em.Pair(1.0, 1.3),
        math.inf,
    ),
    Family(
        "lists-of-values",
        GROUP,
        "a list of a Poisson number (mean 3 or 3.6) of values around 0 or .4",
        draw_lists,
        log_density_of_lists,
        em.Pair((3.0, 0.0), (3.6, 0.4)),
        math.inf,
    ),
    Family(
        "ids-beside-columns",
        GROUP,
        "dict with a unique identifier, a noisy count and a randomized ward",
        draw_with_ids,
        log_density_with_ids,
        em.Pair((3, "north"), (4, "east")),
        _ID_COUNT_EPSILON + _ID_WARD_EPSILON,
    ),
)
