"""How near audits come to the oracle: DP-Sniper's twenty mechanisms and the zoo, and what they cost over drawing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median

import numpy as np

import epsilometer as em
from benchmarks.effort import SIZES, Effort, short
from benchmarks.measurement import Measurement
from epsilometer.engine import open_runner
from epsilometer.zoo import ZooEntry
from epsilometer.zoo.sniper import SNIPER_NAMES
from epsilometer_experiments.self.measuring import entry_of
from epsilometer_experiments.sniper.oracle import expected_bound, oracle_bound

# A tenth of what DP-Sniper draws, at its confidence; the zoo at few draws and ours.
SNIPER_DRAWS, SNIPER_CONFIDENCE = 1_070_000, 0.9
ZOO_DRAWS, ZOO_CONFIDENCE = 10_000, 0.95
ZOO_NAMES = tuple(name for name in em.zoo.names() if name != "sniper")
# Of the oracle, in the mean over seeds. Where a learner sees too little at these sizes: .05 below what it could reach.
LEAST = 0.9
CEILINGS = {
    "SparseVectorTechnique1": 0.80,
    "SparseVectorTechnique2": 0.80,
    "SparseVectorTechnique3": 0.80,
    "NumericalSVT": 0.75,
    "ReportNoisyMax4": 0.55,
    "svt1": 0.55,
    "svt2": 0.55,
}
# Audits of structured outputs over drawing, in the median of DP-Sniper's twenty.
MOST_COST = 4.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: an entry at a number of draws per side."""

    spec: str
    n: int
    confidence: float

    @property
    def name(self) -> str:
        """As printed."""
        return f"{self.spec} at {short(self.n)}"


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of one seed.

    Attributes:
        bound: certified, or the mean bound of the chosen event where its chances were asked for.
        seconds: of the processor for the audit.
        drawing: the same for drawing alone.
    """

    bound: float
    seconds: float
    drawing: float


def measure_strength(effort: Effort) -> list[Measurement]:
    """A line for each entry, then the cost in the median of DP-Sniper's twenty."""
    lines = list(dict.fromkeys(_lines(effort)))
    tasks = [(line, seed, effort.population) for line in lines for seed in range(effort.seeds)]
    with closing(open_runner(effort.jobs)) as workers:
        audits = list(workers.map(audit_once, tasks))
        oracles = list(workers.map(oracle_of, lines))
    groups = [audits[start : start + effort.seeds] for start in range(0, len(audits), effort.seeds)]
    measured = [_measurement(*each, effort) for each in zip(lines, groups, oracles, strict=True)]
    costs = [
        fmean(map(_cost, group))
        for line, group in zip(lines, groups, strict=True)
        if line.spec in SNIPER_NAMES
    ]
    if len(costs) > 1 and effort.sizes == SIZES:
        name = f"audit / drawing, median of {len(costs)} of DP-Sniper's"
        measured.append(
            Measurement("strength", name, median(costs), "×", "≤", effort.target(MOST_COST))
        )
    return measured


def _lines(effort: Effort) -> Iterator[Line]:
    chosen = effort.only or ("sniper", "zoo")
    sizes = None if effort.sizes == SIZES else effort.sizes
    specs = {"sniper": SNIPER_NAMES, "zoo": ZOO_NAMES}
    for spec in dict.fromkeys(spec for word in chosen for spec in specs.get(word, (word,))):
        theirs = spec in SNIPER_NAMES
        for n in sizes or (SNIPER_DRAWS if theirs else ZOO_DRAWS,):
            yield Line(spec, effort.draws(n), SNIPER_CONFIDENCE if theirs else ZOO_CONFIDENCE)


def audit_once(task: tuple[Line, int, int]) -> Audit:
    """One audit with the defaults, timed, and drawing alone."""
    line, seed, population = task
    entry = entry_of(line.spec)
    _load_all_code()
    began = time.process_time()
    _draw_alone(entry, line.n, seed)
    between = time.process_time()
    result = em.measure(
        entry, None, em.PureDP, samples=line.n, seed=seed, confidence=line.confidence
    )
    ended = time.process_time()
    bound = _population_bound(entry, result, population, seed) if population else result.lower_bound
    return Audit(bound, ended - between, between - began)


@cache
def _load_all_code() -> None:
    """The first audit of a process imports what it needs, which is no part of its cost."""
    for spec in ("laplace", "svt6"):
        em.measure(entry_of(spec), None, em.PureDP, samples=2000, seed=0)


def _draw_alone(entry: ZooEntry, n: int, seed: int) -> None:
    chunk = entry.mechanism.chunk_size
    rng = np.random.default_rng([seed, 1])
    for side in (0, 1):
        for start in range(0, n, chunk):
            entry.mechanism.sample(entry.worst_pair.side(side), min(chunk, n - start), rng)


def _population_bound(entry: ZooEntry, result: em.AuditResult, population: int, seed: int) -> float:
    """The mean bound of the chosen event: its chances by fresh draws, and as many draws for the proof as it had."""
    witness = result.witness
    if witness is None:
        return result.lower_bound
    rng = np.random.default_rng([seed, 2])
    hits, chunk = [0, 0], 100_000
    for side in (0, 1):
        for start in range(0, population, chunk):
            outputs = entry.mechanism.sample(
                entry.worst_pair.side(side), min(chunk, population - start), rng
            )
            hits[side] += int(np.count_nonzero(witness.event.contains(outputs)))
    p, q = (each / population for each in (hits[::-1] if witness.flipped else hits))
    return expected_bound(p, q, witness.left_counts.trials, round(1.0 - result.confidence, 12))


def oracle_of(line: Line) -> float | None:
    """What the best event gives on all draws, in the mean."""
    return oracle_bound(entry_of(line.spec).distributions, line.n, round(1.0 - line.confidence, 12))


def _cost(audit: Audit) -> float:
    return audit.seconds / max(audit.drawing, 1e-9)


def _measurement(
    line: Line, audits: list[Audit], oracle: float | None, effort: Effort
) -> Measurement:
    bounds = tuple(each.bound for each in audits)
    cost = f"{median(map(_cost, audits)):.1f} × drawing"
    if not oracle:
        return Measurement(
            "strength",
            line.name,
            fmean(bounds),
            "ε",
            "≥",
            None,
            f"oracle not known; {cost}",
            bounds,
        )
    shares = tuple(bound / oracle for bound in bounds)
    detail = f"{fmean(bounds):.4g} of {oracle:.4g}; least seed {min(shares):.2f}; {cost}"
    target = effort.target(CEILINGS.get(line.spec, LEAST))
    return Measurement(
        "strength", f"{line.name} / oracle", fmean(shares), "×", "≥", target, detail, shares
    )
