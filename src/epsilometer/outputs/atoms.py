"""Atoms of a column: the values that repeat and are distinguished one by one.

An atom is a point mass of the outputs' distribution, such as the answer 0 of a clipped counter.
Each column's atoms are numbered; the number of an atom is its *code*.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.outputs.columns import Column, Labels
from epsilometer.outputs.number_words import number_text
from epsilometer.outputs.reading_numbers import label_from_data, label_to_data

# The code of a value that is none of the atoms.
NO_ATOM = -1
# Longer labels are cut in descriptions.
_MAX_LABEL_LENGTH = 60
# Significant digits of a number that is an atom.
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class NumberAtoms:
    """Atoms of a column of numbers.

    Attributes:
        values: shape (k,), increasing; a NaN may be last.
    """

    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, column: Column) -> Integers:
        """Returns the code of each value, −1 where it is no atom; shape (n,)."""
        if isinstance(column, Labels) or not len(self.values):
            return np.full(len(column), NO_ATOM, dtype=np.int64)
        if column.values.dtype == np.bool_ and np.array_equal(self.values, (0.0, 1.0)):
            # The usual case for yes-or-no answers, 10 times as fast.
            return column.values.astype(np.int64)
        numbers = np.asarray(column.values, dtype=np.float64)
        place = np.minimum(np.searchsorted(self.values, numbers), len(self.values) - 1)
        is_atom = self.values[place] == numbers
        if np.isnan(self.values[-1]):
            # NaN sorts last, so the place of a NaN is that of the atom.
            is_atom |= np.isnan(numbers)
        return np.where(is_atom, place, NO_ATOM)

    def name(self, code: int, kind: str = "float") -> str:
        """Returns the atom as text."""
        return number_text(float(self.values[code]), kind, _DIGITS)


@dataclass(frozen=True, slots=True)
class LabelAtoms:
    """Atoms of a column of labels.

    Attributes:
        labels: the atoms, in the order of their codes.
    """

    labels: tuple[str, ...]
    _code_of: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        code_of = {label: code for code, label in enumerate(self.labels)}
        object.__setattr__(self, "_code_of", code_of)

    def __len__(self) -> int:
        return len(self.labels)

    def codes(self, column: Column) -> Integers:
        """Returns the code of each label, −1 where it is no atom; shape (n,)."""
        if not isinstance(column, Labels):
            return np.full(len(column), NO_ATOM, dtype=np.int64)
        if not column.labels:
            return np.empty(0, dtype=np.int64)
        codes = [self._code_of.get(label, NO_ATOM) for label in column.labels]
        return np.array(codes, dtype=np.int64)[column.codes]

    def name(self, code: int, kind: str = "str") -> str:
        """Returns the atom as text, cut when long."""
        label = self.labels[code]
        if len(label) > _MAX_LABEL_LENGTH:
            label = label[: _MAX_LABEL_LENGTH - 3] + "…"
        return repr(label)


Atoms = NumberAtoms | LabelAtoms


def plain_numbers(numbers: Floats) -> list[float | str]:
    """Returns numbers as JSON can hold them: NaN and infinities as text."""
    return [number if np.isfinite(number) else repr(number) for number in numbers.tolist()]


def numbers_from_plain(data: Sequence[float | str]) -> Floats:
    """Inverse of `plain_numbers`."""
    return np.array([float(number) for number in data], dtype=np.float64)


def atoms_to_dict(atoms: Atoms) -> dict[str, Any]:
    """Returns the atoms as plain data; `atoms_from_dict` is the inverse."""
    if isinstance(atoms, LabelAtoms):
        return {"labels": [label_to_data(label) for label in atoms.labels]}
    return {"numbers": plain_numbers(atoms.values)}


def atoms_from_dict(data: dict[str, Any]) -> Atoms:
    """Inverse of `atoms_to_dict`."""
    if "labels" in data:
        return LabelAtoms(tuple(label_from_data(label) for label in data["labels"]))
    return NumberAtoms(numbers_from_plain(data["numbers"]))
