"""Small summaries of both output distributions, from which reports draw their figures.

They take a few kilobytes and are stored with the result, so that any result can draw its loss
function and its outputs without the draws.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.outputs.columns import Block, Column, Labels, Numbers, Outputs
from epsilometer.outputs.event_words import name_of_part, score_words
from epsilometer.outputs.events import Event, LogRatio
from epsilometer.outputs.number_words import number_text
from epsilometer.outputs.partition import Group
from epsilometer.outputs.placing import maybe_repeated, places
from epsilometer.outputs.scores import Score
from epsilometer.outputs.shapes import Leaf, leaves_of, shape_words
from epsilometer.outputs.sides import Sides

# ----- the densities behind the loss function

# Bins of a density: enough for the eye; as JSON about 1 kB per side.
BINS = 96
# Outcomes beyond the most frequent ones are left out of the summary.
_MOST_ATOMS = 32
# Draws per side that are looked at: more would not change the figure.
_MOST_ROWS = 40_000
# A value that occurs at least this often is counted on its own.
_REPEATS = 5
# The bins cover all but this fraction of the draws at each end.
_TAIL = 0.002
# The interquartile range of a Gaussian, in standard deviations.
_GAUSSIAN_QUARTILE_RANGE = 1.34
# Silverman's rule of thumb, as `bw.nrd0` of R has it: bandwidth = 0.9 · scale · n^(−1/5).
_BANDWIDTH_FACTOR = 0.9
_BANDWIDTH_EXPONENT = -0.2


def binned_densities(left: Outputs, right: Outputs) -> dict[str, Any] | None:
    """Counts of both sides in bins and of repeated values.

    Only outputs that are one number or one category each can be summarised like this.

    Returns:
        Plain data: `n` (draws of left and right), `atoms` (values or names that repeat) with
        `left_atoms` and `right_atoms`, and, where something varies, `low`, `high`, `left`, `right`
        (counts in even bins), `bandwidth`. None for outputs of several dimensions or shapes.
    """
    outputs = Sides(left.take(slice(0, _MOST_ROWS)), right.take(slice(0, _MOST_ROWS)))
    columns = _single_columns(outputs)
    if columns is None:
        return None
    data: dict[str, Any] = {"n": [len(outputs.left), len(outputs.right)]}
    left_values = _float_values(columns.left)
    right_values = _float_values(columns.right)
    if left_values is None or right_values is None:
        return data | _frequent_outcomes(outputs)
    pooled = np.concatenate([left_values, right_values])
    repeated = _repeated_values(pooled[np.isfinite(pooled)])
    data["atoms"] = repeated.tolist()
    data["left_atoms"] = _occurrences(left_values, repeated)
    data["right_atoms"] = _occurrences(right_values, repeated)
    varying = Sides(_varying(left_values, repeated), _varying(right_values, repeated))
    return data | _density_bins(varying)


def _single_columns(outputs: Sides[Outputs]) -> Sides[Column] | None:
    """The columns of outputs that are one value each; None if they are anything else."""
    left, right = outputs
    if not len(left) or not len(right):
        return None
    shapes = {block.shape for block in (*left.blocks, *right.blocks) if block.size}
    if len(shapes) != 1 or len(left.blocks[0].columns) != 1:
        return None
    return Sides(left.blocks[0].columns[0], right.blocks[0].columns[0])


def _float_values(column: Column) -> Floats | None:
    """The values of a column of floating-point numbers; None for any other column."""
    if isinstance(column, Numbers) and column.values.dtype.kind == "f":
        return np.asarray(column.values, np.float64)
    return None


def _repeated_values(numbers: Floats) -> Floats:
    """The most frequent values among those that occur often, in ascending order."""
    candidates = np.sort(maybe_repeated(numbers, _REPEATS))
    # Among sorted numbers, one that occurs k times equals the one `_REPEATS - 1` places before it
    # k + 1 - `_REPEATS` times.
    later = candidates[_REPEATS - 1 :]
    earlier = candidates[: len(later)]
    values, n_equal = np.unique(later[later == earlier], return_counts=True)
    by_frequency = np.argsort(-n_equal, kind="stable")
    return np.sort(values[by_frequency[:_MOST_ATOMS]])


def _occurrences(numbers: Floats, values: Floats) -> list[int]:
    """How often each of the values occurs."""
    return [int(np.count_nonzero(numbers == value)) for value in values]


def _varying(numbers: Floats, repeated: Floats) -> Floats:
    """The finite numbers that are not counted on their own."""
    if len(repeated):
        numbers = numbers[~np.isin(numbers, repeated)]
    return numbers[np.isfinite(numbers)]


class _Quantiles(NamedTuple):
    """Quantiles of the varying numbers of one side.

    Attributes:
        low: the end of the lower tail, which gets no bins.
        high: the beginning of the upper tail, which gets none either.
        first_quartile: the 25 % quantile.
        third_quartile: the 75 % quantile.
    """

    low: float
    high: float
    first_quartile: float
    third_quartile: float

    @classmethod
    def of(cls, numbers: Floats) -> "_Quantiles":
        """The quantiles of one side."""
        return cls(*np.quantile(numbers, [_TAIL, 1.0 - _TAIL, 0.25, 0.75]).tolist())


def _density_bins(varying: Sides[Floats]) -> dict[str, Any]:
    """Counts in even bins, and the bandwidth that suits both sides; empty if bins say nothing."""
    if min(len(varying.left), len(varying.right)) < 2 * _REPEATS:
        return {}
    quantiles = varying.map(_Quantiles.of)
    low = float(np.min([quantiles.left.low, quantiles.right.low]))
    high = float(np.max([quantiles.left.high, quantiles.right.high]))
    bin_width = (high - low) / BINS
    # The ends are equal, or so far apart that floats cannot divide the distance.
    if not np.finfo(np.float64).tiny < bin_width < np.inf:
        return {}
    left_bandwidth = _bandwidth(varying.left, quantiles.left)
    right_bandwidth = _bandwidth(varying.right, quantiles.right)
    return {
        "low": low,
        "high": high,
        "left": _even_bin_counts(varying.left, low, high),
        "right": _even_bin_counts(varying.right, low, high),
        "bandwidth": min(left_bandwidth, right_bandwidth),
    }


def _even_bin_counts(numbers: Floats, low: float, high: float) -> list[int]:
    """How many of the numbers lie in each bin between two ends.

    Unlike numpy's histogram, this works even with fewer floats than bins between the ends.
    """
    inside = numbers[(numbers >= low) & (numbers <= high)]
    positions = ((inside - low) / (high - low) * BINS).astype(np.int64)
    # The upper end itself belongs to the last bin.
    bins = np.minimum(positions, BINS - 1)
    return list(np.bincount(bins, minlength=BINS).tolist())


def _bandwidth(numbers: Floats, quantiles: _Quantiles) -> float:
    """The bandwidth of a kernel density by Silverman's rule of thumb."""
    # A single 1e300 has an infinite variance.
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(numbers.std(ddof=1))
    quartile_range = quantiles.third_quartile - quantiles.first_quartile
    deviation_by_quartiles = quartile_range / _GAUSSIAN_QUARTILE_RANGE
    # The first of these that is not 0.
    scale = min(deviation, deviation_by_quartiles) or deviation or abs(float(numbers[0])) or 1.0
    return float(_BANDWIDTH_FACTOR * scale * len(numbers) ** _BANDWIDTH_EXPONENT)


