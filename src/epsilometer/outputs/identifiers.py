"""Columns that identify rows: row numbers, run ids, time stamps, hashes.

Nothing can be learned from a value that never comes again, and what chance makes of it spoils what
else there is to learn. Such columns are noticed and left out, unless they predict the side of draws
that did not help to notice them.

Noise is no identifier: continuous numbers never repeat either. A column of numbers is one only if
independent draws of no distribution could look like that, with a false alarm of about 1e-9:

* integers of which no two are equal, although they lie so close together that some would have to be
  (a birthday bound, which holds for every distribution);
* numbers that grow from draw to draw.

A column of texts is one if no text repeats, and if nothing that could be read in it tells the sides
apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.outputs.columns import Block, Column, Labels, Numbers, Outputs
from epsilometer.outputs.shapes import FEATURED, READ, leaves_of
from epsilometer.outputs.text_reading import (
    DIFFERENT,
    GROWING,
    TEXT_KINDS,
    ColumnReading,
    Identifier,
    ShapeReading,
    Template,
    TextReading,
    column_kinds,
)

# Training draws per side below which nothing is called an identifier.
_FEWEST_DRAWS = 60
# Draws per side that are examined.
_MOST_DRAWS = 1 << 16
# The probability with which independent draws look like an identifier.
_FALSE_ALARM = 1e-9
# The fraction of successive pairs of draws that must grow, for a column to count up.
_GROWING_FRACTION = 0.95
# The fraction of texts that must be different, for a column of texts to identify rows.
_DIFFERENT_FRACTION = 0.999
# How many standard errors apart the sides' mean scores on held-out draws must be, for a column to
# predict the side.
_PREDICTING_DEVIATIONS = 3.0
# Cells of a column of numbers for this prediction.
_N_CELLS = 16
# Pseudo-draws per cell and side.
_PSEUDO_DRAWS = 1.0
# Values that are looked at first.
_FIRST_VALUES = 256
# Kinds of views that are parts of a text without a meaning of their own.
_PARTS = frozenset({"length", "part", "number part", "byte", "last"})


# A column of a shape.
ColumnPlace = tuple[str, int]


def growing_columns(left: Outputs, right: Outputs) -> frozenset[ColumnPlace]:
    """Returns the columns whose values grow from draw to draw, texts in alphabetical order.

    Args:
        left: outputs in the order in which they were drawn.
        right: outputs of the other side.
    """
    growing = set()
    for block in (*left.blocks, *right.blocks):
        if block.size < _FEWEST_DRAWS:
            continue
        for place, column in enumerate(block.columns):
            first = column.take(slice(0, _MOST_DRAWS))
            if grows(first.values if isinstance(first, Numbers) else _ranks(first)):
                growing.add((block.shape, place))
    return frozenset(growing)


def _ranks(column: Labels) -> Integers:
    """Returns the alphabetical rank of each text, shape (n,)."""
    codes, used = np.unique(column.codes, return_inverse=True)
    labels = [column.labels[code] for code in codes.tolist()]
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[sorted(range(len(labels)), key=labels.__getitem__)] = np.arange(len(labels))
    return ranks[used]


def without_identifiers(
    reading: TextReading | None,
    left: Outputs,
    right: Outputs,
    growing: frozenset[ColumnPlace] = frozenset(),
) -> TextReading | None:
    """Returns a reading that also leaves out the columns that identify rows.

    Args:
        reading: how texts are read; None if they are not.
        left: training outputs as they come, in any order.
        right: training outputs.
        growing: columns that grew from draw to draw.
    """
    reading_of = {} if reading is None else {shape.shape: shape for shape in reading.shapes}
    right_blocks = {block.shape: block for block in right.blocks}
    identifiers: list[Identifier] = []
    for block in left.blocks:
        other = right_blocks.get(block.shape)
        if other is None or f"{FEATURED}{{" in block.shape or block.shape.startswith(f"{READ}["):
            continue
        n_columns = len(column_kinds(block.shape))
        if min(block.size, other.size) < _FEWEST_DRAWS or n_columns != len(block.columns):
            continue
        first_rows = slice(0, _MOST_DRAWS)
        sides = (_first_rows(block, first_rows), _first_rows(other, first_rows))
        shape = reading_of.get(block.shape) or ShapeReading(block.shape, n_columns, ())
        places = [place for name, place in growing if name == block.shape]
        changed, noticed = _examine_shape(shape, *sides, places)
        identifiers += noticed
        if noticed and (changed.left_out or changed.columns):
            reading_of[block.shape] = changed
    if not identifiers:
        return reading
    return TextReading(tuple(reading_of.values()), tuple(identifiers))


def identifier_columns(left: Outputs, right: Outputs) -> tuple[Identifier, ...]:
    """Returns the columns that identify rows, with texts as they come.

    Args:
        left: training outputs, in the order in which they were drawn.
        right: training outputs.
    """
    reading = without_identifiers(None, left, right, growing_columns(left, right))
    return () if reading is None else reading.identifiers


def _first_rows(block: Block, rows: slice) -> Block:
    columns = tuple(column.take(rows) for column in block.columns)
    return Block(block.shape, None, columns, len(columns[0]) if columns else block.size)


def _examine_shape(  # noqa: C901  # what a column may be, one kind after the other
    shape: ShapeReading, left: Block, right: Block, growing: Sequence[int]
) -> tuple[ShapeReading, list[Identifier]]:
    """Returns how a shape is read without its identifiers, and these.

    Args:
        shape: how it is read.
        left: outputs of one side.
        right: outputs of the other side.
        growing: the columns that grew from draw to draw.
    """
    kinds = column_kinds(shape.shape)
    paths = [leaf.path for leaf in leaves_of(shape.shape) for _ in range(leaf.n_columns)]
    readings = {reading.column: reading for reading in shape.columns}
    left_out: list[int] = []
    noticed: list[Identifier] = []
    for place, kind in enumerate(kinds):
        columns = (left.columns[place], right.columns[place])
        if place in readings:
            if place in growing:
                # Alphabetical order is that in which they were drawn.
                columns = (_sorted(columns[0]), _sorted(columns[1]))
            examined = _examine_read_texts(
                paths[place], readings[place], *columns, is_ordered=place in growing
            )
            if len(kinds) == 1 and examined.is_identifier:
                # If there is nothing else, it is learned from what there is.
                return shape, []
            noticed += examined.noticed
            readings[place] = examined.reading
            if not examined.keeps_something:
                left_out.append(place)
        elif kind in TEXT_KINDS:
            if all(_never_repeats(column) for column in columns):
                noticed.append(Identifier(paths[place], DIFFERENT, is_used=False))
                left_out.append(place)
        elif kind:
            why = GROWING if place in growing else _why_identifier(*columns)
            if why is not None:
                is_used = _still_predicts(why, *columns)
                noticed.append(Identifier(paths[place], why, is_used))
                if not is_used:
                    left_out.append(place)
    if not noticed or len(left_out) == len(kinds):
        return shape, []
    columns_read = tuple(readings[place] for place in sorted(readings) if place not in left_out)
    return replace(shape, columns=columns_read, left_out=tuple(left_out)), noticed


def _sorted(column: Column) -> Column:
    """Returns a column of texts in alphabetical order."""
    if not isinstance(column, Labels):
        return column
    return column.take(np.argsort(_ranks(column), kind="stable"))


class _ExaminedTexts(NamedTuple):
    """What became of a column of texts that is read.

    Attributes:
        reading: how it is read without what identifies rows.
        noticed: what identifies rows in it.
        is_identifier: whether it identifies rows itself.
        keeps_something: whether it has a column left.
    """

    reading: ColumnReading
    noticed: list[Identifier]
    is_identifier: bool = False
    keeps_something: bool = True


def _examine_read_texts(  # noqa: C901  # what a view may be, one kind after the other
    path: str, reading: ColumnReading, left: Column, right: Column, is_ordered: bool
) -> _ExaminedTexts:
    """Examines a column of texts that is read, view by view.

    Texts of which none repeats identify rows if no number or date in them varies as noise does. Of
    their numbers and parts, only what predicts the side is kept.

    Args:
        path: of the column.
        reading: how it is read.
        left: texts of the left side.
        right: texts of the right side.
        is_ordered: whether they are in the order in which they were drawn.
    """
    unchanged = _ExaminedTexts(reading, [])
    if not (isinstance(left, Labels) and isinstance(right, Labels)):
        return unchanged
    if not (_never_repeats(left) and _never_repeats(right)):
        return unchanged
    read = (reading.read(left), reading.read(right))
    templates = []
    noticed = []
    is_identifier = True
    has_labels = False
    is_used = False
    counts_up = False
    for number, template in enumerate(reading.templates):
        views = []
        for place, view in enumerate(template.views):
            both = [labels.column(number, place) for labels in read]
            why = GROWING if is_ordered and _grows_on(*both) else _why_identifier(*both)
            is_part = view.kind in _PARTS
            counts_up |= why == GROWING
            predicts = _still_predicts(why, *both)
            if why is not None:
                noticed.append(Identifier(view.name, why, predicts))
            elif view.is_number and not is_part:
                is_identifier = False
            elif view.kind == "label":
                has_labels = True
            if predicts or (why is None and not is_part):
                views.append(view)
            is_used |= predicts
        if counts_up:
            # So do the digits of what counts up, some of them slowly.
            views = [view for view in views if view.kind not in _PARTS]
        templates.append(Template(template.format, tuple(views), keeps_text=False))
    changed = replace(reading, templates=tuple(templates))
    if not is_identifier:
        return _ExaminedTexts(changed, noticed) if noticed else unchanged
    if has_labels and not noticed:
        return unchanged
    return _ExaminedTexts(
        reading=changed,
        noticed=[Identifier(path, DIFFERENT, is_used)],
        is_identifier=True,
        keeps_something=is_used or has_labels,
    )


# --- what independent draws would not look like


def _never_repeats(column: Column) -> bool:
    if not isinstance(column, Labels):
        return False
    n_distinct = len(np.unique(column.codes))
    return n_distinct >= _DIFFERENT_FRACTION * len(column)


def _why_identifier(left: Column, right: Column) -> str | None:
    """Returns why a column of numbers identifies rows, whatever its order; None if it does not."""
    for column in (left, right):
        if not isinstance(column, Numbers) or len(column) < _FEWEST_DRAWS:
            continue
        if never_repeats_although_close(column.values):
            return DIFFERENT
    return None


def _grows_on(left: Column, right: Column) -> bool:
    """Returns whether numbers of either side grow in the order given."""
    return any(
        isinstance(column, Numbers) and len(column) >= _FEWEST_DRAWS and grows(column.values)
        for column in (left, right)
    )


def grows(values: Array) -> bool:
    """Returns whether numbers grow from draw to draw, as no independent draws do.

    Guarantee: of disjoint pairs of independent draws at most half grow, in the mean, so false
    alarms have at most the probability `_FALSE_ALARM`, for every distribution.

    Args:
        values: shape (n,), in the order in which they were drawn.
    """
    n_pairs = len(values) // 2
    first = values[0 : 2 * n_pairs : 2]
    second = values[1 : 2 * n_pairs : 2]
    n_growing = int(np.count_nonzero(second > first))
    if n_growing < _GROWING_FRACTION * n_pairs:
        return False
    return bool(bdtrc(n_growing - 1, n_pairs, 0.5) <= _FALSE_ALARM)


def never_repeats_although_close(values: Array) -> bool:
    """Returns whether integers never repeat although some of independent draws would.

    Guarantee: given the least and the greatest of n independent draws, the others are independent
    draws of one distribution on the R integers between them. The probability that no two are equal
    is largest for the uniform distribution, where it is at most e^(−(n − 2)(n − 3)/(2R)). So false
    alarms have at most the probability `_FALSE_ALARM`, for every distribution.

    Args:
        values: shape (n,).
    """
    if values.dtype == np.bool_:
        return False
    # Few values show at once, in most cases, that these are no integers or repeat.
    if not _are_different_integers(values[:_FIRST_VALUES]) or not _are_different_integers(values):
        return False
    n = len(values)
    n_places = float(values.max()) - float(values.min()) + 1.0
    return bool((n - 2) * (n - 3) / (2.0 * n_places) >= -np.log(_FALSE_ALARM))


def _are_different_integers(values: Array) -> bool:
    numbers: Floats = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all() or np.any(numbers != np.floor(numbers)):
        return False
    return len(np.unique(numbers)) == len(numbers)


# --- prediction


def _still_predicts(why: str | None, left: Column, right: Column) -> bool:
    """Returns whether a column predicts the side of later draws, given why it identifies rows.

    What counts on, or is used up by both sides, will not come again: it tells the sides apart only
    if these are further apart than they have grown.
    """
    if why is None or not (isinstance(left, Numbers) and isinstance(right, Numbers)):
        return predicts_side(left, right)
    both = np.concatenate([left.values, right.values])
    if why == DIFFERENT and not never_repeats_although_close(both):
        return predicts_side(left, right)
    if not len(left) or not len(right):  # texts of this format came on one side only
        return False
    low, high = sorted((left.values, right.values), key=np.mean)
    grown = float(np.ptp(low)) + float(np.ptp(high))
    return bool(high.min() - low.max() > grown)


def predicts_side(left: Column, right: Column) -> bool:
    """Returns whether a column tells the sides of later draws apart, by what earlier ones show.

    Log-ratios of cells are learned from the first half of the draws, and compared on the second.

    Args:
        left: values of left draws, in the order in which they were drawn.
        right: values of right draws.
    """
    cells = _cells_of(left, right)
    if min(len(left), len(right)) < 4 or cells is None:
        return False
    left_cells, right_cells, n_cells = cells
    left_half = len(left_cells) // 2
    right_half = len(right_cells) // 2
    left_counts = np.bincount(left_cells[:left_half], minlength=n_cells) + _PSEUDO_DRAWS
    right_counts = np.bincount(right_cells[:right_half], minlength=n_cells) + _PSEUDO_DRAWS
    log_ratio = np.log(left_counts / left_counts.sum()) - np.log(right_counts / right_counts.sum())
    left_scores = log_ratio[left_cells[left_half:]]
    right_scores = log_ratio[right_cells[right_half:]]
    variance = left_scores.var() / len(left_scores) + right_scores.var() / len(right_scores)
    difference = left_scores.mean() - right_scores.mean()
    if variance == 0.0:
        return bool(difference > 0.0)
    return bool(difference > _PREDICTING_DEVIATIONS * np.sqrt(variance))


def _cells_of(left: Column, right: Column) -> tuple[Array, Array, int] | None:
    """Returns the cell of each value on both sides, and how many cells there are."""
    if isinstance(left, Labels) and isinstance(right, Labels):
        labels = dict.fromkeys((*left.labels, *right.labels))
        code_of: Callable[[str], int] = {
            label: code for code, label in enumerate(labels)
        }.__getitem__
        both = [_recoded(side, [code_of(label) for label in side.labels]) for side in (left, right)]
        return both[0], both[1], len(labels)
    if not (isinstance(left, Numbers) and isinstance(right, Numbers)):
        return None
    values = [np.asarray(side.values, dtype=np.float64) for side in (left, right)]
    first_halves = np.concatenate([side[: len(side) // 2] for side in values])
    known = first_halves[np.isfinite(first_halves)]
    if not len(known):
        return None
    edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _N_CELLS + 1)[1:-1]))
    cells = [
        np.where(np.isnan(side), len(edges) + 1, np.searchsorted(edges, side, side="right"))
        for side in values
    ]
    return cells[0], cells[1], len(edges) + 2


def _recoded(column: Labels, new_codes: Sequence[int]) -> Array:
    if not len(new_codes):
        return np.empty(0, dtype=np.int64)
    return np.array(new_codes, dtype=np.int64)[column.codes]
