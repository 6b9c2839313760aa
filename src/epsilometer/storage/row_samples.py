"""Recognises recorded outputs that were used before, although their order has changed.

The marks of `row_marks` recognise consecutive rows. Rows that were shuffled, sorted, thinned out,
or stored with fewer digits or with their columns in another order have none of these marks. They
still have the same values, which alone proves nothing: independent draws of a coin do, too.

**The test.** Take independent draws of one distribution, N that were used and M of a file, and look
at the values that occur exactly twice among all N + M. Which two of the draws these are does not
depend on the value, so a given T of these values are all shared by the two parts with probability

    2^T · N!/(N − T)! · M!/(M − T)! · (N + M − 2T)!/(N + M)!,

about 2^-T. Of a file that holds used draws again nearly all of them are shared. This needs no
knowledge of the distribution, and draws of few values, of which none occurs just twice, tell
nothing.

It is enough to look at a sample of the values, if they are chosen by their hashes alone.

**Rounded values.** Rows that were stored with fewer digits have other values. So the test is made
several times, of exact values and of values that are rounded more and more coarsely. Fine rounding
leaves most values of few draws different from each other; coarse rounding leaves those of a row and
of its copy with two decimals equal.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.outputs import Outputs
from epsilometer.storage.row_marks import Keys, Range, coarse_row_keys, row_keys

# Values per input and rounding that a result keeps, which takes two kilobytes.
_MOST_VALUES = 192
# Values that are followed while rows come in, as long as it is unknown which occur often.
_MOST_FOLLOWED = 2048
# Values that occur more often are not counted any further: they tell nothing.
_MOST_COUNTED = 3
# Independent draws are taken for used ones by one test with this probability, 10^-13, as a power of
# two. How many values are looked at depends on the used draws: a union over some hundred numbers of
# them, and over all tests, makes it 10^-9.
_BITS_OF_EVIDENCE = 43.0
# Bits of a hash that are kept: by chance two of a million values share one in one of two cases.
_HASH_BITS = 40
_HASH_DIGITS = _HASH_BITS // 4
# To so many bits numbers are rounded in coarse values: from about five digits to one. Rounding by
# somebody else is recognised best if its steps are several times finer than these.
_COARSE_BITS = (18, 14, 11, 8, 6, 4)
# As many bits mean exact values, and columns in their order.
_EXACT = 0


@dataclass(frozen=True, slots=True)
class RowSample:
    """Some values of rows, those with the least hashes, which occur once or twice.

    Attributes:
        n_rows: of how many rows.
        bits: numbers were rounded to so many bits, and the order of columns was left out; 0 if the
            values are exact and the columns in their order.
        limit: the greatest hash that was looked at.
        once: the hashes of the values that occur once.
        twice: the hashes of the values that occur twice.
    """

    n_rows: int
    bits: int
    limit: int
    once: tuple[int, ...]
    twice: tuple[int, ...]

    @property
    def can_tell(self) -> bool:
        """Whether enough values occur once, so that used rows could be found by them."""
        return len(self.once) >= _BITS_OF_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        return {
            "rows": self.n_rows,
            "bits": self.bits,
            "limit": _text_of([self.limit]),
            "once": _text_of(self.once),
            "twice": _text_of(self.twice),
        }

    @classmethod
    def from_dict(cls, data: Any) -> "RowSample":
        """The inverse of `to_dict`.

        Raises:
            InputError: the data is not what `to_dict` writes.
        """
        try:
            (limit,) = _hashes_of(data["limit"])
            bits = int(data["bits"])
            if bits not in (_EXACT, *_COARSE_BITS):
                raise ValueError(f"values of {bits} bits are never looked at")
            return cls(
                n_rows=int(data["rows"]),
                bits=bits,
                limit=limit,
                once=_hashes_of(data["once"]),
                twice=_hashes_of(data["twice"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"what the result notes about its recorded draws cannot be read: {error!r}"
            ) from error


def _text_of(hashes: Iterable[int]) -> str:
    return "".join(f"{value:0{_HASH_DIGITS}x}" for value in hashes)


def _hashes_of(text: Any) -> tuple[int, ...]:
    """The inverse of `_text_of`."""
    if not isinstance(text, str) or len(text) % _HASH_DIGITS:
        raise ValueError(f"hashes have {_HASH_DIGITS} digits each")
    starts = range(0, len(text), _HASH_DIGITS)
    return tuple(int(text[start : start + _HASH_DIGITS], 16) for start in starts)


@dataclass(slots=True)
class _Followed:
    """How often the values with the least hashes occur, among the rows so far."""

    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, keys: Keys) -> None:
        """Adds rows with these keys."""
        hashes = keys >> np.uint64(64 - _HASH_BITS)
        if len(self.hashes) == _MOST_FOLLOWED:
            # A value that was given up never comes back: the greatest hash only falls.
            hashes = hashes[hashes <= self.hashes[-1]]
        new_hashes, new_counts = np.unique(hashes, return_counts=True)
        self.hashes, self.counts = _added(self.hashes, self.counts, new_hashes, new_counts)
        self.hashes = self.hashes[:_MOST_FOLLOWED]
        self.counts = self.counts[:_MOST_FOLLOWED]

    def sample(self, n_rows: int, bits: int) -> RowSample:
        """The values with the least hashes, of those that do not occur often."""
        rare = np.flatnonzero(self.counts <= 2)[:_MOST_VALUES]
        # All rare values up to the limit are in the sample.
        limit = int(self.hashes[rare[-1]]) if len(rare) else 0
        hashes = self.hashes[rare]
        counts = self.counts[rare]
        return RowSample(
            n_rows=n_rows,
            bits=bits,
            limit=limit,
            once=tuple(hashes[counts == 1].tolist()),
            twice=tuple(hashes[counts == 2].tolist()),
        )


def _added(
    hashes: NDArray[np.uint64],
    counts: NDArray[np.int64],
    new_hashes: NDArray[np.uint64],
    new_counts: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Both sets of counts together, by increasing hash."""
    all_hashes, places = np.unique(np.concatenate([hashes, new_hashes]), return_inverse=True)
    total = np.zeros(len(all_hashes), dtype=np.int64)
    np.add.at(total, places, np.concatenate([counts, new_counts]))
    return all_hashes, np.minimum(total, _MOST_COUNTED)


