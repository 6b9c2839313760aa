"""Who finds the bugs of the zoo, how soon, and how small the counterexample is; that right functions are not refuted.

Nobody is told where a bug is: a finder gets the domain and the relation that the function declares, and for bugs that
only show outside of the domain, Search is told to look beyond it (the others cannot). The zoo imports pandas, so it is
loaded when an experiment runs, not when they are listed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import epsilometer as em
from epsilometer_experiments.experiment import Case, Experiment, Numbers, Settings, Target
from epsilometer_experiments.options import Option, whole, words

if TYPE_CHECKING:
    from epsilometer_experiments.searching.bug import Bug

CONFIDENCE = 0.999
_BUGS = Option("bugs", "names of bugs, separated by commas; all by default", (), words)
_FINDERS = Option("finders", "who searches", ("search", "random", "bayesian"), words)
_SAMPLES = Option("samples", "draws per input of a certificate", 10_000, whole)
_LOOKS = Option(
    "looks", "draws per input with which random and bayesian look at a pair", 500, whole
)
_TRIALS = Option("trials", "pairs that random and bayesian may try", 50, whole)
_PAIRS = Option("pairs", "pairs that Search may look at", 1_000, whole)
_SECONDS = Option("seconds", "for each search", 60.0, float)


def _chosen(settings: Settings) -> Mapping[str, Bug]:
    from epsilometer_experiments.searching.zoo import BUGS

    return {name: BUGS[name] for name in settings["bugs"] or BUGS}


def _bug_cases(settings: Settings) -> list[Case]:
    bars = {
        "search: found": Target(1.0, "≥", source="our bar"),
        "search: records too many": Target(1.0, "≤", source="our bar"),
    }
    return [
        Case(f"{bug.family}: {name}", {"bug": name}, bars)
        for name, bug in _chosen(settings).items()
    ]


def find_bug(case: Case, seed: int, settings: Settings) -> Numbers:
    """Every finder searches for the same bug."""
    bug = _chosen(settings)[case.parameters["bug"]]
    numbers: dict[str, float] = {}
    for name in settings["finders"]:
        numbers |= {
            f"{name}: {quantity}": value
            for quantity, value in search(bug, name, seed, settings).items()
        }
    return numbers


def search(bug: Bug, finder: str, seed: int, settings: Settings) -> dict[str, float]:
    """Whether the bug was found, after how many seconds of work and draws, and how much too large the pair is."""
    from epsilometer_experiments.searching.bug import size_of

    began = time.process_time()
    try:
        result = audit(bug, finder, seed, settings)
    except (
        em.MechanismError
    ):  # nothing was certified in time, or the function took none of the inputs
        return {"found": 0.0, "seconds": time.process_time() - began}
    numbers = {"found": float(result.is_refuted), "seconds": time.process_time() - began}
    if result.is_refuted and result.witness is not None:
        pair = result.witness.pair
        numbers["draws"] = float(sum(result.samples_used))
        numbers["records too many"] = float(size_of(pair.left, pair.right) - bug.smallest)
    return numbers


def audit(
    bug: Bug, finder: str, seed: int, settings: Settings, *, right: bool = False
) -> em.AuditResult:
    """An audit of the broken function, or of the right one, that searches for its inputs."""
    return em.audit(
        bug.mechanism(right=right),
        _open(bug, finder, seed, settings),
        bug.claim,
        samples=settings["samples"],
        confidence=CONFIDENCE,
        seed=seed,
        max_seconds=settings["seconds"],
    )


def _open(bug: Bug, finder: str, seed: int, settings: Settings) -> Any:
    if finder == "search":
        looks = {"beyond": bug.beyond, "trials": settings["pairs"], "seed": seed % 2**32}
        return em.finders.Search(bug.domain, relation=bug.relation, **looks)
    kind = {"random": em.finders.Random, "bayesian": em.finders.Bayesian}[finder]
    sizes = {"trials": settings["trials"], "samples": settings["looks"]}
    return kind(bug.domain, relation=bug.relation, seed=seed % 2**32, **sizes)


def _twin_cases(settings: Settings) -> list[Case]:
    return [
        Case(
            f"{bug.family}: {bug.right.__name__} ({name})",
            {"bug": name},
            {"refuted": Target(0.0, "≤", source="promised")},
        )
        for name, bug in _chosen(settings).items()
    ]


def audit_twin(case: Case, seed: int, settings: Settings) -> Numbers:
    """The right function under the search that finds the bug of the broken one."""
    bug = _chosen(settings)[case.parameters["bug"]]
    try:
        result = audit(bug, "search", seed, settings, right=True)
    except (
        em.MechanismError
    ):  # no time for a certificate: a twin that was not audited is no evidence
        return {"audited": 0.0}
    return {"audited": 1.0, "refuted": float(result.is_refuted), "lower bound": result.lower_bound}


EXPERIMENTS = (
    Experiment(
        "find/bugs",
        "52 library bugs: found by Search, Random and Bayesian, after how long, and how small the counterexample",
        1,
        _bug_cases,
        find_bug,
        (_BUGS, _FINDERS, _SAMPLES, _PAIRS, _LOOKS, _TRIALS, _SECONDS),
    ),
    Experiment(
        "find/twins",
        "the same functions without their bugs: none may be refuted",
        10,
        _twin_cases,
        audit_twin,
        (_BUGS, _SAMPLES, replace(_PAIRS, default=200), _SECONDS),
    ),
)
