"""Distributions of one number: noise, integers, mixtures, exact values inside noise, clamping and rounding.

A law knows its log-density with respect to a base measure that both sides of a pair share: Lebesgue measure for noise,
counting for integers and rounded values, and both where exact values lie inside continuous noise. The difference of two
log-densities is then the exact log-likelihood ratio.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln, ndtr, stdtr, xlog1py, xlogy

from epsilometer.arrays import Array, Floats

# Degrees of freedom of the Student noise of the grammar: heavy tails with a finite variance.
_STUDENT_DEGREES = 3.0


class Law(ABC):
    """A distribution of one number."""

    # Whether densities are probabilities of single values.
    is_discrete = False

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n values, of shape (n,)."""

    @abstractmethod
    def log_density(self, values: Array) -> Floats:
        """Returns log-densities of shape (n,); −inf where a value is impossible."""

    @abstractmethod
    def describe(self) -> str:
        """Describes the law in a few words."""

    def cdf(self, values: Floats) -> Floats:
        """Returns P(X ≤ value), of shape (n,)."""
        raise NotImplementedError

    def sf(self, values: Floats) -> Floats:
        """Returns P(X > value), of shape (n,), exact in the far tail."""
        raise NotImplementedError


@dataclass(frozen=True)
class Family:
    """A standard distribution of continuous noise, which a location and a scale make a law."""

    name: str
    sample: Callable[[int, np.random.Generator], Floats]
    log_density: Callable[[Floats], Floats]
    cdf: Callable[[Floats], Floats]
    sf: Callable[[Floats], Floats]


def _symmetric(
    name: str,
    sample: Callable[[int, np.random.Generator], Floats],
    log_density: Callable[[Floats], Floats],
    cdf: Callable[[Floats], Floats],
) -> Family:
    return Family(name, sample, log_density, cdf, lambda z: cdf(-z))


def _laplace_cdf(z: Floats) -> Floats:
    return np.where(z < 0.0, 0.5 * np.exp(np.minimum(z, 0.0)), 1.0 - 0.5 * np.exp(-np.abs(z)))


def _triangular_cdf(z: Floats) -> Floats:
    inside = np.clip(z, -1.0, 1.0)
    return np.where(inside < 0.0, 0.5 * (1.0 + inside) ** 2, 1.0 - 0.5 * (1.0 - inside) ** 2)


def _log_of_triangle(z: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1.0 - np.abs(z), 0.0))


def _log_of_box(z: Floats) -> Floats:
    return np.where(np.abs(z) <= 1.0, -math.log(2.0), -np.inf)


def _log_of_exponential(z: Floats) -> Floats:
    return np.where(z >= 0.0, -z, -np.inf)


def _log_of_student(z: Floats) -> Floats:
    half = 0.5 * (_STUDENT_DEGREES + 1.0)
    constant = math.lgamma(half) - math.lgamma(0.5 * _STUDENT_DEGREES)
    constant -= 0.5 * math.log(_STUDENT_DEGREES * math.pi)
    return constant - half * np.log1p(z * z / _STUDENT_DEGREES)


