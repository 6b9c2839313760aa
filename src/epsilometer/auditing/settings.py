"""How an audit is to be run, checked before anything is drawn."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.claims.base import check_confidence, check_whole
from epsilometer.engine import (
    Deadline,
    Journal,
    NoProgress,
    Progress,
    Runner,
    check_seed,
    engine_name,
    open_runner,
)
from epsilometer.engine.health import check_suppressed
from epsilometer.errors import InputError
from epsilometer.methods import Method, as_method, as_options, find_method
from epsilometer.outputs import Outputs

_REPRESENTATIONS = ("value", "bits", "all")
# The fewest draws per side that can be split into learning and proving.
FEWEST = 20
# The fewest draws per side that say anything about a pair, and the share of all draws that explores
# pairs.
FEWEST_PER_PAIR = 50
EXPLORE_SHARE = 0.25
# Draws per side of all pairs in one round of exploring, and draws per side that learn, in audits of
# any size. They are kept in memory, and more of them find nothing better (decision 0031); nor does
# anything look at more plain numbers than the last figure.
MOST_PER_ROUND = 2_500_000
_MOST_TRAINING = 2_000_000
_MOST_PLAIN = 1 << 18


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
        progress: notified of every drawn chunk.
        journal: remembers the draws of an audit that may be interrupted.
        record: the settings as plain data, for the result.
    """

    samples: int
    confidence: float
    seed: int
    method: Method
    runner: Runner
    suppressed: frozenset[str]
    progress: Progress = field(default_factory=NoProgress)
    journal: Journal = field(default_factory=Journal)
    record: dict[str, Any] = field(default_factory=dict)

    def note(self, **facts: Any) -> None:
        """Adds facts to the record; the one way to write into it."""
        self.record.update(facts)

    def with_facts(self, facts: Mapping[str, Any]) -> "Settings":
        """The same settings with facts about one finding of several in the record, which is a copy."""
        return replace(self, record={**self.record, **facts})

    def tell(self, text: str) -> None:
        """Says how the work stands to a progress that wants to know it."""
        if (listener := getattr(self.progress, "tell", None)) is not None:
            listener(text)

    @property
    def failure_probability(self) -> float:
        """What the whole audit may spend."""
        return 1.0 - self.confidence


def open_settings(
    samples: float,
    confidence: float,
    seed: int | None,
    method: object,
    options: object = None,
    jobs: int = 1,
    engine: object = "local",
    suppress: Collection[str] = (),
    progress: Progress | bool | None = None,
    stop_early: bool | None = None,
    max_seconds: float | None = None,
    checkpoint: str | Path | None = None,
    representation: str = "value",
    distance: int = 1,
) -> Settings:
    """The settings of an audit from its caller's arguments, or an InputError that says what is wrong."""
    if representation not in _REPRESENTATIONS:
        raise InputError(
            f"representation={representation!r} must be one of {', '.join(map(repr, _REPRESENTATIONS))}"
        )
    if stop_early or method == "sequential" or (isinstance(method, Method) and method.stops_early):
        if representation != "value":
            raise InputError(
                f"representation={representation!r} cannot be combined with stopping early"
            )
        method, chosen = "sequential", _sequential(method, options, max_seconds, checkpoint)
        options = chosen
        max_seconds = chosen.max_seconds
    elif representation != "value":
        method = _seen_as(representation, method)
    if seed is None and checkpoint is not None:
        from epsilometer.storage.journal import stored_seed  # only needed with a checkpoint

        seed = stored_seed(checkpoint)
    options = None if options is None else as_options(method, options)
    # 1e5 is whole, too
    samples = int(samples) if isinstance(samples, float) and samples.is_integer() else samples
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer):
        raise InputError(f"samples={samples!r} must be a whole number")
    if samples < FEWEST:
        raise InputError(
            f"samples={samples} is too few: at least {FEWEST} draws per side are needed"
        )
    numbers = int(samples), check_confidence(confidence), check_seed(seed)
    found = find_method(method, options) if isinstance(method, str) else as_method(method, options)
    # unasked, only the reader of a notebook
    if progress is True or (progress is None and "IPython" in sys.modules):
        # a convenience that looks up
        from epsilometer.report.progress import ProgressBar, in_notebook

        progress = ProgressBar() if progress or in_notebook() else None
    shown = NoProgress() if progress is None or isinstance(progress, bool) else progress
    runner = open_runner(jobs, engine, None if max_seconds is None else Deadline(max_seconds))
    settings = Settings(*numbers, found, runner, check_suppressed(suppress), shown)
    settings.note(
        method=settings.method.name, samples=settings.samples, confidence=settings.confidence
    )
    settings.note(
        seed=settings.seed,
        jobs=jobs,
        engine=engine if isinstance(engine, str) else engine_name(engine),
    )
    if options is not None or not (isinstance(method, str) or representation != "value"):
        # an object is its own options
        settings.note(options=repr(method if options is None else options))
    if settings.suppressed:
        settings.note(suppress=sorted(settings.suppressed))
    if max_seconds is not None:
        settings.note(max_seconds=max_seconds)
    if representation != "value":
        settings.note(representation=representation)
    if distance != 1:
        settings.note(distance=check_whole("distance", distance))
    return settings


