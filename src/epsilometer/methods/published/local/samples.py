"""Which kind of distribution the draws come from, and the distinct outcomes of discrete ones."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Array, Floats, Integers
from epsilometer.errors import InputError
from epsilometer.outputs import Block, Labels, Numbers, Outputs, concatenate

MIXED = (
    "the local approach takes vectors of continuous numbers, or outputs with one continuous number "
    "beside point masses and discrete values; use method='events', which takes any"
)

# A value seen this often among the training draws is a point mass, not an accident (as for the
# method events).
_REPEATS = 5
# A discrete distribution may have rare outcomes; a larger fraction of draws with them is a
# continuous part …
_RARE_FRACTION = 0.01
# … unless more than this fraction of them coincide now and then: real numbers do not. (Single
# precision does in 0.6 % of 1e5 draws.)
_COINCIDING_FRACTION = 0.05
# Draws per side that decide the kind.
_INSPECTED_DRAWS = 100_000
# Keys below this are counted directly, without sorting.
_MAX_DIRECT_KEY = 1 << 18
# An odd 64-bit multiplier for the hash of rows; two outcomes with one hash would be counted
# together.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


# --- the kind of a distribution ---------------------------------------------------------------


def find_kind(left: Outputs, right: Outputs, kind: str = "auto") -> str:
    """Returns whether the outputs are "discrete", "continuous" or "mixed".

    Args:
        left: outputs of the left.
        right: outputs of the right.
        kind: what the user says; "auto" looks at the draws.

    Raises:
        InputError: vectors of continuous numbers with point masses, or of several shapes.
    """
    if kind in ("discrete", "mixed"):
        return kind
    drawn = _inspected(left, right)
    varying = _varying_columns(left, drawn)
    if kind == "auto" and not any(map(any, varying)):
        return "discrete"
    refusal = _why_not_continuous(drawn, varying)
    if refusal is None:
        return "continuous"
    if kind == "continuous" or any(sum(columns) > 1 for columns in varying):
        raise InputError(f"{refusal}: {MIXED}")
    return "mixed"


def continuous_columns(left: Outputs, right: Outputs) -> dict[str, int]:
    """Returns the number of the continuous column by shape, for shapes that have one.

    Raises:
        InputError: a shape has several.
    """
    drawn = _inspected(left, right)
    numbers: dict[str, int] = {}
    for block, columns in zip(drawn, _varying_columns(left, drawn), strict=True):
        if sum(columns) > 1:
            raise InputError(
                f"outputs of the shape {block.shape} have {sum(columns)} continuous columns: "
                f"{MIXED}"
            )
        if any(columns):
            numbers[block.shape] = columns.index(True)
    return numbers


def _inspected(left: Outputs, right: Outputs) -> Outputs:
    """Returns the draws that decide the kind, of both sides."""
    first = slice(0, _INSPECTED_DRAWS)
    return concatenate([left.take(first), right.take(first)])


def _varying_columns(left: Outputs, drawn: Outputs) -> list[list[bool]]:
    """Tells which columns of each block of inspected draws are continuous."""
    n_left = min(len(left), _INSPECTED_DRAWS)
    return [[_varies(column, block, n_left) for column in block.columns] for block in drawn]


def _varies(column: Numbers | Labels, block: Block, n_left: int) -> bool:
    """Tells whether a column has more rare values than a discrete distribution, on either side."""
    if isinstance(column, Labels) or column.values.dtype.kind != "f" or not len(column):
        return False
    values = column.values
    are_whole = not np.any(values != np.rint(np.nan_to_num(values)))
    if are_whole:
        return False
    is_left = block.places() < n_left
    return _has_rare_values(values[is_left]) or _has_rare_values(values[~is_left])


def _has_rare_values(values: Array) -> bool:
    _, counts = np.unique(values, return_counts=True)
    rare = counts[counts < _REPEATS]
    n_rare = rare.sum()
    n_coinciding = rare[rare > 1].sum()
    are_many = n_rare > max(_RARE_FRACTION * len(values), 1.0)
    return bool(are_many and n_coinciding < _COINCIDING_FRACTION * n_rare)


def _why_not_continuous(drawn: Outputs, varying: list[list[bool]]) -> str | None:
    """Returns why outputs are not purely continuous; None if they are."""
    if len(drawn.blocks) > 1:
        shapes = ", ".join(block.shape for block in drawn.blocks[:3])
        return f"some outputs are continuous numbers, but their shapes differ ({shapes}, …)"
    columns = drawn.blocks[0].columns
    if not all(varying[0]):
        return f"some of the outputs' {len(columns)} columns are continuous, others are not"
    for column in columns:
        if not isinstance(column, Numbers):
            continue
        atoms = point_masses(np.asarray(column.values, dtype=np.float64))
        if len(atoms):
            return f"the outputs are continuous except for the value {atoms[0]:g}, which repeats"
    return None


def point_masses(values: Floats) -> Floats:
    """Returns the values that repeat, the most frequent first, and those that are not finite."""
    distinct, counts = np.unique(values, return_counts=True)
    is_mass = (counts >= _REPEATS) | ~np.isfinite(distinct)
    order = np.argsort(-counts[is_mass], kind="stable")
    return np.asarray(distinct[is_mass][order], dtype=np.float64)


def as_matrix(outputs: Outputs) -> Floats:
    """Returns continuous outputs as shape (n, d).

    Outputs of another shape than the most frequent one become NaN.
    """
    if not outputs.blocks:
        return np.empty((0, 1))
    block = max(outputs.blocks, key=lambda candidate: candidate.size)
    columns = [
        np.asarray(column.values, np.float64)
        for column in block.columns
        if isinstance(column, Numbers)
    ]
    values = np.stack(columns, axis=1)
    if block.rows is None:
        return values
    matrix = np.full((len(outputs), values.shape[1]), np.nan)
    matrix[block.rows] = values
    return matrix


# --- distinct outcomes ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The distinct outcomes of both sides.

    A sequence of outcomes as plain data, made one by one: there may be many, and few are needed.

    Attributes:
        left: shape (k,), how often each outcome was seen on the left.
        right: shape (k,), how often on the right.
        n: draws of left and right.
        block_numbers: shape (k,), a block of `drawn` that shows the outcome.
        rows: shape (k,), a row of that block that shows it.
        drawn: the draws of both sides.
    """

    left: Integers
    right: Integers
    n: tuple[int, int]
    block_numbers: Integers
    rows: Integers
    drawn: Outputs

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, outcome: int) -> Any:
        """Returns an outcome as plain data: a number, a text, or a list of them."""
        block = self.block(outcome)
        row = int(self.rows[outcome])
        values: list[Any] = []
        for column in block.columns:
            if isinstance(column, Labels):
                values.append(column.labels[column.codes[row]])
            else:
                values.append(column.values[row].item())
        if not values:
            return block.shape
        return values[0] if len(values) == 1 else values

    def block(self, outcome: int) -> Block:
        """Returns the block of draws that shows an outcome."""
        return self.drawn.blocks[int(self.block_numbers[outcome])]

    def numbers(self) -> Floats | None:
        """Returns the outcomes as numbers, shape (k,).

        It is None when they are not single numbers of one shape.
        """
        if len(self.drawn.blocks) != 1 or len(self.drawn.blocks[0].columns) != 1:
            return None
        column = self.drawn.blocks[0].columns[0]
        if not isinstance(column, Numbers):
            return None
        return column.values[self.rows].astype(np.float64)

    def only(self, outcomes: Integers) -> "Outcomes":
        """Returns some of the outcomes, by their numbers."""
        return Outcomes(
            left=self.left[outcomes],
            right=self.right[outcomes],
            n=self.n,
            block_numbers=self.block_numbers[outcomes],
            rows=self.rows[outcomes],
            drawn=self.drawn,
        )


