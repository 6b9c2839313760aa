"""An audit's configuration, opened before anything is drawn; and how the draws are divided."""

import os
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epsilometer.auditing.config import AuditConfig
from epsilometer.auditing.constancy import ASK, check_constant_setting
from epsilometer.auditing.metadata import RunMetadata
from epsilometer.claims.base import check_confidence, check_flag, check_whole
from epsilometer.engine import (
    Deadline,
    Journal,
    NoProgress,
    Progress,
    Runner,
    check_seed,
    engine_name,
    limit_workers,
    open_runner,
)
from epsilometer.engine.health import check_suppressed
from epsilometer.errors import InputError
from epsilometer.mechanisms import Mechanism
from epsilometer.methods import Method, as_method, as_options, find_method
from epsilometer.one_line import complete_repr
from epsilometer.outputs import Outputs

_REPRESENTATIONS = ("value", "bits", "all")
# The fewest draws per side that can be split into learning and certifying.
FEWEST = 20
# The fewest draws per side that say anything about a pair.
FEWEST_PER_PAIR = 50
# The fraction of all draws that explores pairs, where there are several.
EXPLORE_SHARE = 0.25
# Draws per side of all pairs in one round of exploring, in audits of any size. They are kept in
# memory, and more of them find nothing better (decision 0031).
MOST_PER_ROUND = 2_500_000
# Draws per side that learn, in audits of any size: kept in memory likewise.
_MOST_TRAINING = 2_000_000
# Draws per side that learn where outputs are single numbers: nothing looks at more of them.
_MOST_PLAIN = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """An opened configuration: what `audit`, `measure` and their kin run with.

    Attributes:
        samples: draws per side for everything together.
        confidence: the probability with which the bound holds.
        seed: of all random streams.
        method: how to find and certify.
        representation: how outputs are looked at: "value", "bits" or "all".
        runner: where chunks are drawn, and until when.
        suppressed: health checks that are switched off.
        constant: "ask", or "leak" if the caller says that constant answers have no noise.
        progress: notified of every drawn chunk.
        checkpoint: the absolute path of the file from which the audit resumes; None for none.
        journal: remembers the draws of an audit that may be interrupted.
        metadata: what the run notes about itself, for the result.
    """

    samples: int
    confidence: float
    seed: int
    method: Method
    representation: str
    runner: Runner
    suppressed: frozenset[str]
    constant: str = ASK
    progress: Progress = field(default_factory=NoProgress)
    checkpoint: str | None = None
    journal: Journal = field(default_factory=Journal)
    metadata: RunMetadata = field(default_factory=RunMetadata)

    def noting(self, **facts: Any) -> "Settings":
        """The same settings with further facts in the metadata."""
        return replace(self, metadata=self.metadata.with_facts(**facts))

    def report_status(self, text: str) -> None:
        """Reports how the work stands to a progress that can show it."""
        listener = getattr(self.progress, "tell", None)
        if listener is not None:
            listener(text)

    def with_helpful_workers(self, mechanism: Mechanism) -> "Settings":
        """The same settings with no more workers than can help, and a word about the others."""
        n_workers = limit_workers(self.runner, waits=mechanism.waits)
        if n_workers is None:
            return self
        asked = self.metadata.jobs
        self.report_status(
            f"{n_workers} workers: more than that, as jobs={asked} asks for, do not help here"
        )
        return self.noting(jobs=n_workers, jobs_asked=asked)

    @property
    def failure_probability(self) -> float:
        """What the whole audit may spend."""
        return 1.0 - self.confidence


