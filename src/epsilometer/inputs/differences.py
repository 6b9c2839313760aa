"""The difference of two inputs in words: "record 19: age 39 → 99; 19 records equal"."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np

from epsilometer.errors import safe_repr
from epsilometer.inputs.copying import same_content
from epsilometer.outputs.foreign import field_names
from epsilometer.storage.digests import Undigestible, content_digest

# Changes that are named one by one; further ones are counted.
_MAX_CHANGES = 3
# Changes that are named if one input holds the same items as the other in another order.
_MAX_MOVES = 1
# Characters of one value.
_MAX_VALUE = 80
# Data frames with more rows than this are not compared row by row.
_MAX_ROWS = 200_000
# More items than this are not aligned, which compares each with each.
_MAX_ALIGNED = 1_000
# Longer reprs are not taken as keys of items: they may leave something out.
_MAX_REPR = 1_000
# What a repr has that does not show everything: an array, an ellipsis, an address, several lines.
_SIGNS_OF_OMISSION = ("array", "...", "<", "\n")
_FRAMES = {
    ("pandas", "DataFrame"),
    ("pandas", "Series"),
    ("polars", "DataFrame"),
    ("polars", "Series"),
}


class _Change(NamedTuple):
    """A stretch of the left items, in whose place the right items have another stretch."""

    left: range
    right: range


def difference(left: Any, right: Any) -> str:
    """Returns what distinguishes right from left, for people.

    Args:
        left: numbers, texts, lists, dicts, sets, arrays, records, data frames, nested or not.
        right: likewise.
    """
    if same_content(left, right):
        return "none: the inputs are equal"
    left_items = _items(left)
    right_items = _items(right)
    left_type = _type_text(left)
    right_type = _type_text(right)
    if left_type != right_type and left_items is not None:
        return f"{brief(left)} → {brief(right)} ({left_type} → {right_type})"
    if left_items is None or right_items is None:
        return _difference_of_fields(left, right)
    noun = "record" if _has_records(left_items, right_items) else "item"
    left_keys = _keys(left, left_items)
    right_keys = _keys(right, right_items)
    changes = _changed_stretches(left_keys, right_keys)
    texts: list[str] = []
    for change in changes:
        texts += _describe_change(change, left_items, right_items, noun)
    most = _MAX_CHANGES
    if Counter(left_keys) == Counter(right_keys):
        texts.insert(0, f"the same {noun}s in another order")
        most = 1 + _MAX_MOVES
    n_equal = len(left_items) - sum(len(change.left) for change in changes)
    return _summarise(texts, most, n_equal, noun)


def _difference_of_fields(left: Any, right: Any) -> str:
    """Describes the difference of two values that are no sequences."""
    texts = list(_changes(left, right)) or ["the order of the keys"]
    left_fields = _fields(left) or {}
    right_fields = _fields(right) or {}
    n_equal = 0
    for key, value in left_fields.items():
        if key in right_fields and same_content(value, right_fields[key]):
            n_equal += 1
    return _summarise(texts, _MAX_CHANGES, n_equal, "field")


def _summarise(texts: Sequence[str], most: int, n_equal: int, noun: str) -> str:
    """Joins the first changes, counts the others, and says how much is equal."""
    parts = list(texts[:most])
    if len(texts) > most:
        parts.append(f"{len(texts) - most:,} more")
    if n_equal > 0:
        plural = "" if n_equal == 1 else "s"
        parts.append(f"{n_equal:,} {noun}{plural} equal")
    return "; ".join(parts)


def _type_text(value: Any) -> str:
    """Returns the name of a value's type, with its dtype if it has one."""
    return f"{type(value).__name__} {getattr(value, 'dtype', '')}".strip()


def _has_records(left_items: Sequence[Any], right_items: Sequence[Any]) -> bool:
    """Returns whether the first items have parts."""
    first_items = [*left_items[:1], *right_items[:1]]
    return any(_fields(item) is not None or _items(item) is not None for item in first_items)


def _describe_change(
    change: _Change, left_items: Sequence[Any], right_items: Sequence[Any], noun: str
) -> Iterator[str]:
    """Yields what happened to the items of a stretch, one text per item."""
    for before, after in zip(change.left, change.right, strict=False):
        parts = _changes(left_items[before], right_items[after])
        yield f"{noun} {before}: " + ", ".join(parts)
    for before in change.left[len(change.right) :]:
        yield f"{noun} {before} removed: {brief(left_items[before])}"
    for after in change.right[len(change.left) :]:
        yield f"{noun} {after} added: {brief(right_items[after])}"


