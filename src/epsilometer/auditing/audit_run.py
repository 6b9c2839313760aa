"""The two loops of an audit: explore (free), then certify (paid).

Exploring finds the pair of inputs and the event to certify; its draws choose and therefore certify
nothing. Certifying draws afresh and spends from one `ErrorBudget`.
"""

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import epsilometer.auditing.settings as limits
from epsilometer.auditing import lost_draws
from epsilometer.auditing.blindness import Sizes, blind_by_counts
from epsilometer.auditing.constancy import SideAnswers, examine_constancy
from epsilometer.auditing.judge import FinishedRun, certify_with_budget, conclude, examine_draws
from epsilometer.auditing.questions import AnyQuestion, Question
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import ErrorBudget
from epsilometer.engine import Fingerprints, OutOfTime, Phase, Sampler, health
from epsilometer.engine.repetition_checks import check_repeats
from epsilometer.engine.streams import Stream
from epsilometer.inputs import Pair
from epsilometer.inputs.copying import shared_parts
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.return_values import check_returned
from epsilometer.methods import Proposal, Task
from epsilometer.methods.auto import AutoMethod
from epsilometer.outputs import Outputs, concatenate
from epsilometer.outputs.identifiers import growing_columns
from epsilometer.outputs.sides import Sides as BothSides
from epsilometer.result import AuditResult, HealthReport

