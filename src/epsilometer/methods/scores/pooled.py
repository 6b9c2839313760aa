"""Outputs of several shapes by the columns that they share: a field is optional, a list is longer.

The columns of one shape are seen in all outputs that have them, whatever else these have. So
columns that leak together are seen together in every output, not only in those of the most frequent
shape. Which columns these are depends on how many outputs have them: what nearly all outputs have,
what half of them have, and what few have.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.folds import FOLDS, fold_of_rows
from epsilometer.methods.scores.learned import (
    ContinuousScore,
    LearnedScore,
    OutcomeScore,
    ShapeScore,
    one_group,
)
from epsilometer.methods.scores.values import posterior_means
from epsilometer.outputs import Block, BlockPartition, Group, Numbers, Partition
from epsilometer.outputs.atoms import Atoms
from epsilometer.outputs.columns import concatenate_columns
from epsilometer.outputs.scores import (
    AdditiveScore,
    JointScore,
    Score,
    SummaryScore,
    SumScore,
    TreeScore,
)
from epsilometer.outputs.shapes import leaves_of

# Of the sets of columns that this fraction of the draws have, the largest one is looked at.
_SHARES = (0.9, 0.5, 0.1)
# Shapes whose columns may be such a set, and of which outputs are pooled, the most frequent first.
_MOST_SHAPES = 64

# Positions in lists, which are left out of the names of parts.
_POSITION = re.compile(r"\[\d+\]")

# The name of a part of outputs, and whether it is a number.
Part = tuple[str, bool]


def parts_of(block: Block) -> list[Part]:
    """The part that each column of a shape is; of one name in all shapes that have the part.

    Where names are not known, or two columns share one, a shape has parts of its own.
    """
    names = [leaf.path for leaf in leaves_of(block.shape) for _ in range(leaf.n_columns)]
    if not len(set(names)) == len(names) == len(block.columns):
        names = [f"{block.shape} {column}" for column in range(len(block.columns))]
    return [
        (name, isinstance(column, Numbers))
        for name, column in zip(names, block.columns, strict=True)
    ]


def without_positions(part: Part) -> Part:
    """The part without its positions in lists: the same for all elements of a list."""
    name, is_number = part
    return _POSITION.sub("[]", name), is_number


@dataclass(frozen=True, slots=True)
class ShapeInPool:
    """A shape that has the columns of a pool.

    Attributes:
        name: the shape.
        n_columns: how many columns it has.
        places: shape (columns of the pool,), which of them they are.
    """

    name: str
    n_columns: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShapeOdds:
    """Log-odds of the shape of each output of a pool.

    Attributes:
        of_shapes: shape (shapes,), from all draws.
        left: shape (n,), of each left output, from the draws without its fold.
        right: shape (m,), of each right output.
        final_left: shape (n,), from all draws.
        final_right: shape (m,).
    """

    of_shapes: Floats
    left: Floats
    right: Floats
    final_left: Floats
    final_right: Floats


@dataclass(frozen=True, slots=True)
class Pool:
    """Outputs of several shapes as outputs of the columns that they share.

    Attributes:
        shapes: of the outputs.
        left: the left outputs, in the order in which they were drawn.
        right: the right outputs.
        left_shapes: shape (n,), the number of the shape of each left output.
        right_shapes: shape (m,), of each right output.
    """

    shapes: tuple[ShapeInPool, ...]
    left: Block
    right: Block
    left_shapes: Integers
    right_shapes: Integers

    def scattered(
        self, score: LearnedScore, n_draws: tuple[int, int], offsets: Floats | None = None
    ) -> LearnedScore:
        """A score of the shared columns as one of the shapes that have them.

        Args:
            score: of the shared columns.
            n_draws: left and right training draws of all shapes.
            offsets: shape (shapes,), what is added to the score in each shape; None adds nothing.
        """
        # Outputs of other shapes are in no tail. A score may have been learned from fewer draws.
        left, right = score.sizes
        outside = (
            score.outside[0] + round(left * (n_draws[0] / max(self.left.size, 1) - 1.0)),
            score.outside[1] + round(right * (n_draws[1] / max(self.right.size, 1) - 1.0)),
        )
        if isinstance(score, ContinuousScore):
            (shared,) = score.shapes
            if offsets is None:
                offsets = np.zeros(len(self.shapes))
            shapes = [
                ShapeScore(_in_shape(shared.partition, shape), shared.offsets + offset)
                for shape, offset in zip(self.shapes, offsets, strict=True)
            ]
            return replace(score, shapes=shapes, outside=outside)
        assert isinstance(score, OutcomeScore)
        (block,) = score.partition.blocks
        blocks = tuple(_in_shape(block, shape) for shape in self.shapes)
        # The last cell is that of unknown shapes.
        return replace(
            score,
            partition=Partition(blocks),
            scores=np.append(np.tile(score.scores[:-1], len(blocks)), 0.0),
            is_filled=np.append(np.tile(score.is_filled[:-1], len(blocks)), False),
            outside=outside,
        )

    def shape_odds(self) -> "ShapeOdds | None":
        """The log-odds of the shapes; None for a single shape."""
        if len(self.shapes) == 1:
            return None
        left_folds = fold_of_rows(self.left.places())
        right_folds = fold_of_rows(self.right.places())
        left = self._counts(self.left_shapes, left_folds)
        right = self._counts(self.right_shapes, right_folds)
        # Row 0 has all draws, the others leave out one fold each.
        odds = posterior_means(
            np.concatenate([left.sum(axis=0)[None], left.sum(axis=0) - left]),
            np.concatenate([right.sum(axis=0)[None], right.sum(axis=0) - right]),
        )
        return ShapeOdds(
            of_shapes=odds[0],
            left=odds[1 + left_folds, self.left_shapes],
            right=odds[1 + right_folds, self.right_shapes],
            final_left=odds[0, self.left_shapes],
            final_right=odds[0, self.right_shapes],
        )

    def _counts(self, numbers: Integers, folds: Integers) -> Integers:
        """Draws by fold and shape."""
        n_shapes = len(self.shapes)
        counts = np.bincount(numbers + folds * n_shapes, minlength=FOLDS * n_shapes)
        return counts.reshape(FOLDS, n_shapes)


class _Member(NamedTuple):
    """A shape that has the columns of a pool.

    Attributes:
        pair: its left and right training outputs.
        n_columns: how many columns it has.
        places: which of them are those of the pool.
    """

    pair: tuple[Block, Block]
    n_columns: int
    places: tuple[int, ...]


def pools_of(pairs: Sequence[tuple[Block, Block]]) -> list[Pool]:
    """The pools that are worth scores of their own.

    Args:
        pairs: left and right training outputs of each shape.
    """
    by_size = sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size)[:_MOST_SHAPES]
    sizes = [left.size + right.size for left, right in by_size]
    total = sum(left.size + right.size for left, right in pairs)
    parts = [parts_of(left) for left, _ in by_size]
    known = [frozenset(parts_of_shape) for parts_of_shape in parts]
    # How many outputs have all columns of each shape.
    held = [
        sum(size for size, other in zip(sizes, known, strict=True) if wanted <= other)
        for wanted in known
    ]
    chosen: dict[frozenset[Part], int] = {}
    for share in _SHARES:
        places = [place for place, size in enumerate(held) if size >= share * total]
        largest = max(places, key=lambda place: len(known[place]), default=None)
        if largest is not None and known[largest]:
            chosen.setdefault(known[largest], largest)
    pools = []
    for wanted, place in chosen.items():
        members = []
        for pair, parts_of_shape in zip(by_size, parts, strict=True):
            column_of = {part: column for column, part in enumerate(parts_of_shape)}
            if wanted <= column_of.keys():
                columns = tuple(column_of[part] for part in parts[place])
                members.append(_Member(pair, len(parts_of_shape), columns))
        pools.append(_pool(members))
    return pools


def columns_of(pairs: Sequence[tuple[Block, Block]], most: int) -> Iterator[Pool]:
    """Each column alone, in all outputs that have it, in the order of the most frequent shapes.

    The last element of lists of several lengths is a column, too; these come after all others.

    Args:
        pairs: left and right training outputs of each shape.
        most: columns, at most.
    """
    by_size = sorted(pairs, key=lambda pair: -pair[0].size - pair[1].size)
    having: dict[Part, list[_Member]] = {}
    last: dict[Part, dict[Part, list[_Member]]] = {}
    for pair in by_size:
        parts = parts_of(pair[0])
        last_of_shape: dict[Part, int] = {}
        for place, part in enumerate(parts):
            having.setdefault(part, []).append(_Member(pair, len(parts), (place,)))
            kind = without_positions(part)
            if kind != part:
                last_of_shape[kind] = place
        for kind, place in last_of_shape.items():
            of_kind = last.setdefault(kind, {})
            of_kind.setdefault(parts[place], []).append(_Member(pair, len(parts), (place,)))
    # Where all lists have one length, their last element is a column already.
    ends = [chain(*of_kind.values()) for of_kind in last.values() if len(of_kind) > 1]
    for members in islice(chain(having.values(), ends), most):
        yield _pool(tuple(members))


def _pool(members: Sequence[_Member]) -> Pool:
    """The outputs of some shapes by the columns that they share."""
    shapes = tuple(
        ShapeInPool(member.pair[0].shape, member.n_columns, member.places) for member in members
    )
    left, left_shapes = _join([member.pair[0] for member in members], shapes)
    right, right_shapes = _join([member.pair[1] for member in members], shapes)
    return Pool(shapes, left, right, left_shapes, right_shapes)


def _join(blocks: Sequence[Block], shapes: Sequence[ShapeInPool]) -> tuple[Block, Integers]:
    """The shared columns of one side as one block, in the order of the draws; and the shapes."""
    if len(blocks) == 1:
        columns = tuple(blocks[0].columns[place] for place in shapes[0].places)
        only = Block(blocks[0].shape, blocks[0].rows, columns, blocks[0].size)
        return only, np.zeros(only.size, dtype=np.int64)
    rows = np.concatenate([block.places() for block in blocks])
    order = np.argsort(rows, kind="stable")
    numbers = np.repeat(np.arange(len(blocks)), [block.size for block in blocks])
    columns = tuple(
        concatenate_columns(
            [block.columns[shape.places[k]] for block, shape in zip(blocks, shapes, strict=True)]
        ).take(order)
        for k in range(len(shapes[0].places))
    )
    return Block(shapes[0].name, rows[order], columns, len(rows)), numbers[order]


# --- scores of shared columns as scores of a shape


def _in_shape(block: BlockPartition, shape: ShapeInPool) -> BlockPartition:
    """Cells of shared columns as cells of a shape that has more columns."""
    if not block.groups:
        # No value repeats often enough to be an outcome.
        return one_group(shape.name, shape.n_columns, Group((-1,) * shape.n_columns))
    if shape.places == tuple(range(shape.n_columns)):
        return replace(block, shape=shape.name)
    atoms: list[Atoms | None] = [None] * shape.n_columns
    for place, atoms_of_column in zip(shape.places, block.atoms, strict=True):
        atoms[place] = atoms_of_column
    groups = []
    for group in block.groups:
        signature = [-1] * shape.n_columns
        for place, code in zip(shape.places, group.signature, strict=True):
            signature[place] = code
        score = None if group.score is None else _moved(group.score, shape)
        column = shape.places[group.column]
        groups.append(replace(group, signature=tuple(signature), column=column, score=score))
    return BlockPartition(shape.name, tuple(atoms), tuple(groups))


def _moved(score: Score, shape: ShapeInPool) -> Score:
    """A score of shared columns as one of all columns of a shape."""
    places = shape.places
    if isinstance(score, AdditiveScore):
        terms = []
        for term in score.terms:
            mix = None
            if term.mix is not None:
                mix = np.zeros(shape.n_columns)
                mix[list(places)] = term.mix
            terms.append(replace(term, column=places[term.column], mix=mix))
        return AdditiveScore(tuple(terms))
    if isinstance(score, TreeScore):
        codings = tuple(replace(coding, column=places[coding.column]) for coding in score.codings)
        return replace(score, codings=codings)
    if isinstance(score, SumScore):
        parts = tuple(_moved(part, shape) for part in score.parts)
        return replace(score, parts=parts)  # type: ignore[arg-type]  # of the same kinds
    assert isinstance(score, JointScore | SummaryScore)
    return replace(score, read=tuple(places[column] for column in score.read))
