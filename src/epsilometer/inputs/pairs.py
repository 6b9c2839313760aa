"""A pair of neighbouring datasets: what a claim of privacy speaks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epsilometer.errors import InputError
from epsilometer.inputs.copying import check_reusable
from epsilometer.storage.digests import Undigestible, content_digest


@dataclass(frozen=True, slots=True)
class StoredDigest:
    """Stands for an input that could not be stored: its type, a short text, and its digest, if it has one."""

    kind: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring datasets, whatever the mechanism takes as its input.

    Attributes:
        left: the dataset whose outputs have the law P.
        right: the dataset whose outputs have the law Q.
        equal: whether the two may be equal, for a control that nothing can refute. Otherwise equal inputs are taken
            for a mistake.
    """

    left: Any
    right: Any
    equal: bool = field(default=False, kw_only=True)

    def side(self, index: int) -> Any:
        """0 is left, 1 is right."""
        return self.right if index else self.left

    @property
    def digest(self) -> tuple[str, str]:
        """Of left and right: their type, dtype, bits, shape and order.

        Raises:
            Undigestible: if one has no content that could be recognised again.
        """
        return digest_of(self.left), digest_of(self.right)

    @property
    def has_equal_sides(self) -> bool:
        """Whether no mechanism can tell left from right."""
        if self.left is self.right:
            return True
        if type(self.left) is not type(self.right):
            return False
        try:
            return digest_of(self.left) == digest_of(self.right)
        except Undigestible:
            return False


def digest_of(dataset: Any) -> str:
    """Of an input, or of one that was not stored."""
    if not isinstance(dataset, StoredDigest):
        return content_digest(dataset)
    if not dataset.digest:
        raise Undigestible(f"the stored {dataset.kind} had no digest")
    return dataset.digest


def check_pair(pair: Pair) -> Pair:
    """The pair, if it can be audited.

    Raises:
        InputError: if its inputs are equal although nobody said so, or can be read only once.
    """
    check_reusable(pair.left, "the left input")
    check_reusable(pair.right, "the right input")
    if not pair.equal and pair.has_equal_sides:
        raise InputError(
            f"the two inputs of the pair are equal ({_shown(pair.left)}), so their outputs have one law and no claim "
            "could be refuted; give neighbours that differ, or em.Pair(x, x, equal=True) for a deliberate control"
        )
    return pair


def _shown(value: object) -> str:
    try:
        return f"{value!r:.100}"
    except Exception:  # a hostile or broken repr
        return f"two of type {type(value).__name__}"


# Stands for the unknown inputs behind two recorded samples.
RECORDED = Pair("recorded left outputs", "recorded right outputs")


def is_recorded(pair: Pair) -> bool:
    """Whether the pair only stands for a recording."""
    return isinstance(pair.left, str) and pair.left == RECORDED.left


Inputs = Pair | tuple[Any, Any] | Sequence[Pair | tuple[Any, Any]]


def as_pairs(inputs: object) -> list[Pair]:
    """One or more pairs, from a `Pair`, a 2-tuple, or a list of them."""
    if isinstance(inputs, Pair):
        return [check_pair(inputs)]
    if isinstance(inputs, tuple) and len(inputs) == 2 and not all(isinstance(side, Pair) for side in inputs):
        return [check_pair(Pair(*inputs))]
    if isinstance(inputs, list | tuple) and inputs:
        return [as_pair(each) for each in inputs]
    raise InputError(f"inputs={inputs!r:.200} must be a Pair, a 2-tuple (left, right), or a non-empty list of pairs")


def as_pair(pair: object, *, equal: bool = False) -> Pair:
    """A `Pair`, from itself or from two things, which may be equal if so said."""
    if isinstance(pair, tuple | list) and len(pair) == 2:
        pair = Pair(pair[0], pair[1], equal=equal)
    if not isinstance(pair, Pair):
        raise InputError(f"{pair!r:.200} is not a pair: give Pair(left, right) or a 2-tuple")
    return check_pair(replace(pair, equal=pair.equal or equal))