FAMILIES = {
    family.name: family
    for family in (
        _symmetric(
            "normal",
            lambda n, rng: rng.normal(size=n),
            lambda z: -0.5 * z * z - 0.5 * math.log(2.0 * math.pi),
            ndtr,
        ),
        _symmetric(
            "Laplace",
            lambda n, rng: rng.laplace(size=n),
            lambda z: -np.abs(z) - math.log(2.0),
            _laplace_cdf,
        ),
        _symmetric(
            "logistic",
            lambda n, rng: rng.logistic(size=n),
            lambda z: -np.abs(z) - 2.0 * np.log1p(np.exp(-np.abs(z))),
            lambda z: 1.0 / (1.0 + np.exp(np.clip(-z, -700.0, 700.0))),
        ),
        _symmetric(
            "Cauchy",
            lambda n, rng: rng.standard_cauchy(size=n),
            lambda z: -np.log1p(z * z) - math.log(math.pi),
            lambda z: stdtr(1.0, z),
        ),
        _symmetric(
            "Student",
            lambda n, rng: rng.standard_t(_STUDENT_DEGREES, size=n),
            _log_of_student,
            lambda z: stdtr(_STUDENT_DEGREES, z),
        ),
        Family(
            "Gumbel",
            lambda n, rng: rng.gumbel(size=n),
            lambda z: -z - np.exp(np.clip(-z, -700.0, 700.0)),
            lambda z: np.exp(-np.exp(np.clip(-z, -700.0, 700.0))),
            lambda z: -np.expm1(-np.exp(np.clip(-z, -700.0, 700.0))),
        ),
        Family(
            "exponential",
            lambda n, rng: rng.exponential(size=n),
            _log_of_exponential,
            lambda z: -np.expm1(-np.maximum(z, 0.0)),
            lambda z: np.exp(-np.maximum(z, 0.0)),
        ),
        _symmetric(
            "uniform",
            lambda n, rng: rng.uniform(-1.0, 1.0, size=n),
            _log_of_box,
            lambda z: np.clip(0.5 * (1.0 + z), 0.0, 1.0),
        ),
        _symmetric(
            "triangular",
            lambda n, rng: rng.triangular(-1.0, 0.0, 1.0, size=n),
            _log_of_triangle,
            _triangular_cdf,
        ),
    )
}
# Families whose support ends somewhere: a shift makes some outputs impossible on one side.
BOUNDED = ("uniform", "triangular", "exponential")
UNBOUNDED = tuple(name for name in FAMILIES if name not in BOUNDED)


@dataclass(frozen=True)
class Noise(Law):
    """Noise of a family around a location."""

    family: str
    location: float = 0.0
    scale: float = 1.0

    def _standardised(self, values: Array) -> Floats:
        return (np.asarray(values, dtype=float) - self.location) / self.scale

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n values, of shape (n,)."""
        return self.location + self.scale * FAMILIES[self.family].sample(n, rng)

    def log_density(self, values: Array) -> Floats:
        """Returns log-densities of shape (n,)."""
        density = FAMILIES[self.family].log_density(self._standardised(values))
        return density - math.log(self.scale)

    def cdf(self, values: Floats) -> Floats:
        """Returns P(X ≤ value), of shape (n,)."""
        return FAMILIES[self.family].cdf(self._standardised(values))

    def sf(self, values: Floats) -> Floats:
        """Returns P(X > value), of shape (n,)."""
        return FAMILIES[self.family].sf(self._standardised(values))

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"{self.family}({self.location:.8g}, {self.scale:.4g})"


@dataclass(frozen=True)
class Mixture(Law):
    """One of several laws, with probabilities; their base measures must be the same."""

    weights: tuple[float, ...]
    laws: tuple[Law, ...]

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether densities are probabilities of single values."""
        return self.laws[0].is_discrete

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n values, of shape (n,)."""
        component = rng.choice(len(self.laws), size=n, p=self.weights)
        values = self.laws[0].sample(n, rng)
        for place, law in enumerate(self.laws[1:], start=1):
            chosen = component == place
            values[chosen] = law.sample(int(chosen.sum()), rng)
        return values

    def log_density(self, values: Array) -> Floats:
        """Returns log-densities of shape (n,)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        total = logs[0] + self.laws[0].log_density(values)
        for weight, law in zip(logs[1:], self.laws[1:], strict=True):
            total = np.logaddexp(total, weight + law.log_density(values))
        return total

    def cdf(self, values: Floats) -> Floats:
        """Returns P(X ≤ value), of shape (n,)."""
        parts = [w * law.cdf(values) for w, law in zip(self.weights, self.laws, strict=True)]
        return np.sum(parts, axis=0)

    def sf(self, values: Floats) -> Floats:
        """Returns P(X > value), of shape (n,)."""
        parts = [w * law.sf(values) for w, law in zip(self.weights, self.laws, strict=True)]
        return np.sum(parts, axis=0)

    def describe(self) -> str:
        """Describes the law in a few words."""
        return " + ".join(
            f"{weight:.3g}·{law.describe()}"
            for weight, law in zip(self.weights, self.laws, strict=True)
        )


