"""The shipped suite on our own methods."""

import pytest

from epsilometer.claims import PureDP, RenyiDP
from epsilometer.methods import find_method, names
from epsilometer.testing import MethodConformance

# Methods that work only with options of their own, or on laws that are no coin, have a suite of their own.
SPECIAL = {"ldp-histogram", "mmd"}
# These hand the proof to others: one claim of each kind of certificate shows whether they hand it on unchanged.
HANDING_ON = {"auto", "bits"}


class TestOurMethods(MethodConformance):
    # Fails at 12 bounds above the truth of 24. Finer errors show where all counts are enumerated, and in
    # tests/statistical on other laws than a coin.
    runs = 24

    @pytest.fixture(params=[name for name in names() if name not in SPECIAL | HANDING_ON])
    def method(self, request):
        return find_method(request.param)


class TestHandingOn(TestOurMethods):
    claims = (PureDP(0.5), RenyiDP(2.0, 0.1))

    @pytest.fixture(params=sorted(HANDING_ON))
    def method(self, request):
        return find_method(request.param)
