"""The sparse vector technique: six published versions, most of them broken, and a numeric one.

At the end, a value that is released only if its noisy distance to instability exceeds a threshold.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.arrays import Array, Booleans, Floats, Integers
from epsilometer.claims import ApproxDP, PureDP
from epsilometer.claims.base import check_number
from epsilometer.inputs import Pair
from epsilometer.zoo.distributions.exact import CellDistributions, PairDistributions
from epsilometer.zoo.distributions.numerics import laplace_below
from epsilometer.zoo.distributions.sparse_vector import (
    ComparedValuesDistributions,
    Scheme,
    answers_distributions,
    compared_value_distributions,
    first_above_distributions,
)
from epsilometer.zoo.entry import ZooEntry, check_count, check_delta, check_epsilon, entry

QUERIES = 10

# --- drawing answers


def answer_all(dataset: Any, n: int, rng: Generator, scheme: Scheme) -> Booleans:
    """Answers every query; bool outputs of shape (n, d), True for "above"."""
    noisy_threshold = _noisy_threshold(scheme, n, rng)
    answers = np.empty((n, len(dataset)), dtype=np.bool_)
    for position, query in enumerate(dataset):
        answers[:, position] = _noisy_query(scheme, query, n, rng) >= noisy_threshold
    return answers


def first_above(
    dataset: Any, n: int, rng: Generator, scheme: Scheme, fresh_scale: float | None = None
) -> Integers | dict[str, Array]:
    """Stops at the first "above"; outputs are how many answers were "below" before it.

    Outputs are int64 of shape (n,), or columns `position` and `value`, each of shape (n,).

    Args:
        dataset: the queries without noise.
        n: how many outputs.
        rng: the source of randomness.
        scheme: the noises and the threshold.
        fresh_scale: if given, that query is released as well, with fresh noise of this scale; 0
            releases the same value that was compared.
    """
    noisy_threshold = _noisy_threshold(scheme, n, rng)
    first = np.full(n, len(dataset), dtype=np.int64)
    value = np.full(n, np.nan)
    # From the last query to the first, so that the first one above is written last.
    for position in reversed(range(len(dataset))):
        query = float(dataset[position])
        noisy = _noisy_query(scheme, query, n, rng)
        above = noisy >= noisy_threshold
        first[above] = position
        value[above] = noisy[above] if fresh_scale == 0 else query
    if fresh_scale is None:
        return first
    if fresh_scale > 0:
        value += rng.laplace(0.0, fresh_scale, n)
    return {"position": first, "value": value}


def answer_until(
    dataset: Any,
    n: int,
    rng: Generator,
    *,
    scheme: Scheme,
    fresh_scale: float | None = None,
    below: float = -np.inf,
    stopped: float = np.nan,
) -> Array:
    """Stops after `cutoff` times "above"; outputs are 1 above, 0 below, -1 not answered.

    Outputs are int8 of shape (n, d), or floats of this shape if values are released.

    Args:
        dataset: the queries without noise.
        n: how many outputs.
        rng: the source of randomness.
        scheme: the noises and the threshold.
        fresh_scale: if given, a query above is released with fresh noise of this scale; 0 releases
            the same value that was compared.
        below: what then stands for an answer below.
        stopped: what then stands for no answer.
    """
    noisy_threshold = _noisy_threshold(scheme, n, rng)
    not_answered = np.int8(-1) if fresh_scale is None else stopped
    answers: Array = np.full((n, len(dataset)), not_answered)
    n_left = np.full(n, scheme.cutoff or 1)
    for position, query in enumerate(dataset):
        noisy = _noisy_query(scheme, query, n, rng)
        above = noisy >= noisy_threshold
        is_running = n_left > 0
        answer: Array = above
        if fresh_scale is not None:
            released = rng.laplace(float(query), fresh_scale, n) if fresh_scale > 0 else noisy
            answer = np.where(above, released, below)
        answers[is_running, position] = answer[is_running]
        n_left -= above & is_running
        if scheme.reset_scale > 0:
            fresh_noise = rng.laplace(0.0, scheme.reset_scale, int(above.sum()))
            noisy_threshold[above] = scheme.threshold + fresh_noise
    return answers


def _noisy_threshold(scheme: Scheme, n: int, rng: Generator) -> Floats:
    return rng.laplace(scheme.threshold, scheme.threshold_scale, n)


def _noisy_query(scheme: Scheme, query: float, n: int, rng: Generator) -> Floats:
    if scheme.query_scale == 0:
        return np.full(n, float(query))
    return rng.laplace(float(query), scheme.query_scale, n)


# --- the six versions


def svt1(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 1, private: Lap(2/epsilon) on the threshold, Lap(4c/epsilon) on the queries.

    Outputs: the number of answers "below" before the first "above" (10 if there is none), int64 of
    shape (n,); with c > 1 all answers, shape (n, 10), 1 above, 0 below, -1 not answered. Its truth
    on the pair is an integral over the threshold's noise: .680 for epsilon = .7.

    Reference: Lyu, Su, Li, Algorithm 1.
    """
    epsilon = check_epsilon(epsilon)
    cutoff = _check_cutoff(cutoff)
    scheme = Scheme(
        threshold_scale=2 / epsilon,
        query_scale=4 * cutoff / epsilon,
        cutoff=cutoff,
        threshold=_check_threshold(threshold),
    )
    summary = "sparse vector, Lyu-Su-Li's own version"
    return _version("svt1", summary, epsilon, scheme, keeps_claim=True)


