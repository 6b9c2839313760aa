"""An audit whose pairs of inputs come from a finder, from the first proposal to the verdict.

The story of a search:

1. *Propose.* The finder proposes pairs: one at a time, or in rounds if it can be screened.
2. *Screen.* All pairs of a round are screened with few draws (`rounds.py`, `screening.py`), and the
   finder receives their scores. Only promising pairs go on.
3. *Screen again.* A promising pair is screened once more with more draws, because of many pairs
   some have high scores by chance.
4. *Shrink.* It is replaced by the simplest pair that still looks like a leak (`shrinking.py`).
5. *Explore.* The audit's method predicts a bound from thousands of draws.
6. *Certify.* A pair that promises a refutation is certified on fresh draws, with a share of the
   failure probability. If none refutes the claim, the best pair is certified at the end with all
   that is left.
7. *Conclude.* The result has the verdict, all certificates, and the history of the search.

With a finder that is not screened, every pair goes from step 1 to step 5.
Steps 1 to 5 only choose: they certify nothing, so they may look at their draws as they please.
"""

import copy
import math
import time
from dataclasses import dataclass, field, replace

from scipy.special import ndtr, ndtri

from epsilometer.auditing.audit_run import AuditRun, Sides
from epsilometer.auditing.questions import AnyQuestion, PairwiseQuestion, Question, share_of_claim
from epsilometer.auditing.rounds import ScreenedRounds
from epsilometer.auditing.screening import (
    PLAIN_DRAWS,
    PROMISING_SCORE,
    SECOND_SCREENING_FACTOR,
    ScreenedPair,
    Screening,
)
from epsilometer.auditing.settings import Settings, training_size
from epsilometer.auditing.shrinking import shrink_pair
from epsilometer.auditing.trials import Trial, as_score, trial_history
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.engine import OutOfTime, Phase, Sampler, SerialRunner
from epsilometer.errors import InputError, MechanismError
from epsilometer.inputs.finders.rounds import RoundFinder, is_screened
from epsilometer.inputs.pairs import Finder, Pair, proposed_pair
from epsilometer.mechanisms import Mechanism
from epsilometer.methods import Proposal
from epsilometer.result import AuditResult, HealthReport, Verdict

# The time that is reserved for the last certificate, as a multiple of what its draws alone take: it
# also learns.
_RESERVE_FACTOR = 1.5
# Seconds that it takes at most to end a worker and to start another one, on a busy machine.
_WORKER_RESTART_SECONDS = 5.0
# The largest fraction of the time limit that is reserved.
_MOST_RESERVED = 0.5
# Screened pairs that are explored although none is promising, so that the best can be certified.
_UNPROMISING_EXPLORED = 3
# Fraction of the remaining failure probability for a certificate outside the domain.
_OUTSIDE_ERROR_FRACTION = 0.1
# Draws per side at most for a certificate outside the domain, which is only remarked on.
_OUTSIDE_SAMPLES = 10_000


def run_search(
    mechanism: Mechanism, finder: Finder, question: AnyQuestion, settings: Settings
) -> AuditResult:
    """Audits the pairs that a finder proposes; `check_search` must have accepted them."""
    settings = settings.noting(mechanism=mechanism.name, seeded_mechanism=mechanism.is_seeded)
    sampler = Sampler(
        mechanism, settings.seed, settings.runner, settings.progress, settings.journal
    )
    run = AuditRun(
        pairs=[],
        question=question,
        settings=settings,
        sampler=sampler,
        budget=ErrorBudget(settings.failure_probability),
        began=time.perf_counter(),
    )
    # A copy, so that the user's own finder can be used again.
    return SearchRun(run, copy.deepcopy(finder)).audit()


