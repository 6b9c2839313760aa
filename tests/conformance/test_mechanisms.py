"""The shipped suite on our own mechanisms: functions, fakes, and the whole zoo."""

import numpy as np
import pytest

from epsilometer import from_batch, from_callable, zoo
from epsilometer.testing import (
    Coin,
    MechanismConformance,
    constant,
    frozen_seed,
    hostile,
    serially_correlated,
)


def noisy(dataset, rng):
    return sum(dataset) + rng.laplace()


def labelled(dataset, n, rng):
    return {"count": rng.integers(0, len(dataset) + 1, n), "name": rng.choice(["a", "b"], n)}


def sometimes_nothing(dataset, rng):
    return None if rng.random() < 0.5 else tuple(rng.random(rng.integers(1, 3)))


def failing_half_of_the_time(dataset, rng):
    if rng.random() < 0.5:
        raise ValueError("bad luck")
    return 1


def unseeded(dataset):
    return np.random.default_rng().normal(sum(dataset))


CASES = {
    "noisy": (from_callable(noisy), [1, 2, 3]),
    "records": (from_batch(labelled), [1, 2, 3]),
    "mixed shapes": (from_callable(sometimes_nothing), {}),
    "failures as outcomes": (from_callable(failing_half_of_the_time, on_error="outcome"), [0]),
    "unseeded": (from_callable(unseeded), [1.0]),
    "coin": (Coin(0.3, 0.2).mechanism, 0.3),
    "constant": (constant(None), 0),
    "frozen seed": (frozen_seed(), 1.0),
    "serially correlated": (serially_correlated(), 1.0),
    "hostile": (hostile(), 1.0),
} | {
    f"zoo:{name}": (zoo.find(name).mechanism, zoo.find(name).worst_pair.left)
    for name in zoo.names()
}


class TestOurMechanisms(MechanismConformance):
    @pytest.fixture(params=CASES)
    def case(self, request):
        return CASES[request.param]

    @pytest.fixture
    def mechanism(self, case):
        return case[0]

    @pytest.fixture
    def dataset(self, case):
        return case[1]
