"""The two loops of an audit: explore (free), then certify (paid).

Exploring finds the pair of inputs and what to prove; its draws choose and therefore prove nothing.
Certifying draws afresh and pays from one `ErrorBudget`.
"""

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import epsilometer.auditing.settings as limits
from epsilometer.auditing import lost_draws
from epsilometer.auditing.judge import AnyQuestion, Question, conclude, examine_draws, pay_and_prove
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import ErrorBudget
from epsilometer.engine import Fingerprints, OutOfTime, Phase, Sampler, health
from epsilometer.engine.streams import Stream
from epsilometer.inputs import Pair
from epsilometer.inputs.copying import shared_parts
from epsilometer.mechanisms.base import Mechanism, check_returned
from epsilometer.methods import Proposal, Task
from epsilometer.outputs import Outputs, concatenate
from epsilometer.result import AuditResult, HealthReport

Sides = tuple[Outputs, Outputs]
# Trials that a result keeps; more would make it large, and nobody looks at them.
_MOST_HISTORY = 2000
NOTHING: Sides = (Outputs((), 0), Outputs((), 0))


@dataclass(slots=True)
class AuditRun:
    """One audit under way.

    Attributes:
        pairs: the candidate pairs.
        question: what is asked.
        settings: how to run.
        sampler: draws.
        budget: the failure probability.
        fingerprints: of the chunks that learn and prove, left and right.
        history: the trials of the search over pairs, for the report.
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

    @classmethod
    def start(
        cls, mechanism: Mechanism, pairs: list[Pair], question: AnyQuestion, settings: Settings
    ) -> "AuditRun":
        """Nothing is drawn yet."""
        if len(pairs) > 1:
            limits.check_enough_for(len(pairs), settings.samples)
        for pair in pairs:
            settings.method.check(question.about(pair).claim, len(pairs), settings.samples)
        settings.note(
            mechanism=mechanism.name, seeded_mechanism=mechanism.is_seeded, pairs=len(pairs)
        )
        sampler = Sampler(
            mechanism, settings.seed, settings.runner, settings.progress, settings.journal
        )
        return cls(
            pairs,
            question,
            settings,
            sampler,
            ErrorBudget(settings.failure_probability),
            time.perf_counter(),
        )

    def audit(self) -> AuditResult:
        """Explores, learns, certifies.

        Raises:
            OutOfTime: if the time was over before all was drawn. Then there is no bound: which
                draws came in time may depend on what they are.
        """
        try:
            fixed = self.settings.method.fixed_sizes(len(self.pairs), self.settings.samples)
            if fixed is not None:
                return self._audit_fixed(*fixed)
            number, explored, spent = self._explore() if len(self.pairs) > 1 else (0, NOTHING, 0)
            proposal, training, n_fresh = self.learn(
                number, explored, self.settings.samples - spent
            )
            # Which of several pairs would have been certified is part of the power, and cannot be
            # told.
            can_rehearse = len(self.pairs) == 1 and self.settings.method.is_quick
            return self.certify(proposal, number, n_fresh, Phase.CERTIFY, training, can_rehearse)
        except OutOfTime as late:
            raise OutOfTime(f"{late}. {self._how_far()}") from late

    def question_about(self, number: int) -> Question:
        """What is asked about a pair, by its number."""
        return self.question.about(self.pairs[number])

    def task(self, phase: Phase, number: int, n_fresh: int) -> Task:
        """What is to be proved about a pair, with random numbers of its own.

        Args:
            phase: of the draws that are to prove it.
            number: of the pair.
            n_fresh: how many draws per side there will be.
        """
        return Task(
            claim=self.question_about(number).claim,
            n_fresh=(n_fresh, n_fresh),
            failure_probability=self.budget.total,
            stream=Stream(self.settings.seed, phase, number),
        )

    def _how_far(self) -> str:
        """What an audit that is out of time has, and what can be done."""
        left, right = self.sampler.drawn
        kept = "they are kept in the checkpoint: the same call goes on from there"
        advice = (
            kept if self.settings.journal.is_kept else "with checkpoint= they would have been kept"
        )
        done = f"{left} left and {right} right draws of {self.settings.samples} were done, which certify nothing"
        return f"{done}; {advice}. An audit with stop_early=True has a bound whenever it ends"

    def learn(self, number: int, explored: Sides, samples: int) -> tuple[Proposal, Sides, int]:
        """What to prove about a pair, from earlier draws of it and some of the samples that are left.

        Returns:
            The proposal, the draws that it was learned from, and the samples that remain for the
            proof.
        """
        n_train = limits.training_size(samples)
        draw = partial(
            self.sampler.both, Phase.TRAIN, number, self.pairs[number], prints=self.fingerprints
        )
        fresh = draw(n_train)
        more = limits.training_size(samples, *fresh) - n_train
        # Chunk numbers of their own, far beyond those of the first draws.
        added = draw(more, skip=1 << 32) if more else NOTHING
        n_fresh = samples - n_train - more
        left, right = (concatenate([explored[side], fresh[side], added[side]]) for side in (0, 1))
        task = self.task(Phase.CERTIFY, number, n_fresh)
        return self._propose(number, (left, right), task), (left, right), n_fresh

    def _audit_fixed(self, n_train: int, n_fresh: int) -> AuditResult:
        """Learns from `n_train` draws of every pair, for a method with its own sizes; certifies the best."""
        best: tuple[Proposal, int, Sides] | None = None
        best_score = -math.inf
        for number in range(len(self.pairs)):
            left, right = self.sampler.both(
                Phase.TRAIN, number, self.pairs[number], n_train, prints=self.fingerprints
            )
            proposal = self._propose(
                number, (left, right), self.task(Phase.CERTIFY, number, n_fresh)
            )
            score = self.question.score(self.pairs[number], proposal.predicted)
            if best is None or score > best_score:
                best = (proposal, number, (left, right))
                best_score = score
        assert best is not None  # there is at least one pair
        return self.certify(best[0], best[1], n_fresh, Phase.CERTIFY, best[2])

    def _propose(self, number: int, training: Sides, task: Task) -> Proposal:
        """Learns from the training draws in random order.

        A method may fit on some of them and choose on the rest. If those were the early and the
        late draws, its proposal would fit the early ones better, which the checks on the order of
        the draws would take for drift.
        """
        # used by no chunk
        seed = self.settings.seed
        keys = [(Phase.TRAIN, number, side, 0, 0) for side in (0, 1)]
        left, right = (
            outputs.take(
                np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)).permutation(
                    outputs.size
                )
            )
            for key, outputs in zip(keys, training, strict=True)
        )
        proposal = self.settings.method.propose(left, right, task)
        self.settings.tell(f"estimated bound on {task.claim.symbol}: {proposal.predicted:.3g}")
        return proposal

    def certify(
        self,
        proposal: Proposal,
        number: int,
        n_fresh: int,
        phase: Phase,
        training: Sides = NOTHING,
        quick: bool = False,
    ) -> AuditResult:
        """Tallies the proposal on fresh draws and pays for the bound; one that is `quick` can be rehearsed."""
        pair = self.pairs[number]
        journal = self.settings.journal
        examples: tuple[Any, Any] = (None, None)
        if journal.is_kept:  # how the proposal tallies the training draws: by that it is recognised
            examples = proposal.tally(training[0], 0), proposal.tally(training[1], 1)
            journal.recognise(number, examples)
        tally = partial(proposal.tally, side=0), partial(proposal.tally, side=1)
        folded = self.sampler.fold(
            phase, number, pair, n_fresh, tally, earlier=self.fingerprints, examples=examples
        )
        for side in (0, 1):  # a journal may still have to write those of the draws
            prints = folded[side].fingerprints
            self.fingerprints[side] = prints.copy() if journal.is_kept else prints
        counted = (folded[0].total, folded[1].total)
        lost = self.sampler.lost_of(phase, number)
        redrawn = self.sampler.lost_of_pair(number)
        against = lost_draws.counted_against(proposal, counted, pair, lost, self.budget.total)
        tallies = counted if against is None else against
        finding, *beside = pay_and_prove(self.budget, proposal, tallies, pair)
        if self.history:
            finding = replace(
                finding, details={**finding.details, "search": self.history[:_MOST_HISTORY]}
            )
        reports: list[HealthReport] = []
        if len(training[0]):
            check_returned(self.sampler.mechanism.name, *training)
            reports += examine_draws(proposal, *training)
        reports += health.check_repeats(self.fingerprints) + health.check_drift(
            [side.pieces.counts for side in folded]
        )
        reports += lost_draws.reports_on(
            self.sampler, number, redrawn, is_counted=against is not None
        )
        reports += self.remarks()
        settings = self.settings.with_facts(lost_draws.facts_of(self.sampler, number, redrawn))
        findings = [finding, *beside]
        shown = training if len(training[0]) else None
        task = self.task(phase, number, n_fresh) if quick else None
        # A search pays several certificates from one failure probability; this one has the whole
        # budget of its run.
        price = self.budget.total
        return conclude(
            self.question_about(number),
            settings,
            proposal,
            findings,
            reports,
            self.sampler.drawn,
            self.began,
            training=shown,
            certificate_p_value=partial(proposal.p_value, *tallies, price),
            price=price,
            mechanism=self.sampler.mechanism,
            task=task,
        )

    def _explore(self) -> tuple[int, Sides, int]:
        """Finds the pair with the best predicted bound by successive halving.

        Returns:
            Its number, its draws so far (they may train), and the draws per side that all pairs
            cost.
        """
        alive = list(range(len(self.pairs)))
        rounds = max(1, math.ceil(math.log2(len(self.pairs))))
        per_round = min(
            int(self.settings.samples * limits.EXPLORE_SHARE / rounds), limits.MOST_PER_ROUND
        )
        draws = dict.fromkeys(alive, NOTHING)
        spent = 0
        for turn in range(rounds):
            if len(alive) == 1:
                break
            n = max(limits.FEWEST_PER_PAIR, per_round // len(alive))
            for number in alive:
                # Every round has its own chunk numbers, spaced far beyond what one round draws.
                more = self.sampler.both(
                    Phase.EXPLORE, number, self.pairs[number], n, skip=turn << 32
                )
                left, right = (concatenate([draws[number][side], more[side]]) for side in (0, 1))
                draws[number] = left, right
                spent += n
            predicted = {number: self._predict(number, draws[number]) for number in alive}
            for number in alive:
                self.history.append(
                    {
                        "round": turn,
                        "pair": number,
                        "draws": n,
                        "predicted": float(predicted[number]),
                    }
                )
            scores = {
                number: self.question.score(self.pairs[number], predicted[number])
                for number in alive
            }
            alive = sorted(alive, key=lambda number: -scores[number])[: (len(alive) + 1) // 2]
            draws = {number: draws[number] for number in alive}
        return alive[0], draws[alive[0]], spent

    def _predict(self, number: int, draws: Sides) -> float:
        rest = int(self.settings.samples * (1.0 - limits.EXPLORE_SHARE) * 0.7)
        task = self.task(Phase.EXPLORE, number, rest)
        return self.settings.method.propose(draws[0], draws[1], task).predicted

    def remarks(self) -> list[HealthReport]:
        """What could not be done as requested."""
        reports = []
        if (own := self.sampler.own_generator) is not None:
            text = f"the mechanism draws from a {own} of its own, of which every worker would have a copy with the "
            text += "same numbers; so it was run in this process alone. "
            text += "A parameter named rng gets a generator per chunk instead"
            reports.append(HealthReport("own-generator", text, untrusted=False))
        sides = (side for pair in self.pairs for side in (pair.left, pair.right))
        shared = sorted({name for side in sides for name in shared_parts(side)})
        if shared:
            text = f"the inputs hold what cannot be copied ({', '.join(shared)}), so that all calls shared it"
            reports.append(HealthReport("shared-input", text, untrusted=False))
        return reports
