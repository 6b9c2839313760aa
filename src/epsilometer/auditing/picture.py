"""Small summaries of both output distributions, from which reports draw their figures.

They take a few kilobytes and are stored with the result, so that any result can draw its loss
function and its outputs without the draws.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from epsilometer.arrays import Booleans
from epsilometer.outputs.columns import Block, Column, Labels, Numbers, Outputs, leaves_of
from epsilometer.outputs.events import Event, LogRatio, name_of_part, score_words
from epsilometer.outputs.lines import crowded, number_text, places

# Enough for the eye; as JSON about 1 kB per side.
BINS = 96
# Outcomes beyond the most frequent ones are left out of the picture.
_MOST_ATOMS = 32
# Draws per side that are looked at: more would not change the picture.
_MOST_ROWS = 40_000
# A value seen at least this often is shown on its own.
_REPEATS = 5
# The bins cover all but this fraction of the draws at each end.
_TAIL = 0.002


def binned_densities(left: Outputs, right: Outputs) -> dict[str, Any] | None:
    """Counts of both sides in bins and of repeated values.

    Only outputs that are one number or one category each can be summarised like this.

    Returns:
        Plain data: `n` (draws of left and right), `atoms` (values or names that repeat) with
        `left_atoms` and `right_atoms`, and, where something varies, `low`, `high`, `left`, `right`
        (counts in even bins), `bandwidth`. None for outputs of several dimensions or shapes.
    """
    left = left.take(slice(0, _MOST_ROWS))
    right = right.take(slice(0, _MOST_ROWS))
    shapes = {block.shape for side in (left, right) for block in side.blocks if block.size}
    if len(shapes) != 1 or not len(left) or not len(right) or len(left.blocks[0].columns) != 1:
        return None
    data: dict[str, Any] = {"n": [len(left), len(right)]}
    columns = [side.blocks[0].columns[0] for side in (left, right)]
    if not all(
        isinstance(column, Numbers) and column.values.dtype.kind == "f" for column in columns
    ):
        return data | _atoms_of(left, right)
    values = [
        np.asarray(column.values, np.float64) for column in columns if isinstance(column, Numbers)
    ]
    pooled = np.concatenate(values)
    pooled = np.sort(crowded(pooled[np.isfinite(pooled)], _REPEATS))
    late = pooled[_REPEATS - 1 :]
    # A value that occurs k times equals the one _REPEATS - 1 places before it k + 1 - _REPEATS
    # times.
    often, more = np.unique(late[late == pooled[: len(late)]], return_counts=True)
    repeated = np.sort(often[np.argsort(-more, kind="stable")[:_MOST_ATOMS]])
    alone = [np.isin(side, repeated) for side in values] if len(repeated) else None
    data |= {"atoms": repeated.tolist()}
    for name, side in zip(("left_atoms", "right_atoms"), values, strict=True):
        data[name] = [int(np.count_nonzero(side == atom)) for atom in repeated]
    rest = (
        values if alone is None else [side[~mask] for side, mask in zip(values, alone, strict=True)]
    )
    sides = [side[np.isfinite(side)] for side in rest]
    if min(map(len, sides)) < 2 * _REPEATS:
        return data
    ends = np.array([np.quantile(side, [_TAIL, 1.0 - _TAIL, 0.25, 0.75]) for side in sides])
    low = float(ends[:, 0].min())
    high = float(ends[:, 1].max())
    # The ends are equal, or so far apart that floats cannot divide the distance.
    if not np.finfo(np.float64).tiny < (high - low) / BINS < np.inf:
        return data
    data |= {"low": low, "high": high}
    widths = []
    for name, side, quartiles in zip(("left", "right"), sides, ends[:, 2:], strict=True):
        # Unlike numpy's histogram, this works even with fewer floats than bins between the ends.
        inside = side[(side >= low) & (side <= high)]
        bins = np.minimum(((inside - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
        data[name] = np.bincount(bins, minlength=BINS).tolist()
        # The bandwidth by Silverman's rule of thumb, as `bw.nrd0` of R has it: 0.9 · scale ·
        # n^(−1/5). A single 1e300 has an infinite variance.
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = float(side.std(ddof=1))
        from_quartiles = float(quartiles[1] - quartiles[0]) / 1.34
        # The first of these that is not 0.
        scale = min(deviation, from_quartiles) or deviation or abs(float(side[0])) or 1.0
        widths.append(float(0.9 * scale * len(side) ** -0.2))
    return data | {"bandwidth": min(widths)}


def _atoms_of(left: Outputs, right: Outputs) -> dict[str, Any]:
    """The most frequent outcomes with their counts on both sides; numbers in ascending order."""
    from epsilometer.methods.published.local.samples import count_outcomes  # not needed for numbers

    outcomes = count_outcomes(left, right)
    by_frequency = np.argsort(-(outcomes.left + outcomes.right), kind="stable")
    shown = np.sort(by_frequency[:_MOST_ATOMS])
    numbers = outcomes.numbers()
    if numbers is not None:
        shown = shown[np.argsort(numbers[shown], kind="stable")]
    return {
        "atoms": [outcomes[int(number)] for number in shown],
        "left_atoms": outcomes.left[shown].tolist(),
        "right_atoms": outcomes.right[shown].tolist(),
    }


# Draws per side in the picture of the outputs.
_MOST_PICTURED = 20_000
# Bins of a histogram.
_HISTOGRAM_BINS = 40
# Values that get a bar of their own.
_MOST_BARS = 12
# Columns of the outputs that get a picture.
_MOST_COLUMNS = 3
# So many outputs show at once, in most cases, that there are more values than bars.
_FIRST_OUTPUTS = 64

# Which draws of the left and of the right are in the event.
Flags = tuple[Booleans, Booleans]


def pictured_outputs(
    event: Event | LogRatio, left: Outputs, right: Outputs
) -> list[dict[str, Any]]:
    """Both distributions of outputs as counts in bins or of values.

    Each bin also has the fraction of its draws that are in the event.

    Returns:
        One to four pictures as plain data: `name`, `n` (draws of left and right), `edges` or
        `values`, `left`, `right`, `inside`. The first of several shows the shapes, or the score
        that decides; the others its main columns.
    """
    left = left.take(slice(0, _MOST_PICTURED))
    right = right.take(slice(0, _MOST_PICTURED))
    inside_left = event.contains(left)
    inside_right = event.contains(right)
    left_blocks = {block.shape: block for block in left.blocks if block.size}
    right_blocks = {block.shape: block for block in right.blocks if block.size}

    def draws_of(shape: str) -> int:
        blocks = (left_blocks.get(shape), right_blocks.get(shape))
        return sum(block.size for block in blocks if block is not None)

    shapes = list({**left_blocks, **right_blocks})
    pictures = []
    if len(shapes) > 1:
        inside = (inside_left, inside_right)
        pictures.append(_bars("shape of the output", _shapes(left), _shapes(right), inside))
    main = max(shapes, key=draws_of)
    if main in left_blocks and main in right_blocks and left_blocks[main].columns:
        left_block = left_blocks[main]
        right_block = right_blocks[main]
        inside_blocks = (
            _rows_of(left_block, inside_left),
            _rows_of(right_block, inside_right),
        )
        pictures += _columns(event, left_block, right_block, inside_blocks)
    return pictures


def _rows_of(block: Block, flags: Booleans) -> Booleans:
    """The flags of the draws that are in a block."""
    return flags if block.rows is None else flags[block.rows]


def _shapes(outputs: Outputs) -> list[str]:
    """The shape of every output."""
    shapes = np.empty(len(outputs), dtype=object)
    for block in outputs.blocks:
        shapes[block.places()] = block.shape
    return list(shapes.tolist())


def _columns(
    event: Event | LogRatio, left: Block, right: Block, inside: Flags
) -> list[dict[str, Any]]:
    """The score that decides, if there is one, and the columns that matter most."""
    leaves = [(leaf, part) for leaf in leaves_of(left.shape) for part in range(leaf.n_columns)]
    groups = [
        group
        for part in event.partition.blocks
        if part.shape == left.shape
        for group in part.groups
    ]
    score = next((group.score for group in groups if group.score), None)
    pictures = []
    if score is not None:
        name, shift, turn = score_words(score, [name_of_part(*leaf) for leaf in leaves])
        values = [
            Numbers(turn * (score.evaluate(block.columns) - shift)) for block in (left, right)
        ]
        pictures.append(_column(name, "float", values[0], values[1], inside))
        terms = sorted(getattr(score, "terms", ()), key=lambda term: -term.reach)
        wanted = [term.column for term in terms] or list(score.columns)
    else:
        wanted = [group.column for group in groups if group.line]
        wanted += [
            place for group in groups for place, code in enumerate(group.signature) if code >= 0
        ]
    wanted = wanted or list(range(len(left.columns)))
    first = [
        place
        for place in dict.fromkeys(wanted)
        if len(leaves) == len(left.columns) and not leaves[place][1]
    ]
    for place in first[: _MOST_COLUMNS if score is not None else max(1, _MOST_COLUMNS - 1)]:
        leaf = leaves[place][0]
        pictures.append(
            _column(leaf.path, leaf.kind, left.columns[place], right.columns[place], inside)
        )
    return pictures


def _column(name: str, kind: str, left: Column, right: Column, inside: Flags) -> dict[str, Any]:
    """Bars for categories and for few distinct numbers, a histogram for other numbers."""
    if isinstance(left, Labels) or isinstance(right, Labels):
        sides = [
            [side.labels[code] for code in side.codes]
            for side in (left, right)
            if isinstance(side, Labels)
        ]
        return _bars(name, sides[0], sides[1], inside)
    values = [np.asarray(side.values, dtype=np.float64) for side in (left, right)]
    every = np.concatenate(values)
    known = every[np.isfinite(every)]
    # Without `return_counts` numpy would use a slow hash table.
    distinct = np.unique(every[:_FIRST_OUTPUTS], return_counts=True)[0]
    if len(distinct) <= _MOST_BARS or not np.ptp(known) < np.inf:
        distinct = np.unique(every, return_counts=True)[0]
    if len(distinct) <= _MOST_BARS or not np.ptp(known) < np.inf:
        order = [number_text(number, kind) for number in distinct.tolist()]
        texts = []
        for side in values:
            # The place of every value; NaN, which is the last of them, is equal to none.
            places_of_side = np.minimum(np.searchsorted(distinct, side), len(order) - 1)
            texts.append([order[place] for place in places_of_side.tolist()])
        return _bars(name, texts[0], texts[1], inside, order[:_MOST_BARS])
    finite = [np.isfinite(side) for side in values]
    known_of = [side[mask] for side, mask in zip(values, finite, strict=True) if mask.any()]
    ends = np.array([np.quantile(numbers, [_TAIL, 1.0 - _TAIL]) for numbers in known_of])
    low = float(ends[:, 0].min())
    high = float(ends[:, 1].max())
    if kind in ("int", "bool", "date"):
        # The width is a whole number, or some bins would hold more of them than others.
        width = max(1.0, np.ceil((high - low + 1.0) / _HISTOGRAM_BINS))
        edges = np.arange(np.floor(low), high + width + 0.5, width) - 0.5
    else:
        edges = np.linspace(low, high if high > low else low + 1.0, _HISTOGRAM_BINS + 1)
    last = len(edges) - 2
    bins = [
        (places(edges, side[mask]) - 1).clip(0, last)
        for side, mask in zip(values, finite, strict=True)
    ]
    counts = [np.bincount(numbers, minlength=last + 1) for numbers in bins]
    bins_inside = [
        numbers[flags[mask]] for numbers, flags, mask in zip(bins, inside, finite, strict=True)
    ]
    both_counts = counts[0] + counts[1]
    counts_inside = np.bincount(np.concatenate(bins_inside), minlength=last + 1)
    fraction = counts_inside / np.maximum(both_counts, 1)
    # An empty bin gets the fraction of the nearest one that is not empty.
    filled_bins = np.flatnonzero(both_counts)
    distances = np.abs(np.arange(len(both_counts))[:, None] - filled_bins)
    fraction = fraction[filled_bins[distances.argmin(axis=1)]]
    return {
        "name": name,
        "kind": kind,
        "n": [len(side) for side in values],
        "edges": edges.tolist(),
        "left": counts[0].tolist(),
        "right": counts[1].tolist(),
        "inside": np.round(fraction, 2).tolist(),
    }


def _bars(
    name: str, left: list[str], right: list[str], inside: Flags, order: Sequence[str] = ()
) -> dict[str, Any]:
    """The values that differ most in frequency, or those of `order`; the rest together."""
    left_counts = Counter(left)
    right_counts = Counter(right)
    counts_inside = Counter(compress(left, inside[0])) + Counter(compress(right, inside[1]))
    n_left = max(len(left), 1)
    n_right = max(len(right), 1)

    def by_difference(value: str) -> tuple[float, str]:
        difference = left_counts[value] / n_left - right_counts[value] / n_right
        return (-abs(difference), value)

    values = sorted({*left, *right}, key=by_difference)
    shown = order or values[:_MOST_BARS]
    has_rest = len(shown) < len(values)

    def heights(counts: Counter[str]) -> list[int]:
        bars = [counts[value] for value in shown]
        return [*bars, counts.total() - sum(bars)] if has_rest else bars

    left_bars = heights(left_counts)
    right_bars = heights(right_counts)
    both_bars = np.array(left_bars) + np.array(right_bars)
    fraction = np.array(heights(counts_inside)) / np.maximum(both_bars, 1)
    labels = [value[:60] for value in shown]
    if has_rest:
        labels.append("any other")
    return {
        "name": name,
        "n": [len(left), len(right)],
        "values": labels,
        "left": left_bars,
        "right": right_bars,
        "inside": np.round(fraction, 2).tolist(),
    }
