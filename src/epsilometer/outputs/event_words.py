"""Events and scores in words, with the names that the maker of the outputs would use."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Booleans
from epsilometer.outputs.atoms import NO_ATOM, LabelAtoms
from epsilometer.outputs.lines import Line
from epsilometer.outputs.number_words import Interval, describe_intervals, number_text
from epsilometer.outputs.partition import BlockPartition, Group
from epsilometer.outputs.scores import (
    AdditiveScore,
    JointScore,
    LinearFit,
    Score,
    Statistic,
    SummaryScore,
    Term,
)
from epsilometer.outputs.shapes import READ, Leaf, has_digit, is_long_number, leaves_of, shape_words

# Terms of a score, or missing values, that are named; the others are left out.
_MAX_TERMS_IN_WORDS = 3
# A term is left out of the words if its range is below this fraction of the largest term's range.
_MIN_RELATIVE_RANGE = 0.1
# Other columns that are named in a linear combination of columns.
_MAX_COLUMNS_IN_WORDS = 2
# A column is left out of a linear combination if its coefficient is at most this fraction of that
# of the column after which the combination is named.
_MIN_RELATIVE_COEFFICIENT = 0.1
# How the names of columns that were read in texts begin (see `text_learning`).
_PHRASES = (
    "the ",
    "`",
    "entry ",
    "character ",
    "characters ",
    "byte ",
    "word ",
    "number ",
    "date ",
)
# Intervals of a score that are closer than this are described as one: its words are approximate
# anyway.
_SMALL_GAP = 0.05


@dataclass(frozen=True, slots=True)
class _ColumnName:
    """What one column holds: a leaf, or one of the two parts of a leaf.

    Attributes:
        leaf: the value inside an output.
        part: 0 or 1, which of the leaf's columns it is.
    """

    leaf: Leaf
    part: int

    @property
    def text(self) -> str:
        return name_of_part(self.leaf, self.part)


def name_of_part(leaf: Leaf, part: int) -> str:
    """Returns the name of what one of the columns of a leaf holds.

    Args:
        leaf: with one or two columns.
        part: 0 for its first column, 1 for its second.
    """
    if leaf.kind == "complex":
        return f"{'imaginary' if part else 'real'} part of {leaf.path}"
    if not part:
        return leaf.path
    if has_digit(leaf.kind):
        return f"({leaf.path} mod 2^53)"
    return f"what rounding leaves of {leaf.path}"


def describe_group(block: BlockPartition, group: Group, mask: Booleans, name_shape: bool) -> str:
    """Describes the part of an event that lies in one group.

    Args:
        block: the cells of one shape.
        group: one of its groups.
        mask: shape (cells of the group,), which cells belong to the event.
        name_shape: whether outputs come in several shapes, so that the shape must be named.
    """
    leaves = leaves_of(block.shape)
    has_several_leaves = len(leaves) > 1
    columns = _column_names(block, leaves)
    parts = []
    if has_several_leaves:
        missing = [f"{leaf.path} is missing" for leaf in leaves if leaf.is_missing]
        parts += missing[:_MAX_TERMS_IN_WORDS]
    names_missing_value = bool(parts)
    parts += _describe_atoms(block, group, columns)
    if group.line:
        parts += _describe_line(block, group, mask, columns, has_several_leaves)
    if not parts:
        if block.shape == "None":
            return "output is None"
        return f"any output of shape {shape_words(block.shape)}"
    text = " and ".join(parts)
    if name_shape and has_several_leaves and not names_missing_value:
        return f"{shape_words(block.shape)} with {text}"
    return text


def _column_names(block: BlockPartition, leaves: Sequence[Leaf]) -> list[_ColumnName]:
    columns = [_ColumnName(leaf, part) for leaf in leaves for part in range(leaf.n_columns)]
    if len(columns) == len(block.atoms):
        return columns
    # A stored shape that no reading could have made: its columns can only be numbered.
    numbered = [Leaf(f"column {number}", "float") for number in range(len(block.atoms))]
    return [_ColumnName(leaf, 0) for leaf in numbered]


def _describe_atoms(
    block: BlockPartition, group: Group, columns: Sequence[_ColumnName]
) -> list[str]:
    """Describes the values of a group that repeat.

    Both columns of a long number are described once; neighbours with equal values as a range.
    """
    n_atoms = sum(code != NO_ATOM for code in group.signature)
    is_only_fact = n_atoms <= 1 and group.line is None
    value_of: dict[str, str] = {}
    described = zip(columns, group.signature, block.atoms, strict=False)
    for position, (column, code, atoms) in enumerate(described):
        if code == NO_ATOM or not atoms:
            continue
        is_constant = len(atoms) == 1 and all(
            other.signature[position] == 0 for other in block.groups
        )
        if is_constant and not is_only_fact:  # what never varies says nothing about the event
            continue
        name = column.text
        text = atoms.name(code, column.leaf.kind)
        if isinstance(atoms, LabelAtoms) and is_long_number(column.leaf.kind):
            # The exact digits of a rounded number, without quotes.
            name = column.leaf.path
            text = text[1:-1]
        verb = "is" if _is_phrase(name) else "="
        value_of[name] = f"{verb} {text}"
    parts: list[str] = []
    for text, run in groupby(value_of, key=value_of.__getitem__):
        names = list(run)
        if len(names) > 2:
            parts.append(f"{names[0]} to {names[-1]} {text}")
        else:
            parts += [f"{name} {text}" for name in names]
    return parts


def _describe_line(
    block: BlockPartition,
    group: Group,
    mask: Booleans,
    columns: Sequence[_ColumnName],
    has_several_leaves: bool,
) -> list[str]:
    """Describes the chosen cells of a group's line; at most one text."""
    assert group.line is not None
    intervals = group.line.intervals(mask)
    if group.score:
        words = score_words(group.score, [column.text for column in columns])
        name = words.text
        kind = "float"
        intervals = _as_described(intervals, words)
        if not isinstance(group.score, SummaryScore):
            intervals = _merge_close_intervals(intervals)
        elif group.score.statistic.is_count:
            kind = "int"
    else:
        column = columns[group.column]
        name = column.text
        kind = "float" if column.part else column.leaf.kind
    has_numbers = bool(mask[:-1].any())
    has_nan = bool(mask[-1])
    is_read = block.shape.startswith(f"{READ}[")
    # What a text lacks, or what is no number in it, has become NaN.
    nan = "missing or NaN" if is_read and not group.score else "NaN"
    if not has_numbers:
        return [f"{name} is {nan}"] if has_nan else []
    if mask[:-1].all() and not group.score:
        shape = shape_words(block.shape)
        text = f"any {name}" if has_several_leaves else f"any {shape} output"
    else:
        text = describe_intervals(intervals, name, kind)
        if "·" in name:  # a product with rounded coefficients
            text += " (approximately)"
    if _is_phrase(name):
        text = text.replace(f"{name} = ", f"{name} is ")
    return [f"{text} or {nan}" if has_nan else text]


