"""Laws on which over-fitting pays, and whose truth is known for every notion of privacy.

A coin is tossed, and its face is shown as one of many outputs that all mean the same face. Nothing but the face depends
on the input, so that every value of privacy is that of the coin. Whoever chooses among the many outputs by looking at
the draws that shall prove something finds differences that are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs import Outputs, read_outputs
from epsilometer.testing.fakes import Coin

Faces = NDArray[np.bool_]
Show = Callable[[Faces, np.random.Generator], Sequence[Any] | NDArray[Any]]

# Outputs per face: as many as a few hundred training draws can barely tell apart.
_NAMES, _STRIPES, _ATOMS = 60, 12, 8


@dataclass(frozen=True, slots=True)
class Disguise:
    """A coin whose faces are shown in many ways.

    Attributes:
        name: what the outputs are like.
        coin: whose truth it has.
        show: outputs for faces, of the same length.
    """

    name: str
    coin: Coin
    show: Show

    def draw(self, side: int, n: int, rng: np.random.Generator) -> Outputs:
        """n outputs of the left (0) or right (1) law."""
        return read_outputs(self.show(rng.random(n) < (self.coin.q if side else self.coin.p), rng))

    def __str__(self) -> str:
        """As the failure of a test names it."""
        return f"{self.name} of a coin with probabilities {self.coin.p:g} and {self.coin.q:g}"


def _names(faces: Faces, rng: np.random.Generator) -> list[str]:
    return [f"name {code}" for code in faces * _NAMES + rng.integers(_NAMES, size=len(faces))]


def _numbers(faces: Faces, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniform on stripes of [0, 1) that belong to the faces in turn."""
    stripe = 2 * rng.integers(_STRIPES, size=len(faces)) + faces
    return np.asarray((stripe + rng.random(len(faces))) / (2 * _STRIPES))


def _mixed(faces: Faces, rng: np.random.Generator) -> NDArray[np.float64]:
    """Half of the outputs are among few values that come again and again, the others are continuous."""
    atoms = -1.0 - (2 * rng.integers(_ATOMS, size=len(faces)) + faces)
    return np.where(rng.random(len(faces)) < 0.5, atoms, _numbers(faces, rng))


_SHOWN: dict[str, Show] = {"names": _names, "numbers": _numbers, "atoms beside numbers": _mixed}
# Equal laws, where whatever is found is wrong, and laws that differ by a factor of 2 on one face.
DISGUISES: tuple[Disguise, ...] = tuple(
    Disguise(name, coin, show) for coin in (Coin(0.5, 0.5), Coin(0.5, 0.25)) for name, show in _SHOWN.items()
)