def _frequent_outcomes(outputs: Sides[Outputs]) -> dict[str, Any]:
    """The most frequent outcomes with their counts on both sides; numbers in ascending order."""
    from epsilometer.methods.published.local.samples import count_outcomes  # not needed for numbers

    outcomes = count_outcomes(outputs.left, outputs.right)
    by_frequency = np.argsort(-(outcomes.left + outcomes.right), kind="stable")
    chosen = np.sort(by_frequency[:_MOST_ATOMS])
    numbers = outcomes.numbers()
    if numbers is not None:
        chosen = chosen[np.argsort(numbers[chosen], kind="stable")]
    return {
        "atoms": [outcomes[int(number)] for number in chosen],
        "left_atoms": outcomes.left[chosen].tolist(),
        "right_atoms": outcomes.right[chosen].tolist(),
    }


# ----- the outputs and the event

# Draws per side in the picture of the outputs.
_MOST_PICTURED = 20_000
# Bins of a histogram.
_HISTOGRAM_BINS = 40
# Values that get a bar of their own.
_MOST_BARS = 12
# Characters of a value under its bar.
_LABEL_CHARACTERS = 60
# Columns of the outputs that get a picture beside that of the score.
_MOST_COLUMNS_WITH_SCORE = 3
# Columns of the outputs that get a picture where there is no score.
_MOST_COLUMNS_WITHOUT_SCORE = 2
# So many outputs show at once, in most cases, that there are more values than bars.
_FIRST_OUTPUTS = 64
# Kinds of numbers that are whole.
_WHOLE_KINDS = ("int", "bool", "date")

