"""An audit that searches a domain: looks at many pairs, shrinks what looks like a leak, certifies the small pair."""

import copy
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from epsilometer.auditing.judge import AnyQuestion, PairwiseQuestion
from epsilometer.auditing.looks import (
    COUPLED,
    PLAIN,
    UNCLAIMED,
    Look,
    Looking,
    LookRequest,
    coarse_claim,
)
from epsilometer.auditing.loops import AuditRun
from epsilometer.auditing.search import SearchRun, stored_pair
from epsilometer.auditing.settings import Settings
from epsilometer.bounds import ErrorBudget
from epsilometer.engine import OutOfTime, Sampler
from epsilometer.errors import InputError, MechanismError
from epsilometer.inputs.finders.attempts import Attempt
from epsilometer.inputs.finders.search import Search
from epsilometer.inputs.pairs import Finder, Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.result import AuditResult, HealthReport

# Of each round, this many pairs get a plain look: those that moved most when coupled; more if
# nothing can be coupled.
_PLAIN_LOOKS = 4
_UNCOUPLED_LOOKS = 10
# Standard deviations beyond the claim at which a pair is explored, and at which one beyond the
# domain is remarked on.
_PROMISING = 3.5
_REMARKABLE = 6.0
# A second look at a pair that seems promising has this many times as many draws.
_AGAIN = 4
# A smaller pair must show a share of what the larger one showed, but no more than what is surely
# certified. Where that is a lot, few draws are enough to see it.
_STILL = 0.7
_SURE = 6.0
_PLAIN_SIGHT = 12.0
_FEW = 100
# Rounds of shrinking, pairs in each, and how many of them get a second look.
_SHRINKS = 16
_CANDIDATES = 48
_CONFIRMED = 4
# Pairs that a worker looks at in one go.
_TOGETHER = 4
# Pairs without a promise that are explored all the same, so that the best of them is certified.
_EXPLORED = 3
# What a certificate beyond the domain may cost: a share of the failure probability, and draws per
# side.
_BEYOND_SHARE = 0.1
_BEYOND_SAMPLES = 10_000
# Pairs that a remark names.
_NAMED = 3


@dataclass(slots=True)
class Tally:
    """What became of the pairs of one family."""

    tried: int = 0
    refused: int = 0
    best: float = 0.0


@dataclass(slots=True)
class Shown:
    """A pair that was looked at, and what a plain look said of it."""

    attempt: Attempt
    pair: Pair
    score: float


