"""Zoo entries from text, and one measurement of one of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import epsilometer as em
from epsilometer.claims import Claim, parse_claim
from epsilometer.claims.pure import ApproxDeltaDP
from epsilometer.errors import InputError
from epsilometer.zoo import ZooEntry
from epsilometer_experiments.experiment import Settings
from epsilometer_experiments.options import Option, words

ENTRY = Option("entry", "zoo entries such as laplace?epsilon=.7, separated by commas", (), words)
METHOD = Option("method", "a name of `epsilometer methods`", "auto")
CLAIM = Option(
    "claim", "the notion to measure, such as eps=1,order=2; by default each entry's own", ""
)


def entry_of(spec: str) -> ZooEntry:
    """The zoo entry that a text such as "svt4?epsilon=.7" or "zoo:laplace" names."""
    name, _, query = spec.removeprefix("zoo:").partition("?")
    try:
        parameters = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise InputError(
            f"entry={spec!r} cannot be read: write it like laplace?epsilon=.7&sensitivity=2"
        ) from None
    return em.zoo.find(name, **parameters)


def notion_of(entry: ZooEntry, claim: str) -> tuple[type[Claim], dict[str, Any]]:
    """The class of claims to measure and its fixed parameters."""
    target = parse_claim(claim) if claim else entry.claim
    return (em.ApproxDP if isinstance(target, ApproxDeltaDP) else type(target)), target.fixed()


def truth_of(entry: ZooEntry, claim: str) -> float | None:
    """The exact value that a measurement of this entry bounds from below, where it is known."""
    notion, fixed = notion_of(entry, claim)
    return entry.truth(notion, **fixed)


def measure_entry(spec: str, samples: int, seed: int, settings: Settings) -> float:
    """The certified lower bound of one measurement on the entry's worst pair."""
    entry = entry_of(spec)
    notion, fixed = notion_of(entry, settings["claim"])
    return em.measure(
        entry, None, notion, samples=samples, seed=seed, method=settings["method"], **fixed
    ).lower_bound