@dataclass(frozen=True)
class WithAtoms(Law):
    """A law, and exact values instead of it now and then.

    Attributes:
        law: of all other outputs.
        atoms: the exact values of both sides of the pair.
        weights: their probabilities, 0 for a value of the other side only.
    """

    law: Law
    atoms: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether densities are probabilities of single values."""
        return self.law.is_discrete

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n values, of shape (n,)."""
        values = self.law.sample(n, rng)
        uniform = rng.random(n)
        edges = np.concatenate([[0.0], np.cumsum(self.weights)])
        for atom, low, high in zip(self.atoms, edges[:-1], edges[1:], strict=True):
            values[(uniform >= low) & (uniform < high)] = atom
        return values

    def log_density(self, values: Array) -> Floats:
        """Returns log-densities of shape (n,): of an exact value its probability."""
        density = math.log1p(-sum(self.weights)) + self.law.log_density(values)
        for atom, weight in zip(self.atoms, self.weights, strict=True):
            log_weight = math.log(weight) if weight else -math.inf
            here = np.asarray(values) == atom
            inside = np.logaddexp(log_weight, density) if self.is_discrete else log_weight
            density = np.where(here, inside, density)
        return density

    def describe(self) -> str:
        """Describes the law in a few words."""
        atoms = ", ".join(
            f"{weight:.3g} at {atom:.8g}"
            for atom, weight in zip(self.atoms, self.weights, strict=True)
        )
        return f"{self.law.describe()} with exact values ({atoms})"


