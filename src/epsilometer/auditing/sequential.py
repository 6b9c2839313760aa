"""The loop of a sequential audit: a pilot, then bets on growing batches.

The pilot chooses the events; the bets go on until the claim is refuted. Every bet is fixed before
its batch is drawn, from earlier draws only; so is the event, which may be chosen again between
batches. The wealth of the bets is evidence at any time (`epsilometer.bounds.betting`), so the audit
may stop at any point: when it refutes, when samples or time run out, or when it is interrupted.
"""

import copy
import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from epsilometer.auditing.audit_run import AuditRun
from epsilometer.auditing.blindness import blind_by_bets
from epsilometer.auditing.checkpoints import State
from epsilometer.auditing.constancy import SideAnswers, examine_constancy
from epsilometer.auditing.judge import FinishedRun, conclude, examine_draws
from epsilometer.auditing.lost_draws import facts_of, fewer_hits, more_hits, reports_on
from epsilometer.auditing.questions import AnyQuestion, Question
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import Counts, ErrorBudget
from epsilometer.bounds.anytime import anytime_lower, anytime_upper
from epsilometer.bounds.bet_rounds import BetOutcome, Guess, place_round
from epsilometer.bounds.betting import growth_rate
from epsilometer.engine import Journal, OutOfTime, Phase, Sampler
from epsilometer.engine.correlation_checks import check_order
from epsilometer.engine.repetition_checks import check_repeats
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.return_values import check_returned
from epsilometer.methods.events import EventProposal
from epsilometer.methods.sequential import (
    Ladder,
    SequentialMethod,
    Stake,
    choose,
    guesses,
    ladder_of,
)
from epsilometer.outputs import Outputs, concatenate
from epsilometer.result import AuditResult, Finding, HealthReport, Witness

# The event is chosen again when the draws have grown by this factor since the last choice.
_CHOOSE_AGAIN = 1.4
# A new event must promise growth larger by this factor: changing means estimating from scratch.
_BETTER = 1.1
# Draws per side that are kept for choosing; after that the event stays.
_MOST_LEARNED = 20_000
# Chunks of one-at-a-time mechanisms: small, so that a slow mechanism can be spread over workers and
# stopped in time.
_CHUNK = 16
# In a batch each side takes this many turns, or fewer with this many draws each: a change of the
# mechanism in the middle of a longer turn would be evidence. A batch is a small part of an audit,
# so it needs fewer turns than a phase.
_TURNS = 16
_FEWEST_PER_TURN = 8
# Mechanisms with larger chunks draw many outputs in one call.
_ONE_AT_A_TIME = 1024
# Points of the wealth curve that a result keeps.
_MOST_POINTS = 200
# The largest log-wealth whose exponential still fits a float.
_MOST_LOG = 700.0
# Bets that a result keeps, so that its bound can be recomputed: all of them or none.
_MOST_BETS = 1000


@dataclass(frozen=True, slots=True)
class _PilotChoice:
    """What the pilot chose for a pair.

    Attributes:
        rate: the growth that the bets promise together.
        pair: the number of the pair.
        stakes: the events to bet on.
        draws: the pilot's draws of the left and of the right.
    """

    rate: float
    pair: int
    stakes: list[Stake]
    draws: tuple[Outputs, Outputs]


