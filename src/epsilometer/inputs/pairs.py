"""A pair of neighbouring datasets: what a claim of privacy speaks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.errors import InputError


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring datasets, whatever the mechanism takes as its input.

    Attributes:
        left: the dataset whose outputs have the law P.
        right: the dataset whose outputs have the law Q.
    """

    left: Any
    right: Any

    def side(self, index: int) -> Any:
        """0 is left, 1 is right."""
        return self.right if index else self.left


# Stands for the unknown inputs behind two recorded samples.
RECORDED = Pair("recorded left outputs", "recorded right outputs")


def is_recorded(pair: Pair) -> bool:
    """Whether the pair only stands for a recording."""
    return isinstance(pair.left, str) and pair.left == RECORDED.left


Inputs = Pair | tuple[Any, Any] | Sequence[Pair | tuple[Any, Any]]


def as_pairs(inputs: object) -> list[Pair]:
    """One or more pairs, from a `Pair`, a 2-tuple, or a list of them."""
    if isinstance(inputs, Pair):
        return [inputs]
    if isinstance(inputs, tuple) and len(inputs) == 2 and not all(isinstance(side, Pair) for side in inputs):
        return [Pair(*inputs)]
    if isinstance(inputs, list | tuple) and inputs:
        return [as_pair(each) for each in inputs]
    raise InputError(f"inputs={inputs!r:.200} must be a Pair, a 2-tuple (left, right), or a non-empty list of pairs")


def as_pair(pair: object) -> Pair:
    """A `Pair`, from itself or from two things."""
    if isinstance(pair, Pair):
        return pair
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return Pair(pair[0], pair[1])
    raise InputError(f"{pair!r:.200} is not a pair: give Pair(left, right) or a 2-tuple")
