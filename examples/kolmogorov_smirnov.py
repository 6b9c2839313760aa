"""A method of your own: compare two distribution functions, as the Kolmogorov-Smirnov test does.

Frequencies in n draws are within √(log(2/f) / 2n) of the probabilities, at all thresholds at once,
except with probability f (Dvoretzky, Kiefer, Wolfowitz; Massart). So the best may be picked later.
"""

from dataclasses import dataclass

import numpy as np

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer.methods import Method, Proposal, Task
from epsilometer.outputs import Outputs


@dataclass(frozen=True)
class Thresholds(Proposal):  # what to certify, fixed before the fresh draws exist
    at: np.ndarray
    claim: Claim
    predicted: float = 0.0

    def tally(self, outputs: Outputs, side: int) -> np.ndarray:  # tallies of chunks are added
        up_to = np.searchsorted(np.sort(outputs.numbers()), self.at, side="right")
        return np.array([up_to, outputs.size - up_to, np.full(len(up_to), outputs.size)])

    def certify(
        self, left: np.ndarray, right: np.ndarray, pair: em.Pair | None, failure_probability: float
    ) -> em.Finding:
        bound, scale = 0.0, np.log(4 / failure_probability) / 2  # each side may fail with half
        for above, below in ((left, right), (right, left)):  # the likelier side comes first
            p = (above[:2] / above[2] - np.sqrt(scale / above[2])).ravel()
            q = (below[:2] / below[2] + np.sqrt(scale / below[2])).ravel()
            bound = self.claim.least_values(p[p > q], q[p > q]).max(initial=bound)
        name, confidence = KolmogorovSmirnov.name, 1 - failure_probability
        return em.Finding(name, float(bound), "exact", confidence, witness=None, claim=self.claim)


class KolmogorovSmirnov(Method):
    name, guarantee = "kolmogorov-smirnov", "exact"
    summary = "the best of 32 thresholds, within bands around both distribution functions"

    def propose(self, left: Outputs, right: Outputs, task: Task) -> Thresholds:
        pooled = np.sort(np.concatenate([left.numbers(), right.numbers()]))
        at = np.unique(pooled[np.linspace(0, len(pooled) - 1, 32).astype(int)])
        guess = Thresholds(at, task.claim)
        counts = guess.tally(left, 0), guess.tally(right, 1)
        finding = guess.certify(*counts, None, task.failure_probability)
        return Thresholds(at, task.claim, predicted=finding.lower_bound)
