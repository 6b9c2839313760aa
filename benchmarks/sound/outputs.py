"""Kinds of outputs. Each shows the faces of a coin as something else, so that the truth stays that of the coin.

To add one, write a function of faces and a generator, and put it into `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from epsilometer.arrays import Array, Booleans, Floats
from epsilometer.testing.fakes import DISGUISES

Show = Callable[[Booleans, np.random.Generator], Sequence[Any] | Array]

# Texts, numbers, and numbers mixed with repeated values: those of the conformance suites, where over-fitting pays.
_DISGUISED = {disguise.name: disguise.show for disguise in DISGUISES}
# Different whole numbers per face.
_WHOLE_NUMBERS = 20
# Different outputs of a huge alphabet: hardly any of a few hundred draws repeats one.
_HUGE = 10**6


def _booleans(faces: Booleans, rng: np.random.Generator) -> Booleans:
    return faces


def _integers(faces: Booleans, rng: np.random.Generator) -> Array:
    return 2 * rng.integers(-_WHOLE_NUMBERS, _WHOLE_NUMBERS, size=len(faces)) + faces


def _vectors(faces: Booleans, rng: np.random.Generator) -> Floats:
    """The face is in the sum of two columns; the third one is noise."""
    noise = rng.normal(size=(len(faces), 3))
    noise[:, 1] = np.where(faces, 1.0, -1.0) * rng.exponential(size=len(faces)) - noise[:, 0]
    return noise


def _dictionaries(faces: Booleans, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The face decides whether two fields agree; one of them is missing at times."""
    rows = []
    for face, first, is_short in zip(
        faces, rng.integers(4, size=len(faces)), rng.random(len(faces)) < 0.3, strict=True
    ):
        row: dict[str, Any] = {
            "a": int(first),
            "b": int(first) if face else int(first + 1 + rng.integers(3)) % 4,
        }
        if not is_short:
            row["c"] = float(rng.random())
        rows.append(row)
    return rows


def _lists(faces: Booleans, rng: np.random.Generator) -> list[list[float]]:
    """The face is whether the length is odd."""
    lengths = 2 * rng.integers(4, size=len(faces)) + faces
    return [rng.random(length).tolist() for length in lengths]


def _missing(faces: Booleans, rng: np.random.Generator) -> list[Any]:
    """None and infinity on one face, NaN and numbers on the other."""
    shown = {True: (None, float("inf"), -1.0), False: (float("nan"), 0.0, "none")}
    return [
        shown[bool(face)][code]
        for face, code in zip(faces, rng.integers(3, size=len(faces)), strict=True)
    ]


def _huge_alphabet(faces: Booleans, rng: np.random.Generator) -> list[str]:
    return [f"user {code}" for code in 2 * rng.integers(_HUGE, size=len(faces)) + faces]


def _constants(faces: Booleans, rng: np.random.Generator) -> list[str]:
    """Always the same: the truth is 0 whatever the coin."""
    return ["nothing to see"] * len(faces)


KINDS: dict[str, Show] = {
    "booleans": _booleans,
    "integers": _integers,
    "texts": _DISGUISED["names"],
    "numbers": _DISGUISED["numbers"],
    "numbers with atoms": _DISGUISED["point masses and numbers"],
    "vectors": _vectors,
    "dictionaries": _dictionaries,
    "lists": _lists,
    "None, NaN, infinity": _missing,
    "huge alphabet": _huge_alphabet,
    "constant": _constants,
}
