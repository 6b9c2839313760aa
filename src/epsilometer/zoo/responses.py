"""Randomized response of many people, plain or shuffled; RAPPOR's Bloom filters; local hashing."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epsilometer.arrays import Booleans, Floats, Integers
from epsilometer.claims import PureDP
from epsilometer.claims.base import check_choice
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.zoo.distributions.exact import (
    CellDistributions,
    PairDistributions,
    ProductDistributions,
    discrete_distributions,
    quadrature_distributions,
)
from epsilometer.zoo.entry import ZooEntry, check_count, check_epsilon, entry
from epsilometer.zoo.local import check_category

# More people than this have more shuffled answers than a float can distinguish.
_MAX_USERS = 50

# --- randomized response of many people


def respond_bits(dataset: Any, n: int, rng: np.random.Generator, lie: float) -> Booleans:
    """Draws every person's bit, flipped with probability `lie`; bool, shape (n, people)."""
    bits = np.asarray(dataset)
    if bits.ndim != 1 or not np.isin(bits, (0, 1)).all():
        raise InputError(f"dataset={dataset!r:.100} must be a list of bits, one per person")
    flips = rng.random((n, len(bits))) < lie
    return np.not_equal(flips, bits.astype(np.bool_), out=flips)


def respond_shuffled(dataset: Any, n: int, rng: np.random.Generator, lie: float) -> Booleans:
    """Draws the same answers in a fresh random order for every row; bool, shape (n, people)."""
    answers = respond_bits(dataset, n, rng, lie)
    # Sorting by random keys permutes uniformly; a tie of two 62-bit keys, which would sort by
    # answer, has probability below 1e-15 per row.
    keys = rng.integers(0, 1 << 62, answers.shape, dtype=np.int64) << 1 | answers
    keys.sort(axis=1)
    return (keys & 1).astype(np.bool_)


def count_responses(dataset: Any, n: int, rng: np.random.Generator, lie: float) -> Integers:
    """Draws how many people answer 1; int64 outputs of shape (n,)."""
    return np.asarray(respond_bits(dataset, n, rng, lie).sum(axis=1), dtype=np.int64)


def randomized_responses(epsilon: float = 1.0, users: int = 10) -> ZooEntry:
    """Binary randomized response of each of several people; the output is everybody's answer.

    Its truth when one person changes their bit is that of one response: pure epsilon.

    Reference: Warner, "Randomized response".
    """
    epsilon = check_epsilon(epsilon)
    users = check_count("users", users, 1, _MAX_USERS)
    lie = _lie_probability(epsilon)
    return entry(
        "randomized_responses",
        summary=f"the bits of {users} people, each reported truthfully or flipped",
        draw=partial(respond_bits, lie=lie),
        claim=PureDP(epsilon),
        worst_pair=_one_bit(users),
        make_distributions=partial(
            discrete_distributions, np.array([1 - lie, lie]), np.array([lie, 1 - lie])
        ),
        parameters={"epsilon": epsilon, "users": users},
    )


def shuffled_responses(epsilon: float = 1.0, users: int = 10, output: str = "vector") -> ZooEntry:
    """Binary randomized response of each of several people, shuffled before it is published.

    `output` is "vector" (the answers in random order) or "counts" (how many answered 1): the same
    privacy, since the order reveals nothing, but 2^users outputs against users + 1. The claim is
    that of one response, which shuffling can only improve; the truth is a finite sum.

    Reference: Girgis, Data, Diggavi, Suresh, Kairouz, "On the Rényi differential privacy of the
    shuffle model".
    """
    epsilon = check_epsilon(epsilon)
    users = check_count("users", users, 1, _MAX_USERS)
    output = check_choice("output", output, ("vector", "counts"))
    draw = respond_shuffled if output == "vector" else count_responses
    bits = f"the bits of {users} people"
    return entry(
        "shuffled_responses",
        summary=f"{bits}, each reported truthfully or flipped, in random order",
        draw=partial(draw, lie=_lie_probability(epsilon)),
        claim=PureDP(epsilon),
        worst_pair=_one_bit(users),
        make_distributions=partial(_count_distributions, epsilon, users),
        parameters={"epsilon": epsilon, "users": users, "output": output},
    )


def _lie_probability(epsilon: float) -> float:
    """Returns the probability of a false answer in binary randomized response."""
    return 1 / (1 + math.exp(epsilon))


