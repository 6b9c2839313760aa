"""An audit whose pairs of inputs come from a finder: explore pair after pair, certify the promising ones.

Exploring is free. Certifying draws afresh and pays: the t-th certificate with 6/(π²t²) of the failure probability,
which sums to the whole however many there are.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass, field, replace

from epsilometer.auditing.judging import Question
from epsilometer.auditing.loops import AuditRun, Sides
from epsilometer.auditing.search_history import Trial, history_of
from epsilometer.auditing.settings import Settings, training_size
from epsilometer.bounds import ErrorBudget
from epsilometer.engine import Phase, Sampler
from epsilometer.errors import InputError, MechanismError
from epsilometer.inputs import Pair
from epsilometer.inputs.finders import Finder
from epsilometer.mechanisms import Mechanism
from epsilometer.mechanisms.recordings import Recording
from epsilometer.methods import Proposal, Task
from epsilometer.result import AuditResult, Finding, Verdict

# A prediction may be infinite (an event that always happened on one side); to a finder it is just very good.
_LARGEST_SCORE = 1e6


@dataclass(slots=True)
class SearchRun:
    """A search under way.

    Attributes:
        run: the audit whose pairs are those that were tried, by the number of their trial.
        finder: proposes pairs.
        trials: what came of each.
        certified: the result of each certificate, in order.
        drawn_before: draws of left and right before the search was interrupted.
    """

    run: AuditRun
    finder: Finder
    trials: list[Trial] = field(default_factory=list)
    certified: list[AuditResult] = field(default_factory=list)

    def audit(self) -> AuditResult:
        """Tries pairs until one refutes the claim or there are no more, then certifies the best."""
        while (pair := self.finder.ask()) is not None:
            trial = self._try(pair)
            self.trials.append(trial)
            self.finder.tell(trial.predicted)
            if self._is_decided():
                return self._result()
        self._certify_best()
        return self._result()

    def _try(self, pair: Pair) -> Trial:
        """Explores a pair, and certifies it if it promises a refutation."""
        number = len(self.run.pairs)
        self.run.pairs.append(pair)
        trial = Trial(number, pair, self.finder.samples)
        try:
            explored = self._explore(number, pair)
            trial.predicted = _as_score(self._predict(explored).predicted)
            if self._stops_at_refutation and self._exceeds_claim(trial.predicted):
                self._look_closer(trial, explored)
        except MechanismError as error:  # an input that the mechanism does not take is no reason to give up the others
            trial.failed = str(error)
            trial.error = error
        return trial

    def _explore(self, number: int, pair: Pair) -> Sides:
        n = self.finder.samples
        left, right = (self.run.sampler.outputs(Phase.EXPLORE, number, pair, side, n) for side in (0, 1))
        return left, right

    def _predict(self, explored: Sides) -> Proposal:
        samples = self.run.settings.samples
        n_fresh = samples - training_size(samples)
        task = Task(self.run.question.claim, (n_fresh, n_fresh), self._share())
        return self.run.settings.method.propose(*explored, task)

    def _look_closer(self, trial: Trial, explored: Sides) -> None:
        """Learns from more draws of a promising pair, and certifies it if it still is one."""
        share = self._share()
        look = replace(self.run, budget=ErrorBudget(share))
        proposal, training, n_fresh = look.learn(trial.number, explored, self.run.settings.samples)
        if self._exceeds_claim(_as_score(proposal.predicted)):
            self.run.budget.spend(share, f"certificate of trial {trial.number + 1}")
            self.certified.append(look.certify(proposal, trial.number, n_fresh, Phase.CERTIFY, training))
            trial.certified = self.certified[-1].lower_bound

    def _certify_best(self) -> None:
        """Certifies the pair that promised most, with all that is left of the failure probability."""
        best = max((trial for trial in self.trials if not trial.failed), key=_promise, default=None)
        if best is None:
            raise _all_failed(self.trials)
        # A number of its own: the pair may have been certified before, and its fresh draws must be fresh.
        number = len(self.run.pairs)
        self.run.pairs.append(best.pair)
        rest = self.run.budget.remaining
        look = replace(self.run, budget=ErrorBudget(self.run.budget.spend(rest, "certificate of the best pair")))
        explored = self._explore(number, best.pair)
        proposal, training, n_fresh = look.learn(number, explored, self.run.settings.samples)
        self.certified.append(look.certify(proposal, number, n_fresh, Phase.CERTIFY, training))
        bound = self.certified[-1].lower_bound
        best.certified = bound if best.certified is None else max(bound, best.certified)

    @property
    def _stops_at_refutation(self) -> bool:
        return self.run.question.judged and self.finder.stop_at_refutation

    def _share(self) -> float:
        """What the next certificate may spend."""
        if not self._stops_at_refutation:
            return self.run.budget.total  # there will be one only
        t = len(self.certified) + 1
        return self.run.budget.total * 6.0 / (math.pi * t) ** 2

    def _exceeds_claim(self, score: float | None) -> bool:
        return score is not None and score > self.run.question.claim.value

    def _is_decided(self) -> bool:
        """Refuted; or the draws cannot be trusted, and more of them would not change that."""
        return bool(self.certified) and self.certified[-1].verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE)

    def _result(self) -> AuditResult:
        """The result with the verdict, else with the largest bound; all certificates are among its findings."""
        last = self.certified[-1]
        decided = self._is_decided()
        best = last if decided else max(self.certified, key=lambda each: each.lower_bound)
        others = [each.findings[0] for each in self.certified if each is not best]
        run = self.run
        settings = {**best.settings, "pairs": len(self.trials), "finder": self.finder.describe()}
        return replace(
            best,
            findings=(self._with_history(best.findings[0]), *best.findings[1:], *others),
            samples_used=(run.sampler.drawn[0], run.sampler.drawn[1]),
            settings=settings,
            seconds=time.perf_counter() - run.began,
        )

    def _with_history(self, finding: Finding) -> Finding:
        paid = [[purpose, amount] for purpose, amount in self.run.budget.ledger]
        return replace(finding, details={**finding.details, "search": history_of(self.trials), "paid": paid})


def run_search(mechanism: Mechanism, finder: Finder, question: Question, settings: Settings) -> AuditResult:
    """Audits the pairs that a finder proposes."""
    check_search(mechanism, question, settings)
    settings.record.update(mechanism=mechanism.name, seeded_mechanism=mechanism.is_seeded)
    sampler = Sampler(mechanism, settings.seed, settings.runner, settings.progress, settings.journal)
    run = AuditRun([], question, settings, sampler, ErrorBudget(settings.failure_probability), time.perf_counter())
    return SearchRun(run, copy.deepcopy(finder)).audit()  # the user's own finder can be used again


def check_search(mechanism: Mechanism, question: Question, settings: Settings) -> None:
    """Refuses what does not go together with a finder, before anything is drawn."""
    if isinstance(mechanism, Recording):
        raise InputError(f"{mechanism.name} holds outputs of its own inputs only: a finder cannot ask it for others")
    method = settings.method
    if method.name == "sequential":
        raise InputError(
            "stopping early does not go with a finder, which decides itself how many draws a pair is worth; "
            "find the pair first, with fewer samples per trial, then audit it alone with stop_early=True"
        )
    check = getattr(method, "check", None)
    if check is not None:
        check(question.claim, 1, settings.samples)
    if getattr(method, "fixed_sizes", lambda n_pairs, samples: None)(2, settings.samples) is not None:
        raise InputError(f"the method {method.name} with sizes of its own does not go with a finder; leave them out")


def _as_score(predicted: float) -> float | None:
    """What a finder is told: nothing where nothing was predicted."""
    if math.isnan(predicted) or predicted == -math.inf:
        return None
    return min(float(predicted), _LARGEST_SCORE)


def _promise(trial: Trial) -> float:
    return -math.inf if trial.predicted is None else trial.predicted


def _all_failed(trials: list[Trial]) -> MechanismError:
    first = trials[0]
    error = MechanismError(f"the mechanism failed in all of {len(trials)} trials, first with: {first.failed}")
    error.__cause__ = first.error
    return error
