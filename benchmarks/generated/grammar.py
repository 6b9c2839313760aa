"""Random mechanisms: a seed chooses the leaks, the fields beside them, and how all of it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilometer as em
from benchmarks.generated.drafting import Draft
from benchmarks.generated.factors import Factor, Table, log_ratio
from benchmarks.generated.layouts import (
    AsBytes,
    Bare,
    CodeText,
    JsonText,
    KeyValueText,
    Layout,
    Matrix,
    Record,
    Row,
    SentenceText,
    SeparatedText,
    numbers_only,
)
from benchmarks.generated.productions import COMPANIONS, LEAKS
from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.mechanisms.callables import BatchMechanism
from epsilometer.outputs import Outputs

# The choices of the grammar have a stream of their own: mechanisms draw from the generator they are given.
_GRAMMAR_STREAM = 31
# Strengths, uniform on the logarithmic scale: hardly visible at 1e4 draws, to obvious.
_WEAKEST = 0.2
_STRONGEST = 5.0
# Probabilities of one, two and three leaks.
_LEAKS = (0.75, 0.18, 0.07)
# Probabilities of no, one, … fields that say nothing.
_COMPANIONS = (0.35, 0.2, 0.2, 0.15, 0.1)
_TEXTS = 0.4
_HIDDEN = 0.12
# Of texts.
_BYTES = 0.05
# Of texts that could be a code of fixed width.
_CODES = 0.7
# Other notions than pure ε, each, and δ of the approximate one.
_OTHER_NOTIONS = 0.1
_DELTA = 1e-3
_FILLER = ("reported", "with", "after", "then", "about", "near", "and", "seen", "at", "for")


@dataclass(frozen=True)
class Generated:
    """A random mechanism, whose output distributions are known.

    Attributes:
        seed: that it was made from.
        mechanism: what is audited.
        pair: the inputs.
        claim: gives the notion and its fixed parameters; its value plays no role.
        description: what leaks, and how it is shown, in one line.
        leaks: the productions that it has.
        layout: how the fields become outputs.
        factors: what draws the fields.
    """

    seed: int
    mechanism: BatchMechanism
    pair: em.Pair
    claim: Claim
    description: str
    leaks: tuple[str, ...]
    layout: Layout
    factors: tuple[Factor, ...]

    @property
    def shown_as(self) -> str:
        """The kind of the outputs."""
        return self.layout.name

    def log_ratio(self, outputs: Sequence[Any]) -> Floats:
        """Returns exact log-likelihood ratios, left over right.

        Args:
            outputs: as the function of the mechanism returns them: `mechanism.function(pair.left, n, rng)`.

        Returns:
            An array of shape (n,); ±inf where one side never gives the output.
        """
        if isinstance(outputs, Outputs):
            raise TypeError("outputs that the library has read: give those of mechanism.function")
        return log_ratio(self.factors, self.layout.read(outputs), len(outputs))

    def draw_log_ratios(self, side: int, n: int, rng: np.random.Generator) -> Floats:
        """Draws log-likelihood ratios of n outputs of a side, of shape (n,), without showing the outputs."""
        return log_ratio(self.factors, draw_table(self.factors, side, n, rng), n)


def draw_table(factors: Sequence[Factor], side: int, n: int, rng: np.random.Generator) -> Table:
    """Draws all columns of n outputs of a side."""
    table: Table = {}
    for factor in factors:
        factor.sample(side, table, n, rng)
    return table


@dataclass(frozen=True)
class Sampling:
    """The function that is audited: the dataset is the side, 0 or 1."""

    factors: tuple[Factor, ...]
    layout: Layout

    def __call__(self, dataset: int, n: int, rng: np.random.Generator) -> Any:
        """Draws n outputs."""
        return self.layout.render(draw_table(self.factors, dataset, n, rng))


def generated(seed: int, *, leaks: Sequence[str] | None = None) -> Generated:
    """Returns the mechanism of a seed.

    Args:
        seed: a whole number ≥ 0; the same seed gives the same mechanism.
        leaks: names of productions (`LEAKS`) instead of random ones.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_GRAMMAR_STREAM,)))
    draft = Draft(rng, is_text=bool(rng.random() < _TEXTS))
    if leaks is None:
        number = 1 + int(rng.choice(len(_LEAKS), p=_LEAKS))
        leaks = [str(name) for name in rng.choice(list(LEAKS), size=number, replace=False)]
    strength = draft.spread(_WEAKEST, _STRONGEST)
    for name in leaks:
        _add_leak(draft, name, strength / math.sqrt(len(leaks)))
    is_code = (
        draft.is_text
        and all(field.name in draft.widths for field in draft.fields)
        and draft.chance(_CODES)
    )
    for _ in range(int(rng.choice(len(_COMPANIONS), p=_COMPANIONS))):
        _add_companion(draft, is_code)
    draft.fields = [draft.fields[place] for place in rng.permutation(len(draft.fields))]
    layout, words = _layout(draft, is_code)
    if draft.is_text and draft.chance(_BYTES):
        layout, words = AsBytes(layout), f"bytes: {words}"
    claim = _claim(draft)
    beside = f"; beside {', '.join(draft.companions)}" if draft.companions else ""
    description = f"{words}: {'; '.join(draft.leaks)}{beside}"
    factors = tuple(draft.factors)
    return Generated(
        seed=seed,
        mechanism=em.from_batch(Sampling(factors, layout), name=f"generated {seed}"),
        pair=em.Pair(0, 1),
        claim=claim,
        description=description,
        leaks=tuple(leaks),
        layout=layout,
        factors=factors,
    )


