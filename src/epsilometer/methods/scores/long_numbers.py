"""Numbers that are held in two columns because they are longer than a float."""

import zlib

import numpy as np

from epsilometer.arrays import Array
from epsilometer.methods.scores.cells import FEWEST_REPEATS
from epsilometer.outputs import Block, Numbers
from epsilometer.outputs.shapes import EXACT, has_digit


def line_of_long_numbers(left: Block, right: Block) -> int | None:
    """The column that orders numbers held in two columns; None if single values matter more."""
    rounded = np.concatenate([_numbers_of(left, 0), _numbers_of(right, 0)])
    remainder = np.concatenate([_numbers_of(left, 1), _numbers_of(right, 1)])
    if has_digit(left.shape) and np.ptp(rounded) < EXACT:
        # The digit alone, which is exact.
        return 1
    _, count = np.unique(remainder, return_counts=True)
    # Where most remainders repeat, a few numbers are drawn again and again, and there is no line.
    most_repeat = 2 * count[count >= FEWEST_REPEATS].sum() > count.sum()
    return None if most_repeat else 0


def _numbers_of(block: Block, column_number: int) -> Array:
    """The values of a column, shape (n,); hashes of them if they are labels."""
    column = block.columns[column_number]
    if isinstance(column, Numbers):
        return column.values
    hashes = [zlib.crc32(label.encode(errors="replace")) for label in column.labels]
    return np.array(hashes, np.int64)[column.codes]