@dataclass(slots=True)
class RowSampler:
    """Takes samples of the values of rows that come in pieces, rounded more and more coarsely."""

    n_rows: int = 0
    _followed: dict[int, _Followed] = field(
        default_factory=lambda: {bits: _Followed() for bits in (_EXACT, *_COARSE_BITS)}
    )

    def add(self, outputs: Outputs) -> None:
        """Adds more rows."""
        self.n_rows += len(outputs)
        for bits, followed in self._followed.items():
            followed.add(_value_keys(outputs, bits))

    def samples(self) -> list[RowSample]:
        """Those samples that can tell something."""
        samples = [followed.sample(self.n_rows, bits) for bits, followed in self._followed.items()]
        return [sample for sample in samples if sample.can_tell]


def _value_keys(outputs: Outputs, bits: int) -> Keys:
    """A key per row, shape (n,), of its values rounded to so many bits; 0 stands for exact ones."""
    return row_keys(outputs) if bits == _EXACT else coarse_row_keys(outputs, bits)


def holds_again(
    pieces: Iterable[Outputs], skipped: Iterable[Range], samples: Iterable[RowSample]
) -> bool:
    """Whether rows of a file are used ones, in whatever order.

    Args:
        pieces: the outputs of the file, in order.
        skipped: the ranges of rows that are left out, in increasing order.
        samples: of the rows that were used.
    """
    known = [sample for sample in samples if sample.can_tell]
    if not known:
        return False
    followed = [_Followed() for _ in known]
    n_rows = 0
    for piece in _without(pieces, tuple(skipped)):
        n_rows += len(piece)
        for bits in {sample.bits for sample in known}:
            hashes = _value_keys(piece, bits) >> np.uint64(64 - _HASH_BITS)
            for sample, counted in zip(known, followed, strict=True):
                if sample.bits == bits:
                    new = np.unique(hashes[hashes <= sample.limit], return_counts=True)
                    counted.hashes, counted.counts = _added(counted.hashes, counted.counts, *new)
    for sample, counted in zip(known, followed, strict=True):
        if _log2_chance(sample, counted, n_rows) <= -_BITS_OF_EVIDENCE:
            return True
    return False


def _without(pieces: Iterable[Outputs], skipped: tuple[Range, ...]) -> Iterable[Outputs]:
    """The pieces without some ranges of their rows."""
    start = 0
    for piece in pieces:
        is_left = np.ones(len(piece), dtype=bool)
        for skip_start, skip_stop in skipped:
            is_left[max(skip_start - start, 0) : max(skip_stop - start, 0)] = False
        start += len(piece)
        yield piece if is_left.all() else piece.take(np.flatnonzero(is_left))


def _log2_chance(sample: RowSample, counted: _Followed, n_rows: int) -> float:
    """An upper bound on the probability that independent draws share as many rare values.

    Args:
        sample: of the draws that were used.
        counted: the values of the file.
        n_rows: the number of rows of the file.
    """
    counts = dict(zip(counted.hashes.tolist(), counted.counts.tolist(), strict=True))
    n_shared = len([value for value in sample.once if counts.get(value, 0) == 1])
    n_twice_used = sum(value not in counts for value in sample.twice)
    known = {*sample.once, *sample.twice}
    n_twice_in_file = sum(count == 2 and value not in known for value, count in counts.items())
    # Of values that occur twice: all, and those that are shared.
    n_values = n_shared + n_twice_used + n_twice_in_file
    if n_shared > min(n_rows, sample.n_rows):  # hashes that somebody made up
        return 0.0
    # As many as these are shared: the union over all choices of so many of the values.
    log_choices = _log_factorial(n_values)
    log_choices -= _log_factorial(n_shared) + _log_factorial(n_values - n_shared)
    log_chance = (
        n_shared * math.log(2.0)
        + _log_factorial(sample.n_rows)
        - _log_factorial(sample.n_rows - n_shared)
        + _log_factorial(n_rows)
        - _log_factorial(n_rows - n_shared)
        + _log_factorial(sample.n_rows + n_rows - 2 * n_shared)
        - _log_factorial(sample.n_rows + n_rows)
    )
    return (log_choices + log_chance) / math.log(2.0)


def _log_factorial(n: int) -> float:
    return math.lgamma(n + 1)
