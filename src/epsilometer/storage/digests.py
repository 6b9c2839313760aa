"""Digests: a short text that is the same for the same thing, in every process, and another one for anything else.

Content is distinguished as finely as a mechanism can see it: by type, dtype, bits, shape and order. 1, 1.0 and True
differ, as do a list and a tuple, 0.0 and -0.0, float32 and float64; nan is equal to itself; sets have no order. Code
is distinguished by what it does and what it uses (`epsilometer.storage.parts`).
"""

import datetime
import hashlib
import pathlib
import random
import struct
import types
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import epsilometer.storage.parts as parts
from epsilometer.errors import InputError
from epsilometer.storage.parts import Parts, tagged

# 128 bits: two different things never have the same digest by chance.
_BYTES = 16
# Their state changes with every draw, so it is not part of what a mechanism is.
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_WEAK = (weakref.ReferenceType, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)


class Undigestible(InputError):
    """Something has no content by which to recognise it: an open file, a connection, a lock."""


def content_digest(value: Any) -> str:
    """Of an input: what it holds. Classes are identified by name.

    Raises:
        Undigestible: if it holds something without content by which to recognise it.
    """
    return _Walk(classes=False, states=True).digest(value)


def input_key(value: Any) -> str:
    """Of an input and of the code of its own classes, which a mechanism may call."""
    return _Walk(classes=True, states=True).digest(value)


def code_digest(value: Any) -> str:
    """Of a mechanism: its code, and what that uses. Random generators count by their type only."""
    return _Walk(classes=True, states=False).digest(value)


def files_digest(files: Iterable[Path]) -> str:
    """Of the content of files, in this order; missing ones count, too."""
    digest = hashlib.blake2b(digest_size=_BYTES)
    for file in files:
        if not file.is_file():
            digest.update(b"missing;")
            continue
        digest.update(f"file of {file.stat().st_size}:".encode())
        with file.open("rb") as opened:
            while piece := opened.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


class _Walk:
    """One walk over a value and all that it refers to.

    Args:
        classes: whether the code of classes counts, or only their names.
        states: whether the state of random generators counts.
    """

    def __init__(self, *, classes: bool, states: bool) -> None:
        self._classes, self._states = classes, states
        # Objects met before, by identity; kept alive, or another object could get the same identity.
        self._known: dict[int, tuple[Any, bytes]] = {}
        self._above: dict[int, int] = {}

    def digest(self, value: Any) -> str:
        """The digest of a value."""
        try:
            return _hashed([self.encode(value)])[1:].hex()
        except Undigestible:
            raise
        except RecursionError:
            raise Undigestible(f"a {_type_name(value)} is nested too deeply to be recognised again") from None
        except Exception as error:  # objects may raise anything
            raise Undigestible(f"a {_type_name(value)} cannot be recognised again: {error!r:.200}") from error

    def encode(self, value: Any) -> bytes:
        """A value as self-delimiting bytes: a leaf as it is, anything else hashed."""
        leaf = _LEAVES.get(type(value))
        if leaf is not None:
            return leaf(value)
        key = id(value)
        if key in self._known:
            return self._known[key][1]
        if key in self._above:
            return tagged("cycle", str(self._above[key]).encode())
        self._above[key] = len(self._above)
        try:
            encoded = _hashed(self._parts(value))
        finally:
            del self._above[key]
        self._known[key] = value, encoded
        return encoded

    def _parts(self, value: Any) -> Iterator[bytes]:
        yield tagged("type", _type_name(value).encode())
        look = _EXACT.get(type(value)) or next((look for kind, look in _KINDS if isinstance(value, kind)), None)
        look = look or parts.of_library(value)
        if look is not None:
            yield from look(value, self.encode)
        elif isinstance(value, type) and not self._classes:
            yield from map(self.encode, (value.__module__, value.__qualname__))
        elif isinstance(value, type) and issubclass(value, Enum):
            yield from map(self.encode, parts.name_and_version(value))
            yield from parts.mapping({name: each.value for name, each in value.__members__.items()}, self.encode)
        elif isinstance(value, type):
            yield from parts.class_parts(value, self.encode)
        elif isinstance(value, _WEAK) or (isinstance(value, GENERATORS) and not self._states):
            return
        elif callable(value) and (wrapped := parts.wrapped_function(value)) is not None:
            yield self.encode(wrapped)
        else:
            yield from self._taken_apart(value)

    def _taken_apart(self, value: Any) -> Iterator[bytes]:
        """An object as pickle would store it."""
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as error:
            what = f"a {_type_name(value)} has no content that could be recognised again"
            raise Undigestible(f"{what} ({error!r:.150})") from error
        yield self.encode(type(value))
        if isinstance(reduced, str):
            yield self.encode(reduced)
            return
        maker, arguments, state, values, pairs = (*reduced, None, None, None)[:5]
        yield from map(self.encode, (getattr(maker, "__module__", ""), getattr(maker, "__qualname__", repr(maker))))
        if isinstance(state, dict) and all(isinstance(name, str) for name in state):
            state = dict(sorted(state.items()))  # the order in which attributes were set does not count
        rest = (None if each is None else list(each) for each in (values, pairs))
        yield from map(self.encode, (arguments, state, *rest))


def _hashed(pieces: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=_BYTES)
    for piece in pieces:
        digest.update(piece)
    return b"#" + digest.digest()


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _leaf(tag: str, content: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: tagged(tag, content(value))


_BY_REPR = (Decimal, Fraction, datetime.date, datetime.timedelta, uuid.UUID, pathlib.PosixPath, pathlib.PurePosixPath)
_LEAVES: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"None:",
    bool: lambda value: b"bool:1" if value else b"bool:0",
    int: _leaf("int", lambda value: f"{value:x}".encode()),  # Python refuses the decimal digits of long ones
    float: _leaf("float", lambda value: struct.pack("<d", value)),
    complex: _leaf("complex", lambda value: struct.pack("<dd", value.real, value.imag)),
    str: _leaf("str", lambda value: value.encode("utf-8", "surrogatepass")),
    bytes: _leaf("bytes", bytes),
    bytearray: _leaf("bytearray", bytes),
    type(Ellipsis): lambda value: b"Ellipsis:",
    type(NotImplemented): lambda value: b"NotImplemented:",
    range: _leaf("range", lambda value: repr((value.start, value.stop, value.step)).encode()),
    **{kind: _leaf(kind.__name__, lambda value: repr(value).encode()) for kind in _BY_REPR},
}


# How to read types that have parts: exactly these types, and these with their subclasses.
_EXACT: dict[type, Parts] = {
    **dict.fromkeys((list, tuple), parts.items),
    dict: parts.mapping,
    **dict.fromkeys((set, frozenset), lambda value, encode: iter(sorted(map(encode, value)))),  # they have no order
    types.MappingProxyType: lambda value, encode: iter([encode(dict(value))]),
    slice: lambda value, encode: map(encode, (value.start, value.stop, value.step)),
    memoryview: lambda value, encode: iter([encode((value.format, value.shape, value.tobytes()))]),
    types.FunctionType: parts.function_parts,
    types.MethodType: lambda method, encode: map(encode, (method.__func__, method.__self__)),
    types.BuiltinFunctionType: parts.builtin_parts,
    types.CodeType: parts.code_parts,
}
_KINDS: list[tuple[type, Parts]] = [
    (np.generic, lambda value, encode: parts.numpy_array(np.asarray(value), encode)),
    (np.ndarray, parts.numpy_array),
    (Enum, lambda value, encode: map(encode, (value.name, value.value))),
    (types.ModuleType, parts.module_parts),
]
