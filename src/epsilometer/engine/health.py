"""Named checks that the draws can be trusted: every bound assumes them independent and identically distributed.

Each check is a test with a false alarm of about 1e-9, so a healthy mechanism practically never
trips one.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, gammaln, ndtr

from epsilometer.arrays import Booleans
from epsilometer.bisection import rejected_end
from epsilometer.bounds import Counts
from epsilometer.engine.chunks import Fingerprints, Hashes, row_hashes
from epsilometer.errors import InputError
from epsilometer.mechanisms.drawing_log import Incidents
from epsilometer.outputs import Numbers, Outputs
from epsilometer.result import HealthReport

CHECKS = {
    "constant": "all outputs of an input are one and the same value",
    "shared-input": "an input holds something that cannot be copied, so that all calls share it",
    "repeated-chunks": "runs of outputs repeat: a frozen seed inside the mechanism, or copies of one generator",
    "serial-correlation": "an output depends on those before it",
    "drift": "the distribution of the outputs changes while they are drawn",
    "retried-requests": "requests to a service were sent again; not trusted if one side's were more often",
    "redrawn": "draws were cut off by an interruption and drawn again",
    "own-generator": "workers had nothing to do: the mechanism draws from a generator that must not be copied",
}
_CONSTANT = (
    "each input always got one and the same answer: a leak without noise and a noise that is drawn once and kept "
    "(memoised, or from a frozen seed) cannot be told apart"
)
_FALSE_ALARM = 1e-9
_PROOF = -np.log(_FALSE_ALARM)
# From this variance on a hypergeometric count is taken as normal, at this share of its distance
# from the mean.
_WIDE = 400.0
_NORMAL_MARGIN = 6.1 / 7.0
# Within this many spreads of the mean, no tail is as thin as an alarm needs it.
_USUAL = 3.0
_LAGS = (1, 2, 3)
# 2^-40 of a probability: far finer than the rate is known.
_HALVINGS = 40
# Outputs whose order is compared, and earlier chunks that each is looked up in: a frozen seed shows
# soon.
_MOST_ORDERED = 4096
_MOST_EARLIER = 4
# Pairs of equal outputs that are looked at, how many outputs in a row are compared with the others,
# and of how many: correlations show in more of them.
_MOST_TWINS = 512
_WINDOW = 8
_MOST_WINDOWS = 1024
# How much alike the outputs of a piece may be: 1 when almost all are equal, large when the pieces
# differ little.
_SPREADS = 4.0 ** np.arange(11)
# Rows and columns looked at for correlations; more would not change the answer.
_MOST_ROWS = 100_000
_MOST_COLUMNS = 8
_FEWEST_ROWS = 32
# With at least this many rows, the variance of a rate of coincidences can be estimated from them.
_ENOUGH_FOR_A_VARIANCE = 1000
# Bits of the outputs' hashes that are checked, and the rows: each bit splits the outputs in two.
_BITS = 8
_MOST_BITS_ROWS = 1 << 15
_SIDES = ("left", "right")
_FROZEN = "is a seed frozen inside, or is a generator copied?"
# An odd number and its inverse modulo 2⁶⁴.
_BASE = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))


def check_suppressed(names: Iterable[str]) -> frozenset[str]:
    """The names of switched-off checks, or an InputError for one that does not exist."""
    suppressed = frozenset([names] if isinstance(names, str) else names)
    unknown = sorted(suppressed - CHECKS.keys())
    if unknown:
        raise InputError(
            f"suppress={unknown[0]!r} is not a health check; known are {', '.join(CHECKS)}"
        )
    return suppressed


def check_constant(left: Outputs, right: Outputs) -> list[HealthReport]:
    """Whether each input always gets the same answer."""
    for n in (_FEWEST_ROWS, _MOST_ROWS):  # a few rows are enough for almost all mechanisms
        for side in (left, right):
            hashes = row_hashes(side.take(slice(0, n)))
            if len(hashes) < 2 or np.any(hashes != hashes[0]):
                return []
    firsts = [row_hashes(side.take(slice(0, 1)))[0] for side in (left, right)]
    text = "every output of both inputs is the same value" if firsts[0] == firsts[1] else _CONSTANT
    return [HealthReport("constant", text, untrusted=False)]


def check_repeats(fingerprints: Sequence[Fingerprints]) -> list[HealthReport]:
    """Whether outputs repeat that independent draws would practically never repeat.

    Args:
        fingerprints: of all chunks of the left and of the right side.
    """
    reports: list[HealthReport] = []
    repeating: list[Sequence[Hashes]] = []  # the heads of sides with an output that occurs twice
    for side, prints in enumerate(fingerprints):
        heads = prints.heads
        if not heads:
            continue
        rows = np.concatenate(heads)
        # Equal outputs cluster, say, if one draw is handed out several times. A bit is an event
        # like any other: it holds for half of all values, whichever these are.
        bits = [
            (rows[:_MOST_BITS_ROWS] >> np.uint64(bit) & np.uint64(1)).astype(np.bool_)
            for bit in range(_BITS)
        ]
        sticking = check_correlation(side, bits)
        ordered = np.sort(rows)  # np.unique has a hash table, which takes 10 times as long
        if np.any(ordered[1:] == ordered[:-1]):  # otherwise the other checks have nothing to find
            repeating.append(heads)
            # How often two independent outputs are equal at most, wrong by chance in one of 1e9
            # runs. They coincide within chunks as often as between them; if chunks repeat each
            # other, those within say more.
            coincidence = min(_upper_rate(rows), _rate_within(heads))
            reports += (repeated := _repeated(side, heads, coincidence))
            sticking = sticking or ([] if repeated else _twins(side, heads))
        reports += sticking
    if not reports and sum(map(_same_order, repeating)) > _PROOF:
        text = (
            f"outputs of short chunks come back, in the order in which they came before: {_FROZEN}"
        )
        reports.append(HealthReport("repeated-chunks", text, untrusted=True))
    return reports


def _repeated(side: int, heads: Sequence[Hashes], coincidence: float) -> list[HealthReport]:
    """Whether chunks repeat each other.

    Two checks: whether some run of outputs occurs twice, wherever that is; and whether chunks agree
    with the one before them, place by place, which also works where chunks are too short for a
    meaningful run.
    """
    repeated, length = _repeated_runs(heads, coincidence)
    # The second, fourth, … chunk, place by place against the chunk before it.
    aligned = [(a[: len(b)], b[: len(a)]) for a, b in zip(heads[::2], heads[1::2], strict=False)]
    same = sum(int(np.count_nonzero(a == b)) for a, b in aligned)
    compared = sum(len(a) for a, _ in aligned)
    if repeated:
        text = f"{repeated} runs of {length} {_SIDES[side]} outputs occur more than once"
    elif same and bdtrc(same - 1, compared, coincidence) < _FALSE_ALARM:
        text = f"{same} of {compared} {_SIDES[side]} outputs are those at the same place of the chunk before"
    else:
        return []
    return [HealthReport("repeated-chunks", f"{text}: {_FROZEN}", untrusted=True)]


def _twins(side: int, heads: Sequence[Hashes]) -> list[HealthReport]:
    """Whether equal outputs are in the same chunk more often than chance has it: a draw was handed out again.

    For any distribution, two equal outputs are at any two places, so half of the money can be bet
    on places in one chunk, at the odds that the places not yet looked at give.
    """
    rows = np.concatenate(heads)
    chunk = np.repeat(np.arange(len(heads)), [len(head) for head in heads])
    order = np.random.default_rng(0).permutation(len(rows))
    order = order[np.argsort(rows[order], kind="stable")]  # equal outputs in a random order
    new = np.append(True, np.diff(rows[order]) != 0)
    place = np.arange(len(rows))
    number = place - np.maximum.accumulate(np.where(new, place, 0))  # among those that are equal
    first = np.flatnonzero((number[:-1] % 2 == 0) & ~new[1:])
    first = first[:: len(first) // _MOST_TWINS + 1]
    left = [len(head) for head in heads]
    n = len(rows)
    # ordered pairs of places in one chunk, of n(n − 1)
    together = sum(each * (each - 1) for each in left)
    evidence = 0.0
    same = 0
    for places in zip(chunk[order[first]].tolist(), chunk[order[first + 1]].tolist(), strict=True):
        won = places[0] == places[1]
        evidence += np.log(0.5 + (0.5 * n * (n - 1) / together if won else 0.0))
        same = same + won
        n = n - 2
        for place in places:
            left[place] -= 1
            together -= 2 * left[place]
    if evidence <= _PROOF:
        return []
    text = f"of {len(first)} pairs of equal {_SIDES[side]} outputs {same} are in the same chunk"
    return [HealthReport("serial-correlation", f"{text}: is a draw used again?", untrusted=True)]


def check_order(left: Outputs, right: Outputs) -> list[HealthReport]:
    """Whether numbers depend on those before them: sorted, cumulative, alternating, or calm and wild by turns."""
    reports = []
    for side, outputs in enumerate((left, right)):
        blocks = outputs.take(slice(0, _MOST_ROWS)).blocks
        columns = [
            column.values
            for block in blocks
            for column in block.columns
            if isinstance(column, Numbers)
        ]
        indicators = []
        are_alike = False
        for column in sorted(columns, key=len, reverse=True)[:_MOST_COLUMNS]:
            numbers = np.asarray(column, dtype=np.float64)
            values = numbers[np.isfinite(numbers)]
            if len(values) >= _FEWEST_ROWS:
                low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
                indicators += [values > middle, (values < low) | (values > high)]
                quarter = (values > low) + 1 * (values > middle) + (values > high)
                first = quarter[: len(values) // _WINDOW * _WINDOW][:_MOST_WINDOWS].reshape(
                    -1, _WINDOW, 1
                )
                are_alike |= _alike((first == np.arange(4)).sum(axis=1)) > _PROOF + np.log(
                    _MOST_COLUMNS
                )
        alike = HealthReport(
            "serial-correlation", f"{_SIDES[side]} outputs drawn together are alike", untrusted=True
        )
        reports += [alike] if are_alike else check_correlation(side, indicators)
    return reports


def check_correlation(side: int, indicators: Sequence[Booleans]) -> list[HealthReport]:
    """A report if one of the indicators depends on its own past; all of them share one false-alarm rate.

    Independent draws are exchangeable, so given k hits of n every order is equally likely; laying
    the draws out in strides of the lag makes draws a lag apart neighbours, and the number of hits
    that follow a hit is hypergeometric.

    Args:
        side: 0 left, 1 right.
        indicators: whether each draw (in order) fell into an event, for some events.
    """
    threshold = _FALSE_ALARM / max(1, len(indicators))
    firsts = [hits[:_MOST_ROWS] for hits in indicators]
    counted = [(hits, len(hits), int(np.count_nonzero(hits))) for hits in firsts]
    for lag in _LAGS:
        for hits, n, n_hits in counted:
            # Each stretch begins where the one before it has ended.
            ends = [
                (start + (n - 1 - start) // lag * lag, start + 1)
                for start in range(min(lag, n) - 1)
            ]
            followed = int(np.count_nonzero(hits[lag:] & hits[:-lag])) + sum(
                int(hits[a] and hits[b]) for a, b in ends
            )
            if (
                n_hits > 1
                and hypergeometric_tails(followed, n, n_hits - 1, n_hits, _USUAL) < threshold
            ):
                text = f"{_SIDES[side]} outputs {lag} apart are not independent of each other"
                return [HealthReport("serial-correlation", text, untrusted=True)]
    return []


def check_retries(incidents: Sequence[Incidents]) -> list[HealthReport]:
    """That requests were sent again, and whether more often on one side.

    If whether a request is turned away does not depend on the input, then given all requests that
    were sent again, those of the left are a draw without replacement (Fisher's exact test).

    Args:
        incidents: of the left and of the right draws.
    """
    left, right = incidents
    retried = left.retried + right.retried
    if not retried:
        return []
    text = f"{left.retried} of {left.requests} left and {right.retried} of {right.requests} right requests were sent again"
    population = left.requests + right.requests
    is_uneven = (
        hypergeometric_tails(left.retried, population, retried, left.requests) < _FALSE_ALARM
    )
    if is_uneven:
        text += ", more often on one side than chance allows: what the service turns away depends on the input, and may "
        text += "depend on the output"
    else:
        text += ", after the service had turned them away"
    return [HealthReport("retried-requests", text, untrusted=is_uneven)]


def check_drift(tallies: Sequence[Sequence[Counts]]) -> list[HealthReport]:
    """Whether the event's frequency differs between chunks more than chance allows.

    Args:
        tallies: per side, the counts of each chunk, in order.
    """
    reports = []
    for side, chunks in enumerate(tallies):
        halves = chunks[: len(chunks) // 2], chunks[(len(chunks) + 1) // 2 :]
        hits = [sum(chunk.hits for chunk in half) for half in halves]
        trials = [sum(chunk.trials for chunk in half) for half in halves]
        # Given all hits, those of the first half are a draw without replacement.
        if (
            all(trials)
            and hypergeometric_tails(hits[0], sum(trials), sum(hits), trials[0], _USUAL)
            < _FALSE_ALARM
        ):
            first, second = (f"{some / of:.4g}" for some, of in zip(hits, trials, strict=True))
            how = f"moved from {first} in the first half of the draws to {second} in the second"
        elif (
            _alike(
                np.array([(each.hits, each.trials - each.hits) for each in chunks]).reshape(-1, 2)
            )
            > _PROOF
        ):
            how = "varies between chunks more than chance allows"
        else:
            continue
        text = f"the event's share among {_SIDES[side]} outputs {how}"
        reports.append(HealthReport("drift", text, untrusted=True))
    return reports


def _rate_within(heads: Sequence[Hashes]) -> float:
    """The largest plausible rate if no chunk holds an output twice; 1 if one does.

    Of all distributions with that rate, one with a single value of probability p that can repeat
    shows it the least: a chunk of n outputs has it at most once with probability (1 − p)ⁿ + np(1 −
    p)ⁿ⁻¹. The rate is then p².
    """
    sizes = np.array([len(head) for head in heads], dtype=np.float64)
    if any(len(set(head.tolist())) < len(head) for head in heads):
        return 1.0

    def rejects(p: float) -> bool:
        at_most_once = ((sizes - 1.0) * np.log1p(-p) + np.log1p((sizes - 1.0) * p)).sum()
        return bool(at_most_once < np.log(_FALSE_ALARM))

    return rejected_end(rejects, 1.0 - 1e-12, 0.0, _HALVINGS) ** 2


def _upper_rate(hashes: Hashes) -> float:
    n = len(hashes)
    if n < 2:
        return 1.0
    _, count = np.unique(hashes, return_counts=True)
    rate = float((count * (count - 1.0)).sum() / (n * (n - 1.0)))
    spread = rate
    if n >= _ENOUGH_FOR_A_VARIANCE:  # that of the rate is 4(Σp³ − (Σp²)²)/n
        share = count / n
        varying = 4.0 * float((share**3).sum() - (share**2).sum() ** 2)
        spread = min(rate, max(varying, 0.0) + 10.0 * rate / n)
    return float(min(1.0, rate + 7.0 * np.sqrt(spread / n) + 10.0 / n))


def _repeated_runs(heads: Sequence[Hashes], coincidence: float) -> tuple[int, int]:
    """How many runs occur more than once, and how long a run is.

    Two runs of r independent outputs are equal with the r-th power of the rate of coincidences. A
    run is long enough to
    make that unlikely for all pairs of places together: n²/2 of them.
    """
    rows = np.concatenate(heads)
    if coincidence >= 1.0 or len(rows) < 2:
        return 0, 0
    length = max(1, int(np.ceil(np.log(_FALSE_ALARM * 2.0 / len(rows) ** 2) / np.log(coincidence))))
    # A polynomial in an odd number, modulo 2⁶⁴, has an inverse for each of its powers: sums over
    # runs are differences.
    powers = np.cumprod(np.full(len(rows), _BASE), dtype=np.uint64)
    inverse = np.cumprod(np.full(len(rows), _INVERSE), dtype=np.uint64)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(rows * powers, dtype=np.uint64)])
    ends = np.cumsum([len(head) for head in heads])
    begins = [
        np.arange(end - len(head), end - length + 1) for head, end in zip(heads, ends, strict=True)
    ]
    starts = np.concatenate(begins)
    if len(starts) < 2:
        return 0, length
    runs = (sums[starts + length] - sums[starts]) * inverse[starts]
    order = np.argsort(runs, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(runs[order]) != 0))
    places = starts[order]
    last = np.append(first[1:], len(order)) - 1
    # Overlapping runs are not independent: where one value follows itself, they are bound to be
    # equal.
    return int(np.count_nonzero(places[last] - places[first] >= length)), length


def _same_order(heads: Sequence[Hashes]) -> float:
    """The logarithm of the evidence that chunks repeat the order of outputs of earlier ones.

    For any distribution, the order of a chunk's outputs is chance. That k of them, each once in the
    chunk, have the same order as in an earlier chunk has probability 1/k!. So a bet of half the
    money at these odds is fair, and the winnings of such bets exceed 1/f with probability at most
    f.
    """
    heads = heads[
        : int(np.searchsorted(np.cumsum([len(head) for head in heads]), _MOST_ORDERED)) + 1
    ]
    values, counts = np.unique(np.concatenate(heads), return_counts=True)
    returning = set(values[counts > 1].tolist())
    before: dict[int, list[int]] = {}  # per value: the earlier chunks that have it once
    kept: list[list[int]] = []
    evidence = 0.0
    for number, head in enumerate(heads):
        mine = [value for value in head.tolist() if value in returning]
        often = Counter(mine)
        mine = [value for value in mine if often[value] == 1]
        shared = Counter(
            chunk for value in mine for chunk in before.get(value, ())[-_MOST_EARLIER:]
        )
        if shared:
            # The choice depends on the values that the chunks hold, not on their order.
            earlier = max(shared, key=lambda chunk: (shared[chunk], chunk))
            theirs = [value for value in kept[earlier] if value in mine]
            agree = theirs == [value for value in mine if value in theirs]
            evidence += float(
                np.logaddexp(gammaln(len(theirs) + 1.0), 0.0) if agree else 0.0
            ) - np.log(2.0)
        kept.append(mine)
        for value in mine:
            before.setdefault(value, []).append(number)
    return evidence


def hypergeometric_tails(
    seen: int, population: int, marked: int, drawn: int, usual: float = 0.0
) -> float:
    """Twice the smaller tail of the number of marked items among the drawn, at the number seen.

    Exact up to a variance of `_WIDE`; beyond, by the normal distribution with its threshold moved
    from 6.1 to 7 spreads, which more than covers the difference. Or 1 within so many `usual`
    spreads of the mean.
    """
    mean = drawn * marked / population
    variance = mean * (1.0 - marked / population) * (population - drawn) / max(population - 1, 1)
    if abs(seen - mean) < usual * math.sqrt(variance):
        return 1.0
    if variance > _WIDE:
        return float(2.0 * ndtr(-abs(seen - mean) / np.sqrt(variance) * _NORMAL_MARGIN))
    low = max(0, drawn + marked - population)
    high = min(marked, drawn)
    if low >= high:
        return 1.0
    x = np.arange(low, high + 1.0)
    marked_ones, others, all_of_them = (
        gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)  # ln of "n choose k"
        for n, k in ((marked, x), (population - marked, drawn - x), (population, drawn))
    )
    mass = np.exp(marked_ones + others - all_of_them)
    return min(1.0, 2.0 * float(min(mass[x <= seen].sum(), mass[x >= seen].sum())))


def _alike(counts: NDArray[np.int64]) -> float:
    """The logarithm of the evidence that outputs drawn together are alike; above `_PROOF` in one of 1e9 runs by chance.

    If draws are independent, given the totals every order of them is equally likely. A
    Dirichlet-multinomial law of every piece is another distribution of orders, so its likelihood
    ratio, averaged over some such laws, is a fair bet.

    Args:
        counts: a row per piece of neighbouring draws, a column per kind of output.
    """
    totals = counts.sum(axis=0)
    prior = _SPREADS[:, None, None] * (totals / max(totals.sum(), 1))[totals > 0]
    kinds = (gammaln(prior + counts[:, totals > 0]) - gammaln(prior)).sum(axis=2)
    sizes = gammaln(_SPREADS[:, None] + counts.sum(axis=1)) - gammaln(_SPREADS[:, None])
    orders = gammaln(totals.sum() + 1.0) - gammaln(totals + 1.0).sum()
    return float(np.logaddexp.reduce((kinds - sizes).sum(axis=1)) - np.log(len(_SPREADS)) + orders)
