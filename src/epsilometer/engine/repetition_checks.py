"""Checks that draws do not repeat: a frozen seed, a generator copied to workers, a draw used twice.

They look at the fingerprints of all chunks: hashes of the first outputs of each.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc, gammaln

from epsilometer.bisection import rejected_end
from epsilometer.engine.correlation_checks import check_correlation
from epsilometer.engine.fingerprints import Fingerprints, Hashes
from epsilometer.engine.health_statistics import EVIDENCE_THRESHOLD, FALSE_ALARM
from epsilometer.result import HealthReport

# Bits of the outputs' hashes that are checked: each splits the outputs in two.
_CHECKED_BITS = 8
# Outputs whose bits are checked.
_MAX_BIT_ROWS = 1 << 15
# Halvings of an interval of probabilities: 2^-40 is far finer than the rate is known.
_HALVINGS = 40
# Outputs whose order is compared with earlier chunks: a frozen seed shows soon.
_MAX_ORDERED_ROWS = 4096
# Earlier chunks in which each output is looked up.
_MAX_EARLIER_CHUNKS = 4
# Pairs of equal outputs that are examined.
_MAX_EQUAL_PAIRS = 512
# With at least this many rows, the variance of the rate of coincidences can be estimated.
_MIN_ROWS_FOR_VARIANCE = 1000
# An odd number and its inverse modulo 2⁶⁴, for hashes of runs of outputs.
_RUN_BASE = np.uint64(0x9E3779B97F4A7C15)
_RUN_BASE_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
# Copies of an output that are looked for.
_MAX_COPIES = 32
# Parts of its money that a bet on a number of copies may lose.
_LOST_PARTS = np.array([0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99])
_SIDES = ("left", "right")
_FROZEN = "is a seed frozen inside, or is a generator copied?"


def check_repeats(fingerprints: Sequence[Fingerprints]) -> list[HealthReport]:
    """Checks whether outputs repeat that independent draws would practically never repeat.

    Args:
        fingerprints: of all chunks of the left and of the right side.
    """
    reports: list[HealthReport] = []
    sides_with_repeats: list[Sequence[Hashes]] = []
    for side, side_fingerprints in enumerate(fingerprints):
        heads = side_fingerprints.heads
        if not heads:
            continue
        rows = np.concatenate(heads)
        correlations = _check_bits(side, rows)
        ordered = np.sort(rows)  # np.unique has a hash table, which takes 10 times as long
        has_repeats = bool(np.any(ordered[1:] == ordered[:-1]))
        if has_repeats:  # otherwise the other checks have nothing to find
            sides_with_repeats.append(heads)
            # How often two independent outputs are equal at most, wrong by chance in one of 1e9
            # runs. They coincide within chunks as often as between them; if chunks repeat each
            # other, those within say more.
            coincidence = min(_upper_rate(rows), _rate_within_chunks(heads))
            repeated_chunks = _check_repeated_chunks(side, heads, coincidence)
            reports += repeated_chunks
            if not correlations and not repeated_chunks:
                correlations = _check_equal_pairs(side, heads)
            if not correlations and not repeated_chunks:
                reports += _check_copies(side, ordered)
        reports += correlations
    if not reports and sum(map(_same_order_evidence, sides_with_repeats)) > EVIDENCE_THRESHOLD:
        text = (
            f"outputs of short chunks come back, in the order in which they came before: {_FROZEN}"
        )
        reports.append(HealthReport("repeated-chunks", text, untrusted=True))
    return reports


def _check_bits(side: int, rows: Hashes) -> list[HealthReport]:
    """Checks whether bits of the hashes are correlated.

    Equal outputs cluster, say, if one draw is handed out several times. A bit is an event like any
    other: it holds for half of all values, whichever these are.
    """
    examined = rows[:_MAX_BIT_ROWS]
    bits = [
        (examined >> np.uint64(bit) & np.uint64(1)).astype(np.bool_) for bit in range(_CHECKED_BITS)
    ]
    return check_correlation(side, bits)


def _check_repeated_chunks(
    side: int, heads: Sequence[Hashes], coincidence: float
) -> list[HealthReport]:
    """Checks whether chunks repeat each other.

    There are two checks: whether some run of outputs occurs twice, wherever that is; and whether
    chunks agree with the one before them, position by position, which also works where chunks are
    too short for a meaningful run.

    Args:
        side: 0 left, 1 right.
        heads: the hashes of the first outputs of each chunk.
        coincidence: the greatest plausible probability that two independent outputs are equal.
    """
    runs = _find_repeated_runs(heads, coincidence)
    n_same = 0
    n_compared = 0
    # The second, fourth, … chunk is compared with the chunk before it.
    for first, second in zip(heads[::2], heads[1::2], strict=False):
        n_common = min(len(first), len(second))
        n_same += int(np.count_nonzero(first[:n_common] == second[:n_common]))
        n_compared += n_common
    if runs.n_repeated:
        text = (
            f"{runs.n_repeated} runs of {runs.length} {_SIDES[side]} outputs occur more than once"
        )
    elif n_same and bdtrc(n_same - 1, n_compared, coincidence) < FALSE_ALARM:
        text = (
            f"{n_same} of {n_compared} {_SIDES[side]} outputs are those at the same place of the "
            "chunk before"
        )
    else:
        return []
    return [HealthReport("repeated-chunks", f"{text}: {_FROZEN}", untrusted=True)]


def _check_copies(side: int, ordered: Hashes) -> list[HealthReport]:
    """Checks whether values occur equally often, as if every row had been copied and then shuffled.

    Say that draws of a value are expected λ times. Then it occurs k − 1, k and k + 1 times with
    probabilities as 1 : λ/k : λ²/(k(k + 1)), and k times cannot be much likelier than both of its
    neighbours, whatever λ is. So nobody expects to win a bet on k that loses a part x of the money
    at k − 1, a part z at k + 1, and wins 2·√(x·z·k/(k + 1)) at k. The bets on all values are
    independent if the number of draws is Poisson; given that number n, which has a probability of
    1/(e·√n) at least, what they win is at most e·√n times as likely.

    Args:
        side: 0 left, 1 right.
        ordered: the hashes of outputs, sorted.
    """
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    n_draws = len(ordered)
    counts = np.diff(np.append(starts, n_draws))
    n_with_count = np.bincount(np.minimum(counts, _MAX_COPIES + 2), minlength=_MAX_COPIES + 3)
    lost_below, lost_above = np.meshgrid(_LOST_PARTS, _LOST_PARTS)
    log_wealth = []
    for k in range(2, _MAX_COPIES + 1):
        won = 2.0 * np.sqrt(lost_below * lost_above * k / (k + 1))
        log_wealth.append(
            n_with_count[k - 1] * np.log1p(-lost_below)
            + n_with_count[k + 1] * np.log1p(-lost_above)
            + n_with_count[k] * np.log1p(won)
        )
    # The money is divided equally among all bets.
    n_bets = len(log_wealth) * lost_below.size
    evidence = np.logaddexp.reduce(np.ravel(log_wealth)) - np.log(n_bets)
    if evidence <= EVIDENCE_THRESHOLD + 1.0 + 0.5 * np.log(n_draws):
        return []
    n_copies = int(np.argmax([np.max(of_copies) for of_copies in log_wealth])) + 2
    text = (
        f"{n_with_count[n_copies]} {_SIDES[side]} outputs occur {n_copies} times each, and far "
        f"fewer {n_copies - 1} or {n_copies + 1} times: were draws copied?"
    )
    return [HealthReport("repeated-chunks", text, untrusted=True)]


def _check_equal_pairs(side: int, heads: Sequence[Hashes]) -> list[HealthReport]:
    """Checks whether equal outputs are in the same chunk more often than by chance.

    Then a draw was handed out again. For any distribution, two equal outputs are at any two
    positions, so half of the money can be bet on positions in one chunk, at the odds that the
    positions not yet looked at give.
    """
    rows = np.concatenate(heads)
    head_sizes = [len(head) for head in heads]
    chunk_of_row = np.repeat(np.arange(len(heads)), head_sizes)
    # Equal outputs side by side, in a random order among themselves.
    order = np.random.default_rng(0).permutation(len(rows))
    order = order[np.argsort(rows[order], kind="stable")]
    is_new_value = np.append(True, np.diff(rows[order]) != 0)
    position = np.arange(len(rows))
    number_among_equals = position - np.maximum.accumulate(np.where(is_new_value, position, 0))
    pair_starts = np.flatnonzero((number_among_equals[:-1] % 2 == 0) & ~is_new_value[1:])
    pair_starts = pair_starts[:: len(pair_starts) // _MAX_EQUAL_PAIRS + 1]
    first_chunks = chunk_of_row[order[pair_starts]].tolist()
    second_chunks = chunk_of_row[order[pair_starts + 1]].tolist()

    # The positions not yet looked at: in all, in each chunk, and ordered pairs within one chunk.
    n_left = len(rows)
    left_in_chunk = head_sizes
    pairs_in_one_chunk = sum(size * (size - 1) for size in left_in_chunk)
    evidence = 0.0
    n_same = 0
    for first, second in zip(first_chunks, second_chunks, strict=True):
        winnings = 0.0
        if first == second:
            winnings = 0.5 * n_left * (n_left - 1) / pairs_in_one_chunk
            n_same += 1
        evidence += np.log(0.5 + winnings)
        n_left -= 2
        for chunk in (first, second):
            left_in_chunk[chunk] -= 1
            pairs_in_one_chunk -= 2 * left_in_chunk[chunk]
    if evidence <= EVIDENCE_THRESHOLD:
        return []
    text = (
        f"of {len(pair_starts)} pairs of equal {_SIDES[side]} outputs {n_same} are in the same "
        "chunk: is a draw used again?"
    )
    return [HealthReport("serial-correlation", text, untrusted=True)]


def _rate_within_chunks(heads: Sequence[Hashes]) -> float:
    """Returns the largest plausible rate of coincidences if no chunk holds an output twice.

    Of all distributions with that rate, one with a single value of probability p that can repeat
    shows it the least: a chunk of n outputs has it at most once with probability (1 − p)ⁿ + np(1 −
    p)ⁿ⁻¹. The rate is then p². If a chunk holds an output twice, 1 is returned.
    """
    sizes = np.array([len(head) for head in heads], dtype=np.float64)
    if any(len(set(head.tolist())) < len(head) for head in heads):
        return 1.0

    def rejects(p: float) -> bool:
        at_most_once = ((sizes - 1.0) * np.log1p(-p) + np.log1p((sizes - 1.0) * p)).sum()
        return bool(at_most_once < np.log(FALSE_ALARM))

    return rejected_end(rejects, 1.0 - 1e-12, 0.0, _HALVINGS) ** 2


def _upper_rate(hashes: Hashes) -> float:
    """Returns an upper bound on the probability that two independent outputs are equal.

    It is the observed rate plus 7 standard errors and a term for small samples.
    """
    n = len(hashes)
    if n < 2:
        return 1.0
    _, counts = np.unique(hashes, return_counts=True)
    rate = float((counts * (counts - 1.0)).sum() / (n * (n - 1.0)))
    variance = rate
    if n >= _MIN_ROWS_FOR_VARIANCE:  # n times the variance of the rate is 4(Σp³ − (Σp²)²)
        probabilities = counts / n
        estimated = 4.0 * float((probabilities**3).sum() - (probabilities**2).sum() ** 2)
        variance = min(rate, max(estimated, 0.0) + 10.0 * rate / n)
    return float(min(1.0, rate + 7.0 * np.sqrt(variance / n) + 10.0 / n))


class _RepeatedRuns(NamedTuple):
    """Runs of outputs that occur more than once.

    Attributes:
        n_repeated: how many there are.
        length: outputs per run.
    """

    n_repeated: int
    length: int


def _find_repeated_runs(heads: Sequence[Hashes], coincidence: float) -> _RepeatedRuns:
    """Counts runs of outputs that occur more than once.

    Two runs of r independent outputs are equal with the r-th power of the rate of coincidences. A
    run is long enough to make that unlikely for all pairs of positions together: n²/2 of them.
    """
    rows = np.concatenate(heads)
    if coincidence >= 1.0 or len(rows) < 2:
        return _RepeatedRuns(0, 0)
    needed = np.log(FALSE_ALARM * 2.0 / len(rows) ** 2) / np.log(coincidence)
    length = max(1, int(np.ceil(needed)))
    # A polynomial in an odd number, modulo 2⁶⁴, has an inverse for each of its powers: sums over
    # runs are differences.
    powers = np.cumprod(np.full(len(rows), _RUN_BASE), dtype=np.uint64)
    inverse = np.cumprod(np.full(len(rows), _RUN_BASE_INVERSE), dtype=np.uint64)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(rows * powers, dtype=np.uint64)])
    ends = np.cumsum([len(head) for head in heads])
    starts = np.concatenate(
        [
            np.arange(end - len(head), end - length + 1)
            for head, end in zip(heads, ends, strict=True)
        ]
    )
    if len(starts) < 2:
        return _RepeatedRuns(0, length)
    runs = (sums[starts + length] - sums[starts]) * inverse[starts]
    order = np.argsort(runs, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(runs[order]) != 0))
    last = np.append(first[1:], len(order)) - 1
    positions = starts[order]
    # Overlapping runs are not independent: where one value follows itself, they are bound to be
    # equal.
    are_apart = positions[last] - positions[first] >= length
    return _RepeatedRuns(int(np.count_nonzero(are_apart)), length)


def _same_order_evidence(heads: Sequence[Hashes]) -> float:
    """Returns the evidence that chunks repeat the order of outputs of earlier ones.

    For any distribution, the order of a chunk's outputs is chance. That k of them, each once in the
    chunk, have the same order as in an earlier chunk has probability 1/k!. So a bet of half the
    money at these odds is fair, and the winnings of such bets exceed 1/f with probability at most
    f. The evidence is their logarithm.
    """
    rows_so_far = np.cumsum([len(head) for head in heads])
    n_heads = int(np.searchsorted(rows_so_far, _MAX_ORDERED_ROWS)) + 1
    heads = heads[:n_heads]
    values, counts = np.unique(np.concatenate(heads), return_counts=True)
    returning = set(values[counts > 1].tolist())
    # Per value: the earlier chunks that have it once. Per chunk: its values that occur once.
    chunks_with: dict[int, list[int]] = {}
    single_values: list[list[int]] = []
    evidence = 0.0
    for number, head in enumerate(heads):
        candidates = [value for value in head.tolist() if value in returning]
        occurrences = Counter(candidates)
        singles = [value for value in candidates if occurrences[value] == 1]
        n_shared: Counter[int] = Counter()
        for value in singles:
            n_shared.update(chunks_with.get(value, [])[-_MAX_EARLIER_CHUNKS:])
        if n_shared:
            # The choice depends on the values that the chunks hold, not on their order.
            earlier = max(n_shared, key=lambda chunk: (n_shared[chunk], chunk))
            order_before = [value for value in single_values[earlier] if value in singles]
            order_now = [value for value in singles if value in order_before]
            winnings = 0.0
            if order_before == order_now:
                winnings = float(np.logaddexp(gammaln(len(order_before) + 1.0), 0.0))
            evidence += winnings - np.log(2.0)
        single_values.append(singles)
        for value in singles:
            chunks_with.setdefault(value, []).append(number)
    return evidence