def _is_phrase(name: str) -> bool:
    """Returns whether a name is a phrase about a text, such as "the number after `rows=`"."""
    return name.startswith(_PHRASES)


# --- scores


class ScoreWords(NamedTuple):
    """A score in words: score ≈ shift + sign·text.

    Attributes:
        text: the sum of the largest terms.
        shift: the part of the score that the text leaves out.
        sign: −1.0 if the text has the opposite sign of the score, else 1.0.
    """

    text: str
    shift: float
    sign: float


def score_words(score: Score, names: Sequence[str]) -> ScoreWords:
    """Describes a score by its largest terms.

    Args:
        score: of outputs.
        names: of the columns.
    """
    if isinstance(score, JointScore):
        return _joint_words(score, names)
    if isinstance(score, SummaryScore):
        text = f"{_SUMMARY_WORDS[score.statistic]} {_listed(score.read, names)}"
        return ScoreWords(text=text, shift=0.0, sign=1.0)
    if not isinstance(score, AdditiveScore):
        return ScoreWords(
            text=f"a learned score of {_listed(score.columns, names)}", shift=0.0, sign=1.0
        )
    terms = _largest_term_per_column(score.terms)
    fits = [term.linear_fit() for term in terms]
    first_fit = fits[0]
    # The first term is written without a minus.
    sign = -1.0 if first_fit and first_fit.slope < 0.0 else 1.0
    shift = sum(fit.intercept for fit in fits if fit)
    smallest_range = _MIN_RELATIVE_RANGE * terms[0].reach
    important = [term for term in terms if term.reach > smallest_range][:_MAX_TERMS_IN_WORDS]
    text = ""
    for term, fit in zip(important, fits, strict=False):
        is_negative = sign * (fit.slope if fit else 1.0) < 0.0
        if text:
            text += " − " if is_negative else " + "
        elif is_negative:
            text += "−"
        text += _describe_term(term, fit, names)
    n_smaller = len(terms) - len(important)
    if n_smaller:
        text += f" + {n_smaller} smaller {'term' if n_smaller == 1 else 'terms'}"
    return ScoreWords(text=text, shift=shift, sign=sign)


def _listed(columns: Sequence[int], names: Sequence[str]) -> str:
    """Names the first of some columns and counts the others."""
    columns = list(dict.fromkeys(columns))
    shown = [names[column] for column in columns[:_MAX_TERMS_IN_WORDS]]
    n_more = len(columns) - len(shown)
    if n_more:
        shown.append(f"{n_more} more {'column' if n_more == 1 else 'columns'}")
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


_SUMMARY_WORDS = {
    Statistic.MEAN_SQUARE: "the mean square of",
    Statistic.LARGEST: "the largest absolute value of",
    Statistic.ZEROS: "the number of zeros among",
    Statistic.NOT_FINITE: "the number of NaN and infinite values among",
}
# What the three norms of a joint score measure.
_NORM_WORDS = ("the total distance", "the distance", "the largest distance")


