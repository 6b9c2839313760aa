"""Domains as text and as plain data, for the command line and for files.

As text: "number:0:1", "integer:0:99", "category:red,green", "vector:4:0:1", "queries:5:0:10:1"; parts at the end may be
left out where the domain has a default. As data: {"kind": "vector", "size": 4, "low": 0, "high": 1}; tables are only
known as data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from epsilometer.errors import InputError
from epsilometer.inputs.domains.answers import Queries
from epsilometer.inputs.domains.base import Domain
from epsilometer.inputs.domains.numbers import Category, Integer, Number
from epsilometer.inputs.domains.records import Table, Vector

_KINDS: dict[str, Any] = {
    "number": Number,
    "integer": Integer,
    "category": Category,
    "vector": Vector,
    "queries": Queries,
    "table": Table,
}
# What the parts of a text mean, in order.
_PARTS = {
    "number": ("low", "high", "sensitivity"),
    "integer": ("low", "high", "sensitivity"),
    "vector": ("size", "low", "high", "sensitivity"),
    "queries": ("count", "low", "high", "sensitivity"),
}


def read_domain(given: object) -> Domain:
    """The domain that a text or plain data describes."""
    if isinstance(given, str):
        return _from_data(_parse_json(given) if given.lstrip().startswith("{") else _parse_text(given))
    if isinstance(given, Mapping):
        return _from_data(given)
    raise InputError(f"domain={given!r:.100} must be a text like 'vector:4:0:1' or a table with a kind")


def _parse_json(text: str) -> Mapping[str, Any]:
    try:
        data: Mapping[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"domain={text!r:.100} is not JSON: {error}") from error
    return data


def _parse_text(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(":")
    if kind == "category":
        return {"kind": kind, "values": [_value(part) for part in rest.split(",")]}
    names, parts = _PARTS.get(kind, ()), rest.split(":") if rest else []
    if kind in _PARTS and len(parts) > len(names):
        raise InputError(f"domain={text!r} has too many parts: write {':'.join((kind, *map(str.upper, names)))}")
    return {"kind": kind, **{name: _number(part, text) for name, part in zip(names, parts, strict=False)}}


def _number(part: str, text: str) -> float | int:
    try:
        return int(part)
    except ValueError:
        pass
    try:
        return float(part)
    except ValueError:
        raise InputError(f"domain={text!r}: {part!r} is not a number") from None


def _value(part: str) -> Any:
    """A JSON value, or else the text itself."""
    try:
        return json.loads(part)
    except json.JSONDecodeError:
        return part


def _from_data(data: Mapping[str, Any]) -> Domain:
    settings = dict(data)
    kind = settings.pop("kind", None)
    if kind not in _KINDS:
        close = get_close_matches(str(kind), _KINDS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KINDS)}"
        raise InputError(f"domain: the kind {kind!r} is unknown; {hint}")
    if kind == "table" and isinstance(settings.get("columns"), Mapping):
        settings["columns"] = {name: read_domain(column) for name, column in settings["columns"].items()}
    try:
        domain: Domain = _KINDS[kind](**settings)
    except TypeError as error:  # an argument is missing, or unknown
        raise InputError(f"domain of kind {kind!r}: {str(error).partition('() ')[2] or error}") from error
    return domain
