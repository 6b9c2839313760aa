"""Outputs of many shapes that share their parts: lists of any length, records with optional fields.

The additive score of `by_shape` learns every shape by itself. Here a part has the same weights in
every shape that has it: all elements of a list share one function, and so do all fields of one
name. The first and the last elements of lists may differ from the others, and each shape has a
weight of its own.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.additive import PriorPart, column_kernels
from epsilometer.methods.scores.cells import ColumnCells, ColumnView, cut_columns
from epsilometer.methods.scores.folds import fold_of_rows
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore, one_group
from epsilometer.methods.scores.regression import fit_regression
from epsilometer.outputs import Block, Group, Numbers
from epsilometer.outputs.columns import Column, concatenate_columns
from epsilometer.outputs.scores import AdditiveScore
from epsilometer.outputs.shapes import leaves_of

# Shapes that are scored, the most frequent first.
_MOST_SHAPES = 64
# Parts with weights of their own.
_MOST_PARTS = 16
# Draws per side that fit the weights.
_MOST_ROWS = 10_000
# Draws per side below which there is nothing to learn.
_FEWEST_ROWS = 50
# Elements at either end of a list that have a function of their own besides the shared one.
_N_ENDS = 2
# Positions in lists, which are left out of the names of parts.
_POSITION = re.compile(r"\[\d+\]")


class _Slot(NamedTuple):
    """A part of outputs, in whichever shapes it occurs: its name, and whether it is a number."""

    name: str
    is_number: bool


class _Role(NamedTuple):
    """What the weights of a column depend on: its part, and whether it is near an end of a list.

    Attributes:
        slot: the part.
        place: "" for any element, "first 0", "last 1" and so on for those near an end.
    """

    slot: _Slot
    place: str


def elements_score(
    pairs: Sequence[tuple[Block, Block]], n_left: int, n_right: int
) -> ContinuousScore | None:
    """The score of outputs of several shapes by their parts.

    Args:
        pairs: left and right training outputs of each shape.
        n_left: left training outputs.
        n_right: right training outputs.

    Returns:
        None for a single shape, for too few draws, and if shapes have no parts.
    """
    if len(pairs) < 2 or min(n_left, n_right) < _FEWEST_ROWS:
        return None
    by_size = sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size)[:_MOST_SHAPES]
    slots_by_shape = [_slots_of(left) for left, _ in by_size]
    slots = list(dict.fromkeys(slot for slots in slots_by_shape for slot in slots))
    if not 0 < len(slots) <= _MOST_PARTS:
        return None
    cuts = [_cut_slot(slot, by_size, slots_by_shape, len(slots)) for slot in slots]
    known = {slot: cut for slot, cut in zip(slots, cuts, strict=True) if cut is not None}
    roles_by_shape = [_roles_of(slots_of_shape, known) for slots_of_shape in slots_by_shape]
    roles = list(
        dict.fromkeys(
            role for roles_of_shape in roles_by_shape for of in roles_of_shape for role in of
        )
    )
    starts = np.cumsum([0, *(known[role.slot].size for role in roles), len(by_size)]).tolist()
    start_of = dict(zip(roles, starts, strict=False))
    left_features, left_places = _features(
        [left for left, _ in by_size],
        roles_by_shape,
        known=known,
        start_of=start_of,
        starts=starts,
        n_draws=n_left,
    )
    right_features, right_places = _features(
        [right for _, right in by_size],
        roles_by_shape,
        known=known,
        start_of=start_of,
        starts=starts,
        n_draws=n_right,
    )
    parts = []
    for role, (start, stop) in zip(roles, pairwise(starts), strict=False):
        kernels = column_kernels(known[role.slot])
        parts += [PriorPart(slice(start, stop), kernel) for kernel in kernels]
    shapes_start = starts[-2]
    parts.append(PriorPart(slice(shapes_start, starts[-1]), np.eye(len(by_size))))
    fit = fit_regression(
        left_features,
        right_features,
        fold_of_rows(left_places),
        fold_of_rows(right_places),
        parts,
    )
    shapes = []
    for number, ((block, _), roles_of_shape) in enumerate(
        zip(by_size, roles_by_shape, strict=True)
    ):
        terms = []
        for column, roles_of_column in enumerate(roles_of_shape):
            if roles_of_column:
                cut = known[roles_of_column[0].slot]
                begins = [start_of[role] for role in roles_of_column]
                weights = sum(fit.weights[begin : begin + cut.size] for begin in begins)
                terms.append(cut.weighted(np.asarray(weights), column))
        n_columns = len(block.columns)
        score = AdditiveScore(tuple(terms)) if terms else None
        group = Group((-1,) * n_columns or (0,), score=score)
        offset = fit.weights[shapes_start + number]
        shapes.append(ShapeScore(one_group(block.shape, n_columns, group), np.array([offset])))
    every = np.concatenate([left_features, right_features])
    # Draws that were left out of the fit, and those of further shapes.
    scale_left = n_left / max(sum(left.size for left, _ in by_size), 1)
    scale_right = n_right / max(sum(right.size for _, right in by_size), 1)
    return ContinuousScore(
        name="elements",
        left=fit.left,
        right=fit.right,
        ordered=np.sort(every @ fit.weights),
        outside=(
            round((scale_left - 1.0) * len(fit.left)),
            round((scale_right - 1.0) * len(fit.right)),
        ),
        shapes=shapes,
    )


def _slots_of(block: Block) -> list[_Slot]:
    """The part that each column of a shape belongs to."""
    names = [leaf.path for leaf in leaves_of(block.shape) for _ in range(leaf.n_columns)]
    if len(names) != len(block.columns):
        names = [f"column {number}" for number in range(len(block.columns))]
    return [
        _Slot(_POSITION.sub("[]", name), isinstance(column, Numbers))
        for name, column in zip(names, block.columns, strict=True)
    ]


def _roles_of(slots: Sequence[_Slot], known: Mapping[_Slot, ColumnCells]) -> list[list[_Role]]:
    """The roles of each column of a shape; none for columns that do not vary."""
    count = Counter(slots)
    seen: Counter[_Slot] = Counter()
    roles: list[list[_Role]] = []
    for slot in slots:
        if slot not in known:
            roles.append([])
            continue
        before = seen[slot]
        after = count[slot] - 1 - before
        seen[slot] += 1
        roles_of_column = [_Role(slot, "")]
        is_element = "[]" in slot.name
        if is_element and before < _N_ENDS:
            roles_of_column.append(_Role(slot, f"first {before}"))
        if is_element and after < _N_ENDS:
            roles_of_column.append(_Role(slot, f"last {after}"))
        roles.append(roles_of_column)
    return roles


def _cut_slot(
    slot: _Slot,
    pairs: Sequence[tuple[Block, Block]],
    slots_by_shape: Sequence[Sequence[_Slot]],
    n_slots: int,
) -> ColumnCells | None:
    """Cuts the values of a part in all shapes into cells; None if they do not vary."""
    left: list[Column] = []
    right: list[Column] = []
    for (left_block, right_block), slots in zip(pairs, slots_by_shape, strict=True):
        for column, other in enumerate(slots):
            if other == slot:
                left.append(left_block.columns[column])
                right.append(right_block.columns[column])
    left_column = concatenate_columns(left)
    right_column = concatenate_columns(right)
    left_block = Block("element", None, (left_column,), len(left_column))
    right_block = Block("element", None, (right_column,), len(right_column))
    # As many cells as a column gets beside the others.
    cuts = cut_columns(left_block, right_block, [ColumnView(0, None)], n_columns=max(n_slots, 2))
    return cuts[0] if cuts else None


def _features(
    blocks: Sequence[Block],
    roles_by_shape: Sequence[Sequence[Sequence[_Role]]],
    *,
    known: Mapping[_Slot, ColumnCells],
    start_of: Mapping[_Role, int],
    starts: Sequence[int],
    n_draws: int,
) -> tuple[Floats, Integers]:
    """How often each draw fills each cell, and its shape.

    Returns:
        Shape (n, features), and the places of these draws among all, shape (n,).
    """
    # The first draws, whatever their shapes.
    last = min(n_draws, _MOST_ROWS)
    features = []
    places = []
    for number, (block, roles_of_shape) in enumerate(zip(blocks, roles_by_shape, strict=True)):
        block_places = block.places()
        n_rows = int(np.searchsorted(block_places, last))
        table = np.zeros((n_rows, starts[-1]))
        table[:, starts[-2] + number] = 1.0
        rows = np.arange(n_rows)
        for column, roles in enumerate(roles_of_shape):
            if roles:
                only = (block.columns[column].take(slice(0, n_rows)),)
                cells = known[roles[0].slot].index(only)
                for role in roles:
                    table[rows, start_of[role] + cells] += 1.0
        features.append(table)
        places.append(block_places[:n_rows])
    return np.concatenate(features), np.concatenate(places)
