"""Method `hockey-stick`: the event of a classifier on the weighted mixture of both distributions.

A classifier separates draws of P from draws of Q in the mixture with weights 1 : e^ε. The set E
that it assigns to P maximises P(E) − e^ε·Q(E), the hockey-stick divergence of order e^ε, which
(ε, δ)-privacy bounds by δ.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Lemma 4.9, Proposition 4.12, Algorithms 5 and 6.

Example:
    >>> em.audit(em.zoo.dp_mean(), samples=2000, seed=0, method="hockey-stick").verdict
    <Verdict.REFUTED: 'refuted'>
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.bounds import Counts
from epsilometer.bounds.excess import value_of_excess
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.claims.base import check_at_least, check_choice
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Candidate, Method, Task
from epsilometer.methods.events import EventProposal
from epsilometer.methods.forecast import predict
from epsilometer.methods.log_ratios import Fit, LogRatioCandidates, value_log_ratios, with_fits
from epsilometer.methods.partitions import learn_scored
from epsilometer.methods.published.adapters import options_or_default
from epsilometer.methods.published.auditorium.proportions import ProportionBound, find_proportion
from epsilometer.methods.scores.trees import fit_trees
from epsilometer.one_line import fields_on_one_line
from epsilometer.outputs import Event, Outputs
from epsilometer.result import Finding

NAME = "hockey-stick"
CLASSIFIERS = ("auto", "cells", "boosting")
CERTIFICATES = ("exact", "published")

_GUARANTEE_OF_OWN_BOUND = "conditional: the given function is a lower bound on a proportion"

# Values of ε for the mixture that are tried when nothing is claimed: 0, and up to a divergence that
# no practical sample shows.
_MIXTURES: Floats = np.concatenate([[0.0], np.geomspace(0.02, 12.0, 36)])
# Standard errors of the training draws that a prediction subtracts when ε is given: few candidates
# compete, so the selection bias is small.
_PENALTY_FIXED_EPSILON = 1.0
# The same when ε is chosen, too, among the values above.
_PENALTY_FREE_EPSILON = 3.0
# e^700 is near the largest float.
_LARGEST_EXPONENT = 700.0
# The sizes of the mixture's two parts are random. This many standard deviations are left unused, so
# that a part hardly ever needs more draws than there are.
_SPARE_DEVIATIONS = 6.5


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
            paper's bound on the accuracy, for reproduction: as sound, but looser.
        proportion: p̂ of the published bound: "hoeffding", "chernoff", "clopper-pearson", or a
            function of hits, trials and the failure probability. With a function of your own the
            guarantee is conditional on it.
    """

    classifier: str = "auto"
    epsilon: float | None = None
    certificate: str = "exact"
    proportion: str | ProportionBound = "hoeffding"

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        check_choice("classifier", self.classifier, CLASSIFIERS)
        check_choice("certificate", self.certificate, CERTIFICATES)
        find_proportion(self.proportion)
        if self.certificate == "exact" and self.proportion != "hoeffding":
            raise InputError(
                f"proportion={self.proportion!r:.100} is a setting of the published bound: give "
                "certificate='published' too, or leave it out; the exact test has no p̂"
            )
        check_epsilon(self.epsilon)


