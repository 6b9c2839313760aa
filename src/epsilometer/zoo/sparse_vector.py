"""The sparse vector technique: six published versions, most of them broken, and one with a fresh answer.

At the end, a value that is released only if its noisy distance to instability is above a threshold.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.arrays import Array, Booleans, Floats, Integers
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.claims.base import check_number
from epsilometer.inputs import Pair
from epsilometer.zoo.entry import ZooEntry, check_count, check_delta, check_epsilon, entry
from epsilometer.zoo.laws import sparse_vector as laws
from epsilometer.zoo.laws.exact import CellLaw
from epsilometer.zoo.laws.numerics import laplace_below


def answer_all(dataset: Any, n: int, rng: Generator, scheme: laws.Scheme) -> Booleans:
    """Every query is answered; bool outputs of shape (n, d), True for "above"."""
    bar, answers = _noisy_threshold(scheme, n, rng), np.empty((n, len(dataset)), dtype=np.bool_)
    for position, query in enumerate(dataset):
        answers[:, position] = _noisy_query(scheme, query, n, rng) >= bar
    return answers


def first_above(
    dataset: Any, n: int, rng: Generator, scheme: laws.Scheme, fresh_scale: float | None = None
) -> Integers | dict[str, Array]:
    """Stops at the first "above"; int64 outputs of shape (n,): how many were "below" before it.

    Args:
        scheme: the noises and the threshold.
        fresh_scale: if given, that query is released as well, with fresh noise of this scale; 0 releases the same value
            that was compared. Outputs are then columns `position` and `value`, each of shape (n,).
    """
    bar = _noisy_threshold(scheme, n, rng)
    first, value = np.full(n, len(dataset), dtype=np.int64), np.full(n, np.nan)
    # From the last query to the first, so that the first one above is written last.
    for position in reversed(range(len(dataset))):
        noisy = _noisy_query(scheme, dataset[position], n, rng)
        above = noisy >= bar
        first[above] = position
        value[above] = noisy[above] if fresh_scale == 0 else float(dataset[position])
    if fresh_scale is None:
        return first
    if fresh_scale > 0:
        value += rng.laplace(0.0, fresh_scale, n)
    return {"position": first, "value": value}


def answer_until(
    dataset: Any,
    n: int,
    rng: Generator,
    scheme: laws.Scheme,
    fresh_scale: float | None = None,
    below: float = -np.inf,
    stopped: float = np.nan,
) -> Array:
    """Stops after `cutoff` times "above"; int8 outputs of shape (n, d): 1 above, 0 below, -1 not answered.

    Args:
        scheme: the noises and the threshold.
        fresh_scale: if given, float outputs: a query above is released with fresh noise of this scale; 0 releases the
            same value that was compared.
        below: what then stands for an answer below.
        stopped: what then stands for no answer.
    """
    bar = _noisy_threshold(scheme, n, rng)
    answers: Array = np.full((n, len(dataset)), np.int8(-1) if fresh_scale is None else stopped)
    left = np.full(n, scheme.cutoff or 1)
    for position, query in enumerate(dataset):
        noisy = _noisy_query(scheme, query, n, rng)
        above, going = noisy >= bar, left > 0
        answer: Array = above
        if fresh_scale is not None:
            answer = np.where(above, rng.laplace(float(query), fresh_scale, n) if fresh_scale > 0 else noisy, below)
        answers[going, position] = answer[going]
        left -= above & going
        if scheme.reset_scale > 0:
            bar[above] = scheme.threshold + rng.laplace(0.0, scheme.reset_scale, int(above.sum()))
    return answers


def _noisy_threshold(scheme: laws.Scheme, n: int, rng: Generator) -> Floats:
    return rng.laplace(scheme.threshold, scheme.threshold_scale, n)


def _noisy_query(scheme: laws.Scheme, query: float, n: int, rng: Generator) -> Floats:
    return np.full(n, float(query)) if scheme.query_scale == 0 else rng.laplace(float(query), scheme.query_scale, n)


QUERIES = 10


def svt1(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 1, private: Lap(2/epsilon) on the threshold, Lap(4c/epsilon) on the queries.

    Outputs: the number of answers "below" before the first "above" (10 if there is none), int64 of shape (n,); with
    c > 1 all answers, shape (n, 10), 1 above, 0 below, -1 not answered. Its truth on the pair is an integral over the
    threshold's noise: .680 for epsilon = .7.

    Reference: Lyu, Su, Li, Algorithm 1.
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = laws.Scheme(2 / epsilon, 4 * cutoff / epsilon, cutoff, threshold)
    return _version("svt1", "sparse vector, Lyu-Su-Li's own version", epsilon, scheme, keeps_claim=True)


def svt2(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 2, private: as version 1, but the threshold's noise Lap(2c/epsilon) is redrawn after each "above".

    Outputs and truth as for `svt1`; with c = 1 the two are the same.

    Reference: Lyu, Su, Li, Algorithm 2 (Dwork and Roth's book).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = laws.Scheme(2 * cutoff / epsilon, 4 * cutoff / epsilon, cutoff, threshold, 2 * cutoff / epsilon)
    summary = "sparse vector with fresh threshold noise after each positive answer"
    return _version("svt2", summary, epsilon, scheme, keeps_claim=True)


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
    scheme, pair = laws.Scheme(2 / epsilon, 2 * cutoff / epsilon, cutoff, threshold), _only_last_above(threshold)
    draw = partial(first_above if cutoff == 1 else answer_until, scheme=scheme, fresh_scale=0.0)
    law = partial(laws.compared_value_law if cutoff == 1 else laws.ComparedValuesLaw.on, scheme, pair.left, pair.right)
    summary, keeps = "sparse vector that releases the compared noisy value", 2 * cutoff >= QUERIES
    given = {"cutoff": cutoff, "threshold": threshold}
    return entry("svt3", summary, draw, PureDP(epsilon), pair, law, keeps_claim=keeps, epsilon=epsilon, **given)


def svt4(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 4, broken: Lap(4/epsilon) on the threshold, Lap(4/(3 epsilon)) on the queries, whatever c is.

    It keeps (1 + 6c)/4 epsilon, not epsilon. Outputs as for `svt1`. Its truth on the pair is an integral: 1.217 for
    epsilon = .7.

    Reference: Lyu, Su, Li, Algorithm 4 (Lee and Clifton, 2014).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = laws.Scheme(4 / epsilon, 4 / (3 * epsilon), cutoff, threshold)
    return _version("svt4", "sparse vector with too little noise on the queries", epsilon, scheme)


def svt5(epsilon: float = 1.0, cutoff: int = QUERIES, threshold: float = 1.0) -> ZooEntry:
    """Version 5, broken: Lap(2/epsilon) on the threshold, none on the queries, no stop.

    Outputs: all ten answers, bool of shape (n, 10); with a cutoff below 10, which the reference does not have, as for
    `svt1`. Its truth is infinite: on the pair, an answer of probability 1 - e^(-epsilon/2) on the left (.295 for
    epsilon = .7) is impossible on the right.

    Reference: Lyu, Su, Li, Algorithm 5 (Stoddard, Chen, Machanavajjhala, 2014).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = laws.Scheme(2 / epsilon, 0.0, cutoff, threshold)
    return _never_stopping("svt5", "sparse vector without noise on the queries", epsilon, scheme)


