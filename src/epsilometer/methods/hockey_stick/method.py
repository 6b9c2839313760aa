"""Method `hockey-stick`: the event of a classifier on the weighted mixture of both laws.

Reference: DP-Auditorium, Lemma 4.9 and Algorithms 5, 6. The classifier is the house's (cells, an additive logit or
small trees), the default certificate is our own (`epsilometer.bounds.ratio`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from epsilometer.bounds import Counts
from epsilometer.bounds.excess import value_of_excess
from epsilometer.claims import Claim
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Task
from epsilometer.methods.events import EventProposal
from epsilometer.methods.events.learning import learn_scored
from epsilometer.methods.hockey_stick.boosting import fit_trees
from epsilometer.methods.hockey_stick.choosing import (
    ExcessEvent,
    check_claim,
    check_epsilon,
    choose_excess,
    mixtures_of,
)
from epsilometer.methods.hockey_stick.published import mixture_size, published_excess
from epsilometer.methods.renyi_bet.fitting import Way, learn_ways, way_of
from epsilometer.outputs import Outputs
from epsilometer.result import Finding

NAME = "hockey-stick"
CLASSIFIERS = ("auto", "cells", "boosting")
CERTIFICATES = ("exact", "published")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `hockey-stick`.

    Attributes:
        classifier: "cells" (repeated values, intervals, an additive logit of vectors), "boosting" (small trees, for
            outputs of several columns), or "auto": the better of both on training draws.
        epsilon: of the mixture; by default the claimed ε, or chosen on training draws when nothing is claimed.
        certificate: "exact" counts the classifier's event in the exact test; "published" is the paper's Hoeffding bound
            on the accuracy, for reproduction: as sound, but looser.
    """

    classifier: str = "auto"
    epsilon: float | None = None
    certificate: str = "exact"

    def __post_init__(self) -> None:
        check_choice("classifier", self.classifier, CLASSIFIERS)
        check_choice("certificate", self.certificate, CERTIFICATES)
        check_epsilon(self.epsilon)


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """One of a few words, or an InputError that lists them."""
    if value not in allowed:
        raise InputError(f"{name}={value!r:.60} must be one of {', '.join(map(repr, allowed))}")


@dataclass(frozen=True, slots=True)
class ClassifierProposal(EventProposal):
    """What a classifier takes for the larger law's outputs, to be counted on fresh draws.

    Attributes:
        epsilon: of the mixture.
        certificate: "exact" or "published".
    """

    epsilon: float
    certificate: str

    def certify(self, left: Counts, right: Counts, pair: Pair, failure_probability: float) -> Finding:
        """The bound from the counts of the fresh draws."""
        finding = EventProposal.certify(self, left, right, pair, failure_probability)
        if self.certificate == "exact":
            return replace(finding, method=NAME, details={"mixture_epsilon": self.epsilon})
        above, below = (right, left) if self.flipped else (left, right)
        excess = published_excess(above, below, self.epsilon, failure_probability)
        bound = value_of_excess(check_claim(NAME, self.task.claim), self.epsilon, excess)
        details: dict[str, Any] = {
            "mixture_epsilon": self.epsilon,
            "mixture_size": mixture_size(above.trials, below.trials, self.epsilon),
            "excess_lower": excess,
            "certificate": "published: Hoeffding's bound on the accuracy, from the draws that fit the mixture",
        }
        return replace(finding, method=NAME, lower_bound=bound, details=details)


class HockeyStickMethod:
    """Learns to tell the two laws apart when one of them weighs e^ε, and counts what it takes for the other's."""

    name = NAME
    summary = "the event of a classifier on the mixture weighted by e^ε; PureDP and ApproxDP (DP-Auditorium)"
    guarantee = "exact"

    def __init__(self, options: Options | None = None) -> None:
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options={options!r:.100}: the method {NAME} takes epsilometer.hockey_stick.Options")
        self.options = options or Options()

    def check(self, claim: Claim, n_pairs: int = 1, samples: int = 0) -> None:
        """Pure and approximate privacy only; called before anything is drawn."""
        check_claim(NAME, claim)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ClassifierProposal:
        """The classifier with the best predicted bound."""
        self.check(task.claim)
        mixtures = mixtures_of(task.claim, self.options.epsilon)
        choice = choose_excess(self._ways(left, right), task, mixtures)
        return as_proposal(choice, task, self.options.certificate)

    def _ways(self, left: Outputs, right: Outputs) -> list[Way]:
        wished = self.options.classifier
        boosted = learn_scored(left, right, fit_trees) if wished != "cells" else None
        if wished == "boosting" and boosted is not None:
            return [way_of(boosted)]
        # Single numbers need no trees: cells see all that there is.
        return learn_ways(left, right) + ([way_of(boosted)] if boosted is not None else [])


def as_proposal(choice: ExcessEvent, task: Task, certificate: str) -> ClassifierProposal:
    """The event of a choice, ready to be counted."""
    return ClassifierProposal(
        choice.event,
        choice.flipped,
        task,
        choice.predicted,
        0.5,
        choice.p,
        choice.q,
        choice.epsilon,
        certificate,
    )
