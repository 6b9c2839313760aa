"""A few kilobytes that keep the shape of both output distributions, so that any result can draw its loss function."""

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
# The bins cover all but this share of the draws at each end.
_TAIL = 0.002


def binned_densities(left: Outputs, right: Outputs) -> dict[str, Any] | None:
    """Counts of both sides in bins and of repeated values, for outputs that are one number or one name each.

    Returns:
        Plain data: `n` (draws of left and right), `atoms` (values or names that repeat) with
        `left_atoms` and `right_atoms`, and, where something varies, `low`, `high`, `left`, `right`
        (counts in even bins), `bandwidth`. None for outputs of several dimensions or shapes.
    """
    left, right = (side.take(slice(0, _MOST_ROWS)) for side in (left, right))
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
    # equal, or beyond what floats can divide
    if not np.finfo(np.float64).tiny < (high - low) / BINS < np.inf:
        return data
    data |= {"low": low, "high": high}
    widths = []
    for name, side, quartiles in zip(("left", "right"), sides, ends[:, 2:], strict=True):
        # Unlike numpy's histogram, this works even with fewer floats than bins between the ends.
        inside = side[(side >= low) & (side <= high)]
        bins = np.minimum(((inside - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
        data[name] = np.bincount(bins, minlength=BINS).tolist()
        # The bandwidth by Silverman's rule of thumb, as `bw.nrd0` of R has it: 0.9 · spread ·
        # n^(−1/5). a single 1e300 has an infinite variance
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = float(side.std(ddof=1))
        spread = (
            min(deviation, float(quartiles[1] - quartiles[0]) / 1.34)
            or deviation
            or abs(float(side[0]))
            or 1.0
        )
        widths.append(float(0.9 * spread * len(side) ** -0.2))
    return data | {"bandwidth": min(widths)}


def _atoms_of(left: Outputs, right: Outputs) -> dict[str, Any]:
    from epsilometer.methods.published.local.samples import count_outcomes  # not needed for numbers

    outcomes = count_outcomes(left, right)
    kept = np.sort(np.argsort(-(outcomes.left + outcomes.right), kind="stable")[:_MOST_ATOMS])
    if (numbers := outcomes.numbers()) is not None:
        kept = kept[np.argsort(numbers[kept], kind="stable")]
    atoms = [outcomes[int(number)] for number in kept]
    return {
        "atoms": atoms,
        "left_atoms": outcomes.left[kept].tolist(),
        "right_atoms": outcomes.right[kept].tolist(),
    }


# Draws per side in the picture of the outputs, its bins, the values that get a bar of their own,
# and its columns.
_MOST_SEEN = 20_000
_HISTOGRAM = 40
_MOST_BARS = 12
_MOST_COLUMNS = 3
# Outputs that show whether there are more values than bars.
_FEW_SEEN = 64

Flags = tuple[Booleans, Booleans]


def pictured_outputs(
    event: Event | LogRatio, left: Outputs, right: Outputs
) -> list[dict[str, Any]]:
    """Both distributions of outputs as counts in bins or of values, and the share of each bin that is in the event.

    Returns:
        One to four pictures as plain data: `name`, `n` (draws of left and right), `edges` or
        `values`, `left`, `right`, `inside`. The first of several shows the shapes, or the score
        that decides; the others its main columns.
    """
    sides = left.take(slice(0, _MOST_SEEN)), right.take(slice(0, _MOST_SEEN))
    inside = event.contains(sides[0]), event.contains(sides[1])
    blocks = [{block.shape: block for block in side.blocks if block.size} for side in sides]
    shapes = list({**blocks[0], **blocks[1]})
    pictures = [_bars("shape of the output", *_shapes(sides), inside)] if len(shapes) > 1 else []
    main = max(shapes, key=lambda each: sum(side[each].size for side in blocks if each in side))
    if all(main in side for side in blocks) and blocks[0][main].columns:
        pair = blocks[0][main], blocks[1][main]
        flags = [
            mask if block.rows is None else mask[block.rows]
            for block, mask in zip(pair, inside, strict=True)
        ]
        pictures += _columns(event, *pair, (flags[0], flags[1]))
    return pictures


def _shapes(sides: tuple[Outputs, Outputs]) -> tuple[list[str], list[str]]:
    texts = np.empty(len(sides[0]), dtype=object), np.empty(len(sides[1]), dtype=object)
    for side, names in zip(sides, texts, strict=True):
        for block in side.blocks:
            names[block.places()] = block.shape
    return texts[0].tolist(), texts[1].tolist()


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
    # or it would use a slow hash table
    distinct = np.unique(every[:_FEW_SEEN], return_counts=True)[0]
    if len(distinct) <= _MOST_BARS or not np.ptp(known) < np.inf:
        distinct = np.unique(every, return_counts=True)[0]
    if len(distinct) <= _MOST_BARS or not np.ptp(known) < np.inf:
        order = [number_text(each, kind) for each in distinct.tolist()]
        # The place of every value; NaN, which is the last of them, is equal to none.
        found = [
            np.minimum(np.searchsorted(distinct, side), len(order) - 1).tolist() for side in values
        ]
        texts = [[order[place] for place in side] for side in found]
        return _bars(name, texts[0], texts[1], inside, order[:_MOST_BARS])
    finite = [np.isfinite(side) for side in values]
    known_of = [side[mask] for side, mask in zip(values, finite, strict=True) if mask.any()]
    ends = np.array([np.quantile(each, [_TAIL, 1.0 - _TAIL]) for each in known_of])
    low = float(ends[:, 0].min())
    high = float(ends[:, 1].max())
    # bins of whole numbers, or some would hold more of them than others
    if kind in ("int", "bool", "date"):
        width = max(1.0, np.ceil((high - low + 1.0) / _HISTOGRAM))
        edges = np.arange(np.floor(low), high + width + 0.5, width) - 0.5
    else:
        edges = np.linspace(low, high if high > low else low + 1.0, _HISTOGRAM + 1)
    last = len(edges) - 2
    bins = [
        (places(edges, side[mask]) - 1).clip(0, last)
        for side, mask in zip(values, finite, strict=True)
    ]
    counts = [np.bincount(each, minlength=last + 1) for each in bins]
    within = (each[flag[mask]] for each, flag, mask in zip(bins, inside, finite, strict=True))
    seen = counts[0] + counts[1]
    chosen = np.bincount(np.concatenate(list(within)), minlength=last + 1)
    share = chosen / np.maximum(seen, 1)
    known_bins = np.flatnonzero(seen)
    # as its neighbours
    share = share[known_bins[np.abs(np.arange(len(seen))[:, None] - known_bins).argmin(axis=1)]]
    about = {
        "name": name,
        "kind": kind,
        "n": [len(side) for side in values],
        "edges": edges.tolist(),
    }
    return {
        **about,
        "left": counts[0].tolist(),
        "right": counts[1].tolist(),
        "inside": np.round(share, 2).tolist(),
    }


def _bars(
    name: str, left: list[str], right: list[str], inside: Flags, order: Sequence[str] = ()
) -> dict[str, Any]:
    """The values that differ most in frequency, or those of `order`; the rest together."""
    counts = (
        Counter(left),
        Counter(right),
        Counter(compress(left, inside[0])) + Counter(compress(right, inside[1])),
    )
    n = max(len(left), 1), max(len(right), 1)
    telling = sorted(
        {*left, *right},
        key=lambda each: (-abs(counts[0][each] / n[0] - counts[1][each] / n[1]), each),
    )
    kept = order or telling[:_MOST_BARS]
    rows = [[tally[each] for each in kept] for tally in counts]
    if len(kept) < len(telling):
        rows = [[*row, tally.total() - sum(row)] for row, tally in zip(rows, counts, strict=True)]
    values = [each[:60] for each in kept] + (["any other"] if len(kept) < len(telling) else [])
    shares = np.round(
        np.array(rows[2]) / np.maximum(np.array(rows[0]) + np.array(rows[1]), 1), 2
    ).tolist()
    about = {"name": name, "n": [len(left), len(right)], "values": values}
    return {**about, "left": rows[0], "right": rows[1], "inside": shares}
