"""What mechanisms return: read once into columns, cut into cells, gathered into events."""

from epsilometer.outputs.bits import BitsEvent
from epsilometer.outputs.columns import Block, Labels, Numbers, Outputs, concatenate
from epsilometer.outputs.events import Event
from epsilometer.outputs.lines import Line
from epsilometer.outputs.partition import BlockPartition, Group, Partition
from epsilometer.outputs.reading import read_outputs

__all__ = [
    "BitsEvent",
    "Block",
    "BlockPartition",
    "Event",
    "Group",
    "Labels",
    "Line",
    "Numbers",
    "Outputs",
    "Partition",
    "concatenate",
    "read_outputs",
]
