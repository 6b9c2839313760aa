"""RAPPOR: a Bloom filter whose bits are randomised twice, once for good and once per report."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from epsilometer.claims import PureDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.laws import PairLaw, ProductLaw, discrete_law
from epsilometer.zoo.numerics import FloatArray
from epsilometer.zoo.parameters import check_epsilon, check_whole

# Values that are tried for a pair with no bit in common.
_MOST_TRIED = 10_000
# Cells with equal log ratios are one cell; so many digits tell ratios apart that are not equal.
_DIGITS = 9
# More cells are not put together: divergences still add up, delta is then not known.
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
            each place, which tells as much as the reports themselves.
    """

    bits: int
    hashes: int
    permanent_kept: float
    report_kept: float
    reports: int

    def __call__(self, dataset: Any, n: int, rng: Generator) -> NDArray[np.bool_] | NDArray[np.int64]:
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
    epsilon, reports = check_epsilon(epsilon), check_whole("reports", reports, 2, 1000)
    summary = "many reports of a doubly randomised Bloom filter, its permanent bits the same"
    return _entry("rappor_longitudinal", summary, epsilon, epsilon, bits, hashes, reports)


def bloom_bits(value: Any, bits: int, hashes: int) -> frozenset[int]:
    """The places that a value sets in a Bloom filter, by as many hash functions."""
    digests = (hashlib.blake2b(f"{index}:{value!r}".encode(), digest_size=8).digest() for index in range(hashes))
    return frozenset(int.from_bytes(digest, "big") % bits for digest in digests)


def _entry(name: str, summary: str, epsilon: float, permanent: float, bits: int, hashes: int, reports: int) -> ZooEntry:
    hashes = check_whole("hashes", hashes, 1, 8)
    bits = check_whole("bits", bits, 2 * hashes, 256)
    # A bit that survives with probability (1 + tanh(x/2))/2 loses x; 2*hashes bits differ between two values. Biases of
    # coins that follow one another multiply, so that one report loses half of what the permanent bits lose.
    loss = permanent / (2 * hashes)
    permanent_kept = (1 + math.tanh(loss / 2)) / 2
    report_kept = (1 + math.tanh(loss / 4) / math.tanh(loss / 2)) / 2
    reporting = Rappor(bits, hashes, permanent_kept, report_kept, reports)
    extra = {} if reports == 1 else {"reports": reports}
    return ZooEntry(
        name=name,
        summary=summary,
        mechanism=from_batch(reporting, name=name),
        claim=PureDP(epsilon),
        worst_pair=_disjoint_pair(bits, hashes),
        keeps_claim=True,
        parameters={"epsilon": epsilon, "bits": bits, "hashes": hashes, **extra},
        law=partial(_law, reporting),
    )


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
    """As many places set by the left value alone as by the right one; the other places tell nothing."""
    set_, unset = _ones_law(reporting, True), _ones_law(reporting, False)
    unit = _merged(np.outer(set_, unset).ravel(), np.outer(unset, set_).ravel())
    if len(unit[0]) ** reporting.hashes > _MOST_CELLS:
        return ProductLaw(discrete_law(*unit), reporting.hashes)
    left, right = unit
    for _ in range(reporting.hashes - 1):
        left, right = _merged(np.outer(left, unit[0]).ravel(), np.outer(right, unit[1]).ravel())
    return discrete_law(left, right)


def _ones_law(reporting: Rappor, is_set: bool) -> FloatArray:
    """The law of the number of ones in one place over all reports, shape (reports + 1,)."""
    stays = reporting.permanent_kept if is_set else 1 - reporting.permanent_kept
    ones = _binomial(reporting.reports, reporting.report_kept)
    law: FloatArray = stays * ones + (1 - stays) * ones[::-1]
    return law


def _binomial(n: int, chance: float) -> FloatArray:
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    k = np.arange(n + 1)
    law: FloatArray = np.exp(logs[n] - logs[k] - logs[n - k] + k * math.log(chance) + (n - k) * math.log1p(-chance))
    return law


def _merged(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    possible = (left > 0) & (right > 0)
    left, right = left[possible], right[possible]
    keys = np.round(np.log(left) - np.log(right), _DIGITS)
    _, cells = np.unique(keys, return_inverse=True)
    return np.bincount(cells, left).astype(np.float64), np.bincount(cells, right).astype(np.float64)