def _one_bit(users: int) -> Pair:
    return Pair([1] + [0] * (users - 1), [0] * users)


def _count_distributions(epsilon: float, users: int) -> CellDistributions:
    """The distributions of the number of ones.

    The others' answers are binomial, and the answer of the one person is added.
    """
    lie = _lie_probability(epsilon)
    others = _binomial(users - 1, lie)
    if_zero = np.append(others, 0.0)
    if_one = np.append(0.0, others)
    return discrete_distributions(
        lie * if_zero + (1 - lie) * if_one, (1 - lie) * if_zero + lie * if_one
    )


def _binomial(n: int, probability: float) -> Floats:
    """Returns the binomial probabilities of 0, 1, …, n; shape (n + 1,)."""
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    k = np.arange(n + 1)
    log_choices = log_factorials[n] - log_factorials[k] - log_factorials[n - k]
    logs = log_choices + k * math.log(probability) + (n - k) * math.log1p(-probability)
    return np.asarray(np.exp(logs))


# --- RAPPOR

# Values that are tried for a pair with no bit in common.
_MAX_VALUES_TRIED = 10_000
# Cells whose log ratios agree to this are one cell.
_MERGED_RATIO = 1e-9
# More cells are not combined: divergences still add up, but delta is then unknown.
_MAX_CELLS = 2_000_000


@dataclass(frozen=True)
class Rappor:
    """Reports about one value; outputs of shape (n, bits).

    Attributes:
        bits: length of the Bloom filter.
        hashes: bits that a value sets.
        permanent_kept: probability that a bit survives the permanent randomisation.
        report_kept: probability that a permanent bit survives the randomisation of one report.
        reports: how many reports with the same permanent bits; 1 gives bool outputs, more give the
            number of ones in each place, which reveals as much as the reports themselves.
    """

    bits: int
    hashes: int
    permanent_kept: float
    report_kept: float
    reports: int

    def __call__(self, dataset: Any, n: int, rng: np.random.Generator) -> Booleans | Integers:
        """Draws n people with this value and the report (or reports) of each."""
        true_bits = np.zeros(self.bits, dtype=np.bool_)
        true_bits[list(bloom_bits(dataset, self.bits, self.hashes))] = True
        permanent = true_bits ^ (rng.random((n, self.bits)) >= self.permanent_kept)
        if self.reports == 1:
            return permanent ^ (rng.random((n, self.bits)) >= self.report_kept)
        probability_of_one = np.where(permanent, self.report_kept, 1 - self.report_kept)
        return rng.binomial(self.reports, probability_of_one)


def rappor(epsilon: float = 1.0, bits: int = 16, hashes: int = 2) -> ZooEntry:
    """One report of RAPPOR, calibrated to epsilon for one report.

    The permanent bits then have 2 epsilon. Its truth on two values without a common bit: pure
    epsilon; the other notions by a finite sum.

    Reference: Erlingsson, Pihur, Korolova, "RAPPOR: randomized aggregatable privacy-preserving
    ordinal response", with symmetric coins (p = 1 - q).
    """
    epsilon = check_epsilon(epsilon)
    return _rappor_entry(
        "rappor",
        summary="one report of a doubly randomised Bloom filter",
        epsilon=epsilon,
        permanent_epsilon=2 * epsilon,
        bits=bits,
        hashes=hashes,
        reports=1,
    )


def rappor_longitudinal(
    epsilon: float = 1.0, bits: int = 16, hashes: int = 2, reports: int = 100
) -> ZooEntry:
    """Many reports of RAPPOR about one value, calibrated to epsilon for any number of them.

    The permanent bits have exactly epsilon, one report epsilon/2. Its truth on two values without a
    common bit grows with the number of reports from epsilon/2 towards epsilon; pure and Rényi
    levels are finite sums, delta is known for few reports.

    Reference: as `rappor`.
    """
    epsilon = check_epsilon(epsilon)
    reports = check_count("reports", reports, 2, 1000)
    return _rappor_entry(
        "rappor_longitudinal",
        summary="many reports of a doubly randomised Bloom filter, its permanent bits the same",
        epsilon=epsilon,
        permanent_epsilon=epsilon,
        bits=bits,
        hashes=hashes,
        reports=reports,
    )


