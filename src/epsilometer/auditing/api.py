"""The public verbs: audit, measure, compare, replay.

The loops behind them are in `epsilometer.auditing.audit_run`, `sequential` and `search`.
"""

import inspect
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Unpack, cast, overload

import numpy as np

from epsilometer.auditing import lost_draws
from epsilometer.auditing.audit_run import NO_DRAWS, AuditRun, LearnedProposal
from epsilometer.auditing.blindness import Sizes, blind_by_counts
from epsilometer.auditing.config import (
    AuditConfig,
    AuditKeywords,
    CompareKeywords,
    CompareNotionKeywords,
    MeasureKeywords,
    shows_settings,
)
from epsilometer.auditing.constancy import ASK, SideAnswers, examine_constancy
from epsilometer.auditing.judge import FinishedRun, certify_with_budget, conclude, examine_draws
from epsilometer.auditing.questions import AnyQuestion, PairwiseQuestion, Question
from epsilometer.auditing.settings import (
    FEWEST,
    Settings,
    absolute_path,
    open_settings,
    training_size,
)
from epsilometer.bounds import ErrorBudget
from epsilometer.claims import ApproxDP, Claim, PureDP, RenyiDP, as_claim, open_claim
from epsilometer.engine import Phase, Progress, progress_scope
from epsilometer.engine.fingerprints import recorded_fingerprints
from epsilometer.engine.repetition_checks import check_repeats
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError, did_you_mean, short_repr
from epsilometer.inputs import RECORDED, Inputs, Pair, as_pair, as_pairs, is_recorded
from epsilometer.inputs.pairs import Finder, check_same, is_complete
from epsilometer.interruptions import callers_handlers_relayed
from epsilometer.mechanisms import Mechanism, as_audit_target, as_mechanism
from epsilometer.mechanisms.base import import_path
from epsilometer.mechanisms.callables import BatchMechanism
from epsilometer.mechanisms.features import as_features, same_features
from epsilometer.mechanisms.functions import AuditTarget
from epsilometer.mechanisms.used_draws import COMPARED, EarlierDraws, check_noted, compared_facts
from epsilometer.methods import Method, Task, restore_proposal
from epsilometer.methods.auto import AutoMethod
from epsilometer.outputs import Outputs
from epsilometer.outputs.identifiers import growing_columns
from epsilometer.result import AuditResult, Verdict, VerdictT


