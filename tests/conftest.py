"""What every test gets: one thread per process, its own generator, a time limit, and Hypothesis without chance."""

import os

# Before NumPy is loaded: side by side, tests that each take all cores wait for one another.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import faulthandler
import gc
import itertools
import re
import signal
import sys
import threading
import tomllib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from epsilometer.errors import MissingExtraError

if TYPE_CHECKING:
    from warm_python import WarmPython

# No test may hang. One that takes so many seconds, where the slowest takes 30 on a quiet machine, fails and shows what
# every thread was doing. `faulthandler_timeout` in pyproject.toml ends the process where even that is not possible.
TEST_SECONDS = 1200
# The whole run, which takes about 11 minutes on a quiet machine, ends after this time, whatever happens.
RUN_SECONDS = 3600

# The folders whose tests take a second and more each.
LONG_FIRST = {"end_to_end", "statistical"}

# `fixed` gives the same examples in every run, here and in CI. `explore` looks for new ones on a developer's wish:
# HYPOTHESIS_PROFILE=explore make test
# Neither measures time: a busy machine is no failure.
patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", derandomize=True, database=None, **patient)
settings.register_profile("explore", max_examples=1000, **patient)
settings.load_profile(
    "fixed" if os.environ.get("CI") else os.environ.get("HYPOTHESIS_PROFILE", "fixed")
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"time_limit(seconds): instead of {TEST_SECONDS}")
    timer = threading.Timer(RUN_SECONDS, end_run)
    timer.daemon = True
    timer.start()
    config.add_cleanup(timer.cancel)


def optional_packages() -> dict[str, str]:
    """What may be missing, by the name that is imported: the extras, and what tests use besides them."""
    root = Path(__file__).parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    names = {
        re.match(r"[\w-]+", need)[0]: f"the extra {extra}"
        for extra, needs in extras.items()
        for need in needs
    }
    tools = re.findall(
        r"^[\w-]+", (root / "requirements" / "dev.in").read_text(encoding="utf-8"), re.MULTILINE
    )
    found = {name: f"the package {name}" for name in tools} | names
    imported = {"scikit-learn": "sklearn", "pure-ldp": "pure_ldp", "dp-accounting": "dp_accounting"}
    return {imported.get(name, name): needed for name, needed in found.items()}


def reason_to_skip(error: BaseException | None) -> str | None:
    """Why a test cannot run here, if an optional package is what it lacks; else None, and it fails."""
    known = optional_packages()
    if isinstance(error, MissingExtraError):
        packages = [name for name, needed in known.items() if needed == f"the extra {error.extra}"]
        return (
            str(error) if any(find_spec(name) is None for name in packages) else None
        )  # ours, if all are there
    if isinstance(error, ModuleNotFoundError):
        needed = known.get((error.name or "").partition(".")[0])
        return None if needed is None else f"needs {needed}, which is not installed"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    error = getattr(getattr(report, "call", None), "excinfo", None)
    reason = None if error is None else reason_to_skip(error.value.__cause__ or error.value)
    if report.outcome == "failed" and reason is not None:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    try:
        return (yield)
    except (ModuleNotFoundError, MissingExtraError) as error:
        reason = reason_to_skip(error)
        if reason is None:
            raise
        pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, and long ones: at the end, short ones keep all processes busy. Files stay together.

    xdist cuts the list into as many pieces as there are processes, and who is through takes half of what another has
    left, from its end.
    """
    items.sort(
        key=lambda item: (
            item.get_closest_marker("slow") is None,
            LONG_FIRST.isdisjoint(item.path.parts),
        )
    )


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: no collection of garbage need look at it again."""
    gc.collect()
    gc.freeze()


def end_run() -> None:
    """Worker processes of xdist end with the process that started them."""
    sys.__stderr__.write(f"\nthe tests took longer than {RUN_SECONDS} s; this is where they are:\n")
    faulthandler.dump_traceback(sys.__stderr__)
    os._exit(1)


@contextmanager
def limited(item: pytest.Item) -> Iterator[None]:
    if not hasattr(signal, "SIGALRM"):
        yield
        return
    marker = item.get_closest_marker("time_limit")
    seconds = TEST_SECONDS if marker is None else marker.args[0]

    def ring(*_: object) -> None:
        faulthandler.dump_traceback(
            sys.__stderr__
        )  # captured, and so part of the report of the failure
        pytest.fail(
            f"took longer than {seconds} s; the stacks of all threads are in the captured stderr"
        )

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with limited(item):
        return (yield)


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """Programs that tests start can be interrupted, also where the tests themselves run in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def warm_python() -> Iterator["WarmPython"]:
    """Runs programs that need not start as a user starts them: forks of one process that has imported everything."""
    from warm_python import WarmPython

    warm = WarmPython()
    yield warm
    warm.close()


@pytest.fixture(autouse=True)
def repeatable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits without a seed take one of this test's own: a true claim is refuted by chance once in twenty runs."""
    from epsilometer.engine import seeds

    numbers = itertools.count(zlib.crc32(request.node.nodeid.encode()))
    monkeypatch.setattr(seeds, "fresh_seed", lambda: next(numbers))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of this test's own, the same in any order and selection of tests."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def rarely(rng: np.random.Generator) -> Callable[..., int]:
    """Asserts that something happens at most at a promised rate, in as few runs as that takes: Wald's sequential test.

    It runs until the events speak for the promise or against it. One that is kept is called broken with probability at
    most 1e-9, and a rate of `broken` or more passes with probability at most 1 %: likelihood ratios are martingales, so
    both hold however long it takes. To tell 5 % from 30 % takes 20 runs or so. A fixed number with the same false alarm
    has to be 120 for the same power.
    """

    from epsilometer.testing import RateTest

    def check(happens: Callable[[int], bool], rate: float, broken: float) -> int:
        test = RateTest(rate, broken, false_alarm=1e-9, miss=0.01)
        while not test.is_clear:
            test.add(bool(happens(int(rng.integers(2**62)))))
            assert not test.is_broken, (
                f"{test.events} events in {test.runs} runs, promised a rate of at most {rate:g}"
            )
        return test.runs

    return check
