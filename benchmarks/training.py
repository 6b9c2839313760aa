"""`python -m benchmarks.training`: what finds which bug of DP-SGD, as a table.

Four ways to look at each entry of `epsilometer.zoo.training`, one column each:

- curve: trainings of each input until a bet on `entry.score` refutes the accountant's curve;
- (ε, δ): the same with the accountant's ε at one δ as the claim;
- movement: how far one step without noise moves, where `entry.clip_norm` is allowed;
- one run: of trainings with hundreds of canaries, how many `from_one_run` refutes.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.random import Generator

import epsilometer as em
from epsilometer import models
from epsilometer.arrays import Floats
from epsilometer.bisection import rejected_end
from epsilometer.claims import Claim
from epsilometer.zoo import training
from epsilometer.zoo.training import TrainingEntry

# Trainings of each input after which a stream is given up.
MOST_RUNS = 480
# Trainings of each input before the first bet: the first threshold is chosen among them.
FIRST_RUNS = 8
# Trainings of each input between two looks.
RUNS_PER_LOOK = 4
# The δ at which the accountant's curve is stated as one pair.
DELTA = 1e-5
# Canaries of a single training, as many as the model has parameters, so that their gradients are
# orthogonal and none is seen in the score of another.
CANARIES = 500
# Features and label of a canary: its gradient is hundreds of clip norms long whatever the model.
CANARY_FEATURE = 10.0
CANARY_LABEL = 30.0
# Parameters of the training with canaries.
STEPS = 10
RATE = 0.2
NOISE_MULTIPLIER = 1.0
# Above every ε that the accountant gives here.
MOST_EPSILON = 60.0
# 2^-40 of that is below all digits that are shown.
HALVINGS = 40
# Written in place of a number of runs.
NEVER = math.inf
# A claim about records that are replaced says nothing about canaries that are left out.
WITHOUT_CANARIES = ("replace_one",)


@dataclass(frozen=True)
class Row:
    """What finds one bug.

    Attributes:
        bug: its name; None for the right training.
        curve: trainings of each input until the curve is refuted, one number per stream.
        one_pair: the same for (ε, δ).
        movement: of a step without noise, in clip norms.
        one_run: trainings that `from_one_run` refutes; None where canaries make no sense.
        trainings: of so many.
    """

    bug: str | None
    curve: tuple[float, ...]
    one_pair: tuple[float, ...]
    movement: float
    one_run: int | None
    trainings: int

    def __str__(self) -> str:
        found = "–" if self.one_run is None else f"{self.one_run} of {self.trainings}"
        return (
            f"| `{self.bug}` | {_in_words(self.curve)} | {_in_words(self.one_pair)} "
            f"| {self.movement:.4g} | {found} |"
        )


def _in_words(runs: Sequence[float]) -> str:
    """The median number of runs, and how many streams ended with a refutation."""
    if not runs:
        return "–"
    refuted = sum(number < NEVER for number in runs)
    if not refuted:
        return f"none in {len(runs)} × {MOST_RUNS}"
    middle = median(runs)
    shown = f"{middle:.0f}" if middle < NEVER else f"more than {MOST_RUNS}"
    return shown if refuted == len(runs) else f"{shown} ({refuted} of {len(runs)})"


def runs_until_refuted(entry: TrainingEntry, claim: Claim, seed: int) -> float:
    """Trainings of each input until a stream of scores refutes a claim; `NEVER` if it does not."""
    rng = np.random.default_rng(seed)
    stream = em.ScoreStream(claim)
    n_runs = 0
    n_more = FIRST_RUNS
    while n_runs < MOST_RUNS:
        left = _scores(entry, entry.worst_pair.left, n_more, rng)
        right = _scores(entry, entry.worst_pair.right, n_more, rng)
        n_runs += n_more
        n_more = RUNS_PER_LOOK
        if stream.add(left, right).is_refuted:
            return n_runs
    return NEVER


def _scores(entry: TrainingEntry, dataset: object, n: int, rng: Generator) -> list[float]:
    return [entry.score(output) for output in entry.mechanism.function(dataset, n, rng)]


def canary_entry(bug: str | None) -> TrainingEntry:
    """A training of as many parameters as canaries, whose lot is the expected size of its batches."""
    return training.dp_sgd(
        bug,
        steps=STEPS,
        rate=RATE,
        noise_multiplier=NOISE_MULTIPLIER,
        d=CANARIES,
        lot=RATE * CANARIES / 2,
    )


def is_refuted_by_one_run(entry: TrainingEntry, seed: int) -> bool:
    """Whether one training with canaries refutes the entry's claim."""
    coins = models.coin_flips(range(CANARIES), seed=seed)
    included = np.asarray(coins.included, dtype=bool)
    rng = np.random.default_rng(seed + 1)
    directions = models.gradient_canaries(CANARIES, CANARIES, seed=seed + 2)
    # The model begins at 0, so that a gradient is minus the label times the features.
    labels = np.full(included.sum(), CANARY_LABEL)
    rows = np.column_stack([-CANARY_FEATURE * directions[included], labels])
    output = np.asarray(entry.mechanism.function(rows, 1, rng)[0])
    along = _projections(output, directions, entry.parameters["lot"])
    scores = models.subsampled_score(along, RATE, NOISE_MULTIPLIER)
    with warnings.catch_warnings():
        # A bug may make scores point the wrong way, which is worth a word to a user only.
        warnings.simplefilter("ignore")
        audit = em.from_one_run(scores, included, guess="in")
        return audit.check(entry.claim).is_refuted