def open_settings(config: AuditConfig, *, may_exit_process: bool = False) -> Settings:
    """Checks a configuration and opens what it names.

    Args:
        config: what the caller said.
        may_exit_process: whether a call that ignores the time limit may end this process; only a
            program that is nothing but our command line says so.

    Raises:
        InputError: says what is wrong and what is allowed.
    """
    config = _with_stopping_options(config)
    method = _open_method(config)
    # By its absolute path, because a mechanism may change the folder.
    checkpoint = config.checkpoint
    if checkpoint is not None:
        checkpoint = absolute_path("checkpoint", checkpoint)
    seed = config.seed
    if seed is None and checkpoint is not None:
        from epsilometer.storage.journal import stored_seed  # only needed with a checkpoint

        seed = stored_seed(checkpoint)
    deadline = None
    if config.max_seconds is not None:
        deadline = Deadline(config.max_seconds, may_exit_process=may_exit_process)
    settings = Settings(
        samples=_check_samples(config.samples),
        confidence=check_confidence(config.confidence),
        seed=check_seed(seed),
        method=method,
        representation=config.representation,
        runner=open_runner(config.jobs, config.engine, deadline),
        suppressed=check_suppressed(config.suppress),
        constant=check_constant_setting(config.constant),
        progress=_open_progress(config.progress),
        checkpoint=checkpoint,
    )
    engine = config.engine
    distance = None
    if check_whole("distance", config.distance) != 1:
        distance = int(config.distance)
    return settings.noting(
        method=method.name,
        samples=settings.samples,
        confidence=settings.confidence,
        seed=settings.seed,
        jobs=config.jobs,
        engine=engine if isinstance(engine, str) else engine_name(engine),
        options=_options_text(config),
        suppress=sorted(settings.suppressed) or None,
        constant=None if settings.constant == ASK else settings.constant,
        max_seconds=config.max_seconds,
        representation=None if config.representation == "value" else config.representation,
        distance=distance,
    )


