"""An audit whose pairs of inputs come from a finder: explore pair after pair, certify the promising ones."""

import json
import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

from scipy.special import ndtr, ndtri

from epsilometer.auditing.judge import AnyQuestion, PairwiseQuestion, Question, share_of_claim
from epsilometer.auditing.loops import AuditRun, Sides
from epsilometer.auditing.settings import Settings, training_size
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.engine import OutOfTime, Phase, SerialRunner
from epsilometer.errors import InputError, MechanismError
from epsilometer.inputs.pairs import Finder, Pair, pair_digest, pair_to_dict
from epsilometer.mechanisms import Mechanism
from epsilometer.methods import Proposal
from epsilometer.result import AuditResult, HealthReport, Verdict

# Trials that a result keeps; more would make it large, and nobody looks at them.
_MOST_TRIALS = 2000
# The certificate also learns and takes chances: this many times as long as its draws alone take is
# kept for it.
_CARE = 1.5
# Seconds that it takes at most to end a worker and to start another one, on a busy machine.
_NEW_WORKER = 5.0
# Pairs up to this size (as JSON text) stand in the history as they are, larger ones as a digest.
_MOST_TEXT = 500


@dataclass(slots=True)
class Trial:
    """One pair that was tried.

    Attributes:
        number: of the trial, from 0.
        pair: its inputs.
        draws: draws per side that explored it.
        predicted: the bound to expect; None if there is no prediction.
        score: what it says against the claim about the pair, for comparisons; None if there is no
            prediction.
        claimed: what is claimed about this pair, where that depends on the pair.
        certified: the bound that was certified; None if the pair was not promising enough.
        failed: what the mechanism complained about; empty if it did not.
        error: the complaint itself.
        is_late: whether the time for trials was over while it ran.
    """

    number: int
    pair: Pair
    draws: int
    predicted: float | None = None
    score: float | None = None
    claimed: float | None = None
    certified: float | None = None
    failed: str = ""
    error: MechanismError | None = field(default=None, repr=False)
    is_late: bool = False


def history_of(trials: list[Trial]) -> list[dict[str, Any]]:
    """The trials as plain data, each with the best prediction so far."""
    best: float | None = None
    best_score = -math.inf
    entries = []
    for trial in trials[:_MOST_TRIALS]:
        if trial.predicted is not None and (best is None or _promise(trial) > best_score):
            best = trial.predicted
            best_score = _promise(trial)
        entry: dict[str, Any] = {
            "trial": trial.number + 1,
            "pair": stored_pair(trial.pair),
            "draws": trial.draws,
        }
        entry |= {"predicted": trial.predicted, "best": best, "certified": trial.certified}
        if trial.claimed is not None:
            entry["claimed"] = trial.claimed
        entries.append({**entry, "failed": trial.failed} if trial.failed else entry)
    return entries


def stored_pair(pair: Pair) -> dict[str, Any] | str:
    """A small pair as it is stored, a large one as its digest."""
    stored = pair_to_dict(pair)
    return stored if len(json.dumps(stored)) <= _MOST_TEXT else pair_digest(pair)


# A prediction may be infinite (an event that always happened on one side); to a finder it is just a
# very good score.
_LARGEST_SCORE = 1e6


