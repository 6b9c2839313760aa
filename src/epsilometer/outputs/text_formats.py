"""Formats of texts: each takes a text apart into named fields, or declines it.

A field is what a format finds under a key: under `=total` the value of `total` in a JSON text,
under `#items` how many items a list has there, under `2` the third token or the third entry of a
line. The text of a field may have a format of its own: `12.5kg` a number and its unit, `3|1|4` a
list. Formats are plain data; none of them raises, whatever the text.
"""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from epsilometer.outputs.reading_numbers import label_from_data, label_to_data
from epsilometer.outputs.text_values import MAX_TOKENS, WORD, Tokens, tokens_of

# Characters of a text that are read; longer ones keep only their length and their ends.
MAX_CHARACTERS = 1 << 14
# Fields of one text that are kept.
_MAX_FIELDS = 256
# The key of the text itself.
WHOLE = ""
# Separators of the entries of a line, the least ambiguous first.
SEPARATORS = ("\t", "|", ";", ",")
# Entries of a list that are fields.
_MAX_ENTRIES = 16
# The key of the number of entries of a list.
N_ENTRIES = "#"
# Stands between the key of a field and the key of a part of it.
INSIDE = " / "

# What a format finds in a text: texts, numbers and truth values by their keys.
FieldValue = str | float | bool
Fields = dict[str, FieldValue]


class ParsedText:
    """A text with everything that formats ask about it, each computed once.

    Args:
        text: any text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_long = len(text) > MAX_CHARACTERS
        self._tokens: dict[bool, Tokens | None] = {}

    def tokens(self, grouped: bool) -> Tokens | None:
        """The text's tokens; None if there are none, or too many."""
        if grouped not in self._tokens:
            self._tokens[grouped] = None if self.is_long else tokens_of(self.text, grouped)
        return self._tokens[grouped]

    @cached_property
    def json_fields(self) -> Fields | None:
        """The leaves of a JSON object or list; None for any other text."""
        return None if self.is_long else _fields_of_json(self.text)

    @cached_property
    def pairs(self) -> Fields | None:
        """The values of `key=value` pairs; None for any other text."""
        return None if self.is_long else _fields_of_pairs(self.text)

    def entries(self, separator: str) -> list[str] | None:
        """The entries of a line; None if the text is no single line."""
        if self.is_long or separator not in self.text:
            return None
        line = self.text.removesuffix("\n").removesuffix("\r")
        if "\n" in line or "\r" in line or "\0" in line:
            return None
        if '"' not in line:
            return line.split(separator)
        try:
            return next(csv.reader([line], delimiter=separator))
        except (csv.Error, StopIteration):
            return None


def _fields_of_json(text: str) -> Fields | None:
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return None
    try:
        # Integers of any length become floats: Python refuses very long ones.
        value = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return None
    fields: Fields = {}
    pending: list[tuple[str, Any]] = [("", value)]
    while pending and len(fields) < _MAX_FIELDS:
        path, part = pending.pop()
        if isinstance(part, dict):
            children = [(f"{path}.{key}" if path else key, child) for key, child in part.items()]
            pending += children[:_MAX_FIELDS][::-1]
        elif isinstance(part, list):
            fields[f"#{path}"] = float(len(part))
            children = [(f"{path}[{place}]", child) for place, child in enumerate(part)]
            pending += children[:_MAX_FIELDS][::-1]
        elif part is not None:
            fields[f"={path}"] = part
    return fields


# The key of a pair, up to its value.
_KEY = r"(?P<key>[^\W\d][\w.\-]*+)\s*+[=:]"
_NEXT_KEY = r"[^\W\d][\w.\-]*+\s*+[=:]"
# A quoted value ends at its quote; any other one at a space or at the separator before the next
# key: `a=1,2,b=3` holds the list `1,2`.
_PAIR = re.compile(
    rf"\s*+{_KEY}\s*+"
    r"(?P<value>\"[^\"]*+\"|'[^']*+'"
    rf"|[^\s,;&|\"']*+(?:[,;&|](?!{_NEXT_KEY})[^\s,;&|\"']++)*+)"
    r"\s*+(?:[,;&|]|$|(?<=\s))"
)


def _fields_of_pairs(text: str) -> Fields | None:
    fields: Fields = {}
    end = 0
    while end < len(text):
        match = _PAIR.match(text, end)
        if match is None or len(fields) == _MAX_FIELDS:
            return None
        value = match["value"]
        if value[:1] in ("'", '"'):
            value = value[1:-1]
        fields[f"={match['key']}"] = value
        end = match.end()
    return fields or None


# --- formats as plain data


