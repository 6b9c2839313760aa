"""The shipped suite on a method of somebody else: the one of the documentation, word for word."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from epsilometer.testing import MethodConformance

PAGE = Path(__file__).parents[2] / "docs" / "how-to-write-a-method.md"


class TestBands(MethodConformance):
    @pytest.fixture
    def method(self, monkeypatch):
        module = ModuleType("page_of_the_documentation")  # a home for its classes, so that they can be pickled
        monkeypatch.setitem(sys.modules, module.__name__, module)
        code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
        exec(code.split("\nresult = ")[0], module.__dict__)
        return module.Bands()
