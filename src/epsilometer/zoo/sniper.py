"""DP-Sniper's twenty mechanisms with the parameters of its evaluation, each on one pair of inputs.

Reference: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: black-box discovery of differential
privacy violations using classifiers" (2021); mechanisms after Ding et al. (2018), Lyu, Su, Li
(2017), Wang et al. (2019), Balcer and Vadhan (2018), and Erlingsson, Pihur, Korolova (2014).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from epsilometer.arrays import Floats, Integers
from epsilometer.claims import PureDP
from epsilometer.claims.base import check_choice
from epsilometer.inputs import Pair
from epsilometer.zoo.additive import add_geometric, add_laplace, add_laplace_to_each
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    PairDistributions,
    discrete_distributions,
    independent_distributions,
    laplace_distributions,
)
from epsilometer.zoo.distributions.sparse_vector import (
    Scheme,
    answer_probabilities,
    answers_distributions,
    compared_value_distributions,
    two_compared_values_distributions,
)
from epsilometer.zoo.entry import ZooEntry, entry
from epsilometer.zoo.responses import Rappor
from epsilometer.zoo.selection import NoisyMax, index_distributions, value_distributions
from epsilometer.zoo.sparse_vector import answer_all, answer_until

# What all of them claim, unless they say otherwise.
_EPSILON = 0.1

Draw = Callable[[Any, int, Generator], Any]


def clipped(dataset: Any, n: int, rng: Generator, draw: Draw, most: int) -> Integers:
    """Draws integers and clips them to 0..most; int64 outputs of shape (n,)."""
    return np.asarray(np.clip(draw(dataset, n, rng), 0, most))


def parallel(dataset: Any, n: int, rng: Generator, parts: tuple[Draw, ...]) -> Floats:
    """Runs several mechanisms on one dataset, outputs side by side; floats of shape (n, d)."""
    return np.column_stack([part(dataset, n, rng) for part in parts])


def repeated(dataset: Any, n: int, rng: Generator, draw: Draw, copies: int) -> Floats:
    """Runs one mechanism several times, independently; floats of shape (n, copies)."""
    return np.reshape(draw(dataset, n * copies, rng), (n, copies))


def prefix_sums(dataset: Any, n: int, rng: Generator, draw: Draw) -> Floats:
    """Returns the sums of the first 1, 2, … noisy numbers; floats of shape (n, d)."""
    return np.cumsum(draw(dataset, n, rng), axis=1)


@dataclass(frozen=True)
class _Published:
    """A mechanism on a pair of datasets.

    Attributes:
        draw: returns outputs.
        left: a dataset.
        right: its neighbour.
        make_distributions: makes the exact output distributions on the pair.
        keeps_claim: whether the claim is true.
        claimed: the epsilon that is claimed.
    """

    draw: Draw
    left: Any
    right: Any
    make_distributions: Callable[[], PairDistributions]
    keeps_claim: bool
    claimed: float = _EPSILON


# --- Laplace and geometric noise


def _laplace_mechanism() -> _Published:
    return _Published(
        draw=partial(add_laplace, scale=1 / _EPSILON),
        left=0.0,
        right=1.0,
        make_distributions=partial(laplace_distributions, _EPSILON),
        keeps_claim=True,
    )


def _noisy_histogram(scale: float, shift: float, keeps_claim: bool) -> _Published:
    """Returns Laplace noise on five counts, one of which changes by 1.

    Args:
        scale: of the noise.
        shift: 1 in units of the scale.
        keeps_claim: whether the scale is large enough.
    """
    return _Published(
        draw=partial(add_laplace_to_each, scale=scale),
        left=[0, 1, 1, 1, 1],
        right=[1, 1, 1, 1, 1],
        make_distributions=partial(laplace_distributions, shift),
        keeps_claim=keeps_claim,
    )


def _laplace_parallel() -> _Published:
    """Returns twenty Laplace mechanisms, each with a twentieth of epsilon."""
    copies = 20
    return _Published(
        draw=partial(repeated, draw=partial(add_laplace, scale=200.0), copies=copies),
        left=1.0,
        right=0.0,
        make_distributions=partial(
            independent_distributions, [laplace_distributions(0.005)] * copies
        ),
        keeps_claim=True,
    )


def _prefix_sum() -> _Published:
    """Returns ten noisy numbers, of which all may change by 1: ten times the claimed loss."""
    size = 10
    return _Published(
        draw=partial(prefix_sums, draw=partial(add_laplace_to_each, scale=1 / _EPSILON)),
        left=[1.0] * size,
        right=[0.0] * size,
        make_distributions=partial(
            independent_distributions, [laplace_distributions(_EPSILON)] * size
        ),
        keeps_claim=False,
    )


def _truncated_geometric() -> _Published:
    """Returns geometric noise on a count of five people, clipped to 0..5.

    Beyond 0 and 5 the ratio is constant, so clipping loses nothing.
    """
    # 1/(1 + 2^-k) with k = ceil(ln(2/epsilon)): what finite computers can draw exactly.
    ratio = 8 / 9
    right = np.array([1.0, ratio]) / (1 + ratio)
    left = right[::-1].copy()
    return _Published(
        draw=partial(clipped, draw=partial(add_geometric, ratio=ratio), most=5),
        left=2,
        right=1,
        make_distributions=partial(discrete_distributions, left, right),
        keeps_claim=True,
        claimed=-math.log(ratio),
    )


# --- noisy maxima


def _noisy_max_index(noise: str) -> _Published:
    draw = NoisyMax(noise=noise, output="index", scale=2 / _EPSILON)
    pair = Pair([1.0] * 5, [0.0] + [2.0] * 4)
    return _Published(
        draw=draw,
        left=pair.left,
        right=pair.right,
        make_distributions=partial(index_distributions, draw, pair),
        keeps_claim=True,
    )


def _noisy_max_value(noise: str) -> _Published:
    draw = NoisyMax(noise=noise, output="value", scale=2 / _EPSILON)
    return _Published(
        draw=draw,
        left=[1.0] * 5,
        right=[2.0] * 5,
        make_distributions=partial(value_distributions, draw, 5),
        keeps_claim=False,
    )


# --- the sparse vector technique

# Releases the compared values; these two numbers stand for "below" and "not answered".
_release_values = partial(answer_until, fresh_scale=0.0, below=-1000.0, stopped=-2000.0)


def _halves(first: float, second: float) -> list[float]:
    """Returns ten queries: five with the first value, five with the second."""
    return [first] * 5 + [second] * 5


def _sparse_vector(
    scheme: Scheme, left: list[float], right: list[float], keeps_claim: bool = False
) -> _Published:
    answer = answer_all if scheme.cutoff is None else answer_until
    return _Published(
        draw=partial(answer, scheme=scheme),
        left=left,
        right=right,
        make_distributions=partial(answers_distributions, scheme, left, right),
        keeps_claim=keeps_claim,
    )


def _svt1() -> _Published:
    scheme = Scheme(threshold_scale=20.0, query_scale=40.0, cutoff=1, threshold=0.5)
    return _sparse_vector(scheme, _halves(0.0, 1.0), _halves(1.0, 0.0), keeps_claim=True)


def _svt2() -> _Published:
    scheme = Scheme(threshold_scale=20.0, query_scale=40.0, cutoff=1)
    return _sparse_vector(scheme, _halves(0.0, 1.0), _halves(1.0, 0.0), keeps_claim=True)


def _svt3() -> _Published:
    scheme = Scheme(threshold_scale=20.0, query_scale=20.0, cutoff=1)
    left = _halves(0.0, 1.0)
    right = _halves(1.0, 0.0)
    return _Published(
        draw=partial(_release_values, scheme=scheme),
        left=left,
        right=right,
        make_distributions=partial(compared_value_distributions, scheme, left, right),
        keeps_claim=False,
    )


def _svt4() -> _Published:
    scheme = Scheme(threshold_scale=40.0, query_scale=1 / 0.075, cutoff=1)
    return _sparse_vector(scheme, _halves(1.0, 1.0), _halves(2.0, 0.0))


def _svt5() -> _Published:
    scheme = Scheme(threshold_scale=20.0, query_scale=0.0, cutoff=None)
    return _sparse_vector(scheme, _halves(2.0, 0.0), _halves(1.0, 1.0))


def _svt6() -> _Published:
    scheme = Scheme(threshold_scale=20.0, query_scale=20.0, cutoff=None)
    return _sparse_vector(scheme, _halves(1.0, 0.0), _halves(0.0, 1.0))


def _svt34_parallel() -> _Published:
    """Returns versions 3 and 4 on the same queries."""
    values = Scheme(threshold_scale=20.0, query_scale=40.0, cutoff=2)
    answers = Scheme(threshold_scale=40.0, query_scale=1 / 0.075, cutoff=2)
    parts = (partial(_release_values, scheme=values), partial(answer_until, scheme=answers))
    left = _halves(1.0, 1.0)
    right = _halves(2.0, 0.0)
    return _Published(
        draw=partial(parallel, parts=parts),
        left=left,
        right=right,
        make_distributions=partial(_svt34_distributions, values, answers, left, right),
        keeps_claim=False,
    )


def _svt34_distributions(
    values: Scheme, answers: Scheme, left: Sequence[float], right: Sequence[float]
) -> CellDistributions:
    released_values = two_compared_values_distributions(values, left, right)
    released_answers = answers_distributions(answers, left, right)
    return independent_distributions([released_values, released_answers])


def _numerical_svt() -> _Published:
    scheme = Scheme(threshold_scale=30.0, query_scale=120.0, cutoff=2)
    fresh_scale = 60.0
    left = _halves(1.0, 0.0)
    right = _halves(0.0, 1.0)
    draw = partial(answer_until, scheme=scheme, fresh_scale=fresh_scale, below=0.0, stopped=-1000.0)
    return _Published(
        draw=draw,
        left=left,
        right=right,
        make_distributions=partial(_numerical_svt_distributions, scheme, fresh_scale, left, right),
        keeps_claim=True,
    )


def _numerical_svt_distributions(
    scheme: Scheme, fresh_scale: float, left: Sequence[float], right: Sequence[float]
) -> CellDistributions:
    """The distributions of the answers and of the released numbers.

    Every answer above comes with a number whose centres lie 1/fresh_scale scales apart,
    independently.
    """
    left_answers = answer_probabilities(scheme, left)
    right_answers = answer_probabilities(scheme, right)
    # By the number of answers above, which is at most the cutoff, 2.
    numbers_by_count = [
        independent_distributions([laplace_distributions(1 / fresh_scale)] * count)
        for count in range(3)
    ]
    left_cells = []
    right_cells = []
    for answers, left_probability in left_answers.items():
        numbers = numbers_by_count[sum(answers)]
        left_cells.append(left_probability * numbers.left)
        right_cells.append(right_answers[answers] * numbers.right)
    return discrete_distributions(np.concatenate(left_cells), np.concatenate(right_cells))


# --- RAPPOR


def _rappor(permanent_kept: float, report_kept: float) -> _Published:
    """Returns RAPPOR with twenty bits and four hashes.

    These two values differ in six bits, as the published ones do by another hash.
    """
    draw = Rappor(
        bits=20,
        hashes=4,
        permanent_kept=permanent_kept,
        report_kept=report_kept,
        reports=1,
    )
    p_kept = permanent_kept * report_kept + (1 - permanent_kept) * (1 - report_kept)
    bit_distributions = discrete_distributions(
        np.array([p_kept, 1 - p_kept]), np.array([1 - p_kept, p_kept])
    )
    return _Published(
        draw=draw,
        left=3,
        right=7,
        make_distributions=partial(independent_distributions, [bit_distributions] * 6),
        keeps_claim=True,
        claimed=8 * math.log(p_kept / (1 - p_kept)),
    )


# --- all of them

_PUBLISHED: dict[str, Callable[[], _Published]] = {
    "LaplaceMechanism": _laplace_mechanism,
    "TruncatedGeometricMechanism": _truncated_geometric,
    "NoisyHist1": partial(_noisy_histogram, scale=1 / _EPSILON, shift=_EPSILON, keeps_claim=True),
    "NoisyHist2": partial(_noisy_histogram, scale=_EPSILON, shift=1 / _EPSILON, keeps_claim=False),
    "ReportNoisyMax1": partial(_noisy_max_index, "laplace"),
    "ReportNoisyMax2": partial(_noisy_max_index, "exponential"),
    "ReportNoisyMax3": partial(_noisy_max_value, "laplace"),
    "ReportNoisyMax4": partial(_noisy_max_value, "exponential"),
    "SparseVectorTechnique1": _svt1,
    "SparseVectorTechnique2": _svt2,
    "SparseVectorTechnique3": _svt3,
    "SparseVectorTechnique4": _svt4,
    "SparseVectorTechnique5": _svt5,
    "SparseVectorTechnique6": _svt6,
    "Rappor": partial(_rappor, permanent_kept=0.625, report_kept=0.55),
    "OneTimeRappor": partial(_rappor, permanent_kept=0.525, report_kept=1.0),
    "LaplaceParallel": _laplace_parallel,
    "SVT34Parallel": _svt34_parallel,
    "PrefixSum": _prefix_sum,
    "NumericalSVT": _numerical_svt,
}
SNIPER_NAMES = tuple(_PUBLISHED)


def sniper(mechanism: str = "PrefixSum") -> ZooEntry:
    """One of the twenty mechanisms of DP-Sniper's evaluation, on a pair of inputs that it found.

    They claim epsilon = .1. `zoo.find("PrefixSum")` finds them by their published names, too. Exact
    distributions of several numbers are numeric: their losses are merged to 1/2000 of the greatest
    one.
    """
    published = _PUBLISHED[check_choice("mechanism", mechanism, SNIPER_NAMES)]()
    return entry(
        mechanism,
        summary=f"DP-Sniper's {mechanism} as published, one of twenty by mechanism=",
        draw=published.draw,
        claim=PureDP(published.claimed),
        worst_pair=Pair(published.left, published.right),
        make_distributions=published.make_distributions,
        parameters={"mechanism": mechanism},
        keeps_claim=published.keeps_claim,
    )
