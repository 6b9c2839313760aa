"""How an audit is to be run, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.engine import Journal, NoJournal, NoProgress, Progress, Runner, check_seed, open_runner
from epsilometer.engine.health import check_suppressed
from epsilometer.engine.runners import engine_name
from epsilometer.errors import InputError
from epsilometer.methods import Method, as_method
from epsilometer.methods.bits import EventsWithBits
from epsilometer.methods.registry import as_options
from epsilometer.result import AuditResult, Finding, changed

_REPRESENTATIONS = ("value", "bits", "all")


def choose_mode(
    method: str | Method,
    options: object,
    *,
    stop_early: bool | None,
    max_seconds: float | None,
    checkpoint: str | Path | None,
    representation: str,
    searches: bool = False,
) -> tuple[str | Method, object]:
    """The method and its options; an InputError where the wishes do not go together.

    A checkpoint means stopping early, unless the caller says otherwise, names a method, asks for another view, or
    searches for pairs.
    """
    if representation not in _REPRESENTATIONS:
        raise InputError(f"representation={representation!r} must be one of {', '.join(map(repr, _REPRESENTATIONS))}")
    if stop_early is False and max_seconds is not None:
        raise InputError(f"max_seconds={max_seconds!r} is for audits that stop early; leave stop_early=False out")
    if getattr(method, "stops_early", False) and options is None:
        method, options = "sequential", getattr(method, "options", None)
    is_ordinary = method == "auto" and representation == "value" and not searches
    implied = checkpoint is not None and stop_early is None and is_ordinary
    if stop_early or implied or max_seconds is not None or method == "sequential":
        if representation != "value":
            raise InputError(f"representation={representation!r} cannot be combined with stopping early")
        return "sequential", _sequential_options(method, options, max_seconds, checkpoint)
    if representation != "value" and method != "profile":
        if method not in ("auto", "events", "bits"):
            raise InputError(f"representation={representation!r} goes with the method events, not with {method!r}")
        return ("bits" if representation == "bits" else "events"), options
    return method, options


def seen_as(settings: Settings, representation: str) -> Settings:
    """The settings with a method that looks at outputs in this way; the result will say which."""
    if representation == "value":
        return settings
    settings.record["representation"] = representation
    if settings.method.name == "profile":
        from epsilometer.methods.bits_profile import BitsProfileMethod, ProfileWithBits  # few ask for it

        return replace(settings, method=BitsProfileMethod() if representation == "bits" else ProfileWithBits())
    return replace(settings, method=EventsWithBits()) if representation == "all" else settings


def _sequential_options(
    method: str | Method, options: object, max_seconds: float | None, checkpoint: str | Path | None
) -> object:
    from epsilometer.methods.sequential import Options  # few audits stop early

    if method not in ("auto", "sequential"):
        raise InputError(f"method={method!r} cannot stop early; leave it out, or say method='sequential'")
    options = as_options("sequential", options)
    if options is not None and not isinstance(options, Options):
        raise InputError(f"options={options!r:.100} must be epsilometer.sequential.Options when stopping early")
    chosen = options or Options()
    if max_seconds is not None:
        chosen = replace(chosen, max_seconds=max_seconds)
    return chosen if checkpoint is None else replace(chosen, checkpoint=checkpoint)


def spread_findings(result: AuditResult) -> AuditResult:
    """A finding that was carried in the details of the deciding one becomes one of its own, behind it."""
    first = result.findings[0]
    if "beside" not in first.details:
        return result
    details = {name: value for name, value in first.details.items() if name != "beside"}
    beside = Finding.from_dict(first.details["beside"])
    return changed(result, findings=(replace(first, details=details), beside, *result.findings[1:]))


# The fewest draws per side that can be split into learning and proving.
FEWEST = 20
# Fewest draws per side and pair that tell anything about a pair, and the share of all draws that explores pairs.
FEWEST_PER_PAIR = 50
EXPLORE_SHARE = 0.25
# Draws per side of all pairs in one round of exploring, and draws per side that learn, in audits of any size. They are
# kept in memory, and more of them find nothing better (decision 0031). Audits of less than 1e7 draws never get there.
MOST_PER_ROUND = 2_500_000
_MOST_TRAINING = 2_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What `audit`, `measure` and their kin have in common.

    Attributes:
        samples: draws per side for everything together.
        confidence: the probability with which the bound holds.
        seed: of all random streams.
        method: how to find and prove.
        runner: where chunks are drawn.
        suppressed: health checks that are switched off.
        progress: is told about every drawn chunk.
        journal: remembers the draws of an audit that may be interrupted.
        record: the same for the result, as plain data.
    """

    samples: int
    confidence: float
    seed: int
    method: Method
    runner: Runner
    suppressed: frozenset[str]
    progress: Progress = field(default_factory=NoProgress)
    journal: Journal = field(default_factory=NoJournal)
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def failure_probability(self) -> float:
        """What the whole audit may spend."""
        return 1.0 - self.confidence


def check_settings(
    *,
    samples: int,
    confidence: float,
    seed: int | None,
    method: str | Method,
    jobs: int = 1,
    engine: object = "local",
    options: object = None,
    suppress: Collection[str] = (),
    progress: Progress | None = None,
) -> Settings:
    """The settings, or an InputError that says what is wrong."""
    options = as_options(method, options)
    checked = Settings(
        check_samples(samples),
        check_confidence(confidence),
        check_seed(seed),
        as_method(method, options),
        open_runner(jobs, engine),
        check_suppressed(suppress),
        progress or NoProgress(),
    )
    checked.record.update(method=checked.method.name, samples=checked.samples, confidence=checked.confidence)
    checked.record.update(seed=checked.seed, jobs=jobs, engine=engine_name(engine))
    if options is not None or not isinstance(method, str):  # an object is its own options
        checked.record["options"] = repr(method if options is None else options)
    return checked


def check_confidence(confidence: float) -> float:
    """Strictly between 0 and 1."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        raise InputError(f"confidence={confidence!r} must lie strictly between 0 and 1, e.g. 0.95")
    return float(confidence)


def check_samples(samples: int) -> int:
    """A whole number that can be split."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer):
        raise InputError(f"samples={samples!r} must be a whole number")
    if samples < FEWEST:
        raise InputError(f"samples={samples} is too few: at least {FEWEST} draws per side are needed")
    return int(samples)


def check_enough_for(n_pairs: int, samples: int) -> None:
    """Several pairs need draws to choose among them."""
    least = int(FEWEST_PER_PAIR * n_pairs * 2 / EXPLORE_SHARE)
    if n_pairs > 1 and samples < least:
        raise InputError(f"samples={samples} is too few: choosing among {n_pairs} pairs takes at least {least}")


def training_size(samples: int) -> int:
    """Draws per side that learn: 30 % of a small audit, a falling share of a large one, where events are clear."""
    return max(FEWEST // 2, min(int(0.3 * samples), int(20_000 + 0.1 * samples), _MOST_TRAINING))