def bloom_bits(value: Any, bits: int, hashes: int) -> frozenset[int]:
    """Returns the places that a value sets in a Bloom filter, by as many hash functions."""
    places = set()
    for index in range(hashes):
        digest = hashlib.blake2b(f"{index}:{value!r}".encode(), digest_size=8).digest()
        places.add(int.from_bytes(digest, "big") % bits)
    return frozenset(places)


def _rappor_entry(
    name: str,
    *,
    summary: str,
    epsilon: float,
    permanent_epsilon: float,
    bits: int,
    hashes: int,
    reports: int,
) -> ZooEntry:
    hashes = check_count("hashes", hashes, 1, 8)
    bits = check_count("bits", bits, 2 * hashes, 256)
    # A bit that survives with probability (1 + tanh(x/2))/2 loses x; 2*hashes bits differ between
    # two values. Biases of consecutive coins multiply, so one report loses half of what the
    # permanent bits lose.
    loss_per_bit = permanent_epsilon / (2 * hashes)
    permanent_bias = math.tanh(loss_per_bit / 2)
    report_bias = math.tanh(loss_per_bit / 4) / permanent_bias
    draw = Rappor(
        bits=bits,
        hashes=hashes,
        permanent_kept=(1 + permanent_bias) / 2,
        report_kept=(1 + report_bias) / 2,
        reports=reports,
    )
    parameters: dict[str, Any] = {"epsilon": epsilon, "bits": bits, "hashes": hashes}
    if reports > 1:
        parameters["reports"] = reports
    return entry(
        name,
        summary=summary,
        draw=draw,
        claim=PureDP(epsilon),
        worst_pair=_disjoint_pair(bits, hashes),
        make_distributions=partial(_rappor_distributions, draw),
        parameters=parameters,
    )


def _disjoint_pair(bits: int, hashes: int) -> Pair:
    """Returns the first two values with as many bits as there are hashes and none in common."""
    bits_of_earlier: dict[int, frozenset[int]] = {}
    for value in range(_MAX_VALUES_TRIED):
        own_bits = bloom_bits(value, bits, hashes)
        if len(own_bits) < hashes:
            continue
        for earlier, earlier_bits in bits_of_earlier.items():
            if not own_bits & earlier_bits:
                return Pair(earlier, value)
        bits_of_earlier[value] = own_bits
    raise InputError(
        f"bits={bits} are too few for hashes={hashes}: no two values without a common bit; "
        "take more bits"
    )


def _rappor_distributions(reporting: Rappor) -> PairDistributions:
    """The distributions of the places that one of the two values sets; the others reveal nothing.

    The left value alone sets as many places as the right one.
    """
    set_bit = _number_of_ones(reporting, is_set=True)
    unset_bit = _number_of_ones(reporting, is_set=False)
    set_by_left = discrete_distributions(set_bit, unset_bit)
    set_by_right = discrete_distributions(unset_bit, set_bit)
    one_of_each = _both([set_by_left, set_by_right])
    if len(one_of_each.left) ** reporting.hashes > _MAX_CELLS:
        return ProductDistributions(one_of_each, reporting.hashes)
    return _both([one_of_each] * reporting.hashes)


def _both(components: Sequence[CellDistributions]) -> CellDistributions:
    """The distributions of independent outputs together."""
    combined = components[0]
    for component in components[1:]:
        combined = quadrature_distributions(
            np.outer(combined.left, component.left).ravel(),
            np.outer(combined.right, component.right).ravel(),
            merged_ratio=_MERGED_RATIO,
        )
    return combined


def _number_of_ones(reporting: Rappor, *, is_set: bool) -> Floats:
    """Returns the distribution of the number of ones in one place over all reports.

    Its shape is (reports + 1,).
    """
    permanent_one = reporting.permanent_kept if is_set else 1 - reporting.permanent_kept
    if_one = _binomial(reporting.reports, reporting.report_kept)
    if_zero = if_one[::-1]
    return np.asarray(permanent_one * if_one + (1 - permanent_one) * if_zero)


# --- local hashing

# Seeds of the public hash functions; few enough to enumerate all of them.
_N_SEEDS = 1 << 16
# Odd 64-bit factors and shifts of a common mixing function (splitmix64).
_MIXING_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MIXING_SHIFTS = (30, 27, 31)
_WORD_MASK = (1 << 64) - 1


