"""A pair of neighbouring datasets, who proposes one, and how it is stored: as a digest where JSON cannot hold it."""

import datetime
import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from epsilometer.errors import InputError, safe_repr
from epsilometer.inputs.copying import check_reusable, same_content
from epsilometer.inputs.differences import brief, difference, digest_or_none
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
        left: the dataset whose outputs have the distribution P.
        right: the dataset whose outputs have the distribution Q.
        equal: whether the two may be equal, for a control that nothing can refute. Otherwise equal inputs count as a
            mistake.
        note: why a search tried it, e.g. "NaN in one record".
        within: whether both datasets belong to the domain that was searched; None if nothing was.
        told: the difference of inputs that were too large to be stored with their result.

    Example:
        >>> pair = em.Pair([1, 1, 0], [1, 1, 1])
        >>> pair.left, pair.right
        ([1, 1, 0], [1, 1, 1])
    """

    left: Any
    right: Any
    equal: bool = field(default=False, kw_only=True)
    told: str = field(default="", kw_only=True, repr=False, compare=False)
    note: str = field(default="", kw_only=True, repr=False, compare=False)
    within: bool | None = field(default=None, kw_only=True, repr=False, compare=False)

    def side(self, index: int) -> Any:
        """0 is left, 1 is right."""
        return self.right if index else self.left

    @property
    def digest(self) -> tuple[str, str]:
        """Of left and right: by type, dtype, bits, shape and order.

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
        """What distinguishes right from left, for people: "record 19: age 39 → 99; 19 records equal".

        Empty if the inputs are not known, only their digests.
        """
        if self.told or not is_complete(self):
            return self.told
        try:
            return difference(self.left, self.right)
        except Exception as error:  # objects may raise anything when they are looked at; that must not cost a result
            kinds = [type(each).__name__ for each in (self.left, self.right, error)]
            return f"{kinds[0]} → {kinds[1]} ({kinds[2]} on comparing them)"


@runtime_checkable
class Finder(Protocol):
    """Proposes pairs of inputs, one trial after the other. It never sees the mechanism.

    The next pair must depend only on the finder's own settings and what it was told so far: an interrupted search asks
    again.

    Attributes:
        trials: the most pairs that it proposes.
        samples: draws per side with which a trial explores its pair.
        stop_at_refutation: whether the search ends at the first refutation, or tries every pair for the largest bound.
    """

    trials: int
    samples: int
    stop_at_refutation: bool

    def ask(self) -> Pair | None:
        """The next pair to try, the same until its score is told; None when there is none left."""

    def tell(self, score: float | None) -> None:
        """What the pair promised: a number, 0.0 included, the larger the better; None if it has no score."""

    def state(self) -> dict[str, Any]:
        """What it was told so far, as plain data for JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of a finder with the same settings."""

    def describe(self) -> dict[str, Any]:
        """Its settings, as plain data for the result."""


def digest_of(dataset: Any) -> str:
    """The digest of an input, or of one that was not stored."""
    if not isinstance(dataset, StoredDigest):
        return content_digest(dataset)
    if not dataset.digest:
        raise Undigestible(f"the stored {dataset.kind} had no digest")
    return dataset.digest


def check_pair(pair: Pair) -> Pair:
    """The pair, if it can be audited.

    Raises:
        InputError: if its inputs are equal without `equal=True`, or can be read only once.
    """
    check_reusable(pair.left, "the left input")
    check_reusable(pair.right, "the right input")
    if not pair.equal and same_content(pair.left, pair.right):
        why = "so their outputs have one distribution and no claim could be refuted"
        what_to_do = "give neighbours that differ, or em.Pair(x, x, equal=True) for a control"
        raise InputError(f"the two inputs of the pair are equal ({brief(pair.left)}), {why}; {what_to_do}")
    return pair


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
    """A `Pair`, from itself or from two datasets, which may be equal only if `equal`."""
    if isinstance(pair, tuple | list) and len(pair) == 2:
        pair = Pair(pair[0], pair[1], equal=equal)
    if not isinstance(pair, Pair):
        raise InputError(f"{pair!r:.200} is not a pair: give Pair(left, right) or a 2-tuple")
    return check_pair(replace(pair, equal=pair.equal or equal))


# Inputs larger than this (as JSON text) are stored as a digest.
_MOST_TEXT = 100_000


def pair_to_dict(pair: Pair) -> dict[str, Any]:
    """Plain data; `pair_from_dict` is the inverse up to digests."""
    stored: dict[str, Any] = {"left": _store(pair.left), "right": _store(pair.right)}
    # Nobody could work out later how inputs differ that are not stored.
    unknown = pair.difference if "text" in stored["left"] or "text" in stored["right"] else None
    told = {"equal": pair.equal or None, "note": pair.note or None, "within": pair.within, "difference": unknown}
    return stored | {name: value for name, value in told.items() if value is not None}


def pair_from_dict(data: Mapping[str, Any]) -> Pair:
    """The pair; a side that was not stored is a `StoredDigest`."""
    within = None if data.get("within") is None else bool(data["within"])
    told = {"note": str(data.get("note", "")), "told": str(data.get("difference", ""))}
    return Pair(_restore(data["left"]), _restore(data["right"]), equal=bool(data.get("equal")), within=within, **told)


