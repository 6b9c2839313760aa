"""Every public name has a short example in its docstring, and it runs where `em` and `np` are what everybody knows."""

import doctest
import inspect

import numpy as np
import pytest

import epsilometer as em

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(name):
    return doctest.DocTestParser().get_examples(inspect.getdoc(getattr(em, name)) or "")


@pytest.mark.parametrize("name", em.__all__)
def test_example(name, tmp_path, monkeypatch):
    assert examples(name), f"the docstring of em.{name} has no example"
    if name == "from_opendp":
        pytest.importorskip("opendp")
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(em, name))
    test = doctest.DocTestParser().get_doctest(text, {"em": em, "np": np}, f"em.{name}", None, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
