"""Factors: what draws the columns of a mechanism, given the columns before it, with its exact log-density.

A mechanism is a list of factors. Their log-densities add, because each is the density of its columns given those of the
factors before it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.generated.joints import Joint
from benchmarks.generated.laws import Law, LawPair
from epsilometer.arrays import Array, Booleans, Floats, Integers

# Columns of the outputs by name: shape (n,), or (n, longest) for lists.
Table = dict[str, Array]


class Factor(ABC):
    """Draws some columns."""

    @abstractmethod
    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds its columns, n rows of side 0 (left) or 1 (right), to the table."""

    @abstractmethod
    def log_density(self, side: int, table: Table) -> Floats:
        """Returns the log-densities of its columns, of shape (n,), given all others."""


@dataclass(frozen=True)
class Number(Factor):
    """A column of numbers, or of places in a list of categories."""

    column: str
    laws: LawPair

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the column."""
        table[self.column] = self.laws.side(side).sample(n, rng)

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns its log-densities, of shape (n,)."""
        return self.laws.side(side).log_density(table[self.column])


@dataclass(frozen=True)
class Irrelevant(Factor):
    """A column with the same law on both sides, which serves as its base measure: its log-density is 0."""

    column: str
    law: Law

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the column."""
        table[self.column] = self.law.sample(n, rng)

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns zeros, of shape (n,)."""
        return np.zeros(len(table[self.column]))


@dataclass(frozen=True)
class Vector(Factor):
    """Several columns with a joint law."""

    columns: tuple[str, ...]
    left: Joint
    right: Joint

    def _joint(self, side: int) -> Joint:
        return self.right if side else self.left

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the columns."""
        values = self._joint(side).sample(n, rng)
        for place, column in enumerate(self.columns):
            table[column] = values[:, place]

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns their joint log-densities, of shape (n,)."""
        values = np.column_stack([table[column] for column in self.columns])
        return self._joint(side).log_density(values)


class Selector(ABC):
    """Says which of several cases a row is, by columns that are there already."""

    @abstractmethod
    def cases(self, table: Table) -> Integers:
        """Returns the case of each row, of shape (n,)."""


@dataclass(frozen=True)
class ByCategory(Selector):
    """Case 1 where a column has one of the given values, else 0."""

    column: str
    values: tuple[int, ...]

    def cases(self, table: Table) -> Integers:
        """Returns the case of each row, of shape (n,)."""
        return np.isin(table[self.column], self.values).astype(np.int64)


@dataclass(frozen=True)
class ByThreshold(Selector):
    """Case 1 where a number is above a threshold, else 0."""

    column: str
    threshold: float

    def cases(self, table: Table) -> Integers:
        """Returns the case of each row, of shape (n,)."""
        return (table[self.column] > self.threshold).astype(np.int64)


@dataclass(frozen=True)
class Switched(Factor):
    """A column whose laws depend on other columns."""

    column: str
    selector: Selector
    laws: tuple[LawPair, ...]

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the column."""
        cases = self.selector.cases(table)
        values = self.laws[0].side(side).sample(n, rng)
        for case, laws in enumerate(self.laws[1:], start=1):
            here = cases == case
            values[here] = laws.side(side).sample(int(here.sum()), rng)
        table[self.column] = values

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns its log-densities, of shape (n,)."""
        cases = self.selector.cases(table)
        densities = [laws.side(side).log_density(table[self.column]) for laws in self.laws]
        return np.choose(cases, densities)


@dataclass(frozen=True)
class Coupled(Factor):
    """Two categories, each of them uniform on both sides, whose difference modulo their number leaks."""

    first: str
    second: str
    difference: LawPair
    categories: int

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds both columns."""
        table[self.first] = rng.integers(self.categories, size=n)
        difference = self.difference.side(side).sample(n, rng)
        table[self.second] = (table[self.first] + difference) % self.categories

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of the difference, of shape (n,)."""
        difference = (table[self.second] - table[self.first]) % self.categories
        return self.difference.side(side).log_density(difference)


@dataclass(frozen=True)
class SameSign(Factor):
    """Two numbers of symmetric noise that have the same sign with a probability that leaks."""

    first: str
    second: str
    noise: Law
    chances: tuple[float, float]

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds both columns."""
        table[self.first] = self.noise.sample(n, rng)
        sizes = np.abs(self.noise.sample(n, rng))
        is_same = rng.random(n) < self.chances[side]
        table[self.second] = np.where(is_same, 1.0, -1.0) * np.sign(table[self.first]) * sizes

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of the signs, of shape (n,)."""
        is_same = table[self.first] * table[self.second] > 0.0
        chance = self.chances[side]
        return np.where(is_same, math.log(chance), math.log1p(-chance))


@dataclass(frozen=True)
class Copied(Factor):
    """Two numbers, the second of which is a copy of the first with a probability that leaks."""

    first: str
    second: str
    law: Law
    chances: tuple[float, float]

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds both columns."""
        table[self.first] = self.law.sample(n, rng)
        is_copy = rng.random(n) < self.chances[side]
        table[self.second] = np.where(is_copy, table[self.first], self.law.sample(n, rng))

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of being a copy, of shape (n,): continuous noise never repeats itself."""
        is_copy = table[self.first] == table[self.second]
        chance = self.chances[side]
        with np.errstate(divide="ignore"):
            return np.where(is_copy, np.log(chance), np.log1p(-chance))