@dataclass(frozen=True)
class Clamped(Law):
    """A continuous law whose values beyond two limits are moved to the limits."""

    law: Law
    low: float
    high: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n values, of shape (n,)."""
        return np.clip(self.law.sample(n, rng), self.low, self.high)

    def log_density(self, values: Array) -> Floats:
        """Returns log-densities of shape (n,): at a limit the probability of being beyond it."""
        with np.errstate(divide="ignore"):
            at_low = np.log(self.law.cdf(np.array(self.low)))
            at_high = np.log(self.law.sf(np.array(self.high)))
        inside = self.law.log_density(values)
        return np.where(values == self.low, at_low, np.where(values == self.high, at_high, inside))

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"{self.law.describe()} clamped to [{self.low:.8g}, {self.high:.8g}]"


@dataclass(frozen=True)
class Rounded(Law):
    """A continuous law, rounded to decimals."""

    law: Law
    decimals: int

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n values, of shape (n,)."""
        steps = 10.0**self.decimals
        # −0 becomes 0: its sign would tell on which side of 0 the noise was.
        return np.rint(self.law.sample(n, rng) * steps) / steps + 0.0

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,): of being rounded to the value."""
        steps = 10.0**self.decimals
        places = np.rint(np.asarray(values, dtype=float) * steps)
        low, high = (places - 0.5) / steps, (places + 0.5) / steps
        below, above = self.law.cdf(low), self.law.sf(high)
        # In the upper half a difference of upper tails keeps its digits.
        upper_half = above < below
        inside = np.where(upper_half, self.law.sf(low) - above, self.law.cdf(high) - below)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(inside, 0.0))

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"{self.law.describe()} rounded to {self.decimals} decimals"


@dataclass(frozen=True)
class TwoSidedGeometric(Law):
    """Integers with P(k) ∝ ratio^|k − location|."""

    location: int
    ratio: float

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n integers, of shape (n,)."""
        first, second = rng.geometric(1.0 - self.ratio, size=(2, n))
        return self.location + first - second

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,)."""
        constant = math.log1p(-self.ratio) - math.log1p(self.ratio)
        return constant + np.abs(np.asarray(values) - self.location) * math.log(self.ratio)

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"two-sided geometric({self.location}, ratio {self.ratio:.4g})"


@dataclass(frozen=True)
class Poisson(Law):
    """Poisson counts."""

    rate: float

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n counts, of shape (n,)."""
        return rng.poisson(self.rate, size=n)

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,)."""
        counts = np.asarray(values, dtype=float)
        inside = xlogy(counts, self.rate) - self.rate - gammaln(np.maximum(counts, 0.0) + 1.0)
        return np.where(counts >= 0.0, inside, -np.inf)

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"Poisson({self.rate:.4g})"


@dataclass(frozen=True)
class Binomial(Law):
    """Binomial counts."""

    trials: int
    chance: float

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n counts, of shape (n,)."""
        return rng.binomial(self.trials, self.chance, size=n)

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,)."""
        counts = np.asarray(values, dtype=float)
        possible = (counts >= 0.0) & (counts <= self.trials)
        hits = np.clip(counts, 0.0, self.trials)
        misses = self.trials - hits
        ways = -math.log(self.trials + 1.0) - betaln(hits + 1.0, misses + 1.0)
        inside = ways + xlogy(hits, self.chance) + xlog1py(misses, -self.chance)
        return np.where(possible, inside, -np.inf)

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"binomial({self.trials}, {self.chance:.4g})"


@dataclass(frozen=True)
class Geometric(Law):
    """Integers from `start` on, with P(k) ∝ ratio^k."""

    start: int
    ratio: float

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n integers, of shape (n,)."""
        return self.start - 1 + rng.geometric(1.0 - self.ratio, size=n)

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,)."""
        steps = np.asarray(values, dtype=float) - self.start
        inside = math.log1p(-self.ratio) + steps * math.log(self.ratio)
        return np.where(steps >= 0.0, inside, -np.inf)

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"geometric(from {self.start}, ratio {self.ratio:.4g})"


@dataclass(frozen=True)
class Choice(Law):
    """Integers 0, 1, … with given probabilities: categories, truth values, lengths."""

    probabilities: tuple[float, ...]

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n places, of shape (n,)."""
        return rng.choice(len(self.probabilities), size=n, p=self.probabilities)

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,)."""
        places = np.asarray(values, dtype=np.int64)
        possible = (places >= 0) & (places < len(self.probabilities))
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(self.probabilities))
        return np.where(possible, logs[np.where(possible, places, 0)], -np.inf)

    def describe(self) -> str:
        """Describes the law in a few words."""
        shown = ", ".join(f"{chance:.3g}" for chance in self.probabilities[:5])
        more = ", …" if len(self.probabilities) > 5 else ""
        return f"choice({shown}{more})"


@dataclass(frozen=True)
class EvenWhole(Law):
    """Integers, all equally likely."""

    start: int
    size: int

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws n integers, of shape (n,)."""
        return rng.integers(self.start, self.start + self.size, size=n)

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,)."""
        places = np.asarray(values) - self.start
        possible = (places >= 0) & (places < self.size)
        return np.where(possible, -math.log(self.size), -np.inf)

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"even from {self.start} below {self.start + self.size}"


@dataclass(frozen=True)
class LawPair:
    """The law of one number on the left and on the right."""

    left: Law
    right: Law

    def side(self, side: int) -> Law:
        """Returns the law of side 0 (left) or 1 (right)."""
        return self.right if side else self.left

    def describe(self) -> str:
        """Describes both laws, or the one that they are."""
        if self.left == self.right:
            return self.left.describe()
        return f"{self.left.describe()} against {self.right.describe()}"


def rounded(laws: LawPair, decimals: int) -> LawPair:
    """Returns the pair with both laws rounded; exact values are rounded with them."""
    return LawPair(_rounded(laws.left, decimals), _rounded(laws.right, decimals))


def _rounded(law: Law, decimals: int) -> Law:
    if law.is_discrete:
        return law
    if isinstance(law, WithAtoms):
        atoms = tuple(round(atom, decimals) for atom in law.atoms)
        return WithAtoms(_rounded(law.law, decimals), atoms, law.weights)
    if isinstance(law, Clamped):
        low, high = round(law.low, decimals), round(law.high, decimals)
        # The limits are on the lattice, so that clamping and rounding commute.
        return ClampedLattice(Rounded(law.law, decimals), low, high)
    return Rounded(law, decimals)


@dataclass(frozen=True)
class ClampedLattice(Law):
    """A rounded law whose values beyond two limits on the lattice are moved to the limits."""

    law: Rounded
    low: float
    high: float

    is_discrete = True

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draws n values, of shape (n,)."""
        return np.clip(self.law.sample(n, rng), self.low, self.high)

    def log_density(self, values: Array) -> Floats:
        """Returns log-probabilities of shape (n,)."""
        half = 0.5 / 10.0**self.law.decimals
        with np.errstate(divide="ignore"):
            at_low = np.log(self.law.law.cdf(np.array(self.low + half)))
            at_high = np.log(self.law.law.sf(np.array(self.high - half)))
        inside = self.law.log_density(values)
        places = np.asarray(values, dtype=float)
        is_low, is_high = np.abs(places - self.low) < half, np.abs(places - self.high) < half
        return np.where(is_low, at_low, np.where(is_high, at_high, inside))

    def describe(self) -> str:
        """Describes the law in a few words."""
        return f"{self.law.describe()}, clamped to [{self.low:.8g}, {self.high:.8g}]"
