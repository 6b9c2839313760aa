"""A pair of neighbouring datasets, who proposes one, and how it is stored."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Union, cast, runtime_checkable

import numpy as np

from epsilometer.claims.base import check_flag
from epsilometer.errors import InputError
from epsilometer.inputs.copying import check_reusable, equal_fields, same_content
from epsilometer.inputs.differences import brief, difference
from epsilometer.inputs.storing import StoredDigest, restore_input, store_input
from epsilometer.one_line import one_line
from epsilometer.storage.digests import Undigestible, content_digest
from epsilometer.storage.formats import is_frame

# Columns of a data frame that a message names.
_MAX_NAMED_COLUMNS = 6

if TYPE_CHECKING:  # domains are made of pairs
    from epsilometer.inputs.domains.numbers import Domain

__all__ = [
    "RECORDED",
    "Finder",
    "Inputs",
    "Pair",
    "Pairs",
    "as_pair",
    "as_pairs",
    "check_datasets",
    "check_pair",
    "check_same",
    "digest_of",
    "is_complete",
    "is_recorded",
    "pair_digest",
    "pair_from_dict",
    "pair_to_dict",
    "proposed_pair",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring datasets, whatever the mechanism takes as its input.

    Attributes:
        left: the dataset whose outputs have the distribution P.
        right: the dataset whose outputs have the distribution Q.
        equal: whether the two may be equal, for a control that nothing can refute. Otherwise equal
            inputs count as a mistake.
        note: why a search tried it, e.g. "NaN in one record".
        within: whether both datasets belong to the domain that was searched; None if nothing was.
        stored_difference: the difference of inputs that were too large to be stored with their
            result.

    Example:
        >>> pair = em.Pair([1, 1, 0], [1, 1, 1])
        >>> pair.left, pair.right
        ([1, 1, 0], [1, 1, 1])
    """

    left: Any
    right: Any
    equal: bool = field(default=False, kw_only=True)
    stored_difference: str = field(default="", kw_only=True, repr=False, compare=False)
    note: str = field(default="", kw_only=True, repr=False, compare=False)
    within: bool | None = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_flag("equal", self.equal)

    def __repr__(self) -> str:
        sides = f"left={one_line(self.left)}, right={one_line(self.right)}"
        return f"Pair({sides}, equal={self.equal})"

    __eq__ = equal_fields

    def side(self, index: int) -> Any:
        """Returns the left dataset for 0, the right one for 1."""
        return self.right if index else self.left

    @property
    def digest(self) -> tuple[str, str]:
        """The digests of left and right: by type, dtype, bits, shape and order.

        Raises:
            Undigestible: if one has no content by which to recognise it.
        """
        return digest_of(self.left), digest_of(self.right)

    @property
    def has_equal_sides(self) -> bool:
        """Whether no mechanism can distinguish left from right."""
        return same_content(self.left, self.right)

    @property
    def difference(self) -> str:
        """What distinguishes right from left: "record 19: age 39 → 99; 19 records equal".

        It is empty if the inputs are not known, only their digests.
        """
        if self.stored_difference or not is_complete(self):
            return self.stored_difference
        try:
            return difference(self.left, self.right)
        except Exception as error:
            # Objects may raise anything when they are looked at; that must not cost a result.
            types = f"{type(self.left).__name__} → {type(self.right).__name__}"
            return f"{types} ({type(error).__name__} on comparing them)"


@runtime_checkable
class Finder(Protocol):
    """Proposes pairs of inputs, one trial after the other. It never sees the mechanism.

    The next pair must depend only on the finder's own settings and the scores that it received so
    far: an interrupted search asks again. This is all that a finder must have. One whose pairs are
    to be screened in rounds and shrunk is an `epsilometer.finders.RoundFinder`.

    Attributes:
        trials: the most pairs that it proposes.
        samples: draws per side with which a trial explores its pair.
        stop_at_refutation: whether the search ends at the first refutation, or tries every pair for
            the largest bound.
    """

    trials: int
    samples: int
    stop_at_refutation: bool

    def ask(self) -> Pair | None:
        """Returns the next pair to try, the same until `tell` is called; None if none is left."""

    def tell(self, score: float | None) -> None:
        """Receives the score of the pair: larger is better; None if it has no score."""

    def state(self) -> dict[str, Any]:
        """Returns the scores that it received so far, as plain data for JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of a finder with the same settings."""

    def describe(self) -> dict[str, Any]:
        """Returns its settings, as plain data for the result."""