def _projections(output: Floats, directions: Floats, lot: float) -> Floats:
    """The released gradients along each canary's own, in clip norms; shape (canaries, gradients).

    What is told beside the gradients, fewer numbers than a gradient has, is left out; numbers that
    are not finite are taken for large ones.
    """
    n_parameters = directions.shape[1]
    n_gradients = len(output) // n_parameters
    gradients = output[: n_gradients * n_parameters].reshape(n_gradients, n_parameters)
    finite = np.nan_to_num(gradients, nan=0.0, posinf=1e9, neginf=-1e9)
    return np.asarray(directions @ finite.T * lot)


def measure(bug: str | None, *, streams: int, trainings: int, pairs: int, seed: int) -> Row:
    """Measures one row.

    Args:
        bug: a name of `training.BUGS`; None for the right training.
        streams: of scores, against the curve.
        trainings: with canaries.
        pairs: streams against one pair (ε, δ).
        seed: of the first stream and the first training.
    """
    entry = training.dp_sgd(bug)
    one_pair = em.ApproxDP(epsilon_of(entry.claim), DELTA)
    step = entry.movement_pair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gradients that overflow are the point of some bugs
        movement = models.movement(entry.step, step.left, step.right, bound=entry.clip_norm)
    one_run = None
    if bug not in WITHOUT_CANARIES:
        with_canaries = canary_entry(bug)
        one_run = sum(
            is_refuted_by_one_run(with_canaries, seed + 10 * number) for number in range(trainings)
        )
    return Row(
        bug=bug,
        curve=tuple(runs_until_refuted(entry, entry.claim, seed + n) for n in range(streams)),
        one_pair=tuple(runs_until_refuted(entry, one_pair, seed + n) for n in range(pairs)),
        movement=movement.largest,
        one_run=one_run,
        trainings=trainings,
    )


def epsilon_of(claim: Claim) -> float:
    """The least ε that a claim implies at `DELTA`, by bisection on the curve of the claim."""
    q = np.geomspace(1e-12, 1.0, 4000)
    powers = np.array([claim.max_power(float(one)) for one in q])

    def is_implied(epsilon: float) -> bool:
        return bool(np.max(powers - math.exp(epsilon) * q) <= DELTA)

    # Of the values that were tried, the least one that is implied.
    return rejected_end(is_implied, MOST_EPSILON, 0.0, HALVINGS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the rows, the right training last."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--streams", type=int, default=9, help="against the curve, per bug")
    parser.add_argument("--pairs", type=int, default=3, help="streams against (ε, δ), per bug")
    parser.add_argument("--trainings", type=int, default=10, help="with canaries, per bug")
    parser.add_argument("--seed", type=int, default=0, help="of the first stream")
    parser.add_argument(
        "--bug", action="append", choices=[*training.BUGS, "none"], help="only these"
    )
    chosen = parser.parse_args(arguments)
    print("| bug | curve | (ε, δ) | movement | one run |")
    print("|---|---|---|---|---|", flush=True)
    for name in chosen.bug or [*training.BUGS, "none"]:
        row = measure(
            None if name == "none" else name,
            streams=chosen.streams,
            trainings=chosen.trainings,
            pairs=chosen.pairs,
            seed=chosen.seed,
        )
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