@dataclass(slots=True)
class SearchRun:
    """A search under way.

    Attributes:
        run: the audit whose pairs are those that were tried, by the number of their trial.
        finder: proposes pairs.
        trials: their outcomes.
        certified: the result of each certificate, in order.
        late: what was running when the time was over; empty if it was not.
    """

    run: AuditRun
    finder: Finder
    trials: list[Trial] = field(default_factory=list)
    certified: list[AuditResult] = field(default_factory=list)
    late: str = ""

    def audit(self) -> AuditResult:
        """Tries pairs until one refutes the claim or there are no more, then certifies the best.

        When the time is over, what was certified stands. A certificate that was not finished counts
        as paid and never
        happened: with it, the others still hold together.

        Raises:
            OutOfTime: if nothing was certified in time.
        """
        try:
            return self._audit()
        except OutOfTime as late:
            if not self.certified:
                left, right = self.run.sampler.drawn
                done = f"{len(self.trials)} of {self.finder.trials} trials were done"
                done += f", with {left} left and {right} right draws"
                advice = "fewer trials, or fewer draws in each, leave time for a certificate"
                raise OutOfTime(f"{late}. Nothing was certified: {done}; {advice}") from late
            self.late = str(late)
            return self._result()

    def _audit(self) -> AuditResult:
        while (pair := self.finder.ask()) is not None:
            if pair.has_equal_sides and not pair.equal:
                self.finder.tell(None)  # equal inputs show nothing, and cost nothing
                continue
            trial = self._try(pair)
            self.trials.append(trial)
            self.finder.tell(trial.score)
            best = max(map(_promise, self.trials))
            beyond = " times its claim" if isinstance(self.run.question, PairwiseQuestion) else ""
            done = f"trial {len(self.trials)} of {self.finder.trials}"
            self.run.settings.report_status(f"{done}, the best promises {best:.3g}{beyond}")
            if self._is_decided():
                return self._result()
            if trial.is_late:
                break
            self._keep_time()
        self._certify_best()
        return self._result()

    def _keep_time(self) -> None:
        """Keeps as much of the time as the last certificate will take at the pace of the trials so far.

        So an input on which the mechanism hangs does not cost the certificate of those before it.
        """
        if (deadline := self.run.sampler.runner.deadline) is not None:
            lasted = time.perf_counter() - self.run.began
            draws = self.run.settings.samples + self.finder.samples
            needed = _CARE * lasted * draws / max(self.run.sampler.drawn[0], 1)
            if not isinstance(self.run.sampler.runner, SerialRunner):
                needed += _NEW_WORKER  # a call that hangs costs its worker
            deadline.reserve = min(needed, deadline.seconds / 2.0)

    def _take_all_time(self) -> None:
        if (deadline := self.run.sampler.runner.deadline) is not None:
            deadline.reserve = 0.0

    def _try(self, pair: Pair) -> Trial:
        """Explores a pair, and certifies it if it promises a refutation."""
        number = len(self.run.pairs)
        self.run.pairs.append(pair)
        trial = Trial(number, pair, self.finder.samples)
        # refused before anything is drawn, if it is not known
        claimed = self.run.question_about(number).claim.value
        if isinstance(self.run.question, PairwiseQuestion):
            trial.claimed = claimed
        try:
            explored = self._explore(number, pair)
            trial.predicted = _as_score(self._predict(number, explored).predicted)
            if trial.predicted is not None:
                trial.score = self.run.question.score(pair, trial.predicted)
            # Whether a certificate of the pair has a fair chance of refuting the claim.
            predicted = trial.predicted if self._stops_at_refutation else None
            if predicted is not None and (
                predicted > claimed or self._rehearse(number, explored) > claimed
            ):
                self._pay_and_certify(trial, number, explored, self._share())
        except OutOfTime as late:
            deadline = self.run.sampler.runner.deadline
            if deadline is None or deadline.is_over or not self._has_candidates:
                raise
            trial.failed = str(late)
            trial.error = late
            trial.is_late = True
        except MechanismError as error:
            # an input that the mechanism does not take is no reason to give up the others
            trial.failed = str(error)
            trial.error = error
        return trial

    def _explore(self, number: int, pair: Pair) -> Sides:
        return Sides(*self.run.sampler.both(Phase.EXPLORE, number, pair, self.finder.samples))

    def _predict(self, number: int, explored: Sides) -> Proposal:
        samples = self.run.settings.samples
        n_fresh = samples - training_size(samples)
        # At the whole failure probability in every trial, so that scores can be compared.
        task = self.run.task(Phase.EXPLORE, number, n_fresh)
        return self.run.settings.method.propose(*explored, task)

    def _rehearse(self, number: int, explored: Sides) -> float:
        """A certificate from the exploring draws alone: it proves nothing, but shows what a real one would say.

        Half of the draws propose and half prove, at a failure probability that costs these few
        draws as much, relative to their number, as the audit's own will cost the fresh ones.
        Predictions are more careful: they compare pairs.
        """
        claim = self.run.question_about(number).claim
        samples = self.run.settings.samples
        half = self.finder.samples // 2
        n_fresh = samples - training_size(samples)
        n_rest = self.finder.samples - half
        failure = float(ndtr(ndtri(self._share()) * math.sqrt(n_rest / n_fresh)))
        some = [outputs.take(slice(0, half)) for outputs in explored]
        task = replace(self.run.task(Phase.EXPLORE, number, n_rest), failure_probability=failure)
        proposal = self.run.settings.method.propose(some[0], some[1], task)
        rest = [outputs.take(slice(half, len(outputs))) for outputs in explored]
        left, right = (proposal.tally(outputs, side) for side, outputs in enumerate(rest))
        # no certificate exceeds what was seen, and a certificate takes long
        if isinstance(left, Counts):
            p = left.share
            q = right.share
            if max(claim.least_value(p, q), claim.least_value(q, p)) <= claim.value:
                return 0.0
        return proposal.certify(left, right, self.run.pairs[number], failure).lower_bound

    def _certify_best(self) -> None:
        """Certifies the pair that promised most, with all that is left of the failure probability."""
        best = max((trial for trial in self.trials if not trial.failed), key=_promise, default=None)
        if not self.trials:
            raise InputError(
                "the finder proposed no pair whose inputs differ, so there is nothing to audit"
            )
        if best is None:
            first = self.trials[0]
            n = len(self.trials)
            text = f"the mechanism failed in all of {n} trials, first with: {first.failed}"
            raise MechanismError(text) from first.error
        # A new number: the pair may have been certified before, and its draws must be fresh.
        number = len(self.run.pairs)
        self.run.pairs.append(best.pair)
        self._take_all_time()
        self._pay_and_certify(
            best, number, self._explore(number, best.pair), self.run.budget.remaining
        )

    @property
    def _has_candidates(self) -> bool:
        return any(not trial.failed for trial in self.trials)

    def _pay_and_certify(self, trial: Trial, number: int, explored: Sides, share: float) -> None:
        self._take_all_time()
        price = self.run.budget.spend(share, f"certificate of trial {trial.number + 1}")
        self.certified.append(self._certify(number, explored, self.run.settings.samples, price))
        trial.certified = max(self.certified[-1].lower_bound, trial.certified or 0.0)

    def _certify(self, number: int, explored: Sides, samples: int, price: float) -> AuditResult:
        run = self.run
        budget = ErrorBudget(price)
        # Its own health checks, too: repetitions that are suspicious on one input may be natural on
        # another.
        look = AuditRun(run.pairs, run.question, run.settings, run.sampler, budget, run.began)
        learned = look.learn(number, explored, samples)
        return look.certify(learned, number=number, phase=Phase.CERTIFY)

    @property
    def _stops_at_refutation(self) -> bool:
        return self.run.question.judged and self.finder.stop_at_refutation

    def _share(self) -> float:
        """What the next certificate may spend."""
        return self.run.budget.total * 6.0 / (math.pi * (len(self.run.budget.ledger) + 1)) ** 2

    def _is_decided(self) -> bool:
        """Refuted; or the draws cannot be trusted, and more of them would not change that."""
        return bool(self.certified) and self.certified[-1].verdict in (
            Verdict.REFUTED,
            Verdict.INCONCLUSIVE,
        )

    def _result(self) -> AuditResult:
        """The result with the verdict, else with the largest bound; all certificates are among its findings."""
        run = self.run
        last = self.certified[-1]
        best = last if self._is_decided() else max(self.certified, key=_excess)
        others = [each.findings[0] for each in self.certified if each is not best]
        paid = [[purpose, amount] for purpose, amount in run.budget.ledger]
        first = best.findings[0]
        first = replace(
            first, details={**first.details, "search": history_of(self.trials), "paid": paid}
        )
        told = []
        if failed := [trial for trial in self.trials if trial.failed]:
            text = f"{len(failed)} of {len(self.trials)} trials failed, first: {failed[0].failed}"
            told.append(HealthReport("failed-trials", text, untrusted=False))
        if self.late:
            told.append(HealthReport("out-of-time", self.late, untrusted=False))
        return replace(
            best,
            findings=(first, *best.findings[1:], *others),
            samples_used=(run.sampler.drawn[0], run.sampler.drawn[1]),
            health=(*best.health, *told),
            settings={**best.settings, "pairs": len(self.trials), "finder": self.finder.describe()},
            seconds=time.perf_counter() - run.began,
        )


