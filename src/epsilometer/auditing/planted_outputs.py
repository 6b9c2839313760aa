"""Outputs that only one input gives, planted into outputs like those of an audit.

Real bugs leak in a few ways: a key that is there for one input only, a key that is missing, one
exact value, a value that was shifted or scaled, a list of another length. Each kind below turns
observed outputs into outputs of that kind, where the observed ones allow it.
"""

import re
from collections.abc import Callable, Set
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.outputs.columns import Block, Column, Labels, Numbers, Outputs
from epsilometer.outputs.shapes import leaves_of

# A planted output for each observed one that is given.
Planting = Callable[[Outputs], Outputs]

# Shifts are by this many times the range of the observed numbers: far outside, as by an index or a
# constant that got into a sum.
_SHIFT = 3.0
# A number in cents instead of euros, or in milliseconds instead of seconds.
_SCALE = 1000.0
# A column with at most this many distinct numbers is one of categories.
_FEW_VALUES = 8
# The key, and the label, that no observed output has.
_NEW_KEY = "planted"
_NEW_LABEL = "planted value"
# A sequence of simple values, whose length can be changed.
_SEQUENCE = re.compile(r"(list|tuple|array)\((\d+) × (float|int|bool|str)\)")


def plantings(observed: Outputs) -> dict[str, Planting]:
    """The kinds of rare outputs that these outputs allow, by name.

    Args:
        observed: outputs of both sides.
    """
    main = max(observed.blocks, key=lambda block: block.size)
    observed_shapes = {block.shape for block in observed.blocks}
    kinds: dict[str, Planting | None] = {
        "new key": _new_key(main),
        "missing key": _missing_key(main, observed_shapes),
        "exact value": _exact_value(main),
        "shift": _moved(main, _shifted),
        "scale": _moved(main, _scaled),
        "length": _longer(main, observed_shapes),
    }
    possible = {name: planting for name, planting in kinds.items() if planting is not None}
    if "new key" not in possible and all(block.shape != "None" for block in observed.blocks):
        possible["refusal"] = _refused
    return possible


def _with_shape(shape: str, change: Callable[[list[Column]], list[Column]]) -> Planting:
    """A planting that gives outputs of one shape another shape with other columns."""

    def plant(outputs: Outputs) -> Outputs:
        block = outputs.blocks[0]
        columns = tuple(change(list(block.columns)))
        return Outputs((Block(shape, None, columns, len(outputs)),), len(outputs))

    return plant


def _n_columns(shape: str) -> int:
    return sum(leaf.n_columns for leaf in leaves_of(shape))


def _is_record(block: Block) -> bool:
    return block.shape.startswith("{") and block.shape.endswith("}") and len(block.shape) > 2


def _refused(outputs: Outputs) -> Outputs:
    return Outputs((Block("None", None, (), len(outputs)),), len(outputs))


def _new_key(main: Block) -> Planting | None:
    if not _is_record(main):
        return None
    shape = f"{main.shape[:-1]}, {_NEW_KEY}: bool}}"
    if _n_columns(shape) != len(main.columns) + 1:
        return None

    def with_flag(columns: list[Column]) -> list[Column]:
        return [*columns, Numbers(np.ones(len(columns[0]), dtype=np.bool_))]

    return _with_shape(shape, with_flag) if main.columns else None


def _missing_key(main: Block, observed_shapes: Set[str]) -> Planting | None:
    if not _is_record(main):
        return None
    # The last field begins after the last comma that leaves a complete record before it.
    for comma in reversed([match.start() for match in re.finditer(", ", main.shape)]):
        shape = f"{main.shape[:comma]}}}"
        n_columns = _n_columns(shape)
        is_complete = not (len(leaves_of(shape)) == 1 and leaves_of(shape)[0].kind == shape)
        is_new = shape not in observed_shapes
        if is_complete and is_new and 0 < n_columns < len(main.columns):
            return _with_shape(shape, partial(_first_columns, n_columns))
    return None


def _first_columns(n_columns: int, columns: list[Column]) -> list[Column]:
    return columns[:n_columns]


