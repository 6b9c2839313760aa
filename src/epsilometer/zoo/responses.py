"""Randomized response of many people, plain or shuffled; RAPPOR's Bloom filters, and local hashing."""

import hashlib
import math
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.claims import PureDP
from epsilometer.claims.base import check_choice
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry
from epsilometer.zoo.laws.exact import CellLaw, PairLaw, ProductLaw, discrete_law, quadrature_law
from epsilometer.zoo.local import check_category

# More people than this have more shuffled answers than a float can distinguish.
_MOST_USERS = 50


def respond_bits(dataset: Any, n: int, rng: np.random.Generator, lie: float) -> Booleans:
    """Every person's bit, flipped with probability `lie`; bool outputs of shape (n, people)."""
    bits = np.asarray(dataset)
    if bits.ndim != 1 or not np.isin(bits, (0, 1)).all():
        raise InputError(f"dataset={dataset!r:.100} must be a list of bits, one per person")
    flips = rng.random((n, len(bits))) < lie
    return np.not_equal(flips, bits.astype(np.bool_), out=flips)


def respond_shuffled(dataset: Any, n: int, rng: np.random.Generator, lie: float) -> Booleans:
    """The same answers in a fresh random order for every row; bool outputs of shape (n, people)."""
    answers = respond_bits(dataset, n, rng, lie)
    # Sorting by random keys permutes uniformly; a tie of two 62-bit keys, which would sort by answer, has
    # probability below 1e-15 per row.
    keys = rng.integers(0, 1 << 62, answers.shape, dtype=np.int64) << 1 | answers
    keys.sort(axis=1)
    return (keys & 1).astype(np.bool_)


def count_responses(dataset: Any, n: int, rng: np.random.Generator, lie: float) -> Integers:
    """How many people answered 1; int64 outputs of shape (n,)."""
    return np.asarray(respond_bits(dataset, n, rng, lie).sum(axis=1), dtype=np.int64)


def randomized_responses(epsilon: float = 1.0, users: int = 10) -> ZooEntry:
    """Binary randomized response of each of several people; the output is everybody's answer.

    Its truth when one person changes their bit is that of one response: pure epsilon.

    Reference: Warner, "Randomized response".
    """
    epsilon, users = check_epsilon(epsilon), check_count("users", users, 1, _MOST_USERS)
    summary = f"the bits of {users} people, each reported truthfully or flipped"
    lie, claim = _lie(epsilon), PureDP(epsilon)
    draw = partial(respond_bits, lie=lie)
    law = partial(discrete_law, np.array([1 - lie, lie]), np.array([lie, 1 - lie]))
    return entry("randomized_responses", summary, draw, claim, _one_bit(users), law, epsilon=epsilon, users=users)


def shuffled_responses(epsilon: float = 1.0, users: int = 10, output: str = "vector") -> ZooEntry:
    """Binary randomized response of each of several people, shuffled before it is published.

    `output` is "vector" (the answers in random order) or "counts" (how many answered 1): the same privacy, since the
    order reveals nothing, but 2^users outputs against users + 1. The claim is that of one response, which shuffling can
    only improve; the truth is a finite sum.

    Reference: Girgis, Data, Diggavi, Suresh, Kairouz, "On the Rényi differential privacy of the shuffle model".
    """
    epsilon, users = check_epsilon(epsilon), check_count("users", users, 1, _MOST_USERS)
    output = check_choice("output", output, ("vector", "counts"))
    draw = partial(respond_shuffled if output == "vector" else count_responses, lie=_lie(epsilon))
    summary = f"the bits of {users} people, each reported truthfully or flipped, in random order"
    claim, pair, law = PureDP(epsilon), _one_bit(users), partial(_count_law, epsilon, users)
    return entry("shuffled_responses", summary, draw, claim, pair, law, epsilon=epsilon, users=users, output=output)


def _lie(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon))


def _one_bit(users: int) -> Pair:
    return Pair([1] + [0] * (users - 1), [0] * users)


def _count_law(epsilon: float, users: int) -> CellLaw:
    """The number of ones: the others' answers are binomial, the one person's answer comes on top."""
    lie = _lie(epsilon)
    others = _binomial(users - 1, lie)
    none, one = np.append(others, 0.0), np.append(0.0, others)
    return discrete_law(lie * none + (1 - lie) * one, (1 - lie) * none + lie * one)


# Values that are tried for a pair with no bit in common.
_MOST_TRIED = 10_000
# Cells with log ratios that agree to this are one cell.
_MERGED_RATIO = 1e-9
# More cells are not combined: divergences still add up, but delta is then unknown.
_MOST_CELLS = 2_000_000