Sides = BothSides[Outputs]
# Trials that a result keeps; more would make it large, and nobody looks at them.
_MOST_HISTORY = 2000
# The fraction of the draws after exploring that certify, for predictions.
_CERTIFYING_FRACTION = 0.7
# Chunk numbers between two lots of draws of one phase: far more than either of them has.
_CHUNKS_APART = 1 << 32
NO_DRAWS = Sides(Outputs((), 0), Outputs((), 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedProposal:
    """What the training draws of a pair led to.

    Attributes:
        proposal: what to certify.
        training: the draws that it was learned from, left and right.
        n_fresh: draws per side that remain for the certificate.
    """

    proposal: Proposal
    training: Sides
    n_fresh: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploredPair:
    """The pair that exploring chose.

    Attributes:
        number: of the pair.
        draws: its draws so far, which may train.
        spent: draws per side that exploring all pairs took.
    """

    number: int = 0
    draws: Sides = NO_DRAWS
    spent: int = 0


@dataclass(slots=True)
class AuditRun:
    """One audit under way.

    Attributes:
        pairs: the candidate pairs.
        question: what is asked.
        settings: how to run.
        sampler: draws.
        budget: the failure probability.
        began: when it began, by `time.perf_counter`.
        fingerprints: of the chunks that learn and certify, left and right.
        history: the trials of the search over pairs, for the report.
        chooses_pair: whether it chooses among several pairs that were given.
    """

    pairs: list[Pair]
    question: AnyQuestion
    settings: Settings
    sampler: Sampler
    budget: ErrorBudget
    began: float
    fingerprints: list[Fingerprints] = field(
        default_factory=lambda: [Fingerprints(), Fingerprints()]
    )
    history: list[dict[str, Any]] = field(default_factory=list)
    chooses_pair: bool = False

    @classmethod
    def start(
        cls,
        mechanism: Mechanism,
        pairs: list[Pair],
        question: AnyQuestion,
        settings: Settings,
    ) -> "AuditRun":
        """Creates the run; draws nothing."""
        if len(pairs) > 1:
            limits.check_enough_for(len(pairs), settings.samples)
        for pair in pairs:
            settings.method.check(question.about(pair).claim, len(pairs), settings.samples)
        settings = settings.noting(
            mechanism=mechanism.name,
            seeded_mechanism=mechanism.is_seeded,
            pairs=len(pairs),
        )
        return cls(
            pairs=pairs,
            question=question,
            settings=settings,
            sampler=Sampler(
                mechanism, settings.seed, settings.runner, settings.progress, settings.journal
            ),
            budget=ErrorBudget(settings.failure_probability),
            began=time.perf_counter(),
            chooses_pair=len(pairs) > 1,
        )

    def audit(self) -> AuditResult:
        """Explores, learns, certifies.

        Raises:
            OutOfTime: if the time was over before all was drawn. Then there is no bound: which
                draws came in time may depend on what they are.
        """
        try:
            method = self.settings.method
            sizes = method.fixed_sizes(len(self.pairs), self.settings.samples)
            if sizes is not None:
                n_train, n_fresh = sizes
                return self._audit_with_fixed_sizes(n_train, n_fresh)
            chosen = self._explore() if self.chooses_pair else ExploredPair()
            remaining = self.settings.samples - chosen.spent
            learned = self.learn(chosen.number, chosen.draws, remaining)
            return self.certify(
                learned,
                number=chosen.number,
                phase=Phase.CERTIFY,
                # Which of several pairs would have been certified affects the power, which is
                # therefore unknown.
                can_rehearse=not self.chooses_pair and method.is_quick,
            )
        except OutOfTime as late:
            raise OutOfTime(f"{late}. {self._progress_at_deadline()}") from late

    def question_about(self, number: int) -> Question:
        """What is asked about a pair, by its number."""
        return self.question.about(self.pairs[number])

    def task(self, phase: Phase, number: int, n_fresh: int) -> Task:
        """What is to be certified about a pair, with random numbers of its own.

        Args:
            phase: of the draws that are to certify it.
            number: of the pair.
            n_fresh: how many draws per side there will be.
        """
        return Task(
            claim=self.question_about(number).claim,
            n_fresh=(n_fresh, n_fresh),
            failure_probability=self.budget.total,
            stream=Stream(self.settings.seed, phase, number),
        )

    def _progress_at_deadline(self) -> str:
        """How far an audit that is out of time came, with advice."""
        left, right = self.sampler.drawn
        if self.settings.journal.is_kept:
            advice = "they are kept in the checkpoint: the same call goes on from there"
        else:
            advice = "with checkpoint= they would have been kept"
        return (
            f"{left} left and {right} right draws of {self.settings.samples} were done, which "
            f"certify nothing; {advice}. An audit with stop_early=True has a bound whenever it ends"
        )

    def learn(self, number: int, explored: Sides, samples: int) -> LearnedProposal:
        """Learns what to certify about a pair.

        Args:
            number: of the pair.
            explored: earlier draws of it, which train too.
            samples: draws per side that are left.
        """
        pair = self.pairs[number]
        n_train = limits.training_size(samples)
        draw = partial(self.sampler.both, Phase.TRAIN, number, pair, prints=self.fingerprints)
        first = Sides(*draw(n_train))
        # Structured outputs need more training draws, and what they are like is known only now.
        n_more = limits.training_size(samples, *first) - n_train
        more = Sides(*draw(n_more, skip=_CHUNKS_APART)) if n_more else NO_DRAWS
        training = Sides(
            concatenate([explored.left, first.left, more.left]),
            concatenate([explored.right, first.right, more.right]),
        )
        n_fresh = samples - n_train - n_more
        task = self.task(Phase.CERTIFY, number, n_fresh)
        return LearnedProposal(
            proposal=self._propose(number, training, task), training=training, n_fresh=n_fresh
        )

    def _audit_with_fixed_sizes(self, n_train: int, n_fresh: int) -> AuditResult:
        """Learns from `n_train` draws of every pair and certifies the best; for some methods."""
        best: LearnedProposal | None = None
        best_number = 0
        best_score = -math.inf
        for number, pair in enumerate(self.pairs):
            training = Sides(
                *self.sampler.both(Phase.TRAIN, number, pair, n_train, prints=self.fingerprints)
            )
            task = self.task(Phase.CERTIFY, number, n_fresh)
            proposal = self._propose(number, training, task)
            score = self.question.score(pair, proposal.predicted)
            if best is None or score > best_score:
                best = LearnedProposal(proposal=proposal, training=training, n_fresh=n_fresh)
                best_number = number
                best_score = score
        assert best is not None  # there is at least one pair
        return self.certify(best, number=best_number, phase=Phase.CERTIFY)

    def _propose(self, number: int, training: Sides, task: Task) -> Proposal:
        """Learns from the training draws in random order.

        A method may fit on some of them and choose on the rest. If those were the early and the
        late draws, its proposal would fit the early ones better, which the checks on the order of
        the draws would take for drift.
        """
        shuffled = Sides(
            self._shuffled(training.left, number, side=0),
            self._shuffled(training.right, number, side=1),
        )
        task = replace(task, growing=growing_columns(*training))
        proposal = self.settings.method.propose(shuffled.left, shuffled.right, task)
        self.settings.report_status(
            f"estimated bound on {task.claim.symbol}: {proposal.predicted:.3g}"
        )
        return proposal

    def _shuffled(self, outputs: Outputs, number: int, side: int) -> Outputs:
        # A key that no chunk uses: those have four numbers.
        key = (Phase.TRAIN, number, side, 0, 0)
        seeds = np.random.SeedSequence(self.settings.seed, spawn_key=key)
        order = np.random.default_rng(seeds).permutation(outputs.size)
        return outputs.take(order)

    def certify(
        self,
        learned: LearnedProposal,
        *,
        number: int,
        phase: Phase,
        can_rehearse: bool = False,
    ) -> AuditResult:
        """Tallies a proposal on fresh draws, spends the budget on its bound, and concludes.

        Args:
            learned: the proposal, with the draws behind it.
            number: of the pair.
            phase: of the fresh draws.
            can_rehearse: whether the audit can be simulated to find out what it could have refuted.
        """
        pair = self.pairs[number]
        proposal = learned.proposal
        training = learned.training
        n_heads = [len(side.heads) for side in self.fingerprints]
        folded = self._tally_fresh_draws(learned, number, phase)
        counted = (folded[0].total, folded[1].total)
        # Draws that were lost and drawn again count against whatever is to be certified.
        lost = self.sampler.lost_of(phase, number)
        redrawn = self.sampler.lost_of_pair(number)
        can_be_counted = lost_draws.are_counts(counted)
        certified = proposal
        if any(lost) and can_be_counted:
            certified = lost_draws.CountedAgainst(proposal, (lost[0], lost[1]))

        finding, *secondary = certify_with_budget(self.budget, certified, counted, pair)
        if self.history:
            details = {**finding.details, "search": self.history[:_MOST_HISTORY]}
            finding = replace(finding, details=details)

        has_trained = len(training.left) > 0
        reports: list[HealthReport] = []
        if has_trained:
            check_returned(self.sampler.mechanism.name, *training)
            reports += examine_draws(proposal, *training)
        constancy = examine_constancy(
            (
                SideAnswers(training.left, self.fingerprints[0].heads[n_heads[0] :]),
                SideAnswers(training.right, self.fingerprints[1].heads[n_heads[1] :]),
            ),
            mechanism=self.sampler.mechanism,
            pair=pair,
            constant=self.settings.constant,
            is_above_claim=finding.lower_bound > self.question_about(number).claim.value,
            seed=self.settings.seed,
            deadline=self.sampler.runner.deadline,
            is_suppressed="constant" in self.settings.suppressed,
        )
        reports += constancy.reports
        reports += check_repeats(self.fingerprints)
        reports += health.check_drift([side.groups.counts for side in folded])
        reports += lost_draws.reports_on(
            self.sampler, number, redrawn, is_counted=can_be_counted or not any(lost)
        )
        reports += self.remarks()

        # A search spends one failure probability on several certificates; this one has the whole
        # budget of its run.
        error_share = self.budget.total
        facts = lost_draws.facts_of(self.sampler, number, redrawn)
        return conclude(
            FinishedRun(
                question=self.question_about(number),
                settings=self.settings.noting(constant_test=constancy.tested_by, **facts),
                proposal=proposal,
                findings=[finding, *secondary],
                reports=reports,
                samples_used=self.sampler.drawn,
                began=self.began,
                training=training if has_trained else None,
                certificate_p_value=partial(certified.p_value, *counted, error_share),
                certificate_share=error_share,
                mechanism=self.sampler.mechanism,
                rehearsed_task=self.task(phase, number, learned.n_fresh) if can_rehearse else None,
                is_only_pair=not self.chooses_pair,
                too_few_draws=partial(
                    blind_by_counts,
                    proposal,
                    self.question_about(number).claim,
                    finding.guarantee,
                    Sizes(
                        samples=self.settings.samples,
                        n_fresh=(learned.n_fresh, learned.n_fresh),
                        training=training if has_trained else None,
                    ),
                    error_share,
                    is_auto=self.settings.method.name == AutoMethod.name,
                ),
            )
        )

    def _tally_fresh_draws(self, learned: LearnedProposal, number: int, phase: Phase) -> Any:
        """The tallies of both sides, with the fingerprints of their chunks."""
        proposal = learned.proposal
        journal = self.settings.journal
        examples: tuple[Any, Any] = (None, None)
        if journal.is_kept:
            # How the proposal tallies the training draws: by that it is recognised again.
            left_example = proposal.tally(learned.training.left, 0)
            right_example = proposal.tally(learned.training.right, 1)
            examples = (left_example, right_example)
            journal.check_same_proposal(number, examples)
        folded = self.sampler.fold(
            phase,
            number,
            self.pairs[number],
            learned.n_fresh,
            (partial(proposal.tally, side=0), partial(proposal.tally, side=1)),
            earlier=self.fingerprints,
            examples=examples,
        )
        for side in (0, 1):
            fingerprints = folded[side].fingerprints
            # A journal may still have to write those of the draws.
            self.fingerprints[side] = fingerprints.copy() if journal.is_kept else fingerprints
        return folded

    def _explore(self) -> ExploredPair:
        """Finds the pair with the best predicted bound by successive halving."""
        alive = list(range(len(self.pairs)))
        rounds = max(1, math.ceil(math.log2(len(self.pairs))))
        per_round = min(
            int(self.settings.samples * limits.EXPLORE_SHARE / rounds), limits.MOST_PER_ROUND
        )
        draws = dict.fromkeys(alive, NO_DRAWS)
        spent = 0
        for round_number in range(rounds):
            if len(alive) == 1:
                break
            n = max(limits.FEWEST_PER_PAIR, per_round // len(alive))
            for number in alive:
                more = self.sampler.both(
                    Phase.EXPLORE,
                    number,
                    self.pairs[number],
                    n,
                    skip=round_number * _CHUNKS_APART,
                )
                draws[number] = Sides(
                    concatenate([draws[number].left, more[0]]),
                    concatenate([draws[number].right, more[1]]),
                )
                spent += n
            scores: dict[int, float] = {}
            for number in alive:
                predicted = self._predict(number, draws[number])
                scores[number] = self.question.score(self.pairs[number], predicted)
                self.history.append(
                    {
                        "round": round_number,
                        "pair": number,
                        "draws": n,
                        "predicted": float(predicted),
                    }
                )
            alive.sort(key=lambda number: -scores[number])
            alive = alive[: (len(alive) + 1) // 2]
            draws = {number: draws[number] for number in alive}
        winner = alive[0]
        return ExploredPair(number=winner, draws=draws[winner], spent=spent)

    def _predict(self, number: int, draws: Sides) -> float:
        """The bound to expect of a pair if the rest of the samples were spent on it."""
        remaining = self.settings.samples * (1.0 - limits.EXPLORE_SHARE)
        n_fresh = int(remaining * _CERTIFYING_FRACTION)
        task = self.task(Phase.EXPLORE, number, n_fresh)
        return self.settings.method.propose(draws.left, draws.right, task).predicted

    def remarks(self) -> list[HealthReport]:
        """Warnings about the run."""
        reports = []
        generator = self.sampler.own_generator
        if generator is not None:
            reports.append(
                HealthReport(
                    name="own-generator",
                    message=(
                        f"the mechanism draws from a {generator} of its own, of which every worker "
                        "would have a copy with the same numbers; so it was run in this process "
                        "alone. A parameter named rng gets a generator per chunk instead"
                    ),
                    untrusted=False,
                )
            )
        datasets = [dataset for pair in self.pairs for dataset in (pair.left, pair.right)]
        shared = sorted({name for dataset in datasets for name in shared_parts(dataset)})
        if shared:
            reports.append(
                HealthReport(
                    name="shared-input",
                    message=(
                        f"the inputs hold what cannot be copied ({', '.join(shared)}), "
                        "so that all calls shared it"
                    ),
                    untrusted=False,
                )
            )
        return reports