def pair_digest(pair: Pair) -> str:
    """A short text that distinguishes pairs."""
    inputs = pair_to_dict(replace(pair, note="", within=None, told="unasked"))
    inputs.pop("difference", None)
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def check_same(stored: Pair, given: Pair) -> None:
    """Refuses inputs that are not those of a stored pair.

    Raises:
        InputError: if an input differs, or cannot be compared.
    """
    for side, name in enumerate(("left", "right")):
        try:
            same = digest_of(stored.side(side)) == content_digest(given.side(side))
        except Undigestible as error:
            raise InputError(f"pair=: whether the {name} input is the stored one is unknown: {error}") from error
        if not same:
            why = "its digest differs (of type, bits, shape and order)"
            what = f"the {name} input is not that of the stored result: {why}"
            raise InputError(f"pair=: {what}; give the inputs of that audit, or make a new audit")


def is_complete(pair: Pair) -> bool:
    """Whether both inputs are there, so that a mechanism can be run on them."""
    return not isinstance(pair.left, StoredDigest) and not isinstance(pair.right, StoredDigest)


def _store(value: Any) -> dict[str, Any]:
    """In a form that gives back the same value of the same type, if JSON has one; with its digest, to recognise it."""
    if isinstance(value, StoredDigest):
        return {"type": value.kind, "text": value.text, "digest": value.digest}
    digest = digest_or_none(value) or ""
    for form in (_as_json, lambda each: {"typed": _typed(each)}):  # NaN, dates, arrays or data frames inside need types
        try:
            data = form(value)
            text = json.dumps(data, allow_nan=False)
            if len(text) <= _MOST_TEXT and content_digest(_restore(json.loads(text))) == digest:
                return {**data, "digest": digest}
        except Exception:  # whatever the libraries of data frames raise
            continue
    return {"type": type(value).__name__, "text": safe_repr(value)[:200], "digest": digest}


def _as_json(value: Any) -> dict[str, Any]:
    if _is_plain_array(value) and value.size <= _MOST_TEXT // 10:
        flat = [_plain(each) for each in value.ravel().tolist()]
        return {"array": flat, "shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, np.generic) and _is_plain_array(np.asarray(value)):
        return {"scalar": _plain(value.item()), "dtype": str(value.dtype)}
    return {"tuple": list(value)} if type(value) is tuple else {"json": value}


def _typed(value: Any) -> Any:
    """A value as JSON in which everything that JSON lacks is a pair of its type and its content."""
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if type(value) in (list, tuple):
        return {type(value).__name__: [_typed(each) for each in value]}
    if type(value) is dict:
        return {"dict": [[_typed(name), _typed(each)] for name, each in value.items()]}
    if type(value) in (float, datetime.date):
        return {type(value).__name__: str(value)}
    if type(value) is np.ndarray and value.dtype.kind in "UO":
        flat = [_typed(each) for each in value.ravel().tolist()]
        return {"cells": flat, "shape": list(value.shape), "dtype": str(value.dtype)}
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if kind == "pandas.Series" and value.name is None:
        return {kind: _typed(value.tolist()), "dtype": str(value.dtype)}
    if kind == "pandas.DataFrame":
        return {kind: [[_typed(name), _typed(each.tolist()), str(each.dtype)] for name, each in value.items()]}
    if kind == "polars.DataFrame":
        return {kind: [[column.name, _typed(column.to_list()), str(column.dtype)] for column in value]}
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"a {type(value).__name__} has no JSON")
    return _as_json(value)


def _untyped(data: Any) -> Any:
    """The inverse of `_typed`."""
    if not isinstance(data, dict):
        return data
    kind, content = next(iter(data.items()))
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(map(_untyped, content))
    if kind == "dict":
        return {_untyped(name): _untyped(each) for name, each in content}
    if kind == "float":
        return float(content)
    if kind == "date":
        return datetime.date.fromisoformat(content)
    if kind == "cells":
        cells = np.empty(len(content), dtype=_checked_kind(data["dtype"], "UO"))
        cells[:] = [_untyped(each) for each in content]
        return cells.reshape([int(each) for each in data["shape"]])
    if kind.startswith(("pandas.", "polars.")):
        return _frame(kind, content, str(data.get("dtype")))
    return _restore(data)


def _frame(kind: str, content: Any, dtype: str) -> Any:
    library: Any = importlib.import_module(kind.partition(".")[0])
    if kind == "pandas.Series":
        return library.Series(_untyped(content), dtype=dtype)
    named = [(_untyped(name), _untyped(cells), str(each)) for name, cells, each in content]
    if kind == "pandas.DataFrame":
        return library.DataFrame({name: library.Series(cells, dtype=each) for name, cells, each in named})
    schema = {name: getattr(library, each.partition("(")[0]) for name, _, each in named}
    return library.DataFrame({name: cells for name, cells, _ in named}, schema=schema)


def _is_plain_array(value: Any) -> bool:
    """Whether JSON numbers can hold every element."""
    return type(value) is np.ndarray and value.dtype.kind in "biuf" and value.itemsize <= 8


def _plain(value: float | int | bool) -> float | int | bool | str:
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def _restore(data: Mapping[str, Any]) -> Any:
    if "json" in data:
        return data["json"]
    if "tuple" in data:
        return tuple(data["tuple"])
    if "typed" in data:
        return _untyped(data["typed"])
    if "scalar" in data:
        return _array([data["scalar"]], data["dtype"])[0]
    if "array" in data:
        return _array(data["array"], data["dtype"]).reshape([int(each) for each in data["shape"]])
    return StoredDigest(str(data["type"]), str(data["text"]), str(data["digest"]))


def _array(flat: list[Any], dtype: Any) -> np.ndarray[Any, Any]:
    kind = _checked_kind(dtype, "biuf")
    return np.array([float(each) if isinstance(each, str) else each for each in flat], dtype=kind)


def _checked_kind(dtype: Any, kinds: str) -> np.dtype[Any]:
    kind = np.dtype(str(dtype))
    if kind.kind not in kinds:
        raise ValueError(f"a stored array cannot have the dtype {kind}")
    return kind
