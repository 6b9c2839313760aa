"""Mixed distributions: point masses beside densities of single numbers.

Clamped noise, a number or nothing, a position with a value: every output agrees with others in all
columns but at most one, which is continuous. Such outputs form a *slice*, and each slice has a
density of its own beside the point masses. The loss is then the greatest over point masses (with
their probabilities) and over places in slices (with their densities, of which each integrates to
the probability of its slice).

Both papers leave these distributions out: Askin, Kutta, Dette (2022) name SVT3, Kutta, Askin,
Dunsche (2022) propose-test-release.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Booleans, Floats
from epsilometer.methods.published.local.samples import (
    Outcomes,
    code_rows,
    continuous_columns,
    count_outcomes,
    point_masses,
)
from epsilometer.outputs import Block, Labels, Numbers, Outputs

# Fewer continuous draws than this have no density worth estimating.
_FEWEST_IN_SLICE = 50
# Slices at most, the most frequent ones; the rest is not looked at.
_MOST_SLICES = 64


@dataclass(frozen=True, slots=True)
class Slice:
    """Outputs of one shape that agree in every column but one, which is continuous.

    Attributes:
        shape: of the outputs.
        column: the number of the continuous column.
        constants: the values of the other columns, as plain data.
        atoms: shape (k,), values of the continuous column that are point masses.
    """

    shape: str
    column: int
    constants: tuple[Any, ...]
    atoms: Floats

    @property
    def is_single_number(self) -> bool:
        """Whether an output is nothing but the number."""
        return not self.constants

    def rows(self, outputs: Outputs) -> Floats:
        """Returns the continuous numbers among outputs of this slice, shape (k, 1)."""
        rows_of_blocks = [
            self._rows_of_block(block) for block in outputs if block.shape == self.shape
        ]
        return np.concatenate([np.empty((0, 1)), *rows_of_blocks])

    def _rows_of_block(self, block: Block) -> Floats:
        continuous = block.columns[self.column]
        if not isinstance(continuous, Numbers):
            return np.empty((0, 1))
        values = np.asarray(continuous.values, dtype=np.float64)
        belongs = np.isfinite(values) & ~np.isin(values, self.atoms)
        others = [column for number, column in enumerate(block.columns) if number != self.column]
        for column, constant in zip(others, self.constants, strict=True):
            belongs &= _equals(column, constant)
        return values[belongs][:, None]

    def location(self, t: float) -> Any:
        """Returns an output of this slice as plain data."""
        values = list(self.constants)
        values.insert(self.column, t)
        return values[0] if len(values) == 1 else values

    def number_of(self, location: Any) -> float | None:
        """Returns the continuous number of a location; None if it is not of this slice."""
        values = list(location) if isinstance(location, list | tuple | np.ndarray) else [location]
        if len(values) != len(self.constants) + 1:
            return None
        t = values.pop(self.column)
        is_number = isinstance(t, int | float | np.number) and not isinstance(t, bool)
        if not is_number or tuple(values) != self.constants or t in self.atoms:
            return None
        return float(t)


def _equals(column: Numbers | Labels, constant: Any) -> Booleans:
    """Tells which values of a column are the constant, shape (n,); NaN equals NaN."""
    if isinstance(column, Labels):
        if constant not in column.labels:
            return np.zeros(len(column), dtype=np.bool_)
        return np.asarray(column.codes == column.labels.index(constant), dtype=np.bool_)
    same = column.values == constant
    if column.values.dtype.kind == "f" and constant != constant:
        same = np.isnan(column.values)
    return np.asarray(same, dtype=np.bool_)


class Mixture(NamedTuple):
    """The parts of a mixed distribution, as training draws show them.

    Attributes:
        outcomes: the point masses, counted; None if there are none.
        slices: where densities are.
    """

    outcomes: Outcomes | None
    slices: tuple[Slice, ...]


class _SizedSlice(NamedTuple):
    size: int
    slice: Slice


def find_mixture(left: Outputs, right: Outputs) -> Mixture:
    """Divides training draws into point masses and slices."""
    columns = continuous_columns(left, right)
    outcomes = count_outcomes(left, right)
    is_point_mass = np.ones(len(outcomes), dtype=np.bool_)
    slices: list[_SizedSlice] = []
    for number, block in enumerate(outcomes.drawn.blocks):
        column = columns.get(block.shape)
        if column is None:
            continue
        atoms = point_masses(_values(block, column))
        in_block = outcomes.block_numbers == number
        values = _values(block, column)[outcomes.rows[in_block]]
        is_point_mass[in_block] = ~np.isfinite(values) | np.isin(values, atoms)
        slices += _slices(block, column, atoms)
    slices.sort(key=lambda candidate: -candidate.size)
    chosen = np.flatnonzero(is_point_mass)
    return Mixture(
        outcomes=outcomes.only(chosen) if len(chosen) else None,
        slices=tuple(candidate.slice for candidate in slices[:_MOST_SLICES]),
    )


def _values(block: Block, column: int) -> Floats:
    numbers = block.columns[column]
    assert isinstance(numbers, Numbers)
    return np.asarray(numbers.values, dtype=np.float64)


def _slices(block: Block, column: int, atoms: Floats) -> list[_SizedSlice]:
    """Returns the slices of a block that have enough continuous draws."""
    values = _values(block, column)
    is_continuous = np.isfinite(values) & ~np.isin(values, atoms)
    others = tuple(other for number, other in enumerate(block.columns) if number != column)
    coded = code_rows(replace(block, columns=others))
    sizes = np.bincount(coded.codes[is_continuous], minlength=len(coded.example_rows))
    return [
        _SizedSlice(
            size=int(sizes[code]),
            slice=Slice(
                shape=block.shape,
                column=column,
                constants=tuple(
                    _value_at(other, int(coded.example_rows[code])) for other in others
                ),
                atoms=atoms,
            ),
        )
        for code in np.flatnonzero(sizes >= _FEWEST_IN_SLICE).tolist()
    ]


def _value_at(column: Numbers | Labels, row: int) -> Any:
    if isinstance(column, Labels):
        return column.labels[column.codes[row]]
    return column.values[row].item()