def count_outcomes(left: Outputs, right: Outputs) -> Outcomes:
    """Counts every distinct outcome of the draws."""
    n_left = len(left)
    drawn = concatenate([left, right])
    left_counts: list[Integers] = []
    right_counts: list[Integers] = []
    block_numbers: list[Integers] = []
    rows: list[Integers] = []
    for number, block in enumerate(drawn):
        is_left = block.places() < n_left
        coded = code_rows(block)
        n_outcomes = len(coded.example_rows)
        left_counts.append(np.bincount(coded.codes[is_left], minlength=n_outcomes))
        right_counts.append(np.bincount(coded.codes[~is_left], minlength=n_outcomes))
        block_numbers.append(np.full(n_outcomes, number))
        rows.append(coded.example_rows)
    return Outcomes(
        left=np.concatenate(left_counts),
        right=np.concatenate(right_counts),
        n=(n_left, len(right)),
        block_numbers=np.concatenate(block_numbers),
        rows=np.concatenate(rows),
        drawn=drawn,
    )


class CodedRows(NamedTuple):
    """The rows of a block by their outcomes.

    Attributes:
        codes: shape (n,), the number of each row's outcome.
        example_rows: shape (k,), a row that shows each outcome.
    """

    codes: Integers
    example_rows: Integers


def code_rows(block: Block) -> CodedRows:
    """Numbers the distinct outcomes of a block."""
    keys = _small_keys(block)
    if keys is None:
        _, first, codes = np.unique(_hashes(block), return_index=True, return_inverse=True)
        return CodedRows(codes=codes.astype(np.int64), example_rows=first.astype(np.int64))
    row_of_key = np.full(int(keys.max(initial=0)) + 1, -1, dtype=np.int64)
    row_of_key[keys] = np.arange(len(keys))
    occurs = row_of_key >= 0
    code_of_key = np.cumsum(occurs) - 1
    return CodedRows(codes=code_of_key[keys], example_rows=row_of_key[occurs])


def _small_keys(block: Block) -> Integers | None:
    """Returns a small whole number for each row that identifies its outcome, shape (n,).

    It is None unless all columns are truth values, names or narrow ranges of whole numbers.
    """
    keys = np.zeros(block.size, dtype=np.int64)
    n_keys = 1
    for column in block.columns:
        if isinstance(column, Labels):
            digits = column.codes.astype(np.int64)
            base = len(column.labels)
        elif column.values.dtype.kind == "f" or not len(column):
            return None
        else:
            low = int(column.values.min())
            high = int(column.values.max())
            digits = column.values.astype(np.int64) - low
            base = high - low + 1
        n_keys *= max(base, 1)
        if n_keys > _MAX_DIRECT_KEY:
            return None
        if base > 1:
            keys = keys * base + digits
    return keys


def _hashes(block: Block) -> NDArray[np.uint64]:
    """Returns a hash of each row, shape (n,)."""
    hashes = np.zeros(block.size, dtype=np.uint64)
    for column in block.columns:
        if isinstance(column, Labels):
            bits = column.codes.astype(np.uint64)
        elif column.values.dtype.kind == "f":
            # Adding 0 makes −0 the same outcome as 0; all NaN are one outcome.
            canonical = np.where(np.isnan(column.values), np.nan, column.values + 0.0)
            bits = canonical.astype(np.float64).view(np.uint64)
        else:
            bits = column.values.astype(np.int64).view(np.uint64)
        hashes = hashes * _MULTIPLIER + (bits ^ (bits >> np.uint64(29)))
    return hashes