def _longer(main: Block, observed_shapes: Set[str]) -> Planting | None:
    match = _SEQUENCE.search(main.shape)
    if match is None:
        return None
    name, length, kind = match.groups()
    longer = f"{name}({int(length) + 1} × {kind})"
    shape = main.shape[: match.start()] + longer + main.shape[match.end() :]
    if shape in observed_shapes:
        return None
    old = leaves_of(main.shape)
    new = leaves_of(shape)
    if _n_columns(shape) != len(main.columns) + 1 or len(new) != len(old) + 1:
        return None
    # The leaf that is new comes after all that are the same, and repeats the one before it.
    added = next(
        (place for place in range(len(old)) if old[place].path != new[place].path), len(old)
    )
    place = sum(leaf.n_columns for leaf in new[:added])

    def repeated(columns: list[Column]) -> list[Column]:
        return [*columns[:place], columns[place - 1], *columns[place:]]

    return _with_shape(shape, repeated) if place else None


def _changed(outputs: Outputs, place: int, column: Column) -> Outputs:
    block = outputs.blocks[0]
    columns = (*block.columns[:place], column, *block.columns[place + 1 :])
    return Outputs((replace(block, columns=columns),), len(outputs))


def _number_column(main: Block) -> int | None:
    """The place of the first column of numbers that are not categories; None without one."""
    for place, column in enumerate(main.columns):
        if isinstance(column, Numbers) and column.values.dtype != np.bool_:
            finite = column.values[np.isfinite(column.values)]
            if len(np.unique(finite)) > _FEW_VALUES:
                return place
    return None


def _exact_value(main: Block) -> Planting | None:
    """One value that never came before: a number in the middle of all, or a text."""
    place = _number_column(main)
    if place is None:
        return _new_label(main)
    column = main.columns[place]
    assert isinstance(column, Numbers)
    observed = np.asarray(column.values, dtype=np.float64)
    observed = observed[np.isfinite(observed)]
    median = float(np.median(observed))
    ordered = np.unique(observed)
    if column.values.dtype.kind == "f":
        # Between two observed numbers, in the middle of all: the median itself may be one that both
        # inputs give.
        next_one = int(np.clip(np.searchsorted(ordered, median), 1, len(ordered) - 1))
        value = 0.5 * (ordered[next_one - 1] + ordered[next_one])
    else:
        missing = np.setdiff1d(np.arange(ordered[0] - 1, ordered[-1] + 2), ordered)
        value = missing[np.argmin(np.abs(missing - median))]
    kind = column.values.dtype

    def plant(outputs: Outputs) -> Outputs:
        return _changed(outputs, place, _numbers(np.full(len(outputs), value), kind))

    return plant


def _new_label(main: Block) -> Planting | None:
    for place, column in enumerate(main.columns):
        if isinstance(column, Labels):

            def plant(outputs: Outputs, place: int = place) -> Outputs:
                codes = np.zeros(len(outputs), dtype=np.int32)
                return _changed(outputs, place, Labels(codes, (_NEW_LABEL,)))

            return plant
    return None


def _numbers(values: Floats, kind: np.dtype[Any]) -> Numbers:
    """A column of whole numbers, or of others, as the observed one is."""
    if kind.kind == "f":
        return Numbers(values)
    return Numbers(np.rint(values).astype(np.int64))


def _shifted(values: Floats, observed: Floats) -> Floats:
    return values + _SHIFT * max(float(np.ptp(observed)), 1.0)


def _scaled(values: Floats, observed: Floats) -> Floats:
    return values * _SCALE


def _moved(main: Block, move: Callable[[Floats, Floats], Floats]) -> Planting | None:
    """The first column of numbers, moved."""
    place = _number_column(main)
    if place is None:
        return None
    column = main.columns[place]
    assert isinstance(column, Numbers)
    observed = np.asarray(column.values, dtype=np.float64)
    observed = observed[np.isfinite(observed)]
    kind = column.values.dtype

    def plant(outputs: Outputs) -> Outputs:
        numbers = outputs.blocks[0].columns[place]
        assert isinstance(numbers, Numbers)
        moved = move(np.asarray(numbers.values, dtype=np.float64), observed)
        return _changed(outputs, place, _numbers(moved, kind))

    return plant