class SequentialRun:
    """One sequential audit under way.

    Its state is written after every batch, before the batch's result is shown: a batch is either
    counted in the file, or it never happened. No evidence is spent twice, and nobody can look at a
    batch and take it back.
    """

    def __init__(self, run: AuditRun, audited: Mechanism) -> None:
        """Begins, or goes on from a checkpoint.

        Args:
            run: what the loop needs; its mechanism may have smaller chunks.
            audited: the mechanism as it was given, which the result identifies.
        """
        method = run.settings.method
        assert isinstance(method, SequentialMethod)
        self.run = run
        self.audited = audited
        self.options = method.options
        # What was running when the time was over; empty if it was not.
        self.late = ""
        n_values = len(ladder_of(run.question_about(0).claim).values)
        self.state = State.empty(n_values)
        stored = run.settings.journal.stored_state()
        if stored is not None:
            self.state = State.from_bytes(stored)
        if self.state.stopped in ("samples", "seconds"):
            self.state.stopped = ""  # it may have been given more samples or time
        self.ladder: Ladder = ladder_of(self.question.claim)
        run.sampler.incidents.update(self.state.incidents)
        samples = run.settings.samples
        pairs = len(run.pairs)
        self.pilot = self._fixed("pilot", self.options.pilot_size(samples))
        if self.pilot * pairs >= samples:
            why = f"a pilot of {self.pilot} draws for each of {pairs} pairs leaves none to bet on"
            raise InputError(f"samples={samples} is too few: {why}")

    @property
    def question(self) -> Question:
        """What is asked about the pair that was chosen; about the first one before that."""
        return self.run.question_about(self.state.pair)

    def _fixed(self, name: str, size: int) -> int:
        """The draws per side of a pilot or a batch, which are fixed once it has begun.

        Draws of a batch that was interrupted stay, so its size must not depend on what happened
        meanwhile.
        """
        journal = self.run.sampler.journal
        stored = journal.read_note(name)
        if stored is None:
            journal.write_note_now(name, str(size))
            return size
        return int(stored)

    def audit(self) -> AuditResult:
        """Runs to the end and concludes."""
        self.run.settings.report_status(f"at most {self.run.settings.samples:,} draws per side")
        if not self.state.stakes and not self._start():
            self.state.stopped = "seconds"
        while not self.state.stopped:
            self._advance()
        return self._conclude()

    def _start(self) -> bool:
        """Chooses pair and event on the pilot; False if time ran out."""
        best: _PilotChoice | None = None
        for number in range(len(self.run.pairs)):
            # Growth is against the claim about the pair itself, so that pairs with different claims
            # can be compared.
            lines = ladder_of(self.run.question_about(number).claim).claim_lines()
            draws = self._draw(Phase.TRAIN, number, self.pilot, 0)
            if draws is None:
                return False
            stakes = choose(draws[0], draws[1], lines)
            rate = sum(stake.candidate.predicted for stake in stakes)
            if best is None or rate > best.rate:
                best = _PilotChoice(rate=rate, pair=number, stakes=stakes, draws=draws)
        assert best is not None
        self.ladder = ladder_of(self.run.question_about(best.pair).claim)
        self.state.begin(
            pair=best.pair,
            stakes=best.stakes,
            draws=best.draws,
            spent=self.pilot * len(self.run.pairs),
            n_values=len(self.ladder.values),
        )
        self._save()
        return True

    def _advance(self) -> None:
        """Runs one batch: bets, draws, counts, and decides whether to stop."""
        state = self.state
        settings = self.run.settings
        left_over = settings.samples - state.spent
        if left_over < 1:
            state.stopped = "samples"
            return
        self._choose_again()
        size = min(max(1, int(self.options.growth * state.spent)), left_over)
        size = self._fixed(f"batch {state.batch + 1}", size)
        if size > left_over:  # it was begun when more samples were allowed
            state.stopped = "samples"
            return
        p_guesses, q_guesses = guesses(state.stakes, self.ladder.claim_lines())
        guessed = [Guess(p, q) for p, q in zip(p_guesses.tolist(), q_guesses.tolist(), strict=True)]
        # The wealth is split by the growth that each bet promises against the claim.
        bets = place_round(
            self.ladder.lines,
            guessed,
            sizes=[(size, size)] * len(guessed),
            at_claim=self.ladder.at_claim,
        )
        state.batch += 1
        draws = self._draw(Phase.CERTIFY, state.pair, size, state.batch << 32)
        if draws is None:
            state.batch -= 1  # the batch was not finished, so it never happened
            state.stopped = "seconds"
            return
        left, right = draws
        outcomes = [
            self._count(place=place, share=share, guess=guess, left=left, right=right)
            for place, (share, guess) in enumerate(zip(bets.shares, guessed, strict=True))
        ]
        state.add(size, bets.log_wealth(outcomes))
        if len(state.left) < _MOST_LEARNED:
            state.left = concatenate([state.left, left])
            state.right = concatenate([state.right, right])
        bound = self.ladder.bound(state.best, self.run.budget.total)
        state.curve.append((state.spent, float(state.log_wealth[self.ladder.at_claim]), bound))
        if self.question.judged and bound > self.question.claim.value:
            state.stopped = "refuted"
        elif self._is_out_of_time():
            state.stopped = "seconds"
        self._save()
        settings.report_status(
            f"{state.spent} draws per side, certified {self.question.claim.symbol} ≥ {bound:.3g}"
        )

    def _is_out_of_time(self) -> bool:
        deadline = self.run.sampler.runner.deadline
        return deadline is not None and deadline.left <= 0.0

    def _choose_again(self) -> None:
        """Chooses events again when there are many more draws than at the last choice.

        Only when a bet is about to be placed: an audit must end with events that were bet on, and
        have counts.
        """
        state = self.state
        if len(state.left) < _CHOOSE_AGAIN * state.chosen_at:
            return
        state.chosen_at = len(state.left)
        used = self.run.sampler.mechanism.used
        if used is not None:
            used.choose()
        lines = self.ladder.claim_lines()
        new_stakes = choose(state.left, state.right, lines)
        new_rate = sum(stake.candidate.predicted for stake in new_stakes)
        present_rate = float(growth_rate(lines, *guesses(state.stakes, lines)).sum())
        if new_rate > _BETTER * present_rate:
            state.change(new_stakes)

    def _count(
        self,
        place: int,
        share: float,
        *,
        guess: Guess,
        left: Outputs,
        right: Outputs,
    ) -> BetOutcome:
        """Counts the event of one bet in a batch; the counts improve the next guess.

        Args:
            place: the place of the bet's event among the stakes.
            share: the fraction of the wealth that was bet.
            guess: the event's probabilities that the bet assumes.
            left: the outputs of the batch.
            right: likewise.
        """
        state = self.state
        stake = state.stakes[place]
        inside = [stake.candidate.event.contains(side) for side in (left, right)]
        counts = [Counts(int(np.count_nonzero(side)), len(side)) for side in inside]
        # Lost draws of the batch count against the bet, see `lost_draws`.
        lost = self.run.sampler.lost_of(Phase.CERTIFY, state.pair, state.batch << 32)
        likelier = 1 if stake.candidate.flipped else 0
        counts[likelier] = fewer_hits(counts[likelier], lost[likelier])
        counts[1 - likelier] = more_hits(counts[1 - likelier], lost[1 - likelier])
        state.batches.append(
            {
                "batch": state.batch,
                "stake": place,
                "share": share,
                "flipped": stake.candidate.flipped,
                "p1": guess.p,
                "q1": guess.q,
                "left": [counts[0].hits, counts[0].trials],
                "right": [counts[1].hits, counts[1].trials],
            }
        )
        stake.left = stake.left + counts[0]
        stake.right = stake.right + counts[1]
        return BetOutcome(*stake.candidate.oriented(*counts))

    def _draw(self, phase: Phase, number: int, n: int, skip: int) -> tuple[Outputs, Outputs] | None:
        """Draws a batch of both sides; None if time ran out before it was complete."""
        # Copies, because nothing stays of a batch that is not finished.
        prints = [side.copy() for side in self.state.fingerprints]
        try:
            pair = self.run.pairs[number]
            draws = self.run.sampler.both(phase, number, pair, n, skip=skip, prints=prints)
        except OutOfTime as late:
            self.late = str(late)
            return None
        self.state.fingerprints = prints[0], prints[1]
        return draws

    def _save(self) -> None:
        self.state.incidents = dict(self.run.sampler.incidents)
        self.run.settings.journal.store_state(self.state.to_bytes())

    def _conclude(self) -> AuditResult:
        state = self.state
        question = self.question
        if not state.stakes:
            raise OutOfTime(
                f"{self.late}. The pilot of {self.pilot} draws per side was not done in time, "
                "so nothing is certified"
            )
        failure = self.run.budget.spend(self.run.budget.total, "bets")
        finding = self._finding(failure)
        stake = state.stakes[0]
        n = max(stake.left.trials, 1)
        p, q = stake.estimate()
        task = replace(self.run.task(Phase.CERTIFY, state.pair, n), failure_probability=failure)
        proposal = EventProposal(
            replace(stake.candidate, p=p, q=q, predicted=finding.lower_bound), task
        )
        # Order is checked on draws that chose nothing: an event fitted to the early draws would
        # look like drift.
        later = slice(state.chosen_at, None)
        check_returned(self.run.sampler.mechanism.name, state.left, state.right)
        constancy = examine_constancy(
            (SideAnswers(state.left), SideAnswers(state.right)),
            mechanism=self.run.sampler.mechanism,
            pair=self.run.pairs[state.pair],
            constant=self.run.settings.constant,
            is_above_claim=finding.lower_bound > question.claim.value,
            seed=self.run.settings.seed,
            deadline=self.run.sampler.runner.deadline,
            is_suppressed="constant" in self.run.settings.suppressed,
        )
        reports = [*constancy.reports, *check_order(state.left, state.right)]
        reports += examine_draws(proposal, state.left.take(later), state.right.take(later))
        reports += check_repeats(state.fingerprints) + self.run.remarks()
        # Those of a batch that is not finished will be drawn again, or never.
        redrawn = self.run.sampler.lost_of_pair(state.pair, last=state.batch << 32)
        reports += reports_on(self.run.sampler, state.pair, redrawn, is_counted=True)
        if self.late:
            reports.append(HealthReport("out-of-time", self.late, untrusted=False))
        # The detectable value is not reported: a rehearsal takes as long as a hundred audits that
        # go on to the end.
        facts = facts_of(self.run.sampler, state.pair, redrawn)
        return conclude(
            FinishedRun(
                question=question,
                settings=self.run.settings.noting(constant_test=constancy.tested_by, **facts),
                proposal=proposal,
                findings=[finding],
                reports=reports,
                samples_used=(state.spent, state.spent),
                began=self.run.began,
                training=(state.left, state.right),
                certificate_p_value=partial(self.ladder.p_value, state.best),
                mechanism=self.audited,
                is_only_pair=len(self.run.pairs) == 1,
                too_few_draws=partial(
                    blind_by_bets,
                    question.claim,
                    samples=state.spent,
                    failure=failure,
                    pilot=state.spent - state.evidence,
                    growth=self.options.growth,
                ),
            )
        )

    def _finding(self, failure: float) -> Finding:
        state = self.state
        stake = state.stakes[0]
        above, below = stake.candidate.oriented(stake.left, stake.right)
        # The events of the k-th choice are bounded at 6/(π·k)² of the failure probability, half of
        # it for each of the two bounds: these sum to the failure probability over all choices.
        error_share = failure * 3.0 / (math.pi * state.choices) ** 2
        witness = Witness(
            pair=self.run.pairs[state.pair],
            event=stake.candidate.event,
            flipped=stake.candidate.flipped,
            left_counts=stake.left,
            right_counts=stake.right,
            p_lower=anytime_lower(above, error_share),
            q_upper=anytime_upper(below, error_share),
        )
        curve = _thinned(state.curve)
        details: dict[str, Any] = {
            "stopped": state.stopped,
            "pilot": state.spent - state.evidence,
            "pairs_of_draws": state.spent,
            "choices_of_events": state.choices,
            "wealth": [[n, math.exp(min(log_wealth, _MOST_LOG))] for n, log_wealth, _ in curve],
            "bound_over_time": [[n, bound] for n, _, bound in curve],
        }
        if len(state.batches) <= _MOST_BETS:
            details["batches"] = state.batches
        return Finding(
            method="sequential",
            lower_bound=self.ladder.bound(state.best, failure),
            guarantee="exact",
            confidence=1.0 - failure,
            witness=witness,
            claim=self.question.claim,
            details=details,
        )


