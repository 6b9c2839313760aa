"""Pairs as plain data. Inputs that JSON cannot hold are stored as a digest, never pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.inputs.pairs import Pair

# Inputs larger than this (as JSON text) are stored as a digest.
_MOST_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class StoredDigest:
    """Stands for an input that could not be stored: its type, a short text, and a digest."""

    kind: str
    text: str
    digest: str


def pair_to_dict(pair: Pair) -> dict[str, Any]:
    """Plain data; `pair_from_dict` is the inverse up to digests."""
    return {"left": _store(pair.left), "right": _store(pair.right)}


def pair_from_dict(data: Mapping[str, Any]) -> Pair:
    """The pair; a side that was not stored is a `StoredDigest`."""
    return Pair(_restore(data["left"]), _restore(data["right"]))


def pair_digest(pair: Pair) -> str:
    """A short text that tells pairs apart."""
    return hashlib.sha256(json.dumps(pair_to_dict(pair), sort_keys=True).encode()).hexdigest()[:16]


def is_complete(pair: Pair) -> bool:
    """Whether both inputs are there, so that a mechanism can be run on them."""
    return not isinstance(pair.left, StoredDigest) and not isinstance(pair.right, StoredDigest)


def _store(value: Any) -> dict[str, Any]:
    if isinstance(value, np.generic) and value.ndim == 0:
        value = value.item()
    if isinstance(value, StoredDigest):
        return {"type": value.kind, "text": value.text, "digest": value.digest}
    if _is_plain_array(value) and value.size <= _MOST_TEXT // 10:
        return {
            "array": [_plain(each) for each in value.ravel().tolist()],
            "shape": list(value.shape),
            "dtype": str(value.dtype),
        }
    if isinstance(value, tuple):
        value = list(value)
    try:
        text = json.dumps(value, allow_nan=False)
        if json.loads(text) == value and len(text) <= _MOST_TEXT:
            return {"json": value}
    except (TypeError, ValueError, RecursionError):
        pass
    return _digest(value)


def _is_plain_array(value: Any) -> bool:
    """Whether JSON numbers can hold every element."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.itemsize <= 8


def _plain(value: float | int | bool) -> float | int | bool | str:
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def _digest(value: Any) -> dict[str, Any]:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<repr raises {type(error).__name__}>"
    raw = value.tobytes() if _is_plain_array(value) else text.encode(errors="replace")
    return {"type": type(value).__name__, "text": text[:200], "digest": hashlib.sha256(raw).hexdigest()}


def _restore(data: Mapping[str, Any]) -> Any:
    if "json" in data:
        return data["json"]
    if "array" in data:
        flat = [float(each) if isinstance(each, str) else each for each in data["array"]]
        kind = np.dtype(str(data["dtype"]))
        if kind.kind not in "biuf":
            raise ValueError(f"a stored array cannot have the dtype {kind}")
        return np.array(flat, dtype=kind).reshape([int(each) for each in data["shape"]])
    return StoredDigest(str(data["type"]), str(data["text"]), str(data["digest"]))
