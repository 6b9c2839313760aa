"""The files in which recorded outputs may be, and which part of them is which side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from epsilometer.errors import InputError, MechanismError
from epsilometer.mechanisms.recorded_arrays import ArrayFile, ParquetColumns, members, parquet_names, settled
from epsilometer.mechanisms.recorded_texts import CsvRows, JsonLines, JsonList, has_side, json_values
from epsilometer.outputs import Outputs, concatenate, read_outputs

_KINDS = ".npy, .npz, .csv, .jsonl, .json and .parquet"


class Source(Protocol):
    """Where recorded outputs are."""

    @property
    def path(self) -> Path:
        """The file."""

    def count(self) -> int | None:
        """How many there are at most; None if only reading tells."""

    def pieces(self) -> Iterator[Any]:
        """Batches of outputs, in order."""


@dataclass(frozen=True, slots=True)
class RecordedSide:
    """The recorded outputs of one input, read only as far as they are needed.

    Attributes:
        source: the file, or a part of it.
        exact: whether the outputs are ours and so come back as they were; otherwise whole numbers are floats.
    """

    source: Source
    exact: bool = False

    def __str__(self) -> str:
        return str(self.source)

    def pieces(self) -> Iterator[Outputs]:
        """Outputs in the order of the file, some thousand at a time."""
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