def svt6(epsilon: float = 1.0, cutoff: int = QUERIES, threshold: float = 1.0) -> ZooEntry:
    """Version 6, broken: Lap(2/epsilon) on both, no stop.

    The level grows without bound with the number of queries. Outputs: all ten answers, bool of shape (n, 10); with a
    cutoff below 10, which the reference does not have, as for `svt1`. Its truth on the pair is an integral: 3.092 for
    epsilon = .7 and no stop.

    Reference: Lyu, Su, Li, Algorithm 6 (Chen, Xiao, Zhang, Xu, 2015).
    """
    epsilon, cutoff, threshold = _check(epsilon, cutoff, threshold)
    scheme = laws.Scheme(2 / epsilon, 2 / epsilon, cutoff, threshold)
    return _never_stopping("svt6", "sparse vector with too little noise on the queries", epsilon, scheme)


def numerical_svt(epsilon: float = 1.0, threshold: float = 1.0) -> ZooEntry:
    """The sparse vector technique with a numeric answer, private: a third of epsilon for each of three noises.

    Lap(3/epsilon) on the threshold, Lap(6/epsilon) on the queries, and the first query "above" is released with fresh
    Lap(3/epsilon). Outputs as for `svt3`. Its truth on the pair is .689 for epsilon = .7.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", NumericSparse (Algorithm 3).
    """
    epsilon, cutoff, threshold = _check(epsilon, 1, threshold)
    scheme, pair = laws.Scheme(3 / epsilon, 6 / epsilon, cutoff, threshold), _only_last_above(threshold)
    summary = "sparse vector that releases the positive query with fresh noise"
    draw = partial(first_above, scheme=scheme, fresh_scale=3 / epsilon)
    law = partial(laws.first_above_law, scheme, pair.left, pair.right, 3 / epsilon)
    return entry("numerical_svt", summary, draw, PureDP(epsilon), pair, law, epsilon=epsilon, threshold=threshold)


def _check(epsilon: float, cutoff: int, threshold: float) -> tuple[float, int, float]:
    return check_epsilon(epsilon), check_count("cutoff", cutoff, 1, QUERIES), check_number("threshold", threshold)


