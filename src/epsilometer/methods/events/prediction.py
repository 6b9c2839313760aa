"""The bound to expect from an event, by its frequencies in training draws."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv, ndtri

from epsilometer.arrays import Floats
from epsilometer.claims import ApproxDeltaDP, ApproxDP, Claim, PureDP
from epsilometer.methods.base import Task

# Splits of the failure probability between P(E) and Q(E) that are tried for notions without a joint test.
_SHARES = (0.5, 0.35, 0.65, 0.2, 0.8, 0.1, 0.9)

Predictor = Callable[[Floats, Floats], tuple[Floats, Floats]]


def predictor(task: Task, n_train: tuple[int, int], n_fresh: tuple[int, int], doubt: float = 1.0) -> Predictor:
    """A function from (p, q) to (predicted bound, its spread through the training draws), elementwise.

    The prediction subtracts the cost of the proof (on `n_fresh` draws of P's and Q's side) and the spread of the
    training draws times `doubt`: without the latter, tiny events win by chance.
    """
    claim = task.claim
    cost = -float(ndtri(task.failure_probability))
    if isinstance(claim, ApproxDeltaDP):
        return lambda p, q: _predict_delta(p, q, math.exp(min(claim.epsilon, 300.0)), cost, doubt, n_train, n_fresh)
    if isinstance(claim, PureDP | ApproxDP):
        return lambda p, q: _predict_epsilon(p, q, claim.delta, cost, doubt, n_train, n_fresh)
    return lambda p, q: _predict_any(p, q, task, doubt, n_train, n_fresh)


def _predict_epsilon(
    p: Floats, q: Floats, delta: float, cost: float, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        above = p - delta
        train, fresh = (np.sqrt(p * (1.0 - p) / (n[0] * above**2) + (1.0 - q) / (n[1] * q)) for n in (n_train, n_fresh))
        bound = np.log(above / q) - cost * fresh - doubt * train
        return np.where((above > 0.0) & ~np.isnan(bound), bound, -np.inf), train


def _predict_delta(
    p: Floats, q: Floats, grow: float, cost: float, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[Floats, Floats]:
    def spread(n: tuple[int, int]) -> Floats:
        return np.sqrt(p * (1.0 - p) / n[0] + grow**2 * q * (1.0 - q) / n[1])

    return p - grow * q - cost * spread(n_fresh) - doubt * spread(n_train), spread(n_train)


def _predict_any(
    p: Floats, q: Floats, task: Task, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[Floats, Floats]:
    cost = -float(ndtri(task.failure_probability / 2.0))
    # The two errors of training are independent: each counts for about 1/√2 of its size.
    bounds, spreads = np.full(len(p), -np.inf), np.zeros(len(p))
    for place, (a, b) in enumerate(zip(p, q, strict=True)):
        bounds[place], spreads[place] = _predict_one(
            task.claim, float(a), float(b), cost, 0.7 * doubt, n_train, n_fresh
        )
    return bounds, spreads


def _predict_one(
    claim: Claim, p: float, q: float, cost: float, doubt: float, n_train: tuple[int, int], n_fresh: tuple[int, int]
) -> tuple[float, float]:
    """Both probabilities are moved towards each other by what the proof and the training draws cost."""
    train = [math.sqrt(x * (1.0 - x) / n) for x, n in zip((p, q), n_train, strict=True)]
    fresh = [math.sqrt(x * (1.0 - x) / n) for x, n in zip((p, q), n_fresh, strict=True)]
    low = p - cost * fresh[0] - doubt * train[0]
    high = q + cost * fresh[1] + doubt * train[1]
    bound = claim.least_value(low, high) if high < low else low - high
    moved = claim.least_value(max(p - 0.7 * train[0], 0.0), min(q + 0.7 * train[1], 1.0)) if p > q else 0.0
    here = claim.least_value(p, q) if p > q else 0.0
    return bound, (here - moved if math.isfinite(here) else 0.0)


def few_doubt(n_train: tuple[int, int]) -> float:
    """How many spreads to subtract with few training draws: 0.1 with 10 draws, 0.8 with 100, 3 with 3000.

    With few draws caution costs more than luck: N(3, 1) at n = 30 proves 1.5 at a doubt of 0.5 and 0 at 1.5, because
    the certain event then looks best; Laplace noise with ε = 1 at n = 2000 proves 0.81 and 0.88. At 3000 it equals the
    doubt about long lines, so that power does not drop where `choose_event` takes over.
    """
    return min(float(np.log10(max(min(n_train) / 3.0, 1.0))) ** 2 / 3.0, 3.0)


def expected_bounds(
    task: Task, p: Floats, q: Floats, n_train: tuple[int, int], n_fresh: tuple[int, int], doubt: float
) -> Floats:
    """The bound from counts exactly as expected, less what the training draws leave open.

    It is right for few draws, too. For ε it is the approximate score bound, which orders the counts in the exact test;
    for other notions it is the exact bound, at counts that need not be whole.
    """
    claim = task.claim
    if isinstance(claim, PureDP | ApproxDP) and not isinstance(claim, ApproxDeltaDP):
        z = -float(ndtri(task.failure_probability))
        return _score_bound(p, q, claim.delta, z, n_fresh) - doubt * _spread_of_ratio(p, q, claim.delta, n_train)
    # The two errors of training are independent: each counts for about 1/√2 of its size.
    p = np.maximum(p - 0.7 * doubt * np.sqrt(p * (1.0 - p) / n_train[0]), 0.0)
    q = np.minimum(q + 0.7 * doubt * np.sqrt(q * (1.0 - q) / n_train[1]), 1.0)
    # The two limits for the counts to be expected, which need not be whole; half of the price for each.
    x, y, price = n_fresh[0] * p, n_fresh[1] * q, task.failure_probability * 0.5
    low = betaincinv(np.maximum(x, 1e-9), n_fresh[0] - x + 1.0, price).tolist()
    high = betaincinv(y + 1.0, np.maximum(n_fresh[1] - y, 1e-9), 1.0 - price).tolist()
    return np.array([claim.least_value(a, b) if b < a else a - b for a, b in zip(low, high, strict=True)])


def _score_bound(p: Floats, q: Floats, delta: float, z: float, n_fresh: tuple[int, int]) -> Floats:
    shift = n_fresh[0] * delta
    s, y = n_fresh[0] * p - shift, n_fresh[1] * q
    constant = s * s - z * z * shift
    middle = 2.0 * s * y + z * z * (s + y)
    ratio = 2.0 * constant / (middle + np.sqrt(np.maximum(middle * middle - 4.0 * y * y * constant, 0.0)))
    proves = (s > 0.0) & (constant > 0.0)
    # Events that prove nothing are still ranked.
    return np.where(proves, np.log(np.where(proves, ratio, 1.0) * n_fresh[1] / n_fresh[0]), p - q - 100.0)


def _spread_of_ratio(p: Floats, q: Floats, delta: float, n: tuple[int, int]) -> Floats:
    """The standard deviation of ln((p − δ)/q) when both are estimated from n draws."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.sqrt(p * (1.0 - p) / (n[0] * (p - delta) ** 2) + (1.0 - q) / (n[1] * np.maximum(q, 1e-300)))
        )


def best_share(task: Task, p: float, q: float, n_fresh: tuple[int, int]) -> float:
    """The split of the failure probability for the two-bound test, chosen on training frequencies."""

    def bound(share: float) -> float:
        low = p + float(ndtri(task.failure_probability * share)) * math.sqrt(p * (1.0 - p) / n_fresh[0])
        high = q - float(ndtri(task.failure_probability * (1.0 - share))) * math.sqrt(q * (1.0 - q) / n_fresh[1])
        return task.claim.least_value(low, high) if 0.0 < high < low else -1.0

    return max(_SHARES, key=bound)
