"""Method `hockey-stick`: the event of a classifier on the weighted mixture of both distributions.

Example:
    >>> em.audit(em.zoo.dp_mean(), samples=2000, seed=0, method="hockey-stick").verdict
    <Verdict.REFUTED: 'refuted'>
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.bounds import Counts
from epsilometer.bounds.ratio import value_of_excess
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.claims.base import check_at_least, check_choice
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, Method, Task
from epsilometer.methods.events import EventProposal
from epsilometer.methods.events.learning import learn_scored
from epsilometer.methods.events.prediction import predict
from epsilometer.methods.log_ratios import Fit, Way, learn_ways, way_of
from epsilometer.methods.published import own_options
from epsilometer.methods.trees import fit_trees
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding

# ε of the mixture that are tried when nothing is claimed.
_MIXTURES: Floats = np.concatenate([[0.0], np.geomspace(0.02, 12.0, 36)])
# Spreads of the training draws that a prediction subtracts; with one ε few candidates can be lucky.
_DOUBT_FIXED = 1.0
_DOUBT_FREE = 3.0


def check_claim(name: str, claim: Claim) -> PureDP | ApproxDP:
    """Pure and approximate privacy only."""
    if not isinstance(claim, PureDP | ApproxDP):
        raise InputError(
            f"method={name!r} bounds PureDP and ApproxDP, not {type(claim).__name__}: its divergence is the greatest "
            "P(E) − e^ε·Q(E), which says nothing about that notion; use method='auto'"
        )
    return claim


def check_epsilon(epsilon: float | None) -> None:
    """The ε of a mixture: a finite number of at least 0, or None."""
    if epsilon is not None:
        check_at_least("epsilon", epsilon, 0.0)


def mixtures_of(claim: PureDP | ApproxDP, wished: float | None) -> Floats:
    """The ε to try: the requested one, the claimed one, or all when nothing is claimed."""
    if wished is not None and not isinstance(claim, ApproxDeltaDP):
        return np.array([float(wished)])
    return (
        np.array([claim.epsilon])
        if isinstance(claim, ApproxDeltaDP) or claim.epsilon > 0.0
        else _MIXTURES
    )


def choose_excess(ways: Sequence[Way], task: Task, mixtures: Floats) -> tuple[Candidate, float]:
    """The event with the best predicted bound over all ways, fits, directions and ε, and its ε."""
    choices = [(way, fit, flipped) for way in ways for fit in way.fits for flipped in (False, True)]
    looks = [(_best_mixture(*choice, task, mixtures), *choice) for choice in choices]
    (predicted, epsilon, p, q), way, fit, flipped = max(looks, key=lambda look: look[0][0])
    above, below = (one + other for one, other in way.oriented(flipped))
    chosen = _mask(fit(above, below), np.array([epsilon]), above + below)[0]
    return Candidate(Event(way.partition, chosen).simplified(), flipped, p, q, predicted), epsilon


def _best_mixture(
    way: Way, fit: Fit, flipped: bool, task: Task, mixtures: Floats
) -> tuple[float, float, float, float]:
    """The best predicted bound, its ε, and the event's p and q; learned on one half, counted on the other."""
    above, below = way.oriented(flipped)
    hits = np.zeros(len(mixtures))
    misses = np.zeros(len(mixtures))
    for half in (0, 1):
        masks = _mask(fit(above[half], below[half]), mixtures, above[half] + below[half])
        hits += masks @ above[1 - half]
        misses += masks @ below[1 - half]
    sizes = max(int(sum(map(np.sum, above))), 1), max(int(sum(map(np.sum, below))), 1)
    # One more on the other side: an event never seen there is rare, not impossible.
    p = hits / sizes[0]
    q = (misses + 1.0) / (sizes[1] + 1.0)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    doubt = _DOUBT_FIXED if len(mixtures) == 1 else _DOUBT_FREE
    predicted = predict(task, p, q, sizes, n_fresh, doubt)[0]
    best = int(np.argmax(predicted))
    return float(predicted[best]), float(mixtures[best]), float(p[best]), float(q[best])


def _mask(scores: Floats, mixtures: Floats, seen: Integers) -> Booleans:
    """Which cells each classifier assigns to P, shape (mixtures, cells): at least one seen cell, never all of them."""
    known = np.flatnonzero(seen > 0)
    ranked = known[np.argsort(scores[known], kind="stable")]
    masks = scores > mixtures[:, None]
    masks[:, ranked[-1:]] = True
    masks[:, ranked[:-1][:1]] = False
    return masks


# The sizes of the mixture's two parts are random; with this many spreads to spare they hardly ever
# exceed the draws.
_SPARE = 6.5


def mixture_size(n_above: int, n_below: int, epsilon: float) -> int:
    """The largest sample of the mixture for which these draws practically always suffice."""
    p = 1.0 / (1.0 + math.exp(min(epsilon, 700.0)))
    return int(
        min(
            max(n - _SPARE * math.sqrt(n), 0.0) / share
            for n, share in ((n_above, p), (n_below, 1.0 - p))
        )
    )


