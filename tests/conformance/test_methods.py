"""The shipped suite on our own methods."""

import pytest

from epsilometer.methods import find_method, names
from epsilometer.testing import MethodConformance


class TestOurMethods(MethodConformance):
    @pytest.fixture(params=names())
    def method(self, request):
        return find_method(request.param)
