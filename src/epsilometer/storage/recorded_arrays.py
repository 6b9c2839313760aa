"""Files of recorded outputs: arrays and columns, read in pieces, and which part belongs to which side."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError, MechanismError, MissingExtraError, shown
from epsilometer.outputs import Outputs, concatenate, read_outputs
from epsilometer.outputs.columns import EXACT
from epsilometer.outputs.reading_numbers import arrow_values
from epsilometer.storage.exchange import settle
from epsilometer.storage.recorded_texts import (
    SIDES,
    CsvRows,
    JsonLines,
    JsonList,
    ends_with_empty,
    has_side,
    json_values,
)

# Bytes per piece: large enough that reading is fast, small enough not to matter in memory.
_PIECE_BYTES = 4 << 20
_PIECE_ROWS = 1 << 16

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """One array: a .npy file, or a member of an .npz file.

    Attributes:
        path: the file.
        member: the array's name in an .npz file.
    """

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}:{self.member}"

    def count(self) -> int:
        """How many outputs it holds, from its header."""
        with self._open() as file:
            return self._header(file)[0][0]

    def dtype(self) -> np.dtype[Any]:
        """The type of its entries, from its header."""
        with self._open() as file:
            return self._header(file)[2]

    def pieces(self) -> Iterator[Array]:
        """Slices along axis 0, in order."""
        with self._open() as file:
            shape, by_column, kind = self._header(file)
            row = int(np.prod(shape[1:], dtype=np.int64)) * kind.itemsize
            rows = shape[0] if by_column else max(1, min(_PIECE_ROWS, _PIECE_BYTES // max(row, 1)))
            for start in range(0, shape[0], max(rows, 1)):
                n = min(rows, shape[0] - start)
                data = file.read(n * row)
                if len(data) < n * row:
                    raise InputError(f"{self} ends within output {start + len(data) // max(row, 1)} of {shape[0]}")
                flat = np.frombuffer(data, dtype=kind)
                yield flat.reshape((n, *shape[1:]), order="F" if by_column else "C")

    def _header(self, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_column, kind = read(file)
        except (ValueError, EOFError, OSError) as error:
            raise InputError(f"{self} cannot be read as a plain array: {error}") from error
        if kind.hasobject:
            raise InputError(f"{self} holds no plain numbers or texts, and nothing is unpickled")
        if not shape:
            raise InputError(f"{self} holds a single value; axis 0 must count outputs")
        return shape, by_column and len(shape) > 1, kind

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
            return
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.member}.npy") as file:
                yield file
        except (zipfile.BadZipFile, EOFError, KeyError, NotImplementedError) as error:
            raise InputError(f"{self} cannot be read: {error}") from error


def members(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path} cannot be read as plain arrays: {error}") from error


def settled(array: Array) -> Array | list[Any]:
    """Whole numbers as floats, if these are exact: how a file stores a number is not what a mechanism leaks."""
    if array.dtype.kind not in "iu":
        return array
    if array.dtype.itemsize < 8 or not array.size or (array.min() >= -EXACT and array.max() <= EXACT):
        return array.astype(np.float64)
    if array.ndim == 1:
        return [settle(each) for each in array.tolist()]
    mixed = array.astype(object)
    mixed[...] = np.vectorize(settle, otypes=[object])(mixed)
    return mixed


@dataclass(frozen=True, slots=True)
class ParquetColumns:
    """Columns of a .parquet file; a null is the missing value.

    Attributes:
        path: the file.
        names: the columns that make an output.
        side: keeps only the rows with this value in the column `side`; None keeps all.
        beside: the other of the two columns `left` and `right`, which may be longer.
    """

    path: Path
    names: tuple[str, ...]
    side: str | None = None
    beside: str | None = None

    def __str__(self) -> str:
        return f"{self.path} ({self.side or ', '.join(self.names)})"

    def count(self) -> int:
        """How many rows the file has, which is at least the number of outputs."""
        return int(_open_parquet(self.path).metadata.num_rows)

    def pieces(self) -> Iterator[Any]:
        """Batches of rows, in order."""
        wanted = [*self.names, "side"] if self.side else [*self.names]
        left, start = self._length(), 0
        for columns in self._batches(wanted):
            size = len(columns[wanted[0]])
            columns = {name: column.slice(0, max(left, 0)) for name, column in columns.items()}
            left -= size
            yield self._outputs(columns, start)
            start += size

    def _batches(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        file = _open_parquet(self.path)
        try:
            for batch in file.iter_batches(batch_size=_PIECE_ROWS, columns=list(names)):
                yield {name: batch.column(name) for name in names}
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path} cannot be read as parquet: {error}") from error

    def _outputs(self, columns: dict[str, Any], start: int) -> Any:
        if self.side:
            sides = columns.pop("side").to_pylist()
            for row, side in enumerate(sides):
                if side not in SIDES:
                    raise InputError(f"{self.path}, row {start + row + 1}: side is {shown(side)}, not left or right")
            kept = np.array([side == self.side for side in sides], dtype=np.bool_)
            columns = {name: column.filter(kept) for name, column in columns.items()}
        read = {name: _column(column) for name, column in columns.items()}
        return read[self.names[0]] if len(read) == 1 else read

    def _length(self) -> int:
        """How many rows are outputs: the shorter of two columns ends with nulls."""
        if self.beside is None:
            return self.count()
        n_rows = n_null = at_end = 0
        for batch in self._batches([self.names[0], self.beside]):
            null, other = (np.asarray(column.is_null().to_numpy(zero_copy_only=False)) for column in batch.values())
            there = np.flatnonzero(~null | other)
            n_rows, n_null = n_rows + len(null), n_null + int(null.sum())
            at_end = at_end + len(null) if not len(there) else len(null) - 1 - int(there[-1])
        if at_end and (at_end == n_rows or n_null > at_end):
            raise InputError(f"{self.path}, row {n_rows - at_end + 1}: {ends_with_empty(self.names[0])}")
        return n_rows - at_end


def parquet_names(path: Path) -> list[str]:
    """The names of a file's columns."""
    names = [str(name) for name in _open_parquet(path).schema_arrow.names]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two columns of one name: {', '.join(names)}; rename one")
    return names