@shows_settings(AuditKeywords)
def audit(
    mechanism: object,
    inputs: Inputs | None = None,
    claim: Claim | str | None = None,
    **settings: Unpack[AuditKeywords],
) -> AuditResult[Verdict]:
    """Tries to refute a claim of privacy.

    Args:
        mechanism: a function of the dataset (and optionally `rng`), anything made by
            `from_callable`, `from_batch`, …, or an entry of the zoo.
        inputs: a `Pair` of neighbouring datasets, a 2-tuple, a list of pairs, a domain of
            `epsilometer.domains`, which is searched, or a finder of `epsilometer.finders`. A zoo
            entry brings its worst pair.
        claim: what is promised, e.g. `PureDP(1.0)` or "eps=1,delta=1e-6". A zoo entry brings its
            own.
        settings: any of these keywords:
            samples: draws per side for the whole audit: search, training and certification
                included. With a finder, draws per side for each pair that is certified; a trial
                takes the finder's own samples.
            confidence: the probability with which the bound must hold.
            seed: makes the audit repeatable; None takes fresh entropy and records it.
            method: a name of `epsilometer methods`, or an object that does what
                `epsilometer.methods.Method` says.
            options: settings of that method, an object of its own kind or a mapping of their names.
            jobs: worker processes on this machine; they do not change the result.
            engine: where the workers run: "local", the address of a Dask scheduler
                ("dask://host:port") or of a Ray cluster ("ray://host:port"), or a Client of Dask.
            suppress: names of health checks to switch off; the result records them.
            constant: what it means that each input always gets one answer, and these differ.
                "ask": the audit finds out whether it is noise that is drawn once and kept
                (memoised), and is inconclusive if so, or if nothing can tell. "leak": there is no
                noise, you say; the result records it.
            progress: True shows how far it is, False nothing, None does so in a notebook; or a
                `ProgressBar`, or its like.
            stop_early: draws in growing batches and stops as soon as the claim is refuted;
                `samples` is then the most that may be drawn. For mechanisms that take long. The
                same as method="sequential".
            max_seconds: ends the audit after this many seconds, even in the middle of a call that
                hangs. With stop_early the result says what was certified until then, and a search
                what it certified; otherwise an audit that has not drawn all its samples has no
                bound and raises `MechanismError`, and `checkpoint` keeps what was drawn.
            checkpoint: a file from which an interrupted audit resumes, to the result of an audit
                without interruption.
            representation: "value" judges outputs by their values, "bits" by sign, exponent and
                trailing zero bits of floating-point numbers, "all" by their values, with a
                separate finding about the bits.
            distance: how many neighbouring steps the inputs are apart; the claim is scaled to the
                group.
            record: a .jsonl or .npz file that keeps all draws; audited with `from_recording`, it
                gives the same result.

    Returns:
        The verdict, the certified lower bound, and the witness.

    Guarantee: a true claim is refuted with probability at most 1 − confidence, if the draws are
        independent. Exact for the method `events`.

    Example:
        >>> def noisy_count(rows, rng):
        ...     return sum(rows) + rng.laplace(scale=0.5)  # ε = 1 would need scale=1
        >>> pair = em.Pair([1, 0], [1, 1])
        >>> result = em.audit(noisy_count, pair, em.PureDP(1.0), samples=5000, seed=0)
        >>> result.verdict, round(result.lower_bound, 1)
        (<Verdict.REFUTED: 'refuted'>, 1.9)
    """
    config = AuditConfig.from_keywords("audit", settings)
    return audit_with_config(mechanism, inputs, claim, config)


@callers_handlers_relayed()
def audit_with_config(
    mechanism: object,
    inputs: Inputs | None,
    claim: Claim | str | None,
    config: AuditConfig,
    *,
    may_exit_process: bool = False,
) -> AuditResult[Verdict]:
    """`audit` with its settings in one object, see there and `open_settings`."""
    opened = open_settings(config, may_exit_process=may_exit_process)
    target = as_audit_target(mechanism)
    question: AnyQuestion
    if claim is None and target.claims_by_pair:
        question = _question_of_target(target, inputs, config.distance)
    else:
        if claim is None:  # a zoo entry brings its own
            claim = target.promise([])
        promised = claim if isinstance(claim, Claim) else as_claim(claim)
        if config.distance != 1:
            promised = promised.scaled(config.distance)
        question = Question(promised, judged=True)
    result = _run(target, inputs, question, opened, config)
    return cast("AuditResult[Verdict]", result)  # the question was judged


@shows_settings(MeasureKeywords)
def measure(
    mechanism: object,
    inputs: Inputs | None = None,
    notion: type[Claim] | None = None,
    **settings: Unpack[MeasureKeywords],
) -> AuditResult[None]:
    """How large is the privacy loss at least? Like `audit`, without a claim and without a verdict.

    Args:
        mechanism: as for `audit`.
        inputs: as for `audit`.
        notion: a claim class, e.g. `RenyiDP`; None is the one that the fixed parameters belong to,
            `PureDP` without.
        settings: those of `audit`, and the notion's other parameters, e.g. `order=2.0`; for
            ApproxDP either `delta=` (bounds ε) or `epsilon=` (bounds δ). With `stop_early` the
            bound holds whenever it stops: at `max_seconds`, or when all samples are drawn.
            `distance` is noted in the result; the bound is about the inputs as they are.

    Guarantee: the bound exceeds the true value with probability at most 1 − confidence.

    Example:
        >>> em.measure(em.zoo.laplace(), samples=5000, seed=0).lower_bound  # pure ε; the truth is 1
        0.9...
    """
    known = {field.name for field in fields(AuditConfig)}
    given: dict[str, Any] = dict(settings)
    fixed = {name: value for name, value in given.items() if name not in known}
    for name in fixed:
        hint = did_you_mean(name, known)
        if hint and name not in _parameters_of(notion):
            raise InputError(f"measure() has no setting {name!r}{hint}")
    config = AuditConfig(**{name: value for name, value in given.items() if name in known})
    return measure_with_config(mechanism, inputs, notion, fixed, config)