def digest_of(dataset: Any) -> str:
    """Returns the digest of an input, or of one that was not stored."""
    if not isinstance(dataset, StoredDigest):
        return content_digest(dataset)
    if not dataset.digest:
        raise Undigestible(f"the stored {dataset.kind} had no digest")
    return dataset.digest


# --- what users may give as inputs

Pairs = Pair | tuple[Any, Any] | Sequence[Pair | tuple[Any, Any]]
# What the verbs take: pairs, a finder, or a domain, which is searched.
Inputs = Union[Pairs, Finder, "Domain"]  # a name in quotes cannot be joined with |


def check_pair(pair: Pair) -> Pair:
    """Returns the pair, if it can be audited.

    Raises:
        InputError: if its inputs are equal without `equal=True`, or can be read only once.
    """
    check_reusable(pair.left, "the left input")
    check_reusable(pair.right, "the right input")
    if not pair.equal and same_content(pair.left, pair.right):
        raise InputError(
            f"the two inputs of the pair are equal ({brief(pair.left)}), so their outputs have one "
            "distribution and no claim could be refuted; give neighbours that differ, or "
            "em.Pair(x, x, equal=True) for a control"
        )
    return pair


def as_pairs(inputs: object, name: str = "inputs") -> list[Pair]:
    """Returns one or more pairs, from a `Pair`, a 2-tuple, or a list of them.

    A 2-tuple is one pair, whatever it holds. A list is a list of pairs, so what it holds must be
    pairs: a list is also the commonest dataset, and two datasets in a list would otherwise pass for
    two pairs.

    Args:
        inputs: as the user gave them.
        name: of the argument, for error texts.

    Raises:
        InputError: for anything else; the message says how to write it.
    """
    if isinstance(inputs, Pair):
        return [check_pair(inputs)]
    if isinstance(inputs, list | tuple) and inputs:
        are_pairs = all(isinstance(item, Pair) for item in inputs)
        if isinstance(inputs, tuple) and not are_pairs:
            return [as_pair(inputs)]
        if all(_is_pair(item) for item in inputs):
            return [as_pair(item) for item in inputs]
    raise InputError(f"{name}={_summary(inputs)} {_why_no_pairs(inputs)}")


def as_pair(pair: object, *, equal: bool = False) -> Pair:
    """Returns a `Pair`, from itself or from a 2-tuple; its sides may be equal only if `equal`."""
    checked = proposed_pair(pair)
    return check_pair(replace(checked, equal=checked.equal or equal))


def proposed_pair(pair: object) -> Pair:
    """Returns a `Pair`, from itself or from a 2-tuple; its sides may be equal.

    Raises:
        InputError: for anything else.
    """
    if isinstance(pair, Pair):
        return pair
    if isinstance(pair, tuple) and len(pair) == 2:
        return Pair(pair[0], pair[1])
    raise InputError(f"{_summary(pair)} {_why_no_pair(pair)}")


def check_datasets(dataset: object, neighbours: object) -> list[Any]:
    """Returns the neighbours of a dataset as a list, each of them a dataset.

    Raises:
        InputError: if they are not given one by one: a table, a text or a dict would be taken apart
            into its columns, letters or keys.
    """
    if isinstance(neighbours, Pair | str | bytes | dict) or is_frame(neighbours):
        raise InputError(
            f"neighbours={_summary(neighbours)} is not a list of datasets: give [other, …]"
        )
    try:
        datasets: list[Any] = list(cast(Iterable[Any], neighbours))
    except TypeError:
        raise InputError(
            f"neighbours={_summary(neighbours)} is not a list of datasets: give [other, …]"
        ) from None
    for other in datasets:
        if isinstance(other, Pair):
            raise InputError("neighbours holds a Pair: give the datasets on its right, [other, …]")
        if _holds_records(dataset) and isinstance(other, int | float | np.number | str):
            raise InputError(
                f"neighbours={_summary(neighbours)} holds {_summary(other)}, but the dataset is "
                f"{_summary(dataset)}: give a list of such datasets, [other, …]"
            )
    return datasets


def _is_pair(item: object) -> bool:
    return isinstance(item, Pair) or (isinstance(item, tuple) and len(item) == 2)


def _holds_records(dataset: object) -> bool:
    return isinstance(dataset, list | tuple | np.ndarray) or is_frame(dataset)


def _summary(value: object) -> str:
    """Returns a value in a few words: of arrays and data frames the kind and the shape."""
    if isinstance(value, list | tuple) and any(map(is_frame, value)):
        return f"[{', '.join(map(_summary, value))}]"
    shape = getattr(value, "shape", None)
    if is_frame(value) or (isinstance(value, np.ndarray) and value.size > 1):
        kind = type(value).__name__
        size = " × ".join(map(str, shape)) if isinstance(shape, tuple) else "unknown"
        columns = list(getattr(value, "columns", ()))[:_MAX_NAMED_COLUMNS]
        named = f" with the columns {', '.join(map(str, columns))}" if columns else ""
        return f"<{kind} of size {size}{named}>"
    return brief(value)