def absolute_path(name: str, path: object) -> str:
    """Returns the absolute path of a file that the caller named, or raises an InputError."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{name}={path!r:.60} must be the path of a file")
    if not os.fspath(path) or os.path.isdir(path):
        raise InputError(f"{name}={os.fspath(path)!r} is a folder or nothing: name a file")
    return os.path.abspath(path)


def _with_stopping_options(config: AuditConfig) -> AuditConfig:
    """The configuration with everything about stopping early and time limits in one place.

    An audit stops early by `stop_early=True`, by the method's name, or by a method object; its time
    limit and its checkpoint may stand among the options of the method or among the keywords, which
    win. Afterwards they are keywords of the configuration alone.
    """
    if config.representation not in _REPRESENTATIONS:
        allowed = ", ".join(repr(name) for name in _REPRESENTATIONS)
        raise InputError(f"representation={config.representation!r} must be one of {allowed}")
    if config.stop_early is not None:
        check_flag("stop_early", config.stop_early)
    method = config.method
    stops_early = (
        bool(config.stop_early)
        or method == "sequential"
        or (isinstance(method, Method) and method.stops_early)
    )
    if not stops_early:
        return config
    if config.representation != "value":
        raise InputError(
            f"representation={config.representation!r} cannot be combined with stopping early"
        )
    # Only needed to stop early.
    from epsilometer.methods.sequential import Options, SequentialMethod

    options = config.options
    if isinstance(method, SequentialMethod) and options is None:
        options = method.options
    elif method not in ("auto", "sequential"):
        raise InputError(
            f"method={method!r} cannot stop early; leave it out, or say method='sequential'"
        )
    options = as_options("sequential", options)
    if options is not None and not isinstance(options, Options):
        raise InputError(
            f"options={options!r:.100} must be epsilometer.sequential.Options when stopping early"
        )
    chosen = options or Options()
    if config.max_seconds is not None:
        chosen = replace(chosen, max_seconds=config.max_seconds)
    if config.checkpoint is not None:
        chosen = replace(chosen, checkpoint=config.checkpoint)
    return replace(
        config,
        method="sequential",
        options=chosen,
        max_seconds=chosen.max_seconds,
        checkpoint=chosen.checkpoint,
    )


def _open_method(config: AuditConfig) -> Method:
    options = config.options
    if config.representation != "value":
        method = _method_for_representation(config.representation, config.method)
        return as_method(method, options)
    if options is not None:
        options = as_options(config.method, options)
    if isinstance(config.method, str):
        return find_method(config.method, options)
    return as_method(config.method, options)


def _options_text(config: AuditConfig) -> str | None:
    """The options of the method for the record; a method that is an object is its own options."""
    if config.options is not None:
        return complete_repr(as_options(config.method, config.options))
    if isinstance(config.method, str) or config.representation != "value":
        return None
    return repr(config.method)


def _check_samples(samples: Any) -> int:
    if isinstance(samples, float) and samples.is_integer():
        samples = int(samples)  # 1e5 is a whole number, too
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer):
        raise InputError(f"samples={samples!r} must be a whole number")
    if samples < FEWEST:
        raise InputError(
            f"samples={samples} is too few: at least {FEWEST} draws per side are needed"
        )
    return int(samples)


def _open_progress(progress: Progress | bool | None) -> Progress:
    """What shows the progress; without being asked, only in a notebook."""
    is_asked = progress is True
    if is_asked or (progress is None and "IPython" in sys.modules):
        # A convenience that looks up to the reports.
        from epsilometer.report.progress import ProgressBar, in_notebook

        if is_asked or in_notebook():
            return ProgressBar()
    if progress is None or isinstance(progress, bool):
        return NoProgress()
    if not callable(getattr(progress, "advance", None)):
        raise InputError(
            f"progress={progress!r:.60} must be True, False or an object with a method advance(n), "
            "such as em.ProgressBar()"
        )
    return progress


def _method_for_representation(representation: str, method: object) -> Method:
    """A method that looks at the bits of outputs, or at their values and then at their bits."""
    # Only needed for bits.
    from epsilometer.methods.bits import BitsMethod, BitsProfileMethod, WithBits
    from epsilometer.methods.events import EventsMethod
    from epsilometer.methods.profile import ProfileMethod

    if method not in ("auto", "events", "bits", "profile"):
        raise InputError(
            f"representation={representation!r} goes with the method events, not with {method!r}"
        )
    if method == "profile":
        bits: Method = BitsProfileMethod()
        values: Method = ProfileMethod()
    else:
        bits = BitsMethod()
        values = EventsMethod()
    return bits if representation == "bits" else WithBits(values, bits)


def check_enough_for(n_pairs: int, samples: int) -> None:
    """Several pairs need draws to choose among them."""
    least = int(FEWEST_PER_PAIR * n_pairs * 2 / EXPLORE_SHARE)
    if n_pairs > 1 and samples < least:
        raise InputError(
            f"samples={samples} is too few: choosing among {n_pairs} pairs takes at least {least}"
        )


# The fraction of the draws that learn.
_TRAINING_FRACTION = 0.3
# Of a large audit whose outputs are single numbers, so many draws learn, and this fraction of all.
_PLAIN_TRAINING = 20_000
_PLAIN_TRAINING_FRACTION = 0.1


def training_size(samples: int, *seen: Outputs) -> int:
    """Draws per side that learn: 30 % of them, fewer in a large audit of single numbers.

    Outputs of several columns or shapes need them: with 12, 22 and 30 % of a million draws the
    chosen event of NumericalSVT has .50, .65 and .74 of the oracle, that of SVT4 with 22 and 30 %
    .83 and .88, and the certificate loses .01.

    Args:
        samples: draws per side of the whole audit.
        seen: draws that learn already; those of the certificate must not decide how many there are.
    """
    has_structure = any(
        len(side.blocks) > 1 or any(len(block.columns) > 1 for block in side.blocks)
        for side in seen
    )
    most = _MOST_TRAINING
    if not has_structure:
        most = min(int(_PLAIN_TRAINING + _PLAIN_TRAINING_FRACTION * samples), _MOST_PLAIN)
    return max(FEWEST // 2, min(int(_TRAINING_FRACTION * samples), most))