def _only_last_above(threshold: float) -> Pair:
    """All queries but the last rise to the threshold, the last one falls below it."""
    low, high = threshold - 1, threshold
    return Pair([low] * (QUERIES - 1) + [high], [high] * (QUERIES - 1) + [low])


def _half_above_half_below(threshold: float) -> Pair:
    """Half of the queries lie above and half below the threshold; on the right all lie on it."""
    half = QUERIES // 2
    return Pair([threshold + 1] * half + [threshold - 1] * (QUERIES - half), [threshold] * QUERIES)


def _version(name: str, summary: str, epsilon: float, scheme: laws.Scheme, keeps_claim: bool = False) -> ZooEntry:
    """Versions 1, 2, 4. Their pairs have the largest truths, or nearly so, among the usual patterns of queries."""
    last_differs = keeps_claim and scheme.cutoff == 1
    pair = _only_last_above(scheme.threshold) if last_differs else _half_above_half_below(scheme.threshold)
    draw = first_above if scheme.cutoff == 1 else answer_until
    return _answers(name, summary, epsilon, scheme, draw, pair, keeps_claim)


def _never_stopping(name: str, summary: str, epsilon: float, scheme: laws.Scheme) -> ZooEntry:
    """Versions 5, 6: with ten queries a cutoff of 10 never stops anything."""
    pair = _half_above_half_below(scheme.threshold)
    if scheme.cutoff == QUERIES:
        return _answers(name, f"{summary}, never stops", epsilon, scheme, answer_all, pair)
    summary = f"{summary}, stops after {scheme.cutoff} answers above"
    if scheme.cutoff == 1:
        return _answers(name, summary, epsilon, scheme, first_above, _only_last_above(scheme.threshold))
    # The other way round: a mechanism that stops soon must see the queries below first.
    return _answers(name, summary, epsilon, scheme, answer_until, Pair(pair.left[::-1], pair.right))


def _answers(
    name: str, summary: str, epsilon: float, scheme: laws.Scheme, draw: Any, pair: Pair, keeps_claim: bool = False
) -> ZooEntry:
    law = partial(laws.answers_law, scheme, pair.left, pair.right)
    given = {"epsilon": epsilon, "cutoff": scheme.cutoff, "threshold": scheme.threshold}
    draw = partial(draw, scheme=scheme)
    return entry(name, summary, draw, PureDP(epsilon), pair, law, keeps_claim=keeps_claim, **given)


def release_if_stable(dataset: Any, n: int, rng: Generator, scale: float, threshold: float) -> dict[str, Array]:
    """Columns `released` (bool) and `value` (float, nan if not released), each of shape (n,).

    The dataset is (value, distance): what would be released, and how many people would have to change before the
    proposed local sensitivity 1 fails.
    """
    centre, distance = dataset
    released = rng.laplace(float(distance), scale, n) > threshold
    return {"released": released, "value": np.where(released, rng.laplace(float(centre), scale, n), np.nan)}


def propose_test_release(epsilon: float = 1.0, delta: float = 1e-3, distance: int | None = None) -> ZooEntry:
    """Propose-test-release: a value is released only if the noisy distance to instability is large enough.

    Lap(1/epsilon) on the distance, threshold ln(1/(2 delta))/epsilon, and Lap(1/epsilon) on the released value; it
    claims and keeps (2 epsilon, delta).

    Args:
        epsilon: the budget of each of the two noises.
        delta: the chance of a release although the proposed sensitivity fails.
        distance: of the left dataset (the right one's is smaller by 1). By default the greatest whole number up to
            the threshold, at least 1: there the pure loss is all of 2 epsilon if the threshold is 1 or more.

    The truth with F(d) = P(released): |ln F(d)/F(d - 1)| + epsilon, or that of "not released" if it is larger; 1.649
    for distance = 7 and the other defaults.

    Reference: Dwork and Lei, "Differential privacy and robust statistics".
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    scale, threshold = 1 / epsilon, math.log(1 / (2 * delta)) / epsilon
    distance = max(1, math.floor(threshold)) if distance is None else distance
    distance = check_count("distance", distance, 1, 10**9)
    summary = "a value that is released only if it is far from unstable"
    claim, pair = ApproxDP(2 * epsilon, delta), Pair([0.0, float(distance)], [1.0, float(distance - 1)])
    draw = partial(release_if_stable, scale=scale, threshold=threshold)
    law = partial(_released_law, scale, threshold, float(distance))
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "distance": distance}
    return entry("propose_test_release", summary, draw, claim, pair, law, **given)


def _released_law(scale: float, threshold: float, distance: float) -> CellLaw:
    margins = np.array([distance, distance - 1]) - threshold
    cells = np.stack([laplace_below(margins, scale), laplace_below(-margins, scale)], axis=1)
    return CellLaw(cells[0], cells[1], np.array([1 / scale, 0.0]))