def _thinned(curve: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Evenly thinned points (draws per side, log-wealth against the claim, bound).

    The last point is always among them.
    """
    step = max(1, math.ceil(len(curve) / _MOST_POINTS))
    return curve[::-step][::-1]


def run_sequential(
    mechanism: Mechanism, pairs: list[Pair], question: AnyQuestion, settings: Settings
) -> AuditResult:
    """Audits with the method `sequential`."""
    settings = settings.noting(
        mechanism=mechanism.name,
        seeded_mechanism=mechanism.is_seeded,
        pairs=len(pairs),
    )
    audited = mechanism
    if _CHUNK < mechanism.chunk_size <= _ONE_AT_A_TIME:
        mechanism = copy.copy(mechanism)
        mechanism.chunk_size = _CHUNK
    # What can be drawn again exactly need not be kept chunk by chunk.
    journal = Journal() if mechanism.is_seeded else settings.journal
    sampler = Sampler(
        mechanism,
        settings.seed,
        settings.runner,
        settings.progress,
        journal,
        turns=_TURNS,
        fewest_per_turn=_FEWEST_PER_TURN,
    )
    run = AuditRun(
        pairs=pairs,
        question=question,
        settings=settings,
        sampler=sampler,
        budget=ErrorBudget(settings.failure_probability),
        began=time.perf_counter(),
    )
    return SequentialRun(run, audited).audit()
