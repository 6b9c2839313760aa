"""Named checks that the draws can be trusted: every bound assumes that they are independent and alike.

Each check is a test with a false alarm of about 1e-9, so a healthy mechanism practically never trips one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, gammaln, ndtr

from epsilometer.bounds import Counts
from epsilometer.engine.folding import Fingerprints
from epsilometer.engine.sampler import FINGERPRINT_ROWS
from epsilometer.errors import InputError
from epsilometer.outputs import Labels, Outputs
from epsilometer.result import HealthReport

CHECKS = {
    "constant": "all outputs of an input are one and the same value",
    "shared-input": "an input holds something that cannot be copied, so that all calls share it",
    "repeated-chunks": "whole chunks of outputs repeat: a frozen seed inside the mechanism",
    "serial-correlation": "an output depends on the one before it",
    "drift": "the law of the outputs changes while they are drawn",
}
_CONSTANT = (
    "each input always got one and the same answer: a leak without noise and a noise that is drawn once and kept "
    "(memoised, or from a frozen seed) cannot be told apart"
)
_FALSE_ALARM = 1e-9
# From this variance on a hypergeometric count is taken as normal, with so much of its distance from the mean.
_WIDE, _NORMAL_MARGIN = 400.0, 6.1 / 7.0
_LAGS = (1, 2, 3)
# Rows looked at for coincidences and correlations; more would not change the answer.
_MOST_ROWS = 100_000
_SIDES = ("left", "right")


def check_suppressed(names: Iterable[str]) -> frozenset[str]:
    """The names of switched-off checks, or an InputError for one that does not exist."""
    suppressed = frozenset([names] if isinstance(names, str) else names)
    unknown = sorted(suppressed - CHECKS.keys())
    if unknown:
        raise InputError(f"suppress={unknown[0]!r} is no health check; known are {', '.join(CHECKS)}")
    return suppressed


def check_constant(left: Outputs, right: Outputs) -> list[HealthReport]:
    """Whether each input always gets the same answer."""
    hashes = row_hashes(left), row_hashes(right)
    if not all(len(side) > 1 and np.all(side == side[0]) for side in hashes):
        return []
    text = "every output of both inputs is the same value" if hashes[0][0] == hashes[1][0] else _CONSTANT
    return [HealthReport("constant", text, untrusted=False)]


def check_repeats(
    fingerprints: Sequence[Fingerprints], chunk_size: int, left: Outputs, right: Outputs
) -> list[HealthReport]:
    """Whether chunks repeat that independent draws would practically never repeat.

    Args:
        fingerprints: of all chunks of the left and of the right side.
        chunk_size: outputs per chunk.
        left: a sample of left outputs, from which the chance of a coincidence is estimated.
        right: likewise.
    """
    reports = []
    for side, (prints, outputs) in enumerate(zip(fingerprints, (left, right), strict=True)):
        if not prints.repeats:
            continue
        coincidence = _coincidence_rate(row_hashes(outputs))
        # Coincidences of k independent outputs multiply; a constant side (rate 1) proves nothing.
        same = min(chunk_size, FINGERPRINT_ROWS, len(outputs))
        log_chance = 2.0 * np.log(prints.total) + same * np.log(max(coincidence, 1e-12))
        if log_chance < np.log(_FALSE_ALARM):
            text = (
                f"{prints.repeats} of {prints.total} chunks of {_SIDES[side]} outputs repeat an earlier chunk exactly"
            )
            reports.append(HealthReport("repeated-chunks", f"{text}: is a seed frozen inside?", untrusted=True))
    return reports


def check_correlation(indicators: Sequence[NDArray[np.bool_]]) -> list[HealthReport]:
    """Whether neighbouring draws agree more or less often than independent ones would.

    Args:
        indicators: per side, whether each draw (in order) fell into the event.
    """
    reports = []
    for side, hits in enumerate(indicators):
        for lag in _LAGS:
            if _lag_tail(hits[:_MOST_ROWS], lag) < _FALSE_ALARM:
                text = f"{_SIDES[side]} outputs {lag} apart are not independent of each other"
                reports.append(HealthReport("serial-correlation", text, untrusted=True))
                break
    return reports


def check_drift(tallies: Sequence[Sequence[Counts]]) -> list[HealthReport]:
    """Whether the event's frequency differs between chunks more than chance allows.

    Args:
        tallies: per side, the counts of each chunk, in order.
    """
    reports = []
    for side, chunks in enumerate(tallies):
        halves = _total(chunks[: len(chunks) // 2]), _total(chunks[(len(chunks) + 1) // 2 :])
        if _halves_tail(*halves) < _FALSE_ALARM:
            text = (
                f"the event's share among {_SIDES[side]} outputs moved from {halves[0].share:.4g} in the first half "
                f"of the draws to {halves[1].share:.4g} in the second"
            )
            reports.append(HealthReport("drift", text, untrusted=True))
        elif _dispersion_tail(chunks) < _FALSE_ALARM:
            text = f"the event's share among {_SIDES[side]} outputs varies between chunks more than chance allows"
            reports.append(HealthReport("drift", text, untrusted=True))
    return reports


def row_hashes(outputs: Outputs) -> NDArray[np.uint64]:
    """A number per output (of the first ones): equal outputs, equal numbers."""
    outputs = outputs.take(slice(0, _MOST_ROWS))
    hashes = np.zeros(len(outputs), dtype=np.uint64)
    for block in outputs:
        total = np.full(block.size, zlib.crc32(block.shape.encode()), dtype=np.uint64)
        for column in block.columns:
            if isinstance(column, Labels):
                table = np.array([zlib.crc32(label.encode(errors="replace")) for label in column.labels], np.uint64)
                bits = table[column.codes]
            else:
                bits = np.ascontiguousarray(column.values, dtype=np.float64).view(np.uint64)
            total = total * np.uint64(0x9E3779B97F4A7C15) + (bits ^ (bits >> np.uint64(29)))
        hashes[slice(None) if block.rows is None else block.rows] = total
    return hashes


def _coincidence_rate(hashes: NDArray[np.uint64]) -> float:
    """How often two outputs are equal, with a margin for chance."""
    n = len(hashes)
    if n < 2:
        return 1.0
    _, count = np.unique(hashes, return_counts=True)
    rate = float((count * (count - 1.0)).sum() / (n * (n - 1.0)))
    return float(min(1.0, rate + 7.0 * np.sqrt(rate / n) + 10.0 / n))


def _lag_tail(hits: NDArray[np.bool_], lag: int) -> float:
    """The tail probability of the number of hits followed by a hit, given how many there are.

    Independent draws are exchangeable, so given k hits of n every order is as likely; laying the draws out in strides
    of the lag makes neighbours of what is a lag apart, and the neighbouring hits follow a hypergeometric law.
    """
    order = np.concatenate([hits[start::lag] for start in range(lag)])
    n_hits = int(np.count_nonzero(order))
    followed = int(np.count_nonzero(order[1:] & order[:-1]))
    return hypergeometric_tails(followed, len(order), n_hits - 1, n_hits) if n_hits > 1 else 1.0


def hypergeometric_tails(seen: int, population: int, marked: int, drawn: int) -> float:
    """Twice the smaller tail of the number of marked among the drawn, at what was seen.

    Exact up to a variance of `_WIDE`; beyond, by the normal law with its threshold moved from 6.1 to 7 spreads, which
    more than covers the difference.
    """
    mean = drawn * marked / population
    variance = mean * (1.0 - marked / population) * (population - drawn) / max(population - 1, 1)
    if variance > _WIDE:
        return float(2.0 * ndtr(-abs(seen - mean) / np.sqrt(variance) * _NORMAL_MARGIN))
    low, high = max(0, drawn + marked - population), min(marked, drawn)
    if low >= high:
        return 1.0
    x = np.arange(low, high + 1.0)
    mass = np.exp(
        _log_choose(marked, x) + _log_choose(population - marked, drawn - x) - _log_choose(population, float(drawn))
    )
    return min(1.0, 2.0 * float(min(mass[x <= seen].sum(), mass[x >= seen].sum())))


def _log_choose(n: int, k: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1.0) - gammaln(np.asarray(k) + 1.0) - gammaln(n - np.asarray(k) + 1.0))


def _total(chunks: Sequence[Counts]) -> Counts:
    return sum(chunks, Counts(0, 0))


def _halves_tail(first: Counts, second: Counts) -> float:
    """Given all hits, those of the first half are a draw without replacement."""
    both = first + second
    if not first.trials or not second.trials:
        return 1.0
    return hypergeometric_tails(first.hits, both.trials, both.hits, first.trials)


def _dispersion_tail(chunks: Sequence[Counts]) -> float:
    """Tail probability of the chi-squared statistic over chunks large enough for it."""
    share = _total(chunks).share
    large = [chunk for chunk in chunks if chunk.trials * min(share, 1.0 - share) >= 25]
    if len(large) < 3:
        return 1.0
    statistic = sum((c.hits - c.trials * share) ** 2 / (c.trials * share * (1.0 - share)) for c in large)
    return float(chdtrc(len(large) - 1, statistic))
