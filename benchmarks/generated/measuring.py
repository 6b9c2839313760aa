"""Audits of generated mechanisms next to their oracles."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import epsilometer as em
from benchmarks.generated import member_seed
from benchmarks.generated.families import Family, family_member
from benchmarks.generated.grammar import Generated, generated
from benchmarks.generated.oracle import (
    CERTAIN,
    CONFIDENCE,
    POPULATION,
    find_oracle,
    oracle_key,
    store_oracles,
    stored_oracles,
)
from epsilometer.arrays import Floats

# Where the oracle proves so much, an audit should not prove nothing.
TELLING = 0.3
# Audits, with other seeds, of a mechanism whose first audit proved nothing although the oracle does.
AGAIN = 8
# Between the seeds of these audits.
_NEXT_SEED = 1_000_000_007


@dataclass(frozen=True)
class Task:
    """One mechanism to be audited.

    Attributes:
        seed: of the mechanism.
        n: draws per side.
        population: draws from which the oracle is found.
        oracle: the oracle's bound, if it is known already.
        is_outside: whether it is one of the families outside the grammar.
        is_told: whether outputs are replaced by their exact log-likelihood ratios.
    """

    seed: int
    n: int
    population: int
    oracle: float | None
    is_outside: bool = False
    is_told: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of one mechanism.

    Attributes:
        seed: of the mechanism.
        description: of the mechanism.
        leaks: its productions.
        layout: how its outputs are shown.
        notion: in which the bounds are.
        oracle: the mean bound of the best event known in advance.
        bound: certified by the audit.
        event: the event of the audit, in words.
        seconds: of the processor, for the audit.
        empty: audits that proved nothing, of `audits`; the counting ends at two.
        audits: 1, and where the first one proved nothing and the oracle does, up to `AGAIN`.
    """

    seed: int
    description: str
    leaks: tuple[str, ...]
    layout: str
    notion: str
    oracle: float
    bound: float
    event: str
    seconds: float
    empty: int
    audits: int

    @property
    def share(self) -> float:
        """The share of the oracle's bound."""
        return self.bound / self.oracle

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data for the JSON file."""
        return asdict(self)


def audit(mechanism: Generated | Family, n: int, seed: int) -> em.AuditResult:
    """Audits a mechanism with the defaults; no claim, so that the bound is as large as it can be."""
    return em.measure(
        mechanism.mechanism,
        mechanism.pair,
        type(mechanism.claim),
        samples=n,
        seed=seed,
        confidence=CONFIDENCE,
        progress=False,
        **mechanism.claim.fixed(),
    )


@dataclass(frozen=True)
class _Ratios:
    """The function of a mechanism whose outputs are the exact log-likelihood ratios of another's."""

    of: Generated | Family

    def __call__(self, dataset: int, n: int, rng: np.random.Generator) -> Floats:
        """Draws n ratios; infinite ones are as good as this large."""
        return np.clip(self.of.draw_log_ratios(dataset, n, rng), -CERTAIN, CERTAIN)


def measure_one(task: Task) -> Outcome:
    """Audits one mechanism and finds its oracle."""
    mechanism = family_member(task.seed) if task.is_outside else generated(task.seed)
    if task.is_told:
        mechanism = replace(mechanism, mechanism=em.from_batch(_Ratios(mechanism)))
    oracle = task.oracle
    if oracle is None:
        oracle = find_oracle(mechanism, task.n, task.population).bound
    began = time.process_time()
    result = audit(mechanism, task.n, task.seed)
    seconds = time.process_time() - began
    bounds = [result.lower_bound]
    # Once two audits have proved nothing, the others would not change the answer.
    while oracle >= TELLING and bounds.count(0.0) == 1 and len(bounds) < AGAIN:
        again = task.seed + _NEXT_SEED * len(bounds)
        bounds.append(audit(mechanism, task.n, again).lower_bound)
    witness = result.witness
    return Outcome(
        seed=task.seed,
        description=mechanism.description,
        leaks=mechanism.leaks,
        layout=mechanism.shown_as,
        notion=type(mechanism.claim).__name__,
        oracle=oracle,
        bound=result.lower_bound,
        event=witness.event.describe() if witness is not None else "nothing",
        seconds=seconds,
        empty=bounds.count(0.0),
        audits=len(bounds),
    )


def measure_set(
    set_seed: int,
    count: int,
    n: int,
    *,
    jobs: int,
    population: int = POPULATION,
    is_outside: bool = False,
    is_told: bool = False,
) -> list[Outcome]:
    """Audits the first members of a set, in processes, with a line of progress; in the order of their seeds.

    Args:
        set_seed: of the set.
        count: members.
        n: draws per side.
        jobs: processes.
        population: draws from which an oracle is found.
        is_outside: takes the families outside the grammar, in turn, instead of the grammar.
        is_told: replaces outputs by their exact log-likelihood ratios: what an audit proves that need not learn a score.
    """
    known = {} if is_outside else stored_oracles()
    seeds = [member_seed(set_seed, place) for place in range(count)]
    tasks = [
        Task(
            seed=seed,
            n=n,
            population=population,
            oracle=known.get(oracle_key(seed, n, population)),
            is_outside=is_outside,
            is_told=is_told,
        )
        for seed in seeds
    ]
    outcomes: list[Outcome] = []
    for outcome in _outcomes(tasks, jobs):
        outcomes.append(outcome)
        _show_progress(len(outcomes), count)
    store_oracles({oracle_key(outcome.seed, n, population): outcome.oracle for outcome in outcomes})
    return sorted(outcomes, key=lambda outcome: outcome.seed)


def _outcomes(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(measure_one, tasks)
        return
    with ProcessPoolExecutor(jobs, initializer=threadpool_limits, initargs=(1,)) as workers:
        futures = [workers.submit(measure_one, task) for task in tasks]
        for future in as_completed(futures):
            yield future.result()


def _show_progress(done: int, count: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == count else ""
        print(f"\rgenerated: {done} of {count}", end=end, file=sys.stderr, flush=True)
    elif done % max(1, count // 10) == 0:
        print(f"generated: {done} of {count}", file=sys.stderr, flush=True)
