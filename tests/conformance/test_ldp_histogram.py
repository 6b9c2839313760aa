"""The shipped suite on `ldp-histogram`, with a law that keeps its assumption."""

import math

import numpy as np
import pytest

from epsilometer.claims import PureDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.published.ldp import HistogramMethod, Options
from epsilometer.outputs import read_outputs
from epsilometer.testing import MethodConformance, hostile

SLOPE = 1.5


class TestHistogram(MethodConformance):
    """Densities 1 ± C(z − ½) on [0, 1]: as far apart as C-Lipschitz densities can be."""

    claims = (PureDP(0.0),)
    n_train = 500
    n_fresh = 60_000
    runs = 60

    @pytest.fixture
    def method(self):
        return HistogramMethod(Options((0.0, 1.0), SLOPE))

    def draw(self, side, n, rng):
        """The larger of two uniform numbers has density 2z; mixed with a uniform one it has slope C."""
        pair = rng.random((n, 2))
        rising = np.where(rng.random(n) < SLOPE / 2, pair.max(axis=1), pair[:, 0])
        return read_outputs(1.0 - rising if side else rising)

    def truth(self, claim):
        return math.log((1 + SLOPE / 2) / (1 - SLOPE / 2))

    def test_hostile_outputs_are_outcomes(self, method):
        """They are refused with their number: the assumption has no place for them."""
        outputs = hostile().sample(1.0, 1000, np.random.default_rng(8))
        with pytest.raises(InputError, match=r"of 2,000 outputs are not numbers of domain"):
            method.propose(outputs, outputs, self._task(self.claims[0], np.random.default_rng(8)))

    def test_outputs_never_seen_in_training(self, method):
        proposal = self._propose(method, self.claims[0], np.random.default_rng(9))
        strange = read_outputs([None, "a word", 3, (1.0, 2.0), 1e300])
        tallies = [proposal.tally(strange, side) for side in (0, 1)]
        with pytest.raises(InputError, match="10 of 10 outputs"):
            proposal.certify(*tallies, Pair(0, 1), 0.05)