@dataclass(frozen=True)
class Rappor:
    """Reports about one value; outputs of shape (n, bits).

    Attributes:
        bits: length of the Bloom filter.
        hashes: bits that a value sets.
        permanent_kept: probability that a bit survives the permanent randomisation.
        report_kept: probability that a permanent bit survives the randomisation of one report.
        reports: how many reports with the same permanent bits; 1 gives bool outputs, more give the number of ones in
            each place, which reveals as much as the reports themselves.
    """

    bits: int
    hashes: int
    permanent_kept: float
    report_kept: float
    reports: int

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> Booleans | Integers:
        """Draw n people with this value and the report (or reports) of each."""
        true_bits = np.zeros(self.bits, dtype=np.bool_)
        true_bits[list(bloom_bits(dataset, self.bits, self.hashes))] = True
        permanent = true_bits ^ (rng.random((n, self.bits)) >= self.permanent_kept)
        if self.reports == 1:
            return permanent ^ (rng.random((n, self.bits)) >= self.report_kept)
        return rng.binomial(self.reports, np.where(permanent, self.report_kept, 1 - self.report_kept))


def rappor(epsilon: float = 1.0, bits: int = 16, hashes: int = 2) -> ZooEntry:
    """One report of RAPPOR, calibrated to epsilon for one report (the permanent bits then have 2 epsilon).

    Its truth on two values without a common bit: pure epsilon; the other notions by a finite sum.

    Reference: Erlingsson, Pihur, Korolova, "RAPPOR: randomized aggregatable privacy-preserving ordinal response",
    with symmetric coins (p = 1 - q).
    """
    epsilon = check_epsilon(epsilon)
    return _entry("rappor", "one report of a doubly randomised Bloom filter", epsilon, 2 * epsilon, bits, hashes, 1)


def rappor_longitudinal(epsilon: float = 1.0, bits: int = 16, hashes: int = 2, reports: int = 100) -> ZooEntry:
    """Many reports of RAPPOR about one value, calibrated to epsilon for any number of them.

    The permanent bits have exactly epsilon, one report epsilon/2. Its truth on two values without a common bit grows
    with the number of reports from epsilon/2 towards epsilon; pure and Rényi levels are finite sums, delta is known for
    few reports.

    Reference: as `rappor`.
    """
    epsilon, reports = check_epsilon(epsilon), check_count("reports", reports, 2, 1000)
    summary = "many reports of a doubly randomised Bloom filter, its permanent bits the same"
    return _entry("rappor_longitudinal", summary, epsilon, epsilon, bits, hashes, reports)


def bloom_bits(value: Any, bits: int, hashes: int) -> frozenset[int]:
    """The places that a value sets in a Bloom filter, by as many hash functions."""
    digests = (hashlib.blake2b(f"{index}:{value!r}".encode(), digest_size=8).digest() for index in range(hashes))
    return frozenset(int.from_bytes(digest, "big") % bits for digest in digests)


def _entry(name: str, summary: str, epsilon: float, permanent: float, bits: int, hashes: int, reports: int) -> ZooEntry:
    hashes = check_count("hashes", hashes, 1, 8)
    bits = check_count("bits", bits, 2 * hashes, 256)
    # A bit that survives with probability (1 + tanh(x/2))/2 loses x; 2*hashes bits differ between two values. Biases of
    # consecutive coins multiply, so one report loses half of what the permanent bits lose.
    loss = permanent / (2 * hashes)
    permanent_kept, report_kept = (1 + math.tanh(loss / 2)) / 2, (1 + math.tanh(loss / 4) / math.tanh(loss / 2)) / 2
    reporting = Rappor(bits, hashes, permanent_kept, report_kept, reports)
    extra: dict[str, Any] = {} if reports == 1 else {"reports": reports}
    claim, pair, law = PureDP(epsilon), _disjoint_pair(bits, hashes), partial(_law, reporting)
    return entry(name, summary, reporting, claim, pair, law, epsilon=epsilon, bits=bits, hashes=hashes, **extra)


def _disjoint_pair(bits: int, hashes: int) -> Pair:
    """The first two values with as many bits as there are hashes and none in common."""
    tried: list[tuple[int, frozenset[int]]] = []
    for value in range(_MOST_TRIED):
        found = bloom_bits(value, bits, hashes)
        if len(found) < hashes:
            continue
        for earlier, others in tried:
            if not found & others:
                return Pair(earlier, value)
        tried.append((value, found))
    raise InputError(f"bits={bits} are too few for hashes={hashes}: no two values without a common bit; take more bits")


def _law(reporting: Rappor) -> PairLaw:
    """As many places set by the left value alone as by the right one; the other places reveal nothing."""
    set_, unset = _ones_law(reporting, True), _ones_law(reporting, False)
    unit = _both(discrete_law(set_, unset), discrete_law(unset, set_))
    if len(unit.left) ** reporting.hashes > _MOST_CELLS:
        return ProductLaw(unit, reporting.hashes)
    return reduce(_both, [unit] * reporting.hashes)


