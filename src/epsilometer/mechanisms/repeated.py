"""Repeated use: the outputs of k runs on the same input as one output."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsilometer.errors import InputError
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.functions import Subject, as_subject
from epsilometer.outputs import Block, Outputs
from epsilometer.outputs.columns import Column, sequence_text
from epsilometer.storage import code_digest

_MOST_TIMES = 10_000


class RepeatedMechanism(Mechanism):
    """Runs another mechanism several times; one output is the list of its outputs."""

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        if isinstance(times, bool) or not isinstance(times, int | np.integer) or not 1 <= times <= _MOST_TIMES:
            raise InputError(f"times={times!r} must be a whole number from 1 to {_MOST_TIMES}")
        self.mechanism = mechanism
        self.times = int(times)
        self.name = f"{self.times} runs of {mechanism.name}"
        self.is_seeded = mechanism.is_seeded
        self.chunk_size = max(mechanism.chunk_size // self.times, 1)

    def digest(self) -> str:
        """Of the other mechanism, and how often it is run."""
        return code_digest((self.times, self.mechanism.digest()))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws `times` as many outputs and groups neighbouring ones."""
        return gather(self.mechanism.sample(dataset, n * self.times, rng), self.times)


def repeated(mechanism: object, times: int) -> RepeatedMechanism | Subject:
    """A mechanism that is run several times on the same input: audit its use, not one run of it.

    Args:
        mechanism: anything that `audit` takes. An entry of the zoo keeps its pair, and its claim is composed.
        times: runs per output. The claim about them is `claim.composed(times)`.

    Example:
        >>> three_runs = em.repeated(em.zoo.laplace(), 3)
        >>> em.audit(three_runs, em.Pair(0.0, 1.0), em.PureDP(3.5), samples=500, seed=0).verdict
        <Verdict.NOT_REFUTED: 'not refuted'>
    """
    subject = as_subject(mechanism)
    inner = RepeatedMechanism(subject.mechanism, times)
    if subject.claim is None:
        return inner
    return Subject(inner, subject.claim.composed(inner.times), subject.worst_pair)


def gather(outputs: Outputs, times: int) -> Outputs:
    """Every `times` neighbouring outputs as one."""
    n = len(outputs) // times
    kind = np.empty(len(outputs), dtype=np.int64)
    place = np.empty(len(outputs), dtype=np.int64)
    for number, block in enumerate(outputs.blocks):
        rows = slice(None) if block.rows is None else block.rows
        kind[rows] = number
        place[rows] = np.arange(block.size)
    kinds, places = kind.reshape(n, times), place.reshape(n, times)
    combinations, which = np.unique(kinds, axis=0, return_inverse=True)
    which = which.ravel()
    blocks = []
    for number, combination in enumerate(combinations):
        rows = np.flatnonzero(which == number)
        parts = [outputs.blocks[int(each)] for each in combination]
        columns: tuple[Column, ...] = tuple(
            column.take(places[rows, run]) for run, part in enumerate(parts) for column in part.columns
        )
        shape = sequence_text("list", [part.shape for part in parts])
        blocks.append(Block(shape, None if len(rows) == n else rows, columns, len(rows)))
    return Outputs(tuple(blocks), n)
