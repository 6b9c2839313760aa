"""Values that are told apart one by one: repeated numbers, names, NaN."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.outputs.columns import Column, Labels
from epsilometer.outputs.reading_labels import label_from_data, label_to_data

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NumberAtoms:
    """Atoms of a column of numbers.

    Attributes:
        values: shape (k,), increasing; a NaN may stand last.
    """

    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, column: Column) -> Codes:
        """Position of each value among the atoms, −1 where it is none; shape (n,)."""
        if isinstance(column, Labels):
            return np.full(len(column), -1, dtype=np.int64)
        if column.values.dtype == np.bool_ and np.array_equal(self.values, (0.0, 1.0)):
            return column.values.astype(np.int64)  # the usual case for answers of yes and no, 10× faster
        numbers = np.asarray(column.values, dtype=np.float64)
        if not len(self.values):
            return np.full(len(numbers), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.values, numbers), len(self.values) - 1)
        same = self.values[place] == numbers
        if np.isnan(self.values[-1]):
            same |= np.isnan(numbers)  # NaN sorts last, so its place is that of the NaN atom
        return np.where(same, place, -1)

    def name(self, code: int) -> str:
        """The atom as text."""
        return f"{self.values[code]:.6g}"

    def plain(self, code: int) -> float | str:
        """The atom as JSON can hold it."""
        value = float(self.values[code])
        return value if np.isfinite(value) else repr(value)


@dataclass(frozen=True, slots=True)
class LabelAtoms:
    """Atoms of a column of names."""

    labels: tuple[str, ...]
    _place: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {label: code for code, label in enumerate(self.labels)})

    def __len__(self) -> int:
        return len(self.labels)

    def codes(self, column: Column) -> Codes:
        """Position of each label among the atoms, −1 where it is none; shape (n,)."""
        if not isinstance(column, Labels):
            return np.full(len(column), -1, dtype=np.int64)
        table = np.array([self._place.get(label, -1) for label in column.labels], dtype=np.int64)
        return table[column.codes] if len(table) else np.empty(0, dtype=np.int64)

    def name(self, code: int) -> str:
        """The atom as text, cut when long."""
        label = self.labels[code]
        return repr(label if len(label) <= 60 else label[:57] + "…")

    def plain(self, code: int) -> str:
        """The atom as JSON can hold it."""
        return self.labels[code]


Atoms = NumberAtoms | LabelAtoms


def atoms_to_dict(atoms: Atoms) -> dict[str, Any]:
    """Plain data; `atoms_from_dict` is the inverse."""
    if isinstance(atoms, LabelAtoms):
        return {"labels": list(map(label_to_data, atoms.labels))}
    return {"numbers": [atoms.plain(code) for code in range(len(atoms.values))]}


def atoms_from_dict(data: dict[str, Any]) -> Atoms:
    """The inverse of `atoms_to_dict`."""
    if "labels" in data:
        return LabelAtoms(tuple(map(label_from_data, data["labels"])))
    return NumberAtoms(np.array([float(value) for value in data["numbers"]], dtype=np.float64))