def public_hash(seed: Any, category: int, buckets: int) -> Any:
    """Returns the bucket of a category, from 0 to buckets - 1, under the hash of a seed.

    Args:
        seed: an integer, or an array of uint64, which gives an array.
        category: to be hashed.
        buckets: how many.
    """
    mixed = (seed << 16) + category + 1
    for factor, shift in zip(_MIXING_FACTORS, _MIXING_SHIFTS, strict=True):
        mixed = (mixed ^ (mixed >> shift)) * factor & _WORD_MASK
    return (mixed >> 32) % buckets


def report_hash(
    dataset: Any,
    n: int,
    rng: np.random.Generator,
    *,
    categories: int,
    buckets: int,
    truthful: float,
) -> Integers:
    """Draws a random hash function and the bucket of the category, or another bucket.

    Outputs are int64, shape (n, 2).

    Args:
        dataset: the true category.
        n: how many outputs.
        rng: the source of randomness.
        categories: all of them.
        buckets: that a category is hashed to.
        truthful: probability of the true bucket.
    """
    seeds = rng.integers(0, _N_SEEDS, n, dtype=np.uint64)
    offsets = rng.integers(1, buckets, n, dtype=np.uint64)
    offsets[rng.random(n) < truthful] = 0
    true_buckets = public_hash(seeds, check_category(dataset, categories), buckets)
    return np.column_stack([seeds, (true_buckets + offsets) % buckets]).astype(np.int64)


def supported(report: Integers, buckets: int) -> dict[str, bool]:
    """Returns whether a report supports category 0 and category 1, as an aggregator counts it.

    Args:
        report: (seed, bucket).
        buckets: how many there are.
    """
    seed, bucket = report.tolist()
    return {
        "supports_0": public_hash(seed, 0, buckets) == bucket,
        "supports_1": public_hash(seed, 1, buckets) == bucket,
    }


def blh(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Binary local hashing: a random hash function to one bit, and that bit by randomized response.

    What an event must look at is whether the hash of a category is the report; the entry brings
    that as features. Its truth on any two categories: pure epsilon; the other notions by a finite
    sum over the hash functions.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency
    estimation" (BLH).
    """
    return _hashing_entry("blh", "binary", epsilon, categories, buckets=2)


def olh(epsilon: float = 1.0, categories: int = 4) -> ZooEntry:
    """Optimised local hashing: like `blh`, with about e^eps + 1 buckets instead of two.

    Reference: Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency
    estimation" (OLH).
    """
    # Beyond epsilon = 10 more buckets do not matter: there are at most 1000 categories.
    buckets = round(math.exp(min(check_epsilon(epsilon), 10.0))) + 1
    return _hashing_entry("olh", "optimised", epsilon, categories, buckets=buckets)


def _hashing_entry(
    name: str, kind: str, epsilon: float, categories: int, *, buckets: int
) -> ZooEntry:
    epsilon = check_epsilon(epsilon)
    categories = check_count("categories", categories, 2, 1000)
    truthful = 1 / (1 + (buckets - 1) * math.exp(-epsilon))
    return entry(
        name,
        summary=f"{kind} local hashing of a category",
        draw=partial(report_hash, categories=categories, buckets=buckets, truthful=truthful),
        claim=PureDP(epsilon),
        worst_pair=Pair(0, 1),
        make_distributions=partial(_hashing_distributions, epsilon, buckets, truthful),
        parameters={"epsilon": epsilon, "categories": categories},
        features=partial(supported, buckets=buckets),
    )


def _hashing_distributions(epsilon: float, buckets: int, truthful: float) -> CellDistributions:
    """The distributions of reports that support both categories, the left one, the right, none."""
    seeds = np.arange(_N_SEEDS, dtype=np.uint64)
    same_bucket = public_hash(seeds, 0, buckets) == public_hash(seeds, 1, buckets)
    collision = float(np.mean(same_bucket))
    lie = truthful * math.exp(-epsilon)
    both = collision * truthful
    only_own = (1 - collision) * truthful
    only_other = (1 - collision) * lie
    none = 1 - both - only_own - only_other
    return discrete_distributions(
        np.array([both, only_own, only_other, none]), np.array([both, only_other, only_own, none])
    )
