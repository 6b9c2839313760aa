"""DP-Sniper's twenty mechanisms with the parameters of its evaluation, each on one pair of inputs.

Reference: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: black-box discovery of differential privacy violations using
classifiers" (2021); mechanisms after Ding et al. (2018), Lyu, Su, Li (2017), Wang et al. (2019), Balcer and Vadhan
(2018), and Erlingsson, Pihur, Korolova (2014).
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
from epsilometer.zoo.entry import ZooEntry, entry
from epsilometer.zoo.laws import sparse_vector as laws
from epsilometer.zoo.laws.exact import CellLaw, PairLaw, discrete_law, independent_law, laplace_law
from epsilometer.zoo.laws.sparse_vector import Scheme
from epsilometer.zoo.responses import Rappor
from epsilometer.zoo.selection import NoisyMax, index_law, value_law
from epsilometer.zoo.sparse_vector import answer_all, answer_until

_EPSILON = 0.1
Draw = Callable[[Any, int, Generator], Any]


def clipped(dataset: Any, n: int, rng: Generator, draw: Draw, most: int) -> Integers:
    """Whole numbers from 0 to `most`; int64 outputs of shape (n,)."""
    return np.asarray(np.clip(draw(dataset, n, rng), 0, most))


def parallel(dataset: Any, n: int, rng: Generator, parts: tuple[Draw, ...]) -> Floats:
    """Several mechanisms on the same dataset, their outputs side by side; floats of shape (n, d)."""
    return np.column_stack([part(dataset, n, rng) for part in parts])


def repeated(dataset: Any, n: int, rng: Generator, draw: Draw, copies: int) -> Floats:
    """The same mechanism several times, independently; floats of shape (n, copies)."""
    return np.reshape(draw(dataset, n * copies, rng), (n, copies))


def prefix_sums(dataset: Any, n: int, rng: Generator, draw: Draw) -> Floats:
    """The sums of the first 1, 2, … numbers, each number with its own noise; floats of shape (n, d)."""
    return np.cumsum(draw(dataset, n, rng), axis=1)


@dataclass(frozen=True)
class _Published:
    """A mechanism, a pair, its law there, and the level that is claimed for it."""

    draw: Draw
    left: Any
    right: Any
    law: Callable[[], PairLaw]
    keeps_claim: bool
    claimed: float = _EPSILON


def _noisy_max(noise: str, output: str) -> _Published:
    draw = NoisyMax(noise, output, 2 / _EPSILON)
    pair = Pair([1.0] * 5, [0.0] + [2.0] * 4 if output == "index" else [2.0] * 5)
    law = partial(index_law, draw, pair) if output == "index" else partial(value_law, draw, 5)
    return _Published(draw, pair.left, pair.right, law, output == "index")


def _sparse(scheme: Scheme, left: Sequence[float], right: Sequence[float], keeps_claim: bool = False) -> _Published:
    draw = partial(answer_all if scheme.cutoff is None else answer_until, scheme=scheme)
    left, right = _halves(*left), _halves(*right)
    return _Published(draw, left, right, partial(laws.answers_law, scheme, left, right), keeps_claim)


def _halves(first: float, second: float) -> list[float]:
    return [first] * 5 + [second] * 5


_released_values = partial(answer_until, fresh_scale=0.0, below=-1000.0, stopped=-2000.0)


def _svt3() -> _Published:
    scheme, left, right = Scheme(20.0, 20.0, 1), _halves(0.0, 1.0), _halves(1.0, 0.0)
    draw = partial(_released_values, scheme=scheme)
    return _Published(draw, left, right, partial(laws.compared_value_law, scheme, left, right), False)


def _svt34() -> _Published:
    left, right = _halves(1.0, 1.0), _halves(2.0, 0.0)
    values, answers = Scheme(20.0, 40.0, 2), Scheme(40.0, 1 / 0.075, 2)
    draw = partial(parallel, parts=(partial(_released_values, scheme=values), partial(answer_until, scheme=answers)))
    return _Published(draw, left, right, partial(_svt34_law, values, answers, left, right), False)


def _svt34_law(values: Scheme, answers: Scheme, left: Sequence[float], right: Sequence[float]) -> CellLaw:
    return independent_law([laws.two_compared_values_law(values, left, right), laws.answers_law(answers, left, right)])


def _numerical_svt() -> _Published:
    scheme, fresh_scale, left, right = Scheme(30.0, 120.0, 2), 60.0, _halves(1.0, 0.0), _halves(0.0, 1.0)
    draw = partial(answer_until, scheme=scheme, fresh_scale=fresh_scale, below=0.0, stopped=-1000.0)
    return _Published(draw, left, right, partial(_numerical_svt_law, scheme, fresh_scale, left, right), True)


def _numerical_svt_law(scheme: Scheme, fresh_scale: float, left: Sequence[float], right: Sequence[float]) -> CellLaw:
    """Every answer above comes with a number whose centres lie 1/fresh_scale scales apart, independently."""
    sides = [laws.answer_probabilities(scheme, queries) for queries in (left, right)]
    numbers = [independent_law([laplace_law(1 / fresh_scale)] * count) for count in range(3)]
    left_cells = [sides[0][key] * numbers[sum(key)].left for key in sides[0]]
    right_cells = [sides[1][key] * numbers[sum(key)].right for key in sides[0]]
    return discrete_law(np.concatenate(left_cells), np.concatenate(right_cells))


def _rappor(permanent_kept: float, report_kept: float) -> _Published:
    """Twenty bits, four hashes; these two values differ in six bits, as the published ones by another hash do."""
    draw = Rappor(20, 4, permanent_kept, report_kept, 1)
    kept = permanent_kept * report_kept + (1 - permanent_kept) * (1 - report_kept)
    bit = discrete_law(np.array([kept, 1 - kept]), np.array([1 - kept, kept]))
    return _Published(draw, 3, 7, partial(independent_law, [bit] * 6), True, 8 * math.log(kept / (1 - kept)))


def _laplaces(draw: Draw, left: Any, right: Any, shift: float, copies: int, keeps_claim: bool = True) -> _Published:
    """Independent Laplace noises, about centres that lie `shift` scales apart in `copies` of them."""
    law = partial(independent_law, [laplace_law(shift)] * copies) if copies > 1 else partial(laplace_law, shift)
    return _Published(draw, left, right, law, keeps_claim)


def _truncated_geometric() -> _Published:
    """Geometric noise on a count of five people; beyond 0 and 5 the ratio is constant, so clipping loses nothing."""
    ratio = 8 / 9  # 1/(1 + 2^-k) with k = ceil(ln(2/epsilon)): what finite computers can draw exactly
    cells = np.array([1.0, ratio]) / (1 + ratio)
    draw = partial(clipped, draw=partial(add_geometric, ratio=ratio), most=5)
    return _Published(draw, 2, 1, partial(discrete_law, cells[::-1].copy(), cells), True, -math.log(ratio))


_laplace_each = partial(add_laplace_to_each, scale=10.0)
_many_laplaces = partial(repeated, draw=partial(add_laplace, scale=200.0), copies=20)
_ALL: dict[str, Callable[[], _Published]] = {
    "LaplaceMechanism": lambda: _laplaces(partial(add_laplace, scale=10.0), 0.0, 1.0, 0.1, 1),
    "TruncatedGeometricMechanism": _truncated_geometric,
    "NoisyHist1": lambda: _laplaces(_laplace_each, [0, 1, 1, 1, 1], [1] * 5, 0.1, 1),
    "NoisyHist2": lambda: _laplaces(partial(add_laplace_to_each, scale=0.1), [0, 1, 1, 1, 1], [1] * 5, 10.0, 1, False),
    "ReportNoisyMax1": lambda: _noisy_max("laplace", "index"),
    "ReportNoisyMax2": lambda: _noisy_max("exponential", "index"),
    "ReportNoisyMax3": lambda: _noisy_max("laplace", "value"),
    "ReportNoisyMax4": lambda: _noisy_max("exponential", "value"),
    "SparseVectorTechnique1": lambda: _sparse(Scheme(20.0, 40.0, 1, 0.5), (0.0, 1.0), (1.0, 0.0), True),
    "SparseVectorTechnique2": lambda: _sparse(Scheme(20.0, 40.0, 1), (0.0, 1.0), (1.0, 0.0), True),
    "SparseVectorTechnique3": _svt3,
    "SparseVectorTechnique4": lambda: _sparse(Scheme(40.0, 1 / 0.075, 1), (1.0, 1.0), (2.0, 0.0)),
    "SparseVectorTechnique5": lambda: _sparse(Scheme(20.0, 0.0, None), (2.0, 0.0), (1.0, 1.0)),
    "SparseVectorTechnique6": lambda: _sparse(Scheme(20.0, 20.0, None), (1.0, 0.0), (0.0, 1.0)),
    "Rappor": lambda: _rappor(0.625, 0.55),
    "OneTimeRappor": lambda: _rappor(0.525, 1.0),
    "LaplaceParallel": lambda: _laplaces(_many_laplaces, 1.0, 0.0, 0.005, 20),
    "SVT34Parallel": _svt34,
    "PrefixSum": lambda: _laplaces(partial(prefix_sums, draw=_laplace_each), [1.0] * 10, [0.0] * 10, 0.1, 10, False),
    "NumericalSVT": _numerical_svt,
}
SNIPER_NAMES = tuple(_ALL)


def sniper(mechanism: str = "PrefixSum") -> ZooEntry:
    """One of the twenty mechanisms of DP-Sniper's evaluation at epsilon = .1, on a pair of inputs that it found.

    `zoo.find("PrefixSum")` finds them by their published names too. Laws of several numbers are numeric: their losses
    are merged to 1/2000 of the greatest one.
    """
    made = _ALL[check_choice("mechanism", mechanism, SNIPER_NAMES)]()
    summary, claim = f"DP-Sniper's {mechanism} as published, one of twenty by mechanism=", PureDP(made.claimed)
    pair, given = Pair(made.left, made.right), {"mechanism": mechanism}
    return entry(mechanism, summary, made.draw, claim, pair, made.law, keeps_claim=made.keeps_claim, **given)
