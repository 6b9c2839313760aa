"""The public face: audit, measure, compare, replay. The loops behind them are in `epsilometer.auditing.loops`."""

import os
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from epsilometer.auditing.judge import (
    AnyQuestion,
    PairwiseQuestion,
    Question,
    conclude,
    examine_draws,
    pay_and_prove,
)
from epsilometer.auditing.loops import AuditRun
from epsilometer.auditing.settings import FEWEST, Settings, open_settings, training_size
from epsilometer.bounds import ErrorBudget
from epsilometer.claims import ApproxDP, Claim, PureDP, RenyiDP, as_claim, open_claim
from epsilometer.engine import Phase, Progress, health, watched
from epsilometer.engine.chunks import recorded_fingerprints
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError
from epsilometer.inputs import RECORDED, Inputs, Pair, as_pair, as_pairs, is_recorded
from epsilometer.inputs.pairs import Finder, check_same, is_complete
from epsilometer.interruptions import callers_handlers_relayed
from epsilometer.mechanisms import as_mechanism, as_subject
from epsilometer.mechanisms.base import place_of
from epsilometer.mechanisms.features import as_features, same_features
from epsilometer.mechanisms.functions import BatchMechanism, Subject
from epsilometer.mechanisms.used_draws import COMPARED, EarlierDraws, check_noted, compared_facts
from epsilometer.methods import Method, Task, restore_proposal
from epsilometer.result import AuditResult, HealthReport


def audit(
    mechanism: object,
    inputs: Inputs | Finder | None = None,
    claim: Claim | str | None = None,
    *,
    samples: int = 100_000,
    confidence: float = 0.95,
    seed: int | None = None,
    method: str | Method = "auto",
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
    record: str | Path | None = None,
) -> AuditResult:
    """Tries to refute a claim of privacy.

    Args:
        mechanism: a function of the dataset (and optionally `rng`), anything made by
            `from_callable`, `from_batch`, …, or an entry of the zoo.
        inputs: a `Pair` of neighbouring datasets, a 2-tuple, a list of pairs, a domain of
            `epsilometer.domains`, which is searched, or a finder of `epsilometer.finders`. A zoo
            entry brings its worst pair.
        claim: what is promised, e.g. `PureDP(1.0)` or "eps=1,delta=1e-6". A zoo entry brings its
            own.
        samples: draws per side for the whole audit: search, training and certification included.
            With a finder, draws per side for each pair that is certified; a trial takes the
            finder's own samples.
        confidence: the probability with which the bound must hold.
        seed: makes the audit repeatable; None takes fresh entropy and records it.
        method: a name of `epsilometer methods`, or an object that does what
            `epsilometer.methods.Method` says.
        options: settings of that method, an object of its own kind or a mapping of their names.
        jobs: worker processes on this machine; they do not change the result.
        engine: where the workers run: "local", the address of a Dask scheduler ("dask://host:port")
            or of a Ray cluster ("ray://host:port"), or a Client of Dask.
        suppress: names of health checks to switch off.
        progress: True shows how far it is, False nothing, None does so in a notebook; or a
            `ProgressBar`, or its like.
        stop_early: draws in growing batches and stops as soon as the claim is refuted; `samples` is
            then the most that may be drawn. For mechanisms that take long. The same as
            method="sequential".
        max_seconds: ends the audit after this many seconds, even in the middle of a call that
            hangs. With stop_early the result says what was proved until then, and a search what it
            certified; otherwise an audit that has not drawn all its samples has no bound and raises
            `MechanismError`, and `checkpoint` keeps what was drawn.
        checkpoint: a file from which an interrupted audit goes on, to the result of an audit
            without interruption.
        representation: "value" judges outputs by their values, "bits" by sign, exponent and
            trailing zero bits of floating-point numbers, "all" by their values, with a separate
            finding about the bits.
        distance: how many neighbouring steps the inputs are apart; the claim is scaled to the
            group.
        record: a .jsonl or .npz file that keeps all draws; audited with `from_recording`, it gives
            the same result.

    Returns:
        The verdict, the certified lower bound, and the witness.

    Guarantee: a true claim is refuted with probability at most 1 − confidence, if the draws are
        independent. Exact for the method `events`.

    Example:
        >>> def noisy_count(rows, rng):
        ...     return sum(rows) + rng.laplace(scale=0.5)  # ε = 1 would need scale=1
        >>> result = em.audit(noisy_count, em.Pair([1, 0], [1, 1]), em.PureDP(1.0), samples=5000, seed=0)
        >>> result.verdict, round(result.lower_bound, 1)
        (<Verdict.REFUTED: 'refuted'>, 1.8)
    """
    how = samples, confidence, seed, method, options, jobs, engine, suppress, progress
    settings = open_settings(*how, stop_early, max_seconds, checkpoint, representation, distance)
    subject = as_subject(mechanism)
    question: AnyQuestion
    if claim is None and subject.promises_by_pair:
        question = _own_question(subject, inputs, distance)
    else:
        claim = subject.promise([]) if claim is None else claim  # a zoo entry brings its own
        promised = claim if isinstance(claim, Claim) else as_claim(claim)
        question = Question(promised if distance == 1 else promised.scaled(distance), judged=True)
    return _run(subject, inputs, question, settings, record, checkpoint)