def _both(one: CellLaw, other: CellLaw) -> CellLaw:
    """Two independent outputs together."""
    sides = (np.outer(one.left, other.left).ravel(), np.outer(one.right, other.right).ravel())
    return quadrature_law(*sides, merged_ratio=_MERGED_RATIO)


def _ones_law(reporting: Rappor, is_set: bool) -> Floats:
    """The distribution of the number of ones in one place over all reports, shape (reports + 1,)."""
    stays = reporting.permanent_kept if is_set else 1 - reporting.permanent_kept
    ones = _binomial(reporting.reports, reporting.report_kept)
    return np.asarray(stays * ones + (1 - stays) * ones[::-1])


def _binomial(n: int, chance: float) -> Floats:
    logs, k = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))]), np.arange(n + 1)
    return np.asarray(np.exp(logs[n] - logs[k] - logs[n - k] + k * math.log(chance) + (n - k) * math.log1p(-chance)))


# Seeds of the public hash functions; few enough that the law can count them all.
_SEEDS = 1 << 16
# Odd 64-bit constants of a common mixing function (splitmix64), and its shifts.
_MIX, _WORD = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB), (1 << 64) - 1


def public_hash(seed: Any, category: int, buckets: int) -> Any:
    """The bucket of a category, from 0 to buckets - 1, under the hash function of a seed.

    Args:
        seed: a whole number, or an array of uint64, which gives an array.
    """
    mixed = (seed << 16) + category + 1
    for factor, shift in zip(_MIX, (30, 27, 31), strict=True):
        mixed = (mixed ^ (mixed >> shift)) * factor & _WORD
    return (mixed >> 32) % buckets


def report_hash(
    dataset: Any, n: int, rng: np.random.Generator, categories: int, buckets: int, truthful: float
) -> Integers:
    """A random hash function and the bucket of one's category, or another bucket; int64 outputs, shape (n, 2).

    Args:
        categories: all of them.
        buckets: that a category is hashed to.
        truthful: probability of the true bucket.
    """
    seeds, lies = rng.integers(0, _SEEDS, n, dtype=np.uint64), rng.integers(1, buckets, n, dtype=np.uint64)
    lies[rng.random(n) < truthful] = 0
    own = public_hash(seeds, check_category(dataset, categories), buckets)
    return np.column_stack([seeds, (own + lies) % buckets]).astype(np.int64)


def supported(report: Integers, buckets: int) -> dict[str, bool]:
    """Whether a report (seed, bucket) supports category 0 and category 1, as an aggregator would count it."""
    seed, bucket = report.tolist()
    return {f"supports_{each}": public_hash(seed, each, buckets) == bucket for each in (0, 1)}


def blh(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Binary local hashing: a random hash function to one bit, and that bit through randomized response.

    What an event must look at is whether the hash of a category is the report; the entry brings that as features.
    Its truth on any two categories: pure epsilon; the other notions by a finite sum over the hash functions.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation" (BLH).
    """
    return _hashing("blh", "binary", epsilon, categories, 2)


def olh(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Optimised local hashing: like `blh`, with about e^eps + 1 buckets instead of two.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation" (OLH).
    """
    return _hashing("olh", "optimised", epsilon, categories, round(math.exp(min(check_epsilon(epsilon), 10.0))) + 1)


def _hashing(name: str, kind: str, epsilon: float, categories: int, buckets: int) -> ZooEntry:
    epsilon, categories = check_epsilon(epsilon), check_count("categories", categories, 2, 1000)
    truthful = 1 / (1 + (buckets - 1) * math.exp(-epsilon))
    draw = partial(report_hash, categories=categories, buckets=buckets, truthful=truthful)
    law, features = partial(_hashing_law, epsilon, buckets, truthful), partial(supported, buckets=buckets)
    about = name, f"{kind} local hashing of a category", draw, PureDP(epsilon), Pair(0, 1), law
    return entry(*about, features=features, epsilon=epsilon, categories=categories)


def _hashing_law(epsilon: float, buckets: int, truthful: float) -> CellLaw:
    """Reports that support both categories, the left one, the right one, none."""
    hashed = [public_hash(np.arange(_SEEDS, dtype=np.uint64), category, buckets) for category in (0, 1)]
    same, lie = float(np.mean(hashed[0] == hashed[1])), truthful * math.exp(-epsilon)
    both, own, other = same * truthful, (1 - same) * truthful, (1 - same) * lie
    none = 1 - both - own - other
    return discrete_law(np.array([both, own, other, none]), np.array([both, other, own, none]))
