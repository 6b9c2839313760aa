"""What learning starts from: training draws as columns of all that can be read in them.

Texts are taken apart, identifiers left out, and parts of numbers added in which the sides differ.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from epsilometer.outputs.columns import Outputs
from epsilometer.outputs.events import Event, LogRatio
from epsilometer.outputs.identifiers import (
    ColumnPlace,
    growing_columns,
    without_identifiers,
)
from epsilometer.outputs.part_learning import learn_parts
from epsilometer.outputs.partition import Partition
from epsilometer.outputs.text_learning import learn_text_reading
from epsilometer.outputs.text_reading import TextReading

W = TypeVar("W", Event, LogRatio)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Training draws, ready for learning.

    Attributes:
        left: training outputs, read.
        right: training outputs, read.
        reading: what was done to them; None if nothing was.
    """

    left: Outputs
    right: Outputs
    reading: TextReading | None

    def of_raw_outputs(self, witness: W) -> W:
        """Returns a witness that was learned from these draws as one of outputs as they come."""
        return replace(witness, partition=self.partition_of_raw_outputs(witness.partition))

    def partition_of_raw_outputs(self, partition: Partition) -> Partition:
        """Returns cells of these draws as cells of outputs as they come."""
        return partition if self.reading is None else replace(partition, reading=self.reading)


def prepare(
    left: Outputs, right: Outputs, growing: frozenset[ColumnPlace] | None = None
) -> Prepared:
    """Reads texts and parts of numbers of training draws, and leaves out identifiers.

    Args:
        left: training outputs.
        right: training outputs.
        growing: columns that grew from draw to draw; None if the outputs are in the order in which
            they were drawn, to look for them here.
    """
    if growing is None:
        growing = growing_columns(left, right)
    reading = without_identifiers(learn_text_reading(left, right), left, right, growing)
    texts_read = (left, right) if reading is None else (reading.read(left), reading.read(right))
    parts = learn_parts(*texts_read)
    if not parts:
        return Prepared(*texts_read, reading)
    with_parts = TextReading((), parts=parts)
    reading = replace(reading or with_parts, parts=parts)
    return Prepared(with_parts.read(texts_read[0]), with_parts.read(texts_read[1]), reading)
