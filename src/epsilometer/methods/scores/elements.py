"""Outputs of many shapes that share their parts: lists of any length, records with optional fields.

The additive score of `by_shape` learns every shape by itself. Here a part has the same weights in
every shape that has it: all elements of a list share one function, and so do all fields of one
name. The first and the last elements of lists may differ from the others, and each shape has a
weight of its own. Where elements are records, a number in them may have another function for each
value of a label in the same record.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
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
from epsilometer.outputs.lines import CodedColumn
from epsilometer.outputs.scores import AdditiveScore, Score, SumScore, TreeScore
from epsilometer.outputs.shapes import leaves_of

# Shapes that are scored, the most frequent first.
_MOST_SHAPES = 64
# Parts with weights of their own.
_MOST_PARTS = 16
# Draws per side that fit the weights.
_MOST_ROWS = 10_000
# Draws per side below which there is nothing to learn.
_FEWEST_ROWS = 50
# Pairs of a label and a number in one record that have weights of their own, and cells of each.
_MOST_RECORD_PAIRS = 4
_MOST_RECORD_CELLS = 256
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


class _RecordPair(NamedTuple):
    """A label and a number in one record, which is an element of a list."""

    label: _Slot
    number: _Slot


class _InRecord(NamedTuple):
    """The columns of a label and a number in one record of a shape."""

    pair: _RecordPair
    label: int
    number: int


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
    records_by_shape = [
        _records_of(left, slots_of_shape, known)
        for (left, _), slots_of_shape in zip(by_size, slots_by_shape, strict=True)
    ]
    pairs_in_records = list(
        dict.fromkeys(record.pair for records in records_by_shape for record in records)
    )[:_MOST_RECORD_PAIRS]
    sizes = [known[role.slot].size for role in roles]
    sizes += [known[pair.label].size * known[pair.number].size for pair in pairs_in_records]
    starts = np.cumsum([0, *sizes, len(by_size)]).tolist()
    with_weights: list[_Role | _RecordPair] = [*roles, *pairs_in_records]
    start_of = dict(zip(with_weights, starts, strict=False))
    left_features, left_places = _features(
        [left for left, _ in by_size],
        roles_by_shape,
        records_by_shape,
        known=known,
        start_of=start_of,
        starts=starts,
        n_draws=n_left,
    )
    right_features, right_places = _features(
        [right for _, right in by_size],
        roles_by_shape,
        records_by_shape,
        known=known,
        start_of=start_of,
        starts=starts,
        n_draws=n_right,
    )
    parts = []
    for role, (start, stop) in zip(roles, pairwise(starts), strict=False):
        kernels = column_kernels(known[role.slot])
        parts += [PriorPart(slice(start, stop), kernel) for kernel in kernels]
    for pair in pairs_in_records:
        number = known[pair.number]
        for value in range(known[pair.label].size):
            start = start_of[pair] + value * number.size
            parts.append(PriorPart(slice(start, start + number.size), column_kernels(number)[-1]))
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
    for place, ((block, _), roles_of_shape, records) in enumerate(
        zip(by_size, roles_by_shape, records_by_shape, strict=True)
    ):
        terms = []
        for column, roles_of_column in enumerate(roles_of_shape):
            if roles_of_column:
                cut = known[roles_of_column[0].slot]
                begins = [start_of[role] for role in roles_of_column]
                weights = sum(fit.weights[begin : begin + cut.size] for begin in begins)
                terms.append(cut.weighted(np.asarray(weights), column))
        n_columns = len(block.columns)
        score: Score | None = AdditiveScore(tuple(terms)) if terms else None
        trees = _trees_of_records(records, known, start_of, fit.weights)
        if isinstance(score, AdditiveScore) and trees is not None:
            score = SumScore((score, trees), np.ones(2))
        group = Group((-1,) * n_columns or (0,), score=score)
        offset = fit.weights[shapes_start + place]
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


def _records_of(
    block: Block, slots: Sequence[_Slot], known: Mapping[_Slot, ColumnCells]
) -> list[_InRecord]:
    """The labels and numbers that stand in one record of a shape, where records are elements."""
    paths = [leaf.path for leaf in leaves_of(block.shape) for _ in range(leaf.n_columns)]
    if len(paths) != len(slots):
        return []
    columns_of: dict[str, list[int]] = {}
    for column, path in enumerate(paths):
        record = path[: max(path.rfind("."), path.rfind("["))]
        if _POSITION.search(record) and slots[column] in known:
            columns_of.setdefault(record, []).append(column)
    found = []
    for columns in columns_of.values():
        labels = [column for column in columns if not slots[column].is_number]
        numbers = [column for column in columns if slots[column].is_number]
        for label, number in product(labels, numbers):
            pair = _RecordPair(slots[label], slots[number])
            if known[pair.label].size * known[pair.number].size <= _MOST_RECORD_CELLS:
                found.append(_InRecord(pair, label, number))
    return found


def _trees_of_records(
    records: Sequence[_InRecord],
    known: Mapping[_Slot, ColumnCells],
    start_of: Mapping[_Role | _RecordPair, int],
    weights: Floats,
) -> TreeScore | None:
    """The weights of a number within each value of a label, for all records of a shape.

    A tree asks whether the label has one value, in two questions, and whether the number is in some
    cell or above it; so it holds one step of the number's function. None if there are no steps.
    """
    codings: list[CodedColumn] = []
    features: list[tuple[int, int, int]] = []
    thresholds: list[tuple[int, int, int]] = []
    steps: list[float] = []
    for record in records:
        if record.pair not in start_of:
            continue
        label = known[record.pair.label]
        number = known[record.pair.number]
        start = start_of[record.pair]
        table = weights[start : start + label.size * number.size].reshape(label.size, -1)
        first = len(codings)
        codings.append(CodedColumn(column=record.label, cells=label.term.cells))
        codings.append(CodedColumn(column=record.number, cells=number.term.cells))
        for value, row in zip(label.used.tolist(), table, strict=True):
            all_weights = number.weighted(row).weights
            for cell, step in enumerate(np.diff(all_weights, prepend=0.0).tolist()):
                if step:
                    features.append((first, first, first + 1))
                    thresholds.append((value, value + 1, cell))
                    steps.append(step)
    if not steps:
        return None
    leaves = np.zeros((len(steps), 8))
    # At least this value of the label, not more, and at least this cell of the number.
    leaves[:, 0b101] = steps
    return TreeScore(tuple(codings), np.array(features), np.array(thresholds), leaves)


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
    records_by_shape: Sequence[Sequence[_InRecord]],
    *,
    known: Mapping[_Slot, ColumnCells],
    start_of: Mapping[_Role | _RecordPair, int],
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
    for number, (block, roles_of_shape, records) in enumerate(
        zip(blocks, roles_by_shape, records_by_shape, strict=True)
    ):
        block_places = block.places()
        n_rows = int(np.searchsorted(block_places, last))
        table = np.zeros((n_rows, starts[-1]))
        table[:, starts[-2] + number] = 1.0
        rows = np.arange(n_rows)
        for column, roles in enumerate(roles_of_shape):
            if roles:
                cells = known[roles[0].slot].index(_first(block, column, n_rows))
                for role in roles:
                    table[rows, start_of[role] + cells] += 1.0
        for pair, label, other in records:
            if pair in start_of:
                label_cells = known[pair.label].index(_first(block, label, n_rows))
                other_cells = known[pair.number].index(_first(block, other, n_rows))
                cells = label_cells * known[pair.number].size + other_cells
                table[rows, start_of[pair] + cells] += 1.0
        features.append(table)
        places.append(block_places[:n_rows])
    return np.concatenate(features), np.concatenate(places)


def _first(block: Block, column: int, n_rows: int) -> tuple[Column]:
    """The first rows of one column."""
    return (block.columns[column].take(slice(0, n_rows)),)
