"""The shipped suite on the testers of DP-Auditorium: kernels, polynomials, networks, trees, published bounds."""

import pytest

from epsilometer import zoo
from epsilometer.claims import ApproxDeltaDP, ApproxDP, PureDP, RenyiDP
from epsilometer.methods import find_method
from epsilometer.methods.published.auditorium import (
    hockey_stick,
    mmd,
    poisson_histogram,
    renyi_variational,
)
from epsilometer.outputs import read_outputs
from epsilometer.testing import MethodConformance

# Runs of the tests that repeat whole audits. They fail at 12 bounds above the truth; finer errors show where all counts
# of a coin are enumerated, and in tests/statistical/test_testers.py.
RUNS = 24


class TestMmd(MethodConformance):
    """Smaller claims than the suite's: a discrepancy of the coin with bias .7 and .3 is below e^.5 − 1."""

    runs = RUNS
    claims = (PureDP(0.2), ApproxDP(0.2, 0.01), ApproxDeltaDP(0.1, 0.05))

    @pytest.fixture(params=["published", "total-variation"])
    def method(self, request):
        return find_method("mmd", mmd.Options(threshold=request.param))


class TestMmdOfPairs(TestMmd):
    """The published certificate needs more draws."""

    n_fresh = 20_000

    @pytest.fixture
    def method(self):
        return find_method("mmd", mmd.Options(certificate="published"))


class TestPublishedHockeyStick(MethodConformance):
    runs = RUNS

    @pytest.fixture
    def method(self):
        return find_method("hockey-stick", hockey_stick.Options(certificate="published"))


class TestPublishedRenyi(MethodConformance):
    """It promises nothing, but its bound is far below the truth where it is finite."""

    claims = (RenyiDP(2.0, 0.1), PureDP(0.5))
    n_fresh = 6000
    runs = RUNS

    @pytest.fixture
    def method(self):
        return find_method("renyi-variational", renyi_variational.Options(certificate="published"))


class TestPublishedHistogram(MethodConformance):
    """An estimate: on two outcomes its bias is small beside what it subtracts."""

    claims = (ApproxDeltaDP(0.2, 0.05), PureDP(0.2))
    n_fresh = 20_000
    runs = RUNS

    @pytest.fixture
    def method(self):
        return find_method("poisson-histogram", poisson_histogram.Options(certificate="published"))


class OfVectors(MethodConformance):
    """Three columns of Laplace noise, of which two leak .5 each."""

    claims = (PureDP(0.2),)
    n_train = 2000
    n_fresh = 4000
    runs = RUNS

    def draw(self, side, n, rng):
        return read_outputs(rng.laplace((0.5 * side, -0.5 * side, 0.0), 1.0, (n, 3)))

    def truth(self, claim):
        return 1.0


class TestTrees(OfVectors):
    @pytest.fixture
    def method(self):
        return find_method("hockey-stick", hockey_stick.Options(classifier="boosting"))


class TestPolynomialsOfColumns(OfVectors):
    @pytest.fixture
    def method(self):
        return find_method(
            "renyi-variational", renyi_variational.Options(family="chebyshev", order=2.0)
        )


class TestKernelOfVectors(OfVectors):
    claims = (PureDP(0.05),)
    # These take laws of their own instead of `draw`: what they show of this method, they show in TestMmd.
    test_bounds_hold_where_over_fitting_pays = None
    test_bounds_hold_when_the_laws_change = None
    test_bounds_hold_for_every_coin = None
    test_every_fresh_draw_is_counted_once = None

    @pytest.fixture
    def method(self):
        return find_method("mmd")


class TestNetwork(OfVectors):
    """Needs the extra `neural`, which `make setup` installs."""

    claims = (RenyiDP(2.0, 0.05),)

    def truth(self, claim):
        return 2 * zoo.laplace(0.5).truth(RenyiDP, order=2.0)  # the columns are independent

    @pytest.fixture
    def method(self):
        return find_method(
            "renyi-variational", renyi_variational.Options(family="network", steps=150)
        )
