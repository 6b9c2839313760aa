"""The floating-point view of outputs: not the value of a number, but how it is written.

Noise that is computed in floating point cannot reach every number: which sums `value + noise` can occur, and how many
of their last bits are zero, depends on the value (Mironov 2012). The view replaces every float by one whole number that
holds its sign, its exponent (so its rough value), the number of trailing zeros of its mantissa, and its width in bytes.
NaN keeps all of its bits: none of them vary by chance.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.outputs.columns import Column, Numbers, Outputs
from epsilometer.outputs.events import Event
from epsilometer.outputs.partition import Partition
from epsilometer.outputs.reading import read_outputs

# Of a double: the stored bits of its mantissa, and the bias of its exponent.
_MANTISSA, _BIAS = 52, 1023
# A code is exponent·2^7 + zeros·2 + sign: up to 52 zeros fit in 6 bits.
_EXPONENT_SHIFT, _N_OF_WIDTH = 7, 1 << 18
# Floats of eight bytes come first, so that their codes are the same as if there were only doubles.
_WIDTHS, _OTHER_WIDTH = {8: 0, 4: 1, 2: 2}, 3
_N_CODES = _N_OF_WIDTH * (_OTHER_WIDTH + 1)
# Patterns that are spelled out in words; the rest are counted.
_SPELLED_OUT = 4


def bit_codes(values: Floats, widths: NDArray[np.uint8] | None = None) -> Integers:
    """Width, sign, exponent and trailing zero bits of each float as one number from 0 to 2^20 − 1, shape (n,).

    The codes of NaN lie outside: at and above 2^20 without, below 0 with a sign.
    """
    raw = np.ascontiguousarray(values).view(np.int64)
    exponent, mantissa = (raw >> _MANTISSA) & 0x7FF, raw & ((1 << _MANTISSA) - 1)
    # Normal numbers have a leading one that is not stored; it bounds the trailing zeros by 52, here also for zero.
    mantissa |= 1 << _MANTISSA
    # The lowest bit is a power of two, and a float keeps the logarithm of one in its exponent.
    zeros = ((mantissa & -mantissa).astype(np.float64).view(np.int64) >> _MANTISSA) - _BIAS
    code = (exponent << _EXPONENT_SHIFT) | (zeros << 1)
    code |= raw < 0
    if widths is not None:
        code += _WIDTH_CODES[widths]
    odd = np.isnan(values)
    if odd.any():
        # All bits of NaN and its width, outside the codes of numbers and below 2^53.
        payload = raw[odd] & ((1 << _MANTISSA) - 1)
        if widths is not None:
            kind = _WIDTH_CODES[widths[odd]] // _N_OF_WIDTH
            payload = (payload >> _NAN_SHIFT[kind]) + _NAN_START[kind]
        code[odd] = np.where(raw[odd] < 0, -1 - payload, _N_CODES + payload)
    return code


# Shorter floats have fewer bits in NaN; a longer one loses the last of its 52.
_NAN_SHIFT: Integers = np.array([0, 29, 42, 1])
_NAN_START: Integers = np.array([0, 1 << 52, (1 << 52) + (1 << 23), (1 << 52) + (1 << 24)])
_WIDTH_CODES: Integers = _N_OF_WIDTH * np.array([_WIDTHS.get(width, _OTHER_WIDTH) for width in range(256)])


def bits_view(outputs: Outputs) -> Outputs:
    """The same outputs with every float replaced by its code; everything else as it is."""
    blocks = (replace(block, columns=tuple(map(_view_column, block.columns))) for block in outputs.blocks)
    return Outputs(tuple(blocks), outputs.size)


def _view_column(column: Column) -> Column:
    if isinstance(column, Numbers) and column.values.dtype == np.float64:
        return Numbers(bit_codes(column.values, column.widths))  # type: ignore[arg-type]  # float64 was just checked
    return column


@dataclass(frozen=True, slots=True)
class BitsEvent(Event):
    """An event of codes: outputs are seen through `bits_view` first."""

    kind: ClassVar[str] = "bits"

    def contains(self, outputs: object) -> Booleans:
        """Whether each output lies in the event, shape (n,)."""
        return Event.contains(self, bits_view(read_outputs(outputs)))

    def simplified(self) -> Self:
        """The same event on the coarsest partition that still separates it from the rest."""
        simple = Event.simplified(self)
        return type(self)(simple.partition, simple.chosen)

    def describe(self) -> str:
        """The event in words."""
        blocks = self.partition.blocks
        group = blocks[0].groups[0] if len(blocks) == 1 and blocks[0].is_single_line else None
        start = "the low-order bits of the output reveal the input"
        if group is None or group.line is None or group.score is not None:
            return f"{start}: a certain pattern of signs, exponents and trailing zero bits of its numbers"
        intervals = group.line.intervals(self.chosen[: group.n_cells])
        patterns = [text for low, high in intervals for text in _patterns_between(low, high)]
        if not patterns:
            return "no output"
        more, told = len(patterns) - _SPELLED_OUT, "; or ".join(patterns[:_SPELLED_OUT])
        return f"{start}: output with {told}" + (f"; or {more} more such patterns" if more > 0 else "")


def as_bits_event(event: Event) -> BitsEvent:
    """An event that was learned from codes, as one of outputs."""
    return BitsEvent(Partition(event.partition.blocks), event.chosen)


def _patterns_between(low: float, high: float) -> list[str]:
    """The floats with codes from `low` to below `high`, in words, for each width; open ends stay within it."""
    if np.isneginf(low) and high > 0:
        low = 0.0
    if np.isposinf(high) and low < _N_CODES:
        high = (max(low, 0.0) // _N_OF_WIDTH + 1) * _N_OF_WIDTH
    found = []
    for place, width in enumerate(("", " in 4 bytes", " in 2 bytes", " in more than 8 bytes")):
        ends = [int(np.clip(np.ceil(end) - place * _N_OF_WIDTH, 0, _N_OF_WIDTH)) for end in (low, high)]
        if ends[1] > ends[0]:
            found.append(_pattern(ends[0], ends[1] - 1) + width)
    return found + (["NaN with certain bits"] if low < 0 or high > _N_CODES else [])


def _pattern(first: int, last: int) -> str:
    """The outputs between two codes, in words."""
    low, high = first >> _EXPONENT_SHIFT, last >> _EXPONENT_SHIFT
    if low != high:
        return f"{_size_text(low)} up to {_size_text(high)}, with most numbers of trailing zero bits"
    fewest, most = (first >> 1) & 63, (last >> 1) & 63
    zeros = f"{fewest} to {most} trailing zero bits" if fewest < most else f"{fewest} trailing zero bits"
    # Codes alternate between positive and negative; a range may begin or end with one sign only.
    if first == last:
        return f"{_size_text(low)} and {zeros}, {'negative' if first & 1 else 'positive'}"
    ends = [f"negative if {fewest}"] * (first & 1) + [f"positive if {most}"] * (1 - last & 1)
    return f"{_size_text(low)} and {zeros}" + (f" ({', '.join(ends)})" if ends else "")


def _size_text(exponent: int) -> str:
    if exponent == 0:
        return "zero or subnormal"
    return "infinite" if exponent == 2 * _BIAS + 1 else f"2^{exponent - _BIAS} ≤ |output| < 2^{exponent - _BIAS + 1}"
