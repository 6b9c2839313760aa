"""The floating-point view: naive noise leaks through its bits, rounded and whole-number noise does not."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import (
    BAR,
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Rate,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, whole

_SAMPLES = Option("samples", "draws per input", 200_000, whole)
_FEW = Option("samples", "draws per input", 20_000, whole)
# 2^-20, the grid to which a careful mechanism rounds.
_GRID = float(2**20)


@dataclass(frozen=True)
class Noise:
    """A number with noise of one of four kinds."""

    kind: str

    def __call__(self, dataset: float, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws n outputs."""
        if self.kind == "laplace":
            return dataset + rng.laplace(0.0, 1.0, n)
        if self.kind == "gaussian":
            return dataset + rng.normal(0.0, 1.0, n)
        if self.kind == "rounded":
            return np.round((dataset + rng.laplace(0.0, 1.0, n)) * _GRID) / _GRID
        # Two-sided geometric noise on a grid of 2^-10, all in whole numbers.
        ratio = np.exp(-1.0 / 1024)
        whole_noise = rng.geometric(1 - ratio, n) - rng.geometric(1 - ratio, n)
        return (int(dataset * 1024) + whole_noise) / 1024.0


def _leaks(settings: Settings) -> list[Case]:
    bars = {
        "ε of the bits": Target(8.0, "≥", source=BAR),
        "cost against a value audit": Target(2.0, "≤", source=BAR),
    }
    return [Case(f"naive {kind}", {"kind": kind}, bars) for kind in ("laplace", "gaussian")]


def run_leak(case: Case, seed: int, settings: Settings) -> Numbers:
    """The bound of the bits view, and what it costs."""
    mechanism = em.from_batch(Noise(case.parameters["kind"]))
    load()
    began = time.process_time()
    bits = em.audit(
        mechanism,
        (0.0, 1.0),
        "eps=1",
        samples=settings["samples"],
        seed=seed,
        representation="bits",
    )
    between = time.process_time()
    value = em.audit(mechanism, (0.0, 1.0), "eps=1", samples=settings["samples"], seed=seed)
    cost = (between - began) / (time.process_time() - between)
    return {
        "ε of the bits": bits.lower_bound,
        "ε of the values": value.lower_bound,
        "cost against a value audit": cost,
    }


@cache
def load() -> None:
    """Both kinds of audit once: what they import must not count for whichever comes first."""
    for representation in ("bits", "value"):
        em.audit(
            em.from_batch(Noise("laplace")),
            (0.0, 1.0),
            "eps=1",
            samples=4_000,
            representation=representation,
        )


def _sound(settings: Settings) -> list[Case]:
    return [
        Case(kind, {"kind": kind}, {"refuted": Rate(0.05, "≤", source=PROMISED)})
        for kind in ("rounded", "whole numbers")
    ]


def run_sound(case: Case, seed: int, settings: Settings) -> Numbers:
    """Whether the bits view refutes a mechanism that it should not."""
    mechanism = em.from_batch(Noise(case.parameters["kind"]))
    found = em.audit(
        mechanism,
        (0.0, 1.0),
        "eps=1",
        samples=settings["samples"],
        seed=seed,
        representation="bits",
    )
    return {"refuted": float(found.is_refuted), "ε of the bits": found.lower_bound}


EXPERIMENTS = (
    Experiment(
        "beyond/bits",
        "naive floating-point noise",
        10,
        _leaks,
        run_leak,
        (_SAMPLES,),
        parallel=False,
    ),
    Experiment("beyond/bits-size", "careful floating-point noise", 200, _sound, run_sound, (_FEW,)),
)