# One picture as plain data, see `pictured_outputs`.
Picture = dict[str, Any]


def pictured_outputs(event: Event | LogRatio, left: Outputs, right: Outputs) -> list[Picture]:
    """Both distributions of outputs as counts in bins or of values.

    Each bin also has the fraction of its draws that are in the event.

    Returns:
        One to four pictures as plain data: `name`, `n` (draws of left and right), `edges` or
        `values`, `left`, `right`, `inside`. The first of several shows the shapes, or the score
        that decides; the others its main columns.
    """
    left = left.take(slice(0, _MOST_PICTURED))
    right = right.take(slice(0, _MOST_PICTURED))
    reading = event.partition.reading
    if reading is not None:
        left = reading.read(left)
        right = reading.read(right)
    # Which draws are in the event.
    inside = Sides(event.contains(left), event.contains(right))
    left_blocks = {block.shape: block for block in left.blocks if block.size}
    right_blocks = {block.shape: block for block in right.blocks if block.size}

    def draws_of(shape: str) -> int:
        blocks = (left_blocks.get(shape), right_blocks.get(shape))
        return sum(block.size for block in blocks if block is not None)

    shapes = list({**left_blocks, **right_blocks})
    pictures = []
    if len(shapes) > 1:
        pictures.append(_bars("shape of the output", Sides(_shapes(left), _shapes(right)), inside))
    main = max(shapes, key=draws_of)
    if main in left_blocks and main in right_blocks and left_blocks[main].columns:
        blocks = Sides(left_blocks[main], right_blocks[main])
        inside_blocks = Sides(
            _flags_of(blocks.left, inside.left), _flags_of(blocks.right, inside.right)
        )
        pictures += _pictures_of_columns(event, blocks, inside_blocks)
    return pictures


def _flags_of(block: Block, flags: Booleans) -> Booleans:
    """The flags of the draws that are in a block."""
    return flags if block.rows is None else flags[block.rows]


def _shapes(outputs: Outputs) -> list[str]:
    """The shape of every output."""
    shapes = np.empty(len(outputs), dtype=object)
    for block in outputs.blocks:
        shapes[block.places()] = shape_words(block.shape)
    return list(shapes.tolist())


class _LeafColumn(NamedTuple):
    """What a column of a block holds: a leaf, or one part of it.

    Attributes:
        leaf: the value inside the outputs.
        part: 0 for the first column of the leaf, 1 for the second.
    """

    leaf: Leaf
    part: int