@dataclass(slots=True)
class HuntRun(SearchRun):
    """A search with looks under way.

    Attributes:
        tallies: by family.
        seen: pairs that had a plain look.
        one_sided: pairs on which the mechanism failed for one input only, with its complaint.
        outside: leaks beyond the domain while it is not searched.
        unclaimed: why nothing is claimed about some pairs beyond the domain, which were left out.
    """

    finder: Search
    tallies: dict[str, Tally] = field(default_factory=dict)
    seen: list[Shown] = field(default_factory=list)
    one_sided: list[tuple[Pair, str]] = field(default_factory=list)
    outside: list[Shown] = field(default_factory=list)
    unclaimed: list[str] = field(default_factory=list)
    coupled: int = 0
    looks: int = 0
    first_refusal: str = ""
    certificate: str = ""
    _plain_number: int = 0
    _asked: int = 0

    def _audit(self) -> AuditResult:
        looking = self._looking()
        began = time.monotonic()
        deadline = self.run.sampler.runner.deadline
        attempts = []
        # before the first looks nothing is known about how long a certificate takes
        if deadline is not None:
            deadline.reserve = deadline.seconds / 2.0
        try:
            while attempts := self.finder.round():
                for each in sorted(self._look_at(looking, attempts), key=lambda each: -each.score):
                    if self._stops_at_refutation and self._hunt(looking, each):
                        return self._result()
                explored = f"{len(self.trials)} explored"
                self.run.settings.report_status(
                    f"{self.looks} of {self.finder.trials} pairs looked at, {explored}"
                )
                if (
                    limit := self.finder.max_seconds
                ) is not None and time.monotonic() - began > limit:
                    break
                self._keep_time()
        except OutOfTime as late:
            if deadline is None or deadline.is_over:
                raise
            self.late = str(late)
            made = [
                (each, pair) for each in attempts if (pair := self.finder.made(each)) is not None
            ]
            within = [Shown(*each, 0.0) for each in made if each[1].within is not False]
            self.seen = self.seen or within  # the first round hung: some pair of it may not
        self._take_all_time()
        # The best pairs that were not promising are explored, so that one of them can be certified.
        for shown in self.seen[: 0 if self._has_candidates else _EXPLORED]:
            self.trials.append(self._try(shown.pair))
            if self._is_decided():
                return self._result()
        if not self.trials and self.first_refusal:
            raise MechanismError(
                f"the mechanism failed on all of {self.looks} pairs, first with: {self.first_refusal}"
            )
        self._certify_outside()
        self._certify_best()
        return self._result()

    def _looking(self) -> Looking:
        return Looking(self.run.sampler.mechanism, self.run.settings.seed)

    def _look_at(self, looking: Looking, attempts: list[Attempt]) -> list[Shown]:
        """Coupled looks at all pairs of a round, plain ones at those that moved most; the finder is told."""
        pairs = [self.finder.made(attempt) for attempt in attempts]
        known = [
            (attempt, pair)
            for attempt, pair in zip(attempts, pairs, strict=True)
            if pair is not None
        ]
        looks = self._looked(looking, [(pair, 0) for _, pair in known])
        scores: list[float | None] = []
        for (attempt, pair), look in zip(known, looks, strict=True):
            tally = self.tallies.setdefault(attempt.family, Tally())
            tally.tried += 1
            self.coupled += look.coupled
            if look.failed == UNCLAIMED:
                self.unclaimed.append(look.said)
            elif look.failed == "both":
                tally.refused += 1
                self.first_refusal = self.first_refusal or look.said
            elif look.failed:
                self.one_sided.append((pair, look.said))
            scores.append(None if look.failed else look.score)
        most = _PLAIN_LOOKS if any(look.coupled for look in looks) else _UNCOUPLED_LOOKS
        chosen: list[int] = []
        for counts in (True, False):  # what is looked at in passing takes no look from the others
            usable = [place for place, look in enumerate(looks) if not look.failed]
            usable = [place for place in usable if self._counts(known[place][1]) is counts]
            chosen += sorted(usable, key=lambda place: -looks[place].score)[
                : most if counts else most // 2
            ]
            # One that moved less, too: what shows only in the distribution does not move.
            chosen += [
                place for place in usable[self.looks // len(looks) % 7 :: 7] if place not in chosen
            ][:1]
        tasks = [(known[place][1], PLAIN) for place in chosen]
        found = []
        for place, plain in zip(chosen, self._looked(looking, tasks), strict=True):
            attempt, pair = known[place]
            scores[place] = (
                None if plain.failed else max(plain.score, 1.0 + looks[place].score / 1000.0)
            )
            if not plain.failed:
                found.append(Shown(attempt, pair, plain.score))
                tally = self.tallies[attempt.family]
                tally.best = max(tally.best, plain.score)
        for score in scores:
            self.finder.ask()
            self.finder.tell(score)
        self.looks += len(looks)
        counted = [each for each in found if self._counts(each.pair)]
        outside = [
            each for each in found if not self._counts(each.pair) and each.score >= _REMARKABLE
        ]
        self.outside += [self._described(each) for each in outside]
        self.seen = sorted([*self.seen, *counted], key=lambda each: -each.score)[:50]
        return counted

    def _counts(self, pair: Pair) -> bool:
        return self.finder.beyond or pair.within is not False

    def _looked(self, looking: Looking, asked: list[tuple[Pair, int]]) -> list[Look]:
        """The looks at some pairs, wherever they are made; those that the journal knows are not repeated.

        Args:
            asked: pairs, and the draws per side of a plain look; 0 for a coupled one, which needs
                no number.
        """
        sampler = self.run.sampler
        journal = self.run.settings.journal
        tasks: list[LookRequest] = []
        unclaimed: dict[int, Look] = {}
        for place, (pair, n) in enumerate(asked):
            try:
                claim = self.run.question.about(pair).claim
            except InputError as error:
                # Inside the domain every pair must be judged; beyond it are values that have no
                # distance, like NaN.
                if pair.within is not False:
                    raise
                unclaimed[place] = Look(0.0, 0, failed=UNCLAIMED, said=str(error))
                continue
            number = self._plain_number + place + 1 if n else 0
            if isinstance(self.run.question, PairwiseQuestion):
                claim = coarse_claim(claim)
            tasks.append(LookRequest(number, pair, n, claim))
        self._plain_number += sum(n > 0 for _, n in asked)
        self._asked += 1
        name = f"looks {self._asked}"
        stored = journal.told(name) if journal.is_kept else None
        if stored is not None:
            looks = [Look(**each) for each in json.loads(stored)]
        else:
            together = [
                tasks[start : start + _TOGETHER] for start in range(0, len(tasks), _TOGETHER)
            ]
            looks = [look for some in sampler.runner.map(looking, together) for look in some]
            if journal.is_kept:
                journal.tell(name, json.dumps([asdict(look) for look in looks]))
        for look in looks:
            for side in (0, 1):
                sampler.drawn[side] += look.draws
            sampler.progress.advance(2 * look.draws)
        made = iter(looks)
        return [
            unclaimed[place] if place in unclaimed else next(made) for place in range(len(asked))
        ]

    def _hunt(self, looking: Looking, seen: Shown) -> bool:
        """Explores and certifies a pair that looks like a leak, as small as it can be; whether that decided."""
        if seen.score < _PROMISING:
            return False
        (again,) = self._looked(looking, [(seen.pair, _AGAIN * PLAIN)])
        if again.failed or again.score < _PROMISING:  # of many looks some are extreme by chance
            return False
        small = self._shrunk(looking, seen)
        for each in (small, seen) if small.attempt is not seen.attempt else (seen,):
            trial = self._try(each.pair)
            self.trials.append(trial)
            if self._is_decided():
                return True
            if trial.certified is not None or trial.failed:
                break
        return False

    def _shrunk(self, looking: Looking, seen: Shown) -> Shown:
        """The simplest pair that still looks like a leak."""
        builder = self.finder.builder
        if builder is None:
            return seen
        draws = _FEW if seen.score >= _PLAIN_SIGHT else PLAIN
        wanted = min(_STILL * seen.score, _SURE) * math.sqrt(draws / PLAIN)
        for _ in range(_SHRINKS):
            least = builder.complexity(seen.attempt)
            for ways in (builder.simpler, builder.without_two):
                simpler = [each for each in ways(seen.attempt) if builder.complexity(each) < least]
                simpler = sorted(simpler, key=builder.complexity)[:_CANDIDATES]
                made = [
                    (attempt, pair)
                    for attempt in simpler
                    if (pair := self.finder.made(attempt)) is not None
                ]
                made = [
                    each for each in made if self._counts(each[1]) or not self._counts(seen.pair)
                ]
                looks = self._looked(looking, [(pair, draws) for _, pair in made])
                shows = [
                    each for each, look in zip(made, looks, strict=True) if look.score >= wanted
                ]
                again = (
                    each
                    for each in shows[:_CONFIRMED]
                    if self._still_shows(looking, each[1], draws, wanted)
                )
                if (smaller := next(again, None)) is not None:
                    seen = Shown(*smaller, seen.score)
                    break
            else:
                break
        return self._described(seen)

    def _still_shows(self, looking: Looking, pair: Pair, draws: int, wanted: float) -> bool:
        """A second look with more draws: of many smaller pairs, some look like leaks by chance."""
        (again,) = self._looked(looking, [(pair, _AGAIN * draws)])
        return again.score >= max(0.75 * math.sqrt(_AGAIN) * wanted, _PROMISING)

    def _described(self, seen: Shown) -> Shown:
        builder = self.finder.builder
        return (
            seen
            if builder is None
            else replace(seen, pair=replace(seen.pair, note=builder.describe(seen.attempt)))
        )

    def _certify_outside(self) -> None:
        """A certificate of its own share for the clearest leak beyond the domain."""
        run = self.run
        if not self.outside or not run.question.judged:
            return
        best = self._shrunk(self._looking(), max(self.outside, key=lambda each: each.score))
        self.outside = [best, *(each for each in self.outside if each.pair.note != best.pair.note)]
        number = len(run.pairs)
        run.pairs.append(best.pair)
        share = run.budget.spend(
            _BEYOND_SHARE * run.budget.remaining, "certificate beyond the domain"
        )
        try:
            explored = self._explore(number, best.pair)
            samples = min(run.settings.samples, _BEYOND_SAMPLES)
            bound = self._certify(number, explored, samples, share).lower_bound
        except MechanismError:
            return
        symbol = run.question_about(number).claim.symbol
        self.certificate = (
            f", certified with {symbol} ≥ {bound:.3g} at a confidence of {1.0 - share:.4g}"
        )

    def _result(self) -> AuditResult:
        result = super(HuntRun, self)._result()
        first = result.findings[0]
        first = replace(first, details={**first.details, "tried": self._tried(result)})
        return replace(
            result,
            findings=(first, *result.findings[1:]),
            health=(*result.health, *self._remarks()),
        )

    def _tried(self, result: AuditResult) -> dict[str, Any]:
        """What was looked at, as plain data."""
        pair = result.witness.pair if result.witness is not None else None
        by_size = sorted(self.tallies.items(), key=lambda each: -each[1].tried)
        search = self.finder
        families = {
            name: {**asdict(tally), "best": round(tally.best, 2)} for name, tally in by_size
        }
        tried = {
            "relation": search.relation,
            "beyond": search.beyond,
            "looks": self.looks,
            "trials": search.trials,
        }
        draws = {"coupled look": COUPLED, "plain look": PLAIN, "explored": search.samples}
        tried |= {"coupled": self.coupled, "draws": draws, "explored": len(self.trials)}
        tried |= {"within": None if pair is None else pair.within, "families": families}
        tried["one_sided"] = [stored_pair(pair) for pair, _ in self.one_sided[:_NAMED]]
        return {**tried, "outside": [stored_pair(each.pair) for each in self._clearest()]}

    def _clearest(self) -> list[Shown]:
        best: dict[str, Shown] = {}
        for each in self.outside:
            best.setdefault(each.pair.note, each)
        return list(best.values())[:_NAMED]

    def _remarks(self) -> Sequence[HealthReport]:
        """What the search saw besides its verdict."""
        reports = []
        for place, each in enumerate(self._clearest()):
            pair = each.pair
            certified = "" if place else self.certificate
            text = f"with {pair.note}, which is outside the domain, the mechanism looks like a leak{certified}: "
            text += f"{pair.left!r:.200} and {pair.right!r:.200}; if your data can hold it, audit with beyond=True"
            reports.append(HealthReport("beyond-domain", text, untrusted=False))
        if self.one_sided:
            (pair, said), n = self.one_sided[0], len(self.one_sided)
            text = f"on {n} pair{'s' if n > 1 else ''} the mechanism raised for one input only, which may reveal it: "
            text += f"{pair.left!r:.200} and {pair.right!r:.200} ({said:.200}); "
            text += "from_callable(…, on_error='outcome') makes a failed run an output"
            reports.append(HealthReport("one-sided-failure", text, untrusted=False))
        if self.unclaimed:
            text = f"{len(self.unclaimed)} pairs outside the domain were left out, because the mechanism claims nothing "
            text += f"about them; the first: {self.unclaimed[0]:.300}"
            reports.append(HealthReport("unclaimed-inputs", text, untrusted=False))
        refused = sum(tally.refused for tally in self.tallies.values())
        if refused:
            text = f"the mechanism refused {refused} of {self.looks} pairs, first with: {self.first_refusal:.300}"
            reports.append(HealthReport("refused-inputs", text, untrusted=False))
        return reports


def run_search(
    mechanism: Mechanism, finder: Finder, question: AnyQuestion, settings: Settings
) -> AuditResult:
    """Audits the pairs that a finder proposes; `check_search` must have accepted them."""
    settings = settings.noting(mechanism=mechanism.name, seeded_mechanism=mechanism.is_seeded)
    sampler = Sampler(
        mechanism, settings.seed, settings.runner, settings.progress, settings.journal
    )
    run = AuditRun(
        [],
        question,
        settings,
        sampler,
        ErrorBudget(settings.failure_probability),
        time.perf_counter(),
    )
    finder = copy.deepcopy(finder)  # the user's own can be used again
    return (HuntRun(run, finder) if isinstance(finder, Search) else SearchRun(run, finder)).audit()