def _parameters_of(notion: object) -> set[str]:
    """The names of the parameters that a notion may have: ours, or those of the user's own."""
    parameters = {"epsilon", "delta", "order", "mu", "rho"}
    if isinstance(notion, type):
        parameters.update(inspect.signature(notion).parameters)
    return parameters


@callers_handlers_relayed()
def measure_with_config(
    mechanism: object,
    inputs: Inputs | None,
    notion: type[Claim] | None,
    fixed: dict[str, float],
    config: AuditConfig,
    *,
    may_exit_process: bool = False,
) -> AuditResult[None]:
    """`measure` with its settings in one object, see there and `open_settings`."""
    opened = open_settings(config, may_exit_process=may_exit_process)
    question = Question(_open_notion(notion, fixed), judged=False)
    result = _run(as_audit_target(mechanism), inputs, question, opened, config)
    return cast("AuditResult[None]", result)  # nothing was judged


@overload
def compare(
    left_outputs: object,
    right_outputs: object,
    claim: Claim | str,
    **settings: Unpack[CompareKeywords],
) -> AuditResult[Verdict]: ...


@overload
def compare(
    left_outputs: object,
    right_outputs: object,
    claim: type[Claim],
    **settings: Unpack[CompareNotionKeywords],
) -> AuditResult[None]: ...


