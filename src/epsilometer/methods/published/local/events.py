"""The place of a loss as an event: one outcome, or a window around a number."""

from typing import NamedTuple

import numpy as np

from epsilometer.methods.published.local.samples import Outcomes
from epsilometer.outputs import BlockPartition, Event, Group, Labels, Numbers, Partition
from epsilometer.outputs.atoms import Atoms, LabelAtoms, NumberAtoms
from epsilometer.outputs.columns import Column
from epsilometer.outputs.lines import Line

# The code of a column whose value varies, in the signature of a group.
_VARIES = -1


class _AtomOfColumn(NamedTuple):
    """The value that an outcome has in one column.

    Attributes:
        atoms: the values of the column that are known by a code.
        code: which of them the outcome has.
    """

    atoms: Atoms
    code: int


def outcome_event(outcomes: Outcomes, outcome: int) -> Event:
    """Returns the event that exactly this outcome happens."""
    block = outcomes.block(outcome)
    row = int(outcomes.rows[outcome])
    if len(block.columns) == 1 and isinstance(block.columns[0], Numbers):
        number = float(block.columns[0].values[row])
        return _number_event(block.shape, number)
    atoms_of_columns = [_atom_at(column, row) for column in block.columns]
    signature = tuple(atom.code for atom in atoms_of_columns)
    # An outcome without columns, such as None, still needs a code.
    group = Group(signature=signature or (0,))
    block_partition = BlockPartition(
        shape=block.shape,
        atoms=tuple(atom.atoms for atom in atoms_of_columns),
        groups=(group,),
    )
    # The cells: the outcome, other outputs of its shape, other shapes.
    chosen = np.array([True, False, False])
    return Event(Partition((block_partition,)), chosen)


def _atom_at(column: Column, row: int) -> _AtomOfColumn:
    """Returns the value of a column in one row as an atom."""
    if isinstance(column, Labels):
        label = column.labels[column.codes[row]]
        return _AtomOfColumn(LabelAtoms((label,)), code=0)
    if column.values.dtype == np.bool_:
        # Both truth values, for which counting has a short cut.
        truth_values = np.array([0.0, 1.0])
        return _AtomOfColumn(NumberAtoms(truth_values), code=int(column.values[row]))
    number = float(column.values[row])
    return _AtomOfColumn(NumberAtoms(np.array([number])), code=0)


def window_event(shape: str, low: float, high: float) -> Event:
    """Returns the event that a single number lies in [low, high)."""
    return _line_event(shape, edges=[low, high], chosen=[False, True, False, False])


def _number_event(shape: str, value: float) -> Event:
    """Returns the event that a single number has exactly this value, which may be NaN."""
    if np.isnan(value):
        return _line_event(shape, edges=[], chosen=[False, True])
    if np.isposinf(value):
        return _line_event(shape, edges=[value], chosen=[False, True, False])
    next_number = float(np.nextafter(value, np.inf))
    return window_event(shape, value, next_number)


def _line_event(shape: str, *, edges: list[float], chosen: list[bool]) -> Event:
    """Returns an event of cells of a line.

    Args:
        shape: the shape of the outputs.
        edges: the k edges of the cells.
        chosen: k + 2 flags: below the first edge, between edges, from the last edge on, and NaN.
    """
    group = Group(signature=(_VARIES,), line=Line(np.array(edges)), column=0)
    block_partition = BlockPartition(shape=shape, atoms=(None,), groups=(group,))
    # The last two cells, other signatures and other shapes, do not belong to the event.
    all_chosen = np.array([*chosen, False, False])
    return Event(Partition((block_partition,)), all_chosen)
