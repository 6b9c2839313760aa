"""The two loops of an audit, and nothing else: explore (free), then certify (paid).

Exploring finds the pair of inputs and what to prove; its draws choose and therefore prove nothing. Certifying draws
afresh and pays from one `ErrorBudget`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.claims import Claim, open_claim, parse_claim
from epsilometer.engine import NoProgress, Phase, Progress, Sampler, check_seed, open_runner
from epsilometer.engine import health as checks
from epsilometer.environment import describe_environment
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.storing import is_complete
from epsilometer.mechanisms import as_mechanism
from epsilometer.methods import Method, Proposal, Task, find_method
from epsilometer.methods.events import EventProposal
from epsilometer.methods.events.power import detectable_value
from epsilometer.outputs import Outputs, concatenate, read_outputs
from epsilometer.result import AuditResult, Finding, HealthReport, Verdict

Inputs = Pair | tuple[Any, Any] | Sequence[Pair | tuple[Any, Any]]

# The fewest draws per side that can be split into learning and proving.
_FEWEST = 20
# With several pairs, this share of the samples explores them.
_EXPLORE_SHARE = 0.25
# Fewest draws per side and pair that tell anything about a pair.
_FEWEST_PER_PAIR = 50


def audit(
    mechanism: object,
    inputs: Inputs | None = None,
    claim: Claim | str | None = None,
    *,
    samples: int = 100_000,
    confidence: float = 0.95,
    seed: int | None = None,
    method: str = "auto",
    jobs: int = 1,
    engine: str = "local",
    suppress: Collection[str] = (),
    progress: Progress | None = None,
) -> AuditResult:
    """Tries to refute a claim of privacy.

    Args:
        mechanism: a function of the dataset (and optionally `rng`), anything made by `from_callable`, `from_batch`, …,
            or an entry of the zoo.
        inputs: a `Pair` of neighbouring datasets, a 2-tuple, or a list of pairs. A zoo entry brings its worst pair.
        claim: what is promised, e.g. `PureDP(1.0)` or "eps=1,delta=1e-6". A zoo entry brings its own.
        samples: draws per side for the whole audit: search, training and certification included.
        confidence: the probability with which the bound must hold.
        seed: makes the audit repeatable; None takes fresh entropy and records it.
        method: a name of `epsilometer methods`.
        jobs: worker processes.
        engine: where the workers run.
        suppress: names of health checks to switch off.
        progress: is told about every drawn chunk.

    Returns:
        The verdict, the certified lower bound, and the witness.

    Guarantee: a true claim is refuted with probability at most 1 − confidence, if the draws are independent. Exact for
        the method `events`.
    """
    promised = _claim_of(mechanism, claim)
    run = _Run.start(mechanism, inputs, promised, samples, confidence, seed, method, jobs, engine, suppress, progress)
    return run.audit(judge=True)


def measure(
    mechanism: object,
    inputs: Inputs | None = None,
    notion: type[Claim] | None = None,
    *,
    samples: int = 100_000,
    confidence: float = 0.95,
    seed: int | None = None,
    method: str = "auto",
    jobs: int = 1,
    engine: str = "local",
    suppress: Collection[str] = (),
    progress: Progress | None = None,
    **fixed: float,
) -> AuditResult:
    """How large is the privacy loss at least? Like `audit`, without a claim and without a verdict.

    Args:
        notion: a claim class, e.g. `PureDP` or `RenyiDP`.
        fixed: the notion's other parameters, e.g. `order=2.0`; for ApproxDP `delta=` (bounds ε) or `epsilon=` (bounds δ).
    """
    if not (isinstance(notion, type) and issubclass(notion, Claim)):
        raise InputError(f"notion={notion!r} must be a claim class such as PureDP")
    target = open_claim(notion, fixed)
    run = _Run.start(mechanism, inputs, target, samples, confidence, seed, method, jobs, engine, suppress, progress)
    return run.audit(judge=False)


def compare(
    left_outputs: object,
    right_outputs: object,
    claim: Claim | str | type[Claim],
    *,
    confidence: float = 0.95,
    seed: int | None = None,
    method: str = "auto",
    suppress: Collection[str] = (),
    **fixed: float,
) -> AuditResult:
    """Audits two recorded samples instead of a mechanism.

    Axis 0 counts outputs; each side is shuffled with the seed before it is split into learning and proving.
    A claim class instead of a claim measures without a verdict.
    """
    judge = not isinstance(claim, type)
    target = open_claim(claim, fixed) if isinstance(claim, type) else _as_claim(claim)
    began = time.perf_counter()
    number = check_seed(seed)
    recorded = [read_outputs(side) for side in (left_outputs, right_outputs)]
    for name, side in zip(("left_outputs", "right_outputs"), recorded, strict=True):
        if len(side) < _FEWEST:
            raise InputError(f"{name} has {len(side)} outputs; at least {_FEWEST} are needed")
    shuffled = [_shuffled(side, number, index) for index, side in enumerate(recorded)]
    cut = [training_size(len(side)) for side in shuffled]
    train = [side.take(slice(0, n)) for side, n in zip(shuffled, cut, strict=True)]
    fresh = [side.take(slice(n, len(side))) for side, n in zip(shuffled, cut, strict=True)]
    budget = ErrorBudget(1.0 - _check_confidence(confidence))
    task = Task(target, (len(fresh[0]), len(fresh[1])), budget.total)
    proposal = find_method(method).propose(train[0], train[1], task)
    tallies = [proposal.tally(side, index) for index, side in enumerate(fresh)]
    pair = Pair("recorded left outputs", "recorded right outputs")
    finding = proposal.certify(*tallies, pair, budget.spend(budget.total, "certificate"))
    # Order matters for these checks, so they look at the recording as it came.
    health = checks.check_constant(*recorded) + _order_checks(proposal, recorded)
    suppressed = checks.check_suppressed(suppress)
    return _conclude(
        target,
        judge,
        confidence,
        finding,
        proposal,
        (len(recorded[0]), len(recorded[1])),
        [report for report in health if report.name not in suppressed],
        {"mechanism": "two recorded samples", "method": method, "seed": number, "confidence": confidence},
        began,
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
    engine: str = "local",
    progress: Progress | None = None,
) -> AuditResult:
    """Certifies the same witness again, on fresh draws: nothing is learned, everything proves.

    Args:
        result: an audit with a witness.
        mechanism: the mechanism to run.
        pair: the inputs, when the stored result only has their digest.

    The draws have a phase of their own in the seed scheme, so a replay never redraws the numbers of the audit.
    """
    witness = result.witness
    if witness is None:
        raise InputError("this result has no witness to replay")
    inputs = _as_pair(pair) if pair is not None else witness.pair
    if not is_complete(inputs):
        raise InputError("the stored result holds only a digest of its inputs; give them again with pair=")
    level = result.confidence if confidence is None else confidence
    run = _Run.start(mechanism, inputs, result.claim, samples, level, seed, "events", jobs, engine, (), progress)
    share = 0.5
    task = Task(result.claim, (samples, samples), run.budget.total)
    shares = witness.left_counts.share, witness.right_counts.share
    p, q = shares[::-1] if witness.flipped else shares
    proposal = EventProposal(witness.event, witness.flipped, task, result.lower_bound, share, p, q)
    run.settings["replay_of"] = {"lower_bound": result.lower_bound, "seed": result.settings.get("seed")}
    return run.certify(proposal, 0, samples, Phase.REPLAY, [], judge=result.verdict is not None)


def training_size(samples: int) -> int:
    """Draws per side that learn: 30 % of a small audit, a falling share of a large one, where events are clear."""
    return max(10, min(int(0.3 * samples), int(20_000 + 0.1 * samples)))


@dataclass(slots=True)
class _Run:
    """One audit under way."""

    sampler: Sampler
    pairs: list[Pair]
    claim: Claim
    samples: int
    confidence: float
    method: Method
    budget: ErrorBudget
    suppressed: frozenset[str]
    settings: dict[str, Any]
    began: float
    fingerprints: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))

    @classmethod
    def start(
        cls,
        mechanism: object,
        inputs: Inputs | None,
        claim: Claim,
        samples: int,
        confidence: float,
        seed: int | None,
        method: str,
        jobs: int,
        engine: str,
        suppress: Collection[str],
        progress: Progress | None,
    ) -> _Run:
        """Checks every setting before anything is drawn."""
        began = time.perf_counter()
        pairs = _pairs_of(mechanism, inputs)
        target = as_mechanism(mechanism)
        number = check_seed(seed)
        budget = ErrorBudget(1.0 - _check_confidence(confidence))
        _check_samples(samples, len(pairs))
        settings = {
            "mechanism": target.name,
            "method": method,
            "samples": samples,
            "confidence": confidence,
            "seed": number,
            "seeded_mechanism": target.is_seeded,
            "pairs": len(pairs),
            "jobs": jobs,
            "engine": engine,
        }
        sampler = Sampler(target, number, open_runner(jobs, engine), progress or NoProgress())
        suppressed = checks.check_suppressed(suppress)
        return cls(sampler, pairs, claim, samples, confidence, find_method(method), budget, suppressed, settings, began)

    def audit(self, judge: bool) -> AuditResult:
        """Explores, then certifies."""
        number, explored, spent = self._explore()
        n_train = training_size(self.samples - spent)
        n_fresh = self.samples - spent - n_train
        train = [self._draw(Phase.TRAIN, number, side, n_train) for side in (0, 1)]
        if explored:
            train = [concatenate(both) for both in zip(explored, train, strict=True)]
        task = Task(self.claim, (n_fresh, n_fresh), self.budget.total)
        proposal = self.method.propose(train[0], train[1], task)
        return self.certify(proposal, number, n_fresh, Phase.CERTIFY, train, judge)

    def certify(
        self, proposal: Proposal, number: int, n_fresh: int, phase: Phase, train: list[Outputs], judge: bool
    ) -> AuditResult:
        """Counts the proposal on fresh draws and pays for the bound."""
        pair = self.pairs[number]
        chunks: list[list[Any]] = []
        for side in (0, 1):
            drawn = list(self.sampler.chunks(phase, number, pair, side, n_fresh, partial(proposal.tally, side=side)))
            self.fingerprints[side].extend(chunk.fingerprint for chunk in drawn if chunk.size > 1)
            chunks.append([chunk.value for chunk in drawn])
        totals = [reduce(add, side) for side in chunks]
        finding = proposal.certify(*totals, pair, self.budget.spend(self.budget.total, "certificate"))
        health = self._check_health(proposal, chunks, train)
        used = (self.sampler.drawn[0], self.sampler.drawn[1])
        return _conclude(self.claim, judge, self.confidence, finding, proposal, used, health, self.settings, self.began)

    def _draw(self, phase: Phase, number: int, side: int, n: int) -> Outputs:
        parts = []
        for chunk in self.sampler.chunks(phase, number, self.pairs[number], side, n, _keep):
            parts.append(chunk.value)
            if chunk.size > 1:
                self.fingerprints[side].append(chunk.fingerprint)
        return concatenate(parts) if parts else Outputs((), 0)

    def _explore(self) -> tuple[int, list[Outputs], int]:
        """Finds the pair with the best predicted bound by successive halving.

        Returns:
            Its number, its draws so far (they may train), and the draws per side that all pairs cost.
        """
        if len(self.pairs) == 1:
            return 0, [], 0
        alive = list(range(len(self.pairs)))
        rounds = max(1, math.ceil(math.log2(len(self.pairs))))
        per_round = int(self.samples * _EXPLORE_SHARE / rounds)
        draws: dict[int, list[Outputs]] = {}
        spent = 0
        while len(alive) > 1:
            n = max(_FEWEST_PER_PAIR, per_round // len(alive))
            for number in alive:
                draws[number] = self._explore_more(number, draws.get(number), n)
                spent += n
            predicted = {number: self._predict(draws[number]) for number in alive}
            alive = sorted(alive, key=lambda number: -predicted[number])[: (len(alive) + 1) // 2]
        return alive[0], draws[alive[0]], spent

    def _explore_more(self, number: int, before: list[Outputs] | None, n: int) -> list[Outputs]:
        found = []
        for side in (0, 1):
            skip = 0 if before is None else math.ceil(len(before[side]) / self.sampler.mechanism.chunk_size) + 1
            new = self.sampler.outputs(Phase.EXPLORE, number, self.pairs[number], side, n, skip)
            found.append(new if before is None else concatenate([before[side], new]))
        return found

    def _predict(self, draws: list[Outputs]) -> float:
        rest = int(self.samples * (1.0 - _EXPLORE_SHARE) * 0.7)
        return self.method.propose(*draws, Task(self.claim, (rest, rest), self.budget.total)).predicted

    def _check_health(self, proposal: Proposal, chunks: list[list[Any]], train: list[Outputs]) -> list[HealthReport]:
        reports: list[HealthReport] = []
        if train:
            reports += checks.check_constant(*train)
            size = self.sampler.mechanism.chunk_size
            reports += checks.check_repeats(self.fingerprints, size, *train)
            reports += _order_checks(proposal, train)
        if all(isinstance(tally, Counts) for side in chunks for tally in side):
            reports += [r for r in checks.check_drift(chunks) if r.name not in {old.name for old in reports}]
        return [report for report in reports if report.name not in self.suppressed]


def _keep(outputs: Outputs) -> Outputs:
    return outputs


def _order_checks(proposal: Proposal, sides: Sequence[Outputs]) -> list[HealthReport]:
    """Correlation and drift of the event along draws that were kept in order."""
    if not isinstance(proposal, EventProposal):
        return []
    hits = [proposal.event.contains(side) for side in sides]
    pieces = [[Counts(int(part.sum()), len(part)) for part in np.array_split(side, 8)] for side in hits]
    return checks.check_correlation(hits) + checks.check_drift(pieces)


def _conclude(
    claim: Claim,
    judge: bool,
    confidence: float,
    finding: Finding,
    proposal: Proposal,
    used: tuple[int, int],
    health: list[HealthReport],
    settings: dict[str, Any],
    began: float,
) -> AuditResult:
    verdict = _judge(claim, finding, health) if judge else None
    return AuditResult(
        verdict=verdict,
        claim=claim,
        confidence=confidence,
        findings=(finding,),
        samples_used=used,
        detectable=detectable_value(proposal) if judge and isinstance(proposal, EventProposal) else None,
        health=tuple(health),
        settings=settings,
        environment=describe_environment(),
        seconds=time.perf_counter() - began,
    )


def _judge(claim: Claim, finding: Finding, health: list[HealthReport]) -> Verdict:
    refuted = finding.lower_bound > claim.value
    # Always on one side, never on the other: that needs no statistics, and so no independence.
    if refuted and finding.witness and finding.witness.is_deterministic:
        return Verdict.REFUTED
    if any(report.untrusted for report in health):
        return Verdict.INCONCLUSIVE
    return Verdict.REFUTED if refuted else Verdict.NOT_REFUTED


def _shuffled(outputs: Outputs, seed: int, side: int) -> Outputs:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(Phase.TRAIN, 0, side)))
    return outputs.take(rng.permutation(len(outputs)))


def _claim_of(mechanism: object, claim: Claim | str | None) -> Claim:
    return _as_claim(getattr(mechanism, "claim", None) if claim is None else claim)


def _as_claim(claim: object) -> Claim:
    if isinstance(claim, Claim):
        return claim
    if isinstance(claim, str):
        return parse_claim(claim)
    raise InputError(f"claim={claim!r} must be a claim such as PureDP(1.0), or text like 'eps=1,delta=1e-6'")


def _pairs_of(mechanism: object, inputs: object) -> list[Pair]:
    if inputs is None:
        inputs = getattr(mechanism, "worst_pair", None)
    if isinstance(inputs, Pair):
        return [inputs]
    if isinstance(inputs, tuple) and len(inputs) == 2 and not all(isinstance(side, Pair) for side in inputs):
        return [_as_pair(inputs)]
    if isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes) and len(inputs):
        return [_as_pair(each) for each in inputs]
    raise InputError(f"inputs={inputs!r} must be a Pair, a 2-tuple (left, right), or a non-empty list of pairs")


def _as_pair(pair: object) -> Pair:
    if isinstance(pair, Pair):
        return pair
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return Pair(*pair)
    raise InputError(f"{pair!r} is not a pair: give Pair(left, right) or a 2-tuple")


def _check_confidence(confidence: float) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        raise InputError(f"confidence={confidence!r} must lie strictly between 0 and 1, e.g. 0.95")
    return float(confidence)


def _check_samples(samples: int, n_pairs: int) -> int:
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer):
        raise InputError(f"samples={samples!r} must be a whole number")
    least = _FEWEST if n_pairs == 1 else max(_FEWEST, 8 * _FEWEST_PER_PAIR * n_pairs)
    if samples < least:
        raise InputError(f"samples={samples} is too few: {n_pairs} pair(s) need at least {least} draws per side")
    return int(samples)
