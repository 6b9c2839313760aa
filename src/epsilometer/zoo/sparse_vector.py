"""The sparse vector technique: six published versions, most of them broken, and one with a fresh answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.claims import PureDP
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry, check_epsilon, check_number, check_whole
from epsilometer.zoo.laws.exact import CellLaw
from epsilometer.zoo.laws.sparse_vector import (
    ComparedValuesLaw,
    Scheme,
    answers_law,
    compared_value_law,
    first_above_law,
)


@dataclass(frozen=True)
class AnswerAll:
    """Every query is answered; bool outputs of shape (n, d), True for "above"."""

    scheme: Scheme

    def __call__(self, dataset: Any, n: int, rng: Generator) -> Booleans:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        answers = np.empty((n, len(dataset)), dtype=np.bool_)
        for position, query in enumerate(dataset):
            answers[:, position] = _noisy_query(self.scheme, query, n, rng) >= bar
        return answers


@dataclass(frozen=True)
class FirstAbove:
    """Stops at the first "above"; int64 outputs of shape (n,): how many were "below" before it."""

    scheme: Scheme

    def __call__(self, dataset: Any, n: int, rng: Generator) -> Integers:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        first = np.full(n, len(dataset), dtype=np.int64)
        # From the last query to the first, so that the first one above is written last.
        for position in reversed(range(len(dataset))):
            first[_noisy_query(self.scheme, dataset[position], n, rng) >= bar] = position
        return first


@dataclass(frozen=True)
class AnswerUntil:
    """Stops after `cutoff` times "above"; int8 outputs of shape (n, d): 1 above, 0 below, -1 not answered."""

    scheme: Scheme

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.int8]:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        answers = np.full((n, len(dataset)), -1, dtype=np.int8)
        left = np.full(n, self.scheme.cutoff or 1)
        for position, query in enumerate(dataset):
            above = _noisy_query(self.scheme, query, n, rng) >= bar
            going = left > 0
            answers[going, position] = above[going]
            left -= above & going
            if self.scheme.reset_scale > 0:
                bar[above] = self.scheme.threshold + rng.laplace(0.0, self.scheme.reset_scale, int(above.sum()))
        return answers


@dataclass(frozen=True)
class AnswerValuesUntil:
    """Stops after `cutoff` times "above" and releases values; float outputs of shape (n, d).

    Attributes:
        scheme: the noises and the threshold.
        fresh_scale: scale of the noise on a released query; 0 releases the same value that was compared.
        below: what stands for an answer below.
        stopped: what stands for no answer.
    """

    scheme: Scheme
    fresh_scale: float = 0.0
    below: float = -np.inf
    stopped: float = np.nan

    def __call__(self, dataset: Any, n: int, rng: Generator) -> Floats:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        answers = np.full((n, len(dataset)), self.stopped)
        left = np.full(n, self.scheme.cutoff or 1)
        for position, query in enumerate(dataset):
            noisy = _noisy_query(self.scheme, query, n, rng)
            above, going = noisy >= bar, left > 0
            value = rng.laplace(float(query), self.fresh_scale, n) if self.fresh_scale > 0 else noisy
            answers[going, position] = np.where(above, value, self.below)[going]
            left -= above & going
        return answers


@dataclass(frozen=True)
class FirstAboveValue:
    """Stops at the first "above" and releases it as a number; columns `position` and `value`, each of shape (n,).

    Attributes:
        scheme: the noises and the threshold.
        fresh_scale: scale of the noise on the released query; 0 releases the same value that was compared.
    """

    scheme: Scheme
    fresh_scale: float

    def __call__(self, dataset: Any, n: int, rng: Generator) -> dict[str, NDArray[Any]]:
        """Draw n outputs."""
        bar = _noisy_threshold(self.scheme, n, rng)
        first = np.full(n, len(dataset), dtype=np.int64)
        value = np.full(n, np.nan)
        for position in reversed(range(len(dataset))):
            noisy = _noisy_query(self.scheme, dataset[position], n, rng)
            above = noisy >= bar
            first[above] = position
            value[above] = noisy[above] if self.fresh_scale == 0 else float(dataset[position])
        if self.fresh_scale > 0:
            value += rng.laplace(0.0, self.fresh_scale, n)
        return {"position": first, "value": value}


def _noisy_threshold(scheme: Scheme, n: int, rng: Generator) -> Floats:
    return rng.laplace(scheme.threshold, scheme.threshold_scale, n)


def _noisy_query(scheme: Scheme, query: float, n: int, rng: Generator) -> Floats:
    if scheme.query_scale == 0:
        return np.full(n, float(query))
    return rng.laplace(float(query), scheme.query_scale, n)


QUERIES = 10


def svt1(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 1, private: Lap(2/epsilon) on the threshold, Lap(4c/epsilon) on the queries.

    Outputs: the number of answers "below" before the first "above" (10 if there is none), int64 of shape (n,); with
    c > 1 all answers, shape (n, 10), 1 above, 0 below, -1 not answered. Its truth on the pair is an integral over the
    threshold's noise: .680 for epsilon = .7.

    Reference: Lyu, Su, Li, Algorithm 1.
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = Scheme(2 / epsilon, 4 * cutoff / epsilon, cutoff, threshold)
    summary = "sparse vector, Lyu-Su-Li's own version"
    return _stopping("svt1", summary, epsilon, scheme, keeps_claim=True)


def svt2(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 2, private: as version 1, but the threshold's noise Lap(2c/epsilon) is redrawn after each "above".

    Outputs and truth as for `svt1`; with c = 1 the two are the same.

    Reference: Lyu, Su, Li, Algorithm 2 (Dwork and Roth's book).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = Scheme(2 * cutoff / epsilon, 4 * cutoff / epsilon, cutoff, threshold, 2 * cutoff / epsilon)
    summary = "sparse vector with fresh threshold noise after each positive answer"
    return _stopping("svt2", summary, epsilon, scheme, keeps_claim=True)


def svt3(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 3, broken: Lap(2/epsilon) on the threshold, Lap(2c/epsilon) on the queries, values instead of "above".

    Outputs: columns `position` (number of answers "below" before the first "above", 10 if there is none) and `value`,
    the noisy value that was compared (nan if there is none); with c > 1 all answers, shape (n, 10), a value above, -inf
    below, nan not answered. The level grows without bound with the number of queries. With ten and c = 1, the truth on
    the pair is an integral, 4.5 epsilon if epsilon is not small; 1^10 against 2^10 has 5 epsilon, but on rarer events.
    With c > 1 its curve delta(epsilon) is not known. Ten queries with c >= 5 do keep the claim: ten Laplace noises of
    epsilon/(2c) each pay for everything.

    Reference: Lyu, Su, Li, Algorithm 3 (Roth's lecture notes).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = Scheme(2 / epsilon, 2 * cutoff / epsilon, cutoff, threshold)
    pair = _only_last_above(threshold)
    law = compared_value_law if cutoff == 1 else ComparedValuesLaw.on
    return ZooEntry(
        name="svt3",
        summary="sparse vector that releases the compared noisy value",
        mechanism=from_batch(
            FirstAboveValue(scheme, fresh_scale=0.0) if cutoff == 1 else AnswerValuesUntil(scheme), name="svt3"
        ),
        claim=PureDP(epsilon),
        worst_pair=pair,
        keeps_claim=2 * cutoff >= QUERIES,
        parameters={"epsilon": epsilon, "cutoff": cutoff, "threshold": threshold},
        law=partial(law, scheme, pair.left, pair.right),
    )


def svt4(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 4, broken: Lap(4/epsilon) on the threshold, Lap(4/(3 epsilon)) on the queries, whatever c is.

    It keeps (1 + 6c)/4 epsilon, not epsilon. Outputs as for `svt1`. Its truth on the pair is an integral: 1.217 for
    epsilon = .7.

    Reference: Lyu, Su, Li, Algorithm 4 (Lee and Clifton, 2014).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = Scheme(4 / epsilon, 4 / (3 * epsilon), cutoff, threshold)
    return _stopping("svt4", "sparse vector with too little noise on the queries", epsilon, scheme, keeps_claim=False)


def svt5(epsilon: float = 1.0, cutoff: int = QUERIES, threshold: float = 1.0) -> ZooEntry:
    """Version 5, broken: Lap(2/epsilon) on the threshold, none on the queries, no stop.

    Outputs: all ten answers, bool of shape (n, 10); with a cutoff below 10, which the reference does not have, as for
    `svt1`. Its truth is infinite: on the pair, an answer of probability 1 - e^(-epsilon/2) on the left (.295 for
    epsilon = .7) is impossible on the right.

    Reference: Lyu, Su, Li, Algorithm 5 (Stoddard, Chen, Machanavajjhala, 2014).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = Scheme(2 / epsilon, 0.0, cutoff, threshold)
    return _answering("svt5", "sparse vector without noise on the queries", epsilon, scheme)