@callers_handlers_relayed()
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
    constant: str = ASK,
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
        unexpected = ", ".join(repr(name) for name in sorted(fixed))
        raise InputError(
            f"compare() got unexpected {unexpected}: a claim brings its own parameters"
        )
    # Only needed to compare.
    from epsilometer.mechanisms.recordings import recorded_incidents, recorded_pair, recorded_seeds

    if isinstance(claim, type):
        question = Question(_open_notion(claim, fixed), judged=False)
    else:
        question = Question(as_claim(claim).scaled(distance), judged=True)
    left, right, facts = recorded_pair(left_outputs, right_outputs, as_features(features))
    for name, outputs in (("left_outputs", left), ("right_outputs", right)):
        if len(outputs) < FEWEST:
            raise InputError(f"{name} has {len(outputs)} outputs; at least {FEWEST} are needed")
    config = AuditConfig(
        samples=max(len(left), len(right)),
        confidence=confidence,
        seed=seed,
        method=method,
        options=options,
        suppress=suppress,
        constant=constant,
        representation=representation,
        distance=distance,
    )
    settings = open_settings(config)
    left_split = _split(left, settings.seed, side=0)
    right_split = _split(right, settings.seed, side=1)
    seeds = {*recorded_seeds(left_outputs), *recorded_seeds(right_outputs)}
    incidents = (recorded_incidents(left_outputs), recorded_incidents(right_outputs))
    lost = [side.redrawn for side in incidents]
    settings = settings.noting(
        kind="recorded",
        mechanism=COMPARED,
        **facts,
        **lost_draws.counted_facts(incidents, lost),
        recording=compared_facts(
            (left, right),
            (len(left_split.training), len(right_split.training)),
            sorted(seeds),
        ),
    )
    budget = ErrorBudget(settings.failure_probability)
    task = Task(
        claim=question.claim,
        n_fresh=(len(left_split.fresh), len(right_split.fresh)),
        failure_probability=budget.total,
        stream=Stream(settings.seed, Phase.CERTIFY),
        growing=growing_columns(left, right),
    )
    training = (left_split.training, right_split.training)
    proposal = settings.method.propose(*training, task)
    tallies = (proposal.tally(left_split.fresh, 0), proposal.tally(right_split.fresh, 1))
    findings = certify_with_budget(budget, proposal, tallies, RECORDED)
    # The checks look at the recording in its own order, before it was shuffled.
    reports = examine_draws(proposal, left, right)
    constancy = examine_constancy(
        (SideAnswers(left), SideAnswers(right)),
        mechanism=None,
        pair=RECORDED,
        constant=settings.constant,
        is_above_claim=findings[0].lower_bound > question.claim.value,
        seed=settings.seed,
        is_suppressed="constant" in settings.suppressed,
    )
    reports += constancy.reports
    reports += lost_draws.incident_reports(incidents, lost, is_counted=False)
    # If a recording held the same draws twice, what chose would certify, and count twice.
    reports += check_repeats([recorded_fingerprints(left), recorded_fingerprints(right)])
    return conclude(
        FinishedRun(
            question=question,
            settings=settings.noting(constant_test=constancy.tested_by),
            proposal=proposal,
            findings=findings,
            reports=reports,
            samples_used=(len(left), len(right)),
            began=began,
            training=training,
            certificate_p_value=partial(proposal.p_value, *tallies, budget.total),
            rehearsed_task=task if settings.method.is_quick else None,
            too_few_draws=partial(
                blind_by_counts,
                proposal,
                question.claim,
                findings[0].guarantee,
                Sizes(
                    samples=min(len(left), len(right)),
                    n_fresh=task.n_fresh,
                    training=training,
                ),
                budget.total,
                is_auto=settings.method.name == AutoMethod.name,
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class _Split:
    """The recorded outputs of one side, shuffled and divided.

    Attributes:
        training: outputs that learn.
        fresh: outputs that certify.
    """

    training: Outputs
    fresh: Outputs


def _split(outputs: Outputs, seed: int, side: int) -> _Split:
    seeds = np.random.SeedSequence(seed, spawn_key=(Phase.TRAIN, 0, side))
    order = np.random.default_rng(seeds).permutation(len(outputs))
    shuffled = outputs.take(order)
    n = len(outputs)
    first_look = shuffled.take(slice(0, training_size(n)))
    n_train = training_size(n, first_look)
    return _Split(training=shuffled.take(slice(0, n_train)), fresh=shuffled.take(slice(n_train, n)))


@callers_handlers_relayed()
def replay(
    result: AuditResult[VerdictT],
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
    constant: str | None = None,
) -> AuditResult[VerdictT]:
    """Certifies the same witness again on fresh draws: none of them learn, all of them prove.

    The draws have a phase of their own in the seed scheme, so a replay never redraws the numbers of
    the audit. Of a recording it takes the rows that the audit has not used, and refuses it if too
    few are left: a result knows which recorded draws chose its event, by their content, in any file
    and any format.

    Args:
        result: an audit with a witness.
        mechanism: the mechanism to run.
        samples: draws per side.
        confidence: that of the stored result unless given.
        pair: the inputs, when the stored result only has their digest, which they must match.
        features: those of the audit, if the event looks at features and the mechanism does not
            bring them.
        constant: "ask" or "leak", see `audit`; None takes what the audit was told.

    Example:
        >>> entry = em.zoo.dp_mean()
        >>> found = em.audit(entry, samples=1000, seed=0)
        >>> em.replay(found, entry, samples=1000, seed=1).verdict  # the same event, fresh draws
        <Verdict.REFUTED: 'refuted'>
    """
    if not isinstance(result, AuditResult):
        raise InputError(
            f"result={short_repr(result)} must be an AuditResult; one in a file is "
            "em.AuditResult.from_json(Path('result.json').read_text())"
        )
    witness = result.witness
    if witness is None:
        raise InputError("this result has no witness to replay")
    inputs = witness.pair if pair is None else as_pair(pair, equal=witness.pair.equal)
    # Outputs recorded elsewhere have no known inputs.
    if pair is not None and not is_recorded(witness.pair):
        check_same(witness.pair, inputs)
    if not is_complete(inputs) or is_recorded(inputs):
        raise InputError("the stored result does not hold its inputs; give them again with pair=")
    config = AuditConfig(
        samples=samples,
        confidence=result.confidence if confidence is None else confidence,
        seed=seed,
        method="events",
        jobs=jobs,
        engine=engine,
        progress=progress,
        constant=result.settings.get("constant", ASK) if constant is None else constant,
    )
    settings = open_settings(config)
    earlier = EarlierDraws.of(result.settings)
    source = same_features(
        as_mechanism(mechanism), as_features(features), result.settings.get("features")
    )
    settings = settings.with_helpful_workers(source).noting(
        replay_of=_replayed(result, earlier),
        features=None if source.features is None else source.features.note(),
        # The claim is that of the audit, and so is what it is about.
        distance=result.settings.get("distance"),
        representation=result.settings.get("representation"),
        **source.weakening_facts(),
    )
    if source.used is None:
        source = source.prepared([inputs], settings.samples)
    else:
        # How many rows of a recording are left is known below.
        check_noted(result.settings)
        source = source.prepared([inputs], FEWEST)
    source = source.unused(earlier, inputs, settings.samples)
    question = Question(result.claim, judged=result.verdict is not None)
    run = AuditRun.start(source, [inputs], question, settings)
    task = Task(
        claim=result.claim,
        n_fresh=(settings.samples, settings.samples),
        failure_probability=settings.failure_probability,
        stream=Stream(settings.seed, Phase.REPLAY),
    )
    learned = LearnedProposal(
        proposal=restore_proposal(witness, task, result.lower_bound),
        training=NO_DRAWS,
        n_fresh=settings.samples,
    )
    with closing(settings.runner), progress_scope(settings.progress, 2 * settings.samples):
        certified = run.certify(learned, number=0, phase=Phase.REPLAY)
    replayed = cast("AuditResult[VerdictT]", certified)  # judged as the result was
    recording = earlier.noted(None if source.used is None else source.used.facts())
    if recording is not None:
        replayed = replace(replayed, settings={**replayed.settings, "recording": recording})
    return replayed


def _question_of_target(target: AuditTarget, inputs: Inputs | None, distance: int) -> AnyQuestion:
    """Whether a mechanism keeps its own promise, where that depends on the pair of inputs.

    All pairs that are known beforehand are asked for their claims here, so that what cannot be
    judged is refused before anything is drawn. A finder's pairs are asked one by one.
    """

    def promise(pair: Pair) -> Claim:
        claim = as_claim(target.promise([pair]))
        return claim if distance == 1 else claim.scaled(distance)

    if inputs is not None and not isinstance(inputs, Pair | tuple | list):
        return PairwiseQuestion(promise)
    claims = [promise(pair) for pair in as_pairs(target.worst_pair if inputs is None else inputs)]
    if all(claim == claims[0] for claim in claims):
        return Question(claims[0], judged=True)
    return PairwiseQuestion(promise)


def _replayed(result: AuditResult, earlier: EarlierDraws) -> dict[str, Any]:
    """What a replay notes about its original: the bound, and the seeds of all draws behind it."""
    seed = result.settings.get("seed")
    replayed = {"lower_bound": result.lower_bound, "seed": seed}
    # The seed alone says it all for an audit that was drawn with it.
    return replayed if earlier.seeds == {seed} else {**replayed, "seeds": sorted(earlier.seeds)}


def _run(
    target: AuditTarget,
    inputs: Inputs | None,
    question: AnyQuestion,
    settings: Settings,
    config: AuditConfig,
) -> AuditResult:
    """Runs the loop that suits the inputs and the method, with recording and checkpoint opened."""
    mechanism = target.mechanism
    settings = settings.with_helpful_workers(mechanism).noting(
        recipe=_recipe(mechanism),
        features=None if mechanism.features is None else mechanism.features.note(),
        recorded_to=None if config.record is None else str(config.record),
        **mechanism.weakening_facts(),
    )
    finder = _as_finder(inputs)
    pairs: list[Pair] = []
    # Draws of both sides, for the progress; a search has no known number.
    n_draws: int | None = None
    if finder is None:
        pairs = as_pairs(target.worst_pair if inputs is None else inputs)
        mechanism = mechanism.prepared(pairs, settings.samples)
        n_draws = 2 * settings.samples
    else:
        from epsilometer.auditing.search import check_search  # only needed to search

        check_search(mechanism, question, settings)
    with ExitStack() as opened:
        opened.enter_context(closing(settings.runner))
        if config.record is not None:
            from epsilometer.mechanisms.kept_draws import record_draws  # only needed to record

            # By its absolute path, because a mechanism may change the folder.
            path = absolute_path("record", config.record)
            mechanism = opened.enter_context(record_draws(mechanism, pairs, path, settings.seed))
        if settings.checkpoint is not None:
            # Only needed with a checkpoint.
            from epsilometer.auditing.checkpoints import FileJournal, audit_key

            key = audit_key(mechanism, pairs if finder is None else finder, question, settings)
            journal = opened.enter_context(closing(FileJournal(settings.checkpoint, key)))
            settings = replace(settings, journal=journal)
        opened.enter_context(progress_scope(settings.progress, n_draws))
        if finder is not None:
            from epsilometer.auditing.search import run_search  # only needed to search

            result = run_search(mechanism, finder, question, settings)
        elif settings.method.stops_early:
            from epsilometer.auditing.sequential import run_sequential  # only needed to stop early

            result = run_sequential(mechanism, pairs, question, settings)
        else:
            result = AuditRun.start(mechanism, pairs, question, settings).audit()
    if mechanism.used is None:
        return result
    # Only now is known which of the recorded draws were used, and what for.
    return replace(result, settings={**result.settings, "recording": mechanism.used.facts()})


def _recipe(mechanism: Mechanism) -> dict[str, Any] | None:
    """How a function can be had again elsewhere; None if it cannot be imported."""
    place = import_path(getattr(mechanism, "function", None))
    if not place:
        return None
    recipe = {
        "function": place,
        "batch": isinstance(mechanism, BatchMechanism),
        "on_error": getattr(mechanism, "on_error", "raise"),
    }
    params = mechanism.weakening_facts().get("params")
    return recipe if params is None else {**recipe, "params": params}


def _as_finder(inputs: object) -> Finder | None:
    """The finder that searches these inputs; None for pairs.

    A domain is searched; it need not be one of our classes.
    """
    if isinstance(inputs, Finder):
        return inputs
    is_class = isinstance(inputs, type)  # which is neither a domain nor a finder, but makes some
    if not is_class and hasattr(inputs, "neighbours") and hasattr(inputs, "relations"):
        from epsilometer.inputs.finders.search import Search  # only needed to search

        return Search(cast(Any, inputs))
    return None


def _open_notion(notion: object, fixed: dict[str, float]) -> Claim:
    if notion is None:
        notion = PureDP
        if fixed:
            notion = RenyiDP if "order" in fixed else ApproxDP
    if not (isinstance(notion, type) and issubclass(notion, Claim)):
        raise InputError(f"notion={notion!r} must be a claim class such as PureDP")
    return open_claim(notion, fixed)
