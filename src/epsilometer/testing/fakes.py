"""Mechanisms and audits made for tests: a coin whose truth is known, others that misbehave, and audits in disguise."""

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

# Numbers that break careless code: NaN, infinities, two zeros, tiny ones, neighbouring floats.
HOSTILE_NUMBERS: tuple[float, ...] = (
    *(math.nan, math.inf, -math.inf, 0.0, -0.0),
    *(5e-324, -5e-324, 1.0, math.nextafter(1.0, 2.0), 1.7976931348623157e308),
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
        return from_batch(lambda dataset, n, rng: rng.random(n) < dataset, name=f"coin({self.p:g}, {self.q:g})")

    @property
    def worst_pair(self) -> Pair:
        """The two probabilities, which are the two datasets."""
        return Pair(self.p, self.q, equal=self.p == self.q)

    def truth(self, claim: Claim) -> float:
        """The exact value of the claim's own parameter: what an audit must not exceed."""
        heads, tails = (self.p, self.q), (1.0 - self.p, 1.0 - self.q)
        return max(claim.least_value(*event[::step]) for event in (heads, tails) for step in (1, -1))


def constant(value: Any) -> Mechanism:
    """Answers the same whatever its input."""
    return from_callable(lambda dataset: value, name="constant")


def frozen_seed(seed: int = 7) -> Mechanism:
    """Adds Laplace noise to its input from a generator that restarts with every batch."""
    return from_batch(lambda dataset, n, rng: np.random.default_rng(seed).laplace(dataset, 1.0, n), name="frozen_seed")


def drifting(per_output: float = 1e-3) -> Mechanism:
    """Normal noise whose mean moves with every output; it remembers how many it drew, so use a new one per audit."""
    drawn: dict[float, int] = {}

    def draw(dataset: float, n: int, rng: np.random.Generator) -> Floats:
        start = drawn.get(dataset, 0)
        drawn[dataset] = start + n
        return np.asarray(dataset + rng.normal(size=n) + per_output * np.arange(start, start + n))

    return from_batch(draw, name="drifting")


def serially_correlated(stay: float = 0.9) -> Mechanism:
    """A fair coin that repeats its last answer with probability `stay` and is tossed afresh otherwise."""

    def draw(dataset: Any, n: int, rng: np.random.Generator) -> Booleans:
        tossed = rng.random(n) >= stay
        tossed[:1] = True
        # Every output takes the answer of the last toss at or before it.
        return (rng.random(n) < 0.5)[np.maximum.accumulate(np.where(tossed, np.arange(n), 0))]

    return from_batch(draw, name="serially_correlated")


def raising(error: Exception, on: Any = None) -> Mechanism:
    """Raises `error` on the dataset `on` (on any when it is None) and answers 0.0 otherwise."""

    def answer(dataset: Any) -> float:
        if on is None or dataset == on:
            raise error
        return 0.0

    return from_callable(answer, name="raising")


def miscounting(extra: int = 1) -> Mechanism:
    """Returns `extra` outputs more (or fewer) than it was asked for."""
    return from_batch(lambda dataset, n, rng: rng.random(max(n + extra, 0)), name="miscounting")


def hostile() -> Mechanism:
    """Draws from `HOSTILE_NUMBERS`; the dataset (a number) is the weight of NaN against 1 for each other number."""

    def draw(dataset: float, n: int, rng: np.random.Generator) -> Floats:
        weights = np.array([dataset] + [1.0] * (len(HOSTILE_NUMBERS) - 1))
        return rng.choice(np.array(HOSTILE_NUMBERS), size=n, p=weights / weights.sum())

    return from_batch(draw, name="hostile")


Show = Callable[[Booleans, np.random.Generator], Sequence[Any] | Array]

# Outputs per face: as many as a few hundred training draws can barely distinguish.
_NAMES, _STRIPES, _ATOMS = 60, 12, 8


@dataclass(frozen=True, slots=True)
class Disguise:
    """A coin whose faces are shown as many different outputs.

    Attributes:
        name: what the outputs are like.
        coin: whose truth it has.
        show: outputs for faces, of the same length.
    """

    name: str
    coin: Coin
    show: Show

    def draw(self, side: int, n: int, rng: np.random.Generator) -> Outputs:
        """n outputs of the left (0) or right (1) side."""
        return read_outputs(self.show(rng.random(n) < (self.coin.q if side else self.coin.p), rng))

    def __str__(self) -> str:
        """Its name in the failure of a test."""
        return f"{self.name} of a coin with probabilities {self.coin.p:g} and {self.coin.q:g}"


def _names(faces: Booleans, rng: np.random.Generator) -> list[str]:
    return [f"name {code}" for code in faces * _NAMES + rng.integers(_NAMES, size=len(faces))]


def _numbers(faces: Booleans, rng: np.random.Generator) -> Floats:
    """Uniform on stripes of [0, 1) that belong to the faces in turn."""
    stripe = 2 * rng.integers(_STRIPES, size=len(faces)) + faces
    return np.asarray((stripe + rng.random(len(faces))) / (2 * _STRIPES))


def _mixed(faces: Booleans, rng: np.random.Generator) -> Floats:
    """Half of the outputs are one of a few repeating values, the others are continuous."""
    atoms = -1.0 - (2 * rng.integers(_ATOMS, size=len(faces)) + faces)
    return np.where(rng.random(len(faces)) < 0.5, atoms, _numbers(faces, rng))


_SHOWN: dict[str, Show] = {"names": _names, "numbers": _numbers, "atoms beside numbers": _mixed}
# Equal distributions, where any finding is wrong, and ones that differ by a factor of 2 on one face.
DISGUISES: tuple[Disguise, ...] = tuple(
    Disguise(name, coin, show) for coin in (Coin(0.5, 0.5), Coin(0.5, 0.25)) for name, show in _SHOWN.items()
)
