"""What can be added up is not sampled: bounds on counts, for all counts of few draws and many coins.

Every figure is the largest chance of an error over the chance that was allowed for it: at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import rel_entr
from scipy.stats import binom

import epsilometer as em
from benchmarks.sound.cases import Figure, Worked
from epsilometer.arrays import Floats
from epsilometer.bounds import Counts, certified_value, delta_lower, epsilon_lower, lower, upper
from epsilometer.bounds.anytime import anytime_lower
from epsilometer.bounds.betting import place_bets
from epsilometer.bounds.one_run import one_run_p_value
from epsilometer.bounds.supporting_lines import lines_of
from epsilometer.claims import ApproxDeltaDP, Claim

# Bounds and chances are computed in floats, some by bisection.
SLACK = 1e-7
FAILURES = (0.5, 0.2, 0.05, 0.01)
# Probabilities of the less likely side: dense near 0, where counts are most skewed.
GRID: Floats = np.unique(np.concatenate([np.geomspace(1e-4, 0.1, 40), np.linspace(0.1, 1.0, 91)]))
# At most so many different values of a table of bounds are looked at, evenly spread.
_MOST_VALUES = 40
# A bound beyond this is practically infinite.
_LARGEST = 50.0

Bound = Callable[[Counts, Counts, float], float]


@dataclass(slots=True)
class _Largest:
    """The largest ratio so far, and where it was."""

    ratio: float = 0.0
    where: str = ""

    def see(self, ratio: float, where: str) -> None:
        # A ratio that is not a number must not be lost.
        if not ratio <= self.ratio:
            self.ratio, self.where = ratio, where

    @property
    def worst(self) -> Worked:
        return Worked(self.ratio, 1.0 + SLACK, self.where)


def cases() -> Iterator[Figure]:
    """All figures. To add a bound on the counts of an event, add a line here."""
    yield _figure("Clopper–Pearson, up to 40 draws", _clopper_pearson)
    for delta in (0.0, 0.01, 0.3, 0.6):
        bound = partial(_epsilon_bound, delta)
        yield _figure(
            f"ε at δ = {delta:g}, all counts", partial(_two_counts, bound, em.ApproxDP(0.0, delta))
        )
    for epsilon in (0.0, 0.5, 2.0):
        bound = partial(_delta_bound, epsilon)
        yield _figure(
            f"δ at ε = {epsilon:g}, all counts",
            partial(_two_counts, bound, ApproxDeltaDP(epsilon, 0.0)),
        )
    for name, claim in _curves().items():
        for expected in ((0.6, 0.1), (0.95, 0.6)):
            bound = partial(_curve_bound, claim, expected)
            work = partial(_two_counts, bound, claim, sizes=((7, 6),), failures=(0.3, 0.05))
            yield _figure(f"{name}, an event guessed at {expected[0]:g} and {expected[1]:g}", work)
    yield _figure("bound at any time, up to 60 draws", _anytime)
    for name, claim in {
        **_curves(),
        "pure": em.PureDP(0.7),
        "approximate": em.ApproxDP(0.5, 0.05),
    }.items():
        yield _figure(f"bets against {name}", partial(_bets, claim))
    for step in (1e-6, 1e-10, 1e-14):
        yield _figure(f"bets against Rényi of order 1 + {step:g}", partial(_bets_next_to_one, step))
    for epsilon in (0.0, 0.5, 2.0):
        yield _figure(f"p-value of one run, ε = {epsilon:g}", partial(_one_run, epsilon))
    for claim in (em.PureDP(0.0), em.PureDP(1.0), em.ApproxDP(0.5, 0.05)):
        yield _figure(f"p-value of replays, {claim.describe()}", partial(_replay_p_values, claim))


def _figure(name: str, work_out: Callable[[], Worked]) -> Figure:
    return Figure("enumerations", name, lambda seed: work_out())


def _curves() -> dict[str, Claim]:
    return {
        "Gaussian": em.GaussianDP(0.7),
        "Rényi of order 1.2": em.RenyiDP(1.2, 0.3),
        "Rényi of order 20": em.RenyiDP(20.0, 0.6),
        "zero-concentrated": em.ZCDP(0.2),
        "a trade-off curve": em.TradeOffDP(([0.0, 0.1, 0.3, 1.0], [0.9, 0.75, 0.4, 0.0])),
    }


def _clopper_pearson() -> Worked:
    largest = _Largest()
    for n in range(1, 41):
        counts = np.arange(n + 1)
        for failure in FAILURES:
            for hits in range(n + 1):
                below = lower(Counts(hits, n), failure)
                above = upper(Counts(hits, n), failure)
                # Of a probability just beyond the bound these counts, and more extreme ones, miss it.
                missed_low = (
                    binom.pmf(counts[hits:], n, below * (1.0 - SLACK)).sum() if below > 0.0 else 0.0
                )
                missed_high = (
                    binom.pmf(counts[: hits + 1], n, above + SLACK * (1.0 - above)).sum()
                    if above < 1.0
                    else 0.0
                )
                for missed in (missed_low, missed_high):
                    largest.see(float(missed) / failure, f"{hits} of {n} at {failure:g}")
    return largest.worst


def _epsilon_bound(delta: float, left: Counts, right: Counts, failure: float) -> float:
    return epsilon_lower(left, right, failure, delta)


def _delta_bound(epsilon: float, left: Counts, right: Counts, failure: float) -> float:
    return delta_lower(left, right, failure, epsilon)


def _curve_bound(
    claim: Claim, expected: tuple[float, float], left: Counts, right: Counts, failure: float
) -> float:
    return certified_value(claim, left, right, failure, expected)


def _two_counts(
    bound: Bound,
    claim: Claim,
    *,
    sizes: Sequence[tuple[int, int]] = ((12, 12), (9, 17), (18, 7)),
    failures: Sequence[float] = (0.5, 0.2, 0.05),
) -> Worked:
    """The chance that a bound exceeds the truth, for coins on the edge of the claim at every value of the bound."""
    largest = _Largest()
    for n, m in sizes:
        for failure in failures:
            rows = [
                [bound(Counts(x, n), Counts(y, m), failure) for y in range(m + 1)]
                for x in range(n + 1)
            ]
            table = np.array(rows)
            if not np.all(np.isfinite(table)):
                largest.see(
                    math.nan, f"a bound that is not finite, {n} and {m} draws at {failure:g}"
                )
            values = np.unique(table[table > SLACK])
            places = np.unique(
                np.linspace(0, len(values) - 1, min(len(values), _MOST_VALUES)).astype(int)
            )
            for value in values[places] if len(values) else ():
                truth = min(float(value), _LARGEST) * (1.0 - SLACK)
                p = claim.with_value(truth).max_power(GRID)
                chances = _chances(table >= value, p, GRID)
                where = int(np.argmax(chances))
                text = f"{n} and {m} draws at {failure:g}, {claim.symbol} = {truth:.4g}, Q = {GRID[where]:.4g}"
                largest.see(float(chances[where]) / failure, text)
    return largest.worst


def _chances(inside: np.ndarray, p: Floats, q: Floats) -> Floats:
    """The chance of the counts in a table, shape (n + 1, m + 1), per coin."""
    n, m = inside.shape[0] - 1, inside.shape[1] - 1
    left = binom.pmf(np.arange(n + 1)[:, None], n, p)
    right = binom.pmf(np.arange(m + 1)[:, None], m, q)
    return np.asarray(np.einsum("xk,xy,yk->k", left, inside.astype(np.float64), right))


def _anytime() -> Worked:
    """The chance that a bound which may be looked at after every draw is ever above the truth."""
    most = 60
    largest = _Largest()
    for failure in (0.5, 0.2):
        bounds = [
            [anytime_lower(Counts(k, n), failure) for k in range(n + 1)] for n in range(1, most + 1)
        ]
        for p in np.linspace(0.02, 0.98, 25):
            alive = np.array([1.0])
            for row in bounds:
                alive = np.append((1.0 - p) * alive, 0.0) + np.append(0.0, p * alive)
                alive = np.where(np.array(row) > p, 0.0, alive)
            largest.see(
                float(1.0 - alive.sum()) / failure, f"a probability of {p:.3g} at {failure:g}"
            )
    return largest.worst


def _bets(claim: Claim) -> Worked:
    """The expected wealth after one batch, on the edge of the claim."""
    return _expected_wealth(claim, claim.max_power(GRID), GRID)


def _bets_next_to_one(step: float) -> Worked:
    """The same at orders whose divergence is, to six digits, that of Kullback and Leibler."""
    claim = em.RenyiDP(1.0 + step, 0.01)
    allowed = 0.01 * (1.0 - 1e-3)
    p = np.array([_greatest_by_entropy(float(q), allowed) for q in GRID])
    return _expected_wealth(claim, p, GRID)


def _greatest_by_entropy(q: float, allowed: float) -> float:
    """The greatest p whose divergence from q, the larger one of both directions, is allowed."""
    low, high = q, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        there = rel_entr(middle, q) + rel_entr(1.0 - middle, 1.0 - q)
        back = rel_entr(q, middle) + rel_entr(1.0 - q, 1.0 - middle)
        low, high = (middle, high) if max(there, back) <= allowed else (low, middle)
    return low


def _expected_wealth(claim: Claim, p: Floats, q: Floats) -> Worked:
    largest = _Largest()
    for guess in ((0.7, 0.2), (0.55, 0.5), (0.1, 0.001)):
        for n, m in ((1, 1), (5, 5), (3, 9)):
            bets = place_bets(lines_of((claim,)), *guess, n, m)
            rows = [
                [bets.log_wealth(Counts(x, n), Counts(y, m))[0] for y in range(m + 1)]
                for x in range(n + 1)
            ]
            wealth = np.exp(np.array(rows))
            left = binom.pmf(np.arange(n + 1)[:, None], n, p)
            right = binom.pmf(np.arange(m + 1)[:, None], m, q)
            expected = np.einsum("xk,xy,yk->k", left, wealth, right)
            where = int(np.argmax(expected))
            largest.see(
                float(expected[where]), f"guess {guess}, batch {n} and {m}, Q = {q[where]:.4g}"
            )
    return largest.worst


def _one_run(epsilon: float) -> Worked:
    """P(p ≤ t) over t for randomized response on every canary."""
    largest = _Largest()
    right = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    for m in (10, 25, 60):
        values = np.array([one_run_p_value(m, m, v, epsilon, 0.0) for v in range(m + 1)])
        chances = binom.pmf(np.arange(m + 1), m, right)
        _see_p_values(largest, values, chances, f"{m} guesses")
    return largest.worst


def _see_p_values(largest: _Largest, values: Floats, chances: Floats, where: str) -> None:
    """A p-value is at most t with probability at most t, at every t that it takes."""
    for t in np.unique(values):
        if 0.0 < t < 1.0:
            largest.see(float(chances[values <= t].sum() / t), f"{where}, t = {t:.4g}")


def _replay_p_values(claim: Claim) -> Worked:
    """The p-values of whole replays of one event, for all counts, on the edge of the claim."""
    n = 20
    shuffle = np.random.default_rng(5)  # of the order of given counts: it proves nothing
    # The left side leaks, so that the event is the left one's.
    leaking = em.from_batch(lambda dataset, size, rng: rng.random(size) < (0.1 if dataset else 0.9))
    found = em.audit(leaking, em.Pair(0, 1), claim, samples=400, seed=1)
    values = np.ones((n + 1, n + 1))
    for x in range(n + 1):
        for y in range(n + 1):

            def arranged(dataset: int, size: int, x: int = x, y: int = y) -> np.ndarray:
                return shuffle.permutation(np.arange(size) < (y if dataset else x))

            value = em.replay(found, em.from_batch(arranged), samples=n, seed=2).p_value
            values[x, y] = 1.0 if value is None else value
    largest = _Largest()
    for q in GRID[::4]:
        p = float(claim.max_power(float(q)))
        chances = np.outer(binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(n + 1), n, q))
        _see_p_values(largest, values, chances, f"{n} and {n} draws, Q = {q:.4g}")
    return largest.worst
