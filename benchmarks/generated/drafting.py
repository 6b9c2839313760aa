"""A mechanism while the grammar writes it: names, factors, fields and words so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.generated.factors import Factor, Irrelevant, Number, OnlyWhere
from benchmarks.generated.laws import Choice, LawPair, rounded
from benchmarks.generated.layouts import Field
from benchmarks.generated.leaves import Leaf, Node, Real, Whole

# fmt: off
NAMES = (
    "total", "rows", "age", "score", "income", "delay", "visits", "level", "amount", "rate",
    "weight", "height", "price", "stock", "share", "balance", "load", "depth", "width", "speed",
    "heat", "noise", "gain", "loss", "start", "stop", "mean", "median", "count", "size", "rank",
    "grade", "points", "hours", "days", "steps", "area",
)
WORDS = (
    "red", "blue", "green", "amber", "violet", "north", "south", "east", "west", "centre",
    "low", "mid", "high", "open", "closed", "new", "used", "lost", "paid", "due", "free",
    "busy", "oak", "elm", "ash", "fir", "yew", "bread", "milk", "salt", "rice", "beans", "iron",
    "zinc", "gold", "lead", "tin",
)
# fmt: on
# Share of numbers in texts that are written with few decimals, as people do; the others have all their digits.
_ROUNDED_IN_TEXTS = 0.75
# Share of other numbers that are rounded.
_ROUNDED_ELSEWHERE = 0.12
# Decimals beyond the order of magnitude of the noise.
_MORE_DECIMALS = 3


@dataclass
class Draft:
    """What the productions of the grammar write into.

    Attributes:
        rng: makes all choices.
        is_text: whether the output will be a text.
        factors: in the order in which they draw.
        fields: of the output.
        leaks: a phrase for each leak.
        companions: a phrase for each field that says nothing.
        widths: characters of fields that may be part of a code of fixed width, by name.
    """

    rng: np.random.Generator
    is_text: bool
    factors: list[Factor] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    companions: list[str] = field(default_factory=list)
    widths: dict[str, int] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _columns: int = 0

    def __post_init__(self) -> None:
        self._names = [str(name) for name in self.rng.permutation(NAMES)]

    def new_name(self) -> str:
        """Returns a name for a field that no other field has."""
        return self._names.pop() if self._names else f"field{self._columns}"

    def new_column(self) -> str:
        """Returns a name for a column of the table."""
        self._columns += 1
        return f"column {self._columns}"

    def new_columns(self, count: int) -> tuple[str, ...]:
        """Returns several of them."""
        return tuple(self.new_column() for _ in range(count))

    def chance(self, probability: float) -> bool:
        """Tosses a coin."""
        return bool(self.rng.random() < probability)

    def sign(self) -> float:
        """Returns 1 or −1."""
        return 1.0 if self.chance(0.5) else -1.0

    def between(self, low: float, high: float) -> float:
        """Draws a number uniformly."""
        return float(self.rng.uniform(low, high))

    def spread(self, low: float, high: float) -> float:
        """Draws a number uniformly on the logarithmic scale, to three digits."""
        return float(f"{math.exp(self.between(math.log(low), math.log(high))):.3g}")

    @staticmethod
    def tidy(value: float, scale: float) -> float:
        """Returns the value with no more decimals than noise of this scale calls for."""
        return round(value, 2 + max(0, math.ceil(-math.log10(scale))))

    def whole(self, low: int, high: int) -> int:
        """Draws an integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, *options: str) -> str:
        """Draws one of some words."""
        return options[int(self.rng.integers(len(options)))]

    def labels(self, count: int) -> tuple[str, ...]:
        """Returns labels of categories: words while there are enough, else numbered ones."""
        if count <= len(WORDS) and self.chance(0.7):
            return tuple(str(word) for word in self.rng.permutation(WORDS)[:count])
        stem = self.pick("item", "zone", "k", "R")
        digits = len(str(count))
        return tuple(f"{stem}{place + 1:0{digits}d}" for place in range(count))

    def add(
        self, node: Node, *factors: Factor, name: str | None = None, width: int | None = None
    ) -> str:
        """Adds a field with the factors that draw its columns; returns its name."""
        name = name or self.new_name()
        self.fields.append(Field(name, node))
        self.factors += factors
        if width is not None:
            self.widths[name] = width
        return name

    def decimals(self, scale: float) -> int:
        """Returns decimals that show noise of this scale coarsely or finely."""
        needed = math.ceil(-math.log10(scale))
        return max(0, needed + self.whole(0, _MORE_DECIMALS - 1))

    def add_number(self, laws: LawPair, scale: float) -> str:
        """Adds a number, rounded now and then; returns its name with the laws."""
        column = self.new_column()
        laws, leaf = self.number(column, laws, scale)
        name = self.add(leaf, Number(column, laws))
        return f"{name} ~ {laws.describe()}"

    def number(self, column: str, laws: LawPair, scale: float) -> tuple[LawPair, Leaf]:
        """Returns the laws as they are shown, and the leaf that shows them."""
        shown, leaf = self.numbers(column, (laws,), scale)
        return shown[0], leaf

    def numbers(
        self, column: str, cases: tuple[LawPair, ...], scale: float
    ) -> tuple[tuple[LawPair, ...], Leaf]:
        """Does the same for a number whose laws depend on a case."""
        if cases[0].left.is_discrete:
            return cases, Whole(column)
        if self.chance(_ROUNDED_IN_TEXTS if self.is_text else _ROUNDED_ELSEWHERE):
            decimals = self.decimals(scale)
            shown = tuple(rounded(laws, decimals) for laws in cases)
            return shown, Real(column, decimals, self.pick("", "", "", "%", "ms", "kg"))
        return cases, Real(column)

    def hide_last_field(self, first_factor: int) -> None:
        """Lets the last field be absent at random, whatever the side.

        Args:
            first_factor: place of the first factor of that field; all later ones draw nothing but its columns.
        """
        shown = self.new_column()
        chance = round(self.between(0.3, 0.8), 2)
        last = self.fields[-1]
        self.fields[-1] = replace(last, shown=shown)
        self.widths.pop(last.name, None)
        self.factors[first_factor:] = [
            Irrelevant(shown, Choice((1.0 - chance, chance))),
            *(OnlyWhere(factor, shown) for factor in self.factors[first_factor:]),
        ]
        self.leaks[-1] += f", there in {chance:.0%} of the outputs"
