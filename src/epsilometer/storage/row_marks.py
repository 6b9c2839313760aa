"""Recognises recorded outputs that were used before, wherever and in whatever format they are.

A row has a key that depends on its values alone, however a file stores them: 1, 1.0 and True have
the same key. A mark is the key of several consecutive rows. Single rows would not do, because a
fair coin repeats its values all the time; a mark is so long that independent draws practically
never have the same one.
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
from epsilometer.outputs.shapes import FEATURED, leaves_of

Keys = NDArray[np.uint64]
# The first row and the one behind the last, counted from 0.
Range = tuple[int, int]

# Rows per mark that are tried first.
_SHORTEST_MARK = 20
# If most marks of that length are too much alike, this many times as many rows are tried, and so
# on.
_LENGTH_FACTOR = 4
# Independent draws with the same values come in the same order with probability 1 / (number of
# orders). A mark of which there are 2^60 orders is found by chance among 64 × 10^6 comparisons with
# probability 6e-11.
_BITS_PER_MARK = 60.0
# Marks per input that a result keeps, which takes two kilobytes.
_MOST_MARKS = 64
# Keys that are remembered to choose marks from, of each input: 32 megabytes.
_MOST_KEYS = 1 << 22
# An odd constant that scatters bits: 2^64 divided by the golden ratio.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# The multipliers of the finaliser of splitmix64.
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)
# Keys are computed modulo this.
_MODULUS = 1 << 64
# Rows of a range are below this, so that sums of two of them fit in 64 bits.
_ROW_LIMIT = 1 << 62
# How truth values are written in text files.
_TRUTH_VALUES = {"true": 1.0, "false": 0.0}


def row_keys(outputs: Outputs) -> Keys:
    """Returns a key per output, shape (n,), which depends on its values alone.

    How a file stores the values does not matter, nor do features that were added to them.
    """
    keys = np.zeros(len(outputs), dtype=np.uint64)
    for block in outputs.blocks:
        places = slice(None) if block.rows is None else block.rows
        keys[places] = _block_keys(block)
    return keys


def coarse_row_keys(outputs: Outputs, n_bits: int) -> Keys:
    """Returns a key per output, shape (n,), that survives rounding and the moving of columns.

    Args:
        outputs: the outputs.
        n_bits: numbers are rounded to so many bits first.
    """
    keys = np.zeros(len(outputs), dtype=np.uint64)
    for block in outputs.blocks:
        total = np.zeros(block.size, dtype=np.uint64)
        for column in _value_columns(block):
            if isinstance(column, Labels):
                bits = _label_bits(column)
            else:
                bits = _number_bits(_rounded(column.values, n_bits))
            total += _mixed(bits)
        keys[slice(None) if block.rows is None else block.rows] = total
    return keys


def _rounded(values: NDArray[Any], n_bits: int) -> NDArray[Any]:
    """Numbers with so many bits."""
    fraction, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, n_bits)), exponent - n_bits))


def _block_keys(block: Block) -> Keys:
    """The keys of outputs of one shape: the sum of one hash per column, of its value and place."""
    total = np.zeros(block.size, dtype=np.uint64)
    for place, column in enumerate(_value_columns(block), start=1):
        bits = _label_bits(column) if isinstance(column, Labels) else _number_bits(column.values)
        by_place = np.uint64(int(_GOLDEN) * place % _MODULUS)
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
    """The bits of numbers as floats, the same for both zeros and for every NaN."""
    numbers = np.array(values, dtype=np.float64)
    numbers[numbers == 0.0] = 0.0  # not −0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _label_bits(column: Labels) -> Keys:
    """The bits of each text, computed once per distinct text."""
    codes, position = np.unique(column.codes, return_inverse=True)
    bits = np.array([_text_bits(column.labels[code]) for code in codes.tolist()], dtype=np.uint64)
    return bits[position.ravel()]


def _text_bits(text: str) -> int:
    """The bits of a text: those of a number if it is a truth value, else of a hash."""
    truth_value = _TRUTH_VALUES.get(text.lower())
    if truth_value is not None:
        return int(np.float64(truth_value).view(np.uint64))
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def _mixed(bits: Keys) -> Keys:
    """The finaliser of splitmix64: every bit of the input affects every bit of the key."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST_MIX
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND_MIX
    return bits ^ (bits >> np.uint64(31))