def published_excess(
    above: Counts,
    below: Counts,
    epsilon: float,
    failure_probability: float,
    *,
    rng: np.random.Generator,
) -> float:
    """The published lower bound on P(E) − e^ε·Q(E); may be negative.

    Args:
        above: counts of the event under P.
        below: under Q.
        epsilon: of the mixture.
        failure_probability: β.
        rng: which draws make up the mixture; it must depend neither on the draws nor on what chose
            the event.

    Guarantee: exact over the draws and `rng` together, if the event was fixed before both:
        independent draws are exchangeable, so a random part of them is a sample of the mixture, and
        Hoeffding's inequality holds for every size. Looser than the exact test.
    """
    grow = math.exp(min(epsilon, 700.0))
    m = mixture_size(above.trials, below.trials, epsilon)
    from_above = int(rng.binomial(m, 1.0 / (1.0 + grow)))
    rest = m - from_above
    if m < 1 or from_above > above.trials or rest > below.trials:
        return -grow
    hits = int(rng.hypergeometric(above.hits, above.trials - above.hits, from_above))
    alarms = int(rng.hypergeometric(below.hits, below.trials - below.hits, rest))
    accuracy = (hits + rest - alarms) / m
    return (1.0 + grow) * (accuracy - math.sqrt(-math.log(failure_probability) / (2.0 * m))) - grow


NAME = "hockey-stick"
CLASSIFIERS = ("auto", "cells", "boosting")
CERTIFICATES = ("exact", "published")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `hockey-stick`.

    Attributes:
        classifier: "cells" (repeated values, intervals, an additive logit of vectors), "boosting"
            (small trees, for outputs of several columns), or "auto": the better of both on training
            draws.
        epsilon: of the mixture; by default the claimed ε, or chosen on training draws when nothing
            is claimed.
        certificate: "exact" counts the classifier's event in the exact test; "published" is the
            paper's Hoeffding bound on the accuracy, for reproduction: as sound, but looser.
    """

    classifier: str = "auto"
    epsilon: float | None = None
    certificate: str = "exact"

    def __post_init__(self) -> None:
        check_choice("classifier", self.classifier, CLASSIFIERS)
        check_choice("certificate", self.certificate, CERTIFICATES)
        check_epsilon(self.epsilon)


@dataclass(frozen=True, slots=True)
class ClassifierProposal(EventProposal):
    """The outputs that a classifier assigns to the larger distribution, to be counted on fresh draws.

    Attributes:
        epsilon: of the mixture.
        certificate: "exact" or "published".
    """

    epsilon: float
    certificate: str

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """The bound from the counts of the fresh draws."""
        finding = EventProposal.certify(self, left, right, pair, failure_probability)
        if self.certificate == "exact":
            return replace(finding, method=NAME, details={**finding.details, "mixture_epsilon": self.epsilon})
        above, below = self.candidate.oriented(left, right)
        rng = self.task.proving_rng()
        excess = published_excess(above, below, self.epsilon, failure_probability, rng=rng)
        bound = value_of_excess(check_claim(NAME, self.task.claim), self.epsilon, excess)
        size = mixture_size(above.trials, below.trials, self.epsilon)
        details: dict[str, object] = {
            "mixture_epsilon": self.epsilon,
            "mixture_size": size,
            "excess_lower": excess,
        }
        details["certificate"] = (
            "published: Hoeffding's bound on the accuracy, from the draws that fit the mixture"
        )
        return replace(finding, method=NAME, lower_bound=bound, details=details)

    def p_value(self, left: Counts, right: Counts, failure_probability: float) -> float | None:
        """That of the exact certificate; the published one has none."""
        if self.certificate != "exact":
            return None
        return EventProposal.p_value(self, left, right, failure_probability)


class HockeyStickMethod(Method):
    """Learns to distinguish the two distributions when one weighs e^ε, and counts what it assigns to the other."""

    name = NAME
    summary = "the event of a classifier on the mixture weighted by e^ε; PureDP and ApproxDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        self.options = own_options(NAME, "hockey_stick", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Pure and approximate privacy only; called before anything is drawn."""
        check_claim(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ClassifierProposal:
        """The classifier with the best predicted bound."""
        mixtures = mixtures_of(check_claim(NAME, task.claim), self.options.epsilon)
        boosted = (
            learn_scored(left, right, fit_trees) if self.options.classifier != "cells" else None
        )
        ways = [] if boosted is None else [way_of(boosted)]
        # single numbers need no trees: cells see everything
        if self.options.classifier != "boosting" or not ways:
            ways = learn_ways(left, right) + ways
        candidate, epsilon = choose_excess(ways, task, mixtures)
        return ClassifierProposal(candidate, task, epsilon, self.options.certificate)