def check_search(mechanism: Mechanism, question: AnyQuestion, settings: Settings) -> None:
    """Refuses what cannot be combined with a finder, before anything is drawn."""
    if mechanism.used is not None:  # it reads a recording
        raise InputError(
            f"{mechanism.name} holds outputs of its own inputs only: a finder cannot ask it for others"
        )
    method = settings.method
    if method.stops_early:
        why = "stopping early cannot be combined with a finder, which decides itself how many draws a pair is worth"
        advice = "find the pair first, with fewer samples per trial, then audit it alone with stop_early=True"
        raise InputError(f"{why}; {advice}")
    if isinstance(question, Question):  # others are checked pair by pair
        method.check(question.claim, 1, settings.samples)
    if method.fixed_sizes(2, settings.samples) is not None:
        raise InputError(
            f"the method {method.name} with its own sizes cannot be combined with a finder; omit them"
        )


def _as_score(predicted: float) -> float | None:
    """The score for a finder: None where nothing was predicted."""
    return (
        None
        if math.isnan(predicted) or predicted == -math.inf
        else min(float(predicted), _LARGEST_SCORE)
    )


def _promise(trial: Trial) -> float:
    return -math.inf if trial.score is None else trial.score


def _excess(result: AuditResult) -> tuple[float, float]:
    """How much a bound says against the claim about its pair; the bound itself decides among equals."""
    return share_of_claim(result.lower_bound, result.claim), result.lower_bound