@dataclass(frozen=True)
class List(Factor):
    """A list of random length.

    Attributes:
        column: its values, of shape (n, longest); `length` is the column of lengths.
        lengths: their laws; places of a `Choice`, so that the longest is known.
        elements: laws of the elements that leak.
        others: law of all other elements.
        leaking: "all" elements, the "first" or the "last" one, or "none".
    """

    column: str
    length: str
    lengths: LawPair
    elements: LawPair
    others: Law
    leaking: str
    longest: int

    def _leaks(self, lengths: Integers) -> Booleans:
        """Which elements leak, of shape (n, longest)."""
        places = np.arange(self.longest)[None, :]
        if self.leaking == "all":
            return places < lengths[:, None]
        if self.leaking == "first":
            return (places == 0) & (lengths[:, None] > 0)
        if self.leaking == "last":
            return places == lengths[:, None] - 1
        return np.zeros((len(lengths), self.longest), dtype=bool)

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the values and the lengths."""
        lengths = self.lengths.side(side).sample(n, rng)
        leaks = self._leaks(lengths)
        values = self.others.sample(n * self.longest, rng).reshape(n, self.longest)
        values[leaks] = self.elements.side(side).sample(int(leaks.sum()), rng)
        table[self.length], table[self.column] = lengths, values

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of lengths and leaking elements, of shape (n,)."""
        lengths, values = table[self.length], table[self.column]
        leaks = self._leaks(lengths)
        rows = np.nonzero(leaks)[0]
        elements = self.elements.side(side).log_density(values[leaks])
        total = np.bincount(rows, weights=elements, minlength=len(lengths))
        return self.lengths.side(side).log_density(lengths) + total


@dataclass(frozen=True)
class Chain(Factor):
    """Categories in a row, each of which repeats the one before with a probability that leaks."""

    columns: tuple[str, ...]
    categories: int
    chances: tuple[float, float]

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the columns."""
        current = rng.integers(self.categories, size=n)
        table[self.columns[0]] = current
        for column in self.columns[1:]:
            step = rng.integers(1, self.categories, size=n)
            repeats = rng.random(n) < self.chances[side]
            current = np.where(repeats, current, (current + step) % self.categories)
            table[column] = current

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of the repetitions, of shape (n,)."""
        values = [table[column] for column in self.columns]
        repeats = sum((first == second).astype(float) for first, second in pairwise(values))
        chance = self.chances[side]
        steps = len(self.columns) - 1
        return repeats * math.log(chance) + (steps - repeats) * math.log1p(-chance)


@dataclass(frozen=True)
class Remainder(Factor):
    """An integer whose remainder leaks: the day of the week of a date, the last digit of a count.

    Attributes:
        column: the integer, quotient · modulus + remainder.
        modulus: by which it is divided.
        quotient: its law, the same on both sides.
        remainders: their laws.
    """

    column: str
    modulus: int
    quotient: Law
    remainders: LawPair

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the column."""
        quotients = self.quotient.sample(n, rng)
        remainders = self.remainders.side(side).sample(n, rng)
        table[self.column] = self.modulus * quotients + remainders

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of the remainder, of shape (n,)."""
        return self.remainders.side(side).log_density(table[self.column] % self.modulus)


@dataclass(frozen=True)
class Rows(Factor):
    """A list of random length of rows, each with a label and a number, which leaks in rows with one of the labels.

    Attributes:
        labels: column of labels, of shape (n, longest).
        values: column of numbers, of the same shape.
        length: column of lengths.
        lengths: law of the lengths.
        label_law: of each label.
        leaking: the label whose numbers leak.
        laws: of its numbers; all others have the law of the left side.
        longest: the greatest length.
    """

    labels: str
    values: str
    length: str
    lengths: Law
    label_law: Law
    leaking: int
    laws: LawPair
    longest: int

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds labels, numbers and lengths."""
        shape = n, self.longest
        labels = self.label_law.sample(n * self.longest, rng).reshape(shape)
        values = self.laws.left.sample(n * self.longest, rng).reshape(shape)
        leaks = labels == self.leaking
        values[leaks] = self.laws.side(side).sample(int(leaks.sum()), rng)
        table[self.length] = self.lengths.sample(n, rng)
        table[self.labels], table[self.values] = labels, values

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of the numbers that leak, of shape (n,)."""
        lengths = table[self.length]
        leaks = np.arange(self.longest)[None, :] < lengths[:, None]
        leaks &= table[self.labels] == self.leaking
        densities = self.laws.side(side).log_density(table[self.values][leaks])
        return np.bincount(np.nonzero(leaks)[0], weights=densities, minlength=len(lengths))


@dataclass(frozen=True)
class OnlyWhere(Factor):
    """Columns that are shown only where another column is true: elsewhere they say nothing."""

    factor: Factor
    shown: str

    def sample(self, side: int, table: Table, n: int, rng: np.random.Generator) -> None:
        """Adds the columns of the factor."""
        self.factor.sample(side, table, n, rng)

    def log_density(self, side: int, table: Table) -> Floats:
        """Returns log-densities of shape (n,), 0 where nothing is shown."""
        with np.errstate(all="ignore"):
            density = self.factor.log_density(side, table)
        return np.where(table[self.shown].astype(bool), density, 0.0)


def log_ratio(factors: Sequence[Factor], table: Table, n: int) -> Floats:
    """Returns the log-likelihood ratios of rows, left over right, of shape (n,); ±inf where one side is impossible."""
    left, right = np.zeros(n), np.zeros(n)
    for factor in factors:
        left += factor.log_density(0, table)
        right += factor.log_density(1, table)
    # Rows that neither side gives never come; they would be NaN.
    with np.errstate(invalid="ignore"):
        return left - right