def _add_leak(draft: Draft, name: str, strength: float) -> None:
    n_fields, n_factors = len(draft.fields), len(draft.factors)
    LEAKS[name](draft, strength)
    is_single = len(draft.fields) == n_fields + 1 and draft.fields[-1].shown is None
    if is_single and draft.chance(_HIDDEN):
        draft.hide_last_field(n_factors)


def _add_companion(draft: Draft, is_code: bool) -> None:
    """Adds a field that says nothing; to a code only what has a fixed width."""
    n_fields, n_factors, n_words = (
        len(draft.fields),
        len(draft.factors),
        len(draft.companions),
    )
    COMPANIONS[draft.whole(0, len(COMPANIONS) - 1)](draft)
    if is_code and draft.fields[-1].name not in draft.widths:
        del draft.fields[n_fields:], draft.factors[n_factors:], draft.companions[n_words:]


def _claim(draft: Draft) -> Claim:
    uniform = draft.rng.random()
    if uniform < _OTHER_NOTIONS:
        return em.ApproxDP(1.0, _DELTA)
    if uniform < 2.0 * _OTHER_NOTIONS:
        return em.GaussianDP(1.0)
    return em.PureDP(1.0)


def _layout(draft: Draft, is_code: bool) -> tuple[Layout, str]:
    """Chooses one of the layouts that can show the fields, and says which."""
    fields = tuple(draft.fields)
    if is_code:
        widths = tuple(draft.widths[field.name] for field in fields)
        prefix = draft.pick("", "", "ID", "X-")
        return CodeText(fields, widths, prefix), f"fixed-width code {prefix or 'without prefix'}"
    if draft.is_text:
        return _text_layout(draft)
    leaves = numbers_only(fields)
    if leaves is not None and draft.chance(0.5):
        if len(leaves) == 1:
            return Bare(fields[0]), "number"
        return Matrix(leaves), f"array of {len(leaves)} columns"
    if len(fields) == 1 and draft.chance(0.6):
        return Bare(fields[0]), "bare value"
    kind = draft.pick("tuple", "list", "dict", "dict", "nested dict")
    if kind in ("tuple", "list"):
        return Row(fields, tuple if kind == "tuple" else list), f"{kind} of {len(fields)}"
    return _record(draft, kind == "nested dict"), f"{kind} of {len(fields)}"


def _record(draft: Draft, is_nested: bool) -> Record:
    fields = tuple(draft.fields)
    groups = tuple(
        draft.pick("", "detail", "meta") if is_nested else "" for _ in range(len(fields))
    )
    return Record(fields, groups)


def _text_layout(draft: Draft) -> tuple[Layout, str]:
    fields = tuple(draft.fields)
    kind = draft.pick("JSON", "key=value", "key=value", "CSV", "sentence")
    if kind == "JSON":
        inner: Row | Record = _record(draft, draft.chance(0.3))
        if draft.chance(0.25):
            inner = Row(fields, list)
        is_indented = draft.chance(0.2)
        words = f"JSON text of {'a list' if isinstance(inner, Row) else 'an object'}"
        return JsonText(inner, 2 if is_indented else None), words
    if kind == "key=value":
        equals = draft.pick("=", "=", ": ")
        separator = draft.pick("; ", ", ", "&", "\n", *(" " if equals == "=" else ()))
        return KeyValueText(fields, separator, equals), f"key{equals}value text"
    if kind == "CSV":
        separator = draft.pick(",", ";", "\t", " / ")
        return SeparatedText(fields, separator), f"line separated by {separator!r}"
    pieces = ["" if draft.chance(0.3) else f"{draft.pick('Result', 'Today', 'We')} "]
    pieces += [f" {field.name} {draft.pick(*_FILLER)} " for field in fields]
    pieces[-1] = draft.pick(" in all.", " end", " done.")
    return SentenceText(fields, tuple(pieces)), "sentence"