def svt2(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 2, private: as version 1, with fresh threshold noise after each "above".

    The threshold's noise is Lap(2c/epsilon). Outputs and truth as for `svt1`; with c = 1 the two
    are the same.

    Reference: Lyu, Su, Li, Algorithm 2 (Dwork and Roth's book).
    """
    epsilon = check_epsilon(epsilon)
    cutoff = _check_cutoff(cutoff)
    scheme = Scheme(
        threshold_scale=2 * cutoff / epsilon,
        query_scale=4 * cutoff / epsilon,
        cutoff=cutoff,
        threshold=_check_threshold(threshold),
        reset_scale=2 * cutoff / epsilon,
    )
    summary = "sparse vector with fresh threshold noise after each positive answer"
    return _version("svt2", summary, epsilon, scheme, keeps_claim=True)


def svt3(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 3, broken: it releases noisy values instead of "above".

    Lap(2/epsilon) on the threshold, Lap(2c/epsilon) on the queries. Outputs: columns `position`
    (number of answers "below" before the first "above", 10 if there is none) and `value`, the noisy
    value that was compared (nan if there is none); with c > 1 all answers, shape (n, 10), a value
    above, -inf below, nan not answered. The level grows without bound with the number of queries.
    With ten and c = 1, the truth on the pair is an integral, 4.5 epsilon if epsilon is not small;
    1^10 against 2^10 has 5 epsilon, but on rarer events. With c > 1 its curve delta(epsilon) is not
    known. Ten queries with c >= 5 do keep the claim: ten Laplace noises of epsilon/(2c) each spend
    no more than epsilon.

    Reference: Lyu, Su, Li, Algorithm 3 (Roth's lecture notes).
    """
    epsilon = check_epsilon(epsilon)
    cutoff = _check_cutoff(cutoff)
    threshold = _check_threshold(threshold)
    scheme = Scheme(
        threshold_scale=2 / epsilon,
        query_scale=2 * cutoff / epsilon,
        cutoff=cutoff,
        threshold=threshold,
    )
    pair = _only_last_above(threshold)
    draw: Callable[..., Any]
    make_distributions: Callable[[], PairDistributions]
    if cutoff == 1:
        draw = partial(first_above, scheme=scheme, fresh_scale=0.0)
        make_distributions = partial(compared_value_distributions, scheme, pair.left, pair.right)
    else:
        draw = partial(answer_until, scheme=scheme, fresh_scale=0.0)
        make_distributions = partial(ComparedValuesDistributions.on, scheme, pair.left, pair.right)
    return entry(
        "svt3",
        summary="sparse vector that releases the compared noisy value",
        draw=draw,
        claim=PureDP(epsilon),
        worst_pair=pair,
        make_distributions=make_distributions,
        parameters={"epsilon": epsilon, "cutoff": cutoff, "threshold": threshold},
        keeps_claim=2 * cutoff >= QUERIES,
    )


def svt4(epsilon: float = 1.0, cutoff: int = 1, threshold: float = 1.0) -> ZooEntry:
    """Version 4, broken: too little noise on the queries, whatever c is.

    Lap(4/epsilon) on the threshold, Lap(4/(3 epsilon)) on the queries. It keeps (1 + 6c)/4 epsilon,
    not epsilon. Outputs as for `svt1`. Its truth on the pair is an integral: 1.217 for
    epsilon = .7.

    Reference: Lyu, Su, Li, Algorithm 4 (Lee and Clifton, 2014).
    """
    epsilon = check_epsilon(epsilon)
    scheme = Scheme(
        threshold_scale=4 / epsilon,
        query_scale=4 / (3 * epsilon),
        cutoff=_check_cutoff(cutoff),
        threshold=_check_threshold(threshold),
    )
    summary = "sparse vector with too little noise on the queries"
    return _version("svt4", summary, epsilon, scheme, keeps_claim=False)


def svt5(epsilon: float = 1.0, cutoff: int = QUERIES, threshold: float = 1.0) -> ZooEntry:
    """Version 5, broken: Lap(2/epsilon) on the threshold, none on the queries, no stop.

    Outputs: all ten answers, bool of shape (n, 10); with a cutoff below 10, which the reference
    does not have, as for `svt1`. Its truth is infinite: on the pair, an answer of probability
    1 - e^(-epsilon/2) on the left (.295 for epsilon = .7) is impossible on the right.

    Reference: Lyu, Su, Li, Algorithm 5 (Stoddard, Chen, Machanavajjhala, 2014).
    """
    epsilon = check_epsilon(epsilon)
    scheme = Scheme(
        threshold_scale=2 / epsilon,
        query_scale=0.0,
        cutoff=_check_cutoff(cutoff),
        threshold=_check_threshold(threshold),
    )
    return _never_stopping("svt5", "sparse vector without noise on the queries", epsilon, scheme)


def svt6(epsilon: float = 1.0, cutoff: int = QUERIES, threshold: float = 1.0) -> ZooEntry:
    """Version 6, broken: Lap(2/epsilon) on both, no stop.

    The level grows without bound with the number of queries. Outputs: all ten answers, bool of
    shape (n, 10); with a cutoff below 10, which the reference does not have, as for `svt1`. Its
    truth on the pair is an integral: 3.092 for epsilon = .7 and no stop.

    Reference: Lyu, Su, Li, Algorithm 6 (Chen, Xiao, Zhang, Xu, 2015).
    """
    epsilon = check_epsilon(epsilon)
    scheme = Scheme(
        threshold_scale=2 / epsilon,
        query_scale=2 / epsilon,
        cutoff=_check_cutoff(cutoff),
        threshold=_check_threshold(threshold),
    )
    summary = "sparse vector with too little noise on the queries"
    return _never_stopping("svt6", summary, epsilon, scheme)


def numerical_svt(epsilon: float = 1.0, threshold: float = 1.0) -> ZooEntry:
    """The sparse vector technique with a numeric answer, private.

    Each of three noises gets a third of epsilon: Lap(3/epsilon) on the threshold, Lap(6/epsilon) on
    the queries, and the first query "above" is released with fresh Lap(3/epsilon). Outputs as for
    `svt3`. Its truth on the pair is .689 for epsilon = .7.

    Reference: Dwork and Roth, "The algorithmic foundations of differential privacy", NumericSparse
    (Algorithm 3).
    """
    epsilon = check_epsilon(epsilon)
    threshold = _check_threshold(threshold)
    fresh_scale = 3 / epsilon
    scheme = Scheme(
        threshold_scale=3 / epsilon, query_scale=6 / epsilon, cutoff=1, threshold=threshold
    )
    pair = _only_last_above(threshold)
    return entry(
        "numerical_svt",
        summary="sparse vector that releases the positive query with fresh noise",
        draw=partial(first_above, scheme=scheme, fresh_scale=fresh_scale),
        claim=PureDP(epsilon),
        worst_pair=pair,
        make_distributions=partial(
            first_above_distributions, scheme, pair.left, pair.right, fresh_scale
        ),
        parameters={"epsilon": epsilon, "threshold": threshold},
    )


def _check_cutoff(value: int) -> int:
    return check_count("cutoff", value, 1, QUERIES)


def _check_threshold(value: float) -> float:
    return check_number("threshold", value)


def _only_last_above(threshold: float) -> Pair:
    """All queries but the last rise to the threshold, the last one falls below it."""
    low = threshold - 1
    high = threshold
    return Pair([low] * (QUERIES - 1) + [high], [high] * (QUERIES - 1) + [low])


def _half_above_half_below(threshold: float) -> Pair:
    """Half of the queries lie above and half below the threshold; on the right all lie on it."""
    half = QUERIES // 2
    left = [threshold + 1] * half + [threshold - 1] * (QUERIES - half)
    return Pair(left, [threshold] * QUERIES)


def _version(
    name: str, summary: str, epsilon: float, scheme: Scheme, keeps_claim: bool
) -> ZooEntry:
    """Returns version 1, 2 or 4.

    Their pairs have the largest truths, or nearly so, among the usual patterns of queries.
    """
    if keeps_claim and scheme.cutoff == 1:
        pair = _only_last_above(scheme.threshold)
    else:
        pair = _half_above_half_below(scheme.threshold)
    draw = first_above if scheme.cutoff == 1 else answer_until
    return _answers_entry(
        name,
        summary=summary,
        epsilon=epsilon,
        scheme=scheme,
        draw=draw,
        pair=pair,
        keeps_claim=keeps_claim,
    )


def _never_stopping(name: str, summary: str, epsilon: float, scheme: Scheme) -> ZooEntry:
    """Returns version 5 or 6: with ten queries a cutoff of 10 never stops anything."""
    pair = _half_above_half_below(scheme.threshold)
    draw: Callable[..., Any]
    if scheme.cutoff == QUERIES:
        draw = answer_all
        summary = f"{summary}, never stops"
    else:
        summary = f"{summary}, stops after {scheme.cutoff} answers above"
        if scheme.cutoff == 1:
            draw = first_above
            pair = _only_last_above(scheme.threshold)
        else:
            draw = answer_until
            # A mechanism that stops soon must see the queries below first.
            pair = Pair(pair.left[::-1], pair.right)
    return _answers_entry(
        name,
        summary=summary,
        epsilon=epsilon,
        scheme=scheme,
        draw=draw,
        pair=pair,
        keeps_claim=False,
    )


def _answers_entry(
    name: str,
    *,
    summary: str,
    epsilon: float,
    scheme: Scheme,
    draw: Callable[..., Any],
    pair: Pair,
    keeps_claim: bool,
) -> ZooEntry:
    """Returns a version whose outputs are answers "above" and "below" only."""
    return entry(
        name,
        summary=summary,
        draw=partial(draw, scheme=scheme),
        claim=PureDP(epsilon),
        worst_pair=pair,
        make_distributions=partial(answers_distributions, scheme, pair.left, pair.right),
        parameters={
            "epsilon": epsilon,
            "cutoff": scheme.cutoff,
            "threshold": scheme.threshold,
        },
        keeps_claim=keeps_claim,
    )


# --- propose-test-release


def release_if_stable(
    dataset: Any, n: int, rng: Generator, scale: float, threshold: float
) -> dict[str, Array]:
    """Draws columns `released` (bool) and `value` (float, nan if not released), shape (n,) each.

    Args:
        dataset: (value, distance): what would be released, and how many people would have to change
            before the proposed local sensitivity 1 fails.
        n: how many outputs.
        rng: the source of randomness.
        scale: of the Laplace noise on both.
        threshold: that the noisy distance must exceed.
    """
    centre, distance = dataset
    released = rng.laplace(float(distance), scale, n) > threshold
    noisy = rng.laplace(float(centre), scale, n)
    return {"released": released, "value": np.where(released, noisy, np.nan)}


def propose_test_release(
    epsilon: float = 1.0, delta: float = 1e-3, distance: int | None = None
) -> ZooEntry:
    """Propose-test-release: a value is released only if the noisy distance to instability is large.

    Lap(1/epsilon) on the distance, threshold ln(1/(2 delta))/epsilon, and Lap(1/epsilon) on the
    released value; it claims and keeps (2 epsilon, delta). The truth with F(d) = P(released):
    |ln F(d)/F(d - 1)| + epsilon, or that of "not released" if it is larger; 1.649 for distance = 7
    and the other defaults.

    Args:
        epsilon: the budget of each of the two noises.
        delta: the chance of a release although the proposed sensitivity fails.
        distance: of the left dataset (the right one's is smaller by 1). By default the greatest
            whole number up to the threshold, at least 1: there the pure loss is all of 2 epsilon if
            the threshold is 1 or more.

    Reference: Dwork and Lei, "Differential privacy and robust statistics".
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    scale = 1 / epsilon
    threshold = math.log(1 / (2 * delta)) / epsilon
    if distance is None:
        distance = max(1, math.floor(threshold))
    distance = check_count("distance", distance, 1, 10**9)
    return entry(
        "propose_test_release",
        summary="a value that is released only if it is far from unstable",
        draw=partial(release_if_stable, scale=scale, threshold=threshold),
        claim=ApproxDP(2 * epsilon, delta),
        worst_pair=Pair([0.0, float(distance)], [1.0, float(distance - 1)]),
        make_distributions=partial(_release_distributions, scale, threshold, float(distance)),
        parameters={"epsilon": epsilon, "delta": delta, "distance": distance},
    )


def _release_distributions(scale: float, threshold: float, distance: float) -> CellDistributions:
    """The distributions of "released", which comes with a noisy value, and "not released"."""

    def probabilities(margin: float) -> Floats:
        signed = np.array([margin, -margin])
        return laplace_below(signed, scale)

    return CellDistributions(
        left=probabilities(distance - threshold),
        right=probabilities(distance - 1 - threshold),
        shifts=np.array([1 / scale, 0.0]),
    )
