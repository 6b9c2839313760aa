"""Files of recorded outputs: arrays and columns, read in pieces, and which part belongs to which side."""

import math
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError, MechanismError, MissingExtraError, shown
from epsilometer.outputs import Labels, Numbers, Outputs, concatenate, read_outputs
from epsilometer.outputs.reading_numbers import arrow_values
from epsilometer.storage.exchange import (
    UNSOUND,
    first_line,
    memory_share,
    reading,
    settle,
    settled,
    too_large,
)
from epsilometer.storage.recorded_texts import SIDES, ends_with_empty

# Bytes per piece: large enough that reading is fast, small enough not to matter in memory.
_PIECE_BYTES = 4 << 20
_PIECE_ROWS = 1 << 16
# Outputs without content: a header can promise any number of them at no cost.
_MOST_EMPTY = 1 << 24


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

    def check(self, most: int, is_whole: bool = False) -> None:
        """Refuses what promises more than it holds, or needs more than `most` bytes at once, before any is read."""
        with self._open() as file:
            shape, by_column, kind = self._header(file)
            size = self.path.stat().st_size
            read = file.tell()
            if self.member is not None:
                with zipfile.ZipFile(self.path) as archive:
                    size = archive.getinfo(f"{self.member}.npy").file_size
            promised = math.prod(shape) * kind.itemsize
            there = size - read
        if promised > there:
            what = f"an array of {promised} bytes, shape {shown(shape)}"
            raise InputError(f"{self} promises {what}, and has only {there}")
        if (size := promised if by_column or is_whole else promised // max(shape[0], 1)) > most:
            raise too_large(
                self, f"outputs of {size} bytes" if is_whole else f"{size} bytes in one piece", most
            )

    def whole(self) -> Array:
        """The array, of any shape, as an input of a mechanism."""
        most = memory_share()
        with self._open() as file:
            shape, by_column, kind = self._header(file, is_batch=False)
            if (size := math.prod(shape) * kind.itemsize) > most:
                raise too_large(self, f"{size} bytes", most)
            data = file.read(size)
        if len(data) < size:
            raise InputError(
                f"{self} promises an array of {size} bytes, shape {shown(shape)}, and has {len(data)}"
            )
        return self._array(data, shape, by_column, kind).copy()

    def pieces(self) -> Iterator[Array]:
        """Slices along axis 0, in order."""
        with self._open() as file:
            shape, by_column, kind = self._header(file)
            row = math.prod(shape[1:]) * kind.itemsize
            rows = shape[0] if by_column else max(1, min(_PIECE_ROWS, _PIECE_BYTES // max(row, 1)))
            for start in range(0, shape[0], max(rows, 1)):
                n = min(rows, shape[0] - start)
                data = file.read(n * row)
                if len(data) < n * row:
                    raise InputError(
                        f"{self} ends within output {start + len(data) // max(row, 1)} of {shape[0]}"
                    )
                yield self._array(data, (n, *shape[1:]), by_column, kind)

    def _array(
        self, data: bytes, shape: tuple[int, ...], by_column: bool, kind: np.dtype[Any]
    ) -> Array:
        flat = np.frombuffer(data, dtype=kind)
        _check_letters(flat, self)
        return flat.reshape(shape, order="F" if by_column else "C")

    def _header(
        self, file: IO[bytes], is_batch: bool = True
    ) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        with reading(f"{self} cannot be read as a plain array"):
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, by_column, kind = read(file)
        if kind.hasobject:
            raise InputError(f"{self} holds no plain numbers or texts, and nothing is unpickled")
        if is_batch and not shape:
            raise InputError(f"{self} holds a single value; axis 0 must count outputs")
        if not all(isinstance(size, int) and 0 <= size < 1 << 62 for size in shape):
            raise InputError(f"{self} cannot be an array of the shape {shown(shape)}")
        if not kind.itemsize or (is_batch and 0 in shape[1:] and shape[0] > _MOST_EMPTY):
            raise InputError(
                f"{self} holds outputs without content: shape {shown(shape)}, entries of {kind}"
            )
        return shape, by_column and len(shape) > 1, kind

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
            return
        name = f"{self.member}.npy"
        with (
            reading(f"{self} cannot be read"),
            zipfile.ZipFile(self.path) as archive,
            archive.open(name) as file,
        ):
            yield file


def _check_letters(flat: Array, source: ArrayFile) -> None:
    """Refuses texts with letters that do not exist, on which Python itself would stumble."""
    for name in flat.dtype.names or ():
        _check_letters(flat[name], source)
    if flat.dtype.kind == "U" and flat.size:
        codes = np.ascontiguousarray(flat).view(
            np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder)
        )
        if codes.max() > sys.maxunicode:
            raise InputError(
                f"{source} holds a text with the letter {codes.max():#x}, which does not exist"
            )


def members(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    with reading(f"{path} cannot be read as plain arrays"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two arrays of one name: {shown(names)}")
    return names


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
        left = self._length()
        start = 0
        for columns in self._batches(wanted):
            size = len(columns[wanted[0]])
            columns = {name: column.slice(0, max(left, 0)) for name, column in columns.items()}
            left -= size
            yield self._outputs(columns, start)
            start += size

    def _batches(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        file = _open_parquet(self.path)
        with reading(f"{self.path} cannot be read as parquet"):
            for batch in file.iter_batches(batch_size=_PIECE_ROWS, columns=list(names)):
                yield {name: batch.column(name) for name in names}

    def _outputs(self, columns: dict[str, Any], start: int) -> Any:
        if self.side:
            sides = columns.pop("side").to_pylist()
            for row, side in enumerate(sides):
                if side not in SIDES:
                    raise InputError(
                        f"{self.path}, row {start + row + 1}: side is {shown(side)}, not left or right"
                    )
            kept = np.array([side == self.side for side in sides], dtype=np.bool_)
            columns = {name: column.filter(kept) for name, column in columns.items()}
        found = map(arrow_values, columns.values())
        read = [
            settled(each) if isinstance(each, np.ndarray) else settle(list(each)) for each in found
        ]
        return read[0] if len(read) == 1 else dict(zip(columns, read, strict=True))

    def _length(self) -> int:
        """How many rows are outputs: the shorter of two columns ends with nulls."""
        if self.beside is None:
            return self.count()
        n_rows = n_null = at_end = 0
        for batch in self._batches([self.names[0], self.beside]):
            null, other = (
                np.asarray(column.is_null().to_numpy(zero_copy_only=False))
                for column in batch.values()
            )
            there = np.flatnonzero(~null | other)
            n_rows = n_rows + len(null)
            n_null = n_null + int(null.sum())
            at_end = at_end + len(null) if not len(there) else len(null) - 1 - int(there[-1])
        if at_end and (at_end == n_rows or n_null > at_end):
            raise InputError(
                f"{self.path}, row {n_rows - at_end + 1}: {ends_with_empty(self.names[0])}"
            )
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
    with reading(f"{path} cannot be read as parquet"):  # pyarrow's errors are ValueErrors
        return pyarrow.parquet.ParquetFile(path)


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
        exact: whether `record=` wrote them, so that they come back exactly; otherwise whole numbers
            are floats.
        max_bytes: of outputs in memory; None for a share of the memory that there is.
        features: reads outputs in place of `read_outputs`, and adds columns to them; None adds
            nothing.
        columns: those that make an output, if only some of them do.
        seeds: of the audits that drew them, if `record=` wrote them and the mechanism could be
            seeded.
    """

    source: Source
    exact: bool = False
    max_bytes: int | None = None
    features: Any = None
    columns: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def __str__(self) -> str:
        return str(self.source)

    @property
    def most(self) -> int:
        """Bytes that its outputs may take in memory."""
        return memory_share() if self.max_bytes is None else self.max_bytes

    def checked(self) -> "RecordedSide":
        """Itself, or an InputError about a header that cannot be true."""
        if isinstance(self.source, ArrayFile):
            self.source.check(self.most)
        return self

    def pieces(self) -> Iterator[Outputs]:
        """Outputs in the order of the file, a few thousand at a time."""
        start = 0
        try:
            for piece in self.source.pieces():
                if isinstance(piece, np.ndarray) and not self.exact:
                    piece = settled(piece)
                outputs = self._read(_sound(piece) if isinstance(piece, Outputs) else piece, start)
                yield outputs
                start += len(outputs)
        except UNSOUND as error:
            where = f"{self}, behind output {start}" if start else f"{self}"
            raise InputError(f"{where}: cannot be read: {first_line(error)}") from error

    def _read(self, piece: Any, start: int) -> Outputs:
        try:
            return (self.features or read_outputs)(piece)
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
        """All of them, as columns in memory.

        Raises:
            InputError: they would take more than `most` bytes. An array says so before it is read.
        """
        if isinstance(self.source, ArrayFile):
            self.source.check(self.most, is_whole=True)
        parts = []
        size = 0
        for piece in self.pieces():
            parts.append(piece)
            columns = (column for block in piece for column in block.columns)
            size += sum(
                each.values.nbytes if isinstance(each, Numbers) else each.codes.nbytes
                for each in columns
            )
            if size > self.most:
                raise too_large(self, f"outputs of more than {size} bytes", self.most)
        return concatenate(parts)


def _sound(outputs: Outputs) -> Outputs:
    """Outputs whose parts go together; a file can claim anything."""
    for block in outputs:
        lengths = {len(column) for column in block.columns} | {
            block.size if block.rows is None else len(block.rows)
        }
        rows_fit = (
            block.rows is None
            or not len(block.rows)
            or 0 <= block.rows.min() <= block.rows.max() < len(outputs)
        )
        codes = [
            column for column in block.columns if isinstance(column, Labels) and len(column.codes)
        ]
        if lengths != {block.size} or not rows_fit:
            raise IndexError(
                f"a chunk of {shown(block.shape)} has parts of the lengths {sorted(lengths)}"
            )
        if any(each.codes.min() < 0 or each.codes.max() >= len(each.labels) for each in codes):
            raise IndexError(f"a chunk of {shown(block.shape)} has a label without a name")
    if sum(block.size for block in outputs) != len(outputs):
        raise IndexError(f"a chunk of {len(outputs)} outputs holds another number of them")
    return outputs
