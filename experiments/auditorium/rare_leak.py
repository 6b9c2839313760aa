"""How many trials finders need where few of the inputs leak.

A coin that is fair almost everywhere: the closer a dataset of four numbers comes to a hidden one, the more the coin
leans, and only near it does it lean too much. Neighbours differ in one number. The truth of a pair is known exactly, so
the share of leaking pairs is, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import (
    BAR,
    Case,
    Experiment,
    Numbers,
    Row,
    Settings,
    Target,
    mean_rows,
)
from epsilometer_experiments.options import Option, whole

_TRIALS = Option("trials", "the most pairs that a search may try", 400, whole)
_SAMPLES = Option("samples", "draws per input and trial", 2_000, whole)
_RATIO = "trials, bayesian over random"
_SIZE = 4
_CLAIM = 1.0
# At the hidden dataset the odds of the coin are e^3 to 1; half of that is left at about this distance from it.
_LEAN, _WIDTH = 3.0, 0.35


@dataclass(frozen=True)
class LeaningCoin:
    """1 or 0, with odds that grow towards a hidden dataset.

    Attributes:
        hidden: where the coin leans most.
        width: how far the lean reaches.
    """

    hidden: tuple[float, ...]
    width: float = _WIDTH

    def chance(self, dataset: Any) -> float:
        """The probability of 1."""
        away = np.asarray(dataset, dtype=np.float64) - np.array(self.hidden)
        return 1.0 / (
            1.0 + math.exp(-_LEAN * math.exp(-float(away @ away) / (2.0 * self.width**2)))
        )

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs."""
        return (rng.random(n) < self.chance(dataset)).astype(np.int64)

    def epsilon(self, pair: em.Pair) -> float:
        """The exact loss of a pair."""
        p, q = self.chance(pair.left), self.chance(pair.right)
        return max(abs(math.log(p / q)), abs(math.log((1.0 - p) / (1.0 - q))))


def hidden_coin(seed: int, width: float = _WIDTH) -> LeaningCoin:
    """A coin that leans somewhere in the inner part of the cube."""
    # A stream that no finder has: theirs have one number behind the seed, those of draws have four.
    place = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0))).uniform(
        0.15, 0.85, _SIZE
    )
    return LeaningCoin(tuple(place.tolist()), width)


def leaking_share(coin: LeaningCoin, seed: int, pairs: int = 2_000) -> float:
    """How many pairs of the random finder truly violate the claim."""
    finder = em.finders.Random(em.domains.Vector(_SIZE), trials=pairs, seed=seed)
    hits = 0
    for _ in range(pairs):
        pair = finder.ask()
        assert pair is not None  # as many as there are trials
        hits += coin.epsilon(pair) > _CLAIM
        finder.tell(None)
    return hits / pairs


def _cases(settings: Settings) -> list[Case]:
    bars = {
        _RATIO: Target(0.5, "≤", source=BAR),
        "bayesian: CPU seconds per trial": Target(0.05, "≤", source=BAR),
    }
    return [Case(f"lean reaches {width:g}", {"width": width}, bars) for width in (0.35, 0.25)]


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """Every finder searches for the same hidden dataset, with the same seed."""
    coin = hidden_coin(seed, case.parameters["width"])
    numbers = {"leaking share": leaking_share(coin, seed)}
    for name, (kind, more) in _FINDERS.items():
        finder = kind(
            em.domains.Vector(_SIZE),
            trials=settings["trials"],
            samples=settings["samples"],
            seed=seed,
            **more,
        )
        numbers |= {
            f"{name}: {quantity}": value for quantity, value in search(coin, finder, seed).items()
        }
    return numbers


def search(coin: LeaningCoin, finder: Any, seed: int) -> Numbers:
    """Trials to the first refutation (all of them if there is none), and what the finder itself costs."""
    timed = _Timed(finder)
    result = em.audit(
        em.from_batch(coin), timed, em.PureDP(_CLAIM), samples=3 * finder.samples, seed=seed
    )
    trials = len(result.findings[0].details["search"])
    seconds = result.settings["finder"]["seconds"] / trials
    return {
        "trials": float(trials),
        "refuted": float(result.is_refuted),
        "CPU seconds per trial": seconds,
    }


def tabulate(case: Case, runs: Sequence[Numbers]) -> list[Row]:
    """The means, and the mean trials of the Bayesian finder over those of the random one."""
    means = {row.quantity: row.measured for row in mean_rows(case, runs)}
    ratio = means["bayesian: trials"] / means["random: trials"]
    each = tuple(run["bayesian: trials"] / run["random: trials"] for run in runs)
    return [
        Row(case.name, _RATIO, case.expected[_RATIO], ratio, None, each),
        *mean_rows(case, runs),
    ]


class _Timed:
    """A finder that counts the CPU time of its own."""

    def __init__(self, finder: Any) -> None:
        self._finder, self._seconds = finder, 0.0
        self.trials, self.samples = finder.trials, finder.samples
        self.stop_at_refutation = finder.stop_at_refutation

    def ask(self) -> em.Pair | None:
        """Asks the finder."""
        began = time.process_time()
        pair: em.Pair | None = self._finder.ask()
        self._seconds += time.process_time() - began
        return pair

    def tell(self, score: float | None) -> None:
        """Tells the finder."""
        self._finder.tell(score)

    def state(self) -> dict[str, Any]:
        """That of the finder."""
        return dict(self._finder.state())

    def restore(self, state: Any) -> None:
        """That of the finder."""
        self._finder.restore(state)

    def describe(self) -> dict[str, Any]:
        """The finder's settings and its time."""
        return {**self._finder.describe(), "seconds": self._seconds}


_FINDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "random": (em.finders.Random, {}),
    "bayesian": (em.finders.Bayesian, {}),
    "bayesian with trees": (em.finders.Bayesian, {"surrogate": "tree"}),
    "grid": (em.finders.Grid, {}),
}

EXPERIMENTS = (
    Experiment(
        "auditorium/rare-leak",
        "trials to a refutation where few inputs leak, by finder",
        30,
        _cases,
        run_once,
        (_TRIALS, _SAMPLES),
        tabulate,
    ),
)