def _why_no_pairs(inputs: object) -> str:
    """Returns why this is not what `audit` takes as inputs, and how to write what was meant."""
    if isinstance(inputs, list) and len(inputs) == 2 and not any(map(_is_pair, inputs)):
        left, right = map(_summary, inputs)
        return (
            "is a list, and a list is a list of pairs: if these are the two neighbouring inputs, "
            f"write em.Pair({left}, {right})"
        )
    if isinstance(inputs, list) and inputs:
        wrong = next(item for item in inputs if not _is_pair(item))
        return (
            f"is a list of pairs only if it holds em.Pair(left, right) or tuples (left, right), "
            f"and {_summary(wrong)} is neither; the neighbours of one dataset are searched with "
            "em.around(data)"
        )
    if isinstance(inputs, list):
        return "is empty: give em.Pair(left, right), or a list of pairs"
    return _why_no_pair(inputs)


def _why_no_pair(given: object) -> str:
    """Returns why this is not a pair, and how to write what was meant."""
    if isinstance(given, list) and len(given) == 2:
        left, right = map(_summary, given)
        return f"is a list: write one pair as em.Pair({left}, {right})"
    if isinstance(given, tuple):
        return (
            f"is a tuple of {len(given)}: one pair is em.Pair(left, right), several pairs are a "
            "list [(left, right), …]"
        )
    if _holds_records(given) or isinstance(given, dict):
        data = "df" if is_frame(given) else "data"
        return (
            f"is one dataset, not a pair: search its neighbours with em.around({data}), or give "
            f"one with em.Pair({data}, other)"
        )
    if isinstance(given, type):
        return f"is a class: make an object of it, as in {given.__name__}(…)"
    return "is not a pair: give em.Pair(left, right), a list of pairs, or a domain to search"


# Stands for the unknown inputs behind two recorded samples.
RECORDED = Pair("recorded left outputs", "recorded right outputs")


def is_recorded(pair: Pair) -> bool:
    """Returns whether the pair only stands for a recording."""
    return isinstance(pair.left, str) and pair.left == RECORDED.left


# --- stored pairs


def pair_to_dict(pair: Pair) -> dict[str, Any]:
    """Returns plain data; `pair_from_dict` is the inverse up to digests."""
    left = store_input(pair.left)
    right = store_input(pair.right)
    data: dict[str, Any] = {"left": left, "right": right}
    if pair.equal:
        data["equal"] = True
    if pair.note:
        data["note"] = pair.note
    if pair.within is not None:
        data["within"] = pair.within
    if "text" in left or "text" in right:
        # Nobody could work out later how inputs differ that are not stored.
        data["difference"] = pair.difference
    return data


def pair_from_dict(data: Mapping[str, Any]) -> Pair:
    """Restores a pair; a side that was not stored is a `StoredDigest`."""
    return Pair(
        restore_input(data["left"]),
        restore_input(data["right"]),
        equal=bool(data.get("equal")),
        stored_difference=str(data.get("difference", "")),
        note=str(data.get("note", "")),
        within=None if data.get("within") is None else bool(data["within"]),
    )


def pair_digest(pair: Pair) -> str:
    """Returns a short text that distinguishes pairs."""
    # A placeholder for the difference, which is removed below, saves computing it.
    inputs = pair_to_dict(replace(pair, note="", within=None, stored_difference="not computed"))
    inputs.pop("difference", None)
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def check_same(stored: Pair, given: Pair) -> None:
    """Refuses inputs that are not those of a stored pair.

    Raises:
        InputError: if an input differs, or cannot be compared.
    """
    for side, name in enumerate(("left", "right")):
        try:
            is_same = digest_of(stored.side(side)) == content_digest(given.side(side))
        except Undigestible as error:
            raise InputError(
                f"pair=: whether the {name} input is the stored one is unknown: {error}"
            ) from error
        if not is_same:
            raise InputError(
                f"pair=: the {name} input is not that of the stored result: its digest differs (of "
                "type, bits, shape and order); give the inputs of that audit, or make a new audit"
            )


def is_complete(pair: Pair) -> bool:
    """Returns whether both inputs are there, so that a mechanism can be run on them."""
    return not isinstance(pair.left, StoredDigest) and not isinstance(pair.right, StoredDigest)