def _pictures_of_columns(
    event: Event | LogRatio, blocks: Sides[Block], inside: Sides[Booleans]
) -> list[Picture]:
    """The score that decides, if there is one, and the columns that matter most."""
    shape = blocks.left.shape
    leaf_columns = [
        _LeafColumn(leaf, part) for leaf in leaves_of(shape) for part in range(leaf.n_columns)
    ]
    groups = [
        group
        for partition in event.partition.blocks
        if partition.shape == shape
        for group in partition.groups
    ]
    score = next((group.score for group in groups if group.score), None)
    pictures = []
    if score is None:
        columns = _columns_of_groups(groups)
        most_columns = _MOST_COLUMNS_WITHOUT_SCORE
    else:
        names = [name_of_part(column.leaf, column.part) for column in leaf_columns]
        pictures.append(_picture_of_score(score, names, blocks, inside))
        columns = _columns_of_score(score)
        most_columns = _MOST_COLUMNS_WITH_SCORE
    n_columns = len(blocks.left.columns)
    if len(leaf_columns) != n_columns:
        return pictures
    if not columns:
        columns = list(range(n_columns))
    # The second column of a leaf, such as an imaginary part, says little on its own.
    first_columns = [number for number in dict.fromkeys(columns) if not leaf_columns[number].part]
    for number in first_columns[:most_columns]:
        leaf = leaf_columns[number].leaf
        column = Sides(blocks.left.columns[number], blocks.right.columns[number])
        pictures.append(_picture_of_column(leaf.path, leaf.kind, column, inside))
    return pictures


def _columns_of_groups(groups: Sequence[Group]) -> list[int]:
    """The columns that the cells look at: those cut by lines, then those with repeated values."""
    cut_columns = [group.column for group in groups if group.line]
    columns_of_atoms = [
        column for group in groups for column, code in enumerate(group.signature) if code >= 0
    ]
    return cut_columns + columns_of_atoms


def _columns_of_score(score: Score) -> list[int]:
    """The columns that a score looks at; where terms are known, the most influential first."""
    terms = sorted(getattr(score, "terms", ()), key=lambda term: -term.reach)
    return [term.column for term in terms] or list(score.columns)


def _picture_of_score(
    score: Score, names: Sequence[str], blocks: Sides[Block], inside: Sides[Booleans]
) -> Picture:
    """The distributions of a score, in the units of its description."""
    words = score_words(score, names)

    def values(block: Block) -> Column:
        return Numbers(words.sign * (score.evaluate(block.columns) - words.shift))

    return _picture_of_column(words.text, "float", blocks.map(values), inside)


def _picture_of_column(
    name: str, kind: str, column: Sides[Column], inside: Sides[Booleans]
) -> Picture:
    """Bars for categories and for few distinct numbers, a histogram for other numbers."""
    left, right = column
    if isinstance(left, Labels) and isinstance(right, Labels):
        return _bars(name, Sides(_texts_of(left), _texts_of(right)), inside)
    if isinstance(left, Labels) or isinstance(right, Labels):
        raise AssertionError("both sides of a column have the same kind")
    left_values = np.asarray(left.values, dtype=np.float64)
    right_values = np.asarray(right.values, dtype=np.float64)
    values = Sides(left_values, right_values)
    distinct = _distinct_if_few(np.concatenate(values))
    if distinct is not None:
        return _bars_of_numbers(name, kind, values, inside, distinct)
    return _histogram(name, kind, values, inside)


def _texts_of(column: Labels) -> list[str]:
    """The category of every output."""
    return [column.labels[code] for code in column.codes]


def _distinct_if_few(numbers: Floats) -> Floats | None:
    """The distinct numbers, sorted, if bars show them better than a histogram; else None.

    That is so for few numbers, and for those whose range floats cannot divide into bins.
    """
    # Without `return_counts` numpy would use a slow hash table.
    distinct = np.unique(numbers[:_FIRST_OUTPUTS], return_counts=True)[0]
    if len(distinct) <= _MOST_BARS:
        distinct = np.unique(numbers, return_counts=True)[0]
    if len(distinct) <= _MOST_BARS:
        return np.asarray(distinct, dtype=np.float64)
    if np.ptp(numbers[np.isfinite(numbers)]) < np.inf:
        return None
    return np.unique(numbers, return_counts=True)[0]


def _bars_of_numbers(
    name: str, kind: str, values: Sides[Floats], inside: Sides[Booleans], distinct: Floats
) -> Picture:
    """A bar for every distinct number, in ascending order."""
    labels = [number_text(number, kind) for number in distinct.tolist()]

    def texts(numbers: Floats) -> list[str]:
        # NaN, which is the last of the distinct numbers, is equal to none of them.
        positions = np.minimum(np.searchsorted(distinct, numbers), len(labels) - 1)
        return [labels[position] for position in positions.tolist()]

    return _bars(name, values.map(texts), inside, labels[:_MOST_BARS])