def measure(
    mechanism: object,
    inputs: Inputs | Finder | None = None,
    notion: type[Claim] | None = None,
    *,
    samples: int = 100_000,
    confidence: float = 0.95,
    seed: int | None = None,
    method: str | Method = "auto",
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
    record: str | Path | None = None,
    **fixed: float,
) -> AuditResult:
    """How large is the privacy loss at least? Like `audit`, without a claim and without a verdict.

    Args: those of `audit`, and notion: a claim class, e.g. `RenyiDP`; None is the one that the
        fixed parameters belong to, `PureDP` without. stop_early: draws in growing batches, with a
        bound that holds whenever it stops: at `max_seconds`, or when all
            samples are drawn.
        distance: noted in the result; the bound is about the inputs as they are.
        fixed: the notion's other parameters, e.g. `order=2.0`; for ApproxDP either `delta=` (bounds
            ε) or `epsilon=` (bounds δ).

    Guarantee: the bound exceeds the true value with probability at most 1 − confidence.

    Example:
        >>> em.measure(em.zoo.laplace(), samples=5000, seed=0).lower_bound  # pure ε; the truth is 1
        0.9...
    """
    how = samples, confidence, seed, method, options, jobs, engine, suppress, progress
    settings = open_settings(*how, stop_early, max_seconds, checkpoint, representation, distance)
    question = Question(_open(notion, fixed), judged=False)
    return _run(as_subject(mechanism), inputs, question, settings, record, checkpoint)


def compare(
    left_outputs: object,
    right_outputs: object,
    claim: Claim | str | type[Claim],
    *,
    confidence: float = 0.95,
    seed: int | None = None,
    method: str | Method = "auto",
    options: object = None,
    suppress: Collection[str] = (),
    representation: str = "value",
    distance: int = 1,
    features: Callable[[Any], Any] | None = None,
    **fixed: float,
) -> AuditResult:
    """Audits two recorded samples instead of a mechanism.

    Axis 0 counts outputs; each side is shuffled with the seed before it is split into learning and
    proving, and the sizes may differ. A claim class instead of a claim measures without a verdict;
    the other arguments are those of `audit`. Two arrays of different kinds of numbers (say int64
    and float64) are compared by numeric value, and the settings of the result note it. `features`
    is a function of one output, see `from_batch`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> left, right = rng.laplace(size=2000), 1.0 + rng.laplace(size=2000)
        >>> em.compare(left, right, em.PureDP(0.5), seed=0).verdict
        <Verdict.REFUTED: 'refuted'>
    """
    began = time.perf_counter()
    if fixed and not isinstance(claim, type):
        raise InputError(
            f"compare knows no {', '.join(sorted(fixed))}: a claim brings its own parameters"
        )
    # only needed to compare
    from epsilometer.mechanisms.recordings import recorded_pair, recorded_seeds

    judged = not isinstance(claim, type)
    question = Question(as_claim(claim).scaled(distance) if judged else _open(claim, fixed), judged)
    *recorded, note = recorded_pair(left_outputs, right_outputs, as_features(features))
    seeds = sorted(
        {seed for side in (left_outputs, right_outputs) for seed in recorded_seeds(side)}
    )
    sizes = len(recorded[0]), len(recorded[1])
    for name, size in zip(("left_outputs", "right_outputs"), sizes, strict=True):
        if size < FEWEST:
            raise InputError(f"{name} has {size} outputs; at least {FEWEST} are needed")
    seen_as: dict[str, Any] = {"representation": representation, "distance": distance}
    settings = open_settings(
        max(sizes), confidence, seed, method, options, suppress=suppress, **seen_as
    )
    settings.note(mechanism=COMPARED, **note)
    # Each side is shuffled and cut into training and fresh outputs.
    parts = []
    for side, outputs in enumerate(recorded):
        rng = np.random.default_rng(
            np.random.SeedSequence(settings.seed, spawn_key=(Phase.TRAIN, 0, side))
        )
        shuffled = outputs.take(rng.permutation(len(outputs)))
        n = len(outputs)
        cut = training_size(n, shuffled.take(slice(0, training_size(n))))
        parts.append((shuffled.take(slice(0, cut)), shuffled.take(slice(cut, len(outputs)))))
    (left, fresh_left), (right, fresh_right) = parts
    settings.note(recording=compared_facts(recorded, (len(left), len(right)), seeds))
    budget = ErrorBudget(settings.failure_probability)
    train = (left, right)
    stream = Stream(settings.seed, Phase.CERTIFY)
    task = Task(question.claim, (len(fresh_left), len(fresh_right)), budget.total, stream)
    proposal = settings.method.propose(*train, task)
    tallies = proposal.tally(fresh_left, 0), proposal.tally(fresh_right, 1)
    findings = pay_and_prove(budget, proposal, tallies, RECORDED)
    # The checks look at the recording in its own order, before it was shuffled.
    reports = examine_draws(proposal, *recorded)
    # A recording that holds the same draws twice: what chose would prove, and count twice.
    reports += health.check_repeats([recorded_fingerprints(outputs) for outputs in recorded])
    return conclude(
        question,
        settings,
        proposal,
        findings,
        reports,
        sizes,
        began,
        training=train,
        certificate_p_value=partial(proposal.p_value, *tallies, budget.total),
        task=task if settings.method.is_quick else None,
    )


