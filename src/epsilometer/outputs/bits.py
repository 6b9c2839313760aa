"""The floating-point view of outputs: how a number is represented, instead of its value.

Noise that is computed in floating point cannot reach every number: which sums `value + noise` can
occur, and how many of their last bits are zero, depends on the value (Mironov 2012). The view
replaces every float by one integer, its *code*, which holds its sign, its exponent (and so its
order of magnitude), the number of trailing zero bits of its mantissa, and its width in bytes.
NaN keeps all of its bits, because none of them vary by chance.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.outputs.columns import Column, Numbers, Outputs
from epsilometer.outputs.events import Event
from epsilometer.outputs.partition import Group
from epsilometer.outputs.reading import read_outputs

# Bits of a double's mantissa that are stored.
_MANTISSA_BITS = 52
_MANTISSA_MASK = (1 << _MANTISSA_BITS) - 1
_EXPONENT_MASK = 0x7FF
# What is added to the exponent of a double before it is stored.
_EXPONENT_BIAS = 1023
# The stored exponent of infinity and NaN.
_EXPONENT_OF_INFINITY = 2 * _EXPONENT_BIAS + 1

# A code is exponent·2^7 + zeros·2 + sign: up to 52 trailing zeros fit into 6 bits, the sign into 1.
_EXPONENT_SHIFT = 7
_ZEROS_SHIFT = 1
_ZEROS_MASK = 63
# Codes per width: 11 bits of exponent and the 7 bits below it.
_CODES_PER_WIDTH = 1 << 18

# The class of each width in bytes. Floats of eight bytes come first, so that their codes are the
# same as if there were only doubles. Longer floats, such as x87 extended, have the last class.
_WIDTH_CLASSES = {8: 0, 4: 1, 2: 2}
_OTHER_WIDTH_CLASS = 3
_WIDTH_WORDS = ("", " in 4 bytes", " in 2 bytes", " in more than 8 bytes")
_N_CODES = _CODES_PER_WIDTH * len(_WIDTH_WORDS)
# What a float's width adds to its code, for every width in bytes that a uint8 can hold.
_CODE_OFFSET_OF_WIDTH: Integers = _CODES_PER_WIDTH * np.array(
    [_WIDTH_CLASSES.get(width, _OTHER_WIDTH_CLASS) for width in range(256)]
)

# The payload of a NaN, by width class: as a double, a shorter NaN has zeros at its end, which are
# shifted out; a longer one loses its last bit, so that all classes fit below 2^53.
_NAN_SHIFT: Integers = np.array([0, 29, 42, 1])
# Where the payloads of each width class begin, so that those of two classes never coincide.
_NAN_START: Integers = np.array([0, 1 << 52, (1 << 52) + (1 << 23), (1 << 52) + (1 << 24)])

# Bit patterns that a description spells out; the rest are only counted.
_MAX_PATTERNS_IN_WORDS = 4


def bit_codes(values: Floats, widths: NDArray[np.uint8] | None = None) -> Integers:
    """Returns the code of each float: its width, sign, exponent and trailing zero bits.

    Args:
        values: shape (n,).
        widths: shape (n,), the width of each float in bytes; None if all have eight.

    Returns:
        Shape (n,), from 0 to 2^20 − 1. The codes of NaN lie outside of this range: at and above
        2^20 for positive NaN, below 0 for negative NaN.
    """
    raw = np.ascontiguousarray(values).view(np.int64)
    exponent = (raw >> _MANTISSA_BITS) & _EXPONENT_MASK
    mantissa = raw & _MANTISSA_MASK
    # Normal numbers have a leading one that is not stored. Setting it for all numbers, also for
    # zero and subnormal ones, bounds the number of trailing zeros by 52.
    mantissa |= 1 << _MANTISSA_BITS
    # The lowest set bit is a power of two, whose logarithm a float holds in its exponent.
    lowest_bit = (mantissa & -mantissa).astype(np.float64)
    trailing_zeros = (lowest_bit.view(np.int64) >> _MANTISSA_BITS) - _EXPONENT_BIAS
    code = (exponent << _EXPONENT_SHIFT) | (trailing_zeros << _ZEROS_SHIFT)
    code |= raw < 0
    if widths is not None:
        code += _CODE_OFFSET_OF_WIDTH[widths]
    is_nan = np.isnan(values)
    if is_nan.any():
        code[is_nan] = _nan_codes(raw[is_nan], None if widths is None else widths[is_nan])
    return code


def _nan_codes(raw: Integers, widths: NDArray[np.uint8] | None) -> Integers:
    """Returns codes that hold all bits of each NaN and its width; their size stays below 2^53."""
    payload = raw & _MANTISSA_MASK
    if widths is not None:
        width_class = _CODE_OFFSET_OF_WIDTH[widths] // _CODES_PER_WIDTH
        payload = (payload >> _NAN_SHIFT[width_class]) + _NAN_START[width_class]
    return np.where(raw < 0, -1 - payload, _N_CODES + payload)


def bits_view(outputs: Outputs) -> Outputs:
    """Returns the outputs with every float replaced by its code; everything else is unchanged."""
    blocks = []
    for block in outputs.blocks:
        columns = tuple(_view_column(column) for column in block.columns)
        blocks.append(replace(block, columns=columns))
    return Outputs(tuple(blocks), outputs.size)


def _view_column(column: Column) -> Column:
    if not isinstance(column, Numbers) or column.values.dtype != np.float64:
        return column
    values = np.asarray(column.values, dtype=np.float64)  # no copy; for the type checker
    return Numbers(bit_codes(values, column.widths))


@dataclass(frozen=True, slots=True, repr=False)
class BitsEvent(Event):
    """An event of codes: outputs are converted by `bits_view` before they are looked up."""

    kind: ClassVar[str] = "bits"

    def contains(self, outputs: object) -> Booleans:
        """Returns whether each output lies in the event, shape (n,)."""
        return Event.contains(self, bits_view(read_outputs(outputs)))

    def simplified(self) -> Self:
        """Returns the same event on the coarsest partition that still separates it."""
        simple = Event.simplified(self)
        return type(self)(simple.partition, simple.chosen)

    def describe(self) -> str:
        """Returns the event in words."""
        start = "the low-order bits of the output reveal the input"
        group = self._only_group()
        if group is None or group.line is None or group.score is not None:
            pattern = "a certain pattern of signs, exponents and trailing zero bits of its numbers"
            return f"{start}: {pattern}"
        patterns = []
        for low, high in group.line.intervals(self.chosen[: group.n_cells]):
            patterns += _patterns_between(low, high)
        if not patterns:
            return "no output"
        text = "; or ".join(patterns[:_MAX_PATTERNS_IN_WORDS])
        n_more = len(patterns) - _MAX_PATTERNS_IN_WORDS
        if n_more > 0:
            text += f"; or {n_more} more such patterns"
        return f"{start}: output with {text}"

    def _only_group(self) -> Group | None:
        """Returns the group of an event on a single line; None for any other event."""
        blocks = self.partition.blocks
        if len(blocks) == 1 and blocks[0].is_single_line:
            return blocks[0].groups[0]
        return None


def as_bits_event(event: Event) -> BitsEvent:
    """Returns an event that was learned from codes as an event of outputs."""
    return BitsEvent(event.partition, event.chosen)


def _patterns_between(low: float, high: float) -> list[str]:
    """Describes the floats with codes from `low` to below `high`, width by width.

    An infinite end stays within the width of the other end, or within all numbers.
    """
    if np.isneginf(low) and high > 0:
        low = 0.0
    if np.isposinf(high) and low < _N_CODES:
        width_class_of_low = max(low, 0.0) // _CODES_PER_WIDTH
        high = (width_class_of_low + 1) * _CODES_PER_WIDTH
    patterns = []
    for width_class, width_words in enumerate(_WIDTH_WORDS):
        offset = width_class * _CODES_PER_WIDTH
        first = int(np.clip(np.ceil(low) - offset, 0, _CODES_PER_WIDTH))
        end = int(np.clip(np.ceil(high) - offset, 0, _CODES_PER_WIDTH))
        if end > first:
            patterns.append(_describe_codes(first, end - 1) + width_words)
    if low < 0 or high > _N_CODES:
        patterns.append("NaN with certain bits")
    return patterns


def _describe_codes(first: int, last: int) -> str:
    """Describes the floats whose code, without its width, lies between two codes, inclusive."""
    lowest_exponent = first >> _EXPONENT_SHIFT
    highest_exponent = last >> _EXPONENT_SHIFT
    size = _size_text(lowest_exponent)
    if lowest_exponent != highest_exponent:
        largest = _size_text(highest_exponent)
        return f"{size} up to {largest}, with most numbers of trailing zero bits"
    fewest = (first >> _ZEROS_SHIFT) & _ZEROS_MASK
    most = (last >> _ZEROS_SHIFT) & _ZEROS_MASK
    n_zeros = f"{fewest} to {most}" if fewest < most else f"{fewest}"
    text = f"{size} and {n_zeros} trailing zero bits"
    starts_negative = bool(first & 1)
    ends_positive = not last & 1
    if first == last:
        return f"{text}, {'negative' if starts_negative else 'positive'}"
    # Codes alternate between positive and negative, so a range may begin or end with one sign only.
    one_sided = []
    if starts_negative:
        one_sided.append(f"negative if {fewest}")
    if ends_positive:
        one_sided.append(f"positive if {most}")
    return f"{text} ({', '.join(one_sided)})" if one_sided else text


def _size_text(exponent: int) -> str:
    """Describes the order of magnitude that a stored exponent stands for."""
    if exponent == 0:
        return "zero or subnormal"
    if exponent == _EXPONENT_OF_INFINITY:
        return "infinite"
    power = exponent - _EXPONENT_BIAS
    return f"2^{power} ≤ |output| < 2^{power + 1}"
