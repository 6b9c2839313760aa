"""What learning starts from: training draws with their texts read and identifiers left out."""

from dataclasses import dataclass, replace
from typing import TypeVar

from epsilometer.outputs.columns import Outputs
from epsilometer.outputs.events import Event, LogRatio
from epsilometer.outputs.identifiers import (
    ColumnPlace,
    growing_columns,
    without_identifiers,
)
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
    """Reads the texts of training draws and leaves out identifiers.

    Args:
        left: training outputs.
        right: training outputs.
        growing: columns that grew from draw to draw; None if the outputs are in the order in which
            they were drawn, to look for them here.
    """
    if growing is None:
        growing = growing_columns(left, right)
    reading = without_identifiers(learn_text_reading(left, right), left, right, growing)
    if reading is None:
        return Prepared(left, right, None)
    return Prepared(reading.read(left), reading.read(right), reading)