def check_search(mechanism: Mechanism, question: AnyQuestion, settings: Settings) -> None:
    """Refuses what cannot be combined with a finder, before anything is drawn."""
    reads_recording = mechanism.used is not None
    if reads_recording:
        raise InputError(
            f"{mechanism.name} holds outputs of its own inputs only: a finder cannot ask it for "
            "others"
        )
    method = settings.method
    if method.stops_early:
        raise InputError(
            "stopping early cannot be combined with a finder, which decides itself how many draws "
            "a pair is worth; find the pair first, with fewer samples per trial, then audit it "
            "alone with stop_early=True"
        )
    if isinstance(question, Question):  # others are checked pair by pair
        method.check(question.claim, 1, settings.samples)
    if method.fixed_sizes(2, settings.samples) is not None:
        raise InputError(
            f"the method {method.name} with its own sizes cannot be combined with a finder; omit "
            "them"
        )


@dataclass(slots=True)
class SearchRun:
    """A search under way.

    Attributes:
        run: the audit whose pairs are those that were explored, by the number of their trial.
        finder: proposes pairs.
        trials: the pairs that were explored, with their outcomes.
        certificates: the result of each certificate, in order.
        rounds: what was screened; None if the finder is not screened.
        late_message: what was running when the time ran out; empty if it did not run out.
    """

    run: AuditRun
    finder: Finder
    trials: list[Trial] = field(default_factory=list)
    certificates: list[AuditResult] = field(default_factory=list)
    rounds: ScreenedRounds | None = None
    late_message: str = ""

    def audit(self) -> AuditResult:
        """Tries pairs until one refutes the claim or there are no more, then certifies the best.

        When the time is over, what was certified stands. A certificate that was not finished has
        spent its share of the failure probability, so that the others still hold together.

        Raises:
            OutOfTime: if nothing was certified in time.
        """
        try:
            if is_screened(self.finder):
                self._search_in_rounds(self.finder)
            else:
                self._search_pair_by_pair()
            if not self._is_decided():
                self._certify_best()
        except OutOfTime as late:
            if not self.certificates:
                left, right = self.run.sampler.drawn
                raise OutOfTime(
                    f"{late}. Nothing was certified: {len(self.trials)} of {self.finder.trials} "
                    f"trials were done, with {left} left and {right} right draws; fewer trials, or "
                    "fewer draws in each, leave time for a certificate"
                ) from late
            self.late_message = str(late)
        return self._result()

    # --- the two ways to go through the pairs of a finder

    def _search_pair_by_pair(self) -> None:
        """Explores every pair of a finder that is not screened."""
        while (proposed := self.finder.ask()) is not None:
            pair = proposed_pair(proposed)
            if pair.has_equal_sides and not pair.equal:
                self.finder.tell(None)  # equal inputs show nothing, and cost nothing
                continue
            trial = self._explore_and_certify(pair)
            self.finder.tell(trial.score)
            best_promise = max(trial.promise for trial in self.trials)
            unit = " times its claim" if isinstance(self.run.question, PairwiseQuestion) else ""
            self.run.settings.report_status(
                f"trial {len(self.trials)} of {self.finder.trials}, the best promises "
                f"{best_promise:.3g}{unit}"
            )
            if self._is_decided() or trial.is_late:
                break
            self._reserve_time()

    def _search_in_rounds(self, finder: RoundFinder) -> None:
        """Screens the rounds of a finder, and explores what looks like a leak."""
        screening = Screening(self.run)
        self.rounds = ScreenedRounds(finder, screening)
        deadline = self.run.sampler.runner.deadline
        if deadline is not None:
            # Before the first screening nothing is known about how long a certificate takes.
            deadline.reserve = _MOST_RESERVED * deadline.seconds
        try:
            if self._is_decided_by_rounds(self.rounds, finder, screening):
                return
        except OutOfTime as late:
            if deadline is None or deadline.is_over:
                raise
            self.late_message = str(late)
            if not self.rounds.best:
                # The first round hung; some pair of it may not.
                self.rounds.best = [
                    ScreenedPair(candidate=candidate, pair=candidate.pair, score=0.0)
                    for candidate in self.rounds.candidates
                    if candidate.pair.within is not False
                ]
        self._release_reserve()
        if not self._has_explored_pair:
            for screened in self.rounds.best[:_UNPROMISING_EXPLORED]:
                self._explore_and_certify(screened.pair)
                if self._is_decided():
                    return
        if not self.trials and self.rounds.first_refusal:
            raise MechanismError(
                f"the mechanism failed on all of {self.rounds.n_screened} pairs, first with: "
                f"{self.rounds.first_refusal}"
            )
        self._certify_outside(self.rounds, finder, screening)

    def _is_decided_by_rounds(
        self, rounds: ScreenedRounds, finder: RoundFinder, screening: Screening
    ) -> bool:
        """Screens one round after the other; returns whether a certificate ended the search."""
        began = time.monotonic()
        while candidates := finder.propose_round():
            for screened in rounds.screen(candidates):
                if self._stops_at_refutation:
                    self._certify_candidate(screened, finder, screening)
                if self._is_decided():
                    return True
            self.run.settings.report_status(
                f"{rounds.n_screened} of {finder.trials} pairs screened, "
                f"{len(self.trials)} explored"
            )
            limit = finder.max_seconds
            if limit is not None and time.monotonic() - began > limit:
                break
            self._reserve_time()
        return False

    def _certify_candidate(
        self, screened: ScreenedPair, finder: RoundFinder, screening: Screening
    ) -> None:
        """Screens a promising pair again, shrinks it, explores it, and certifies it."""
        if screened.score < PROMISING_SCORE:
            return
        (second,) = screening.plain([screened.pair], SECOND_SCREENING_FACTOR * PLAIN_DRAWS)
        if second.failed_sides or second.score < PROMISING_SCORE:
            return
        simplest = shrink_pair(screened, finder, screening)
        to_explore = [screened]
        if simplest.candidate is not screened.candidate:
            to_explore = [simplest, screened]
        for pair_to_explore in to_explore:
            trial = self._explore_and_certify(pair_to_explore.pair)
            if self._is_decided() or trial.certified is not None or trial.failed:
                return

    def _certify_outside(
        self, rounds: ScreenedRounds, finder: RoundFinder, screening: Screening
    ) -> None:
        """Certifies the clearest leak outside the domain, with an error share of its own."""
        run = self.run
        if not rounds.outside or not run.question.judged:
            return
        clearest = max(rounds.outside, key=lambda screened: screened.score)
        simplest = shrink_pair(clearest, finder, screening)
        others = [
            screened for screened in rounds.outside if screened.pair.note != simplest.pair.note
        ]
        rounds.outside = [simplest, *others]
        number = self._add_pair(simplest.pair)
        error_share = run.budget.spend(
            _OUTSIDE_ERROR_FRACTION * run.budget.remaining, "certificate beyond the domain"
        )
        samples = min(run.settings.samples, _OUTSIDE_SAMPLES)
        try:
            explored = self._explore(number)
            bound = self._certify(number, explored, samples, error_share).lower_bound
        except MechanismError:
            return
        symbol = run.question_about(number).claim.symbol
        rounds.certificate = (
            f", certified with {symbol} ≥ {bound:.3g} at a confidence of {1.0 - error_share:.4g}"
        )

    # --- one pair: explore, predict, certify

    def _explore_and_certify(self, pair: Pair) -> Trial:
        """Explores a pair, and certifies it if it promises a refutation."""
        number = self._add_pair(pair)
        # Refused before anything is drawn, if nothing is claimed about the pair.
        claimed = self.run.question_about(number).claim.value
        trial = Trial(number=number, pair=pair, draws=self.finder.samples)
        if isinstance(self.run.question, PairwiseQuestion):
            trial.claimed = claimed
        try:
            explored = self._explore(number)
            predicted = as_score(self._predict(number, explored).predicted)
            trial.predicted = predicted
            if predicted is not None:
                trial.score = self.run.question.score(pair, predicted)
            if self._stops_at_refutation and predicted is not None:
                may_refute = predicted > claimed or self._rehearse(number, explored) > claimed
                if may_refute:
                    self._certify_trial(trial, number, explored, self._next_error_share())
        except OutOfTime as late:
            deadline = self.run.sampler.runner.deadline
            if deadline is None or deadline.is_over or not self._has_explored_pair:
                raise
            trial.fail(late)
            trial.is_late = True
        except MechanismError as error:
            # An input that the mechanism does not take is no reason to give up the others.
            trial.fail(error)
        self.trials.append(trial)
        return trial

    def _add_pair(self, pair: Pair) -> int:
        """Adds a pair to the audit; its new number makes its draws fresh."""
        self.run.pairs.append(pair)
        return len(self.run.pairs) - 1

    def _explore(self, number: int) -> Sides:
        """Draws from a pair, in order to predict what a certificate would say."""
        pair = self.run.pairs[number]
        return Sides(*self.run.sampler.both(Phase.EXPLORE, number, pair, self.finder.samples))

    def _predict(self, number: int, explored: Sides) -> Proposal:
        """Returns a proposal from the exploring draws, with the bound that it would certify.

        Predictions have the whole failure probability in every trial, so that they can be compared.
        """
        samples = self.run.settings.samples
        n_fresh = samples - training_size(samples)
        task = self.run.task(Phase.EXPLORE, number, n_fresh)
        left, right = explored
        return self.run.settings.method.propose(left, right, task)

    def _rehearse(self, number: int, explored: Sides) -> float:
        """Returns the bound of a certificate from the exploring draws alone.

        It certifies nothing, but shows what a real one would say. Half of the draws propose and the
        rest are counted, at a failure probability that costs these few draws as much, relative to
        their number, as the audit's own will cost the fresh ones. Predictions are more careful:
        they compare pairs.
        """
        claim = self.run.question_about(number).claim
        samples = self.run.settings.samples
        n_fresh = samples - training_size(samples)
        half = self.finder.samples // 2
        n_rest = self.finder.samples - half
        z = ndtri(self._next_error_share()) * math.sqrt(n_rest / n_fresh)
        failure_probability = float(ndtr(z))
        task = replace(
            self.run.task(Phase.EXPLORE, number, n_rest), failure_probability=failure_probability
        )
        left, right = explored
        proposal = self.run.settings.method.propose(
            left.take(slice(0, half)), right.take(slice(0, half)), task
        )
        left_tally = proposal.tally(left.take(slice(half, len(left))), 0)
        right_tally = proposal.tally(right.take(slice(half, len(right))), 1)
        if isinstance(left_tally, Counts):
            # A certificate takes long, and none exceeds the observed frequencies.
            p = left_tally.share
            q = right_tally.share
            if max(claim.least_value(p, q), claim.least_value(q, p)) <= claim.value:
                return 0.0
        pair = self.run.pairs[number]
        return proposal.certify(left_tally, right_tally, pair, failure_probability).lower_bound

    def _certify_best(self) -> None:
        """Certifies the most promising pair with all that is left of the failure probability."""
        if not self.trials:
            raise InputError(
                "the finder proposed no pair whose inputs differ, so there is nothing to audit"
            )
        candidates = [trial for trial in self.trials if not trial.failed]
        if not candidates:
            first = self.trials[0]
            raise MechanismError(
                f"the mechanism failed in all of {len(self.trials)} trials, first with: "
                f"{first.failed}"
            ) from first.error
        best = max(candidates, key=lambda trial: trial.promise)
        # A new number: the pair may have been certified before, and its draws must be fresh.
        number = self._add_pair(best.pair)
        self._release_reserve()
        explored = self._explore(number)
        self._certify_trial(best, number, explored, self.run.budget.remaining)

    def _certify_trial(
        self, trial: Trial, number: int, explored: Sides, error_share: float
    ) -> None:
        """Spends an error share on a certificate of a trial's pair."""
        self._release_reserve()
        spent = self.run.budget.spend(error_share, f"certificate of trial {trial.number + 1}")
        certificate = self._certify(number, explored, self.run.settings.samples, spent)
        self.certificates.append(certificate)
        trial.certified = max(certificate.lower_bound, trial.certified or 0.0)

    def _certify(
        self, number: int, explored: Sides, samples: int, error_share: float
    ) -> AuditResult:
        """Certifies a pair on fresh draws.

        It has health checks of its own, too: repetitions that are suspicious on one input may be
        natural on another.
        """
        certifying_run = AuditRun(
            pairs=self.run.pairs,
            question=self.run.question,
            settings=self.run.settings,
            sampler=self.run.sampler,
            budget=ErrorBudget(error_share),
            began=self.run.began,
        )
        learned = certifying_run.learn(number, explored, samples)
        return certifying_run.certify(learned, number=number, phase=Phase.CERTIFY)

    # --- what the loops ask

    @property
    def _stops_at_refutation(self) -> bool:
        return self.run.question.judged and self.finder.stop_at_refutation

    @property
    def _has_explored_pair(self) -> bool:
        return any(not trial.failed for trial in self.trials)

    def _is_decided(self) -> bool:
        """Returns whether more certificates would change nothing.

        That is so after a refutation, and if the draws cannot be trusted.
        """
        if not self.certificates:
            return False
        return self.certificates[-1].verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE)

    def _next_error_share(self) -> float:
        """Returns what the next certificate may spend: 6/(π²k²) for the k-th, which sums to 1."""
        k = len(self.run.budget.ledger) + 1
        return self.run.budget.total * 6.0 / (math.pi * k) ** 2

    # --- time for the last certificate

    def _reserve_time(self) -> None:
        """Reserves as much of the time as the last certificate takes at the pace so far.

        So an input on which the mechanism hangs does not cost the certificate of those before it.
        """
        deadline = self.run.sampler.runner.deadline
        if deadline is None:
            return
        elapsed = time.perf_counter() - self.run.began
        draws = self.run.settings.samples + self.finder.samples
        needed = _RESERVE_FACTOR * elapsed * draws / max(self.run.sampler.drawn[0], 1)
        if not isinstance(self.run.sampler.runner, SerialRunner):
            # A call that hangs costs its worker.
            needed += _WORKER_RESTART_SECONDS
        deadline.reserve = min(needed, _MOST_RESERVED * deadline.seconds)

    def _release_reserve(self) -> None:
        """Makes the reserved time available: a certificate is next."""
        deadline = self.run.sampler.runner.deadline
        if deadline is not None:
            deadline.reserve = 0.0

    # --- the result

    def _result(self) -> AuditResult:
        """Returns the result with the verdict, else the one with the largest bound.

        All certificates are among its findings.
        """
        run = self.run
        if self._is_decided():
            deciding = self.certificates[-1]
        else:
            deciding = max(self.certificates, key=_excess)
        others = [
            certificate.findings[0]
            for certificate in self.certificates
            if certificate is not deciding
        ]
        details = {
            **deciding.findings[0].details,
            "search": trial_history(self.trials),
            "paid": [[purpose, amount] for purpose, amount in run.budget.ledger],
        }
        reports = self._reports()
        if self.rounds is not None:
            pair = None if deciding.witness is None else deciding.witness.pair
            details["tried"] = self.rounds.details(
                n_explored=len(self.trials), is_within=None if pair is None else pair.within
            )
            reports += self.rounds.remarks()
        first = replace(deciding.findings[0], details=details)
        left_drawn, right_drawn = run.sampler.drawn
        return replace(
            deciding,
            findings=(first, *deciding.findings[1:], *others),
            samples_used=(left_drawn, right_drawn),
            health=(*deciding.health, *reports),
            settings={
                **deciding.settings,
                "pairs": len(self.trials),
                "finder": self.finder.describe(),
            },
            seconds=time.perf_counter() - run.began,
        )

    def _reports(self) -> list[HealthReport]:
        """Returns what went wrong in some trials without costing the verdict."""
        reports = []
        failed = [trial for trial in self.trials if trial.failed]
        if failed:
            text = f"{len(failed)} of {len(self.trials)} trials failed, first: {failed[0].failed}"
            reports.append(HealthReport("failed-trials", text, untrusted=False))
        if self.late_message:
            reports.append(HealthReport("out-of-time", self.late_message, untrusted=False))
        return reports


def _excess(result: AuditResult) -> tuple[float, float]:
    """Returns how much a bound says against the claim; ties are decided by the bound itself."""
    return share_of_claim(result.lower_bound, result.claim), result.lower_bound