def replay(
    result: AuditResult,
    mechanism: object,
    *,
    samples: int = 100_000,
    confidence: float | None = None,
    seed: int | None = None,
    pair: Pair | tuple[Any, Any] | None = None,
    jobs: int = 1,
    engine: object = "local",
    progress: Progress | bool | None = None,
    features: Callable[[Any], Any] | None = None,
) -> AuditResult:
    """Certifies the same witness again on fresh draws: none of them learn, all of them prove.

    The draws have a phase of their own in the seed scheme, so a replay never redraws the numbers of
    the audit. Of a
    recording it takes the rows that the audit has not used, and refuses it if too few are left: a
    result knows which recorded draws chose its event, by their content, in any file and any format.

    Args:
        result: an audit with a witness.
        mechanism: the mechanism to run.
        samples: draws per side.
        confidence: that of the stored result unless given.
        pair: the inputs, when the stored result only has their digest, which they must match.
        features: those of the audit, if the event looks at features and the mechanism does not
            bring them.

    Example:
        >>> entry = em.zoo.dp_mean()
        >>> found = em.audit(entry, samples=1000, seed=0)
        >>> em.replay(found, entry, samples=1000, seed=1).verdict  # the same event, fresh draws
        <Verdict.REFUTED: 'refuted'>
    """
    witness = result.witness
    if witness is None:
        raise InputError("this result has no witness to replay")
    inputs = witness.pair if pair is None else as_pair(pair, equal=witness.pair.equal)
    # outputs recorded elsewhere have no known inputs
    if pair is not None and not is_recorded(witness.pair):
        check_same(witness.pair, inputs)
    if not is_complete(inputs) or is_recorded(inputs):
        raise InputError("the stored result does not hold its inputs; give them again with pair=")
    confidence = result.confidence if confidence is None else confidence
    settings = open_settings(
        samples, confidence, seed, "events", jobs=jobs, engine=engine, progress=progress
    )
    earlier = EarlierDraws.of(result.settings)
    settings.note(replay_of=_replayed(result, earlier))
    question = Question(result.claim, judged=result.verdict is not None)
    source = same_features(
        as_mechanism(mechanism), as_features(features), result.settings.get("features")
    )
    if source.features is not None:
        settings.note(features=source.features.note())
    settings.note(**source.weakening_facts())
    # The claim is that of the audit, and so is what it is about.
    settings.note(
        **{
            name: result.settings[name]
            for name in ("distance", "representation")
            if name in result.settings
        }
    )
    if source.used is None:
        source = source.prepared([inputs], settings.samples)
    else:  # how many rows of a recording are left is known below
        check_noted(result.settings)
        source = source.prepared([inputs], FEWEST)
    source = source.unused(earlier, inputs, settings.samples)
    run = AuditRun.start(source, [inputs], question, settings)
    stream = Stream(settings.seed, Phase.REPLAY)
    task = Task(
        result.claim, (settings.samples, settings.samples), settings.failure_probability, stream
    )
    with (
        callers_handlers_relayed(),
        closing(settings.runner),
        watched(settings.progress, 2 * settings.samples),
    ):
        again = run.certify(
            restore_proposal(witness, task, result.lower_bound), 0, settings.samples, Phase.REPLAY
        )
    noted = earlier.noted(None if source.used is None else source.used.facts())
    if noted is not None:
        again = replace(again, settings={**again.settings, "recording": noted})
    if again.witness is None or not again.witness.is_deterministic:
        return again
    text = "the event always happened for one input and never for the other; a replay, which looks at nothing but the "
    text += "event, cannot tell a leak without noise from a noise that is drawn once and kept (memoised)"
    return replace(again, health=(*again.health, HealthReport("constant", text, untrusted=False)))


