"""The place of a loss as an event: one outcome, or a window around a number."""

import numpy as np

from epsilometer.methods.published.local.samples import Outcomes
from epsilometer.outputs import BlockPartition, Event, Group, Labels, Numbers, Partition
from epsilometer.outputs.lines import Atoms, LabelAtoms, Line, NumberAtoms


def outcome_event(outcomes: Outcomes, outcome: int) -> Event:
    """Returns the event that exactly this outcome happens."""
    block = outcomes.block(outcome)
    row = int(outcomes.rows[outcome])
    if len(block.columns) == 1 and isinstance(block.columns[0], Numbers):
        return _number_event(block.shape, float(block.columns[0].values[row]))
    atoms: list[Atoms] = []
    signature: list[int] = []
    for column in block.columns:
        if isinstance(column, Labels):
            atoms.append(LabelAtoms((column.labels[column.codes[row]],)))
            signature.append(0)
        elif column.values.dtype == np.bool_:
            # Both truth values, for which counting has a short cut.
            atoms.append(NumberAtoms(np.array([0.0, 1.0])))
            signature.append(int(column.values[row]))
        else:
            atoms.append(NumberAtoms(np.array([float(column.values[row])])))
            signature.append(0)
    group = Group(tuple(signature) or (0,))
    partition = BlockPartition(block.shape, tuple(atoms), (group,))
    # The outcome, other outputs of its shape, other shapes.
    return Event(Partition((partition,)), np.array([True, False, False]))


def window_event(shape: str, low: float, high: float) -> Event:
    """Returns the event that a single number lies in [low, high)."""
    return _line_event(shape, [low, high], [False, True, False, False])


def _number_event(shape: str, value: float) -> Event:
    """Returns the event that a single number has exactly this value, which may be NaN."""
    if np.isnan(value):
        return _line_event(shape, [], [False, True])
    if np.isposinf(value):
        return _line_event(shape, [value], [False, True, False])
    return window_event(shape, value, float(np.nextafter(value, np.inf)))


def _line_event(shape: str, edges: list[float], chosen: list[bool]) -> Event:
    """Returns an event of cells of a line.

    Args:
        shape: of the outputs.
        edges: of the cells, k of them.
        chosen: k + 2 flags: below the first edge, between edges, from the last edge on, and NaN.
    """
    group = Group((-1,), Line(np.array(edges)), 0)
    partition = BlockPartition(shape, (None,), (group,))
    # Neither other signatures nor other shapes belong to it.
    return Event(Partition((partition,)), np.array([*chosen, False, False]))
