"""The ids of canaries: one each, none missing, none twice."""

from collections.abc import Hashable, ItemsView, Iterable, KeysView, Sequence, Set
from typing import Any

import numpy as np

from epsilometer.claims.base import is_missing
from epsilometer.errors import InputError, short_repr

# Ids that a message names before it counts the others.
_MOST_NAMED = 3


def read_ids(name: str, ids: Any) -> list[Hashable]:
    """Returns ids as Python objects, in their order.

    Args:
        name: of the argument, for messages.
        ids: a list, an array, a series of any library, or an iterator; no set, which has no order.
    """
    if not isinstance(ids, Iterable):
        raise InputError(f"{name}={short_repr(ids)} must be a list of ids, one per canary")
    if isinstance(ids, Set) and not isinstance(ids, KeysView | ItemsView):
        raise InputError(
            f"{name} is a {type(ids).__name__}, which has no order: give a list of ids, one per "
            "canary"
        )
    shape = getattr(ids, "shape", (1,))
    if len(shape) != 1:
        raise InputError(f"{name} has shape {tuple(shape)}: it must be one-dimensional")
    # Arrays, tensors, and series of most libraries say themselves what their Python objects are.
    for to_objects in ("tolist", "to_list", "to_pylist"):
        if hasattr(ids, to_objects):
            return list(getattr(ids, to_objects)())
    return [value.item() if isinstance(value, np.str_ | np.integer) else value for value in ids]


def check_ids(name: str, ids: Sequence[Hashable]) -> None:
    """Raises if an id is missing (None or NaN), cannot be compared, or occurs twice."""
    n_missing = sum(map(_is_missing_id, ids))
    if n_missing:
        count = "1 id is" if n_missing == 1 else f"{n_missing} ids are"
        raise InputError(f"{name}: {count} missing (None or NaN): every canary needs its id")
    seen: set[Hashable] = set()
    repeated: list[Hashable] = []
    for identifier in ids:
        try:
            is_repeated = identifier in seen
        except TypeError as error:
            raise InputError(
                f"{name}: {short_repr(identifier)} cannot be an id: take texts or whole numbers"
            ) from error
        if is_repeated:
            repeated.append(identifier)
        seen.add(identifier)
    if repeated:
        raise InputError(
            f"{name}: {named_ids(repeated)} repeated: every canary has one id and one coin"
        )


def named_ids(ids: Sequence[Hashable]) -> str:
    """The first ids in words, and how many more there are."""
    distinct = list(dict.fromkeys(ids))
    shown = ", ".join(short_repr(identifier) for identifier in distinct[:_MOST_NAMED])
    more = len(distinct) - _MOST_NAMED
    return f"id {shown} and {more} more" if more > 0 else f"id {shown}"


def _is_missing_id(identifier: Hashable) -> bool:
    is_nan = isinstance(identifier, float | np.floating) and bool(np.isnan(identifier))
    return is_nan or is_missing(identifier)
