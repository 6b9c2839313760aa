"""Files of recorded outputs, read in pieces: NumPy arrays, Parquet columns, one side of them."""

import math
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError, MechanismError, MissingExtraError, short_repr
from epsilometer.outputs import Labels, Numbers, Outputs, concatenate, read_outputs
from epsilometer.outputs.reading_numbers import arrow_values
from epsilometer.storage.formats import (
    UNSOUND,
    first_line,
    memory_share,
    reading,
    settle,
    settled,
    too_large,
)
from epsilometer.storage.recorded_texts import SIDES, ends_with_empty

# Bytes per piece of an array: large enough that reading is fast, small enough not to matter in
# memory.
_PIECE_BYTES = 4 << 20
# Rows per piece at most, for the same reasons where rows are small.
_PIECE_ROWS = 1 << 16
# Outputs without content at most: a header can promise any number of them at no cost.
_MOST_EMPTY = 1 << 24
# Sizes of an axis are below this; more cannot be counted in 64 bits.
_SIZE_LIMIT = 1 << 62


class _Header(NamedTuple):
    """What the header of an array says.

    Attributes:
        shape: of the array; axis 0 counts outputs.
        by_column: whether the first axis varies fastest in the file (Fortran order), so that the
            array cannot be read in pieces.
        dtype: the type of its entries.
    """

    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """How many bytes the array takes."""
        return math.prod(self.shape) * self.dtype.itemsize


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
            return self._header(file).shape[0]

    def dtype(self) -> np.dtype[Any]:
        """The type of its entries, from its header."""
        with self._open() as file:
            return self._header(file).dtype

    def check(self, most: int, is_whole: bool = False) -> None:
        """Refuses, before any output is read, an array that cannot be true or is too large.

        Args:
            most: bytes that may be in memory at once.
            is_whole: whether the array will be in memory as a whole, rather than in pieces.

        Raises:
            InputError: the header promises more than the file holds, or more than `most` bytes are
                needed at once.
        """
        with self._open() as file:
            header = self._header(file)
            header_size = file.tell()
            if self.member is None:
                file_size = self.path.stat().st_size
            else:
                with zipfile.ZipFile(self.path) as archive:
                    file_size = archive.getinfo(f"{self.member}.npy").file_size
        n_there = file_size - header_size
        if header.n_bytes > n_there:
            raise InputError(
                f"{self} promises an array of {header.n_bytes} bytes, "
                f"shape {short_repr(header.shape)}, and has only {n_there}"
            )
        if is_whole:
            if header.n_bytes > most:
                raise too_large(self, f"outputs of {header.n_bytes} bytes", most)
            return
        needed = header.n_bytes
        if not header.by_column:
            needed //= max(header.shape[0], 1)
        if needed > most:
            raise too_large(self, f"{needed} bytes in one piece", most)

    def read(self) -> Array:
        """The array, of any shape, as an input of a mechanism."""
        most = memory_share()
        with self._open() as file:
            header = self._header(file, is_batch=False)
            if header.n_bytes > most:
                raise too_large(self, f"{header.n_bytes} bytes", most)
            data = file.read(header.n_bytes)
        if len(data) < header.n_bytes:
            raise InputError(
                f"{self} promises an array of {header.n_bytes} bytes, "
                f"shape {short_repr(header.shape)}, and has {len(data)}"
            )
        return self._array(data, header).copy()

    def pieces(self) -> Iterator[Array]:
        """Yields slices along axis 0, in order."""
        with self._open() as file:
            header = self._header(file)
            n_rows, *row_shape = header.shape
            row_bytes = math.prod(row_shape) * header.dtype.itemsize
            if header.by_column:
                rows_per_piece = max(1, n_rows)
            else:
                rows_in_bytes = _PIECE_BYTES // max(row_bytes, 1)
                rows_per_piece = max(1, min(_PIECE_ROWS, rows_in_bytes))
            for start in range(0, n_rows, rows_per_piece):
                size = min(rows_per_piece, n_rows - start)
                data = file.read(size * row_bytes)
                if len(data) < size * row_bytes:
                    n_read = start + len(data) // max(row_bytes, 1)
                    raise InputError(f"{self} ends within output {n_read} of {n_rows}")
                yield self._array(data, header._replace(shape=(size, *row_shape)))

    def _array(self, data: bytes, header: _Header) -> Array:
        """The array that these bytes are, read-only."""
        flat = np.frombuffer(data, dtype=header.dtype)
        _check_letters(flat, self)
        return flat.reshape(header.shape, order="F" if header.by_column else "C")

    def _header(self, file: IO[bytes], is_batch: bool = True) -> _Header:
        """Reads the header, and refuses what cannot be read without unpickling.

        Args:
            file: at its beginning; afterwards at its first entry.
            is_batch: whether axis 0 counts outputs.
        """
        with reading(f"{self} cannot be read as a plain array"):
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
            else:
                shape, by_column, dtype = np.lib.format.read_array_header_2_0(file)
        if dtype.hasobject:
            raise InputError(f"{self} holds no plain numbers or texts, and nothing is unpickled")
        if is_batch and not shape:
            raise InputError(f"{self} holds a single value; axis 0 must count outputs")
        if not all(isinstance(size, int) and 0 <= size < _SIZE_LIMIT for size in shape):
            raise InputError(f"{self} cannot be an array of the shape {short_repr(shape)}")
        has_empty_outputs = is_batch and 0 in shape[1:]
        if not dtype.itemsize or (has_empty_outputs and shape[0] > _MOST_EMPTY):
            raise InputError(
                f"{self} holds outputs without content: shape {short_repr(shape)}, entries of "
                f"{dtype}"
            )
        # With one axis, both orders are the same.
        return _Header(shape=shape, by_column=by_column and len(shape) > 1, dtype=dtype)

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
        code_point = np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder)
        codes = np.ascontiguousarray(flat).view(code_point)
        if codes.max() > sys.maxunicode:
            raise InputError(
                f"{source} holds a text with the letter {codes.max():#x}, which does not exist"
            )


