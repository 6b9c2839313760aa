"""The shipped suite on our own methods."""

import pytest

from epsilometer.methods import find_method, names
from epsilometer.testing import MethodConformance

# Methods that work only with options of their own, or on laws that are no coin, have a suite of their own.
SPECIAL = {"ldp-histogram", "mmd"}


class TestOurMethods(MethodConformance):
    @pytest.fixture(params=[name for name in names() if name not in SPECIAL])
    def method(self, request):
        return find_method(request.param)
