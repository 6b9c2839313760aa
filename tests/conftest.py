"""What every test gets: one thread per process, its own generator, and Hypothesis without chance."""

import os

# Before NumPy is loaded: side by side, tests that each take all cores wait for one another.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import signal
import zlib

import numpy as np
import pytest
from hypothesis import settings

# `fixed` gives the same examples in every run, here and in CI. `explore` looks for new ones on a developer's wish:
# HYPOTHESIS_PROFILE=explore make test
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile("fixed" if os.environ.get("CI") else os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """Programs that tests start can be interrupted, also where the tests themselves run in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of this test's own, the same in any order and selection of tests."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