def members(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    with reading(f"{path} cannot be read as plain arrays"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two arrays of one name: {short_repr(names)}")
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
        """Yields the outputs of batches of rows, in order."""
        names = [*self.names, "side"] if self.side else [*self.names]
        n_left = self._length()
        start = 0
        for batch in self._batches(names):
            size = len(batch[names[0]])
            columns = {name: column.slice(0, max(n_left, 0)) for name, column in batch.items()}
            n_left -= size
            yield self._outputs(columns, start)
            start += size

    def _batches(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        file = _open_parquet(self.path)
        with reading(f"{self.path} cannot be read as parquet"):
            for batch in file.iter_batches(batch_size=_PIECE_ROWS, columns=list(names)):
                yield {name: batch.column(name) for name in names}

    def _outputs(self, columns: dict[str, Any], start: int) -> Any:
        """The outputs of a batch of rows, the first of which is row `start`, counted from 0."""
        if self.side:
            sides = columns.pop("side").to_pylist()
            for row, side in enumerate(sides):
                if side not in SIDES:
                    raise InputError(
                        f"{self.path}, row {start + row + 1}: "
                        f"side is {short_repr(side)}, not left or right"
                    )
            is_this_side = np.array([side == self.side for side in sides], dtype=np.bool_)
            columns = {name: column.filter(is_this_side) for name, column in columns.items()}
        values_by_name = {}
        for name, column in columns.items():
            values = arrow_values(column)
            if isinstance(values, np.ndarray):
                values_by_name[name] = settled(values)
            else:
                values_by_name[name] = settle(list(values))
        if len(values_by_name) == 1:
            return next(iter(values_by_name.values()))
        return values_by_name

    def _length(self) -> int:
        """How many rows are outputs: the shorter of two columns ends with nulls."""
        if self.beside is None:
            return self.count()
        name = self.names[0]
        n_rows = 0
        n_null = 0
        # Rows at the end in which this column is null, and the other one is not.
        n_at_end = 0
        for batch in self._batches([name, self.beside]):
            is_null = _is_null(batch[name])
            other_is_null = _is_null(batch[self.beside])
            outputs = np.flatnonzero(~is_null | other_is_null)
            size = len(is_null)
            n_rows += size
            n_null += int(is_null.sum())
            if len(outputs):
                n_at_end = size - 1 - int(outputs[-1])
            else:
                n_at_end += size
        # A null further up may be a missing value or the end: nobody can know.
        if n_at_end and (n_at_end == n_rows or n_null > n_at_end):
            raise InputError(f"{self.path}, row {n_rows - n_at_end + 1}: {ends_with_empty(name)}")
        return n_rows - n_at_end


def _is_null(column: Any) -> Array:
    """Where a column of a Parquet file is null, shape (n,)."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


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
        """How many outputs there are at most; None if that is unknown before reading."""

    def pieces(self) -> Iterator[Any]:
        """Batches of outputs, in order."""


@dataclass(frozen=True, slots=True)
class RecordedSide:
    """The recorded outputs of one input, read only as far as they are needed.

    Attributes:
        source: the file, or a part of it.
        exact: whether `record=` wrote them, so that they come back exactly; otherwise whole numbers
            are floats.
        max_bytes: how much memory outputs may take; None for a fraction of what the machine has.
        features: reads outputs in place of `read_outputs`, and adds columns to them; None adds
            nothing.
        columns: the columns that make an output, if only some of them do.
        seeds: the seeds of the audits that drew them, if `record=` wrote them and the mechanism
            could be seeded.
        facts: what weakens a reading of the draws, if `record=` wrote them.
        incidents: what happened while they were drawn, likewise; None if nothing is known.
    """

    source: Source
    exact: bool = False
    max_bytes: int | None = None
    features: Any = None
    columns: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    incidents: Any = None

    def __str__(self) -> str:
        return str(self.source)

    @property
    def most(self) -> int:
        """Bytes that its outputs may take in memory."""
        return memory_share() if self.max_bytes is None else self.max_bytes

    def checked(self) -> "RecordedSide":
        """Returns itself; raises an InputError if a header cannot be true."""
        if isinstance(self.source, ArrayFile):
            self.source.check(self.most)
        return self

    def pieces(self) -> Iterator[Outputs]:
        """Yields outputs in the order of the file, some thousands at a time."""
        start = 0
        try:
            for piece in self.source.pieces():
                if isinstance(piece, np.ndarray) and not self.exact:
                    outputs = self._read(settled(piece), start)
                elif isinstance(piece, Outputs):
                    outputs = self._read(_sound(piece), start)
                else:
                    outputs = self._read(piece, start)
                yield outputs
                start += len(outputs)
        except UNSOUND as error:
            where = f"{self}, behind output {start}" if start else f"{self}"
            raise InputError(f"{where}: cannot be read: {first_line(error)}") from error

    def _read(self, piece: Any, start: int) -> Outputs:
        """Reads a piece that begins with output `start`; an error names the output at fault."""
        read = self.features or read_outputs
        try:
            return read(piece)
        except MechanismError as error:
            is_table = isinstance(piece, dict)
            size = len(next(iter(piece.values()))) if is_table else len(piece)
            for row in range(size):
                if is_table:
                    single = {name: values[row : row + 1] for name, values in piece.items()}
                else:
                    single = piece[row : row + 1]
                try:
                    read_outputs(single)
                except MechanismError as reason:
                    message = str(reason).replace("output 0", "it", 1)
                    raise InputError(f"{self}, output {start + row + 1}: {message}") from error
            raise

    def outputs(self) -> Outputs:
        """All outputs, as columns in memory.

        Raises:
            InputError: they would take more than `most` bytes. An array is refused before it is
                read.
        """
        if isinstance(self.source, ArrayFile):
            self.source.check(self.most, is_whole=True)
        pieces = []
        n_bytes = 0
        for piece in self.pieces():
            pieces.append(piece)
            n_bytes += _bytes_of(piece)
            if n_bytes > self.most:
                raise too_large(self, f"outputs of more than {n_bytes} bytes", self.most)
        return concatenate(pieces)


def _bytes_of(outputs: Outputs) -> int:
    """How many bytes the columns of outputs take in memory."""
    n_bytes = 0
    for block in outputs:
        for column in block.columns:
            entries = column.values if isinstance(column, Numbers) else column.codes
            n_bytes += entries.nbytes
    return n_bytes


def _sound(outputs: Outputs) -> Outputs:
    """Returns the outputs; raises an IndexError if their parts do not fit together.

    A file can claim anything.
    """
    for block in outputs:
        lengths = {len(column) for column in block.columns}
        lengths.add(block.size if block.rows is None else len(block.rows))
        rows_fit = True
        if block.rows is not None and len(block.rows):
            rows_fit = block.rows.min() >= 0 and block.rows.max() < len(outputs)
        if lengths != {block.size} or not rows_fit:
            raise IndexError(
                f"a chunk of {short_repr(block.shape)} has parts of the lengths {sorted(lengths)}"
            )
        for column in block.columns:
            if not isinstance(column, Labels) or not len(column.codes):
                continue
            if column.codes.min() < 0 or column.codes.max() >= len(column.labels):
                raise IndexError(f"a chunk of {short_repr(block.shape)} has a label without a name")
    if sum(block.size for block in outputs) != len(outputs):
        raise IndexError(f"a chunk of {len(outputs)} outputs holds another number of them")
    return outputs
