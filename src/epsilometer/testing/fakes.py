"""Mechanisms for tests: a coin whose truth is known, mechanisms that misbehave, disguised coins."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.arrays import Array, Booleans, Floats
from epsilometer.claims import Claim
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism, from_batch, from_callable
from epsilometer.outputs import Outputs, read_outputs

# Numbers that break careless code: NaN, infinities, both zeros, subnormal numbers, neighbouring
# floats, the greatest float.
HOSTILE_NUMBERS: tuple[float, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1.0,
    math.nextafter(1.0, 2.0),
    1.7976931348623157e308,
)


@dataclass(frozen=True, slots=True)
class Coin:
    """A coin that shows True with probability p on the left input and q on the right one.

    It can be given to `audit` as it is: it brings its pair, like an entry of the zoo.

    Attributes:
        p: between 0 and 1.
        q: likewise.
    """

    p: float
    q: float

    @property
    def mechanism(self) -> Mechanism:
        """A batch mechanism whose dataset is the probability of True."""
        return from_batch(
            lambda dataset, n, rng: rng.random(n) < dataset,
            name=f"coin({self.p:g}, {self.q:g})",
        )

    @property
    def worst_pair(self) -> Pair:
        """The two probabilities, which are the two datasets."""
        return Pair(self.p, self.q, equal=self.p == self.q)

    def truth(self, claim: Claim) -> float:
        """Returns the exact value of the claim's parameter, which no bound may exceed."""
        return max(
            claim.least_value(self.p, self.q),
            claim.least_value(self.q, self.p),
            claim.least_value(1.0 - self.p, 1.0 - self.q),
            claim.least_value(1.0 - self.q, 1.0 - self.p),
        )


def constant(value: Any) -> Mechanism:
    """Returns a mechanism that answers the same whatever its input."""
    return from_callable(lambda dataset: value, name="constant")


def frozen_seed(seed: int = 7) -> Mechanism:
    """Returns a mechanism with Laplace noise from a generator that restarts in every batch."""
    return from_batch(
        lambda dataset, n, rng: np.random.default_rng(seed).laplace(dataset, 1.0, n),
        name="frozen_seed",
    )


def drifting(per_output: float = 1e-3) -> Mechanism:
    """Returns a mechanism with normal noise whose mean moves with every output.

    It remembers how many outputs it drew, so use a new one for every audit.

    Args:
        per_output: how far the mean moves.
    """
    n_drawn: dict[float, int] = {}

    def draw(dataset: float, n: int, rng: np.random.Generator) -> Floats:
        start = n_drawn.get(dataset, 0)
        n_drawn[dataset] = start + n
        drift = per_output * np.arange(start, start + n)
        return np.asarray(dataset + rng.normal(size=n) + drift)

    return from_batch(draw, name="drifting")


def serially_correlated(stay: float = 0.9) -> Mechanism:
    """Returns a fair coin that is not always tossed.

    Args:
        stay: the probability with which it repeats its last answer instead.
    """

    def draw(dataset: Any, n: int, rng: np.random.Generator) -> Booleans:
        is_tossed = rng.random(n) >= stay
        is_tossed[:1] = True
        tosses = rng.random(n) < _FAIR
        last_toss = np.maximum.accumulate(np.where(is_tossed, np.arange(n), 0))
        return tosses[last_toss]

    return from_batch(draw, name="serially_correlated")


def raising(error: Exception, on: Any = None) -> Mechanism:
    """Returns a mechanism that raises on a dataset, and answers 0.0 on all others.

    Args:
        error: the exception to raise.
        on: the dataset; None for all of them.
    """

    def answer(dataset: Any) -> float:
        if on is None or dataset == on:
            raise error
        return 0.0

    return from_callable(answer, name="raising")


def miscounting(extra: int = 1) -> Mechanism:
    """Returns a mechanism that gives `extra` outputs more (or fewer) than it was asked for."""
    return from_batch(
        lambda dataset, n, rng: rng.random(max(n + extra, 0)),
        name="miscounting",
    )


def hostile() -> Mechanism:
    """Returns a mechanism that draws from `HOSTILE_NUMBERS`.

    The dataset (a number) is the weight of NaN, where every other number has the weight 1.
    """

    def draw(dataset: float, n: int, rng: np.random.Generator) -> Floats:
        weights = np.ones(len(HOSTILE_NUMBERS))
        weights[0] = dataset
        return rng.choice(np.array(HOSTILE_NUMBERS), size=n, p=weights / weights.sum())

    return from_batch(draw, name="hostile")


# Turns the faces of a coin, shape (n,), into as many outputs.
Show = Callable[[Booleans, np.random.Generator], Sequence[Any] | Array]

# Different outputs for each face of a coin: as many as a few hundred training draws can barely
# distinguish.
_NAMES_PER_FACE = 60
_STRIPES_PER_FACE = 12
_POINT_MASSES_PER_FACE = 8
# The probability of heads of a fair coin.
_FAIR = 0.5


@dataclass(frozen=True, slots=True)
class Disguise:
    """A coin whose faces are shown as many different outputs.

    Attributes:
        name: the kind of its outputs.
        coin: whose truth it has.
        show: turns faces into outputs.
    """

    name: str
    coin: Coin
    show: Show

    def draw(self, side: int, n: int, rng: np.random.Generator) -> Outputs:
        """Returns n outputs of the left (0) or right (1) side."""
        probability = self.coin.q if side else self.coin.p
        faces = rng.random(n) < probability
        return read_outputs(self.show(faces, rng))

    def __str__(self) -> str:
        """Returns a description for the failure message of a test."""
        return f"{self.name} of a coin with probabilities {self.coin.p:g} and {self.coin.q:g}"


def _names(faces: Booleans, rng: np.random.Generator) -> list[str]:
    codes = faces * _NAMES_PER_FACE + rng.integers(_NAMES_PER_FACE, size=len(faces))
    return [f"name {code}" for code in codes]


def _numbers(faces: Booleans, rng: np.random.Generator) -> Floats:
    """Returns uniform numbers on stripes of [0, 1) that belong to the faces in turn."""
    stripe = 2 * rng.integers(_STRIPES_PER_FACE, size=len(faces)) + faces
    return np.asarray((stripe + rng.random(len(faces))) / (2 * _STRIPES_PER_FACE))


def _mixed(faces: Booleans, rng: np.random.Generator) -> Floats:
    """Returns numbers of which half are point masses, and the others continuous."""
    point_masses = -1.0 - (2 * rng.integers(_POINT_MASSES_PER_FACE, size=len(faces)) + faces)
    is_point_mass = rng.random(len(faces)) < _FAIR
    return np.where(is_point_mass, point_masses, _numbers(faces, rng))


# Equal distributions, where any finding is wrong, and ones that differ by a factor of 2.
_EQUAL = Coin(0.5, 0.5)
_DIFFERENT = Coin(0.5, 0.25)
DISGUISES: tuple[Disguise, ...] = (
    Disguise(name="names", coin=_EQUAL, show=_names),
    Disguise(name="numbers", coin=_EQUAL, show=_numbers),
    Disguise(name="point masses and numbers", coin=_EQUAL, show=_mixed),
    Disguise(name="names", coin=_DIFFERENT, show=_names),
    Disguise(name="numbers", coin=_DIFFERENT, show=_numbers),
    Disguise(name="point masses and numbers", coin=_DIFFERENT, show=_mixed),
)