def _sequential(
    method: object, options: object, max_seconds: float | None, checkpoint: str | Path | None
) -> Any:
    """Options of the method `sequential` that say when to stop."""
    # only needed to stop early
    from epsilometer.methods.sequential import Options, SequentialMethod

    if isinstance(method, SequentialMethod) and options is None:
        options = method.options
        method = "sequential"
    if method not in ("auto", "sequential"):
        raise InputError(
            f"method={method!r} cannot stop early; leave it out, or say method='sequential'"
        )
    options = as_options("sequential", options)
    if options is not None and not isinstance(options, Options):
        raise InputError(
            f"options={options!r:.100} must be epsilometer.sequential.Options when stopping early"
        )
    chosen = options or Options()
    if max_seconds is not None:
        chosen = replace(chosen, max_seconds=max_seconds)
    return chosen if checkpoint is None else replace(chosen, checkpoint=checkpoint)


def _seen_as(representation: str, method: object) -> Method:
    """A method that looks at the bits of outputs, or at their values and then at their bits."""
    # only needed for bits
    from epsilometer.methods.bits import BitsMethod, BitsProfileMethod, WithBits
    from epsilometer.methods.events import EventsMethod
    from epsilometer.methods.profile import ProfileMethod

    if method not in ("auto", "events", "bits", "profile"):
        raise InputError(
            f"representation={representation!r} goes with the method events, not with {method!r}"
        )
    values, bits = (
        (ProfileMethod(), BitsProfileMethod())
        if method == "profile"
        else (EventsMethod(), BitsMethod())
    )
    return bits if representation == "bits" else WithBits(values, bits)


def check_enough_for(n_pairs: int, samples: int) -> None:
    """Several pairs need draws to choose among them."""
    least = int(FEWEST_PER_PAIR * n_pairs * 2 / EXPLORE_SHARE)
    if n_pairs > 1 and samples < least:
        raise InputError(
            f"samples={samples} is too few: choosing among {n_pairs} pairs takes at least {least}"
        )


def training_size(samples: int, *seen: Outputs) -> int:
    """Draws per side that learn: 30 % of a small audit, a falling share of a large one where events are clear.

    Outputs of several columns or shapes need them: with 12, 22 and 30 % of a million draws the
    chosen event of NumericalSVT has .50, .65 and .74 of the oracle, that of SVT4 with 22 and 30 %
    .83 and .88, and the proof loses .01.

    Args:
        samples: draws per side of the whole audit.
        seen: draws that learn already; those of the proof must not decide how many there are of
            them.
    """
    is_wide = any(
        len(side.blocks) > 1 or any(len(block.columns) > 1 for block in side.blocks)
        for side in seen
    )
    most = _MOST_TRAINING if is_wide else min(int(20_000 + 0.1 * samples), _MOST_PLAIN)
    return max(FEWEST // 2, min(int(0.3 * samples), most))
