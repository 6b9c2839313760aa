"""The difference of two inputs in words: "record 19: age 39 → 99; 19 records equal"."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from epsilometer.errors import safe_repr
from epsilometer.inputs.copying import same_content
from epsilometer.outputs.foreign import field_names
from epsilometer.storage.digests import Undigestible, content_digest

# Changes that are named one by one; further ones are counted.
_MOST_CHANGES = 3
# Characters of one value.
_MOST_VALUE = 80
# Rows of data frames that are compared one by one, and items that are compared each with each.
_MOST_ROWS, _MOST_ALIGNED = 200_000, 1_000
_FRAMES = {(library, name) for library in ("pandas", "polars") for name in ("DataFrame", "Series")}


def difference(left: Any, right: Any) -> str:
    """What distinguishes right from left, for people.

    Args:
        left: numbers, texts, lists, dicts, sets, arrays, records, data frames, nested or not.
        right: likewise.
    """
    if same_content(left, right):
        return "none: the inputs are equal"
    kinds = [f"{type(side).__name__} {getattr(side, 'dtype', '')}".strip() for side in (left, right)]
    if kinds[0] != kinds[1] and _items(left) is not None:
        return f"{brief(left)} → {brief(right)} ({kinds[0]} → {kinds[1]})"
    old, new = (_items(side) for side in (left, right))
    if old is None or new is None:
        told = list(_changes(left, right)) or ["the order of the keys"]
        named = [_fields(side) or {} for side in (left, right)]
        equal = sum(key in named[1] and same_content(each, named[1][key]) for key, each in named[0].items())
        noun, most = "field", _MOST_CHANGES
    else:
        first = [each for side in (old, new) for each in side[:1]]
        noun = "record" if any(_fields(each) is not None or _items(each) is not None for each in first) else "item"
        keys = _keys(left, old), _keys(right, new)
        changes = _matched(*keys)
        told = [text for each in changes for text in _record_texts(*each, old, new, noun)]
        equal, most = len(old) - sum(len(stretch) for stretch, _ in changes), _MOST_CHANGES
        if Counter(keys[0]) == Counter(keys[1]):
            told, most = [f"the same {noun}s in another order", *told], 2
    shown = told[:most] + ([f"{len(told) - most:,} more"] if len(told) > most else [])
    return "; ".join([*shown, *([f"{equal:,} {noun}{'' if equal == 1 else 's'} equal"] if equal > 0 else [])])


def _record_texts(old: range, new: range, left: Any, right: Any, noun: str) -> Iterator[str]:
    """What happened to the records at the places `old` of the one, `new` of the other."""
    for before, after in zip(old, new, strict=False):
        yield f"{noun} {before}: " + ", ".join(_changes(left[before], right[after]))
    for before in old[len(new) :]:
        yield f"{noun} {before} removed: {brief(left[before])}"
    for after in new[len(old) :]:
        yield f"{noun} {after} added: {brief(right[after])}"


def _matched(left: list[Hashable], right: list[Hashable]) -> list[tuple[range, range]]:
    """Where two sequences differ: stretches of the one that stand in the place of stretches of the other."""
    shorter = min(len(left), len(right))
    start = next((place for place in range(shorter) if left[place] != right[place]), shorter)
    end = next((back for back in range(shorter - start) if left[-1 - back] != right[-1 - back]), shorter - start)
    old, new, in_place = range(start, len(left) - end), range(start, len(right) - end), []
    if len(old) == len(new):
        in_place = [(range(at, at + 1), range(at, at + 1)) for at in old if left[at] != right[at]]
        if len(in_place) <= 1:
            return in_place
    if max(len(old), len(new)) <= _MOST_ALIGNED:
        found = SequenceMatcher(None, left[start : old.stop], right[start : new.stop], autojunk=False).get_opcodes()
        moved = [(old[a:b], new[c:d]) for how, a, b, c, d in found if how != "equal"]
        if not in_place or sum(max(map(len, each)) for each in moved) < len(in_place):
            return moved
    return in_place or [(old, new)]


def _changes(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Every part that differs: its path, what it was and what it is."""
    if same_content(left, right):
        return
    alike = type(left) is type(right)
    old, new = (_fields(side) if alike else None for side in (left, right))
    before, after = (_items(side) if alike else None for side in (left, right))
    if old is not None and new is not None:
        for key in {**old, **new}:
            name = f"{path}.{key}" if path else str(key)
            if key not in new:
                yield f"{name} removed ({brief(old[key])})"
            elif key not in old:
                yield f"{name} added ({brief(new[key])})"
            else:
                yield from _changes(old[key], new[key], name)
    elif before is not None and after is not None and len(before) == len(after):
        for place, pair in enumerate(zip(before, after, strict=True)):
            yield from _changes(*pair, f"{path}[{place}]")
    elif alike and isinstance(left, set | frozenset):
        yield from (f"{path} without {brief(each)}".strip() for each in sorted(left - right, key=repr))
        yield from (f"{path} with {brief(each)}".strip() for each in sorted(right - left, key=repr))
    else:
        yield f"{path} {brief(left)} → {brief(right)}".strip()


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """What has a name in a dict, a record or an object with declared fields."""
    if isinstance(value, dict):
        return value
    names = field_names(type(value)) if not isinstance(value, np.void) else value.dtype.names
    return {name: value[name] if isinstance(value, np.void) else getattr(value, name) for name in names or ()} or None


def _items(value: Any) -> Sequence[Any] | None:
    """What has a place: the items of a list, the rows of an array or a data frame."""
    if isinstance(value, list | tuple) and field_names(type(value)) is None:
        return value
    if isinstance(value, np.ndarray):
        return value if value.ndim else None  # type: ignore[return-value]  # rows have a length and places
    names = {(each.__module__.partition(".")[0], each.__name__) for each in type(value).__mro__}
    if not names & _FRAMES or len(value) > _MOST_ROWS:
        return None
    if ("polars", "DataFrame") in names:
        return list(value.iter_rows(named=True))
    return list(value.to_dict("records")) if ("pandas", "DataFrame") in names else list(value.to_list())


def _keys(value: Any, items: Sequence[Any]) -> list[Hashable]:
    """Something for each item that differs where items do."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        data, size = np.ascontiguousarray(value).tobytes(), value[:1].nbytes
        return [data[start : start + size] for start in range(0, len(data), size)] if size else []
    keys: list[Hashable] = []
    for each in items:
        # The repr is much faster than a digest, and as good for values of which it shows everything.
        text = safe_repr(each)
        shows_all = len(text) < 1_000 and not any(sign in text for sign in ("array", "...", "<", "\n"))
        keys.append(text if shows_all else (digest_or_none(each) or text))
    return keys


def brief(value: Any) -> str:
    """A value on one line; if it is long its beginning, its size and its digest."""
    text = safe_repr(value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else value)
    text = " ".join(text.split())
    if len(text) <= _MOST_VALUE:
        return text
    size = f" of {len(value):,}" if hasattr(value, "__len__") else ""
    known = f", digest {(digest_or_none(value) or 'unknown')[:12]}"
    return f"{text[: _MOST_VALUE // 2]}… ({type(value).__name__}{size}{known})"


def digest_or_none(value: Any) -> str | None:
    """The digest of a value, if it has one."""
    try:
        return content_digest(value)
    except Undigestible:
        return None