@dataclass(frozen=True, slots=True)
class ClassifierProposal(EventProposal):
    """The outputs that a classifier assigns to P, to be counted on fresh draws.

    Attributes:
        epsilon: of the mixture.
        certificate: "exact" or "published".
        proportion: p̂ of the published bound.
    """

    epsilon: float
    certificate: str
    proportion: str | ProportionBound = "hoeffding"

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """Returns the bound from the counts of the fresh draws."""
        if self.certificate == "published":
            return self._certify_as_published(left, right, pair, failure_probability)
        finding = EventProposal.certify(self, left, right, pair, failure_probability)
        return replace(
            finding, method=NAME, details={**finding.details, "mixture_epsilon": self.epsilon}
        )

    def _certify_as_published(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        above, below = self.candidate.oriented(left, right)
        excess = published_excess(
            above,
            below,
            self.epsilon,
            failure_probability,
            rng=self.task.proving_rng(),
            proportion=self.proportion,
        )
        details: dict[str, Any] = {
            "mixture_epsilon": self.epsilon,
            "mixture_size": mixture_size(above.trials, below.trials, self.epsilon),
            "excess_lower": excess,
            "certificate": (
                f"published: a bound on the accuracy ({_name_of(self.proportion)}), from the draws "
                "that fit the mixture"
            ),
        }
        claim = check_claim(NAME, self.task.claim)
        return self.finding(
            left,
            right,
            pair,
            failure_probability,
            method=NAME,
            lower_bound=value_of_excess(claim, self.epsilon, excess),
            guarantee=_GUARANTEE_OF_OWN_BOUND if callable(self.proportion) else "exact",
            details=details,
        )

    def p_value(self, left: Counts, right: Counts, failure_probability: float) -> float | None:
        """That of the exact certificate; the published one has none."""
        if self.certificate != "exact":
            return None
        return EventProposal.p_value(self, left, right, failure_probability)


class HockeyStickMethod(Method):
    """Learns to separate P from Q with Q weighing e^ε times as much, and counts P's outputs."""

    name = NAME
    summary = (
        "the event of a classifier on the mixture weighted by e^ε; PureDP and ApproxDP "
        "(DP-Auditorium)"
    )
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        self.options = options_or_default(NAME, "hockey_stick", Options, options)

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Refuses claims other than pure and approximate privacy, before anything is drawn."""
        check_claim(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ClassifierProposal:
        """Returns the classifier with the best predicted bound."""
        claim = check_claim(NAME, task.claim)
        mixtures = mixtures_of(claim, self.options.epsilon)
        classifiers = learn_classifiers(left, right, self.options.classifier)
        choice = choose_excess(classifiers, task, mixtures)
        return ClassifierProposal(
            candidate=choice.candidate,
            task=task,
            epsilon=choice.epsilon,
            certificate=self.options.certificate,
            proportion=self.options.proportion,
        )


def learn_classifiers(left: Outputs, right: Outputs, classifier: str) -> list[LogRatioCandidates]:
    """Returns the cells on which classifiers are learned: by values, by trees, or both.

    Args:
        left: training outputs of the left.
        right: training outputs of the right.
        classifier: one of `CLASSIFIERS`.
    """
    boosted = None
    if classifier != "cells":
        boosted = learn_scored(left, right, fit_trees)
    partitions: list[LogRatioCandidates] = []
    # Single numbers need no trees, and get none: cells distinguish everything.
    if classifier != "boosting" or boosted is None:
        partitions.extend(value_log_ratios(left, right))
    if boosted is not None:
        partitions.append(with_fits(boosted))
    return partitions


# --- claims and mixtures ----------------------------------------------------------------------


def check_claim(name: str, claim: Claim) -> PureDP | ApproxDP:
    """Returns the claim if it is pure or approximate privacy; refuses all others."""
    if not isinstance(claim, PureDP | ApproxDP):
        raise InputError(
            f"method={name!r} bounds PureDP and ApproxDP, not {type(claim).__name__}: its "
            "divergence is the greatest P(E) − e^ε·Q(E), which says nothing about that notion; "
            "use method='auto'"
        )
    return claim


def check_epsilon(epsilon: float | None) -> None:
    """Checks the ε of a mixture: a finite number of at least 0, or None."""
    if epsilon is not None:
        check_at_least("epsilon", epsilon, 0.0)


def mixtures_of(claim: PureDP | ApproxDP, requested: float | None) -> Floats:
    """Returns the values of ε to try: the requested one, the claimed one, or a grid of them."""
    # A claim about δ fixes ε.
    if isinstance(claim, ApproxDeltaDP):
        return np.array([claim.epsilon])
    if requested is not None:
        return np.array([float(requested)])
    if claim.epsilon > 0.0:
        return np.array([claim.epsilon])
    return _MIXTURES


# --- choice of the event ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExcessEvent:
    """An event chosen for its excess P(E) − e^ε·Q(E).

    Attributes:
        candidate: the event.
        epsilon: ε of the excess.
    """

    candidate: Candidate
    epsilon: float


@dataclass(frozen=True, slots=True)
class _Choice:
    """One classifier with its best mixture.

    Attributes:
        partition: the cells, with their training counts.
        fit: turns the counts into log-ratios.
        flipped: False when P is the left distribution.
        epsilon: of the mixture.
        p: P's probability of the event, on training draws that did not fit the classifier.
        q: Q's.
        predicted: the bound to expect.
    """

    partition: LogRatioCandidates
    fit: Fit
    flipped: bool
    epsilon: float
    p: float
    q: float
    predicted: float


def choose_excess(
    partitions: Sequence[LogRatioCandidates],
    task: Task,
    mixtures: Floats,
    directions: Sequence[bool] = (False, True),
) -> ExcessEvent:
    """Chooses the event with the best predicted bound.

    Args:
        partitions: candidate partitions with their training counts and fits.
        task: what is to be certified.
        mixtures: shape (k,), the values of ε to try.
        directions: False where P is the left distribution, True where it is the right one.

    Returns:
        The best event over all partitions, fits, directions and values of ε.
    """
    choices: list[_Choice] = []
    for partition in partitions:
        for fit in partition.fits:
            choices.extend(
                _best_mixture(partition, fit, flipped, task, mixtures) for flipped in directions
            )
    best = max(choices, key=lambda choice: choice.predicted)
    # The event itself is learned on all training draws.
    above_halves, below_halves = best.partition.oriented(best.flipped)
    above = above_halves[0] + above_halves[1]
    below = below_halves[0] + below_halves[1]
    scores = best.fit(above, below)
    chosen = _assigned_cells(scores, np.array([best.epsilon]), above + below)[0]
    candidate = Candidate(
        event=Event(best.partition.partition, chosen).simplified(),
        flipped=best.flipped,
        p=best.p,
        q=best.q,
        predicted=best.predicted,
    )
    return ExcessEvent(candidate, best.epsilon)


def _best_mixture(
    partition: LogRatioCandidates, fit: Fit, flipped: bool, task: Task, mixtures: Floats
) -> _Choice:
    """Finds the ε with the best predicted bound; learned on one half, counted on the other."""
    above, below = partition.oriented(flipped)
    hits_above = np.zeros(len(mixtures))
    hits_below = np.zeros(len(mixtures))
    for half in (0, 1):
        scores = fit(above[half], below[half])
        masks = _assigned_cells(scores, mixtures, above[half] + below[half])
        hits_above += masks @ above[1 - half]
        hits_below += masks @ below[1 - half]
    n_above = max(int(above[0].sum() + above[1].sum()), 1)
    n_below = max(int(below[0].sum() + below[1].sum()), 1)
    p = hits_above / n_above
    # One more on the other side: an event never seen there is rare, not impossible.
    q = (hits_below + 1.0) / (n_below + 1.0)
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    penalty = _PENALTY_FIXED_EPSILON if len(mixtures) == 1 else _PENALTY_FREE_EPSILON
    predicted = predict(task, p, q, n_train=(n_above, n_below), n_fresh=n_fresh, penalty=penalty)[0]
    best = int(np.argmax(predicted))
    return _Choice(
        partition=partition,
        fit=fit,
        flipped=flipped,
        epsilon=float(mixtures[best]),
        p=float(p[best]),
        q=float(q[best]),
        predicted=float(predicted[best]),
    )


def _assigned_cells(scores: Floats, mixtures: Floats, counts: Integers) -> Booleans:
    """Tells which cells each classifier assigns to P: at least one observed cell, never all.

    Args:
        scores: shape (cells,), ln(P/Q) of each cell.
        mixtures: shape (k,), values of ε: the classifier's thresholds.
        counts: shape (cells,), training draws of both sides.

    Returns:
        Shape (k, cells).
    """
    observed = np.flatnonzero(counts > 0)
    ranked = observed[np.argsort(scores[observed], kind="stable")]
    masks = scores > mixtures[:, None]
    masks[:, ranked[-1:]] = True
    # The lowest cell, unless it is the only one.
    masks[:, ranked[:-1][:1]] = False
    return masks


# --- the published certificate ----------------------------------------------------------------


def mixture_size(n_above: int, n_below: int, epsilon: float) -> int:
    """Returns the largest sample of the mixture for which these draws nearly always suffice."""
    weight_above = 1.0 / (1.0 + math.exp(min(epsilon, _LARGEST_EXPONENT)))
    weight_below = 1.0 - weight_above
    usable_above = max(n_above - _SPARE_DEVIATIONS * math.sqrt(n_above), 0.0)
    usable_below = max(n_below - _SPARE_DEVIATIONS * math.sqrt(n_below), 0.0)
    return int(min(usable_above / weight_above, usable_below / weight_below))


def published_excess(
    above: Counts,
    below: Counts,
    epsilon: float,
    failure_probability: float,
    *,
    rng: np.random.Generator,
    proportion: str | ProportionBound = "hoeffding",
) -> float:
    """Returns the published lower bound on P(E) − e^ε·Q(E); it may be negative.

    Args:
        above: counts of the event under P.
        below: counts of the event under Q.
        epsilon: of the mixture.
        failure_probability: β.
        rng: chooses which draws make up the mixture; it must depend neither on the draws nor on
            what chose the event.
        proportion: p̂, a lower bound on the accuracy.

    Guarantee: exact over the draws and `rng` together, if the event was fixed before both:
        independent draws are exchangeable, so a random part of them is a sample of the mixture, and
        each of the bounds on a proportion holds for every size. Looser than the exact test.

    Reference: Kong et al. (2023), Proposition 4.12 and Algorithm 5.
    """
    weight = math.exp(min(epsilon, _LARGEST_EXPONENT))
    m = mixture_size(above.trials, below.trials, epsilon)
    m_above = int(rng.binomial(m, 1.0 / (1.0 + weight)))
    m_below = m - m_above
    if m < 1 or m_above > above.trials or m_below > below.trials:
        # The trivial bound: P(E) = 0 and Q(E) = 1.
        return -weight
    hits = int(rng.hypergeometric(above.hits, above.trials - above.hits, m_above))
    false_alarms = int(rng.hypergeometric(below.hits, below.trials - below.hits, m_below))
    correct = hits + m_below - false_alarms
    accuracy_lower = find_proportion(proportion)(correct, m, failure_probability)
    return excess_of_accuracy(accuracy_lower, epsilon)


def excess_of_accuracy(accuracy: float, epsilon: float) -> float:
    """Returns (1 + e^ε)·accuracy − e^ε, the excess of a classifier with this accuracy.

    Reference: Kong et al. (2023), Lemma 4.9 and Proposition 4.12.
    """
    weight = math.exp(min(epsilon, _LARGEST_EXPONENT))
    return (1.0 + weight) * accuracy - weight


def _name_of(proportion: str | ProportionBound) -> str:
    return proportion if isinstance(proportion, str) else "a function of the caller"