def _window_keys(keys: Keys, length: int) -> Keys:
    """The key of every run of `length` rows: a polynomial in an odd number, modulo 2^64."""
    if len(keys) < length:
        return np.zeros(0, dtype=np.uint64)
    # Doubling: the key of 2n rows is key(first n) · base^n + key(last n), so that a run of any
    # length takes few steps.
    window_keys = np.zeros(len(keys) - length + 1, dtype=np.uint64)
    # The keys of all runs of `run_length` rows, which is a power of 2.
    run_keys = keys
    run_length = 1
    # Rows at the beginning of each window that its key covers so far.
    n_covered = 0
    while True:
        factor = np.uint64(pow(int(_GOLDEN), run_length, _MODULUS))
        if length & run_length:
            next_runs = run_keys[n_covered : n_covered + len(window_keys)]
            window_keys = window_keys * factor + next_runs
            n_covered += run_length
        if 2 * run_length > length:
            return window_keys
        run_keys = run_keys[:-run_length] * factor + run_keys[run_length:]
        run_length *= 2


def _bits_of_order(keys: Keys) -> float:
    """The logarithm to base 2 of the number of orders that these rows can be put in."""
    _, counts = np.unique(keys, return_counts=True)
    # The multinomial coefficient n! / (n₁! · n₂! · …).
    log_repeats = sum(math.lgamma(count + 1) for count in counts.tolist())
    log_orders = math.lgamma(len(keys) + 1) - log_repeats
    return log_orders / math.log(2.0)


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks by which some rows are recognised.

    Attributes:
        rows: the ranges of all these rows.
        length: rows per mark.
        keys: first row of each mark → key of the mark.
        are_distinct: whether independent draws practically never have one of these marks. It is
            false for rows that are nearly all alike.
    """

    rows: tuple[Range, ...]
    length: int
    keys: dict[int, int]
    are_distinct: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        marks = {str(row): f"{key:016x}" for row, key in self.keys.items()}
        data: dict[str, Any] = {
            "rows": [[start, stop] for start, stop in self.rows],
            "mark_rows": self.length,
            "marks": marks,
        }
        if not self.are_distinct:
            data["distinct"] = False
        return data

    @classmethod
    def from_dict(cls, data: Any) -> "Marks":
        """The inverse of `to_dict`.

        Raises:
            InputError: the data is not what `to_dict` writes.
        """
        try:
            rows = tuple((int(start), int(stop)) for start, stop in data["rows"])
            keys = {int(row): int(str(key), 16) for row, key in data["marks"].items()}
            length = int(data["mark_rows"])
            if length < 1 or not all(0 <= key < _MODULUS for key in keys.values()):
                raise ValueError("a mark is out of range")
            if not all(0 <= start < stop < _ROW_LIMIT for start, stop in rows):
                raise ValueError("a range of rows is out of order")
            are_distinct = bool(data.get("distinct", True))
            return cls(rows=rows, length=length, keys=keys, are_distinct=are_distinct)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"what the result notes about its recorded draws cannot be read: {error!r}"
            ) from error

    def shifted(self, offset: int) -> Iterator[Range]:
        """Yields the ranges in a file in which the rows come `offset` rows later."""
        for start, stop in self.rows:
            if stop + offset > 0:
                yield max(start + offset, 0), stop + offset


@dataclass(slots=True)
class _Stretch:
    """Consecutive rows.

    Attributes:
        start: the first row.
        stop: the row behind the last one.
        keys: the keys of the rows, piece by piece.
    """

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
    stretches: list[_Stretch] = field(default_factory=list)
    n_keys: int = 0
    _digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    @property
    def stop(self) -> int:
        """The row behind the last one."""
        return max((stop for _, stop in self.chose + self.proved), default=0)

    def add(self, start: int, outputs: Outputs, proves: bool) -> None:
        """Adds the rows of these outputs, the first of which is row `start`.

        Args:
            start: the first row.
            outputs: of consecutive rows.
            proves: whether these rows certify; otherwise they choose what to certify.
        """
        if not len(outputs):
            return
        keys = row_keys(outputs)
        self._digest.update(keys.astype("<u8").tobytes())
        if self.n_keys < _MOST_KEYS:
            self._remember(start, keys)
        added = (start, start + len(keys))
        if proves:
            self.proved = merged([*self.proved, added])
        else:
            self.chose = merged([*self.chose, added])

    def _remember(self, start: int, keys: Keys) -> None:
        self.n_keys += len(keys)
        if not self.stretches or self.stretches[-1].stop != start:
            self.stretches.append(_Stretch(start, start))
        self.stretches[-1].keys.append(keys)
        self.stretches[-1].stop += len(keys)

    def digest(self) -> str:
        """The digest of the content of all rows, in the order in which they were added."""
        return str(self._digest.hexdigest())

    def marks(self) -> Marks:
        """The marks by which these rows are recognised: the shortest ones that are distinct."""
        rows = tuple(merged([*self.chose, *self.proved]))
        stretches = [(stretch.start, np.concatenate(stretch.keys)) for stretch in self.stretches]
        longest = max((len(keys) for _, keys in stretches), default=1)
        length = _SHORTEST_MARK
        while length < longest:
            marks = _distinct_marks(stretches, length)
            if marks:
                return Marks(rows=rows, length=length, keys=marks, are_distinct=True)
            length *= _LENGTH_FACTOR
        # The rows are few, or nearly all alike: only the longest stretches as a whole are marks.
        marks = {}
        are_distinct = False
        for start, keys in stretches:
            if len(keys) == longest:
                marks[start] = int(_window_keys(keys, longest)[0])
                are_distinct = are_distinct or _bits_of_order(keys) >= _BITS_PER_MARK
        return Marks(rows=rows, length=longest, keys=marks, are_distinct=are_distinct)


def _distinct_marks(stretches: Sequence[tuple[int, Keys]], length: int) -> dict[int, int]:
    """Marks at equal distances; none if at most half of those tried are distinct.

    Args:
        stretches: the first row and the keys of each stretch.
        length: rows per mark.

    Returns:
        First row of each mark → its key.
    """
    n_rows = sum(len(keys) for _, keys in stretches)
    step = max(length, math.ceil(n_rows / _MOST_MARKS))
    marks: dict[int, int] = {}
    n_tried = 0
    for first_row, keys in stretches:
        for start in range(0, len(keys) - length + 1, step):
            window = keys[start : start + length]
            n_tried += 1
            if _bits_of_order(window) >= _BITS_PER_MARK:
                marks[first_row + start] = int(_window_keys(window, length)[0])
    has_most = 2 * len(marks) > n_tried
    return marks if has_most else {}


@dataclass(frozen=True, slots=True)
class Recognised:
    """Where a file has the rows of given marks.

    Attributes:
        used: the ranges of rows that are, or may be, those of the marks.
        n_rows: how many rows the file has.
        are_whole: for each set of marks, whether all of them were found at the distances that they
            should have.
    """

    used: tuple[Range, ...]
    n_rows: int
    are_whole: tuple[bool, ...]

    @property
    def n_left(self) -> int:
        """How many rows of the file are not used."""
        n_used = 0
        for start, stop in self.used:
            n_used += min(stop, self.n_rows) - min(start, self.n_rows)
        return self.n_rows - n_used


def recognise(pieces: Iterable[Outputs], known: Sequence[Marks]) -> Recognised:
    """Looks for marks among the rows of a file, at any place.

    Args:
        pieces: the outputs of the file, in order.
        known: sets of marks, each of some rows that were used before.
    """
    # For each set of marks: offset → number of its marks that come this many rows later in the
    # file.
    counts_by_offset: list[dict[int, int]] = [{} for _ in known]
    numbers_by_length: dict[int, list[int]] = {}
    for number, marks in enumerate(known):
        numbers_by_length.setdefault(marks.length, []).append(number)
    longest = max(numbers_by_length, default=1)
    # The keys of the last rows, with which a mark may begin that ends in the next piece.
    tail = np.zeros(0, dtype=np.uint64)
    n_rows = 0
    for piece in pieces:
        new_keys = row_keys(piece)
        keys = np.concatenate([tail, new_keys])
        start = n_rows - len(tail)
        for length, numbers in numbers_by_length.items():
            # Only windows that end among the new rows; earlier ones were compared before.
            skipped = max(len(tail) - length + 1, 0)
            windows = _window_keys(keys[skipped:], length)
            for number in numbers:
                _count_offsets(counts_by_offset[number], known[number], windows, start + skipped)
        n_rows += len(new_keys)
        tail = keys[max(len(keys) - (longest - 1), 0) :]
    used: list[Range] = []
    are_whole: list[bool] = []
    for marks, counts in zip(known, counts_by_offset, strict=True):
        for offset in counts:
            used += marks.shifted(offset)
        are_whole.append(max(counts.values(), default=0) >= len(marks.keys))
    return Recognised(used=tuple(merged(used)), n_rows=n_rows, are_whole=tuple(are_whole))


def _count_offsets(counts: dict[int, int], marks: Marks, windows: Keys, start: int) -> None:
    """Counts by how many rows later the marks come in a file.

    Args:
        counts: offset → number of marks, which is updated.
        marks: what is looked for.
        windows: the keys of consecutive windows of the file.
        start: the row at which the first window begins.
    """
    rows_by_key: dict[int, list[int]] = {}
    for row, key in marks.keys.items():
        rows_by_key.setdefault(key, []).append(row)
    wanted = np.array(sorted(rows_by_key), dtype=np.uint64)
    for place in np.flatnonzero(np.isin(windows, wanted)).tolist():
        for row in rows_by_key[int(windows[place])]:
            offset = start + place - row
            counts[offset] = counts.get(offset, 0) + 1


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same rows in as few ranges as possible, in increasing order."""
    result: list[Range] = []
    for start, stop in sorted(ranges):
        if result and start <= result[-1][1]:
            last_start, last_stop = result[-1]
            result[-1] = (last_start, max(stop, last_stop))
        else:
            result.append((start, stop))
    return result
