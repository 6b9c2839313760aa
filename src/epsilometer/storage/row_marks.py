"""Recognises recorded outputs again: the same rows in another file, another format or at another place.

A row has a key that depends on its values alone, whatever stores them: 1, 1.0 and True have the
same one. A mark is the key of some consecutive rows. Single rows would not do, because a fair coin
repeats its values all the time; a mark is so long that independent draws practically never have it,
too.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.outputs import Block, Labels, Outputs
from epsilometer.outputs.columns import FEATURED, leaves_of

Keys = NDArray[np.uint64]
# Rows from (inclusive) and to (exclusive), counted from 0.
Range = tuple[int, int]

# Rows per mark that are tried first; if these rows are too much alike, four times as many, and so
# on.
_SHORTEST_MARK = 20
_LONGER = 4
# Independent draws with the same values come in the same order with probability 1 / (number of
# orders). A mark of which there are 2^60 orders is found by chance among 64 × 10^6 comparisons with
# probability 6e-11.
_BITS_PER_MARK = 60.0
# Marks per input that a result keeps, which takes two kilobytes.
_MOST_MARKS = 64
# Keys that are remembered to choose marks from, of each input: 32 megabytes.
_MOST_KEYS = 1 << 22
# An odd constant that scatters bits (the golden ratio), and the multipliers of the finaliser of
# splitmix64.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)
_ALL_BITS = (1 << 64) - 1
# How truth values are written in text files.
_TRUTH_VALUES = {"true": 1.0, "false": 0.0}


def row_keys(outputs: Outputs) -> Keys:
    """A number per output that depends on its values, not on how a file stores them, nor on features of it."""
    keys = np.zeros(len(outputs), dtype=np.uint64)
    for block in outputs.blocks:
        places = slice(None) if block.rows is None else block.rows
        keys[places] = _block_keys(block)
    return keys


def _block_keys(block: Block) -> Keys:
    total = np.zeros(block.size, dtype=np.uint64)
    for place, column in enumerate(_value_columns(block), start=1):
        bits = _label_bits(column) if isinstance(column, Labels) else _number_bits(column.values)
        by_place = np.uint64(int(_GOLDEN) * place & _ALL_BITS)
        total += _mixed(bits + by_place)
    return total


def _value_columns(block: Block) -> Sequence[Any]:
    """The columns of the output itself, without those of its features."""
    if not block.shape.startswith(f"{FEATURED}{{"):
        return block.columns
    columns: list[Any] = []
    start = 0
    for leaf in leaves_of(block.shape):
        stop = start + leaf.n_columns
        if not leaf.path.startswith("features"):
            columns += block.columns[start:stop]
        start = stop
    return columns


def _number_bits(values: NDArray[Any]) -> Keys:
    numbers = np.array(values, dtype=np.float64)
    numbers[numbers == 0.0] = 0.0  # not −0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _label_bits(column: Labels) -> Keys:
    used, place = np.unique(column.codes, return_inverse=True)
    table = np.array([_text_bits(column.labels[code]) for code in used.tolist()], dtype=np.uint64)
    return table[place.ravel()]


def _text_bits(text: str) -> int:
    if (truth := _TRUTH_VALUES.get(text.lower())) is not None:
        return int(np.float64(truth).view(np.uint64))
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def _mixed(bits: Keys) -> Keys:
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST_MIX
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND_MIX
    return bits ^ (bits >> np.uint64(31))


def _window_keys(keys: Keys, length: int) -> Keys:
    """The key of every run of `length` rows: a polynomial in an odd number, modulo 2^64."""
    if len(keys) < length:
        return np.zeros(0, dtype=np.uint64)
    # Doubling: the key of 2n rows is key(first n) · base^n + key(last n), so that a run of any
    # length takes few steps.
    found = np.zeros(len(keys) - length + 1, dtype=np.uint64)
    run = keys
    run_length = 1
    done = 0
    while True:
        if length & run_length:
            factor = np.uint64(pow(int(_GOLDEN), run_length, 1 << 64))
            found = found * factor + run[done : done + len(found)]
            done += run_length
        if 2 * run_length > length:
            return found
        factor = np.uint64(pow(int(_GOLDEN), run_length, 1 << 64))
        run = run[:-run_length] * factor + run[run_length:]
        run_length *= 2


def _bits_of_order(keys: Keys) -> float:
    """The logarithm to base 2 of the number of orders that these rows can be put in."""
    _, counts = np.unique(keys, return_counts=True)
    log_orders = math.lgamma(len(keys) + 1) - sum(math.lgamma(each + 1) for each in counts.tolist())
    return log_orders / math.log(2.0)


@dataclass(frozen=True, slots=True)
class Marks:
    """By which some rows are recognised again.

    Attributes:
        rows: the ranges of all these rows.
        length: rows per mark.
        keys: of the marks, by their first row.
        are_distinct: whether independent draws practically never have one of these marks. Rows that
            are nearly all alike have none that is.
    """

    rows: tuple[Range, ...]
    length: int
    keys: dict[int, int]
    are_distinct: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        marks = {str(row): f"{key:016x}" for row, key in self.keys.items()}
        found: dict[str, Any] = {
            "rows": [list(each) for each in self.rows],
            "mark_rows": self.length,
            "marks": marks,
        }
        return found if self.are_distinct else {**found, "distinct": False}

    @classmethod
    def from_dict(cls, data: Any) -> "Marks":
        """The inverse of `to_dict`.

        Raises:
            InputError: somebody else wrote it.
        """
        try:
            rows = tuple((int(start), int(stop)) for start, stop in data["rows"])
            keys = {int(row): int(str(key), 16) for row, key in data["marks"].items()}
            length = int(data["mark_rows"])
            if length < 1 or not all(0 <= key < 1 << 64 for key in keys.values()):
                raise ValueError("a mark is out of range")
            if not all(0 <= start < stop < 1 << 62 for start, stop in rows):
                raise ValueError("a range of rows is out of order")
            return cls(rows, length, keys, bool(data.get("distinct", True)))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"what the result notes about its recorded draws cannot be read: {error!r}"
            ) from error

    def shifted(self, offset: int) -> Iterator[Range]:
        """The ranges in a file in which the rows come `offset` rows later."""
        for start, stop in self.rows:
            if stop + offset > 0:
                yield max(start + offset, 0), stop + offset


@dataclass(slots=True)
class _Stretch:
    """Consecutive rows: the first, the one behind the last, and the keys of all, piece by piece."""

    start: int
    stop: int
    keys: list[Keys] = field(default_factory=list)


@dataclass(slots=True)
class Trail:
    """The rows of one input that were used so far.

    Attributes:
        chose: the ranges of rows that chose what to certify.
        proved: the ranges of rows that certified.
        stretches: the keys of consecutive rows.
        n_keys: how many keys are remembered.
    """

    chose: list[Range] = field(default_factory=list)
    proved: list[Range] = field(default_factory=list)
    stretches: list["_Stretch"] = field(default_factory=list)
    n_keys: int = 0
    _digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    @property
    def stop(self) -> int:
        """The row behind the last one."""
        return max((stop for _, stop in self.chose + self.proved), default=0)

    def add(self, start: int, outputs: Outputs, proves: bool) -> None:
        """More rows, the first of which is row `start`."""
        if not len(outputs):
            return
        keys = row_keys(outputs)
        self._digest.update(keys.astype("<u8").tobytes())
        if self.n_keys < _MOST_KEYS:
            self._remember(start, keys)
        ranges = self.proved if proves else self.chose
        ranges[:] = merged([*ranges, (start, start + len(keys))])

    def _remember(self, start: int, keys: Keys) -> None:
        self.n_keys += len(keys)
        if not self.stretches or self.stretches[-1].stop != start:
            self.stretches.append(_Stretch(start, start))
        self.stretches[-1].keys.append(keys)
        self.stretches[-1].stop += len(keys)

    def digest(self) -> str:
        """Of the content of all rows, in their order."""
        return str(self._digest.hexdigest())

    def marks(self) -> Marks:
        """By which the rows are recognised again."""
        rows = tuple(merged([*self.chose, *self.proved]))
        stretches = [(each.start, np.concatenate(each.keys)) for each in self.stretches]
        longest = max((len(keys) for _, keys in stretches), default=1)
        length = _SHORTEST_MARK
        while length < longest:
            if found := _distinct_marks(stretches, length):
                return Marks(rows, length, found, are_distinct=True)
            length *= _LONGER
        # The rows are few, or nearly all alike: only the longest stretch as a whole is a mark.
        whole = {
            start: int(_window_keys(keys, longest)[0])
            for start, keys in stretches
            if len(keys) == longest
        }
        are_distinct = any(
            _bits_of_order(keys) >= _BITS_PER_MARK for _, keys in stretches if len(keys) == longest
        )
        return Marks(rows, longest, whole, are_distinct)


def _distinct_marks(stretches: Sequence[tuple[int, Keys]], length: int) -> dict[int, int]:
    """Marks at even distances; none if most of the rows there are too much alike."""
    total = sum(len(keys) for _, keys in stretches)
    step = max(length, -(-total // _MOST_MARKS))
    found: dict[int, int] = {}
    tried = 0
    for first, keys in stretches:
        for start in range(0, len(keys) - length + 1, step):
            some = keys[start : start + length]
            tried += 1
            if _bits_of_order(some) >= _BITS_PER_MARK:
                found[first + start] = int(_window_keys(some, length)[0])
    return found if 2 * len(found) > tried else {}


@dataclass(frozen=True, slots=True)
class Recognised:
    """Where rows of marks are in a file.

    Attributes:
        used: the ranges of rows that are, or may be, those of the marks.
        n_rows: how many rows the file has.
        are_whole: for each of the marks, whether all of them were found at the distances that they
            should have.
    """

    used: tuple[Range, ...]
    n_rows: int
    are_whole: tuple[bool, ...]

    @property
    def n_left(self) -> int:
        """Rows that are not used."""
        return self.n_rows - sum(
            min(stop, self.n_rows) - min(start, self.n_rows) for start, stop in self.used
        )


def recognise(pieces: Iterable[Outputs], known: Sequence[Marks]) -> Recognised:
    """Looks for marks in the rows of a file, at any place."""
    # For each of the marks: by how many rows they come later in this file, and how many of them do.
    offsets: list[dict[int, int]] = [{} for _ in known]
    by_length: dict[int, list[int]] = {}
    for number, marks in enumerate(known):
        by_length.setdefault(marks.length, []).append(number)
    before = max([*by_length, 1]) - 1
    tail = np.zeros(0, dtype=np.uint64)
    n_rows = 0
    for piece in pieces:
        new = row_keys(piece)
        keys = np.concatenate([tail, new])
        start = n_rows - len(tail)
        for length, numbers in by_length.items():
            # Runs that end among the new rows; the others were seen with the piece before.
            skipped = max(len(tail) - length + 1, 0)
            windows = _window_keys(keys[skipped:], length)
            for number in numbers:
                _count_offsets(offsets[number], known[number], windows, start + skipped)
        n_rows += len(new)
        tail = keys[len(keys) - min(before, len(keys)) :]
    used: list[Range] = []
    for marks, found in zip(known, offsets, strict=True):
        for offset in found:
            used += marks.shifted(offset)
    whole = tuple(
        max(found.values(), default=0) >= len(each.keys)
        for each, found in zip(known, offsets, strict=True)
    )
    return Recognised(tuple(merged(used)), n_rows, whole)


def _count_offsets(offsets: dict[int, int], marks: Marks, windows: Keys, start: int) -> None:
    """Notes at which places the marks are among the keys of consecutive runs, the first of which is at `start`."""
    rows: dict[int, list[int]] = {}
    for row, key in marks.keys.items():
        rows.setdefault(key, []).append(row)
    wanted = np.array(sorted(rows), dtype=np.uint64)
    for place in np.flatnonzero(np.isin(windows, wanted)).tolist():
        for row in rows[int(windows[place])]:
            offset = start + place - row
            offsets[offset] = offsets.get(offset, 0) + 1


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same rows in as few ranges as possible, in order."""
    found: list[Range] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found
