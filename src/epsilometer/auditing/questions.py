"""What is asked of a mechanism: one claim, or its own promise about each pair of inputs."""

from collections.abc import Callable
from dataclasses import dataclass

from epsilometer.claims import Claim
from epsilometer.inputs import Pair

# Added to a claim before a bound is divided by it: a bound of nearly 0 against a claim of 0 shows
# nothing.
_LEAST_CLAIM = 0.1


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a mechanism.

    Attributes:
        claim: the claim; for a measurement the strictest one of its notion.
        judged: whether a verdict is requested.
    """

    claim: Claim
    judged: bool

    def about(self, pair: Pair) -> "Question":
        """The question about one pair: the same as about any other."""
        return self

    def score(self, pair: Pair, bound: float) -> float:
        """How much a bound says against the claim, to be compared among pairs."""
        return bound


@dataclass(frozen=True, slots=True)
class PairwiseQuestion:
    """Whether a mechanism keeps its own promise, which is another one for every pair of inputs.

    Attributes:
        promise: the claim about a pair. Raises an InputError where it is not known.
        judged: whether a verdict is requested.
    """

    promise: Callable[[Pair], Claim]
    judged: bool = True

    def about(self, pair: Pair) -> Question:
        """The question about one pair, with the claim about it."""
        return Question(self.promise(pair), self.judged)

    def score(self, pair: Pair, bound: float) -> float:
        """A bound as a share of what is claimed about its own pair: a larger one may be allowed."""
        return share_of_claim(bound, self.promise(pair))


AnyQuestion = Question | PairwiseQuestion


def share_of_claim(bound: float, claim: Claim) -> float:
    """How much a bound says against its claim, to be compared with bounds against other claims."""
    return bound / (claim.value + _LEAST_CLAIM)
