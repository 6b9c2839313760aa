"""Digests: short texts by which data and code are recognised in another process.

Equal things have equal digests, different things have different ones. Content is distinguished as
finely as a mechanism can see it: by type, dtype, bits, shape and order. 1, 1.0 and True differ, as
do a list and a tuple, 0.0 and -0.0, float32 and float64; nan is equal to itself; sets have no
order. Code is distinguished by what it does and what it uses
(`epsilometer.storage.canonical_encoding`).
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
from typing import Any, NamedTuple

import numpy as np

import epsilometer.storage.canonical_encoding as parts
from epsilometer.errors import InputError
from epsilometer.storage.canonical_encoding import Encode, Parts, tagged

# The length of a digest in bytes. With 128 bits, two different things never have the same digest by
# chance.
_DIGEST_BYTES = 16
# Bytes of a file that are read at once.
_FILE_CHUNK_BYTES = 1 << 20
# The protocol of pickle by which unknown objects are taken apart.
_PICKLE_PROTOCOL = 4

# The state of these changes with every draw, so it is not part of a mechanism.
GENERATORS = (
    random.Random,
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
)
# What these refer to may be gone at any time, so it is not content.
_WEAK_REFERENCES = (
    weakref.ReferenceType,
    weakref.WeakKeyDictionary,
    weakref.WeakValueDictionary,
    weakref.WeakSet,
)


class Undigestible(InputError):
    """Something has no content by which to recognise it: an open file, a connection, a lock."""


def content_digest(value: Any) -> str:
    """Returns the digest of an input's content. Classes are identified by name.

    Raises:
        Undigestible: it holds something without content by which to recognise it.
    """
    return _Encoder(reads_classes=False, reads_generators=True).digest(value)


def input_key(value: Any) -> str:
    """Returns the digest of an input and of the code of its classes, which a mechanism may call.

    Raises:
        Undigestible: it holds something without content by which to recognise it.
    """
    return _Encoder(reads_classes=True, reads_generators=True).digest(value)


def code_digest(value: Any) -> str:
    """Returns the digest of a mechanism's code and its dependencies.

    Random generators are identified by their type only.

    Raises:
        Undigestible: it holds something without content by which to recognise it.
    """
    return _Encoder(reads_classes=True, reads_generators=False).digest(value)


def files_digest(files: Iterable[Path]) -> str:
    """Returns the digest of the content of files, in this order; missing files count as well."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for path in files:
        if not path.is_file():
            digest.update(b"missing;")
            continue
        digest.update(f"file of {path.stat().st_size}:".encode())
        with path.open("rb") as file:
            while chunk := file.read(_FILE_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


class _Encoded(NamedTuple):
    """An object and its encoding.

    The object is kept alive: otherwise another object could get the same identity.
    """

    value: Any
    encoding: bytes


class _Encoder:
    """Encodes a value and everything to which it refers.

    Args:
        reads_classes: whether classes are identified by their code, or only by their names.
        reads_generators: whether random generators are identified by their state, or only by their
            type.
    """

    def __init__(self, *, reads_classes: bool, reads_generators: bool) -> None:
        self._reads_classes = reads_classes
        self._reads_generators = reads_generators
        # The objects that were encoded before, by identity.
        self._known: dict[int, _Encoded] = {}
        # The depths of the objects that are being encoded now, by identity.
        self._depths: dict[int, int] = {}

    def digest(self, value: Any) -> str:
        """Returns the digest of a value."""
        try:
            return _hashed([self.encode(value)])[1:].hex()
        except Undigestible:
            raise
        except RecursionError:
            raise Undigestible(
                f"a {_type_name(value)} is nested too deeply to be recognised again"
            ) from None
        except Exception as error:  # objects may raise anything
            raise Undigestible(
                f"a {_type_name(value)} cannot be recognised again: {error!r:.200}"
            ) from error

    def encode(self, value: Any) -> bytes:
        """Returns a value as self-delimiting bytes: a leaf as it is, anything else hashed."""
        encode_leaf = _LEAVES.get(type(value))
        if encode_leaf is not None:
            return encode_leaf(value)
        identity = id(value)
        if identity in self._known:
            return self._known[identity].encoding
        if identity in self._depths:  # the object contains itself
            return tagged("cycle", str(self._depths[identity]).encode())
        self._depths[identity] = len(self._depths)
        try:
            encoding = _hashed(self._parts(value))
        finally:
            del self._depths[identity]
        self._known[identity] = _Encoded(value=value, encoding=encoding)
        return encoding

    def _parts(self, value: Any) -> Iterator[bytes]:
        """Yields the encodings of the parts of a value, beginning with its type."""
        yield tagged("type", _type_name(value).encode())
        is_ignored_generator = isinstance(value, GENERATORS) and not self._reads_generators
        read_parts = _reader_of(value)
        if read_parts is not None:
            yield from read_parts(value, self.encode)
        elif isinstance(value, type):
            yield from self._parts_of_class(value)
        elif isinstance(value, _WEAK_REFERENCES) or is_ignored_generator:
            return  # the type is all that counts
        else:
            wrapped = parts.wrapped_function(value) if callable(value) else None
            if wrapped is not None:
                yield self.encode(wrapped)
            else:
                yield from self._parts_of_object(value)

    def _parts_of_class(self, value: type) -> Iterator[bytes]:
        if not self._reads_classes:
            yield self.encode(value.__module__)
            yield self.encode(value.__qualname__)
        elif issubclass(value, Enum):
            yield from map(self.encode, parts.name_and_version(value))
            members = {name: member.value for name, member in value.__members__.items()}
            yield from parts.mapping(members, self.encode)
        else:
            yield from parts.class_parts(value, self.encode)

    def _parts_of_object(self, value: Any) -> Iterator[bytes]:
        """Yields the parts into which pickle takes an object."""
        try:
            reduced = value.__reduce_ex__(_PICKLE_PROTOCOL)
        except Exception as error:
            raise Undigestible(
                f"a {_type_name(value)} has no content that could be recognised again "
                f"({error!r:.150})"
            ) from error
        yield self.encode(type(value))
        if isinstance(reduced, str):
            yield self.encode(reduced)
            return
        # The last three are optional.
        factory, arguments, state, list_items, dict_items = (*reduced, None, None, None)[:5]
        yield self.encode(getattr(factory, "__module__", ""))
        yield self.encode(getattr(factory, "__qualname__", repr(factory)))
        yield self.encode(arguments)
        if isinstance(state, dict) and all(isinstance(name, str) for name in state):
            # The order in which attributes were set does not count.
            state = dict(sorted(state.items()))
        yield self.encode(state)
        yield self.encode(None if list_items is None else list(list_items))
        yield self.encode(None if dict_items is None else list(dict_items))


def _hashed(pieces: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in pieces:
        digest.update(piece)
    return b"#" + digest.digest()


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _leaf(tag: str, content: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Returns a function that encodes a leaf: a tag, and the content as bytes."""
    return lambda value: tagged(tag, content(value))


def _leaf_by_repr(tag: str) -> Callable[[Any], bytes]:
    return _leaf(tag, lambda value: repr(value).encode())


# How to encode values without parts, by their exact type.
_LEAVES: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"None:",
    bool: lambda value: b"bool:1" if value else b"bool:0",
    # Hexadecimal, because Python refuses to write long numbers in decimal.
    int: _leaf("int", lambda value: f"{value:x}".encode()),
    float: _leaf("float", lambda value: struct.pack("<d", value)),
    complex: _leaf("complex", lambda value: struct.pack("<dd", value.real, value.imag)),
    str: _leaf("str", lambda value: value.encode("utf-8", "surrogatepass")),
    bytes: _leaf("bytes", bytes),
    bytearray: _leaf("bytearray", bytes),
    type(Ellipsis): lambda value: b"Ellipsis:",
    type(NotImplemented): lambda value: b"NotImplemented:",
    range: _leaf("range", lambda value: repr((value.start, value.stop, value.step)).encode()),
    Decimal: _leaf_by_repr("Decimal"),
    Fraction: _leaf_by_repr("Fraction"),
    datetime.date: _leaf_by_repr("date"),
    datetime.timedelta: _leaf_by_repr("timedelta"),
    uuid.UUID: _leaf_by_repr("UUID"),
    pathlib.PosixPath: _leaf_by_repr("PosixPath"),
    pathlib.PurePosixPath: _leaf_by_repr("PurePosixPath"),
}


def _set_parts(value: Iterable[Any], encode: Encode) -> Iterator[bytes]:
    """Yields the elements of a set, sorted by their encodings because a set has no order."""
    yield from sorted(map(encode, value))


def _slice_parts(value: slice, encode: Encode) -> Iterator[bytes]:
    yield encode(value.start)
    yield encode(value.stop)
    yield encode(value.step)


def _mapping_proxy_parts(
    value: types.MappingProxyType[Any, Any], encode: Encode
) -> Iterator[bytes]:
    yield encode(dict(value))


def _memoryview_parts(value: memoryview, encode: Encode) -> Iterator[bytes]:
    yield encode((value.format, value.shape, value.tobytes()))


def _method_parts(value: types.MethodType, encode: Encode) -> Iterator[bytes]:
    yield encode(value.__func__)
    yield encode(value.__self__)


def _numpy_scalar_parts(value: np.generic, encode: Encode) -> Iterator[bytes]:
    yield from parts.numpy_array(np.asarray(value), encode)


def _enum_member_parts(value: Enum, encode: Encode) -> Iterator[bytes]:
    yield encode(value.name)
    yield encode(value.value)


# How to read the parts of values of exactly these types.
_READERS_BY_TYPE: dict[type, Parts] = {
    list: parts.items,
    tuple: parts.items,
    dict: parts.mapping,
    set: _set_parts,
    frozenset: _set_parts,
    types.MappingProxyType: _mapping_proxy_parts,
    slice: _slice_parts,
    memoryview: _memoryview_parts,
    types.FunctionType: parts.function_parts,
    types.MethodType: _method_parts,
    types.BuiltinFunctionType: parts.builtin_parts,
    types.CodeType: parts.code_parts,
}
# How to read the parts of values of these types and of their subclasses.
_READERS_BY_BASE: list[tuple[type, Parts]] = [
    (np.generic, _numpy_scalar_parts),
    (np.ndarray, parts.numpy_array),
    (Enum, _enum_member_parts),
    (types.ModuleType, parts.module_parts),
]


def _reader_of(value: Any) -> Parts | None:
    """Returns the function that reads the parts of a value; None if there is no special one."""
    by_type = _READERS_BY_TYPE.get(type(value))
    if by_type is not None:
        return by_type
    for base, by_base in _READERS_BY_BASE:
        if isinstance(value, base):
            return by_base
    return parts.of_library(value)
