"""Rounds of a search: which candidates get how much attention, and what was seen of them.

All candidates of a round get a coupled screening, those that moved most a plain one. The finder
receives the scores. What the search saw besides its verdict becomes part of the report.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from epsilometer.auditing.screening import (
    COUPLED_DRAWS,
    PLAIN_DRAWS,
    UNCLAIMED,
    ScreenedPair,
    Screening,
    ScreeningResult,
)
from epsilometer.auditing.shrinking import describe_pair
from epsilometer.auditing.trials import stored_pair
from epsilometer.inputs.finders.rounds import PairCandidate, RoundFinder
from epsilometer.inputs.pairs import Pair
from epsilometer.result import HealthReport

# Candidates of each round that get a plain screening: those that moved most when coupled.
_PLAIN_PER_ROUND = 4
# The same if nothing can be coupled, so that movements say less.
_PLAIN_PER_UNCOUPLED_ROUND = 10
# One of so many others gets a plain screening, too: what shows only in the distribution does not
# move.
_EVERY_SO_MANY = 7
# Standard errors beyond the claim from which on a pair outside the domain is remarked on.
_REMARKABLE_SCORE = 6.0
# Screened pairs that are remembered, those with the highest scores.
_MOST_REMEMBERED = 50
# Pairs that a remark names.
_MOST_NAMED = 3


@dataclass(slots=True)
class FamilyCounts:
    """What became of the candidates of one family.

    Attributes:
        tried: how many were screened.
        refused: on how many the mechanism raised for both inputs.
        best: the highest score of a plain screening.
    """

    tried: int = 0
    refused: int = 0
    best: float = 0.0


@dataclass(frozen=True, slots=True)
class OneSidedFailure:
    """A pair on which the mechanism raised for one input only."""

    pair: Pair
    error: str


class ScreenedRounds:
    """Screens the rounds of a finder, and remembers what it saw.

    Attributes:
        candidates: those of the round that was screened last, or began to be.
        best: pairs that count and had a plain screening, the highest scores first.
        outside: pairs outside the domain that do not count and look like a leak.
        n_screened: candidates that were screened.
        n_coupled: those that could be run with the same random numbers on both sides.
        first_refusal: what the mechanism raised when it first refused both inputs of a pair.
        certificate: what was certified of the clearest leak outside the domain, as a clause.
    """

    def __init__(self, finder: RoundFinder, screening: Screening) -> None:
        self._finder = finder
        self._screening = screening
        self._families: dict[str, FamilyCounts] = {}
        self._one_sided: list[OneSidedFailure] = []
        # Why nothing is claimed about some pairs outside the domain, which were left out.
        self._unclaimed: list[str] = []
        self.candidates: Sequence[PairCandidate] = ()
        self.best: list[ScreenedPair] = []
        self.outside: list[ScreenedPair] = []
        self.n_screened = 0
        self.n_coupled = 0
        self.first_refusal = ""
        self.certificate = ""

    def screen(self, candidates: Sequence[PairCandidate]) -> list[ScreenedPair]:
        """Screens a round and reports the scores to the finder.

        Returns:
            The pairs that count and had a plain screening, the highest scores first.
        """
        self.candidates = candidates
        coupled = self._screening.coupled([candidate.pair for candidate in candidates])
        for candidate, result in zip(candidates, coupled, strict=True):
            self._record(candidate, result)
        scores = [None if result.failed_sides else result.score for result in coupled]

        chosen = self._choose_for_plain(candidates, coupled)
        plain = self._screening.plain([candidates[place].pair for place in chosen])
        screened: list[ScreenedPair] = []
        for place, result in zip(chosen, plain, strict=True):
            if result.failed_sides:
                scores[place] = None
                continue
            # Above 1, so that it ranks before all that were only coupled; ties by movement.
            scores[place] = max(result.score, 1.0 + coupled[place].score / 1000.0)
            candidate = candidates[place]
            screened.append(
                ScreenedPair(candidate=candidate, pair=candidate.pair, score=result.score)
            )
            family = self._families[candidate.family]
            family.best = max(family.best, result.score)
        self._finder.tell_round(scores)
        self.n_screened += len(candidates)

        counting = [pair for pair in screened if self._finder.counts(pair.candidate)]
        for pair in screened:
            if not self._finder.counts(pair.candidate) and pair.score >= _REMARKABLE_SCORE:
                self.outside.append(describe_pair(pair, self._finder))
        self.best = _by_score([*self.best, *counting])[:_MOST_REMEMBERED]
        return _by_score(counting)

    def _record(self, candidate: PairCandidate, result: ScreeningResult) -> None:
        family = self._families.setdefault(candidate.family, FamilyCounts())
        family.tried += 1
        self.n_coupled += result.is_coupled
        if result.failed_sides == UNCLAIMED:
            self._unclaimed.append(result.error)
        elif result.failed_sides == "both":
            family.refused += 1
            self.first_refusal = self.first_refusal or result.error
        elif result.failed_sides:
            self._one_sided.append(OneSidedFailure(candidate.pair, result.error))

    def _choose_for_plain(
        self, candidates: Sequence[PairCandidate], coupled: Sequence[ScreeningResult]
    ) -> list[int]:
        """Returns the places of the candidates that get a plain screening.

        Pairs that count are chosen first; those that do not take no place from them.
        """
        if any(result.is_coupled for result in coupled):
            limit = _PLAIN_PER_ROUND
        else:
            limit = _PLAIN_PER_UNCOUPLED_ROUND
        usable = [place for place, result in enumerate(coupled) if not result.failed_sides]
        counting = [place for place in usable if self._finder.counts(candidates[place])]
        others = [place for place in usable if not self._finder.counts(candidates[place])]
        # The round's number if all rounds are of equal size.
        turn = self.n_screened // len(candidates)
        chosen: list[int] = []
        for places, most in ((counting, limit), (others, limit // 2)):
            by_movement = sorted(places, key=lambda place: -coupled[place].score)
            chosen += by_movement[:most]
            moved_less = [
                place
                for place in places[turn % _EVERY_SO_MANY :: _EVERY_SO_MANY]
                if place not in chosen
            ]
            chosen += moved_less[:1]
        return chosen

    # --- for the report

    def details(self, n_explored: int, is_within: bool | None) -> dict[str, Any]:
        """Returns what was screened, as plain data.

        Args:
            n_explored: pairs that were explored.
            is_within: whether the pair of the result belongs to the domain.
        """
        families: dict[str, Any] = {}
        for name, counts in sorted(self._families.items(), key=lambda item: -item[1].tried):
            families[name] = {**asdict(counts), "best": round(counts.best, 2)}
        return {
            "relation": self._finder.relation,
            "beyond": self._finder.beyond,
            "looks": self.n_screened,
            "trials": self._finder.trials,
            "coupled": self.n_coupled,
            "draws": {
                "coupled look": COUPLED_DRAWS,
                "plain look": PLAIN_DRAWS,
                "explored": self._finder.samples,
            },
            "explored": n_explored,
            "within": is_within,
            "families": families,
            "one_sided": [stored_pair(failure.pair) for failure in self._one_sided[:_MOST_NAMED]],
            "outside": [stored_pair(screened.pair) for screened in self._named_outside()],
        }

    def remarks(self) -> list[HealthReport]:
        """Returns what the search saw besides its verdict."""
        reports = []
        for place, screened in enumerate(self._named_outside()):
            pair = screened.pair
            certified = self.certificate if place == 0 else ""
            text = (
                f"with {pair.note}, which is outside the domain, outputs seem to reveal it"
                f"{certified}: {pair.left!r:.200} and {pair.right!r:.200}; if your data can hold "
                "it, audit with beyond=True"
            )
            reports.append(HealthReport("beyond-domain", text, untrusted=False))
        if self._one_sided:
            n_failures = len(self._one_sided)
            first = self._one_sided[0]
            text = (
                f"on {n_failures} pair{'s' if n_failures > 1 else ''} the mechanism raised for one "
                f"input only, which may reveal it: {first.pair.left!r:.200} and "
                f"{first.pair.right!r:.200} ({first.error:.200}); "
                "from_callable(…, on_error='outcome') makes a failed run an output"
            )
            reports.append(HealthReport("one-sided-failure", text, untrusted=False))
        if self._unclaimed:
            text = (
                f"{len(self._unclaimed)} pairs outside the domain were left out, because the "
                f"mechanism claims nothing about them; the first: {self._unclaimed[0]:.300}"
            )
            reports.append(HealthReport("unclaimed-inputs", text, untrusted=False))
        n_refused = sum(counts.refused for counts in self._families.values())
        if n_refused:
            text = (
                f"the mechanism refused {n_refused} of {self.n_screened} pairs, first with: "
                f"{self.first_refusal:.300}"
            )
            reports.append(HealthReport("refused-inputs", text, untrusted=False))
        return reports

    def _named_outside(self) -> list[ScreenedPair]:
        """Returns the first leak outside the domain of each description."""
        by_note: dict[str, ScreenedPair] = {}
        for screened in self.outside:
            by_note.setdefault(screened.pair.note, screened)
        return list(by_note.values())[:_MOST_NAMED]


def _by_score(screened: list[ScreenedPair]) -> list[ScreenedPair]:
    return sorted(screened, key=lambda pair: -pair.score)