def _changed_stretches(left: list[Hashable], right: list[Hashable]) -> list[_Change]:
    """Returns where two sequences differ, by as few changes as possible."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    n_after = 0
    while n_after < shorter - start and left[-1 - n_after] == right[-1 - n_after]:
        n_after += 1
    middle = _Change(range(start, len(left) - n_after), range(start, len(right) - n_after))
    in_place = []
    if len(middle.left) == len(middle.right):
        for position in middle.left:
            if left[position] != right[position]:
                here = range(position, position + 1)
                in_place.append(_Change(here, here))
        if len(in_place) <= 1:
            return in_place
    if max(len(middle.left), len(middle.right)) <= _MAX_ALIGNED:
        aligned = _align(left, right, middle)
        n_changed = sum(max(len(change.left), len(change.right)) for change in aligned)
        if not in_place or n_changed < len(in_place):
            return aligned
    return in_place or [middle]


def _align(left: list[Hashable], right: list[Hashable], within: _Change) -> list[_Change]:
    """Returns the stretches that differ if equal items are aligned, even if they moved."""
    left_part = left[within.left.start : within.left.stop]
    right_part = right[within.right.start : within.right.stop]
    matcher = SequenceMatcher(None, left_part, right_part, autojunk=False)
    changes = []
    for tag, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        if tag != "equal":
            changes.append(
                _Change(within.left[left_start:left_end], within.right[right_start:right_end])
            )
    return changes


def _changes(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Yields every part that differs: its path, what it was and what it is."""
    if same_content(left, right):
        return
    if type(left) is not type(right):
        yield f"{path} {brief(left)} → {brief(right)}".strip()
        return
    left_fields = _fields(left)
    right_fields = _fields(right)
    if left_fields is not None and right_fields is not None:
        yield from _changes_of_fields(left_fields, right_fields, path)
        return
    left_items = _items(left)
    right_items = _items(right)
    if left_items is not None and right_items is not None and len(left_items) == len(right_items):
        pairs = zip(left_items, right_items, strict=True)
        for position, (left_item, right_item) in enumerate(pairs):
            yield from _changes(left_item, right_item, f"{path}[{position}]")
    elif isinstance(left, set | frozenset):
        for member in sorted(left - right, key=repr):
            yield f"{path} without {brief(member)}".strip()
        for member in sorted(right - left, key=repr):
            yield f"{path} with {brief(member)}".strip()
    else:
        yield f"{path} {brief(left)} → {brief(right)}".strip()


def _changes_of_fields(
    left: Mapping[Any, Any], right: Mapping[Any, Any], path: str
) -> Iterator[str]:
    for key in {**left, **right}:
        name = f"{path}.{key}" if path else str(key)
        if key not in right:
            yield f"{name} removed ({brief(left[key])})"
        elif key not in left:
            yield f"{name} added ({brief(right[key])})"
        else:
            yield from _changes(left[key], right[key], name)


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """Returns the named parts of a dict, a record or an object with declared fields."""
    if isinstance(value, dict):
        return value
    if isinstance(value, np.void):
        names = value.dtype.names or ()
        return {name: value[name] for name in names} or None
    names = field_names(type(value)) or ()
    return {name: getattr(value, name) for name in names} or None


def _items(value: Any) -> Sequence[Any] | None:
    """Returns the numbered parts: the items of a list, the rows of an array or a data frame."""
    if isinstance(value, list | tuple) and field_names(type(value)) is None:
        return value
    if isinstance(value, np.ndarray):
        return value if value.ndim else None  # type: ignore[return-value]  # rows have positions
    classes = {(base.__module__.partition(".")[0], base.__name__) for base in type(value).__mro__}
    if classes.isdisjoint(_FRAMES) or len(value) > _MAX_ROWS:
        return None
    if ("polars", "DataFrame") in classes:
        return list(value.iter_rows(named=True))
    if ("pandas", "DataFrame") in classes:
        return list(value.to_dict("records"))
    return list(value.to_list())


def _keys(value: Any, items: Sequence[Any]) -> list[Hashable]:
    """Returns a key for each item that differs where items do."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        data = np.ascontiguousarray(value).tobytes()
        row_size = value[:1].nbytes
        if not row_size:
            return []
        return [data[start : start + row_size] for start in range(0, len(data), row_size)]
    keys: list[Hashable] = []
    for item in items:
        # The repr is much faster than a digest, and as good for values that it shows completely.
        text = safe_repr(item)
        omits = len(text) >= _MAX_REPR or any(sign in text for sign in _SIGNS_OF_OMISSION)
        keys.append(digest_or_none(item) or text if omits else text)
    return keys


def brief(value: Any) -> str:
    """Returns a value on one line; if it is long its beginning, its size and its digest."""
    is_number = isinstance(value, np.generic) and value.dtype.kind in "biuf"
    text = safe_repr(value.item() if is_number else value)
    text = " ".join(text.split())
    if len(text) <= _MAX_VALUE:
        return text
    beginning = text[: _MAX_VALUE // 2]
    size = f" of {len(value):,}" if hasattr(value, "__len__") else ""
    digest = (digest_or_none(value) or "unknown")[:12]
    return f"{beginning}… ({type(value).__name__}{size}, digest {digest})"


def digest_or_none(value: Any) -> str | None:
    """Returns the digest of a value; None if it has none."""
    try:
        return content_digest(value)
    except Undigestible:
        return None