def _open_parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", f"reading {path}") from error
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise InputError(f"{path} cannot be read as parquet: {error}") from error


def _column(column: Any) -> Array | list[Any]:
    values = arrow_values(column)
    return settled(values) if isinstance(values, np.ndarray) else [settle(each) for each in values]


_KINDS = ".npy, .npz, .csv, .jsonl, .json and .parquet"


class Source(Protocol):
    """Where recorded outputs are."""

    @property
    def path(self) -> Path:
        """The file."""

    def count(self) -> int | None:
        """How many there are at most; None if unknown before reading."""

    def pieces(self) -> Iterator[Any]:
        """Batches of outputs, in order."""


@dataclass(frozen=True, slots=True)
class RecordedSide:
    """The recorded outputs of one input, read only as far as they are needed.

    Attributes:
        source: the file, or a part of it.
        exact: whether `record=` wrote them, so that they come back exactly; otherwise whole numbers are floats.
    """

    source: Source
    exact: bool = False

    def __str__(self) -> str:
        return str(self.source)

    def pieces(self) -> Iterator[Outputs]:
        """Outputs in the order of the file, a few thousand at a time."""
        start = 0
        for piece in self.source.pieces():
            if isinstance(piece, np.ndarray) and not self.exact:
                piece = settled(piece)
            outputs = piece if isinstance(piece, Outputs) else self._read(piece, start)
            yield outputs
            start += len(outputs)

    def _read(self, piece: Any, start: int) -> Outputs:
        try:
            return read_outputs(piece)
        except MechanismError as error:
            columns = piece if isinstance(piece, dict) else {"": piece}
            for row in range(len(next(iter(columns.values())))):
                one = {name: values[row : row + 1] for name, values in columns.items()}
                try:
                    read_outputs(one if isinstance(piece, dict) else one[""])
                except MechanismError as reason:
                    what = str(reason).replace("output 0", "it", 1)
                    raise InputError(f"{self}, output {start + row + 1}: {what}") from error
            raise

    def outputs(self) -> Outputs:
        """All of them, as columns in memory."""
        return concatenate(list(self.pieces()))


def both_sides(path: Path, header: bool | None) -> list[RecordedSide] | None:
    """The two sides of one file; None if it holds only one."""
    sources: list[Source] | None = None
    if path.suffix.lower() == ".npz" and {"left", "right"} <= set(members(path)):
        sources = [ArrayFile(path, side) for side in ("left", "right")]
    elif path.suffix.lower() == ".jsonl" and has_side(next(json_values(path), (0, None))[1]):
        sources = [JsonLines(path, side) for side in ("left", "right")]
    elif path.suffix.lower() == ".csv" and _has_sides(CsvRows(path, header).names() or []):
        sources = [CsvRows(path, header, side) for side in ("left", "right")]
    elif path.suffix.lower() == ".parquet" and _has_sides(names := parquet_names(path)):
        sources = _parquet_sides(path, names)
    return None if sources is None else [RecordedSide(source) for source in sources]


def _parquet_sides(path: Path, names: Sequence[str]) -> list[Source]:
    if "side" not in names:
        return [ParquetColumns(path, (one,), beside=other) for one, other in (("left", "right"), ("right", "left"))]
    rest = tuple(name for name in names if name != "side")
    return [ParquetColumns(path, rest, side) for side in ("left", "right")]


def _has_sides(names: Sequence[str]) -> bool:
    return ("side" in names and len(names) > 1) or sorted(names) == ["left", "right"]


def one_side(place: str | os.PathLike[str], header: bool | None) -> RecordedSide:
    """The outputs of a file that holds one side: `file.npz:name` for one of several arrays."""
    path, name = split_place(place)
    kind = check_file(path).suffix.lower()
    if kind == ".npy":
        return RecordedSide(ArrayFile(path))
    if kind == ".npz":
        return RecordedSide(ArrayFile(path, _member(path, name)))
    if kind == ".csv":
        return RecordedSide(CsvRows(path, header))
    if kind == ".jsonl":
        return RecordedSide(JsonLines(path))
    if kind == ".json":
        return RecordedSide(JsonList(path))
    if kind == ".parquet":
        return RecordedSide(ParquetColumns(path, tuple(parquet_names(path))))
    raise InputError(f"{path}: recorded outputs are read from {_KINDS} files")


def _member(path: Path, name: str | None) -> str:
    names = members(path)
    if name is None and len(names) != 1:
        raise InputError(f"{path} holds {len(names)} arrays ({', '.join(names)}); say which: {path}:NAME")
    if name is not None and name not in names:
        raise InputError(f"{path} has no array {name!r}; it has {', '.join(names)}")
    return names[0] if name is None else name


def split_place(place: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file, and the name of the array in it if there is one."""
    before, colon, name = os.fspath(place).rpartition(":")
    return (Path(before), name) if colon and before.lower().endswith(".npz") else (Path(place), None)


def check_file(place: str | os.PathLike[str]) -> Path:
    """The file, or an InputError if there is none."""
    path = split_place(place)[0]
    if not path.is_file():
        raise InputError(f"{path} is {'a folder' if path.is_dir() else 'missing'}; a file is needed")
    return path