def _own_question(subject: Subject, inputs: Inputs | Finder | None, distance: int) -> AnyQuestion:
    """Whether a mechanism keeps its own promise, where that depends on the pair of inputs.

    All pairs that are known beforehand are asked for their claims here, so that what cannot be
    judged is refused before anything is drawn. A finder's pairs are asked one by one.
    """

    def promise(pair: Pair) -> Claim:
        claim = as_claim(subject.promise([pair]))
        return claim if distance == 1 else claim.scaled(distance)

    if inputs is not None and not isinstance(inputs, Pair | tuple | list):
        return PairwiseQuestion(promise)
    claims = [promise(pair) for pair in as_pairs(subject.worst_pair if inputs is None else inputs)]
    if all(claim == claims[0] for claim in claims):
        return Question(claims[0], judged=True)
    return PairwiseQuestion(promise)


def _replayed(result: AuditResult, earlier: EarlierDraws) -> dict[str, Any]:
    """What a replay notes about the result that it replays: its bound, and the seeds of all draws behind it."""
    seed = result.settings.get("seed")
    replayed = {"lower_bound": result.lower_bound, "seed": seed}
    # The seed alone says it all for an audit that was drawn with it.
    return replayed if earlier.seeds == {seed} else {**replayed, "seeds": sorted(earlier.seeds)}


def _run(
    subject: Subject,
    inputs: Inputs | Finder | None,
    question: AnyQuestion,
    settings: Settings,
    record: str | Path | None = None,
    checkpoint: str | Path | None = None,
) -> AuditResult:
    mechanism = subject.mechanism
    # how a function can be had again elsewhere
    if place := place_of(getattr(mechanism, "function", None)):
        on_error = getattr(mechanism, "on_error", "raise")
        settings.note(
            recipe={
                "function": place,
                "batch": isinstance(mechanism, BatchMechanism),
                "on_error": on_error,
            }
        )
    if mechanism.features is not None:
        settings.note(features=mechanism.features.note())
    settings.note(**mechanism.weakening_facts())
    # By their whole names, because a mechanism may change the folder.
    if record is not None:
        settings.note(recorded_to=str(record))
        record = os.path.abspath(record)
    checkpoint = None if checkpoint is None else os.path.abspath(checkpoint)
    # A domain is searched; it need not be one of our classes.
    if (
        hasattr(inputs, "neighbours")
        and hasattr(inputs, "relations")
        and not isinstance(inputs, Finder)
    ):
        from epsilometer.inputs.finders.search import Search  # only needed to search

        inputs = Search(cast(Any, inputs))
    if isinstance(inputs, Finder):
        from epsilometer.auditing.search import check_search  # only needed to search

        check_search(subject.mechanism, question, settings)
        pairs = []
        source = subject.mechanism
        total = None
    else:
        pairs = as_pairs(subject.worst_pair if inputs is None else inputs)
        source = subject.mechanism.prepared(pairs, settings.samples)
        total = 2 * settings.samples
    with ExitStack() as opened:
        # the outermost: what they raise comes after the checkpoint
        opened.enter_context(callers_handlers_relayed())
        opened.enter_context(closing(settings.runner))
        if record is not None:
            from epsilometer.mechanisms.kept_draws import keeping  # only needed to record

            source = opened.enter_context(keeping(source, pairs, record, settings.seed))
        if checkpoint is not None and not settings.method.stops_early:
            # only needed with a checkpoint
            from epsilometer.auditing.journals import FileJournal, audit_key

            asked = inputs if isinstance(inputs, Finder) else pairs
            journal = FileJournal(checkpoint, audit_key(source, asked, question, settings))
            settings = replace(settings, journal=opened.enter_context(closing(journal)))
        opened.enter_context(watched(settings.progress, total))
        if isinstance(inputs, Finder):
            from epsilometer.auditing.hunting import run_search

            result = run_search(source, inputs, question, settings)
        elif settings.method.stops_early:
            from epsilometer.auditing.sequential import run_sequential  # only needed to stop early

            result = run_sequential(source, pairs, question, settings)
        else:
            result = AuditRun.start(source, pairs, question, settings).audit()
    if source.used is None:
        return result
    # Only now is known which of the recorded draws were used, and what for.
    return replace(result, settings={**result.settings, "recording": source.used.facts()})


def _open(notion: object, fixed: dict[str, float]) -> Claim:
    if notion is None:
        notion = RenyiDP if "order" in fixed else ApproxDP if fixed else PureDP
    if not (isinstance(notion, type) and issubclass(notion, Claim)):
        raise InputError(f"notion={notion!r} must be a claim class such as PureDP")
    return open_claim(notion, fixed)
