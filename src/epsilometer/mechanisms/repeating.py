"""A mechanism that runs another one several times: one output is the list of its outputs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from epsilometer.claims.base import check_whole
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.drawing_log import current_log
from epsilometer.mechanisms.features import Features
from epsilometer.mechanisms.used_draws import EarlierDraws
from epsilometer.outputs import Block, Outputs
from epsilometer.outputs.shapes import sequence_text
from epsilometer.storage import code_digest

# Runs per output: more would make outputs of too many columns.
_MAX_TIMES = 10_000


class RepeatedMechanism(Mechanism):
    """Runs another mechanism several times; one output is the list of its outputs."""

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        self.mechanism = mechanism
        self.times = check_whole("times", times)
        if self.times > _MAX_TIMES:
            raise InputError(f"times={times!r} must be at most {_MAX_TIMES}")
        self.name = f"{self.times} runs of {mechanism.name}"
        self.is_seeded = mechanism.is_seeded
        self.waits = mechanism.waits
        self.chunk_size = max(mechanism.chunk_size // self.times, 1)
        self.features = mechanism.features
        self.used = mechanism.used

    def prepared(self, pairs: Sequence[Pair], samples: int) -> "RepeatedMechanism":
        """Prepares the other mechanism: a recording has to hold `times` as many outputs."""
        inner = self.mechanism.prepared(pairs, self.times * samples)
        return RepeatedMechanism(inner, self.times)

    def unused(self, earlier: EarlierDraws, pair: Pair, samples: int) -> "RepeatedMechanism":
        """Runs the other mechanism on draws that were not used."""
        inner = self.mechanism.unused(earlier, pair, self.times * samples)
        return RepeatedMechanism(inner, self.times)

    def with_features(self, features: Features | None) -> "RepeatedMechanism":
        """Adds features to each run."""
        return RepeatedMechanism(self.mechanism.with_features(features), self.times)

    def digest(self) -> str:
        """Returns a digest of the other mechanism, and of how often it is run."""
        return code_digest((self.times, self.mechanism.digest()))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws `times` as many outputs and groups neighbouring ones."""
        try:
            outputs = self.mechanism.sample(dataset, n * self.times, rng)
            return gather(outputs, self.times)
        except BaseException:
            log = current_log()
            if log.finished is not None:
                log.finished = partial(_finished_groups, log.finished, self.times)
            raise


def _finished_groups(finished: Callable[[], Outputs], times: int) -> Outputs:
    """Returns the complete groups among the finished draws of the other mechanism."""
    outputs = finished()
    n_groups = len(outputs) // times
    return gather(outputs.take(slice(0, n_groups * times)), times)


def gather(outputs: Outputs, times: int) -> Outputs:
    """Returns every `times` neighbouring outputs as one output, a list."""
    n = len(outputs) // times
    # Of each output: its block, and its row in that block.
    blocks_in_order = np.empty(len(outputs), dtype=np.int64)
    rows_in_order = np.empty(len(outputs), dtype=np.int64)
    for number, block in enumerate(outputs.blocks):
        blocks_in_order[block.places()] = number
        rows_in_order[block.places()] = np.arange(block.size)
    # The same, with a row per list and a column per run.
    block_of = blocks_in_order.reshape(n, times)
    row_of = rows_in_order.reshape(n, times)
    # Lists whose outputs come from the same blocks, run by run, form a block.
    combinations, combination_of = np.unique(block_of, axis=0, return_inverse=True)
    combination_of = combination_of.ravel()
    gathered = []
    for number, combination in enumerate(combinations):
        lists = np.flatnonzero(combination_of == number)
        parts = [outputs.blocks[int(block_number)] for block_number in combination]
        columns = []
        for run, part in enumerate(parts):
            rows = row_of[lists, run]
            columns += [column.take(rows) for column in part.columns]
        gathered.append(
            Block(
                shape=sequence_text("list", [part.shape for part in parts]),
                rows=None if len(lists) == n else lists,
                columns=tuple(columns),
                size=len(lists),
            )
        )
    return Outputs(tuple(gathered), n)
