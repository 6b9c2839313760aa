"""A method of your own: compare two distribution functions, as the Kolmogorov-Smirnov test does.

The empirical distribution function of n draws stays within √(log(2/f) / 2n) of the true one, at all thresholds at once,
except with probability f (Dvoretzky, Kiefer, Wolfowitz; Massart). So the best threshold may be picked after counting.
"""

from dataclasses import dataclass

import numpy as np

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer.methods import Method, Proposal


@dataclass(frozen=True)
class Thresholds(Proposal):  # what to prove: fixed before the fresh draws exist
    at: np.ndarray  # increasing; the last one is NaN, which sorts last, so its count is the number of draws
    claim: Claim
    predicted: float = 0.0

    def tally(self, outputs, side):  # outputs up to each threshold; the audit adds up the tallies of all chunks
        return np.searchsorted(np.sort(as_numbers(outputs)), self.at, side="right")

    def certify(self, left, right, pair, failure_probability):
        bound, half = 0.0, failure_probability / 2  # one band per side, and each may fail with half of it
        sides = [(n / n[-1], np.sqrt(np.log(2 / half) / (2 * n[-1]))) for n in (left, right)]
        for (f, above), (g, below) in (sides, sides[::-1]):  # "up to t" and "above t", in both directions
            for p, q in zip(np.append(f, 1 - f) - above, np.append(g, 1 - g) + below, strict=True):
                bound = max(bound, self.claim.least_value(p, q) if p > q else 0.0)
        return em.Finding("kolmogorov-smirnov", float(bound), "exact", 1 - failure_probability, None, self.claim)


class KolmogorovSmirnov(Method):
    name, guarantee = "kolmogorov-smirnov", "exact"
    summary = "the best of 32 thresholds, within bands around both distribution functions"

    def propose(self, left, right, task):
        pooled = np.sort(np.concatenate([as_numbers(left), as_numbers(right)]))
        at = np.unique(np.append(pooled[np.linspace(0, len(pooled) - 1, 32).astype(int)], np.nan))
        guess = Thresholds(at, task.claim)
        finding = guess.certify(guess.tally(left, 0), guess.tally(right, 1), None, task.failure_probability)
        return Thresholds(at, task.claim, predicted=finding.lower_bound)


def as_numbers(outputs):  # outputs come in blocks of one shape, with a column for each part
    if not {block.shape for block in outputs} <= {"bool", "int", "float"}:
        raise em.InputError("kolmogorov-smirnov is for outputs that are single numbers")
    return np.concatenate([[], *(block.columns[0].values for block in outputs)])