def _joint_words(score: JointScore, names: Sequence[str]) -> ScoreWords:
    """Describes a norm as a distance, a linear score as a sum, any other one by its columns."""
    has_sum = bool(score.linear.any())
    has_rest = bool(score.direction.any() or score.quadratic.any())
    n_norms = int(np.count_nonzero(score.norms))
    if n_norms == 1 and not has_sum and not has_rest:
        norm = int(np.flatnonzero(score.norms)[0])
        listed = _listed(score.read, names)
        text = f"{_NORM_WORDS[norm]} of {listed} from their middle, in typical deviations,"
        return ScoreWords(text=text, shift=0.0, sign=1.0)
    if has_sum and not has_rest and not n_norms:
        return _linear_words(score, names)
    return ScoreWords(text=f"a learned score of {_listed(score.read, names)}", shift=0.0, sign=1.0)


def _linear_words(score: JointScore, names: Sequence[str]) -> ScoreWords:
    """Describes a linear score by its largest terms, in the units of the columns."""
    coefficients = (score.rotation.T @ score.linear) / score.scale
    # By how much a typical deviation of each column moves the score.
    importance = np.abs(coefficients * score.scale)
    order = np.argsort(-importance, kind="stable")
    large = [place for place in order if importance[place] > _MIN_RELATIVE_RANGE * importance.max()]
    important = large[:_MAX_TERMS_IN_WORDS]
    sign = -1.0 if coefficients[important[0]] < 0.0 else 1.0
    text = ""
    for place in important:
        coefficient = sign * coefficients[place]
        if text:
            text += " − " if coefficient < 0.0 else " + "
        text += f"{abs(coefficient):.2g}·{names[score.read[place]]}"
    n_smaller = len(score.read) - len(important)
    if n_smaller:
        text += f" + {n_smaller} smaller {'term' if n_smaller == 1 else 'terms'}"
    return ScoreWords(text=text, shift=float(-coefficients @ score.centre), sign=sign)


def _largest_term_per_column(terms: Sequence[Term]) -> list[Term]:
    """Returns the term with the largest range of each column, largest first."""
    largest: dict[int, Term] = {}
    for term in sorted(terms, key=lambda term: -term.reach):
        largest.setdefault(term.column, term)
    return list(largest.values())


def _describe_term(term: Term, fit: LinearFit | None, names: Sequence[str]) -> str:
    """Describes one term without its sign: as a multiple of its number, or by its largest step."""
    equal = _equal_columns(term)
    if equal is not None:
        first, second = equal
        return f"{term.weights[1]:.2g}·[{names[first]} = {names[second]}]"
    name, unit = _number_of_term(term, names)
    if fit:
        return f"{abs(fit.slope) * unit:.2g}·{name}"
    if isinstance(term.cells, LabelAtoms):
        code = int(np.argmax(np.abs(term.weights[:-1])))
        return f"{term.weights[code]:.2g}·[{name} = {term.cells.name(code)}]"
    if len(term.cells.edges) == 1:
        step = term.weights[1] - term.weights[0]
        return f"{step:.2g}·[{name} ≥ {number_text(float(term.cells.edges[0]))}]"
    return f"a function of {name}"


def _equal_columns(term: Term) -> tuple[int, int] | None:
    """Returns two columns if a term only tells whether they are equal; None for any other term."""
    if term.mix is None or not isinstance(term.cells, Line):
        return None
    if not np.array_equal(term.cells.edges, [0.0, np.nextafter(0.0, 1.0)]):
        return None
    places = np.flatnonzero(term.mix)
    if len(places) != 2 or sorted(term.mix[places].tolist()) != [-1.0, 1.0]:
        return None
    return int(places[0]), int(places[1])


def _number_of_term(term: Term, names: Sequence[str]) -> tuple[str, float]:
    """Returns the name and the unit of the number that a term cuts.

    The number is a column, or a linear combination of columns in units of one of them.
    """
    own_name = names[term.column]
    if term.mix is None:
        return own_name, 1.0
    unit = abs(float(term.mix[term.column])) or 1.0
    coefficients = term.mix / unit
    others = []
    for column in np.argsort(-np.abs(coefficients)):
        is_large = abs(coefficients[column]) > _MIN_RELATIVE_COEFFICIENT
        if column != term.column and is_large:
            others.append(column)
    if not others:
        return own_name, unit
    text = own_name
    for column in others[:_MAX_COLUMNS_IN_WORDS]:
        sign = "+" if coefficients[column] > 0.0 else "−"
        text += f" {sign} {abs(coefficients[column]):.2g}·{names[column]}"
    if len(others) > _MAX_COLUMNS_IN_WORDS:
        text += " + …"
    return f"({text})", unit


def _as_described(intervals: Sequence[Interval], words: ScoreWords) -> list[Interval]:
    """Returns intervals of a score as intervals of the number that its words describe, in order."""
    described = []
    for low, high in intervals:
        if words.sign > 0:
            described.append((low - words.shift, high - words.shift))
        else:
            described.append((words.shift - high, words.shift - low))
    return sorted(described)


def _merge_close_intervals(intervals: Sequence[Interval]) -> list[Interval]:
    """Merges intervals, given in order, that only a small gap separates."""
    merged: list[Interval] = []
    for low, high in intervals:
        if merged and low - merged[-1][1] <= _SMALL_GAP:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return merged
