"""Code is known by what it does and what it uses, not by its name or its place."""

import functools
import importlib
import random
import sys
import types

import numpy as np
import pytest

import epsilometer as em
from epsilometer.storage import Undigestible, code_digest


def compiled(source, name="f", **names):
    scope = {"__name__": "__main__", "np": np, **names}
    exec(compile(source, "some file", "exec"), scope)
    return scope[name]


BASE = "def f(x, rng): return x + rng.laplace(scale=1.0)"
CHANGED = [
    "def f(x, rng): return x + rng.laplace(scale=0.1)",
    "def f(x, rng): return x - rng.laplace(scale=1.0)",
    "def f(x, rng): return x + rng.normal(scale=1.0)",
    "def f(x, rng, scale=1.0): return x + rng.laplace(scale=scale)",
    "def f(x, rng, scale=2.0): return x + rng.laplace(scale=scale)",
    "def f(x, rng, *, scale=2.0): return x + rng.laplace(scale=scale)",
    "def f(x, rng): return x + rng.laplace(scale=1)",
    "def f(x, rng): return (lambda: x + rng.laplace(scale=1.0))()",
    "def f(x, rng): return (lambda: x + rng.laplace(scale=2.0))()",
    "def g(x): return x\ndef f(x, rng): return g(x) + rng.laplace(scale=1.0)",
    "def g(x): return 2 * x\ndef f(x, rng): return g(x) + rng.laplace(scale=1.0)",
    "s = 1.0\ndef f(x, rng): return x + rng.laplace(scale=s)",
    "s = 2.0\ndef f(x, rng): return x + rng.laplace(scale=s)",
    "class C:\n def m(self, x): return x\ndef f(x, rng): return C().m(x)",
    "class C:\n def m(self, x): return -x\ndef f(x, rng): return C().m(x)",
    "class B:\n k = 1\nclass C(B): pass\ndef f(x, rng): return C.k",
    "class B:\n k = 2\nclass C(B): pass\ndef f(x, rng): return C.k",
    "def f(x, rng): return f(x - 1, rng) if x > 0 else 1",
    "def f(x, rng): return f(x - 1, rng) if x > 0 else 2",
]


def test_another_code_is_another_mechanism():
    digests = [code_digest(compiled(source)) for source in (BASE, *CHANGED)]
    assert len(set(digests)) == len(digests)
    assert digests == [code_digest(compiled(source)) for source in (BASE, *CHANGED)]


@pytest.mark.parametrize(
    "source",
    [
        "# a comment\n\n\n" + BASE,
        "def f(x, rng):\n    # why\n    return x + rng.laplace(scale=1.0)",
        "unused = 5\n" + BASE,
        "def other(): pass\n" + BASE,
    ],
)
def test_comments_and_lines_do_not_count(source):
    assert code_digest(compiled(source)) == code_digest(compiled(BASE))


def test_docstrings_do_not_count():
    one, two = (f'def f(x):\n    "{text}"\n    return "a"' for text in ("one", "two"))
    assert code_digest(compiled(one)) == code_digest(compiled(two))
    assert code_digest(compiled(one)) != code_digest(
        compiled('def f(x):\n    "one"\n    return "b"')
    )


def closing_over(value):
    def f(x):
        return x, value

    return f


def test_what_is_closed_over():
    values = [
        1,
        1.0,
        [1],
        np.zeros(5000),
        np.eye(1, 5000, 2500)[0],
        closing_over(1),
        closing_over(2),
        max,
    ]
    digests = [code_digest(closing_over(value)) for value in values]
    assert len(set(digests)) == len(values)
    assert digests[3] == code_digest(closing_over(np.zeros(5000)))


class Noisy:
    def __init__(self, scale):
        self.scale, self.rng = scale, np.random.default_rng(0)
        self.other = random.Random(0)

    def __call__(self, x):
        return x + self.rng.laplace(scale=self.scale) + self.other.random()

    def method(self, x):
        return self(x)


def test_objects_are_their_class_and_their_state():
    one = Noisy(1.0)
    before = code_digest(one)
    one(0.0)
    assert code_digest(one) == before == code_digest(Noisy(1.0))  # a generator moves on
    assert code_digest(Noisy(2.0)) != before
    assert code_digest(Noisy(1.0).method) != code_digest(Noisy(2.0).method)
    assert code_digest(Noisy(1.0).method) != code_digest(Noisy(1.0).__call__)


def test_wrappers():
    one, two = compiled(BASE), compiled(CHANGED[0])
    wraps = (functools.lru_cache, functools.partial, np.vectorize, staticmethod)
    for wrap in wraps:
        assert code_digest(wrap(one)) != code_digest(wrap(two))
    assert code_digest(functools.partial(one, 1)) != code_digest(functools.partial(one, 2))