def _histogram(name: str, kind: str, values: Sides[Floats], inside: Sides[Booleans]) -> Picture:
    """Counts of both sides in bins that share their edges."""
    finite = values.map(np.isfinite)
    left_numbers = values.left[finite.left]
    right_numbers = values.right[finite.right]
    edges = _histogram_edges(kind, Sides(left_numbers, right_numbers))
    n_bins = len(edges) - 1

    def bins_of(numbers: Floats) -> Integers:
        # What lies beyond the edges is counted in the first and in the last bin.
        return (places(edges, numbers) - 1).clip(0, n_bins - 1)

    left_bins = bins_of(left_numbers)
    right_bins = bins_of(right_numbers)
    left_counts = np.bincount(left_bins, minlength=n_bins)
    right_counts = np.bincount(right_bins, minlength=n_bins)
    bins_inside = [
        left_bins[inside.left[finite.left]],
        right_bins[inside.right[finite.right]],
    ]
    counts_inside = np.bincount(np.concatenate(bins_inside), minlength=n_bins)
    fraction = _fraction_inside(counts_inside, left_counts + right_counts)
    return {
        "name": name,
        "kind": kind,
        "n": [len(values.left), len(values.right)],
        "edges": edges.tolist(),
        "left": left_counts.tolist(),
        "right": right_counts.tolist(),
        "inside": np.round(fraction, 2).tolist(),
    }


def _histogram_edges(kind: str, numbers: Sides[Floats]) -> Floats:
    """The edges of even bins that hold all but the tails of both sides."""
    quantiles = np.array([np.quantile(side, [_TAIL, 1.0 - _TAIL]) for side in numbers if len(side)])
    low = float(quantiles[:, 0].min())
    high = float(quantiles[:, 1].max())
    if kind in _WHOLE_KINDS:
        # The width is a whole number, or some bins would hold more of them than others.
        width = max(1.0, np.ceil((high - low + 1.0) / _HISTOGRAM_BINS))
        return np.arange(np.floor(low), high + width + 0.5, width) - 0.5
    if not high > low:
        high = low + 1.0
    return np.linspace(low, high, _HISTOGRAM_BINS + 1)


def _fraction_inside(counts_inside: Integers, counts: Integers) -> Floats:
    """The fraction of each bin's draws that is in the event.

    An empty bin gets the fraction of the nearest one that is not empty.
    """
    fraction = counts_inside / np.maximum(counts, 1)
    filled_bins = np.flatnonzero(counts)
    distances = np.abs(np.arange(len(counts))[:, None] - filled_bins)
    nearest_filled = filled_bins[distances.argmin(axis=1)]
    return np.asarray(fraction[nearest_filled], dtype=np.float64)


def _bars(
    name: str, texts: Sides[list[str]], inside: Sides[Booleans], order: Sequence[str] = ()
) -> Picture:
    """The values that differ most in frequency, or those of `order`; the rest together."""
    left, right = texts
    left_counts = Counter(left)
    right_counts = Counter(right)
    counts_inside = Counter(compress(left, inside.left)) + Counter(compress(right, inside.right))
    n_left = max(len(left), 1)
    n_right = max(len(right), 1)

    def by_difference(value: str) -> tuple[float, str]:
        difference = left_counts[value] / n_left - right_counts[value] / n_right
        return (-abs(difference), value)

    values = sorted({*left, *right}, key=by_difference)
    drawn_values = order or values[:_MOST_BARS]
    has_rest = len(drawn_values) < len(values)

    def heights(counts: Counter[str]) -> list[int]:
        bars = [counts[value] for value in drawn_values]
        if has_rest:
            bars.append(counts.total() - sum(bars))
        return bars

    left_bars = heights(left_counts)
    right_bars = heights(right_counts)
    both_bars = np.array(left_bars) + np.array(right_bars)
    fraction = np.array(heights(counts_inside)) / np.maximum(both_bars, 1)
    labels = [value[:_LABEL_CHARACTERS] for value in drawn_values]
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