@dataclass(frozen=True, slots=True)
class Format:
    """How a text is taken apart.

    Attributes:
        kind: "json", "pairs", "line", "list", "tokens" or "text".
        separator: of the entries of a line or list.
        size: how many entries a line has.
        grouped: whether commas between thousands belong to numbers, of tokens.
        kinds: of the tokens, one letter each.
        literals: what stands before each token, and after the last one.
        words: the tokens that are the same in every text, None for those that vary.
        nested: the formats of fields that are taken apart in turn, by their keys.
    """

    kind: str
    separator: str = ""
    size: int = 0
    grouped: bool = False
    kinds: str = ""
    literals: tuple[str, ...] = ()
    words: tuple[str | None, ...] = ()
    nested: tuple[tuple[str, "Format"], ...] = ()

    def fields(self, parsed: ParsedText) -> Fields | None:
        """Returns the fields of a text; None if it does not have this format."""
        fields = _FIELDS[self.kind](self, parsed)
        if fields is None or not self.nested:
            return fields
        parts: Fields = {}
        for key, form in self.nested:
            value = fields.get(key)
            inner = form.fields(ParsedText(value)) if isinstance(value, str) else None
            for inner_key, part in (inner or {}).items():
                parts[f"{key}{INSIDE}{inner_key}"] = part
        return fields | parts

    def format_of(self, key: str) -> "Format | None":
        """Returns the format of a field; None if it is not taken apart."""
        return dict(self.nested).get(key)

    @property
    def is_of_words(self) -> bool:
        """Whether all varying tokens are words."""
        varying = [kind for kind, word in zip(self.kinds, self.words, strict=True) if word is None]
        return set(varying) <= {WORD}

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `format_from_dict` is the inverse."""
        data = self._own_data()
        if self.nested:
            data["nested"] = [[label_to_data(key), form.to_dict()] for key, form in self.nested]
        return data

    def _own_data(self) -> dict[str, Any]:
        """Returns everything but the formats of fields."""
        if self.kind == "line":
            return {"kind": "line", "separator": self.separator, "size": self.size}
        if self.kind == "list":
            return {"kind": "list", "separator": self.separator}
        if self.kind == "tokens":
            return {
                "kind": "tokens",
                "grouped": self.grouped,
                "kinds": self.kinds,
                "literals": [label_to_data(literal) for literal in self.literals],
                "words": [None if word is None else label_to_data(word) for word in self.words],
            }
        return {"kind": self.kind}

    @property
    def example(self) -> str:
        """The text with its varying tokens replaced, such as `rows=# total=#`."""
        if self.kind == "json":
            return "JSON"
        if self.kind == "pairs":
            return "key=value"
        if self.kind == "line":
            return self.separator.join("#" * self.size)
        pieces = []
        for literal, kind, word in zip(self.literals, self.kinds, self.words, strict=False):
            pieces.append(literal + (word or ("…" if kind == WORD else "#")))
        return "".join([*pieces, *self.literals[-1:]])


def _text_fields(form: Format, parsed: ParsedText) -> Fields | None:
    return {WHOLE: parsed.text}


def _json_fields(form: Format, parsed: ParsedText) -> Fields | None:
    return parsed.json_fields


def _pair_fields(form: Format, parsed: ParsedText) -> Fields | None:
    return parsed.pairs


def _line_fields(form: Format, parsed: ParsedText) -> Fields | None:
    entries = parsed.entries(form.separator)
    if entries is None or len(entries) != form.size:
        return None
    return {str(place): entry for place, entry in enumerate(entries)}


def _list_fields(form: Format, parsed: ParsedText) -> Fields | None:
    if not parsed.text or parsed.is_long:
        return None
    entries = parsed.entries(form.separator) or [parsed.text]
    fields: Fields = {N_ENTRIES: float(len(entries))}
    fields |= {str(place): entry for place, entry in enumerate(entries[:_MAX_ENTRIES])}
    return fields


def _token_fields(form: Format, parsed: ParsedText) -> Fields | None:
    tokens = parsed.tokens(form.grouped)
    if tokens is None or tokens.kinds != form.kinds or tokens.literals != form.literals:
        return None
    fields: Fields = {}
    for place, (value, word) in enumerate(zip(tokens.values, form.words, strict=True)):
        if word is None:
            fields[str(place)] = value
        elif word != value:
            return None
    return fields


_FIELDS: dict[str, Callable[[Format, ParsedText], Fields | None]] = {
    "text": _text_fields,
    "json": _json_fields,
    "pairs": _pair_fields,
    "line": _line_fields,
    "list": _list_fields,
    "tokens": _token_fields,
}


# Formats that a field may have.
_NESTED_KINDS = ("list", "tokens")


def format_from_dict(data: dict[str, Any]) -> Format:
    """Inverse of `Format.to_dict`; refuses data that no format could have written."""
    form = _format_without_nested(data)
    stored = data.get("nested", [])
    nested = tuple((label_from_data(key), _format_without_nested(inner)) for key, inner in stored)
    if any(
        inner.kind not in _NESTED_KINDS or "nested" in own
        for (_, inner), (_, own) in zip(nested, stored, strict=True)
    ):
        raise ValueError("a field of a format of texts has a format that no field has")
    return replace(form, nested=nested)


def _format_without_nested(data: dict[str, Any]) -> Format:
    kind = data["kind"]
    if kind in ("text", "json", "pairs"):
        return Format(kind)
    if kind == "list" and data["separator"] in SEPARATORS:
        return Format(kind, separator=data["separator"])
    if kind == "line":
        separator = data["separator"]
        size = data["size"]
        if separator not in SEPARATORS or type(size) is not int or not 1 < size <= MAX_CHARACTERS:
            raise ValueError("a line of texts has an unknown separator or number of entries")
        return Format(kind, separator=separator, size=size)
    if kind != "tokens":
        raise ValueError(f"a format of texts of the unknown kind {kind!r:.40}")
    kinds = data["kinds"]
    literals = tuple(label_from_data(literal) for literal in data["literals"])
    words = tuple(None if word is None else label_from_data(word) for word in data["words"])
    is_fitting = isinstance(kinds, str) and len(literals) - 1 == len(words) == len(kinds)
    if not is_fitting or not 0 < len(kinds) <= MAX_TOKENS or type(data["grouped"]) is not bool:
        raise ValueError("the tokens of a format of texts do not fit together")
    return Format(kind, grouped=data["grouped"], kinds=kinds, literals=literals, words=words)