class Decorator:
    def __init__(self, function, scale):
        functools.update_wrapper(self, function)
        self.function, self.scale = function, scale

    def __call__(self, x, rng):
        return self.scale * self.function(x, rng)


def test_a_decorating_object_is_more_than_what_it_decorates():
    function = compiled(BASE)
    assert code_digest(Decorator(function, 1.0)) != code_digest(Decorator(function, 2.0))


def test_modules_of_the_user(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    # Compiled code of a file of the same size and second would be taken for that of the new one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    digests = []
    for scale in (1.0, 2.0):
        (tmp_path / "own_helper.py").write_text(
            f"def noise(rng):\n    return rng.laplace(scale={scale})\nunused = {scale}\n"
        )
        importlib.invalidate_caches()
        sys.modules.pop("own_helper", None)
        helper = importlib.import_module("own_helper")
        by_name = compiled("def f(x, rng): return x + helper.noise(rng)", helper=helper)
        inside = compiled(
            "def f(x, rng):\n    import own_helper\n    return x + own_helper.noise(rng)"
        )
        also = compiled(
            "def f(x, rng):\n    from own_helper import noise\n    return x + noise(rng)"
        )
        digests.append([code_digest(each) for each in (by_name, inside, also)])
    assert all(one != two for one, two in zip(*digests, strict=True))
    helper.setting = 5.0
    reads = compiled("def f(x, rng): return x + helper.setting", helper=helper)
    before = code_digest(reads)
    helper.setting = 6.0
    assert code_digest(reads) != before


def test_libraries_count_by_version(monkeypatch):
    library = types.ModuleType("some_library")
    library.__version__ = "1"
    monkeypatch.setitem(sys.modules, "some_library", library)
    source = "def f(x): return np.sum(x)"
    assert code_digest(compiled(source)) == code_digest(compiled(source))
    before = code_digest(compiled(source))
    monkeypatch.setattr(np, "__version__", "another")
    assert code_digest(compiled(source)) != before


def test_what_cannot_be_recognised_is_refused():
    with open(__file__) as file, pytest.raises(Undigestible, match="TextIOWrapper"):
        code_digest(closing_over(file))


class TestMechanisms:
    def test_functions(self):
        one, two = compiled(BASE), compiled(CHANGED[0])
        for make in (em.from_callable, lambda f: em.repeated(f, 3)):
            assert make(one).digest() == make(compiled(BASE)).digest() != make(two).digest()

    def test_batches(self):
        one, two = (
            compiled("def f(x, n, rng):\n    return x"),
            compiled("def f(x, n, rng):\n    return x + 1"),
        )
        again = compiled("def f(x, n, rng):\n    return x")
        assert (
            em.from_batch(one).digest()
            == em.from_batch(again).digest()
            != em.from_batch(two).digest()
        )

    def test_zoo(self):
        assert em.zoo.laplace(1.0).mechanism.digest() == em.zoo.laplace(1.0).mechanism.digest()
        assert em.zoo.laplace(1.0).mechanism.digest() != em.zoo.laplace(2.0).mechanism.digest()

    def test_programs(self, tmp_path):
        program, data = tmp_path / "program", tmp_path / "data.txt"
        program.write_text("#!/bin/sh\necho 1\n")
        program.chmod(0o755)
        data.write_text("1")
        digests = set()
        for argument in (str(data), f"--file={data}"):
            for change in (
                lambda: None,
                lambda: program.write_text("#!/bin/sh\necho 2\n"),
                lambda: data.write_text("2"),
            ):
                change()
                digests.add(em.from_command([str(program), argument, "{dataset}"]).digest())
            program.write_text("#!/bin/sh\necho 1\n")
            data.write_text("1")
        assert len(digests) == 6
        plain = em.from_command([str(program), "{dataset}"])
        assert (
            plain.digest()
            != em.from_command([str(program), "{dataset}"], env={"SCALE": "2"}).digest()
        )

    def test_services(self):
        one, two = (
            em.from_http("http://localhost:1/x", headers={"Authorization": key})
            for key in ("one", "two")
        )
        assert one.digest() != two.digest()
        assert (
            one.digest()
            != em.from_http("http://localhost:1/y", headers={"Authorization": "one"}).digest()
        )

    def test_recordings(self, tmp_path):
        np.save(tmp_path / "l.npy", np.zeros(9))
        np.save(tmp_path / "r.npy", np.zeros(9))
        before = em.from_recording(tmp_path / "l.npy", tmp_path / "r.npy").digest()
        np.save(tmp_path / "r.npy", np.ones(9))
        assert em.from_recording(tmp_path / "l.npy", tmp_path / "r.npy").digest() != before