def svt6(epsilon: float = 1.0, cutoff: int = QUERIES, threshold: float = 1.0) -> ZooEntry:
    """Version 6, broken: Lap(2/epsilon) on both, no stop.

    The level grows without bound with the number of queries. Outputs: all ten answers, bool of shape (n, 10); with a
    cutoff below 10, which the reference does not have, as for `svt1`. Its truth on the pair is an integral: 3.092 for
    epsilon = .7 and no stop.

    Reference: Lyu, Su, Li, Algorithm 6 (Chen, Xiao, Zhang, Xu, 2015).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = Scheme(2 / epsilon, 2 / epsilon, cutoff, threshold)
    return _answering("svt6", "sparse vector with too little noise on the queries", epsilon, scheme)


def numerical_svt(epsilon: float = 1.0, threshold: float = 1.0) -> ZooEntry:
    """The sparse vector technique with a numeric answer, private: a third of epsilon for each of three noises.

    Lap(3/epsilon) on the threshold, Lap(6/epsilon) on the queries, and the first query "above" is released with fresh
    Lap(3/epsilon). Outputs as for `svt3`. Its truth on the pair is .689 for epsilon = .7.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", NumericSparse (Algorithm 3).
    """
    epsilon, cutoff, threshold = _check(epsilon, 1, threshold)
    scheme = Scheme(3 / epsilon, 6 / epsilon, cutoff, threshold)
    pair = _only_last_above(threshold)
    return ZooEntry(
        name="numerical_svt",
        summary="sparse vector that releases the positive query with fresh noise",
        mechanism=from_batch(FirstAboveValue(scheme, fresh_scale=3 / epsilon), name="numerical_svt"),
        claim=PureDP(epsilon),
        worst_pair=pair,
        keeps_claim=True,
        parameters={"epsilon": epsilon, "threshold": threshold},
        law=partial(first_above_law, scheme, pair.left, pair.right, 3 / epsilon),
    )


def _check(epsilon: float, cutoff: int, threshold: float) -> tuple[float, int, float]:
    return check_epsilon(epsilon), check_whole("cutoff", cutoff, 1, QUERIES), check_number("threshold", threshold)


def _only_last_above(threshold: float) -> Pair:
    """All queries but the last rise to the threshold, the last one falls below it."""
    low, high = threshold - 1, threshold
    return Pair([low] * (QUERIES - 1) + [high], [high] * (QUERIES - 1) + [low])


def _half_above_half_below(threshold: float) -> Pair:
    """Half of the queries lie above and half below the threshold; on the right all lie on it."""
    half = QUERIES // 2
    return Pair([threshold + 1] * half + [threshold - 1] * (QUERIES - half), [threshold] * QUERIES)


def _half_below_half_above(threshold: float) -> Pair:
    """The other way round: a mechanism that stops soon must see the queries below first."""
    pair = _half_above_half_below(threshold)
    return Pair(pair.left[::-1], pair.right)


def _stopping(name: str, summary: str, epsilon: float, scheme: Scheme, keeps_claim: bool) -> ZooEntry:
    """Versions 1, 2, 4. Their pairs have the largest truths, or nearly so, among the usual patterns of queries."""
    cutoff = scheme.cutoff or 1
    last_differs = keeps_claim and cutoff == 1
    pair = _only_last_above(scheme.threshold) if last_differs else _half_above_half_below(scheme.threshold)
    return ZooEntry(
        name=name,
        summary=summary,
        mechanism=from_batch(FirstAbove(scheme) if cutoff == 1 else AnswerUntil(scheme), name=name),
        claim=PureDP(epsilon),
        worst_pair=pair,
        keeps_claim=keeps_claim,
        parameters={"epsilon": epsilon, "cutoff": cutoff, "threshold": scheme.threshold},
        law=_law(scheme, pair),
    )


def _answering(name: str, summary: str, epsilon: float, scheme: Scheme) -> ZooEntry:
    """Versions 5, 6: with ten queries a cutoff of 10 never stops anything."""
    cutoff = scheme.cutoff or QUERIES
    stops = cutoff < QUERIES
    if cutoff == 1:
        pair, answering = _only_last_above(scheme.threshold), from_batch(FirstAbove(scheme), name=name)
    elif stops:
        pair, answering = _half_below_half_above(scheme.threshold), from_batch(AnswerUntil(scheme), name=name)
    else:
        pair, answering = _half_above_half_below(scheme.threshold), from_batch(AnswerAll(scheme), name=name)
    return ZooEntry(
        name=name,
        summary=f"{summary}, {f'stops after {cutoff} answers above' if stops else 'never stops'}",
        mechanism=answering,
        claim=PureDP(epsilon),
        worst_pair=pair,
        keeps_claim=False,
        parameters={"epsilon": epsilon, "cutoff": cutoff, "threshold": scheme.threshold},
        law=_law(scheme, pair),
    )


def _law(scheme: Scheme, pair: Pair) -> Callable[[], CellLaw]:
    return partial(answers_law, scheme, pair.left, pair.right)
