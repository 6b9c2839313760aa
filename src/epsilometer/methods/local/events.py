"""The place of the greatest loss as an event that can be counted, stored and replayed."""

from __future__ import annotations

import numpy as np

from epsilometer.methods.local.samples import Outcomes
from epsilometer.outputs import Block, BlockPartition, Event, Group, Labels, Line, Numbers, Partition
from epsilometer.outputs.atoms import Atoms, LabelAtoms, NumberAtoms


def outcome_event(outcomes: Outcomes, outcome: int) -> Event:
    """The event that exactly this outcome happens."""
    block = outcomes.drawn.blocks[int(outcomes.where[outcome, 0])]
    row = int(outcomes.where[outcome, 1])
    if len(block.columns) == 1 and isinstance(block.columns[0], Numbers):
        return number_event(block.shape, float(block.columns[0].values[row]))
    partition = BlockPartition(block.shape, _atoms(block, row), (Group(_signature(block, row)),))
    return Event(Partition((partition,)), np.array([True, False, False]))


def number_event(shape: str, value: float) -> Event:
    """The event that a single number has this value."""
    if np.isnan(value):
        return _line_event(shape, Line(np.empty(0)), [False, True])
    end = np.nextafter(value, np.inf)
    if np.isposinf(value):
        return _line_event(shape, Line(np.array([value])), [False, True, False])
    return _line_event(shape, Line(np.array([value, end])), [False, True, False, False])


def window_event(shape: str, low: float, high: float) -> Event:
    """The event that a single number lies in [low, high)."""
    return _line_event(shape, Line(np.array([low, high])), [False, True, False, False])


def _line_event(shape: str, line: Line, chosen: list[bool]) -> Event:
    partition = BlockPartition(shape, (None,), (Group((-1,), line, 0),))
    return Event(Partition((partition,)), np.array([*chosen, False, False]))


def _atoms(block: Block, row: int) -> tuple[Atoms, ...]:
    return tuple(
        LabelAtoms((column.labels[column.codes[row]],))
        if isinstance(column, Labels)
        else NumberAtoms(_truth_values if column.values.dtype == np.bool_ else np.array([float(column.values[row])]))
        for column in block.columns
    )


def _signature(block: Block, row: int) -> tuple[int, ...]:
    # Truth values are both atoms, for which counting has a short cut; of any other column the one value is.
    codes = tuple(
        int(column.values[row]) if isinstance(column, Numbers) and column.values.dtype == np.bool_ else 0
        for column in block.columns
    )
    return codes or (0,)


_truth_values = np.array([0.0, 1.0])
