"""Finders whose pairs are screened: they propose rounds of candidates and may make them simpler.

A plain finder is asked for one pair at a time, and an audit explores each with thousands of draws.
A finder of rounds proposes many pairs at once. The audit screens all of them with a few draws,
reports a score for each, and spends more draws only on those that look like a leak. Before it
certifies such a pair, it asks the finder for simpler ones.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from epsilometer.errors import InputError
from epsilometer.inputs.finders.base import PointFinder, ScoredPoint, check_score
from epsilometer.inputs.pairs import Finder, Pair


@dataclass(frozen=True, slots=True)
class PairCandidate:
    """A pair that a finder proposes for screening.

    Attributes:
        pair: the inputs. Its `note` says why it is tried, and its `within` whether both inputs
            belong to the domain.
        family: the kind of pair, for the report, which counts pairs by family.
        recipe: whatever the finder needs in order to make simpler candidates. The audit never
            looks at it.
    """

    pair: Pair
    family: str = "pairs"
    recipe: Any = None


class RoundFinder(PointFinder):
    """A finder that proposes rounds of candidates, which an audit screens together.

    A subclass has a `name` and writes `next_round`. Everything else has a default: without
    `simpler`, for example, pairs are certified as they were proposed.

    Attributes:
        screens: marks finders whose rounds are screened; True here.
        relation: how the two inputs of a pair are neighbours, for the report.
        beyond: whether pairs outside the domain count like all others. If not, they are screened in
            passing, and a leak there is only remarked on.
        max_seconds: no further round is screened after this many seconds; None for no limit. What
            was found until then is certified.
    """

    screens: ClassVar[bool] = True
    relation: str = "its own rule"
    beyond: bool = False
    max_seconds: float | None = None

    def __init__(
        self,
        *,
        trials: int = 1000,
        samples: int = 4000,
        seed: int = 0,
        stop_at_refutation: bool = True,
    ) -> None:
        super().__init__(
            trials=trials, samples=samples, seed=seed, stop_at_refutation=stop_at_refutation
        )
        # Candidates of the round under way that have no score yet.
        self._pending: list[PairCandidate] = []
        self._rounds_begun = 0

    # --- what a subclass writes

    @abstractmethod
    def next_round(self, number: int) -> Sequence[PairCandidate]:
        """Returns the candidates of a round; an empty one ends the search.

        It may depend on `self.scores`, the seed and earlier rounds, and on nothing else. Rounds are
        asked for in order. Round 0 starts afresh: an interrupted search proposes all rounds again.

        Args:
            number: of the round, from 0.
        """

    def simpler(self, candidate: PairCandidate) -> Iterable[PairCandidate]:
        """Returns candidates that are simpler than this one, the simplest first.

        Each must be strictly simpler, so that shrinking ends. An audit takes the first ones that
        still look like a leak, and asks again.
        """
        return ()

    def simpler_fallback(self, candidate: PairCandidate) -> Iterable[PairCandidate]:
        """Returns simpler candidates for when none of `simpler` still looks like a leak."""
        return ()

    def describe_candidate(self, candidate: PairCandidate) -> str:
        """Returns what is special about a pair, in a few words for the report."""
        return candidate.pair.note

    def counts(self, candidate: PairCandidate) -> bool:
        """Returns whether a leak of this pair refutes the claim, or is only remarked on."""
        return self.beyond or candidate.pair.within is not False

    # --- what an audit calls

    @property
    def scores(self) -> list[float | None]:
        """The scores of all candidates so far, in the order in which they were proposed."""
        return [trial.score for trial in self._scored]

    def propose_round(self) -> list[PairCandidate]:
        """Returns the candidates of the round under way that have no score yet.

        It is the next round if all have one; empty after the last trial.
        """
        if not self._pending and len(self._scored) < self.trials:
            self._pending = list(self.next_round(self._rounds_begun))
            if self._pending:
                self._rounds_begun += 1
        return self._pending[: self.trials - len(self._scored)]

    def tell_round(self, scores: Sequence[float | None]) -> None:
        """Receives a score for each candidate of `propose_round`; None for one that has none."""
        expected = len(self.propose_round())
        if len(scores) != expected:
            raise InputError(
                f"scores: {len(scores)} for a round of {expected} candidates; give one for each"
            )
        for score in scores:
            point = (float(len(self._scored)),)
            self._scored.append(ScoredPoint(point, check_score(score)))
        self._pending = []
        self._asked = None

    def ask(self) -> Pair | None:
        """Returns the next pair, the same until `tell` is called; None if none is left."""
        if not self.propose_round():
            return None
        return super().ask()

    def tell(self, score: float | None) -> None:
        """Receives the score of the pair that was asked for last; None if it has none."""
        super().tell(score)
        self._pending.pop(0)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state; the rounds follow from the scores."""
        super().restore(state)
        trials = self._scored
        self._scored = []
        self._pending = []
        self._rounds_begun = 0
        for trial in trials:
            if not self.propose_round():
                raise InputError(
                    f"this is not the state of a finder: it has {len(trials)} scores, and the "
                    f"search ends after {len(self._scored)}"
                )
            self._scored.append(trial)
            self._pending.pop(0)

    def _knows(self, point: tuple[float, ...]) -> bool:
        return len(point) == 1 and point[0] in range(self.trials)

    def _pair(self, point: tuple[float, ...]) -> Pair:
        return self._pending[0].pair


def is_screened(finder: Finder) -> TypeGuard[RoundFinder]:
    """Returns whether an audit screens the pairs of a finder in rounds.

    Any object with `screens = True` that has the methods of `RoundFinder` will do.
    """
    return bool(getattr(finder, "screens", False))
